# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: exit codes, and errors on one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import eom_dynamics
from eom_dynamics.cli.main import main

COMMANDS = ("bench", "codegen", "demo", "inspect")


def command_line(*arguments: str, shell: str = 'exec "$@"', **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, called by a line of shell."""
    return subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-m", "eom_dynamics.cli.main", *arguments],
        cwd="/",  # away from the source folder, which Python would put first on its path
        env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.strip() == f"eom_dynamics {eom_dynamics.__version__}"


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 0
    assert "usage: eom_dynamics" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "COMMAND"),
        (["dance"], "dance"),
        (["inspect"], "ROBOT"),
        (["inspect", "iiwa", "--loud"], "--loud"),
        (["inspect", "iiwa", "--lo\nud\x1b"], r"--lo\nud\x1b"),
        (["demo", "--rate", "fast"], "fast"),
        (["demo", "--rate", "nan"], "nan"),
        (["demo", "--rate", "10"], "--rate"),
        (["demo", "--duration", "-1"], "--duration"),
        (["demo", "-o", ""], "--output"),
        (["codegen", "iiwa", "-o", ""], "--output"),
    ],
)
def test_wrong_use_is_one_line_and_2(arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    output = capsys.readouterr()
    assert not output.out
    assert named in output.err and "--help" in output.err
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("command", [["inspect"], ["demo", "--robot"]])
@pytest.mark.parametrize("robot", ["nobody", "missing.yaml", "broken.yaml"])
def test_a_robot_that_cannot_be_loaded_is_one_line_and_2(
    command: list[str], robot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text("/**: {ros__parameters: {robot: {name: [}}", encoding="utf-8")
    assert main([*command, robot]) == 2
    output = capsys.readouterr()
    assert not output.out
    assert output.err.startswith(f"eom_dynamics {command[0]}: {robot}")
    assert output.err.count("\n") == 1


def test_help_needs_none_of_the_plotting_libraries() -> None:
    code = (
        "import sys; from eom_dynamics.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: sys.exit(', '.join({'matplotlib', 'plotly', 'rich', 'rclpy'} & set(sys.modules)) or 0)"
    )
    path = str(Path(eom_dynamics.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], cwd=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_a_terminal_would_act_on_is_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "no\nbody\x1b[31m"]) == 2
    assert capsys.readouterr().err.startswith(r"eom_dynamics inspect: no\nbody\x1b[31m: ")


@pytest.mark.parametrize("arguments", [["inspect", "planar_2r"], ["inspect", "nobody"]])
def test_an_encoding_without_greek_is_no_error(arguments: list[str]) -> None:
    done = command_line(*arguments, PYTHONIOENCODING="ascii")
    assert done.returncode == (2 if "nobody" in arguments else 0)
    assert "Traceback" not in done.stderr
    assert "nobody" in arguments or r"m/s\xb2" in done.stdout


@pytest.mark.parametrize("arguments", [["inspect", "planar_2r"], ["--help"]])
def test_nobody_reading_on_is_no_error(arguments: list[str]) -> None:
    done = command_line(*arguments, shell='("$@"; echo "code $?" >&2) | :')
    assert done.stderr == "code 141\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_one_line_and_2() -> None:
    done = command_line("inspect", "planar_2r", shell='exec "$@" >/dev/full')
    assert done.returncode == 2
    assert done.stderr.startswith("eom_dynamics inspect: ") and "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_errors_never_go_to_stdout() -> None:
    done = command_line("inspect", "nobody", shell='exec "$@" 2>&-')
    assert (done.returncode, done.stdout) == (2, "")


def test_nothing_is_printed_where_stdout_is_closed() -> None:
    done = command_line("inspect", "planar_2r", shell='exec "$@" >&-')
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("executable", ["bin/eom_dynamics", "lib/eom_dynamics/dynamics_node"])
def test_an_interrupt_before_the_first_line_ends_without_a_traceback(executable: str, tmp_path: Path) -> None:
    path = Path(sys.prefix) / executable
    if not path.is_file():
        pytest.skip(f"{path} is not installed")
    # In the place of one of the modules that are imported first.
    (tmp_path / "yaml.py").write_text("import pathlib, time\npathlib.Path('here').touch()\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [path, "inspect", "iiwa"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "here").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (-signal.SIGINT, "")
