# SPDX-License-Identifier: Apache-2.0
"""Fast path of a setpoint: the bits of the solver, from the middleware's own bytes to its own bytes."""

from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace

import numpy as np
import pytest
from own_drives import CIA_402
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear, Motor, Transmission
from eom_dynamics.actuators.drive_units import SIDES, DriveUnits
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.codegen.native import extension
from eom_dynamics.elastic import DriveCommand
from eom_dynamics.messages.fields import STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS, doubles
from eom_dynamics.messages.setpoint_to_command import LIMIT_POLICIES, SetpointEvaluator
from eom_dynamics.messages.spatial import wrench_messages
from eom_dynamics.stream.compiled_stream import (
    EFFORT_COMMAND,
    FEEDFORWARD,
    MOTOR_SETPOINT,
    CompiledStream,
    message_shape,
    setpoint_layout,
)

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")


@pytest.fixture(scope="module", autouse=True)
def optimized():
    """Optimize the compiled call, which may fuse operations. The kernels are the same as those of the solver."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("EOM_DYNAMICS_CFLAGS")
        extension.cache_clear()
        extension("stream_call")
    yield
    extension.cache_clear()


class Setup:
    """A robot's solver, its compiled stream, and messages as the middleware serialises them."""

    def __init__(self, robot, seed=1):
        from rclpy.serialization import deserialize_message, serialize_message
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint

        self.serialize, self.deserialize = serialize_message, deserialize_message
        self.kinds = {FEEDFORWARD: FeedforwardCommand, MOTOR_SETPOINT: JointState, EFFORT_COMMAND: Float64MultiArray}
        self.robot = eom.load_robot(robot) if isinstance(robot, str) else robot
        self.solver = SetpointEvaluator(eom.ElasticArm(self.robot))
        # Springs with dampers remember the setpoint before: the calls have a solver of their own.
        self.compiled = CompiledStream(SetpointEvaluator(self.solver.arm))
        self.limit_policy, self.commands_motors = "warn", True
        self.rng = np.random.default_rng(seed)
        self.setpoint = JointTrajectorySetpoint()

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

    def stream(self):
        """The stream for messages like the present one."""
        return self.compiled.call_for(
            self.setpoint,
            self.serialize(self.setpoint),
            limit_policy=self.limit_policy,
            commands_motors=self.commands_motors,
        )

    def assert_equal(self, stream):
        """All three messages, and the arrays, are bit for bit those of the solver."""
        message = self.setpoint
        stamp = message.header.stamp
        nanoseconds = stamp.sec * 10**9 + stamp.nanosec
        solution = self.solver.evaluate(message, stamp=nanoseconds, limit_policy=self.limit_policy)
        first = stream.call(self.serialize(message))
        assert stream.call.exceeded == bool(solution.violations)
        if stream.call.exceeded:
            assert stream.violations() == solution.violations
        command = self.deserialize(first, self.kinds[FEEDFORWARD])
        order = solution.order
        assert (command.header, command.joint_names, command.motor_names) == (
            message.header,
            order.names,
            order.motor_names,
        )
        assert (command.status, command.held) == (0, False)
        for field, values in solution.fields().items():
            assert getattr(command, field) == doubles(values), field
        setpoint = self.deserialize(stream.call.written(MOTOR_SETPOINT), self.kinds[MOTOR_SETPOINT])
        assert (setpoint.header, setpoint.name) == (message.header, order.motor_names)
        sent = solution.sent or DriveCommand(*solution.motors[[0, 1, 3]], *solution.efforts[:2])
        for field, values in zip(("position", "velocity", "effort"), sent, strict=False):
            assert getattr(setpoint, field) == doubles(order.motors_to_message(values)), field
        effort = self.deserialize(stream.call.written(EFFORT_COMMAND), self.kinds[EFFORT_COMMAND])
        assert effort.data == doubles(sent.effort if self.commands_motors else sent.joint_effort)
        stream.call.commit()
        self.solver.commit()
        again = stream.command()
        for name in ("state", "efforts", "motors"):
            assert getattr(again, name).tobytes() == getattr(solution, name).tobytes()
        assert [w.tobytes() for w in again.wrench] == [w.tobytes() for w in solution.wrench]
        assert [k.tobytes() for k in again.stiffness] == [k.tobytes() for k in solution.stiffness]
        assert (again.base is None) == (solution.base is None)
        for mine, theirs in zip(again.base or (), solution.base or (), strict=True):
            assert mine.tobytes() == theirs.tobytes()
        assert stream.call.stamp == stream.call.committed_stamp == nanoseconds


@pytest.mark.parametrize(
    ("name", "shuffled", "wrenches"),
    [
        ("iiwa", False, (True, False, False)),
        ("panda", True, (False, False, False)),
        ("planar_pr", False, (False, True, False)),
        ("dual_arm", True, (True, True, True)),
    ],
)
def test_every_bit_is_that_of_the_solver(name, shuffled, wrenches):
    """Where names are shuffled, the effort command is that of the joints."""
    setup = Setup(name)
    setup.commands_motors, setup.limit_policy = not shuffled, "ignore"
    if shuffled:
        setup.setpoint.joint_names = list(setup.rng.permutation(setup.robot.joint_names))
    setup.setpoint.header.frame_id = "bäse"
    setup.draw(wrenches=wrenches)
    stream = setup.stream()
    for _ in range(30):
        setup.draw(3.0, wrenches=wrenches)
        setup.assert_equal(stream)


def test_zeros_keep_their_sign_and_tiny_numbers_their_bits():
    setup = Setup("iiwa")
    setup.draw()
    stream = setup.stream()
    for value in (0.0, -0.0, 5e-324, -1e-310, 1e-160):
        for field in STATE_FIELDS:
            setattr(setup.setpoint, field, doubles(np.full(7, value)))
        setup.assert_equal(stream)


def test_other_messages_are_left_to_the_solver():
    setup = Setup("iiwa")
    setup.setpoint.header.frame_id = "base"
    message = setup.draw()
    stream = setup.stream()
    good = setup.serialize(message)
    assert stream.call(good) is not None
    for other in (b"", good[:-1], good + b"\0", b"\0\0" + good[2:], bytearray(good), "text", None, 3):
        assert stream.call(other) is None, other
    message.header.frame_id = "tool"
    assert stream.call(setup.serialize(message)) is None
    message.header.frame_id = "base"
    message.joint_names = list(setup.robot.joint_names)
    assert stream.call(setup.serialize(message)) is None
    message.joint_names = []
    message.stiffness = doubles(np.ones(7))
    assert stream.call(setup.serialize(message)) is None
    message.stiffness = doubles(np.zeros(0))
    for field in STATE_FIELDS:
        before = getattr(message, field)
        for bad in (np.nan, np.inf, -np.inf):
            values = np.array(before)
            values[3] = bad
            setattr(message, field, doubles(values))
            assert stream.call(setup.serialize(message)) is None, (field, bad)
        setattr(message, field, before)
    setup.assert_equal(stream)
    message.velocity = doubles(np.full(7, 1e200))  # overflows
    assert stream.call(setup.serialize(message)) is None
    with pytest.raises(TypeError, match="takes the bytes of one message"):
        stream.call()


def test_random_bytes_are_not_taken_and_break_nothing():
    setup = Setup("iiwa")
    setup.draw()
    stream = setup.stream()
    good = setup.serialize(setup.setpoint)
    layout = setpoint_layout(message_shape(setup.setpoint), 7)
    constant = {i for at, own in layout.constants for i in range(at, at + len(own))}
    for _ in range(2000):
        changed = bytearray(good)
        place = int(setup.rng.integers(len(good)))
        changed[place] ^= int(setup.rng.integers(1, 256))
        if place in constant:
            assert stream.call(bytes(changed)) is None
        else:
            answer = stream.call(bytes(changed))
            assert answer is None or np.isfinite(setup.deserialize(answer, setup.kinds[FEEDFORWARD]).effort).all()
    setup.assert_equal(stream)


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
        ("stamp", lambda x: x + 10_000, "the stamp within the message"),
        ("committed", lambda x: x[:1], "an array has the wrong size"),
    ],
)
def test_places_beyond_a_message_or_an_array_are_refused(name, change, reason):
    setup, given = Setup("iiwa"), {}
    create = setup.compiled.module.StreamCall
    setup.compiled.module = SimpleNamespace(StreamCall=lambda **arguments: given.update(arguments))
    setup.draw()
    setup.stream()
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
    setup.limit_policy = "clip" if name.startswith("voltage") else "warn"
    variable = setup.solver.arm.variable
    stream, exceeded = None, 0
    for k in range(40):
        message = setup.draw(0.5 if k % 2 else 3.0)
        message.header.stamp.sec, message.header.stamp.nanosec = 5, (k + k // 10 * 200) * 10**6
        if variable.any():
            for field, values in zip(STIFFNESS_FIELDS, setup.rng.uniform(-1, 1, (3, 2)), strict=True):
                setattr(message, field, doubles(values))
            low, high = setup.solver.arm.springs[0].stiffness_range(60.0)
            message.stiffness = doubles(setup.rng.uniform(low, min(high, 3 * low), 2))
        stream = stream or setup.stream()
        setup.assert_equal(stream)
        exceeded += stream.call.exceeded
    assert (exceeded > 0) == name.startswith("voltage")


def test_backends_without_compiled_code_have_no_stream(monkeypatch):
    arm = eom.ElasticArm(eom.load_robot("planar_2r"))
    monkeypatch.setattr(arm, "backend", "numpy")
    with pytest.raises(eom.KernelError, match="native backend"):
        CompiledStream(SetpointEvaluator(arm))


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
    setup.limit_policy = policy
    setup.draw(wrenches=(True, False, False))
    stream = setup.stream()
    setup.assert_equal(stream)
    message = setup.setpoint
    large = {"position": 1e305 if units is CIA_402 else 1e10, "velocity": 1e10, "effort": 1e295}[field]
    if field == "effort":
        message.wrench = wrench_messages(np.full((1, 6), [0, 0, large, 0, 0, 0]))
    else:
        setattr(message, field, doubles(np.array([0.0, large])))
    before = stream.command()
    assert stream.call(setup.serialize(message)) is None
    with pytest.raises(eom.StateError, match=f"^numbers too large: drive_{field} of motor 'joint_2' would be "):
        setup.solver.evaluate(message, stamp=1, limit_policy=policy)
    assert stream.command().motors.tobytes() == before.motors.tobytes()
