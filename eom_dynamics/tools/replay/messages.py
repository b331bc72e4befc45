# SPDX-License-Identifier: Apache-2.0
"""Commands as the node's messages, serialised many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...bags import Layout
from ...bags.layout import Bytes
from ...bags.types import COMMAND, JOINT_STATE, NUMBERS
from .evaluation import Commands

# Fields of a command that are one number.
_SINGLE = ("held", "status", "command_lead")

# The templates of so many combinations of names are kept.
_MOST_TEMPLATES = 32


def output_topics(namespace: str) -> dict[str, str]:
    """Types of the node's topics by their names in a namespace, such as ``/`` or ``/arm``."""
    prefix = namespace.rstrip("/")
    return {
        f"{prefix}/feedforward": COMMAND,
        f"{prefix}/motor_setpoint": JOINT_STATE,
        f"{prefix}/effort_command": NUMBERS,
    }


class Serializer:
    """Serialises commands as the messages of :func:`output_topics`, by templates."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[Any, ...], list[Layout]] = {}

    def rows(self, commands: Commands) -> list[Bytes]:
        """The messages (N, size) of each topic."""
        numbers = _numbers(commands)
        # What differs within a topic besides numbers, and with it the template.
        key = (commands.frame, commands.joint_names, commands.motor_names, commands.effort_command.shape[1])
        if key not in self._layouts:
            if len(self._layouts) >= _MOST_TEMPLATES:
                self._layouts.clear()
            self._layouts[key] = [_template(kind, commands, fields) for kind, fields in numbers.items()]
        results = []
        for layout, fields in zip(self._layouts[key], numbers.values(), strict=True):
            rows = np.tile(layout.template, (len(commands), 1))
            if layout.has("header.stamp.sec"):
                layout.set_stamps(rows, commands.stamps.header)
            for name, values in fields.items():
                layout.set_numbers(rows, name, values)
            results.append(rows)
        return results


def _numbers(commands: Commands) -> dict[str, dict[str, NDArray[Any]]]:
    """The numbers of the messages, (N, length) by field, for each type."""
    held = commands.held[:, np.newaxis]
    lead = np.full(held.shape, commands.lead)
    # STATUS_HELD is 1.
    feedforward = {**commands.values, "held": held, "status": held.astype(np.uint8), "command_lead": lead}
    return {
        COMMAND: feedforward,
        JOINT_STATE: commands.motor_setpoint,
        NUMBERS: {"data": commands.effort_command},
    }


def _template(kind: str, commands: Commands, fields: Mapping[str, NDArray[Any]]) -> Layout:
    values: dict[str, Any] = {name: np.zeros(x.shape[1]) for name, x in fields.items() if name not in _SINGLE}
    if kind == COMMAND:
        values |= {"joint_names": commands.joint_names, "motor_names": commands.motor_names}
    if kind == JOINT_STATE:
        values["name"] = commands.motor_names
    if kind != NUMBERS:
        values["header"] = {"frame_id": commands.frame}
    return Layout.of(kind, **values)
