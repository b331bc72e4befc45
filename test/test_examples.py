# SPDX-License-Identifier: Apache-2.0
"""The examples run, and print what they promise."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paths import CONFIG, ROOT

EXAMPLES = ROOT / "examples"
OUTPUTS = {
    "block_on_table": r"sticks .*0\.50\d s: slides .*1\.25\d s: sticks .*distance (0\.28\d\d) m, by hand 0\.2860 m",
    "identify": r"Izz1 \+ 0.25 m2 +0\.82.*joint_2: RMS residual 1\.\d+ N m by the file, 0\.0.*identified: .* 0\.5[12]",
    "identify_springs": r"joint_1: rotor_inertia 0\.20.*joint_2: stiffness (300\.|299\.9)",
    "inverse_dynamics": r"taud against differences: \S+e-0[5-9] of its peak\n.*\n\njoint .*iiwa_joint_7",
    "elastic_feedforward": r"deflection \[mrad\].*fer_joint7",
    "load_urdf": r"two_links: 2 joints: shoulder, elbow\n.*transpose: \S+e-1[4-9]",
    "minimum_time": r"velocity and effort: 0\.4\d+ s.*all limits: 0\.6\d+ s.*acceleration of .*within the limits",
    "nominal_torque": r"run 1: error 2\d\.\d+ mrad, nominal torque 5\d.*run 6: error +0\.\d+ mrad, .* 1\.\d+ % off",
    "singularities": r"exact: joint rates up to 1\d\d rad/s\ndamped: joint rates up to 8\.\d+ rad/s\n"
    r".*knee, ankle \[-0\.3333  0\.6667 -0\.3333\].*inverse of J: joint angles off by .*e\+.*inverse: .* 0\.14 rad",
    "tool_path": r"solved after \d steps, .*pose: off by \S+e-1[3-9].*within the limits",
    "trajectory_limits": r"as planned, 0.80 s: beyond the limits\n.*slowed down by 1\.\d+, .*within the limits",
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_example(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if "matplotlib" in (EXAMPLES / f"{name}.py").read_text():
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert re.search(OUTPUTS[name], capsys.readouterr().out, re.DOTALL)


@pytest.mark.ros
@pytest.mark.parametrize(
    ("example", "robot", "module", "expected"),
    # The node refuses setpoints of another robot. It publishes with a depth of 1, so that commands may be lost.
    [
        ("stream_setpoints", "iiwa", "dynamics_node", r"200 setpoints sent, \d+ commands received; .*iiwa_joint_7"),
        ("stream_setpoints", "planar_2r", "dynamics_node", "sent, 0 commands received:"),
        ("stream_tool", "iiwa", "dynamics_node", r"50 setpoints of the tool sent, \d\d commands received"),
        ("retime_planned", "panda", "planning_node", r"retimed: 0\.\d+ s, \d+ points within all limits"),
    ],
)
def test_streaming_example(example: str, robot: str, module: str, expected: str, tmp_path: Path) -> None:
    processes = ros()
    from node_client import NodeProcess

    name = {"planning_node": "eom_dynamics_planning"}.get(module)
    node = NodeProcess(tmp_path, "--params-file", CONFIG / f"{robot}.yaml", module=module, name=name)
    try:
        code, output, error = processes.run(
            streaming("0.2", "--ros-args", "-r", f"__ns:={node.namespace}", example=example)
        )
    finally:
        node.end()
    assert (code, error) == (0, "")
    assert re.search(expected, output, re.DOTALL)


@pytest.mark.ros
def test_streaming_example_is_interrupted_without_a_traceback() -> None:
    processes = ros()
    # Interrupted as soon as it waits for a node, of which there is none.
    script = "import sys, rclpy, os, signal; spin = rclpy.spin_once\n"
    script += (
        "def interrupt(*arguments, **keywords): os.kill(os.getpid(), signal.SIGINT); spin(*arguments, **keywords)\n"
    )
    script += "rclpy.spin_once = interrupt; import runpy; sys.argv = sys.argv[1:]; "
    script += "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", script, *streaming("1", "--ros-args", "-r", "__ns:=/nobody")[1:]]
    code, output, error = processes.run(command)
    assert (code, processes.own_lines(output), error) == (130, "", "")


@pytest.mark.ros
@pytest.mark.parametrize("example", ["stream_setpoints", "stream_tool"])
def test_streaming_example_says_that_it_waits(example: str) -> None:
    ros()
    command = streaming("1", "--ros-args", "-r", "__ns:=/nobody", example=example)
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("waiting"))
        assert "waiting for the node; start it as" in line
    finally:
        process.kill()
        process.wait()


def ros() -> Any:
    """The helpers for processes of ROS 2, in a domain of their own."""
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")
    import domains
    import processes

    domains.claim_domain()
    return processes


def streaming(*arguments: str, example: str = "stream_setpoints") -> tuple[str | Path, ...]:
    return (sys.executable, EXAMPLES / f"{example}.py", *arguments)


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        *OUTPUTS,
        "paper",  # test/examples/test_paper.py
        "retime_planned",
        "stream_setpoints",
        "stream_tool",
    }
