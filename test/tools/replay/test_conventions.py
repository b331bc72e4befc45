# SPDX-License-Identifier: Apache-2.0
"""Recordings whose joints have other names and whose efforts have other units than those of the robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("plotly")

from bag_files import JOINT_STATE, START, joint_state, write_bag

import eom_dynamics as eom
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.recording_options import Conventions, Sampling
from eom_dynamics.tools.report.read import read_records
from eom_dynamics.trajectory import paper_motion

ROBOT = "planar_2r"
CONVENTIONS = ["--rename", "^left_=", "--rename", r"^j(\d)$=joint_\1"]
EFFORTS = ["--effort-scale", "2", "--effort-scale", "joint_2=4", "--effort-offset", "joint_1=-0.5"]


@pytest.fixture(scope="module")
def bag(tmp_path_factory) -> Path:
    """A motion with currents of which the efforts are 2 i - 0.5 and 4 i."""
    t = np.arange(400) / 200.0
    states = paper_motion(2).derivatives(t)
    efforts = eom.Dynamics(eom.load_robot(ROBOT)).effort(*states[:3])
    currents = np.stack([(efforts[:, 0] + 0.5) / 2, efforts[:, 1] / 4], axis=1)
    stamps = START + np.round(t * 1e9).astype(np.int64)
    messages = [
        (int(stamp), joint_state(int(stamp), ["left_j2", "left_j1"], q[::-1], i[::-1]))
        for stamp, q, i in zip(stamps, states[0], currents, strict=True)
    ]
    return write_bag(tmp_path_factory.mktemp("bags") / "left", {"/joint_states": (JOINT_STATE, messages)})


def test_names_and_efforts_of_a_recording_become_those_of_the_robot(bag: Path, tmp_path: Path, run) -> None:
    command = ["replay", str(bag), "-o", str(tmp_path / "out"), "--robot", ROBOT, "--cutoff", "20", "--json"]
    command += ["--against", "effort", "--force"]
    (result,) = run(*command, *CONVENTIONS, *EFFORTS).json
    good = np.array(result["report"]["rms"])
    assert result["report"]["commands"] == 400
    (result,) = run(*command, *CONVENTIONS).json
    assert np.all(good < 0.05 * np.array(result["report"]["rms"]))


def test_a_report_uses_the_same_conventions(bag: Path, tmp_path: Path, capsys) -> None:
    options = (("^left_j", "joint_"),), ((None, 2.0), ("joint_2", 4.0)), (("joint_1", -0.5),)
    robot = eom.load_robot(ROBOT)
    (record,) = read_records(bag, robot, Sampling(cutoff=20.0, conventions=Conventions(*options)))
    assert record.robot is robot and record.command is not None and record.measured is not None
    measured = record.measured.ordered(robot.joint_names).values["effort"]
    (plain,) = read_records(bag)
    assert plain.measured is not None and plain.measured.names == ("left_j2", "left_j1")
    currents = plain.measured.ordered(("left_j1", "left_j2")).values["effort"]
    np.testing.assert_allclose(measured, currents * [2, 4] + [-0.5, 0])
    page = tmp_path / "page.html"
    assert main(["report", str(bag), "-o", str(page), "--robot", ROBOT, *CONVENTIONS, *EFFORTS]) == 0
    assert "Commands were not recorded" in capsys.readouterr().out


def test_what_cannot_be_meant_is_refused(bag: Path, tmp_path: Path, refused) -> None:
    command = ["replay", str(bag), "-o", str(tmp_path / "out"), "--robot", ROBOT]
    assert "--effort-scale and --effort-offset need --against" in refused(*command, "--effort-scale", "2")
    assert "--effort-scale: robot planar_2r has no joint 'joint2'; did you mean joint_2?" in refused(
        *command, *CONVENTIONS, "--against", "effort", "--effort-scale", "joint2=3"
    )
    for wrong, reason in ((["--rename", "left"], "PATTERN=REPLACEMENT"), (["--rename", "(=x"], "regular expression")):
        assert reason in refused(*command, *wrong)
    with pytest.raises(EomDynamicsError, match="no joint 'a'"):
        Conventions(effort_offset=(("a", 1.0),)).check("arm", ["b"])
