from .checks import CHECKS as CHECKS
from .findings import Finding as Finding
from .findings import check_policy as check_policy
from .findings import conformance as conformance
from .worlds import World as World
from .worlds import bundled_worlds as bundled_worlds
