# SPDX-License-Identifier: Apache-2.0
"""The robot from the parameters of another node, asked for without ever waiting."""

from __future__ import annotations

import time

from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameters
from rclpy.task import Future

from . import parameters
from .robot_loading import Given, GivenSection, GivenUrdf

# Between an answer and the next question, s: parameters may change until a robot is taken.
_ASK_PERIOD = 1.0


class RemoteParameters:
    """Asks another node for its robot, again and again, since parameters and nodes come and go.

    A ``robot`` section there comes before a ``robot_description``, as it does in this node.

    Attributes:
        label: how messages name it.
        problem: why there is no robot.
    """

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        self._list: Client = node.create_client(
            ListParameters, f"{name}/list_parameters", qos_profile=qos_profile_parameters
        )
        self._get: Client = node.create_client(
            GetParameters, f"{name}/get_parameters", qos_profile=qos_profile_parameters
        )
        self._name = self._get.service_name.rpartition("/")[0]
        self.label = f"parameters of node {self._name}"
        self._robot: GivenSection | str | None = None  # a section, or the text of a URDF
        self.problem = "it was not asked yet"
        self._pending: tuple[Client, Future] | None = None
        self._names: list[str] = []
        self._asked = self._next = 0.0

    @property
    def given(self) -> Given | None:
        """What the node answered last; None where there is no answer, or no robot in it."""
        if not isinstance(self._robot, str):
            return self._robot
        additions = parameters.section(self._node, parameters.URDF)
        return GivenUrdf(self._robot, additions, f"{parameters.DESCRIPTION} of node {self._name}")

    def poll(self) -> None:
        """Go one step further in asking, where there is one; to be called again and again."""
        now = time.monotonic()
        if self._pending is None:
            if now >= self._next:
                self._ask(now)
            return
        client, future = self._pending
        if future.done():
            self._pending = None
            self._take(future, now)
        elif now - self._asked > self._node.get_parameter("robot_timeout").value or not client.service_is_ready():
            # It ended or hangs; a late answer is not waited for, and the question asked anew.
            self._drop_request()
            self._no_robot("it does not answer")

    def look_again(self) -> None:
        """Ask at the next poll. What was answered before counts until there is another answer."""
        self._drop_request()
        self._next = 0.0

    def close(self) -> None:
        """Stop asking."""
        self._drop_request()
        self._node.destroy_client(self._list)
        self._node.destroy_client(self._get)

    def _ask(self, now: float) -> None:
        if not (self._list.service_is_ready() and self._get.service_is_ready()):
            self._no_robot("there is no such node, or it has no parameter services")
            return
        request = ListParameters.Request(prefixes=[parameters.ROBOT, parameters.DESCRIPTION])
        self._asked, self._names = now, []
        self._pending = (self._list, self._list.call_async(request))

    def _take(self, future: Future, now: float) -> None:
        """Take an answer: the names, after which the values are asked for, or the values."""
        try:
            if self._names:
                self._take_values(future.result().values)
            elif names := [name for name in future.result().result.names if _is_wanted(name)]:
                self._asked, self._names = now, names
                self._pending = (self._get, self._get.call_async(GetParameters.Request(names=names)))
                return
            else:
                self._no_robot(f"it has neither {parameters.DESCRIPTION} nor parameters {parameters.ROBOT}.*")
        except _AnswerError as error:
            self._no_robot(str(error))
        self._next = now + _ASK_PERIOD

    def _take_values(self, answered: list[object]) -> None:
        if len(answered) != len(self._names):
            raise _AnswerError(f"it answered {len(answered)} values to a question for {len(self._names)}")
        try:
            values = dict(zip(self._names, map(parameter_value_to_python, answered), strict=True))
        except RuntimeError as error:  # a type that there is not
            raise _AnswerError(f"its answer cannot be read: {error}") from None
        prefix = f"{parameters.ROBOT}."
        section = {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}
        if section:
            self._robot = GivenSection(section, self.label)
            return
        text = values.get(parameters.DESCRIPTION)
        if not isinstance(text, str):
            raise _AnswerError(f"its {parameters.DESCRIPTION} must be a text, is {text!r:.60}")
        if not text:
            raise _AnswerError(f"its {parameters.DESCRIPTION} is empty")
        self._robot = text

    def _no_robot(self, problem: str) -> None:
        self._robot, self.problem = None, problem

    def _drop_request(self) -> None:
        if self._pending is not None:
            client, future = self._pending
            client.remove_pending_request(future)
            self._pending = None


class _AnswerError(Exception):
    """What the other node answered is not an answer to the question; says why."""


def _is_wanted(name: str) -> bool:
    return name == parameters.DESCRIPTION or name.startswith(f"{parameters.ROBOT}.")
