# SPDX-License-Identifier: Apache-2.0
"""Scenes of setpoints, and the engines that answer them: the node in two ways, replay, and the loop in C++.

An engine turns the cycles of a scene into rows: a status, then taud, taudd, and what drives are sent, in the robot's
order, and the number of findings of plausibility checks. Where a cycle sends nothing, its row is that before; status -1
is that of a stream that has not begun.
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from bag_files import SETPOINT, STORE, header, read_bag, wrenches, write_bag
from exported import succeed

from eom_dynamics import ElasticArm, Robot
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.export import generic_files, loop_library
from eom_dynamics.messages.fields import BASE_FIELD, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.messages.payload_blend import read_payload
from eom_dynamics.messages.setpoint_to_command import LIMIT_POLICIES, SetpointEvaluator
from eom_dynamics.messages.trajectories import write_spline
from eom_dynamics.stream.compiled_stream import CompiledStream
from eom_dynamics.stream.doubts import DOUBT_POLICIES, Doubts, DoubtSettings
from eom_dynamics.stream.watchdog import LOSS_POLICIES, Settings, Watchdog
from eom_dynamics.tools.recording_options import CommandOptions
from eom_dynamics.tools.replay.job import Job
from eom_dynamics.tools.replay.one import replay_bag
from eom_dynamics.trajectory import Spline

START, PERIOD = 1_700_000_000_000_000_000, 1_000_000
TIMEOUT, STOP, RAMP = 0.005, 0.15, 0.2

PAYLOAD = "eom_dynamics/msg/Payload"

FIELDS = (*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS)


class Carried(NamedTuple):
    """A body at the only tool: mass, centre of mass, xx xy xz yy yz zz about it, and the blend time, s."""

    mass: float
    center_of_mass: Sequence[float] = (0.0, 0.0, 0.0)
    inertia: Sequence[float] = (0.0,) * 6
    blend_time: float = 0.03


class Cycle(NamedTuple):
    """What comes in one millisecond.

    Attributes:
        fields: of the setpoint, in the robot's order; None where none comes.
        stamp: of the setpoint, ns; None for the time of the cycle.
        payload: that the tool carries from then on.
        spline: that is to be played; without knots, an empty one that stops.
        begin: of its time 0, ns; None for the time of the cycle.
        jump: of the clock before the cycle, ns.
    """

    fields: Mapping[str, Array] | None = None
    stamp: int | None = None
    payload: Carried | None = None
    spline: Spline | None = None
    begin: int | None = None
    jump: int = 0


STOPS = Spline.__new__(Spline)
"""The spline of an empty trajectory, which stops."""


NO_CHECKS = DoubtSettings()


@dataclass(frozen=True)
class Scene:
    """Cycles for a robot.

    Attributes:
        limits, lead, loss, jumps: parameters of the node: limits, command_lead, on_setpoint_loss, on_clock_jump.
        checks: plausibility checks of the stream.
        reverse: whether messages have the joints in reverse order.
        rounding: by which numbers may differ.
        lacks: engines that have no such scene, with the reason.
    """

    robot: Robot
    cycles: Sequence[Cycle]
    limits: str = "ignore"
    lead: float = 0.0
    loss: str = "none"
    jumps: str = "stop"
    checks: DoubtSettings = NO_CHECKS
    reverse: bool = False
    rounding: float = 0.0
    lacks: Mapping[str, str] = field(default_factory=dict)

    @property
    def times(self) -> list[int]:
        """Times of the cycles, ns."""
        return [time_of(k) + int(jump) for k, jump in enumerate(np.cumsum([cycle.jump for cycle in self.cycles]))]


def time_of(k: int) -> int:
    return START + k * PERIOD


def setpoint_message(scene: Scene, k: int) -> Any:
    """The setpoint of a cycle, as a bag has it; without names, joints are in the robot's order."""
    cycle = scene.cycles[k]
    assert cycle.fields is not None
    order = slice(None, None, -1) if scene.reverse else slice(None)
    fields = {name: np.array(cycle.fields.get(name, ()), dtype=float) for name in FIELDS}
    fields = {name: wrenches(x) if name in WRENCH_FIELDS else x[order].copy() for name, x in fields.items()}
    vector, base = (STORE.types[name] for name in ("geometry_msgs/msg/Vector3", "eom_dynamics/msg/BaseMotion"))
    bases = [base(*(vector(*row) for row in cycle.fields[BASE_FIELD]))] if BASE_FIELD in cycle.fields else []
    names = list(scene.robot.joint_names)[order] if scene.reverse else []
    stamp = time_of(k) if cycle.stamp is None else cycle.stamp
    return STORE.types[SETPOINT](header=header(stamp), joint_names=names, base=bases, **fields)


def payload_message(carried: Carried) -> Any:
    com = STORE.types["geometry_msgs/msg/Vector3"](*carried.center_of_mass)
    entries = dict(zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), carried.inertia, strict=True))
    body = STORE.types["geometry_msgs/msg/Inertia"](m=carried.mass, com=com, **entries)
    return STORE.types[PAYLOAD](tool="", inertia=body, blend_time=carried.blend_time)


def row_of(scene: Scene, feedforward: Any, motor_setpoint: Any, effort_command: Any) -> Array:
    """A row from the three messages of a command."""
    robot, y = scene.robot, motor_setpoint
    joints = [list(feedforward.joint_names).index(name) for name in robot.joint_names]
    motors = [list(y.name).index(name) for name in feedforward.motor_names] if not scene.reverse else None
    if motors is None:
        motors = list(range(len(y.name)))[::-1]
    rates = [np.asarray(x)[joints] for x in (feedforward.effort_rate, feedforward.effort_acceleration)]
    sent = [np.asarray(x)[motors] for x in (y.position, y.velocity, y.effort)]
    return np.concatenate([[feedforward.status], *rates, *sent, effort_command.data])


# --- The node -------------------------------------------------------------------------------


class NodeEngine:
    """A node whose executor does not spin: each cycle sets its clock, and calls what subscriptions and timers call."""

    def __init__(self, node: Any) -> None:
        self.node, self.stream = node, node._stream
        self.sent: list[Any] = []
        commands = self.stream._commands
        commands._publishers = [Publisher(type(message), self.sent) for message in commands._messages]
        commands.commands_motors = False
        commands.count_listeners()

    def play(self, scene: Scene, *, compiled: bool) -> Array:
        """Rows of a scene, by compiled calls where they take a setpoint, or field by field."""
        from rclpy.parameter import Parameter
        from rclpy.time import Time

        from eom_dynamics.ros.dynamics import supervision as supervision_module
        from eom_dynamics.ros.dynamics import trajectory_player

        stream, clock = self.stream, self.node.get_clock()
        stream.end()
        clock.set_ros_time_override(Time(nanoseconds=time_of(0)))
        arm = ElasticArm(scene.robot)
        evaluator = SetpointEvaluator(arm)
        stream.on_parameter("limits", scene.limits)
        stream.on_parameter("command_lead", scene.lead)
        stream.take(evaluator, CompiledStream(evaluator) if compiled else None)
        stream.closed = False
        settings = Settings(scene.loss, TIMEOUT, stop_duration=STOP, ramp_duration=RAMP)
        supervision = stream.supervision
        supervision._watchdog, supervision._evaluator, supervision.on = Watchdog(arm, settings), evaluator, True
        doubts = supervision._doubts = Doubts(arm, scene.checks)
        stream._admit = supervision.admit
        stream.player.stop("another scene", forget=True)
        self.node.set_parameters([Parameter("on_clock_jump", value=scene.jumps)])
        supervision_module.DoubtSettings = lambda *parameters: scene.checks
        stream.player.lead = scene.lead
        rows, silent = [], 0
        for k, (cycle, now) in enumerate(zip(scene.cycles, scene.times, strict=True)):
            clock.set_ros_time_override(Time(nanoseconds=now))
            trajectory_player.time = SimpleNamespace(monotonic_ns=partial(time_of, k))
            self.sent.clear()
            answered = stream.statistics.published
            if cycle.payload:
                self._carry(evaluator, cycle.payload)
            if cycle.spline is STOPS:
                stream.player._tick()
                stream.player.stop("an empty one")
                stream._stop_unfinished("an empty one")
            elif cycle.spline:
                with suppress(EomDynamicsError):
                    stream.player.play(cycle.spline, cycle.begin or now, "", arm, lambda verdict: None)
            if cycle.fields is not None:
                message = STORE.serialize_cdr(setpoint_message(scene, k), SETPOINT)
                stream.answer_bytes(bytes(message))
            if stream.player.playing or stream.player.waiting:
                stream.player._tick()
            silent = 0 if stream.statistics.published > answered else silent + 1
            if scene.loss != "none" and silent * PERIOD == round(TIMEOUT * 1e9) and not supervision.responding:
                supervision._lose("silence")
            elif stream.statistics.published == answered and supervision.responding:
                supervision._tick_response()
            # After a trajectory that was stopped, there are others.
            found = sum(checks.counts.total() for checks in {doubts, supervision._doubts} if checks)
            if self.sent:
                rows.append(np.append(row_of(scene, *self.sent[-3:]), found))  # the last of commands in one cycle
            else:
                rows.append(np.append(rows[-1][:-1], found) if rows and rows[-1] is not None else None)
        return filled(rows)

    @staticmethod
    def _carry(evaluator: SetpointEvaluator, carried: Carried) -> None:
        with suppress(EomDynamicsError):  # a refused payload is not carried
            evaluator.payload.change(read_payload(payload_message(carried)), carried.blend_time)
            evaluator.prepare_payload()


class Publisher:
    """In the place of a publisher: keeps messages."""

    def __init__(self, kind: Any, sent: list[Any]) -> None:
        self.kind, self.sent, self.handle, self.publish_raw = kind, sent, self, self.publish

    def get_subscription_count(self) -> int:
        return 1

    def wait_for_all_acked(self, timeout: Any) -> bool:
        return True

    def publish(self, message: Any) -> None:
        from rclpy.serialization import deserialize_message, serialize_message

        # A copy, since the node writes into the message again.
        self.sent.append(
            deserialize_message(message if isinstance(message, bytes) else serialize_message(message), self.kind)
        )


def filled(rows: Sequence[Array | None]) -> Array:
    """Rows, with status -1 where nothing has been sent yet."""
    width = next(len(row) for row in rows if row is not None)
    nothing = np.zeros(width)
    nothing[0] = -1
    return np.array([nothing if row is None else row for row in rows])


# --- Replay ---------------------------------------------------------------------------------


def replayed(scene: Scene, file: Path, folder: Path) -> Array:
    cycles = list(enumerate(scene.cycles))
    setpoints = [(time_of(k), setpoint_message(scene, k)) for k, cycle in cycles if cycle.fields is not None]
    payloads = [(time_of(k) - 1, payload_message(cycle.payload)) for k, cycle in cycles if cycle.payload]
    topics = {"/setpoint": (SETPOINT, setpoints), "/payload": (PAYLOAD, payloads)}
    options = CommandOptions(
        effort_command="joint", limits=scene.limits, hold_last_command="always", command_lead=scene.lead
    )
    replay_bag(Job(write_bag(folder / "in", topics), folder / "out", str(file), options=options))
    found = read_bag(folder / "out")
    by_time = {}
    for (time, *_), *messages in zip(found["/feedforward"], *found.values(), strict=True):
        by_time[time] = np.append(row_of(scene, *(message for _, message in messages)), 0)
    rows: list[Array | None] = []
    for k, _ in cycles:
        rows.append(by_time.get(time_of(k), rows[-1] if rows else None))
    return filled(rows)


# --- The loop -------------------------------------------------------------------------------


@cache
def loop_player(folder: Path) -> Path:
    """The program that plays scenes on the loops of robots."""
    for name, text in generic_files().items():
        if name.endswith(".hpp") and "feedforward_controller" not in name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    shutil.copy(Path(__file__).with_name("play_scene.cpp"), folder)
    flags = ("-std=c++17", "-O0", "-DEOM_EIGEN=0", "-Iinclude", "-Isrc")
    succeed(["c++", *flags, "play_scene.cpp", "-o", "play_scene", "-ldl", "-pthread"], folder)
    return folder / "play_scene"


def looped(scene: Scene, player: Path, folder: Path) -> Array:
    """Rows of a scene from the loop of its robot."""
    robot, numbers = scene.robot, [np.int64(len(scene.cycles)).tobytes()]

    def write(*values: Any, kind: Any = np.int64) -> None:
        numbers.append(np.concatenate([np.ravel(x) for x in values]).astype(kind).tobytes())

    for k, (cycle, now) in enumerate(zip(scene.cycles, scene.times, strict=True)):
        write([now, cycle.payload is not None, cycle.spline is not None, cycle.fields is not None])
        if cycle.payload:
            write(*cycle.payload, kind=float)
        if cycle.spline is STOPS:
            write([0, 0, 0])
        elif cycle.spline:
            spline = SimpleNamespace()
            write_spline(spline, cycle.spline, robot.joint_names)
            write([cycle.begin or now, len(spline.knots), spline.degree])
            write(spline.knots, spline.coefficients, kind=float)
        if cycle.fields is not None:
            write([time_of(k) if cycle.stamp is None else cycle.stamp])
            for name in FIELDS:
                row = np.ravel(cycle.fields.get(name, ()))
                write([len(row)])
                write(row, kind=float)
            base = cycle.fields.get(BASE_FIELD, ())
            write([len(base)])
            write(base, kind=float)
    (folder / "scene").write_bytes(b"".join(numbers))
    timeout = TIMEOUT if scene.loss != "none" else 0.0
    checks = scene.checks
    policies = LIMIT_POLICIES.index(scene.limits), LOSS_POLICIES.index(scene.loss), ("stop", "hold").index(scene.jumps)
    settings = *policies, *map(DOUBT_POLICIES.index, checks[:3]), checks.window, checks.order
    settings += scene.lead, timeout, STOP, RAMP, checks.tolerance
    library = loop_library(robot, moving_base=any(BASE_FIELD in (cycle.fields or ()) for cycle in scene.cycles))
    succeed([player, library.path, folder / "scene", folder / "rows", *map(str, settings)], folder)
    rows = np.fromfile(folder / "rows").reshape(len(scene.cycles), -1)
    rows[rows[:, 0] == -1, 1:] = 0.0
    return rows
