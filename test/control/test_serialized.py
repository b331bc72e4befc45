# SPDX-License-Identifier: Apache-2.0
"""From the middleware's own bytes of a setpoint to those of its command, by the loop: as if read field by field."""

import struct
from dataclasses import replace
from functools import partial
from itertools import cycle, product
from types import SimpleNamespace

import numpy as np
import pytest
from own_drives import CIA_402
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Motor
from eom_dynamics.actuators.drive_units import SIDES, DriveUnits
from eom_dynamics.arrays import EFFORT_NAMES
from eom_dynamics.control import serialized
from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.control.fields import EFFORT_FIELDS, MOTOR_FIELDS, STATE_FIELDS, WRENCH_FIELDS, doubles
from eom_dynamics.control.serialized import (
    EFFORT_COMMAND,
    ENCAPSULATION,
    FEEDFORWARD,
    MOTOR_SETPOINT,
    LearnedShapes,
    MessageLayout,
    message_shape,
    setpoint_layout,
    stamp_of,
)
from eom_dynamics.control.setpoint_loop import SetpointLoop
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.control.settings import LIMIT_POLICIES
from eom_dynamics.control.spatial import wrench_messages
from eom_dynamics.elastic.drive_programs import DRIVE_NAMES
from eom_dynamics.elastic.motor_programs import MOTOR_NAMES

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")


class Setup:
    """The control loop of a robot, a twin that reads setpoints field by field, and serialized messages."""

    def __init__(self, robot, seed=1):
        from rclpy.serialization import deserialize_message, serialize_message
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint

        self.serialize, self.deserialize = serialize_message, deserialize_message
        self.kinds = {FEEDFORWARD: FeedforwardCommand, MOTOR_SETPOINT: JointState, EFFORT_COMMAND: Float64MultiArray}
        self.robot = eom.load_robot(robot) if isinstance(robot, str) else robot
        self.loop, self.host = (SetpointLoop(SetpointEvaluator(eom.ElasticArm(self.robot))) for _ in range(2))
        for loop in (self.loop, self.host):
            loop.configure(safety="permissive")
        self.limits("warn")
        self.now = 0
        self.rng = np.random.default_rng(seed)
        self.setpoint = JointTrajectorySetpoint()

    def limits(self, policy):
        for each in (self.loop, self.host):
            each.configure(limits=policy)

    def draw(self, size=0.3, *, wrenches=(False, False, False)):
        message = self.setpoint
        message.header.stamp.sec = int(self.rng.integers(-(2**31), 2**31))
        message.header.stamp.nanosec = int(self.rng.integers(10**9))
        for field in STATE_FIELDS:
            setattr(message, field, doubles(self.rng.uniform(-size, size, self.robot.n)))
        for field, given in zip(WRENCH_FIELDS, wrenches, strict=True):
            k = len(self.robot.tools)
            setattr(message, field, wrench_messages(self.rng.normal(size=(k, 6))) if given else [])
        return message

    def call(self):
        shape, message = message_shape(self.setpoint), self.serialize(self.setpoint)
        return self.loop.call_for(self.setpoint, message, shape).call

    def answer(self, call, message=...):
        """What a call returns, a millisecond after the last one."""
        self.now += 10**6
        return call(self.serialize(self.setpoint) if message is ... else message, self.now)

    def refuse(self, call):
        """The error of a setpoint that the call refuses, and the host, too, with the same text."""
        error = self.loop.refusal(Refusal(self.answer(call)))
        self.host.read(self.setpoint)
        with pytest.raises(eom.EomDynamicsError) as expected:
            self.host.answer(1, self.now)
        assert (type(error), str(error)) == (expected.type, str(expected.value))
        return str(error)

    def assert_equal(self, call):
        """All three messages, and the vectors of the loop, are bit for bit those of a message read field by field."""
        message, stamp = self.setpoint, self.setpoint.header.stamp
        self.host.read(message)
        first = self.answer(call)
        assert call.stamp == stamp.sec * 10**9 + stamp.nanosec
        assert call.remarks == self.host.answer(call.stamp, self.now)
        if call.remarks:
            assert self.loop.violations() == self.host.violations()
        loop, host, order = self.loop.loop, self.host.loop, self.host.order
        for mine, theirs in ((loop.setpoint, host.setpoint), (loop.command, host.command), (loop.sent, host.sent)):
            for name, values in mine.items():
                assert values.tobytes() == theirs[name].tobytes(), name
        command = self.deserialize(first, self.kinds[FEEDFORWARD])
        assert (command.header, command.status, command.held) == (message.header, 0, False)
        assert (command.joint_names, command.motor_names) == (order.names, order.motor_names)
        sides = dict(zip(self.loop.arm.motor_names, self.loop.arm.drive_sides, strict=True))
        assert [("joint", "motor")[x] for x in command.drive_side] == [sides[name] for name in order.motor_names]
        for field, name in zip(EFFORT_FIELDS, EFFORT_NAMES, strict=True):
            assert getattr(command, field) == doubles(order.to_message(loop.command[name])), field
        for field, name in zip(MOTOR_FIELDS, MOTOR_NAMES, strict=True):
            assert getattr(command, field) == doubles(order.motors_to_message(loop.command[name])), field
        setpoint = self.deserialize(call.written(MOTOR_SETPOINT), self.kinds[MOTOR_SETPOINT])
        assert (setpoint.header, setpoint.name) == (message.header, order.motor_names)
        for field, name in zip(("position", "velocity", "effort"), DRIVE_NAMES, strict=True):
            assert getattr(setpoint, field) == doubles(order.motors_to_message(loop.sent[name])), field
        effort = self.deserialize(call.written(EFFORT_COMMAND), self.kinds[EFFORT_COMMAND])
        assert effort.data == doubles(loop.sent[DRIVE_NAMES[2]])


def test_other_messages_are_left_to_be_read_field_by_field():
    setup = Setup("iiwa")
    setup.setpoint.header.frame_id = "base"
    message = setup.draw()
    call = setup.call()
    good = setup.serialize(message)
    assert setup.answer(call, good) is not None
    for other in (b"", good[:-1], good + b"\0", b"\0\0" + good[2:], bytearray(good), "text", None, 3):
        assert setup.answer(call, other) is None, other
    message.header.frame_id = "tool"
    assert setup.answer(call) is None
    message.header.frame_id = "base"
    message.joint_names = list(setup.robot.joint_names)
    assert setup.answer(call) is None
    message.joint_names = []
    message.stiffness = doubles(np.ones(7))
    assert setup.answer(call) is None
    message.stiffness = doubles(np.zeros(0))
    for field in STATE_FIELDS:
        before = getattr(message, field)
        for bad in (np.nan, np.inf, -np.inf):
            values = np.array(before)
            values[3] = bad
            setattr(message, field, doubles(values))
            assert setup.answer(call) is None, (field, bad)
        setattr(message, field, before)
    setup.assert_equal(call)
    message.velocity = doubles(np.full(7, 1e200))
    assert setup.refuse(call).startswith("numbers too large: effort of joint 'iiwa_joint_1' would be ")
    for arguments in ((), (good,), (good, 1, 2)):
        with pytest.raises(TypeError, match="bytes"):
            call(*arguments)
    for which in (-1, 3):
        with pytest.raises(IndexError, match=r"^no such output$"):
            call.written(which)


def test_random_bytes_are_not_taken_and_break_nothing():
    setup = Setup("iiwa")
    setup.draw()
    call = setup.call()
    good = setup.serialize(setup.setpoint)
    layout = setpoint_layout(message_shape(setup.setpoint), 7)
    constant = {i for at, own in layout.constants for i in range(at, at + len(own))}
    for k in range(10_000):
        changed = bytearray(good)
        if k % 5 == 0:
            changed = setup.rng.bytes(int(setup.rng.integers(2 * len(good))) if k % 2 else len(good))
            assert setup.answer(call, changed) is None
            continue
        place = int(setup.rng.integers(len(good)))
        changed[place] ^= int(setup.rng.integers(1, 256))
        answer = setup.answer(call, bytes(changed))
        if place in constant:
            assert answer is None
        elif isinstance(answer, bytes):
            assert np.isfinite(setup.deserialize(answer, setup.kinds[FEEDFORWARD]).effort).all()
    setup.assert_equal(call)


@pytest.mark.parametrize("name", ["damped", "dual_arm", "vsa_planar_2r"])
def test_two_shapes_of_messages_in_turns(name):
    """As of two publishers, one of which names joints in another order and has wrenches: one loop, two calls."""
    planar = eom.load_robot("planar_2r")
    setup = Setup(with_springs(planar, EVERY_KIND["damped"]) if name == "damped" else name)
    calls, variable = {}, setup.loop.arm.variable
    for k in range(20):
        message = setup.draw(wrenches=(k % 2 > 0,) * 3)
        message.joint_names = list(setup.robot.joint_names[::-1]) if k % 2 else []
        message.header.frame_id = "bäse" if k % 2 else ""
        if variable.any():
            message.stiffness = doubles(np.array([250.0, 200.0])[:: -1 if k % 2 else 1].copy())
            message.stiffness_rate = message.stiffness_acceleration = doubles(setup.rng.normal(size=2))
        message.header.stamp.sec, message.header.stamp.nanosec = 5, k * 10**6
        if k > 1:
            assert setup.answer(calls[(k + 1) % 2]) is None
        setup.assert_equal(calls.get(k % 2) or calls.setdefault(k % 2, setup.call()))
    for value in (0.0, -0.0, 5e-324, -1e-310, 1e-160):  # zeros keep their sign, and tiny numbers their bits
        for field in STATE_FIELDS:
            setattr(message, field, doubles(np.full(setup.robot.n, value)))
        setup.assert_equal(calls[1])


def test_shapes_are_learned_from_two_messages_in_a_row_and_the_latest_four_are_kept():
    setup, shapes = Setup("planar_2r"), LearnedShapes()

    def heard(frame):
        setup.setpoint.header.frame_id = frame
        return setup.serialize(setup.draw())

    def learn(frames, call_for=setup.loop.call_for):
        for frame in frames:
            message = heard(frame)
            shapes.learn(setup.setpoint, message, partial(call_for, setup.setpoint, message))

    def takes(frame):
        """Whether a call takes a message of a frame, which is the latest one then."""
        answer = shapes.answer(heard(frame), setup.now, EFFORT_COMMAND)
        assert answer is None or (answer[0] is shapes.calls[0] and answer[0].call.first == EFFORT_COMMAND)
        return answer is not None

    def fail(error, *_, **__):
        raise error

    for error in (eom.KernelError("no plain CDR"), UnicodeEncodeError("utf-8", "x", 0, 1, "no text")):
        learn("xx", partial(fail, error))
    learn("yxyx")
    assert not shapes.calls
    learn("xaabbccdd")
    assert [call.shape.frame_id for call in shapes.calls] == list("dcba")
    assert takes("a") and not takes("z") and shapes.calls[0].shape.frame_id == "a"
    learn("eea")  # in the place of b, the longest unused; a is known
    assert not takes("b") and all(map(takes, "acde")) and len(shapes.calls) == 4
    shapes.forget()
    learn("e")
    assert not shapes.calls and not takes("e")


def test_stamp_of_a_header():
    """Also of a message without room for one, which raises nothing."""
    layout = MessageLayout().header("base")
    message = bytearray(layout.size)
    message[: len(ENCAPSULATION)] = ENCAPSULATION
    for seconds, nanoseconds in product((-2, 0, 1_700_000_000), (0, 5, 999_999_999, 2**32 - 1)):
        struct.pack_into("<iI", message, layout.stamp, seconds, nanoseconds)
        assert stamp_of(bytes(message)) == seconds * 1_000_000_000 + nanoseconds
    assert all(isinstance(stamp_of(bytes(size)), int) for size in range(12))


def pairs(at, place):
    return np.array([[at, place]], dtype=np.int32).tobytes()


BEYOND = "numbers lie beyond the message or the array"


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        *(
            ("constants", lambda _, at=x: pairs(*at), "a constant, or the stamp, lies beyond the message")
            for x in ((-1, 1), (0, -1), (4, 10_000))
        ),
        *(
            ("input", lambda x, at=at: (*x[:2], pairs(*at)), BEYOND)
            for at in ((-1, 0), (10_000, 0), (2**31 - 1, 0), (8, -1), (8, 10_000))
        ),
        ("input", lambda x: (x[0], -1, x[2]), "a constant, or the stamp, lies beyond the message"),
        ("input", lambda x: (x[0], len(x[0]) - 7, x[2]), "a stamp lies beyond the message"),
        ("outputs", lambda x: ((x[0][0], 10_000, x[0][2]), *x[1:]), "a stamp lies beyond the message"),
        ("outputs", lambda x: (*x[:2], (*x[2][:2], pairs(8, -1))), BEYOND),
        ("size", lambda x: 8, BEYOND),
        ("initial", lambda x: x[:8], BEYOND),
    ],
)
def test_places_beyond_a_message_or_an_array_are_refused(monkeypatch, name, change, reason):
    setup, given = Setup("iiwa"), {}
    create = serialized.extension("stream_call").StreamCall
    recorder = SimpleNamespace(StreamCall=lambda **arguments: given.update(arguments))
    monkeypatch.setattr(serialized, "extension", lambda _: recorder)
    setup.draw()
    setup.call()
    assert create(**given)
    with pytest.raises(ValueError, match=reason):
        create(**given | {name: change(given[name])})


HUGE = {
    f"{field} {units.get('effort', '')} of a {side} drive": (field, DriveUnits(side=side, **units))
    for side in SIDES
    for field, units in (
        ("position", {"units_per_turn": 1e300}),
        ("velocity", {"velocity_units_per_turn": 1e300}),
        ("effort", {"effort": "per_mille", "rated_torque": 1e-300}),
        ("effort", {"effort": "current"}),
    )
} | {"torque before the gear": ("effort", DriveUnits(side="motor")), "position of CiA 402": ("position", CIA_402)}


@pytest.mark.parametrize(
    ("field", "units", "policy"),
    [(*case, policy) for case, policy in zip(HUGE.values(), cycle(LIMIT_POLICIES), strict=False)],
    ids=HUGE,
)
def test_what_drives_are_sent_is_finite(field, units, policy):
    """Numbers that are finite in SI units and not in those of a drive are refused, by its joint and field."""
    gear_ratio = 50.0 if units is CIA_402 else 1e-18 if (field, units.effort) == ("effort", "torque") else 1.0
    actuator = Actuator(motor=Motor(torque_constant=1e-20)) if units.effort == "current" else Actuator()
    robot = eom.load_robot("planar_2r")
    own = replace(robot.joints[1], drive=units, gear_ratio=gear_ratio, actuator=actuator)
    robot = replace(robot, joints=(robot.joints[0], own))
    setup = Setup(robot)
    setup.limits(policy)
    setup.draw(wrenches=(True, False, False))
    call = setup.call()
    setup.assert_equal(call)
    message = setup.setpoint
    large = {"position": 1e305 if units is CIA_402 else 1e10, "velocity": 1e10, "effort": 1e295}[field]
    if field == "effort":
        message.wrench = wrench_messages(np.full((1, 6), [0, 0, large, 0, 0, 0]))
    else:
        setattr(message, field, doubles(np.array([0.0, large])))
    before = setup.loop.loop.command["motor_position"].copy()
    assert setup.refuse(call).startswith(f"numbers too large: drive_{field} of motor 'joint_2' would be ")
    assert setup.loop.loop.command["motor_position"].tobytes() == before.tobytes()
