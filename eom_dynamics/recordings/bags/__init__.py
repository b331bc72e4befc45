# SPDX-License-Identifier: Apache-2.0
"""Read and write ROS 2 bags, sqlite3 and MCAP, without ROS: blocks of messages as arrays.

rosbags reads files and types, and serializes them (CDR). This package adds speed, by blocks of messages with the
same layout, and bounds on the time and memory that an untrusted file may cost.
"""

from ...exceptions import require

try:
    import rosbags  # noqa: F401
except ImportError:
    require("replay")
    raise

from .bag import Bag, BagWriter, Storage, find_bags
from .layout import Layout, LayoutError, Layouts
from .types import BagError, Topic, package_definitions, typestore

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
    "package_definitions",
    "typestore",
]
