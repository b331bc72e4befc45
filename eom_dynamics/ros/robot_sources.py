# SPDX-License-Identifier: Apache-2.0
"""Sources of a node's robot. They are tried in this order; the first source that is set is used:

1. the node's parameters ``robot.*``,
2. its parameter ``robot_file``, the path of a file of any format that is read,
3. its parameter ``robot_description``, a URDF,
4. the parameters of the node named by its parameter ``robot_source_node``,
5. the topic ``robot_description``, last because it often exists for other purposes.

A source that is given but cannot be used is an error, and never gives way to the next source.
"""

from __future__ import annotations

import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_parameters
from std_msgs.msg import String

from ..arrays import STATE_NAMES
from ..control.setpoint_loop import SetpointLoop
from ..control.setpoint_to_command import SetpointEvaluator
from ..control.trajectories import robot_digest
from ..elastic import ElasticArm
from ..elastic.plausibility import objections
from ..exceptions import EomDynamicsError, RobotDescriptionError
from ..robot import packaged_robots
from ..robot.description import Description as RobotDescription
from ..robot.readers.files import PACKAGE
from ..robot.readers.loading import read_description
from ..robot.readers.parameter_tree import description_from_parameters, robot_with
from ..robot.readers.urdf import description_from_urdf, expand_xacro
from ..terminal import printable
from .executors import Worker, steady_timer
from .parameter_tables import (
    DESCRIPTION,
    FILE,
    PREFIX,
    ROBOT,
    SECTIONS,
    SOURCE_NODE,
    URDF,
    nested,
    section,
    start_value,
)

NOT_LOADED = "robot not loaded"
"""Beginning of the message about a robot that cannot be used."""


@dataclass(frozen=True)
class RawDescription:
    """Robot description of a source, not validated.

    A xacro file, a program, is not expanded if anyone on the network could have named it.
    """

    source: str  # prefix of error messages
    additions: Mapping[str, Any]  # parameters of the section ``urdf``
    robot: Mapping[str, Any] = field(default_factory=dict)  # and of ``robot``, with neither URDF nor file
    urdf: str | None = None  # text
    file: str | None = None  # path
    prefix: str = ""  # of the names of joints, motors and tools
    runs_programs: bool = True  # whether to expand a xacro file

    def load(self, *, streams: bool = False) -> LoadedRobot:
        """Load, validate and compile the robot, on request also for streams; never raises.

        Not thread-safe, since it records warnings.
        """
        try:
            with warnings.catch_warnings(record=True) as recorded, np.errstate(all="ignore"):
                warnings.simplefilter("always")
                robot = robot_with(self._read(), nested(self.additions, URDF, "parameters"))
                arm = ElasticArm(robot.with_prefix(self.prefix))
                evaluator = SetpointEvaluator(arm)
                # Compile batches, too.
                arm.feedforward(*np.zeros((len(STATE_NAMES), 2, arm.robot.n)))
                loop, doubts = SetpointLoop(evaluator) if streams else None, tuple(objections(arm.robot))
        except EomDynamicsError as error:
            return LoadedRobot(self, error="; ".join(error.errors))
        except Exception as error:
            reason = f"internal error: {type(error).__name__}: {error}"
            return LoadedRobot(self, error=reason, detail=traceback.format_exc())
        warned = tuple(str(warning.message) for warning in recorded)
        return LoadedRobot(self, evaluator, (*warned, *doubts), loop=loop, doubts=doubts)

    def _read(self) -> RobotDescription:
        expand = expand_xacro if self.runs_programs else _refuse_program
        if self.urdf is not None:
            return description_from_urdf(self.urdf, self.source)
        if self.file is not None:
            return read_description(self.file, expand=expand, by_name=self.runs_programs)
        return description_from_parameters(nested(self.robot, ROBOT, self.source), self.source, expand=expand)


def _refuse_program(path: Path, arguments: Mapping[str, str]) -> str:
    """Refuse to expand a xacro file that anyone on the network may have named."""
    raise RobotDescriptionError(
        f"{path}: is a xacro file, a program: only a node that is started with it expands it; start this node with it, "
        "or give the other node the URDF"
    )


@dataclass(frozen=True)
class LoadedRobot:
    """Loaded robot, or the reason why it cannot be used."""

    description: RawDescription
    evaluator: SetpointEvaluator | None = None  # compiled; None if the robot cannot be used
    warnings: tuple[str, ...] = ()
    error: str = ""  # why it cannot be used, on one line
    detail: str = ""  # traceback of an internal error
    loop: SetpointLoop | None = None  # of a node that answers streams
    refused: str = NOT_LOADED  # subject of the error
    doubts: tuple[str, ...] = ()  # implausible parameters, which are among the warnings


class _Source:
    """Source of robot descriptions.

    Attributes:
        label: name for messages.
        problem: why there is no robot.
        arrives: whether a robot may arrive later.
    """

    label = problem = ""
    arrives = True

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def description(self) -> RawDescription | None:
        """Current description, with the node's parameters ``urdf.*`` and ``joint_prefix``; or None."""
        raise NotImplementedError

    def refresh(self) -> None:
        """Request the robot again; may block."""

    def close(self) -> None:
        """Destroy subscriptions and clients."""

    def _described(self, source: str, **options: Any) -> RawDescription:
        return RawDescription(
            source, section(self._node, URDF), prefix=self._node.get_parameter(PREFIX).value, **options
        )


class _OwnParameters(_Source):
    """Robot from the node's own parameters, or a file that they name, read again at each load."""

    arrives = False

    def __init__(self, node: Node, key: str, path: str) -> None:
        super().__init__(node)
        self._key, self._path = key, path
        labels = {ROBOT: f"parameters {ROBOT}.*", FILE: f"{FILE} {path}"}
        self.label = labels.get(key, f"parameter {key}")

    @property
    def description(self) -> RawDescription:
        if self._key == ROBOT:
            return self._described("parameters", robot=section(self._node, ROBOT))
        if self._key == FILE:
            named_at_start = self._path == start_value(self._node, FILE)
            return self._described(self.label, file=self._path, runs_programs=named_at_start)
        return self._described(DESCRIPTION, urdf=self._node.get_parameter(DESCRIPTION).value)


class _DescriptionTopic(_Source):
    """Latest URDF on the topic ``robot_description``."""

    problem = "nothing has been published on it yet"

    def __init__(self, node: Node, on_arrival: Callable[[], None]) -> None:
        super().__init__(node)
        self._text: str | None = None
        # As in robot_state_publisher: late subscribers receive the latest description.
        quality = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

        def receive(message: String) -> None:
            self._text = message.data
            on_arrival()

        self._subscription = node.create_subscription(String, DESCRIPTION, receive, quality)
        self.label = f"topic {self._subscription.topic_name}"

    @property
    def description(self) -> RawDescription | None:
        return None if self._text is None else self._described(self.label, urdf=self._text)

    def close(self) -> None:
        self._node.destroy_subscription(self._subscription)


class _RemoteParameters(_Source):
    """Robot from the parameters of another node: section ``robot``, or a file or URDF; and section ``urdf``.

    The node's own section ``urdf`` and its own ``joint_prefix`` take precedence over the other node's.
    """

    problem = "no request has been sent yet"

    def __init__(self, node: Node, name: str) -> None:
        super().__init__(node)
        quality = qos_profile_parameters
        self._list = node.create_client(ListParameters, f"{name}/list_parameters", qos_profile=quality)
        self._get = node.create_client(GetParameters, f"{name}/get_parameters", qos_profile=quality)
        self._name = self._get.service_name.rpartition("/")[0]
        self.label = f"parameters of node {self._name}"
        # One object, which the worker's thread replaces while the executor reads it.
        self._answer: RawDescription | None = None

    @property
    def description(self) -> RawDescription | None:
        answer = self._answer
        if answer is None:
            return None
        described = self._described(answer.source)
        return replace(
            answer, additions=described.additions or answer.additions, prefix=described.prefix or answer.prefix
        )

    def refresh(self) -> None:
        """Request the parameters; waits up to ROBOT_TIMEOUT for each of two answers."""
        try:
            self._answer = self._asked()
        except _NoRobotError as error:
            self._answer, self.problem = None, str(error)

    def close(self) -> None:
        self._node.destroy_client(self._list)
        self._node.destroy_client(self._get)

    def _asked(self) -> RawDescription:
        texts = (FILE, DESCRIPTION, PREFIX)
        request = ListParameters.Request(prefixes=[ROBOT, URDF, *texts])
        names = self._call(self._list, request).result.names
        names = [name for name in names if name in texts or name.startswith(SECTIONS)]
        if all(name == PREFIX or name.startswith(f"{URDF}.") for name in names):
            raise _NoRobotError(f"it has neither {DESCRIPTION} nor parameters {ROBOT}.*")
        answered = self._call(self._get, GetParameters.Request(names=names)).values
        if len(answered) != len(names):
            raise _NoRobotError(f"it answered {len(answered)} values to a request for {len(names)}")
        try:
            values = dict(zip(names, map(parameter_value_to_python, answered), strict=True))
        except RuntimeError as error:  # an unknown type
            raise _NoRobotError(f"its answer cannot be read: {error}") from None
        file, text, prefix = (values.pop(name, "") for name in texts)
        if not isinstance(prefix, str):
            raise _NoRobotError(f"its {PREFIX} must be a text, is {prefix!r:.60}")
        robot, additions = (
            {name.removeprefix(f"{key}."): value for name, value in values.items() if name.startswith(f"{key}.")}
            for key in (ROBOT, URDF)
        )
        options: dict[str, Any] = {"prefix": prefix, "runs_programs": False}
        if robot:
            return RawDescription(self.label, additions, robot, **options)
        if file:
            # A relative path is relative to the working folder of that node, which may differ.
            anywhere = isinstance(file, str) and (file.startswith(PACKAGE) or file in packaged_robots())
            if not (anywhere or (isinstance(file, str) and Path(file).is_absolute())):
                raise _NoRobotError(f"its {FILE} must be an absolute path or {PACKAGE}…, is {file!r:.60}")
            if not (anywhere or Path(file).exists()):
                raise _NoRobotError(
                    f"its {FILE} {file!r} is not on this machine: copy it to that path, or start that node with "
                    f"{DESCRIPTION} or --params-file, which are handed over"
                )
            return RawDescription(f"{FILE} of node {self._name}", additions, file=file, **options)
        if not isinstance(text, str):
            raise _NoRobotError(f"its {DESCRIPTION} must be a text, is {text!r:.60}")
        if not text:
            raise _NoRobotError(f"its {DESCRIPTION} is empty; if it has its robot from a topic, use that topic")
        return RawDescription(f"{DESCRIPTION} of node {self._name}", additions, urdf=text, **options)

    def _call(self, client: Client, request: Any) -> Any:
        try:
            ready = client.service_is_ready()
            answer = client.call(request, timeout_sec=ROBOT_TIMEOUT) if ready else None
        except Exception as error:  # the client has been destroyed
            raise _NoRobotError(f"request failed: {error}") from None
        if not ready:
            raise _NoRobotError("there is no such node, or it has no parameter services")
        if answer is None:
            raise _NoRobotError("it does not answer")
        return answer


class _NoRobotError(Exception):
    """Another node has no robot; the message says why."""


def _given_parameters(node: Node) -> list[str]:
    """The set parameters that define a robot, highest precedence first."""
    options = [ROBOT] if section(node, ROBOT) else []
    return options + [key for key in (FILE, DESCRIPTION, SOURCE_NODE) if node.get_parameter(key).value]


def _chosen_source(node: Node) -> tuple[str, str]:
    """The parameter that selects the source (empty for the topic), and its node or file."""
    key = next(iter(_given_parameters(node)), "")
    return key, node.get_parameter(key).value if key in (FILE, SOURCE_NODE) else ""


ROBOT_TIMEOUT = 5.0
"""Time to wait for a robot from another node or the topic before an error, s."""

# Between requests to another node until a robot is in use, s; and parameters robot.* that a message names.
_ASK_PERIOD, _FEW = 0.2, 8

_FIRST_USE = "code for a new robot is compiled first, which may take half a minute"


class RobotSupply:
    """Robots from the source selected by the node's parameters.

    All methods are called by the node's executor. Requests to another node and loading of arriving robots run in a
    thread. ``wanted`` is whether to load a robot that arrives from another node or the topic.
    """

    def __init__(self, node: Node, wanted: Callable[[], bool], deliver: Callable[[LoadedRobot], None]) -> None:
        self._node, self._wanted, self._deliver = node, wanted, deliver
        self._worker = Worker(node, "robot supply")
        self._loading = threading.Lock()
        self._last: LoadedRobot | None = None
        self._busy = False
        self._logged = ""
        self._asking, self._since = True, time.monotonic()
        self._streams = node.has_parameter("stream_rate")
        self._choice = _chosen_source(node)
        self._source = self._opened()
        self._timer = steady_timer(node, _ASK_PERIOD, self._look)

    @property
    def source(self) -> str:
        """Name of the source for messages."""
        return self._source.label

    @property
    def arrives(self) -> bool:
        """True if a robot may arrive later, from another node or the topic."""
        return self._source.arrives

    @property
    def problem(self) -> str:
        """Why there is no robot; empty if there is one."""
        return "" if self._source.description else self._source.problem

    @property
    def _unused(self) -> str:
        """The given sources that are not used, in a sentence; empty without them."""
        used, *unused = _given_parameters(self._node) or [""]
        # A few parameters robot.* together with a file are a mistake, not a robot.
        names = [f"{ROBOT}.{name}" for name in section(self._node, ROBOT)] if used == ROBOT else []
        source = ", ".join(names) if 0 < len(names) <= _FEW else self.source
        return f"the robot is from {source}; without effect: {', '.join(unused)}" if unused else ""

    @property
    def overdue(self) -> bool:
        """True if the robot has been missing for longer than ROBOT_TIMEOUT."""
        return time.monotonic() - self._since > ROBOT_TIMEOUT

    def load(self) -> LoadedRobot | None:
        """Load the current robot, unless it is loaded already; None if there is none."""
        description = self._source.description
        with self._loading:
            if description is None:
                return None
            last = self._last
            # A file may have changed since.
            if last is None or last.description != description or last.evaluator is None or description.file:
                if last is None:
                    self._node.get_logger().info(f"loading the robot from {self.source}; {_FIRST_USE}")
                last = description.load(streams=self._streams)
                if last.error and self._unused:
                    last = replace(last, error=f"{last.error}; {self._unused}")
                self._last = last
            return self._last

    def log_warnings(self, loaded: LoadedRobot) -> None:
        """Log warnings about a robot, and parameters that do not apply to it."""
        for warning in loaded.warnings:
            self._node.get_logger().warning(printable(warning))
        if self._unused:
            self._node.get_logger().warning(self._unused)

    def pause(self) -> None:
        """Stop requests to another node; descriptions on the topic are still received."""
        self._asking = False
        self._timer.cancel()

    def resume(self) -> None:
        """Request the robot again, starting now."""
        self._asking, self._since = True, time.monotonic()
        self._timer.reset()
        self._look()

    def ask(self, then: Callable[[], None]) -> None:
        """Request the robot from another node, for two answers' ROBOT_TIMEOUT at most, and call ``then``."""
        self._worker.submit(self._source.refresh, lambda _: then())

    def reload(self) -> None:
        """Request or read the robot again, and deliver it if it differs from the last robot."""
        self._worker.submit(self._reloaded, self._found)

    def update(self) -> None:
        """Switch to the source that the parameters select."""
        choice = _chosen_source(self._node)
        if choice != self._choice:
            self._source.close()
            self._choice = choice
            self._source = self._opened()
        self._look()

    def _opened(self) -> _Source:
        key, name = self._choice
        if key == SOURCE_NODE:
            return _RemoteParameters(self._node, name)
        return _OwnParameters(self._node, key, name) if key else _DescriptionTopic(self._node, self._look)

    def _look(self) -> None:
        """Start loading the robot if it is new."""
        if self._source.arrives and not self._busy and (self._asking or self._is_new()):
            self._busy = True
            self._worker.submit(self._find, self._found)

    def _is_new(self) -> bool:
        description, last = self._source.description, self._last
        return description is not None and self._wanted() and (last is None or last.description != description)

    def _find(self) -> LoadedRobot | None:
        """Request the robot, and load it if it is new; runs in the thread."""
        if self._asking:
            self._source.refresh()
        return self.load() if self._is_new() else None

    def _reloaded(self) -> LoadedRobot | None:
        """Load the robot again; None if it is the same; runs in the thread."""
        last = self._last.evaluator if self._last is not None else None
        self._source.refresh()
        loaded = self.load()
        present = loaded.evaluator if loaded is not None else None
        same = last and present and robot_digest(last.arm.robot) == robot_digest(present.arm.robot)
        return None if same else loaded

    def _found(self, loaded: LoadedRobot | None) -> None:
        self._busy = False
        if (problem := self.problem) and problem != self._logged and self._wanted():
            self._node.get_logger().info(f"no robot from {self.source} yet: {printable(problem)}")
        self._logged = problem
        # Another description may have arrived during loading, or the node may have been cleaned up.
        if loaded is not None and self._wanted() and loaded.description == self._source.description:
            self._deliver(loaded)
        if self._is_new():
            self._look()
