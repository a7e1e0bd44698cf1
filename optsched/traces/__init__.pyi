from .trace import FAILED as FAILED
from .trace import KILLED as KILLED
from .trace import PASSED as PASSED
from .trace import STATUSES as STATUSES
from .trace import US as US
from .trace import Failure as Failure
from .trace import Trace as Trace
from .trace import trace_of as trace_of
