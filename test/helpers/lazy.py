# SPDX-License-Identifier: Apache-2.0
"""Values that tests share, made when one of them uses them: not in each process that collects the tests."""

from collections.abc import Callable
from typing import Any


class Lazy(dict[str, Any]):
    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Any:
        self[name] = self._make(name)
        return self[name]
