# SPDX-License-Identifier: Apache-2.0
"""Errors of simulations."""

from __future__ import annotations

from ..exceptions import EomDynamicsError


class SimulationError(EomDynamicsError):
    """A simulation cannot continue."""
