# SPDX-License-Identifier: Apache-2.0
"""Temporary folders that killed runs have left are removed by the next run, and those in use are not."""

import os
import re
import signal
import subprocess
import sys
import tempfile

import pytest
from paths import ROOT

pytest.importorskip("rosbags", reason="reads bags")

import bag_files
from zstandard import compress

from eom_dynamics.scratch import scratch_folder

OPENS = """
import sys, time
from pathlib import Path
from eom_dynamics.bags.bag import Bag
bag = Bag(Path(sys.argv[1]))
print("open", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder for temporary files, also of processes."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def old(*paths):
    for path in paths:
        os.utime(path, (1e9, 1e9))


def test_what_a_killed_reader_of_a_compressed_bag_has_left_goes_with_the_next(folder, tmp_path):
    whole = bag_files.write_bag(tmp_path / "whole", {"/x": (bag_files.JOINT_STATE, [])}, "sqlite3")
    bag = tmp_path / "bag.db3.zstd"
    bag.write_bytes(compress(bag_files.file_of(whole).read_bytes()))
    with subprocess.Popen([sys.executable, "-c", OPENS, str(bag)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"
        (left,) = folder.iterdir()
        old(left)
        with scratch_folder():
            assert left.exists()  # in use
        process.send_signal(signal.SIGKILL)
    assert left.exists()
    with scratch_folder() as another:
        assert [*folder.iterdir()] == [another]
    assert not [*folder.iterdir()]


def test_folders_of_others_stay(folder):
    other, young = folder / "somebody-else", folder / "eom_dynamics-young"
    for path in (other, young):
        path.mkdir()
    old(other)
    with scratch_folder():
        pass
    assert other.exists()
    assert young.exists()


def test_there_is_one_mechanism():
    users = [
        path.relative_to(ROOT / "eom_dynamics").as_posix()
        for path in (ROOT / "eom_dynamics").rglob("*.py")
        if re.search(r"\b(TemporaryDirectory|mkdtemp)\b", path.read_text())
    ]
    assert users == ["scratch.py"]
