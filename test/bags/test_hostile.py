# SPDX-License-Identifier: Apache-2.0
"""Bags that are made to cost time or memory: a BagError on one line, within bounds."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
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
    write_bag,
    write_mcap,
)
from mcap.records import Channel, Chunk, ChunkIndex, DataEnd, Footer, Header, Schema
from mcap.writer import MCAP0_MAGIC, RecordBuilder
from refusals import refusals
from rosbags.rosbag2 import CompressionMode

from eom_dynamics.recordings.bags import Bag, BagError, bounds, typestore
from eom_dynamics.tools.cli.main import main

DATA = [(START + k, joint_state(k, ["a"], [float(k)])) for k in range(100)]
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


def database(path: Path, *statements: str) -> Path:
    file = file_of(write_bag(path, {"/joint_states": (JOINT_STATE, DATA)}, "sqlite3"))
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return file


# Tables, and the columns of a view without end in their place.
VIEWS = {
    "topics": "x AS id, 'a' AS name, 'b' AS type, 'cdr' AS serialization_format",
    "messages": "x AS id, 1 AS topic_id, 1 AS timestamp, zeroblob(100000000) AS data",
    "message_definitions": "x AS id",
}
COMPUTED = [
    *(
        (name, f"DROP TABLE {name}", f"CREATE VIEW {name} AS {ENDLESS} SELECT {row} FROM n")
        for name, row in VIEWS.items()
    ),
    (
        *("messages", "ALTER TABLE messages DROP COLUMN data"),
        "ALTER TABLE messages ADD COLUMN data BLOB AS (zeroblob(100000000)) VIRTUAL",
    ),
]


@pytest.mark.parametrize(("table", "drop", "compute"), COMPUTED)
def test_databases_that_compute_their_rows_are_refused(tmp_path: Path, table: str, drop: str, compute: str) -> None:
    with pytest.raises(BagError, match=f"{table} is not a table of stored rows") as caught:
        Bag(database(tmp_path / "bag", drop, compute))
    assert "\n" not in str(caught.value)


def test_a_query_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_LEAST_STEPS": 10, "_STEPS_PER_BYTE": 0, "_STEPS": 5}.items():
        monkeypatch.setattr(bounds, name, value)
    with pytest.raises(BagError, match="interrupted"):
        Bag(database(tmp_path / "bag"))


def pages_that_lead_to_themselves(path: Path) -> Path:
    """A database whose rows are found again and again: each entry of a page leads to the first page below it."""
    data = bytes(STORE.serialize_cdr(joint_state(1, ["a" * 3000], [1.0]), JOINT_STATE))
    file = file_of(write_bag(path, {"/x": (JOINT_STATE, [(START + k, data) for k in range(5000)])}, "sqlite3"))
    with closing(sqlite3.connect(file)) as connection:
        ((size,),), ((root,),) = (
            connection.execute(query).fetchall()
            for query in ("PRAGMA page_size", "SELECT rootpage FROM sqlite_master WHERE name = 'messages'")
        )
    content = bytearray(file.read_bytes())
    page = (root - 1) * size
    assert content[page] == 5  # inner page of a table
    cells = [
        page + int.from_bytes(content[page + 12 + 2 * k : page + 14 + 2 * k], "big")
        for k in range(int.from_bytes(content[page + 3 : page + 5], "big"))
    ]
    for cell in cells:
        content[cell : cell + 4] = content[cells[0] : cells[0] + 4]
    file.write_bytes(content)
    return file


def test_a_message_that_is_found_again_and_again_is_refused(tmp_path: Path) -> None:
    file = pages_that_lead_to_themselves(tmp_path / "bag")
    with pytest.raises(BagError, match="cannot be read"), Bag(file) as bag:
        list(bag.messages(bag.topics[0]))


def test_negative_times_of_recording_are_refused(tmp_path: Path) -> None:
    file = database(tmp_path / "bag", "UPDATE messages SET timestamp = -5 WHERE id = 7")
    with pytest.raises(BagError, match="recorded before 1970"), Bag(file) as bag:
        list(bag.messages(bag.topics[0]))


def chunk(compressed: bytes, kind: str, size: int) -> bytes:
    builder = RecordBuilder()
    for record in (Header("ros2", ""), Chunk(kind, compressed, 0, 0, 0, size), DataEnd(0), Footer(0, 0, 0)):
        record.write(builder)
    return MCAP0_MAGIC + builder.end() + MCAP0_MAGIC


@pytest.mark.parametrize("kind", ["lz4", "zstd"])
@pytest.mark.parametrize("said", [100, 2**40])
def test_chunks_that_unpack_to_more_than_they_say_are_refused(tmp_path: Path, kind: str, said: int) -> None:
    compress: Callable[[bytes], bytes] = lz4.frame.compress if kind == "lz4" else zstandard.compress
    (tmp_path / "bag.mcap").write_bytes(chunk(compress(bytes(10_000_000)), kind, said))
    with pytest.raises(BagError, match=r"cannot be read: (it|a chunk says that it) unpacks to more than "):
        Bag(tmp_path / "bag.mcap")


def test_files_say_that_they_unpack_to_more_than_one_of_their_size_may(tmp_path: Path, monkeypatch) -> None:
    """Zeros, nine of which are a record without content, would be taken apart for minutes."""
    monkeypatch.setattr(bounds, "_LEAST", 2**16)
    (tmp_path / "bag.mcap").write_bytes(chunk(zstandard.compress(bytes(2**20)), "zstd", 2**20))
    with pytest.raises(BagError, match=r"unpacks.*1"):
        Bag(tmp_path / "bag.mcap")


def test_chunks_of_the_same_time_are_unpacked_within_bounds(tmp_path: Path, monkeypatch) -> None:
    """rosbags merges them by time, and has all of them in memory."""
    monkeypatch.setattr(bounds, "LARGEST", 30_000)
    for name, apart in (("one", 1), ("other", 0)):
        messages = [(START + apart * k, bytes(100)) for k in range(1000)]
        write_mcap(tmp_path / f"{name}.mcap", {"/joint_states": messages}, chunk_size=20_000)
    with Bag(tmp_path / "one.mcap") as bag:
        assert sum(len(times) for times, _ in bag.messages(bag.topics[0])) == 1000
    with pytest.raises(BagError, match=r"unpack.*30,000"):
        Bag(tmp_path / "other.mcap")


def topics(path: Path, count: int) -> Path:
    data = bytes(STORE.serialize_cdr(DATA[1][1], JOINT_STATE))
    return write_mcap(path, {f"/topic_{k}": [(START + k, data)] for k in range(count)})


def test_topics_without_end_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BagError, match=r"bag\.mcap.*10,001.*topics.*10,000"):
        Bag(topics(tmp_path / "bag.mcap", 10_001))
    assert main(["report", str(topics(tmp_path / "few.mcap", 101)), "-o", str(tmp_path / "page.html")]) == 2
    assert "few.mcap: has 101 topics of motions and commands, more than 100 for a page" in capsys.readouterr().err


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_files_unpack_within_bounds(tmp_path: Path, storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_LEAST", 5_000_000)
    monkeypatch.setattr(bounds, "_RATIO", 1)
    bag = write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, DATA)}, storage, compression=CompressionMode.FILE)
    (file,) = bag.glob("*.zstd")
    bomb = zstandard.ZstdDecompressor().decompress(file.read_bytes(), max_output_size=2**24) + bytes(10_000_000)
    file.write_bytes(zstandard.compress(bomb))
    with pytest.raises(BagError, match=r"unpacks.*5,000,000"):
        Bag(bag)


@pytest.mark.parametrize("says_size", [True, False])
def test_messages_unpack_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says_size: bool) -> None:
    monkeypatch.setattr("eom_dynamics.recordings.bags.bag.LARGEST", 3_000_000)
    compressor = zstandard.ZstdCompressor(write_content_size=says_size)
    for size in (2_000_000, 9_000_000):
        data = {"/joint_states": (JOINT_STATE, [(START, compressor.compress(bytes(size)))])}
        metadata = write_bag(tmp_path / f"{size}", data) / "metadata.yaml"
        text = metadata.read_text().replace("compression_mode: ''", "compression_mode: message")
        metadata.write_text(text)
    with Bag(tmp_path / "2000000") as bag:
        ((_, messages),) = bag.messages(bag.topics[0])
    assert messages == [bytes(2_000_000)]
    with Bag(tmp_path / "9000000") as bag, pytest.raises(BagError, match=r"unpacks.*3,000,000"):
        list(bag.messages(bag.topics[0]))


RULE = "\n" + "=" * 80 + "\n"
STRING = "std_msgs/msg/String"
DEFINITIONS = {
    "messages": (STRING, f"std_msgs/B[2000000000] x{RULE}MSG: std_msgs/B\nuint8 y", "defines std_msgs/msg/"),
    "texts": (STRING, "string[900000000] data", "String with another data than this release; record it anew"),
    "itself": (STRING, "std_msgs/String[] data", "defines std_msgs/msg/String with another data"),
    "long": (STRING, "\n".join(f"float64 y{k}" for k in range(30_000)), "characters"),
    "broken": (STRING, "float64 data[", "cannot be read"),
    "nested": (
        STRING,
        f"string data{RULE}MSG: std_msgs/Header\nfloat64 stamp",
        "std_msgs/msg/Header with another stamp",
    ),
}


def changed(kind: str, old: str, new: str) -> str:
    text = STORE.generate_msgdef(kind, ros_version=2)[0]
    assert text.count(old) == 1
    return text.replace(old, new)


STAMP = "builtin_interfaces/Time stamp\nstring frame_id"
OWN_STAMP = f"a/S stamp\nstring frame_id{RULE}MSG: a/S\nfloat64 sec\nuint32 nanosec"
DEFINITIONS |= {
    other: (kind, changed(kind, old, new), f"{other} than this release")
    for kind, old, new, other in (
        (JOINT_STATE, "std_msgs/Header header", "", "JointState with another header"),
        (JOINT_STATE, STAMP, OWN_STAMP, "Header with another stamp"),
        (JOINT_STATE, "string[] name", "float64[] name", "JointState with another name"),
        (SETPOINT, "float64[] jerk", "string[] jerk", "JointTrajectorySetpoint with another jerk"),
        (
            TRAJECTORY,
            "builtin_interfaces/Duration time_from",
            "float64 time_from",
            "Point with another time_from_start",
        ),
        (COMMAND, "uint8 status\n", "string status\n", "FeedforwardCommand with another status"),
    )
}


test_definitions_of_other_fields_are_refused = refusals(BagError, *DEFINITIONS.values(), call=typestore)


@pytest.mark.parametrize("kind", [JOINT_STATE, SETPOINT, TRAJECTORY, COMMAND])
def test_definitions_written_by_recorders_are_those_of_this_release(kind: str) -> None:
    assert typestore(kind, STORE.generate_msgdef(kind, ros_version=2)[0]) is typestore(kind)


def test_chunks_within_chunks_are_refused(tmp_path: Path) -> None:
    """An index of overlapping chunks would have the same bytes read again and again."""

    def written(*records: Any) -> bytes:
        builder = RecordBuilder()
        for record in records:
            record.write(builder)
        return bytes(builder.end())

    inner = written(Chunk("", b"", 0, 0, 0, 0))
    start = MCAP0_MAGIC + written(Header("ros2", ""))
    data = start + written(Chunk("", inner, 0, 0, 0, len(inner)))
    summary = written(
        Schema(1, b"", "ros2msg", JOINT_STATE),
        Channel(1, "/joint_states", "cdr", {}, 1),
        *(ChunkIndex(0, at, "", n, 0, 0, {}, 0, n) for at, n in ((len(start), len(inner)), (data.rindex(inner), 0))),
        Footer(len(data), 0, 0),
    )
    (tmp_path / "bag.mcap").write_bytes(data + summary + MCAP0_MAGIC)
    with pytest.raises(BagError, match="chunks"):
        Bag(tmp_path / "bag.mcap")
