# SPDX-License-Identifier: Apache-2.0
"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def columns(rows: Sequence[Sequence[str]], right_from: int) -> list[str]:
    """Rows as lines with aligned columns, those of numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i >= right_from else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def cost_rows(costs: Mapping[str, Mapping[str, int]]) -> list[tuple[str, ...]]:
    """A header and a row for each function with its numbers of operations by kind, for :func:`columns`."""
    kinds = list(next(iter(costs.values())))
    header = ("operations a state", *(kind.replace("_", " ") for kind in kinds))
    return [header, *((name, *(f"{numbers[kind]:,}" for kind in kinds)) for name, numbers in costs.items())]
