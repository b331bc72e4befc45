# SPDX-License-Identifier: Apache-2.0
"""Checks of the node's answers: right ones pass, and every kind of wrong one is found and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from recordings import recorded
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.control.fields import COMMAND_FIELDS
from eom_dynamics.tools.demo.evaluate import TOLERANCE, Plan, evaluate


@pytest.fixture(scope="module", autouse=True)
def closed_form_once() -> Iterator[None]:
    """Compute the closed form at each time of a plan once, for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "closed_form", cache(Plan.closed_form))
        yield


Answers = dict[str, np.ndarray]


@pytest.fixture(scope="module", params=[("planar_2r", 1000.0, 0.5), ("iiwa", 200.0, 0.25)], ids=str)
def run(request) -> tuple[Plan, Answers]:
    robot, rate, duration = request.param
    plan = Plan(eom.load_robot(robot), rate=rate, duration=duration)
    return plan, recorded(plan)


def tampered(answers: Answers, field: str, row: int, change: float, motor: int = -1) -> Answers:
    """Return the answers with a number of a field off by a share of the largest."""
    values = answers[field].copy()
    values[row, motor] += change * np.abs(values).max()
    return {**answers, field: values}


def test_right_answers_pass(run: tuple[Plan, Answers]) -> None:
    plan, answers = run
    count, result = len(plan.t), evaluate(plan, answers)
    assert result.failures == [] and max(result.deviations.values()) < TOLERANCE
    assert (result.sent, result.received, result.lost, result.late) == (count, count, 0, 0)
    assert result.rate == pytest.approx(plan.rate)
    assert list(result.round_trip.values()) == pytest.approx([3e-4] * 3)


@pytest.mark.parametrize("wrong", [1e-6, np.nan])
def test_a_single_wrong_number_is_found(wrong: float) -> None:
    """At a setpoint that is not compared with the closed form."""
    plan = Plan(eom.load_robot("planar_2r"), rate=1000.0, duration=0.5)
    (failure,) = evaluate(plan, tampered(recorded(plan), "effort_rate", 101, wrong)).failures
    assert failure.startswith("every answer against feedforward")


@pytest.mark.parametrize(
    ("name", "rotor_model"),
    [("planar_pr", "reduced"), ("vsa_planar_2r", "reduced"), ("sea_planar_2r", "complete"), ("dual_arm", "reduced")],
)
def test_right_answers_of_other_robots_pass(name: str, rotor_model: str) -> None:
    robot = eom.load_robot(name)
    plan = Plan(replace(robot, rotor_model=rotor_model), rate=200.0, duration=0.1)
    assert evaluate(plan, recorded(plan)).failures == []


LOSSY = Actuator(Friction(0.5, 0.4, 0.6, 0.3, 0.02), Gear(0.8))
TWO = eom.load_robot("planar_2r")
COUPLED = CoupledSpring([[500.0, 40.0], [40.0, 300.0]])
KINDS = ("damped", "variable", "tabulated_one_sided", "antagonistic_exponential")
DRIVES = {
    **{kind: with_springs(TWO, EVERY_KIND[kind], actuator=LOSSY) for kind in KINDS},
    "coupled": replace(TWO, coupled_stiffness=((0, 1), COUPLED)),
    "differential": replace(TWO, transmission=((0, 1), Transmission([[0.5, 0.5], [0.5, -0.5]]))),
    "geared rotors": replace(
        with_springs(TWO, EVERY_KIND["cubic"], actuator=LOSSY, gear_ratio=50.0), rotor_model="complete"
    ),
}
"""Arms with springs that differ in kind, gears with loss and friction, and other drives of two joints."""


@pytest.mark.parametrize("kind", DRIVES)
def test_every_wrong_motor_quantity_is_found_with_any_springs(kind: str) -> None:
    # Few setpoints, so that each is compared.
    plan = Plan(DRIVES[kind], rate=100.0, duration=0.04)
    right = recorded(plan)
    assert evaluate(plan, right).failures == []
    for field in COMMAND_FIELDS:
        for motor in range(right[field].shape[1]):
            found = evaluate(plan, tampered(right, field, 2, 1e-6, motor))
            assert min(found.deviations.values()) > TOLERANCE and len(found.failures) == 2, f"{field} of motor {motor}"


def test_the_wrench_is_scaled_down_where_springs_would_go_slack() -> None:
    whole, less = (Plan(eom.load_robot(x), rate=100.0, duration=1.0) for x in ("planar_2r", "vsa_planar_2r"))
    assert whole.share == 1.0 and np.max(whole.wrench[0]) == pytest.approx(10.0)
    assert 0 < less.share < 1 and np.max(less.wrench[0]) == pytest.approx(10.0 * less.share)


def test_lost_answers_fail_and_the_rest_is_compared(run: tuple[Plan, Answers]) -> None:
    plan, answers = run
    gone = [3, len(plan.t) // 2]
    lost = {name: answers[name].copy() for name in (*COMMAND_FIELDS, "round_trip")}
    for values in lost.values():
        values[gone] = np.nan
    result = evaluate(plan, answers | lost)
    assert result.lost == 2
    remedy = "run again while the machine is idle, or with a lower --rate"
    assert result.failures == [f"2 of {len(plan.t)} setpoints were not answered: {remedy}"]
    none = evaluate(plan, recorded(plan, lost=len(plan.t)))
    assert none.lost == len(plan.t) and len(none.failures) == 3 and np.isnan(none.round_trip["p50"])


def test_late_setpoints_are_counted() -> None:
    plan = Plan(eom.load_robot("planar_2r"), rate=100.0, duration=1.0)
    answers = recorded(plan)
    result = evaluate(plan, {**answers, "sent": answers["sent"] + 0.0105 * (plan.t > 0.505)})
    assert result.late == 49 and result.failures == []
