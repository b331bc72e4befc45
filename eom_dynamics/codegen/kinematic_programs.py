# SPDX-License-Identifier: Apache-2.0
"""Programs of a frame's kinematics; names and units as in :class:`eom_dynamics.Kinematics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..arrays import derivative_names
from ..recursion import LinkTree, kinematics, link_tree
from ..recursion.kinematics import center_of_mass, joint_rates
from ..recursion.scalars import Matrix, Numbers, entries
from ..robot import Frame, Robot
from ..robot.task_space import moving_joints
from .expressions import Partials, Scalar
from .program import Program
from .recipe import Inputs, Outputs, Recipe, declared, levels


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
