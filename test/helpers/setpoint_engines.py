# SPDX-License-Identifier: Apache-2.0
"""Engines that answer scenes of setpoints: hosts of the control loop.

Hosts are the node, in two ways, Python, a controller, and replay. Each converts cycles of a scene into rows: status,
taud, taudd, drive commands in the robot's order, and the number of failed stream checks. A cycle without a command has
the row of the cycle before; status -1 means that the stream has not started.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from bag_files import SETPOINT, STORE, header, read_bag, wrenches, write_bag
from exported_loop import ExportedTable
from loop_rig import Record, Recorder
from loop_scene import PERIOD, STOP, STOPS, TIMEOUT, Carried, Cycle, Scene, Target, time_of
from sent_oracle import Marks, Settings

from eom_dynamics import ElasticArm, Robot
from eom_dynamics.actuators.drive_units import NO_FEEDBACK_DELAY
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES, Array
from eom_dynamics.codegen.floating_programs import IMU_NAMES
from eom_dynamics.control.contact_thresholds import ContactThresholds
from eom_dynamics.control.control_loop import SUSPICIONS, ControlLoop
from eom_dynamics.control.external_effort import ExternalEffortObserver
from eom_dynamics.control.fields import BASE_FIELD, EFFORT_FIELDS, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.serialized import LearnedShapes
from eom_dynamics.control.setpoint_loop import SetpointLoop
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.control.settings import LOOP_SETTINGS, Status, settings_at
from eom_dynamics.control.spatial import read_payload
from eom_dynamics.elastic.drive_programs import DRIVE_NAMES, SENT_NAMES
from eom_dynamics.elastic.motor_programs import STIFFNESS_NAMES
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.tools.options import CommandOptions
from eom_dynamics.tools.replay.bag import Job, replay_bag

MOTION = {"velocity": 2.0, "acceleration": 20.0, "jerk": 2000.0, "snap": 4e5, "smoothing": 0.005}
"""Limits of motion to targets."""

PAYLOAD = "eom_dynamics/msg/Payload"


FIELDS = (*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS)

# Scenes of a robot share its traced code.
arm_of, exported = cache(ElasticArm), cache(ExportedTable)
limits_of = cache(lambda arm: motion_limits(arm, MOTION))


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
    efforts = [np.asarray(getattr(feedforward, field))[joints] for field in EFFORT_FIELDS]
    sent = [np.asarray(x)[motors] for x in (y.position, y.velocity, y.effort)]
    np.testing.assert_array_equal(effort_command.data, sent[2])
    of_joints = np.full(robot.n, np.nan)  # joint efforts of the drive command, which messages do not have
    return np.concatenate([[feedforward.status], *efforts, *sent, of_joints])


# --- The node -------------------------------------------------------------------------------


@contextmanager
def unspun_node(space: str, **parameters: str) -> Iterator[Any]:
    """Node in a namespace, with an executor that does not spin; active if it has a robot."""
    from eom_dynamics.ros.dynamics.node import DynamicsNode
    from eom_dynamics.ros.executors import end_workers

    options = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
    stop: Any = SimpleNamespace(came=False, interrupting=nullcontext)
    node = DynamicsNode(stop, cli_args=["--ros-args", "-r", f"__ns:={space}", "-p", "safety:=permissive", *options])
    node.start_up()
    try:
        yield node
    finally:  # otherwise it would block the topics of the next node
        end_workers(node, 2.0)
        node.destroy_node()


def state_message(robot: Robot, sensed: Sequence[Array], time: int) -> Any:
    from sensor_msgs.msg import JointState

    fields = zip(("position", "velocity", "effort"), sensed, strict=True)
    message = JointState(name=[*robot.joint_names], **{name: [*row] for name, row in fields})
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(time, 10**9)
    return message


def target_message(robot: Robot, target: Target) -> Any:
    from builtin_interfaces.msg import Duration
    from sensor_msgs.msg import JointState
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    names = np.array(robot.joint_names)
    if target.times is None:
        moves = np.isfinite(target.positions)
        velocities = target.velocities if target.velocities is not None else np.zeros(0)
        chosen = velocities[moves] if len(velocities) else velocities
        return JointState(name=[*names[moves]], position=[*target.positions[moves]], velocity=[*chosen])
    message = JointTrajectory(joint_names=[*names])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(target.origin, 10**9)
    for t, row in zip(target.times, target.positions, strict=True):
        sec, nanosec = divmod(round(1e9 * t), 10**9)
        point = JointTrajectoryPoint(positions=[*row], time_from_start=Duration(sec=sec, nanosec=nanosec))
        message.points.append(point)
    return message


def goal_at(stamp: int = 0, statuses: list[Any] | None = None) -> Any:
    """Goal of a trajectory whose time 0 is at a stamp, ns; its statuses are added to a list."""
    from eom_dynamics.ros.dynamics.goals import Goal
    from eom_dynamics.ros.interfaces import set_stamp

    goal = Goal([].append if statuses is None else statuses.append)
    set_stamp(goal.header.stamp, stamp)
    return goal


class NodeEngine:
    """Node with an executor that does not spin: each cycle sets its clock, and calls subscriptions and timers."""

    def __init__(self, node: Any) -> None:
        self.node, self.stream = node, node._stream
        # Messages of a command, and rows of the commands of a cycle: the node writes into its messages again.
        self.sent: list[Any] = []
        self.rows: list[Array] = []
        self.scene: Scene | None = None
        commands = self.stream._commands
        commands._publishers = [RowPublisher(type(message), self.sent) for message in commands._messages]
        commands._publishers[-1].complete = self._complete
        commands.count_listeners()

    def _complete(self) -> None:
        if self.scene:
            self.rows.append(row_of(self.scene, *self.sent))
        self.sent.clear()

    def play(self, scene: Scene, *, compiled: bool) -> Array:
        """Rows of a scene, by compiled calls for setpoints of one shape, or field by field."""
        from rclpy.time import Time

        stream, clock = self.stream, self.node.get_clock()
        player, supervision = stream.player, stream.supervision
        player.pace.scale(1.0)
        stream.end()
        self.node.trigger_deactivate()
        host = SetpointLoop(SetpointEvaluator(arm_of(scene.robot)))
        self._set_parameters(scene)
        stream._shapes = LearnedShapes() if compiled else NoShapes()
        clock.set_ros_time_override(Time(nanoseconds=time_of(-1)))
        steady = time_of(-1)
        supervision.clock.__init__(supervision.clock._read, lambda: steady)  # type: ignore[misc]  # others have it
        supervision._publishers = lambda: 1
        stream.contact._sensors = "torque" if scene.on_contact != "ignore" else ""
        stream.take(host)
        self.node.trigger_activate()
        checks = {name: value for name, value in settings_of(scene).items() if name in LOOP_SETTINGS}
        host.loop.configure(**gains_of(scene), **checks)
        stream.targets._arm = host.arm
        stream.targets.keep(host.arm, limits_of(host.arm))
        self.scene, rows, before = scene, [], None
        for k, (cycle, now) in enumerate(zip(scene.cycles, scene.times, strict=True)):
            steady = time_of(k)
            clock.set_ros_time_override(Time(nanoseconds=now))
            self.rows.clear()
            refused = stream.statistics.refused
            if cycle.sensed:
                self.stream.measured._receive("joint_states", state_message(scene.robot, cycle.sensed, now))
            if cycle.payload:
                carry(host, cycle.payload)
            if cycle.speed is not None:
                player.pace.scale(cycle.speed)
            if cycle.pauses is not None:
                player.pace.pause(cycle.pauses)
            change_mode(host.loop, cycle)
            if cycle.spline is STOPS:
                player._tick()
                stream.targets.tick()
                stream.end_trajectory("an empty one")
            elif cycle.spline:
                with suppress(EomDynamicsError):
                    player.play(cycle.spline, goal_at(cycle.begin or now))
            player._tick()
            if cycle.target:
                stream.targets.receive(target_message(scene.robot, cycle.target))
            stream.targets.tick()
            if cycle.fields is not None:
                stream.answer_bytes(bytes(STORE.serialize_cdr(setpoint_message(scene, k), SETPOINT)))
            supervision._observe()
            stream.stops._tick()
            # The last command that is not a repetition.
            fresh = [row for row in self.rows if row[0] != Status.HELD] or self.rows
            before = fresh[-1] if fresh else before
            if before is not None and not fresh and stream.statistics.refused > refused:
                before = held(before)  # the last command stays in effect
            rows.append(None if before is None else np.append(before, host.suspicions.total()))
        return filled(rows)

    def _set_parameters(self, scene: Scene) -> None:
        from rclpy.parameter import Parameter

        values = {name: value for name, value in settings_of(scene).items() if name not in LOOP_SETTINGS}
        results = self.node.set_parameters([Parameter(name, value=value) for name, value in values.items()])
        assert all(result.successful for result in results), results


def settings_of(scene: Scene) -> dict[str, Any]:
    return (
        settings_at("permissive")
        | dict(zip(("stamp_check", "jump_check", "start_tolerance"), scene.checks, strict=True))
        | {
            **{"limits": scene.limits, "on_setpoint_loss": scene.loss},
            **{"setpoint_timeout": TIMEOUT if scene.loss != "none" else 0.0, "stop_duration": STOP},
            "on_contact": scene.on_contact,
        }
    )


def gains_of(scene: Scene) -> dict[str, Any]:
    return scene.gains._asdict() if scene.gains else {}


def carry(host: Any, carried: Carried) -> None:
    with suppress(EomDynamicsError):  # a refused payload is not carried
        host.carry(read_payload(payload_message(carried)), carried.blend_time)


def held(row: Array) -> Array:
    """The row of a command that a refused setpoint leaves in effect."""
    return np.append(float(Status.HELD), row[1:])


class NoShapes(LearnedShapes):
    """Learns nothing, so that all messages are read field by field."""

    def learn(self, *_: Any) -> None:
        pass


class Publisher:
    """In the place of a publisher: keeps messages."""

    topic_name = "/kept"

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


def kept_commands(node: Any) -> list[Any]:
    """List that receives the commands of a node in place of its publishers."""
    commands, sent = node._stream._commands, list[Any]()
    commands._publishers = [Publisher(type(message), sent) for message in commands._messages]
    commands.count_listeners()
    return sent


class RowPublisher(Publisher):
    """Replacement for one of the publishers of a command; the last of them completes the command."""

    complete: Callable[[], None] = staticmethod(lambda: None)

    def publish(self, message: Any) -> None:
        from rclpy.serialization import deserialize_message

        self.sent.append(deserialize_message(message, self.kind) if isinstance(message, bytes) else message)
        self.complete()


def filled(rows: Sequence[Array | None]) -> Array:
    """Rows, with status -1 before the first command."""
    width = next(len(row) for row in rows if row is not None)
    nothing = np.zeros(width)
    nothing[0] = -1
    return np.array([nothing if row is None else row for row in rows])


# --- Python ---------------------------------------------------------------------------------


class Played(NamedTuple):
    """Rows of a scene, and the commands of the loop."""

    rows: Array
    record: Record


def called(scene: Scene) -> Played:
    """A scene by calls of the loop from Python."""
    loop = ControlLoop(RobotTable(arm_of(scene.robot)))
    loop.configure(**settings_of(scene), **gains_of(scene))
    limit_motion(scene, loop)
    sense = sensor_of(scene, loop)
    rows, recorder = list[Array | None](), Recorder(loop, len(scene.cycles))
    for k, (cycle, now) in enumerate(zip(scene.cycles, scene.times, strict=True)):
        sense(cycle, now)
        if cycle.payload:
            carry(loop, cycle.payload)
        change_pace(loop, cycle)
        change_mode(loop, cycle)
        if cycle.spline is STOPS:
            loop.update(now)
            loop.act("stop")
        elif cycle.spline:
            loop.send_trajectory(cycle.spline, cycle.begin or now)
        loop.plan(now, 1e-9 * PERIOD)
        if cycle.target:
            target = cycle.target
            loop.aim(now, target.positions, target.velocities, target.times, target.origin)
        if cycle.fields is not None:
            loop.rest(on_base=BASE_FIELD in cycle.fields)
            for name, row in vectors_of(cycle.fields).items():
                loop.given[name][:] = row
            loop.refer(time_of(k) if cycle.stamp is None else cycle.stamp)
        recorder.keep(now, loop.update(now, 1e-9 * PERIOD), cycle.fields is not None)
        rows.append(row_of_loop(loop))
    return Played(filled(rows), Record(recorder))


def aims(scene: Scene) -> bool:
    """True if the scene has motions to targets."""
    return scene.on_contact == "retract" or any(cycle.target for cycle in scene.cycles)


def limit_motion(scene: Scene, loop: ControlLoop) -> None:
    if aims(scene):
        loop.limit(limits_of(loop.arm), 1e-9 * PERIOD)


def watched(arm: ElasticArm, loop: ControlLoop | None = None) -> ContactThresholds:
    """Contact thresholds by the spread of the scenes' robot, set in the loop."""
    thresholds = ContactThresholds(ExternalEffortObserver(arm, sensors="torque", loop=loop))
    if loop:
        thresholds.observer.watch(*thresholds.rows())
    return thresholds


def sensor_of(scene: Scene, loop: ControlLoop) -> Callable[[Cycle, int], None]:
    """Function that makes a loop process the sensor sample of a cycle at a time, ns."""
    if scene.on_contact == "ignore":
        return lambda cycle, now: None
    sensed = loop.vectors("sensed", dict.fromkeys(("q", "qd", "tau"), scene.robot.n))
    watched(loop.arm, loop)

    def sense(cycle: Cycle, now: int) -> None:
        if cycle.sensed:
            for row, given in zip(sensed.values(), cycle.sensed, strict=True):
                row[:] = given
            assert loop.sense(now, 5) % 8 <= 1

    return sense


def change_pace(loop: ControlLoop, cycle: Cycle) -> None:
    if cycle.speed is not None:
        loop.speed(cycle.speed)
    if cycle.pauses is not None:
        loop.act("pause" if cycle.pauses else "resume")


def change_mode(loop: ControlLoop, cycle: Cycle) -> None:
    loop.measure(None, cycle.motors)
    if cycle.mode is not None:
        loop.change_mode(cycle.mode)


def vectors_of(fields: Mapping[str, Array]) -> dict[str, Array]:
    """Vectors of the loop by their names from the fields of a message."""
    names = zip((*STATE_NAMES, *WRENCH_NAMES, *STIFFNESS_NAMES), FIELDS, strict=True)
    vectors = {name: np.ravel(fields[field]) for name, field in names if field in fields}
    return vectors | dict(zip((*IMU_NAMES[0], *IMU_NAMES[1]), fields.get(BASE_FIELD, ()), strict=False))


def row_of_loop(loop: ControlLoop) -> Array | None:
    sent = [loop.command[name] for name in EFFORT_NAMES]
    sent += [loop.sent[name] for name in (*DRIVE_NAMES, SENT_NAMES[0])]
    row = [[loop.number("status")], *sent, [sum(map(loop.number, SUSPICIONS.values()))]]
    return np.concatenate(row) if loop.number("valid") else None


# --- Replay ---------------------------------------------------------------------------------


def replayed(scene: Scene, folder: Path) -> Array:
    cycles = list(enumerate(scene.cycles))
    setpoints = [(time_of(k), setpoint_message(scene, k)) for k, cycle in cycles if cycle.fields is not None]
    payloads = [(time_of(k) - 1, payload_message(cycle.payload)) for k, cycle in cycles if cycle.payload]
    topics = {"/setpoint": (SETPOINT, setpoints), "/payload": (PAYLOAD, payloads)}
    options = CommandOptions(safety="permissive", limits=scene.limits)
    replay_bag(Job(write_bag(folder / "in", topics), folder / "out", scene.robot, options=options))
    found = read_bag(folder / "out")
    by_time = {}
    for (time, *_), *messages in zip(found["/feedforward"], *found.values(), strict=True):
        by_time[time] = np.append(row_of(scene, *(message for _, message in messages)), np.nan)  # bags have no counts
    rows: list[Array | None] = []
    for k, cycle in cycles:
        before = rows[-1] if rows else None
        if before is not None and cycle.fields is not None:
            before = held(before)  # it was refused
        rows.append(by_time.get(time_of(k), before))
    return filled(rows)


# --- A controller ---------------------------------------------------------------------------


def looped(scene: Scene, *, in_front: bool = False) -> Played:
    """Run a scene by a loop with the library of its robot, with messages as for a controller.

    Targets may come from a chained controller, which writes the last target in each cycle; others are then refused.
    """
    robot = scene.robot
    table: Any = exported(robot)
    loop = ControlLoop(table)
    loop.configure(**settings_of(scene), **gains_of(scene))
    limit_motion(scene, loop)

    def call(name: str, *given: Any) -> int:
        arrays = [np.ascontiguousarray(x) if isinstance(x, list | np.ndarray) else x for x in given]
        converted = [ctypes.c_void_p(x.ctypes.data) if isinstance(x, np.ndarray) else x for x in arrays]
        converted = [ctypes.c_size_t(x) if isinstance(x, int) else x for x in converted]
        return int(loop._library[f"eom_loop_{name}"](ctypes.c_void_p(loop.address), *converted))

    sizes = {name: len(x) for name, x in loop.given.items()}
    posted, rows = loop.vectors("posted", sizes), list[Array | None]()
    sense, recorder = sensor_of(scene, loop), Recorder(loop, len(scene.cycles))
    written = np.full(robot.n, np.nan)
    for k, (cycle, now) in enumerate(zip(scene.cycles, scene.times, strict=True)):
        sense(cycle, now)
        if cycle.payload:
            *body, time = np.concatenate([np.ravel(x) for x in cycle.payload]).tolist()
            call("post_payload", 0, body, ctypes.c_double(time))
        change_pace(loop, cycle)
        change_mode(loop, cycle)
        if cycle.spline:
            stops, origin = cycle.spline is STOPS, ctypes.c_int64(cycle.begin or now)
            knots, states = (np.zeros(0), np.zeros(0)) if stops else (cycle.spline.t, cycle.spline.states)
            call("post_spline", origin, knots, len(knots), states)
        if cycle.target and in_front:
            written = np.where(np.isnan(cycle.target.positions), written, cycle.target.positions)
            rates = np.zeros(robot.n) if cycle.target.velocities is None else cycle.target.velocities
        elif cycle.target:
            target = cycle.target
            times, velocities = (np.zeros(0) if x is None else x for x in (target.times, target.velocities))
            of_target = (
                times,
                len(times),
                target.positions,
                velocities if len(velocities) else ctypes.c_void_p(),
                ctypes.c_void_p(),
            )
            call("post_target", ctypes.c_int64(target.origin), *of_target)
        if cycle.fields is not None:
            call("post_rest", BASE_FIELD in cycle.fields)
            for name, row in vectors_of(cycle.fields).items():
                posted[name][:] = row
            call("post", ctypes.c_int64(time_of(k) if cycle.stamp is None else cycle.stamp))
            loop.act("take")
        if np.isfinite(written).any():
            loop.rest()
            loop.given["q"][:], loop.given["qd"][:] = written, rates
            call("pursue")
            if k % 50 == 0:
                call("post_target", ctypes.c_int64(0), np.zeros(0), 0, np.ones(robot.n), *2 * [ctypes.c_void_p()])
        code = call("run", ctypes.c_int64(now), ctypes.c_double(1e-9 * PERIOD))
        recorder.keep(now, code, cycle.fields is not None)
        rows.append(row_of_loop(loop))
    return Played(filled(rows), Record(recorder))


# --- Inputs of the oracle -------------------------------------------------------------------


def settings_for(scene: Scene) -> Settings:
    """Settings of the loop that affect the bounds of drive commands."""
    timeout, arm = TIMEOUT if scene.loss != "none" else 0.0, arm_of(scene.robot)
    lag = arm.damped.any() or arm.robot.drive_feedback_delay != NO_FEEDBACK_DELAY
    others: dict[str, Any] = {"permissive": True, "lag": lag, "stop_duration": STOP}
    others["command_lead"] = scene.robot.command_lead
    if aims(scene):
        others["target_velocity"] = MOTION["velocity"]
    return Settings(scene.limits, timeout, False, scene.checks.distance, others)


def marks_of(scene: Scene) -> Marks:
    """Events before each cycle."""
    marks = Marks.none(len(scene.cycles))
    for k, cycle in enumerate(scene.cycles):
        marks.stop_asked[k], marks.jumped[k] = cycle.spline is STOPS, cycle.jump != 0
        marks.posted[k] = bool(cycle.target or cycle.spline or cycle.payload)
    return marks
