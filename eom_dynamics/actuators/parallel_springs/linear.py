# SPDX-License-Identifier: Apache-2.0
"""Linear law with a stiffness of any sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..checks import finite
from ..declared import Parameter
from ..springs.linear import LinearSpring


@dataclass(frozen=True, eq=False)
class SignedLinearLaw(LinearSpring):
    """K delta, with K < 0 for a spring that pushes away from its rest position.

    Attributes:
        constant: K, N m/rad (N/m).
    """

    constant: Annotated[float, Parameter("stiffness", finite, scales=True)]
