# SPDX-License-Identifier: Apache-2.0
"""Checks of the node's answers: right ones pass, and every kind of wrong one is found and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from recordings import recorded
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.messages.fields import COMMAND_FIELDS
from eom_dynamics.tools.demo import evaluate as module
from eom_dynamics.tools.demo.evaluate import REACH, Answers, closed_form, differentiate, evaluate
from eom_dynamics.tools.demo.plan import Plan


@pytest.fixture(scope="module", autouse=True)
def closed_form_once() -> Iterator[None]:
    """Compute the closed form at each time of a plan once, for all tests."""
    known: dict[tuple[int, float], tuple[np.ndarray, ...]] = {}
    plans = []  # kept, since their identity is the key

    def cached(plan: Plan, t: float) -> tuple[np.ndarray, ...]:
        if (id(plan), t) not in known:
            plans.append(plan)
            known[id(plan), t] = closed_form(plan, t)
        return known[id(plan), t]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "closed_form", cached)
        yield


def perfect(plan: Plan) -> Answers:
    """Return the answers of a node without faults, 300 µs after each setpoint."""
    sent = 12.5 + plan.t
    return Answers(sent, sent + 3e-4, recorded(plan).answers, "numpy")


@pytest.fixture(scope="module", params=[("planar_2r", 1000.0, 0.5), ("iiwa", 200.0, 0.5)], ids=str)
def run(request: pytest.FixtureRequest) -> tuple[Plan, Answers]:
    robot, rate, duration = request.param
    plan = Plan(eom.load_robot(robot), rate=rate, duration=duration)
    return plan, perfect(plan)


def tampered(recording: Answers, field: str, rows: slice, change: float) -> Answers:
    """Return the recording with one joint's values of a field off by a share of the largest."""
    values = recording.answers[field].copy()
    values[rows, -1] += change * np.abs(values).max()
    return replace(recording, answers={**recording.answers, field: values})


def test_right_answers_pass(run: tuple[Plan, Answers]) -> None:
    plan, recording = run
    result = evaluate(plan, recording)
    assert result.failures == []
    assert (result.sent, result.received, result.lost, result.late) == (plan.count, plan.count, 0, 0)
    assert result.rate == pytest.approx(plan.rate)
    assert result.percentile(50) == pytest.approx(3e-4) == pytest.approx(result.percentile(99))


def test_tolerances_are_tight(run: tuple[Plan, Answers]) -> None:
    assert all(deviation.tolerance < 1e-6 for deviation in evaluate(*run).deviations)


@pytest.mark.parametrize("field", COMMAND_FIELDS)
def test_a_wrong_field_is_found(run: tuple[Plan, Answers], field: str) -> None:
    plan, recording = run
    (failure, *_) = reversed(evaluate(plan, tampered(recording, field, slice(None), 1e-6)).failures)
    assert failure.startswith("all quantities against closed form")


@pytest.mark.parametrize(
    ("name", "rotor_model"),
    [("planar_pr", "reduced"), ("vsa_planar_2r", "reduced"), ("sea_planar_2r", "complete"), ("dual_arm", "reduced")],
)
def test_right_answers_of_other_robots_pass(name: str, rotor_model: str) -> None:
    robot = eom.load_robot(name)
    plan = Plan(replace(robot, rotor_model=rotor_model), rate=200.0, duration=0.1)
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
"""Arms with every kind of spring, gears with loss and friction, and other drives of two joints."""


@pytest.mark.parametrize("kind", DRIVES)
def test_every_wrong_motor_quantity_is_found_with_any_springs(kind: str) -> None:
    # Few setpoints, so that each is compared.
    plan = Plan(DRIVES[kind], rate=100.0, duration=0.04)
    right = perfect(plan)
    assert evaluate(plan, right).closed_form.passed
    for field in COMMAND_FIELDS:
        for motor in range(right.answers[field].shape[1]):
            values = right.answers[field].copy()
            # Off by a millionth at one of the setpoints.
            values[2, motor] += 1e-6 * np.abs(values).max()
            wrong = replace(right, answers={**right.answers, field: values})
            assert not evaluate(plan, wrong).closed_form.passed, f"{field} of motor {motor}"


def test_the_wrench_is_scaled_down_where_springs_would_go_slack() -> None:
    whole = Plan(eom.load_robot("planar_2r"), rate=100.0, duration=1.0).wrench
    less = Plan(eom.load_robot("vsa_planar_2r"), rate=100.0, duration=1.0).wrench
    assert np.all(whole.amplitude == 10.0)
    assert np.all((less.amplitude > 0) & (less.amplitude < 10.0))


@pytest.mark.parametrize(("field", "name"), [("effort_rate", "taud "), ("effort_acceleration", "taudd ")])
def test_one_wrong_derivative_is_found_by_differences(run: tuple[Plan, Answers], field: str, name: str) -> None:
    plan, recording = run
    row = plan.count // 2 + 1
    failures = evaluate(plan, tampered(recording, field, slice(row, row + 1), 1e-6)).failures
    assert any(failure.startswith(name + "against numerical derivative") for failure in failures)


def test_the_answers_of_another_robot_are_found() -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    other = replace(robot, joints=(first, replace(second, mass=1.001 * second.mass)))
    plan, of_other = (Plan(of, rate=250.0, duration=0.5) for of in (robot, other))
    result = evaluate(plan, perfect(of_other))
    # The answers are consistent, but not those of this robot.
    assert all(deviation.passed for deviation in result.differentiation)
    assert not result.closed_form.passed


def test_lost_answers_fail_and_the_rest_is_compared(run: tuple[Plan, Answers]) -> None:
    plan, recording = run
    gone = [3, plan.count // 2]
    received = recording.received.copy()
    received[gone] = np.nan
    answers = {field: values.copy() for field, values in recording.answers.items()}
    for values in answers.values():
        values[gone] = np.nan
    result = evaluate(plan, replace(recording, received=received, answers=answers))
    assert result.lost == 2 and len(result.round_trip) == plan.count - 2
    remedy = "run again while the machine is idle, or with a lower --rate"
    assert result.failures == [f"2 of {plan.count} setpoints were not answered: {remedy}"]


def test_no_answer_at_all_fails(run: tuple[Plan, Answers]) -> None:
    plan, recording = run
    nothing = {field: np.full_like(values, np.nan) for field, values in recording.answers.items()}
    result = evaluate(plan, Answers(recording.sent, np.full(plan.count, np.nan), nothing, "numpy"))
    assert result.lost == plan.count
    assert len(result.failures) == 4 and np.isnan(result.percentile(50))


def test_late_setpoints_are_counted() -> None:
    plan = Plan(eom.load_robot("planar_2r"), rate=100.0, duration=1.0)
    recording = perfect(plan)
    late = recording.sent + 0.0105 * (plan.t > 0.505)
    result = evaluate(plan, replace(recording, sent=late, received=late + 3e-4))
    assert result.late == 49 and result.failures == []


@pytest.mark.parametrize("order", [6, 8])
@pytest.mark.parametrize("derivative", [1, 2])
def test_polynomials_up_to_the_order_are_met(derivative: int, order: int) -> None:
    polynomial = np.polynomial.Polynomial(np.arange(1.0, order + 2))
    t = np.linspace(-0.5, 0.5, 21)
    found = differentiate(polynomial(t)[:, np.newaxis], t[1] - t[0], derivative, order)[:, 0]
    np.testing.assert_allclose(found[REACH:-REACH], polynomial.deriv(derivative)(t)[REACH:-REACH], rtol=1e-9)


@pytest.mark.parametrize("order", [6, 8])
@pytest.mark.parametrize("derivative", [1, 2])
def test_half_the_step_is_two_to_the_order_better(derivative: int, order: int) -> None:
    errors = []
    for step in (0.2, 0.1):
        t = step * np.arange(-REACH, REACH + 1)
        found = differentiate(np.exp(t)[:, np.newaxis], step, derivative, order)[REACH, 0]
        errors.append(abs(found - 1))
    assert errors[0] / errors[1] == pytest.approx(2**order, rel=0.1)


@pytest.mark.parametrize("derivative", [1, 2])
def test_a_gap_takes_its_neighbours_with_it_and_no_others(derivative: int) -> None:
    samples = np.ones((30, 2))
    samples[15, 1] = np.nan
    found = differentiate(samples, 0.1, derivative)
    assert np.isfinite(found[REACH:-REACH, 0]).all()
    assert np.isnan(found[15 - REACH : 15 + REACH + 1, 1]).sum() >= 2 * REACH
    assert np.isfinite(found[15 + REACH + 1 : -REACH, 1]).all()
    assert np.isnan(found[:REACH]).all() and np.isnan(found[-REACH:]).all()


def test_too_few_samples_give_nothing() -> None:
    assert np.isnan(differentiate(np.ones((2 * REACH, 3)), 0.1, 1)).all()
