# SPDX-License-Identifier: Apache-2.0
"""Errors of equations by Lagrange."""

from __future__ import annotations

from ..exceptions import EomDynamicsError


class LagrangianError(EomDynamicsError, ValueError):
    """Coordinates or energies that define no Lagrangian."""
