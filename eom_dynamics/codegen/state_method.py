# SPDX-License-Identifier: Apache-2.0
"""Methods whose calls for one state cost no more than a call in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

_Method = TypeVar("_Method", bound=Callable[..., Any])


class HasStateCalls(Protocol):
    """What has programs and calls them for one state."""

    def _state_call(self, program: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method, or a compiled caller for one state in front of it."""
        ...


class _StateMethod:
    """A method of the name of a program.

    Like :func:`functools.cached_property`: the class has the plain method, each instance a compiled caller, which is
    made at first access. The caller takes one state of plain arrays; it passes any other arguments to the method.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, dynamics: HasStateCalls | None, owner: type | None = None) -> Callable[..., Any]:
        if dynamics is None:
            return self._method
        call = dynamics._state_call(self._name, self._method.__get__(dynamics))
        # Not through vars(), which would slow down each attribute access of the instance.
        setattr(dynamics, self._name, call)
        return call


def state_method(method: _Method) -> _Method:
    """Decorate a method of a class with :meth:`HasStateCalls._state_call`."""
    return cast(_Method, _StateMethod(method))
