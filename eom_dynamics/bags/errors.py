# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a bag."""

from __future__ import annotations

from ..exceptions import EomDynamicsError


class BagError(EomDynamicsError):
    """A bag cannot be read or written at all, or does not hold what is asked of it."""
