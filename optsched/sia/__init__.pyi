from .instance import Round as Round
from .result_check import Chosen as Chosen
from .result_check import verify_round as verify_round
from .solver import Choice as Choice
from .solver import sia_cost as sia_cost
from .verify.certificate import ChoiceCertificate as ChoiceCertificate
