# SPDX-License-Identifier: Apache-2.0
"""Reading of bags in every format, whole, and refused with a remedy if damaged, compared with what rosbags wrote."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import zstandard
from bag_files import JOINT_STATE, STORE, file_of, joint_state, write_bag, write_mcap
from mcap.writer import CompressionType, IndexType
from rosbags.rosbag2 import CompressionMode

from eom_dynamics.recordings.bags import Bag, BagError, BagWriter, Storage

COUNT = 1000
DATA = [
    (10_000 + 7 * k, bytes(STORE.serialize_cdr(joint_state(k, ["a", "b"], [k, -k]), JOINT_STATE))) for k in range(COUNT)
]
OTHER = [(10_003 + 70 * k, joint_state(k, ["c"], np.arange(9.0))) for k in range(COUNT // 10)]
STORAGES = ("mcap", "sqlite3")


def make(path: Path, storage: str, compression: CompressionMode = CompressionMode.NONE) -> Path:
    topics = {"/other": (JOINT_STATE, OTHER), "/joint_states": (JOINT_STATE, DATA)}
    return write_bag(path, topics, storage, compression=compression)


def read(path: Path, name: str = "/joint_states") -> list[tuple[int, bytes]]:
    with Bag(path) as bag:
        (topic,) = [topic for topic in bag.topics if topic.name == name]
        shares: list[float] = []
        bag.progress = shares.append
        found = [pair for times, data in bag.messages(topic) for pair in zip(times, data, strict=True)]
        assert shares == sorted(shares) and all(0 <= share <= 1 for share in shares)
        return found


@pytest.mark.parametrize(
    ("storage", "mode"),
    [
        *((storage, mode) for storage in STORAGES for mode in (CompressionMode.NONE, CompressionMode.MESSAGE)),
        *(("mcap", CompressionMode.STORAGE), ("sqlite3", CompressionMode.FILE)),
    ],
)
def test_all_messages_of_one_topic_in_their_order(tmp_path: Path, storage: str, mode: CompressionMode) -> None:
    bag = make(tmp_path / "bag", storage, mode)
    assert read(bag) == DATA and len(read(bag, "/other")) == len(OTHER)
    assert mode is not CompressionMode.NONE or read(file_of(bag)) == DATA


METADATA = [
    (None, "missing"),
    ("", "not the metadata of a bag"),
    ("a: b", "not the metadata of a bag"),
    ("rosbag2_bagfile_information: {relative_file_paths: 3}", "relative_file_paths is not a list of names"),
    ('rosbag2_bagfile_information: {relative_file_paths: ["a\\0b"]}', "relative_file_paths is not a list of names"),
    ("rosbag2_bagfile_information: {relative_file_paths: [.., 3]}", "relative_file_paths is not a list of names"),
    ("rosbag2_bagfile_information: {relative_file_paths: []}", "relative_file_paths is not a list of names"),
    ("[" * 600, "not the metadata of a bag"),
    ("{", "cannot be read"),
]


@pytest.mark.parametrize(("text", "reason"), METADATA, ids=[str(text)[:40] for text, _ in METADATA])
def test_a_bag_without_usable_metadata_is_refused(tmp_path, text: str | None, reason: str) -> None:
    bag = make(tmp_path / "bag", "mcap")
    (bag / "metadata.yaml").unlink()
    if text is not None:
        (bag / "metadata.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(BagError) as caught:
        Bag(bag)
    line = str(caught.value)
    assert f"metadata.yaml: {reason}" in line and line.endswith(f"ros2 bag reindex {bag}") and "\n" not in line
    assert read(file_of(bag)) == DATA, "a single file needs no list"


@pytest.mark.parametrize("storage", STORAGES)
def test_a_split_bag_is_read_if_no_file_is_missing(tmp_path: Path, storage: str) -> None:
    bag = make(tmp_path / "bag", storage)
    first = file_of(bag)
    shutil.copy(first, bag / f"second{first.suffix}")
    metadata = bag / "metadata.yaml"
    text = metadata.read_text()
    listed = f"  - {first.name}\n"
    assert listed in text
    more = "".join(f"  - {name}{first.suffix}\n" for name in ("second", "third"))
    metadata.write_text(text.replace(listed, listed + more, 1))
    with pytest.raises(BagError, match=rf"third{first.suffix}: is missing; .*ros2 bag reindex {bag}"):
        Bag(bag)
    metadata.write_text(text.replace(listed, f"{listed}  - second{first.suffix}\n", 1))
    assert read(bag) == DATA + DATA


Damage = Callable[[bytes], bytes]


def cut(fraction: float) -> Damage:
    return lambda content: content[: int(fraction * len(content))]


def zeros_in_a_page(content: bytes) -> bytes:
    size = int.from_bytes(content[16:18], "big")  # of the pages of a database
    place = content.index(DATA[500][1]) // size * size
    return content[:place] + bytes(size) + content[place + size :]


def zeros_in_a_chunk(content: bytes) -> bytes:
    place = content.rindex(b"\x28\xb5\x2f\xfd") + 6  # behind zstd's magic number
    return content[:place] + bytes(34) + content[place + 34 :]


RECOVER, DUMP = (
    "; try: mcap recover {0} -o recovered.mcap",
    ".*; try: .*sqlite3 {0} .dump.*; ros2 bag reindex recovered$",
)


@pytest.mark.parametrize(
    ("storage", "mode", "damage", "reason"),
    [
        *(("mcap", CompressionMode.NONE, cut(x), "it is cut off.*" + RECOVER) for x in (0.999, 0.1)),
        ("mcap", CompressionMode.STORAGE, cut(0.6), "it is cut off.*" + RECOVER),
        ("mcap", CompressionMode.STORAGE, zeros_in_a_chunk, "{0}: cannot be read: .*" + RECOVER),
        ("sqlite3", CompressionMode.NONE, cut(0.6), "malformed" + DUMP),
        ("sqlite3", CompressionMode.NONE, zeros_in_a_page, "malformed" + DUMP),
    ],
)
def test_a_damaged_file_is_refused_with_a_remedy(tmp_path, storage: str, mode, damage: Damage, reason: str) -> None:
    file = file_of(make(tmp_path / "bag", storage, mode))
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(BagError, match=reason.format(file)) as caught:
        read(file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_database_that_was_not_closed_is_refused_until_its_log_is_merged(tmp_path: Path, journal: str) -> None:
    """The last messages are in the log, which rosbags does not read."""
    file = file_of(make(tmp_path / "bag", "sqlite3"))
    writes = """
import os, sqlite3, sys
bag = sqlite3.connect(sys.argv[1], isolation_level=None)
bag.execute(f"PRAGMA journal_mode = {sys.argv[2]}")
bag.execute("PRAGMA cache_size = 1")
bag.execute("BEGIN")
bag.execute("INSERT INTO messages SELECT id + 10000, topic_id, timestamp + 10000, data FROM messages")
if sys.argv[2] == "wal":
    bag.execute("COMMIT")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", writes, str(file), journal], check=True)
    with pytest.raises(BagError, match=r"closed.*sqlite3.*'SELECT") as caught:
        Bag(file)
    query = str(caught.value).partition("'")[2].rstrip("'")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(query).fetchone()
    assert len(read(file)) == (2 if journal == "wal" else 1) * COUNT


@pytest.mark.parametrize("storage", STORAGES)
def test_names_that_a_uri_would_read_otherwise(tmp_path: Path, storage: str) -> None:
    assert read(make(tmp_path / "bag", storage).rename(tmp_path / "50%25 of #3?")) == DATA
    with pytest.raises(OSError, match="no databases below folders with # %"):
        BagWriter(tmp_path / "50%25 of #3", "bag", Storage.SQLITE3, {})


@pytest.mark.parametrize(("storage", "fraction"), [("sqlite3", 0.6), ("mcap", 0.95), ("sqlite3", 0.0), ("mcap", 0.001)])
def test_damage_of_a_compressed_file_names_that_file(tmp_path: Path, storage: str, fraction: float) -> None:
    """Not the temporary one that is read; the remedy begins with unpacking, and ends with a file that can be read."""
    file = file_of(make(tmp_path / "bag", storage))
    packed = Path(f"{file}.zstd")
    packed.write_bytes(zstandard.compress(cut(fraction)(file.read_bytes())))
    with pytest.raises(BagError) as caught:
        read(packed)
    line = str(caught.value)
    assert line.startswith(f"{packed}: ") and tempfile.gettempdir() not in line.replace(str(tmp_path), "")
    if "; try: " not in line:
        assert line == f"{packed}: is empty"
        return
    commands = line.partition("; try: ")[2]
    assert commands.startswith(f"zstd -dc {packed} > unpacked{file.suffix}; ")
    if storage == "sqlite3" and shutil.which("zstd") and shutil.which("sqlite3"):
        subprocess.run(commands.rpartition(";")[0], shell=True, cwd=tmp_path, check=False, capture_output=True)
        assert read(tmp_path / "recovered/recovered_0.db3")


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


@pytest.mark.parametrize("index", [IndexType.NONE, IndexType.CHUNK, IndexType.MESSAGE, IndexType.ALL])
@pytest.mark.parametrize("use_chunking", [True, False])
@pytest.mark.parametrize("statistics", [True, False])
def test_an_mcap_with_part_of_an_index_is_read_whole(tmp_path, index: IndexType, use_chunking: bool, statistics: bool):
    compression = CompressionType.LZ4 if statistics else CompressionType.ZSTD
    how = {"chunk_size": 10_000, "compression": compression, "index_types": index}
    path = write_mcap(
        tmp_path / "bag.mcap", {"/joint_states": DATA}, **how, use_chunking=use_chunking, use_statistics=statistics
    )
    if (index, use_chunking, statistics) == (IndexType.CHUNK, True, False):  # nothing counts its messages
        with pytest.raises(BagError, match=r"1,000.*0.*/joint_states.*recover"):
            read(path)
        return
    assert read(path) == DATA


@pytest.mark.parametrize("times", [(7, 2**64 - 1), (8, 7)])
def test_times_that_rosbags_would_leave_out_are_refused(tmp_path: Path, times: tuple[int, int]) -> None:
    messages = [(time, DATA[0][1]) for time in times]
    write_mcap(tmp_path / "bag.mcap", {"/joint_states": messages}, use_chunking=False, index_types=IndexType.NONE)
    with pytest.raises(BagError, match=r"bag\.mcap.*recover"):
        read(tmp_path / "bag.mcap")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.db3", b"", "is empty"),
        ("empty.mcap", b"", "is empty"),
        ("text.db3", b"no database" * 100, "cannot be read: .*not a database"),
        ("text.mcap", b"no mcap" * 100, "does not begin like an MCAP file"),
        ("text.txt", b"text", "not a bag"),
        ("old.bag", b"#ROSBAG V2.0\n", "ROS 1 bag; run: rosbags-convert --src .*old.bag --dst .*old"),
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
