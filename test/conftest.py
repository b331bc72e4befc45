# SPDX-License-Identifier: Apache-2.0
"""Settings of every test run: signals, threads, caches, markers, and the list of skipped tests."""

import gc
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# Before NumPy is loaded: its threads slow down small matrices, and the processes of a test run compete for the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Kernels compile in half of the time, most of the time of a first run. OPTIMIZED lists files with normal optimization.
# Without any optimization, they would compile a fifth faster, and run two to three times as long, with the same bits.
# The Python process already has the libraries that they need: not linking them saves a sixth of the remaining time.
os.environ.setdefault("EOM_DYNAMICS_CFLAGS", "-Og -ffp-contract=off -nostdlib -fno-asynchronous-unwind-tables")

import pytest
from hypothesis import settings

# The PyPI package for NumPy 1 lacks names and joints that the comparisons need: their tests are skipped.
with suppress(PackageNotFoundError):
    if int(version("pin").partition(".")[0]) < 3:
        sys.modules["pinocchio"] = None  # type: ignore[assignment]

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("examples", "bench", "scripts")]

from compilation import forget_old

from eom_dynamics.codegen.recipe import generator_fingerprint
from eom_dynamics.exceptions import EXTRAS, MissingLibraryError

# Compiled code of tests and their processes stays out of the user's cache. Code of other generators is useless, and
# each load lists the whole folder, which takes 9 ms for ten thousand entries.
KERNELS = Path(__file__).parents[1] / ".pytest_cache" / "kernels"
os.environ.setdefault("EOM_DYNAMICS_CACHE", str(KERNELS / generator_fingerprint()))

# Equal examples in each run, and no deadline: each may take long on a busy machine.
settings.register_profile("eom_dynamics", derandomize=True, deadline=None, max_examples=15)
settings.load_profile("eom_dynamics")

TESTS = Path(__file__).parent
STARTS_ROS_PROCESSES = ("ros/", "launch/", "tools/cli/test_demo.py")

# Longest files, if no durations are known: a worker that starts one of them last would finish alone. Files that
# simulate an arm in real time are excluded, such as pages: without durations, others compile at the start.
LONG = (
    *("ros/test_engines.py", "ros/test_watchdog.py"),
    *("tools/test_pages.py", "export/", "tools/replay/", "tools/cli/"),
    *("identification/", "simulation/", "control/", "test_examples.py", "trajectory/test_minimum_time.py"),
)

# Longest test of make check, s, by the least of its durations so far, which are kept in the cache of pytest. Each test
# that uses a fixture of its file has its share of the time that this takes, whichever of them has to wait for it.
QUICK_S = 0.05
DURATIONS = "eom_dynamics/shared_durations"
durations: defaultdict[str, float] = defaultdict(float)
shares: defaultdict[str, float] = defaultdict(float)
waited: list[float] = []

# Tests of optimized code: equal bits of states and batches, and packaged robots.
OPTIMIZED = (
    *(f"codegen/test_{name}.py" for name in ("backends", "caller", "expressions", "functions")),
    "test_golden.py",
)

# Libraries for test files that are skipped without them.
OPTIONAL = {
    *("lz4", "mcap", "pinocchio", "sybil", "zstandard", "rclpy", "control_msgs", "control_msgs.action"),
    *("eom_dynamics.action", "eom_dynamics.msg", "eom_dynamics.srv"),
    *(module for modules in EXTRAS.values() for module in modules),
}

# Patterns of skip reasons; skipped subjects; remedy.
MISSING = (
    (r"playwright|browser", "pages in a browser", "apt install chromium"),
    (r"[Oo]ctave", "exported MATLAB code", "apt install octave"),
    (r"launch_ros|ros2bag", "launch files", "run colcon test in a ROS 2 installation"),
    (r"control_msgs", "goals of joint trajectories", "run colcon test in a ROS 2 installation"),
    (r"CUDA device|nvcc", "exported CUDA code", "an NVIDIA GPU and the CUDA toolkit"),
    (r"there is a device", "exported CUDA code without a GPU", "a machine without one"),
    (
        r"rclpy|interfaces are|eom_dynamics\.|_msgs|ament_|of CMake|_node",
        "nodes",
        "make test, or colcon test in a workspace",
    ),
    (r"real-time|setpriv", "real-time scheduling", "rtprio (docs/node_operation.md), and apt install util-linux"),
    (r"[Rr]oot may", "files without permission", "run as another user than root"),
    (r"recording of a Panda", "a recording of a Panda", "its bag in shared/bags next to this folder"),
    (r"compiler|sanitizer|CMake|no nm", "compiled exports", "apt install g++ cmake binutils"),
    (r"atheris", "fuzzing with coverage", "pip install '.[fuzz]'"),
    (r"ros2_control", "the ros2_control package", "a workspace with ros2_control and eom_dynamics, sourced"),
    (r"could not import|not installed|is missing|missing:|needs|reads", "", "pip install '.[dev]'"),
)


def pytest_configure(config: pytest.Config) -> None:
    """Undo settings of background jobs: ignored signals, which tests and their processes would inherit.

    And remove outdated kernels, and compiled exports that are no longer used.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # A handler is not inherited, and a run under nohup, with all its workers, survives the end of the session.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN or hasattr(config, "workerinput"):
        signal.signal(signal.SIGHUP, lambda *_: None)
    if not hasattr(config, "workerinput"):
        for outdated in set(KERNELS.glob("*")) - {KERNELS / generator_fingerprint()}:
            if outdated.is_dir():
                shutil.rmtree(outdated, ignore_errors=True)
            else:  # of a release before that folder had the name of its generator
                outdated.unlink(missing_ok=True)
        forget_old()


def without_ros(config: pytest.Config) -> bool:
    """True if tests that start ROS processes are deselected, as in make check."""
    return "not ros" in config.option.markexpr


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """A worker for each core that this process may use, and two more for tests of nodes, which mostly wait."""
    return len(os.sched_getaffinity(0)) + (0 if without_ros(config) else 2)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files without selected tests, to avoid their imports."""
    place = f"{collection_path.relative_to(TESTS).as_posix()}/" if collection_path.is_relative_to(TESTS) else ""
    return True if without_ros(config) and place.startswith(STARTS_ROS_PROCESSES) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark quick tests and tests that start ROS processes, and sort files by their durations.

    ROS processes mostly wait: their files come first, with another file, which needs a core, after each four.
    """

    @cache  # of a file for all of its tests: paths are slow
    def place(path: Path) -> str:
        return path.relative_to(TESTS).as_posix()

    def file(item: pytest.Item) -> str:
        return place(item.path)

    known, changed = config.cache.get(DURATIONS, {}) if hasattr(config, "cache") else {}, changed_places()
    took: defaultdict[str, float] = defaultdict(float)
    for item in items:
        took[file(item)] += known.get(item.nodeid, 0.0)
        if file(item).startswith(STARTS_ROS_PROCESSES):
            item.add_marker("ros")
        if known.get(item.nodeid, 0.0) <= QUICK_S or file(item).startswith(changed):
            item.add_marker("quick")
    files = sorted(took, key=lambda name: (-took[name], [not name.startswith(place) for place in LONG]))
    ros = {file(item) for item in items if item.get_closest_marker("ros")}
    rank = {name: k + k // 4 for k, name in enumerate(name for name in files if name in ros)}
    rank |= {name: 5 * k + 4 for k, name in enumerate(name for name in files if name not in ros)}
    items.sort(key=lambda item: rank[file(item)])


def changed_places() -> tuple[str, ...]:
    """Prefixes of test files that changed since the last commit, or whose part of the package changed."""
    try:
        found = subprocess.run(["git", "status", "--porcelain"], cwd=TESTS.parent, capture_output=True, text=True)
    except OSError:  # no git
        return ()
    files = [Path(line[3:].split(" -> ")[-1]) for line in found.stdout.splitlines()]
    parts = [file.relative_to("eom_dynamics") for file in files if file.parts[0] == "eom_dynamics"]
    return (
        *(file.relative_to("test").as_posix() for file in files if file.parts[0] == "test"),
        *(f"{part.parent}/" if part.parent.parts else f"test_{part.stem}" for part in parts),
    )


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, object, object]:
    """Share the time of a fixture among the tests that use it."""
    begin = time.perf_counter()
    try:
        return (yield)
    finally:
        if fixturedef.scope in ("class", "module"):
            waited.append(time.perf_counter() - begin)
            name, place = fixturedef.argname, f"{request.node.nodeid}::"
            near = [item for item in request.session.items if item.nodeid.startswith(place)]
            users = [item for item in near if name in item.fixturenames and index(item, name) == request.param_index]
            for item in users:
                shares[item.nodeid] += waited[-1] / len(users)


def index(item: Any, name: str) -> int:
    """Index of a fixture's parameter in a test; 0 without a parameter."""
    return item.callspec.indices.get(name, 0) if hasattr(item, "callspec") else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Record the time that a part of a test takes because of shared fixtures, minus fixtures made in it."""
    report = yield
    report.shared = (shares[item.nodeid] if call.when == "setup" else 0.0) - sum(waited)
    waited.clear()
    return report


def pytest_runtest_logreport(report: Any) -> None:
    """Add up the durations of the parts of a test; skipped and failed parts do not count."""
    if not report.passed:
        durations[report.nodeid] = math.inf
    durations[report.nodeid] += report.duration + getattr(report, "shared", 0.0)  # which a worker that crashed lacks


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep the durations for the next run: a test that had to compile or to wait once may be a quick one.

    A run with only skipped files has not failed: colcon would report it for launch files without launch_ros.
    """
    config = session.config
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    stats = reporter.stats if reporter else {}
    if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and "skipped" in stats and "deselected" not in stats:
        session.exitstatus = pytest.ExitCode.OK
    if hasattr(config, "cache") and not hasattr(config, "workerinput"):
        known = config.cache.get(DURATIONS, {})
        least = {test: min(took, known.get(test, took)) for test, took in durations.items() if took < math.inf}
        config.cache.set(DURATIONS, known | least)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Skip files that import an optional library that is not installed."""
    report = yield
    error = report.call.excinfo and report.call.excinfo.value.__cause__
    if isinstance(error, MissingLibraryError) or (isinstance(error, ImportError) and error.name in OPTIONAL):
        reason = f"{error.name} is not installed" if error.name else str(error)
        report.outcome, report.longrepr = "skipped", (report.nodeid, 1, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude imported objects from garbage collection, because it took a tenth of the time of a run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(50_000, 20, 20)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List skipped subjects, with remedies."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        for pattern, subject, remedy in MISSING:
            if re.search(pattern, reason):
                reason = f"{subject or reason}: {remedy}"
                break
        counts[reason] += 1
    if counts:
        terminalreporter.section("not tested here: number of skips, subject, and requirement")
    for reason, count in sorted(counts.items()):
        terminalreporter.line(f"{count:5}  {reason}")


@pytest.fixture(scope="module", autouse=True)
def optimization(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.path.relative_to(TESTS).as_posix().startswith(OPTIMIZED):
            patch.delenv("EOM_DYNAMICS_CFLAGS")
        yield
