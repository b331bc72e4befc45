# SPDX-License-Identifier: Apache-2.0
"""Programs of a robot's dynamics and of a frame's kinematics.

Names and units of inputs and outputs are as in :class:`eom_dynamics.Dynamics` and :class:`eom_dynamics.Kinematics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from .. import recursion
from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES, derivative_names
from ..jet import Jet
from ..recursion import LinkTree, composite, inverse_mass_matrix, kinematics, link_tree
from ..recursion.composite import momentum_balance, of_joints
from ..recursion.effort_partials import effort_by_position
from ..recursion.kinematics import center_of_mass, first_moment, joint_rates
from ..recursion.passive_efforts import passive_efforts, passive_energy
from ..recursion.scalars import Matrix, Numbers, dot, entries, minus, product, transposed
from ..robot import Frame, Robot
from ..robot.task_space import moving_joints
from .expressions import Expression, Partials, Scalar
from .program import Program
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


def pose_program(frame: Frame) -> Recipe:
    """Pose C of a frame, in row-major order."""
    return declared("pose", "q", "C", partial(_pose, frame), frame_details(frame))


def forward_kinematics(robot: Robot) -> Program:
    """Poses of all tools, in row-major order: C of a single tool, or C_1, C_2, …."""
    names = ["C"] if len(robot.tools) == 1 else [f"C_{k}" for k in range(1, len(robot.tools) + 1)]

    def compute(robot: Robot, x: Inputs) -> Outputs:
        return [pose_entries(*kinematics.frame_pose(tool_tree(robot, tool), x["q"])) for tool in robot.tools]

    return declared("forward_kinematics", "q", names, compute)(robot)


def pose_derivatives(frame: Frame, orders: int) -> Recipe:
    """Pose C of a frame, and its body twist with time derivatives V, Vd, …: ``orders`` vectors."""
    inputs, outputs = derivative_names("q", orders + 1), ("C", *derivative_names("V", orders))
    details = (*frame_details(frame), str(orders))

    def compute(robot: Robot, x: Inputs) -> Outputs:
        twists = kinematics.frame_twist(tool_tree(robot, frame), levels(x, "q"))
        return [*_pose(frame, robot, x), *twists]

    return declared("pose_derivatives", inputs, outputs, compute, details)


def jacobian_program(frame: Frame, representation: str, orders: int, *, of_point: bool = False) -> Recipe:
    """Jacobian J of a frame with ``orders`` time derivatives, in row-major order.

    With ``of_point``, the Jacobian of a point fixed to the frame; the point is an input after the joint vectors.
    """
    name = "jacobian_of_point" if of_point else "jacobian"
    inputs = (*derivative_names("q", orders + 1), *(["point"] if of_point else []))
    details = (*frame_details(frame), representation, str(orders))
    compute = partial(_jacobian, frame, representation)
    return declared(name, inputs, derivative_names("J", orders + 1), compute, details)


def joint_rates_program(
    frame: Frame, reference: str, units: tuple[float, ...], orders: int, *, preferred: bool, weighted: bool
) -> Recipe:
    """Joint rates qd, qdd, … for ``orders`` twists V, Vd, …, and the twist errors eV, eVd, ….

    Further inputs after q and V, Vd, …: the inverse of K in row-major order, u, ud, … and d² if ``preferred``, and the
    units of the joint rates if ``weighted``. See :func:`.recursion.kinematics.joint_rates`.
    """
    details = (*frame_details(frame), reference, str(units), str(orders), str(preferred), str(weighted))
    motions = (*derivative_names("u", orders), "d2") if preferred else ()
    inputs = ("q", *derivative_names("V", orders), "inverse", *motions, *(("scales",) if weighted else ()))
    outputs = (*derivative_names("qd", orders), *derivative_names("eV", orders))

    def traced(robot: Robot) -> Program:
        moving, rest = moving_joints(robot, frame).tolist(), [0.0] * robot.n
        rank = min(len(moving), 6)

        def compute(robot: Robot, x: Inputs) -> Outputs:
            twists = levels(x, "V")
            motion = joint_rates(
                tool_tree(robot, frame),
                x["q"],
                twists,
                levels(x, "u") or [rest for _ in twists],
                [x["inverse"][k * rank : (k + 1) * rank] for k in range(rank)],
                x["d2"][0] if "d2" in x else 0.0,
                reference,
                moving,
                units,
                x.get("scales", [1.0] * robot.n),
            )
            return [*motion.rates, *motion.missed]

        return declared("joint_rates", inputs, outputs, compute, (), {"inverse": rank * rank, "d2": 1})(robot)

    return Recipe("joint_rates", traced, details, inputs, outputs)


def center_of_mass_program(quantity: str, orders: int) -> Recipe:
    """``center_of_mass`` c, or ``center_of_mass_jacobian`` J in row-major order, with ``orders`` time derivatives."""
    name, compute = {
        "center_of_mass": ("c", _center_of_mass),
        "center_of_mass_jacobian": ("J", _center_of_mass_jacobian),
    }[quantity]
    inputs, outputs = derivative_names("q", orders + 1), derivative_names(name, orders + 1)
    return declared(quantity, inputs, outputs, compute, (str(orders),))


def poses_and_jacobians(frames: Sequence[Frame]) -> Recipe:
    """Pose C and body Jacobian J of several frames, in row-major order: C_0, J_0, C_1, …."""
    details = tuple(detail for frame in frames for detail in frame_details(frame))
    names = [f"{name}_{k}" for k in range(len(frames)) for name in "CJ"]

    def compute(robot: Robot, x: Inputs) -> Outputs:
        return [y for frame in frames for y in (*_pose(frame, robot, x), *_jacobian(frame, "body", robot, x))]

    return declared("poses_and_jacobians", "q", names, compute, details)


def _tool_kinematics(robot: Robot, x: Inputs) -> Outputs:
    tools = [(_pose(tool, robot, x)[0], _jacobian(tool, "body", robot, x)[0]) for tool in robot.tools]
    return [[entry for tool in tools for entry in tool[k]] for k in range(2)]


TOOL_KINEMATICS = declared("tool_kinematics", "q", ("tool_poses", "tool_jacobians"), _tool_kinematics)
"""Poses and body Jacobians of all tools in sequence, in row-major order."""


def frame_details(frame: Frame) -> tuple[str, ...]:
    """Frame properties on which a program depends."""
    return str(frame.joint), np.ascontiguousarray(frame.pose, dtype=float).tobytes().hex()


def tool_tree(robot: Robot, frame: Frame) -> LinkTree:
    """Tree of a robot with this frame as the only tool."""
    return link_tree(replace(robot, tools=(frame,)))


def _pose(frame: Frame, robot: Robot, x: Inputs) -> Outputs:
    return [pose_entries(*kinematics.frame_pose(tool_tree(robot, frame), x["q"]))]


def _jacobian(frame: Frame, representation: str, robot: Robot, x: Inputs) -> Outputs:
    point = {"point": x["point"]} if "point" in x else {}
    jacobians = kinematics.jacobian(tool_tree(robot, frame), levels(x, "q"), representation, **point)
    return [entries(zip(*columns, strict=True)) for columns in jacobians]


def _center_of_mass(robot: Robot, x: Inputs) -> Outputs:
    return center_of_mass(link_tree(robot, regrouped=False), levels(x, "q"))


def _center_of_mass_jacobian(robot: Robot, x: Inputs) -> Outputs:
    # Time derivatives commute with partial derivatives with respect to q.
    columns = [Partials(variable) for variable in x["q"]]
    return [[column(entry) for entry in level for column in columns] for level in _center_of_mass(robot, x)]


def pose_entries(rotation: Matrix, position: Numbers) -> list[Scalar]:
    """Entries of a pose matrix, in row-major order."""
    return [*entries([*row, x] for row, x in zip(rotation, position, strict=True)), 0.0, 0.0, 0.0, 1.0]
