# SPDX-License-Identifier: Apache-2.0
"""The equations of motion in closed form: the readable reference, and the source of the matrices."""

from .closed_form import EquationsOfMotion, equations_of_motion

__all__ = ["EquationsOfMotion", "equations_of_motion"]
