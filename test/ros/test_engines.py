# SPDX-License-Identifier: Apache-2.0
"""A setpoint has one meaning: each scene goes through all hosts of the control loop, whose commands are the same.

They are those of a reference, up to rounding.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import robot

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import EffortSpread, Limits
from eom_dynamics.robot.writers.parameters import robot_as_yaml

pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from contact_scenes import CONTACTS
from loop_scene import STOP
from setpoint_engines import BANDWIDTH, NodeEngine, called, looped, referred, replayed, unspun_node
from setpoint_scenes import SETPOINTS
from target_scenes import TARGETS
from trajectory_scenes import TRAJECTORIES

SCENES = SETPOINTS | TRAJECTORIES | TARGETS | CONTACTS


def weak(arm: Robot, joint: int, torque: float) -> Robot:
    """With a limit of the torque of a motor."""
    joints = list(arm.joints)
    actuator = joints[joint].actuator
    joints[joint] = replace(
        joints[joint], actuator=replace(actuator, motor=replace(actuator.motor, torque_limit=torque))
    )
    return replace(arm, joints=tuple(joints))


def limited(arm: Robot) -> Robot:
    """With limits that the first half of the motions exceeds: of a joint's effort, and of a motor's torque."""
    first, second = weak(arm, 1, 0.022).joints
    return replace(arm, joints=(replace(first, limits=Limits(lower=-0.3, upper=0.3, effort=14.8)), second))


def slow(arm: Robot, **limits: float) -> Robot:
    """With limits that the wanted stop would exceed, and a longer one does not."""
    first, second = arm.joints
    return replace(arm, joints=(replace(first, limits=Limits(acceleration=2.0, jerk=100.0, **limits)), second))


def limited_rates(arm: Robot) -> Robot:
    """With limits that steps from one setpoint to the next do not exceed."""
    first, second = arm.joints
    return replace(arm, joints=(replace(first, limits=Limits(velocity=0.7, acceleration=20.0)), second))


def strong(arm: Robot) -> Robot:
    """With motors without limits, so that targets are not slowed down for them."""
    unlimited = dict.fromkeys(("torque_limit", "speed_limit", "current_limit", "voltage_limit"), np.inf)
    actuators = [replace(x.actuator, motor=replace(x.actuator.motor, **unlimited)) for x in arm.joints]
    joints = (replace(joint, actuator=x) for joint, x in zip(arm.joints, actuators, strict=True))
    return replace(arm, joints=tuple(joints))


def holding_little(arm: Robot) -> Robot:
    """With a limit of effort that the first joint exceeds where the arm is horizontal, and its motor in motions."""
    first, second = strong(arm).joints
    return replace(arm, joints=(replace(first, limits=Limits(effort=14.0)), second))


def measured(arm: Robot) -> Robot:
    """With the spread of efforts that thresholds of contact are from."""
    spread = EffortSpread((0.0, 1.0), (0.05, 0.1), 0.1, noise=0.02)
    return replace(arm, joints=tuple(replace(joint, effort_spread=spread) for joint in arm.joints))


ROBOTS = {
    "soft": lambda: robot("sea_planar_2r"),
    "limited rates": lambda: limited_rates(robot("sea_planar_2r")),
    "limited": lambda: limited(robot("sea_planar_2r")),
    "weak": lambda: weak(robot("sea_planar_2r"), 0, 0.15),
    # A motor with a limit of its own, which is far away, does not have that of its joint.
    "holding little": lambda: weak(holding_little(robot("sea_planar_2r")), 0, 10.0),
    "moved by little": lambda: holding_little(robot("sea_planar_2r")),
    "limited velocity": lambda: strong(limited_rates(robot("sea_planar_2r"))),
    "slow": lambda: slow(robot("sea_planar_2r")),
    "slow efforts": lambda: slow(robot("sea_planar_2r"), effort_rate=26.0),
    "variable": lambda: robot("vsa_planar_2r"),
    "damped, coupled, sticking": lambda: robot("shared"),
    "own drives": lambda: robot("drives"),
    "measured": lambda: measured(robot("sea_planar_2r")),
    "two tools": lambda: robot("scissors"),
}


@pytest.fixture(scope="module")
def node(ros: Any) -> Iterator[NodeEngine]:
    given = {"robot_file": "planar_2r", "use_sim_time": "true", "moving_base": "true"}
    given |= {"external_effort.sensors": "torque", "external_effort.bandwidth": str(BANDWIDTH)}
    with unspun_node("/engines", **given, stop_duration=str(STOP)) as node:
        yield NodeEngine(node)


@pytest.fixture(scope="module")
def robots(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Robot, Path]]:
    folder, found = tmp_path_factory.mktemp("robots"), {}
    for k, (name, made) in enumerate(ROBOTS.items()):
        path = folder / f"robot_{k}.yaml"
        path.write_text(robot_as_yaml(made()).text, encoding="utf-8")
        found[name] = load_robot(str(path)), path
    return found


def known(rows: Array, others: Array) -> Array:
    """Rows with the numbers of others where messages do not have them."""
    return np.where(np.isnan(rows), others, rows)


@pytest.mark.parametrize("name", SCENES)
def test_engines_agree(name: str, node: NodeEngine, robots: Mapping[str, tuple[Robot, Path]], tmp_path: Path) -> None:
    which, made = SCENES[name]
    arm, file = robots[which]
    scene = made(arm)
    # Messages are read in two ways, which makes no difference where hardly any comes.
    few = sum(cycle.fields is not None for cycle in scene.cycles) < 0.05 * len(scene.cycles)
    # Messages do not have all that is sent.
    plays = {"Python": called, "controller": looped, "reference": referred}
    others = next(play for host, play in plays.items() if host not in scene.lacks)(scene)
    expected = known(node.play(scene, compiled=few), others)
    hosts = {
        **({} if few else {"node": lambda: known(node.play(scene, compiled=True), others)}),
        "Python": lambda: called(scene),
        "controller": lambda: looped(scene),
        "replay": lambda: known(replayed(scene, file, tmp_path), expected),
    }
    if scene.in_front:
        hosts["controller in front"] = lambda: looped(scene, in_front=True)
    rounded = {} if "reference" in scene.lacks else {"reference": referred(scene)}
    for host, play in hosts.items():
        if scene.gains and host not in scene.lacks:
            rounded[host] = play()
        elif host not in scene.lacks:
            np.testing.assert_array_equal(play(), expected, err_msg=host)
    n, m = arm.n, len(ElasticArm(arm).motor_names)
    ends = np.cumsum([1, n, n, n, m, m, m, n])
    for engine, rows in rounded.items():
        np.testing.assert_array_equal(rows[:, [0, -1]], expected[:, [0, -1]], err_msg=engine)
        for got, wanted in zip(np.split(rows, ends, 1), np.split(expected, ends, 1), strict=True):
            size = 1 + np.abs(wanted).max(axis=1, keepdims=True)
            assert np.max(np.abs(got - wanted) / size) <= scene.rounding, engine
