from .decide import Choice as Choice
from .decide import Chosen as Chosen
from .decide import sia_cost as sia_cost
from .decide import verify as verify
from .proof import ChoiceCertificate as ChoiceCertificate
from .round import Round as Round
