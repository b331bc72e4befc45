# SPDX-License-Identifier: Apache-2.0
"""Programs of a robot's dynamics.

Each function traces one program for a robot; names and units of its inputs and outputs are those of
:class:`eom_dynamics.Dynamics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from .. import recursion
from ..jet import Jet
from ..recursion import LinkTree, composite, inverse_mass_matrix, link_tree
from ..recursion.center_of_mass import first_moment
from ..recursion.composite import of_joints
from ..recursion.effort_partials import effort_by_position
from ..recursion.passive_efforts import passive_energy
from ..recursion.scalars import Matrix, dot, minus, product, transposed
from ..robot import Robot
from ..states import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, derivative_names
from .expressions import Expression, Scalar
from .partials import Partials
from .program import Program, c_name, trace
from .recipe import Recipe

WITH_PAYLOAD = "_with_payload"
"""Ending of the names of programs that read the parameters of payloads."""


def effort(robot: Robot) -> Program:
    """tau, with the tool wrench."""
    return _efforts("effort", robot, 1)


def effort_with_payload(robot: Robot) -> Program:
    """The same with payloads at the tools."""
    return _efforts("effort_with_payload", robot, 1, payload=True)


def inverse_dynamics(robot: Robot) -> Program:
    """tau, taud and taudd, with the tool wrench."""
    return _efforts("inverse_dynamics", robot, 3)


def inverse_dynamics_with_payload(robot: Robot) -> Program:
    """The same with payloads at the tools, and the time derivatives of their parameters."""
    return _efforts("inverse_dynamics_with_payload", robot, 3, payload=True)


def inverse_dynamics_of_order(order: int, *, payload: bool = False) -> Recipe:
    """tau, taud, … up to a time derivative of any order, with the tool wrench, and with payloads on request."""
    name = "inverse_dynamics" + payload * WITH_PAYLOAD
    if order == len(EFFORT_NAMES) - 1:
        return PROGRAMS[name]
    trace_efforts = partial(_efforts, name, orders=order + 1, payload=payload)
    return Recipe(name, trace_efforts, (str(order),))


def _efforts(name: str, robot: Robot, orders: int, *, payload: bool = False) -> Program:
    states, wrenches = derivative_names("q", orders + 2), derivative_names("W", orders)
    loads = payload_inputs(robot, orders) if payload else {}
    tree = link_tree(robot)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        loaded = carrying_jets(tree, [x[key] for key in loads])
        values = recursion.inverse_dynamics(loaded, [x[key] for key in states], [x[key] for key in wrenches])
        return dict(zip(derivative_names("tau", orders), values, strict=True))

    vectors = dict.fromkeys(states, robot.n) | dict.fromkeys(wrenches, 6 * len(robot.tools))
    return trace(c_name(name), vectors | loads, compute)


def payload_inputs(robot: Robot, orders: int) -> dict[str, int]:
    """Inputs of the parameters of payloads at all tools, with their time derivatives."""
    return dict.fromkeys(derivative_names(PAYLOAD_NAMES[0], orders), recursion.PARAMETERS * len(robot.tools))


def carrying_jets(tree: LinkTree, payload: Sequence[Sequence[Expression]]) -> LinkTree:
    """The tree with payloads whose parameters change with time, or without any for ()."""
    return recursion.carrying(tree, [Jet(levels) for levels in zip(*payload, strict=True)]) if payload else tree


def mass_matrix(robot: Robot) -> Program:
    """M, in row-major order."""
    return _mass_matrix("mass_matrix", robot, {})


def mass_matrix_with_payload(robot: Robot) -> Program:
    """The same with payloads at the tools."""
    return _mass_matrix("mass_matrix_with_payload", robot, payload_inputs(robot, 1))


def _mass_matrix(name: str, robot: Robot, loads: Mapping[str, int]) -> Program:
    tree = link_tree(robot)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        loaded = recursion.carrying(tree, x[PAYLOAD_NAMES[0]]) if loads else tree
        return {"M": [entry for row in of_joints(composite.mass_matrix(loaded, x["q"])) for entry in row]}

    return trace(c_name(name), {"q": robot.n, **loads}, compute)


def effort_partials(robot: Robot) -> Program:
    """Partial derivatives of tau with respect to q, qd and qdd (the last is M), in row-major order."""
    tree = link_tree(robot)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        outputs = {
            "dtau_dq": effort_by_position(tree, x["q"], x["qd"], x["qdd"], x["W"]),
            "dtau_dqd": _effort_by_velocity(tree, x["q"], x["qd"]),
            "dtau_dqdd": of_joints(composite.mass_matrix(tree, x["q"])),
        }
        return {name: [entry for row in matrix for entry in row] for name, matrix in outputs.items()}

    vectors = dict.fromkeys(STATE_NAMES[:3], robot.n)
    return trace(c_name("effort_partials"), vectors | {"W": 6 * len(robot.tools)}, compute)


def _effort_by_velocity(tree: LinkTree, q: list[Expression], qd: list[Expression]) -> Matrix:
    """2 C, and the slope of the friction of joints."""
    by_qd = [[2.0 * entry for entry in row] for row in _coriolis_matrix(tree, q, qd)]
    for i, (effort, rate) in enumerate(zip(tree.joint_friction([qd]), qd, strict=True)):
        by_qd[i][i] = by_qd[i][i] + Partials(rate)(effort[0])
    return by_qd


def bias(robot: Robot) -> Program:
    """Joint efforts at rest accelerations: C qd + Q_grav + Q_ext."""
    tree, names = link_tree(robot), STATE_NAMES[:2]

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        (tau,) = recursion.inverse_dynamics(tree, [x["q"], x["qd"], [0.0] * tree.n], [x["W"]])
        return {"bias": tau}

    return trace(c_name("bias"), dict.fromkeys(names, robot.n) | {"W": 6 * len(robot.tools)}, compute)


def gravity(robot: Robot) -> Program:
    """Joint efforts at rest: Q_grav, and those against parallel springs and constant loads."""
    return _gravity("gravity", robot, {})


def gravity_with_payload(robot: Robot) -> Program:
    """The same with payloads at the tools."""
    return _gravity("gravity_with_payload", robot, payload_inputs(robot, 1))


def _gravity(name: str, robot: Robot, loads: Mapping[str, int]) -> Program:
    tree, rest = link_tree(robot), [0.0] * robot.n

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        (tau,) = recursion.inverse_dynamics(carrying_jets(tree, [x[key] for key in loads]), [x["q"], rest, rest])
        return {"gravity": tau}

    return trace(c_name(name), {"q": robot.n, **loads}, compute)


def coriolis_matrix(robot: Robot) -> Program:
    """C of Christoffel symbols, in row-major order."""
    tree = link_tree(robot)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        return {"C": [entry for row in _coriolis_matrix(tree, x["q"], x["qd"]) for entry in row]}

    return trace(c_name("coriolis_matrix"), dict.fromkeys(STATE_NAMES[:2], robot.n), compute)


def coriolis_tensor(robot: Robot) -> Program:
    """Christoffel symbols c_ijk in row-major order: C_ij = sum over k of c_ijk qd_k."""
    tree, n = link_tree(robot), robot.n

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        layers = [_coriolis_matrix(tree, x["q"], [float(i == k) for i in range(n)]) for k in range(n)]
        return {"c": [layers[k][i][j] for i in range(n) for j in range(n) for k in range(n)]}

    return trace(c_name("coriolis_tensor"), {"q": robot.n}, compute)


def forward_dynamics(robot: Robot) -> Program:
    """qdd under joint efforts, with the tool wrench."""
    return _forward_dynamics("forward_dynamics", robot, ())


def forward_dynamics_with_added_inertia(robot: Robot) -> Program:
    """The same with an inertia added to the diagonal of M."""
    return _forward_dynamics("forward_dynamics_with_added_inertia", robot, ("added_inertia",))


def _forward_dynamics(name: str, robot: Robot, added: tuple[str, ...]) -> Program:
    tree = link_tree(robot)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        return {"qdd": recursion.forward_dynamics(tree, x["q"], x["qd"], x["tau"], x["W"], *(x[a] for a in added))}

    vectors = dict.fromkeys(("q", "qd", "tau", *added), robot.n)
    return trace(c_name(name), vectors | {"W": 6 * len(robot.tools)}, compute)


def forward_dynamics_partials(robot: Robot) -> Program:
    """Partial derivatives of qdd with respect to q, qd and tau (the last is the inverse of M), in row-major order.

    Those of inverse dynamics are tau_q dq + tau_qd dqd + M dqdd = dtau, hence those of qdd -M⁻¹ tau_q, -M⁻¹ tau_qd.
    """
    tree, n = link_tree(robot), robot.n

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        inverse = inverse_mass_matrix.inverse(of_joints(composite.mass_matrix(tree, x["q"])))
        (bias,) = recursion.inverse_dynamics(tree, [x["q"], x["qd"], [0.0] * n], [x["W"]])
        qdd = product(inverse, minus(x["tau"], bias))
        by_q = effort_by_position(tree, x["q"], x["qd"], qdd, x["W"])
        by_qd = _effort_by_velocity(tree, x["q"], x["qd"])
        outputs = {
            name: [-dot(row, column) for row in inverse for column in transposed(efforts)]
            for name, efforts in (("dqdd_dq", by_q), ("dqdd_dqd", by_qd))
        }
        return outputs | {"dqdd_dtau": [entry for row in inverse for entry in row]}

    names = ("q", "qd", "tau")
    return trace(c_name("forward_dynamics_partials"), dict.fromkeys(names, n) | {"W": 6 * len(robot.tools)}, compute)


def regressor(robot: Robot) -> Program:
    """Y of tau = Y pi, in row-major order."""
    return _regressors("regressor", robot, 1)


def regressor_derivatives(robot: Robot) -> Program:
    """Y, Yd and Ydd of tau, taud and taudd, in row-major order."""
    return _regressors("regressor_derivatives", robot, 3)


def _regressors(name: str, robot: Robot, orders: int) -> Program:
    states = derivative_names("q", orders + 2)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        levels = recursion.regressor(robot, [x[key] for key in states])
        entries = [[entry for row in rows for entry in row] for rows in levels]
        return dict(zip(derivative_names("Y", orders), entries, strict=True))

    return trace(c_name(name), dict.fromkeys(states, robot.n), compute)


def momentum(robot: Robot) -> Program:
    """M qd, the momenta of the joint variables."""
    tree = _weightless(link_tree(robot))

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        return {"p": _momentum(tree, x)}

    return trace(c_name("momentum"), dict.fromkeys(STATE_NAMES[:2], robot.n), compute)


def kinetic_energy(robot: Robot) -> Program:
    """qd' M qd / 2."""
    tree = _weightless(link_tree(robot))

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        return {"T": [0.5 * dot(x["qd"], _momentum(tree, x))]}

    return trace(c_name("kinetic_energy"), dict.fromkeys(STATE_NAMES[:2], robot.n), compute)


def potential_energy(robot: Robot) -> Program:
    """-g' times the first moment of the mass, zero where that is zero, and the energy of passive efforts."""
    tree = link_tree(robot, regrouped=False)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        _, (moment,) = first_moment(tree, [x["q"]])
        return {"U": [passive_energy(tree.passive, x["q"]) - dot(robot.gravity.tolist(), moment)]}

    return trace(c_name("potential_energy"), {"q": robot.n}, compute)


def _momentum(tree: LinkTree, x: dict[str, list[Expression]]) -> list[Scalar]:
    (product,) = recursion.inverse_dynamics(tree, [x["q"], [0.0] * tree.n, x["qd"]])
    return product


def _coriolis_matrix(tree: LinkTree, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Matrix:
    return of_joints(composite.coriolis_matrix(tree, q, qd, [0.0] * 3))


def _weightless(tree: LinkTree) -> LinkTree:
    """Inertia alone: without gravity, joint friction and passive efforts."""
    return replace(tree, gravity=np.zeros(3), friction=(), passive=())


PROGRAMS: Mapping[str, Recipe] = MappingProxyType(
    {
        program.__name__: Recipe(program.__name__, program)
        for program in (
            inverse_dynamics,
            inverse_dynamics_with_payload,
            effort,
            effort_with_payload,
            mass_matrix,
            mass_matrix_with_payload,
            effort_partials,
            bias,
            gravity,
            gravity_with_payload,
            coriolis_matrix,
            coriolis_tensor,
            forward_dynamics,
            forward_dynamics_with_added_inertia,
            forward_dynamics_partials,
            regressor,
            regressor_derivatives,
            momentum,
            kinetic_energy,
            potential_energy,
        )
    }
)
"""The programs, by the name of the method of :class:`eom_dynamics.Dynamics` that runs them."""
