# SPDX-License-Identifier: Apache-2.0
"""Invalid parameter files: one kind of error that names file, parameter and reason."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from chains import packaged_parameters
from paths import CONFIG
from springs import EVERY_KIND
from urdf_arms import urdf_arm

from eom_dynamics import RobotDescriptionError, load_robot, robot_from_parameters
from eom_dynamics.actuators.parameters import DeclaredEntry, declared_entries
from eom_dynamics.arrays import Array
from eom_dynamics.robot import robot_from_urdf
from eom_dynamics.robot.description import BodyEntries, Description, JointDescription
from eom_dynamics.tools.cli.main import main

INF, NAN = float("inf"), float("nan")

# Joint of the entries below that start with a dot.
JOINTS = {
    "planar_2r": "joints.joint_1",
    "dual_arm": "joints.left_elbow",
    "pendulum": "joints.hinge",
    "ur5e": "joints.elbow_joint",
}


def edited(base: str, changes: dict[str, Any]) -> dict[str, Any]:
    """A packaged robot with some entries set, or removed if the value is an ellipsis."""
    parameters = packaged_parameters(base)
    for path, value in changes.items():
        *sections, entry = whole(base, path).split(".")
        place = parameters
        for section in sections:
            place = place.setdefault(section, {})
        if value is ...:
            del place[entry]
        else:
            place[entry] = value
    return parameters


def whole(base: str, path: str) -> str:
    return (JOINTS[base] + path).rstrip(".") if path.startswith(".") else path


TABLE = {"type": "tabulated", "deflections": [0.0, 0.1, 0.2], "efforts": [0.0, 1.0, 3.0]}
DEAD_ZONE = {"type": "dead_zone", "stiffness": 1e4, "inner_stiffness": 10.0, "half_gap": 1e-3, "width": 1e-4}
VARIABLE = {"type": "variable", "lower": 50.0, "upper": 500.0, "nominal": 100.0}
PAIR = {"type": "antagonistic_exponential", "stiffness": 50.0, "growth": 15.0, "nominal": 500.0}
FRICTION = {"viscous": 1.0, "coulomb": 2.0, "static": 3.0}

# Entry of the planar 2R or of its first joint, invalid value, and the message without the path of the entry.
ENTRIES: list[tuple[str, Any, str]] = [
    *(("joint_names", x, "must be a list of at least one name") for x in (["joint_1", ""], [], "joint_1")),
    *((f".actuator.{x}", 1.0, "unknown entry") for x in ("friction.stribeck", "limits.force", "ratio")),
    *((path, 1e-320, "must be at least 1e-12") for path in (".mass", ".elasticity.stiffness")),
    (".center_of_mass", [1e200, 0.0, 0.0], "must not exceed 1e+12 in SI units, is 1e+200"),
    (".center_of_mass", [], "must have 3 entries, has 0"),
    (".center_of_mass", [[0.5, 0.0, 0.0]], "must be a list of 3 numbers"),
    (".mass", None, "has no value"),
    (".inertia", [1.0, 0.0, 0.0, 1.0, 0.0, 2.1], "… must not exceed the sum of the other two"),
    (".inertia", [1.0, 1.0, 1.0, 0.0, 0.0, 0.0], "… the order is xx xy xz yy yz zz"),
    (".screw", [0.0, 0.0, 2.0, 0.0, 0.0, 0.0], "the axis must be a unit vector, has length 2"),
    (".screw", [0.0, 0.0, 1.0, 0.0, 0.0, 0.1], "… must be 0, is 0.1 m/rad; is it helical?"),
    ("name", "", "must be a string, is ''"),
    ("joint_names", ["joint_1", "joint_1"], "'joint_1' is listed twice"),
    ("joint_names", ["arm.joint_1", "joint_2"], "'arm.joint_1' must not contain '.' or '/'"),
    ("joint_names", ["joint_1\n", "joint_2"], "… must not contain control characters"),
    ("joints.joint_3", {"mass": 1.0}, "unknown entry; known are joint_1, joint_2"),
    (".rotor.carrier", "joint_3", "no link 'joint_3' in this part"),
    (".rotor.axis", [0.0, 0.0, 0.0], "must not be zero"),
    ("drive_feedback_delay.position", -1e-3, "must be within [0, 0.1], is -0.001"),
    ("drive_feedback_delay", 1e-3, "must be a section with position, velocity, is 0.001"),
    ("compensated_by_robot", ["gravity", "gravity"], "'gravity' is listed twice"),
    ("compensated_by_robot", ["payload"], "payload is a part of gravity and coriolis: add one of them"),
    (".drive.sign", 0.5, "must be 1 or -1, is 0.5; a gear ratio is the joint's gear_ratio"),
    (".drive.rated_torque", 1.0, "needs effort: per_mille"),
]

# Spring of the first joint, the entry, and its message.
SPRINGS: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "polynomial", "coefficients": [100.0, 5.0]}, "coefficients", "… not monotone"),
    ({"type": "polynomial", "coefficients": [0.0, 0.0, 5.0]}, "coefficients", "… its stiffness is 0"),
    (TABLE | {"efforts": [0.0, 1.0, 1.0]}, "efforts", "must increase"),
    (TABLE | {"efforts": [0.0, 1.0]}, "efforts", "must have as many entries as deflections, 3; has 2"),
    (TABLE | {"efforts": [0.5, 1.0, 2.0]}, "deflections", "… (0, 0)"),
    (TABLE | {"deflections": [-0.2, -0.1, 0.0], "efforts": [-2.0, -1.0, 0.0]}, "deflections", "… above 0"),
    (TABLE | {"deflections": [0.0], "efforts": [0.0]}, "deflections", "… at least two"),
    (DEAD_ZONE | {"inner_stiffness": 2e4}, "inner_stiffness", "must not exceed stiffness"),
    (VARIABLE | {"lower": 600.0}, "lower", "must not exceed upper"),
    (VARIABLE | {"nominal": 10.0}, "nominal", "must lie within"),
    (PAIR | {"nominal": 90.0}, "nominal", "must be at least 100"),
]

FRICTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"static": 1.0}, "static", "must be at least coulomb"),
    ({"coulomb_negative": 4.0}, "static", "must be at least coulomb_negative"),
]

GROUPS: list[tuple[str, dict[str, Any], str]] = [
    ("coupled_stiffness", {"matrix": [2.0, 1.0, 0.0, 2.0]}, "matrix: must be symmetric"),
    ("coupled_stiffness", {"matrix": [1.0, 2.0, 2.0, 1.0]}, "matrix: … positive definite"),
    ("coupled_stiffness", {"matrix": [1.0, 0.0, 0.0]}, "matrix: must have 4 entries"),
    ("coupled_stiffness", {"joints": ["joint_1", "wrist"]}, "joints: 'wrist' is not a joint"),
    ("transmission", {"matrix": [1.0] * 4}, "matrix: must be invertible"),
]

RIGID: dict[str, Any] = {".elasticity": ..., "joints.joint_2.elasticity": ...}
GROUP = {"joints": ["joint_1", "joint_2"], "matrix": [1.0, 0.0, 0.0, 1.0]}
ZERO = {"xyz": [0.0, 0.0, 0.0], "rpy": [0.0, 0.0, 0.0]}
FOLLOWER: dict[str, Any] = {".elasticity": ..., ".rotor_inertia": ...}

# Changed entries of each robot, and the message.
CHANGES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "planar_2r": [
        *(({path: value}, f"{path}: {message}") for path, value, message in ENTRIES),
        *(({".elasticity": spring}, f".elasticity.{entry}: {message}") for spring, entry, message in SPRINGS),
        *(
            ({".actuator.friction": FRICTION | values}, f".actuator.friction.{entry}: {message}")
            for values, entry, message in FRICTIONS
        ),
        *((RIGID | {group: GROUP | entries}, f"{group}.{message}") for group, entries, message in GROUPS),
        ({".type": "prismatic"}, ".screw: the angular part of a prismatic joint"),
        ({".type": "helical"}, ".screw: a helical joint must have a pitch"),
        ({".drive.effort": "per_mille"}, ".drive.rated_torque: missing; effort: per_mille needs it"),
        ({".drive.effort": "current"}, ".drive.effort: current needs the torque_constant of the actuator"),
        ({"base": {"mass": 3.0, "center_of_mass": [0.1, 0.0, 0.2]}}, "base.inertia: "),
        ({".mass": ..., ".mas": 2.0}, ".mass: missing; is mas a misspelling of it?"),
        ({".rotor_inertia": ..., ".rotor_intertia": 0.2}, ".rotor_intertia: … did you mean rotor_inertia?"),
        ({"joint_names": ["joint_1", "joint2"]}, "joints.joint2: missing; is joint_2 a misspelling of it?"),
        ({".actuator.limits.current": 10.0}, ".actuator.torque_constant: missing; the current limit needs it"),
        (
            {".actuator": {"torque_constant": 0.1, "limits": {"voltage": 48.0}}},
            ".actuator.resistance: … the voltage limit needs both",
        ),
        (
            {"coupled_stiffness": GROUP},
            "coupled_stiffness.joints: 'joint_1' is not a joint without an elasticity; those are none",
        ),
        ({".elasticity": PAIR, "transmission": GROUP}, "transmission.joints: 'joint_1' is not a joint with one motor"),
    ],
    "dual_arm": [
        (
            {"joints.left_lift.parent": "right_lift"},
            "joints.left_lift.parent: must be one of base, torso, listed before this joint, is 'right_lift'",
        ),
        ({"tool_names": ["foot"]}, "tools.left_hand: unknown entry"),
        ({"tools.left_hand.origin": ...}, "tools.left_hand.origin: missing"),
        ({".mimic.joint": "hip", ".elasticity": ...}, ".rotor_inertia: unknown entry"),
        (FOLLOWER | {".mimic.joint": "hip"}, ".: fixed at 0 rad: its mimic leader 'hip' does not exist"),
        (
            FOLLOWER | {".mimic": {"joint": "torso", "ratio": 0.0}},
            ".: fixed at 0 rad: the mimic ratio of left_elbow is 0",
        ),
        ({".limits.lower": 2.0}, ".limits.lower: must not exceed upper, 0.1"),
        (
            {"joints.left_wrist": {"type": "fixed", "origin": ZERO, "center_of_mass": [0.0, 0.0, 0.1]}},
            "joints.left_wrist.center_of_mass: unknown entry",
        ),
    ],
    "pendulum": [
        ({"joint_names": ["base"]}, "joint_names: 'base' is reserved for the base"),
        ({"tool_names": ["foot"], "tools": ...}, "tool_names: 'foot' is neither a body"),
        (
            {"tool_names": ["hinge"], "tools": {"hinge": {"body": "hinge", "origin": ZERO}}},
            "tools.hinge: is the name of a body",
        ),
        (
            {"tool_names": ["foot"], "tools": {"foot": {"body": "base", "origin": ZERO}}},
            "tools: 'foot' is fixed to the base",
        ),
        (
            FOLLOWER | {".type": "fixed", ".screw": ..., ".limits": ...},
            "joint_names: at least one joint must move; all are fixed",
        ),
        (
            {".type": "continuous", ".screw": [0.0, 1.0, 0.0, 0.0, 0.1, 0.0]},
            ".screw: the pitch of a continuous joint must be 0",
        ),
        ({".center_of_mass": [0.0, 0.3, 0.0]}, ".: the mass matrix is singular, since no mass moves with hinge"),
    ],
    "ur5e": [
        ({".dh.d": ...}, ".dh.d: missing"),
        ({".dh": ...}, ".dh: missing"),
        ({".type": "helical"}, ".pitch: missing"),
    ],
}


@pytest.mark.parametrize(
    ("base", "changes", "message"), [(base, *row) for base, rows in CHANGES.items() for row in rows]
)
def test_invalid_entries(base: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_parameters(edited(base, changes), source="arm.yaml")
    place, _, reason = message.partition(": ")
    beginning, _, end = reason.partition("… ")
    found = error.value.errors[0]
    assert found.startswith(f"arm.yaml: robot.{whole(base, place)}: {beginning}") and end in found
    assert all("\n" not in line for line in error.value.errors)


# Any number of any entry that a class declares, and of any law.

WRONG = (NAN, INF, "2.0", None, True, [1.0, 2.0, 3.0, 4.0, 5.0])


def assert_refused(parameters: dict[str, Any], place: str, reason: str = "") -> None:
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_parameters(parameters, source="arm.yaml")
    assert all("\n" not in line for line in error.value.errors)
    beginning = f"arm.yaml: robot.{place}: {reason}"
    assert any(line.startswith(beginning) for line in error.value.errors), (beginning, error.value.errors)


def declared(kind: type, section: str) -> Iterator[tuple[str, DeclaredEntry]]:
    """Entries of a class and of its parts, with their sections."""
    for each in declared_entries(kind):
        place = ".".join(x for x in (section, each.entry.section, each.name) if x)
        parts = declared_entries(each.kind) if each.name not in ("parallel_spring", "rotor", "effort_spread") else ()
        if parts:
            yield from declared(each.kind, place.rpartition(".")[0] if each.entry.is_inline else place)
        elif each.name not in ("parallel_spring", "rotor", "effort_spread"):
            yield place, each


NUMBERS = {
    place: each
    for kind, section in ((JointDescription, "joints.joint_1"), (Description, ""), (BodyEntries, "base"))
    for place, each in declared(kind, section)
    if each.kind in (float, Array) or each.entry.rule != "finite"
}


@pytest.mark.parametrize("place", NUMBERS)
def test_any_wrong_number_of_an_entry_is_named(place: str) -> None:
    each = NUMBERS[place]
    for wrong in WRONG:
        assert_refused(edited("planar_2r", {place: wrong}), place)
    if each.kind is float and each.entry.rule in ("positive", "not negative"):
        assert_refused(
            edited("planar_2r", {place: -1.0}), place, f"must {'be' if each.entry.rule[0] == 'p' else 'not be'}"
        )
    with pytest.raises(RobotDescriptionError, match=f"{each.name}x"):
        robot_from_parameters(edited("planar_2r", {f"{place}x": 1.0}))


OPTIONS = {
    place: each
    for kind, section in ((JointDescription, "joints.joint_1"), (Description, ""))
    for place, each in declared(kind, section)
    if each.entry.options
}


@pytest.mark.parametrize("place", OPTIONS)
def test_any_wrong_word_is_named_with_those_that_are_known(place: str) -> None:
    for wrong in ("no such", 3.0, None):
        assert_refused(edited("planar_2r", {place: wrong}), place)


@pytest.mark.parametrize("kind", sorted(set(EVERY_KIND) - {"rigid", "cubic_linear", "tabulated_one_sided"}))
def test_any_wrong_parameter_of_a_spring_is_named(kind: str) -> None:
    spring = EVERY_KIND[kind].entries()
    robot_from_parameters(edited("planar_2r", {".elasticity": spring}))
    for name in spring:
        for wrong in (NAN, INF, "2.0", None, True, -1e30, ...):
            changed = {x: wrong if x == name else y for x, y in spring.items() if x != name or wrong is not ...}
            assert_refused(edited("planar_2r", {".elasticity": changed}), f"joints.joint_1.elasticity.{name}")
    assert_refused(edited("planar_2r", {".elasticity": {**spring, "gap": 1.0}}), "joints.joint_1.elasticity.gap", "unk")


def as_file(parameters: Any) -> str:
    return yaml.safe_dump({"/**": {"ros__parameters": {"robot": parameters}}}, sort_keys=False, default_flow_style=None)


GOOD = as_file(packaged_parameters("planar_2r"))


def refusal(folder: Path, content: str | bytes) -> str:
    """First message of a refusal of a file with this content, without the name of the file."""
    path = folder / "arm.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(path)
    for message in error.value.errors:
        assert message.startswith(f"{path}: ")
        assert "\n" not in message
    return error.value.errors[0].removeprefix(f"{path}: ")


MASS = "mass: 2.0"
assert MASS in GOOD


def with_mass(text: str) -> str:
    return GOOD.replace(MASS, f"mass: {text}")


FILES: list[tuple[str | bytes, str]] = [
    # no robot in it, or too many
    ("# an arm\n", "no ros__parameters section"),
    ("/**: {ros__parameters: {rate: 5}}", "no ros__parameters section has an entry robot"),
    (GOOD.replace("    robot:", "    robots:"), "has an entry robot; is robots a misspelling of robot?"),
    (GOOD.replace("ros__p", "ros_p"), "entry robot; is ros_parameters a misspelling of ros__parameters?"),
    ("/**: {ros__parameters: {robot: [1, 2]}}", "robot: must be a section, is [1, 2]"),
    (GOOD + GOOD.replace("/**", "/other"), "2 robots; a file must describe one"),
    (GOOD + "---\n" + GOOD, "found another document"),
    # not accepted by ROS 2
    (with_mass("2.0\n          mass: 3.0"), "'mass' occurs twice"),
    (GOOD.replace(MASS, "1: 2.0"), "1 is not a string"),
    (with_mass("&m 2.0").replace("mass: 1.0", "mass: *m"), "aliases are not allowed"),
    (GOOD.replace(MASS, "<<: {mass: 2.0}"), "mass: missing"),
    (with_mass("!!python/name:os.system"), "is not allowed"),
    (with_mass("!heavy 2.0"), "the tag !heavy is not allowed"),
    (with_mass("2001-01-01"), "mass: must be a number, is '2001-01-01'"),
    (with_mass("1:30"), "mass: must be a number, is '1:30'"),
    (with_mass("1_000"), "mass: must be a number, is '1_000'"),
    # not YAML
    ("a: [1", ": not valid YAML: "),
    ("a: b: c", "line 1, column 5: not valid YAML: mapping values are not allowed"),
    (GOOD + "\x07", "not valid YAML: unacceptable character"),
    # not text
    (GOOD.encode("utf-16"), "must be UTF-8 text, is not at byte 0"),
    # made to hang: fails by the time limit of all tests
    ("#" * 1_000_000, "must be at most 200000 bytes"),
    ("[" * 500, "nested too deeply"),
    (with_mass("9" * 150_000), "mass: must be finite"),
    (with_mass("0x" + "f" * 150_000), "mass: must be a number"),
]


@pytest.mark.parametrize(("content", "reason"), FILES, ids=[reason for _, reason in FILES])
def test_invalid_file(tmp_path: Path, content: str | bytes, reason: str) -> None:
    assert reason in refusal(tmp_path, content)


SOURCES = [
    (
        "iiwaa",
        "nor a parameter file (.yaml), an MJCF model (.xml, .mjcf), a URDF (.urdf), a xacro file (.xacro), "
        "the text of one, or a name of robot_descriptions; did you mean iiwa?",
    ),
    ("arm.sdf", "arm.sdf: SDF is not read; convert it to URDF or MJCF"),
    ("<sdf version='1.11'/>", "robot_description: SDF is not read; convert it to URDF or MJCF"),
    ("", "neither a packaged robot"),
    (".", ".: is a folder"),
    ("none/arm.yaml", "cannot be read: No such file or directory"),
    ("arm\0.yaml", "cannot be read: embedded null byte"),
    ("a" * 5000 + ".yaml", "cannot be read: File name too long"),
    ("folder.yaml", "folder.yaml: cannot be read: not a file"),
    ("pipe.yaml", "pipe.yaml: cannot be read: not a file"),
    ("/**: {ros__parameters: {robot: {name: '\ud800'}}}\n", "surrogates not allowed"),
]


@pytest.mark.parametrize(("source", "reason"), SOURCES)
def test_invalid_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.yaml").mkdir()
    os.mkfifo("pipe.yaml")
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(source)
    assert reason in str(error.value)


@pytest.mark.parametrize("parameters", [None, 1, "arm", [], [("name", "arm")]])
def test_parameters_that_are_not_a_section(parameters: Any) -> None:
    with pytest.raises(RobotDescriptionError, match="parameters: robot: must be a section"):
        robot_from_parameters(parameters)


def broken() -> dict[str, Any]:
    parameters = packaged_parameters("dual_arm")
    joints = parameters["joints"]
    del parameters["inertia_reference"]
    joints["left_lift"] |= {"mass": -1.0, "screw": [0.0, 0.0, 2.0, 0.0, 0.0, 0.0]}
    joints["left_elbow"]["actuator"] = {"friction": {"coulomb": -1.0}, "limits": {"current": 1.0}}
    parameters["payloads"] = {"foot": {"mass": 1.0}, "right_hand": {"mass": 0.0}}
    return parameters | {"color": "red"}


LINES = (
    "inertia_reference: missing",
    "joints.left_lift.screw: the axis must be a unit vector, has length 2",
    "joints.left_lift.mass: must be positive, is -1",
    "joints.left_elbow.actuator.friction.coulomb: must not be negative, is -1",
    "payloads.foot: there is no link or tool of this name",
    "payloads.right_hand.mass: must be positive, is 0",
    "color: unknown entry",
)


def test_all_errors_of_a_file_are_one_exception(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_parameters(broken(), "arm.yaml")
    errors = error.value.errors
    assert str(error.value) == "\n".join(errors) and len(errors) == len(LINES)
    for line, beginning in zip(errors, LINES, strict=True):
        assert line.startswith(f"arm.yaml: robot.{beginning}")
    path = tmp_path / "arm.yaml"
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": {"robot": broken()}}}))
    assert main(["inspect", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("robot.")[2] for line in lines] == [line.partition("robot.")[2] for line in errors]


def test_all_errors_of_additions_to_a_urdf_are_one_exception() -> None:
    joints = {
        "shoulder": {"elasticity": {"type": "linear"}, "damping": -1.0},
        "elbow": {"limits": {"lower": 9.0, "jerk": 0.0}},
        "wrist": {},
    }
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_urdf(urdf_arm(), {"joints": joints, "gravity": [1.0], "branches": "cut", "tip": []})
    of_joints = "shoulder.damping", "shoulder.elasticity.stiffness", "elbow.limits.jerk", "elbow.limits.lower", "wrist"
    wrong = [*(f"urdf.joints.{name}" for name in of_joints), "urdf.gravity", "urdf.tip", "urdf.branches"]
    assert [line.split(": ")[1] for line in error.value.errors] == wrong


def test_an_error_hides_no_entry_from_the_check_of_names() -> None:
    group = {"joints": ["shoulder", "elbow"], "matrix": [1.0, 0.0, 0.0, 1.0]}
    section = {"coupled_stiffness": {**group, "matrix": [1.0]}, "transmission": group, "color": "red"}
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_urdf(urdf_arm(), section)
    assert [line.split(": ")[1] for line in error.value.errors] == ["urdf.coupled_stiffness.matrix", "urdf.color"]


def test_a_file_of_nothing_but_errors_gives_a_bounded_message() -> None:
    parameters = packaged_parameters("planar_2r") | {f"entry_{i}": 0.0 for i in range(1000)}
    with pytest.raises(RobotDescriptionError) as error:
        robot_from_parameters(parameters)
    assert len(error.value.errors) == 21 and error.value.errors[-1] == "… and 980 more errors"


@pytest.mark.parametrize("text", ["[0, 0.5, 0]", "[0, 1, 0]"])
def test_integers_are_numbers_in_a_file(text: str) -> None:
    document = (CONFIG / "planar_2r.yaml").read_text().replace("mass: 2.0", "mass: 2")
    assert "[0.5, 0.0, 0.0]" in document
    robot = load_robot(document.replace("center_of_mass: [0.5, 0.0, 0.0]", f"center_of_mass: {text}"))
    assert robot.joints[0].mass == 2 and robot.joints[0].center_of_mass.tolist() == yaml.safe_load(text)
