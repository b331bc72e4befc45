# SPDX-License-Identifier: Apache-2.0
"""The loop's library from Python: its memory, its settings, robots of every size, what is said without it."""

import ctypes
import gc
import math
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.codegen.compiler import run_compiler
from eom_dynamics.control import headers, settings
from eom_dynamics.control.control_loop import REFUSALS, ControlLoop, LoopRecord, Refusal, rows
from eom_dynamics.control.library import LEVELS, NAME, folders_for, library
from eom_dynamics.control.online_trajectory import OnlineTrajectory
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.control.settings import DEFAULTS, Status
from eom_dynamics.exceptions import KernelError, KernelWarning, StateError
from eom_dynamics.trajectory import Spline, through

MS = 1_000_000
BUILT = [*eom.__path__]
ARM = eom.ElasticArm(eom.load_robot("planar_2r"))


@pytest.fixture(scope="module")
def table() -> RobotTable:
    return RobotTable(ARM)


def moving(loop: ControlLoop, **settings: str) -> int:
    """Answer a setpoint, whose state is not that of a motion."""
    loop.configure(safety="permissive", **settings)
    loop.rest()
    for k, name in enumerate(STATE_NAMES):
        loop.given[name][:] = 0.1 + k
    loop.refer(MS)
    return loop.update(MS)


# --- Memory -----------------------------------------------------------------------------


def test_vectors_live_as_long_as_anybody_has_them() -> None:
    """Also where loop and table are gone, and others take memory."""
    loop = ControlLoop(RobotTable(ARM))
    moving(loop)
    vectors = {f"{group} {name}": x for group in VECTORS for name, x in getattr(loop, group).items()}
    kept = {name: x.copy() for name, x in vectors.items()}
    parts = loop.command["tau"][1:], loop.state[2], loop.given["q"].reshape(2, 1)
    values = [x.copy() for x in parts]
    del loop
    gc.collect()
    others = [ControlLoop(RobotTable(ARM)) for _ in range(5)]
    for other in others:
        moving(other)
        other.given["q"][:] = np.nan
    del others
    gc.collect()
    for name, x in kept.items():
        np.testing.assert_array_equal(vectors[name], x, err_msg=name)
    for x, part in zip(values, parts, strict=True):
        np.testing.assert_array_equal(part, x)


VECTORS = ("given", "setpoint", "command", "exceeded", "released", "sent", "sent_last")


def test_loops_of_one_table_are_their_own(table: RobotTable) -> None:
    one, two = ControlLoop(table), ControlLoop(table)
    moving(one)
    assert one.status is Status.FRESH and two.status is Status.WAITING
    assert two.number("cycles") == 0 and not two.command["tau"].any()
    two.configure(limits="refuse")
    assert one.settings["limits"] == "warn"
    with pytest.raises(ValueError, match="read-only"):
        one.state[0] = 0.0


def test_a_number_or_function_of_another_name(table: RobotTable) -> None:
    loop = ControlLoop(table)
    assert math.isnan(loop.number("speed")) and math.isnan(loop.number(""))
    with pytest.raises(AttributeError):
        loop.function_address("loop_fly")
    assert loop._library.loop_vector(loop.address, b"given", b"x") is None
    assert loop._library.loop_vector(loop.address, b"anything", b"q") is None
    assert loop._library.loop_vector(loop.address, b"from", b"tau") is None
    with pytest.raises(AssertionError, match="no such name"):
        loop.configure(speed=1.0)
    for name in (b"lower.x", b"speed"):
        assert table.library.robot_set(table.address, name, np.zeros(2).ctypes.data, 2) == b"there is no such name"


def test_the_record_has_the_numbers_of_the_state(table: RobotTable) -> None:
    """Where C++ has them, also to NumPy: the last ones are counts, behind all others."""
    loop = ControlLoop(table)
    assert moving(loop) == 0
    record = np.frombuffer(loop.record, np.dtype(LoopRecord))[0]
    assert {name: record[name] for name in ("status", "valid", "moves", "followed", "contacts")} == {
        **{"status": Status.FRESH, "valid": True, "moves": True, "followed": 1, "contacts": 0}
    }
    assert all(float(record[name]) == loop.number(name) for name in record.dtype.names)
    assert ctypes.sizeof(LoopRecord) < loop._library.state_size()


def test_refusals_have_fields_that_are_filled_in() -> None:
    fields = {field for text in REFUSALS.values() for field in re.findall(r"\{(.*?)\}", text)}
    assert {*REFUSALS} == {x.name for x in Refusal} and not REFUSALS["none"]
    assert fields == {*re.findall(r'field == "(\w+)"', headers.source("reasons.hpp")), "time"}


# --- Settings ---------------------------------------------------------------------------

BAD_SETTINGS = {
    "limits": (["", "clipped"], "limits is not one of its choices"),
    "on_setpoint_loss": (["freeze"], "on_setpoint_loss is not one of its choices"),
    "effort_on_deactivate": (["all"], "effort_on_deactivate is not one of its choices"),
    "setpoint_timeout": ([-1e-9, 3601.0], "setpoint_timeout must be 0 to 3600 s"),
    "setpoint_lifespan": ([-1.0, 3601.0], "setpoint_lifespan must be 0 to 3600 s"),
    "stop_duration": ([0.0, 61.0], "stop_duration must be 0.01 to 60 s"),
    "start_tolerance": ([0.0, 1001.0], "start_tolerance must be 1e-6 to 1000 rad or m"),
    "stamp_check": (["maybe"], "stamp_check is not one of its choices"),
    "jump_check": (["maybe"], "jump_check is not one of its choices"),
    **{
        name: ([-1.0], rf"{names} must be finite, and not negative")
        for names in ("motor_kp and motor_kd", "link_kp and link_kd")
        for name in names.split(" and ")
    },
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_a_setting_beyond_its_range_is_refused_and_leaves_those_before(table: RobotTable, name: str) -> None:
    loop = ControlLoop(table)
    loop.configure(limits="warn", stop_duration=0.5)
    values, reason = BAD_SETTINGS[name]
    for value in (*values, *([math.nan, math.inf] if isinstance(values[0], float) else [])):
        with pytest.raises(StateError, match=f"^{reason}$"):
            loop.configure(**{"start_tolerance": 0.2, name: value})
        assert loop.settings == DEFAULTS | {"limits": "warn", "stop_duration": 0.5}
    loop.configure(start_tolerance=0.3)
    moving(loop)
    loop.act("stop")
    assert loop.number("stop_end") == pytest.approx(0.5, rel=1e-3)


def test_a_restart_begins_a_new_stream(table: RobotTable) -> None:
    loop = ControlLoop(table)
    checks = {"stamp_check": "refuse"}
    assert moving(loop, **checks) <= 0 and moving(loop, **checks) == Refusal.suspect_stamp  # type: ignore[attr-defined]
    loop.restart()
    assert moving(loop, **checks) <= 0 and loop.number("finding") == 0


# --- Robots -----------------------------------------------------------------------------


def with_tools(count: int) -> eom.Robot:
    robot = eom.load_robot("planar_2r")
    return replace(robot, tools=tuple(replace(robot.tools[0], name=f"tool_{k}") for k in range(count)))


def with_joints(count: int) -> eom.Robot:
    """A comb: joints that move one link each, whose code is short."""
    joint = eom.load_robot("planar_2r").joints[0]
    joints = tuple(replace(joint, name=f"joint_{k}", parent=-1) for k in range(count))
    return replace(eom.load_robot("planar_2r"), joints=joints, tools=())


def test_robots_of_each_size_have_the_bits_of_the_reference() -> None:
    """The fewer joints and tools, the smaller is the loop: each cycle computes all places of its size."""
    sizes = []
    for robot in (with_joints(4), with_joints(5), with_tools(2), with_tools(3), with_joints(33)):
        arm = eom.ElasticArm(robot)
        loop, evaluator, rng = ControlLoop(RobotTable(arm)), SetpointEvaluator(arm), np.random.default_rng(robot.n)
        sizes.append(loop.size)
        loop.configure(safety="permissive")
        for k in range(1, 4):
            state, wrench = rng.normal(size=(5, robot.n)), rng.normal(size=(3, *robot.wrench_shape))
            loop.rest()
            for name, values in zip((*STATE_NAMES, "W", "Wd", "Wdd"), (*state, *wrench), strict=True):
                loop.given[name][:] = values.ravel()
            loop.refer(k)
            assert loop.update(k * MS) <= 0
            expected = evaluator.command(evaluator.own_order, state, tuple(wrench) if robot.tools else ())
            assert rows(loop.command, EFFORT_NAMES).tobytes() == expected.efforts.tobytes(), robot.n
    assert sizes == sorted(set(sizes))


def test_a_robot_beyond_the_largest_size_is_refused_with_the_sizes() -> None:
    for sizes in ((65, 65, 1), (2, 129, 1), (2, 2, 17)):
        of = library().robot_make(*sizes)
        assert library().loop_make(of) is None
        library().robot_free(of)
    reason = r"^a control loop is for at most \(64, 128, 16\) joints, motors and tools, not \(2, 2, 17\)$"
    with pytest.raises(KernelError, match=reason):
        RobotTable(eom.ElasticArm(with_tools(17)))


# --- Trajectories -----------------------------------------------------------------------


def test_what_cannot_be_sent_is_refused(table: RobotTable) -> None:
    loop = ControlLoop(table)
    moving(loop)
    short = through([0.0, 1.0], [[0.1, 0.1], [0.2, 0.3]])
    loop.send_trajectory(short, MS - 10**10)
    assert loop.plan(MS, 0.001) == Refusal.ended  # type: ignore[attr-defined]
    assert loop.plan(2 * MS, 0.001) is None
    with pytest.raises(StateError, match=r"increase.*0.0001"):
        loop.send_trajectory(Spline([0.0, 1e-6], np.zeros((5, 2, 2))), MS)


def test_an_arm_with_complete_rotors_has_no_moving_base() -> None:
    arm = eom.ElasticArm(replace(eom.load_robot("sea_planar_2r"), rotor_model="complete", moving_base=True))
    of = RobotTable(arm)
    loop = ControlLoop(of)
    for _ in range(2):
        loop.rest(on_base=True)
        loop.given["f"][2] = 9.81
        loop.refer(MS)
        assert loop.update(MS) == Refusal.moving_base  # type: ignore[attr-defined]
        of.prepare_payload()


# --- What is built ----------------------------------------------------------------------

STALE = 'const char *eom_loop_digest(void) { return "of other sources"; }\n'


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """An empty cache, and an empty folder in place of that which has the library; none is loaded."""
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(eom, "__path__", [str(tmp_path)])
    library.cache_clear()
    yield monkeypatch
    library.cache_clear()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, r"the control loop is not built; install g\+\+ .*, and run make build in a "),
        ("", r"the control loop cannot be loaded: .*libeom_loop.so: file too short; run make build in a clone, "),
        (STALE, r"/.*/libeom_loop.so is not built from the sources in /.*/control/eom: run make build in a clone, "),
        ("int other;\n", r"the control loop cannot be loaded: .*undefined symbol: eom_loop_digest; run make build "),
    ],
    ids=["none", "no library", "other sources", "another library"],
)
def test_what_the_loop_needs_is_said(
    no_library: pytest.MonkeyPatch, tmp_path: Path, source: str | None, reason: str
) -> None:
    """No compiler is called."""
    if source:
        (tmp_path / "other.c").write_text(source)
        run_compiler(["cc", "-shared", "-fPIC", str(tmp_path / "other.c")], tmp_path / NAME)
    elif source is not None:
        (tmp_path / NAME).touch()
    no_library.setenv("CXX", "/nonexistent")
    with pytest.raises(KernelError, match=f"^{reason}"):
        RobotTable(ARM)
    with pytest.raises(KernelError, match=f"^{reason}"):
        OnlineTrajectory(eom.ElasticArm(eom.load_robot("panda")), 1e-3)


LINKER = Path("/lib64/ld-linux-x86-64.so.2")


def levels_of_the_linker() -> list[str]:
    """Levels of x86-64 whose folders the dynamic linker searches; skips where it does not say so."""
    if not LINKER.exists():
        pytest.skip("another processor")
    told = subprocess.run([LINKER, "--help"], check=True, capture_output=True, text=True).stdout
    if "glibc-hwcaps" not in told:
        pytest.skip("a dynamic linker without such folders")
    return re.findall(r"^  (x86-64-v[34]) \(supported, searched\)", told, re.MULTILINE)


def test_python_and_the_dynamic_linker_load_the_same_build(no_library: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So node and controller do; without that of the highest level, the next one."""
    levels = levels_of_the_linker()
    built = next(path for folder in BUILT if (path := Path(folder, NAME)).exists())
    paths = [tmp_path / f"glibc-hwcaps/{level}" / NAME for level in levels] + [tmp_path / NAME]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built, path)
    host = tmp_path / "host"
    host.with_suffix(".c").write_text("char *eom_loop_digest(void);\nint main(void) { return !eom_loop_digest(); }\n")
    run_compiler(["cc", f"{host}.c", f"-L{tmp_path}", "-leom_loop"], host)
    path_of_libraries = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    for path in paths:
        library.cache_clear()
        assert library()._name == str(path)
        by_linker = subprocess.run([LINKER, "--list", host], env=path_of_libraries, capture_output=True, text=True)
        assert f"{NAME} => {path} " in by_linker.stdout
        path.unlink()


def test_levels_of_processors_have_all_flags() -> None:
    v4, v3 = LEVELS.values()
    assert folders_for(v3 | v4) == ["glibc-hwcaps/x86-64-v4", "glibc-hwcaps/x86-64-v3"]
    assert folders_for(v3 | v4 - {"avx512vl"}) == ["glibc-hwcaps/x86-64-v3"]
    assert folders_for(v3 - {"fma"} | v4) == folders_for(set()) == []


def test_the_digest_of_the_sources_has_every_byte_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the numbers of Python that they are filled in with."""
    before, source = headers.loop_digest(), headers.source
    for name in ("loop.cpp", "gate.hpp"):
        with monkeypatch.context() as patch:
            patch.setattr(headers, "source", lambda x, name=name: source(x) + "\n" * (x == name))
            patch.setattr(headers, "loop_headers", headers.loop_headers.__wrapped__)
            assert headers.loop_digest() != before
    with monkeypatch.context() as patch:
        patch.setitem(settings.CONSTANTS, "ELSEWHERE", 0.06)
        patch.setattr(headers, "loop_headers", headers.loop_headers.__wrapped__)
        assert headers.loop_digest() != before
    assert headers.loop_digest() == before


def test_an_arm_that_is_not_compiled_has_no_loop(no_library: pytest.MonkeyPatch) -> None:
    """On request, or since there is no C compiler, which is said."""
    with pytest.raises(KernelError, match="backend"):
        RobotTable(eom.ElasticArm(eom.load_robot("planar_2r"), backend="numpy"))
    no_library.setenv("CC", "/nonexistent")
    with pytest.warns(KernelWarning, match="no C compiler found"):
        arm = eom.ElasticArm(eom.load_robot("planar_pr"))
    with pytest.raises(KernelError, match=r"\(CC=/nonexistent\).*install.*/"):
        RobotTable(arm)
