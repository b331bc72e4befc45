# SPDX-License-Identifier: Apache-2.0
"""Programs of a robot's dynamics.

Names and units of inputs and outputs are as in :class:`eom_dynamics.Dynamics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .. import recursion
from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES, derivative_names
from ..jet import Jet
from ..recursion import LinkTree, composite, inverse_mass_matrix, link_tree
from ..recursion.composite import of_joints
from ..recursion.effort_partials import effort_by_position
from ..recursion.kinematics import first_moment
from ..recursion.momentum import momentum_balance
from ..recursion.passive_efforts import passive_efforts, passive_energy
from ..recursion.scalars import Matrix, dot, entries, minus, product, transposed
from ..robot import Robot
from .expressions import Expression, Partials, Scalar
from .recipe import Inputs, Outputs, Recipe, declared, levels

WITH_PAYLOAD = "_with_payload"
"""Suffix of the names of programs that read payload parameters."""


def inverse_dynamics_of_order(order: int, *, payload: bool = False) -> Recipe:
    """tau, taud, … up to a time derivative of any order, with the tool wrench, and with payloads on request."""
    name = "inverse_dynamics" + payload * WITH_PAYLOAD
    if order == len(EFFORT_NAMES) - 1:
        return PROGRAMS[name]
    vectors = [("q", order + 3), ("W", order + 1), *([("P", order + 1)] if payload else [])]
    inputs = [name for vector in vectors for name in derivative_names(*vector)]
    return declared(name, inputs, derivative_names("tau", order + 1), _efforts, (str(order),))


def carrying_jets(tree: LinkTree, payload: Sequence[Sequence[Expression]]) -> LinkTree:
    """Tree with time-dependent payload parameters; () for no payload."""
    return recursion.carrying(tree, [Jet(orders) for orders in zip(*payload, strict=True)]) if payload else tree


def _efforts(robot: Robot, x: Inputs) -> Outputs:
    """tau, taud, …, with the tool wrench and time-dependent payloads."""
    return recursion.inverse_dynamics(carrying_jets(link_tree(robot), levels(x, "P")), levels(x, "q"), levels(x, "W"))


def _mass_matrix(robot: Robot, x: Inputs) -> Outputs:
    tree = link_tree(robot)
    loaded = recursion.carrying(tree, x[PAYLOAD_NAMES[0]]) if PAYLOAD_NAMES[0] in x else tree
    return [entries(of_joints(composite.composite_mass_matrix(loaded, x["q"])))]


def _effort_partials(robot: Robot, x: Inputs) -> Outputs:
    """Partial derivatives of tau with respect to q, qd and qdd (the last is M), in row-major order."""
    tree = link_tree(robot)
    by_q = effort_by_position(tree, x["q"], x["qd"], x["qdd"], x["W"])
    by_qd = _effort_by_velocity(tree, x["q"], x["qd"])
    return [*map(entries, (by_q, by_qd, of_joints(composite.composite_mass_matrix(tree, x["q"]))))]


def _effort_by_velocity(tree: LinkTree, q: list[Expression], qd: list[Expression]) -> Matrix:
    """2 C, plus the slope of joint friction."""
    by_qd = [[2.0 * entry for entry in row] for row in _coriolis(tree, q, qd)]
    for i, (effort, rate) in enumerate(zip(tree.joint_friction([qd]), qd, strict=True)):
        by_qd[i][i] = by_qd[i][i] + Partials(rate)(effort[0])
    return by_qd


def _bias(robot: Robot, x: Inputs) -> Outputs:
    """Joint efforts at zero acceleration: C qd + Q_grav + Q_ext."""
    return recursion.inverse_dynamics(link_tree(robot), [x["q"], x["qd"], [0.0] * robot.n], levels(x, "W"))


def _gravity(robot: Robot, x: Inputs) -> Outputs:
    """Joint efforts at rest: Q_grav plus the efforts against parallel springs and constant loads."""
    rest = [0.0] * robot.n
    return recursion.inverse_dynamics(carrying_jets(link_tree(robot), levels(x, "P")), [x["q"], rest, rest])


def _coriolis_tensor(robot: Robot, x: Inputs) -> Outputs:
    """Christoffel symbols c_ijk in row-major order: C_ij = sum over k of c_ijk qd_k."""
    tree, n = link_tree(robot), robot.n
    layers = [_coriolis(tree, x["q"], [float(i == k) for i in range(n)]) for k in range(n)]
    return [[layers[k][i][j] for i in range(n) for j in range(n) for k in range(n)]]


def _forward_dynamics(robot: Robot, x: Inputs) -> Outputs:
    """qdd under joint efforts, with the tool wrench and an optional inertia added to the diagonal of M."""
    arguments = (x[name] for name in ("q", "qd", "tau", "W", "added_inertia") if name in x)
    return [recursion.forward_dynamics(link_tree(robot), *arguments)]


def _forward_dynamics_partials(robot: Robot, x: Inputs) -> Outputs:
    """Partial derivatives of qdd with respect to q, qd and tau (the last is the inverse of M), in row-major order.

    Inverse dynamics gives tau_q dq + tau_qd dqd + M dqdd = dtau, hence the partials of qdd are -M⁻¹ tau_q, -M⁻¹ tau_qd.
    """
    tree = link_tree(robot)
    inverse = inverse_mass_matrix.inverse_matrix(of_joints(composite.composite_mass_matrix(tree, x["q"])))
    (bias,) = _bias(robot, x)
    qdd = product(inverse, minus(x["tau"], bias))
    by_q = effort_by_position(tree, x["q"], x["qd"], qdd, x["W"])
    by_qd = _effort_by_velocity(tree, x["q"], x["qd"])
    changes = [[-dot(row, column) for row in inverse for column in transposed(by)] for by in (by_q, by_qd)]
    return [*changes, entries(inverse)]


def _regressors(robot: Robot, x: Inputs) -> Outputs:
    """Y of tau = Y pi, and its time derivatives, in row-major order."""
    return [entries(rows) for rows in recursion.regressor(robot, levels(x, "q"))]


def _momentum(robot: Robot, x: Inputs) -> Outputs:
    """M qd, the momenta of the joint variables."""
    return [momentum_balance(link_tree(robot), x["q"], x["qd"])[0]]


def _momentum_balance(robot: Robot, x: Inputs) -> Outputs:
    """M qd, and beta in its rate tau - beta: Q_grav - dT/dq, joint friction and passive efforts."""
    tree = recursion.carrying(link_tree(robot), x[PAYLOAD_NAMES[0]]) if PAYLOAD_NAMES[0] in x else link_tree(robot)
    p, beta = momentum_balance(tree, x["q"], x["qd"])
    others = zip(tree.joint_friction([x["qd"]]), passive_efforts(tree.passive, tree.n, [x["q"]]), strict=True)
    return [p, [effort + a[0] + b[0] for effort, (a, b) in zip(beta, others, strict=True)]]


def _potential_energy(robot: Robot, x: Inputs) -> Outputs:
    """-g' times the first mass moment, plus the energy of passive efforts."""
    tree = link_tree(robot, regrouped=False)
    _, (moment,) = first_moment(tree, [x["q"]])
    return [[passive_energy(tree.passive, x["q"]) - dot(robot.gravity.tolist(), moment)]]


def _coriolis(tree: LinkTree, q: Sequence[Scalar], qd: Sequence[Scalar]) -> Matrix:
    return of_joints(composite.composite_coriolis_matrix(tree, q, qd, [0.0] * 3))


_MOTION, _WRENCH, _LOADS = (" ".join(names) for names in (STATE_NAMES, WRENCH_NAMES, PAYLOAD_NAMES))

PROGRAMS: Mapping[str, Recipe] = MappingProxyType(
    {
        name: declared(name, inputs.split(), outputs.split(), compute)
        for name, inputs, outputs, compute in (
            ("inverse_dynamics", f"{_MOTION} {_WRENCH}", "tau taud taudd", _efforts),
            ("inverse_dynamics_with_payload", f"{_MOTION} {_WRENCH} {_LOADS}", "tau taud taudd", _efforts),
            ("effort", "q qd qdd W", "tau", _efforts),
            ("effort_with_payload", "q qd qdd W P", "tau", _efforts),
            ("mass_matrix", "q", "M", _mass_matrix),
            ("mass_matrix_with_payload", "q P", "M", _mass_matrix),
            ("effort_partials", "q qd qdd W", "dtau_dq dtau_dqd dtau_dqdd", _effort_partials),
            ("bias", "q qd W", "bias", _bias),
            ("gravity", "q", "Q_grav", _gravity),
            ("gravity_with_payload", "q P", "Q_grav", _gravity),
            ("coriolis_matrix", "q qd", "C", lambda of, x: [entries(_coriolis(link_tree(of), x["q"], x["qd"]))]),
            ("coriolis_tensor", "q", "c", _coriolis_tensor),
            ("forward_dynamics", "q qd tau W", "qdd", _forward_dynamics),
            ("forward_dynamics_with_added_inertia", "q qd tau added_inertia W", "qdd", _forward_dynamics),
            ("forward_dynamics_partials", "q qd tau W", "dqdd_dq dqdd_dqd dqdd_dtau", _forward_dynamics_partials),
            ("regressor", "q qd qdd", "Y", _regressors),
            ("regressor_derivatives", _MOTION, "Y Yd Ydd", _regressors),
            ("momentum", "q qd", "p", _momentum),
            ("momentum_balance", "q qd", "p beta", _momentum_balance),
            ("momentum_balance_with_payload", "q qd P", "p beta", _momentum_balance),
            ("kinetic_energy", "q qd", "T", lambda of, x: [[0.5 * dot(x["qd"], _momentum(of, x)[0])]]),
            ("potential_energy", "q", "U", _potential_energy),
        )
    }
)
"""Recipes by program name."""
