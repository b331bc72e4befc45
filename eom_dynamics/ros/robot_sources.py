# SPDX-License-Identifier: Apache-2.0
"""Where the node takes its robot from. The first of these that is given, the others have no effect:

1. its own parameters ``robot.*``,
2. its parameter ``robot_description``, a URDF,
3. the parameters of the node that its parameter ``robot_source_node`` names,
4. the topic ``robot_description``, which is there without being asked for and therefore comes last.

What is closer to the node comes first: whoever starts it can always say which robot it is. The first two are
there at the start or not at all; the others may come at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rclpy.node import Node

from . import parameters
from .description_topic import DescriptionTopic
from .remote_parameters import RemoteParameters
from .robot_loading import Given, GivenSection, GivenUrdf


class Source(Protocol):
    """A place that a robot comes from.

    Attributes:
        label: how messages name it.
        problem: why there is no robot.
    """

    label: str
    problem: str

    @property
    def given(self) -> Given | None:
        """The robot that is there now, or None."""

    def poll(self) -> None:
        """Look for what has come; called again and again while there is no robot."""

    def look_again(self) -> None:
        """Start to look for the robot as it is now, after the node has let go of it."""

    def close(self) -> None:
        """Let go of all that the source holds."""


class OwnParameters:
    """The robot that the node's own parameters describe, as they are now."""

    problem = ""

    def __init__(self, node: Node, key: str) -> None:
        self._node = node
        self._key = key
        self.label = f"parameters {key}.*" if key == parameters.ROBOT else f"parameter {key}"

    @property
    def given(self) -> Given | None:
        """The robot, read from the parameters each time."""
        if self._key == parameters.ROBOT:
            return GivenSection(parameters.section(self._node, parameters.ROBOT), "parameters")
        text = self._node.get_parameter(parameters.DESCRIPTION).value
        return GivenUrdf(text, parameters.section(self._node, parameters.URDF), parameters.DESCRIPTION)

    def poll(self) -> None:
        """Do nothing: parameters do not come by themselves."""

    def look_again(self) -> None:
        """Do nothing: parameters are read each time."""

    def close(self) -> None:
        """Hold nothing."""


class RobotSources:
    """The one source that counts, by the node's parameters."""

    def __init__(self, node: Node, on_arrival: Callable[[], None]) -> None:
        """Open the source; ``on_arrival`` is called when a topic brings something."""
        self._node, self._on_arrival = node, on_arrival
        self._choice = self._chosen()
        self.current: Source = self._open()

    def update(self) -> None:
        """Follow a change of the parameters: go over to another source where they say so."""
        choice = self._chosen()
        if choice != self._choice:
            self.current.close()
            self._choice = choice
            self.current = self._open()

    @property
    def can_come(self) -> bool:
        """Whether the robot may come by itself, so that waiting for it makes sense."""
        return not isinstance(self.current, OwnParameters)

    def without_effect(self, given: Given) -> list[str]:
        """Parameters that are set but not used, where this robot was taken."""
        unused = [key for key, there in self._given().items() if there and key != self._choice[0]]
        if isinstance(given, GivenSection) and parameters.section(self._node, parameters.URDF):
            unused.append(f"{parameters.URDF}.*")
        return unused

    def _given(self) -> dict[str, bool]:
        """Whether each parameter that names a robot is given, highest precedence first."""
        node = self._node
        return {
            parameters.ROBOT: bool(parameters.section(node, parameters.ROBOT)),
            parameters.DESCRIPTION: bool(node.get_parameter(parameters.DESCRIPTION).value),
            parameters.SOURCE_NODE: bool(node.get_parameter(parameters.SOURCE_NODE).value),
        }

    def _chosen(self) -> tuple[str, str]:
        """The parameter that decides, empty for the topic; and the node that is to be asked."""
        key = next((key for key, there in self._given().items() if there), "")
        name = self._node.get_parameter(parameters.SOURCE_NODE).value if key == parameters.SOURCE_NODE else ""
        return key, name

    def _open(self) -> Source:
        key, name = self._choice
        if key == parameters.SOURCE_NODE:
            return RemoteParameters(self._node, name)
        if key:
            return OwnParameters(self._node, key)
        return DescriptionTopic(self._node, self._on_arrival)
