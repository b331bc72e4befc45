# SPDX-License-Identifier: Apache-2.0
"""The verdict on a run: right answers pass, and every way of being wrong is found and named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recordings import recorded
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.demo.evaluate import Recording, evaluate
from eom_dynamics.demo.plan import Plan
from eom_dynamics.drivetrain import Actuator, Friction, Gear, Transmission
from eom_dynamics.drivetrain.springs import CoupledSpring
from eom_dynamics.stream.conversions import COMMAND_FIELDS


def perfect(plan: Plan) -> Recording:
    """What a node that makes no mistake brings back, 300 µs after each setpoint."""
    sent = 12.5 + plan.t
    return Recording(sent, sent + 3e-4, recorded(plan).answers, "numpy")


@pytest.fixture(scope="module", params=[("planar_2r", 1000.0), ("planar_2r", 100.0), ("iiwa", 250.0)])
def run(request: pytest.FixtureRequest) -> tuple[Plan, Recording]:
    robot, rate = request.param
    plan = Plan(eom.load_robot(robot), rate=rate, duration=1.0)
    return plan, perfect(plan)


def tampered(recording: Recording, field: str, rows: slice, change: float) -> Recording:
    """The same with one joint's values of one field off by a share of the largest."""
    values = recording.answers[field].copy()
    values[rows, -1] += change * np.abs(values).max()
    return replace(recording, answers={**recording.answers, field: values})


def test_right_answers_pass(run: tuple[Plan, Recording]) -> None:
    plan, recording = run
    result = evaluate(plan, recording)
    assert result.failures == []
    assert (result.sent, result.received, result.lost, result.late) == (plan.count, plan.count, 0, 0)
    assert result.rate == pytest.approx(plan.rate)
    assert result.percentile(50) == pytest.approx(3e-4) == pytest.approx(result.percentile(99))


def test_tolerances_are_tight(run: tuple[Plan, Recording]) -> None:
    assert all(deviation.tolerance < 1e-6 for deviation in evaluate(*run).deviations)


@pytest.mark.parametrize("field", COMMAND_FIELDS)
def test_a_wrong_field_is_found(run: tuple[Plan, Recording], field: str) -> None:
    plan, recording = run
    (failure, *_) = reversed(evaluate(plan, tampered(recording, field, slice(None), 1e-6)).failures)
    assert failure.startswith("all quantities against closed form")


@pytest.mark.parametrize("rotor_model", ["reduced", "complete"])
@pytest.mark.parametrize("name", eom.packaged_robots())
def test_right_answers_of_every_packaged_robot_pass(name: str, rotor_model: str) -> None:
    robot = eom.load_robot(name)
    plan = Plan(replace(robot, rotor_model=rotor_model), rate=200.0, duration=0.5)
    assert evaluate(plan, perfect(plan)).failures == []


LOSSY = Actuator(Friction(0.5, 0.4, 0.6, 0.3, 0.02), Gear(0.8))
TWO = eom.load_robot("planar_2r")
COUPLED = CoupledSpring([[500.0, 40.0], [40.0, 300.0]])
DRIVES = {
    **{kind: with_springs(TWO, spring, actuator=LOSSY) for kind, spring in EVERY_KIND.items()},
    "coupled": replace(TWO, coupled_stiffness=((0, 1), COUPLED)),
    "differential": replace(TWO, transmission=((0, 1), Transmission([[0.5, 0.5], [0.5, -0.5]]))),
    "geared rotors": replace(
        with_springs(TWO, EVERY_KIND["cubic"], actuator=LOSSY, gear_ratio=50.0), rotor_model="complete"
    ),
}
"""Arms with springs of every kind, behind gears with loss and friction, and other ways to drive two joints."""


@pytest.mark.parametrize("kind", DRIVES)
def test_every_wrong_number_of_motors_is_found_with_any_springs(kind: str) -> None:
    # Few setpoints, each of which is compared.
    plan = Plan(DRIVES[kind], rate=100.0, duration=0.04)
    right = perfect(plan)
    assert evaluate(plan, right).closed_form.passed
    for field in COMMAND_FIELDS:
        for motor in range(right.answers[field].shape[1]):
            values = right.answers[field].copy()
            # A millionth more than it should be, at one of the setpoints.
            values[2, motor] += 1e-6 * np.abs(values).max()
            wrong = replace(right, answers={**right.answers, field: values})
            assert not evaluate(plan, wrong).closed_form.passed, f"{field} of motor {motor}"


def test_the_wrench_is_the_papers_where_springs_can_pull_under_it() -> None:
    whole = Plan(eom.load_robot("planar_2r"), rate=100.0, duration=1.0).wrench
    less = Plan(eom.load_robot("vsa_planar_2r"), rate=100.0, duration=1.0).wrench
    assert np.all(whole.amplitude == 10.0)
    assert np.all((less.amplitude > 0) & (less.amplitude < 10.0))


@pytest.mark.parametrize(("field", "name"), [("effort_rate", "taud "), ("effort_acceleration", "taudd ")])
def test_one_wrong_derivative_is_found_by_differences(run: tuple[Plan, Recording], field: str, name: str) -> None:
    plan, recording = run
    row = plan.count // 2 + 1
    failures = evaluate(plan, tampered(recording, field, slice(row, row + 1), 1e-6)).failures
    assert any(failure.startswith(name + "against numerical derivative") for failure in failures)


def test_the_answers_of_another_robot_are_found() -> None:
    plan = Plan(eom.load_robot("iiwa"), rate=250.0, duration=0.5)
    with pytest.warns(eom.RobotDescriptionWarning):
        other = Plan(eom.load_robot("iiwa", inertia_reference="link"), rate=250.0, duration=0.5)
    result = evaluate(plan, perfect(other))
    # Consistent in themselves, and yet not this robot's.
    assert all(deviation.passed for deviation in result.differentiation)
    assert not result.closed_form.passed


def test_lost_answers_fail_and_the_rest_is_compared(run: tuple[Plan, Recording]) -> None:
    plan, recording = run
    gone = [3, plan.count // 2]
    received = recording.received.copy()
    received[gone] = np.nan
    answers = {field: values.copy() for field, values in recording.answers.items()}
    for values in answers.values():
        values[gone] = np.nan
    result = evaluate(plan, replace(recording, received=received, answers=answers))
    assert result.lost == 2 and len(result.round_trip) == plan.count - 2
    assert result.failures == [f"2 of {plan.count} setpoints were not answered"]


def test_no_answer_at_all_fails(run: tuple[Plan, Recording]) -> None:
    plan, recording = run
    nothing = {field: np.full_like(values, np.nan) for field, values in recording.answers.items()}
    result = evaluate(plan, Recording(recording.sent, np.full(plan.count, np.nan), nothing, "numpy"))
    assert result.lost == plan.count
    assert len(result.failures) == 4 and np.isnan(result.percentile(50))


def test_late_setpoints_are_counted() -> None:
    plan = Plan(eom.load_robot("planar_2r"), rate=100.0, duration=1.0)
    recording = perfect(plan)
    late = recording.sent + 0.0105 * (plan.t > 0.505)
    result = evaluate(plan, replace(recording, sent=late, received=late + 3e-4))
    assert result.late == 49 and result.failures == []
