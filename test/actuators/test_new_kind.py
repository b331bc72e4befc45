# SPDX-License-Identifier: Apache-2.0
"""A new kind of spring is one class: robot files, feedforward, export and identification take it from there."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from differences import derivative
from exported import export, passes_c_test
from scipy.optimize import brentq

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators.springs import SPRINGS, Spring
from eom_dynamics.arrays import Array
from eom_dynamics.codegen.expressions import Op
from eom_dynamics.export import PLANT
from eom_dynamics.identification.elastic.options import ElasticOptions, check_elastic
from eom_dynamics.identification.elastic.springs import fit_spring
from eom_dynamics.robot import robot_from_parameters
from eom_dynamics.robot.writers.parameters import robot_as_parameters
from eom_dynamics.tools.cli.identify import add_arguments
from eom_dynamics.trajectory import paper_motion

CONFIG = Path(__file__).parents[2] / "config" / "pendulum.yaml"
MOTION = paper_motion(1)


@pytest.fixture(scope="module")
def bilinear(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The example of the docs: all that there is of the kind, registered for this module."""
    pytest.importorskip("sybil", reason="sybil is not installed")
    from pages import run_page

    yield run_page("architecture", tmp_path_factory.mktemp("page"))["BilinearSpring"]
    del SPRINGS["bilinear"]


@pytest.fixture(scope="module")
def arm(bilinear: type[Spring], tmp_path_factory: pytest.TempPathFactory) -> ElasticArm:
    linear = "{type: linear, stiffness: 200.0}"
    text = CONFIG.read_text()
    assert linear in text
    file = tmp_path_factory.mktemp("robots") / "pendulum.yaml"
    file.write_text(
        text.replace(linear, "{type: bilinear, stiffness: 300.0, push_stiffness: 90.0, width: 0.01}"), encoding="utf-8"
    )
    return ElasticArm(load_robot(file))


def effort(delta: Any) -> Any:
    return 195 * delta + 105 * (np.sqrt(delta**2 + 1e-4) - 0.01)


def motion(t: Any) -> Array:
    return np.array(MOTION.derivatives(t))


def test_robot_file(arm: ElasticArm, bilinear: type[Spring]) -> None:
    again = robot_from_parameters(robot_as_parameters(arm.robot, []))
    for robot in (arm.robot, again):
        spring = robot.joints[0].spring
        assert isinstance(spring, bilinear) and vars(spring) == {"pull": 300.0, "push": 90.0, "width": 0.01}
    assert arm.stiffness == pytest.approx(195.0, rel=1e-15)


def test_feedforward(arm: ElasticArm) -> None:
    """By SciPy's root and differences in time; a batch has the bits of its states."""
    t = np.linspace(0.0, 3.0, 9)

    def theta(time: float) -> float:
        q, *rates = motion(time)
        tau = arm.dynamics.inverse_dynamics(q, *rates)[0][0]
        return float(q[0] + brentq(lambda delta: effort(delta) - tau, -1.0, 1.0, xtol=1e-16, rtol=1e-15))

    batch = arm.feedforward(*motion(t))
    for k, time in enumerate(t):
        one = arm.feedforward(*motion(time))
        assert [x.tobytes() for x in one] == [x[k].tobytes() for x in batch]
        assert one.motor_position[0] == pytest.approx(theta(time), rel=1e-13)
        velocity = derivative(lambda s, time=time: theta(time + s), 2e-3)
        assert one.motor_velocity[0] == pytest.approx(float(velocity), rel=1e-9, abs=1e-9)
        acceleration = derivative(lambda s, time=time: arm.feedforward(*motion(time + s)).motor_velocity[0], 2e-3)
        assert one.motor_acceleration[0] == pytest.approx(float(acceleration), rel=1e-8, abs=1e-8)
        assert one.motor_effort[0] == pytest.approx(0.05 * one.motor_acceleration[0] + one.tau[0], rel=1e-14)
    assert np.ptp(np.sign(batch.tau)) == 2, "both sides of the knee"


def test_export(arm: ElasticArm, tmp_path: Path) -> None:
    exported, _ = export(arm.robot, "c", tmp_path, [PLANT])
    assert exported.programs["motors"].uses(Op.ROOT)
    passes_c_test(tmp_path, "-lm")


def test_identification(arm: ElasticArm, bilinear: type[Spring]) -> None:
    t = np.linspace(0, 10, 1000)
    delta, deltad = 0.05 * np.sin(4 * t), 0.2 * np.cos(4 * t)
    noise = 0.02 * np.random.default_rng(0).normal(size=1000)
    found = fit_spring(delta, deltad, effort(delta) + 0.5 * deltad + noise, "bilinear")
    assert isinstance(found.spring, bilinear) and found.law == "bilinear" and not found.table
    for name, value in (("stiffness", 300.0), ("push_stiffness", 90.0), ("width", 0.01), ("damping", 0.5)):
        assert found.parameters[name][0] == pytest.approx(value, abs=4 * found.parameters[name][1])
        assert found.parameters[name][1] < 0.1 * value
    check_elastic(arm.robot)
    assert ElasticOptions({None: "bilinear"}).law(arm.robot.joints[0]) == "bilinear"
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser)
    with pytest.raises(argparse.ArgumentError, match=r"'soft'.*bilinear"):
        parser.parse_args(["--spring-law", "soft"])
