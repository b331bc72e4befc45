# SPDX-License-Identifier: Apache-2.0
"""Append the figures of a commit to earlier figures, and write the page of the latest figures.

figures.py COMMIT build/bench.json build/coverage.json figures.jsonl figures.md
"""

import json
import sys
from pathlib import Path

COLUMNS = 8
HEAD = """# Figures over commits

Written each week by `.github/workflows/figures.yml`, newest first, from short runs on a shared machine: compare ratios,
not times. A missed promise is bold.
"""


def row_of(commit: str, bench: dict, coverage: dict) -> dict:
    """Date, test coverage in percent, and each promise with its measured value."""
    bars = [bar for section in bench["sections"].values() for bar in section["bars"]]
    return {
        "commit": commit[:8],
        "date": bench["facts"]["date"],
        "processor": bench["facts"]["processor"],
        "coverage": f"{coverage['totals']['percent_covered']:.1f} %",
        "promises": {bar["promise"]: bar["measured"] if bar["kept"] else f"**{bar['measured']}**" for bar in bars},
    }


def page(rows: list[dict]) -> str:
    """The last commits side by side, in Markdown."""
    last = rows[: -COLUMNS - 1 : -1]
    promises = dict.fromkeys(name for row in last for name in row["promises"])
    lines = [["", *(f"{row['date']} {row['commit']}" for row in last)], ["---"] * (len(last) + 1)]
    lines += [[name, *(row[name] for row in last)] for name in ("processor", "coverage")]
    lines += [[name, *(row["promises"].get(name, "") for row in last)] for name in promises]
    return "\n".join(
        [HEAD, *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines), ""]
    )


def main(commit: str, bench: str, coverage: str, history: str, document: str) -> None:
    """Append a row, unless the commit has one, and write the page."""
    known = Path(history)
    rows = [json.loads(line) for line in known.read_text().splitlines()] if known.exists() else []
    row = row_of(commit, *(json.loads(Path(name).read_text()) for name in (bench, coverage)))
    rows = [other for other in rows if other["commit"] != row["commit"]] + [row]
    known.write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path(document).write_text(page(rows))


if __name__ == "__main__":
    if len(sys.argv) != 6:
        raise SystemExit(__doc__.strip())
    main(*sys.argv[1:])
