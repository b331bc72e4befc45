# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics identify`` of a bag with commands: the delay of the drives and the period reach the robot's file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="rosbags is not installed")

from bag_files import JOINT_STATE, START, STORE, header, joint_state, write_bag
from urdf_arms import urdf_arm

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.identification.elastic.delay import Delay, DriveDelay
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.simulation import SimulatedDrives, SimulatedRobot
from eom_dynamics.simulation.simulated_robot import SensorNoise
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.identify import run
from eom_dynamics.tools.identify.commands import CommandTiming, command_timing
from eom_dynamics.tools.identify.outputs import robot_file
from eom_dynamics.tools.identify.sides import TwoSidedRecording
from eom_dynamics.tools.recording_options import MotorSource, Source
from eom_dynamics.tools.recordings import Stream
from eom_dynamics.trajectory import paper_motion

COMMAND = "eom_dynamics/msg/FeedforwardCommand"
PERIOD = 2e-3
QUICK = ["--cutoff", "8", "--prior-weight", "1", "--no-inertia", "--terms", "none"]
NO_ARRAYS = ("effort", "effort_rate", "effort_acceleration", "motor_acceleration")


def recorded(path: Path, arm: ElasticArm, delay: float, *, motors: bool = True, seconds: float = 5.0) -> Path:
    """A bag of a simulated robot that follows commands of its motors, with noise of its sensors."""
    motion, t = paper_motion(arm.robot.n), PERIOD * np.arange(round(seconds / PERIOD))
    noise = SensorNoise(1e-5, 1e-3, 0.005)
    start = motion.derivatives(0.0, 0)[0]
    drives = SimulatedDrives(drive_delay=delay)
    robot = SimulatedRobot(arm, period=PERIOD, position=start, drives=drives, noise=noise, seed=1)
    y, names = arm.feedforward(*motion.derivatives(t)), list(arm.robot.joint_names)
    rows: dict[str, list[tuple[int, Any]]] = {"links": [], "motors": [], "commands": []}
    for k, wanted in enumerate(zip(y.motor_position, y.motor_velocity, y.motor_effort, strict=True)):
        now, time = robot.readings(), START + round(1e9 * k * PERIOD)
        rows["links"].append((time, joint_state(time, names, now.q, now.tau if motors else now.motor_effort)))
        rows["motors"].append((time, joint_state(time, names, now.theta, now.motor_effort)))
        fields = dict(zip(("motor_position", "motor_velocity", "motor_effort"), wanted, strict=True))
        fields |= {name: np.zeros(0) for name in NO_ARRAYS}
        about = {"status": 0, "held": False, "command_lead": 0.0, "motor_names": names}
        message = STORE.types[COMMAND](header=header(time), joint_names=names, **about, **fields)
        rows["commands"].append((time, message))
        robot.follow(*wanted)
        robot.advance()
    topics = {"/joint_states": (JOINT_STATE, rows["links"]), "/feedforward": (COMMAND, rows["commands"])}
    if motors:
        topics["/motor_states"] = (JOINT_STATE, rows["motors"])
    return write_bag(path, topics)


@pytest.mark.parametrize("kind", ["springs", "rigid"])
def test_delay_and_period_are_written(kind: str, tmp_path: Path, capsys) -> None:
    robot = load_robot("planar_2r")
    if kind == "rigid":
        robot = replace(robot, joints=tuple(replace(x, spring=RIGID) for x in robot.joints))
    described = tmp_path / "arm.yaml"
    described.write_text(robot_as_yaml(robot).text)
    bag = recorded(tmp_path / "bag", ElasticArm(robot), 4e-3, motors=kind == "springs")
    output = tmp_path / "found.yaml"
    late = "--motor-delay" if kind == "springs" else "--effort-delay"
    main(["identify", str(bag), "--robot", str(described), "-o", str(output), *QUICK, late, "0.001", "--json"])
    timing = json.loads(capsys.readouterr().out)["timing"]
    assert timing["delay"]["value"] == pytest.approx(4e-3 + PERIOD / 2, abs=1e-4)
    assert timing["delay"]["standard_deviation"] < 5e-5
    found = load_robot(output)
    assert found.command_period == PERIOD and found.drive_delay == pytest.approx(4e-3, abs=1e-4)


def test_a_delay_that_cannot_be_found_is_told(tmp_path: Path, capsys) -> None:
    bag = recorded(tmp_path / "bag", ElasticArm(load_robot("planar_2r")), 0.0, motors=False, seconds=2.5)
    output = tmp_path / "found.yaml"
    main(["identify", str(bag), "--robot", "planar_2r", "-o", str(output), *QUICK])
    assert "the delay of its commands is not identified: positions of" in capsys.readouterr().out
    assert load_robot(output).command_period == 0


def test_an_uncertain_delay_is_not_written() -> None:
    """The period is; ages of a certain delay need a PD, and are written with it."""
    robot = replace(load_robot("planar_2r"), drive_delay=1e-3)
    certain, late = Delay(3e-3, 1e-5), Delay(2e-4, 1e-5)
    found = DriveDelay(certain, late, late, Delay(0.0, 0.0), 1.0)
    for changed, delay, age, line in (
        (found, 2e-3, 2e-4, "drives measure positions of an age of 0.200 ms"),
        (found._replace(noise=5.0), 2e-3, 0.0, "drive_feedback_delay is not written: efforts are not those of a PD"),
        (found._replace(delay=Delay(3e-3, 1e-4)), 1e-3, 0.0, "drive_delay is not written: its deviation of 0.1 ms"),
    ):
        timing = CommandTiming(changed, Delay(2e-3, 0.0))
        written = timing.applied_to(robot)
        assert (written.command_period, written.drive_feedback_delay.position) == (2e-3, age)
        assert written.drive_delay == pytest.approx(delay) and any(line in text for text in timing.as_text())
    interpolating = CommandTiming(found, Delay(2e-3, 0.0), "linear")
    assert interpolating.drive_delay == pytest.approx(1e-3)
    assert "without 100 % of the period, is 1.000 ms" in interpolating.as_text()[0]


def test_what_a_urdf_cannot_hold_is_told(tmp_path: Path, capsys) -> None:
    source = tmp_path / "arm.urdf"
    source.write_text(urdf_arm())
    robot = replace(load_robot(source), command_period=1e-3)
    found = run.IdentificationResult(robot, robot, None, None, (), ())
    _, not_in_file = robot_file(tmp_path / "found.urdf", str(source), found)
    assert any("command_period and timing of the drives are left out" in line for line in not_in_file)


def test_several_topics_of_commands_are_told() -> None:
    none = Stream("", *np.zeros((2, 0), dtype=np.int64), (), {})
    sides = TwoSidedRecording(None, commands=dict.fromkeys(("/left/feedforward", "/right/feedforward"), none))
    timing, notes = command_timing(load_robot("planar_2r"), [sides], Source(), MotorSource())
    assert timing is None and "it has 2 topics of them, /left/feedforward, /right/feedforward" in notes[0]
