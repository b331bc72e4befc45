# SPDX-License-Identifier: Apache-2.0
"""Public surface of the package: names, docs, doctests, imports, licenses, extras, and what rosdep installs."""

import ast
import configparser
import doctest
import importlib
import re
import runpy
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from paths import DOCS, ROOT

import eom_dynamics as eom
from eom_dynamics.control.library import LEVELS
from eom_dynamics.exceptions import EXTRAS, MissingLibraryError, require


def test_each_public_name_is_there_and_no_other() -> None:
    for name in eom.__all__:
        assert getattr(eom, name) is not None
    assert set(eom.__all__) <= set(dir(eom)) and "import_module" not in dir(eom)
    with pytest.raises(AttributeError, match=r"module.*'eom_dynamics'.*'trajectories'"):
        _ = eom.trajectories
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("from eom_dynamics import *", {})


def test_what_few_programs_need_is_imported_at_first_use() -> None:
    """Subpackages with SciPy or SymPy, which take longer than the rest; readers of YAML, and writers."""
    code = (
        "import sys, eom_dynamics as eom\n"
        "assert not {'numpy', 'eom_dynamics.robot'} & set(sys.modules)\n"
        "eom.Robot, eom.ElasticArm, eom.Dynamics, eom.Kinematics, eom.equations_of_motion, eom.FloatingBase\n"
        "eom.robot.Frame, eom.elastic.DriveCommand, eom.exceptions.KernelError\n"
        "lazy = ('trajectory', 'simulation', 'loops', 'lagrange')\n"
        "assert not any(f'eom_dynamics.{name}' in sys.modules for name in lazy)\n"
        "assert not {'scipy', 'sympy', 'yaml', 'difflib', 'xml.etree'} & set(sys.modules)\n"
        "import eom_dynamics.control.setpoint_loop, eom_dynamics.control.observed_payload\n"
        "assert 'scipy' not in sys.modules\n"
        "eom.trajectory.through, eom.simulation.simulate, eom.loops.ClosedLoopArm, eom.kinematics.body_poses\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_each_source_file_names_its_license() -> None:
    folders = ("bench", "config", "eom_dynamics", "examples", "launch", "msg", "scripts", "srv", "test")
    kinds = {".py", ".msg", ".srv", ".yaml"}
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in kinds]
    assert {file.suffix for file in files} == kinds
    for file in (*files, *(ROOT / name for name in ("CMakeLists.txt", "Makefile", "package.xml", "setup.py"))):
        assert "SPDX-License-Identifier: Apache-2.0" in file.read_text(encoding="utf-8")[:400], file


PACKAGE = ROOT / "eom_dynamics"


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_by(path: Path) -> set[str]:
    """Absolute names that a file imports, wherever it does, and if only for types: of modules, or in them."""
    names, package = set(), path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            names |= {".".join([*start, *filter(None, [node.module]), alias.name]) for alias in node.names}
    return names


ROOMS = (
    *("exceptions", "filling", "vectors", "spelling", "terminal", "arrays", "correlation", "arguments"),
    *("jet", "elementary", "lie", "jet_functions", "actuators", "robot", "recursion", "codegen", "kinematics"),
    *("equations", "lagrange", "constraints", "floating_base", "dynamics", "contacts", "loops", "elastic"),
    *("trajectory", "simulation", "identification", "control", "export", "recordings"),
    *("ros", "tools", "__main__"),
)


# What the real-time path does without, and the node that simulates a robot, which is not part of it.
OFFLINE, SIMULATES = {"identification", "simulation"}, "eom_dynamics.ros.simulated_robot_node"


def test_the_files_of_the_architecture_exist() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([a-z0-9_/]+\.(?:py|hpp))`", text))
    files = [
        f"/{path.relative_to(ROOT)}"
        for folder in (PACKAGE, ROOT / "test", ROOT / "examples", ROOT / "scripts")
        for path in folder.rglob("*.[hp]*")
    ]
    assert len(names) > 40
    assert [x for x in sorted(names) if not any(file.endswith(f"/{x}") for file in files)] == []


def test_imports_go_one_way() -> None:
    """In no circle, of types either; each room from those before it; only nodes rclpy, as processes for tools."""
    files = {path.relative_to(ROOT).with_suffix(""): path for path in PACKAGE.rglob("*.py")}
    modules = {".".join(name.parts).removesuffix(".__init__"): path for name, path in files.items()}
    graph = {
        module: {name if name in modules else name.rpartition(".")[0] for name in imported_by(path)}
        for module, path in modules.items()
    }
    TopologicalSorter(graph).prepare()
    places = {room: place for place, room in enumerate(ROOMS)}
    rooms = {module: module.split(".")[1] for module in graph if module != "eom_dynamics"}
    assert set(rooms.values()) == set(ROOMS)
    for module, room in rooms.items():
        others = {name.split(".")[1] for name in graph[module] if name.startswith("eom_dynamics.")}
        later = {other for other in others if places.get(other, -1) > places[room]}
        assert not later and not (room == "tools" and "ros" in others), (module, later)
        assert room == "ros" or "rclpy" not in {name.partition(".")[0] for name in imported_by(modules[module])}
    reached = [module for module, room in rooms.items() if room in {"control", "ros"} and module != SIMULATES]
    for module in reached:
        assert rooms[module] not in OFFLINE, f"the real-time path imports {module}"
        reached += (graph[module] & rooms.keys()) - {*reached}


# Of every command: its arguments and what it runs; and of every program, and of node processes.
OF_EACH = {"add_arguments", "run", "main"}


def test_no_two_public_classes_or_functions_have_the_same_name() -> None:
    places = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = tree_of(path)
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        for node in (*classes, *functions):
            if not node.name.startswith("_") and node.name not in OF_EACH:
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_environment_of_make_has_the_launch_files() -> None:
    shared = Path(sys.prefix) / "share" / "eom_dynamics"
    if not shared.exists():
        pytest.skip("the interfaces are not built")
    files = {path.name for path in (ROOT / "launch").glob("*.launch.py")}
    assert files <= {path.name for path in (shared / "launch").iterdir()}


DISTRIBUTIONS = {"distributed": "dask[distributed]"}
"""Names of distributions that differ from the name of the module."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_installs_its_modules(extra: str) -> None:
    setup = configparser.ConfigParser(interpolation=configparser.BasicInterpolation())
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = setup["options.extras_require"][extra].splitlines()
    installed = {re.split(r"[<>=!~ ]", line.strip())[0] for line in lines}
    assert {DISTRIBUTIONS.get(module, module) for module in EXTRAS[extra]} <= installed


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingLibraryError, match=r"pyarrow.*'\.\[parquet\]'"):
        require("parquet")


def test_the_loop_of_a_wheel_is_compiled_as_in_a_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any processor and for levels of x86-64; notes are left out, which only processors other than x86 have."""
    monkeypatch.setattr(pytest.importorskip("setuptools"), "setup", lambda **_: None)
    wheel = runpy.run_path(str(ROOT / "setup.py"))
    lists = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    (always,) = re.findall(r"target_compile_options\(\$\{target\} PRIVATE \$\{ARGN\} (.+)\)", lists)
    assert {*always.split()} <= {*wheel["FLAGS"]}
    in_place, anywhere = (options.split() for options in re.findall(r'add_loop\(eom_loop "" (.+)\)', lists))
    levels = re.findall(r"add_loop_of_level\((\S+) (.+)\)", lists)
    of_levels = {f"glibc-hwcaps/{level}": (f"-march={level}", *options.split()) for level, options in levels}
    assert wheel["BUILDS"] == {"": (*anywhere,), **of_levels} and "-march=native" in in_place
    assert {*of_levels} == {f"glibc-hwcaps/{level}" for level in LEVELS}


MODULES = (
    *("contacts.contact_dynamics", "floating_base", "kinematics.compiled", "kinematics.inverse", "kinematics.motion"),
    *("kinematics.textbook", "lagrange.lagrangian", "lie.exponential", "lie.poses"),
    *("robot.solids", "trajectory.poses"),
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"eom_dynamics.{name}"))
    assert found.attempted and not found.failed


# --- What rosdep installs, and what is left to pip --------------------------------------

MANIFEST = ElementTree.parse(ROOT / "package.xml")
INSTALLED = {entry.text for kind in ("depend", "exec_depend") for entry in MANIFEST.iter(kind)}

KEYS = {"numpy": "python3-numpy", "scipy": "python3-scipy", "yaml": "python3-yaml"}
"""Keys of rosdep by the names of modules that differ from them."""

OPTIONAL = {"mujoco", "robot_descriptions"}


def imported(folder: Path) -> Iterator[str]:
    """Top-level modules that the Python files of a folder import, without those of Python and of this package."""
    for path in folder.rglob("*.py"):
        names = {name.partition(".")[0] for name in imported_by(path)}
        yield from names - {"eom_dynamics", *sys.stdlib_module_names}


@pytest.mark.parametrize("folder", ["eom_dynamics/ros", "eom_dynamics/control", "eom_dynamics/robot", "launch"])
def test_rosdep_installs_what_nodes_and_launch_files_import(folder: str) -> None:
    needed = {KEYS.get(name, name) for name in imported(ROOT / folder)}
    assert needed
    # And what they run: ros2 launch, the player and recorder of replay.launch.py with its storage, and xacro.
    assert needed - OPTIONAL | {"ros2launch", "ros2bag", "rosbag2_storage_mcap", "xacro"} <= INSTALLED
    assert "g++-static" in INSTALLED  # gcc and g++ compile the code of robots
    assert MANIFEST.find("exec_depend[.='rclpy']").get("version_gte") == "7.1.4"  # the oldest with the events executor


def test_rosdep_installs_the_interfaces_of_tests() -> None:
    tested = {entry.text for entry in MANIFEST.iter("test_depend")}
    interfaces = {name for name in imported(ROOT / "test") if name.endswith(("_msgs", "_interfaces"))}
    # Without ros2_control, its tests skip; action_msgs is imported by its name in a text.
    needed = interfaces - {"controller_manager_msgs"} | {"action_msgs"}
    assert "builtin_interfaces" in needed and needed <= INSTALLED | tested


def test_the_manifest_is_valid() -> None:
    package = pytest.importorskip("catkin_pkg.package").parse_package(str(ROOT / "package.xml"))
    package.validate()
    (maintainer,) = package.maintainers
    assert (maintainer.name, maintainer.email.partition("@")[0]) == ("eom_dynamics maintainers", "maintainers")


@pytest.mark.parametrize("path", sorted([*ROOT.glob("msg/*.msg"), *ROOT.glob("srv/*.srv")]), ids=lambda path: path.name)
def test_fields_of_interfaces_have_their_comments_above(path: Path) -> None:
    """``ros2 interface show`` strips comments behind the fields of nested messages."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for k, line in enumerate(lines):
        field, hash_, _ = line.partition("#")
        assert not (field.strip() and hash_), f"{path.name}:{k + 1}: {line}"
        if field.strip() not in ("", "---", "std_msgs/Header header"):
            assert lines[k - 1].startswith("# "), f"{path.name}:{k + 1}: {line}: no comment above"
