from .instance import Configuration as Configuration
from .instance import GpuGroup as GpuGroup
from .instance import SiaInstance as SiaInstance
from .instance import SiaJob as SiaJob
from .plan import Assignment as Assignment
from .plan import SiaPlan as SiaPlan
from .verify.certificate import ChoiceCertificate as ChoiceCertificate
