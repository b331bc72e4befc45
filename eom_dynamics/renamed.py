# SPDX-License-Identifier: Apache-2.0
"""Former names of public functions and classes, which work for one release with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import wraps
from typing import Any, TypeVar, cast

_Function = TypeVar("_Function", bound=Callable[..., Any])


def warn_renamed(old: str, new: str) -> None:
    """Warn that the caller of the calling function uses a former name."""
    warnings.warn(f"{old} is now {new}; the former name goes with the next release", DeprecationWarning, stacklevel=3)


def former_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that forwards former names, with a warning.

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


def former_keywords(**names: str) -> Callable[[_Function], _Function]:
    """Decorate a function to accept former argument names, mapped to present ones, with a warning."""

    def decorate(function: _Function) -> _Function:
        @wraps(function)
        def either(*arguments: Any, **keywords: Any) -> Any:
            for old in names.keys() & keywords.keys():
                warn_renamed(f"{old}= of {function.__qualname__}", f"{names[old]}=")
                keywords[names[old]] = keywords.pop(old)
            return function(*arguments, **keywords)

        return cast(_Function, either)

    return decorate


def gathered_keywords(**kinds: type) -> Callable[[_Function], _Function]:
    """Decorate a function some of whose arguments are now fields of one: the dataclasses by the names of arguments."""

    def decorate(function: _Function) -> _Function:
        @wraps(function)
        def either(*arguments: Any, **keywords: Any) -> Any:
            for name, kind in kinds.items():
                given = {x.name: keywords.pop(x.name) for x in fields(kind) if x.name in keywords}
                for old in given:
                    warn_renamed(f"{old}= of {function.__qualname__}", f"{name}={kind.__name__}({old}=…)")
                if given:
                    keywords[name] = replace(keywords.get(name, kind()), **given)
            return function(*arguments, **keywords)

        return cast(_Function, either)

    return decorate


def former_attribute(old: str, new: str) -> Any:
    """Property that forwards a former attribute name, with a warning."""

    def find(instance: object) -> Any:
        warn_renamed(f"{type(instance).__name__}.{old}", new)
        return getattr(instance, new)

    return property(find, doc=f"Former name of ``{new}``.")
