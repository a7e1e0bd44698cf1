from .instance import Job as Job
from .instance import PalInstance as PalInstance
from .plan import PalCertificate as PalCertificate
from .plan import PalPlan as PalPlan
from .plan import Placement as Placement
