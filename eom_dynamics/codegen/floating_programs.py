# SPDX-License-Identifier: Apache-2.0
"""Programs of a robot on a floating base; names and units are those of :class:`eom_dynamics.FloatingBase`.

The state is the pose of the base (16 entries of its matrix, row by row), q and nu = (V0, qd).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from ..jet import Jet
from ..recursion import LinkTree, kinematics, link_tree
from ..recursion.center_of_mass import first_moment
from ..recursion.composite import BASE
from ..recursion.composite import coriolis_matrix as coriolis
from ..recursion.composite import mass_matrix as inertia
from ..recursion.forward_dynamics import forward_dynamics_on_base
from ..recursion.newton_euler import inverse_dynamics_on_base, specific_force
from ..recursion.passive_efforts import passive_energy
from ..recursion.scalars import Matrix, Numbers, vector_cross
from ..recursion.vectors import Vector
from ..robot import Frame, Robot
from ..states import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES
from .expressions import Expression, Scalar
from .kinematic_programs import frame_details
from .program import Program, c_name, trace
from .programs import WITH_PAYLOAD, carrying_jets, payload_inputs
from .recipe import Recipe

RATE_NAMES = ("nu", "nud", "nudd", "nuddd")
"""Twist of the base and joint rates, and their time derivatives."""

IMU_NAMES = ("w", "wd", "wdd", "wddd"), ("f", "fd", "fdd")
"""Angular velocity and specific force of the base, and their time derivatives."""

Inputs = dict[str, list[Expression]]
Outputs = Mapping[str, list[Scalar]]


def effort(robot: Robot) -> Program:
    """tau (6 + n): wrench on the base and joint efforts, with the tool wrench."""
    return _efforts("effort", robot, 1)


def inverse_dynamics(robot: Robot) -> Program:
    """tau, taud and taudd (6 + n), with the tool wrench."""
    return _efforts("inverse_dynamics", robot, 3)


def joint_efforts(robot: Robot) -> Program:
    """tau, taud and taudd (n) of the joints alone, with the tool wrench."""
    return _efforts("joint_efforts", robot, 3, joints_only=True)


def imu_efforts(robot: Robot, *, payload: bool = False) -> Program:
    """The same from angular velocity and specific force of the base, with their time derivatives.

    With payloads, the parameters of those at the tools and their time derivatives are inputs, too.
    """
    tree = link_tree(robot)
    turning, force = IMU_NAMES
    loads = payload_inputs(robot, len(EFFORT_NAMES)) if payload else {}

    def compute(x: Inputs) -> Outputs:
        w, p = _jets([x[name] for name in turning]), _jets([x[name] for name in force])
        wrench = [x[name] for name in WRENCH_NAMES]
        loaded = carrying_jets(tree, [x[name] for name in loads])
        efforts, _ = inverse_dynamics_on_base(loaded, [x[name] for name in STATE_NAMES], w, p, wrench)
        return dict(zip(EFFORT_NAMES, efforts, strict=True))

    inputs = dict.fromkeys(STATE_NAMES, robot.n) | dict.fromkeys((*turning, *force), 3)
    return _traced("imu_efforts" + payload * WITH_PAYLOAD, inputs | _wrenches(robot, 3) | loads, compute)


def _efforts(name: str, robot: Robot, orders: int, *, joints_only: bool = False) -> Program:
    rates = RATE_NAMES[: orders + 1]
    tree = link_tree(robot)

    def compute(x: Inputs) -> Outputs:
        levels = _on_base(tree, x, [x[rate] for rate in rates], [x[name] for name in WRENCH_NAMES[:orders]])
        start = BASE if joints_only else 0
        return {name: level[start:] for name, level in zip(EFFORT_NAMES, levels, strict=False)}

    return _traced(name, _state(robot, rates) | _wrenches(robot, orders), compute)


def bias(robot: Robot) -> Program:
    """tau at nud = 0, with the tool wrench."""
    tree, rest = link_tree(robot), [0.0] * (BASE + robot.n)

    def compute(x: Inputs) -> Outputs:
        return {"bias": _on_base(tree, x, [x["nu"], rest], [x["W"]])[0]}

    return _traced("bias", _state(robot, ("nu",)) | _wrenches(robot, 1), compute)


def gravity(robot: Robot) -> Program:
    """tau at rest."""
    tree, rest = link_tree(robot), [0.0] * (BASE + robot.n)

    def compute(x: Inputs) -> Outputs:
        return {"gravity": _on_base(tree, x, [rest, rest], ())[0]}

    return _traced("gravity", _state(robot, ()), compute)


def mass_matrix(robot: Robot) -> Program:
    """M, in row-major order."""
    tree = link_tree(robot)
    return _traced("mass_matrix", {"q": robot.n}, lambda x: {"M": _entries(inertia(tree, x["q"]))})


def coriolis_matrix(robot: Robot) -> Program:
    """C, in row-major order."""
    tree = link_tree(robot)

    def compute(x: Inputs) -> Outputs:
        return {"C": _entries(coriolis(tree, x["q"], x["nu"][BASE:], x["nu"][:3]))}

    return _traced("coriolis_matrix", {"q": robot.n, "nu": BASE + robot.n}, compute)


def forward_dynamics(robot: Robot) -> Program:
    """nud under a wrench on the base and joint efforts, with the tool wrench."""
    tree = link_tree(robot)

    def compute(x: Inputs) -> Outputs:
        gravity = _gravity(tree, x["pose"])
        return {"nud": forward_dynamics_on_base(tree, x["q"], x["nu"], x["tau"], gravity, x["W"])}

    return _traced("forward_dynamics", _state(robot, ("nu", "tau")) | _wrenches(robot, 1), compute)


def momentum(robot: Robot) -> Program:
    """M nu: momentum in the frame of the base, and momenta of the joint variables."""
    tree = link_tree(robot)
    return _traced("momentum", _motion(robot), lambda x: {"p": _momentum(tree, x)})


def kinetic_energy(robot: Robot) -> Program:
    """nu' M nu / 2."""
    tree = link_tree(robot)

    def compute(x: Inputs) -> Outputs:
        total: Scalar = 0.0
        for rate, momentum in zip(x["nu"], _momentum(tree, x), strict=True):
            total = total + rate * momentum
        return {"T": [0.5 * total]}

    return _traced("kinetic_energy", _motion(robot), compute)


def potential_energy(robot: Robot) -> Program:
    """-g' times the first moment of the mass about the inertial origin, and the energy of passive efforts."""
    tree = link_tree(robot, regrouped=False)

    def compute(x: Inputs) -> Outputs:
        mass, (moment,) = first_moment(tree, [x["q"]], with_base=True)
        total: Scalar = passive_energy(tree.passive, x["q"])
        for k, along in enumerate(tree.gravity.tolist()):
            total = total - along * (mass * _position(x["pose"])[k] + _turned_out(x["pose"], moment)[k])
        return {"U": [total]}

    return _traced("potential_energy", _state(robot, ()), compute)


def centroidal_momentum(robot: Robot) -> Program:
    """Angular momentum about the centre of mass, and linear momentum, along the inertial axes."""
    tree, own = link_tree(robot), link_tree(robot, regrouped=False)

    def compute(x: Inputs) -> Outputs:
        return {"h": _about_center(own, x, _momentum(tree, x)[:BASE])}

    return _traced("centroidal_momentum", _state(robot, ("nu",)), compute)


def centroidal_momentum_matrix(robot: Robot) -> Program:
    """A of the centroidal momentum A nu, in row-major order."""
    tree, own = link_tree(robot), link_tree(robot, regrouped=False)

    def compute(x: Inputs) -> Outputs:
        columns = [_about_center(own, x, list(column)) for column in zip(*inertia(tree, x["q"])[:BASE], strict=True)]
        return {"A": [column[i] for i in range(BASE) for column in columns]}

    return _traced("centroidal_momentum_matrix", _state(robot, ()), compute)


def center_of_mass_jacobian(robot: Robot) -> Program:
    """Jacobian J (3, 6 + n) of the centre of mass, in row-major order: linear momentum per mass."""
    tree, mass = link_tree(robot), total_mass(robot)

    def compute(x: Inputs) -> Outputs:
        columns = [_turned_out(x["pose"], column) for column in zip(*inertia(tree, x["q"])[3:BASE], strict=True)]
        return {"J": [(1.0 / mass) * column[i] for i in range(3) for column in columns]}

    return _traced("center_of_mass_jacobian", _state(robot, ()), compute)


def _center_of_mass(orders: int, robot: Robot) -> Program:
    tree, rates = link_tree(robot, regrouped=False), rate_names(orders)

    def compute(x: Inputs) -> Outputs:
        states = [x["q"], *(x[name][BASE:] for name in rates)]
        mass, moments = first_moment(tree, states, with_base=True)
        center = _jets([[(1.0 / mass) * entry for entry in moment] for moment in moments])
        position = _turned_out(x["pose"], [component[0] for component in center])
        found = {"c": [a + b for a, b in zip(_position(x["pose"]), position, strict=True)]}
        if rates:
            twists = _jets([x[name][:BASE] for name in rates])
            w, v = twists[:3], twists[3:]
            swept = vector_cross(w, center)
            level: Vector = [v[k] + center[k].rate + swept[k] for k in range(3)]
            for k in range(1, orders + 1):
                found["c" + k * "d"] = _turned_out(x["pose"], [component[0] for component in level])
                swept = vector_cross(w, level)
                level = [component.rate + turned for component, turned in zip(level, swept, strict=True)]
        return found

    return _traced("center_of_mass", _state(robot, rates), compute)


def _pose(frame: Frame, robot: Robot) -> Program:
    tree = link_tree(replace(robot, tools=(frame,)))

    def compute(x: Inputs) -> Outputs:
        return {"C": _pose_entries(*kinematics.pose_on_base(tree, x["q"], base_pose(x["pose"])))}

    return _traced("pose", _state(robot, ()), compute)


def _motion_of(frame: Frame, orders: int, robot: Robot) -> Program:
    tree, rates = link_tree(replace(robot, tools=(frame,))), rate_names(orders)

    def compute(x: Inputs) -> Outputs:
        states = [x["q"], *(x[name][BASE:] for name in rates)]
        twists = kinematics.body_twist(tree, states, [x[name][:BASE] for name in rates])
        pose = _pose_entries(*kinematics.pose_on_base(tree, x["q"], base_pose(x["pose"])))
        return {"C": pose} | {"V" + k * "d": twist for k, twist in enumerate(twists)}

    return _traced("motion", _state(robot, rates), compute)


def _jacobian(frame: Frame, representation: str, orders: int, robot: Robot) -> Program:
    tree, rates = link_tree(replace(robot, tools=(frame,))), rate_names(orders)
    in_body = representation == "body"

    def compute(x: Inputs) -> Outputs:
        states = [x["q"], *(x[name][BASE:] for name in rates)]
        at = None if in_body else base_pose(x["pose"])
        levels = kinematics.jacobian_on_base(tree, states, representation, [x[name][:BASE] for name in rates], at)
        rows = [[column[i] for i in range(BASE) for column in columns] for columns in levels]
        return {"J" + k * "d": level for k, level in enumerate(rows)}

    inputs = _state(robot, rates)
    if in_body:
        del inputs["pose"]
    return _traced("jacobian", inputs, compute)


def center_of_mass(robot: Robot, orders: int) -> Recipe:
    """Centre of mass c with ``orders`` time derivatives, along the inertial axes."""
    return _recipe(robot, "center_of_mass", partial(_center_of_mass, orders), str(orders))


def pose(robot: Robot, frame: Frame) -> Recipe:
    """Pose C of a frame in the inertial frame, in row-major order."""
    return _recipe(robot, "pose", partial(_pose, frame), *frame_details(frame))


def motion(robot: Robot, frame: Frame, orders: int) -> Recipe:
    """Pose C of a frame, and its body twist with time derivatives: V, Vd, …, as many as ``orders``."""
    return _recipe(robot, "motion", partial(_motion_of, frame, orders), *frame_details(frame), str(orders))


def jacobian(robot: Robot, frame: Frame, representation: str, orders: int) -> Recipe:
    """Jacobian J (6, 6 + n) of a frame with ``orders`` time derivatives, in row-major order.

    The body form does not take the pose of the base.
    """
    details = (*frame_details(frame), representation, str(orders))
    return _recipe(robot, "jacobian", partial(_jacobian, frame, representation, orders), *details)


def recipe(robot: Robot, name: str) -> Recipe:
    """The recipe of one of :data:`PROGRAMS`."""
    return _recipe(robot, name, PROGRAMS[name])


def rate_names(orders: int) -> list[str]:
    """The names nu, nud, …."""
    return ["nu" + k * "d" for k in range(orders)]


def total_mass(robot: Robot) -> float:
    """Mass of all bodies with the base, kg."""
    return float(robot.base.mass + sum(joint.mass for joint in robot.joints))


def _recipe(robot: Robot, name: str, trace_for: Callable[[Robot], Program], *details: str) -> Recipe:
    # The inertia of the base is no part of the digest of a robot, since programs of a fixed base do not depend on it.
    base = (robot.base.mass, *robot.base.center_of_mass, *np.ravel(robot.base.about_origin))
    return Recipe(f"floating_{name}", trace_for, (" ".join(float(x).hex() for x in base), *details))


def _traced(name: str, inputs: Mapping[str, int], compute: Callable[[Inputs], Outputs]) -> Program:
    return trace(c_name(f"floating_{name}"), inputs, compute)


def _state(robot: Robot, rates: Sequence[str]) -> dict[str, int]:
    return {"pose": 16, "q": robot.n} | dict.fromkeys(rates, BASE + robot.n)


def _motion(robot: Robot) -> dict[str, int]:
    return {"q": robot.n, "nu": BASE + robot.n}


def _wrenches(robot: Robot, count: int) -> dict[str, int]:
    return dict.fromkeys(WRENCH_NAMES[:count], 6 * len(robot.tools))


def _on_base(
    tree: LinkTree, x: Inputs, rates: Sequence[Sequence[Scalar]], wrench: Sequence[Sequence[Scalar]]
) -> list[list[Scalar]]:
    """tau, taud, … (6 + n), one for each rate from nud on."""
    twists = _jets([rate[:BASE] for rate in rates])
    force = specific_force(twists[:3], twists[3:], _gravity(tree, x["pose"]))
    states = [x["q"], *(rate[BASE:] for rate in rates)]
    efforts, reactions = inverse_dynamics_on_base(tree, states, twists[:3], force, wrench)
    return [[*base, *joints] for base, joints in zip(reactions, efforts, strict=True)]


def _momentum(tree: LinkTree, x: Inputs) -> list[Scalar]:
    """M nu: the efforts for the acceleration nu at rest, without gravity."""
    nu, zero = x["nu"], [0.0] * tree.n
    w = [Jet([0.0, rate]) for rate in nu[:3]]
    p = [Jet([rate]) for rate in nu[3:BASE]]
    efforts, reactions = inverse_dynamics_on_base(tree, [x["q"], zero, nu[BASE:]], w, p)
    return [*reactions[0], *efforts[0]]


def _about_center(own: LinkTree, x: Inputs, momentum: list[Scalar]) -> list[Scalar]:
    """Momentum (6) in the base, about the centre of mass and along the inertial axes."""
    mass, (moment,) = first_moment(own, [x["q"]], with_base=True)
    angular, linear = momentum[:3], momentum[3:]
    lever = vector_cross([(1.0 / mass) * entry for entry in moment], linear)
    spin = [a - b for a, b in zip(angular, lever, strict=True)]
    return [*_turned_out(x["pose"], spin), *_turned_out(x["pose"], linear)]


def _jets(levels: Sequence[Sequence[Scalar]]) -> Vector:
    """The components of a vector, each with its time derivatives."""
    return [Jet(entries) for entries in zip(*levels, strict=True)]


def base_pose(pose: Sequence[Scalar]) -> tuple[Matrix, Numbers]:
    """Rotation and position of the input ``pose``."""
    return [list(pose[4 * i : 4 * i + 3]) for i in range(3)], _position(pose)


def _position(pose: Sequence[Scalar]) -> list[Scalar]:
    return [pose[3], pose[7], pose[11]]


def _turned_out(pose: Sequence[Scalar], vector: Sequence[Scalar]) -> list[Scalar]:
    """R0 times a vector."""
    rows, _ = base_pose(pose)
    return [row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2] for row in rows]


def _gravity(tree: LinkTree, pose: Sequence[Scalar]) -> list[Scalar]:
    """Gravitational acceleration in the frame of the base: R0' g."""
    columns = zip(*base_pose(pose)[0], strict=True)
    x, y, z = tree.gravity.tolist()
    return [column[0] * x + column[1] * y + column[2] * z for column in columns]


def _entries(matrix: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    return [entry for row in matrix for entry in row]


def _pose_entries(rotation: Matrix, position: Numbers) -> list[Scalar]:
    return [x for row, p in zip(rotation, position, strict=True) for x in (*row, p)] + [0.0, 0.0, 0.0, 1.0]


PROGRAMS: Mapping[str, Callable[[Robot], Program]] = MappingProxyType(
    {
        program.__name__: program
        for program in (
            effort,
            inverse_dynamics,
            joint_efforts,
            imu_efforts,
            bias,
            gravity,
            mass_matrix,
            coriolis_matrix,
            forward_dynamics,
            momentum,
            kinetic_energy,
            potential_energy,
            centroidal_momentum,
            centroidal_momentum_matrix,
            center_of_mass_jacobian,
        )
    }
)
"""The programs, by the name of the method of :class:`eom_dynamics.FloatingBase` that runs them."""
