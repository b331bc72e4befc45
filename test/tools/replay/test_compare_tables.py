# SPDX-License-Identifier: Apache-2.0
"""Two tables of commands, compared row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as parquet
from bag_files import SETPOINT, setpoints, write_bag

from eom_dynamics import load_robot
from eom_dynamics.bags import BagError
from eom_dynamics.tools.replay.compare import Tolerances, compare_tables
from eom_dynamics.tools.replay.job import Job
from eom_dynamics.tools.replay.one import replay_bag
from eom_dynamics.trajectory import paper_motion

NAMES = load_robot("planar_2r").joint_names
COUNT = 5000
STATES = np.array(paper_motion(2).derivatives(np.arange(COUNT) * 1e-3))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    bag = write_bag(folder / "in", {"/setpoint": (SETPOINT, setpoints(NAMES, STATES))})
    replay_bag(Job(bag, folder / "out.parquet", "planar_2r", format="parquet"))
    return folder / "out.parquet"


def golden(made: Path, path: Path, change) -> Path:
    columns = change(dict(zip((table := parquet.read_table(made)).column_names, table.columns, strict=True)))
    parquet.write_table(pa.table(columns), path)
    return path


def differing(rows):
    return {row.field: row for row in rows if row.beyond}


def test_equal_tables_have_no_differences(made: Path) -> None:
    rows = compare_tables(made, made, Tolerances({None: 0.0}, {None: 0.0}))
    assert not differing(rows) and {row.compared for row in rows if row.field != "header.stamp"} == {COUNT}
    assert {"effort", "motor_effort", "held", "header.stamp", "messages", "layout"} <= {row.field for row in rows}


def test_a_number_beyond_its_tolerance_is_found(made: Path, tmp_path: Path) -> None:
    def change(columns):
        values = columns["effort.joint_2"].to_numpy().copy()
        values[4321] += 0.5
        return {**columns, "effort.joint_2": pa.array(values)}

    other = golden(made, tmp_path / "golden.parquet", change)
    ((field, row),) = differing(compare_tables(made, other, Tolerances())).items()
    assert (field, row.beyond, row.largest) == ("effort", 1, pytest.approx(0.5))
    assert row.first == parquet.read_table(made)["recorded"].cast("int64")[4321].as_py()
    assert not differing(compare_tables(made, other, Tolerances({"effort": 0.6})))


def test_missing_rows_and_other_frames_are_differences(made: Path, tmp_path: Path) -> None:
    less = golden(made, tmp_path / "less.parquet", lambda columns: {n: c.slice(10) for n, c in columns.items()})
    assert differing(compare_tables(made, less, Tolerances()))["messages"].beyond == 10
    frames = golden(made, tmp_path / "frames.parquet", lambda c: {**c, "frame": pa.array(["x"] * COUNT)})
    assert differing(compare_tables(made, frames, Tolerances()))["layout"].beyond == COUNT


def test_rows_are_matched_by_their_stamps_on_request(made: Path, tmp_path: Path) -> None:
    def later(columns):
        times = columns["recorded"].cast("int64").to_numpy() + 12345
        return {**columns, "recorded": pa.array(times).cast(columns["recorded"].type)}

    live = golden(made, tmp_path / "live.parquet", later)
    assert differing(compare_tables(made, live, Tolerances()))["messages"].beyond
    assert not differing(compare_tables(made, live, Tolerances(), "stamp"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda columns: {"a": pa.array([1])}, "is not a table of commands: column recorded is missing"),
        (lambda columns: {**columns, "held": pa.array(["x"] * COUNT)}, "column held is string"),
        (lambda columns: {k: v for k, v in columns.items() if "." not in k}, "it has no commands"),
        (lambda columns: {**columns, "stamp": pa.nulls(COUNT, columns["stamp"].type)}, "column stamp lacks values"),
    ],
)
def test_other_tables_are_refused(made: Path, tmp_path: Path, change, reason: str) -> None:
    with pytest.raises(BagError, match=reason) as caught:
        compare_tables(made, golden(made, tmp_path / "golden.parquet", change), Tolerances())
    assert str(tmp_path / "golden.parquet") in str(caught.value) and "\n" not in str(caught.value)
