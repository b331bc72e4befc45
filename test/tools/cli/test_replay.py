# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics replay``: outputs, text and errors."""

import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from paths import PANDA_BAG

pytest.importorskip("rich")

from bag_files import (
    COMMAND,
    JOINT_STATE,
    SETPOINT,
    START,
    STORE,
    file_of,
    joint_state,
    read_bag,
    robot_file,
    setpoints,
    write_bag,
)

from eom_dynamics import load_robot
from eom_dynamics.trajectory import paper_motion

NAMES = load_robot("planar_2r").joint_names
FLOAT = "std_msgs/msg/Float64"
STATES = np.array(paper_motion(2).derivatives(np.arange(400) * 1e-3))


def bag(path: Path, storage: str = "mcap", **topics) -> Path:
    return write_bag(path, topics or {"/setpoint": (SETPOINT, setpoints(NAMES, STATES))}, storage)


@pytest.fixture
def in_this_process(monkeypatch) -> None:

    @contextmanager
    def one_thread(scheduler):
        with ThreadPoolExecutor(1) as executor:
            yield executor

    monkeypatch.setattr("eom_dynamics.tools.replay.run._executor", one_thread)


@pytest.fixture
def replay(run):
    return lambda *arguments, code=0: run("replay", *arguments, "--robot", "planar_2r", code=code)


def test_comparison_with_a_golden_output(tmp_path: Path, replay) -> None:
    source, golden = bag(tmp_path / "in"), tmp_path / "golden"
    header, row = (line.split() for line in replay(source, "-o", golden).out.splitlines())
    assert header[:4] == ["bag", "topic", "commands", "refused"] and row[:5] == ["in", "/setpoint", "400", "0", "0.40"]
    exactly = ["--atol", 0, "--rtol", 0]
    replay(source, "-o", tmp_path / "same", "--compare", golden, *exactly)
    other = bag(tmp_path / "other", **{"/setpoint": (SETPOINT, setpoints(NAMES, STATES * (1 + 1e-4)))})
    output = replay(other, "-o", tmp_path / "out", "--compare", golden, code=1)
    assert re.search(r"/feedforward +motor_effort +400 +\S+ N m +joint_1 +400 +1700000000\.000000000", output.out)
    assert output.err == f"eom_dynamics replay: failed: 1 of 1 bags differ from {golden}\n"
    loose = ["--compare", golden, "--rtol", 0.01, "--atol", 0.01, "--atol", "effort_acceleration=1"]
    (result,) = replay(other, "-o", tmp_path / "loose", *loose, "--json").json
    assert result["report"]["commands"] == 400 and 0 < result["wall"] < 60
    assert max(row["largest"] for row in result["differences"] if row["field"] == "effort") > 1e-6
    (kept,) = replay(other, "-o", tmp_path / "out", "--resume", "--compare", golden, "--json", code=1).json
    assert kept["kept"] and kept["report"] is None and len(kept["failures"]) > 3


def test_a_golden_bag_with_some_topics_is_compared_and_the_others_are_named(tmp_path: Path, replay) -> None:
    source = bag(tmp_path / "in")
    replay(source, "-o", tmp_path / "whole")
    kept = {"/feedforward": (COMMAND, read_bag(tmp_path / "whole")["/feedforward"])}
    command = [source, "-o", tmp_path / "out", "--force", "--compare", write_bag(tmp_path / "golden", kept)]
    told = "/motor_setpoint: not compared: the golden bag has no such topic"
    page = tmp_path / "page.html"
    (result,) = replay(*command, "--json", "--page", page).json
    assert result["passed"] and sorted(result["missing"]) == ["/effort_command", "/motor_setpoint"]
    assert {row["topic"] for row in result["differences"]} == {"/feedforward"}
    assert told in page.read_text()
    printed = replay(*command, "--strict", code=1)
    assert told in printed.err and told in printed.out


@pytest.mark.usefixtures("in_this_process")
def test_results_for_machines(tmp_path: Path, replay) -> None:
    changed = STATES.copy()
    changed[2, 123, 1] += 0.5  # in the middle, the acceleration of the second joint
    bag(tmp_path / "golden_of/a")
    bag(tmp_path / "in/a", **{"/setpoint": (SETPOINT, setpoints(NAMES, changed))})
    bag(tmp_path / "golden_of/b")
    bag(tmp_path / "in/b")
    bag(tmp_path / "in/c")
    replay(tmp_path / "golden_of", "-o", tmp_path / "golden")
    (tmp_path / "in/broken.db3").write_bytes(b"")
    checks = ["--compare", tmp_path / "golden", "--atol", "1e-6", "--json"]
    first, second, broken, alone = replay(tmp_path / "in", "-o", tmp_path / "out", *checks, code=1).json
    assert [result["passed"] for result in (first, second, broken, alone)] == [False, True, False, False]
    assert "is empty" in broken["failures"][0] and second["failures"] == []
    assert alone["failures"] == [f"{tmp_path / 'golden/c'}: there is no such bag"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a", "b"}
    (effort,) = [row for row in first["differences"] if (row["topic"], row["field"]) == ("/feedforward", "effort")]
    assert (effort["beyond"], effort["first"]) == (1, effort["worst_at"]) and effort["worst"] in NAMES
    assert effort["worst_at"] == START + 123 * 10**6 and (effort["absolute"], effort["relative"]) == (1e-6, 1e-9)
    units = {row["field"]: row["unit"] for row in first["differences"] if row["topic"] == "/feedforward"}
    assert (effort["unit"], units["motor_velocity"], units["header.stamp"]) == ("N m", "rad/s", "")
    lines = [line for line in first["failures"] if line.startswith("/feedforward: effort ")]
    assert re.fullmatch(
        r".* differs in 1 messages, by up to \S+ N m of joint_\d, tolerance 1e-06 \+ 1e-09 relative", lines[0]
    )


@pytest.mark.usefixtures("in_this_process")
def test_an_unusable_golden_bag_is_refused_before_anything_is_done(tmp_path: Path, monkeypatch, replay) -> None:
    monkeypatch.chdir(tmp_path)
    bag(Path("in/a"))
    bag(Path("other/a"), **{"/arm/setpoint": (SETPOINT, setpoints(NAMES, STATES[:, :3]))})
    Path("text/a").mkdir(parents=True)
    Path("text/a/a.mcap").write_text("text")
    replay("other", "-o", "of_arm")
    for source, golden, reason in (
        ("in", "nowhere", r"nowhere.*: there is no such bag"),
        ("in", "text", r"text/a/metadata.yaml: missing"),
        ("in/a", "text/a/a.mcap", r"a.mcap: cannot be read"),
        ("in", "of_arm", r"of_arm/a: lacks the topics /feedforward, /motor_setpoint, /effort_command"),
    ):
        output = replay(source, "-o", "out", "--compare", golden, code=1 if source == "in" else 2)
        assert re.search(reason, output.err) and output.err.count("\n") == 1
        assert not Path("out").exists()


@pytest.mark.parametrize(
    ("earlier", "later", "files", "named"),
    [
        (["in/a", "-o", "out.mcap"], [], ["out.mcap"], ["out.mcap"]),
        (["in/a", "-o", "out", "--format", "sqlite3"], ["--format", "mcap"], ["out/out.db3"], ["out"]),
        (["in", "-o", "out"], [], ["out/a/a.mcap", "out/b/metadata.yaml"], ["out/a", "out/b"]),
        (["in", "-o", "out"], [], ["out/b/mine.mcap"], ["out/b"]),
    ],
)
@pytest.mark.usefixtures("in_this_process")
def test_force_refuses_files_of_the_user_at_names_of_an_output(
    tmp_path: Path, monkeypatch, earlier, later, files, named, replay
) -> None:
    monkeypatch.chdir(tmp_path)
    _two_bags(Path("in"))
    replay(*earlier)
    shutil.rmtree("out/b", ignore_errors=True)
    for file in map(Path, files):
        file.parent.mkdir(exist_ok=True)
        file.write_text("precious", encoding="utf-8")
    before = sorted(Path().rglob("*"))
    errors = replay(*earlier, *later, "--force", code=1 if "in" in earlier else 2).err
    for line, path in zip(errors.splitlines(), named, strict=True):
        assert f"{path}: " in line and line.endswith("name another output")
    assert sorted(Path().rglob("*")) == before and {Path(file).read_text() for file in files} == {"precious"}


def test_positions_of_motors_are_replayed_only_on_request(tmp_path: Path, replay) -> None:
    topics = {"/motor_setpoint": _motion(0.5), "/joint_states": _motion(), "/motor_states": _motion(0.5)}
    source = bag(tmp_path / "in", **topics)
    for arguments, topic in (([], "/joint_states"), (["--topic", "motor_setpoint"], "/motor_setpoint")):
        (result,) = replay(source, "-o", tmp_path / "out", "--force", "--json", *arguments).json
        assert result["report"]["topic"] == topic


def _two_bags(path: Path) -> Path:
    bag(path / "a")
    bag(path / "b")
    return path


def _states(names, position=lambda t: 0.0, effort: Sequence[float] = ()):
    """Joint states of 1 s at 100 Hz, with the same position of all joints."""
    times = [START + k * 10**7 for k in range(100)]
    ones = np.ones(len(names))
    return JOINT_STATE, [(t, joint_state(t, names, position((t - START) * 1e-9) * ones, effort)) for t in times]


def _motion(offset: float = 0.0):
    return _states(NAMES, lambda t: np.sin(t) + offset)


def test_efforts_beyond_their_tolerance_fail(tmp_path: Path, replay) -> None:
    source = bag(tmp_path / "in", **{"/joint_states": _states(NAMES, effort=[3.0, 3.0])})
    (result,) = replay(source, "-o", tmp_path / "out", "--against", "effort", "--json").json
    first, second = result["report"]["rms"]
    between, low = (first + second) / 2, "joint_1" if first < second else "joint_2"
    assert first != second
    command = [source, "-o", tmp_path / "out", "--force", "--against", "effort", "--tolerance"]
    (line,) = replay(*command, between, code=1).err.splitlines()
    high = ({"joint_1", "joint_2"} - {low}).pop()
    assert f"RMS effort error of joint {high} is {max(first, second):.3g}, tolerance {between:g}" in line
    replay(*command, between, "--tolerance", f"{high}={1.01 * max(first, second)}")
    assert replay(*command, f"{low}={0.9 * min(first, second)}", code=1).err.count(f"joint {low} ") == 1


def test_limits_fail_is_a_gate(tmp_path: Path, run, replay) -> None:
    robot = robot_file(tmp_path, {"type": "linear", "stiffness": 300.0})
    source = bag(tmp_path / "in")
    command = ["replay", str(source), "--robot", robot, "-o"]
    assert "commands exceed limits, at worst:" in run(*command, str(tmp_path / "warn"), "--limits", "warn").out
    lines = run(*command, str(tmp_path / "fail"), "--limits", "fail", code=1).err.splitlines()
    (line,) = (line for line in lines if "failed: " in line)
    assert re.search(r"/setpoint.*exceed.*joint_2", line)
    replay(source, "-o", tmp_path / "within", "--limits", "fail")
    # Reported commands are sent unchanged, except for motor limits of the file.
    warned, free = (
        np.array([command.effort for _, command in read_bag(tmp_path / name)["/motor_setpoint"]])
        for name in ("warn", "within")
    )
    np.testing.assert_array_equal(warned[:, 0], free[:, 0])
    np.testing.assert_allclose(warned[:, 1], np.clip(free[:, 1], -1.0, 1.0), rtol=1e-12)
    assert np.abs(free[:, 1]).max() > 1.0


def test_refused_messages_are_reported_and_fail_with_strict(tmp_path: Path, replay) -> None:
    messages = setpoints(NAMES, STATES)
    replay(bag(tmp_path / "intact"), "-o", tmp_path / "1", "--strict")
    messages[7][1].snap[1] = np.nan
    source = bag(tmp_path / "refused", **{"/setpoint": (SETPOINT, messages)})
    told = r"1 of topic /setpoint refused, the first at 1700000000\.007000000: snap\[1\] \(joint 'joint_2'\) is nan"
    printed = replay(source, "-o", tmp_path / "lenient")
    assert re.search(told, printed.out) and printed.err == "", printed
    error = replay(source, "-o", tmp_path / "strict", "--strict", code=1).err
    assert "1 messages of topic /setpoint refused: snap" in error and error.count("\n") == 1, error
    assert (tmp_path / "strict").exists()


def _topics(**kinds):
    return lambda path: bag(path, **kinds)


def _without_metadata(path: Path) -> Path:
    (bag(path) / "metadata.yaml").unlink()
    file_of(path).rename(path / f"{path.name}_0.mcap")  # as by a recorder that was killed
    return path


def _text(path: Path) -> Path:
    path.mkdir()
    (path / "a\nb.mcap").write_bytes(b"text")
    return path / "a\nb.mcap"


SHORT, MOVING = (SETPOINT, setpoints(NAMES, STATES[:, :3])), _motion()
JOINT_STATES = ("/joint_states", "/arm/joint_states", "/motor_states")
WITH_STATES = _topics(**{"/setpoint": SHORT}, **dict.fromkeys(JOINT_STATES, MOVING))
TWO_TOPICS = _topics(**{"/left/setpoint": SHORT, "/right/setpoint": SHORT})
UNKNOWN = _topics(**{"/setpoint": (SETPOINT, setpoints(["shoulder", "elbow"], STATES[:, :3]))})
NUMBERS = _topics(**{"/number": (FLOAT, [(START, STORE.types[FLOAT](data=1.0))])})
OF_MOTORS = _topics(**{"/motor_setpoint": MOVING, "/a/motor_states": MOVING})
AT_REST, NAMELESS = (_topics(**{"/joint_states": _states(x)}) for x in (NAMES, []))


@pytest.mark.parametrize(
    ("make", "arguments", "reason"),
    [
        (lambda path: path, [], "there is no such bag"),
        (bag, ["--topic", "/nowhere"], r"has no topic /nowhere; it has /setpoint \(eom_dynamics/msg/Joint"),
        (NUMBERS, ["--topic", "/number"], "topic /number is of type std_msgs/msg/Float64, not one of"),
        (OF_MOTORS, [], r"/motor_setpoint \(.*\); /a/motor_states, /motor_setpoint: motor positions, .* --topic"),
        (TWO_TOPICS, [], "name one of them, --topic: /left/setpoint, /right/setpoint"),
        (UNKNOWN, [], r"can be used: joint_names\[0\]: the robot has no joint 'shoulder'"),
        (AT_REST, ["--against", "effort"], "has no recorded effort to compare with"),
        (WITH_STATES, ["--against", "effort"], "in /arm/joint_states, /joint_states: --topic /arm/joint_states"),
        (bag, ["-o", "there"], "there: is not empty; name another folder, or use --force"),
        (bag, ["-o", "file/out"], "file/out: cannot be written: file is not a folder"),
        (bag, ["--compare", "nowhere"], "nowhere: there is no such bag"),
        (bag, ["--compare", "out"], "golden bag out: is the output itself"),
        (bag, ["--compare", "x", "--atol", "efort=1"], "there is no field 'efort'; there are effort, "),
        (bag, ["-o", "in", "--force"], "in: is the bag to replay"),
        (_text, [], r"a\\nb.mcap: cannot be read: it does not begin like an MCAP"),
        (_without_metadata, [], r"in/metadata\.yaml: missing; to rewrite it: ros2 bag reindex \S+/in$"),
        (NAMELESS, [], "name: joint 'joint_1', 'joint_2' missing; list each"),
        (AT_REST, ["--cutoff", "1e-300"], "cutoff must be from"),
        (bag, ["--compare", "in", "--format", "parquet"], "--compare compares bags: write one, or compare tables by"),
        (bag, ["--resume", "--strict"], "--resume keeps outputs unchecked: leave out --against, --strict and"),
        (bag, ["-o", "out.db3"], "out.db3: an sqlite3 bag is a folder; leave out .db3"),
        (bag, ["-o", "out.mcap", "--format", "parquet"], "out.mcap: contradicts --format parquet"),
        (_two_bags, ["-o", "out.mcap"], "out.mcap: is the name of a file; several bags"),
        (bag, ["--tolerance", "1"], "--tolerance needs --against"),
        (bag, ["--against", "effort", "--tolerance", "elbow=1"], "has no joint 'elbow'; it has joint_1, joint_2"),
        (bag, ["--atol", "1"], "--atol, --rtol and --match need --compare"),
    ],
    ids=lambda value: value.__qualname__ if callable(value) else str(value),  # str() would show an address
)
def test_what_cannot_be_used_is_refused_on_one_line(tmp_path: Path, monkeypatch, refused, make, arguments, reason: str):
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("there/file").touch()
    Path("file").touch()
    error = refused("replay", str(make(tmp_path / "in")), "-o", "out", "--robot", "planar_2r", *arguments)
    assert re.search(reason, error), error
    assert not Path("out").exists()
    assert not list(tmp_path.glob(".eom_dynamics-*")) and Path("there/file").exists()


# Gaz et al. (2019), supplementary material. Table I, friction parameters phi 1 (N m), 2 (s/rad), 3 (rad/s).
FRICTION = np.array(
    [
        [0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489],
        [5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336],
        [0.039533, 0.025882, -0.04607, 0.036194, 0.026226, -0.021047, 0.0035526],
    ]
)
# Table IV, mean square errors of the efforts, (N m)², on ten trajectories not used for identification.
PUBLISHED = np.sqrt([0.4068, 1.0282, 0.5951, 0.4231, 0.1749, 0.0403, 0.0267])


def friction(velocity: np.ndarray) -> np.ndarray:
    level, slope, offset = FRICTION
    return level / (1 + np.exp(-slope * (velocity + offset))) - level / (1 + np.exp(-slope * offset))


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is missing")
def test_the_recording_of_a_panda_against_its_efforts(tmp_path: Path, run) -> None:
    """RMS errors within 1.5 times the published errors, for another robot and other motions."""
    command = ["replay", PANDA_BAG, "-o", tmp_path / "out", "--robot", "panda", "--cutoff", "2.5"]
    assert re.search(
        r"14 messages of topic /joint_states repeat the positions of the message before during a motion, "
        r"the first at \d+\.\d{9}: measurements and stamps are not in step, .* a lower --cutoff makes smaller\n",
        run(*command).out,
    )
    (result,) = run(*command, "--against", "effort", "--json", "--force").json
    report = result["report"]
    assert report["repeated"] == 14
    assert report["commands"] == 727 and report["joint_names"][0] == "fer_joint1"
    recorded = [message for _, message in read_bag(PANDA_BAG)["/joint_states"]]
    commands = [command for _, command in read_bag(tmp_path / "out")["/feedforward"]]
    assert [m.header.stamp for m in commands] == [m.header.stamp for m in recorded]
    errors = np.array([x.effort - y.effort for x, y in zip(commands, recorded, strict=True)])
    np.testing.assert_allclose(report["rms"], np.sqrt(np.mean(errors**2, axis=0)), rtol=1e-12)
    errors += friction(np.array([command.motor_velocity for command in commands]))
    inner = slice(20, -20)  # without the ends of the fit
    assert np.all(np.sqrt(np.mean(errors[inner] ** 2, axis=0)) < 1.5 * PUBLISHED)
