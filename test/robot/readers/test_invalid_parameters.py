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
JOINT = "joints.joint_1"


def edited(path: str, value: Any = ..., *, also: dict[str, Any] | None = None) -> dict[str, Any]:
    """The planar 2R with one entry set to a value, or removed if the value is an ellipsis; ``also`` has more."""
    parameters = packaged_parameters("planar_2r")
    for where, what in {path: value, **(also or {})}.items():
        *sections, entry = where.split(".")
        section = parameters
        for name in sections:
            section = section[name]
        if what is ...:
            del section[entry]
        else:
            section[entry] = what
    return parameters


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


# Entry, invalid value, and part of the message.
BAD_ENTRIES = {
    # numbers
    "nan": ("mass", NAN, "must be finite, is nan"),
    "minus infinity": ("rotor_inertia", -INF, "must be finite, is -inf"),
    "nan in a list": ("center_of_mass", [0.0, NAN, 0.0], "must be finite"),
    "huge": ("center_of_mass", [1e200, 0.0, 0.0], "must not exceed 1e+12 in SI units, is 1e+200"),
    "huge integer": ("mass", 10**400, "must be finite"),
    "bool": ("mass", True, "must be a number, is True"),
    "bools": ("center_of_mass", [True, False, True], "must be a list of 3 numbers"),
    "number in quotes": ("mass", "2.0", "must be a number, is '2.0'"),
    "text for a list": ("inertia", "none", "must be a list of 6 numbers, is 'none'"),
    "nested list": ("center_of_mass", [[0.5, 0.0, 0.0]], "must be a list of 3 numbers"),
    "no value": ("mass", None, "has no value"),
    "empty list": ("center_of_mass", [], "must have 3 entries, has 0"),
    "list too long": ("screw", [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], "must have 6 entries, has 7"),
    # bodies
    "negative mass": ("mass", -1.0, "must be positive, is -1"),
    "tiny mass": ("mass", 1e-320, "must be at least 1e-12"),
    "negative moment of inertia": (
        "inertia",
        [1.0, 0.0, 0.0, 1.0, 0.0, -1.0],
        "principal moments of inertia must not be negative",
    ),
    "moments against the triangle": (
        "inertia",
        [1.0, 0.0, 0.0, 1.0, 0.0, 2.1],
        "must not exceed the sum of the other two",
    ),
    "inertia in another order": ("inertia", [1.0, 1.0, 1.0, 0.0, 0.0, 0.0], "the order is xx xy xz yy yz zz"),
    # joints
    "unknown type": (
        "type",
        "universal",
        "must be one of revolute, continuous, prismatic, helical, planar, ball, floating, fixed, is 'universal'",
    ),
    "number for a type": ("type", 1, "planar, ball, floating, fixed, is 1"),
    "no axis": ("screw", [0.0] * 6, "the axis must be a unit vector, is zero"),
    "long axis": ("screw", [0.0, 0.0, 2.0, 0.0, 0.0, 0.0], "must be a unit vector, has length 2"),
    "revolute joint with pitch": ("screw", [0.0, 0.0, 1.0, 0.0, 0.0, 0.1], "must be 0, is 0.1 m/rad; is it helical?"),
    "tiny stiffness": ("elasticity.stiffness", 1e-320, "must be at least 1e-12"),
    "text for elasticity": ("elasticity", "rigid", "must be a section, is 'rigid'"),
    "negative rotor inertia": ("rotor_inertia", -0.1, "must not be negative, is -0.1"),
    "text for a section": ("origin", "base", "must be a section, is 'base'"),
    # unknown entries
    "unknown entry": ("colour", "red", "unknown entry; known are type, parent, screw, origin, mass"),
    "unknown entry deep down": ("origin.quaternion", [1.0, 0.0, 0.0, 0.0], "unknown entry; known are xyz, rpy"),
}


@pytest.mark.parametrize(("entry", "value", "reason"), BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_invalid_entry_of_a_joint(tmp_path: Path, entry: str, value: Any, reason: str) -> None:
    message = refusal(tmp_path, as_file(edited(f"{JOINT}.{entry}", value)))
    assert message.startswith(f"robot.{JOINT}.{entry}: ")
    assert reason in message


BAD_ROBOT_ENTRIES = {
    "name is a number": ("name", 1, "must be a string, is 1"),
    "name is empty": ("name", "", "must be a string, is ''"),
    "reference unknown": ("inertia_reference", "body", "must be one of com, link, is 'body'"),
    "reference is a list": ("inertia_reference", ["com"], "must be one of com, link"),
    "gravity is a number": ("gravity", -9.81, "must be a list of 3 numbers, is -9.81"),
    "joint twice": ("joint_names", ["joint_1", "joint_1"], "'joint_1' is listed twice"),
    "joint without name": ("joint_names", ["joint_1", ""], "must be a list of at least one name"),
    "no joints": ("joint_names", [], "must be a list of at least one name"),
    "one name, no list": ("joint_names", "joint_1", "must be a list of at least one name, is 'joint_1'"),
    "name with a dot": ("joint_names", ["arm.joint_1", "joint_2"], "'arm.joint_1' must not contain '.' or '/'"),
    "name with a line break": ("joint_names", ["joint_1\n", "joint_2"], "must not contain control characters"),
    "joints are a list": ("joints", [{"mass": 1.0}], "must be a section"),
    "joint is a number": ("joints.joint_2", 2, "must be a section, is 2"),
    "joint that is not listed": ("joints.joint_3", {"mass": 1.0}, "unknown entry; known are joint_1, joint_2"),
    "unknown entry": ("comment", "mine", "unknown entry; known are name, joint_names"),
}


@pytest.mark.parametrize(("entry", "value", "reason"), BAD_ROBOT_ENTRIES.values(), ids=BAD_ROBOT_ENTRIES)
def test_invalid_entry_of_a_robot(tmp_path: Path, entry: str, value: Any, reason: str) -> None:
    message = refusal(tmp_path, as_file(edited(entry, value)))
    assert message.startswith(f"robot.{entry}: ")
    assert reason in message


@pytest.mark.parametrize(
    "entry",
    [
        "name",
        "joint_names",
        "inertia_reference",
        "joints",
        "joints.joint_2",
        *(f"{JOINT}.{entry}" for entry in ("type", "screw", "origin", "origin.xyz")),
        *(f"{JOINT}.{entry}" for entry in ("mass", "center_of_mass", "inertia")),
        *(f"{JOINT}.{entry}" for entry in ("elasticity.type", "elasticity.stiffness")),
    ],
)
def test_missing_entry(tmp_path: Path, entry: str) -> None:
    assert refusal(tmp_path, as_file(edited(entry))) == f"robot.{entry}: missing"


# Entries of a joint that do not fit together, and part of the message.
BAD_JOINTS = {
    "prismatic joint with an angular part": ({"type": "prismatic"}, "screw: the angular part of a prismatic joint"),
    "prismatic joint without direction": (
        {"type": "prismatic", "screw": [0.0] * 6},
        "screw: the axis must be a unit vector",
    ),
    "helical joint without pitch": ({"type": "helical"}, "screw: a helical joint must have a pitch"),
    "helical joint that slides": ({"type": "helical", "screw": [0.0] * 5 + [1.0]}, "screw: the axis must be"),
    "rigid joint with stiffness": ({"elasticity.type": "rigid"}, "elasticity.stiffness: unknown entry; known are type"),
    "misspelt required entry": ({"mass": ..., "mas": 2.0}, "mass: missing; is mas a misspelling of it?"),
    "misspelt optional entry": ({"rotor_inertia": ..., "rotor_intertia": 0.2}, "did you mean rotor_inertia?"),
    "misspelt optional section": (
        {"elasticity": ..., "elastcity": {}},
        "elastcity: unknown entry; did you mean elasticity?",
    ),
}


@pytest.mark.parametrize(("entries", "reason"), BAD_JOINTS.values(), ids=BAD_JOINTS)
def test_invalid_joint(tmp_path: Path, entries: dict[str, Any], reason: str) -> None:
    (path, value), *also = ((f"{JOINT}.{entry}", what) for entry, what in entries.items())
    message = refusal(tmp_path, as_file(edited(path, value, also=dict(also))))
    assert message.startswith(f"robot.{JOINT}.")
    assert reason in message


def test_misspelt_joint(tmp_path: Path) -> None:
    message = refusal(tmp_path, as_file(edited("joint_names", ["joint_1", "joint2"])))
    assert message == "robot.joints.joint2: missing; is joint_2 a misspelling of it?"


MASS = "mass: 2.0"
assert MASS in GOOD

BAD_FILES: dict[str, tuple[str | bytes, str]] = {
    # no robot in it, or too many
    "empty": ("", "no ros__parameters section has an entry robot"),
    "only a comment": ("# an arm\n", "no ros__parameters section"),
    "text": ("an arm", "no ros__parameters section"),
    "list": ("[1, 2]", "no ros__parameters section"),
    "parameters of something else": (
        "/**: {ros__parameters: {rate: 5}}",
        "no ros__parameters section has an entry robot",
    ),
    "robot outside of parameters": ("robot: {name: arm}", "no ros__parameters section has an entry robot"),
    "parameters are a list": ("/**: {ros__parameters: [robot]}", "no ros__parameters section has an entry robot"),
    "robot is a list": ("/**: {ros__parameters: {robot: [1, 2]}}", "robot: must be a section, is [1, 2]"),
    "two robots": (GOOD + GOOD.replace("/**", "/other"), "2 robots; a file must describe one"),
    "two documents": (GOOD + "---\n" + GOOD, "found another document"),
    # not accepted by ROS 2
    "key twice": (GOOD.replace(MASS, "mass: 2.0\n          mass: 3.0"), "'mass' occurs twice"),
    "key is a number": (GOOD.replace(MASS, "1: 2.0"), "1 is not a string"),
    "text among numbers": (GOOD.replace("[0.5, 0.0, 0.0]", "[0.5, 0.0, x]"), "list of mixed types"),
    "alias": (GOOD.replace(MASS, "mass: &m 2.0").replace("mass: 1.0", "mass: *m"), "aliases are not allowed"),
    "merge": (GOOD.replace(MASS, "<<: {mass: 2.0}"), "mass: missing"),
    "object of Python": (GOOD.replace(MASS, "mass: !!python/name:os.system"), "is not allowed"),
    "tag that does not fit": (
        GOOD.replace(MASS, "mass: !!float heavy"),
        "the tag tag:yaml.org,2002:float is not allowed",
    ),
    "custom tag": (GOOD.replace(MASS, "mass: !heavy 2.0"), "the tag !heavy is not allowed"),
    "date": (GOOD.replace(MASS, "mass: 2001-01-01"), "mass: must be a number, is '2001-01-01'"),
    "date that never was": (GOOD.replace(MASS, "mass: 2001-13-45"), "mass: must be a number, is '2001-13-45'"),
    "to the base 60": (GOOD.replace(MASS, "mass: 1:30"), "mass: must be a number, is '1:30'"),
    "digits in groups": (GOOD.replace(MASS, "mass: 1_000"), "mass: must be a number, is '1_000'"),
    "yes": (GOOD.replace(MASS, "mass: yes"), "mass: must be a number, is True"),
    "beyond a double": (GOOD.replace(MASS, "mass: 1e400"), "mass: must be finite, is inf"),
    # not YAML
    "list without end": ("a: [1", ": not valid YAML: "),
    "tabulator": ("a:\n\tb: 1", "line 2, column 1: not valid YAML"),
    "two colons": ("a: b: c", "line 1, column 5: not valid YAML: mapping values are not allowed"),
    "other version of YAML": ("%YAML 2.0\n---\na", "not valid YAML"),
    "control character": (GOOD + "\x07", "not valid YAML: unacceptable character"),
    # not text
    "Latin-1": (GOOD.encode() + b"# \xe9", "must be UTF-8 text, is not at byte"),
    "UTF-16": (GOOD.encode("utf-16"), "must be UTF-8 text, is not at byte 0"),
    # made to hang: fails by the time limit of all tests
    "too large": ("#" * 1_000_000, "must be at most 200000 bytes"),
    "lists nested deeply": ("[" * 500, "nested too deeply"),
    "sections nested deeply": ("{a: " * 500, "nested too deeply"),
    "dashes nested deeply": ("- " * 500 + "x", "nested too deeply"),
    "long row of digits": (GOOD.replace(MASS, "mass: " + "9" * 150_000), "mass: must be finite"),
    "long row of digits, not a number": (GOOD.replace(MASS, "mass: " + "9" * 150_000 + "x"), "mass: must be a number"),
    "long row of hexadecimal digits": (GOOD.replace(MASS, "mass: 0x" + "f" * 150_000), "mass: must be a number"),
}


@pytest.mark.parametrize(("content", "reason"), BAD_FILES.values(), ids=BAD_FILES)
def test_invalid_file(tmp_path: Path, content: str | bytes, reason: str) -> None:
    assert reason in refusal(tmp_path, content)


def test_text_that_is_not_unicode() -> None:
    with pytest.raises(RobotDescriptionError, match=r"not valid YAML: .*surrogates not allowed"):
        load_robot("/**: {ros__parameters: {robot: {name: '\ud800'}}}\n")


BAD_SOURCES = {
    "unknown name": (
        "iiwaa",
        "nor a parameter file (.yaml), an MJCF model (.xml, .mjcf), a URDF (.urdf), a xacro file (.xacro), "
        "the text of one, or a name of robot_descriptions; did you mean iiwa?",
    ),
    "SDF": ("arm.sdf", "arm.sdf: SDF is not read; convert it to URDF or MJCF"),
    "text of an SDF": ("<sdf version='1.11'/>", "robot_description: SDF is not read; convert it to URDF or MJCF"),
    "no name": ("", "neither a packaged robot"),
    "no such file": ("arm.yaml", "cannot be read: No such file or directory"),
    "no such folder": ("none/arm.yaml", "cannot be read: No such file or directory"),
    "null character": ("arm\0.yaml", "cannot be read: embedded null byte"),
    "too long for a file's name": ("a" * 5000 + ".yaml", "cannot be read: File name too long"),
}


@pytest.mark.parametrize(("source", "reason"), BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_invalid_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RobotDescriptionError) as error:
        load_robot(source)
    assert reason in str(error.value)


def test_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "arm.yaml").mkdir()
    with pytest.raises(RobotDescriptionError, match=r"arm\.yaml: cannot be read: not a file"):
        load_robot(tmp_path / "arm.yaml")


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "arm.yaml")
    with pytest.raises(RobotDescriptionError, match=r"arm\.yaml: cannot be read: not a file"):
        load_robot(tmp_path / "arm.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "arm.yaml"
    path.write_text(GOOD)
    path.chmod(0)
    with pytest.raises(RobotDescriptionError, match="cannot be read: Permission denied"):
        load_robot(path)


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
    *("name", "joint_names", "inertia_reference", "gravity", "joints", JOINT),
    *(f"{JOINT}.{entry}" for entry in ("type", "screw", "origin", "origin.xyz", "mass", "center_of_mass", "inertia")),
    *(f"{JOINT}.{entry}" for entry in ("elasticity", "elasticity.type", "elasticity.stiffness", "rotor_inertia")),
]


@given(path=st.sampled_from(PATHS), value=ANYTHING)
def test_any_value_is_accepted_or_refused_by_name(path: str, value: Any) -> None:
    message = "arm.yaml: robot."
    try:
        robot_from_parameters(edited(path, value), source="arm.yaml")
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
