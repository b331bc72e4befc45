# SPDX-License-Identifier: Apache-2.0
"""Demo without ROS: right answers pass, every wrong one is named; files, output and errors of the command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import recorded
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.control.fields import COMMAND_FIELDS
from eom_dynamics.tools.cli import demo
from eom_dynamics.tools.demo import processes, results
from eom_dynamics.tools.demo.drawn_stream import drawn_stream
from eom_dynamics.tools.demo.evaluate import TOLERANCE, Plan, evaluate
from eom_dynamics.tools.demo.results import stream_section

pytest.importorskip("matplotlib", reason="matplotlib is missing: make build")
pytest.importorskip("rich", reason="rich is missing: make build")


@pytest.fixture(scope="module", autouse=True)
def closed_form_once() -> Iterator[None]:
    """Compute the closed form at each time of a plan once, for all tests; streams of a second, as of a hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "closed_form", cache(Plan.closed_form))
        patch.setattr("eom_dynamics.tools.demo.drawn_stream.SECONDS", 1.0)
        yield


Answers = dict[str, np.ndarray]


@pytest.fixture(scope="module", params=[("planar_2r", 1000.0, 0.5), ("iiwa", 200.0, 0.25)], ids=str)
def answered(request) -> tuple[Plan, Answers]:
    robot, rate, duration = request.param
    plan = Plan(eom.load_robot(robot), rate=rate, duration=duration)
    return plan, recorded(plan)


def tampered(answers: Answers, field: str, row: int, change: float, motor: int = -1) -> Answers:
    """Return the answers with a number of a field off by a share of the largest."""
    values = answers[field].copy()
    values[row, motor] += change * np.abs(values).max()
    return {**answers, field: values}


def test_right_answers_pass(answered: tuple[Plan, Answers]) -> None:
    plan, answers = answered
    count, result = len(plan.t), evaluate(plan, answers)
    assert result.failures == [] and max(result.deviations.values()) < TOLERANCE
    assert (result.sent, result.received, result.lost, result.late) == (count, count, 0, 0)
    assert result.rate == pytest.approx(plan.rate)
    assert list(result.round_trip.values()) == pytest.approx([3e-4] * 3)


@pytest.mark.parametrize("wrong", [1e-6, np.nan])
def test_a_single_wrong_number_is_found(wrong: float) -> None:
    """At a setpoint that is not compared with the closed form."""
    plan = Plan(eom.load_robot("planar_2r"), rate=1000.0, duration=0.5)
    (failure,) = evaluate(plan, tampered(recorded(plan), "effort_rate", 101, wrong)).failures
    assert failure.startswith("every answer against feedforward")


LOSSY = Actuator(Friction(0.5, 0.4, 0.6, 0.3, 0.02), Gear(0.8))
TWO = eom.load_robot("planar_2r")
COUPLED = CoupledSpring([[500.0, 40.0], [40.0, 300.0]])
KINDS = ("damped", "variable", "tabulated_one_sided", "antagonistic_exponential")
DRIVES = {
    **{kind: with_springs(TWO, EVERY_KIND[kind], actuator=LOSSY) for kind in KINDS},
    "coupled": replace(TWO, coupled_stiffness=((0, 1), COUPLED)),
    "differential": replace(TWO, transmission=((0, 1), Transmission([[0.5, 0.5], [0.5, -0.5]]))),
    **{name: eom.load_robot(name) for name in ("planar_pr", "vsa_planar_2r", "dual_arm")},
    "complete": replace(eom.load_robot("sea_planar_2r"), rotor_model="complete"),
    "geared rotors": replace(
        with_springs(TWO, EVERY_KIND["cubic"], actuator=LOSSY, gear_ratio=50.0), rotor_model="complete"
    ),
}
"""Arms with springs that differ in kind, gears with loss and friction, and other drives and trees."""


@pytest.mark.parametrize("kind", DRIVES)
def test_every_wrong_motor_quantity_is_found_with_any_springs(kind: str) -> None:
    # Few setpoints, so that each is compared.
    plan = Plan(DRIVES[kind], rate=100.0, duration=0.04)
    right = recorded(plan)
    assert evaluate(plan, right).failures == []
    for field in COMMAND_FIELDS:
        for motor in range(right[field].shape[1]):
            found = evaluate(plan, tampered(right, field, 2, 1e-6, motor))
            assert min(found.deviations.values()) > TOLERANCE and len(found.failures) == 2, f"{field} of motor {motor}"


def test_the_wrench_is_scaled_down_where_springs_would_go_slack() -> None:
    whole, less = (Plan(eom.load_robot(x), rate=100.0, duration=1.0) for x in ("planar_2r", "vsa_planar_2r"))
    assert whole.share == 1.0 and np.max(whole.wrench[0]) == pytest.approx(10.0)
    assert 0 < less.share < 1 and np.max(less.wrench[0]) == pytest.approx(10.0 * less.share)


def test_lost_answers_fail_and_the_rest_is_compared(answered: tuple[Plan, Answers]) -> None:
    plan, answers = answered
    gone = [3, len(plan.t) // 2]
    lost = {name: answers[name].copy() for name in (*COMMAND_FIELDS, "round_trip")}
    for values in lost.values():
        values[gone] = np.nan
    result = evaluate(plan, answers | lost)
    assert result.lost == 2
    remedy = "run again while the machine is idle, or with a lower --rate"
    assert result.failures == [f"2 of {len(plan.t)} setpoints were not answered: {remedy}"]
    none = evaluate(plan, recorded(plan, lost=len(plan.t)))
    assert none.lost == len(plan.t) and len(none.failures) == 3 and np.isnan(none.round_trip["p50"])


def test_late_setpoints_are_counted() -> None:
    plan = Plan(eom.load_robot("planar_2r"), rate=100.0, duration=1.0)
    answers = recorded(plan)
    result = evaluate(plan, {**answers, "sent": answers["sent"] + 0.0105 * (plan.t > 0.505)})
    assert result.late == 49 and result.failures == []


SHORT = ["--rate", "200", "--duration", "0.5", "--robot", "planar_2r"]


@pytest.fixture
def played(monkeypatch) -> None:
    """Take the answers of a node without faults; shorten the stream, and leave out the picture, which have tests."""
    monkeypatch.setattr(demo, "require_ros", lambda: None)
    monkeypatch.setattr(results, "picture", lambda *_: b"")
    monkeypatch.setattr(processes, "play", lambda plan, *_: recorded(plan))


@pytest.mark.usefixtures("played")
def test_the_table_of_results(tmp_path: Path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)
    output = run("demo", *SHORT)
    lines = [line.split() for line in output.out.splitlines()]
    numbers = {" ".join(words[:2]): words[2] for words in lines if len(words) > 2}
    assert numbers["setpoints sent"] == numbers["commands received"] == "100"
    assert ["lost", "0", "tolerance", "0"] in lines
    assert "round trip" in numbers
    assert lines[-1] == ["page:", os.path.join("demo", "index.html")]
    assert sorted(os.listdir("demo")) == ["data.npz", "demo.png", "index.html", "results.json"]
    assert output.err == "" and "Passed: no answer lost" in Path("demo/index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("played")
def test_answers_of_another_robot_fail(tmp_path: Path, monkeypatch, run) -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    other = replace(robot, joints=(first, replace(second, mass=1.001 * second.mass)))
    monkeypatch.setattr(processes, "play", lambda plan, *_: recorded(Plan(other, 200.0, 0.5)))
    output = run("demo", *SHORT, "--json", "--force", "-o", str(tmp_path), code=1)
    assert json.loads(output.out)["passed"] is False
    assert "eom_dynamics demo: failed: all quantities against closed form: off by" in output.err
    assert "Failed: every answer against feedforward: off by" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_missing_library_is_named_with_its_remedy(tmp_path: Path, monkeypatch, refused) -> None:
    monkeypatch.setitem(sys.modules, "rclpy", None)
    line = refused("demo", "--force", "-o", tmp_path)
    assert line.startswith("eom_dynamics demo: rclpy is not installed; run: make build, or colcon build")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "its log is empty"),
        ("one\n\ntwo\n", "two"),
        ("[ERROR] [1.0] [eom_dynamics]: no\n  more of it\n[RTPS_TRANSPORT_SHM Error] port\n", "[eom_dynamics]: no"),
        ("eom_dynamics: wrong\n[RTPS_TRANSPORT_SHM Error] port\n", "eom_dynamics: wrong"),
        ("Traceback (most recent call last):\n  x\nImportError: y\nterminate called\n", "ImportError: y"),
        ("Fatal Python error: Aborted\n\nExtension modules: numpy (total: 1)\n", "Fatal Python error: Aborted"),
    ],
)
def test_the_most_telling_line_of_a_log(text: str, line: str) -> None:
    assert processes.telling_line(text).endswith(line)


def test_a_signal_while_a_process_starts_ends_it(monkeypatch) -> None:
    started, popen = [], subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGTERM)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(SystemExit) as exit_, processes.Run() as run:
        run.start("it", "timeit", "-n1 -r1 __import__('time').sleep(60)")
    assert exit_.value.code == 128 + signal.SIGTERM
    assert started[0].returncode == -signal.SIGTERM and not run.folder.exists()


def test_a_slow_machine_is_noted() -> None:
    plan = Plan(eom.load_robot("planar_2r"), rate=200.0, duration=0.5)
    right = recorded(plan)
    assert results.note(plan, evaluate(plan, right)) == ""
    late = {**right, "sent": 2.5 * right["sent"]}
    assert "99 of 100 setpoints were sent late: run again" in results.note(plan, evaluate(plan, late))
    assert "does not keep up with 200 Hz" in results.note(plan, evaluate(plan, recorded(plan, lateness=6e-3)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "lost"), [("planar_pr", 3), ("vsa_planar_2r", 100)])
def test_the_picture_of_joints_with_names_like_formulas(name: str, lost: int) -> None:
    robot = eom.load_robot(name)
    first, second = robot.joints
    odd = replace(robot, name="$x_{$", joints=(replace(first, name="$x_{$"), replace(second, name="_\x1b")))
    plan = Plan(odd, rate=200.0, duration=0.5)
    recording = recorded(plan, lost)
    png = results.picture(plan, recording, evaluate(plan, recording))
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert png.startswith(b"\x89PNG") and width > 1500 and width > 1.5 * height


@pytest.mark.parametrize("name", ["iiwa", "sea_planar_2r"])
def test_the_links_follow_the_motion_made_of_a_stream(name: str) -> None:
    """To 1/200 of the error of segments at least; that is what the plant, not the feedforward, has by its own step."""
    stream = drawn_stream(eom.ElasticArm(eom.load_robot(name)))
    segments, flatness = stream.errors.values()
    assert flatness < segments / 200
    assert np.abs(stream.references[:, -1] - stream.positions[-1]).max() < 1e-9


def test_an_arm_of_pairs_gets_a_note() -> None:
    sections, note = stream_section(Plan(eom.load_robot("vsa_planar_2r"), 200.0, 0.1))
    assert sections == [] and note.startswith("without a stream of positions: antagonistic pairs have no feedforward")
