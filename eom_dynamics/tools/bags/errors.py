# SPDX-License-Identifier: Apache-2.0
"""Errors of bags."""

from __future__ import annotations

from ...exceptions import EomDynamicsError


class BagError(EomDynamicsError):
    """A bag cannot be read or written, or lacks what is asked of it."""
