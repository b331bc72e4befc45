# SPDX-License-Identifier: Apache-2.0
"""The examples run, and print what they promise."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
from paths import CONFIG, ROOT

EXAMPLES = ROOT / "examples"
OUTPUTS = {
    "inverse_dynamics": r"taud against differences: \S+e-0[5-9] of its peak\n.*\n\njoint .*iiwa_joint_7",
    "elastic_feedforward": r"deflection \[mrad\].*fer_joint7",
    "load_urdf": r"two_links: 2 joints: shoulder, elbow\n.*transpose: \S+e-1[4-9]",
    "trajectory_limits": r"as planned, 0.80 s: beyond the limits\n.*slowed down by 1\.\d+, .*within the limits",
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_example(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert re.search(OUTPUTS[name], capsys.readouterr().out, re.DOTALL)


@pytest.mark.ros
def test_streaming_example(tmp_path: Path) -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")
    import domains
    import processes
    from node_client import NodeProcess

    domains.claim_domain()
    node = NodeProcess(tmp_path, "--params-file", CONFIG / "iiwa.yaml")
    try:
        example = (
            sys.executable,
            EXAMPLES / "stream_setpoints.py",
            "0.2",
            "--ros-args",
            "-r",
            f"__ns:={node.namespace}",
        )
        code, output, error = processes.run(example)
    finally:
        node.end()
    assert (code, error) == (0, "")
    assert re.search(r"200 setpoints sent, 200 commands received.*iiwa_joint_7", output, re.DOTALL)


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*OUTPUTS, "stream_setpoints"}
