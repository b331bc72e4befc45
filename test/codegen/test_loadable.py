# SPDX-License-Identifier: Apache-2.0
"""Loaded code is independent of its cache entry, and is loaded once for equal contents."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from compilation import compile_c

from eom_dynamics.codegen.cache import digest, loadable

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def entry(folder: Path, value: int) -> tuple[str, bytes]:
    """Key and contents of a library with a function that returns a number."""
    assert compile_c([f"int value(void) {{ return {value}; }}"], folder, "-shared", "-fPIC").returncode == 0
    content = (folder / "built").read_bytes()
    return digest(content), content


def value(entry: tuple[str, bytes]) -> int:
    key, content = entry
    with loadable(key, lambda output: output.write_bytes(content)) as path:
        return int(ctypes.CDLL(str(path)).value())


def copies() -> set[str]:
    """Start addresses of private copies in this process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line for line in lines if "memfd:eom_dynamics" in line and " 00000000 " in line}


def test_the_same_contents_are_loaded_once_and_others_never_for_them(tmp_path: Path) -> None:
    before, descriptors = copies(), len(os.listdir("/proc/self/fd"))
    # Alternately, so that a descriptor of one is used again for the other.
    entries = [entry(tmp_path, k) for k in range(5)]
    assert [value(each) for each in entries * 3] == list(range(5)) * 3
    assert len(copies() - before) == 5
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_without_anonymous_files_a_temporary_one_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(name: str) -> int:
        raise PermissionError(name)

    monkeypatch.setattr(os, "memfd_create", forbidden)
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(tmp_path))
    made = entry(tmp_path, 78)
    assert [value(made), value(made)] == [78, 78]
    assert not list(tmp_path.glob("scratch-*"))


PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from eom_dynamics import Dynamics, load_robot
robot, x = load_robot("planar_2r"), np.ones((5, 2))
before = Dynamics(robot, backend="native")
expected = np.array(before.inverse_dynamics(*x))
for path in Path(sys.argv[1]).glob("*.so"):
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(b"rubbish")
after = Dynamics(robot, backend="native")
for dynamics in (before, after):
    assert np.array_equal(dynamics.inverse_dynamics(*x), expected)
"""


def test_entries_overwritten_in_place_do_not_affect_a_process_that_has_loaded_them(tmp_path: Path) -> None:
    environment = os.environ | {"EOM_DYNAMICS_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
