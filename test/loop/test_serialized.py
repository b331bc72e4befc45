# SPDX-License-Identifier: Apache-2.0
"""From the middleware's own bytes of a setpoint to those of its command, by the loop: the bits of the reference."""

import struct
from dataclasses import replace
from functools import partial
from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest
from own_drives import CIA_402
from reference.stream_evaluator import StreamEvaluator
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear, Motor, Transmission
from eom_dynamics.actuators.drive_units import SIDES, DriveUnits
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.elastic import DriveCommand
from eom_dynamics.loop import serialized
from eom_dynamics.loop.control_loop import EXCEEDS, Refusal
from eom_dynamics.loop.serialized import (
    EFFORT_COMMAND,
    FEEDFORWARD,
    MOTOR_SETPOINT,
    LearnedShapes,
    message_shape,
    setpoint_layout,
)
from eom_dynamics.loop.setpoint_loop import SetpointLoop
from eom_dynamics.messages.cdr import ENCAPSULATION, MessageLayout, stamp_of
from eom_dynamics.messages.fields import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS, doubles
from eom_dynamics.messages.setpoint_to_command import LIMIT_POLICIES, SetpointEvaluator
from eom_dynamics.messages.spatial import wrench_messages
from eom_dynamics.states import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")


class Setup:
    """A robot's reference, its loop, and messages as the middleware serialises them."""

    def __init__(self, robot, seed=1):
        from rclpy.serialization import deserialize_message, serialize_message
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint

        self.serialize, self.deserialize = serialize_message, deserialize_message
        self.kinds = {FEEDFORWARD: FeedforwardCommand, MOTOR_SETPOINT: JointState, EFFORT_COMMAND: Float64MultiArray}
        self.robot = eom.load_robot(robot) if isinstance(robot, str) else robot
        self.reference = StreamEvaluator(eom.ElasticArm(self.robot))
        self.loop = SetpointLoop(SetpointEvaluator(self.reference.arm))
        self.limits("warn")
        self.commands_motors, self.now = True, 0
        self.rng = np.random.default_rng(seed)
        self.setpoint = JointTrajectorySetpoint()

    def limits(self, policy):
        self.limit_policy = policy
        self.loop.configure(limits=policy)

    def draw(self, size=0.3, *, wrenches=(False, False, False)):
        """Another setpoint, with small numbers, within limits."""
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
        """The call for messages like the present one."""
        shape, message = message_shape(self.setpoint), self.serialize(self.setpoint)
        return self.loop.call_for(self.setpoint, message, shape, commands_motors=self.commands_motors).call

    def answer(self, call, message=...):
        """What a call returns, a millisecond after the last one."""
        self.now += 10**6
        return call(self.serialize(self.setpoint) if message is ... else message, self.now)

    def refuse(self, call):
        """The error of a setpoint that the call refuses, and the reference, too, with the same text."""
        refusal = self.answer(call)
        error = self.loop.refusal(Refusal(refusal))
        with pytest.raises(eom.EomDynamicsError) as expected:
            self.reference.evaluate(self.setpoint, stamp=1, limit_policy=self.limit_policy)
        assert (type(error), str(error)) == (expected.type, str(expected.value))
        return str(error)

    def assert_same(self, found, expected, field):
        """Bits; the torque at the voltage that a motor can have is found in another way, but for rounding."""
        if self.limit_policy == "clip" and "effort" in field:
            np.testing.assert_allclose(found, expected, rtol=1e-15)
        else:
            assert found == doubles(expected), field

    def assert_equal(self, call):
        """All three messages, and the vectors of the loop, are bit for bit those of the reference."""
        message = self.setpoint
        stamp = message.header.stamp
        nanoseconds = stamp.sec * 10**9 + stamp.nanosec
        expected = self.reference.evaluate(message, stamp=nanoseconds, limit_policy=self.limit_policy)
        self.reference.commit()
        first = self.answer(call)
        assert call.remarks == EXCEEDS * bool(expected.violations)
        if call.remarks:
            assert self.loop.violations() == expected.violations
        command = self.deserialize(first, self.kinds[FEEDFORWARD])
        order = expected.order
        assert (command.header, command.joint_names, command.motor_names) == (
            message.header,
            order.names,
            order.motor_names,
        )
        assert (command.status, command.held) == (0, False)
        for field, values in expected.fields().items():
            self.assert_same(getattr(command, field), values, field)
        setpoint = self.deserialize(call.written(MOTOR_SETPOINT), self.kinds[MOTOR_SETPOINT])
        assert (setpoint.header, setpoint.name) == (message.header, order.motor_names)
        sent = expected.sent or DriveCommand(*expected.motors[[0, 1, 3]], *expected.efforts[:2])
        for field, values in zip(("position", "velocity", "effort"), sent, strict=False):
            self.assert_same(getattr(setpoint, field), order.motors_to_message(values), field)
        effort = self.deserialize(call.written(EFFORT_COMMAND), self.kinds[EFFORT_COMMAND])
        self.assert_same(effort.data, sent.effort if self.commands_motors else sent.joint_effort, "effort command")
        loop = self.loop.loop
        vectors = zip(STATE_NAMES, expected.state, strict=True), zip(EFFORT_NAMES, expected.efforts, strict=True)
        wrench = zip(WRENCH_NAMES, expected.wrench, strict=False)
        for values, rows in ((loop.setpoint, [*vectors[0], *wrench]), (loop.command, vectors[1])):
            for name, row in rows:
                assert values[name].tobytes() == row.tobytes(), name
        assert call.stamp == nanoseconds


def test_zeros_keep_their_sign_and_tiny_numbers_their_bits():
    """Also with names in another order, and efforts of the joints as effort command."""
    setup = Setup("iiwa")
    setup.commands_motors, setup.setpoint.header.frame_id = False, "bäse"
    setup.setpoint.joint_names = list(setup.rng.permutation(setup.robot.joint_names))
    setup.draw()
    call = setup.call()
    for _ in range(10):
        setup.draw(3.0)
        setup.assert_equal(call)
    for value in (0.0, -0.0, 5e-324, -1e-310, 1e-160):
        for field in STATE_FIELDS:
            setattr(setup.setpoint, field, doubles(np.full(7, value)))
        setup.assert_equal(call)


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
        with pytest.raises(TypeError, match=r"^takes the bytes of one message, and the time$"):
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


def test_two_shapes_of_messages_in_turns():
    """As of two publishers, one of which names joints in another order and has wrenches: one loop, two calls."""
    setup = Setup(with_springs(eom.load_robot("planar_2r"), EVERY_KIND["damped"]))
    calls = {}
    for k in range(20):
        message = setup.draw(wrenches=(k % 2 > 0,) * 3)
        message.joint_names = list(setup.robot.joint_names[::-1]) if k % 2 else []
        message.header.stamp.sec, message.header.stamp.nanosec = 5, k * 10**6
        if k > 1:
            assert setup.answer(calls[(k + 1) % 2]) is None
        setup.assert_equal(calls.get(k % 2) or calls.setdefault(k % 2, setup.call()))


def test_shapes_are_learned_from_two_messages_in_a_row_and_the_latest_four_are_kept():
    setup, shapes = Setup("planar_2r"), LearnedShapes()

    def heard(frame):
        setup.setpoint.header.frame_id = frame
        return setup.serialize(setup.draw())

    def learn(frames, call_for=setup.loop.call_for):
        for frame in frames:
            message = heard(frame)
            shapes.learn(setup.setpoint, message, partial(call_for, setup.setpoint, message, commands_motors=True))

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


@pytest.mark.parametrize("nanoseconds", [0, 5, 999_999_999, 2**32 - 1])
@pytest.mark.parametrize("seconds", [-2, 0, 1_700_000_000])
def test_stamp_of_a_header(seconds, nanoseconds):
    layout = MessageLayout().header("base")
    message = bytearray(layout.size)
    message[: len(ENCAPSULATION)] = ENCAPSULATION
    struct.pack_into("<iI", message, layout.stamp, seconds, nanoseconds)
    assert stamp_of(bytes(message)) == seconds * 1_000_000_000 + nanoseconds


@pytest.mark.parametrize("size", range(12))
def test_a_message_without_room_for_a_stamp_raises_nothing(size):
    assert isinstance(stamp_of(bytes(size)), int)


def replaced(entries, k, **places):
    """Tuples with some places of the k-th replaced."""
    entry = list(entries[k])
    for place, value in places.items():
        entry[int(place[1:])] = value
    return (*entries[:k], tuple(entry), *entries[k + 1 :])


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("constants", lambda x: replaced(x, 0, _0=-1), "a constant lies beyond the message"),
        ("inputs", lambda x: replaced(x, 2, _1=10_000), "numbers lie beyond the message or the array"),
        ("inputs", lambda x: replaced(x, 3, _2=2**60), "numbers lie beyond the message or the array"),
        ("inputs", lambda x: replaced(x, 4, _3=(0, 1, 2, 3, 4, 5, 7)), "an order has places beyond its numbers"),
        ("outputs", lambda x: replaced(x, 0, _1=10_000), "a stamp lies beyond the message"),
        ("outputs", lambda x: replaced(x, 1, _2=replaced(x[1][2], 0, _1=-1)), "numbers lie beyond the message"),
        ("stamp", lambda x: x + 10_000, "the stamp must be within the message"),
        ("size", lambda x: 8, "numbers lie beyond the message or the array"),
        ("initial", lambda x: x[:8], "numbers lie beyond the message or the array"),
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


ACTUATOR = Actuator(Friction(0.5, 0.3, 0.5, viscous_negative=0.4, coulomb_negative=0.2), Gear(0.8))


def _arm(kind="cubic", robot="planar_2r", joints=None, **changes):
    """A robot with springs of a kind, and other changes of it and of all of its joints."""
    return replace(with_springs(eom.load_robot(robot), EVERY_KIND[kind], **(joints or {})), **changes)


K = CoupledSpring(np.array([[500.0, 80.0], [80.0, 300.0]]))
T = Transmission(np.array([[0.5, 0.5], [0.5, -0.5]]))
ROTORS = {"rotor_inertia": 0.5, "gear_ratio": 10.0}
PRESLIDING = Actuator(Friction(viscous=0.4, coulomb=0.2, static=0.3, presliding_distance=0.5), Gear(0.8, 5.0))
LIMITED = {"actuator": Actuator(motor=Motor(0.1, 0.5, torque_limit=2.0, voltage_limit=3.0)), "gear_ratio": 10.0}

ARMS = {kind: {"kind": kind} for kind in EVERY_KIND} | {
    "friction and gear loss": {"kind": "dead_zone", "joints": {"actuator": ACTUATOR}},
    "coupled": {"kind": "rigid", "coupled_stiffness": ((0, 1), K)},
    "transmission": {"transmission": ((0, 1), T)},
    "complete rotors": {"robot": "sea_planar_2r", "rotor_model": "complete"},
    "complete rotors, damped": {"kind": "damped", "joints": ROTORS, "rotor_model": "complete"},
    "joint friction": {"joints": {"damping": 0.3, "friction": 0.2}, "joint_friction": True},
    "presliding, damped, complete rotors": {
        "kind": "damped",
        "joints": ROTORS | {"actuator": PRESLIDING},
        "rotor_model": "complete",
    },
    "presliding pairs": {"kind": "antagonistic_exponential", "joints": {"actuator": PRESLIDING}},
    "voltage": {"kind": "linear", "joints": LIMITED},
    "voltage of damped springs": {"kind": "damped", "joints": LIMITED},
}


@pytest.mark.parametrize("name", ARMS)
def test_every_arm_is_compiled(name):
    """Also beyond limits, with commanded stiffness, and along a stream, on which dampers have a state."""
    setup = Setup(_arm(**ARMS[name]))
    setup.limits("clip" if name.startswith("voltage") else "warn")
    variable = setup.reference.arm.variable
    call, exceeded = None, 0
    for k in range(40):
        message = setup.draw(0.5 if k % 2 else 3.0)
        message.header.stamp.sec, message.header.stamp.nanosec = 5, (k + k // 10 * 200) * 10**6
        if variable.any():
            for field, values in zip(STIFFNESS_FIELDS, setup.rng.uniform(-1, 1, (3, 2)), strict=True):
                setattr(message, field, doubles(values))
            low, high = setup.reference.arm.springs[0].stiffness_range(60.0)
            message.stiffness = doubles(setup.rng.uniform(low, min(high, 3 * low), 2))
        call = call or setup.call()
        setup.assert_equal(call)
        exceeded += call.remarks
    assert (exceeded > 0) == name.startswith("voltage")


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
