# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along paths, within the limits of joints and motors."""

from .motion import ActiveLimit, FastestMotion
from .search import minimum_time

__all__ = ["ActiveLimit", "FastestMotion", "minimum_time"]
