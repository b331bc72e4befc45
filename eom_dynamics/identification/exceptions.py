# SPDX-License-Identifier: Apache-2.0
"""Errors of identification."""

from __future__ import annotations

from ..exceptions import EomDynamicsError


class IdentificationError(EomDynamicsError, ValueError):
    """Nothing can be identified from a recording, or settings contradict it."""
