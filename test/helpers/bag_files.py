# SPDX-License-Identifier: Apache-2.0
"""Write and read bags by rosbags, message by message."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from paths import ROOT
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from eom_dynamics.arrays import Array

SETPOINT = "eom_dynamics/msg/JointTrajectorySetpoint"
COMMAND = "eom_dynamics/msg/FeedforwardCommand"
JOINT_STATE = "sensor_msgs/msg/JointState"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"

DEFINITIONS = ROOT / "msg"
FIELDS = ("position", "velocity", "acceleration", "jerk", "snap")
WRENCHES = ("wrench", "wrench_rate", "wrench_acceleration")
OPTIONAL = (*WRENCHES, "stiffness", "stiffness_rate", "stiffness_acceleration")

START = 1_700_000_000_000_000_000
STEP = 1_000_000


def store(**own: str) -> Typestore:
    """Return the types of ROS 2 and of this package, some of them with other definitions."""
    types = get_typestore(Stores.ROS2_JAZZY)
    for file in DEFINITIONS.glob("*.msg"):
        text = own.get(file.stem, file.read_text(encoding="utf-8"))
        types.register(get_types_from_msg(text, f"eom_dynamics/msg/{file.stem}"))
    return types


STORE = store()


def header(time: int, frame: str = "", types: Typestore = STORE) -> Any:
    stamp = types.types["builtin_interfaces/msg/Time"](sec=time // 1_000_000_000, nanosec=time % 1_000_000_000)
    return types.types["std_msgs/msg/Header"](stamp=stamp, frame_id=frame)


def wrenches(values: Any, types: Typestore = STORE) -> list[Any]:
    """The messages of wrenches (…, 6), moment first."""
    wrench, vector = (types.types[f"geometry_msgs/msg/{name}"] for name in ("Wrench", "Vector3"))
    rows = np.asarray(values, dtype=float).reshape(-1, 6)
    return [wrench(torque=vector(*row[:3]), force=vector(*row[3:])) for row in rows]


def setpoint(
    time: int, names: Sequence[str], state: Iterable[Sequence[float]], frame: str = "", **optional: Sequence[float]
) -> Any:
    numbers = dict.fromkeys(OPTIONAL, ()) | dict(zip(FIELDS, state, strict=True)) | optional
    fields = {
        name: wrenches(values) if name in WRENCHES else np.array(values, dtype=float)
        for name, values in numbers.items()
    }
    return STORE.types[SETPOINT](header=header(time, frame), joint_names=list(names), base=[], **fields)


def joint_state(time: int, names: Sequence[str], position: Sequence[float], effort: Sequence[float] = ()) -> Any:
    numbers = {"position": position, "velocity": (), "effort": effort}
    arrays = {name: np.array(values, dtype=float) for name, values in numbers.items()}
    return STORE.types[JOINT_STATE](header=header(time), name=list(names), **arrays)


def trajectory(time: int, names: Sequence[str], times: Sequence[float], positions: Any, velocities: Any = None) -> Any:
    types = STORE.types
    none = np.zeros(0)
    points = [
        types["trajectory_msgs/msg/JointTrajectoryPoint"](
            positions=np.array(positions[k], dtype=float),
            velocities=none if velocities is None else np.array(velocities[k], dtype=float),
            accelerations=none,
            effort=none,
            time_from_start=types["builtin_interfaces/msg/Duration"](sec=int(t), nanosec=round(t % 1 * 1e9)),
        )
        for k, t in enumerate(times)
    ]
    return types[TRAJECTORY](header=header(time), joint_names=list(names), points=points)


def setpoints(names: Sequence[str], states: Array, frame: str = "base", **optional: Sequence[float]) -> list[Any]:
    """Make times of recording and messages for states (5, N, n), 1 ms apart."""
    return [
        (START + k * STEP, setpoint(START + k * STEP - 7, names, states[:, k], frame, **optional))
        for k in range(states.shape[1])
    ]


def write_bag(
    path: Path,
    topics: Mapping[str, tuple[str, Iterable[tuple[int, Any]]]],
    storage: str = "mcap",
    types: Typestore = STORE,
    compression: CompressionMode = CompressionMode.NONE,
) -> Path:
    """Write a bag of messages by topic: type, and times of recording with messages or serialized messages."""
    writer = Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()])
    writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        for topic, (kind, messages) in topics.items():
            connection = writer.add_connection(topic, kind, typestore=types)
            for time, message in messages:
                data = message if isinstance(message, bytes) else types.serialize_cdr(message, kind)
                writer.write(connection, time, data)
    return path


def write_mcap(
    path: Path,
    topics: Mapping[str, Iterable[tuple[int, bytes]]],
    kind: str = JOINT_STATE,
    definition: str = "",
    **options: Any,
) -> Path:
    """Write an MCAP file of messages of one type by topic, with options of the writer of the mcap library."""
    from mcap.writer import Writer as McapWriter

    with path.open("wb") as stream:
        writer = McapWriter(stream, **options)
        writer.start("ros2")
        schema = writer.register_schema(kind, "ros2msg", definition.encode())
        for topic, messages in topics.items():
            channel = writer.register_channel(topic, "cdr", schema)
            for time, data in messages:
                writer.add_message(channel, time, data, time)
        writer.finish()
    return path


def read_bag(path: Path, types: Typestore = STORE) -> dict[str, list[tuple[int, Any]]]:
    found: dict[str, list[tuple[int, Any]]] = {}
    with Reader(path) as reader:
        for connection, time, data in reader.messages():
            found.setdefault(connection.topic, []).append((time, types.deserialize_cdr(data, connection.msgtype)))
    return found


def file_of(path: Path) -> Path:
    (file,) = [file for file in path.iterdir() if file.suffix in (".mcap", ".db3")]
    return file


def robot_file(path: Path, elasticity: Mapping[str, Any], **friction: float) -> str:
    """The planar arm with a spring of some kind at its second joint, and a motor with limits, and friction, there."""
    content = yaml.safe_load((DEFINITIONS.parent / "config/planar_2r.yaml").read_text())
    ((_, node),) = content.items()
    joint = node["ros__parameters"]["robot"]["joints"]["joint_2"]
    for key in ("stiffness", "elasticity"):
        joint.pop(key, None)
    joint["elasticity"] = dict(elasticity)
    joint["actuator"] = {"torque_constant": 0.5, "resistance": 0.5, "limits": {"torque": 1.0}}
    if friction:
        joint["actuator"]["friction"] = friction
    file = path / "robot.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)
