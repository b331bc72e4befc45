# SPDX-License-Identifier: Apache-2.0
"""Constant efforts and parallel springs of joints: in all efforts and accelerations, in simulation, and in files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from differences import deviation, gradient, polynomial_motion
from hypothesis import given, settings
from trees import MovingTree, moving_trees

from eom_dynamics import Dynamics, ElasticArm, FloatingBase, Joint, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import Mimic, ParallelSpring
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.simulation import ElasticPlant, energy_audit, simulate

METHODS = {"effort": 3, "bias": 2, "gravity": 1}
"""Methods whose efforts include passive ones, and how many of q, qd, qdd they take."""


def held(robot: Robot) -> Robot:
    """The robot with a constant effort and a parallel spring at each joint."""
    joints = [
        replace(joint, constant_effort=0.7 - 0.5 * i, parallel_spring=ParallelSpring(3.0 + i, 0.2 * i - 0.1))
        for i, joint in enumerate(robot.joints)
    ]
    return replace(robot, joints=tuple(joints))


def effort(joint: Joint, q: Array) -> Array:
    spring = joint.parallel_spring
    return joint.constant_effort + spring.stiffness * (q - spring.rest_position)


def law(robot: Robot, q: Array) -> Array:
    """c + K (q - q_0)."""
    return np.stack([effort(j, q[..., i]) for i, j in enumerate(robot.joints)], -1)


@settings(max_examples=8)
@given(tree=moving_trees(3, max_joints=3))
def test_efforts_and_their_time_derivatives(tree: MovingTree) -> None:
    robot = held(tree.robot)
    with_, without = (Dynamics(x, backend="numpy").inverse_dynamics(*tree.states) for x in (robot, tree.robot))
    motion = polynomial_motion(tree.states)
    K = np.array([joint.parallel_spring.stiffness for joint in robot.joints])
    scale = 1 + max(np.max(np.abs(x)) for x in with_)
    for k, own in enumerate([law(robot, motion(0.0)[0]), K * tree.states[1], K * tree.states[2]]):
        assert np.max(np.abs(with_[k] - without[k] - own)) < 1e-13 * scale


@pytest.mark.parametrize("backend", ["native", "casadi", "numpy"])
def test_all_programs(backend: str) -> None:
    if backend == "casadi":
        pytest.importorskip("casadi")
    plain = load_robot("planar_2r")
    robot = held(plain)
    with_, without = Dynamics(robot, backend=backend), Dynamics(plain, backend=backend)
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 2))
    for name, count in METHODS.items():
        states = (q, qd, qdd)[:count]
        assert deviation(getattr(with_, name)(*states) - getattr(without, name)(*states), law(robot, q)) < 1e-13
    tau = with_.effort(q, qd, qdd)
    assert deviation(with_.forward_dynamics(q, qd, tau), qdd) < 1e-12
    by_q = gradient(lambda x: with_.effort(x, qd, qdd), q)
    assert deviation(with_.inverse_dynamics_derivatives(q, qd, qdd)[0], by_q) < 1e-8
    by_q = gradient(lambda x: with_.forward_dynamics(x, qd, tau), q)
    assert deviation(with_.forward_dynamics_derivatives(q, qd, tau)[0], by_q) < 1e-8
    slope = gradient(lambda x: np.atleast_1d(with_.potential_energy(x)), q)
    assert deviation(slope.ravel(), with_.gravity(q)) < 1e-8
    for name in ("kinetic_energy", "momentum"):
        np.testing.assert_array_equal(getattr(with_, name)(q, qd), getattr(without, name)(q, qd))
    np.testing.assert_array_equal(with_.regressor(q, qd, qdd), without.regressor(q, qd, qdd))


def test_on_a_floating_base() -> None:
    """In the efforts of the joints, none on the base."""
    plain = load_robot("planar_2r")
    robot = held(plain)
    with_, without = (FloatingBase(x, backend="numpy") for x in (robot, plain))
    draw = np.random.default_rng(0)
    pose, q, nu, nud = np.eye(4), draw.uniform(-1, 1, 2), draw.uniform(-1, 1, 8), draw.uniform(-1, 1, 8)
    tau = with_.effort(pose, q, nu, nud)
    own = np.concatenate([np.zeros(6), law(robot, q)])
    assert deviation(tau - without.effort(pose, q, nu, nud), own) < 1e-12


def test_mimic_joints() -> None:
    """A follower with the position r q + e adds r times its effort."""
    plain = load_robot("planar_2r")
    follower = replace(plain.joints[1], mimic=Mimic(0, -1.5, 0.3))
    robot = held(replace(plain, joints=(plain.joints[0], follower)))
    bare = replace(plain, joints=(plain.joints[0], follower))
    q = np.array([0.4])
    own = law(robot, np.array([q[0], -1.5 * q[0] + 0.3]))
    found = Dynamics(robot, backend="numpy").gravity(q) - Dynamics(bare, backend="numpy").gravity(q)
    assert deviation(found, np.array([own[0] - 1.5 * own[1]])) < 1e-13


def test_file(tmp_path: Path) -> None:
    robot = held(load_robot("sea_planar_2r"))
    path = tmp_path / "arm.yaml"
    path.write_text(robot_as_yaml(robot).text)
    again = load_robot(path)
    for ours, desired in zip(again.joints, robot.joints, strict=True):
        assert (ours.constant_effort, ours.parallel_spring) == (desired.constant_effort, desired.parallel_spring)


def test_urdf_with_additions(tmp_path: Path) -> None:
    """The parameters that complete a URDF may have them."""
    text = """<robot name="arm"><link name="base"/><link name="body"><inertial><mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
      <joint name="hip" type="continuous"><parent link="base"/><child link="body"/><axis xyz="0 0 1"/></joint>
      </robot>"""
    (tmp_path / "arm.urdf").write_text(text)
    entries = "joints: {hip: {constant_effort: -2.0, parallel_spring: {stiffness: 5.0}}}"
    (tmp_path / "arm.yaml").write_text(f"/**: {{ros__parameters: {{robot: {{urdf: arm.urdf, {entries}}}}}}}")
    (joint,) = load_robot(tmp_path / "arm.yaml").joints
    assert joint.constant_effort == -2.0 and joint.parallel_spring == ParallelSpring(5.0, 0.0)


def test_simulation_conserves_energy() -> None:
    robot = held(load_robot("sea_planar_2r"))
    plant = ElasticPlant(ElasticArm(robot))
    simulation = simulate(plant, None, np.linspace(0.0, 0.3, 7), plant.state([0.3, 0.8], [1.0, -2.0]))
    audit = energy_audit(plant, simulation)
    assert audit.relative_imbalance < 1e-9
    assert np.ptp(audit.kinetic) > 1.0


def test_springs_carry_passive_efforts() -> None:
    """Motors hold against them through the springs of the joints."""
    plain = load_robot("sea_planar_2r")
    robot = held(plain)
    q, zero = np.array([0.3, -0.4]), np.zeros(2)
    with_, without = (ElasticArm(x).feedforward(q, zero, zero, zero, zero) for x in (robot, plain))
    assert deviation(with_.tau - without.tau, law(robot, q)) < 1e-12
    (deflection, *_) = ElasticArm(robot).deflections(with_.tau, zero, zero)
    assert deviation(with_.motor_position - q, deflection) < 1e-12
