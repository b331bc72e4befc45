# SPDX-License-Identifier: Apache-2.0
"""Arguments on the conventions of a recording: names of joints, units and offsets of efforts."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from .arguments import number

if TYPE_CHECKING:
    from ..replay.conventions import Conventions

_any_number = number(lambda x: True, "a number")


def add_convention_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe how names and efforts of a recording become those of the robot."""
    group = parser.add_argument_group("conventions of the recording, each option may be repeated")
    group.add_argument(
        "--rename",
        metavar="PATTERN=REPLACEMENT",
        type=_renaming,
        action="append",
        default=[],
        help="replace a regular expression in the names of joints, such as ^left_= to remove a prefix",
    )
    for name, what in (("scale", "effort for a recorded 1, such as N m/A"), ("offset", "added to efforts, N m or N")):
        group.add_argument(
            f"--effort-{name}",
            metavar="[JOINT=]X",
            type=_of_joint,
            action="append",
            default=[],
            help=f"{what}, of all joints or of one of the robot",
        )


def conventions(options: argparse.Namespace) -> Conventions:
    """Return the conventions that the arguments describe."""
    from ..replay.conventions import Conventions  # needs the libraries for bags

    return Conventions(tuple(options.rename), tuple(options.effort_scale), tuple(options.effort_offset))


def _renaming(text: str) -> tuple[str, str]:
    pattern, assigned, replacement = text.rpartition("=")
    if not (pattern and assigned):
        raise argparse.ArgumentTypeError(f"must be PATTERN=REPLACEMENT, is {text!r}")
    try:
        # A template is checked where it is used: a group that does not exist is found by a match only.
        re.sub(f"{pattern}|", replacement, "")
    except (re.error, IndexError) as error:
        raise argparse.ArgumentTypeError(
            f"must be a regular expression and its replacement, is {text!r}: {error}"
        ) from None
    return pattern, replacement


def _of_joint(text: str) -> tuple[str | None, float]:
    joint, assigned, value = text.rpartition("=")
    if assigned and not joint:
        raise argparse.ArgumentTypeError(f"must be X or JOINT=X, is {text!r}")
    return joint or None, _any_number(value)
