# SPDX-License-Identifier: Apache-2.0
"""Lifecycle transitions: impossible ones are refused, the others logged, exceptions included.

rclpy ends the process at an impossible transition, and turns an exception into the error state without a word.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn


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


def state_label(node: LifecycleNode) -> str:
    """Label of the lifecycle state or transition, such as ``inactive``."""
    label: str = node._state_machine.current_state[1]
    return label


def refuse_impossible_transitions(node: LifecycleNode) -> None:
    """Refuse transitions that the state does not allow; rclpy would end the process."""
    service = node._service_change_state
    change_state = service.callback

    def guarded(request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            return change_state(request, response)
        except Exception as error:
            if node.context.ok():  # at shutdown the transition event cannot be published
                node.get_logger().warning(f"transition refused in state {state_label(node)}: {error}")
            response.success = False
            return response

    service.callback = guarded
