# SPDX-License-Identifier: Apache-2.0
"""Read and write ROS 2 bags, sqlite3 and MCAP, without ROS: blocks of messages as arrays.

Types and their CDR serialisation are those of rosbags. This package adds speed, a million messages in seconds, and
reads damaged bags as far as SQLite and the mcap library can.
"""

from ...extras import require

try:
    import mcap  # noqa: F401
    import rosbags  # noqa: F401
except ImportError:
    require("replay")
    raise

from .bag import Bag
from .layout import Layout, LayoutError, Layouts, Rows
from .output import BagWriter, Storage, open_writer
from .storage import BagError
from .types import OutputTopic, Topic, own_definitions, typestore

__all__ = [
    "Bag",
    "BagError",
    "BagWriter",
    "Layout",
    "LayoutError",
    "Layouts",
    "OutputTopic",
    "Rows",
    "Storage",
    "Topic",
    "open_writer",
    "own_definitions",
    "typestore",
]
