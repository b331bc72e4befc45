# SPDX-License-Identifier: Apache-2.0
"""Bags that are made to cost time or memory: one line of damage or a BagError, within bounds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rosbags")

import lz4.frame
import numpy as np
import zstandard
from bag_files import (
    COMMAND,
    JOINT_STATE,
    SETPOINT,
    START,
    STORE,
    TRAJECTORY,
    file_of,
    joint_state,
    setpoints,
    write_bag,
)
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, ChunkIndex, DataEnd, Footer, Schema
from mcap.writer import MCAP0_MAGIC, RecordBuilder
from mcap.writer import Writer as McapWriter
from rosbags.interfaces import Nodetype
from rosbags.rosbag2 import CompressionMode
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from eom_dynamics import load_robot
from eom_dynamics.bags import Bag, BagError, Layouts, compression, typestore
from eom_dynamics.tools.cli.main import main
from eom_dynamics.trajectory import paper_motion

DATA = [(START + k, joint_state(k, ["a"], [float(k)])) for k in range(100)]
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


def database(path: Path, *statements: str) -> Path:
    """A bag's database, changed by statements."""
    file = file_of(write_bag(path, {"/joint_states": (JOINT_STATE, DATA)}, "sqlite3"))
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return file


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (
            ("DROP TABLE topics", f"CREATE VIEW topics AS {ENDLESS} SELECT x AS id, 'a' AS name, 'b' AS type, 'cdr' AS "
             "serialization_format FROM n"),
            "topics is not a table of stored rows",
        ),
        (
            ("DROP TABLE messages", f"CREATE VIEW Messages AS {ENDLESS} SELECT x AS id, 1 AS topic_id, 1 AS timestamp, "
             "zeroblob(100000000) AS data FROM n"),
            "messages is not a table of stored rows",
        ),
        (
            ("ALTER TABLE messages DROP COLUMN data",
             "ALTER TABLE messages ADD COLUMN data BLOB AS (zeroblob(100000000)) VIRTUAL"),
            "table messages has generated columns",
        ),
        (
            ("ALTER TABLE messages RENAME TO old", "CREATE TABLE messages AS SELECT * FROM old"),
            "table messages has no primary key id",
        ),
    ],
    ids=["topics", "messages", "generated", "key"],
)  # fmt: skip
def test_databases_that_compute_their_rows_are_refused(tmp_path: Path, statements: tuple[str, ...], reason: str):
    file = database(tmp_path / "bag", *statements)
    with pytest.raises(BagError, match=reason) as caught:
        Bag(file)
    assert "\n" not in str(caught.value)


def test_a_query_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eom_dynamics.bags.sqlite_file._MOST_STEPS", 10)
    monkeypatch.setattr("eom_dynamics.bags.sqlite_file._STEPS", 5)
    with pytest.raises(BagError, match="interrupted"):
        Bag(database(tmp_path / "bag"))


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("command", ["replay", "report"])
def test_negative_times_of_recording_are_left_out(tmp_path: Path, storage: str, command: str, capsys) -> None:
    states = np.array(paper_motion(2).derivatives(np.arange(50) * 1e-3))
    messages = setpoints(load_robot("planar_2r").joint_names, states)
    if storage == "sqlite3":
        file = file_of(write_bag(tmp_path / "bag", {"/setpoint": (SETPOINT, messages)}, storage))
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE messages SET timestamp = -5 WHERE id = 7")
        connection.close()
    else:
        file = tmp_path / "bag.mcap"
        with file.open("wb") as stream:
            writer = McapWriter(stream)
            writer.start("ros2")
            schema = writer.register_schema(SETPOINT, "ros2msg", b"")
            channel = writer.register_channel("/setpoint", "cdr", schema)
            for k, (time, message) in enumerate(messages):
                recorded = 2**64 - 5 if k == 6 else time
                writer.add_message(channel, recorded, bytes(STORE.serialize_cdr(message, SETPOINT)), recorded)
            writer.finish()
    output = tmp_path / ("out" if command == "replay" else "page.html")
    assert main([command, str(file), "-o", str(output), "--robot", "planar_2r"]) == 0
    out = capsys.readouterr().out
    assert "1 messages of topic /setpoint are left out: they were recorded before 1970" in out


def chunk(compressed: bytes, kind: str, size: int) -> bytes:
    """An MCAP file of one chunk."""
    builder = RecordBuilder()
    for record in (Chunk(kind, compressed, 0, 0, 0, size), DataEnd(0), Footer(0, 0, 0)):
        record.write(builder)
    return MCAP0_MAGIC + builder.end() + MCAP0_MAGIC


@pytest.mark.parametrize("kind", ["lz4", "zstd"])
@pytest.mark.parametrize("said", [100, 2**40])
def test_chunks_that_unpack_to_more_than_they_say_are_left_out(tmp_path: Path, kind: str, said: int) -> None:
    compress: Callable[[bytes], bytes] = lz4.frame.compress if kind == "lz4" else zstandard.compress
    (tmp_path / "bag.mcap").write_bytes(chunk(compress(bytes(10_000_000)), kind, said))
    with pytest.raises(BagError, match=r"the chunk before byte \d+ cannot be read: it (says that it )?unpacks to "):
        Bag(tmp_path / "bag.mcap")


def test_zeros_are_not_taken_apart_for_minutes(tmp_path: Path) -> None:
    """Each nine of them are a record without content."""
    size = 9 * 150_000
    (tmp_path / "bag.mcap").write_bytes(chunk(zstandard.compress(bytes(size)), "zstd", size))
    with pytest.raises(BagError, match="the file has more records than one of its size can have"):
        Bag(tmp_path / "bag.mcap")


def topics(path: Path, count: int) -> Path:
    """A bag of a message on each of so many topics."""
    data = bytes(STORE.serialize_cdr(DATA[1][1], JOINT_STATE))
    with path.open("wb") as stream:
        writer = McapWriter(stream)
        writer.start("ros2")
        schema = writer.register_schema(JOINT_STATE, "ros2msg", b"")
        for k in range(count):
            writer.add_message(writer.register_channel(f"/topic_{k}", "cdr", schema), START + k, data, START + k)
        writer.finish()
    return path


def test_topics_without_end_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BagError, match=r"bag\.mcap: has 10,001 topics, more than the 10,000 that are read"):
        Bag(topics(tmp_path / "bag.mcap", 10_001))
    assert main(["report", str(topics(tmp_path / "few.mcap", 101)), "-o", str(tmp_path / "page.html")]) == 2
    assert "few.mcap: has 101 topics of motions and commands, more than 100 for a page" in capsys.readouterr().err


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_files_unpack_within_bounds(tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_LEAST", 5_000_000)
    monkeypatch.setattr(compression, "_RATIO", 1)
    bag = write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, DATA)}, storage, compression=CompressionMode.FILE)
    (file,) = bag.glob("*.zstd")
    bomb = zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=2**24) + bytes(10_000_000)
    file.write_bytes(zstandard.compress(bomb))
    with Bag(bag) as opened:
        assert any("decompressed any further: the file unpacks to more than" in line for line in opened.damage)


def test_messages_unpack_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST", 1_000_000)
    kept = bytes(STORE.serialize_cdr(DATA[0][1], JOINT_STATE))
    data = [(START, kept), (START + 1, bytes(2_000_000)), (START + 2, kept)]
    mode = CompressionMode.MESSAGE
    with Bag(write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, data)}, compression=mode)) as bag:
        ((_, messages),) = bag.messages(bag.topics[0])
        (line,) = bag.damage
    assert messages == [kept, b"", kept] and "a message unpacks to more than 1,000,000 bytes" in line


def test_messages_of_unknown_size_unpack_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST", 3_000_000)
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    decompressor, allowance = zstandard.ZstdDecompressor(), compression.Allowance(1)
    kept = bytes(2_000_000)
    assert compression.unpack_message(decompressor, compressor.compress(kept), allowance) == kept
    with pytest.raises(compression.TooLargeError):
        compression.unpack_message(decompressor, compressor.compress(bytes(9_000_000)), allowance)


RULE = "\n" + "=" * 80 + "\n"


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (f"a/msg/B[2000000000] x{RULE}MSG: a/msg/B\nuint8 y", "more than 2,000 fields"),
        ("string[900000000] x", "more than 2,000 fields"),
        ("a/msg/A[] x", "its types are nested more than 30 times, or contain themselves"),
        ("\n".join(f"float64 y{k}" for k in range(30_000)), "characters, more than"),
    ],
    ids=["messages", "texts", "itself", "long"],
)
def test_definitions_that_take_no_end_to_read_are_refused(definition: str, reason: str) -> None:
    with pytest.raises(BagError, match=reason) as caught:
        typestore("a/msg/A", definition)
    assert "\n" not in str(caught.value)


STAMP = "builtin_interfaces/Time stamp\nstring frame_id"
OWN_STAMP = f"a/S stamp\nstring frame_id{RULE}MSG: a/S\n"


def deviating(path: Path, kind: str, old: str, new: str) -> Path:
    """A bag of messages whose own definition of their type has other lines in place of some."""
    text = STORE.generate_msgdef(kind, ros_version=2)[0]
    assert text.count(old) == 1
    types = get_typestore(Stores.EMPTY)
    types.register(get_types_from_msg(text.replace(old, new), kind))
    writer = McapWriter(path.open("wb"))
    writer.start("ros2")
    topic = {"std_msgs/msg/String": "/robot_description"}.get(kind, "/topic")
    channel = writer.register_channel(
        topic, "cdr", writer.register_schema(kind, "ros2msg", text.replace(old, new).encode())
    )
    for time in range(START, START + 40 * 10**7, 10**7):
        writer.add_message(channel, time, bytes(types.serialize_cdr(example(types, kind), kind)), time)
    writer.finish()
    return path


def example(types: Typestore, name: str) -> Any:
    """A message of a type, with two entries in each array."""

    def value(description: Any) -> Any:
        kind, what = description
        if kind == Nodetype.NAME:
            return example(types, what)
        if kind == Nodetype.BASE:
            return "joint_1" if what[0] == "string" else np.nan if "float" in what[0] else 1
        element, length = what
        if element == (Nodetype.BASE, ("string", 0)):
            return ["joint_1", "joint_2"]
        count = length if kind == Nodetype.ARRAY else 2
        values = [value(element) for _ in range(count)]
        return np.array(values, dtype=element[1][0]) if element[0] == Nodetype.BASE else values

    return types.types[name](**{field: value(description) for field, description in types.fielddefs[name][1]})


@pytest.mark.parametrize(
    ("kind", "old", "new", "reason"),
    [
        (JOINT_STATE, "std_msgs/Header header", "", "it has no header; it has name, position"),
        (JOINT_STATE, "std_msgs/Header header", "builtin_interfaces/Time header", "it has no stamp, frame_id in"),
        (JOINT_STATE, STAMP, f"{OWN_STAMP}float64 sec", "it has no nanosec in header.stamp; it has sec"),
        (JOINT_STATE, STAMP, f"{OWN_STAMP}float64 sec\nuint32 nanosec", "header.stamp.sec is a number, must be"),
        (JOINT_STATE, "string[] name", "float64[] name", "name is a list of number, must be a list of text"),
        (JOINT_STATE, "string[] name", "string name", "name is a text, must be a list of text"),
        (JOINT_STATE, "float64[] position", "float64 position", "position is a number, must be a list of number"),
        (JOINT_STATE, "float64[] effort", "string[] effort", "effort is a list of text, must be a list of number"),
        (SETPOINT, "float64[] jerk", "string[] jerk", "jerk is a list of text, must be a list of number"),
        (SETPOINT, "eom_dynamics/BaseMotion[<=1] base", "float64[] base", "base is not a list of eom_dynamics/m"),
        (SETPOINT, "string[] joint_names", "uint8[] joint_names", "joint_names is a list of whole number, must be"),
        (TRAJECTORY, "builtin_interfaces/Duration time_from", "float64 time_from", "points.time_from_start is a"),
        (TRAJECTORY, "trajectory_msgs/JointTrajectoryPoint[] points", "string[] points", "points is a list of text"),
        (COMMAND, "uint8 status\n", "string status\n", "status is a text, must be a whole number"),
        (COMMAND, "string[] joint_names", "std_msgs/Header[] joint_names", "joint_names is a list of message, must be"),
        ("std_msgs/msg/String", "string data", "float64[] data", "data is a list of number, must be a text"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["replay", "report"])
def test_definitions_that_deviate_are_refused_on_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, kind: str, old: str, new: str, reason: str
) -> None:
    bag = deviating(tmp_path / "bag.mcap", kind, old, new)
    robot = [] if kind == "std_msgs/msg/String" else ["--robot", "planar_2r"]
    if kind == COMMAND and command == "replay":
        robot += ["--topic", "/topic"]
        reason = "is of type eom_dynamics/msg/FeedforwardCommand, not one of"
    output = tmp_path / ("out" if command == "replay" else "page.html")
    if kind == "std_msgs/msg/String" and command == "replay":
        reason = "has no topic of type"
    assert main([command, str(bag), "-o", str(output), *robot]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line, line


def test_every_type_of_ros_is_small_enough() -> None:
    for name in STORE.fielddefs:
        typestore(name, STORE.generate_msgdef(name, ros_version=2)[0])


def test_chunks_within_chunks_are_left_out(tmp_path: Path) -> None:
    """An index of overlapping chunks would have the same bytes read again and again."""
    inner = RecordBuilder()
    Chunk("", b"", 0, 0, 0, 0).write(inner)
    outer, records = RecordBuilder(), RecordBuilder()
    Chunk("", inner.end(), 0, 0, 0, 0).write(outer)
    data = outer.end()
    start = len(MCAP0_MAGIC)
    within = start + data.index(bytes([Opcode.CHUNK]), 1)
    summary = start + len(data)
    for record in (
        Schema(1, b"", "ros2msg", JOINT_STATE),
        Channel(1, "/joint_states", "cdr", {}, 1),
        *(ChunkIndex(len(data), at, "", 0, 0, 0, {}, 0, 0) for at in (start, within)),
        Footer(summary, 0, 0),
    ):
        record.write(records)
    (tmp_path / "bag.mcap").write_bytes(MCAP0_MAGIC + data + records.end() + MCAP0_MAGIC)
    with Bag(tmp_path / "bag.mcap") as bag:
        assert list(bag.messages(bag.topics[0])) == []
        assert any(f"the chunk at byte {within} cannot be read: it is within another" in line for line in bag.damage)


def test_an_empty_block_has_no_rows() -> None:
    assert list(Layouts(STORE, JOINT_STATE).rows([])) == []
