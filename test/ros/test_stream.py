# SPDX-License-Identifier: Apache-2.0
"""Setpoints in, commands out, over DDS: every number against the closed form, and what is refused."""

import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from node_client import CONFIG, PATIENCE, status_of

import eom_dynamics as eom
from eom_dynamics.stream.conversions import COMMAND_FIELDS, STATE_FIELDS, WRENCH_FIELDS

ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")
NAMES = list(ROBOT.joint_names)
N = ROBOT.n
STIFFNESS = np.array([2.0e4, 2.0e4, 1.5e4, 1.5e4, 1.0e4, 7.5e3, 7.5e3])
ROTOR_INERTIA = np.array([3.2, 3.2, 1.6, 1.6, 1.0, 0.5, 0.5])


@dataclass
class Case:
    """A setpoint in the robot's order, and in that order what must come back."""

    state: np.ndarray
    wrench: np.ndarray | None = None
    order: list[int] = field(default_factory=lambda: list(range(N)))

    @property
    def fields(self):
        wrench = {} if self.wrench is None else dict(zip(WRENCH_FIELDS, self.wrench, strict=True))
        return dict(zip(STATE_FIELDS, self.state[:, self.order], strict=True)) | wrench

    @property
    def joint_names(self):
        return [NAMES[i] for i in self.order]

    @property
    def command(self):
        """The seven quantities by field, in the message's order, by the closed form and the textbook's springs."""
        q, qd, qdd, qddd, qdddd = self.state
        wrench = () if self.wrench is None else tuple(self.wrench)
        tau, taud, taudd = eom.equations_of_motion(ROBOT, q, qd, qdd, qddd, wrench=wrench).efforts(qdddd)
        theta, thetad, thetadd = q + tau / STIFFNESS, qd + taud / STIFFNESS, qdd + taudd / STIFFNESS
        rows = (tau, taud, taudd, theta, thetad, thetadd, ROTOR_INERTIA * thetadd + tau)
        return {name: row[self.order] for name, row in zip(COMMAND_FIELDS, rows, strict=True)}


def random_case(rng, *, wrench=False, shuffled=False):
    return Case(
        rng.uniform(-2, 2, (5, N)),
        rng.uniform(-20, 20, (3, 6)) if wrench else None,
        [int(i) for i in rng.permutation(N)] if shuffled else list(range(N)),
    )


def assert_close(actual, wanted):
    """Equal to 1e-12 of the largest entry: the node may sum in another order than the closed form."""
    actual, wanted = np.array(actual), np.array(wanted)
    assert actual.shape == wanted.shape
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def assert_answers(client, number, case, *, names=None):
    feedforward, motor_setpoint, effort_command = client.answers_to(number)
    command = case.command
    for name, values in command.items():
        assert_close(getattr(feedforward, name), values)
    assert_close(motor_setpoint.position, command["motor_position"])
    assert_close(motor_setpoint.velocity, command["motor_velocity"])
    assert_close(motor_setpoint.effort, command["motor_effort"])
    # In the robot's order, whatever the setpoint's is.
    assert_close(np.array(effort_command.data)[case.order], command["motor_effort"])
    for answer in (feedforward, motor_setpoint):
        assert (answer.header.stamp.sec, answer.header.stamp.nanosec) == (1_700_000_000, number)
        assert answer.header.frame_id == f"frame {number}"
    names = case.joint_names if names is None else names
    assert feedforward.joint_names == names
    assert motor_setpoint.name == names


@pytest.mark.parametrize("wrench", [False, True], ids=["free", "wrench"])
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_every_number_is_that_of_the_closed_form(iiwa, rng, wrench, shuffled):
    for _ in range(20):
        case = random_case(rng, wrench=wrench, shuffled=shuffled)
        assert_answers(iiwa, iiwa.publish(joint_names=case.joint_names, **case.fields), case)


def test_without_joint_names_the_order_is_that_of_the_robot(iiwa, rng):
    shuffled, plain = random_case(rng, shuffled=True), random_case(rng)
    iiwa.publish(joint_names=shuffled.joint_names, **shuffled.fields)  # leaves nothing behind
    assert_answers(iiwa, iiwa.publish(**plain.fields), plain, names=NAMES)


def test_rates_of_the_wrench_may_be_left_out(iiwa, rng):
    case = random_case(rng, wrench=True)
    case.wrench[1:] = 0
    fields = {name: values for name, values in case.fields.items() if name not in WRENCH_FIELDS[1:]}
    assert_answers(iiwa, iiwa.publish(**fields), case, names=NAMES)


def test_a_burst_is_answered_in_order(iiwa, rng):
    cases = [random_case(rng) for _ in range(10)]
    numbers = [iiwa.publish(joint_names=NAMES, **cases[i % 10].fields) for i in range(500)]
    iiwa.wait(lambda: any(m.header.stamp.nanosec == numbers[-1] for m in iiwa.feedforward), "the last of the burst")
    answered = [m.header.stamp.nanosec for m in iiwa.feedforward]
    assert answered[answered.index(numbers[0]) :] == numbers
    for i, case in enumerate(cases):
        assert_answers(iiwa, numbers[490 + i], case)


def changed(name, values):
    """A setpoint with one field replaced."""
    return {name_: np.full(N, 0.1) for name_ in STATE_FIELDS} | {"joint_names": NAMES, name: values}


def entry(value, at=3):
    values = np.full(N, 0.1)
    values[at] = value
    return values


BAD_SETPOINTS = {
    **{
        f"{name} short": (changed(name, np.zeros(N - 1)), f"{name} has 6 entries, must have 7") for name in STATE_FIELDS
    },
    **{f"{name} long": (changed(name, np.zeros(N + 1)), f"{name} has 8 entries, must have 7") for name in STATE_FIELDS},
    **{f"{name} empty": (changed(name, np.zeros(0)), f"{name} has 0 entries, must have 7") for name in STATE_FIELDS},
    **{
        f"{name} {value}": (changed(name, entry(value)), f"{name}[3] (joint 'iiwa_joint_4') is {value}")
        for name in STATE_FIELDS
        for value in (np.nan, np.inf, -np.inf)
    },
    **{f"{name} of 5": (changed(name, np.zeros(5)), f"{name} has 5 entries, must have 6") for name in WRENCH_FIELDS},
    **{
        f"{name} nan": (changed(name, np.array([0, 0, np.nan, 0, 0, 0])), f"{name}[2] is nan") for name in WRENCH_FIELDS
    },
    "unknown joint": (
        changed("joint_names", [*NAMES[:-1], "tool"]),
        "joint_names[6]: the robot has no joint 'tool'",
    ),
    "missing joint": (changed("joint_names", NAMES[:-1]), "joint_names: 'iiwa_joint_7' missing"),
    "double joint": (
        changed("joint_names", [*NAMES[:-1], NAMES[0]]),
        "joint_names[6]: joint 'iiwa_joint_1' stands there twice",
    ),
    "one joint too many": (changed("joint_names", [*NAMES, NAMES[0]]), "joint_names[7]: joint 'iiwa_joint_1' stands"),
    "velocity overflows": (changed("velocity", entry(1e200)), "numbers too large: effort"),
    "snap overflows": (changed("snap", entry(1e308)), "numbers too large: effort_acceleration"),
    "wrench overflows": (changed("wrench_acceleration", np.full(6, 1.7e308)), "numbers too large: effort_acceleration"),
}


@pytest.mark.parametrize(("setpoint", "reason"), BAD_SETPOINTS.values(), ids=BAD_SETPOINTS)
def test_a_bad_setpoint_is_refused_and_the_next_one_answered(iiwa, rng, setpoint, reason):
    _, _, before = iiwa.next_diagnostics()
    answered = len(iiwa.feedforward)
    bad = iiwa.publish(**setpoint)
    case = random_case(rng, shuffled=True)
    good = iiwa.publish(joint_names=case.joint_names, **case.fields)
    assert_answers(iiwa, good, case)
    new = [m.header.stamp.nanosec for m in iiwa.feedforward[answered:]]
    assert new == [good]
    for stream in (iiwa.motor_setpoint, iiwa.feedforward):
        assert not any(m.header.stamp.nanosec == bad for m in stream)
    _, _, after = iiwa.wait_for_diagnostics(
        lambda level, message, values: int(values["received"]) == int(before["received"]) + 2, "both to be counted"
    )
    assert int(after["refused"]) == int(before["refused"]) + 1
    assert int(after["published"]) == int(before["published"]) + 1
    assert after["last refusal"].startswith(reason), after["last refusal"]


def test_refusals_are_logged_once_in_a_period_and_counted(start):
    client = start(
        *("--params-file", CONFIG / "iiwa.yaml", "-p", "diagnostic_period:=0.1", "-p", "warning_period:=3600.0")
    )

    def refuse(count, total):
        for _ in range(count):
            client.publish(**changed("position", np.zeros(3)))
        client.wait_for_diagnostics(
            lambda level, message, values: int(values["refused"]) == total, "all refusals to be counted"
        )

    refuse(51, total=51)
    assert client.process.log.count("setpoint refused: position has 3 entries") == 1
    assert client.set_parameter("warning_period", 0.0) == ""
    refuse(2, total=53)
    assert client.process.log.count("setpoint refused: position has 3 entries") == 3
    assert client.process.log.count("(and 50 more refused since the last warning)") == 1


def test_diagnostics_say_what_the_stream_does(start, rng):
    client = start("--params-file", CONFIG / "iiwa.yaml", "-p", "diagnostic_period:=0.5")
    level, message, values = client.next_diagnostics()
    assert (level, message) == (0, "waiting for setpoints")
    assert values["state"] == "active"
    assert values["robot"] == "iiwa"
    assert values["joints"] == ", ".join(NAMES)
    assert values["backend"] == eom.Dynamics(ROBOT).backend
    assert values["compute time median (us)"] == ""

    def stream(fields, level, text):
        """Setpoints until a diagnostic status has that level and text: one of a period with nothing else."""
        start, deadline = len(client.diagnostics), time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            client.publish(**fields)
            client.spin(0.01)
            for found in map(status_of, client.diagnostics[start:]):
                if found[0] == level and text in found[1]:
                    return found[2]
        raise AssertionError([status_of(message)[:2] for message in client.diagnostics[start:]])

    good, bad = random_case(rng).fields, changed("position", np.zeros(1))
    values = stream(good, 0, "streaming")
    assert float(values["rate (Hz)"]) > 0
    assert 0 < float(values["compute time median (us)"]) <= float(values["compute time max (us)"])
    assert 0 < float(values["load (%)"]) < 100

    stream(bad, 2, "position has 1 entries")

    assert client.diagnostics[-1].status[0].name == "eom_dynamics: feedforward"
    assert client.diagnostics[-1].status[0].hardware_id == f"/{client.process.name}/{client.process.name}"
    client.wait_for_diagnostics(lambda level, message, _: (level, message) == (0, "waiting for setpoints"), "a rest")


def test_effort_command_carries_the_effort_of_the_joints_on_request(start, rng):
    client = start("--params-file", CONFIG / "iiwa.yaml", "-p", "effort_command:=joint", "-p", "diagnostic_period:=0.1")
    case = random_case(rng, shuffled=True)
    _, _, effort_command = client.answers_to(client.publish(joint_names=case.joint_names, **case.fields))
    assert_close(np.array(effort_command.data)[case.order], case.command["effort"])
    assert np.abs(case.command["effort"] - case.command["motor_effort"]).max() > 0.1
