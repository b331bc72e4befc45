# SPDX-License-Identifier: Apache-2.0
"""Every block of code and every command of the docs runs."""

import os
import re
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import CommandError, check
from pages import PATIENT, run_page
from paths import DOCS, ROOT
from stalls import stalls

import eom_dynamics
from eom_dynamics.control.settings import LONGEST_GAP
from eom_dynamics.exceptions import EXTRAS
from eom_dynamics.tools.cli.main import _parser

ELSEWHERE = {"architecture", "notation"}  # pages that test_new_kind.py and test_notation.py run, for their variables

PAGES = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("[!_]*.md")} - ELSEWHERE | {"README"}


def text_of(page: str) -> str:
    return ((ROOT if page == "README" else DOCS) / f"{page}.md").read_text(encoding="utf-8")


STARTS_NODES = [page for page in sorted(PAGES) if "\nrclpy.init()" in text_of(page)]
"""Pages that start nodes and call rclpy.init(), which a process may do only once: each has one of its own."""

PATIENCE = 240.0  # time that such a page may take, s: the longest identifies an arm of seven joints

NEEDS = {
    "elastic_joints": EXTRAS["replay"],
    "lagrange": ("sympy",),
    "learning": EXTRAS["replay"],
    "replay": (*EXTRAS["parquet"], *EXTRAS["replay"], *EXTRAS["report"]),
    "robots": ("mujoco", "xacro"),
    "tutorials/identify": ("matplotlib", "plotly", "rosbags"),
    "tutorials/mujoco": ("matplotlib", "mujoco"),
    "tutorials/swinging_tool": ("matplotlib", "mujoco"),
    "worked_examples": ("sympy",),
    **dict.fromkeys(STARTS_NODES, ("rclpy", "eom_dynamics.msg", "matplotlib")),
}
"""Modules without which a page cannot run."""

# Pages whose robots take longer to compile than all of their states.
UNCOMPILED = ("contacts", "floating_base", "worked_examples")


def missing(page: str) -> None:
    for module in NEEDS.get(page, ()):
        pytest.importorskip(module, reason=f"{module} is not installed")
    if "ctest " in text_of(page) and not shutil.which("ctest"):  # .venv has CMake without it
        pytest.skip("CMake of the system is missing")


@pytest.mark.parametrize("page", [page for page in sorted(PAGES.difference(STARTS_NODES)) if "reference/" not in page])
def test_page(page: str, tmp_path: Path, monkeypatch) -> None:
    missing(page)
    if page in UNCOMPILED:
        for name in ("Dynamics", "FloatingBase", "Kinematics"):
            monkeypatch.setattr(eom_dynamics, name, partial(getattr(eom_dynamics, name), backend="numpy"))
    run_page(page, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1200.0)
@pytest.mark.parametrize(
    "page",
    [
        x
        for x in sorted(PAGES.difference(STARTS_NODES))
        if any(f'skip: next "{reason}"' in text_of(x) for reason in PATIENT)
    ],
)
def test_page_with_blocks_that_take_minutes_or_never_end(page: str, tmp_path: Path) -> None:
    missing(page)
    run_page(page, tmp_path, patient=True)


WRONG = {
    "program": "cmaek --build build",
    "second command": "cd examples && make lnit",
    "variable of make": "make bench ARGS=--quick",
    "sub-command": "eom_dynamics inspects iiwa",
    "option": "eom_dynamics inspect iiwa --gain 5 --verbose",
    "value": "eom_dynamics codegen iiwa --language ada -o code",
    "script": "python examples/identfy.py",
    "module": "python -m eom_dynamics.ros.payer a.npz b.npz",
    "option of a module": "PYTHONPATH=examples python -m closing_the_loop.lockstep_player a.npz b.npz --rates 500",
    "executable": "ros2 run eom_dynamics planner_node",
    "parameter": "ros2 run eom_dynamics dynamics_node --ros-args -p stop_time:=0.3",
    "type of a parameter": "dynamics_node --ros-args -p setpoint_timeout:=long",
    "choice of a parameter": "ros2 param set /left/eom_dynamics_planning trajectory_limits slower",
    "node": "ros2 param list /eom_dynamic",
    "launch file": "ros2 launch eom_dynamics play.launch.py",
    "argument of a launch file": "ros2 launch eom_dynamics feedforward.launch.py robot:=a.yaml",
    "choice of an argument": "ros2 launch eom_dynamics feedforward.launch.py planning:=no",
    "topic": "ros2 topic echo /feedforwards",
    "type": "ros2 service call /eom_dynamics/set_payload eom_dynamics/srv/SetPayloads",
    "field": "ros2 topic pub --once /setpoint eom_dynamics/msg/JointTrajectorySetpoint '{positions: [0.1, 0]}'",
    "value of a field": "ros2 service call /set_payload eom_dynamics/srv/SetPayload '{payload: {inertia: 1}}'",
}
"""Commands with one mistake, by what is wrong; without it, they are those of the pages."""


@pytest.mark.parametrize("command", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_command_is_found(command: str) -> None:
    if "ros" in command:
        pytest.importorskip("eom_dynamics.msg", reason="eom_dynamics.msg is missing")
    with pytest.raises(CommandError):
        check(command)


# A program with options, or a command of eom_dynamics without its name.
INLINE = re.compile(r"`((?:eom_dynamics )?[a-z]\w*(?: [^`]*)? --?\w[^`]*|(?:eom_dynamics|make|ros2 launch) [^`]+)`")
FOREIGN = {"chrt", "docker", "fastdds", "kill", "mcap", "pip", "python", "rerun", "rosdep", "spawner", "taskset"}
"""Programs of others that pages name within a line."""


def inline_mistakes(text: str) -> list[str]:
    """Commands within lines of a page that cannot work; arguments that they need may be missing."""
    commands = next(iter(_parser(None)._subparsers._group_actions)).choices
    found = []
    for given in INLINE.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
        line = re.split(r" ?…| >", " ".join(given.split()))[0]
        words = line.removeprefix("eom_dynamics ").split()
        if command := commands.get(words[0]):
            flags = {word.partition("=")[0] for word in words if word.startswith("--")}
            found += [f"{given}: {flag}" for flag in flags - {*command._option_string_actions}]
        elif words[0] in ("make", "ros2"):
            try:
                check(line)
            except CommandError as error:
                found.append(f"{given}: {error}")
        elif words[0] not in FOREIGN and not words[0].isupper():
            found.append(f"{given}: no such command")
    return found


def test_inline_commands_have_their_options() -> None:
    wrong = ("`view --motion`", "`inspect --motion`", "`eom_dynamics show`", "`make tests`")
    assert [len(inline_mistakes(f"Type {text}.")) for text in wrong] == [1, 1, 1, 1]
    assert {
        page: mistakes for page in PAGES if "reference/" not in page if (mistakes := inline_mistakes(text_of(page)))
    } == {}


@pytest.mark.ros
@pytest.mark.timeout(PATIENCE + 60.0)
@pytest.mark.parametrize("page", STARTS_NODES)
def test_page_with_nodes(page: str, tmp_path: Path) -> None:
    missing(page)
    import domains
    from node_client import fork_server

    domains.claim_domain()
    with stalls(tmp_path / "stalls") as longest:
        with (tmp_path / "log").open("w") as log:
            process = fork_server().start("page_with_nodes", [page], tmp_path, log)
        run_with_nodes(process, tmp_path, longest)


def run_with_nodes(process: Any, tmp_path: Path, longest: Callable[[], float]) -> None:
    """Wait for a page; its nodes rightly refuse setpoints after a stall of the machine."""
    try:
        code, log = process.wait(PATIENCE), (tmp_path / "log").read_text()
        if code == 1 and "the player says above what the node has refused" in log and longest() > LONGEST_GAP / 1e9:
            pytest.skip(f"no real time: the machine stood still for {longest():.2g} s")
        lost = re.search(r"only \d+% of the joint states were recorded", log)
        if code == 1 and lost and (os.getloadavg()[0] > (os.cpu_count() or 1) or longest() > LONGEST_GAP / 1e9):
            pytest.skip(f"no real time: {lost[0]}")
        if code == 1 and "is not five times better" in log:
            # As the page says, on a busy machine: the file is gone where it is not five times better.
            gains = re.findall(r": ([\d.]+) N m by the given file, ([\d.]+) by the identified one", log)
            assert len(gains) == 7 and min(float(a) / float(b) for a, b in gains) < 5, log
            assert not [*tmp_path.rglob("my_arm_identified.yaml")]
            return
        assert code == 0, log
    finally:
        with suppress(ProcessLookupError):  # with its nodes, where it has failed
            os.killpg(process.pid, signal.SIGKILL)
