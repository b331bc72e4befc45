# SPDX-License-Identifier: Apache-2.0
"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def columns(rows: Sequence[Sequence[str]], right_from: int) -> list[str]:
    """Return rows as lines with aligned columns; those from index ``right_from`` on are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i >= right_from else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def operation_counts(costs: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a table of the operations of programs by kind; ``costs`` are those of :meth:`Program.costs` by name."""
    # Not all programs have operations of all kinds.
    longest = max(costs.values(), key=len)
    kinds = list(longest)
    header = ("operations per state", *(kind.replace("_", " ") for kind in kinds))
    rows = ((name, *(f"{counts.get(kind, 0):,}" for kind in kinds)) for name, counts in costs.items())
    return columns([header, *rows], right_from=1)
