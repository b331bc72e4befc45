# SPDX-License-Identifier: Apache-2.0
"""Array types for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Array of double-precision numbers."""

AnyArray = NDArray[Any]
"""Array of numbers or symbols."""
