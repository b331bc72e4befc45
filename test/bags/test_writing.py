# SPDX-License-Identifier: Apache-2.0
"""Written bags, as rosbags and the mcap library read them."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from bag_files import COMMAND, JOINT_STATE, STORE, file_of, joint_state, read_bag
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

from eom_dynamics.bags import BagWriter, Storage, own_definitions, typestore
from eom_dynamics.bags.types import serialized

COUNT = 2000
TIMES = 1_700_000_000_000_000_000 + 1_000_000 * np.arange(COUNT)
TOPICS = dict.fromkeys(("/a", "/b"), JOINT_STATE)


@cache
def messages() -> list[list[Any]]:
    """Those of both topics."""
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
    assert {f"{name.rpartition('/')[2]}.msg" for name in own_definitions()} == {p.name for p in share.glob("*.msg")}
    for name, text in own_definitions().items():
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
