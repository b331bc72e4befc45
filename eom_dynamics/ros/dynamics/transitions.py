# SPDX-License-Identifier: Apache-2.0
"""Exceptions in lifecycle transitions, which rclpy turns into the error state without a word."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Protocol, TypeVar

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn


class _Reporting(Protocol):
    def on_transition_failure(self, reason: str, detail: str) -> None: ...


AnyNode = TypeVar("AnyNode", bound=_Reporting)

_Callback = Callable[[AnyNode, LifecycleState], TransitionCallbackReturn]


def reported(callback: _Callback[AnyNode]) -> _Callback[AnyNode]:
    """Decorate a transition callback: report its exception to ``on_transition_failure``, and return ERROR.

    rclpy then calls ``on_error``.
    """
    name = callback.__name__.removeprefix("on_")

    @functools.wraps(callback)
    def reporting(node: AnyNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return callback(node, state)
        except Exception as error:
            node.on_transition_failure(f"{name} failed: {type(error).__name__}: {error}", traceback.format_exc())
            return TransitionCallbackReturn.ERROR

    return reporting
