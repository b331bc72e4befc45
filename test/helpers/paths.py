# SPDX-License-Identifier: Apache-2.0
"""Folders of the checkout, and the data next to it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
DOCS = ROOT / "docs"

SHARED = ROOT.parent / "shared"  # reference data, which need not be there: tests that use it skip without it

PANDA_BAG = SHARED / "bags" / "panda_exciting_trajectory.db3"


def contents(folder: Path) -> dict[str, bytes]:
    """Files in a folder and its subfolders."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
