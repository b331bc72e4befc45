# SPDX-License-Identifier: Apache-2.0
"""Cache of compiled code: no damaged, foreign or outdated entry is loaded; failed builds leave nothing behind."""

import contextlib
import dataclasses
import errno
import multiprocessing
import os
import shutil
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import fixed_case
from differences import deviation

from eom_dynamics import Dynamics, Robot, equations_of_motion
from eom_dynamics.actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from eom_dynamics.actuators.springs import RIGID, CoupledSpring, LinearSpring
from eom_dynamics.codegen import compiler, native, recipe
from eom_dynamics.codegen.cache import cache_directory, cached
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.exceptions import KernelError, KernelWarning
from eom_dynamics.robot import Frame, Joint, Mimic

CASE = fixed_case("planar_2r", 4)
KEY = "0123abcd"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("EOM_DYNAMICS_CACHE", str(folder))
    monkeypatch.delenv("CC", raising=False)
    native.extension.cache_clear()
    return folder


def assert_right(dynamics: Dynamics) -> None:
    expected = equations_of_motion(CASE.robot, *CASE.motion[:4]).efforts(CASE.motion[4])
    for effort, desired in zip(dynamics.inverse_dynamics(*CASE.motion), expected, strict=True):
        assert deviation(effort, desired) < 1e-13


class Build:
    def __init__(self, content: bytes = b"compiled") -> None:
        self.content, self.count = content, 0

    def __call__(self, path: Path) -> None:
        self.count += 1
        path.write_bytes(self.content)


def failing(error: BaseException) -> Callable[[Path], None]:
    """A build that writes a part, and raises an error."""

    def build(path: Path) -> None:
        path.write_bytes(b"half of")
        raise error

    return build


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def entry(key: str, build: Callable[[Path], None]) -> Path:
    cached(key, build)
    return cache_directory() / f"{key}.so"


def has_ended(process: int) -> bool:
    """True if a killed process ends; a zombie has ended."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


class TestEntries:
    def test_an_entry_that_another_process_has_just_added_is_replaced_by_a_whole_one(self, folder: Path) -> None:
        def build(path: Path) -> None:
            entry(KEY, Build())
            path.write_bytes(b"compiled")

        assert cached(KEY, build) == cached(KEY, Build()) == b"compiled"
        assert entries(folder) == [f"{KEY}.so"]

    @pytest.mark.parametrize(
        "damage",
        [lambda data: b"", lambda data: data[:-1], lambda data: bytes([data[0] ^ 1]) + data[1:]],
        ids=["empty", "truncated", "flipped"],
    )
    def test_damaged_entries_are_rebuilt(self, folder: Path, damage: Callable[[bytes], bytes]) -> None:
        path = entry(KEY, Build())
        path.write_bytes(damage(path.read_bytes()))
        assert cached(KEY, Build(b"compiled again")) == b"compiled again"
        assert cached(KEY, Build()) == b"compiled again"
        assert len(entries(folder)) == 1

    def test_without_a_compiler_the_newest_sound_entry_of_any_is_read(self, folder: Path) -> None:
        for k, name in enumerate(("old", "new", "damaged")):
            os.utime(entry(f"{KEY}-{name}", Build(name.encode())), (k, k))
        (folder / f"{KEY}-damaged.so").write_bytes(b"damaged")
        assert cached(f"{KEY}-*", Build()) == b"new"
        with pytest.raises(KernelError, match=r"^none$"):
            cached(f"{KEY}0-*", failing(KernelError("none")))
        (path := entry(f"{KEY}0-cut", Build())).write_bytes(b"")
        with pytest.raises(KernelError, match=rf"^none; {path} is damaged, or not a file of this user$"):
            cached(f"{KEY}0-*", failing(KernelError("none")))

    def test_entry_of_another_key_is_rebuilt(self, folder: Path) -> None:
        """Kernel of another robot, under the name of this robot's kernel."""
        entry(KEY + "0", Build(b"another robot")).rename(folder / f"{KEY}.so")
        assert cached(KEY, Build()) == b"compiled"
        assert entries(folder) == [f"{KEY}.so"]

    @pytest.mark.parametrize(
        "make", [os.mkfifo, os.mkdir, *(lambda path, to=to: os.symlink(to, path) for to in ("/dev/zero", "/nowhere"))]
    )
    def test_entries_that_are_no_files_are_not_read(self, folder: Path, make: Callable[[Path], None]) -> None:
        path = entry(KEY, Build())
        path.unlink()
        make(path)
        with contextlib.suppress(OSError):  # a folder remains at the path of the file
            assert cached(KEY, Build()) == b"compiled"

    def test_a_folder_that_is_swapped_is_not_loaded_from(self, folder: Path, tmp_path: Path) -> None:
        def build(path: Path) -> None:
            folder.rename(tmp_path / "aside")
            folder.mkdir()
            path.write_bytes(b"compiled")

        assert cached(KEY, build) == b"compiled" and not list(folder.iterdir())
        assert (tmp_path / "aside" / f"{KEY}.so").exists()

    def test_only_the_user_has_access(self, folder: Path) -> None:
        previous = os.umask(0)
        try:
            path = entry(KEY, Build())
        finally:
            os.umask(previous)
        assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)

    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
    def test_folder_that_other_users_can_write_to(self, folder: Path, mode: int) -> None:
        folder.mkdir()
        folder.chmod(mode)
        with pytest.raises(PermissionError, match="chmod"):
            entry(KEY, Build())

    def test_folder_of_another_user(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        entry(KEY, Build())
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        with pytest.raises(PermissionError, match=r"belongs.*EOM_DYNAMICS_CACHE"):
            entry(KEY, Build())

    def test_read_only_folder(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        entry(KEY, Build())
        monkeypatch.setattr("tempfile.TemporaryDirectory", _read_only)
        assert cached(KEY, Build(b"another")) == b"compiled"
        with pytest.raises(OSError, match="Read-only"):
            entry(KEY + "0", Build())

    @pytest.mark.parametrize(
        "error", [OSError(errno.ENOSPC, "No space left"), KernelError("failed"), KeyboardInterrupt()]
    )
    def test_failed_builds_leave_nothing_behind(self, folder: Path, error: BaseException) -> None:
        with pytest.raises(type(error)):
            entry(KEY, failing(error))
        assert entries(folder) == []

    def test_default_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("EOM_DYNAMICS_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache_directory() == tmp_path / "eom_dynamics"
        for ignored in ("", "relative"):  # as the XDG Base Directory Specification says
            monkeypatch.setenv("XDG_CACHE_HOME", ignored)
            assert cache_directory() == Path.home() / ".cache" / "eom_dynamics"
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("EOM_DYNAMICS_CACHE", "here")
        assert cache_directory() == tmp_path / "here"


def _read_only(*arguments: Any, **keywords: Any) -> Any:
    raise OSError(errno.EROFS, "Read-only file system")


CHANGES: dict[type, dict[str, Any]] = {
    Joint: {
        "screw": np.array([0, 1.0, 0, 0, 0, 0]),
        "reference_pose": np.diag([-1.0, -1.0, 1.0, 1.0]),
        "parent": -1,
        "mass": 3.0,
        "center_of_mass": np.array([0.1, 0.2, 0.3]),
        "inertia_about_origin": np.eye(3),
        "mimic": Mimic(0, 1.0),
        "damping": 0.4,
        "friction": 0.4,
        "constant_effort": 0.4,
        "parallel_spring": ParallelSpring(SignedLinearLaw(7.0)),
        "spring": LinearSpring(7.0),
        "rotor_inertia": 0.5,
    },
    Robot: {
        "gravity": np.zeros(3),
        "tools": (Frame("another", 0, np.eye(4)),),
        "joints": CASE.robot.joints[:1],
        "joint_friction": False,
        "joint_rotors": False,
        "coupled_stiffness": ((0, 1), CoupledSpring([[5.0, 1.0], [1.0, 3.0]])),
    },
}
"""Another value of each property that affects joint efforts."""

WITHOUT_EFFECT: dict[type, set[str]] = {
    Joint: {"name", "limits", "gear_ratio", "actuator", "drive", "effort_spread", "rotor_mount"},
    Robot: {
        *("name", "frames", "merged", "assumed", "transmission", "rotor_model", "uncertainty", "implausible"),
        *("command_period", "drive_delay", "drive_interpolation", "drive_feedback_delay", "compensated_by_robot"),
        "moving_base",
        "base",  # of a floating base, a detail of its programs
    },
}


class TestKey:
    def key(self, robot: Robot, monkeypatch: pytest.MonkeyPatch) -> str:
        keys = []

        def record(key: str, build: Callable[[Path], None]) -> None:
            keys.append(key)
            raise OSError

        with monkeypatch.context() as patch:
            patch.setattr(compiler, "loadable", record)
            with pytest.raises(KernelError):
                native.NativeKernel(robot, PROGRAMS["effort"])
        return keys[0]

    @pytest.mark.parametrize("kind", [Robot, Joint])
    def test_depends_on_all_properties_of_a_robot_but_those_without_effect_on_efforts(
        self, kind: type[Robot | Joint], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        changes, names = CHANGES[kind], {field.name for field in dataclasses.fields(kind)}
        assert names == {*changes, *WITHOUT_EFFECT[kind]}, (
            f"{names ^ {*changes, *WITHOUT_EFFECT[kind]}}: a property that changes joint efforts belongs into "
            "_robot_fingerprint of codegen/recipe.py and into CHANGES, or stale kernels are loaded; others into "
            "WITHOUT_EFFECT"
        )
        joints = tuple(dataclasses.replace(joint, rotor_inertia=0.3, spring=RIGID) for joint in CASE.robot.joints)
        robot = dataclasses.replace(CASE.robot, joints=joints, joint_friction=True, joint_rotors=True)
        for name, value in changes.items():
            if kind is Robot:
                changed = dataclasses.replace(robot, **{name: value})
            else:
                changed = dataclasses.replace(
                    robot, joints=(joints[0], dataclasses.replace(joints[1], **{name: value}))
                )
            assert self.key(changed, monkeypatch) != self.key(robot, monkeypatch), name

    @pytest.mark.parametrize("change", [{"spring": LinearSpring(7.0)}, {"rotor_inertia": 0.5}, {"name": "another"}])
    def test_does_not_depend_on_properties_without_effect_on_the_dynamics(
        self, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        joints = tuple(dataclasses.replace(joint, **change) for joint in CASE.robot.joints)
        changed = dataclasses.replace(CASE.robot, name="another", joints=joints)
        assert self.key(changed, monkeypatch) == self.key(CASE.robot, monkeypatch)

    def test_depends_on_generator_compiler_processor_and_flags(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Flags of the environment are the last; a processor in them replaces this processor."""
        keys = [self.key(CASE.robot, monkeypatch)]
        changes: list[tuple[Any, str, Any]] = [
            (recipe, "generator_fingerprint", lambda: "another"),
            (compiler, "FLAGS", (*compiler.FLAGS, "-g")),
            (compiler, "target_processor", lambda: "another"),
            (compiler, "identity", lambda path: "another"),
            (compiler, "find_compiler", lambda: ["/bin/true", "-O3"]),
        ]
        for change in changes:
            monkeypatch.setattr(*change)
            keys.append(self.key(CASE.robot, monkeypatch))
        for flags in ("-O0 -g", "-march=x86-64-v3", "-march=x86-64-v2"):
            monkeypatch.setenv("EOM_DYNAMICS_CFLAGS", flags)
            keys.append(self.key(CASE.robot, monkeypatch))
        assert len(set(keys)) == len(keys)
        monkeypatch.setattr(compiler, "target_processor", lambda: "a third")
        assert self.key(CASE.robot, monkeypatch) == keys[-1]
        monkeypatch.setenv("EOM_DYNAMICS_CFLAGS", "-O0 -g")
        calls = []
        monkeypatch.setattr(
            compiler, "_run", lambda flags, _, output, *more: calls.append(flags) or output.write_bytes(b"")
        )
        with compiler.compiled(str, KEY):
            assert calls[0][-2:] == ["-O0", "-g"]

    def test_depends_on_each_source_of_the_generator(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        package = tmp_path / "eom_dynamics"
        package.mkdir()
        installed = Path(compiler.__file__).parents[1]
        for name in recipe._GENERATOR:
            (package / name).parent.mkdir(exist_ok=True)
            (shutil.copytree if (installed / name).is_dir() else shutil.copy)(installed / name, package / name)
        monkeypatch.setattr(recipe.resources, "files", lambda name: package)
        before = recipe.generator_fingerprint.__wrapped__()
        for name in ("jet.py", "actuators/friction.py", "recursion/links.py", "codegen/csrc/sincos.h.in"):
            text = (package / name).read_text()
            (package / name).write_text(text + "\n")
            assert recipe.generator_fingerprint.__wrapped__() != before, name
            (package / name).write_text(text)

    @pytest.mark.parametrize("command", [["{gcc}"], ["{ccache}", "gcc", "-g"], ["{link}"]])
    def test_depends_on_the_version_of_the_compiler(self, command: list[str], monkeypatch, tmp_path: Path) -> None:
        """Also of one behind ccache, by name, or by a link to ccache that is found before it."""
        for path in (gcc := tmp_path / "bin/gcc", ccache := tmp_path / "ccache", link := tmp_path / "links/gcc"):
            path.parent.mkdir(exist_ok=True)
            path.symlink_to(ccache) if path is link else path.write_text("one")
        monkeypatch.setenv("PATH", f"{link.parent}{os.pathsep}{gcc.parent}")
        given = [word.format(gcc=gcc, ccache=ccache, link=link) for word in command]
        before = compiler.identity(given)
        os.utime(gcc, (1, 1))
        assert compiler.identity(given) != before


class TestFallback:
    """Without a compiled kernel the results are the same, and a warning gives the reason."""

    def fallback(self, reason: str) -> Dynamics:
        with pytest.warns(KernelWarning, match=reason) as caught:
            dynamics = Dynamics(CASE.robot)
        assert [x.filename for x in caught] == [__file__]
        assert dynamics.backend == "numpy"
        assert_right(dynamics)
        return dynamics

    @pytest.fixture
    def cc(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
        def put(script: str) -> None:
            path = tmp_path / "cc"
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o700)
            monkeypatch.setenv("CC", str(path))

        return put

    @pytest.mark.parametrize(
        ("name", "value", "reason"),
        [
            ("PATH", "/nonexistent", r"no C compiler found \(cc, gcc, clang\); install gcc"),
            ("CC", "/nonexistent -m64", r"no C compiler found \(CC=/nonexistent\)"),
            ("CC", "/", r"no C compiler found \(CC=/\)"),
            ("CC", "gcc 'x", """CC="gcc 'x" is not a valid command: No closing quotation; correct or unset it"""),
        ],
    )
    def test_no_compiler(self, name: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(name, value)
        self.fallback(reason)

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ("echo 'kernel.c:1: error: no' >&2; exit 1", "cc failed: kernel.c:1: error: no"),
            ("printf '\\377\\376 rubbish' >&2; exit 3", "cc failed: .*rubbish"),
            ("exit 0", "cc failed: exit code 0"),
            ("kill -9 $$", "cc failed: exit code -9"),
            ('for last; do :; done; echo rubbish > "$last"', "cannot be loaded"),
        ],
        ids=["error", "no text", "no result", "killed", "rubbish"],
    )
    def test_compiler_that_fails(self, cc: Callable[[str], None], script: str, reason: str, folder: Path) -> None:
        cc(script)
        self.fallback(reason)
        assert not [name for name in entries(folder) if not name.endswith(".so")]

    def test_compiler_that_hangs(self, cc: Callable[[str], None], monkeypatch, tmp_path: Path) -> None:
        cc(f"sleep 600 & echo $! > {tmp_path}/pid; wait")
        monkeypatch.setattr(compiler, "_TIMEOUT_S", 0.5)
        self.fallback("did not finish within 0.5 s")
        assert has_ended(int((tmp_path / "pid").read_text()))

    def test_files_are_in_the_private_folder_whatever_the_one_for_temporary_files_is(
        self, folder: Path, cc: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In folders that others can write to, they exchange the compiler's output before it is read."""
        shared, told = tmp_path / "shared", tmp_path / "told"
        shared.mkdir()
        shared.chmod(0o777)
        monkeypatch.setenv("TMPDIR", str(shared))
        monkeypatch.setattr("tempfile.tempdir", None)
        real = shutil.which("cc")
        cc(f'for last; do :; done\nrealpath "$TMPDIR" "$last" >> {told}\nls {shared} >> {told}\nexec {real} "$@"')
        assert_right(Dynamics(CASE.robot, backend="native"))
        paths = told.read_text().split()
        assert len(paths) >= 2 and all(path.startswith(f"{folder.resolve()}/scratch-") for path in paths)
        assert not list(folder.glob("scratch-*")) and not list(shared.iterdir())

    def test_parts_of_a_kernel_and_its_caller_are_compiled_at_the_same_time(
        self, folder: Path, cc: Callable[[str], None], tmp_path: Path
    ) -> None:
        """Each of three compilers waits until all have started."""
        started = tmp_path / "started"
        started.mkdir()
        native.extension.cache_clear()
        wait = f"for n in $(seq 500); do [ $(ls {started} | wc -l) -lt 3 ] || break; sleep 0.02; done; [ $n -lt 500 ]"
        cc(f'touch {started}/$$\n{wait} || exit 1\nexec {shutil.which("cc")} "$@"')
        assert_right(Dynamics(CASE.robot, backend="native"))
        assert len(list(started.iterdir())) == 4  # the last call links the parts

    def test_folder_that_cannot_be_created(self, folder: Path) -> None:
        folder.write_text("a file")
        self.fallback("compiled kernels cannot be cached: .*; set EOM_DYNAMICS_CACHE to a folder that you can write to")

    def test_no_fallback_for_a_requested_backend(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CC", "/nonexistent")
        with pytest.raises(KernelError, match="no C compiler"):
            Dynamics(CASE.robot, backend="native")

    def test_python_headers_are_missing(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
        with pytest.warns(KernelWarning, match="headers"):
            dynamics = Dynamics(CASE.robot)
        assert dynamics.backend == "native"
        assert_right(dynamics)


def compute(results: Any, environment: dict[str, str]) -> None:
    """Put the bytes of the efforts, or the error, into a queue."""
    os.setsid()
    os.environ |= environment
    warnings.simplefilter("error")
    try:
        efforts = Dynamics(CASE.robot, backend="native").inverse_dynamics(*CASE.motion)
        results.put(np.array(efforts).tobytes())
    except Exception as error:
        results.put(repr(error))


class TestProcesses:
    context = multiprocessing.get_context("fork")

    def start(self, results: Any, **environment: str) -> multiprocessing.process.BaseProcess:
        process = self.context.Process(target=compute, args=(results, environment))
        process.start()
        return process

    def test_empty_cache(self, folder: Path) -> None:
        results = self.context.SimpleQueue()
        processes = [self.start(results) for _ in range(2)]
        efforts = [results.get() for _ in processes]
        for process in processes:
            process.join()
        assert isinstance(efforts[0], bytes), efforts[0]
        assert len(set(efforts)) == 1
        # The kernel and its caller.
        assert len(entries(folder)) == 2 and all(name.endswith(".so") for name in entries(folder))

    def test_process_that_is_killed_while_it_compiles(self, folder: Path, tmp_path: Path) -> None:
        slow = tmp_path / "cc"
        slow.write_text('#!/bin/sh\nfor last; do :; done\necho half > "$last"\nexec sleep 60\n')
        slow.chmod(0o700)
        process = self.start(self.context.SimpleQueue(), CC=str(slow))
        while not list(folder.glob("scratch-*/built.so")):
            assert process.is_alive()
            time.sleep(0.01)
        cached(KEY, Build())
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
        assert entries(folder)[0] == f"{KEY}.so" and len(list(folder.glob("*.so"))) == 1
        assert_right(Dynamics(CASE.robot, backend="native"))
