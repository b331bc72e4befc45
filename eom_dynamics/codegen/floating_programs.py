# SPDX-License-Identifier: Apache-2.0
"""Programs of a robot on a floating base; names and units as in :class:`eom_dynamics.FloatingBase`.

The state is the pose of the base (16 entries of its matrix, row by row), q and nu = (V0, qd).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES, derivative_names
from ..jet import Jet
from ..recursion import LinkTree, kinematics, link_tree
from ..recursion.composite import BASE, composite_coriolis_matrix, composite_mass_matrix
from ..recursion.forward_dynamics import forward_dynamics_on_base
from ..recursion.kinematics import first_moment
from ..recursion.newton_euler import inverse_dynamics_on_base, specific_force
from ..recursion.passive_efforts import passive_energy
from ..recursion.scalars import Matrix, Numbers, Vector, cross, dot, entries, minus, plus, product, transposed_product
from ..robot import Frame, Robot
from ..vectors import FAMILIES
from .expressions import Scalar
from .programs import WITH_PAYLOAD, carrying_jets, frame_details, pose_entries, tool_tree
from .recipe import Inputs, Outputs, Recipe, declared, levels

RATE_NAMES = ("nu", "nud", "nudd", "nuddd")
"""Twist of the base and joint rates, and their time derivatives."""

IMU_NAMES = FAMILIES["w"].names, FAMILIES["f"].names
"""Angular velocity and specific force of the base, and their time derivatives."""


def efforts_on_base(*, payload: bool = False) -> Recipe:
    """tau, taud and taudd (n) from angular velocity and specific force of the base, with their time derivatives.

    With payloads, the payload parameters at the tools and their time derivatives are inputs, too.
    """
    inputs = [*STATE_NAMES, *IMU_NAMES[0], *IMU_NAMES[1], *WRENCH_NAMES, *(PAYLOAD_NAMES if payload else ())]
    name = "floating_imu_efforts" + payload * WITH_PAYLOAD
    return declared(name, inputs, EFFORT_NAMES, _efforts_on_base)


def _efforts_on_base(robot: Robot, x: Inputs) -> Outputs:
    w, p = (_jets([x[name] for name in names]) for names in IMU_NAMES)
    tree = carrying_jets(link_tree(robot), levels(x, "P"))
    return inverse_dynamics_on_base(tree, levels(x, "q"), w, p, levels(x, "W"))[0]


def _efforts(robot: Robot, x: Inputs) -> Outputs:
    """tau, taud, … (6 + n): wrench on the base and joint efforts, with the tool wrench."""
    return _on_base(link_tree(robot), x, levels(x, "nu"), levels(x, "W"))


def _at_rest(robot: Robot, x: Inputs) -> Outputs:
    """tau at nud = 0 with the tool wrench; at rest, tau without velocity and wrench."""
    zero = [0.0] * (BASE + robot.n)
    return _on_base(link_tree(robot), x, [x.get("nu", zero), zero], [x["W"]] if "W" in x else ())


def _coriolis_matrix(robot: Robot, x: Inputs) -> Outputs:
    return [entries(composite_coriolis_matrix(link_tree(robot), x["q"], x["nu"][BASE:], x["nu"][:3]))]


def _forward_dynamics(robot: Robot, x: Inputs) -> Outputs:
    """nud under a wrench on the base and joint efforts, with the tool wrench."""
    tree = link_tree(robot)
    return [forward_dynamics_on_base(tree, x["q"], x["nu"], x["tau"], _gravity(tree, x["pose"]), x["W"])]


def _momentum(robot: Robot, x: Inputs) -> Outputs:
    """M nu: momentum in the base frame, and momenta of the joint variables.

    Computed as the efforts for the acceleration nu at rest, without gravity.
    """
    nu, zero = x["nu"], [0.0] * robot.n
    w = [Jet([0.0, rate]) for rate in nu[:3]]
    p = [Jet([rate]) for rate in nu[3:BASE]]
    efforts, reactions = inverse_dynamics_on_base(link_tree(robot), [x["q"], zero, nu[BASE:]], w, p)
    return [[*reactions[0], *efforts[0]]]


def _potential_energy(robot: Robot, x: Inputs) -> Outputs:
    """-g' times the first moment of the mass about the inertial origin, and the energy of passive efforts."""
    tree = link_tree(robot, regrouped=False)
    mass, (moment,) = first_moment(tree, [x["q"]], with_base=True)
    total: Scalar = passive_energy(tree.passive, x["q"])
    for k, along in enumerate(tree.gravity.tolist()):
        total = total - along * (mass * _position(x["pose"])[k] + _turned_out(x["pose"], moment)[k])
    return [[total]]


def _centroidal_momentum(robot: Robot, x: Inputs) -> Outputs:
    """Angular momentum about the center of mass, and linear momentum, along the inertial axes."""
    return [_about_center(link_tree(robot, regrouped=False), x, _momentum(robot, x)[0][:BASE])]


def _centroidal_momentum_matrix(robot: Robot, x: Inputs) -> Outputs:
    """A of the centroidal momentum A nu, in row-major order."""
    tree, rows = link_tree(robot, regrouped=False), composite_mass_matrix(link_tree(robot), x["q"])[:BASE]
    columns = [_about_center(tree, x, column) for column in zip(*rows, strict=True)]
    return [entries(zip(*columns, strict=True))]


def _center_of_mass_jacobian(robot: Robot, x: Inputs) -> Outputs:
    """Jacobian J (3, 6 + n) of the center of mass, in row-major order: linear momentum per mass."""
    mass, rows = total_mass(robot), composite_mass_matrix(link_tree(robot), x["q"])[3:BASE]
    columns = [_turned_out(x["pose"], column) for column in zip(*rows, strict=True)]
    return [[(1.0 / mass) * x for x in entries(zip(*columns, strict=True))]]


def _center_of_mass(robot: Robot, x: Inputs) -> Outputs:
    tree, rates = link_tree(robot, regrouped=False), levels(x, "nu")
    mass, moments = first_moment(tree, [x["q"], *(rate[BASE:] for rate in rates)], with_base=True)
    center = _jets([[(1.0 / mass) * entry for entry in moment] for moment in moments])
    position = _turned_out(x["pose"], [component[0] for component in center])
    motion = [plus(_position(x["pose"]), position)]
    if not rates:
        return motion
    twists = _jets([rate[:BASE] for rate in rates])
    w, v = twists[:3], twists[3:]
    swept = cross(w, center)
    level: Vector = [v[k] + center[k].rate + swept[k] for k in range(3)]
    for _ in rates:
        motion.append(_turned_out(x["pose"], [component[0] for component in level]))
        swept = cross(w, level)
        level = plus([component.rate for component in level], swept)
    return motion


def _pose(frame: Frame, robot: Robot, x: Inputs) -> Outputs:
    tree = tool_tree(robot, frame)
    return [pose_entries(*kinematics.pose_on_base(tree, x["q"], base_pose(x["pose"])))]


def _motion(frame: Frame, robot: Robot, x: Inputs) -> Outputs:
    tree, rates = tool_tree(robot, frame), levels(x, "nu")
    states = [x["q"], *(rate[BASE:] for rate in rates)]
    twists = kinematics.frame_twist(tree, states, [rate[:BASE] for rate in rates])
    return [*_pose(frame, robot, x), *twists]


def _jacobian(frame: Frame, representation: str, robot: Robot, x: Inputs) -> Outputs:
    tree, rates = tool_tree(robot, frame), levels(x, "nu")
    states = [x["q"], *(rate[BASE:] for rate in rates)]
    at = base_pose(x["pose"]) if "pose" in x else None
    jacobians = kinematics.jacobian_on_base(tree, states, representation, [rate[:BASE] for rate in rates], at)
    return [entries(zip(*columns, strict=True)) for columns in jacobians]


def floating_center_of_mass_program(robot: Robot, orders: int) -> Recipe:
    """Center of mass c with ``orders`` time derivatives, along the inertial axes."""
    inputs, outputs = ("pose", "q", *derivative_names("nu", orders)), derivative_names("c", orders + 1)
    return _declared(robot, "center_of_mass", inputs, outputs, _center_of_mass, str(orders))


def floating_pose_program(robot: Robot, frame: Frame) -> Recipe:
    """Pose C of a frame in the inertial frame, in row-major order."""
    return _declared(robot, "pose", ("pose", "q"), "C", partial(_pose, frame), *frame_details(frame))


def motion_program(robot: Robot, frame: Frame, orders: int) -> Recipe:
    """Pose C of a frame, and its body twist with time derivatives V, Vd, …: ``orders`` vectors."""
    inputs, outputs = ("pose", "q", *derivative_names("nu", orders)), ("C", *derivative_names("V", orders))
    return _declared(robot, "motion", inputs, outputs, partial(_motion, frame), *frame_details(frame), str(orders))


def floating_jacobian_program(robot: Robot, frame: Frame, representation: str, orders: int) -> Recipe:
    """Jacobian J (6, 6 + n) of a frame with ``orders`` time derivatives, in row-major order.

    The body form does not depend on the pose of the base.
    """
    inputs = (*(() if representation == "body" else ("pose",)), "q", *derivative_names("nu", orders))
    details = (*frame_details(frame), representation, str(orders))
    compute = partial(_jacobian, frame, representation)
    return _declared(robot, "jacobian", inputs, derivative_names("J", orders + 1), compute, *details)


def recipe(robot: Robot, name: str) -> Recipe:
    """Recipe of a program in :data:`PROGRAMS`."""
    return _declared(robot, name, *PROGRAMS[name])


def total_mass(robot: Robot) -> float:
    """Mass of all bodies including the base, kg."""
    return float(robot.base.mass + sum(joint.mass for joint in robot.joints))


def _declared(
    robot: Robot,
    name: str,
    inputs: Iterable[str],
    outputs: Iterable[str],
    compute: Callable[[Robot, Inputs], Outputs],
    *details: str,
) -> Recipe:
    # The robot's digest excludes the base inertia, since programs of a fixed base do not depend on it.
    base = (robot.base.mass, *robot.base.center_of_mass, *np.ravel(robot.base.about_origin))
    details = (" ".join(float(x).hex() for x in base), *details)
    return declared(f"floating_{name}", inputs, outputs, compute, details, {"tau": BASE + robot.n})


def _on_base(
    tree: LinkTree, x: Inputs, rates: Sequence[Sequence[Scalar]], wrench: Sequence[Sequence[Scalar]]
) -> list[list[Scalar]]:
    """tau, taud, … (6 + n), a vector for each rate from nud on."""
    twists = _jets([rate[:BASE] for rate in rates])
    force = specific_force(twists[:3], twists[3:], _gravity(tree, x["pose"]))
    states = [x["q"], *(rate[BASE:] for rate in rates)]
    efforts, reactions = inverse_dynamics_on_base(tree, states, twists[:3], force, wrench)
    return [[*base, *joints] for base, joints in zip(reactions, efforts, strict=True)]


def _about_center(tree: LinkTree, x: Inputs, momentum: Sequence[Scalar]) -> list[Scalar]:
    """Momentum (6) in the base frame, converted to the center of mass and the inertial axes."""
    mass, (moment,) = first_moment(tree, [x["q"]], with_base=True)
    angular, linear = momentum[:3], momentum[3:]
    lever = cross([(1.0 / mass) * entry for entry in moment], linear)
    return [*_turned_out(x["pose"], minus(angular, lever)), *_turned_out(x["pose"], linear)]


def _jets(levels: Sequence[Sequence[Scalar]]) -> Vector:
    return [Jet(entries) for entries in zip(*levels, strict=True)]


def base_pose(pose: Sequence[Scalar]) -> tuple[Matrix, Numbers]:
    """Rotation and position of the input ``pose``."""
    return [list(pose[4 * i : 4 * i + 3]) for i in range(3)], _position(pose)


def _position(pose: Sequence[Scalar]) -> list[Scalar]:
    return [pose[3], pose[7], pose[11]]


def _turned_out(pose: Sequence[Scalar], vector: Sequence[Scalar]) -> list[Scalar]:
    """R0 times a vector."""
    return product(base_pose(pose)[0], vector)


def _gravity(tree: LinkTree, pose: Sequence[Scalar]) -> list[Scalar]:
    return transposed_product(base_pose(pose)[0], tree.gravity.tolist())


_FROM_IMU = " ".join((*STATE_NAMES, *IMU_NAMES[0], *IMU_NAMES[1], *WRENCH_NAMES))

PROGRAMS: Mapping[str, tuple[Sequence[str], Sequence[str], Callable[[Robot, Inputs], Outputs]]] = MappingProxyType(
    {
        name: (inputs.split(), outputs.split(), compute)
        for name, inputs, outputs, compute in (
            ("effort", "pose q nu nud W", "tau", _efforts),
            ("inverse_dynamics", "pose q nu nud nudd nuddd W Wd Wdd", "tau taud taudd", _efforts),
            (
                "joint_efforts",
                "pose q nu nud nudd nuddd W Wd Wdd",
                "u ud udd",
                lambda *x: [tau[BASE:] for tau in _efforts(*x)],
            ),
            ("imu_efforts", _FROM_IMU, "u ud udd", _efforts_on_base),
            ("bias", "pose q nu W", "bias", _at_rest),
            ("gravity", "pose q", "Q_grav", _at_rest),
            ("mass_matrix", "q", "M", lambda of, x: [entries(composite_mass_matrix(link_tree(of), x["q"]))]),
            ("coriolis_matrix", "q nu", "C", _coriolis_matrix),
            ("forward_dynamics", "pose q nu tau W", "nud", _forward_dynamics),
            ("momentum", "q nu", "p", _momentum),
            ("kinetic_energy", "q nu", "T", lambda of, x: [[0.5 * dot(x["nu"], _momentum(of, x)[0])]]),
            ("potential_energy", "pose q", "U", _potential_energy),
            ("centroidal_momentum", "pose q nu", "h", _centroidal_momentum),
            ("centroidal_momentum_matrix", "pose q", "A", _centroidal_momentum_matrix),
            ("center_of_mass_jacobian", "pose q", "J", _center_of_mass_jacobian),
        )
    }
)
"""Inputs, outputs and computation by the name of the method of :class:`eom_dynamics.FloatingBase`."""
