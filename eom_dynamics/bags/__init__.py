# SPDX-License-Identifier: Apache-2.0
"""Bags of ROS 2, sqlite3 and MCAP, read and written without ROS: whole blocks of messages as arrays.

Types and their CDR serialisation are those of rosbags; this package adds what it takes to go through a million messages
in seconds, and through bags that are damaged.
"""

try:
    import mcap  # noqa: F401
    import rosbags  # noqa: F401
except ImportError as error:
    raise ImportError(f"{error.name} is missing: make build, or pip install 'eom_dynamics[bags]'") from error

from .bag import Bag, Topic
from .errors import BagError
from .layout import Layout, LayoutError, Layouts, Rows
from .output import BagWriter, OutputTopic, Storage, open_writer
from .types import own_definitions, typestore

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
