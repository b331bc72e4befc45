# SPDX-License-Identifier: Apache-2.0
"""Refusals that are allowed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from eom_dynamics.exceptions import EomDynamicsError, RobotDescriptionWarning


@contextmanager
def refused() -> Iterator[None]:
    """Allow exceptions of this package, each of one line of text, and no warnings but its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RobotDescriptionWarning)
        try:
            yield
        except EomDynamicsError as error:
            for line in error.errors:
                assert line and "\n" not in line, line
                assert "nternal error" not in line, line
