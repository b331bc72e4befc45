# SPDX-License-Identifier: Apache-2.0
"""Joint damping and dry friction of a description as part of the efforts."""

from dataclasses import replace

import numpy as np
import pytest
from differences import derivative, deviation, gradient, polynomial_motion
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import MovingTree, moving_trees

from eom_dynamics import Dynamics, ElasticArm, FloatingBase, Robot, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.inertia import Inertial
from eom_dynamics.robot.model import Mimic
from eom_dynamics.simulation import ElasticPlant, energy_audit, simulate
from eom_dynamics.tools.cli.inspect import facts_result

WIDTH = 0.01  # smoothing velocity, rad/s


def rubbing(robot: Robot) -> Robot:
    joints = [replace(joint, damping=0.4 + 0.1 * i, friction=0.7 + 0.2 * i) for i, joint in enumerate(robot.joints)]
    return replace(robot, joints=tuple(joints))


def both(robot: Robot, backend: str = "numpy") -> tuple[Dynamics, Dynamics]:
    return Dynamics(robot, backend=backend, friction=True), Dynamics(robot, backend=backend)


def law(robot: Robot, qd: Array) -> Array:
    D, c = (np.array([getattr(joint, name) for joint in robot.joints]) for name in ("damping", "friction"))
    return D * qd + c * np.tanh(qd / WIDTH)


@settings(max_examples=8)
@given(tree=moving_trees(3, max_joints=3), slow=st.sampled_from([1.0, 0.01]))
def test_efforts_and_their_time_derivatives(tree: MovingTree, slow: float) -> None:
    """With friction less without it is the law, and its derivatives along the motion; slow: within the smoothing."""
    robot, states = rubbing(tree.robot), tree.states * np.array([1.0, slow, 0.01, 1e-3, 1e-3])[:, np.newaxis]
    rough, smooth = both(robot)
    friction = [a - b for a, b in zip(rough.inverse_dynamics(*states), smooth.inverse_dynamics(*states), strict=True)]
    motion = polynomial_motion(states)
    scale = 1 + max(np.max(np.abs(x)) for x in smooth.inverse_dynamics(*states))
    assert np.max(np.abs(friction[0] - law(robot, states[1]))) < 1e-13 * scale
    for k in (1, 2):
        # The law bends within WIDTH, in which the motion stays for a second at these accelerations.
        rate = derivative(lambda t, k=k: law_jet(robot, motion(t), k - 1), step=0.02)
        assert deviation(friction[k], rate, floor=scale) < 1e-8


def law_jet(robot: Robot, states: Array, k: int) -> Array:
    if k == 0:
        return law(robot, states[1])
    D, c = (np.array([getattr(joint, name) for joint in robot.joints]) for name in ("damping", "friction"))
    slope: Array = (D + c / WIDTH * (1 - np.tanh(states[1] / WIDTH) ** 2)) * states[2]
    return slope


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_all_programs(backend: str) -> None:
    """Friction is in the efforts, bias, partial derivatives and accelerations, and in nothing else."""
    robot = rubbing(load_robot("planar_2r"))
    rough, smooth = both(robot, backend)
    q, qd, qdd, tau = np.array([[0.3, -0.8], [0.004, -1.2], [0.5, 0.7], [3.0, -2.0]])
    friction, zero = law(robot, qd), np.zeros(2)
    for name, at in {"effort": (q, qd, qdd), "bias": (q, qd)}.items():
        assert deviation(getattr(rough, name)(*at) - getattr(smooth, name)(*at), friction) < 1e-13
        batch = getattr(rough, name)(*(np.stack([x] * 19) for x in at))
        assert deviation(batch, [getattr(rough, name)(*at)] * 19) < 1e-14
    for name, at in {
        **{"gravity": (q,), "mass_matrix": (q,), "coriolis_matrix": (q, qd), "coriolis_tensor": (q,)},
        **{"momentum": (q, qd), "kinetic_energy": (q, qd), "potential_energy": (q,), "regressor": (q, qd, qdd)},
    }.items():
        assert np.array_equal(getattr(rough, name)(*at), getattr(smooth, name)(*at))
    assert deviation(rough.effort(q, qd, rough.forward_dynamics(q, qd, tau)), tau) < 1e-12
    added = rough.forward_dynamics(q, qd, tau, added_inertia=[0.1, 0.2])
    assert deviation(rough.effort(q, qd, added) + np.array([0.1, 0.2]) * added, tau) < 1e-12
    by_q, by_qd, by_qdd = rough.inverse_dynamics_derivatives(q, qd, qdd)
    # Differences over 5e-4 rad/s, less than WIDTH.
    scaled = gradient(lambda x: rough.effort(q, 1e-2 * x, qdd), qd / 1e-2) / 1e-2
    assert deviation(by_qd, scaled) < 1e-9
    for found, wanted in zip((by_q, by_qdd), smooth.inverse_dynamics_derivatives(q, qd, qdd)[::2], strict=True):
        assert deviation(found, wanted) < 1e-13
    # At rest there is no friction.
    assert np.array_equal(rough.effort(q, zero, qdd), smooth.effort(q, zero, qdd))


def test_friction_of_joints_on_a_floating_base() -> None:
    base = Inertial.about_center(4.0, np.array([0.1, -0.05, 0.2]), np.diag([0.1, 0.2, 0.25]))
    robot = replace(rubbing(load_robot("planar_2r")), base=base)
    rough, smooth = (FloatingBase(robot, backend="numpy", friction=friction) for friction in (True, False))
    rng = np.random.default_rng(3)
    pose, q, (nu, nud, tau) = lie.exp(rng.uniform(-1, 1, 6)), rng.uniform(-1, 1, 2), rng.uniform(-1, 1, (3, 8))
    friction = np.concatenate([np.zeros(6), law(robot, nu[6:])])
    assert deviation(rough.effort(pose, q, nu, nud) - smooth.effort(pose, q, nu, nud), friction) < 1e-12
    accelerations = smooth.forward_dynamics(pose, q, nu, tau - friction)
    assert deviation(rough.forward_dynamics(pose, q, nu, tau), accelerations) < 1e-12


def test_friction_of_mimic_joints() -> None:
    robot = rubbing(load_robot("planar_2r"))
    leader, follower = robot.joints
    coupled = replace(robot, joints=(leader, replace(follower, mimic=Mimic(0, -1.5, 0.2))))
    rough, smooth = both(coupled)
    q, qd = np.array([0.3]), np.array([0.02])
    added = rough.bias(q, qd) - smooth.bias(q, qd)
    assert deviation(added, [law(robot, np.array([0.02, -0.03])) @ [1.0, -1.5]]) < 1e-12


def test_simulated_friction_is_heat() -> None:
    robot = replace(rubbing(load_robot("planar_2r")), joint_friction=True)
    plant = ElasticPlant(ElasticArm(robot, stiffness=[300.0, np.inf]))
    simulation = simulate(plant, None, np.linspace(0.0, 0.05, 7), plant.state([0.3, 0.8], [1.0, -2.0]))
    assert simulation.heat[-1] > 0.03 and np.all(np.diff(simulation.heat) > 0)
    assert energy_audit(plant, simulation) < 1e-9
    rate = law(robot, plant.parts(simulation.states[3]).qd) @ plant.parts(simulation.states[3]).qd
    assert plant.rate_and_powers(simulation.states[3], np.zeros(2))[1][1] == pytest.approx(rate, rel=1e-13)


@pytest.mark.parametrize(("included", "words"), [(False, "not part of the efforts"), (True, "part of the efforts")])
def test_inspect_says_so(included: bool, words: str) -> None:
    robot = replace(rubbing(load_robot("planar_2r")), joint_friction=included)
    text = facts_result(robot).as_text()
    (line,) = (line for line in text.splitlines() if line.startswith("joint damping and friction: "))
    assert line.split("; ")[1].startswith(words) and "all joints" in line
    for joint in robot.joints:
        assert f"\n{joint.name}: damping {joint.damping:g} N m s/rad, friction {joint.friction:g} N m" in text
    assert "joint damping and friction" not in facts_result(load_robot("planar_2r")).as_text()
