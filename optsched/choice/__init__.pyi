from .check import Chosen as Chosen
from .check import verify as verify
from .decide import Choice as Choice
from .decide import sia_cost as sia_cost
from .proof import ChoiceCertificate as ChoiceCertificate
from .round import Round as Round
