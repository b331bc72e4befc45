# SPDX-License-Identifier: Apache-2.0
"""Springs between motors and links, one file per family. Import a new kind here to register it."""

from .antagonistic import AntagonisticPair as AntagonisticPair
from .antagonistic import ExponentialPair as ExponentialPair
from .antagonistic import QuadraticPair as QuadraticPair
from .base import SPRINGS as SPRINGS
from .base import EffortJets as EffortJets
from .base import MemorylessSpring as MemorylessSpring
from .base import Parameter as Parameter
from .base import Spring as Spring
from .damped import DampedSpring as DampedSpring
from .hardening import CubicSpring as CubicSpring
from .hardening import DeadZoneSpring as DeadZoneSpring
from .hardening import ExponentialSpring as ExponentialSpring
from .hardening import PolynomialSpring as PolynomialSpring
from .linear import RIGID as RIGID
from .linear import CoupledSpring as CoupledSpring
from .linear import LinearSpring as LinearSpring
from .linear import RigidSpring as RigidSpring
from .linear import VariableSpring as VariableSpring
from .linear import spring_of_stiffness as spring_of_stiffness
from .tabulated import TabulatedSpring as TabulatedSpring
