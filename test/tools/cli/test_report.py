# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics report``: page, output and errors."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from html_page import Page
from paths import PANDA_BAG
from recorded_bags import record, write_bag

MISSING = [name for name in ("rosbags", "plotly", "rich") if importlib.util.find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build")


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
