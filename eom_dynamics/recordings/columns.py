# SPDX-License-Identifier: Apache-2.0
"""Columns of tables by quantity: ``--column QUANTITY=COLUMN[:UNIT]``, and the lines to write for a table.

Loggers name their columns as they like. A mapping names the column of a quantity, of all joints by ``{joint}`` and an
index: ``position.{joint}=actual_q_{k}`` reads actual_q_0, actual_q_1, … in the robot's order of joints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..exceptions import EomDynamicsError
from ..spelling import hint, listed

UNITS = {
    **{"rad": 1.0, "deg": np.pi / 180, "m": 1.0, "mm": 1e-3},
    **{"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    **{"Nm": 1.0, "mNm": 1e-3, "N": 1.0, "A": 1.0, "mA": 1e-3},
    **{"rad/s": 1.0, "deg/s": np.pi / 180, "rpm": np.pi / 30},
}
"""Factors to SI units by the name of a unit."""

TIME = "time"
QUANTITIES = ("position", "velocity", "effort", "motor_position", "motor_velocity", "motor_effort", "current")
"""Quantities of joints and motors, before a dot and their name."""

_WORDS = {
    "position": ("position", "positions", "pos", "q", "angle", "theta"),
    "velocity": ("velocity", "velocities", "vel", "qd", "dq", "speed"),
    "effort": ("effort", "efforts", "torque", "torques", "tau", "current"),
}
_COMMANDS = {"action", "target", "desired", "command", "cmd", "goal", "reference", "setpoint"}


@dataclass(frozen=True)
class Column:
    """Columns of a quantity in a table.

    Attributes:
        quantity: ``time``, or a quantity, a dot, and a joint or ``{joint}``.
        pattern: name of the column, with ``{joint}`` for the joint and ``{k}`` or ``{k+1}`` for its index from 0 or 1.
        unit: name of the unit of the column; "": SI.
    """

    quantity: str
    pattern: str
    unit: str = ""

    def names(self, joints: Sequence[str]) -> list[tuple[str, str]]:
        """Return quantity and column of each joint, or of the time."""
        if "{joint}" not in self.quantity:
            return [(self.quantity, self.pattern)]
        return [
            (self.quantity.replace("{joint}", joint), _filled(self.pattern, joint, k)) for k, joint in enumerate(joints)
        ]


def _filled(pattern: str, joint: str, k: int) -> str:
    return pattern.replace("{joint}", joint).replace("{k+1}", str(k + 1)).replace("{k}", str(k))


def column(text: str) -> Column:
    """Read ``QUANTITY=COLUMN[:UNIT]``; raises ValueError for another text."""
    quantity, assigned, pattern = text.partition("=")
    kind, dot, joint = quantity.partition(".")
    if not (assigned and pattern):
        raise ValueError(f"must be QUANTITY=COLUMN, such as 'position.{{joint}}=q{{k}}', is {text!r}")
    if quantity != TIME and not (kind in QUANTITIES and dot and joint):
        quantities = ", ".join(f"{name}.JOINT" for name in QUANTITIES)
        raise ValueError(f"must begin with {TIME} or one of {quantities}, where JOINT may be {{joint}}; is {text!r}")
    name, colon, unit = pattern.rpartition(":")
    return Column(quantity, name, unit) if colon and unit in UNITS else Column(quantity, pattern)


def mapped(
    columns: Sequence[Column], values: Mapping[str, Array], joints: Sequence[str], where: str
) -> dict[str, Array]:
    """Columns (N,) by ``time`` and ``QUANTITY.JOINT`` in SI units, of the columns ``values`` of a table ``where``.

    Raises EomDynamicsError if the table lacks a column.
    """
    result = {}
    for entry in columns:
        for quantity, name in entry.names(joints):
            if name not in values:
                raise EomDynamicsError(
                    f"{where}: has no column {name} for {quantity}, --column {entry.quantity}={entry.pattern}; "
                    f"{hint(name, values)}; it has {listed(values)}"
                )
            result[quantity] = values[name] * UNITS.get(entry.unit, 1.0)
    return result


def suggested(names: Iterable[str], joints: Sequence[str], wanted: Iterable[str] = tuple(_WORDS)) -> str:
    """Options ``--column`` that read a table's columns ``names``, of all joints; a general one if no columns match."""
    known = dict.fromkeys(names)
    lines = []
    for kind in wanted:
        for pattern in _patterns(known, joints):
            words = {*re.split(r"[^a-z]+", re.sub(r"\{[^}]*\}", " ", pattern).lower())}
            if words & {*_WORDS[kind]} and not words & _COMMANDS:
                lines.append(f"--column '{kind}.{{joint}}={pattern}'")
                break
    return " ".join(lines) or "--column 'position.{joint}=COLUMN{k}'"


def _patterns(names: Mapping[str, None], joints: Sequence[str]) -> list[str]:
    """Patterns that match a column for each joint, by the name of the joint or by an index."""
    candidates = []
    for name in names:
        if joints[0] in name:
            candidates.append(name.replace(joints[0], "{joint}"))
        for match in re.finditer(r"\d+", name):
            index = {"0": "{k}", "1": "{k+1}"}.get(match[0])
            if index:
                candidates.append(name[: match.start()] + index + name[match.end() :])
    complete = (x for x in candidates if all(_filled(x, joint, k) in names for k, joint in enumerate(joints)))
    return sorted(dict.fromkeys(complete), key=lambda x: "{k+1}" in x)
