# SPDX-License-Identifier: Apache-2.0
"""Programs of a robot's dynamics.

Each function traces one program for a robot; names and units of its inputs and outputs are those of
:class:`eom_dynamics.Dynamics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from .. import recursion
from ..recursion import LinkTree, link_tree
from ..robot import Robot
from ..states import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES
from .expressions import Expression, Scalar
from .partials import Partials
from .program import Program, c_name, trace
from .recipe import Recipe


def effort(robot: Robot) -> Program:
    """tau, with the tool wrench."""
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
    """M, in row-major order."""
    tree = link_tree(robot)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        columns = [_column(tree, x["q"], j) for j in range(robot.n)]
        return {"M": [columns[j][i] for i in range(robot.n) for j in range(robot.n)]}

    return trace(c_name("mass_matrix"), {"q": robot.n}, compute)


def effort_partials(robot: Robot) -> Program:
    """Partial derivatives of tau with respect to q, qd and qdd (the last is M), in row-major order."""
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
    """Column j of M: the efforts for a unit acceleration of joint j at rest, without gravity."""
    unit = [float(i == j) for i in range(tree.n)]
    weightless = replace(tree, gravity=np.zeros(3))
    (tau,) = recursion.inverse_dynamics(weightless, [q, [0.0] * tree.n, unit])
    return tau


PROGRAMS: Mapping[str, Recipe] = MappingProxyType(
    {
        program.__name__: Recipe(program.__name__, program)
        for program in (inverse_dynamics, effort, mass_matrix, effort_partials)
    }
)
"""The programs, by the name of the method of :class:`eom_dynamics.Dynamics` that runs them."""
