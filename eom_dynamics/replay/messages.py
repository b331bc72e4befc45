# SPDX-License-Identifier: Apache-2.0
"""Commands as the messages that the node publishes, serialised many at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..bags import Layout, OutputTopic, typestore
from ..bags.layout import Bytes
from .evaluation import Commands

FEEDFORWARD = "eom_dynamics/msg/FeedforwardCommand"
JOINT_STATE = "sensor_msgs/msg/JointState"
NUMBERS = "std_msgs/msg/Float64MultiArray"

_MOTOR_SETPOINT = {"position": "motor_position", "velocity": "motor_velocity", "effort": "motor_effort"}

_KEPT = 32


def output_topics(namespace: str) -> list[OutputTopic]:
    """The topics that the node publishes in a namespace, such as ``/`` or ``/arm``."""
    prefix = namespace.rstrip("/")
    return [
        OutputTopic.of(f"{prefix}/feedforward", FEEDFORWARD),
        OutputTopic.of(f"{prefix}/motor_setpoint", JOINT_STATE),
        OutputTopic.of(f"{prefix}/effort_command", NUMBERS),
    ]


class Serializer:
    """Makes the messages of the topics of :func:`output_topics`, by templates."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[Any, ...], list[Layout]] = {}

    def rows(self, commands: Commands) -> list[Bytes]:
        """Messages (N, size) for each topic."""
        key = (commands.frame, commands.joint_names, commands.motor_names, commands.effort_command.shape[1])
        if key not in self._layouts:
            if len(self._layouts) >= _KEPT:
                self._layouts.clear()
            self._layouts[key] = [make(commands) for make in _TEMPLATES]
        feedforward, motor_setpoint, effort_command = self._layouts[key]
        values = commands.values
        results = []
        for layout, numbers in (
            (feedforward, {**values, "held": commands.held[:, np.newaxis]}),
            (motor_setpoint, {name: values[source] for name, source in _MOTOR_SETPOINT.items()}),
            (effort_command, {"data": commands.effort_command}),
        ):
            rows = np.tile(layout.template, (len(commands), 1))
            if layout.has("header.stamp.sec"):
                layout.set_numbers(rows, "header.stamp.sec", commands.stamps.sec)
                layout.set_numbers(rows, "header.stamp.nanosec", commands.stamps.nanosec)
            for name, field in numbers.items():
                layout.set_numbers(rows, name, field)
            results.append(rows)
        return results


def _feedforward(commands: Commands) -> Layout:
    numbers = {name: np.zeros(values.shape[1]) for name, values in commands.values.items()}
    names = {"joint_names": list(commands.joint_names), "motor_names": list(commands.motor_names)}
    return _layout(FEEDFORWARD, {"header": _header(commands.frame), "held": False, **names, **numbers})


def _motor_setpoint(commands: Commands) -> Layout:
    numbers = {name: np.zeros(commands.values[source].shape[1]) for name, source in _MOTOR_SETPOINT.items()}
    return _layout(JOINT_STATE, {"header": _header(commands.frame), "name": list(commands.motor_names), **numbers})


def _effort_command(commands: Commands) -> Layout:
    types = typestore(NUMBERS).types
    layout = types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    return _layout(NUMBERS, {"layout": layout, "data": np.zeros(commands.effort_command.shape[1])})


_TEMPLATES: tuple[Callable[[Commands], Layout], ...] = (_feedforward, _motor_setpoint, _effort_command)


def _header(frame: str) -> Any:
    types = typestore(FEEDFORWARD).types
    return types["std_msgs/msg/Header"](stamp=types["builtin_interfaces/msg/Time"](sec=0, nanosec=0), frame_id=frame)


def _layout(kind: str, fields: dict[str, Any]) -> Layout:
    store = typestore(kind)
    return Layout(store, kind, bytes(store.serialize_cdr(store.types[kind](**fields), kind, little_endian=True)))
