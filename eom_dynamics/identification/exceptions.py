# SPDX-License-Identifier: Apache-2.0
"""Errors of identification."""

from __future__ import annotations

from ..exceptions import EomDynamicsError


class IdentificationError(EomDynamicsError, ValueError):
    """A recording from which nothing can be identified, or settings that contradict it."""
