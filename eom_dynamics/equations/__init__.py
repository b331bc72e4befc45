# SPDX-License-Identifier: Apache-2.0
"""Equations of motion in closed form: their matrices with time derivatives, and the reference for faster code."""

from .closed_form import EquationsOfMotion, equations_of_motion

__all__ = ["EquationsOfMotion", "equations_of_motion"]
