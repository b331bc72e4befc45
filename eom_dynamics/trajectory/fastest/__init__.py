# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along paths, within the limits of joints, motors and tools."""

from .constraints import ToolLimits
from .motion import ActiveLimit, FastestMotion
from .search import minimum_time, minimum_times

__all__ = ["ActiveLimit", "FastestMotion", "ToolLimits", "minimum_time", "minimum_times"]
