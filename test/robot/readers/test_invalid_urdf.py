# SPDX-License-Identifier: Apache-2.0
"""Invalid URDF: one kind of error that names the element and the rule, at little cost."""

import resource
from pathlib import Path

import pytest
from refusals import refusals

from eom_dynamics import RobotDescriptionError, load_robot

INERTIA = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
INERTIAL = f'<inertial><origin xyz="0.1 0 0" rpy="0 0 0"/><mass value="2"/>{INERTIA}</inertial>'
LINKS = f'<link name="base"/><link name="upper">{INERTIAL}</link><link name="lower">{INERTIAL}</link>'
SHOULDER = (
    '<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 1" rpy="0 0 0"/>'
    '<axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="2" effort="3"/><dynamics damping="0.1" friction="0.2"/>'
    "</joint>"
)
ELBOW = (
    '<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.5 0 0"/>'
    '<axis xyz="0 1 0"/></joint>'
)
GEAR = (
    '<transmission name="gear"><type>transmission_interface/SimpleTransmission</type><joint name="elbow"/>'
    '<actuator name="motor"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>'
)
GOOD = f'<robot name="arm">{LINKS}{SHOULDER}{ELBOW}{GEAR}</robot>'


def refusal(text: str) -> str:
    """Message of a refused URDF, without its source."""
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(text)
    message = str(error.value)
    assert message.startswith("robot_description: ")
    assert "\n" not in message
    return message.removeprefix("robot_description: ")


# Part of the valid URDF, its replacement, and part of the message.
CASES = [
    # the document
    (GOOD, "<?xml version='1.0'?>", "no element found"),
    ("</robot>", "", "not valid XML: no element found"),
    ("robot", "scene", "the root element must be <robot>, is <scene>"),
    ("</robot>", "<xacro:include/></robot>", "has xacro elements: expand it with xacro"),
    ("<robot name", "<!DOCTYPE robot><robot name", "document type declarations and entities are not"),
    # names
    ('<robot name="arm">', "<robot>", "attribute 'name' is missing"),
    ('<link name="lower">', '<link name="upper">', "link upper: the name is already used"),
    # the tree
    (LINKS, "", "has no <link>"),
    (SHOULDER + ELBOW, "", "3 roots (base, upper, lower)"),
    ('parent link="upper"', 'parent link="uper"', "elbow: parent link 'uper' does not exist"),
    ('parent link="upper"', 'parent link="lower"', "parent and child are the same link"),
    (
        "</robot>",
        '<joint name="third" type="fixed"><parent link="base"/><child link="lower"/></joint></robot>',
        "joint third: child link 'lower' is already the child of 'elbow'",
    ),
    ('parent link="base"', 'parent link="lower"', "upper, lower form a loop"),
    ('<parent link="upper"/>', "", "joint elbow: <parent> is missing"),
    ('type="revolute"', 'type="fixed"', "joints: at least one joint must move; all are fixed"),
    # joints
    ('"elbow" type="revolute"', '"elbow" type="ball"', "elbow: type must be one of revolute, continuous"),
    ('"0 1 0"', '"0 0 0"', "elbow: <axis>: xyz must not be zero"),
    ('"0 1 0"', '"0 1"', "elbow: <axis>: xyz must be three numbers, is '0 1'"),
    ('"0 1 0"', '"y axis up"', "xyz must be a number, is 'y'"),
    ('axis xyz="0 1 0"', 'axis xzy="0 1 0"', "<axis>: unknown attribute 'xzy'; known are xyz"),
    ('"0.5 0 0"', '"1e300 0 0"', "xyz must not exceed 1e+12 in SI units"),
    ('lower="-1"', 'lower="2"', "shoulder: <limit>: lower must not exceed upper, is 2 and 1"),
    ('velocity="2"', 'velocity="-2"', "<limit>: velocity must not be negative, is -2"),
    # mimic
    (
        'type="revolute"><parent link="upper"',
        'type="planar"><mimic joint="shoulder"/><parent link="upper"',
        "a planar joint has more than one joint variable",
    ),
    ('<axis xyz="0 1 0"/>', '<mimic joint="shoulder" ratio="2"/>', "unknown attribute 'ratio'"),
    ('<axis xyz="0 1 0"/>', '<mimic joint="elbow"/>', "joints mimic each other: elbow -> elbow"),
    (
        '<axis xyz="0 1 0"/></joint>',
        '<mimic joint="free"/></joint><link name="box"/><joint name="free" type="floating"><parent link="base"/>'
        '<child link="box"/></joint>',
        "joint elbow: mimic: its leader 'free' is a floating joint",
    ),
    # links
    ('<mass value="2"/>', "", "link upper: <inertial>: <mass> is missing"),
    (INERTIAL, INERTIAL + INERTIAL.replace('"2"', '"3"'), "link upper: <inertial>: must occur only once"),
    ("inertial>", "inertail>", "unknown <inertail>; did you mean <inertial>?"),
    # transmissions
    (">50<", ">0<", "line 1: transmission gear: the reduction must not be 0"),
    (">50<", ">fifty<", "<mechanicalReduction> must be a number, is 'fifty'"),
    (
        "</actuator>",
        "<motorInertia>-1</motorInertia></actuator>",
        "transmission gear: <motorInertia> must not be negative, is -1",
    ),
    (
        "</actuator>",
        '<drake:gear_ratio value="40"/></actuator>',
        "<mechanicalReduction> 50 (line 1) and <drake:gear_ratio> 40 (line 1) differ: remove one of them",
    ),
    (
        GEAR,
        GEAR + GEAR.replace('"gear"', '"other"'),
        "transmission other: joint 'elbow' already has transmission gear (line 1)",
    ),
]


@pytest.mark.parametrize(("old", "new", "reason"), CASES, ids=[row[-1] for row in CASES])
def test_invalid_urdf(old: str, new: str, reason: str) -> None:
    assert old in GOOD
    assert reason in refusal(GOOD.replace(old, new))


@pytest.mark.parametrize(
    ("factor", "count", "reason"),
    [
        (
            "10",
            400,
            "joint j13: mimic: multiplier must not exceed 1e+12 in SI units, is 10000000000000.0 over the chain",
        ),
        ("-0.1", 400, "joint j13: mimic: multiplier must be at least 1e-12, is 1e-13 over the chain j13, j12 … j0"),
        ("1e-13", 2, "joint j1: mimic: multiplier must be at least 1e-12, is 1e-13"),
    ],
)
def test_factors_of_a_mimic_chain_multiply_within_bounds(factor: str, count: int, reason: str) -> None:
    assert reason in refusal(many_joints(count, f'<mimic joint="j{{}}" multiplier="{factor}"/>'))


def test_joints_are_bounded() -> None:
    assert "joints: must be at most 5000, are 5001" in refusal(many_joints(5001, ""))


test_options_that_do_not_apply = refusals(
    RobotDescriptionError,
    ({"root": "bse"}, r"root: no link 'bse'; did you mean base\? known are base, upper, lower"),
    ({"tip": "hand"}, "tip: no link 'hand'; known are base, upper, lower"),
    ({"root": "upper", "tip": "base"}, "tip: 'base' is not below the root 'upper'"),
    ({"root": "lower"}, "joints: at least one joint must move"),
    ({"tools": ["lwer"]}, r"tools: no link or frame 'lwer'; did you mean lower\?"),
    ({"tools": "base"}, "tools: 'base' is fixed to the base, where a wrench has no effect"),
    ({"inertia_reference": "com"}, "inertia_reference is for parameter files"),
    ({"branches": "cut"}, "branches must be one of lump, drop, is 'cut'"),
    ({"unphysical": "ignore"}, "unphysical must be one of refuse, warn, is 'ignore'"),
    ({"gravity": [0, 0]}, r"gravity must have shape \(3,\), has \(2,\)"),
    ({"gravity": "down"}, "gravity must have shape"),
    ({"tools": ["lower", "lower"]}, "tools: 'lower' is listed twice"),
    call=lambda options: load_robot(GOOD, **options),
)


def test_messages_name_the_line() -> None:
    lines = GOOD.replace("><", ">\n<").replace('"0 1 0"', '"0 0 0"').splitlines()
    number = 1 + next(k for k, line in enumerate(lines) if '"0 0 0"' in line and "axis" in line)
    assert refusal("\n".join(lines)).startswith(f"line {number}: joint elbow: <axis>: ")


def many_joints(count: int, mimic: str = "") -> str:
    """Long chain; each joint except the first may mimic the previous joint."""
    joint = '<joint name="j{0}" type="continuous"><parent link="l{0}"/><child link="l{1}"/>{2}</joint>'
    rows = [f'<link name="l{k}"/>{joint.format(k, k + 1, mimic.format(k - 1) if k else "")}' for k in range(count)]
    return f'<robot name="chain">{"".join(rows)}<link name="l{count}"/></robot>'


LAUGHS = "".join(f'<!ENTITY lol{k + 1} "{f"&lol{k};" * 10}">' for k in range(30))
# Functions, since each worker collects this file: two hundred megabytes of text would stay in each of them.
HOSTILE = {
    "bomb": lambda: f'<!DOCTYPE r [<!ENTITY lol0 "ha">{LAUGHS}]><robot name="&lol30;"/>',
    "hundred megabytes": lambda: GOOD.replace("</robot>", " " * 100_000_000 + "</robot>"),
    "many elements": lambda: "<robot name='r'>" + "<a/>" * 900_000 + "</robot>",
    "nested deeply": lambda: "<robot name='r'>" + "<a>" * 900_000,
    "one long number": lambda: GOOD.replace('"0.5 0 0"', f'"{"9" * 3_000_000} 0 0"'),
    "many joints": lambda: many_joints(20_000),
    "many bodies": lambda: many_joints(1_500),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_no_memory(name: str) -> None:
    """The time limit of all tests fails tests that hang."""
    text = HOSTILE[name]()
    before = resource.getrusage(resource.RUSAGE_SELF)
    message = refusal(text)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_maxrss - before.ru_maxrss < 80_000  # KiB; the elements below the bounds may be in memory
    assert len(message) < 500


def test_no_file_that_a_urdf_names_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meshes, packages and includes do not matter to dynamics."""
    opened: list[object] = []
    monkeypatch.setattr("builtins.open", lambda *arguments, **_: opened.append(arguments))
    monkeypatch.setattr(Path, "open", lambda *arguments, **_: opened.append(arguments))
    meshes = "".join(
        f'<visual><geometry><mesh filename="{name}"/></geometry></visual>'
        for name in ("package://../../etc/passwd", "file:///etc/passwd", "/etc/passwd", "../secret.stl")
    )
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="/etc/passwd" parse="text"/>'
    text = GOOD.replace('<link name="base"/>', f'<link name="base">{meshes}</link>{include}')
    assert load_robot(text).n == 2
    assert not opened
