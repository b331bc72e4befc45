# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics simulate``: files, output and errors."""

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
from eom_dynamics.robot.model import Limits
from eom_dynamics.simulation import Comparison, compare_feedforward
from eom_dynamics.simulation.reference import read_motion
from eom_dynamics.states import STATE_NAMES
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.demo.evaluate import Plan
from eom_dynamics.tools.quantity_text import number
from eom_dynamics.tools.simulate.open_loop import open_loop_result, run_open_loop
from eom_dynamics.trajectory import paper_motion

T = np.linspace(0.0, 0.2, 201)
STATES = dict(zip(STATE_NAMES, paper_motion(2).derivatives(T), strict=True))
ROBOT = load_robot("planar_2r")

COMMAND = ["simulate", "planar_2r", "cosine", "-o"]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare_feedforward(ROBOT, paper_motion(2), np.linspace(0.0, 0.1, 51), [0.0, 20.0])


@pytest.fixture
def simulated(comparison: Comparison, monkeypatch) -> None:
    monkeypatch.setattr("eom_dynamics.simulation.compare_feedforward", lambda *_, **__: comparison)


def write(path: Path) -> Path:
    if path.suffix == ".npz":
        np.savez(path, t=T, **STATES)
    else:
        header = ",".join(["t", *(f"{state}.{joint}" for state in STATE_NAMES for joint in ROBOT.joint_names)])
        table = np.hstack([T[:, np.newaxis], *STATES.values()])
        np.savetxt(path, table, fmt="%.17g", delimiter=",", header=header, comments="")
    return path


def test_writes_page_picture_and_data(tmp_path: Path, run) -> None:
    folder = tmp_path / "new" / "folder"
    command = ["simulate", "planar_2r", "cosine", "-o", str(folder), "--duration", "0.2", "--gains", "50,10"]
    results = run(*command, "--stiffness-error", "0.1", "--mass-error", "0.05", "--json").json
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
def test_tables_are_of_each_gain_and_the_audit_of_the_highest_with_flatness(tmp_path, comparison: Comparison, run):
    command = [*COMMAND, str(tmp_path), "--audit"]
    text = run(*command).out
    assert "simulated arm: exact model" in text
    for gain in (r"20 ", "open loop "):
        assert re.findall(rf"^{gain} +(\w+)", text, re.MULTILINE) == ["none", "rigid", "flatness"]
    title, header, *lines = text.split("\n\n")[-2].splitlines()
    assert title == "Energy" and header.split()[-2:] == ["imbalance", "[J]"] and len(lines) == 11
    assert float(lines[-1].split()[4]) == pytest.approx(comparison.audit.work[-1, 5], rel=1e-6)
    audit = run(*command, "--force", "--json").json["audit"]
    assert audit["work"][-1] == comparison.audit.work[-1, 5] and len(audit["t"]) == 11


@pytest.mark.parametrize("name", ["motion.npz", "motion.csv"])
def test_a_trajectory_from_a_file(tmp_path: Path, name: str, run) -> None:
    path = write(tmp_path / name)
    motion = read_motion(path, ROBOT)
    between = T[:-1] + 3e-4
    pairs = zip(motion.derivatives(between), paper_motion(2).derivatives(between), strict=True)
    off = [np.max(np.abs(actual - expected)) for actual, expected in pairs]
    assert np.all(np.less(off, [1e-12, 1e-10, 1e-7, 1e-4, 1e-2]))
    if path.suffix == ".csv":
        return
    command = ["simulate", "planar_2r", str(path), *COMMAND[3:], str(tmp_path / "out")]
    results = run(*command, "--gains", "70", "--json", "--exact").json
    assert results["peak"][0][2] < 1e-6 < 1e-3 < results["peak"][0][1]


def test_joints_in_another_order_and_quoted_names_are_read(tmp_path: Path) -> None:
    turned = {name: values[:, ::-1] for name, values in STATES.items()}
    np.savez(tmp_path / "turned.npz", t=T, joint_names=ROBOT.joint_names[::-1], **turned)
    np.testing.assert_array_equal(read_motion(tmp_path / "turned.npz", ROBOT).derivatives(T), list(STATES.values()))
    first, second = ROBOT.joints
    robot = replace(ROBOT, joints=(replace(first, name="a,b"), replace(second, name='c"d')))
    path = write(tmp_path / "motion.csv")
    text = path.read_text(encoding="utf-8")
    for state in STATE_NAMES:
        text = text.replace(f"{state}.joint_1", f'"{state}.a,b"').replace(f"{state}.joint_2", f'"{state}.c""d"')
    path.write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(read_motion(path, robot).derivatives(T), list(STATES.values()))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["planar_2r", "nowhere.npz"], "No such file"),
        (["planar_2r", "pipe.csv"], "pipe.csv: cannot be read: not a file"),
        (["planar_2r", "broken.npz"], "broken.npz"),
        (["planar_2r", "short.npz"], "short.npz: has no qdddd; it has t, q, .* must .* see docs/elastic_joints.md"),
        (["planar_2r", "untimed.npz"], "untimed.npz: has no t; it has q, qd, .*--rate HZ"),
        (["planar_2r", "other.npz"], "other.npz: has the joints arm_1, arm_2; robot planar_2r has joint_1, joint_2"),
        (["planar_2r", "swapped.npz"], "qd is not the time derivative of q"),
        (["planar_2r", "backwards.npz"], "t must increase"),
        (["planar_2r", "long.npz"], "takes 2000 s; select at most 600 of them, --duration S"),
        (["planar_2r", "words.csv"], "words.csv"),
        (["planar_2r", "empty.csv"], "empty.csv: has no rows of numbers"),
        (["planar_2r", "binary.csv"], "binary.csv: is not a text file"),
        (["planar_2r", "complex.npz"], r"q must be an array \(T, n\) of real numbers, is complex128 \(201, 2\)"),
        (["planar_2r", "text.npz"], r"t must be an array \(T,\) of real numbers, is <U3 \(\)"),
        (["planar_2r", "object.npz"], "has an array of Python objects; write it as numbers or text"),
        (["planar_2r", "huge.npz"], "huge.npz: "),  # more than the memory
        (["iiwa", "two.npz"], r"must have shape \(T, 7\)"),
        (["planar_2r", "cosine", "--step", "0.1"], "DOP853 chooses its steps by tolerances"),
        (["planar_2r", "cosine", "--exact", "--mass-error", "0"], "--exact contradicts"),
        (["rigid.urdf", "cosine"], "all joints are rigid, so that there is nothing to compare"),
        (["planar_2r", "cosine", "--duration=1e9"], r"must be within \(0, 600\], is 1e\+09"),
        (["planar_2r", "cosine", "--gains=1,"], "must be a number, is ''"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_on_one_line(tmp_path, monkeypatch, refused, arguments: list[str], reason: str):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.csv")
    Path("broken.npz").write_bytes(b"PK\x03\x04 this is none")
    np.savez("short.npz", t=T, **{name: STATES[name] for name in STATE_NAMES[:4]})
    np.savez("untimed.npz", **STATES)
    np.savez("other.npz", t=T, joint_names=["arm_1", "arm_2"], **STATES)
    np.savez("swapped.npz", t=T, **{**STATES, "qd": STATES["qdd"], "qdd": STATES["qd"]})
    np.savez("backwards.npz", t=T[::-1], **STATES)
    np.savez("long.npz", t=T * 1e4, **{name: x * 1e-4**k for k, (name, x) in enumerate(STATES.items())})
    np.savez("two.npz", t=T, **STATES)
    np.savez("complex.npz", t=T, **{**STATES, "q": STATES["q"] + 1j})
    np.savez("text.npz", t="now", **STATES)
    np.savez("object.npz", t=T, **{**STATES, "qdd": np.array([{}])})
    np.savez("huge.npz", **STATES)
    with zipfile.ZipFile("huge.npz", "a") as archive, archive.open("t.npy", "w") as header:
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**55,)})
    Path("words.csv").write_text("t,what\n1,x\n", encoding="utf-8")
    Path("empty.csv").touch()
    Path("binary.csv").write_bytes(b"\xcb\xff\x00")
    Path("rigid.urdf").write_text(urdf_arm(joints=("a", "b")), encoding="utf-8")
    assert re.search(reason, refused("simulate", *arguments, "-o", "out"))
    assert not Path("out").exists()


def test_a_simulation_that_ends_early_is_named_and_the_others_are_complete(tmp_path: Path, run) -> None:
    command = ["simulate", "vsa_planar_2r", *COMMAND[2:], str(tmp_path), "--duration", "0.2", "--gains", "0"]
    output = run(*command, "--json", "--exact")
    (note,) = [line for line in output.err.splitlines() if line.startswith("eom_dynamics")]
    assert re.search(r"with no feedforward and no feedback at all, .* ends at 0\.07\d* s: .* goes slack$", note)
    results = json.loads(output.out)
    assert results["endings"] == [note.partition("note: ")[2]]
    ((none, rigid, flatness),) = results["rms"]
    assert none is None and flatness < 1e-9 < 1e-4 < rigid
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert results["endings"][0] in page and "NaN" not in page.partition('id="figures"')[2]


def test_model_errors_are_simulated_unless_the_model_is_exact(tmp_path: Path, monkeypatch, run) -> None:
    monkeypatch.setattr("eom_dynamics.tools.simulate.results._write_picture", lambda *_: None)
    command = [*COMMAND[:-1], "--duration", "0.1", "--gains", "50", "--json", "-o"]
    flatness = {}
    for name, options, errors in (
        ("default", [], (-0.2, 0.1)),
        ("exact", ["--exact", "--method", "rk4", "--step", "0.0005"], (0.0, 0.0)),
        ("one", ["--mass-error", "0"], (-0.2, 0.0)),
    ):
        results = run(*command, str(tmp_path / name), *options).json
        assert (results["stiffness_error"], results["mass_error"]) == errors
        flatness[name] = results["rms"][0][2]
    assert flatness["default"] > 1e-5 and flatness["exact"] < 1e-9


def test_setpoints_of_the_demo_and_of_the_player_are_read(tmp_path: Path) -> None:
    plan = Plan(ROBOT, rate=200.0, duration=0.5)
    arrays = plan.arrays()
    np.savez(tmp_path / "setpoints.npz", **arrays)
    np.testing.assert_array_equal(read_motion(tmp_path / "setpoints.npz", ROBOT).t, plan.t)
    del arrays["t"]
    np.savez(tmp_path / "player.npz", **arrays)
    np.testing.assert_allclose(read_motion(tmp_path / "player.npz", ROBOT, rate=200.0).t, plan.t, atol=1e-12)


@pytest.mark.usefixtures("simulated")
def test_an_energy_imbalance_fails(tmp_path: Path, monkeypatch, run) -> None:
    monkeypatch.setattr("eom_dynamics.tools.simulate.results._ENERGY_TOLERANCE", 0.0)
    assert "energy and work differ" in run(*COMMAND, str(tmp_path), code=1).err


def test_a_fall_ends_in_the_last_state_and_beyond_limits_is_told(tmp_path: Path) -> None:
    first, *others = ROBOT.joints
    arm = ElasticArm(replace(ROBOT, joints=(replace(first, limits=Limits(lower=-0.1, upper=2.0)), *others)))
    motion = run_open_loop(arm, np.zeros(ROBOT.n), np.zeros(ROBOT.n), duration=0.4)
    result = open_loop_result(motion, tmp_path / "index.html", {})
    q, _, qd, _ = motion.plant.parts(motion.simulation.states)
    assert (result.json["q"], result.json["qd"]) == (q[-1].tolist(), qd[-1].tolist())
    (note,) = result.notes
    assert note.startswith("joint_1 passes its limits at 0.") and note.endswith("there are no end stops")
