"""Types of arrays, for annotations: what modules that compute with numpy pass to each other."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]
Bools = NDArray[np.bool_]
