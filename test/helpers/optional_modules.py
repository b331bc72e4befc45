# SPDX-License-Identifier: Apache-2.0
"""Modules of the package whose libraries may be missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest


def imported(module: str) -> ModuleType:
    """The module; skips where a library that it needs is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name and module.startswith(error.name):
            raise
        pytest.skip(f"could not import {module}: {error}")
