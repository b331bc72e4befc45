# SPDX-License-Identifier: Apache-2.0
"""Offline replay: the commands that the node would have published for recorded motions.

:func:`replay` takes bags and folders of bags, and compares the outputs; :func:`replay_bag` replays one bag,
:func:`replay_bags` many, on the cores of a machine or on a Dask cluster.
"""

from ..recording_options import CommandOptions
from .compare import FIELDS, Difference, Tolerances, check_golden, compare_bags, compare_tables
from .job import Job, Report, exceeding, incomplete
from .one import Outcome, replay_bag
from .run import Golden, find_bags, replay, replay_bags

__all__ = [
    "FIELDS",
    "CommandOptions",
    "Difference",
    "Golden",
    "Job",
    "Outcome",
    "Report",
    "Tolerances",
    "check_golden",
    "compare_bags",
    "compare_tables",
    "exceeding",
    "find_bags",
    "incomplete",
    "replay",
    "replay_bag",
    "replay_bags",
]
