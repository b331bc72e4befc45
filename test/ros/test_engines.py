# SPDX-License-Identifier: Apache-2.0
"""A setpoint has one meaning: each scene gives the same commands in all hosts of the control loop.

Commands are within the bounds of an oracle, and show the subject of the scene.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import robot

from eom_dynamics import Robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.robot.model import EffortSpread, Limits

pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from golden_traces import TOLERANCE, assert_same, read, trace_of, write
from loop_rig import Record
from loop_scene import STOP, Scene
from scene_outcomes import OUTCOMES, Outcome
from sent_oracle import SentOracle
from setpoint_engines import NodeEngine, arm_of, called, looped, marks_of, replayed, settings_for, unspun_node
from setpoint_scenes import SETPOINTS
from target_scenes import CONTACTS, TARGETS
from trajectory_scenes import TRAJECTORIES

EQUILIBRIA = 1e-7
"""By what efforts of an impedance may differ, whose equilibria are found from where they were before: 1e-9 rad."""

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


def accelerating(arm: Robot) -> Robot:
    """With the limits of acceleration that targets need with joint friction."""
    joints = (replace(joint, limits=replace(joint.limits, acceleration=100.0)) for joint in arm.joints)
    return replace(arm, joints=tuple(joints))


def strong(arm: Robot) -> Robot:
    """With motors without limits, so that targets are not slowed down for them."""
    unlimited = dict.fromkeys(("torque_limit", "speed_limit", "current_limit", "voltage_limit"), np.inf)
    actuators = [replace(x.actuator, motor=replace(x.actuator.motor, **unlimited)) for x in arm.joints]
    joints = (replace(joint, actuator=x) for joint, x in zip(arm.joints, actuators, strict=True))
    return replace(arm, joints=tuple(joints))


def measured(arm: Robot) -> Robot:
    """With the spread of efforts that thresholds of contact are from."""
    spread = EffortSpread((0.0, 1.0), (0.05, 0.1), 0.1, noise=0.02)
    return replace(arm, joints=tuple(replace(joint, effort_spread=spread) for joint in arm.joints))


ROBOTS = {
    "soft": lambda: robot("sea_planar_2r"),
    "limited rates": lambda: limited_rates(robot("sea_planar_2r")),
    "limited": lambda: limited(robot("sea_planar_2r")),
    "weak": lambda: weak(robot("sea_planar_2r"), 0, 0.15),
    "limited velocity": lambda: strong(limited_rates(robot("sea_planar_2r"))),
    "slow": lambda: slow(robot("sea_planar_2r")),
    "slow efforts": lambda: slow(robot("sea_planar_2r"), effort_rate=26.0),
    "variable": lambda: robot("vsa_planar_2r"),
    "damped, coupled, sticking": lambda: robot("shared"),
    "own drives": lambda: accelerating(robot("drives")),
    "both sides": lambda: robot("sides"),
    "measured": lambda: measured(robot("sea_planar_2r")),
    "two tools": lambda: robot("scissors"),
}


@pytest.fixture(scope="module")
def node(ros: Any) -> Iterator[NodeEngine]:
    given = {"robot_file": "planar_2r", "use_sim_time": "true"}
    given |= {"external_effort.sensors": "torque"}
    with unspun_node("/engines", **given, stop_duration=str(STOP)) as node:
        yield NodeEngine(node)


robot_of = cache(lambda name: ROBOTS[name]())


def scene_of(name: str) -> Scene:
    """A scene by its name; scenes of one robot share it."""
    which, make = SCENES[name]
    scene: Scene = make(robot_of(which))
    return scene


def known(rows: Array, others: Array) -> Array:
    """Rows filled with the numbers of others if messages lack them."""
    return np.where(np.isnan(rows), others, rows)


@pytest.mark.parametrize("name", SCENES)
def test_engines_agree(name: str, node: NodeEngine, tmp_path: Path) -> None:
    scene = scene_of(name)
    # Messages are read in two ways, without a difference for few messages.
    few = sum(cycle.fields is not None for cycle in scene.cycles) < 0.05 * len(scene.cycles)
    # Messages do not have all that is sent.
    others = (looped if "Python" in scene.lacks else called)(scene).rows
    expected = known(node.play(scene, compiled=few), others)
    hosts = {
        **({} if few else {"node": lambda: known(node.play(scene, compiled=True), others)}),
        "Python": lambda: others,
        "controller": lambda: looped(scene).rows,
        "replay": lambda: known(replayed(scene, tmp_path), expected),
    }
    if scene.in_front:
        hosts["controller in front"] = lambda: looped(scene, in_front=True).rows
    for host, play in hosts.items():
        if host in scene.lacks:
            continue
        if scene.gains:
            np.testing.assert_allclose(play(), expected, rtol=EQUILIBRIA, atol=EQUILIBRIA, err_msg=host)
        else:
            np.testing.assert_array_equal(play(), expected, err_msg=host)


def recorded(name: str) -> tuple[Scene, Record]:
    """A scene, and its record by calls from Python, or as by a controller if Python lacks an input."""
    scene = scene_of(name)
    return scene, (looped if "Python" in scene.lacks else called)(scene).record


@pytest.mark.parametrize("name", SCENES)
def test_what_is_sent_keeps_to_bounds_and_is_what_the_scene_is_about(name: str) -> None:
    (scene, record), outcome = recorded(name), OUTCOMES.get(name, Outcome())
    golden = {key: rows for key, rows in read("scenes").items() if key.partition(": ")[0] == name}
    traces = {f"{name}: {key}": rows for key, rows in trace_of(record).items()}
    assert_same(traces, golden, EQUILIBRIA if scene.gains else TOLERANCE)
    found = SentOracle(arm_of(scene.robot)).findings(record, settings_for(scene), marks_of(scene))
    assert not found, "\n".join(map(str, found))
    refused: dict[str, list[int]] = {}
    for k in np.flatnonzero(record.code > 0):
        refused.setdefault(Refusal(int(record.code[k])).name, []).append(int(k))
    assert refused == {reason: [*cycles] for reason, cycles in outcome.refused.items()}
    assert record.numbers["refused"][-1] - (record.code > 0).sum() == outcome.rejected
    assert outcome.rests == (not record.state[-1, 1:].any())
    if outcome.ends is not None:
        np.testing.assert_allclose(record.state[-1, 0], np.broadcast_to(outcome.ends, scene.robot.n), rtol=1e-12)


if __name__ == "__main__":  # records the golden traces of the scenes
    records = {name: recorded(name)[1] for name in SCENES}
    write("scenes", {f"{name}: {key}": rows for name, x in records.items() for key, rows in trace_of(x).items()})
