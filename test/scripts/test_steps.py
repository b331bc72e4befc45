# SPDX-License-Identifier: Apache-2.0
import importlib.util
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import bootstrap
import machine
import pytest
from steps import LOG_TAIL_LINES, Setup, Step, StepError


def python(code: str) -> tuple[str, str, str]:
    return (sys.executable, "-c", code)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., int]:
    def run_steps(*steps: Step) -> int:
        return Setup(steps, tmp_path / "setup").run(dict(os.environ))

    return run_steps


def test_steps_run_once_in_order_and_again_from_the_first_whose_input_changed(
    run: Callable[..., int], tmp_path: Path, capsys
) -> None:
    trace, changing = tmp_path / "trace", tmp_path / "changing"
    changing.write_text("1")

    def write(letter: str) -> list[tuple[str, str, str]]:
        return [python(f"open({str(trace)!r}, 'a').write({letter!r})")]

    steps = [Step("a", "A", write("a"), []), Step("b", "B", write("b"), [changing]), Step("c", "C", write("c"), [])]
    assert run(*steps) == 3
    assert run(*steps) == 0
    changing.write_text("2")
    assert run(*steps) == 2
    assert trace.read_text() == "abcbc"
    assert re.search(r"\[3/3\] C … \d+ s", capsys.readouterr().out)


def test_failed_step_shows_the_end_of_its_output_and_runs_again(run: Callable[..., int], tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"import os; [print('line', i, flush=True) for i in range(100)]; assert os.path.exists({str(ready)!r})"
    step = Step("build", "Building", [python(code)], [])
    with pytest.raises(StepError) as failure:
        run(step)
    message = str(failure.value)
    assert "AssertionError" in message
    assert str(tmp_path / "setup" / "build.log") in message
    assert message.count("line") <= LOG_TAIL_LINES
    ready.touch()
    assert run(step) == 1
    assert run(step) == 0


def test_only_an_environment_that_was_made_here_is_removed(tmp_path: Path) -> None:
    venv = tmp_path / ".venv"
    (venv / "lib").mkdir(parents=True)
    (venv / "lib64").symlink_to("lib")
    setup = Setup([Step("a", "A", [python("")], [])], venv / "setup")
    with pytest.raises(StepError, match="elsewhere"):
        setup.remove(venv, "it is damaged")
    assert (venv / "lib").exists()
    setup.run(dict(os.environ))
    setup.remove(venv, "it is damaged")
    assert not venv.exists()


def test_a_missing_network_is_one_line(run: Callable[..., int], tmp_path: Path) -> None:
    """With the words of pip, from an index that refuses the connection."""
    code = (
        "print('WARNING: Retrying (Retry(total=0)) after connection broken by NewConnectionError(…): /simple/numpy/'); "
        "print('ERROR: No matching distribution found for numpy'); raise SystemExit(1)"
    )
    with pytest.raises(StepError) as failure:
        run(Step("packages", "Installing", [python(code)], []))
    message = str(failure.value)
    assert message.startswith("failed: no package index can be reached; connect, or ") and "\n" not in message
    with pytest.raises(StepError, match="SyntaxError"):
        run(Step("packages", "Installing", [python("print('NewConnectionError', flush=True); x = = 1")], []))


@pytest.mark.parametrize(("extra", "remedy"), [("replya", "did you mean replay?"), ("zzz", "there are demo, ")])
def test_an_unknown_extra_is_one_line(extra: str, remedy: str) -> None:
    with pytest.raises(StepError, match=re.escape(f"there is no extra {extra!r}; {remedy}")) as failure:
        bootstrap.steps([extra])
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("arguments", "silent"),
    [(["-m", "eom_dynamics.ros.player", "a.npz"], True), (["-m", "pytest"], False), (["script.py", "-m"], False)],
)
def test_ctrl_c_is_no_traceback_while_python_starts_a_node(arguments: list[str], silent: bool) -> None:
    code = (
        f"import signal, sys; sys.orig_argv = {['python', *arguments]}; "
        f"signal.signal(2, signal.default_int_handler); exec({bootstrap.UNCAUGHT_INTERRUPT!r}, {{}}, {{}}); "
        "print(signal.getsignal(2) is signal.SIG_DFL)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"{silent}\n", "")


@pytest.mark.parametrize(
    ("module", "function", "answer", "told"),
    [
        (platform, "machine", "aarch64", "Linux aarch64"),
        (platform, "libc_ver", ("", ""), "not glibc"),
        (platform, "libc_ver", ("glibc", "2.17"), "need glibc 2.28"),
        (platform, "python_implementation", "PyPy", "PyPy"),
        (importlib.util, "find_spec", None, "-venv"),
        (sysconfig, "get_path", "/nowhere", "/nowhere/Python.h"),
        (machine.shutil, "which", None, "no C compiler"),
    ],
)
def test_what_is_missing_is_told_in_one_line(monkeypatch, module: object, function: str, answer: object, told: str):
    monkeypatch.setattr(module, function, lambda *_, **__: answer)
    with pytest.raises(SystemExit, match=told) as told_and_left:
        machine.check_machine()
    assert "\n" not in str(told_and_left.value)


def test_compiler_of_the_environment_is_looked_for(monkeypatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    assert "no-such-compiler" in machine.compiler_problem()
