# SPDX-License-Identifier: Apache-2.0
"""Integrators of plants: energy, periods, order of convergence, early ends, and errors."""

import re
from typing import Any

import numpy as np
import pytest
from refusals import refusals
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, SimulationError, simulate
from eom_dynamics.simulation.integration import integrated

INF = float("inf")


def rigid(name: str) -> ElasticPlant:
    return ElasticPlant(ElasticArm(load_robot(name), stiffness=INF, rotor_inertia=0.0))


@pytest.mark.parametrize("angle", [0.1, 2.0, 3.0])
def test_period_of_a_pendulum(angle: float) -> None:
    """T = 4 sqrt(l/g) K(sin²(angle/2)); times of the passages through zero and of the return."""
    plant = rigid("pendulum")
    period = 4 * np.sqrt(0.5 / 9.80665) * ellipk(np.sin(angle / 2) ** 2)
    simulation = simulate(plant, None, period * np.arange(5) / 4, plant.state([angle], [0.0]), absolute_tolerance=1e-14)
    q, _, qd, _ = (part[:, 0] for part in plant.parts(simulation.states))
    late = q[1::2] / qd[1::2]
    assert np.max(np.abs(late)) < 1e-10 * period
    qdd = -9.80665 / 0.5 * np.sin(angle)
    assert abs(qd[4] / qdd) < 1e-10 * period


def test_a_slack_spring_ends_a_simulation() -> None:
    """The link is in equilibrium: s'' = -(30 s + 200 s²)/0.1 from s = (120 - 60)/(2 400) rad."""
    plant = ElasticPlant(ElasticArm(load_robot("vsa_planar_2r")))
    start = plant.on_trajectory(*np.zeros((5, 2)))
    options: Any = {"events": lambda _, y: y[0], "rtol": 1e-10, "atol": 1e-12}
    slack = solve_ivp(lambda _, y: [y[1], -(30 * y[0] + 200 * y[0] ** 2) / 0.1], (0.0, 0.5), [0.075, 0.0], **options)
    expected = float(slack.t_events[0][0])
    for method, step, tolerance in (("DOP853", None, 1e-5), ("euler", 1e-5, 1e-3)):
        with pytest.raises(SimulationError, match=r"tension-only.*joint_2_") as raised:
            simulate(plant, None, [0.0, 0.5], start, method=method, step=step)
        (found,) = re.findall(r"at (\S+) s ", str(raised.value))
        assert float(found) == pytest.approx(expected, rel=tolerance)


def test_euler_is_of_first_order() -> None:
    plant = rigid("planar_2r")
    t, start = [0.0, 0.1, 0.3], plant.state([0.3, 0.8], [1.0, -2.0])
    exact = simulate(plant, None, t, start).states
    errors = [
        np.max(np.abs(simulate(plant, None, t, start, method="euler", step=h).states - exact)) for h in (4e-4, 2e-4)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(1.0, abs=0.05)


def test_a_step_that_is_too_long_is_an_error() -> None:
    plant = ElasticPlant(ElasticArm(load_robot("planar_2r"), rotor_inertia=1e-4))
    start = plant.state([0.3, 0.8], [1.0, -2.0])
    words = r"planar_2r: at .* s the motion leaves all bounds"
    with pytest.raises(SimulationError, match=words):
        simulate(plant, None, [0.0, 10.0], start, method="euler", step=0.05)


def test_a_rejected_step_to_the_end_is_no_standstill() -> None:
    # An oscillator at rest until it is driven: a step to the end is rejected, and thousands of evaluations follow.
    tried: list[float] = []

    def rate(t: float, y: Array) -> Array:
        tried.append(t)
        return np.array([y[1], 4e6 * (max(t - 0.2, 0.0) ** 5 - y[0])])

    options: Any = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-12}
    found = integrated("", rate, (0.0, 1.0), np.zeros(2), **options)
    assert max(tried[:1000]) > 0.99 and len(tried) > 3000
    # It follows the drive x except for x''/w².
    assert found.y[0, -1] == pytest.approx(0.8**5 - 20 * 0.8**3 / 4e6, abs=1e-8)


test_integrators_that_are_refused = refusals(
    ValueError,
    ({"method": "rk5"}, r"method must be one of DOP853, .*, euler, is 'rk5'"),
    ({"method": "euler"}, r"euler needs a step, .* > 0, is None"),
    ({"step": 0.1}, r"DOP853 chooses its steps by tolerances; omit step, or use euler"),
    call=lambda given: simulate(rigid("pendulum"), None, [0.0, 1.0], [0.5, 0.5, 0.0, 0.0], **given),
)
