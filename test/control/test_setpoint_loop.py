# SPDX-License-Identifier: Apache-2.0
"""Setpoint messages to the loop: what the reference refuses is refused with its words, what it answers has its bits."""

from __future__ import annotations

from array import array
from contextlib import suppress
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_drives import with_drives
from reference.stream_evaluator import StreamEvaluator
from springs import EVERY_KIND, with_springs
from stopping import can_stop

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear, Motor, Transmission
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.control.fields import BASE_SHAPE, STATE_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.setpoint_loop import SetpointLoop
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.control.settings import DEFAULTS, LIMIT_POLICIES, LONGEST_GAP
from eom_dynamics.elastic import LimitCheck
from eom_dynamics.elastic.motor_programs import DEFLECTION
from eom_dynamics.exceptions import LimitError, StiffnessError
from eom_dynamics.robot.model import Limits

MS = 1_000_000
START = 1_700_000_000_000 * MS
RUBBING = Actuator(Friction(viscous=0.4, coulomb=0.2, static=0.3, presliding_distance=0.5))
LIMITED = Limits(lower=-2.0, upper=2.0, velocity=3.0, acceleration=20.0, jerk=300.0, effort=60.0)


ACTUATOR = Actuator(Friction(0.5, 0.3, 0.5, viscous_negative=0.4, coulomb_negative=0.2), Gear(0.8))


def _arm(kind: str | tuple[str, ...] = "", robot: str = "planar_2r", joints: Any = None, **changes: Any) -> eom.Robot:
    """A robot with springs of a kind, or of kinds, and other changes of it and of all of its joints."""
    springs = [EVERY_KIND[x] for x in ((kind,) if isinstance(kind, str) else kind) if x]
    made = eom.load_robot(robot)
    return replace(with_springs(made, *springs, **(joints or {})) if springs or joints else made, **changes)


K = CoupledSpring(np.array([[500.0, 80.0], [80.0, 300.0]]))
T = Transmission(np.array([[0.5, 0.5], [0.5, -0.5]]))
ROTORS = {"rotor_inertia": 0.5, "gear_ratio": 10.0}
PRESLIDING = Actuator(RUBBING.friction, Gear(0.8, 5.0))
UNDER_VOLTAGE = {"actuator": Actuator(motor=Motor(0.1, 0.5, torque_limit=2.0, voltage_limit=3.0)), "gear_ratio": 10.0}

PAIR, LIMITS_OF_EFFORT = "antagonistic_exponential", {"limits": Limits(effort=60.0)}
BESIDE = {"rotor_inertia": 0.5, "actuator": RUBBING, "limits": LIMITED}

ARMS: dict[str, dict[str, Any]] = {
    "planar_pr": {"robot": "planar_pr"},
    "dual_arm": {"robot": "dual_arm"},
    "iiwa": {"robot": "iiwa"},
    "complete": {"robot": "sea_planar_2r", "rotor_model": "complete"},
    "damped": {"kind": ("damped", "cubic"), "joints": BESIDE},
    "variable": {"kind": ("variable", "linear"), "joints": LIMITS_OF_EFFORT},
    "pairs": {"kind": PAIR, "joints": LIMITS_OF_EFFORT},
    "drives": {"kind": "linear", "joints": {"limits": LIMITED}},
    **{f"{kind} springs": {"kind": kind} for kind in EVERY_KIND},
    "friction and gear loss": {"kind": "dead_zone", "joints": {"actuator": ACTUATOR}},
    "coupled": {"kind": "rigid", "coupled_stiffness": ((0, 1), K)},
    "transmission": {"kind": "cubic", "transmission": ((0, 1), T)},
    "complete rotors, damped": {"kind": "damped", "joints": ROTORS, "rotor_model": "complete"},
    "joint friction": {"kind": "cubic", "joints": {"damping": 0.3, "friction": 0.2}, "joint_friction": True},
    "presliding, damped, complete rotors": {
        "kind": "damped",
        "joints": ROTORS | {"actuator": PRESLIDING},
        "rotor_model": "complete",
    },
    "presliding pairs": {"kind": PAIR, "joints": {"actuator": PRESLIDING}},
    "voltage": {"kind": "linear", "joints": UNDER_VOLTAGE},
    "voltage of damped springs": {"kind": "damped", "joints": UNDER_VOLTAGE},
}

ROBOTS = ("planar_pr", "dual_arm", "complete", "drives", "damped", "variable", "pairs")


@cache
def table(name: str, lead: float = 0.0, *, moving_base: bool = False) -> RobotTable:
    robot = replace(_arm(**ARMS[name]), drive_delay=lead, moving_base=moving_base)
    robot = with_drives(robot, "gravity", "friction") if name == "drives" else robot
    return RobotTable(eom.ElasticArm(robot))


class Pair:
    """The reference, and a loop of the same arm, to which the same messages come."""

    def __init__(self, name: str, policy: str = "warn", lead: float = 0.0, *, moving_base: bool = True) -> None:
        of = table(name, lead, moving_base=moving_base)
        self.arm, self.policy, self.now = of.arm, policy, 7 * MS
        self.reference = StreamEvaluator(of.arm)
        self.reference.clock = lambda: self.now
        self.loop = SetpointLoop(SetpointEvaluator(of.arm), of)
        self.loop.configure(safety="permissive", limits=policy)

    def carry(self, payload: eom.Payload, blend_time: float) -> None:
        with suppress(eom.StateError):  # limits may not allow a step
            self.loop.carry(payload, blend_time)
            self.reference.blend.change(payload, blend_time)

    def answer(self, message: Any, stamp: int) -> int:
        self.loop.read(message)
        return self.loop.answer(stamp, self.now)

    def say(self, message: Any, stamp: int) -> bool:
        """Whether both answer a setpoint, alike; if not, both refuse it with the same words."""
        self.now += MS
        refused = None
        try:
            with np.errstate(all="ignore"):
                expected = self.reference.evaluate(message, stamp=stamp, limit_policy=self.policy)
        except eom.EomDynamicsError as error:
            refused = type(error), str(error)
        before = self.values()
        if refused:
            with pytest.raises(eom.EomDynamicsError) as error:
                self.answer(message, stamp)
            assert same_words(*refused, error.type, str(error.value))
            assert self.values() == before  # a refused setpoint changes nothing
            return False
        runs_over = self.policy != "ignore" and not expected.violations and self.runs_over(expected.state)
        if runs_over and self.policy == "refuse":
            with pytest.raises(LimitError, match="stopping position"):
                self.answer(message, stamp)
            assert self.values() == before
            return False
        bits = self.answer(message, stamp)
        self.reference.commit()
        assert bits == bool(expected.violations or runs_over)
        if bits:
            violations = self.loop.violations()
            assert runs_over or [*map(str, violations)] == [*map(str, expected.violations)]
            assert {x.quantity for x in violations} == {"stopping position"} or not runs_over
        motors = np.array([self.loop.loop.command[name] for name in MOTORS])
        # Efforts that exceed limits of the motors themselves are told, and sent, clipped.
        own = LimitCheck(self.arm).ends["motor_effort"][1]
        clipped = self.policy == "warn" and bool((np.abs(expected.motors[3]) > own).any())
        if clipped:
            assert motors[:3].tobytes() == expected.motors[:3].tobytes() and (np.abs(motors[3]) <= own).all()
        else:
            assert motors.tobytes() == expected.motors.tobytes()
        for name, row in zip(STATE_NAMES, expected.state, strict=True):
            assert self.loop.loop.setpoint[name].tobytes() == row.tobytes(), name
        for name, row in zip(EFFORT_NAMES, expected.efforts, strict=True):
            assert self.loop.loop.command[name].tobytes() == row.tobytes(), name
        sent = expected.sent or (*expected.motors[[0, 1, 3]], *expected.efforts[:2])
        names = ("drive_position", "drive_velocity", "drive_effort")[: 2 if clipped else 3]
        for name, values in zip(names, sent, strict=False):
            assert self.loop.loop.sent[name].tobytes() == np.asarray(values).tobytes(), name
        return True

    def runs_over(self, state: np.ndarray) -> bool:
        """Whether a joint cannot stop before its limit."""
        return not all(can_stop(self.arm, joint, *row) for joint, row in enumerate(state[:3].T))

    def values(self) -> dict[str, bytes]:
        loop = self.loop.loop
        groups = {"setpoint": loop.setpoint, "command": loop.command, "sent": loop.sent}
        return {f"{group} {name}": x.tobytes() for group, names in groups.items() for name, x in names.items()}


def same_words(kind: type, text: str, other: type, said: str) -> bool:
    """Whether a loop says what the reference says; of numbers that are too large, it names one, also of those sent."""
    if said.startswith("numbers too large: "):
        return text.startswith("numbers too large: ") or " drive_" in said or " sent_" in said
    return kind is other and text in said


MOTORS = ("motor_position", "motor_velocity", "motor_acceleration", "motor_effort")


def doubles(values: Any) -> array[float]:
    return array("d", np.ravel(values).tolist())


def message(arm: eom.ElasticArm, state: Any = None, **changes: Any) -> Any:
    """A setpoint; at rest at 0.1 without a state."""
    n = arm.robot.n
    rows = np.outer(np.eye(5)[0], np.full(n, 0.1)) if state is None else state
    fields: dict[str, Any] = {name: doubles(row) for name, row in zip(STATE_FIELDS, rows, strict=True)}
    fields |= {name: np.zeros((0, 6)) for name in WRENCH_FIELDS} | {name: array("d") for name in STIFFNESS_FIELDS}
    fields |= {"joint_names": [], "base": []} | changes
    return SimpleNamespace(**fields)


# --- What is refused ------------------------------------------------------------------------

NAN, REST = float("nan"), np.zeros((7, 3))
UPRIGHT = np.vstack([REST[:4], [[0.0, 0.0, 9.81]], REST[:2]])

# Of those that cannot be read, one: test/control has them all.
BAD: dict[str, tuple[str, dict[str, Any], type[eom.EomDynamicsError], str]] = {
    "no names": ("planar_pr", {"joint_names": ["a", "b"]}, eom.StateError, "no joint 'a'"),
    "negative stiffness": ("variable", {"stiffness": doubles([-5.0, 1.0])}, StiffnessError, "stiffness"),
    "a slack spring": ("pairs", {"stiffness": doubles([1e-3, 1e-3])}, StiffnessError, "stiffness"),
    "two bases": ("planar_pr", {"base": [UPRIGHT] * 2}, eom.StateError, "base has 2 entries, must have one or none"),
    "a base that is nan": ("planar_pr", {"base": [UPRIGHT * NAN]}, eom.StateError, r"^base\[0\].* is nan"),
    "a base in free fall": ("planar_pr", {"base": [REST]}, eom.StateError, r"^base\[0\].specific_force is zero"),
    "a base of complete rotors": (
        "complete",
        {"base": [UPRIGHT]},
        eom.StateError,
        "complete rotor model has no moving",
    ),
    "overflow": (
        "planar_pr",
        {"velocity": doubles([1e200] * 2)},
        eom.StateError,
        "^numbers too large: effort of joint",
    ),
    "beyond any drive": ("drives", {"position": doubles([0.0, 1e307])}, eom.EomDynamicsError, "rad, not in degrees"),
    "overflow of a drive": ("drives", {"velocity": doubles([0.0, 1e307])}, eom.StateError, "^numbers too large: "),
    "degrees": (
        "drives",
        {"position": doubles([0.0, 30.0])},
        eom.EomDynamicsError,
        "angles are in rad, not in degrees",
    ),
    "fast": ("drives", {"velocity": doubles([9.0, 5.0])}, LimitError, "^exceeds limits: .*velocity 9 rad/s, limit 3"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_setpoint_is_refused_as_by_the_reference(case: str) -> None:
    name, changes, kind, text = BAD[case]
    pair = Pair(name, "refuse")
    assert pair.say(message(pair.arm), START)
    with pytest.raises(kind, match=text):
        pair.answer(message(pair.arm, **changes), START + MS)
    assert not pair.say(message(pair.arm, **changes), START + MS)
    assert pair.say(message(pair.arm), START + 2 * MS)


def test_a_moving_base_is_refused_where_it_has_not_been_asked_for() -> None:
    pair = Pair("planar_pr", moving_base=False)
    assert not pair.say(message(pair.arm, base=[UPRIGHT]), START)
    with pytest.raises(eom.StateError, match="moving_base: true"):
        pair.answer(message(pair.arm, base=[UPRIGHT]), START)


def test_what_overflows_at_the_lead_alone_is_refused_by_its_name() -> None:
    pair = Pair("planar_pr", lead=0.1)
    large = message(pair.arm, snap=doubles([0.0, 1e300]))
    with pytest.raises(eom.StateError, match=r"large.*'.*'"):
        pair.answer(large, START)
    assert not pair.say(large, START)
    still = Pair("planar_pr")
    assert still.say(large, START)


# --- Random streams -------------------------------------------------------------------------


def random_message(arm: eom.ElasticArm, rng: np.random.Generator) -> Any:
    """Mostly usable; now and then with names in another order, wrenches, stiffness, a base, or a fault."""
    n, tools = arm.robot.n, len(arm.robot.tools)
    state = rng.uniform(-1.0, 1.0, (5, n)) * rng.choice([0.01, 0.3, 1.0, 3.0]) * np.array([[1, 1, 3, 10, 30]]).T
    changes: dict[str, Any] = {}
    if rng.random() < 0.3:
        changes["joint_names"] = rng.permutation(arm.robot.joint_names).tolist()
    for field in WRENCH_FIELDS:
        if rng.random() < 0.3:
            changes[field] = rng.normal(size=(tools, 6))
    if rng.random() < 0.5:
        size = 10.0 ** rng.uniform(1, 3.5, n)
        changes["stiffness"] = doubles(np.where(arm.variable | (rng.random(n) < 0.5), size, np.nan))
        if rng.random() < 0.5:
            changes["stiffness_rate"] = doubles(rng.normal(size=n))
    if rng.random() < 0.3:
        changes["base"] = [rng.normal(size=BASE_SHAPE)]
    if rng.random() < 0.3:  # a fault
        field = str(rng.choice([*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS, "base", "joint_names"]))
        bad = rng.choice([np.nan, np.inf, 1e200, 1e308, -1e305])
        if field in STATE_FIELDS:
            row = state[STATE_FIELDS.index(field)]
            row[rng.integers(n)] = bad
            if rng.random() < 0.2:
                changes[field] = doubles(row[:-1])
        elif field in WRENCH_FIELDS:
            changes[field] = np.full((rng.integers(3), 6), bad)
        elif field == "base":
            changes[field] = [np.full(BASE_SHAPE, bad if rng.random() < 0.5 else 0.0)] * rng.integers(3)
        elif field == "joint_names":
            changes[field] = [*arm.robot.joint_names[1:], str(rng.choice(["", "nobody", arm.robot.joint_names[1]]))]
        else:
            changes[field] = doubles(np.full(rng.choice([n, n - 1]), bad))
    return message(arm, state, **changes)


@pytest.mark.parametrize("name", ROBOTS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1), policy=st.sampled_from(LIMIT_POLICIES), lead=st.sampled_from([0.0, 2.5e-3]))
def test_a_random_stream_is_answered_and_refused_as_by_the_reference(name: str, seed: int, policy: str, lead: float):
    rng, pair = np.random.default_rng(seed), Pair(name, policy, lead)
    stamp = START
    for k in range(30):
        # Limits of rates may make a change along the stream longer.
        if k == (15 if policy == "ignore" else 0) and name != "complete":
            pair.carry(eom.Payload(2.0, [0.0, 0.1, 0.2], tool=pair.arm.robot.tools[-1].name), 0.0)
        stamp += int(rng.choice([1, 1, 1, 10, 200, 0, -1])) * MS
        pair.say(random_message(pair.arm, rng), stamp if rng.random() < 0.9 else 0)


@pytest.mark.parametrize("name", ARMS)
def test_every_arm_is_answered_as_by_the_reference(name: str) -> None:
    """Along a stream with gaps, on which dampers have a state; beyond limits, and with commanded stiffness."""
    pair, rng = Pair(name, "warn"), np.random.default_rng(1)
    answered = [pair.say(random_message(pair.arm, rng), START + (k + k // 10 * 200) * MS) for k in range(40)]
    assert sum(answered) > 8


def test_deflections_of_dampers_are_those_along_the_motion_and_settled_where_it_begins_anew() -> None:
    """Steps of any length that is not too long, as of a stream with jitter and losses; then a gap, and no stamp."""
    pair, rng = Pair("damped", "ignore"), np.random.default_rng(3)
    ns = np.concatenate([[0], np.cumsum(rng.integers(100_000, 20_000_000, 200))])
    efforts, found = [], []
    for stamp in (*(START + ns).tolist(), START + int(ns[-1]) + LONGEST_GAP + 1, 0):
        t = 1e-9 * (stamp - START)
        state = [[3.0**k * np.sin(3 * t + k * np.pi / 2)] * 2 for k in range(5)]
        assert pair.say(message(pair.arm, state), stamp)
        efforts.append([pair.loop.loop.command[name].copy() for name in EFFORT_NAMES])
        found.append(pair.loop.loop.setpoint[DEFLECTION].copy())
    along = pair.arm.deflections_over_time(ns * 1e-9, np.swapaxes(efforts[:-2], 0, 1))
    settled = [pair.arm.functions.settled(x) for x in efforts[-2:]]
    # Times of the library are floats: their rounding, 4e-16 s, over the time of the filter, 0.03 s.
    np.testing.assert_allclose(found, [*along, *settled], rtol=0, atol=1e-13 * np.abs(along).max())
    assert np.abs(along[1:, 0]).min() > 0 and not np.any(along[:, 1])


def test_a_new_loop_of_the_same_arm_has_neither_payload_nor_settings() -> None:
    pair = Pair("planar_pr", "refuse")
    pair.carry(eom.Payload(2.0), 0.0)
    assert pair.say(message(pair.arm), START) and pair.loop.evaluator.payload.any()
    heavy = pair.loop.loop.command["tau"].copy()
    new = pair.loop.renewed()
    assert not new.evaluator.payload.any()
    assert new.loop.settings == DEFAULTS
    new.configure(safety="permissive")
    new.read(message(pair.arm))
    new.answer(START, pair.now)
    assert np.any(np.abs(new.loop.command["tau"] - heavy) > 1.0)


@pytest.mark.parametrize("response", [False, True])
def test_a_target_that_limits_refuse_is_refused_by_its_own_motion(response: bool) -> None:
    """Also where it begins amid the response to lost setpoints."""
    first, *others = eom.load_robot("planar_2r").joints
    robot = replace(eom.load_robot("planar_2r"), joints=(replace(first, limits=Limits(velocity=0.1)), *others))
    host = SetpointLoop(SetpointEvaluator(eom.ElasticArm(robot)))
    host.configure(safety="permissive", limits="refuse")
    host.loop.restart(np.zeros(2))
    host.loop.limit(motion_limits(host.arm, {"velocity": 1.0, "acceleration": 5.0}), 1e-3)
    host.loop.aim(START, np.array([0.5, 0.5]))
    code = next(filter(None, (host.loop.update(START + k * MS) for k in range(500))))
    with pytest.raises(LimitError, match=f"{first.name}: velocity"):
        (host.responded if response else host.accepted)(code)


def test_motion_and_limits_of_what_is_followed() -> None:
    pair = Pair("damped")
    assert pair.loop.limits_rates and not pair.loop.moves
    pair.say(message(pair.arm), START)
    assert not pair.loop.moves
    for changes in (
        {"jerk": doubles([0.0, 1.0])},
        {"wrench_rate": np.ones((1, 6))},
        {"base": [UPRIGHT + np.eye(7, 3, -1)]},
    ):
        assert pair.say(message(pair.arm, **changes), START)
        assert pair.loop.moves
    assert not Pair("pairs").loop.limits_rates


def strict(name: str) -> SetpointLoop:
    of = table(name)
    loop = SetpointLoop(SetpointEvaluator(of.arm), of)
    loop.configure(safety="strict")
    return loop


@pytest.mark.parametrize("stamped", [False, True])
def test_a_step_of_a_setpoint_without_stamp_names_the_stamp_as_the_remedy(stamped: bool) -> None:
    """It arrives 0.3 ms after the one before, of a stream with a period of 5 ms."""
    loop = strict("complete")
    given = loop.loop.given
    given["qd"][:], stamp, arrival = 1.8, START, START
    for given["q"][:] in 1.8 * 0.005 * np.arange(20):
        loop.answer(stamp * stamped, arrival)
        stamp, arrival = stamp + 5 * MS, arrival + 5 * MS
    given["q"] += 1.8 * 0.005
    if stamped:
        assert loop.answer(stamp, arrival - 4_700_000) >= 0
        return
    with pytest.raises(eom.EomDynamicsError, match=r"stream.*header\.stamp"):
        loop.answer(0, arrival - 4_700_000)


@pytest.mark.parametrize(
    ("q", "stamped", "hint"),
    [
        (30.0, True, "; was that in degrees? Angles are in rad"),
        (30.0, False, "degrees? Angles are in rad; send positions without their rates to the topic target"),
        (3.2, True, "; the range of iiwa_joint_1 is -2.967 to 2.967"),
        (0.3, False, "; send positions without their rates to the topic target"),
    ],
)
def test_a_setpoint_away_from_the_command_names_likely_mistakes(q: float, stamped: bool, hint: str) -> None:
    loop = strict("iiwa")
    loop.loop.given["q"][:] = 0.0
    loop.answer(START * stamped, START)
    loop.loop.given["q"][0] = q
    with pytest.raises(eom.EomDynamicsError, match="in doubt: ") as error:
        loop.answer((START + 5 * MS) * stamped, START + 5 * MS)
    assert str(error.value).endswith(hint) and str(error.value).count("to the topic target") == 1
