# SPDX-License-Identifier: Apache-2.0
"""Robots written as MJCF: MuJoCo has their dynamics, and moves elastic arms as the feedforward plans."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from chains import fixed_case
from mujoco_reference import mujoco_dynamics
from same_dynamics import assert_same_dynamics
from urdf_arms import urdf_arm

from eom_dynamics import ElasticArm, Robot, RobotDescriptionError, equations_of_motion, load_robot, packaged_robots
from eom_dynamics.actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from eom_dynamics.actuators.springs import RIGID, CubicSpring, DampedSpring, LinearSpring
from eom_dynamics.arrays import Array
from eom_dynamics.robot.inertia import Inertial
from eom_dynamics.robot.model import Limits
from eom_dynamics.robot.writers.mjcf import robot_as_mjcf

TRIANGLE = {"iiwa"}  # robots with inertia that MuJoCo refuses, and the writer therefore changes


@pytest.fixture(autouse=True)
def _folder_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MuJoCo writes its warnings to MUJOCO_LOG.TXT in the working folder."""
    monkeypatch.chdir(tmp_path)


def loaded(text: str) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_robot(text)


@pytest.mark.parametrize("name", [name for name in packaged_robots() if name not in TRIANGLE])
def test_packaged_robots_without_springs_are_the_same_again(name: str) -> None:
    robot = load_robot(name)
    base = Inertial.about_center(2.0, np.array([0.1, 0.0, 0.2]), np.diag([0.2, 0.3, 0.25]))
    robot = replace(robot, joints=tuple(replace(joint, spring=RIGID) for joint in robot.joints), base=base)
    again = loaded(robot_as_mjcf(robot).text)
    assert_same_dynamics(robot, again)
    assert again.joint_names == robot.joint_names
    assert [tool.name for tool in again.tools] == [tool.name for tool in robot.tools]
    np.testing.assert_array_equal(again.rotor_inertia, robot.rotor_inertia)
    for one, other in zip(robot.joints, again.joints, strict=True):
        assert (other.limits.lower, other.limits.upper) == (one.limits.lower, one.limits.upper)
        assert (other.gear_ratio, other.friction) == (one.gear_ratio, one.friction + one.actuator.friction.coulomb)
        assert other.damping == one.damping + one.actuator.friction.viscous
        assert other.actuator.motor.torque_limit == pytest.approx(one.actuator.motor.torque_limit)
    assert robot_as_mjcf(loaded(robot_as_mjcf(again).text)).lost == ()


def planned(t: float, n: int) -> Array:
    w = np.linspace(2.0, 3.0, n)
    return np.array([np.linspace(0.3, 0.5, n) * w**k * np.cos(w * t + k * np.pi / 2) for k in range(5)])


@pytest.fixture
def deviation() -> Any:
    """Function that simulates an arm in MuJoCo with its feedforward: largest joint error over a second, rad."""

    def run(robot: Robot, step: float) -> float:
        arm, model = ElasticArm(robot), mujoco.MjModel.from_xml_string(robot_as_mjcf(robot).text)
        model.opt.timestep = step
        data = mujoco.MjData(model)

        def joints(part: str) -> Array:
            return np.array([model.joint(f"{name}{part}").qposadr[0] for name in robot.joint_names])

        (q, qd, *_), start = planned(0.0, robot.n), arm.feedforward(*planned(0.0, robot.n))
        data.qpos[joints("_motor")], data.qpos[joints("_spring")] = start.motor_position, q - start.motor_position
        data.qvel[joints("_motor")], data.qvel[joints("_spring")] = start.motor_velocity, qd - start.motor_velocity

        def control(_: object, now: Any) -> None:
            now.ctrl[:] = arm.drive(arm.feedforward(*planned(now.time, robot.n))).torque

        mujoco.set_mjcb_control(control)
        largest = 0.0
        while data.time < 1 - step / 2:
            mujoco.mj_step(model, data)
            present = data.qpos[joints("_motor")] + data.qpos[joints("_spring")]
            largest = max(largest, float(np.max(np.abs(present - planned(data.time, robot.n)[0]))))
        mujoco.set_mjcb_control(None)  # MuJoCo also calls it during compilation
        return largest

    yield run
    mujoco.set_mjcb_control(None)


def test_damping_parallel_springs_and_limits_are_of_the_link(deviation: Callable[..., float]) -> None:
    robot = load_robot("planar_2r")
    first = replace(
        robot.joints[0],
        damping=0.4,
        parallel_spring=ParallelSpring(SignedLinearLaw(30.0), 0.2),
        limits=Limits(lower=-1.0, upper=2.0),
    )
    robot = replace(robot, joints=(first, *robot.joints[1:]), joint_friction=True)
    assert deviation(robot, 2e-3) < 1e-9
    model = mujoco.MjModel.from_xml_string(robot_as_mjcf(robot).text)
    t = model.tendon("joint_1").id
    assert (model.tendon_stiffness[t], model.tendon_lengthspring[t, 0], model.tendon_damping[t]) == (30.0, 0.2, 0.4)
    assert model.tendon_limited[t] and model.tendon_range[t].tolist() == [-1.0, 2.0]


def test_rigid_joints_of_all_kinds() -> None:
    text = urdf_arm(joints=("a", "b", "c")).replace('name="b" type="revolute"', 'name="b" type="prismatic"')
    text = text.replace("</joint></robot>", '<mimic joint="a" multiplier="-2" offset="0.3"/></joint></robot>')
    robot = loaded(text)
    written = robot_as_mjcf(robot)
    assert_same_dynamics(robot, loaded(written.text))
    q, qd, qdd = np.random.default_rng(2).uniform(-1, 1, (3, robot.n))
    by_mujoco = mujoco_dynamics(mujoco.MjModel.from_xml_string(written.text), robot, q, qd, qdd)[0]
    np.testing.assert_allclose(equations_of_motion(robot, q, qd, qdd).efforts(qdd)[0], by_mujoco, atol=1e-12)


def test_what_is_lost_is_named() -> None:
    robot = load_robot("planar_2r")
    joints = (
        replace(
            robot.joints[0],
            spring=CubicSpring(100.0, 5.0),
            limits=Limits(velocity=2.0, effort=9.0),
            constant_effort=1.0,
        ),
        replace(robot.joints[1], spring=DampedSpring(80.0, 2.0), rotor_inertia=0.0),
    )
    assert robot_as_mjcf(replace(robot, joints=joints)).lost == (
        "springs (elasticity) are omitted: joint_2",
        "constant efforts are omitted: joint_1",
        "nonlinear terms of springs are omitted: joint_1",
        "limits of velocity are omitted: joint_1, joint_2",
        "limits of the effort of springs are omitted: joint_1, joint_2",
    )


def test_what_cannot_be_written_is_refused() -> None:
    robot = fixed_case("mixed_chain", 2).robot
    with pytest.raises(RobotDescriptionError, match=r"joint_3.*helical"):
        robot_as_mjcf(robot)
    robot = load_robot("planar_2r")
    massless = replace(robot.joints[1], mass=0.0, inertia_about_origin=np.zeros((3, 3)))
    with pytest.raises(RobotDescriptionError, match=r"joint_2.*refuses"):
        robot_as_mjcf(replace(robot, joints=(robot.joints[0], massless)))
    followed = loaded(urdf_arm(joints=("a", "b")).replace("</joint></robot>", '<mimic joint="a"/></joint></robot>'))
    leader = replace(followed.joints[0], spring=LinearSpring(50.0), rotor_inertia=0.1)
    with pytest.raises(RobotDescriptionError, match="follows"):
        robot_as_mjcf(replace(followed, joints=(leader, followed.joints[1])))
