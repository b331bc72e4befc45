# SPDX-License-Identifier: Apache-2.0
"""Bags of every kind, whole and damaged, against what rosbags wrote."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags")

from bag_files import JOINT_STATE, STORE, file_of, joint_state, write_bag
from rosbags.rosbag2 import CompressionMode

from eom_dynamics.bags import Bag, BagError

COUNT = 3000
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
        found = [pair for times, data in bag.messages(topic, shares.append) for pair in zip(times, data, strict=True)]
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
def test_a_recorder_that_was_killed_leaves_no_metadata(tmp_path: Path, storage: str) -> None:
    bag = make(tmp_path / "bag", storage)
    (bag / "metadata.yaml").unlink()
    found, damage = read(bag)
    assert found == DATA and len(damage) == 1 and "metadata.yaml: there is none" in damage[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not that of a bag"),
        ("a: b", "is not that of a bag"),
        ("rosbag2_bagfile_information: {relative_file_paths: 3}", "is no list of names"),
        ('rosbag2_bagfile_information: {relative_file_paths: ["a\\0b"]}', "is no list of names"),
        ("rosbag2_bagfile_information: {relative_file_paths: [.., 3]}", "is no list of names"),
        ("[" * 5000, "is not that of a bag"),
        ("{", "cannot be read"),
    ],
    ids=lambda text: text[:40],
)
def test_metadata_that_is_damaged_is_as_good_as_none(tmp_path: Path, text: str, reason: str) -> None:
    bag = make(tmp_path / "bag", "mcap")
    (bag / "metadata.yaml").write_text(text, encoding="utf-8")
    found, damage = read(bag)
    assert (
        found == DATA
        and len(damage) == 1
        and f"metadata.yaml: {reason}" in damage[0].replace("relative_file_paths ", "")
    )


@pytest.mark.parametrize("storage", STORAGES)
def test_a_split_bag_of_which_a_file_is_missing(tmp_path: Path, storage: str) -> None:
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
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_mcap_is_read_as_far_as_it_goes(tmp_path: Path, share: float, mode: CompressionMode) -> None:
    data = [(10 + k, joint_state(k, ["a"], np.random.default_rng(k).standard_normal(100))) for k in range(3000)]
    bag = write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, data)}, compression=mode)
    file = file_of(bag)
    size = file.stat().st_size
    with file.open("r+b") as stream:
        stream.truncate(int(size * share))
    found, damage = read(bag)
    assert [time for time, _ in found] == [10 + k for k in range(len(found))]
    # All but what was under way: the record at the end, or zstd's block, of 128 KB.
    assert share - 0.08 < len(found) / len(data) <= share + 0.01
    assert any("has no index" in line for line in damage) and any(str(int(size * share)) in line for line in damage)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_database_is_read_as_far_as_it_goes(tmp_path: Path, share: float) -> None:
    bag = make(tmp_path / "bag", "sqlite3")
    file = file_of(bag)
    size = file.stat().st_size
    with file.open("r+b") as stream:
        stream.truncate(int(size * share))
    found, damage = read(bag)
    assert found == DATA[: len(found)] and len(found) > 0.35 * share * len(DATA)
    (line,) = damage
    # Messages of the other topic were written before, and count.
    assert f"messages from {len(OTHER) + len(found) + 1} on cannot be read" in line


def test_a_database_with_a_hole_is_read_on_both_sides(tmp_path: Path) -> None:
    bag = make(tmp_path / "bag", "sqlite3")
    file = file_of(bag)
    with sqlite3.connect(file) as connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    place = content.index(DATA[1500][1]) // page * page
    content[place : place + page] = bytes(page)
    file.write_bytes(content)
    found, damage = read(bag)
    lost = [pair for pair in DATA if pair not in set(found)]
    assert 0 < len(lost) < 100 and DATA[1500] in lost
    assert found == [pair for pair in DATA if pair not in set(lost)]
    start, end = len(OTHER) + DATA.index(lost[0]) + 1, len(OTHER) + DATA.index(lost[-1]) + 1
    assert len(damage) == 1 and f"messages {start} to {end}, of any topic, cannot be read" in damage[0]


def test_a_chunk_that_was_changed_is_left_out(tmp_path: Path) -> None:
    data = [(10 + k, joint_state(k, ["a"], np.full(100, float(k)))) for k in range(5000)]
    file = file_of(
        write_bag(tmp_path / "bag", {"/joint_states": (JOINT_STATE, data)}, compression=CompressionMode.STORAGE)
    )
    content = bytearray(file.read_bytes())
    chunks = [k for k in range(len(content)) if content[k : k + 4] == b"\x28\xb5\x2f\xfd"]  # zstd's magic number
    content[chunks[1] + 6 : chunks[1] + 40] = bytes(34)
    file.write_bytes(content)
    found, damage = read(file)
    assert 0 < len(data) - len(found) < 2000
    assert len(damage) == 1 and "chunk at byte" in damage[0]


@pytest.mark.parametrize("storage", STORAGES)
def test_noise_in_a_bag_never_leaves_a_traceback(tmp_path: Path, storage: str) -> None:
    """Bytes changed at random: messages are read or reported, and those that are left out are no more than hit."""
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
        ("text.txt", b"text", "is no bag"),
        ("nowhere.db3", None, "there is no such bag"),
    ],
)
def test_what_is_no_bag_is_refused(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BagError, match=reason) as caught:
        Bag(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)
