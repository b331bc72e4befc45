# SPDX-License-Identifier: Apache-2.0
"""Rigid arms: rotor inertia behind gears, free fall and tool wrenches, by textbook equations."""

from dataclasses import replace

import numpy as np
import pytest
from chains import packaged_parameters
from mujoco_arms import text
from refusals import refusals

import eom_dynamics as eom
from eom_dynamics.simulation import ElasticPlant, SimulationError, energy_audit, simulate
from eom_dynamics.tools.cli.main import main

G = 9.80665
LEG = eom.load_robot("leg")


def test_rotors_behind_gears_add_their_inertia_to_that_of_the_links() -> None:
    """n² I_m of De Luca, "Dynamics of an actuated pendulum"; elsewhere a rotor counts once, on the motor side."""
    robot = replace(LEG, joints=tuple(replace(joint, gear_ratio=50.0) for joint in LEG.joints))
    dynamics, links = (eom.Dynamics(robot, rotor_inertia=x) for x in (True, False))
    q, qd, *rates = motion = np.random.default_rng(1).uniform(-2, 2, (5, 3))
    tau = dynamics.inverse_dynamics(*motion)
    np.testing.assert_allclose(np.subtract(tau, links.inverse_dynamics(*motion)), 0.02 * np.array(rates), atol=1e-13)
    np.testing.assert_allclose(dynamics.mass_matrix(q) - links.mass_matrix(q), 0.02 * np.eye(3), atol=1e-14)
    np.testing.assert_allclose(dynamics.forward_dynamics(q, qd, tau[0]), rates[0], rtol=1e-11)
    energy = links.kinetic_energy(q, qd) + 0.01 * qd @ qd
    np.testing.assert_allclose(dynamics.kinetic_energy(q, qd), energy, rtol=1e-13)
    motor = eom.ElasticArm(dynamics.robot, backend="numpy").feedforward(*motion).motor_effort
    np.testing.assert_allclose(motor, tau[0], rtol=1e-12)


def test_inspect_tells_where_rotors_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "leg"]) == 0
    assert "rotor inertia of rigid joints: all joints; part of motor efforts, not of" in capsys.readouterr().out
    assert main(["inspect", "planar_2r"]) == 0
    assert "rotor inertia of rigid joints" not in capsys.readouterr().out


def test_wrench_at_the_tip_of_an_elastic_arm_is_an_effort_on_its_links() -> None:
    """In both rotor models: M q̈ grows by -J' W, J of Lynch and Park, chapter 5; motors do not feel it immediately."""
    for model in ("reduced", "complete"):
        plant = ElasticPlant(eom.ElasticArm(replace(eom.load_robot("planar_2r"), rotor_model=model)))
        state, effort = plant.state([0.3, 0.8], [1.0, -2.0]), np.zeros(2)
        W, s, c = np.array([0.0, 0.0, 0.2, 3.0, -1.0, 0.0]), np.sin(0.8), np.cos(0.8)
        J = np.array([[1.0, 1.0], [0.5 * s, 0.0], [0.5 * c + 0.4, 0.4]])
        change = plant.rate(state, effort, wrench=W) - plant.rate(state, effort)
        moved = plant.inertia.matrix(state[:2]) @ np.array([*change[4:6], *change[6:]])
        np.testing.assert_allclose(moved, [*(-J.T @ W[2:5]), 0.0, 0.0], atol=1e-12)


test_bad_wrenches = refusals(
    (TypeError, eom.StateError, SimulationError),
    (3, "wrench must be a function of time and state, or None, is 3"),
    (lambda *_: np.zeros(3), r"leg: wrench must return wrenches of shape \(6,\), returns \(3,\)"),
    (lambda *_: np.full(6, np.nan), "at 0 s: wrench returns wrenches that are not finite"),
    call=lambda wrench: simulate(
        ElasticPlant(eom.ElasticArm(LEG)),
        None,
        [0.0, 0.1],
        np.zeros(12),
        wrench=wrench,  # type: ignore[arg-type]
    ),
)


def _mjcf() -> str:
    """The leg in MuJoCo, from its file, with rotor inertias as armatures."""
    parameters = packaged_parameters("leg")
    bodies = ""
    for name in parameters["joint_names"]:
        joint = parameters["joints"][name]
        xx, xy, xz, yy, yz, zz = joint["inertia"]
        bodies += (
            f'<body pos="{text(joint["origin"]["xyz"])}"><joint axis="{text(joint["screw"][:3])}" '
            f'armature="{joint["rotor_inertia"]}"/><inertial pos="{text(joint["center_of_mass"])}" '
            f'mass="{joint["mass"]}" fullinertia="{text([xx, yy, zz, xy, xz, yz])}"/>'
        )
    return (
        '<mujoco><compiler angle="radian" inertiafromgeom="false"/><option timestep="1e-3" integrator="RK4" '
        f'gravity="0 0 {-G}"/><worldbody>{bodies}{"</body>" * 3}</worldbody></mujoco>'
    )


def test_free_fall_of_a_leg_is_that_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    start, rates = [0.1, 0.5, -1.0], [0.5, 0.0, 1.0]
    plant = ElasticPlant(eom.ElasticArm(LEG))
    found = simulate(plant, None, [0.0, 0.4], plant.state(start, rates))
    model = mujoco.MjModel.from_xml_string(_mjcf())
    data = mujoco.MjData(model)
    data.qpos, data.qvel = start, rates
    for _ in range(400):
        mujoco.mj_step(model, data)
    # MuJoCo's Runge-Kutta method of order 4 at 1 ms.
    q, _, qd, _ = plant.parts(found.states[-1])
    np.testing.assert_allclose([q, qd], [data.qpos, data.qvel], atol=1e-8)
    assert energy_audit(plant, found) < 1e-11
