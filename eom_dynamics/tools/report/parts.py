# SPDX-License-Identifier: Apache-2.0
"""Join runs of messages with the same names into one stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from .record import Nanoseconds, Stream


class Part(NamedTuple):
    """N consecutive messages: times in ns, names (n,), and values (N, n) by field."""

    recorded: Nanoseconds
    stamp: Nanoseconds
    names: tuple[str, ...]
    values: Mapping[str, Array]


def joined(topic: str, parts: Sequence[Part], *, is_recorded: bool = True, is_fitted: bool = False) -> Stream:
    """Join messages into one stream, in the order of their stamps, or of recording if no message has a stamp.

    If messages name different joints, the stream has all of them, with NaN where a message lacks one.
    """
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    fields = tuple(dict.fromkeys(field for part in parts for field in part.values))
    recorded = np.concatenate([part.recorded for part in parts])
    stamp = np.concatenate([part.stamp for part in parts])
    values: dict[str, Array] = {field: np.full((len(stamp), len(names)), np.nan) for field in fields}
    start = 0
    for part in parts:
        rows = slice(start, start := start + len(part.stamp))
        columns = [names.index(name) for name in part.names]
        for field, numbers in part.values.items():
            values[field][rows, columns] = numbers
    order = np.argsort(stamp if stamp.any() else recorded, kind="stable")
    values = {field: x[order] for field, x in values.items()}
    recorded = recorded[order]
    return Stream(topic, stamp[order] if stamp.any() else recorded, recorded, names, values, is_recorded, is_fitted)
