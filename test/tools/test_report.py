# SPDX-License-Identifier: Apache-2.0
"""Report: records of bags with known values, with missing commands; and the page."""

from dataclasses import replace
from pathlib import Path

import bag_files
import numpy as np
import pytest
from html_page import Page
from recorded_bags import NOISE, OFFSET, START, record, write_bag, write_bags

import eom_dynamics as eom
from eom_dynamics.recordings.bags import BagError
from eom_dynamics.recordings.streams import Stream
from eom_dynamics.robot import Limits
from eom_dynamics.tools.pages import html_page
from eom_dynamics.tools.replay.bag import Job, replay_bag
from eom_dynamics.tools.replay.run import compared_figure
from eom_dynamics.tools.report import Record, read_records, report_result

STREAMS = ("setpoint", "command", "motors", "measured")


def stream(t: list[float], names: tuple[str, ...] = ("a",), **values: list[list[float]]) -> Stream:
    stamp = START + np.round(np.array(t) * 1e9).astype(np.int64)
    return Stream("/x", stamp, stamp, names, {field: np.array(x, dtype=float) for field, x in values.items()})


def page_of(*records: Record) -> str:
    return html_page("report", report_result(records, {}, Path("page.html")))


def table_of(found: Record) -> list[dict[str, str]]:
    table = report_result([found], {}, Path("page.html")).sections[0].tables[0]
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def titles(found: Record) -> list[str]:
    (figure,) = report_result([found], {}, Path("page.html")).sections[0].charts.values()
    return [annotation.text for annotation in figure.layout.annotations]


def test_errors_are_the_known_noise_and_offset() -> None:
    found = record("panda", count=200)
    np.testing.assert_allclose(np.abs(found.error("position").values["position"]), NOISE, rtol=1e-9)
    np.testing.assert_allclose(found.error("effort").values["effort"], -OFFSET, rtol=1e-9)
    for row in table_of(found):
        assert row["q − measured, RMS"] == row["q − measured, peak"] == "2.00 mrad"
        assert row["τ − measured, RMS"] == row["τ − measured, peak"] == "0.500 N m"


def test_errors_are_interpolated_within_the_times_of_setpoints() -> None:
    setpoint = stream([0, 1, 2, 12], position=[[0], [2], [4], [0]])
    measured = stream([-0.5, 0.5, 1, 2, 7, 13.5], position=[[0]] * 6)
    error = Record("x", setpoint=setpoint, measured=measured).error("position").values["position"]
    np.testing.assert_allclose(error[:, 0], [np.nan, 1, 2, 4, 2, np.nan])


def test_the_limit_that_is_used_most() -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    limits = Limits(lower=-1.0, upper=3.0, velocity=2.0)
    robot = replace(robot, joints=(replace(first, limits=limits), replace(second, limits=Limits(velocity=4.0))))
    fields = {name: np.zeros((3, 2)) for name in ("position", "velocity", "acceleration", "jerk", "snap")}
    # The middle of the range is 1, its half 2.
    fields["position"][:, 0], fields["velocity"][:, 1] = [1, 3.4, -0.5], [0, -1, 0.5]
    found = Record("x", robot, setpoint=stream([0, 1, 2], robot.joint_names, **fields))
    assert [row["limit used most"] for row in table_of(found)] == [
        "120 % of position, at 1.000 s",
        "25 % of velocity, at 1.000 s",
    ]
    assert page_of(found).count('class="number off"') == 1
    found.setpoint.values["position"][1] = np.nan  # a sample that is damaged does not count
    assert found.used()["joint_1"].t == 2.0


def same(actual: Stream | None, expected: Stream | None) -> None:
    assert actual.names == expected.names and actual.topic.endswith(expected.topic)
    np.testing.assert_array_equal(actual.stamp, expected.stamp)
    for field, values in expected.values.items():
        np.testing.assert_array_equal(actual.values[field], values, err_msg=field)


def test_all_topics_of_the_node_are_read(tmp_path: Path) -> None:
    expected = record("panda", count=60)
    (actual,) = read_records(write_bag(tmp_path / "bag", expected))
    for name in STREAMS:
        same(getattr(actual, name), getattr(expected, name))
    assert actual.name == "bag" and actual.robot is None and actual.notes == ()
    assert titles(actual) == ["q, position", "q − measured position", "τ, joint effort", "τ_m, motor effort"]


def test_each_namespace_makes_a_record(tmp_path: Path) -> None:
    arms = {"/left": record("planar_2r", count=20), "/right": record("planar_pr", count=20)}
    records = read_records(write_bags(tmp_path / "bag", arms), eom.load_robot("planar_pr"))
    assert [found.name for found in records] == ["bag /left", "bag /right"]
    for found, expected in zip(records, arms.values(), strict=True):
        same(found.command, expected.command)
        same(found.measured, expected.measured)
    assert [found.robot is None for found in records] == [True, False]
    assert "lacks all joints of the bag (joint_1, joint_2)" in records[0].notes[0]


def test_joints_in_another_order_additional_ones_and_stamps_in_disorder(tmp_path: Path) -> None:
    expected = record("planar_2r", count=20)
    measured, setpoint = expected.measured, expected.setpoint
    gripper = {field: np.hstack([np.full((len(x), 1), 9.0), x[:, ::-1]]) for field, x in measured.values.items()}
    theirs = replace(measured, names=("gripper", *measured.names[::-1]), values=gripper)
    mixed = replace(setpoint[np.array([0, 2, 1, *range(3, 20)])], recorded=setpoint.recorded)
    (actual,) = read_records(write_bag(tmp_path / "bag", replace(expected, measured=theirs, setpoint=mixed)))
    same(actual.setpoint, setpoint)
    np.testing.assert_array_equal(
        actual.error("position").values["position"], expected.error("position").values["position"]
    )
    assert actual.joints == (*expected.joints, "gripper")


@pytest.mark.parametrize("without", [("command", "motors"), ("setpoint", "command", "motors")])
def test_missing_commands_are_those_of_a_replay(tmp_path: Path, without: tuple[str, ...]) -> None:
    expected = record("panda", count=600)
    path = write_bag(tmp_path / "bag", expected, without=without)
    (actual,) = read_records(path, expected.robot)
    replay_bag(Job(path, tmp_path / "out", "panda"))
    (replayed,) = read_records(tmp_path / "out")
    same(actual.command, replayed.command)
    same(actual.motors, replayed.motors)
    assert actual.notes[0].startswith("commands were not recorded; ")
    (unknown,) = read_records(path)
    assert unknown.notes == ("commands were not recorded; to compute them, name the robot: --robot ROBOT",)


def test_commands_are_computed_from_planned_trajectories(tmp_path: Path) -> None:
    robot = eom.load_robot("planar_2r")
    for name, joints in (("one", robot.joint_names), ("two", ("a", "b"))):
        plan = bag_files.trajectory(START, joints, [0.0, 0.5, 1.0], [[0, 0], [1, -1], [2, 0]])
        bag_files.write_bag(tmp_path / name, {"/plan": (bag_files.TRAJECTORY, [(START, plan)])})
    with pytest.raises(BagError, match="has no message of type"):
        read_records(tmp_path / "one")
    (actual,) = read_records(tmp_path / "one", robot)
    assert len(actual.command) == 1001 and titles(actual) == ["τ, joint effort", "τ_m, motor effort"]
    with pytest.raises(BagError, match="joint"):
        read_records(tmp_path / "two", robot)


def test_what_differs_from_a_golden_bag_is_drawn(tmp_path: Path, run) -> None:
    names, states = ("joint_1", "joint_2"), np.zeros((5, 100, 2))
    for name, change in (("golden_of", 0.0), ("in", 0.5)):
        states[2, 50:, 1] = change
        bag_files.write_bag(tmp_path / name, {"/setpoint": (bag_files.SETPOINT, bag_files.setpoints(names, states))})
    command = ["--robot", "planar_2r", "-o"]
    run("replay", tmp_path / "golden_of", *command, tmp_path / "golden")
    page = tmp_path / "page.html"
    compare = ["--compare", tmp_path / "golden", "--page", page]
    run("replay", tmp_path / "in", *command, tmp_path / "out", *compare, code=1)
    assert Page(page.read_text(encoding="utf-8")).places == {"/feedforward"}
    figure = compared_figure(tmp_path / "out", tmp_path / "golden", "/feedforward", ["effort", "motor_effort"])
    assert [x.text for x in figure.layout.annotations] == [
        f"{x}, replayed − golden" for x in ("effort", "motor effort")
    ]
    expected = eom.Dynamics(eom.load_robot("planar_2r")).mass_matrix(np.zeros(2))[:, 1] * 0.5
    for curve, step in zip(figure.data[:2], expected, strict=True):
        np.testing.assert_allclose(curve.y, np.where(np.arange(100) < 50, 0.0, step), atol=1e-6)


def test_markup_in_names_is_escaped() -> None:
    nasty = "</script><u>"
    stamp = np.array([START, START + 1])
    measured = Stream(nasty, stamp, stamp, (nasty,), {"position": np.zeros((2, 1))})
    text = page_of(Record(nasty, measured=measured, notes=(nasty,)), Record(nasty, measured=measured))
    page = Page(text)
    assert page.references == ["data:,"] and nasty in page.text and "<u>" not in text


def test_a_page_of_long_recordings_is_small_and_needs_nothing(tmp_path: Path) -> None:
    found = record("panda", count=20_000)
    texts = [page_of(found), page_of(found, found)]
    assert len(texts[0]) < 6e6 and len(texts[1]) - len(texts[0]) < 1e6, "Plotly is in it once"
    assert all(Page(text).references == ["data:,"] and "default-src 'none'" in Page(text).policy for text in texts)


def test_one_page_of_several_bags(tmp_path: Path, run) -> None:
    """A bad bag does not stop the others."""
    write_bag(tmp_path / "bags" / "one", record("planar_2r", count=50))
    write_bag(tmp_path / "bags" / "two", record("planar_pr", count=50), without=["command", "motors"])
    output = tmp_path / "new" / "page.html"
    (tmp_path / "bad.db3").write_bytes(b"no bag")
    bags = [tmp_path / "bags", tmp_path / "nowhere", tmp_path / "bad.db3"]
    out, error = run("report", *bags, "-o", output, "--robot", "planar_pr", code=1)
    for line, reason in zip(
        sorted(error.splitlines()),
        (
            "bad.db3: cannot be read",
            "one: robot planar_pr is not used: it lacks all joints of the bag (joint",
            "nowhere: there is no such bag",
        ),
        strict=True,
    ):
        assert reason in line
    assert out.splitlines()[-1] == f"page: {output}" and "commands were not recorded; " in out
    assert Page(output.read_text(encoding="utf-8")).places == {"record 0", "record 1"}
    assert [path.name for path in output.parent.iterdir()] == ["page.html"]


def test_messages_that_cannot_be_read_fail(tmp_path: Path, run, refused) -> None:
    states = [(START + k, bag_files.joint_state(START + k, ["a"], [0.0])) for k in range(0, 10**9, 10**8)]
    states[3] = (states[3][0], b"\x00\x01\x00\x00text")
    page, kind = tmp_path / "page.html", bag_files.JOINT_STATE
    bag = bag_files.write_bag(tmp_path / "bag", {"/joint_states": (kind, states)})
    (line,) = run("report", str(bag), "-o", str(page), code=1).err.splitlines()
    assert "bag: /joint_states: 1 messages could not be read, the first: not a message of type" in line
    assert "1 messages could not be read" in Page(page.read_text(encoding="utf-8")).text
    none = bag_files.write_bag(tmp_path / "none", {"/joint_states": (kind, states[3:4])})
    assert "/joint_states: 1 messages could not be read, the first: " in refused(
        "report", str(none), "-o", str(page), "--force"
    )
