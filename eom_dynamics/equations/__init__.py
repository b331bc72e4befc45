# SPDX-License-Identifier: Apache-2.0
"""Equations of motion in closed form: their matrices with time derivatives, and the reference for faster code."""

from .closed_form import EquationsOfMotion, equations_of_motion
from .rigid_body import RigidBody, newton_euler
from .system_form import SystemForm, system_form

__all__ = ["EquationsOfMotion", "RigidBody", "SystemForm", "equations_of_motion", "newton_euler", "system_form"]
