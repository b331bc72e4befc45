# SPDX-License-Identifier: Apache-2.0
"""Arguments of the commands that read motions from bags."""

from __future__ import annotations

import argparse

from .arguments import positive


def add_motion_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe how positions are fitted and trajectories sampled: ``cutoff`` and ``rate``, Hz."""
    parser.add_argument(
        "--cutoff",
        metavar="HZ",
        type=positive,
        default=5.0,
        help="cut-off frequency of the fit to measured positions; default: %(default)g",
    )
    parser.add_argument(
        "--rate",
        metavar="HZ",
        type=positive,
        default=1000.0,
        help="sampling rate of a JointTrajectory; default: %(default)g",
    )
