# SPDX-License-Identifier: Apache-2.0
"""Recordings as drivers write them: folded positions, missing efforts, loads that the file does not have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from excited import recording, true_robot
from paths import CONFIG, PANDA_BAG, SHARED

from eom_dynamics import load_robot
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.identification import Recording
from eom_dynamics.robot.writers.parameters import robot_as_yaml

CASES = SHARED / "cases"

Change = Callable[[np.ndarray], np.ndarray]


@pytest.fixture
def identify(run, tmp_path: Path) -> Callable[..., Any]:
    """Identify from a file of a case, or from another file with its robot."""

    def identify(recording: Path, robot: Path, *options: str, code: int = 0) -> Any:
        if not robot.exists():
            pytest.skip(f"needs {robot}")
        return run(
            "identify",
            recording,
            "--robot",
            robot,
            "-o",
            tmp_path / "o.yaml",
            "--force",
            "--verbose",
            *options,
            code=code,
        )

    return identify


def identified(out: str, joint: str) -> list[float]:
    """The numbers of a joint in the table of terms."""
    (line,) = re.findall(rf"^{joint} +(?:[-\d.e]+ ±|as in).*", out.split("Identified parameters")[1], re.MULTILINE)[:1]
    return [float(x) for x in re.findall(r"(\S+) ±", line)]


@pytest.mark.parametrize(("table", "note"), [("wrapped_continuous/wrapped", "6 of j1"), ("effort_gaps/gaps", "")])
def test_recordings_of_others(table: str, note: str, identify) -> None:
    """Folded positions, and missing efforts."""
    path = CASES / f"{table}.csv"
    out = identify(path, path.parent / "cont.urdf", "--hold-out", "0.3").out
    assert not note or f"steps of 2π are undone: {note}" in out
    for joint, wanted in (("j1", [0.3, 0.4]), ("j2", [0.2, 0.3])):
        np.testing.assert_allclose(identified(out, joint)[:2], wanted, atol=0.003 if "gaps" in table else 0.005)


@cache
def arm_recording() -> Recording:
    robot = load_robot("sea_planar_2r")
    return recording(robot, true_robot(robot), rate=100.0, duration=25.0)


def arm_table(path: Path, change: Change) -> Path:
    """A recording of ``sea_planar_2r`` with other efforts (N, 2)."""
    source = arm_recording()
    rows = np.column_stack([source.t, source.q, change(source.tau.copy())])
    header = "t,position.joint_1,position.joint_2,effort.joint_1,effort.joint_2"
    np.savetxt(path, rows, delimiter=",", header=header, comments="")
    return path


def missing(rows: Any, joint: int = 1) -> Change:
    """Efforts of a joint that are NaN in some rows."""

    def change(tau: np.ndarray) -> np.ndarray:
        tau[rows(np.arange(len(tau))) if callable(rows) else rows, joint] = np.nan
        return tau

    return change


def test_a_joint_that_gaps_leave_nothing_of_is_named_first(identify, tmp_path: Path) -> None:
    path = arm_table(tmp_path / "run.csv", missing(lambda k: k % 60 < 45))
    err = identify(path, CONFIG / "sea_planar_2r.yaml", "--hold-out", "0.3", "--cutoff", "3", code=1).err
    first = next(line for line in err.splitlines() if "failed" in line)
    assert re.search(r"failed.*joint_2.*[\d,]+.*[\d,]+", first)


def test_the_case_of_a_load_on_a_balanced_wrist(identify) -> None:
    case = CASES / "payload_balanced_wrist"
    out = identify(case / "wrist3_load.csv", case / "wrist3.yaml", "--payload", "j3", "--side", "motor").out
    (mass,) = re.findall(r"payload on j3: mass (\S+) ±", out)
    assert float(mass) == pytest.approx(2.8, abs=0.006)


@pytest.mark.parametrize("share", ["0", "0.1", "0.6", "0.9"])
def test_any_share_that_is_held_out_identifies(share: str, identify, tmp_path: Path) -> None:
    """Blocks are as long as the filter needs, for any requested share; a note reports the actual share."""
    path = arm_table(tmp_path / "run.csv", lambda tau: tau)
    found = identify(path, CONFIG / "sea_planar_2r.yaml", "--hold-out", share, "--cutoff", "1", "--json")
    figures = json.loads(found.out)
    assert figures["kept"] == [] and (figures["validation"] is None) == (share == "0")
    assert ("of each recording is held out: " in found.err) == (share in ("0.05", "0.1", "0.9")), found.err


def test_values_far_from_the_file_are_named_first(identify, tmp_path: Path) -> None:
    """Friction in the file that is surely far too small is named, the worst first; friction that is missing is not."""
    path = arm_table(tmp_path / "run.csv", lambda tau: tau)
    robot = replace(load_robot("sea_planar_2r"), joint_friction=True)
    first, second = robot.joints
    less = tmp_path / "less.yaml"
    far = r"joint viscous is \S+ ± \S+ N m s/rad,"
    for damping, named in (((0.1, 0.0), ["joint_1"]), ((0.1, 0.01), ["joint_2", "joint_1"])):
        joints = tuple(replace(joint, damping=x) for joint, x in zip((first, second), damping, strict=True))
        less.write_text(robot_as_yaml(replace(robot, joints=joints)).text)
        lines = identify(path, less, "--hold-out", "0.3", "--cutoff", "5").out.splitlines()
        for line, joint in zip(lines[: len(named)], named, strict=True):
            value = damping[robot.joint_names.index(joint)]
            assert re.match(rf"{joint}: {far} {value}\d* in the file", line), line
        assert not lines[len(named)].startswith("joint_")


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is missing")
def test_a_small_share_identifies_a_real_arm(run, tmp_path: Path) -> None:
    """At 0.1 of 24 s, half a second is left of the block, and decided that nothing is identified."""
    pytest.importorskip("rosbags")
    options = ("--side", "motor", "--hold-out", "0.1", "--json")
    found = run("identify", PANDA_BAG, "--robot", "panda", "-o", tmp_path / "o.yaml", *options).json
    before, after = (np.array(found["validation"][x]) for x in ("rms_before", "rms_after"))
    # Blocks are as long as the filter needs: in a short block, a joint may hardly move, and the file predicts it well.
    assert found["kept"] == [] and np.all(after < before)
    assert np.exp(np.mean(np.log(after / before))) < 0.3


@pytest.mark.parametrize(
    ("gaps", "share"),
    [("both joints", "0"), ("both joints", "0.3"), ("rows are missing", "0.3"), ("repeated", "0"), ("saturated", "0")],
)
def test_the_line_of_each_joint_adds_up_to_the_samples_read(gaps: str, share: str, identify, tmp_path: Path) -> None:
    changes: dict[str, Change] = {
        "both joints": lambda tau: missing(lambda k: k % 7 == 5, 0)(missing(lambda k: k % 11 == 3)(tau)),
        "saturated": lambda tau: np.minimum(tau, 0.8 * tau.max(axis=0)),
    }
    path = arm_table(tmp_path / "run.csv", changes.get(gaps, lambda tau: tau))
    header, *rows = path.read_text().splitlines()
    if gaps == "rows are missing":
        rows = [*rows[:700], *rows[703:1400], *rows[1430:1460], *rows[1500:]]
    elif gaps == "repeated":
        rows = [
            row if k % 50 else ",".join([row.split(",")[0], *rows[k - 1].split(",")[1:]]) for k, row in enumerate(rows)
        ]
    path.write_text("\n".join([header, *rows]) + "\n")
    out = identify(path, CONFIG / "sea_planar_2r.yaml", "--hold-out", share, "--cutoff", "5").out
    lines = [line for line in out.splitlines() if "samples read" in line]
    for line in lines:
        assert (" saturated or near it" in line) == (gaps == "saturated")
        _, counts = line.split("; ", 1)
        read, *parts = (int(x.replace(",", "")) for x in re.findall(r"(\d[\d,]*) (?=[a-z])", counts))
        assert read == len(rows) == sum(parts), line
    assert len(lines) == 2


@pytest.mark.parametrize("swapped", [False, True])
def test_a_payload_of_an_arm_with_joint_friction(swapped: bool, run, tmp_path: Path) -> None:
    """Motors of rigid joints feel the joint friction of the file; no payload explains efforts of swapped joints."""
    robot = true_robot(load_robot("planar_2r"))
    first, second = (replace(joint, spring=RIGID, rotor_inertia=0.0) for joint in robot.joints)
    robot = replace(robot, joints=(first, second), joint_friction=True)
    place, mass = np.array([0.2, 0.03, 0.0]), 1.5
    heavier = replace(
        second,
        mass=second.mass + mass,
        center_of_mass=(second.mass * second.center_of_mass + mass * place) / (second.mass + mass),
        inertia_about_origin=second.inertia_about_origin + mass * (place @ place * np.eye(3) - np.outer(place, place)),
    )
    source = recording(robot, replace(robot, joints=(first, heavier)), rate=100.0, duration=25.0)
    tau = source.tau[:, ::-1] if swapped else source.tau
    names = robot.joint_names
    header = ",".join(["t", *(f"{kind}.{name}" for kind in ("position", "effort") for name in names)])
    table = np.column_stack([source.t, source.q, tau])
    np.savetxt(tmp_path / "run.csv", table, delimiter=",", header=header, comments="")
    (tmp_path / "file.yaml").write_text(robot_as_yaml(robot).text)
    options = ("--payload", names[1], "--side", "motor", "-o", tmp_path / "o.yaml", "--verbose")
    printed = run("identify", tmp_path / "run.csv", "--robot", tmp_path / "file.yaml", *options, code=int(swapped))
    if swapped:
        assert "no payload explains" in printed.err
    else:
        (value,) = re.findall(r"mass (\S+) ±", printed.out)
        assert float(value) == pytest.approx(mass, rel=0.02)
