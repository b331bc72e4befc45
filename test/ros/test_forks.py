# SPDX-License-Identifier: Apache-2.0
"""Processes that tests fork, rather than start."""

import sys
from pathlib import Path

import pytest
from forks import ForkServer

MAIN = """
import sys
import threading
import time
import rclpy  # whose tracing library has threads

def main():
    threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done")
    return int(sys.argv[1])
"""


@pytest.mark.ros
@pytest.mark.parametrize("code", [0, 3])
def test_a_fork_ends_with_its_code_after_it_has_freed_stacks_of_threads(code: int, tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("rclpy", reason="rclpy is not installed")
    (tmp_path / "module_of_a_fork.py").write_text(MAIN, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with (tmp_path / "log").open("w") as log:
        assert ForkServer().start("module_of_a_fork", [code], tmp_path, log).wait(60) == code
    assert (tmp_path / "log").read_text() == "done\n"
