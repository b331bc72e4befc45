# SPDX-License-Identifier: Apache-2.0
"""Texts of messages: hints about misspelt names at a bounded cost, and characters escaped for terminals."""

import difflib
from typing import Any

import pytest

from eom_dynamics import RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.robot.assembly import assemble
from eom_dynamics.robot.readers.urdf import description_from_urdf
from eom_dynamics.spelling import close_match, duplicates, hint, listed
from eom_dynamics.terminal import printable

NAMES = [f"joint_{i}" for i in range(20_000)]
ARM = (
    '<robot name="arm"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
    '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>EXTRA</link>'
    '<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>'
)


def test_hints() -> None:
    assert close_match("sholder", ["elbow", "shoulder"]) == "shoulder"
    assert close_match("wrist", ["elbow", "shoulder"]) is None
    assert close_match("record", ["replay", "report"]) is None
    assert close_match("a" * 101, ["a" * 101]) is None
    assert hint("sholder", ["elbow", "shoulder"]) == "did you mean shoulder?"
    assert hint("wrist", ["elbow", "shoulder", "elbow"]) == "known are elbow, shoulder"
    assert hint("wrist", []) == "none are defined"
    assert listed(NAMES).endswith("joint_59, …") and listed(["a", "b"]) == "a, b"
    assert duplicates("abcacbd") == ["a", "b", "c"]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counts: list[int] = []
    get_close_matches = difflib.get_close_matches

    def counting(word: str, possibilities: Any, *args: Any, **keywords: Any) -> list[str]:
        names = list(possibilities)
        counts.append(len(names))
        return get_close_matches(word, names, *args, **keywords)

    monkeypatch.setattr(difflib, "get_close_matches", counting)
    return counts


def test_many_unknown_tags_are_compared_with_few(compared: list[int]) -> None:
    tags = "".join(f"<inexact_{i}/>" for i in range(5_000))
    assert load_robot(ARM.replace("EXTRA", tags)).n == 1
    assert sum(compared) < 5_000


def test_many_unknown_entries_are_compared_with_few(compared: list[int]) -> None:
    with pytest.raises(RobotDescriptionError, match=r"robot\.name: missing"):
        robot_from_parameters(dict.fromkeys(NAMES, 1.0))
    assert sum(compared) < 5_000


def test_a_name_is_compared_with_few_of_many_known_names(compared: list[int]) -> None:
    joints = "".join(
        f'<link name="{name}"/><joint name="{name}" type="fixed"><parent link="base"/><child link="{name}"/></joint>'
        for name in NAMES[:4_000]
    )
    description = description_from_urdf(ARM.replace("EXTRA</link>", f"</link>{joints}"))
    with pytest.raises(RobotDescriptionError, match="no link 'joint'"):
        assemble(description, root="joint")
    assert sum(compared) < 5_000


class _Name(str):
    """A name that counts its comparisons."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        _Name.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_duplicates_are_found_in_linear_time() -> None:
    names = [_Name(name) for name in NAMES[:2_000]]
    for check in (lambda: robot_from_parameters({"name": "arm", "joint_names": names}), lambda: tips(names)):
        _Name.comparisons = 0
        with pytest.raises(RobotDescriptionError):
            check()
        assert _Name.comparisons < 20_000


def tips(names: list[_Name]) -> None:
    assemble(description_from_urdf(ARM.replace("EXTRA", "")), tip=names)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("an arm, 2 µs, τ", "an arm, 2 µs, τ"),
        ("\x1b[31mred\n\r", "\\x1b[31mred\\n\\r"),
        ("\u202eright to left", "\\u202eright to left"),
        ("no text: \udc80", "no text: \\udc80"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
