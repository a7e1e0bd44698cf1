from .cluster import Cluster as Cluster
from .decision import NOTHING as NOTHING
from .decision import Decision as Decision
from .decision import InvalidDecision as InvalidDecision
from .decision import Policy as Policy
from .decision import SolveRecord as SolveRecord
from .scenario import Scenario as Scenario
