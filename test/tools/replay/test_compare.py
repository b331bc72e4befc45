# SPDX-License-Identifier: Apache-2.0
"""Two bags of commands, compared number by number."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from bag_files import COMMAND, SETPOINT, read_bag, setpoints, write_bag

from eom_dynamics import load_robot
from eom_dynamics.recordings.bags import BagError
from eom_dynamics.tools.replay.bag import Job, replay_bag
from eom_dynamics.tools.replay.compare import Golden, Tolerances
from eom_dynamics.trajectory import paper_motion

NUMBERS = "std_msgs/msg/Float64MultiArray"
NAMES = load_robot("planar_2r").joint_names
BLOCK, COUNT = 100, 210
STATES = np.array(paper_motion(2).derivatives(np.arange(COUNT) * 1e-3))


@pytest.fixture(scope="module", autouse=True)
def short_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eom_dynamics.recordings.bags.bag._BLOCK", BLOCK)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    bag = write_bag(folder / "in", {"/setpoint": (SETPOINT, setpoints(NAMES, STATES))})
    replay_bag(Job(bag, folder / "out", "planar_2r"))
    return folder / "out", read_bag(folder / "out")["/feedforward"]


def differing(rows):
    return {(row.topic, row.field): row for row in rows if row.beyond}


def compare_bags(bag: Path, golden: Path, *options):
    return Golden(golden, *options).differences(bag, {})


def of_feedforward(bag: Path, golden: Path, *options):
    """Differences of the commands by field, if the golden bag has only commands."""
    rows = compare_bags(bag, golden, *options)
    return {row.field: row for row in rows if row.beyond and row.topic == "/feedforward"}


def golden(path: Path, commands, change=list) -> Path:
    return write_bag(path, {"/feedforward": (COMMAND, change(deepcopy(commands)))})


def test_a_bag_equals_itself(made) -> None:
    rows = compare_bags(made[0], made[0], Tolerances({None: 0.0}, {None: 0.0}))
    assert not differing(rows) and all(row.largest == 0 for row in rows)
    compared = {(row.topic, row.field): row.compared for row in rows}
    assert compared["/feedforward", "effort_rate"] == compared["/feedforward", "header.stamp"] == COUNT
    assert {row.topic for row in rows} == {"/feedforward", "/motor_setpoint", "/effort_command"}


def test_tolerances_are_absolute_and_relative_by_field(tmp_path: Path, made) -> None:
    def change(commands):
        commands[150][1].effort[1] += 1e-3
        commands[180][1].effort[0] += 1e-4
        commands[160][1].motor_effort *= 1.01
        return commands

    other = golden(tmp_path / "golden", made[1], change)
    found = of_feedforward(made[0], other)
    assert set(found) == {"effort", "motor_effort"}
    effort = found["effort"]
    assert effort.beyond == 2 and effort.largest == pytest.approx(1e-3, rel=1e-6)
    assert effort.first == effort.worst_at == made[1][150][0] and effort.worst == NAMES[1]
    for absolute, relative, fields in (
        ({"effort": 5e-4}, {}, {"effort": 1, "motor_effort": 1}),
        ({"effort": 2e-3}, {}, {"motor_effort": 1}),
        ({"effort": 2e-3}, {"motor_effort": 0.02}, {}),
        ({None: 1e3}, {}, {}),
    ):
        found = of_feedforward(made[0], other, Tolerances(absolute, relative))
        assert {field: row.beyond for field, row in found.items()} == fields


def test_messages_in_one_bag_only_are_counted_and_the_others_compared(tmp_path: Path, made) -> None:
    other = golden(tmp_path / "golden", made[1], lambda commands: commands[:77] + commands[90:-50])
    ((field, row),) = of_feedforward(made[0], other).items()
    assert (field, row.beyond, row.first) == ("messages", 13 + 50, made[1][77][0])
    assert row.text == "63 messages are in one bag only"
    assert of_feedforward(other, made[0])["messages"].beyond == 13 + 50


def test_bags_without_a_common_time_of_recording_name_the_option(tmp_path: Path, made) -> None:
    """A bag that was recorded live has its own times of recording, and the stamps of the commands."""
    live = golden(tmp_path / "live", made[1], lambda commands: [(time + 1, message) for time, message in commands])
    assert of_feedforward(made[0], live)["messages"].text.endswith("recorded live by --match stamp")
    assert not differing(compare_bags(made[0], live, Tolerances(), "stamp"))
    topics = {"/feedforward": (COMMAND, [(t + 1, x) for t, x in made[1][:9] + made[1][10:]])}
    topics["/effort_command"] = (NUMBERS, [(t + 1, x) for t, x in read_bag(made[0])["/effort_command"]])
    (lost,) = differing(compare_bags(made[0], write_bag(tmp_path / "lost", topics), Tolerances(), "stamp")).values()
    assert (lost.topic, lost.field, lost.beyond) == ("/feedforward", "messages", 1)
    shifted = golden(tmp_path / "shifted", made[1], lambda commands: [(1, x) for _, x in commands[:1]])
    assert "--match" not in of_feedforward(made[0], shifted, Tolerances(), "stamp")["messages"].text


def test_different_names_are_a_difference_in_layout(tmp_path: Path, made) -> None:
    def change(commands):
        commands[10][1].joint_names = list(NAMES[::-1])
        return commands

    other = golden(tmp_path / "golden", made[1], change)
    ((field, row),) = of_feedforward(made[0], other).items()
    assert (field, row.beyond) == ("layout", 1)
    assert row.text.startswith("names, frames or lengths of fields differ in 1 messages")


def test_nan_equals_only_nan(tmp_path: Path, made) -> None:
    def change(commands):
        commands[10][1].effort[0] = np.nan
        return commands

    first, second = (golden(tmp_path / name, made[1], change) for name in "ab")
    assert not differing(compare_bags(first, second, Tolerances()))
    assert set(of_feedforward(made[0], first, Tolerances({None: 1e9}))) == {"effort"}


def test_a_topic_of_another_type_in_the_golden_bag_is_a_difference(tmp_path: Path, made) -> None:
    topics = {"/feedforward": (COMMAND, made[1]), "/motor_setpoint": (SETPOINT, setpoints(NAMES, STATES))}
    other = write_bag(tmp_path / "golden", topics)
    (row,) = differing(compare_bags(made[0], other, Tolerances())).values()
    assert (row.topic, row.text) == ("/motor_setpoint", "the golden bag has a topic of this name and another type")


def test_a_damaged_or_unrelated_golden_bag_is_refused(tmp_path: Path, made) -> None:
    other = write_bag(tmp_path / "other", {"/setpoint": (SETPOINT, [])})
    with pytest.raises(BagError, match=r"topics.*/effort_command.*/feedforward.*/motor_setpoint"):
        compare_bags(made[0], other, Tolerances())
    broken = golden(tmp_path / "broken", made[1])
    (broken / "metadata.yaml").unlink()
    with pytest.raises(BagError, match=r"metadata\.yaml.*ros2.*reindex"):
        compare_bags(made[0], broken, Tolerances())


def test_the_last_command_of_a_live_node_is_not_compared(tmp_path: Path, made) -> None:
    """A node repeats its last command at its end, with a stamp without a setpoint; other messages count."""
    folder, commands = made
    topics = read_bag(folder)
    kinds = {"/feedforward": COMMAND, "/motor_setpoint": "sensor_msgs/msg/JointState", "/effort_command": NUMBERS}

    def recorded(name: str, status: int, extra: int = 1) -> Path:
        live = {}
        for topic, kind in kinds.items():
            messages = list(topics[topic])
            for k in range(extra):
                time, message = deepcopy(messages[-1])
                if hasattr(message, "header"):
                    message.header.stamp.nanosec += 1_000_000
                if topic == "/feedforward":
                    message.status, message.held = status, status != 0
                messages.append((time + 1_000_000 * (k + 1), message))
            live[topic] = (kind, messages)
        return write_bag(tmp_path / name, live)

    assert len(commands) == COUNT
    assert not differing(Golden(recorded("held", 1), match="stamp").differences(folder, {}))
    for other in (recorded("fresh", 0), recorded("two", 1, 2)):
        found = differing(Golden(other, match="stamp").differences(folder, {}))
        assert {row.field for row in found.values()} == {"messages"} and len(found) == 3
    missing = write_bag(tmp_path / "less", {"/feedforward": (COMMAND, commands[:-1])})
    assert differing(Golden(missing, match="stamp").differences(folder, {})), "only of the golden bag"
