# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics excite`` and ``retime``: files of motions, tables, formats of paths and errors."""

import json
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.recordings.number_files import read_waypoints
from eom_dynamics.tools.cli.excite import read_spheres, write_trajectory
from eom_dynamics.tools.cli.main import main
from eom_dynamics.trajectory import Fourier, check, minimum_time, rest_to_rest

ROBOT = "sea_planar_2r"
RANGE = ("--lower=-1,-2", "--upper", "1.5", "--upper", "joint_2=2", "--velocity", "3")
QUICK = ("--period", "2", "--harmonics", "4", "--candidates", "2", "--rate", "500")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("excite") / "new" / "out"
    assert main(["excite", ROBOT, "-o", str(place), *RANGE, *QUICK, "--share", "0.8", "--periods", "2"]) == 0
    return place


@pytest.fixture(scope="module")
def motion(folder: Path) -> Fourier:
    """The motion by the coefficients written."""
    said = json.loads((folder / "excitation.json").read_text())
    return Fourier(said["frequency"], said["sine"], said["cosine"], said["offset"], periods=said["periods"])


def test_csv_npz_and_json_are_motions_of_the_robot(folder: Path, motion: Fourier) -> None:
    robot = eom.load_robot(ROBOT)
    said = json.loads((folder / "joint_trajectory.json").read_text())
    times = [point["time_from_start"]["sec"] + 1e-9 * point["time_from_start"]["nanosec"] for point in said["points"]]
    np.testing.assert_allclose(times, np.arange(401) / 100, atol=1e-9)
    assert said["joint_names"] == list(robot.joint_names)
    for k, field in enumerate(("positions", "velocities", "accelerations")):
        np.testing.assert_allclose([p[field] for p in said["points"]], motion.derivatives(times)[k], atol=1e-7)
    with np.load(folder / "setpoints.npz") as data:
        assert data["joint_names"].tolist() == list(robot.joint_names)
        archived = [data["t"], *(data[name] for name in STATE_NAMES)]
    table = np.genfromtxt(folder / "trajectory.csv", delimiter=",", names=True, deletechars="")
    tabled = [table["t"], *(np.stack([table[f"{x}.{j}"] for j in robot.joint_names], -1) for x in STATE_NAMES)]
    for t, *states in (archived, tabled):
        assert len(t) == 2001 and t[-1] == 4.0
        for one, other in zip(states, motion.derivatives(t), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12 * np.max(np.abs(other)))


@pytest.mark.parametrize("topic", ["setpoint", "joint_trajectory"])
def test_replay_reads_the_bag(folder: Path, motion: Fourier, topic: str, tmp_path: Path) -> None:
    """The efforts of the replay are the efforts of the motion; the points at 100 Hz are fitted."""
    output = tmp_path / "replayed.parquet"
    arguments = ["replay", str(folder / topic), "--robot", ROBOT, "-o", str(output)]
    assert main([*arguments, "--rate", "500"]) == 0
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow missing: make build")
    table = parquet.read_table(output).to_pydict()
    start = datetime(1970, 1, 1, 0, 0, 1)
    t = np.array([(stamp.replace(tzinfo=None) - start).total_seconds() for stamp in table["stamp"]])
    assert len(t) == 2001
    tau = eom.ElasticArm(eom.load_robot(ROBOT)).feedforward(*motion.derivatives(t)).tau
    found = np.stack([table["effort.joint_1"], table["effort.joint_2"]], axis=1)
    # The spline through points every 10 ms misses the motion of 2 Hz by some 1e-7.
    tolerance = 1e-9 if topic == "setpoint" else 1e-5
    np.testing.assert_allclose(found, tau, atol=tolerance * np.max(np.abs(tau)))


def test_tables(tmp_path: Path, run) -> None:
    """Files of one seed are equal, except for archives, which contain the time of writing."""
    command = ["excite", ROBOT, *RANGE, *QUICK, "-o"]
    text = run(*command, tmp_path / "a").out
    for part in ("start  optimized", "condition number", "log det", "motor torque", "joint_2", "90% of the limits"):
        assert part in text, part
    said = run(*command, tmp_path / "b", "--json").json
    assert said["within_limits"] and said["optimized"]["smallest"] > said["start"]["smallest"]
    assert max(each["ratio"] for each in said["limits"]) <= 0.9 * (1 + 1e-6)
    assert {abs(each["limit"]) for each in said["limits"] if each["quantity"] == "velocity"} == {3.0}
    names = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*.*"))
    assert len(names) == 8
    for name in names:
        assert name.suffix == ".npz" or (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "have no lower, upper; give them in the robot's file, or by --lower, --upper"),
        ((*RANGE, "--velocity", "1,2,3"), "--velocity: 3 numbers, must be 1 or 2: joint_1, joint_2"),
        ((*RANGE, "--effort", "knee=3"), "--effort: sea_planar_2r has no joint 'knee'; it has joint_1, joint_2"),
        ((*RANGE, "--effort-rate", "joint_1=0"), "joint_1: limit effort_rate must be positive, is 0"),
        (("--velocity", "fast"), "--velocity: must be a number, is 'fast'"),
        (("--velocity", "=3"), "--velocity: must be [JOINT=]X,…, is '=3'"),
    ],
)
def test_errors(arguments: tuple[str, ...], message: str, tmp_path: Path, refused) -> None:
    assert message in refused("excite", ROBOT, "-o", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


URDF = """<robot name="r"><link name="a"><collision><origin xyz="1 2 3"/><geometry><sphere radius="0.5"/></geometry>
</collision><collision><geometry><sphere radius="0.25"/></geometry></collision>
<collision><geometry><box size="1 1 1"/></geometry></collision></link><link name="b"/></robot>"""


@pytest.mark.parametrize(("name", "text"), [("r.urdf", URDF), ("r.yaml", "a: [[1, 2, 3, 0.5], [0, 0, 0, 0.25]]")])
def test_spheres_are_read(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert read_spheres(tmp_path / name) == {"a": [[1, 2, 3, 0.5], [0, 0, 0, 0.25]]}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.urdf", "<robot name='r'><link name='a'/></robot>", "has no collision spheres"),
        ("r.urdf", "<robot", "not valid XML"),
        ("r.urdf", URDF.replace("0.25", "wide"), "radius"),
        ("r.yaml", "", "must hold lists of spheres"),
        ("r.yaml", "{}", "has no collision spheres"),
        ("r.yaml", "a: [1, 2", "not valid YAML"),
        ("r.yaml", "[1, 2]", "must hold lists"),
        ("r.yaml", None, r"r\.yaml"),  # is missing
    ],
)
def test_files_without_spheres(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(RobotDescriptionError, match=message) as raised:
        read_spheres(tmp_path / name)
    assert "\n" not in str(raised.value)


NAMES = ("joint_1", "joint_2")
WAYPOINTS = [[0.0, 0.5], [0.8, -0.2], [1.2, 0.6]]

LIMITS = "limits: {velocity: 2.0, effort: 10.0, effort_rate: 200.0}"


@pytest.fixture(scope="module")
def robot(tmp_path_factory) -> Path:
    """A rigid planar arm."""
    text = (CONFIG / "planar_2r.yaml").read_text(encoding="utf-8")
    text = re.sub(r" +(elasticity|rotor_inertia|limits): .*\n", "", text)
    text = text.replace("[0.0, -9.80665, 0.0]", "[0.0, 0.0, -9.80665]")
    for name in NAMES:
        text = text.replace(f"{name}:\n", f"{name}:\n          {LIMITS}\n")
    file: Path = tmp_path_factory.mktemp("retime") / "planar.yaml"
    file.write_text(text, encoding="utf-8")
    return file


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


@pytest.mark.parametrize("name", ["path.csv", "path.json", "path.npz", "bag"])
def test_reads_waypoints_in_any_order_of_joints(name: str, tmp_path: Path) -> None:
    if name == "bag":
        (tmp_path / "bag").mkdir()
        write_trajectory(tmp_path / "bag", rest_to_rest(WAYPOINTS[0], WAYPOINTS[1], 1.0), NAMES[::-1], 10.0)
        found = read_waypoints(tmp_path / "bag", NAMES)
        assert len(found) == 11
        np.testing.assert_array_equal(found[[0, -1]], np.array(WAYPOINTS)[[0, 1], ::-1])
        return
    np.testing.assert_array_equal(read_waypoints(write(tmp_path / name), NAMES), WAYPOINTS)


def test_writes_the_fastest_motion(robot: Path, tmp_path: Path, run) -> None:
    folder = tmp_path / "out"
    path = write(tmp_path / "path.csv")
    printed = run("retime", str(robot), str(path), "-o", str(folder)).out
    arm = eom.ElasticArm(eom.load_robot(robot))
    motion = minimum_time(arm, WAYPOINTS)
    assert f"duration: {motion.duration:.4f} s\n" in printed
    active = printed.split("Active limits\n")[1].splitlines()[0].split(", ")
    assert {each.partition(" of ")[0] for each in active} <= {"velocity", "effort", "effort_rate"}
    with np.load(folder / "setpoints.npz") as data:
        assert check(arm, eom.trajectory.Samples(*(data[name] for name in ("t", *STATE_NAMES)))).ok
    assert (folder / "trajectory.csv").is_file()
    points = json.loads((folder / "joint_trajectory.json").read_text(encoding="utf-8"))["points"]
    np.testing.assert_allclose(points[-1]["positions"], WAYPOINTS[-1], rtol=0, atol=1e-12)
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Active limits" in page and "limit of velocity" in page and f"{motion.duration:.4f} s" in page


def test_a_path_has_a_tolerance_and_may_turn_back(robot: Path, tmp_path: Path, run) -> None:
    way = np.linspace([0.0, 0.5], [0.8, -0.2], 300)
    np.savetxt(tmp_path / "path.csv", np.vstack([way, way[::-1]]), "%.4f", ",")
    by_digits = run("retime", robot, tmp_path / "path.csv", "-o", tmp_path / "one").out
    assert re.search(r"path tolerance: 0\.0001\d.* rad, 1 stop at reversals of the path\n", by_digits)
    given = run("retime", robot, tmp_path / "path.csv", "-o", tmp_path / "two", "--tolerance", 0.001).out
    assert "path tolerance: 0.001 rad, 1 stop" in given


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("path.csv", "", "cannot be read as waypoints: has no rows of numbers"),
        ("path.csv", "joint_1\n0\n1\n", "lacks joint_2; it has joint_1"),
        ("path.json", '{"points": [{"velocities": [0, 1]}]}', "cannot be read as waypoints: has no 'positions'"),
        ("path.json", "[[1, 1], [1, 1], [1, 1]]", "all 3 waypoints are within the path tolerance"),
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
        ("limits: {velocity: 2.0, jerk: 1.0e-9}", "samples; check the limits"),  # a motion of hours
        ("limits: {velocity: 2.0, upper: 1.0}", "joint_1: position 1.2 rad at "),
    ],
)
def test_limits_without_a_fastest_motion(limits: str, message: str, robot: Path, tmp_path: Path, refused) -> None:
    (tmp_path / "arm.yaml").write_text(robot.read_text(encoding="utf-8").replace(LIMITS, limits, 1), encoding="utf-8")
    command = [tmp_path / "arm.yaml", write(tmp_path / "path.csv"), "-o", tmp_path / "out"]
    assert message in refused("retime", *command)
    assert not (tmp_path / "out").exists()
