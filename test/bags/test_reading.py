# SPDX-License-Identifier: Apache-2.0
"""Reading of bags in every format, whole and damaged, compared with what rosbags wrote."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import zstandard

pytest.importorskip("rosbags")

from bag_files import JOINT_STATE, STORE, file_of, joint_state, write_bag
from mcap.writer import IndexType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag2 import CompressionMode

from eom_dynamics.bags import Bag, BagError

COUNT = 1000
DATA = [
    (10_000 + 7 * k, bytes(STORE.serialize_cdr(joint_state(k, ["a", "b"], [k, -k]), JOINT_STATE))) for k in range(COUNT)
]
OTHER = [(10_003 + 70 * k, joint_state(k, ["c"], np.arange(9.0))) for k in range(COUNT // 10)]
STORAGES = ("mcap", "sqlite3")


def make(path: Path, storage: str, compression: CompressionMode = CompressionMode.NONE) -> Path:
    topics = {"/other": (JOINT_STATE, OTHER), "/joint_states": (JOINT_STATE, DATA)}
    return write_bag(path, topics, storage, compression=compression)


def read(path: Path, name: str = "/joint_states") -> tuple[list[tuple[int, bytes]], list[str]]:
    with Bag(path) as bag:
        (topic,) = [topic for topic in bag.topics if topic.name == name]
        shares: list[float] = []
        bag.progress = shares.append
        found = [pair for times, data in bag.messages(topic) for pair in zip(times, data, strict=True)]
        assert shares == sorted(shares) and all(0 <= share <= 1 for share in shares)
        return found, bag.damage


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("bare", [False, True])
def test_all_messages_of_one_topic_in_their_order(tmp_path: Path, storage: str, bare: bool) -> None:
    bag = make(tmp_path / "bag", storage)
    found, damage = read(file_of(bag) if bare else bag)
    assert found == DATA and damage == []
    assert len(read(bag, "/other")[0]) == len(OTHER)


@pytest.mark.parametrize(
    ("storage", "mode"),
    [
        ("mcap", CompressionMode.STORAGE),
        ("mcap", CompressionMode.MESSAGE),
        ("sqlite3", CompressionMode.MESSAGE),
        ("sqlite3", CompressionMode.FILE),
        ("mcap", CompressionMode.FILE),
    ],
)
def test_compressed_bags(tmp_path: Path, storage: str, mode: CompressionMode) -> None:
    assert read(make(tmp_path / "bag", storage, mode)) == (DATA, [])


@pytest.mark.parametrize("storage", STORAGES)
def test_a_bag_without_metadata_is_read_with_a_warning(tmp_path: Path, storage: str) -> None:
    bag = make(tmp_path / "bag", storage)
    (bag / "metadata.yaml").unlink()
    found, damage = read(bag)
    (line,) = damage
    assert found == DATA and "metadata.yaml: missing" in line and line.endswith(f"ros2 bag reindex {bag}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not the metadata of a bag"),
        ("a: b", "not the metadata of a bag"),
        ("rosbag2_bagfile_information: {relative_file_paths: 3}", "is not a list of names"),
        ('rosbag2_bagfile_information: {relative_file_paths: ["a\\0b"]}', "is not a list of names"),
        ("rosbag2_bagfile_information: {relative_file_paths: [.., 3]}", "is not a list of names"),
        ("[" * 600, "not the metadata of a bag"),
        ("{", "cannot be read"),
    ],
    ids=lambda text: text[:40],
)
def test_damaged_metadata_counts_as_missing(tmp_path: Path, text: str, reason: str) -> None:
    bag = make(tmp_path / "bag", "mcap")
    (bag / "metadata.yaml").write_text(text, encoding="utf-8")
    found, damage = read(bag)
    assert (
        found == DATA
        and len(damage) == 1
        and f"metadata.yaml: {reason}" in damage[0].replace("relative_file_paths ", "")
    )


@pytest.mark.parametrize("storage", STORAGES)
def test_a_missing_file_of_a_split_bag_is_reported(tmp_path: Path, storage: str) -> None:
    bag = make(tmp_path / "bag", storage)
    first = file_of(bag)
    shutil.copy(first, bag / f"second{first.suffix}")
    metadata = bag / "metadata.yaml"
    text = metadata.read_text()
    listed = f"  - {first.name}\n"
    assert listed in text
    more = "".join(f"  - {name}{first.suffix}\n" for name in ("second", "third"))
    metadata.write_text(text.replace(listed, listed + more, 1))
    found, damage = read(bag)
    assert found == DATA + DATA and len(damage) == 1 and f"third{first.suffix}: is missing" in damage[0]


@pytest.mark.parametrize("mode", [CompressionMode.NONE, CompressionMode.STORAGE])
def test_a_truncated_mcap_is_read_up_to_its_last_whole_chunk(tmp_path: Path, mode: CompressionMode) -> None:
    data = [(10 + k, joint_state(k, ["a"], np.random.default_rng(k).standard_normal(100))) for k in range(2500)]
    bag = write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, data)}, compression=mode)
    truncate(file_of(bag), 0.6)
    found, damage = read(bag)
    assert [time for time, _ in found] == [10 + k for k in range(len(found))]
    # rosbags writes chunks of 1 MiB, half of this file.
    assert 0.4 < len(found) / len(data) < 0.6
    (line,) = damage
    assert "cannot be read" in line and f"; try: mcap recover {file_of(bag)} -o recovered.mcap" in line


def test_an_mcap_truncated_within_its_first_chunk_is_refused(tmp_path: Path) -> None:
    file = file_of(make(tmp_path / "bag", "mcap"))
    truncate(file, 0.5)
    with pytest.raises(BagError, match=r"what follows byte \d+ of \d+ cannot be read.*mcap recover"):
        Bag(file)


def test_a_truncated_database_is_refused_with_a_remedy(tmp_path: Path) -> None:
    """SQLite refuses it: it would take the missing part of a page for zeros."""
    bag = make(tmp_path / "bag", "sqlite3")
    truncate(file_of(bag), 0.6)
    with pytest.raises(BagError, match="malformed") as caught:
        Bag(bag)
    assert f"sqlite3 {file_of(bag)} .dump" in str(caught.value)
    assert str(caught.value).endswith("ros2 bag reindex recovered")


def test_a_database_with_a_hole_is_read_on_both_sides(tmp_path: Path) -> None:
    bag = make(tmp_path / "bag", "sqlite3")
    file = file_of(bag)
    with closing(sqlite3.connect(file)) as connection, connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    place = content.index(DATA[500][1]) // page * page
    content[place : place + page] = bytes(page)
    file.write_bytes(content)
    found, damage = read(bag)
    lost = [pair for pair in DATA if pair not in set(found)]
    assert 0 < len(lost) < 200 and DATA[500] in lost
    assert found == [pair for pair in DATA if pair not in set(lost)]
    start, end = len(OTHER) + DATA.index(lost[0]) + 1, len(OTHER) + DATA.index(lost[-1]) + 1
    assert len(damage) == 1 and f"messages {start} to {end} of all topics cannot be read" in damage[0]
    assert "ros2 bag reindex" in damage[0]


@pytest.mark.parametrize(("storage", "fraction"), [("sqlite3", 0.6), ("mcap", 0.95), ("sqlite3", 0.0), ("mcap", 0.001)])
def test_damage_of_a_compressed_file_names_that_file(tmp_path: Path, storage: str, fraction: float) -> None:
    """Not the temporary one that is read; the remedy begins with unpacking, and ends with a file that can be read."""
    file = file_of(make(tmp_path / "bag", storage))
    truncate(file, fraction)
    packed = Path(f"{file}.zstd")
    packed.write_bytes(zstandard.compress(file.read_bytes()))
    try:
        (line,) = read(packed)[1]
    except BagError as error:
        line = str(error)
    assert line.startswith(f"{packed}: ") and tempfile.gettempdir() not in line.replace(str(tmp_path), "")
    if "; try: " not in line:
        assert line == f"{packed}: is empty" or "does not begin like one" in line
        return
    commands = line.partition("; try: ")[2]
    assert commands.startswith(f"zstd -dc {packed} > unpacked{file.suffix}; ")
    if storage == "sqlite3" and shutil.which("zstd") and shutil.which("sqlite3"):
        subprocess.run(commands.rpartition(";")[0], shell=True, cwd=tmp_path, check=False, capture_output=True)
        assert read(tmp_path / "recovered/recovered_0.db3")[0]


def test_folders_of_the_user_stay_beside_the_temporary_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as an unpacked source distribution; what a bag unpacks goes when it is closed."""
    file = file_of(make(tmp_path / "bag", "sqlite3"))
    packed = Path(f"{file}.zstd")
    packed.write_bytes(zstandard.compress(file.read_bytes()))
    mine = tmp_path / "temporary/eom_dynamics-1.0.0"
    mine.mkdir(parents=True)
    (mine / "PKG-INFO").touch()
    os.utime(mine, (1.0, 1.0))
    monkeypatch.setattr(tempfile, "tempdir", str(mine.parent))
    with Bag(packed):
        assert len(list(mine.parent.iterdir())) == 2
    assert list(mine.parent.iterdir()) == [mine] and list(mine.iterdir()) == [mine / "PKG-INFO"]


def truncate(file: Path, fraction: float) -> None:
    with file.open("r+b") as stream:
        stream.truncate(int(file.stat().st_size * fraction))


def test_a_corrupt_chunk_is_left_out(tmp_path: Path) -> None:
    data = [(10 + k, joint_state(k, ["a"], np.full(100, float(k)))) for k in range(2500)]
    file = file_of(
        write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, data)}, compression=CompressionMode.STORAGE)
    )
    content = bytearray(file.read_bytes())
    chunks = [k for k in range(len(content)) if content[k : k + 4] == b"\x28\xb5\x2f\xfd"]  # zstd's magic number
    content[chunks[1] + 6 : chunks[1] + 40] = bytes(34)
    file.write_bytes(content)
    found, damage = read(file)
    assert 0 < len(data) - len(found) < 1500
    assert len(damage) == 1 and "chunk at byte" in damage[0]


@pytest.mark.parametrize("use_chunking", [True, False])
def test_an_mcap_without_index_is_read_and_its_times_fit_64_bits(tmp_path: Path, use_chunking: bool) -> None:
    with (tmp_path / "bag.mcap").open("wb") as stream:
        writer = McapWriter(stream, use_chunking=use_chunking, index_types=IndexType.NONE)
        writer.start("ros2")
        channel = writer.register_channel("/joint_states", "cdr", writer.register_schema(JOINT_STATE, "ros2msg", b""))
        for time in (7, 2**64 - 1):
            writer.add_message(channel, time, DATA[0][1], time)
        writer.finish()
    found, damage = read(tmp_path / "bag.mcap")
    assert (
        found == [(7, DATA[0][1])]
        and len(damage) == 1
        and "1 messages of topic /joint_states are left out" in damage[0]
    )
    assert np.array([time for time, _ in found], dtype=np.int64)[0] == 7


@pytest.mark.parametrize("storage", STORAGES)
def test_random_corruption_is_read_or_reported(tmp_path: Path, storage: str) -> None:
    """Bytes changed at random never raise anything but BagError."""
    original = file_of(make(tmp_path / "bag", storage)).read_bytes()
    path = tmp_path / f"noisy.{'mcap' if storage == 'mcap' else 'db3'}"
    rng = np.random.default_rng(20240611)
    for _ in range(15):
        content = bytearray(original)
        for place in rng.integers(0, len(content), size=rng.integers(1, 20)):
            content[place] = rng.integers(256)
        path.write_bytes(content[: rng.integers(len(content) // 2, len(content) + 1)])
        try:
            with Bag(path) as bag:
                for topic in bag.topics:
                    for times, data in bag.messages(topic):
                        assert len(times) == len(data)
                assert all("\n" not in line for line in bag.damage)
        except BagError as error:
            assert "\n" not in str(error)  # noqa: PT017 - it may be raised or not


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.db3", b"", "is empty"),
        ("empty.mcap", b"", "is empty"),
        ("text.db3", b"no database" * 100, "cannot be read as an sqlite3 bag"),
        ("text.mcap", b"no mcap" * 100, "does not begin like one"),
        ("text.txt", b"text", "not a bag"),
        ("nowhere.db3", None, "there is no such bag"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BagError, match=reason) as caught:
        Bag(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
