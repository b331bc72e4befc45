# SPDX-License-Identifier: Apache-2.0
"""Report: the page, complete, self-contained and small, and the command ``eom_dynamics report``."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from html_page import Page
from paths import PANDA_BAG
from recorded_bags import NOISE, START, record, write_bag

from eom_dynamics.actuators.springs.linear import RigidSpring
from eom_dynamics.tools.pages.page import html_page
from eom_dynamics.tools.recordings import Stream
from eom_dynamics.tools.report.record import Record
from eom_dynamics.tools.report.results import report_result

LARGEST = 4e6  # size of a page that any browser opens at once, bytes


def report_page(records: Sequence[Record], about: Mapping[str, str]) -> str:
    return html_page("report", report_result(records, about, Path("page.html")))


def numbers(values: dict[str, str] | list[float]) -> np.ndarray:
    if isinstance(values, list):
        return np.array(values, dtype=float)
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])


def test_a_page_shows_all_recorded_quantities() -> None:
    text = report_page([record("panda")], {"robot": "panda"})
    page = Page(text)
    assert '<p class="soft">q and its first four time derivatives.' in text
    assert page.references == ["data:,"] and page.policy.startswith("default-src 'none';")
    figures = json.loads(page.scripts[-2])
    assert {name.removeprefix("0_") for name in figures} == {
        *("position", "velocity", "acceleration", "jerk", "snap"),
        *("effort", "effort_rate", "effort_acceleration"),
        *("link_deflection", "motor_position", "motor_velocity", "motor_acceleration", "motor_effort"),
        *("position_off", "effort_off", "intervals", "latency"),
    }
    assert page.places == set(figures)
    kinds = {trace["name"].split(", ")[-1] for trace in figures["0_effort"]["data"]}
    assert {"measured", "limits"} < kinds
    assert f"{1e3 * NOISE:.2f} mrad" in page.text and "400 µs" in page.text
    assert "Every sample is drawn." in page.text


def test_long_recordings_are_thinned_and_no_peak_is_lost() -> None:
    long = record("panda", count=12_000)
    long.setpoint.values["jerk"][9_321, 2] = 1e6
    text = report_page([long, replace(long, name="again")], {})
    assert len(text.encode()) < LARGEST
    page = Page(text)
    assert "Thinned for drawing, to " in page.text and "12,000 of /setpoint" in page.text
    figure = json.loads(page.scripts[-2])["0_jerk"]
    curve = figure["data"][2]
    x, y = numbers(curve["x"]), numbers(curve["y"])
    assert len(x) < 4000 and y.max() == 1e6
    assert x[np.argmax(y)] == (long.setpoint.stamp[9_321] - START) * 1e-9, "at its time to the nanosecond"


def test_limits_have_a_section_of_their_own_with_the_worst_first() -> None:
    found = record("panda")
    found.setpoint.values["velocity"][7, 3] = -4.0
    page = report_page([found], {})
    assert '<td class="number off">' in page
    section = page.partition("<section><h2>Limits</h2>")[2].partition("</section>")[0]
    header = re.findall(r"<th(?: class=\"number\")?>(.*?)</th>", section)
    assert header == ["joint", "limit of", "used", "peak", "limit", "at"], "a phone shows the first three"
    rows = re.findall(r'<tr data-group="(\w+)">(.*?)</tr>', section)
    used = [int(re.search(r">(\d+)%<", cells).group(1)) for _, cells in rows]
    assert used == sorted(used, reverse=True) and len(rows) == 6 * 7
    assert rows[0][0] == "fer_joint4"
    options = re.findall(r'<option value="(\w*)">', section)
    assert options == ["", *(f"fer_joint{k}" for k in range(1, 8))]


def test_a_fit_is_called_a_fit() -> None:
    commanded = record("planar_2r")
    fitted = replace(commanded, setpoint=replace(commanded.setpoint, is_recorded=False, is_fitted=True))
    for found, name, other in ((commanded, "q", "fit"), (fitted, "fit", "q")):
        page = Page(report_page([found], {}))
        assert f"RMS of {name} − measured" in page.text and f"{name}: RMS" in page.text
        title = json.loads(page.scripts[-2])["0_position_off"]["layout"]["title"]["text"]
        assert title == f"<b>{name} − measured position</b>"
        assert f"{other} − measured" not in page.text
    assert "not a tracking error" in page.text and "Commanded minus" not in page.text


def test_phases_without_a_setpoint_are_shaded() -> None:
    found = record("planar_2r")
    status = np.zeros((len(found.command), 1))
    status[100:150], status[150:200] = 2, 1
    shaded = replace(found, status=replace(found.command, names=("status",), values={"status": status}))
    page = Page(report_page([shaded], {}))
    for name in ("0_position", "0_effort", "0_motor_effort"):
        shapes = json.loads(page.scripts[-2])[name]["layout"]["shapes"]
        np.testing.assert_allclose(
            [(shape["x0"], shape["x1"]) for shape in shapes], [(0.2, 0.3), (0.3, 0.4)], atol=1e-9
        )
    assert "Shaded: orange, commands bring the arm to rest; grey, commands repeat an earlier one." in page.text
    assert "Shaded" not in Page(report_page([found], {})).text


def test_quantities_that_are_unknown_or_of_rigid_joints_have_no_charts() -> None:
    found = record("planar_2r")
    assert not found.is_rigid
    rigid = replace(found.robot, joints=tuple(replace(joint, spring=RigidSpring()) for joint in found.robot.joints))
    found.measured.values["effort"][:] = np.nan
    names = set(json.loads(Page(report_page([replace(found, robot=rigid)], {})).scripts[-2]))
    assert "0_effort" in names and "0_effort_off" not in names
    assert not {name for name in names if "motor" in name or "deflection" in name}


def test_markup_in_names_is_escaped() -> None:
    nasty = "</script><u>"
    stamp = np.array([START, START + 1])
    stream = Stream(nasty, stamp, stamp, (nasty,), {"position": np.zeros((2, 1))})
    text = report_page([Record(nasty, measured=stream, notes=(nasty,)), Record(nasty, measured=stream)], {nasty: nasty})
    page = Page(text)
    assert page.references == ["data:,"] and nasty in page.text and "<u>" not in text
    assert "<" not in page.scripts[-2]


def test_one_page_of_several_bags(tmp_path: Path, run) -> None:
    write_bag(tmp_path / "bags" / "one", record("planar_2r", count=50))
    write_bag(tmp_path / "bags" / "two", record("planar_pr", count=50), without=["command", "motors"])
    output = tmp_path / "new" / "page.html"
    out, error = run("report", str(tmp_path / "bags"), "-o", str(output), "--robot", "planar_pr", code=1)
    assert error.count("\n") == 1 and "one: robot planar_pr has none of the joints of this recording, which" in error
    assert out.splitlines()[-1] == f"page: {output}"
    assert "one: robot planar_pr is not used: it has none of the joints" in out
    assert "one: Commands" not in out  # it has them
    assert "two: Commands were not recorded" in out
    page = Page(output.read_text(encoding="utf-8"))
    figures = json.loads(page.scripts[-2])
    assert {"0_effort", "1_effort", "0_latency"} < set(figures) and "1_latency" not in figures
    assert [path.name for path in output.parent.iterdir()] == ["page.html"]


def test_a_bad_bag_does_not_stop_the_others(tmp_path: Path, run) -> None:
    bag = write_bag(tmp_path / "good", record("planar_2r", count=10))
    (tmp_path / "bad.db3").write_bytes(b"no bag")
    page = tmp_path / "page.html"
    out, error = run("report", str(tmp_path / "nowhere"), str(tmp_path / "bad.db3"), str(bag), "-o", str(page), code=1)
    first, second = error.splitlines()
    assert "nowhere: there is no such bag" in first and "bad.db3: cannot be read" in second
    assert out.splitlines()[-1] == f"page: {page}"
    assert {name[:2] for name in json.loads(Page(page.read_text(encoding="utf-8")).scripts[-2])} == {"0_"}


def test_messages_that_cannot_be_read_fail(tmp_path: Path, run, refused) -> None:
    from bag_files import JOINT_STATE, START, joint_state
    from bag_files import write_bag as messages_in

    states = [(START + k, joint_state(START + k, ["a"], [0.0])) for k in range(0, 10**9, 10**8)]
    states[3] = (states[3][0], b"\x00\x01\x00\x00text")
    page = tmp_path / "page.html"
    bag = messages_in(tmp_path / "bag", {"/joint_states": (JOINT_STATE, states)})
    (line,) = run("report", str(bag), "-o", str(page), code=1).err.splitlines()
    assert "bag: /joint_states: 1 messages could not be read, the first: not a message of type" in line
    assert "1 messages could not be read" in Page(page.read_text(encoding="utf-8")).text
    none = messages_in(tmp_path / "none", {"/joint_states": (JOINT_STATE, states[3:4])})
    assert "/joint_states: 1 messages could not be read, the first: " in refused(
        "report", str(none), "-o", str(page), "--force"
    )


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is not beside this checkout")
def test_a_recording_of_a_real_arm(tmp_path: Path, run) -> None:
    out = run("report", PANDA_BAG, "-o", tmp_path / "page.html", "--robot", "panda").out
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    figures = json.loads(page.scripts[-2])
    assert {"0_snap", "0_effort_acceleration", "0_motor_effort", "0_effort_off", "0_position_off"} < set(figures)
    # τ and what was measured are drawn together, and differ by little more than friction.
    names = [trace["name"] for trace in figures["0_effort"]["data"]]
    assert {"fer_joint1", "fer_joint1, measured", "fer_joint1, limits"} < set(names)
    worst = re.search(r"([0-9.]+) N mRMS of τ − measured effort, worst joint", page.text)
    assert worst and 0.1 < float(worst.group(1)) < 1.5
    assert "panda from a fit of the positions of /joint_states" in out
    repeats = "14 messages repeat the positions of the previous one during a motion (the first at 1.533 s)"
    assert f"/joint_states: {repeats}" in out


def test_what_cannot_be_shown_is_refused_on_one_line(tmp_path: Path, monkeypatch, refused) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.db3").write_text("no bag", encoding="utf-8")
    Path("empty").mkdir()
    write_bag(Path("other"), record("planar_2r", count=3), without=["setpoint", "command", "motors", "measured"])
    for name, reason in (
        ("nowhere", "there is no such bag"),
        ("text.db3", "text.db3"),
        ("empty", "empty"),
        ("other", "has no message of type"),
    ):
        assert reason in refused("report", name, "-o", "page.html")
        assert not Path("page.html").exists()
