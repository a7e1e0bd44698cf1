from .decide import Choice as Choice
from .decide import sia_cost as sia_cost
from .result_check import Chosen as Chosen
from .result_check import verify as verify
from .round import Round as Round
from .verification.certificate import ChoiceCertificate as ChoiceCertificate
