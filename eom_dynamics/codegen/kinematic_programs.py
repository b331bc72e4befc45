# SPDX-License-Identifier: Apache-2.0
"""Programs of the kinematics of a frame; names and units are those of :class:`eom_dynamics.Kinematics`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..recursion import LinkTree, kinematics, link_tree
from ..recursion.center_of_mass import center_of_mass as center
from ..recursion.joint_rates import joint_rates as rates_of
from ..recursion.scalars import Matrix, Numbers
from ..robot import Frame, Robot
from ..robot.task_space import characteristic_length, moving_joints
from .expressions import Expression, Scalar
from .partials import Partials
from .program import Program, c_name, trace
from .recipe import Recipe


def pose(frame: Frame) -> Recipe:
    """Pose C of a frame, in row-major order."""
    return Recipe("pose", partial(_pose, frame), frame_details(frame))


def forward_kinematics(robot: Robot) -> Program:
    """Poses of all tools, in row-major order: C of the only one, or C_1, C_2, …."""
    trees = [_tree(robot, tool) for tool in robot.tools]
    names = ["C"] if len(trees) == 1 else [f"C_{k}" for k in range(1, len(trees) + 1)]

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        return {name: _entries(*kinematics.pose(tree, x["q"])) for name, tree in zip(names, trees, strict=True)}

    return trace(c_name("forward_kinematics"), {"q": robot.n}, compute)


def pose_derivatives(frame: Frame, orders: int) -> Recipe:
    """Pose C of a frame, and its body twist with time derivatives: V, Vd, …, as many as ``orders``."""
    return Recipe("pose_derivatives", partial(_pose_derivatives, frame, orders), (*frame_details(frame), str(orders)))


def jacobian(frame: Frame, representation: str, orders: int) -> Recipe:
    """Jacobian J of a frame with ``orders`` time derivatives, in row-major order."""
    details = (*frame_details(frame), representation, str(orders))
    return Recipe("jacobian", partial(_jacobian, frame, representation, orders), details)


def jacobian_of_point(frame: Frame, representation: str, orders: int) -> Recipe:
    """The same of a point that is fixed to the frame, after the joint vectors."""
    details = (*frame_details(frame), representation, str(orders))
    return Recipe("jacobian_of_point", partial(_jacobian, frame, representation, orders, of_point=True), details)


def joint_rates(frame: Frame, reference: str, orders: int, *, preferred: bool, weighted: bool) -> Recipe:
    """Joint rates qd, qdd, … for ``orders`` twists V, Vd, …, and what these lack: eV, eVd, ….

    After q and V, Vd, … come the inverse of K in row-major order, u, ud, … and d² if ``preferred``, and the units of
    the joints' rates if ``weighted``: see :func:`.recursion.joint_rates.joint_rates`.
    """
    details = (*frame_details(frame), reference, str(orders), str(preferred), str(weighted))
    trace_rates = partial(_joint_rates, frame, reference, orders, preferred=preferred, weighted=weighted)
    return Recipe("joint_rates", trace_rates, details)


def center_of_mass(orders: int) -> Recipe:
    """Centre of mass c with ``orders`` time derivatives."""
    return Recipe("center_of_mass", partial(_center_of_mass, orders), (str(orders),))


def center_of_mass_jacobian(orders: int) -> Recipe:
    """Jacobian J of the centre of mass with ``orders`` time derivatives, in row-major order."""
    return Recipe("center_of_mass_jacobian", partial(_center_of_mass_jacobian, orders), (str(orders),))


def poses_and_jacobians(frames: Sequence[Frame]) -> Recipe:
    """Pose C and body Jacobian J of each of some frames, in row-major order: C_0, J_0, C_1, …."""
    details = tuple(detail for frame in frames for detail in frame_details(frame))
    return Recipe("poses_and_jacobians", partial(_poses_and_jacobians, frames), details)


def frame_details(frame: Frame) -> tuple[str, ...]:
    """What a program depends on by its frame."""
    return str(frame.joint), np.ascontiguousarray(frame.pose, dtype=float).tobytes().hex()


def _tree(robot: Robot, frame: Frame) -> LinkTree:
    return link_tree(replace(robot, tools=(frame,)))


def _states(orders: int) -> list[str]:
    return ["q" + k * "d" for k in range(orders + 1)]


def _pose(frame: Frame, robot: Robot) -> Program:
    tree = _tree(robot, frame)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        return {"C": _entries(*kinematics.pose(tree, x["q"]))}

    return trace(c_name("pose"), {"q": robot.n}, compute)


def _pose_derivatives(frame: Frame, orders: int, robot: Robot) -> Program:
    tree, states = _tree(robot, frame), _states(orders)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        twists = kinematics.body_twist(tree, [x[name] for name in states])
        return {"C": _entries(*kinematics.pose(tree, x["q"])), **_derivatives("V", twists)}

    return trace(c_name("pose_derivatives"), dict.fromkeys(states, robot.n), compute)


def _jacobian(frame: Frame, representation: str, orders: int, robot: Robot, *, of_point: bool = False) -> Program:
    tree, states = _tree(robot, frame), _states(orders)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        point = {"point": x["point"]} if of_point else {}
        levels = kinematics.jacobian(tree, [x[name] for name in states], representation, **point)
        return _derivatives("J", [_rows(columns) for columns in levels])

    inputs = dict.fromkeys(states, robot.n) | ({"point": 3} if of_point else {})
    return trace(c_name("jacobian_of_point" if of_point else "jacobian"), inputs, compute)


def _joint_rates(
    frame: Frame, reference: str, orders: int, robot: Robot, *, preferred: bool, weighted: bool
) -> Program:
    tree, n = _tree(robot, frame), robot.n
    moving, length = moving_joints(robot, frame).tolist(), characteristic_length(robot, (frame,))
    rank = min(len(moving), 6)
    twists, motions = ([name + k * "d" for k in range(orders)] for name in ("V", "u"))

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        found = rates_of(
            tree,
            x["q"],
            [x[name] for name in twists],
            [x[name] if preferred else [0.0] * n for name in motions],
            [x["inverse"][k * rank : (k + 1) * rank] for k in range(rank)],
            x["d2"][0] if preferred else 0.0,
            reference,
            moving,
            length,
            x["scales"] if weighted else [1.0] * n,
        )
        return _derivatives("qd", found.rates) | _derivatives("eV", found.missed)

    inputs = {"q": n} | dict.fromkeys(twists, 6) | {"inverse": rank * rank}
    if preferred:
        inputs |= dict.fromkeys(motions, n) | {"d2": 1}
    if weighted:
        inputs |= {"scales": n}
    return trace(c_name("joint_rates"), inputs, compute)


def _center_of_mass(orders: int, robot: Robot) -> Program:
    tree, states = link_tree(robot, regrouped=False), _states(orders)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        return _derivatives("c", center(tree, [x[name] for name in states]))

    return trace(c_name("center_of_mass"), dict.fromkeys(states, robot.n), compute)


def _center_of_mass_jacobian(orders: int, robot: Robot) -> Program:
    tree, states = link_tree(robot, regrouped=False), _states(orders)

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        # Total derivatives with respect to time commute with partial ones with respect to q.
        columns = [Partials(variable) for variable in x["q"]]
        levels = center(tree, [x[name] for name in states])
        return _derivatives("J", [[column(entry) for entry in level for column in columns] for level in levels])

    return trace(c_name("center_of_mass_jacobian"), dict.fromkeys(states, robot.n), compute)


def _derivatives(name: str, values: Sequence[list[Scalar]]) -> dict[str, list[Scalar]]:
    return {name + k * "d": value for k, value in enumerate(values)}


def _poses_and_jacobians(frames: Sequence[Frame], robot: Robot) -> Program:
    trees = [_tree(robot, frame) for frame in frames]

    def compute(x: dict[str, list[Expression]]) -> Mapping[str, list[Scalar]]:
        outputs = {}
        for k, tree in enumerate(trees):
            outputs[f"C_{k}"] = _entries(*kinematics.pose(tree, x["q"]))
            outputs[f"J_{k}"] = _rows(kinematics.jacobian(tree, [x["q"]], "body")[0])
        return outputs

    return trace(c_name("poses_and_jacobians"), {"q": robot.n}, compute)


def _rows(columns: list[Numbers]) -> list[Scalar]:
    return [column[i] for i in range(6) for column in columns]


def _entries(rotation: Matrix, position: Numbers) -> list[Scalar]:
    rows = [[*row, x] for row, x in zip(rotation, position, strict=True)]
    return [x for row in rows for x in row] + [0.0, 0.0, 0.0, 1.0]
