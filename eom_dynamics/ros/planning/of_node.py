# SPDX-License-Identifier: Apache-2.0
"""The planning services as the node has them: a supervised process, or nothing where they are left out."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence

from rclpy.node import Node

from ...robot import Robot
from .link import Identity, Motion, Refusal, Stop
from .supervisor import Supervisor

PARAMETER = "planning_services"
"""The parameter that leaves them out."""

NAMES = (
    "inverse_dynamics_batch",
    "forward_dynamics",
    "equations_of_motion",
    "trajectory_feedforward",
    "compute_trajectory_feedforward",
)
"""Of the services, and last of the action, below the node's name."""


class PlanningProcess:
    """What the node tells its planning services, and hears of them. No call of it waits, except ``close``."""

    def __init__(
        self, node: Node, arguments: Sequence[str] | None, take: Callable[[Motion | Refusal | Stop], None]
    ) -> None:
        """Start the process, unless the parameter leaves it out.

        Args:
            node: the node.
            arguments: its command line; None for that of this process.
            take: takes what came of a trajectory from the topic; called by the node's executor.
        """
        self._supervisor: Supervisor | None = None
        self._said: deque[Motion | Refusal | Stop] = deque()
        self._taker = take
        self._node = node
        if node.get_parameter(PARAMETER).value:
            identity = Identity(
                tuple(sys.argv if arguments is None else arguments),
                node.get_name(),
                node.get_namespace(),
                {name: node.resolve_service_name(f"~/{name}") for name in NAMES},
                node.get_parameter("use_sim_time").value,
                node.resolve_topic_name("/clock"),
                node.resolve_topic_name("joint_trajectory"),
            )
            self._supervisor = Supervisor(identity, node.get_logger().warning, self._note)

    @property
    def problem(self) -> str:
        """Why the services are not there; empty where they are, or start, or are left out."""
        return self._supervisor.problem if self._supervisor else ""

    @property
    def status(self) -> str:
        """A few words for diagnostics."""
        return self._supervisor.status if self._supervisor else "off"

    def is_of_another_robot(self, motion: Motion) -> bool:
        """Whether the robot has changed since a trajectory was fitted."""
        return self._supervisor is not None and motion.serial != self._supervisor.serial

    def _note(self, said: Motion | Refusal | Stop) -> None:
        """Leave it to the executor; called in another thread."""
        self._said.append(said)
        # Not a guard condition, which the events executor does not know.
        if (executor := self._node.executor) is not None:
            executor.create_task(self._take_all)

    def _take_all(self) -> None:
        while self._said:
            self._taker(self._said.popleft())

    def tell(self, state: str, robot: Robot | None) -> None:
        """Say what state the node is in, and what its robot is."""
        if self._supervisor:
            self._supervisor.tell(state, robot)

    def close(self) -> None:
        """End the process, and wait until it has."""
        if self._supervisor:
            self._supervisor.close()
