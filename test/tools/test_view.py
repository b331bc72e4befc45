# SPDX-License-Identifier: Apache-2.0
"""The viewer: positions of recordings, URDFs with and without meshes, the scene of a real server, and the command."""

import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_bags import record, write_bag
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.kinematics.frames import body_poses
from eom_dynamics.recordings.number_files import write_states
from eom_dynamics.robot.model import Limits
from eom_dynamics.tools.cli import view
from eom_dynamics.tools.recording_options import Sampling
from eom_dynamics.tools.robot_options import RobotOptions
from eom_dynamics.trajectory import Samples

MISSING = [name for name in ("viser", "yourdfpy") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"the viewer needs {' and '.join(MISSING)}")

NAME = "sea_planar_2r"
ROBOT = eom.load_robot(NAME)
RECORD = record(NAME, count=100)
PLANNED = RECORD.setpoint.values["position"]


def viewer() -> Any:
    """The module, whose libraries take a second to import."""
    return import_module("eom_dynamics.tools.view")


def read(path: Path) -> Any:
    return viewer().read_played_motion(path, ROBOT, Sampling(), RobotOptions())


def test_measured_positions_are_played_else_setpoints(tmp_path: Path) -> None:
    motion = read(write_bag(tmp_path / "bag", RECORD))
    np.testing.assert_array_equal(motion.q, RECORD.measured.values["position"])
    np.testing.assert_allclose(motion.at(0.005), motion.q[:2].mean(axis=0), rtol=1e-13)
    assert motion.t[0] == 0.0 and np.array_equal(motion.at(1e3), motion.q[-1])
    motion = read(write_bag(tmp_path / "sent", RECORD, without=("measured",)))
    np.testing.assert_array_equal(motion.q, PLANNED)
    with pytest.raises(eom.EomDynamicsError, match="has no positions of links; play the recording that it was"):
        read(write_bag(tmp_path / "commands", RECORD, without=("setpoint", "measured")))


def test_samples_in_another_order_or_without_a_position_are_left_out(tmp_path: Path) -> None:
    q = np.array([[0.0, 0.1], [1.0, 1.1], [np.nan, 2.1], [3.0, 3.1]])
    np.savez(tmp_path / "run.npz", t=[1.0, 3.0, 4.0, 2.0], joint_names=ROBOT.joint_names, q=q, tau=q)
    motion = read(tmp_path / "run.npz")
    assert motion.t.tolist() == [0.0, 2.0] and motion.q.tolist() == q[:2].tolist()


def test_files_that_commands_write_are_played(tmp_path: Path, refused) -> None:
    samples = Samples(*(np.full((3, *shape), float(k)) for k, shape in enumerate([(), *[(2,)] * 5])))
    write_states(tmp_path, samples._replace(t=np.arange(3.0)), ROBOT.joint_names[::-1])
    for name in ("trajectory.csv", "setpoints.npz"):
        motion = read(tmp_path / name)
        assert motion.t.tolist() == [0.0, 1.0, 2.0] and np.all(motion.q == 1)
    (tmp_path / "index.html").touch()
    for path in (tmp_path / "index.html", tmp_path):
        reason = f"is neither a bag nor a table (.csv, .parquet, .npz); {tmp_path} has setpoints.npz, trajectory.csv"
        assert refused("view", NAME, path).endswith(f"{path}: {reason}")


@pytest.fixture
def server() -> Iterator[Any]:
    started = viewer().start_server("localhost", 0)
    yield started
    started.stop()


def test_a_browser_gets_a_page_and_controls_move_the_arm(server: Any, tmp_path: Path) -> None:
    urdf, _ = viewer().shown_urdf(NAME, ROBOT, {})
    shown = viewer().Viewer(server, ROBOT, urdf, read(write_bag(tmp_path / "bag", RECORD)))
    with urllib.request.urlopen(f"http://localhost:{server.get_port()}", timeout=10) as answer:
        assert answer.status == 200 and b"<html" in answer.read().lower()
    before = shown.q
    shown.advance(0.1)
    assert not np.array_equal(shown.q, before), "it plays from the start"
    shown.time.value = 0.05
    shown.playing.value = False
    shown.advance(1.0)
    np.testing.assert_allclose(shown.q, PLANNED[25], atol=5e-3)
    assert [slider.value for slider in shown.sliders] == pytest.approx(shown.q, abs=5e-4)
    rest = shown.q[0]
    shown.sliders[1].value = 1.0
    shown.advance(1.0)
    assert shown.q.tolist() == [rest, 1.0], "by hand"
    shown.playing.value = True
    shown.advance(10.0)
    assert shown.time.value == 0.0, "from the start again"


@pytest.mark.parametrize("name", ["planar_pr", "dual_arm"])
def test_the_written_urdf_moves_as_the_robot(name: str) -> None:
    robot = eom.load_robot(name)
    urdf, lines = viewer().shown_urdf(name, robot, {})
    q = np.random.default_rng(0).uniform(-1, 1, robot.n)
    urdf.update_cfg(dict(zip(robot.joint_names, q, strict=True)))
    tool = robot.tools[0]
    pose = body_poses(robot, q)[tool.joint] @ tool.pose
    np.testing.assert_allclose(urdf.get_transform(tool.name), pose, atol=1e-9)
    assert not lines and urdf.scene.geometry


@pytest.mark.parametrize(
    ("limits", "low", "high"),
    [(Limits(), -np.pi, np.pi), (Limits(lower=5.0), 5.0, 5 + np.pi), (Limits(upper=-5.0), -5 - np.pi, -5.0)],
)
def test_sliders_without_limits_have_a_turn(server: Any, limits: Limits, low: float, high: float) -> None:
    robot = replace(ROBOT, joints=tuple(replace(joint, limits=limits) for joint in ROBOT.joints))
    slider = viewer().Viewer(server, robot, viewer().shown_urdf(NAME, robot, {})[0]).sliders[0]
    assert (slider.min, slider.max) == pytest.approx((low, high)) and low <= slider.value <= high


URDF = """<robot name="arm"><link name="base"><visual><geometry><box size="0.1 0.2 0.3"/></geometry></visual></link>
<link name="upper"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="0 0 1"/>
<geometry><mesh filename="package://arm/meshes/ball.stl" scale="2 2 2"/></geometry></visual>
</link><joint name="j" type="continuous"><origin xyz="0 0 0.5"/><parent link="base"/><child link="upper"/>
<axis xyz="0 1 0"/></joint></robot>"""


def test_meshes_of_a_urdf_are_shown(tmp_path: Path) -> None:
    import trimesh

    (tmp_path / "arm" / "meshes").mkdir(parents=True)
    (tmp_path / "arm" / "urdf").mkdir()
    ball = tmp_path / "arm" / "meshes" / "ball.stl"
    trimesh.creation.icosphere(2, 0.5).export(ball)
    path = tmp_path / "arm" / "urdf" / "arm.urdf"
    path.write_text(URDF)
    urdf, lines = viewer().shown_urdf(str(path), eom.load_robot(path), {})
    assert not lines and len(urdf.scene.geometry) == 2
    ball.unlink()
    urdf, lines = viewer().shown_urdf(str(path), eom.load_robot(path), {})
    assert lines == ["1 meshes cannot be shown, the first: package://arm/meshes/ball.stl"]
    assert len(urdf.scene.geometry) == 1
    plain = tmp_path / "plain.urdf"
    plain.write_text(urdf_arm(joints=("a", "b")))
    urdf, lines = viewer().shown_urdf(str(plain), eom.load_robot(plain), {})
    assert not lines and urdf.scene.geometry, "rods"


def test_ctrl_c_ends_it(monkeypatch, run) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr(view.time, "sleep", interrupt)
    monkeypatch.setattr(view.webbrowser, "open", opened.append)
    captured = run("view", NAME, "--port", "0")
    (url,) = opened
    assert captured.out == f"viewer: {url} (Ctrl-C ends it)\n" and captured.err == ""


def test_a_port_in_use_is_told_in_one_line(refused) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("view", NAME, "--port", port, "--no-browser")
    assert f"--host localhost --port {port}: Address already in use; name others, such as --port 0" in line
