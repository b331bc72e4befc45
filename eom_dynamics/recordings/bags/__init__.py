# SPDX-License-Identifier: Apache-2.0
"""Read and write ROS 2 bags, sqlite3 and MCAP, without ROS: blocks of messages as arrays.

Files, types and their CDR serialisation are those of rosbags. This package adds speed, by blocks of messages with the
same layout, and bounds on what a file from elsewhere may cost.
"""

from ...exceptions import require

try:
    import rosbags  # noqa: F401
except ImportError:
    require("replay")
    raise

from .bag import Bag, BagWriter, Storage, find_bags
from .layout import Layout, LayoutError, Layouts
from .types import BagError, Topic, own_definitions, typestore

__all__ = [
    "Bag",
    "BagError",
    "BagWriter",
    "Layout",
    "LayoutError",
    "Layouts",
    "Storage",
    "Topic",
    "find_bags",
    "own_definitions",
    "typestore",
]
