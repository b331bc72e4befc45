# SPDX-License-Identifier: Apache-2.0
"""Offline replay: the commands that the node would have published for recorded motions.

:func:`replay` takes bags and folders of bags, on the cores of a machine or on a Dask cluster; :func:`replay_bag`
replays one bag, and :class:`Golden` compares bags.
"""

from ..options import CommandOptions
from .bag import Job, Report, replay_bag
from .compare import FIELDS, Difference, Golden, Tolerances
from .run import Outcome, replay, replay_bags

__all__ = [
    "FIELDS",
    "CommandOptions",
    "Difference",
    "Golden",
    "Job",
    "Outcome",
    "Report",
    "Tolerances",
    "replay",
    "replay_bag",
    "replay_bags",
]
