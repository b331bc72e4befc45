# SPDX-License-Identifier: Apache-2.0
"""Blocks of serialized messages as arrays, and written bags, as rosbags and the mcap library read them."""

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from bag_files import (
    COMMAND,
    JOINT_STATE,
    SETPOINT,
    STORE,
    TRAJECTORY,
    file_of,
    joint_state,
    read_bag,
    setpoint,
    trajectory,
)
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

from eom_dynamics.recordings.bags import BagWriter, Layout, Layouts, Storage, package_definitions, typestore
from eom_dynamics.recordings.bags.types import serialized

TEXTS = st.text(max_size=12)
NUMBERS = st.floats(width=64)


def arrays(n: int):
    return st.lists(NUMBERS, min_size=n, max_size=n)


@st.composite
def joint_states(draw):
    n = draw(st.integers(0, 5))
    effort = draw(arrays(n) | st.just([]))
    return joint_state(
        draw(st.integers(0, 2**31 * 10**9 - 1)), draw(st.lists(TEXTS, max_size=4)), draw(arrays(n)), effort
    )


def decoded(kind, messages):
    """Blocks of messages, and the reasons and places of those that cannot be read."""
    refused: list[tuple[str, int]] = []
    places = range(len(messages))
    return list(Layouts(STORE, kind).blocks(places, messages, lambda *found: refused.append(found))), refused


def same(a, b) -> bool:
    return np.asarray(a, dtype=float).tobytes() == np.asarray(b, dtype=float).tobytes()


@given(message=joint_states(), little=st.booleans(), fill=st.integers(0, 3))
def test_numbers_are_where_rosbags_finds_them(message, little, fill) -> None:
    data = bytes(STORE.serialize_cdr(message, JOINT_STATE, little_endian=little)) + bytes(fill)
    layout = Layout(STORE, JOINT_STATE, data)
    rows = np.frombuffer(data, np.uint8)[np.newaxis]
    for name in ("position", "velocity", "effort"):
        assert same(layout.numbers(rows, name)[0], getattr(message, name))
    assert layout.numbers(rows, "header.stamp.sec")[0, 0] == message.header.stamp.sec
    assert layout.numbers(rows, "header.stamp.nanosec")[0, 0] == message.header.stamp.nanosec


@pytest.mark.parametrize(
    ("kind", "message", "padding"),
    [
        # As many bytes as rclpy.serialization.serialize_message leaves behind these messages; their values are random.
        (JOINT_STATE, joint_state(0, ["ab", "c"], [1.0, 2.0]), 8),
        (SETPOINT, setpoint(0, ["a"], [[1.0], [], [], [], []]), 24),
        (TRAJECTORY, trajectory(0, [], [0.0] * 100, [[]] * 100), 1600),
    ],
    ids=["joint states", "setpoint", "trajectory"],
)
def test_padding_of_rclpy_is_ignored(kind: str, message, padding: int) -> None:
    exact = bytes(STORE.serialize_cdr(message, kind))
    random = np.random.default_rng(0)
    (padded, _), refused = decoded(kind, [exact + random.bytes(padding), exact])
    second = Layout(STORE, kind, exact)
    assert padded.layout.fields() == second.fields() and padded.layout.texts() == second.texts() and not refused
    blocks, ((reason, _),) = decoded(kind, [exact + bytes(8 * len(exact))])
    assert not blocks and "more than its fields take" in reason


@given(messages=st.lists(joint_states(), min_size=1, max_size=12))
def test_a_block_is_split_in_order(messages) -> None:
    block = [bytes(STORE.serialize_cdr(message, JOINT_STATE)) for message in messages]
    parts, refused = decoded(JOINT_STATE, block)
    assert np.concatenate([part.recorded for part in parts]).tolist() == list(range(len(messages))) and not refused
    for part in parts:
        for place, row, position in zip(part.recorded, part.rows, part.numbers("position"), strict=True):
            assert row.tobytes() == block[place]
            assert same(position, messages[place].position)
            assert list(part.message.name) == messages[place].name


@given(values=arrays(7), sec=st.integers(-(2**31), 2**31 - 1))
def test_rosbags_reads_numbers_written_into_a_template(values, sec) -> None:
    names = [f"joint_{k}" for k in range(7)]
    fields = [name for name in STORE.fielddefs[COMMAND][1] if name[0].startswith(("effort", "motor_"))]
    numbers = {name: np.zeros(7) for name, _ in fields if name != "motor_names"}
    layout = Layout.of(COMMAND, joint_names=names, motor_names=names, **numbers)
    rows = np.tile(layout.template, (3, 1))
    layout.set_numbers(rows, "motor_effort", np.array([np.zeros(7), values, np.ones(7)]))
    layout.set_stamps(rows, np.array([1, sec, 3]) * 10**9 + 7)
    layout.set_numbers(rows, "held", np.array([[False], [True], [False]]))
    message = STORE.deserialize_cdr(rows[1].tobytes(), COMMAND)
    assert same(message.motor_effort, values) and message.held
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (sec, 7)
    assert not message.effort.any() and message.joint_names == names


def test_padding_is_ignored() -> None:
    """Some middlewares leave old contents of their buffers between fields."""
    data = bytearray(STORE.serialize_cdr(joint_state(5, ["abc", "d"], [1.0, 2.0]), JOINT_STATE))
    other = bytearray(data)
    # "abc" and its end take four bytes, "d" takes two: two of padding before the length of position.
    place = data.index(b"d\x00") + 2
    assert data[place : place + 2] == bytes(2)
    other[place : place + 2] = b"\xff\xff"
    (part,), _ = decoded(JOINT_STATE, [bytes(data), bytes(other)])
    assert len(part) == 2


@given(
    values=st.lists(st.lists(NUMBERS, min_size=6, max_size=6), max_size=3), n=st.integers(0, 3), little=st.booleans()
)
def test_messages_of_numbers_of_one_type_are_one_field(values, n, little) -> None:
    message = setpoint(3, ["a"] * n, np.ones((5, n)), wrench_rate=values, stiffness=[7.0])
    data = bytes(STORE.serialize_cdr(message, SETPOINT, little_endian=little))
    layout = Layout(STORE, SETPOINT, data)
    rows = np.tile(layout.template, (2, 1))
    force_first = [[x for v in (w.force, w.torque) for x in (v.x, v.y, v.z)] for w in message.wrench_rate]
    assert same(layout.numbers(rows, "wrench_rate")[1], np.ravel(force_first))
    assert layout.fields()["wrench"] == 0 and layout.numbers(rows, "stiffness").tolist() == [[7.0], [7.0]]
    layout.set_numbers(rows, "wrench_rate", 2.0 * np.arange(12.0 * len(values)).reshape(2, -1))
    changed = STORE.deserialize_cdr(rows[1].tobytes(), SETPOINT).wrench_rate
    assert [w.force.x for w in changed] == [2.0 * 6 * (len(values) + k) for k in range(len(values))]


@pytest.mark.parametrize(
    "data", [b"", b"\x00\x01", b"\x00\x01\x00\x00", b"\x00\x01\x00\x00" + b"\xff" * 60, b"\x00\x03\x00\x00" + bytes(60)]
)
def test_bytes_that_are_not_a_message_are_reported(data: bytes) -> None:
    good = bytes(STORE.serialize_cdr(joint_state(5, ["a"], [1.0]), JOINT_STATE))
    parts, ((reason, place),) = decoded(JOINT_STATE, [good, data, good])
    assert [part.recorded.tolist() for part in parts] == [[0], [2]] and place == 1 and "\n" not in reason


COUNT = 2000
TIMES = 1_700_000_000_000_000_000 + 1_000_000 * np.arange(COUNT)
TOPICS = dict.fromkeys(("/a", "/b"), JOINT_STATE)


@cache
def messages() -> list[list[Any]]:
    return [[joint_state(k, ["x"] * (1 + n), [k] * (1 + n)) for k in range(COUNT)] for n in range(2)]


@cache
def rows(topic: int) -> np.ndarray:
    return np.array([np.frombuffer(STORE.serialize_cdr(m, JOINT_STATE), np.uint8) for m in messages()[topic]])


def write(folder: Path, storage: Storage) -> Path:
    folder.mkdir()
    with BagWriter(folder, folder.name, storage, TOPICS) as writer:
        for start in range(0, COUNT, 700):
            part = slice(start, start + 700)
            writer.write(TIMES[part], [rows(topic)[part] for topic in (0, 1)])
    return folder


@pytest.mark.parametrize("storage", Storage)
def test_rosbags_reads_written_bags(tmp_path: Path, storage: Storage) -> None:
    """And the same messages make the same bytes."""
    (tmp_path / "again").mkdir()
    bag, again = write(tmp_path / "bag", storage), write(tmp_path / "again/bag", storage)
    assert file_of(bag).read_bytes() == file_of(again).read_bytes()
    found = read_bag(bag)
    for topic, sent in zip(("/a", "/b"), messages(), strict=True):
        assert [time for time, _ in found[topic]] == TIMES.tolist()
        assert all(
            bytes(STORE.serialize_cdr(m, JOINT_STATE)) == bytes(STORE.serialize_cdr(n, JOINT_STATE))
            for (_, m), n in zip(found[topic], sent, strict=True)
        )
    with Reader(bag) as reader:
        assert reader.message_count == 2 * COUNT and reader.start_time == TIMES[0]
        assert reader.duration == TIMES[-1] - TIMES[0] + 1
        assert {c.digest for c in reader.connections} == {STORE.hash_rihs01(JOINT_STATE)}
    information = yaml.safe_load((bag / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert [t["message_count"] for t in information["topics_with_message_count"]] == [COUNT, COUNT]


def test_the_mcap_library_reads_index_and_types(tmp_path: Path) -> None:
    """PlotJuggler and Foxglove read messages by the types that the file itself holds."""
    with file_of(write(tmp_path / "bag", Storage.MCAP)).open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None and summary.statistics is not None
        assert summary.statistics.channel_message_counts == {1: COUNT, 2: COUNT}
        assert {s.name for s in summary.schemas.values()} == {JOINT_STATE}
        text = summary.schemas[1].data.decode()
        assert (
            "float64[] position" in text and "MSG: std_msgs/Header" in text and "MSG: builtin_interfaces/Time" in text
        )
        seconds = slice(800, None)
        late = list(reader.iter_messages(topics=["/b"], starting_at=int(TIMES[800])))
        assert [message.log_time for _, _, message in late] == TIMES[seconds].tolist()
        assert [message.data for _, _, message in late] == [row.tobytes() for row in rows(1)[seconds]]
        assert len(list(reader.iter_messages())) == 2 * COUNT


def test_definitions_and_hashes_agree_with_those_built_by_ros() -> None:
    share = Path(sys.prefix) / "share/eom_dynamics/msg"
    if not share.is_dir():
        pytest.skip("the interfaces are not built")
    assert {f"{name.rpartition('/')[2]}.msg" for name in package_definitions()} == {p.name for p in share.glob("*.msg")}
    for name, text in package_definitions().items():
        assert text == (share / f"{name.rpartition('/')[2]}.msg").read_text()
        built = json.loads((share / f"{name.rpartition('/')[2]}.json").read_text())
        hashes = {entry["type_name"]: entry["hash_string"] for entry in built["type_hashes"]}
        assert typestore(name).hash_rihs01(name) == hashes[name]


def test_fields_of_a_message_that_are_not_given_are_zero_or_empty() -> None:
    plan = "trajectory_msgs/msg/JointTrajectory"
    points = [{"positions": [1.0, 2.0], "time_from_start": {"sec": 3}}]
    found = STORE.deserialize_cdr(serialized(plan, joint_names=("a", "b"), points=points), plan)
    (point,) = found.points
    assert found.joint_names == ["a", "b"] and found.header.frame_id == "" and found.header.stamp.sec == 0
    assert point.positions.tolist() == [1.0, 2.0] and not len(point.velocities)
    assert (point.time_from_start.sec, point.time_from_start.nanosec) == (3, 0)
    command = STORE.deserialize_cdr(serialized(COMMAND, header={"frame_id": "base"}, effort=np.ones(2)), COMMAND)
    assert command.header.frame_id == "base" and command.held is False and command.command_lead == 0.0
    assert command.effort.tolist() == [1.0, 1.0] and command.motor_names == []
