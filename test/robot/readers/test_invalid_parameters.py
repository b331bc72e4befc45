# SPDX-License-Identifier: Apache-2.0
"""Invalid parameter files: one kind of error that names file, parameter and reason."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from chains import packaged_parameters
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics import RobotDescriptionError, load_robot, robot_from_parameters

INF, NAN = float("inf"), float("nan")

# Joint whose entries begin with a dot below.
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
    (".mass", NAN, "must be finite, is nan"),
    (".rotor_inertia", -INF, "must be finite, is -inf"),
    (".center_of_mass", [0.0, NAN, 0.0], "must be finite"),
    (".center_of_mass", [1e200, 0.0, 0.0], "must not exceed 1e+12 in SI units, is 1e+200"),
    (".mass", True, "must be a number, is True"),
    (".mass", "2.0", "must be a number, is '2.0'"),
    (".inertia", "none", "must be a list of 6 numbers, is 'none'"),
    (".center_of_mass", [[0.5, 0.0, 0.0]], "must be a list of 3 numbers"),
    (".mass", None, "has no value"),
    (".mass", ..., "missing"),
    (".origin.xyz", ..., "missing"),
    (".center_of_mass", [], "must have 3 entries, has 0"),
    (".mass", -1.0, "must be positive, is -1"),
    (".mass", 1e-320, "must be at least 1e-12"),
    (".inertia", [1.0, 0.0, 0.0, 1.0, 0.0, -1.0], "principal moments of inertia must not be negative"),
    (".inertia", [1.0, 0.0, 0.0, 1.0, 0.0, 2.1], "… must not exceed the sum of the other two"),
    (".inertia", [1.0, 1.0, 1.0, 0.0, 0.0, 0.0], "… the order is xx xy xz yy yz zz"),
    (".type", "universal", "must be one of revolute, … planar, ball, floating, fixed, is 'universal'"),
    (".type", 1, "… planar, ball, floating, fixed, is 1"),
    (".screw", [0.0] * 6, "the axis must be a unit vector, is zero"),
    (".screw", [0.0, 0.0, 2.0, 0.0, 0.0, 0.0], "the axis must be a unit vector, has length 2"),
    (".screw", [0.0, 0.0, 1.0, 0.0, 0.0, 0.1], "… must be 0, is 0.1 m/rad; is it helical?"),
    (".rotor_inertia", -0.1, "must not be negative, is -0.1"),
    (".origin", "base", "must be a section, is 'base'"),
    (".colour", "red", "unknown entry; known are type, parent, screw, origin, mass"),
    (".origin.quaternion", [1.0, 0.0, 0.0, 0.0], "unknown entry; known are xyz, rpy"),
    ("name", 1, "must be a string, is 1"),
    ("name", "", "must be a string, is ''"),
    ("inertia_reference", "body", "must be one of com, link, is 'body'"),
    ("inertia_reference", ["com"], "must be one of com, link"),
    ("inertia_reference", ..., "missing"),
    ("gravity", -9.81, "must be a list of 3 numbers, is -9.81"),
    ("joint_names", ["joint_1", "joint_1"], "'joint_1' is listed twice"),
    ("joint_names", ["joint_1", ""], "must be a list of at least one name"),
    ("joint_names", [], "must be a list of at least one name"),
    ("joint_names", "joint_1", "must be a list of at least one name, is 'joint_1'"),
    ("joint_names", ["arm.joint_1", "joint_2"], "'arm.joint_1' must not contain '.' or '/'"),
    ("joint_names", ["joint_1\n", "joint_2"], "… must not contain control characters"),
    ("joints", [{"mass": 1.0}], "must be a section"),
    ("joints.joint_2", 2, "must be a section, is 2"),
    ("joints.joint_2", ..., "missing"),
    ("joints.joint_3", {"mass": 1.0}, "unknown entry; known are joint_1, joint_2"),
    ("comment", "mine", "unknown entry; known are name, joint_names"),
    (".elasticity", "rigid", "must be a section, is 'rigid'"),
    (".elasticity.type", "elastic", "must be one of antagonistic_exponential, antagonistic_quadratic, cubic"),
    (".elasticity.type", ..., "missing"),
    (".elasticity.stiffness", ..., "missing"),
    (".elasticity.stiffness", 0.0, "must be positive"),
    (".elasticity.stiffness", 1e-320, "must be at least 1e-12"),
    (".elasticity.growth", 1.0, "unknown entry"),
    (".actuator.efficiency", 1.1, "must not exceed 1"),
    (".actuator.efficiency", 0.0, "must be positive"),
    (".actuator.smoothing_power", 0.0, "must be positive"),
    (".actuator.friction.stribeck", 1.0, "unknown entry"),
    (".actuator.torque_constant", 0.0, "must be positive"),
    (".actuator.resistance", -1.0, "must not be negative"),
    (".actuator.back_emf_constant", -1.0, "must not be negative"),
    (".actuator.limits.torque", 0.0, "must be positive"),
    (".actuator.limits.force", 10.0, "unknown entry"),
    (".actuator.ratio", 100.0, "unknown entry"),
    ("base.mass", -1.0, "must be positive"),
    (".rotor.carrier", "joint_3", "no link 'joint_3' in this part"),
    (".rotor.carrier", 1, "must be a string"),
    (".rotor.axis", [0.0, 0.0, 0.0], "must not be zero"),
    (".rotor.axis", [0.0, 1.0], "must have 3 entries"),
    (".rotor.axes", [0.0, 0.0, 1.0], "unknown entry; did you mean axis"),
    ("rotor_model", "spong", "must be one of reduced, complete, is 'spong'"),
    ("drive_interpolation", "cubic", "must be one of none, linear"),
    ("drive_delay", -0.002, "must not be negative"),
    ("drive_feedback_delay.position", -1e-3, "must be within [0, 0.1], is -0.001"),
    ("drive_feedback_delay.velocity", 1.0, "must be within [0, 0.1], is 1"),
    ("drive_feedback_delay.speed", 1e-3, "unknown entry; known are position, velocity"),
    ("drive_feedback_delay", 1e-3, "must be {position: SECONDS, velocity: SECONDS}, is 0.001"),
    ("compensated_by_robot", ["mass"], "'mass' is not one of gravity, coriolis, friction, payload"),
    ("compensated_by_robot", ["gravity", "gravity"], "'gravity' is listed twice"),
    ("compensated_by_robot", ["payload"], "payload needs gravity or coriolis beside it"),
    ("compensated_by_robot", [], "must be a string or a list of strings, is []"),
    (".drive.side", "gear", "must be one of motor, joint, is 'gear'"),
    (".drive.sign", 0.5, "must be 1 or -1, is 0.5; a gear ratio is the joint's gear_ratio"),
    (".drive.units_per_turn", 0, "must be positive, is 0"),
    (".drive.units_per_turn", "turns", "must be a number, is 'turns'"),
    (".drive.velocity_units_per_turn", -60.0, "must be positive, is -60"),
    (".drive.offset", INF, "must be finite"),
    (".drive.ratio", 50.0, "unknown entry"),
    (".drive.effort", "watt", "must be one of torque, current, per_mille, is 'watt'"),
    (".drive.rated_torque", 1.0, "needs effort: per_mille"),
    (".drive", "turns", "must be a section, is 'turns'"),
]

# Spring of the first joint, the entry, and its message.
SPRINGS: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "rigid", "stiffness": 1.0}, "stiffness", "unknown entry; known are type"),
    ({"type": "cubic", "stiffness": 100.0, "cubic": -1.0}, "cubic", "must not be negative"),
    ({"type": "polynomial", "coefficients": [100.0, 5.0]}, "coefficients", "… not monotone"),
    ({"type": "polynomial", "coefficients": [0.0, 0.0, 5.0]}, "coefficients", "… its stiffness is 0"),
    ({"type": "polynomial", "coefficients": [1.0, 3.0, 2.0]}, "coefficients", "… not monotone"),
    ({"type": "polynomial", "coefficients": []}, "coefficients", "… at least one number"),
    ({"type": "exponential", "stiffness": 100.0, "growth": 0.0}, "growth", "must be positive"),
    (TABLE | {"efforts": [0.0, 1.0, 1.0]}, "efforts", "must increase"),
    (TABLE | {"deflections": [0.0, 0.2, 0.1]}, "deflections", "must increase"),
    (TABLE | {"efforts": [0.0, 1.0]}, "efforts", "must have as many entries as deflections, 3; has 2"),
    (TABLE | {"efforts": [0.5, 1.0, 2.0]}, "deflections", "… (0, 0)"),
    (TABLE | {"deflections": [-0.2, -0.1, 0.0], "efforts": [-2.0, -1.0, 0.0]}, "deflections", "… above 0"),
    (TABLE | {"deflections": [0.0], "efforts": [0.0]}, "deflections", "… at least two"),
    (DEAD_ZONE | {"inner_stiffness": 2e4}, "inner_stiffness", "must not exceed stiffness"),
    (DEAD_ZONE | {"inner_stiffness": 0.0}, "inner_stiffness", "must be positive"),
    (DEAD_ZONE | {"width": 0.0}, "width", "must be positive"),
    (DEAD_ZONE | {"half_gap": -1e-3}, "half_gap", "must be positive"),
    ({"type": "damped", "stiffness": 100.0, "damping": 0.0}, "damping", "must be positive"),
    (VARIABLE | {"lower": 600.0}, "lower", "must not exceed upper"),
    (VARIABLE | {"nominal": 10.0}, "nominal", "must lie within"),
    (VARIABLE | {"lower": -1.0}, "lower", "must be positive"),
    (PAIR | {"nominal": 90.0}, "nominal", "must be at least 100"),
    (PAIR | {"growth": -15.0}, "growth", "must be positive"),
    (PAIR | {"type": "antagonistic_quadratic"}, "slope", "missing"),
]

FRICTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"viscous": -1.0}, "viscous", "must not be negative"),
    ({"static": 1.0}, "static", "must be at least coulomb"),
    ({"coulomb_negative": 4.0}, "static", "must be at least coulomb_negative"),
    ({"viscous_negative": -1.0}, "viscous_negative", "must not be negative"),
    ({"smoothing_velocity": 0.0}, "smoothing_velocity", "must be positive"),
    ({"presliding_distance": 0.0}, "presliding_distance", "must be positive"),
]

GROUPS: list[tuple[str, dict[str, Any], str]] = [
    ("coupled_stiffness", {"matrix": [2.0, 1.0, 0.0, 2.0]}, "matrix: must be symmetric"),
    ("coupled_stiffness", {"matrix": [1.0, 2.0, 2.0, 1.0]}, "matrix: … positive definite"),
    ("coupled_stiffness", {"matrix": [1.0, 0.0, 0.0]}, "matrix: must have 4 entries"),
    ("coupled_stiffness", {"joints": ["joint_1"], "matrix": [1.0]}, "joints: … at least two"),
    ("coupled_stiffness", {"joints": ["joint_1", "wrist"]}, "joints: 'wrist' is not a joint"),
    ("transmission", {"matrix": [1.0] * 4}, "matrix: must be invertible"),
    ("transmission", {"matrix": None}, "matrix: has no value"),
]

RIGID: dict[str, Any] = {".elasticity": ..., "joints.joint_2.elasticity": ...}
GROUP = {"joints": ["joint_1", "joint_2"], "matrix": [1.0, 0.0, 0.0, 1.0]}
ZERO = {"xyz": [0.0, 0.0, 0.0], "rpy": [0.0, 0.0, 0.0]}
FOLLOWER: dict[str, Any] = {".elasticity": ..., ".rotor_inertia": ...}

# Of each robot, changed entries, and the message.
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
        ({".type": "prismatic", ".screw": [0.0] * 6}, ".screw: the axis must be a unit vector"),
        ({".type": "helical"}, ".screw: a helical joint must have a pitch"),
        ({".type": "helical", ".screw": [*[0.0] * 5, 1.0]}, ".screw: the axis must be"),
        ({".drive.effort": "per_mille"}, ".drive.rated_torque: missing; effort: per_mille needs it"),
        ({".drive.effort": "current"}, ".drive.effort: current needs the torque_constant of the actuator"),
        ({"base": {"mass": 3.0, "center_of_mass": [0.1, 0.0, 0.2]}}, "base.inertia: "),
        ({".mass": ..., ".mas": 2.0}, ".mass: missing; is mas a misspelling of it?"),
        ({".rotor_inertia": ..., ".rotor_intertia": 0.2}, ".rotor_intertia: … did you mean rotor_inertia?"),
        ({".elasticity": ..., ".elastcity": {}}, ".elastcity: unknown entry; did you mean elasticity?"),
        (
            {"joint_names": ["joint_1", "joint2"]},
            "joints.joint2: missing; is joint_2 a misspelling of it?",
        ),
        ({".actuator.limits.current": 10.0}, ".actuator.torque_constant: missing; the current limit needs it"),
        (
            {".actuator": {"torque_constant": 0.1, "limits": {"voltage": 48.0}}},
            ".actuator.resistance: … the voltage limit needs both",
        ),
        (
            {"coupled_stiffness": GROUP},
            "coupled_stiffness.joints: 'joint_1' is not a joint without an elasticity; those are none",
        ),
        (
            {".elasticity": PAIR, "transmission": GROUP},
            "transmission.joints: 'joint_1' is not a joint with one motor",
        ),
    ],
    "dual_arm": [
        (
            {"joints.left_lift.parent": "right_lift"},
            "joints.left_lift.parent: must be one of base, torso, listed before this joint, is 'right_lift'",
        ),
        ({".parent": "neck"}, ".parent: must be one of base, torso"),
        ({".parent": 1}, ".parent: must be a string, is 1"),
        ({"tool_names": ["foot"]}, "tools.left_hand: unknown entry"),
        ({"tools.left_hand.origin": ...}, "tools.left_hand.origin: missing"),
        ({".mimic.joint": "hip"}, ".elasticity: unknown entry"),
        ({".mimic.joint": "hip", ".elasticity": ...}, ".rotor_inertia: unknown entry"),
        (FOLLOWER | {".mimic.joint": "hip"}, ".: fixed at 0 rad: its mimic leader 'hip' does not exist"),
        (
            FOLLOWER | {".mimic": {"joint": "torso", "ratio": 0.0}},
            ".: fixed at 0 rad: the mimic ratio of left_elbow is 0",
        ),
        ({".mimic": {"joint": "torso", "factor": 2.0}}, ".mimic.factor: unknown"),
        ({".limits.lower": 2.0}, ".limits.lower: must not exceed upper, 0.1"),
        ({".limits.max": 2.0}, ".limits.max: unknown entry"),
        ({".limits.velocity": 0.0}, ".limits.velocity: must be positive, is 0"),
        (
            {"joints.left_wrist": {"type": "fixed", "origin": ZERO, "center_of_mass": [0.0, 0.0, 0.1]}},
            "joints.left_wrist.center_of_mass: unknown entry",
        ),
    ],
    "pendulum": [
        ({"joint_names": ["base"]}, "joint_names: 'base' is reserved for the base"),
        ({"convention": "denavit"}, "convention: must be one of body_screws, spatial_screws"),
        ({"tool_names": ["foot"], "tools": ...}, "tool_names: 'foot' is neither a body"),
        ({"tool_names": ["hinge", "hinge"]}, "tool_names: 'hinge' is listed twice"),
        ({"tool_names": ..., "tools": {}}, "tools: unknown entry"),
        (
            {"tool_names": ["hinge"], "tools": {"hinge": {"body": "hinge", "origin": ZERO}}},
            "tools.hinge: is the name of a body",
        ),
        (
            {"tool_names": ["foot"], "tools": {"foot": {"body": "base", "origin": ZERO}}},
            "tools: 'foot' is fixed to the base",
        ),
        ({".damping": -1.0}, ".damping: must not be negative, is -1"),
        ({".friction": -1.0}, ".friction: must not be negative, is -1"),
        (FOLLOWER | {".type": "fixed", ".screw": ...}, "joint_names: at least one joint must move; all are fixed"),
        ({".type": "fixed"}, ".screw: unknown entry"),
        ({".type": "planar"}, ".screw: unknown entry"),
        (
            {".type": "continuous", ".screw": [0.0, 1.0, 0.0, 0.0, 0.1, 0.0]},
            ".screw: the pitch of a continuous joint must be 0",
        ),
        ({".center_of_mass": [0.0, 0.3, 0.0]}, ".: the mass matrix is singular, since no mass moves with hinge"),
    ],
    "ur5e": [
        ({".screw": [0.0] * 6}, ".screw: unknown entry"),
        ({".dh.d": ...}, ".dh.d: missing"),
        ({".dh.beta": 0.0}, ".dh.beta: unknown entry"),
        ({".dh.alpha": "pi/2"}, ".dh.alpha: must be a number"),
        ({".dh": ...}, ".dh: missing"),
        ({".type": "floating"}, ".type: must be one"),
        ({".type": "helical"}, ".pitch: missing"),
        ({".type": "helical", ".pitch": 0.0}, ".pitch: a helical joint must have a pitch"),
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


def as_file(parameters: Any) -> str:
    return yaml.safe_dump({"/**": {"ros__parameters": {"robot": parameters}}}, sort_keys=False, default_flow_style=None)


GOOD = as_file(packaged_parameters("planar_2r"))


def refusal(folder: Path, content: str | bytes) -> str:
    """The first message with which a file of this content is refused, without the name of the file."""
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
    ("an arm", "no ros__parameters section"),
    ("[1, 2]", "no ros__parameters section"),
    ("/**: {ros__parameters: {rate: 5}}", "no ros__parameters section has an entry robot"),
    ("robot: {name: arm}", "no ros__parameters section has an entry robot"),
    ("/**: {ros__parameters: [robot]}", "no ros__parameters section has an entry robot"),
    ("/**: {ros__parameters: {robot: [1, 2]}}", "robot: must be a section, is [1, 2]"),
    (GOOD + GOOD.replace("/**", "/other"), "2 robots; a file must describe one"),
    (GOOD + "---\n" + GOOD, "found another document"),
    # not accepted by ROS 2
    (with_mass("2.0\n          mass: 3.0"), "'mass' occurs twice"),
    (GOOD.replace(MASS, "1: 2.0"), "1 is not a string"),
    (GOOD.replace("[0.5, 0.0, 0.0]", "[0.5, 0.0, x]"), "list of mixed types"),
    (with_mass("&m 2.0").replace("mass: 1.0", "mass: *m"), "aliases are not allowed"),
    (GOOD.replace(MASS, "<<: {mass: 2.0}"), "mass: missing"),
    (with_mass("!!python/name:os.system"), "is not allowed"),
    (with_mass("!!float heavy"), "the tag tag:yaml.org,2002:float is not allowed"),
    (with_mass("!heavy 2.0"), "the tag !heavy is not allowed"),
    (with_mass("2001-01-01"), "mass: must be a number, is '2001-01-01'"),
    (with_mass("2001-13-45"), "mass: must be a number, is '2001-13-45'"),
    (with_mass("1:30"), "mass: must be a number, is '1:30'"),
    (with_mass("1_000"), "mass: must be a number, is '1_000'"),
    (with_mass("yes"), "mass: must be a number, is True"),
    (with_mass("1e400"), "mass: must be finite, is inf"),
    # not YAML
    ("a: [1", ": not valid YAML: "),
    ("a:\n\tb: 1", "line 2, column 1: not valid YAML"),
    ("a: b: c", "line 1, column 5: not valid YAML: mapping values are not allowed"),
    ("%YAML 2.0\n---\na", "not valid YAML"),
    (GOOD + "\x07", "not valid YAML: unacceptable character"),
    # not text
    (GOOD.encode() + b"# \xe9", "must be UTF-8 text, is not at byte"),
    (GOOD.encode("utf-16"), "must be UTF-8 text, is not at byte 0"),
    # made to hang: fails by the time limit of all tests
    ("#" * 1_000_000, "must be at most 200000 bytes"),
    ("[" * 500, "nested too deeply"),
    ("{a: " * 500, "nested too deeply"),
    ("- " * 500 + "x", "nested too deeply"),
    (with_mass("9" * 150_000), "mass: must be finite"),
    (with_mass("9" * 150_000 + "x"), "mass: must be a number"),
    (with_mass("0x" + "f" * 150_000), "mass: must be a number"),
]


@pytest.mark.parametrize(("content", "reason"), FILES, ids=[reason for _, reason in FILES])
def test_invalid_file(tmp_path: Path, content: str | bytes, reason: str) -> None:
    assert reason in refusal(tmp_path, content)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "iiwaa",
            "nor a parameter file (.yaml), an MJCF model (.xml, .mjcf), a URDF (.urdf), a xacro file (.xacro), "
            "the text of one, or a name of robot_descriptions; did you mean iiwa?",
        ),
        ("arm.sdf", "arm.sdf: SDF is not read; convert it to URDF or MJCF"),
        ("<sdf version='1.11'/>", "robot_description: SDF is not read; convert it to URDF or MJCF"),
        ("", "neither a packaged robot"),
        ("none/arm.yaml", "cannot be read: No such file or directory"),
        ("arm\0.yaml", "cannot be read: embedded null byte"),
        ("a" * 5000 + ".yaml", "cannot be read: File name too long"),
        ("folder.yaml", "folder.yaml: cannot be read: not a file"),
        ("pipe.yaml", "pipe.yaml: cannot be read: not a file"),
        pytest.param(
            "secret.yaml",
            "cannot be read: Permission denied",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file"),
        ),
        ("/**: {ros__parameters: {robot: {name: '\ud800'}}}\n", "surrogates not allowed"),
    ],
)
def test_invalid_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.yaml").mkdir()
    os.mkfifo("pipe.yaml")
    Path("secret.yaml").write_text(GOOD)
    Path("secret.yaml").chmod(0)
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(source)
    assert reason in str(error.value)


@pytest.mark.parametrize("parameters", [None, 1, "arm", [], [("name", "arm")]])
def test_parameters_that_are_not_a_section(parameters: Any) -> None:
    with pytest.raises(RobotDescriptionError, match="parameters: robot: must be a section"):
        robot_from_parameters(parameters)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8) | st.integers(), inner, max_size=4),
    max_leaves=8,
)
PATHS = [
    *("name", "joint_names", "inertia_reference", "gravity", "joints", "."),
    *(".type", ".screw", ".origin", ".origin.xyz", ".mass", ".center_of_mass", ".inertia"),
    *(".elasticity", ".elasticity.type", ".elasticity.stiffness", ".rotor_inertia"),
]


@given(path=st.sampled_from(PATHS), value=ANYTHING)
def test_any_value_is_accepted_or_refused_by_name(path: str, value: Any) -> None:
    message = "arm.yaml: robot."
    try:
        robot_from_parameters(edited("planar_2r", {path: value}), source="arm.yaml")
    except RobotDescriptionError as error:
        message = str(error)
    assert message.startswith("arm.yaml: robot.")


@given(
    text=st.text(alphabet=st.characters(codec="utf-8"))
    | st.text(alphabet="[]{}:-,&*!|>'\"%@#?<~0x1e \n\ta", max_size=30)
)
def test_any_text_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    refusal(tmp_path_factory.mktemp("any"), text)


def test_the_original_of_these_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text(GOOD)
    assert load_robot(path).joint_names == ("joint_1", "joint_2")
