# SPDX-License-Identifier: Apache-2.0
"""Equations of motion in closed form: their matrices with time derivatives, and the reference for faster code."""

from .closed_form import EquationsOfMotion, equations_of_motion
from .floating_base import FloatingEquationsOfMotion, floating_equations_of_motion

__all__ = [
    "EquationsOfMotion",
    "FloatingEquationsOfMotion",
    "equations_of_motion",
    "floating_equations_of_motion",
]
