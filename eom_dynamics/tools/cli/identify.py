# SPDX-License-Identifier: Apache-2.0
"""Identify masses, inertias, friction, rotors and springs of a robot from recordings, and write a robot file.

A recording is a bag with JointState messages (positions and efforts), or a .csv or .parquet table. The robot file
gives the geometry and prior inertias. If motors were recorded as well, springs, rotors and motor friction are
identified; if only motors were recorded, from their resonance.
"""

from __future__ import annotations

import argparse
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...exceptions import RobotDescriptionError, RobotDescriptionWarning, require
from ...robot import Robot
from ...robot.formats import PARAMETER_FILE, URDF, written_format
from ...robot.writers.urdf import add_inertia, add_losses, friction_in_urdf
from ...terminal import printable
from ..options import (
    RobotOptions,
    add_json,
    add_options,
    add_output_file,
    add_robot_arguments,
    html_path,
    load,
    options_of,
    robot_path,
)
from ..pages import html_page
from ..results import Result, date, progress_bars, software
from ..writing import check_file, whole_file, write_file

if TYPE_CHECKING:
    from ..identify.run import IdentificationResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from ..identify import Request

    add_robot_arguments(parser, "--robot", required=True)
    add_output_file(parser, "FILE", robot_path, "robot file to write, .yaml or .urdf")
    parser.add_argument("--page", metavar="PAGE.html", type=html_path, help="write a page with charts of the results")
    parser.add_argument("--verbose", action="store_true", help="print all notes, and tables of the results")
    add_json(parser)
    add_options(parser, Request)


def run(options: argparse.Namespace) -> Result:
    """Identify and write.

    A check fails if a residual exceeds the tolerance, or if the user should act. If no identified parameters are better
    than the given ones, nothing is written.
    """
    require("replay")
    if options.page:
        require("report")
    from ..identify import Request
    from ..identify.run import identify
    from ..identify.summary import identification_result

    for output in (options.output, *((options.page,) if options.page else ())):
        check_file(output, force=options.force)
    robot = load(options)
    request = options_of(Request, options)
    with progress_bars() as bars:
        bar = bars.add_task("read", total=1.0)

        def progress(step: str, fraction: float) -> None:
            bars.update(bar, description=printable(step), completed=fraction)

        identified = identify(robot, request, progress)
        about = {
            "recordings": ", ".join(str(file) for file in options.bags),
            "validation": ", ".join(map(str, options.validate))
            or (f"{identified.held_out:g} of each, in blocks" if identified.held_out else "none"),
            "robot": f"{robot.name}, from {options.robot:.200}",
        }
        progress("write and verify the file", 0.0)
        with whole_file(options.output, force=options.force) as temporary:
            part = options_of(RobotOptions, options)
            identified, not_in_file = write_and_verify(temporary, options.robot, part, identified, about)
            if identified.unwritten:
                temporary.unlink()
        if options.page:
            progress("draw the page", 0.0)
        result = replace(identification_result(identified, about, options.page), warnings=not_in_file)
        if options.page:
            write_file(options.page, html_page("identify", result).encode(), force=options.force)
    return result


def write_and_verify(
    path: Path, source: str, robot_options: RobotOptions, result: IdentificationResult, about: Mapping[str, str]
) -> tuple[IdentificationResult, tuple[str, ...]]:
    """Write the file of an identified robot, reload it, and score it; arguments and errors as of :func:`robot_file`.

    Returns the results with the figures of the reloaded file, and a line for each property that is not in it.
    ``robot_options`` are the part of the source that was loaded, ``about`` names and values for the comments.
    """
    from ..identify.summary import identification_result

    reload_options = robot_options if _patched(path, source) else RobotOptions()
    path.write_text(robot_file(path, source, result)[0], encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotDescriptionWarning)  # of the source, which told them
        again = reload_options.load(str(path))
    # A URDF has no gravity and does not say that friction is part of the efforts: the caller of its loader does.
    rubbing = written_format(path.name) is URDF or again.joint_friction
    result = result.verified(replace(again, gravity=result.robot.gravity, joint_friction=rubbing))
    lines = [
        "Identified by eom_dynamics identify; values ± one standard deviation.",
        *(f"{name}: {value}" for name, value in about.items()),
        f"date: {date()}",
        f"software: {software()}",
        *(f"Failed: {line}" for line in result.failures),
        *identification_result(result, about).as_text(whole=True).splitlines(),
    ]
    text, lost = robot_file(path, source, result, "".join(f"# {printable(line)}".rstrip() + "\n" for line in lines))
    path.write_text(text, encoding="utf-8")
    return result, lost


def robot_file(
    output: Path, source: str, result: IdentificationResult, comments: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Write a robot in the format of the ending of ``output``; return the text, and a line for each property it lacks.

    A URDF from a URDF ``source`` is patched; ``comments`` are for the head of a parameter file. Raises
    RobotDescriptionError if the robot cannot be written in this format.
    """
    robot = result.robot
    if _patched(output, source):
        timing = ("command_period and timing of the drives are omitted: URDF does not support them; write .yaml",)
        lost = (*_left_out(result), *(timing if robot.command_period else ()))
        return patched_urdf(Path(source).read_text(encoding="utf-8"), robot), lost
    kind = written_format(output.name) or PARAMETER_FILE
    assert kind.write is not None  # by the type of the argument
    written = kind.write(robot)
    # Readers limit the size of the text; the numbers come first.
    fits = kind is PARAMETER_FILE and len((comments + written.text).encode()) <= PARAMETER_FILE.largest
    return (comments if fits else "") + written.text, written.lost


def _patched(output: Path, source: str) -> bool:
    """True if the file is the URDF that the robot was loaded from, with other numbers."""
    return written_format(output.name) is URDF and source.endswith(output.suffix) and Path(source).is_file()


def _left_out(result: IdentificationResult) -> list[str]:
    from ...identification.links.regressor import LINE, SCALE

    fit, lines = result.link_fit, []
    passive = {"offset", LINE, SCALE} & set(() if fit is None else fit.regressor.terms)
    if fit is not None and passive and fit.options.offset == "arm":
        lines.append("constant efforts and parallel springs are omitted: a URDF has none; write .yaml")
    if result.elastic is not None:
        lines.append("springs and rotors are omitted: a URDF has none; write .yaml")
    elif fit is not None and fit.options.side == "motor":
        lines.append("rotor inertia of motors is omitted: a URDF has none; write .yaml, or identify with --side joint")
    return [*lines, *friction_in_urdf(result.robot)]


def patched_urdf(text: str, robot: Robot) -> str:
    """Write the inertias and friction of a robot into the URDF that it was read from.

    Links that are fixed to a moving link are part of its body: the inertia of all is written to the moving link, and
    removed from the others. Raises RobotDescriptionError unless the text is a URDF with these joints.
    """
    try:
        root = ET.fromstring(text, parser=ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    except ET.ParseError as error:
        raise RobotDescriptionError(f"not a URDF: {error}") from None
    joints = {element.get("name", ""): element for element in root.findall("joint")}
    links = {element.get("name", ""): element for element in root.findall("link")}
    if missing := [joint.name for joint in robot.joints if joint.name not in joints]:
        raise RobotDescriptionError(
            f"{robot.name}: the URDF has no joint {', '.join(missing)}; joints with several variables cannot be patched"
        )
    moving = {joint.name for joint in robot.joints}
    for joint in robot.joints:
        element = joints[joint.name]
        child = _named(element, "child")
        if child not in links:
            raise RobotDescriptionError(f"{robot.name}: the URDF has no link {child}, the child of {joint.name}")
        _remove_inertia(links[child])
        add_inertia(links[child], joint.inertial)
        for new in links[child].findall("inertial"):
            new.tail = "\n  "
        add_losses(element, joint)
        for fixed in _fixed_to(child, joints, moving):
            _remove_inertia(links[fixed])
    return f'<?xml version="1.0"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _named(joint: ET.Element, which: str) -> str:
    element = joint.find(which)
    return "" if element is None else element.get("link", "")


def _fixed_to(link: str, joints: dict[str, ET.Element], moving: set[str]) -> list[str]:
    """Links below a link that do not move relative to it."""
    fixed = [element for name, element in joints.items() if name not in moving]
    below = [_named(joint, "child") for joint in fixed if _named(joint, "parent") == link]
    return [name for child in below for name in (child, *_fixed_to(child, joints, moving))]


def _remove_inertia(link: ET.Element) -> None:
    for old in link.findall("inertial"):
        link.remove(old)
