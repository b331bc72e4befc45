# SPDX-License-Identifier: Apache-2.0
"""The programs that one robot's dynamics consist of; each is traced only when it is asked for.

Each takes a robot and returns a :class:`Program`; the names and units of its inputs and outputs are those of
:class:`eom_dynamics.Dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from .. import recursion
from ..recursion import LinkTree, link_tree
from ..robot import Robot
from ..states import STATE_NAMES
from .cache import digest
from .expressions import Expression, Scalar
from .partials import Partials
from .program import Program, trace

WRENCH_NAMES = ("W", "Wd", "Wdd")
EFFORT_NAMES = ("tau", "taud", "taudd")


def c_name(program: str) -> str:
    """The name of a program in C."""
    return f"eom_{program}"


def effort(robot: Robot) -> Program:
    """tau alone, with the tool wrench."""
    return _efforts("effort", robot, 1)


def inverse_dynamics(robot: Robot) -> Program:
    """tau, taud and taudd, with the tool wrench."""
    return _efforts("inverse_dynamics", robot, 3)


def _efforts(name: str, robot: Robot, orders: int) -> Program:
    states, wrenches = STATE_NAMES[: orders + 2], WRENCH_NAMES[:orders]
    tree = link_tree(robot)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        values = recursion.inverse_dynamics(tree, [x[key] for key in states], [x[key] for key in wrenches])
        return dict(zip(EFFORT_NAMES, values, strict=False))

    return trace(c_name(name), dict.fromkeys(states, robot.n) | dict.fromkeys(wrenches, 6 * len(robot.tools)), compute)


def mass_matrix(robot: Robot) -> Program:
    """M, row after row."""
    tree = link_tree(robot)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        columns = [_column(tree, x["q"], j) for j in range(robot.n)]
        return {"M": [columns[j][i] for i in range(robot.n) for j in range(robot.n)]}

    return trace(c_name("mass_matrix"), {"q": robot.n}, compute)


def effort_partials(robot: Robot) -> Program:
    """Partial derivatives of tau with respect to q, qd and qdd (the last is M), row after row."""
    tree = link_tree(robot)
    names = STATE_NAMES[:3]

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        (tau,) = recursion.inverse_dynamics(tree, [x[name] for name in names], [x["W"]])
        outputs = {}
        for name in names:
            columns = [Partials(variable) for variable in x[name]]
            outputs[f"dtau_d{name}"] = [column(effort) for effort in tau for column in columns]
        return outputs

    return trace(c_name("effort_partials"), dict.fromkeys(names, robot.n) | {"W": 6 * len(robot.tools)}, compute)


def _column(tree: LinkTree, q: list[Expression], j: int) -> list[Scalar]:
    """Column j of the mass matrix: the efforts of a unit acceleration at rest, without gravity."""
    unit = [float(i == j) for i in range(tree.n)]
    weightless = replace(tree, gravity=np.zeros(3))
    (tau,) = recursion.inverse_dynamics(weightless, [q, [0.0] * tree.n, unit])
    return tau


def fingerprint(robot: Robot) -> str:
    """Digest of all of a robot that its dynamics depend on."""
    parts: list[bytes | str] = [np.asarray(robot.gravity).tobytes()]
    parts += [array.tobytes() for array in robot.coupling]
    for tool in robot.tools:
        parts += [str(tool.joint), np.ascontiguousarray(tool.pose).tobytes()]
    for joint in robot.joints:
        numbers = [joint.screw, joint.reference_pose, joint.center_of_mass, joint.inertia_about_origin]
        parts += [str(joint.parent), float(joint.mass).hex(), *(np.ascontiguousarray(x).tobytes() for x in numbers)]
    return digest(*parts)


PROGRAMS: Mapping[str, Callable[[Robot], Program]] = MappingProxyType(
    {program.__name__: program for program in (inverse_dynamics, effort, mass_matrix, effort_partials)}
)
"""All of them, by the name of the method of :class:`eom_dynamics.Dynamics` that runs them."""
