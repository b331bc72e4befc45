# SPDX-License-Identifier: Apache-2.0
"""Readers of arguments that several commands take, for argparse."""

from __future__ import annotations

import argparse
from pathlib import Path


def folder(text: str) -> Path:
    """The path of a folder; nothing at all, which a path takes for the working directory, is a mistake."""
    if not text:
        raise argparse.ArgumentTypeError("must name a folder, is empty")
    return Path(text)
