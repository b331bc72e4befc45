# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics demo`` with the real node over DDS."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.processes import Run

MISSING = [name for name in ("rclpy", "eom_dynamics.msg", "plotly", "rich") if importlib.util.find_spec(name) is None]
pytestmark = [pytest.mark.ros, pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: make build")]

MARK = "EOM_DYNAMICS_TEST"  # variable in the environment of processes of a test


def test_every_setpoint_is_answered_with_the_right_numbers(tmp_path: Path, monkeypatch, run) -> None:
    """Also if the player pauses during the motion, as on a busy computer."""
    play, stalled = Run.play, []

    def playing(processes: Run, _: object, module: str, arguments: str) -> None:
        def stall(sent: int, __: int) -> None:
            if sent > 20 and not stalled:
                (player,) = children("eom_dynamics.ros.player")
                stalled.append(player)
                os.kill(player, signal.SIGSTOP)
                time.sleep(0.3)
                os.kill(player, signal.SIGCONT)

        play(processes, stall, module, arguments)

    monkeypatch.setattr(Run, "play", playing)
    monkeypatch.setattr("eom_dynamics.tools.cli.demo._DURATION", 1.0)
    folder = tmp_path / "new" / "folder"
    output = run("demo", "--rate", "100", "-o", folder)
    assert "Passed: no answer lost, every number confirmed." in output.out and len(stalled) == 1
    rows = dict(re.findall(r"^(setpoints sent|lost|every answer \S+ \S+|all \S+ \S+ \S+ \S+) +(\S+)", output.out, re.M))
    assert (rows["setpoints sent"], rows["lost"]) == ("100", "0")
    assert float(rows["every answer against feedforward"]) < 1e-10
    assert float(rows["all quantities against closed form"]) < 1e-10
    assert sorted(path.name for path in folder.iterdir()) == ["demo.png", "index.html"]


def test_a_node_that_does_not_start_is_reported_by_its_own_words(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_of_nobody")
    assert main(["demo", "--rate", "100", "--force", "-o", str(tmp_path)]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("eom_dynamics")]
    assert "rmw_of_nobody" in line


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_signal_ends_node_and_player_too(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    mark = str(uuid.uuid4())
    arguments = ["demo", "--force", "-o", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "eom_dynamics.tools.cli.main", *arguments],
        env={**os.environ, MARK: mark, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_for(lambda: process.poll() is not None or len(running(mark)) >= 3)
            process.send_signal(sent)
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code and "Traceback" not in error
    if sent == signal.SIGINT:
        assert not running(mark) and not list(scratch.iterdir())
    wait_for(lambda: not running(mark))  # after SIGKILL nobody does


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")
def test_a_process_whose_parent_has_ended_before_it_asks_for_its_end_ends(tmp_path: Path) -> None:
    """The parent ends while the process has not asked yet for a signal at that time."""
    (tmp_path / "sleeper.py").write_text("import time\ntime.sleep(60)\n", encoding="utf-8")
    mark = str(uuid.uuid4())
    script = (
        "import signal, time\n"
        "from eom_dynamics.tools import processes\n"
        "ask = processes._prctl\n"
        "processes._prctl = lambda *arguments: (time.sleep(1), ask(*arguments))\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "processes.Run().start('sleeper', 'sleeper', '')\n"
    )
    environment = {**os.environ, MARK: mark, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, timeout=60, check=False)
    assert done.returncode == -signal.SIGALRM
    wait_for(lambda: not running(mark))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def children(module: str) -> list[int]:
    """Return the child processes that run a module."""
    parents = {int(path.parent.name): path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()}
    own = [pid for pid, text in parents.items() if int(text.rpartition(")")[2].split()[1]) == os.getpid()]
    return [pid for pid in own if module.encode() in (Path("/proc") / str(pid) / "cmdline").read_bytes()]


def running(mark: str) -> list[int]:
    """Return the Python processes with the mark in their environment; compilers of the node may end after it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = ((folder / name).read_bytes().split(b"\0") for name in ("environ", "cmdline"))
            if f"{MARK}={mark}".encode() in environment and b"python" in command[0]:
                found.append(int(folder.name))
        except OSError:  # another user's, or ended
            continue
    return found
