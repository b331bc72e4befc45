# SPDX-License-Identifier: Apache-2.0
"""Fields of setpoints and requests: names, and conversion between fields and checked arrays, for one or many samples.

A ``float64[]`` field of a received message is an ``array.array``, which NumPy reads without a copy. A list or a NumPy
array is checked number by number when it is assigned to such a field, so assign :func:`doubles`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import all_finite, first_not_finite
from ..arrays import Array
from ..exceptions import StateError, StiffnessError
from ..vectors import FAMILIES
from .joint_order import JointOrder, shown_name
from .settings import SHARED_MESSAGES

# Setpoints and requests: q to qdddd; wrenches at the tools, and commanded stiffness; commands and responses, by joint;
# and of BaseMotion. With time derivatives.
STATE_FIELDS, WRENCH_FIELDS, STIFFNESS_FIELDS, EFFORT_FIELDS, ANGULAR_FIELDS, FORCE_FIELDS = (
    FAMILIES[name].fields for name in ("q", "W", "k", "tau", "w", "f")
)
BASE_FIELD, BASE_SHAPE = "base", (len(ANGULAR_FIELDS + FORCE_FIELDS), 3)

# Commands and responses, by joint and by motor; in the order of :class:`eom_dynamics.Feedforward`.
COMMAND_FIELDS = tuple(field for x in FAMILIES.values() if x.part == "command" for field in x.fields)
MOTOR_FIELDS = COMMAND_FIELDS[len(EFFORT_FIELDS) :]

# A measured JointState, and that on the topic motor_setpoint with the fields of the command that it repeats.
MEASURED_FIELDS = FAMILIES["drive_position"].fields
MOTOR_SETPOINT_FIELDS = {name: f"motor_{name}" for name in MEASURED_FIELDS}


def read_samples(
    message: Any,
    order: JointOrder,
    fields: tuple[str, ...] = STATE_FIELDS,
    *,
    optional: Collection[str] = (),
    most: int = 1,
    remedy: str = "split the request",
) -> Array:
    """Fields with an entry for each joint of each sample: (number of fields, N, n), in the robot's order.

    Args:
        message: setpoint or request with consecutive samples.
        order: joint order of the message.
        fields: names of the fields; the first field determines N.
        optional: fields that may be empty, which means zero.
        most: maximum N.
        remedy: remedy for a larger N.

    Raises:
        StateError: a field has the wrong length, or a number that is not finite; the message names it.
    """
    parts: Sequence[Any] = getter(fields)(message)
    n, count = len(order.names), 1
    # Rare: setpoints of a stream take the fast path.
    if list(map(len, parts)).count(n) != len(parts):
        parts, count = _completed(fields, parts, n, optional, most, remedy)
    values = np.frombuffer(b"".join(parts)).reshape(len(fields), count, n)
    if bad := first_not_finite(values):
        k, *at = bad
        refuse_number(fields[k], values[k], at, order, several=most > 1)
    return order.to_robot(values)


def read_stiffness(message: Any, order: JointOrder, variable: NDArray[np.bool_], count: int = 1) -> tuple[Array, ...]:
    """Commanded stiffness k, kd, kdd in the robot's order, N m/rad or N/m; () if all three fields are empty.

    Entries of joints without commanded stiffness are ignored and may be anything.

    Args:
        message: setpoint or request.
        order: joint order of the message.
        variable: (n,) True for joints with commanded stiffness, in the robot's order.
        count: number N of samples in the message.

    Returns:
        Arrays (n,), or (N, n) for fields with entries for each sample.

    Raises:
        StiffnessError: a field has the wrong length, a time derivative comes without the stiffness, or a commanded
            stiffness is not finite.
    """
    fields = getter(STIFFNESS_FIELDS)(message)
    if not any(map(len, fields)):
        return ()
    n = len(order.names)
    ignored = ~(variable if order.robot_index is None else variable[order.robot_index])
    results = []
    try:
        for field, entries in zip(STIFFNESS_FIELDS, fields, strict=True):
            check_length(field, len(entries), n, count, "joint")
            values = np.frombuffer(entries).reshape(-1, n) if len(entries) else np.zeros((1, n))
            if bad := first_not_finite(np.where(ignored, 0.0, values)):
                refuse_number(field, values, bad, order, several=len(values) > 1)
            results.append(order.to_robot(values if len(values) > 1 else values[0]))
    except StateError as error:
        raise StiffnessError(str(error)) from None
    if not len(fields[0]):
        raise StiffnessError("stiffness is empty, but its time derivatives are not; send stiffness with them")
    return tuple(results)


@cache
def getter(fields: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Function that returns these fields of a message in one call, faster than single accesses."""
    get = attrgetter(*fields)
    return get if len(fields) > 1 else lambda message: (get(message),)


def check_length(field: str, length: int, n: int, count: int, kind: str) -> None:
    """Raise StateError for a field unless it is empty or has n entries for one sample or for each."""
    if length not in (0, n, count * n):
        for_samples = f", {count * n} (for each {kind} of each sample)" if count > 1 else ""
        raise StateError(f"{field} has {length} entries, must have {n} (one for each {kind}){for_samples} or none")


def _completed(
    fields: Sequence[str], parts: Sequence[Any], n: int, optional: Collection[str], most: int, remedy: str
) -> tuple[list[Any], int]:
    """Fields with zeros for empty optional fields, and the number of samples; StateError for other lengths."""
    size = len(parts[0])
    if size != n and (most == 1 or not size or size % n):
        for_samples = "" if most == 1 else " for each sample"
        raise StateError(f"{fields[0]} has {size} entries, must have {n}{for_samples}, one for each joint")
    count = size // n
    if count > most:
        raise StateError(f"{fields[0]} has {count} samples, must have at most {most}: {remedy}")
    for field, part in zip(fields, parts, strict=True):
        if len(part) != size and (len(part) or field not in optional):
            like = ", one for each joint" if most == 1 else f", as {fields[0]} has"
            allowed = f"{size}{' or none' if field in optional else like}"
            alone = most == 1 and not len(part) and field == STATE_FIELDS[1] and fields[-1] == STATE_FIELDS[-1]
            hint = f"; {SHARED_MESSAGES['positions_alone']}" if alone else ""
            raise StateError(f"{field} has {len(part)} entries, must have {allowed}{hint}")
    return [part if len(part) else bytes(8 * size) for part in parts], count


def refuse_number(field: str, values: Array, at: Sequence[int], order: JointOrder, *, several: bool) -> None:
    """Raise StateError for a number of a field (N, n) at a sample and joint; ``several``: name the sample."""
    sample, joint = at
    which = f"sample {sample}, " if several else ""
    place = sample * len(order.names) + joint
    raise StateError(f"{field}[{place}] ({which}joint {shown_name(order.names[joint])}) is {values[sample, joint]}")


def write(response: Any, fields: Sequence[str], values: Sequence[Array]) -> None:
    """Assign arrays to ``float64[]`` fields, row after row.

    Raises:
        StateError: an entry is not finite, since the numbers of the request are too large.
    """
    for name, value in zip(fields, values, strict=True):
        if not all_finite(value):
            raise StateError(f"numbers too large: {name} would not be finite")
        setattr(response, name, doubles(value))


def doubles(values: Array) -> array[float]:
    """An array as the contents of a ``float64[]`` field, row after row."""
    return array("d", values.tobytes())
