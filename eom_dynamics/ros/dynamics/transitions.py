# SPDX-License-Identifier: Apache-2.0
"""Lifecycle transitions: impossible ones are refused, the others logged, exceptions included.

rclpy ends the process at an impossible transition, and turns an exception into the error state without a word.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

_Callback = Callable[[Any, LifecycleState], TransitionCallbackReturn]


def reported(callback: _Callback) -> _Callback:
    """Decorate a transition callback: log it, report its exception to ``on_transition_failure`` and return ERROR.

    After ERROR, rclpy calls ``on_error``.
    """
    name = callback.__name__.removeprefix("on_")

    @functools.wraps(callback)
    def reporting(node: Any, state: LifecycleState) -> TransitionCallbackReturn:
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


class TransitionRequests:
    """Requests for transitions of a node, of which impossible ones are refused; rclpy would end the process.

    Before a transition that leaves the active state the node is switched off, which takes time: the request is answered
    afterwards, and others go on. rclpy answers a request when its callback returns.
    """

    def __init__(self, node: LifecycleNode, switch_off: Callable[[str, Callable[[], None]], None]) -> None:
        """Take the place of the callback of rclpy.

        Args:
            switch_off: ends what the node commands, for a reason, and calls a function afterwards.
        """
        self._node, self._switch_off = node, switch_off
        service: Any = node._service_change_state
        self._change_state, self._send = service.callback, service.send_response
        # Of requests under way, with the header of each response, which rclpy passes on with it.
        self._waiting: list[list[Any]] = []
        service.callback, service.send_response = self._receive, self._answer

    def _receive(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        wanted, available = request.transition, self._node._state_machine.available_transitions
        possible = any(wanted.label == x[1] if wanted.label else wanted.id == x[0] for x in available)
        if not possible or state_label(self._node) != "active":  # each transition from there ends it
            return self._change(request, response)
        waiting, done = [response, None], []

        def change() -> None:
            self._change(request, response)
            done.append(True)
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                self._send(*waiting)

        self._switch_off("the node is deactivated", change)
        if not done:
            self._waiting.append(waiting)
        return response

    def _answer(self, response: ChangeState.Response, header: Any) -> None:
        for waiting in self._waiting:
            if waiting[0] is response:
                waiting[1] = header
                return
        self._send(response, header)

    def _change(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        try:
            return self._change_state(request, response)
        except Exception as error:
            if self._node.context.ok():  # at shutdown the transition event cannot be published
                label = state_label(self._node)
                self._node.get_logger().warning(f"transition refused in state {label}: {error}")
            response.success = False
            return response
