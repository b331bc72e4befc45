# SPDX-License-Identifier: Apache-2.0
"""Former names of public functions and classes, which work for one release with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def warn_renamed(old: str, new: str) -> None:
    """Warn that the caller of the calling function uses a former name."""
    warnings.warn(f"{old} is now {new}; the former name goes with the next release", DeprecationWarning, stacklevel=3)


def former_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module in which some names were others before.

    Args:
        module: its name.
        names: present ones by former ones.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", names[name])
        return getattr(sys.modules[module], names[name])

    return find
