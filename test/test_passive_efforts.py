# SPDX-License-Identifier: Apache-2.0
"""Constant efforts and parallel springs of joints: every kind in every route, against formulas and differences."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from differences import derivative, deviation, gradient, polynomial_motion
from scipy.interpolate import CubicSpline
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.actuators.parallel_springs import (
    PARALLEL_LAWS,
    Anchors,
    GasLaw,
    ParallelSpring,
    SignedLinearLaw,
    TableLaw,
)
from eom_dynamics.actuators.springs import CubicSpring, DeadZoneSpring, ExponentialSpring, PolynomialSpring
from eom_dynamics.arrays import Array
from eom_dynamics.equations import (
    floating_equations_of_motion,
    gravity_from_jacobians,
    spatial_equations_of_motion,
    system_form,
)
from eom_dynamics.robot.model import Mimic
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.simulation import ElasticPlant, energy, energy_audit, simulate

CONSTANT = -1.3

POINTS, EFFORTS = np.array([-1.2, -0.5, 0.1, 0.9, 1.5]), np.array([3.0, -1.0, 2.0, 2.5, -4.0])
SPLINE = CubicSpline(POINTS, EFFORTS, bc_type="natural")

Law = Callable[[Any], Any]


def _table(x: Any) -> Any:
    inside = np.clip(x, POINTS[0], POINTS[-1])
    return SPLINE(inside) + SPLINE(inside, 1) * (x - inside)


def _anchored(law: Law, a: float, b: float, aligned: float, rest: float) -> Law:
    """The effort by the force along the line between the anchors and its lever a b sin / l, of plane geometry."""

    def effort(q: Any) -> Any:
        parent, link = np.array([a, 0.0]), b * np.array([np.cos(q - aligned), np.sin(q - aligned)])
        line = np.moveaxis(np.moveaxis(link, 0, -1) - parent, -1, 0)
        length = np.hypot(*line)
        lever = (link[0] * line[1] - link[1] * line[0]) / length
        return law(length - rest) * lever

    return effort


def _gas(force: float, stroke: float, ratio: float, n: float) -> Law:
    gas = stroke / (1 - ratio ** (-1 / n))
    return lambda x: -force * (gas / (gas + np.sign(force) * x)) ** n


ANCHORS = Anchors(0.5, 0.2, -2.0, 0.65)
GEOMETRY = (0.5, 0.2, -2.0, 0.65)

KINDS: dict[str, tuple[ParallelSpring, Law]] = {
    "linear": (ParallelSpring(SignedLinearLaw(-7.0), 0.3), lambda q: -7.0 * (q - 0.3)),
    "coil": (ParallelSpring(SignedLinearLaw(900.0), anchors=ANCHORS), _anchored(lambda x: 900.0 * x, *GEOMETRY)),
    "table": (ParallelSpring(TableLaw(POINTS, EFFORTS), 0.2), lambda q: _table(q - 0.2)),
    "table of a length": (
        ParallelSpring(TableLaw(POINTS / 4, EFFORTS), anchors=ANCHORS),
        _anchored(lambda x: _table(4 * x), *GEOMETRY),
    ),
    "gas": (ParallelSpring(GasLaw(400.0, 0.3, 1.4), anchors=ANCHORS), _anchored(_gas(400.0, 0.3, 1.4, 1.0), *GEOMETRY)),
    "gas, adiabatic": (
        ParallelSpring(GasLaw(400.0, 0.3, 1.4, 1.4), anchors=ANCHORS),
        _anchored(_gas(400.0, 0.3, 1.4, 1.4), *GEOMETRY),
    ),
    "gas traction": (ParallelSpring(GasLaw(-9.0, 1.0, 1.3, 1.2), -1.5), lambda q: _gas(-9.0, 1.0, 1.3, 1.2)(q + 1.5)),
    "cubic": (ParallelSpring(CubicSpring(3.0, 5.0), 0.1), lambda q: 3 * (q - 0.1) + 5 * (q - 0.1) ** 3),
    "polynomial": (
        ParallelSpring(PolynomialSpring(np.array([3.0, 1.0, 2.0])), 0.1),
        lambda q: 3 * (q - 0.1) + (q - 0.1) ** 2 + 2 * (q - 0.1) ** 3,
    ),
    "exponential": (ParallelSpring(ExponentialSpring(3.0, 2.0)), lambda q: 1.5 * np.sinh(2 * q)),
    "dead zone": (
        ParallelSpring(DeadZoneSpring(9.0, 1.0, 0.3, 0.2)),
        lambda q: q + 4 * (q - 0.3 + np.hypot(q - 0.3, 0.2)) - 4 * (-q - 0.3 + np.hypot(-q - 0.3, 0.2)),
    ),
}
"""Springs of every law and mount, and the joint effort that holds them, in plain NumPy."""

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
FEW_KINDS = pytest.mark.parametrize("kind", ["table of a length", "gas, adiabatic", "dead zone"])

# Of rounding where efforts of a few hundred cancel; differences are of order 10 with steps of 0.01.
ROUNDING, DIFFERENCES = 1e-12, 1e-7


def held(robot: eom.Robot, kind: str) -> eom.Robot:
    first, second, *others = robot.joints
    first, second = replace(first, constant_effort=CONSTANT), replace(second, parallel_spring=KINDS[kind][0])
    return replace(robot, joints=(first, second, *others))


def law(kind: str, q: Array) -> Array:
    own = np.zeros_like(q)
    own[..., 0], own[..., 1] = CONSTANT, KINDS[kind][1](q[..., 1])
    return own


def drawn(*shape: int) -> Array:
    return np.random.default_rng(1).uniform(-1, 1, shape)


def test_every_law_is_tested() -> None:
    assert {spring.law.kind for spring, _ in KINDS.values()} == set(PARALLEL_LAWS)


@EVERY_KIND
def test_dynamics(kind: str) -> None:
    plain = eom.load_robot("planar_2r")
    robot = held(plain, kind)
    with_, without = (eom.Dynamics(x, backend="numpy") for x in (robot, plain))
    motion = drawn(5, 2)
    q, qd, qdd = motion[:3]
    along = polynomial_motion(motion)
    own = lambda t: law(kind, along(t)[0])  # noqa: E731
    rates = [own(0.0), derivative(own, 1e-3), derivative(lambda t: derivative(lambda s: own(t + s), 3e-3), 3e-3)]
    found = [x - y for x, y in zip(with_.inverse_dynamics(*motion), without.inverse_dynamics(*motion), strict=True)]
    scale = max(np.max(np.abs(x)) for x in with_.inverse_dynamics(*motion))
    for x, desired, close in zip(found, rates, (ROUNDING, 1e-8, 1e-5), strict=True):
        assert np.max(np.abs(x - desired)) < close * scale
    for name, states in {"effort": (q, qd, qdd), "bias": (q, qd), "gravity": (q,)}.items():
        difference = getattr(with_, name)(*states) - getattr(without, name)(*states)
        assert deviation(difference, law(kind, q), floor=scale) < ROUNDING
    tau = with_.effort(q, qd, qdd)
    assert deviation(with_.forward_dynamics(q, qd, tau), qdd, floor=scale) < ROUNDING
    by_q = gradient(lambda x: with_.effort(x, qd, qdd), q, 1e-3)
    assert deviation(with_.inverse_dynamics_derivatives(q, qd, qdd)[0], by_q) < DIFFERENCES
    by_q = gradient(lambda x: with_.forward_dynamics(x, qd, tau), q, 1e-3)
    assert deviation(with_.forward_dynamics_derivatives(q, qd, tau)[0], by_q) < DIFFERENCES
    assert deviation(gradient(with_.potential_energy, q, 1e-3), with_.gravity(q)) < DIFFERENCES
    for name in ("kinetic_energy", "momentum"):
        np.testing.assert_array_equal(getattr(with_, name)(q, qd), getattr(without, name)(q, qd))
    Y = with_.regressor(q, qd, qdd)
    assert deviation(Y @ with_.inertial_parameters + law(kind, q), tau, floor=scale) < ROUNDING


@FEW_KINDS
def test_closed_forms(kind: str) -> None:
    robot = held(eom.load_robot("planar_2r"), kind)
    dynamics = eom.Dynamics(robot, backend="numpy")
    q, qd, qdd, qddd, qdddd = drawn(5, 2)
    efforts = dynamics.inverse_dynamics(q, qd, qdd, qddd, qdddd)
    for closed_form in (eom.equations_of_motion, spatial_equations_of_motion):
        for x, y in zip(closed_form(robot, q, qd, qdd, qddd).efforts(qdddd), efforts, strict=True):
            assert deviation(x, y, floor=np.max(np.abs(efforts))) < ROUNDING
    assert deviation(system_form(robot, q, qd, qdd).tau, efforts[0]) < ROUNDING
    assert deviation(gravity_from_jacobians(robot, q), dynamics.gravity(q)) < ROUNDING


@pytest.mark.parametrize("kind", ["table", "gas, adiabatic", "exponential"])
def test_lagrange(kind: str) -> None:
    robot = held(eom.load_robot("planar_2r"), kind)
    system, dynamics = eom.lagrange.robot_lagrangian(robot), eom.Dynamics(robot, backend="numpy")
    for q in (drawn(2), np.array([1.8, 1.9])):  # the second is beyond the last point of the table
        found = system.gravity.subs(dict(zip(system.q, q.tolist(), strict=True))).evalf()
        assert deviation(np.array(found, dtype=float).ravel(), dynamics.gravity(q)) < 1e-9


@FEW_KINDS
def test_floating_base(kind: str) -> None:
    plain = eom.load_robot("planar_2r")
    robot = held(plain, kind)
    with_, without = (eom.FloatingBase(x, backend="numpy") for x in (robot, plain))
    pose, q, nu, nud = np.eye(4), drawn(2), drawn(8), drawn(8)[::-1]
    tau, own = with_.effort(pose, q, nu, nud), np.append(np.zeros(6), law(kind, q))
    assert deviation(tau - without.effort(pose, q, nu, nud), own, floor=np.max(np.abs(tau))) < ROUNDING
    assert deviation(with_.gravity(pose, q) - without.gravity(pose, q), own, floor=np.max(np.abs(tau))) < ROUNDING
    closed = floating_equations_of_motion(robot, pose, q, nu).efforts(nud)[0]
    assert deviation(closed, tau) < ROUNDING
    energy = derivative(lambda t: with_.potential_energy(pose, q + t * np.eye(2)[1]), 1e-3)
    assert deviation(energy, with_.gravity(pose, q)[7], floor=np.max(np.abs(tau))) < DIFFERENCES


@pytest.mark.parametrize("kind", ["coil", "gas, adiabatic"])
def test_simulation_conserves_energy(kind: str) -> None:
    robot = held(eom.load_robot("sea_planar_2r"), kind)
    plant = ElasticPlant(eom.ElasticArm(robot))
    simulation = simulate(plant, None, np.linspace(0.0, 0.1, 3), plant.state([0.3, 0.8], [1.0, -2.0]))
    assert energy_audit(plant, simulation) < 1e-8
    assert np.ptp(energy(plant, simulation.states).kinetic) > 0.1


def test_mimic_joints() -> None:
    plain = eom.load_robot("planar_2r")
    follower = replace(plain.joints[1], mimic=Mimic(0, -1.5, 0.3))
    bare = replace(plain, joints=(plain.joints[0], follower))
    robot, q = held(bare, "table"), np.array([0.4])
    own = law("table", np.array([q[0], -1.5 * q[0] + 0.3]))
    dynamics = eom.Dynamics(robot, backend="numpy")
    found = dynamics.gravity(q) - eom.Dynamics(bare, backend="numpy").gravity(q)
    assert deviation(found, np.array([own[0] - 1.5 * own[1]])) < ROUNDING
    slope = np.atleast_1d(derivative(lambda t: dynamics.potential_energy(q + t), 1e-3))
    assert deviation(slope.ravel(), dynamics.gravity(q)) < DIFFERENCES


@EVERY_KIND
def test_files(kind: str, tmp_path: Path) -> None:
    robot = held(eom.load_robot("sea_planar_2r"), kind)
    (tmp_path / "arm.yaml").write_text(text := robot_as_yaml(robot).text)
    parameters = yaml.safe_load(text)["/**"]["ros__parameters"]["robot"]
    for again in (eom.load_robot(tmp_path / "arm.yaml"), eom.robot_from_parameters(parameters)):
        assert robot_as_yaml(again).text == text
        assert again.joints[0].constant_effort == CONSTANT
    assert any("parallel springs are omitted: joint_2" in line for line in robot_as_urdf(robot).lost)


def hip(folder: Path, entries: str, kind: str = "continuous") -> eom.Robot:
    (folder / "arm.urdf").write_text(urdf_arm(joints=("hip",)).replace('type="revolute"', f'type="{kind}"'))
    (folder / "arm.yaml").write_text(
        f"/**: {{ros__parameters: {{robot: {{urdf: arm.urdf, joints: {{hip: {{{entries}}}}}}}}}}}"
    )
    return eom.load_robot(folder / "arm.yaml")


ANCHORED = "anchors: {parent: 0.5, link: 0.2, aligned_position: 0.1, rest_length: 0.6}"


@pytest.mark.parametrize(
    ("entries", "kind", "reason"),
    [
        ("{stiffness: 5.0, rest: 1.0}", "continuous", "parallel_spring.rest: unknown entry"),
        ("{type: variable, stiffness: 5.0}", "continuous", "parallel_spring.type: must be one of cubic"),
        (f"{{stiffness: 5.0, {ANCHORED}}}", "prismatic", "anchors: a prismatic joint has none"),
        (f"{{stiffness: 5.0, rest_position: 0.1, {ANCHORED}}}", "revolute", "rest_position: anchors have none"),
        (f"{{stiffness: 5.0, {ANCHORED.replace('0.2', '0.5')}}}", "revolute", "anchors.link: must differ from parent"),
        (f"{{stiffness: 5.0, {ANCHORED.replace('0.2', '-1.0')}}}", "revolute", "anchors.link: must be pos"),
        ("{type: gas, force: 5.0, stroke: 0.1, force_ratio: 0.9}", "revolute", "force_ratio: must be greater than 1"),
        ("{type: tabulated, deflections: [0.0, 0.0], efforts: [1.0, 2.0]}", "revolute", "increasing"),
        ("{type: tabulated, deflections: [0.0, 1.0], efforts: [1.0]}", "revolute", "efforts: must have as many"),
    ],
)
def test_refused(entries: str, kind: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(eom.RobotDescriptionError, match=reason.replace("{", r"\{")):
        hip(tmp_path, f"parallel_spring: {entries}", kind)


def test_gas_without_volume_is_not_a_number() -> None:
    spring = ParallelSpring(GasLaw(100.0, 0.2, 2.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        assert np.isnan(spring.energy(np.float64(-0.5)))
