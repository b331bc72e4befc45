# SPDX-License-Identifier: Apache-2.0
"""Write ``docs/signatures.md``: arguments and results of the compiled methods, from their declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import eom_dynamics as eom

DOCUMENT = Path(__file__).parents[1] / "docs" / "signatures.md"

_HEAD = """# Arguments and results of compiled methods

Written by `python scripts/signatures.py` from the declarations by which compiled functions check their arguments;
`signature(method)` of an object has the numbers for its robot. Shapes are those of one state, with n joints, m
motors and B bodies; a batch has a leading axis N. Names with a colon are entries of a keyword argument, such as
`wrench=(W, Wd, Wdd)`, of which the last may be omitted, which means zero; with t > 1 tools wrenches have shape (t,
6). Names after an arrow are results. Methods that take any number of rates are shown with one.
"""

_KINEMATIC = {"pose": 0, "motion": 1, "jacobian": 0, "jacobian_derivatives": 1, "center_of_mass": 0}
_OF_CENTER = {"center_of_mass_derivatives": 1, "center_of_mass_jacobian": 0, "center_of_mass_jacobian_derivatives": 1}


def text() -> str:
    """The document."""
    # Sizes of which no two are equal, so that each stands for one name.
    robot = eom.load_robot("iiwa")
    joint = replace(robot.joints[0], spring=eom.load_robot("vsa_planar_2r").joints[0].spring)
    arm = eom.ElasticArm(replace(robot, joints=(joint, *robot.joints[1:])))
    sizes = {robot.n: "n", len(arm.motor_names): "m", robot.n + 6: "6 + n", 10 * len(robot.joints): "10 B"}
    parts = [_HEAD]
    for subject, rates in (
        (eom.Dynamics(robot), {}),
        (arm, {}),
        (eom.Kinematics(robot), _KINEMATIC | _OF_CENTER),
        (eom.FloatingBase(robot), _KINEMATIC),
    ):
        parts.append(f"## {type(subject).__name__}\n")
        parts += _tables(subject, rates, sizes)
    return "\n".join(parts)


def _tables(subject: Any, rates: dict[str, int], sizes: dict[int, str]) -> Iterator[str]:
    compiled = [name for name, method in vars(type(subject)).items() if type(method).__name__ == "_StateMethod"]
    for method in (*compiled, *rates):
        signature = subject.signature(method, rates[method]) if method in rates else subject.signature(method)
        yield f"### {method}\n\n| | shape | |\n|---|---|---|"
        for name, shape, about in signature.table():
            named = re.sub(r"\d+", lambda size: sizes.get(int(size.group()), size.group()), shape)
            yield f"| {name} | {named} | {about} |"
        yield ""


if __name__ == "__main__":
    DOCUMENT.write_text(text(), encoding="utf-8")
