# SPDX-License-Identifier: Apache-2.0
"""Entries of robot files that classes declare: read, written, in the template and on the page."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import pytest
import reference_pages
import yaml
from chains import packaged_parameters

from eom_dynamics.actuators.parameters import DeclaredEntry, Entry, declared_entries, written_entries
from eom_dynamics.robot import robot_from_parameters
from eom_dynamics.robot.description import (
    BodyEntries,
    Description,
    JointDescription,
    OriginEntries,
    PayloadEntries,
    ToolEntries,
)
from eom_dynamics.robot.model import Joint, Robot
from eom_dynamics.robot.readers.entries import declared_values
from eom_dynamics.robot.readers.section import Section
from eom_dynamics.robot.writers.parameters import robot_as_parameters
from eom_dynamics.tools.cli.inspect import TEMPLATE, entry_lines

KINDS = (JointDescription, Description, BodyEntries, PayloadEntries, ToolEntries, OriginEntries)


def numbers(kind: type, section: dict[str, Any], seed: np.random.Generator) -> dict[str, Any]:
    """Another value for each number that a class and its parts declare, within a section of a file."""
    for each in declared_entries(kind):
        place = section.setdefault(each.entry.section, {}) if each.entry.section else section
        if each.kind is float and each.name not in ("sign", "lower", "rated_torque", "rest_position"):
            place[each.name] = float(seed.uniform(0.01, 0.09)) + (10.0 if each.name in ("static", "upper") else 0.0)
        elif each.name == "side":
            place[each.name] = "motor"
        elif each.name not in ("parallel_spring", "effort_spread", "rotor") and declared_entries(each.kind):
            numbers(each.kind, place if each.entry.is_inline else place.setdefault(each.name, {}), seed)
    return section


def test_each_number_is_read_and_written_again() -> None:
    parameters = packaged_parameters("planar_2r")
    seed = np.random.default_rng(3)
    first = parameters["joints"]["joint_1"]
    own = numbers(JointDescription, {}, seed)
    first |= own
    of_robot = numbers(Description, {}, seed)
    robot = robot_from_parameters(parameters | of_robot)
    written = robot_as_parameters(robot, [])
    assert {name: written["joints"]["joint_1"][name] for name in own} == own
    assert {name: written[name] for name in of_robot} == of_robot


def leaves(kind: type) -> Iterator[DeclaredEntry]:
    for each in declared_entries(kind):
        yield from leaves(each.kind) if declared_entries(each.kind) else [each]


@pytest.mark.parametrize("kind", KINDS)
def test_the_reference_has_a_row_with_the_meaning_of_each(kind: type) -> None:
    rows = [line for line in reference_pages.robot_file_page().splitlines() if line.startswith("| `")]
    for each in (x for x in leaves(kind) if not x.entry.is_inline):
        assert each.entry.meaning
        assert any(row.split("`")[1].split(".")[-1] == each.name for row in rows), each.name


@pytest.mark.parametrize("kind", KINDS)
def test_the_template_has_each_entry_and_its_examples_are_read(kind: type) -> None:
    for each in declared_entries(kind):
        assert re.search(rf"\b{each.name}: ", TEMPLATE)
    lines = [line.replace("# ", "", 1) for line in entry_lines(kind, 0)]
    entries = yaml.safe_load("\n".join(lines))
    values = declared_values(kind, Section(entries, "joint", "arm.yaml"))
    assert values.keys() == {each.attribute for each in declared_entries(kind)}


@dataclass(frozen=True, eq=False)
class _Brake:
    """A part with an entry that no class has."""

    holding_torque: Annotated[float, Entry("of the brake", "N m", "positive", example=3.0)]
    release_time: Annotated[float, Entry("until the motor may move", "s", "not negative")] = 0.05


@dataclass(frozen=True, eq=False)
class _Braked(Joint):
    brake: Annotated[_Brake | None, Entry("holds the joint without current")] = None


def test_a_field_is_all_there_is_to_a_new_entry() -> None:
    section = Section({"brake": {"holding_torque": 4}}, "joint", "arm.yaml")
    brake = declared_values(_Braked, section)["brake"]
    assert (brake.holding_torque, brake.release_time) == (4.0, 0.05)
    joint: Robot | Any = robot_from_parameters(packaged_parameters("planar_2r")).joints[0]
    braked = _Braked(**vars(replace(joint)) | {"brake": brake})
    assert written_entries(braked)["brake"] == {"holding_torque": 4.0}
    (line,) = (x for x in entry_lines(_Braked, 0) if x.startswith("# brake: {holding_torque: 3.0} "))
    assert line.endswith(" # holds the joint without current")
    assert "| `brake.release_time` | s | 0.05 | until the motor may move |" in [
        *reference_pages._entry_rows(_Braked, "")
    ]
