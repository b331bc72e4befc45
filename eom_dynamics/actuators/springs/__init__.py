# SPDX-License-Identifier: Apache-2.0
"""Springs between motors and links, one file a kind. Import a new kind here to register it."""

from .antagonistic import AntagonisticPair as AntagonisticPair
from .base import SPRINGS as SPRINGS
from .base import EffortJets as EffortJets
from .base import Parameter as Parameter
from .base import Spring as Spring
from .coupled import CoupledSpring as CoupledSpring
from .cubic import CubicSpring as CubicSpring
from .damped import DampedSpring as DampedSpring
from .dead_zone import DeadZoneSpring as DeadZoneSpring
from .exponential import ExponentialSpring as ExponentialSpring
from .exponential_pair import ExponentialPair as ExponentialPair
from .linear import LinearSpring as LinearSpring
from .linear import spring_of_stiffness as spring_of_stiffness
from .memoryless import MemorylessSpring as MemorylessSpring
from .polynomial import PolynomialSpring as PolynomialSpring
from .quadratic_pair import QuadraticPair as QuadraticPair
from .rigid import RIGID as RIGID
from .rigid import RigidSpring as RigidSpring
from .tabulated import TabulatedSpring as TabulatedSpring
from .variable import VariableSpring as VariableSpring
