# SPDX-License-Identifier: Apache-2.0
"""Folders of the checkout, and the data beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
DOCS = ROOT / "docs"

SHARED = ROOT.parent / "shared"
"""Reference data, which need not be there: tests that use it skip without it."""

PANDA_BAG = SHARED / "bags" / "panda_exciting_trajectory.db3"
