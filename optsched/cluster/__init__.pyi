from .bottleneck import bottleneck_bandwidths as bottleneck_bandwidths
from .bottleneck import bottleneck_topology as bottleneck_topology
from .importers import FORMATS as FORMATS
from .importers import import_topology as import_topology
from .plot import plot_topology as plot_topology
from .topology import Domain as Domain
from .topology import Topology as Topology
from .topology import read_topology as read_topology
