# SPDX-License-Identifier: Apache-2.0
"""Mass and inertia of the base: read, kept, written and shown."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from chains import packaged_parameters
from differences import deviation

from eom_dynamics import (
    Dynamics,
    FloatingBase,
    Robot,
    RobotDescriptionError,
    RobotDescriptionWarning,
    lie,
    load_robot,
    robot_from_parameters,
)
from eom_dynamics.codegen.floating_programs import recipe
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.codegen.recipe import kernel_fingerprint
from eom_dynamics.robot.inertia import Inertial
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.robot.writers.written import Written
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.tools.inspect.facts import facts_result, robot_facts

_INERTIAL = """<inertial><origin xyz="{}"/><mass value="{}"/>
  <inertia ixx="0.2" ixy="0.01" ixz="0" iyy="0.3" iyz="0.02" izz="0.25"/></inertial>"""
URDF = f"""<robot name="cart">
<link name="body">{_INERTIAL.format("0.1 0 0.2", 3)}</link>
<link name="box">{_INERTIAL.format("0 0.3 0", 2)}</link>
<link name="lower">{_INERTIAL.format("0 0 0.4", 1)}</link>
<link name="upper">{_INERTIAL.format("0 0.1 0.4", 1.5)}</link>
<joint name="mount" type="fixed"><origin xyz="0.5 0 0" rpy="0 0.3 0.4"/><parent link="body"/><child link="box"/></joint>
<joint name="a" type="continuous"><origin xyz="0 0 0.6"/><parent link="box"/><child link="lower"/></joint>
<joint name="b" type="continuous"><origin xyz="0 0 0.4"/><axis xyz="0 1 0"/><parent link="lower"/><child link="upper"/>
</joint></robot>"""


def spatial(robot: Robot) -> np.ndarray:
    return robot.base.spatial_inertia


def moved(pose: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    X = lie.Ad(lie.inverse(pose))
    return X.T @ inertia @ X


def link(mass: float, center: list[float]) -> np.ndarray:
    about_center = np.array([[0.2, 0.01, 0.0], [0.01, 0.3, 0.02], [0.0, 0.02, 0.25]])
    return Inertial.about_center(mass, np.array(center), about_center).spatial_inertia


def test_of_a_urdf() -> None:
    robot = load_robot(URDF)
    mount = lie.pose(lie.rotation_from_rpy([0.0, 0.3, 0.4]), [0.5, 0.0, 0.0])
    assert robot.base.mass == 5
    assert deviation(spatial(robot), link(3, [0.1, 0, 0.2]) + moved(mount, link(2, [0, 0.3, 0]))) < 1e-14
    assert load_robot(URDF, root="box").base.mass == 2
    # Locked joints are fixed ones.
    locked = load_robot(URDF, tip="lower")
    assert locked.base.mass == 5
    assert load_robot(URDF, root="lower").base.mass == 1


def test_of_a_parameter_file() -> None:
    parameters = packaged_parameters("planar_2r")
    assert not np.any(spatial(robot_from_parameters(parameters)))
    parameters["base"] = {"mass": 3.0, "center_of_mass": [0.1, 0.0, 0.2], "inertia": [0.2, 0.01, 0.0, 0.3, 0.02, 0.25]}
    assert deviation(spatial(robot_from_parameters(parameters)), link(3, [0.1, 0, 0.2])) < 1e-15
    parameters["payloads"] = {"base": {"mass": 2.0, "center_of_mass": [0.0, 0.3, 0.0]}}
    assert robot_from_parameters(parameters).base.mass == 5


@pytest.mark.parametrize("write", [robot_as_yaml, robot_as_urdf])
def test_written(write: Callable[[Robot], Written]) -> None:
    robot = load_robot(URDF)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert deviation(spatial(load_robot(write(robot).text)), spatial(robot)) < 1e-14


def test_kept_and_shown() -> None:
    robot = load_robot(URDF)
    assert deviation(spatial(robot.with_prefix("left_")), spatial(robot)) == 0
    assert deviation(spatial(perturbed(robot, mass=0.1)), 1.1 * spatial(robot)) < 1e-15
    facts = robot_facts(robot)
    assert (facts["base_mass"], facts["total_mass"]) == (5, 2.5)
    assert "2.5 kg on a base of 5 kg" in facts_result(facts).as_text()


def test_compiled_code_of_a_fixed_base_does_not_depend_on_it() -> None:
    robot = load_robot(URDF)
    other = replace(robot, base=Inertial.massless())
    assert kernel_fingerprint(robot, PROGRAMS["effort"]) == kernel_fingerprint(other, PROGRAMS["effort"])
    ours, others = (kernel_fingerprint(x, recipe(x, "effort")) for x in (robot, other))
    assert ours != others
    q = np.array([0.3, 0.4])
    efforts = [Dynamics(x, backend="numpy").effort(q, q, q) for x in (robot, other)]
    assert np.array_equal(*efforts)


@pytest.mark.parametrize(("mass", "inertia"), [(0, -1e-22), (0, 1e-22), (-1e-22, 0), (-1e-22, -1e-22)])
def test_rounding_errors_of_zero_are_zero_with_a_warning(mass: float, inertia: float) -> None:
    box = f'<inertia ixx="{inertia}" ixy="0" ixz="0" iyy="{inertia}" iyz="0" izz="{inertia}"/>'
    inertial = f'<inertial><origin xyz="0 0 0"/><mass value="{mass}"/>{box}</inertial>'
    text = f"""<robot name="r"><link name="base">{inertial}</link>
      <link name="a"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
        <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
      <joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint></robot>"""
    with pytest.warns(RobotDescriptionWarning, match="link base: .*rounding errors, and taken as zero"):
        robot = load_robot(text, unphysical="refuse")
    assert not np.any(spatial(robot))
    FloatingBase(robot)
    with pytest.raises(RobotDescriptionError, match=r"must (have mass|not be negative)"):
        load_robot(text.replace("1e-22", "1e-3"), unphysical="refuse")
