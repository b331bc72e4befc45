# SPDX-License-Identifier: Apache-2.0
"""The viewer: states of recordings, solids of URDFs, the scene of a real server, and the command."""

from __future__ import annotations

import re
import socket
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import CONFIG
from recorded_bags import START, header, record, types, write_bag

pytest.importorskip("viser", reason="the viewer needs viser")
pytest.importorskip("collada", reason="the viewer needs pycollada")

import trimesh

import eom_dynamics as eom
from eom_dynamics.tools.cli import view
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.replay.sources import Sampling
from eom_dynamics.tools.robot_options import RobotOptions
from eom_dynamics.tools.states_files import write_states
from eom_dynamics.tools.view.motion import PlayedMotion, at_rest, read_motion
from eom_dynamics.tools.view.scene import Viewer, start_server
from eom_dynamics.tools.view.solids import rods, visual_solids
from eom_dynamics.trajectory import Samples

ROBOT = "sea_planar_2r"
RECORD = record(ROBOT, count=100)


@pytest.fixture(scope="module")
def arm() -> eom.ElasticArm:
    return eom.ElasticArm(eom.load_robot(ROBOT))


def read(path: Path, arm: eom.ElasticArm) -> PlayedMotion:
    return read_motion(path, arm, Sampling(), RobotOptions())


def planned(rows: slice = slice(None)) -> tuple[Any, Any]:
    """Positions and deflections (N, 2) of the motion that was recorded."""
    assert RECORD.setpoint is not None and RECORD.motors is not None
    q = RECORD.setpoint.values["position"]
    return q[rows], (RECORD.motors.values["motor_position"] - q)[rows]


def test_deflections_are_those_of_recorded_motors(arm: eom.ElasticArm, tmp_path: Path) -> None:
    motion = read(write_bag(tmp_path / "bag", RECORD), arm)
    _, deflection = planned(slice(None, None, 5))
    assert RECORD.measured is not None
    np.testing.assert_array_equal(motion.states.q, RECORD.measured.values["position"])
    np.testing.assert_array_equal(motion.states.tau, RECORD.measured.values["effort"])
    np.testing.assert_allclose(motion.states.deflection, deflection, atol=1e-14)
    half = motion.at(0.005)
    np.testing.assert_allclose(half.q, motion.states.q[:2].mean(axis=0), rtol=1e-13)
    assert motion.t[0] == 0.0 and np.array_equal(motion.at(1e3).q, motion.states.q[-1])


def test_commands_alone_give_the_links(arm: eom.ElasticArm, tmp_path: Path) -> None:
    motion = read(write_bag(tmp_path / "bag", RECORD, without=("setpoint", "measured")), arm)
    q, deflection = planned()
    # The deflection is computed again, from the effort.
    np.testing.assert_allclose(motion.states.q, q, atol=1e-12)
    np.testing.assert_allclose(motion.states.deflection, deflection, atol=1e-12)


def test_joint_states_alone_give_the_deflection_of_their_efforts(arm: eom.ElasticArm, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("t,q.joint_1,q.joint_2,tau.joint_1,tau.joint_2\n0,0.1,0.2,3,nan\n1,0.2,0.4,3,nan\n")
    motion = read(path, arm)
    rest = at_rest(arm, np.array([0.1, 0.2]))
    # Linear at the second joint, 300 N m/rad, whose effort was not recorded: that at rest.
    np.testing.assert_allclose(motion.states.deflection[0, 1], rest.tau[1] / 300.0, rtol=1e-12)
    assert motion.states.tau[0].tolist() == [3.0, rest.tau[1]]
    # 400 d + 2e4 d³ = 3 at the first
    d = motion.states.deflection[0, 0]
    assert 400 * d + 2e4 * d**3 == pytest.approx(3.0, rel=1e-12)
    np.testing.assert_allclose(motion.states.qd[0], [0.1, 0.2], rtol=1e-12)


def test_motors_of_a_table_are_measured(arm: eom.ElasticArm, tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    head = "t,q.joint_1,q.joint_2,motor_position.joint_1,motor_position.joint_2"
    path.write_text(f"{head}\n0,0.1,0.2,0.15,0.3\n1,0.1,0.2,0.15,0.3\n")
    np.testing.assert_allclose(read(path, arm).states.deflection, [[0.05, 0.1]] * 2, rtol=1e-12)


def test_a_bag_of_measured_motors_has_their_deflections(arm: eom.ElasticArm, tmp_path: Path) -> None:
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    positions = {"/joint_states": np.array([0.1, 0.2]), "/motor_states": np.array([0.15, 0.3])}
    kind, store = "sensor_msgs/msg/JointState", types()
    with rosbag2.Writer(tmp_path / "bag", version=9) as bag:
        for topic, position in positions.items():
            connection = bag.add_connection(topic, kind, typestore=store)
            for stamp in (START, START + 10**9):
                empty = np.zeros(0)
                fields = {"name": list(arm.robot.joint_names), "position": position, "velocity": empty, "effort": empty}
                message = store.types[kind](header=header(stamp), **fields)
                bag.write(connection, stamp, store.serialize_cdr(message, kind))
    motion = read(tmp_path / "bag", arm)
    np.testing.assert_array_equal(motion.states.q, [[0.1, 0.2]] * 2)
    np.testing.assert_allclose(motion.states.deflection, [[0.05, 0.1]] * 2, rtol=1e-12)
    assert motion.t.tolist() == [0.0, 1.0]


def test_files_that_commands_write_are_played(
    arm: eom.ElasticArm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly", reason="simulate writes a page")
    falls = ["simulate", ROBOT, "--free", "--start", "0.1", "0.2", "--duration", "0.2", "-o", str(tmp_path / "free")]
    assert main(falls) == 0
    data = np.load(tmp_path / "free" / "data.npz")
    for name in ("data.npz", "motion.csv"):
        motion = read(tmp_path / "free" / name, arm)
        np.testing.assert_allclose(motion.states.q, data["q"], atol=1e-15)
        np.testing.assert_allclose(motion.states.deflection, data["theta"] - data["q"], atol=1e-15)
        np.testing.assert_allclose(motion.states.qd, data["qd"], atol=1e-15)
    assert motion.states.deflection.any()
    samples = Samples(*(np.full((3, *shape), float(k)) for k, shape in enumerate([(), *[(2,)] * 5])))
    write_states(tmp_path, samples._replace(t=np.arange(3.0)), arm.robot.joint_names[::-1])
    for name in ("trajectory.csv", "setpoints.npz"):
        motion = read(tmp_path / name, arm)
        assert motion.t.tolist() == [0.0, 1.0, 2.0] and np.all(motion.states.q == 1) and np.all(motion.states.qd == 2)
    capsys.readouterr()
    for name in ("free/index.html", "free"):
        assert main(["view", ROBOT, str(tmp_path / name)]) == 2
        line = "is neither a bag nor a table (.csv, .parquet, .npz); "
        assert capsys.readouterr().err.endswith(f"{name}: {line}{tmp_path / 'free'} has data.npz, motion.csv\n")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04", "cannot be read as .npz: "),
        ({}, "has no array t, joint_names; it has "),
        ({"t": np.arange(2.0), "joint_names": ["joint_1"], "q": np.zeros((3, 1))}, "has no columns position.NAME"),
    ],
)
def test_other_npz_files_are_told_in_one_line(arm: eom.ElasticArm, tmp_path: Path, content: Any, reason: str) -> None:
    path = tmp_path / "data.npz"
    path.write_bytes(content) if isinstance(content, bytes) else np.savez(path, **content)
    with pytest.raises(eom.EomDynamicsError, match=reason):
        read(path, arm)


def test_a_recording_of_another_robot_is_refused(arm: eom.ElasticArm, tmp_path: Path) -> None:
    other = record("pendulum", count=60)
    with pytest.raises(eom.EomDynamicsError, match="has none of the joints of this recording, which has "):
        read(write_bag(tmp_path / "bag", other), arm)


@pytest.fixture
def server() -> Iterator[Any]:
    started = start_server("localhost", 0)
    yield started
    started.stop()


def test_a_browser_gets_a_page_and_controls_move_the_arm(server: Any, arm: eom.ElasticArm, tmp_path: Path) -> None:
    viewer = Viewer(server, arm, (), read(write_bag(tmp_path / "bag", RECORD), arm))
    with urllib.request.urlopen(f"http://localhost:{server.get_port()}", timeout=10) as answer:
        assert answer.status == 200 and b"<html" in answer.read().lower()
    before = viewer.state
    viewer.advance(0.1)
    assert not np.array_equal(viewer.state.q, before.q), "it plays from the start"
    viewer.time.value = 0.05
    viewer.advance(0.0)
    np.testing.assert_allclose(viewer.state.q, planned()[0][25], atol=5e-3)
    viewer.play(False)
    viewer.advance(1.0)
    viewer.sliders[1].value = 1.0
    viewer.advance(1.0)
    assert viewer.state.q[1] == 1.0 and not viewer.state.qd.any(), "by hand, at rest"
    assert f"{1e3 * viewer.state.deflection[1]:.2f} mrad" in viewer.table.content
    viewer.play(True)
    viewer.advance(10.0)
    assert viewer.time.value == 0.0, "from the start again"


@pytest.mark.parametrize(("angle", "colour"), [(0.0, None), (1.4, "245, 158, 11"), (1.6, "220, 38, 38")])
def test_limits_are_shown_in_colour(server: Any, angle: float, colour: str | None) -> None:
    limits = iter(("mass: 1\n          limits: {lower: -1.5, upper: 1.5}", "mass: 1\n          limits: {lower: 5.0}"))
    text = (CONFIG / "planar_2r.yaml").read_text()
    limited = re.sub(r"mass: [\d.]+", lambda _: next(limits), text)
    viewer = Viewer(server, eom.ElasticArm(eom.load_robot(limited)))
    viewer.sliders[0].value = angle
    viewer.advance(0.0)
    found = re.findall(r'<td style="background:rgb\(([^)]*)\)', viewer.table.content)
    assert found == ([] if colour is None else [colour])


URDF = """<robot name="arm"><material name="blue"><color rgba="0 0 1 1"/></material>
<link name="base"><visual><geometry><box size="0.1 0.2 0.3"/></geometry><material name="blue"/></visual></link>
<link name="upper"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="0 0 1"/>
<geometry><mesh filename="package://arm/meshes/ball.stl" scale="2 2 2"/></geometry></visual>
<visual><geometry><mesh filename="none.stl"/></geometry></visual></link>
<joint name="j" type="continuous"><origin xyz="0 0 0.5"/><parent link="base"/><child link="upper"/>
<axis xyz="0 1 0"/></joint>
<link name="hand"><visual><geometry><sphere radius="0.1"/></geometry></visual></link>
<joint name="f" type="fixed"><origin xyz="0 0 2"/><parent link="upper"/><child link="hand"/></joint></robot>"""


def test_visuals_of_a_urdf_are_on_their_bodies(tmp_path: Path) -> None:
    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    (tmp_path / "arm" / "urdf").mkdir()
    trimesh.creation.icosphere(2, 0.5).export(tmp_path / "arm" / "meshes" / "ball.stl")
    path = tmp_path / "arm" / "urdf" / "arm.urdf"
    path.write_text(URDF)
    robot = eom.load_robot(path)
    solids, lines = visual_solids(str(path), robot, {})
    assert [solid.body for solid in solids] == [-1, 0, 0]
    assert solids[0].colour == (0, 0, 255)
    np.testing.assert_allclose(solids[1].mesh.bounds, [[-1, -1, 0], [1, 1, 2]], atol=1e-6)  # floats of STL
    np.testing.assert_allclose(solids[2].mesh.centroid, [0, 0, 2], atol=1e-12)
    assert len(lines) == 1 and lines[0].startswith("1 visuals cannot be shown, the first: upper: ")
    named = tmp_path / "named.yaml"
    named.write_text("/**:\n  ros__parameters:\n    robot: {urdf: arm/urdf/arm.urdf}\n")
    assert len(visual_solids(str(named), eom.load_robot(named), {})[0]) == 3
    assert visual_solids(ROBOT, eom.load_robot(ROBOT), {}) == ([], [])


def test_rods_reach_from_joint_to_joint_and_to_the_last_mass() -> None:
    ends = [solid.mesh.bounds[1, 0] for solid in rods(eom.load_robot(ROBOT), 1e-3)]
    np.testing.assert_allclose(ends, [0.5, 0.4], atol=1e-4)  # with the round ends


def test_ctrl_c_ends_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr(view.time, "sleep", interrupt)
    monkeypatch.setattr(view.webbrowser, "open", opened.append)
    assert main(["view", ROBOT, "--port", "0"]) == 0
    captured = capsys.readouterr()
    (url,) = opened
    assert captured.out == f"viewer: {url} (Ctrl-C ends it)\n" and captured.err == ""


def test_a_port_in_use_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["view", ROBOT, "--port", str(port), "--no-browser"]) == 2
    line = f"eom_dynamics view: --host localhost --port {port}: Address already in use; name others, such as --port 0"
    assert capsys.readouterr().err.startswith(line)


def test_a_missing_library_is_told_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["view", ROBOT]) == 2
    assert "viser is not installed; run: make build EXTRAS=view" in capsys.readouterr().err
