# SPDX-License-Identifier: Apache-2.0
"""Equations of motion and their matrices: closed form, block matrices, system form, Jacobian sums, and momentum."""

from .closed_form import EquationsOfMotion, equations_of_motion
from .floating_base import CenterOfMassCoordinates, FloatingEquationsOfMotion, floating_equations_of_motion
from .jacobian_sums import (
    BodyJacobians,
    center_of_mass_jacobians,
    christoffel_symbols,
    coriolis_tensor,
    gravity_from_jacobians,
    mass_matrix_from_jacobians,
)
from .momentum import floating_spatial_momentum, spatial_momentum
from .rigid_body import RigidBody, newton_euler
from .spatial import spatial_equations_of_motion
from .system import SystemMatrices, system_matrices
from .system_form import SystemForm, system_form

__all__ = [
    "BodyJacobians",
    "CenterOfMassCoordinates",
    "EquationsOfMotion",
    "FloatingEquationsOfMotion",
    "RigidBody",
    "SystemForm",
    "SystemMatrices",
    "center_of_mass_jacobians",
    "christoffel_symbols",
    "coriolis_tensor",
    "equations_of_motion",
    "floating_equations_of_motion",
    "floating_spatial_momentum",
    "gravity_from_jacobians",
    "mass_matrix_from_jacobians",
    "newton_euler",
    "spatial_equations_of_motion",
    "spatial_momentum",
    "system_form",
    "system_matrices",
]
