# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics retime``: formats of paths, files of the result, and errors."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.simulation.reference import read_motion
from eom_dynamics.trajectory import check, minimum_time, rest_to_rest

MISSING = [name for name in ("plotly", "rich", "rosbags") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build")

NAMES = ("joint_1", "joint_2")
WAYPOINTS = [[0.0, 0.5], [0.8, -0.2], [1.2, 0.6]]

LIMITS = "limits: {velocity: 2.0, effort: 10.0, effort_rate: 200.0}"


def robot_file(folder: Path, limits: str = LIMITS) -> Path:
    """A rigid planar arm; the second joint has its usual limits."""
    text = re.sub(r" +(elasticity|rotor_inertia): .*\n", "", (CONFIG / "planar_2r.yaml").read_text(encoding="utf-8"))
    text = text.replace("[0.0, -9.80665, 0.0]", "[0.0, 0.0, -9.80665]")
    for name, own in zip(NAMES, (limits, LIMITS), strict=True):
        text = text.replace(f"{name}:\n", f"{name}:\n          {own}\n")
    file = folder / "planar.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def robot(tmp_path_factory) -> Path:
    return robot_file(tmp_path_factory.mktemp("retime"))


def write(path: Path) -> Path:
    turned = [row[::-1] for row in WAYPOINTS]
    if path.suffix == ".csv":
        path.write_text("t,q.joint_2,q.joint_1\n" + "".join(f"0,{a},{b}\n" for a, b in turned), encoding="utf-8")
    elif path.suffix == ".json":
        content = {"joint_names": NAMES[::-1], "points": [{"positions": row} for row in turned]}
        path.write_text(json.dumps(content), encoding="utf-8")
    elif path.suffix == ".npz":
        np.savez(path, q=turned, joint_names=np.array(NAMES[::-1]))
    return path


@pytest.mark.parametrize("name", ["path.csv", "path.json", "path.npz"])
def test_reads_waypoints_in_any_order_of_joints(name: str, tmp_path: Path) -> None:
    from eom_dynamics.tools.retime import read_waypoints

    np.testing.assert_array_equal(read_waypoints(write(tmp_path / name), NAMES), WAYPOINTS)


def test_reads_the_trajectory_of_a_bag(tmp_path: Path) -> None:
    from eom_dynamics.tools.excite import write_trajectory
    from eom_dynamics.tools.retime import read_waypoints

    motion = rest_to_rest(WAYPOINTS[0], WAYPOINTS[1], 1.0)
    (tmp_path / "bag").mkdir()
    write_trajectory(tmp_path / "bag", motion, NAMES[::-1], 10.0)
    found = read_waypoints(tmp_path / "bag", NAMES)
    assert found.shape == (11, 2)
    np.testing.assert_array_equal(found, motion.derivatives(np.arange(11) / 10, 0)[0][:, ::-1])


def test_writes_the_fastest_motion(robot: Path, tmp_path: Path, run) -> None:
    folder = tmp_path / "out"
    path = write(tmp_path / "path.csv")
    printed = run("retime", str(robot), str(path), "-o", str(folder), "--json").json
    arm = eom.ElasticArm(eom.load_robot(robot))
    motion = minimum_time(arm, WAYPOINTS)
    assert printed["duration"] == pytest.approx(motion.duration, rel=1e-9)
    assert {each["quantity"] for each in printed["active"]} <= {"velocity", "effort", "effort_rate"}
    samples = read_motion(folder / "setpoints.npz", arm.robot, None)
    assert check(arm, eom.trajectory.Samples(samples.t, *samples.derivatives(samples.t))).ok
    assert (folder / "trajectory.csv").is_file()
    points = json.loads((folder / "joint_trajectory.json").read_text(encoding="utf-8"))["points"]
    np.testing.assert_allclose(points[-1]["positions"], WAYPOINTS[-1], rtol=0, atol=1e-12)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Active limits" in page and "limit of velocity" in page and f"{motion.duration:.4f} s" in page


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("path.csv", "", "cannot be read as waypoints: has no rows of numbers"),
        ("path.csv", "joint_1\n0\n1\n", "lacks joint_2; it has joint_1"),
        ("path.json", '{"points": [{"velocities": [0, 1]}]}', "cannot be read as waypoints: has no 'positions'"),
        ("path.json", "[[0, 0], [1, 1], [1, 1]]", "waypoints 1 and 2 are equal"),
        ("path.npz", "PK", "cannot be read as waypoints: is not a .npz archive"),
        ("path.mcap", "", "path.mcap"),
    ],
)
def test_errors_of_waypoints(name: str, content: str, message: str, robot: Path, tmp_path: Path, refused) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert message in refused("retime", robot, path, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("limits: {velocity: 2.0, jerk: 1.0e-9}", "samples; lower --rate"),  # a motion of hours
        ("limits: {velocity: 2.0, upper: 1.0}", "joint_1: position 1.2 rad at "),
    ],
)
def test_limits_without_a_fastest_motion(limits: str, message: str, tmp_path: Path, refused) -> None:
    command = ["retime", robot_file(tmp_path, limits), write(tmp_path / "path.csv"), "-o", tmp_path / "out"]
    assert message in refused(*command)
    assert not (tmp_path / "out").exists()
