# SPDX-License-Identifier: Apache-2.0
"""Two bags of commands, compared number by number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags")

from bag_files import COMMAND, SETPOINT, read_bag, setpoints, write_bag

from eom_dynamics import load_robot
from eom_dynamics.bags import BagError
from eom_dynamics.tools.replay import Job, Match, Tolerances, compare_bags, replay_bag
from eom_dynamics.trajectory import paper_motion

NUMBERS = "std_msgs/msg/Float64MultiArray"
NAMES = load_robot("planar_2r").joint_names
COUNT = 2300
STATES = np.array(paper_motion(2).derivatives(np.arange(COUNT) * 1e-3))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    bag = write_bag(folder / "in", {"/setpoint": (SETPOINT, setpoints(NAMES, STATES))})
    replay_bag(Job(bag, folder / "out", "planar_2r"))
    return folder / "out", read_bag(folder / "out")["/feedforward"]


def differing(rows):
    return {(row.topic, row.field): row for row in rows if row.beyond}


def golden(path: Path, commands, change=None) -> Path:
    """A golden bag with the commands alone."""
    fresh = [
        (
            time,
            type(command)(
                **{k: (v.copy() if isinstance(v, np.ndarray) else v) for k, v in vars(command).items() if k[0] != "_"}
            ),
        )
        for time, command in commands
    ]
    if change:
        fresh = change(fresh)
    return write_bag(path, {"/feedforward": (COMMAND, fresh)})


def test_a_bag_equals_itself(made) -> None:
    rows = compare_bags(made[0], made[0], Tolerances({None: 0.0}, {None: 0.0}))
    assert not differing(rows) and all(row.largest == 0 for row in rows)
    compared = {(row.topic, row.field): row.compared for row in rows}
    assert compared["/feedforward", "effort_rate"] == compared["/feedforward", "header.stamp"] == COUNT
    assert {row.topic for row in rows} == {"/feedforward", "/motor_setpoint", "/effort_command"}


def test_tolerances_are_absolute_and_relative_by_field(tmp_path: Path, made) -> None:
    def change(commands):
        commands[2100][1].effort[1] += 1e-3
        commands[2200][1].effort[0] += 1e-4
        commands[2150][1].motor_effort *= 1.01
        return commands

    other = golden(tmp_path / "golden", made[1], change)

    def rows(absolute=None, relative=None):
        return differing(
            [
                r
                for r in compare_bags(made[0], other, Tolerances(absolute or {}, relative or {}))
                if r.topic == "/feedforward"
            ]
        )

    found = rows()
    assert set(found) == {("/feedforward", "effort"), ("/feedforward", "motor_effort")}
    effort = found["/feedforward", "effort"]
    assert effort.beyond == 2 and effort.first == made[1][2100][0] and effort.largest == pytest.approx(1e-3, rel=1e-6)
    assert rows({"effort": 5e-4})["/feedforward", "effort"].beyond == 1
    assert set(rows({"effort": 2e-3})) == {("/feedforward", "motor_effort")}
    assert set(rows({"effort": 2e-3}, {"motor_effort": 0.02})) == set()
    assert set(rows({None: 1e3})) == set()


def test_messages_in_one_bag_only_are_counted_and_the_others_compared(tmp_path: Path, made) -> None:
    other = golden(tmp_path / "golden", made[1], lambda commands: commands[:2047] + commands[2060:2200])
    found = differing(row for row in compare_bags(made[0], other, Tolerances()) if row.topic == "/feedforward")
    assert set(found) == {("/feedforward", "messages")}
    assert found["/feedforward", "messages"].beyond == 13 + 100
    assert found["/feedforward", "messages"].first == made[1][2047][0]
    assert found["/feedforward", "messages"].text == "113 messages are in one bag only"
    back = differing(compare_bags(other, made[0], Tolerances()))
    assert back["/feedforward", "messages"].beyond == 13 + 100


def test_bags_without_a_common_time_of_recording_name_the_option(tmp_path: Path, made) -> None:
    """A bag that was recorded live has its own times of recording, and the stamps of the commands."""
    live = golden(tmp_path / "live", made[1], lambda commands: [(time + 1, message) for time, message in commands])
    found = differing(row for row in compare_bags(made[0], live, Tolerances()) if row.topic == "/feedforward")
    assert found["/feedforward", "messages"].text.endswith("recorded live by --match stamp")
    assert not differing(compare_bags(made[0], live, Tolerances(), Match.STAMP))
    shifted = golden(tmp_path / "shifted", made[1], lambda commands: [(1, x) for _, x in commands[:1]])
    rows = compare_bags(made[0], shifted, Tolerances(), Match.STAMP)
    assert "--match" not in differing(rows)["/feedforward", "messages"].text


def test_different_names_are_a_difference_in_layout(tmp_path: Path, made) -> None:
    def change(commands):
        commands[10][1].joint_names = list(NAMES[::-1])
        return commands

    other = golden(tmp_path / "golden", made[1], change)
    found = differing(row for row in compare_bags(made[0], other, Tolerances()) if row.topic == "/feedforward")
    assert set(found) == {("/feedforward", "layout")} and found["/feedforward", "layout"].beyond == 1
    assert found["/feedforward", "layout"].text.startswith("names, frames or lengths of fields differ in 1 messages")


def test_nan_equals_only_nan(tmp_path: Path, made) -> None:
    def change(commands):
        commands[10][1].effort[0] = np.nan
        return commands

    first, second = (golden(tmp_path / name, made[1], change) for name in "ab")
    assert not differing(compare_bags(first, second, Tolerances()))
    found = differing(
        row for row in compare_bags(made[0], first, Tolerances({None: 1e9})) if row.topic == "/feedforward"
    )
    assert set(found) == {("/feedforward", "effort")}


def test_topics_that_the_golden_bag_lacks_are_told_and_the_others_compared(tmp_path: Path, made) -> None:
    rows = compare_bags(made[0], golden(tmp_path / "golden", made[1]), Tolerances())
    assert not differing(rows) and {row.topic for row in rows if row.compared} == {"/feedforward"}
    assert {row.topic: row.text for row in rows if row.field == "missing"} == dict.fromkeys(
        ("/motor_setpoint", "/effort_command"), "not compared: the golden bag has no such topic"
    )


def test_a_topic_of_another_type_in_the_golden_bag_is_a_difference(tmp_path: Path, made) -> None:
    topics = {"/feedforward": (COMMAND, made[1]), "/motor_setpoint": (SETPOINT, setpoints(NAMES, STATES))}
    other = write_bag(tmp_path / "golden", topics)
    (row,) = differing(compare_bags(made[0], other, Tolerances())).values()
    assert (row.topic, row.text) == ("/motor_setpoint", "the golden bag has a topic of this name and another type")


def test_a_damaged_or_unrelated_golden_bag_is_refused(tmp_path: Path, made) -> None:
    other = write_bag(tmp_path / "other", {"/setpoint": (SETPOINT, [])})
    with pytest.raises(BagError, match="has none of the topics /effort_command, /feedforward, /motor_setpoint"):
        compare_bags(made[0], other, Tolerances())
    broken = golden(tmp_path / "broken", made[1])
    (broken / "metadata.yaml").unlink()
    with pytest.raises(BagError, match="a golden bag must be undamaged"):
        compare_bags(made[0], broken, Tolerances())


def test_a_bag_that_was_recorded_live_is_matched_by_stamps(tmp_path: Path, made) -> None:
    late = write_bag(
        tmp_path / "live",
        {
            topic: (kind, [(time + 5_000_000 + 100 * k, message) for k, (time, message) in enumerate(messages)])
            for topic, kind, messages in (
                ("/feedforward", COMMAND, made[1][:1000] + made[1][1001:]),
                ("/effort_command", NUMBERS, read_bag(made[0])["/effort_command"]),
            )
        },
    )
    found = differing(row for row in compare_bags(made[0], late, Tolerances()) if row.topic == "/feedforward")
    assert found["/feedforward", "messages"].beyond > 0
    found = differing(compare_bags(made[0], late, Tolerances({None: 0.0}, {None: 0.0}), Match.STAMP))
    assert found["/feedforward", "messages"].beyond == 1  # the one that the recorder lost
    assert set(found) == {("/feedforward", "messages")}
