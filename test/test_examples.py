# SPDX-License-Identifier: Apache-2.0
"""The examples run, and print what they promise; configurations of drivers have their names and parameters."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from paths import CONFIG, DOCS, ROOT
from processes import run

from eom_dynamics import Dynamics, ElasticArm, load_robot
from eom_dynamics.export.ros2_control import shared_files
from eom_dynamics.trajectory import Samples, check, paper_motion

EXAMPLES = ROOT / "examples"
OUTPUTS = {
    "block_on_table": r"sticks .*0\.50\d s: slides .*1\.25\d s: sticks .*distance (0\.28\d\d) m, by hand 0\.2860 m",
    "identify": r"Izz1 \+ 0.25 m2 +0\.82.*joint_2: RMS residual 1\.\d+ N m by the file, 0\.0.*identified: .* 0\.5[12]",
    "identify_springs": r"joint_1: rotor_inertia 0\.20.*joint_2: stiffness (300\.|299\.9)",
    "inverse_dynamics": r"taud against differences: \S+e-0[5-9] of its peak\n.*\n\njoint .*iiwa_joint_7",
    "feedforward_errors": r"planar_2r: springs -10 %, bodies \+5 %, .*\nrigid +27\.3 mrad .*\nflatness +4\.41 mrad",
    "elastic_feedforward": r"deflection \[mrad\].*fer_joint7",
    "load_urdf": r"two_links: 2 joints: shoulder, elbow\n.*transpose: \S+e-1[4-9]",
    "minimum_time": r"velocity and effort: 0\.4\d+ s.*all limits: 0\.6\d+ s.*acceleration of .*within the limits",
    "singularities": r"exact: joint rates up to 1\d\d rad/s\ndamped: joint rates up to 8\.\d+ rad/s\n"
    r".*knee, ankle \[-0\.3333  0\.6667 -0\.3333\].*inverse of J: joint angles off by .*e\+.*inverse: .* 0\.14 rad",
    "swinging_tool": r"rings at 3\.9\d Hz.*q: 0\.\d+ s, swings by 6\.\d mm .*τ/K: 0\.\d+ s, swings by 0\.\d+ mm after",
    "tool_path": r"solved after \d steps, .*pose: off by \S+e-1[3-9].*within the limits",
    "trajectory_limits": r"as planned, 0.80 s: beyond the limits\n.*slowed down by 1\.\d+, .*within the limits",
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_example(name: str, capsys, monkeypatch, tmp_path) -> None:
    for library in ("matplotlib", "mujoco"):
        if library in (EXAMPLES / f"{name}.py").read_text():
            pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.setattr("sys.argv", [name])
    monkeypatch.chdir(tmp_path)  # where one writes its picture
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert re.search(OUTPUTS[name], capsys.readouterr().out, re.DOTALL)


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ((0.0, 0.0, 0.0, 0.0, 0.0), (32768, 2048, 0, 0, 2048)),
        ((12.5, -30.0, 500.0, 5.0, -10.0), (65535, 0, 4095, 4095, 0)),
        ((-99.0, 99.0, -1.0, 9.0, 99.0), (0, 4095, 0, 4095, 4095)),
        ((1.25, 3.0, 100.0, 1.0, -2.5), (36044, 2252, 819, 819, 1536)),
    ],
)
def test_frames_of_mit_mode(values: tuple[float, ...], fields: tuple[int, ...]) -> None:
    """By bytes, as the drives read them."""
    example = runpy.run_path(str(EXAMPLES / "drivers" / "mit_mode.py"))
    b = example["frame"](*values, example["Ranges"]())
    read = (
        b[0] << 8 | b[1],
        b[2] << 4 | b[3] >> 4,
        (b[3] & 15) << 8 | b[4],
        b[5] << 4 | b[6] >> 4,
        (b[6] & 15) << 8 | b[7],
    )
    assert len(b) == 8 and read == pytest.approx(fields, abs=1)


# In a process that waits for what does not come, time passes faster.
SOONER = """
import time
monotonic = time.monotonic
time.monotonic = lambda: 5.0 * monotonic()
"""


@pytest.mark.ros
@pytest.mark.parametrize(
    ("example", "robot", "module", "expected"),
    # The node refuses setpoints of another robot. It publishes with a depth of 1, so that commands may be lost.
    [
        ("stream_setpoints", "iiwa", "dynamics_node", r"200 setpoints sent, \d+ commands received; .*iiwa_joint_7"),
        ("stream_setpoints", "planar_2r", "dynamics_node", "sent, 0 commands received:"),
        ("type_setpoint", "pendulum", "dynamics_node", r": link at 0\.2, motor at 0\.\d+, motor effort -?\d+\.\d{3}"),
        ("retime_planned", "panda", "planning_node", r"retimed: 0\.\d+ s, \d+ points within all limits"),
    ],
)
def test_streaming_example(example: str, robot: str, module: str, expected: str, tmp_path: Path) -> None:
    node_client = ros()
    name = {"planning_node": "eom_dynamics_planning"}.get(module)
    node = node_client.NodeProcess(tmp_path, "--params-file", CONFIG / f"{robot}.yaml", module=module, name=name)
    arguments = (EXAMPLES / f"{example}.py", "0.2", "--ros-args", "-r", f"__ns:={node.namespace}")
    patch = SOONER if "0 commands" in expected else ""
    try:
        node.wait_for(f"robot {robot} with")  # loaded: the example waits for 2 s only
        # What was typed once may be typed again, while the node sends where the arm is held.
        for _ in range(2 if example == "type_setpoint" else 1):
            code, output, error = node_client.ended("script_process", tmp_path, *arguments, patch=patch)
            assert (code, error) == (1 if "0 commands" in expected else 0, "")
            assert re.search(expected, output, re.DOTALL)
    finally:
        node.end()


@pytest.mark.ros
def test_targets_after_a_setpoint(tmp_path: Path) -> None:
    """The commands of the README."""
    node_client = ros()
    node = node_client.NodeProcess(tmp_path, "--params-file", CONFIG / "panda.yaml")
    space = ("--ros-args", "-r", f"__ns:={node.namespace}")
    try:
        for example, last in (("type_setpoint", "0.8"), ("type_target", "0.9"), ("type_target", "0.7")):
            words = (EXAMPLES / f"{example}.py", *["0", "-0.5", "0", "-2", "0", "1.5"], last, *space)
            code, output, error = node_client.ended("script_process", tmp_path, *words)
            assert (code, error) == (0, "")
            assert f"fer_joint7: link at {last}, motor at {last}" in output
    finally:
        node.end()


def test_motion_that_is_streamed_is_within_limits() -> None:
    text = (EXAMPLES / "stream_setpoints.py").read_text("utf-8")
    (slower,) = re.findall(r"^SLOWER = ([\d.]+)", text, re.MULTILINE)
    t = np.arange(0.0, 2.0, 1e-3)
    states = [x / float(slower) ** k for k, x in enumerate(paper_motion().derivatives(t / float(slower)))]
    assert check(ElasticArm(load_robot("iiwa")), Samples(t, *states)).ok


NOBODY = ("1", "--ros-args", "-r", "__ns:=/nobody")

# After the script has said that it waits for a node, of which there is none.
INTERRUPT = """
import builtins, os, rclpy, signal
spin, say, said = rclpy.spin_once, print, []
def saying(*words, **keywords):
    say(*words, **keywords)
    said.append(words)
def interrupting(*arguments, **keywords):
    if said:
        os.kill(os.getpid(), signal.SIGINT)
    spin(*arguments, **keywords)
builtins.print, rclpy.spin_once = saying, interrupting
"""


@pytest.mark.ros
def test_streaming_example_says_that_it_waits_and_is_interrupted_without_a_traceback(tmp_path: Path):
    arguments = (EXAMPLES / "stream_setpoints.py", *NOBODY)
    code, output, error = ros().ended("script_process", tmp_path, *arguments, patch=SOONER + INTERRUPT)
    assert (code, error) == (130, "")
    assert output.startswith("waiting for the node; start it as") and output.count("\n") == 1


def test_the_ringing_after_a_tap_gives_the_stiffness(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot, t = load_robot("ur5e"), np.arange(0.0, 3.0, 0.004)
    q, swings = np.array([0.0, -1.2, 1.5, -1.8, -1.5, 0.0]), np.exp(-t) * np.cos(2 * np.pi * 6.3 * t)
    columns = {"t": t}
    for k, joint in enumerate(robot.joint_names):
        columns[f"position.{joint}"] = np.full(len(t), q[k])
        columns[f"effort.{joint}"] = 1.0 + (5.0 if k == 0 else 0.1) * swings
    path, table = tmp_path / "tap.csv", np.column_stack([*columns.values()])
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="")
    runpy.run_path(str(EXAMPLES / "ringing.py"))["main"](str(path), "ur5e")
    first, *others = (
        re.findall(r"([\d.]+) Hz, .* ([\d.]+) N m, .* = (.*)$", x)[0] for x in capsys.readouterr().out.splitlines()
    )
    assert float(first[0]) == pytest.approx(6.3, abs=0.03)
    stiffness = (2 * np.pi * 6.3) ** 2 * Dynamics(robot).mass_matrix(q)[0, 0]
    assert float(first[2]) == pytest.approx(stiffness, rel=0.01)
    assert float(first[1]) > 10 * max(float(other[1]) for other in others)


@pytest.mark.ros
def test_a_can_interface_that_is_missing_is_named() -> None:
    ros()
    code, _, error = run([sys.executable, EXAMPLES / "drivers" / "mit_mode.py", "nocan0", "shoulder=1"])
    assert code == 1 and error.startswith("nocan0: ") and "is it up? ip link set nocan0 up type can" in error


def ros() -> Any:
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")
    import domains
    import node_client

    domains.claim_domain()
    return node_client


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        *OUTPUTS,
        "example_data",  # test/test_pages.py
        "learning",  # test/examples/test_learning.py
        "motor_setpoint_bridge",  # test/ros/test_own_drives.py
        "paper",  # test/examples/test_paper.py
        "retime_planned",
        "ringing",
        "stream_setpoints",
        "type_setpoint",
        "type_target",
    }


DRIVERS = ROOT / "examples" / "drivers"
# As in the public descriptions that docs/drivers.md names.
JOINTS = {
    "fr3": [f"fr3_joint{i}" for i in range(1, 8)],
    "lbr": [f"lbr_A{i}" for i in range(1, 8)],
    "ur5e": [f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")],
    "odrive": ["shoulder", "elbow"],
}

# Of the robots, which files of the exported package begin with.
NAMES = {"fr3": "fr3", "lbr": "iiwa7", "ur5e": "ur", "odrive": "odrive_arm"}


def test_every_driver_has_both_files_and_a_column() -> None:
    files = {f"{name}_{kind}.yaml" for name in JOINTS for kind in ("robot", "controllers")}
    assert {path.name for path in DRIVERS.glob("*.*")} == files | {"mit_mode.py"}  # a bridge, without ros2_control
    assert " | ".join(f"`{name}`" for name in JOINTS) in (DOCS / "drivers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", JOINTS)
def test_configurations(name: str) -> None:
    (robot,) = (each["ros__parameters"]["robot"] for each in _read(f"{name}_robot.yaml").values())
    given, front = (each["ros__parameters"] for each in _read(f"{name}_controllers.yaml").values())
    assert given["joints"] == front["joints"] == robot.get("joint_names", JOINTS[name]) == JOINTS[name]
    # Motors of rigid joints are the joints.
    assert given["motors"] == (JOINTS[name] if name != "odrive" else ["shoulder_motor", "elbow_motor"])
    assert front["command_joints"] == [f"feedforward_controller/{joint}" for joint in JOINTS[name]]
    (declared,) = yaml.safe_load(shared_files()["src/feedforward_controller_parameters.yaml"]).values()
    assert given.pop("type") == "eom_feedforward_controller/FeedforwardController"
    assert given["robot_file"] == f"package://eom_feedforward_controller/config/{NAMES[name]}.yaml"
    for parameter, value in given.items():
        rules = declared[parameter].get("validation", {})
        assert value in rules.get("one_of<>", [[value]])[0]
        if "subset_of<>" in rules:
            assert set(value) <= set(rules["subset_of<>"][0])
        if "element" in str(rules):
            assert len(value) == len(JOINTS[name])


def _read(name: str) -> dict[str, dict[str, dict[str, dict[str, object]]]]:
    return yaml.safe_load((DRIVERS / name).read_text())
