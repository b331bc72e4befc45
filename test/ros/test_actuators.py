# SPDX-License-Identifier: Apache-2.0
"""Springs and motors of their own in the node: numbers, names, refusals, limits; and its stream replayed offline."""

import json

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="reads bags")

from bag_files import SETPOINT as SETPOINT_TYPE
from bag_files import STORE, read_bag, setpoint, setpoints, write_bag
from chains import packaged_parameters
from node_client import frame_of
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.messages.fields import COMMAND_FIELDS, MOTOR_FIELDS, STATE_FIELDS, STIFFNESS_FIELDS
from eom_dynamics.tools.cli.main import main
from eom_dynamics.trajectory import paper_motion

VSA = ("--params-file", CONFIG / "vsa_planar_2r.yaml")

# Stamps are within one second, ns.
MILLISECOND = 1_000_000

SPRINGS = (
    {"type": "variable", "lower": 50.0, "upper": 1.0e4, "nominal": 500.0},
    {"type": "antagonistic_exponential", "stiffness": 50.0, "growth": 15.0, "nominal": 5.0e3},
    {"type": "linear", "stiffness": 1.0e4},
    {"type": "antagonistic_quadratic", "stiffness": 50.0, "slope": 2.0e3, "nominal": 5.0e3},
    {"type": "damped", "stiffness": 1.0e4, "damping": 300.0},
)
NAMES = [f"iiwa_joint_{i}" for i in range(1, 8)]
COUPLED = {"coupled_stiffness": {"joints": NAMES[5:], "matrix": [9.0e3, -2.0e3, -2.0e3, 8.0e3]}}
MOTORS = [
    NAMES[0],
    *(f"{NAMES[1]}_agonist", f"{NAMES[1]}_antagonist"),
    NAMES[2],
    *(f"{NAMES[3]}_agonist", f"{NAMES[3]}_antagonist"),
    *NAMES[4:],
]


@pytest.fixture(scope="module")
def every_spring(start_shared, tmp_path_factory):
    """A node with the iiwa with these springs, the first joints one each, and its arm."""
    parameters = packaged_parameters("iiwa") | COUPLED
    for joint, spring in zip(parameters["joints"].values(), (*SPRINGS, *[None] * 7), strict=False):
        if spring is None:
            joint.pop("elasticity")
        else:
            joint["elasticity"] = spring
        joint["actuator"] = {"friction": {"viscous": 2.0, "coulomb": 1.0}, "efficiency": 0.9}
    file = tmp_path_factory.mktemp("springs") / "arm.yaml"
    file.write_text(json.dumps({"/**": {"ros__parameters": {"robot": parameters}}}))  # JSON is YAML
    return start_shared("--params-file", file), eom.ElasticArm(eom.load_robot(file))


@pytest.fixture(scope="module")
def vsa(start_shared):
    """One active node with the VSA arm."""
    return start_shared(*VSA)


def assert_command(answers, command, joints, motors, arm):
    """The answers on three topics are this command of the library, bit by bit, in these orders of joints and motors."""
    feedforward, motor_setpoint, effort_command = answers
    for name, values in zip(COMMAND_FIELDS, command, strict=True):
        np.testing.assert_array_equal(getattr(feedforward, name), values[motors if name in MOTOR_FIELDS else joints])
    assert feedforward.joint_names == [arm.robot.joint_names[i] for i in joints]
    assert feedforward.motor_names == motor_setpoint.name == [arm.motor_names[i] for i in motors]
    for name in ("position", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(motor_setpoint, name), getattr(feedforward, f"motor_{name}"))
    np.testing.assert_array_equal(effort_command.data, command.motor_effort)
    assert not feedforward.held


def test_springs_and_motors_are_those_of_the_library(every_spring, rng):
    """Bit by bit, in any order; test/stream has all kinds of springs."""
    client, arm = every_spring
    assert list(arm.motor_names) == MOTORS
    _, _, values = client.next_diagnostics()
    assert values["motors"] == ", ".join(MOTORS)
    # One entry a joint; those of joints that take no stiffness may be anything.
    stiffness = np.array([rng.uniform(4e3, 8e3, 7), rng.uniform(-1e3, 1e3, 7), rng.uniform(-1e4, 1e4, 7)])
    stiffness[:, ~arm.variable] = np.nan
    for i, shuffled in enumerate((False, True, True)):
        state = rng.uniform(-0.5, 0.5, (5, 7))
        joints = [int(j) for j in rng.permutation(7)] if shuffled else list(range(7))
        # Those of a joint in the joint's place, the agonist first.
        motors = [j for joint in joints for j in range(len(MOTORS)) if arm.motor_joint[j] == joint]
        given = stiffness[:i]
        fields = dict(zip(STATE_FIELDS, state[:, joints], strict=True))
        fields |= dict(zip(STIFFNESS_FIELDS, given[:, joints], strict=False))
        # So far apart that a damper begins anew.
        number = client.publish(at=200 * MILLISECOND * (i + 1), joint_names=[NAMES[j] for j in joints], **fields)
        command = arm.feedforward(*state, commanded_stiffness=tuple(given))
        assert_command(client.answers_to(number), command, joints, motors, arm)

        answer = client.inverse_dynamics(joint_names=[NAMES[j] for j in joints], **fields)
        assert answer.success, answer.message
        assert answer.motor_names == [MOTORS[j] for j in motors]
        for name, values in zip(COMMAND_FIELDS, command, strict=True):
            np.testing.assert_array_equal(getattr(answer, name), values[motors if name in MOTOR_FIELDS else joints])


def test_a_damper_goes_on_from_setpoint_to_setpoint(every_spring):
    client, arm = every_spring
    assert client.transition("deactivate") and client.transition("activate")
    client.until_silent()
    t = np.arange(1, 101) * 2e-3
    # So fast that the deflection without transient, which ignores what the effort's higher derivatives do, is off.
    waves = (np.sin(8 * t), np.cos(8 * t), -np.sin(8 * t), -np.cos(8 * t), np.sin(8 * t))
    motion = [0.1 * 8**k * np.outer(wave, np.ones(7)) for k, wave in enumerate(waves)]
    numbers = [
        client.publish(at=round(s * 1e9) + 1, **dict(zip(STATE_FIELDS, x, strict=True)))
        for s, *x in zip(t, *motion, strict=True)
    ]
    feedforward, _, _ = client.answers_to(numbers[-1])
    efforts = arm.dynamics.inverse_dynamics(*motion)
    deflection = arm.deflections_over_time(t, efforts)
    command = arm.feedforward(*motion, deflection=deflection)
    for name, values in zip(COMMAND_FIELDS, command, strict=True):
        # Where times are floats, their rounding, 1e-17 s, is all that differs.
        np.testing.assert_allclose(getattr(feedforward, name), values[-1], rtol=1e-11)
    settled = arm.feedforward(*(x[-1] for x in motion))
    assert abs(feedforward.motor_position[6] - settled.motor_position[6]) > 1e-9


SETPOINT = dict(zip(STATE_FIELDS, np.full((5, 2), 0.1), strict=True))
GOOD = {"stiffness": np.array([300.0, 150.0])}
# One of each kind; test/messages has them all.
BAD_STIFFNESS = {
    "out of range": ({"stiffness": np.array([99.0, 150.0])}, "joint_1: stiffness 99 is below "),
    "not finite": ({"stiffness": np.array([300.0, np.nan])}, "stiffness[1] (joint 'joint_2') is nan"),
}


@pytest.mark.parametrize(("fields", "reason"), BAD_STIFFNESS.values(), ids=BAD_STIFFNESS)
def test_a_stiffness_that_cannot_be_used_holds_the_last_good_command(vsa, fields, reason):
    good = vsa.answers_to(vsa.publish(**SETPOINT, **GOOD))
    _, _, before = vsa.next_diagnostics()
    number = vsa.publish(**{**SETPOINT, "position": np.full(2, 0.2)}, **fields)
    held = vsa.answers_to(number)
    assert held[0].held and not good[0].held
    assert held[0].header.frame_id == held[1].header.frame_id == frame_of(number)
    for name in (*COMMAND_FIELDS, "joint_names", "motor_names"):
        assert getattr(held[0], name) == getattr(good[0], name)
    for name in ("name", "position", "velocity", "effort"):
        assert getattr(held[1], name) == getattr(good[1], name)
    assert held[2].data == good[2].data
    again = vsa.answers_to(vsa.publish(**SETPOINT, **GOOD))
    assert again[0].motor_effort == good[0].motor_effort and not again[0].held
    _, _, after = vsa.wait_for_diagnostics(
        lambda _, __, values: int(values["received"]) == int(before["received"]) + 2, "both to be counted"
    )
    for count in ("refused", "held", "published"):
        assert int(after[count]) == int(before[count]) + 1
    assert after["last refusal"].startswith(reason), after["last refusal"]
    answer = vsa.inverse_dynamics(**SETPOINT, **fields)
    assert not answer.success
    assert answer.message.startswith(reason), answer.message


def test_what_is_held_is_a_parameter(vsa):
    bad, wrong = {**SETPOINT, "stiffness": np.ones(2)}, {**SETPOINT, "position": np.zeros(1)}

    def held(*setpoints):
        """Stamps of what is answered, of a last good setpoint and these."""
        before = len(vsa.feedforward)
        numbers = [vsa.publish(**fields) for fields in setpoints]
        vsa.answers_to(vsa.publish(**SETPOINT))
        stamps = [m.header.stamp.nanosec for m in vsa.feedforward[before:]]
        return [number in stamps for number in numbers]

    assert vsa.transition("deactivate") and vsa.transition("activate")
    assert held(bad, wrong) == [False, False]  # there is nothing to hold yet
    assert held(bad, wrong) == [True, False]
    assert vsa.set_parameter("hold_last_command", "always") == ""
    assert held(bad, wrong) == [True, True]
    assert vsa.set_parameter("hold_last_command", "never") == ""
    assert held(bad, wrong) == [False, False]
    reason = vsa.set_parameter("hold_last_command", "sometimes")
    assert reason == "hold_last_command must be one of stiffness, always, never, is 'sometimes'"
    assert vsa.set_parameter("hold_last_command", "stiffness") == ""
    assert held(bad) == [True]
    assert vsa.transition("deactivate") and vsa.transition("activate")
    assert held(bad) == [False]  # a command of the last time is none of this one


# --- Live and offline -------------------------------------------------------------------

# The node computes one state at a time and the replay many at once, in lanes: sums are the same, sines and cosines may
# differ in their last bit, which the largest effort of the arm, some 100 N m, carries to its entries.
TOLERANCE = 1e-12


def recorded(robot, path, **optional):
    """A bag of 300 setpoints at 1 kHz, of which some cannot be used, in an order that is not the robot's."""
    t = np.arange(300) * 1e-3
    states = np.array(paper_motion(robot.n).derivatives(t))
    order = list(reversed(range(robot.n)))
    names = [robot.joint_names[i] for i in order]
    messages = setpoints(names, states[:, :, order], "base", **optional)
    time, _ = messages[100]
    messages[100] = (time, setpoint(time - 7, names, np.full((5, robot.n), np.nan)))
    time, _ = messages[200]
    messages[200] = (time, setpoint(time - 7, ["nobody", *names[1:]], states[:, 200], "base"))
    return write_bag(path, {"/setpoint": (SETPOINT_TYPE, messages)})


def assert_same(expected, live):
    """Equal headers and names, and numbers up to rounding."""
    for field in expected.__dataclass_fields__:
        if field == "header":
            one, other = expected.header.stamp, live.header.stamp
            assert (one.sec, one.nanosec) == (other.sec, other.nanosec)
            assert expected.header.frame_id == live.header.frame_id
        elif field in ("joint_names", "motor_names", "name"):
            assert list(getattr(expected, field)) == list(getattr(live, field))
        elif field in (*COMMAND_FIELDS, "position", "velocity", "effort", "data", "held"):
            wanted, got = np.asarray(getattr(expected, field), float), np.array(getattr(live, field), float)
            assert wanted.shape == got.shape
            assert np.max(np.abs(wanted - got)) <= TOLERANCE * max(1.0, np.max(np.abs(wanted)))


def test_live_and_offline_are_the_same(vsa, tmp_path):
    """A bag played to the node over DDS, and replayed offline: the same commands."""
    robot = eom.load_robot("vsa_planar_2r")
    bag = recorded(robot, tmp_path / "bag", stiffness=[220.0, 210.0], stiffness_rate=[5.0, -5.0])
    assert main(["replay", str(bag), "--robot", "vsa_planar_2r", "-o", str(tmp_path / "offline")]) == 0
    offline = read_bag(tmp_path / "offline")
    assert vsa.transition("deactivate") and vsa.transition("activate")
    vsa.until_silent()
    topics = {name: getattr(vsa, name) for name in ("feedforward", "motor_setpoint", "effort_command")}
    for answers in topics.values():
        answers.clear()
    for _, message in read_bag(bag)["/setpoint"]:
        # As ros2 bag play does: the bytes of the bag, untouched.
        vsa.publish_serialized(bytes(STORE.serialize_cdr(message, SETPOINT_TYPE)))
    # Each topic comes by a way of its own.
    for topic, answers in topics.items():
        wanted = offline[f"/{topic}"]
        assert len(wanted) == 298
        vsa.wait(lambda answers=answers: len(answers) >= 298, "298 answers")
        for (_, expected), live in zip(wanted, answers, strict=True):
            assert_same(expected, live)
