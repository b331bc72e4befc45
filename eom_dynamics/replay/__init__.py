# SPDX-License-Identifier: Apache-2.0
"""Recorded motions, replayed offline: bags in, the node's commands for them out.

:func:`replay_bag` takes one bag; :mod:`.many` takes many, over the cores of a machine or over a Dask cluster.
"""

from .compare import FIELDS, Difference, Match, Tolerances, check_golden, compare_bags
from .evaluation import Options
from .job import AGAINST, Format, Job, Report
from .many import Outcome, find_bags, replay_bags
from .one import replay_bag
from .sources import INPUT_TYPES

__all__ = [
    "AGAINST",
    "FIELDS",
    "INPUT_TYPES",
    "Difference",
    "Format",
    "Job",
    "Match",
    "Options",
    "Outcome",
    "Report",
    "Tolerances",
    "check_golden",
    "compare_bags",
    "find_bags",
    "replay_bag",
    "replay_bags",
]
