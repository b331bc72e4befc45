# SPDX-License-Identifier: Apache-2.0
"""The command line as a whole: exit codes, errors on one line, streams, and the arguments that name a robot."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from paths import CONFIG, ROOT
from urdf_arms import urdf_arm

import eom_dynamics
from eom_dynamics import RobotDescriptionError
from eom_dynamics.tools.cli.main import _COMMANDS, main
from eom_dynamics.tools.options import RobotOptions


def test_version_and_help(run) -> None:
    assert run("--version").out.strip() == f"eom_dynamics {eom_dynamics.__version__}"
    assert "usage: eom_dynamics " in run("--help").out and len(_COMMANDS) <= 9
    for name in _COMMANDS:
        text, option = run(name, "--help").out, re.compile(r"^  -", re.MULTILINE)
        shown, rare = len(option.findall(text)), re.search(r"\n(\d+) more options: .* --help-all\n$", text)
        assert f"usage: eom_dynamics {name} " in text and shown <= 12
        assert len(option.findall(run(name, "--help-all").out)) == shown + int(rare[1] if rare else 0)


def test_help_on_identification_imports_no_fit() -> None:
    """SciPy and the fits take longer to import than the rest of the command."""
    code = (
        "import sys\n"
        "from eom_dynamics.tools.cli.main import main\n"
        "try:\n    main(['identify', '--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'scipy', 'eom_dynamics.identification.links.fit'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("", "COMMAND"),
        ("dance", "dance"),
        ("inspect", "ROBOT or --template"),
        ("inspect iiwa --quiet", r"^eom_dynamics inspect: .* --quiet \(see eom_dynamics inspect --help\)$"),
        ("replay in -o out --compair golden", r"--compair golden; did you mean --compare\? \(see eom_dynamics replay"),
        ("replya in", r"invalid choice: 'replya' .*; did you mean replay\? \(see eom_dynamics --help\)"),
        ("record", r"invalid choice: 'record' \(choose from [^;]*\) \(see eom_dynamics --help\)$"),
        ("retime iiwa path.csv -o out --period 1", r"arguments: --period 1 \(see eom_dynamics retime --help\)$"),
        ("replay in -o out --limits refsue", r"did you mean refuse\? \(see eom_dynamics replay --help\)"),
        (["inspect", "iiwa", "--lo\nud\x1b"], r"--lo\\nud\\x1b"),
        (["codegen", "iiwa", "-o", ""], "--output: must be a path, is empty"),
        ("codegen iiwa -o code --functions effort,torque", r"invalid choice: 'torque' \(choose from inverse_"),
        ("demo --rate 10", r"--rate: must be within \[100, 10000\], is 10 "),
        ("inspect arm.xacro --xacro name=value", "--xacro: must be NAME:=VALUE, is 'name=value'"),
        ("report bag -o page.db3", "must end in .html"),
        ("inspect iiwa --template", "--template goes with a .urdf or another file"),
        ("codegen planar_2r --language=loop --language=c", "--language loop is for itself"),
        ("codegen planar_2r --language=loop --functions effort", "--language loop is for itself"),
        ("codegen planar_2r --language=loop -o out", "must end in .so with --language loop, is 'out'"),
        ("codegen --language=loop", "the following arguments are required: ROBOT"),
        ("codegen planar_2r", "the following arguments are required: -o/--output"),
        ("codegen -o out", "the following arguments are required: ROBOT"),
        ("identify x -o a.yaml --robot iiwa --terms viscous,stiction", r"'stiction' \(choose from viscous, coulomb"),
        ("identify x -o a.yaml --robot iiwa --hold-out 0.3 --validate x", "not allowed with argument"),
        ("identify x -o a.sdf --robot iiwa", "must end in .yaml, .yml, .xml, .mjcf, .urdf"),
        ("identify x -o a.yaml --robot iiwa --page page.png", "must end in .html, is 'page.png'"),
    ],
    ids=str,
)
def test_wrong_use_is_one_line_and_2(arguments: str | list[str], reason: str, tmp_path: Path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)
    output = run(*(arguments.split() if isinstance(arguments, str) else arguments), code=2)
    assert re.search(reason, output.err) and "--help" in output.err
    assert output.err.count("\n") == 1 and not output.out and not list(tmp_path.iterdir())


def test_help_imports_no_optional_library() -> None:
    code = (
        "import sys; from eom_dynamics.tools.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: sys.exit(', '.join({'matplotlib', 'plotly', 'rich', 'rclpy'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_characters_that_the_encoding_lacks_are_escaped(monkeypatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="ascii"))
    assert main(["inspect", "pendulum"]) == 0
    assert rb"m/s\xb2" in output.getvalue()


@pytest.mark.parametrize("arguments", [["inspect", "pendulum"], ["--help"]])
def test_a_broken_pipe_is_141(arguments: list[str], monkeypatch, capsys) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(arguments) == 141
    assert capsys.readouterr().err == ""


COMPLETIONS = {
    "eom_dynamics ret": {"retime "},
    "eom_dynamics replay --format s": {"sqlite3 "},
    "eom_dynamics inspect ii": {"iiwa "},
    f"eom_dynamics inspect {CONFIG}/ur5e.": {f"{CONFIG}/ur5e.yaml "},
    f"eom_dynamics inspect {ROOT}/setup.p": {""},
}

COMPLETE = """
import os, sys
from eom_dynamics.tools.cli.main import _parser, main
_parser()  # imports once what all commands need
for k, line in enumerate(sys.argv[1:]):
    if not os.fork():
        os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": f"answer_{k}"}
        main([])  # which ends the process
    assert os.wait()[1] == 0
"""


def test_the_shell_completes_commands_and_options(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    for file in ("scripts/entry_point.in", "eom_dynamics/tools/cli/main.py"):
        assert "# PYTHON_ARGCOMPLETE_OK" in (ROOT / file).read_text(encoding="utf-8")[:1024]
    shell = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "bash", "_ARGCOMPLETE_IFS": "\n"}
    done = subprocess.run(
        [sys.executable, "-c", COMPLETE, *COMPLETIONS],
        cwd=tmp_path,
        env={**os.environ, **shell},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stdout + done.stderr == "", done.stderr
    for k, completions in enumerate(COMPLETIONS.values()):
        assert set((tmp_path / f"answer_{k}").read_text().split("\n")) == completions


@pytest.mark.parametrize(
    ("arguments", "stream", "code", "error"),
    [
        ("inspect nobody", "2>&-", 2, ""),
        ("inspect pendulum", ">&-", 0, ""),
        # Python does not complain at its end either.
        ("inspect pendulum", ">/dev/full", 2, "eom_dynamics inspect: [Errno 28] No space left on device\n"),
    ],
)
def test_streams_that_are_closed_or_full(arguments: str, stream: str, code: int, error: str) -> None:
    command = ["sh", "-c", f'exec "$@" {stream}', "sh", sys.executable, "-m", "eom_dynamics"]
    done = subprocess.run([*command, *arguments.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", error)


@pytest.mark.parametrize(
    ("command", "module", "code"),
    [
        ("bin/eom_dynamics", "argparse", -signal.SIGINT),
        ("bin/eom_dynamics", "numpy", 130),  # a command imports it
        ("lib/eom_dynamics/dynamics_node", "rclpy", -signal.SIGINT),
    ],
)
def test_an_interrupt_during_start_up_ends_without_a_traceback(
    command: str, module: str, code: int, tmp_path: Path
) -> None:
    path = Path(sys.prefix) / command
    if not path.is_file() or "pthread_sigmask" not in path.read_text(encoding="utf-8"):
        pytest.skip(f"{path} is not the entry point of CMake")
    if module == "rclpy" and find_spec("rclpy") is None:
        pytest.skip("rclpy is not installed")
    # Imported instead of one of the first modules, and of one of the last.
    (tmp_path / f"{module}.py").write_text("import pathlib, time\npathlib.Path('here').touch()\ntime.sleep(60)\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    with subprocess.Popen(
        [path, "inspect", "iiwa"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            deadline = time.monotonic() + 30
            while not (tmp_path / "here").exists():
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == code
    assert error == ("eom_dynamics: interrupted\n" if code == 130 else "")


COMMANDS = {
    "codegen": ["codegen", "ROBOT", "-o", "out"],
    "convert": ["convert", "ROBOT", "-o", "out.yaml"],
    "excite": ["excite", "ROBOT", "-o", "out"],
    "identify": ["identify", "bag", "--robot", "ROBOT", "-o", "out.yaml"],
    "inspect": ["inspect", "ROBOT"],
    "replay": ["replay", "bag", "-o", "out", "--robot", "ROBOT"],
    "report": ["report", "bag", "-o", "out.html", "--robot", "ROBOT"],
    "retime": ["retime", "ROBOT", "path.csv", "-o", "out"],
}
"""Each command that takes a robot."""

NEEDS = {
    "retime": ["plotly"],
    **dict.fromkeys(("excite", "identify", "replay"), ("rosbags",)),
    "report": ["rosbags", "plotly"],
}
"""Libraries that a command looks for before it loads its robot."""

OPTIONS = "--tip left --tip right --tool hook --xacro size:=2 --xacro side:=l"


@pytest.fixture(params=COMMANDS)
def command(request, tmp_path: Path, monkeypatch) -> str:
    for module in NEEDS.get(request.param, []):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    return request.param


def test_every_command_takes_the_same_options(command: str, monkeypatch, refused) -> None:
    loaded = []

    def load(options: RobotOptions, source: str) -> None:
        loaded.append((source, options))
        raise RobotDescriptionError("loaded")

    monkeypatch.setattr(RobotOptions, "load", load)
    assert refused(*COMMANDS[command], *OPTIONS.split()) == f"eom_dynamics {command}: loaded"
    xacro = (("size", "2"), ("side", "l"))
    assert loaded == [("ROBOT", RobotOptions(("left", "right"), ("hook",), xacro))]


def test_a_robot_that_cannot_be_loaded_is_one_line_and_2(command: str, refused) -> None:
    Path("broken.yaml").write_text("/**: {ros__parameters: {robot: {name: [}}", encoding="utf-8")
    shown = {"nobody\n\x1b[31m": r"nobody\n\x1b[31m: ", "missing.urdf": "missing.urdf", "broken.yaml": "broken.yaml"}
    for robot, text in shown.items():
        line = refused(*(word.replace("ROBOT", robot) for word in COMMANDS[command]))
        assert line.startswith(f"eom_dynamics {command}: {text}")
    assert [path.name for path in Path().iterdir()] == ["broken.yaml"]


def test_an_output_that_exists_is_kept_without_force(command: str, refused) -> None:
    words = [word.replace("ROBOT", "pendulum") for word in COMMANDS[command]]
    if command in ("inspect", "replay"):
        pytest.skip("inspect has no output, and replay overwrites its own alone")
    output = Path(words[words.index("-o") + 1])
    mine = output if output.suffix else output / "mine"
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    line = refused(*words)
    assert line.startswith(f"eom_dynamics {command}: {output}: ") and "use --force to overwrite" in line
    assert [path for path in Path().rglob("*") if path.is_file()] == [mine] and mine.read_text() == "mine"


def test_a_missing_library_is_named_with_its_extra(monkeypatch, refused) -> None:
    monkeypatch.setitem(sys.modules, "rosbags", None)
    line = refused("report", "iiwa", "-o", "page.html")
    assert line.startswith("eom_dynamics report: rosbags is not installed; run: make build EXTRAS=report, or ")


def test_a_warning_is_one_line_on_stderr(tmp_path: Path, run) -> None:
    (tmp_path / "arm.urdf").write_text(urdf_arm().replace('izz="0.05"', 'izz="9"', 1), encoding="utf-8")
    command = [tmp_path / "arm.urdf"]
    output = run("inspect", *command)
    warning = output.err.removeprefix("eom_dynamics inspect: warning: ").rstrip("\n")
    assert output.err == f"eom_dynamics inspect: warning: {warning}\n" and "principal moment of inertia" in warning
    code = ["-o", tmp_path / "code", "--language", "c", "--functions", "effort"]
    assert run("codegen", *command, *code).err == f"eom_dynamics codegen: warning: {warning}\n"
