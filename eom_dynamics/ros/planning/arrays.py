# SPDX-License-Identifier: Apache-2.0
"""Flat fields of many samples as arrays and back, checked here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...exceptions import StateError
from ...stream.conversions import STIFFNESS_FIELDS, JointOrder, doubles

Array = NDArray[np.float64]


def read_samples(
    request: Any, fields: Sequence[str], order: JointOrder, most: int, optional: Sequence[str] = ()
) -> list[Array]:
    """Fields of N samples, each (N, n) in the robot's order.

    Args:
        request: the request.
        fields: their names; the first one says how many samples there are.
        order: the joint order of the request.
        most: how many there may be.
        optional: those that may be empty, which means zero.

    Raises:
        StateError: a field has the wrong length, or a number that is not finite; the message says which.
    """
    n = len(order.names)
    size = len(getattr(request, fields[0]))
    if size == 0 or size % n:
        raise StateError(f"{fields[0]} has {size} entries, must have {n} for each sample, one for each joint")
    count = size // n
    if count > most:
        raise StateError(f"{fields[0]} has {count} samples, must have at most {most}: ask in parts")
    samples = []
    for name in fields:
        values = np.asarray(getattr(request, name), dtype=float)
        if not len(values) and name in optional:
            samples.append(np.zeros((count, n)))
            continue
        if len(values) != size:
            allowed = f"{size} or none" if name in optional else f"{size}"
            raise StateError(f"{name} has {len(values)} entries, must have {allowed}, as {fields[0]} has")
        _check_finite(values.reshape(count, n), name, order.names)
        samples.append(order.to_robot(values.reshape(count, n)))
    return samples


def read_wrenches(
    request: Any, fields: Sequence[str], shape: tuple[int, ...], count: int | None = None
) -> tuple[Array, ...]:
    """Wrenches of tools with their time derivatives, each of the shape, or (N, *shape); () where all are empty.

    Args:
        request: the request.
        fields: some of WRENCH_FIELDS.
        shape: (6,) or (number of tools, 6).
        count: N, where each sample may have its own; None for one state.

    Raises:
        StateError: one has the wrong number of entries, or a number that is not finite.
    """
    return _once_or_each(request, fields, shape, count, "moment and force at each tool")


def read_stiffnesses(request: Any, order: JointOrder, variable: NDArray[np.bool_], count: int) -> tuple[Array, ...]:
    """Commanded stiffness with its time derivatives, each (n,) or (N, n) in the robot's order; () where all are empty.

    Entries of joints whose stiffness is not commanded are not looked at.

    Args:
        request: the request.
        order: its joint order.
        variable: (n,) whether the stiffness of a joint is commanded, in the robot's order.
        count: N.

    Raises:
        StateError: one has the wrong number of entries, a time derivative comes without the stiffness, or a number
            is not finite where stiffness is commanded.
    """
    wanted = variable if order.robot_index is None else variable[order.robot_index]
    values = _once_or_each(request, STIFFNESS_FIELDS, (len(order.names),), count, "one for each joint", wanted)
    if values and not request.stiffness:
        raise StateError("stiffness is empty, and its time derivatives are not: give it, or none of them")
    return tuple(order.to_robot(value) for value in values)


def write(response: Any, fields: Sequence[str], values: Sequence[Array]) -> None:
    """Fields of arrays, row after row.

    Raises:
        StateError: an entry is not finite, since the numbers of the request are too large.
    """
    for name, value in zip(fields, values, strict=True):
        if not np.isfinite(value).all():
            raise StateError(f"numbers too large: {name} would not be finite")
        setattr(response, name, doubles(value))


def _once_or_each(
    request: Any,
    fields: Sequence[str],
    shape: tuple[int, ...],
    count: int | None,
    what: str,
    looked_at: NDArray[np.bool_] | None = None,
) -> tuple[Array, ...]:
    given = {name: np.asarray(getattr(request, name), dtype=float) for name in fields}
    if not any(map(len, given.values())):
        return ()
    size = int(np.prod(shape))
    results = []
    for name, values in given.items():
        if len(values) == 0:
            results.append(np.zeros(shape))
        elif len(values) == size or (count is not None and len(values) == count * size):
            finite = np.isfinite(values.reshape(-1, size))
            if looked_at is not None:
                finite |= ~looked_at
            if not finite.all():
                place = int(np.argmin(finite))
                raise StateError(f"{name}[{place}] is {values[place]}")
            results.append(values.reshape(shape if len(values) == size else (-1, *shape)))
        else:
            each = "" if count is None else f", {count * size}"
            raise StateError(f"{name} has {len(values)} entries, must have {size} ({what}){each} or none")
    return tuple(results)


def _check_finite(values: Array, name: str, joint_names: Sequence[str]) -> None:
    if not np.isfinite(values).all():
        sample, joint = np.argwhere(~np.isfinite(values))[0]
        raise StateError(
            f"{name}[{sample * len(joint_names) + joint}] (sample {sample}, joint {joint_names[joint]!r:.60}) "
            f"is {values[sample, joint]}"
        )
