# SPDX-License-Identifier: Apache-2.0
"""Robots of the package example-robot-data, if installed."""

import importlib.metadata
from pathlib import Path

import pytest


def example_urdfs() -> list[Path]:
    """All URDFs; none without the package."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted({Path(str(file.locate())) for file in files if file.name.endswith(".urdf")})


def example_urdf(name: str) -> Path:
    """The URDF of this file name; the test is skipped without the package."""
    found = [path for path in example_urdfs() if path.name == name]
    if not found:
        pytest.skip("example-robot-data is not installed")
    return found[0]
