# SPDX-License-Identifier: Apache-2.0
"""Log of lifecycle transitions, and of their exceptions, which rclpy turns into the error state without a word."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn


class _Reporting(Protocol):
    def get_logger(self) -> Any: ...

    def on_transition_failure(self, reason: str, detail: str) -> None: ...


AnyNode = TypeVar("AnyNode", bound=_Reporting)

_Callback = Callable[[AnyNode, LifecycleState], TransitionCallbackReturn]


def reported(callback: _Callback[AnyNode]) -> _Callback[AnyNode]:
    """Decorate a transition callback: log it, report its exception to ``on_transition_failure`` and return ERROR.

    After ERROR, rclpy calls ``on_error``.
    """
    name = callback.__name__.removeprefix("on_")

    @functools.wraps(callback)
    def reporting(node: AnyNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            result = callback(node, state)
        except Exception as error:
            node.on_transition_failure(f"{name} failed: {type(error).__name__}: {error}", traceback.format_exc())
            return TransitionCallbackReturn.ERROR
        if result == TransitionCallbackReturn.SUCCESS:
            node.get_logger().info(f"transition {name} from {state.label}")
        return result

    return reporting
