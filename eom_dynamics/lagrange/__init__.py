# SPDX-License-Identifier: Apache-2.0
"""Lagrange's equations of motion as SymPy expressions, for a robot or any system defined by its energies.

Requires the extra ``symbolic``.
"""

from ..exceptions import require

require("symbolic")  # before the modules below, which import SymPy

from .kinematics import SymbolicKinematics  # noqa: E402
from .lagrangian import FORMS, Lagrangian, LagrangianError, rate, variables  # noqa: E402
from .normal_form import normal_form  # noqa: E402
from .robots import MOST_JOINTS, kinetic_energy, planar_arm, potential_energy, robot_lagrangian  # noqa: E402

__all__ = [
    "FORMS",
    "MOST_JOINTS",
    "Lagrangian",
    "LagrangianError",
    "SymbolicKinematics",
    "kinetic_energy",
    "normal_form",
    "planar_arm",
    "potential_energy",
    "rate",
    "robot_lagrangian",
    "variables",
]
