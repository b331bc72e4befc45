# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics simulate``: what it writes, says and refuses."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from eom_dynamics import load_robot
from eom_dynamics.cli.main import main
from eom_dynamics.simulate.reference import read_motion
from eom_dynamics.states import STATE_NAMES
from eom_dynamics.trajectory import paper_motion

MISSING = [name for name in ("matplotlib", "plotly", "rich") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build")

T = np.linspace(0.0, 0.2, 201)
STATES = dict(zip(STATE_NAMES, paper_motion(2).derivatives(T), strict=True))
ROBOT = load_robot("planar_2r")


def write(path: Path) -> Path:
    """The paper's motion of two joints as a file of either kind."""
    if path.suffix == ".npz":
        np.savez(path, t=T, **STATES)
    else:
        header = ",".join(["t", *(f"{state}.{joint}" for state in STATE_NAMES for joint in ROBOT.joint_names)])
        table = np.hstack([T[:, np.newaxis], *STATES.values()])
        np.savetxt(path, table, fmt="%.17g", delimiter=",", header=header, comments="")
    return path


def test_writes_page_picture_and_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    command = ["simulate", "planar_2r", "cosine", "-o", str(folder), "--duration", "0.2", "--gains", "50,10"]
    assert main([*command, "--stiffness-error", "0.1", "--mass-error", "0.05", "--json"]) == 0
    output = capsys.readouterr()
    results = json.loads(output.out)
    assert results["natural_frequency"] == [10, 50] and results["failures"] == []
    assert results["energy_imbalance"] < 1e-8
    with np.load(folder / "data.npz") as data:
        assert data["error"].shape == (101, 2, 3, 2)
        rms = np.sqrt(np.mean(data["error"] ** 2, axis=(0, 3)))
        np.testing.assert_allclose(results["rms"], rms, rtol=1e-12)
        np.testing.assert_array_equal(data["q"], paper_motion(2).derivatives(data["t"], order=0)[0])
    assert rms[1, 2] < rms[1, 1] < rms[1, 0]
    assert (folder / "tracking.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "springs +10%, masses +5%" in page and f"{rms[1, 2]:.3e} rad" in page
    assert "$" + "figures" not in page and 'src="http' not in page


def test_the_table_has_a_row_for_each_gain_and_feedforward(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["simulate", "planar_2r", "cosine", "-o", str(tmp_path), "--duration", "0.1", "--gains", "0,20"]
    assert main(command) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [words[1] for words in lines if words and words[0] == "20"] == ["none", "rigid", "flatness"]
    assert [words[2] for words in lines if words[:2] == ["open", "loop"]] == ["none", "rigid", "flatness"]


@pytest.mark.parametrize("name", ["motion.npz", "motion.csv"])
def test_a_trajectory_of_ones_own(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / name)
    motion = read_motion(path, ROBOT)
    between = T[:-1] + 3e-4
    for k, (actual, expected) in enumerate(
        zip(motion.derivatives(between), paper_motion(2).derivatives(between), strict=True)
    ):
        assert np.max(np.abs(actual - expected)) < [1e-12, 1e-10, 1e-7, 1e-4, 1e-2][k]
    assert main(["simulate", "planar_2r", str(path), "-o", str(tmp_path / "out"), "--gains", "70", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["peak"][0][2] < 1e-6 < 1e-3 < results["peak"][0][1]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["planar_2r", "nowhere.npz"], "No such file"),
        (["planar_2r", "nowhere.csv"], "No such file"),
        (["no_robot", "cosine"], "no_robot"),
        (["planar_2r", "broken.npz"], "broken.npz"),
        (["planar_2r", "short.npz"], "qdddd"),
        (["planar_2r", "swapped.npz"], "qd is not the time derivative of q"),
        (["planar_2r", "backwards.npz"], "t must rise"),
        (["planar_2r", "words.csv"], "words.csv"),
        (["iiwa", "two.npz"], r"must have shape \(T, 7\)"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_on_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.npz").write_bytes(b"PK\x03\x04 this is none")
    np.savez("short.npz", t=T, **{name: STATES[name] for name in STATE_NAMES[:4]})
    np.savez("swapped.npz", t=T, **{**STATES, "qd": STATES["qdd"], "qdd": STATES["qd"]})
    np.savez("backwards.npz", t=T[::-1], **STATES)
    np.savez("two.npz", t=T, **STATES)
    Path("words.csv").write_text("t,what\n1,x\n", encoding="utf-8")
    assert main(["simulate", *arguments, "-o", "out"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("eom_dynamics simulate: ") and error.count("\n") == 1
    assert re.search(reason, error)


@pytest.mark.parametrize("option", [["--gains", "-1"], ["--gains", "a"], ["--mass-error", "-1"], ["--duration", "0"]])
def test_wrong_options_are_refused(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["simulate", "planar_2r", "cosine", "-o", "out", *option])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_that_cannot_be_trusted_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["simulate", "planar_2r", "cosine", "-o", str(tmp_path), "--duration", "0.1", "--gains", "20"]
    monkeypatch.setattr("eom_dynamics.simulate.summary.ENERGY_TOLERANCE", 0.0)
    assert main(command) == 1
    assert "energy and work differ" in capsys.readouterr().err
