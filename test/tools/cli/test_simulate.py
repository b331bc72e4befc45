# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics simulate``: files, output and errors."""

from __future__ import annotations

import errno
import importlib.util
import io
import json
import os
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT
from urdf_arms import urdf_arm

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.exceptions import StateError
from eom_dynamics.robot.model import Limits
from eom_dynamics.simulation import Comparison, compare_feedforward
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.simulation.reference import read_motion
from eom_dynamics.states import STATE_NAMES
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.demo.evaluate import Plan
from eom_dynamics.tools.quantity_text import number
from eom_dynamics.tools.simulate.open_loop import open_loop_result, run_open_loop
from eom_dynamics.trajectory import paper_motion

MISSING = [name for name in ("matplotlib", "plotly", "rich") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build")

T = np.linspace(0.0, 0.2, 201)
STATES = dict(zip(STATE_NAMES, paper_motion(2).derivatives(T), strict=True))
ROBOT = load_robot("planar_2r")

COMMAND = ["simulate", "planar_2r", "cosine", "-o"]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    """A short comparison without feedback and with some."""
    return compare_feedforward(ROBOT, paper_motion(2), np.linspace(0.0, 0.1, 51), [0.0, 20.0])


@pytest.fixture
def simulated(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this comparison instead of simulating anew."""
    monkeypatch.setattr("eom_dynamics.simulation.compare_feedforward", lambda *_, **__: comparison)


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
    assert "springs +10%, masses +5% against the model" in page
    assert (results["stiffness_error"], results["mass_error"]) == (0.1, 0.05)
    assert main([*command, "--exact"]) == 2, "a folder that is not empty is kept"
    assert "is not empty; name another folder, or use --force" in capsys.readouterr().err
    assert results["rms"] and f"{number(1e3 * rms[1, 2])} mrad" in page
    assert "$" + "figures" not in page and 'src="http' not in page


@pytest.mark.usefixtures("simulated")
def test_only_springs_of_packaged_robots_are_called_example_values(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text((ROOT / "config/planar_2r.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    for robot, says in (("planar_2r", True), (str(own), False)):
        folder = tmp_path / Path(robot).stem
        assert main(["simulate", robot, *COMMAND[2:], str(folder)]) == 0
        assert ("example values" in (folder / "index.html").read_text(encoding="utf-8")) is says


@pytest.mark.usefixtures("simulated")
def test_the_table_has_a_row_for_each_gain_and_feedforward(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [words[1] for words in lines if words and words[0] == "20"] == ["none", "rigid", "flatness"]
    assert [words[2] for words in lines if words[:2] == ["open", "loop"]] == ["none", "rigid", "flatness"]


@pytest.mark.usefixtures("simulated")
def test_the_audit_is_of_the_arm_with_flatness_and_the_highest_gain(
    tmp_path: Path, comparison: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*COMMAND, str(tmp_path), "--audit"]
    assert main(command) == 0
    title, header, *lines = capsys.readouterr().out.split("\n\n")[-2].splitlines()
    assert title == "Energy" and header.split()[-2:] == ["imbalance", "[J]"] and len(lines) == 11
    assert float(lines[-1].split()[4]) == pytest.approx(comparison.audit.work[-1, 5], rel=1e-6)
    assert main([*command, "--force", "--json"]) == 0
    audit = json.loads(capsys.readouterr().out)["audit"]
    assert audit["work"][-1] == comparison.audit.work[-1, 5] and len(audit["t"]) == 11


def test_an_integrator_of_fixed_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*COMMAND, str(tmp_path), "--duration", "0.02", "--gains", "50", "--exact"]
    assert main([*command, "--method", "rk4", "--step", "0.0005"]) == 0
    capsys.readouterr()
    for more, message in (
        (["--method", "rk4"], "rk4 needs a step"),
        (["--method", "leapfrog"], "method must be one of DOP853"),
        (["--step", "0.1"], "DOP853 chooses its steps by tolerances"),
    ):
        assert main([*command, *more]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["motion.npz", "motion.csv"])
def test_a_trajectory_from_a_file(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / name)
    motion = read_motion(path, ROBOT)
    between = T[:-1] + 3e-4
    for k, (actual, expected) in enumerate(
        zip(motion.derivatives(between), paper_motion(2).derivatives(between), strict=True)
    ):
        assert np.max(np.abs(actual - expected)) < [1e-12, 1e-10, 1e-7, 1e-4, 1e-2][k]
    if path.suffix == ".csv":
        return
    command = ["simulate", "planar_2r", str(path), *COMMAND[3:], str(tmp_path / "out")]
    assert main([*command, "--gains", "70", "--json", "--exact"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["peak"][0][2] < 1e-6 < 1e-3 < results["peak"][0][1]


def test_quoted_names_of_a_csv_file_are_read(tmp_path: Path) -> None:
    first, second = ROBOT.joints
    robot = replace(ROBOT, joints=(replace(first, name="a,b"), replace(second, name='c"d')))
    path = write(tmp_path / "motion.csv")
    text = path.read_text(encoding="utf-8")
    for state in STATE_NAMES:
        text = text.replace(f"{state}.joint_1", f'"{state}.a,b"').replace(f"{state}.joint_2", f'"{state}.c""d"')
    path.write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_motion(path, robot).derivatives(T), list(STATES.values()))


def test_a_csv_file_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "motion.csv")
    first, *rows = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([f"{first},q.joint_1", *(f"{row},0" for row in rows)]), encoding="utf-8")
    with pytest.raises(StateError, match=r"has columns of the same name: q\.joint_1; remove one of each"):
        read_motion(path, ROBOT)


def test_joints_of_a_trajectory_in_another_order(tmp_path: Path) -> None:
    turned = {name: values[:, ::-1] for name, values in STATES.items()}
    np.savez(tmp_path / "turned.npz", t=T, joint_names=ROBOT.joint_names[::-1], **turned)
    motion = read_motion(tmp_path / "turned.npz", ROBOT)
    np.testing.assert_array_equal(motion.derivatives(T), list(STATES.values()))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["planar_2r", "nowhere.npz"], "No such file"),
        (["planar_2r", "nowhere.csv"], "No such file"),
        (["planar_2r", "pipe.csv"], "pipe.csv: cannot be read: not a file"),
        (["planar_2r", "pipe.npz"], "pipe.npz: cannot be read: not a file"),
        (["planar_2r", "broken.npz"], "broken.npz"),
        (["planar_2r", "short.npz"], "short.npz: has no qdddd; it has t, q, .* must .* see docs/elastic_joints.md"),
        (["planar_2r", "untimed.npz"], "untimed.npz: has no t; it has q, qd, .*--rate HZ"),
        (["planar_2r", "other.npz"], "other.npz: has the joints arm_1, arm_2; robot planar_2r has joint_1, joint_2"),
        (["planar_2r", "swapped.npz"], "qd is not the time derivative of q"),
        (["iiwa", "other.npz"], "other.npz: has the joints arm_1, arm_2; robot iiwa has "),
        (["planar_2r", "backwards.npz"], "t must increase"),
        (["planar_2r", "words.csv"], "words.csv"),
        (["planar_2r", "text.npz"], "text.npz: is not a .npz archive"),
        (["planar_2r", "empty.csv"], "empty.csv: has no rows of numbers"),
        (["planar_2r", "no_rows.csv"], "no_rows.csv: has no rows of numbers"),
        (["planar_2r", "binary.csv"], "binary.csv: is not a text file"),
        (["iiwa", "two.npz"], r"must have shape \(T, 7\)"),
        (
            ["planar_2r", "cosine", "--method", "rk4", "--step", "1e-12", "--duration", "0.1"],
            "step must be so long that",
        ),
        (["planar_2r", "cosine", "--method", "rk4", "--step", "1e-320"], "step must be so long that there are at most"),
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
    for pipe in ("pipe.csv", "pipe.npz"):
        os.mkfifo(pipe)
    Path("broken.npz").write_bytes(b"PK\x03\x04 this is none")
    np.savez("short.npz", t=T, **{name: STATES[name] for name in STATE_NAMES[:4]})
    np.savez("untimed.npz", **STATES)
    np.savez("other.npz", t=T, joint_names=["arm_1", "arm_2"], **STATES)
    np.savez("swapped.npz", t=T, **{**STATES, "qd": STATES["qdd"], "qdd": STATES["qd"]})
    np.savez("backwards.npz", t=T[::-1], **STATES)
    np.savez("two.npz", t=T, **STATES)
    Path("words.csv").write_text("t,what\n1,x\n", encoding="utf-8")
    Path("text.npz").write_text("text", encoding="utf-8")
    Path("empty.csv").touch()
    Path("binary.csv").write_bytes(b"\xcb\xff\x00")
    columns = ["t", *(f"{name}.{joint}" for name in STATE_NAMES for joint in ROBOT.joint_names)]
    Path("no_rows.csv").write_text(",".join(columns) + "\n", encoding="utf-8")
    assert main(["simulate", *arguments, "-o", "out"]) == 2
    error = capsys.readouterr().err
    assert not Path("out").exists()
    assert error.startswith("eom_dynamics simulate: ") and error.count("\n") == 1
    assert re.search(reason, error)


@pytest.mark.usefixtures("simulated")
def test_a_full_disk_leaves_what_was_there_and_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(picture: Path, *_: object) -> None:
        picture.write_text("half", encoding="utf-8")
        raise OSError(errno.ENOSPC, "No space left on device", str(picture))

    monkeypatch.setattr("eom_dynamics.tools.simulate.results._write_picture", full)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/index.html").write_text("old", encoding="utf-8")
    for folder in (tmp_path / "new", tmp_path / "out"):
        assert main([*COMMAND, str(folder), "--force"]) == 2
        reason = f"eom_dynamics simulate: {folder}: cannot be written: No space left on device\n"
        assert capsys.readouterr().err == reason
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["old"]


def test_a_simulation_that_ends_early_is_named_and_the_others_are_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["simulate", "vsa_planar_2r", *COMMAND[2:], str(tmp_path), "--duration", "0.2", "--gains", "0"]
    assert main([*command, "--json", "--exact"]) == 0
    output = capsys.readouterr()
    (note,) = [line for line in output.err.splitlines() if line.startswith("eom_dynamics")]
    assert re.search(
        r"note: with no feedforward and no feedback at all, the simulation ends at 0\.07\d* s: .* goes slack$", note
    )
    results = json.loads(output.out)
    assert results["endings"] == [note.partition("note: ")[2]]
    ((none, rigid, flatness),) = results["rms"]
    assert none is None and flatness < 1e-9 < 1e-4 < rigid
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert results["endings"][0] in page and "NaN" not in page.partition('id="figures"')[2]


def test_a_robot_without_a_mass_matrix_is_one_line_and_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    impossible = perturbed(ROBOT, mass=-2.0)
    monkeypatch.setattr("eom_dynamics.tools.cli.simulate.load", lambda _: impossible)
    assert main(["simulate", "planar_2r", "cosine", "-o", str(tmp_path / "out"), "--duration", "0.1"]) == 2
    error = capsys.readouterr().err
    (line,) = [line for line in error.splitlines() if line.startswith("eom_dynamics")]
    assert line.startswith("eom_dynamics simulate: planar_2r: the mass matrix is not positive definite, ")
    assert "Traceback" not in error


def test_model_errors_are_simulated_unless_the_model_is_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("eom_dynamics.tools.simulate.results._write_picture", lambda *_: None)
    command = [*COMMAND[:-1], "--duration", "0.1", "--gains", "50", "--json", "-o"]
    flatness = {}
    for name, options, errors in (
        ("default", [], (-0.2, 0.1)),
        ("exact", ["--exact"], (0.0, 0.0)),
        ("zero", ["--stiffness-error", "0", "--mass-error", "0"], (0.0, 0.0)),
        ("one", ["--mass-error", "0"], (-0.2, 0.0)),
    ):
        assert main([*command, str(tmp_path / name), *options]) == 0
        results = json.loads(capsys.readouterr().out)
        assert (results["stiffness_error"], results["mass_error"]) == errors
        flatness[name] = results["rms"][0][2]
    assert flatness["default"] > 1e-5 and flatness["exact"] == flatness["zero"] < 1e-9
    assert main(["simulate", "planar_2r", "cosine", "--exact", "--mass-error", "0", "-o", str(tmp_path / "x")]) == 2
    assert "--exact contradicts" in capsys.readouterr().err


@pytest.mark.usefixtures("simulated")
def test_the_table_names_the_model_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "planar_2r", "cosine", "-o", str(tmp_path)]) == 0
    assert "simulated arm: exact model" in capsys.readouterr().out.splitlines()


def test_a_rigid_robot_has_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rigid.urdf").write_text(urdf_arm(joints=("a", "b")), encoding="utf-8")
    assert main(["simulate", str(tmp_path / "rigid.urdf"), "cosine", "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "all joints are rigid, so that there is nothing to compare" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--duration", "1e9"], "must be within (0, 600], is 1e+09"),
        (["--duration", "0"], "must be within (0, 600], is 0"),
        (["--stiffness-error", "1e300"], "must be within [-0.9, 9], is 1e+300"),
        (["--mass-error", "-1"], "must be within [-0.9, 9], is -1"),
        (["--gains", "1e9"], "must be within [0, 1000]"),
        (["--gains", "1,"], "must be a number, is ''"),
    ],
    ids=str,
)
def test_what_would_not_end_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    name, value = arguments
    with pytest.raises(SystemExit) as caught:
        main(["simulate", "planar_2r", "cosine", "-o", str(tmp_path / "out"), f"{name}={value}"])
    error = capsys.readouterr().err
    assert caught.value.code == 2 and error.count("\n") == 1 and reason in error


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"q": STATES["q"] + 1j}, r"q must be an array \(T, n\) of real numbers, is complex128 \(201, 2\)"),
        ({"t": np.array("now")}, r"t must be an array \(T,\) of real numbers, is <U3 \(\)"),
        ({"qd": np.zeros(3, dtype=[("a", float)])}, "qd must be an array"),
        ({"qdd": np.array([{}], dtype=object)}, "has an array of Python objects; write it as numbers or text"),
        ({"t": T * 1e4}, "takes 2000 s; select at most 600 of them, --duration S"),
    ],
    ids=["complex", "text", "structure", "object", "long"],
)
def test_odd_arrays_are_refused_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, np.ndarray], reason: str
) -> None:
    states = dict(STATES)
    if reason.startswith("takes"):
        states = {name: values * 1e-4**k for k, (name, values) in enumerate(STATES.items())}
    np.savez(tmp_path / "odd.npz", **{"t": T, **states, **change})
    assert main(["simulate", "planar_2r", str(tmp_path / "odd.npz"), "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and re.search(reason, error), error


def test_an_array_that_claims_more_than_the_memory_is_refused(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**55,)})
    np.savez(tmp_path / "huge.npz", **STATES)
    with zipfile.ZipFile(tmp_path / "huge.npz", "a") as archive:
        archive.writestr("t.npy", header.getvalue())
    with pytest.raises(StateError, match=r"huge.npz: ") as caught:
        read_motion(tmp_path / "huge.npz", ROBOT)
    assert "\n" not in str(caught.value)


def test_setpoints_of_the_demo_and_of_the_player_are_read(tmp_path: Path) -> None:
    plan = Plan(ROBOT, rate=200.0, duration=0.5)
    np.savez(tmp_path / "setpoints.npz", **plan.arrays())
    motion = read_motion(tmp_path / "setpoints.npz", ROBOT)
    np.testing.assert_array_equal(motion.t, plan.t)
    without = {name: values for name, values in plan.arrays().items() if name != "t"}
    np.savez(tmp_path / "player.npz", **without)
    np.testing.assert_allclose(
        read_motion(tmp_path / "player.npz", ROBOT, rate=200.0).t, plan.t - plan.t[0], atol=1e-12
    )
    with pytest.raises(StateError, match=r"has no t; .*--rate HZ"):
        read_motion(tmp_path / "player.npz", ROBOT)


@pytest.mark.usefixtures("simulated")
def test_an_energy_imbalance_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("eom_dynamics.tools.simulate.results._ENERGY_TOLERANCE", 0.0)
    assert main([*COMMAND, str(tmp_path)]) == 1
    assert "energy and work differ" in capsys.readouterr().err


def test_a_fall_beyond_limits_is_told(tmp_path: Path) -> None:
    first, *others = ROBOT.joints
    arm = ElasticArm(replace(ROBOT, joints=(replace(first, limits=Limits(lower=-0.1, upper=2.0)), *others)))
    motion = run_open_loop(arm, np.zeros(ROBOT.n), np.zeros(ROBOT.n), duration=0.4)
    (note,) = open_loop_result(motion, tmp_path / "index.html", {}).notes
    assert note.startswith("joint_1 passes its limits at 0.") and note.endswith("there are no end stops")
