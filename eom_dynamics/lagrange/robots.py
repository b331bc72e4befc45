# SPDX-License-Identifier: Apache-2.0
"""Lagrangian of a robot, from the poses and twists of its bodies.

The pose C of each body is a product of exponentials; its twist is V^ = C^-1 dC/dt, with dC/dt by the chain rule. Then

    T = sum of V' M V / 2,    U = -sum of m g' c,

with the inertia matrix M and the center of mass c of each body. Neither Jacobians nor adjoints are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import sympy as sp

from .. import lie
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..exceptions import RobotDescriptionError
from ..recursion.passive_efforts import passive_energy, passive_joints
from ..robot import Frame, Joint, Robot
from ..robot.inertia import Inertial
from .lagrangian import Lagrangian, LagrangianError, variables
from .normal_form import exact, normal_form, normal_forms


def planar_arm(n: int) -> Robot:
    """Planar arm with n revolute joints about z, and gravity g along -y, as a robot of SymPy symbols.

    Link k has the length L_k, mass m_k and inertia I_k about its center of mass, which is at a_k along it. The tool is
    the tip, at L_n. LagrangianError if n is not a positive integer.
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise LagrangianError(f"n must be positive, an integer, is {n!r:.60}")
    joints = []
    for k in range(1, n + 1):
        mass, inertia, center, before = sp.symbols(f"m{k} I{k} a{k} L{k - 1}", positive=True)
        offset = np.array([before if k > 1 else 0, 0, 0], dtype=object)
        moment = inertia + mass * center**2
        joints.append(
            Joint(
                name=f"joint_{k}",
                screw=np.array([0, 0, 1, 0, 0, 0]),
                reference_pose=lie.pose(np.eye(3, dtype=int), offset),
                parent=k - 2,
                mass=mass,
                center_of_mass=np.array([center, 0, 0], dtype=object),
                inertia_about_origin=np.diag([0, moment, moment]).astype(object),
            )
        )
    last = np.array([sp.Symbol(f"L{n}", positive=True), 0, 0], dtype=object)
    tip = Frame("tip", n - 1, lie.pose(np.eye(3, dtype=int), last))
    gravity = np.array([0, -sp.Symbol("g", positive=True), 0], dtype=object)
    return Robot(f"planar_{n}r", tuple(joints), gravity, (tip,))


MOST_JOINTS = 5
"""Default limit: equations of robots with more joints fill pages, and take minutes or hours to simplify."""

# Decimal digits of a file's numbers; floating-point sums and shifts change only the last one or two digits.
_DIGITS = 15


def robot_lagrangian(
    robot: Robot, *, symbols: bool = False, motors: bool = False, friction: bool = False, most_joints: int = MOST_JOINTS
) -> Lagrangian:
    """Lagrangian of a robot in its independent joint variables q1 … qn.

    Simplification is practical for three joints in general directions, and for more joints with parallel axes.

    Args:
        robot: the robot; its masses, lengths, … may be SymPy expressions.
        symbols: replace nonzero numbers by symbols: mass m, entries of the center of mass c, of the inertia I about it
            and of the position p of a body in its parent, with the body's number in ``robot.joints`` (from 1); g, K, B,
            d, f for gravity, stiffness, rotor inertia, damping and friction. Their numbers are the Lagrangian's
            ``values``. Constant efforts and parallel springs remain numbers.
        motors: add the rotors, by the robot's rotor model. A joint with a linear spring adds its motor position theta,
            on the link side of the gear, as a variable after all q.
        friction: add damping and dry friction of the joints.
        most_joints: refuse robots with more joints; pass a larger number to raise the limit.

    Masses, lengths, inertias and other parameters become fractions of their first 15 digits, as in the file.

    Raises:
        LagrangianError: the robot has more than ``most_joints`` joints.
        TypeError: ``robot`` is not a Robot.
        RobotDescriptionError: a spring is not linear, or joints are coupled, with ``motors``.
    """
    require_robot(robot)
    if robot.n > most_joints:
        raise LagrangianError(
            f"{robot.name} has {robot.n} joints, more than {most_joints}: their equations take very long to simplify; "
            "take numbers from eom_dynamics.Dynamics or equations_of_motion, or lift the limit by most_joints"
        )
    exact_robot, stiffness, values = exact_model(robot, symbols=symbols)
    q, qd = variables(robot.n)
    T, U = kinetic_energy(exact_robot, q, qd), potential_energy(exact_robot, q)
    coordinates = q
    if motors:
        if robot.coupled_stiffness is not None or robot.transmission is not None:
            raise RobotDescriptionError(
                f"{robot.name}: the Lagrangian with motors has springs and motors joint by joint; write the energies "
                "of coupled springs and motors into your own Lagrangian"
            )
        for k, joint in enumerate(robot.independent_joints):
            if not joint.spring.is_rigid:
                if joint.spring.kind != "linear":
                    raise RobotDescriptionError(
                        f"{joint.name}: the Lagrangian with motors has linear springs, this spring is "
                        f"{joint.spring.kind}; write its energy into U of a Lagrangian of your own"
                    )
                (theta,), _ = variables(f"theta{k + 1}")
                coordinates = (*coordinates, theta)
                U += stiffness[k] * (theta - q[k]) ** 2 / 2
        T += _rotor_energy(exact_robot, q, qd)
    R = sp.S.Zero
    if friction:
        rates = map(exact, robot.coupling[0] @ np.array(qd, dtype=object))
        pairs = zip(exact_robot.joints, rates, strict=True)
        R = sp.Add(*(j.damping * v**2 / 2 + j.friction * sp.Abs(v) for j, v in pairs))
    used = T.free_symbols | U.free_symbols | R.free_symbols
    return Lagrangian(coordinates, T, U, R, {symbol: value for symbol, value in values.items() if symbol in used})


def kinetic_energy(robot: Robot, q: tuple[Any, ...], qd: tuple[Any, ...]) -> Any:
    """Sum of V' M V / 2 over the bodies, J, for symbols q and qd, n each."""
    twists = zip(robot.joints, _twists(robot, q, qd), strict=True)
    return normal_form(sp.Add(*(V @ joint.spatial_inertia @ V / 2 for joint, V in twists)))


def potential_energy(robot: Robot, q: tuple[Any, ...]) -> Any:
    """Potential energy, J: minus the sum of m g' c over the bodies, plus the energy of passive efforts."""
    total = sp.S.Zero
    for joint, C in zip(robot.joints, symbolic_poses(robot, q), strict=True):
        total -= joint.mass * (robot.gravity @ lie.transformed(C, joint.center_of_mass))
    return normal_form(total + passive_energy(passive_joints(robot), q))


def _rotor_energy(robot: Robot, q: tuple[Any, ...], qd: tuple[Any, ...]) -> Any:
    """Sum of I (N thetad)²/2 over the motors, or of I (a' w + N thetad)²/2 with their carriers' w; B = N² I."""
    total = sp.S.Zero
    complete = robot.rotor_model == "complete"
    twists = _twists(robot, q, qd) if complete else []
    for k, joint in enumerate(robot.independent_joints):
        spin = qd[k]
        if not joint.spring.is_rigid:
            _, (spin,) = variables(f"theta{k + 1}")
        if complete and joint.mount.carrier >= 0:
            spin += sum(normal_forms(joint.mount.axis) * twists[joint.mount.carrier][:3]) / exact(joint.gear_ratio)
        total += joint.rotor_inertia * spin**2 / 2
    return normal_form(total)


def _twists(robot: Robot, q: tuple[Any, ...], qd: tuple[Any, ...]) -> list[AnyArray]:
    """Body twists (6,), simplified."""
    twists = []
    for C in symbolic_poses(robot, q):
        rate = sum(np.vectorize(lambda x, i=i: sp.diff(x, q[i]), otypes=[object])(C) * qd[i] for i in range(len(q)))
        back = C[:3, :3].T
        turning, advancing = back @ rate[:3, :3], back @ rate[:3, 3]
        twists.append(normal_forms([turning[2, 1], turning[0, 2], turning[1, 0], *advancing]))
    return twists


def joint_poses(robot: Robot, q: tuple[Any, ...]) -> list[AnyArray]:
    """Poses of the bodies in their parents."""
    E, e = robot.coupling
    positions = E @ np.array(q, dtype=object) + e
    return [j.reference_pose @ lie.exp(j.screw, exact(x)) for j, x in zip(robot.joints, positions, strict=True)]


def symbolic_poses(robot: Robot, q: tuple[Any, ...]) -> list[AnyArray]:
    """Poses of the bodies, simplified link by link, since unsimplified products grow exponentially."""
    poses: list[AnyArray] = []
    for joint, step in zip(robot.joints, joint_poses(robot, q), strict=True):
        poses.append(normal_forms(step if joint.parent < 0 else poses[joint.parent] @ step))
    return poses


def exact_model(robot: Robot, *, symbols: bool = False) -> tuple[Robot, tuple[Any, ...], dict[Any, float]]:
    """Robot with fractions for floating-point numbers, or symbols for nonzero numbers.

    Returns also the stiffness of its independent joints, and the numbers of the symbols.
    """
    values: dict[Any, float] = {}

    def number(name: str, value: Any) -> Any:
        fraction = _of_file(value)
        if not symbols or fraction == 0 or fraction == sp.oo or fraction.free_symbols:
            return fraction
        symbol = sp.Symbol(name, positive=True) if fraction > 0 else sp.Symbol(name, real=True)
        values[symbol] = float(fraction)
        return symbol

    def vector(name: str, entries: AnyArray, index: Any) -> AnyArray:
        return np.array(
            [number(f"{name}_{axis}{index}", x) for axis, x in zip("xyz", entries, strict=True)], dtype=object
        )

    def placed(C: AnyArray, index: Any) -> AnyArray:
        pose = exact_pose(C)
        pose[:3, 3] = vector("p", C[:3, 3], index)
        return pose

    joints = []
    for i, joint in enumerate(robot.joints, start=1):
        about_origin = exact_array(joint.inertia_about_origin, _of_file)
        body = Inertial(_of_file(joint.mass), exact_array(joint.center_of_mass, _of_file), about_origin)
        pose = placed(joint.reference_pose, i)
        if symbols:
            mass, center = number(f"m{i}", body.mass), vector("c", body.center_of_mass, i)
            inertia = np.zeros((3, 3), dtype=object)
            for a, b in combinations_with_replacement(range(3), 2):
                moment = _rounded(body.about_center_of_mass[a, b], about_origin)
                inertia[a, b] = inertia[b, a] = number(f"I_{'xyz'[a]}{'xyz'[b]}{i}", moment)
            body = Inertial.about_center(mass, center, inertia)
        joints.append(
            replace(
                joint.with_inertial(body),
                screw=exact_array(joint.screw),
                reference_pose=pose,
                rotor_inertia=number(f"B{i}", joint.rotor_inertia),
                damping=number(f"d{i}", joint.damping),
                friction=number(f"f{i}", joint.friction),
            )
        )
    stiffness = tuple(
        number(f"K{place + 1}", float(joint.stiffness))
        for place, joint in zip(robot.independent, robot.independent_joints, strict=True)
    )
    if np.count_nonzero(robot.gravity) == 1:
        fractions = exact_array(robot.gravity, _of_file)
        gravity = np.array([sp.sign(x) * number("g", abs(x)) for x in fractions], dtype=object)
    else:
        gravity = vector("g", robot.gravity, "")
    tools = tuple(replace(tool, pose=placed(tool.pose, f"_{tool.name}")) for tool in robot.tools)
    return replace(robot, joints=tuple(joints), gravity=gravity, tools=tools), stiffness, values


def _rounded(moment: Any, about_origin: AnyArray) -> Any:
    """Moment about the center of mass without the rounding error of the shift from the origin."""
    largest = max(map(abs, about_origin.flat)) if not moment.free_symbols else 0
    if largest == 0:
        return moment
    digits = 14 - (1 + math.floor(math.log10(float(largest))))
    return sp.Rational(round(moment * 10**digits), 10**digits) if digits > 0 else moment


def exact_array(array: AnyArray, number: Callable[[Any], Any] = exact) -> AnyArray:
    """Array with fractions for floating-point numbers."""
    entries = np.asarray(array, dtype=object)
    return np.array([number(x) for x in entries.flat], dtype=object).reshape(entries.shape)


def exact_pose(C: AnyArray) -> AnyArray:
    """Pose with the file's translation; the rotation has all digits, so that it remains orthogonal."""
    exact_pose = exact_array(C)
    exact_pose[:3, 3] = exact_array(C[:3, 3], _of_file)
    return exact_pose


def _of_file(value: Any) -> Any:
    """Number as the fraction of its first 15 digits; expression as in :func:`exact`."""
    return exact(float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value)
