# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians as SymPy expressions, their determinant, and the conditions of singularities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

from .. import lie
from ..codegen.backends import require_robot
from ..exceptions import StateError
from ..kinematics.frames import named_frame
from ..recursion.kinematics import representation
from ..robot import Robot
from ..robot.model import frames_by_name
from ..robot.task_space import TWIST
from .lagrangian import variables
from .normal_form import normal_form, normal_forms
from .robots import exact_array, exact_model, exact_pose, joint_poses, symbolic_poses


class SymbolicKinematics:
    """Kinematics of a robot as SymPy expressions in its joint variables q1 … qn; names as in :class:`.Kinematics`.

    Attributes:
        robot: the robot, with fractions or symbols instead of floating-point numbers.
        q: (n,) symbols of the joint variables.
        values: numeric values of the symbols.

    >>> from eom_dynamics import lagrange
    >>> arm = lagrange.SymbolicKinematics(lagrange.planar_arm(2))
    >>> arm.pose()[0, 3], arm.determinant(rows=(3, 4))
    (L1*cos(q1) + L2*cos(q1 + q2), L1*L2*sin(q2))
    """

    def __init__(self, robot: Robot, *, symbols: bool = False) -> None:
        """Set a robot of numbers or of symbols, such as lengths; a symbolic axis must have unit length.

        ``symbols`` replaces nonzero coordinates of positions by symbols, as in :func:`.robot_lagrangian`: p_x2 for body
        2 in its parent, p_x_tip for a tool in its body. Lengths in screws, for example from Denavit-Hartenberg tables,
        remain numbers. TypeError if ``robot`` is not a Robot.
        """
        require_robot(robot)
        self.robot, _, values = exact_model(robot, symbols=symbols)
        self.q, _ = variables(robot.n)
        self._frames = frames_by_name(self.robot)
        placed = [*(joint.reference_pose for joint in self.robot.joints), *(tool.pose for tool in self.robot.tools)]
        used = set().union(*(sp.sympify(x).free_symbols for pose in placed for x in pose.flat))
        self.values = {symbol: value for symbol, value in values.items() if symbol in used}

    def pose(self, frame: str | None = None) -> Any:
        """Pose (4, 4) of a frame, by default the first tool, in the base frame; StateError if there is none."""
        place = named_frame(self.robot, self._frames, frame)
        body = symbolic_poses(self.robot, self.q)[place.joint] if place.joint >= 0 else np.eye(4, dtype=int)
        return sp.Matrix(normal_forms(body @ exact_pose(place.pose)))

    def jacobian(self, frame: str | None = None, reference: str = "body") -> Any:
        """Jacobian (6, n) of a frame, by default the first tool; angular rows first.

        The reference is ``body``, ``space`` or ``world_aligned``, as for :meth:`.Kinematics.jacobian`. StateError if
        frame or reference is unknown.
        """
        place, reference = named_frame(self.robot, self._frames, frame), representation(reference)
        J = np.zeros((TWIST, len(self.robot.joints)), dtype=object)
        steps, bodies = joint_poses(self.robot, self.q), symbolic_poses(self.robot, self.q)
        i, in_body = place.joint, exact_pose(place.pose)
        while i >= 0:
            joint = self.robot.joints[i]
            if reference == "body":
                J[:, i] = lie.body_twist(in_body, joint.screw)
                in_body = normal_forms(steps[i] @ in_body)
            else:
                J[:, i] = normal_forms(lie.space_twist(bodies[i], joint.screw))
            i = joint.parent
        if reference == "world_aligned":
            position = np.array(self.pose(frame))[:3, 3]
            J[3:] += np.cross(J[:3], position, axisa=0).T
        return sp.Matrix(normal_forms(J @ exact_array(self.robot.coupling[0])))

    def determinant(self, frame: str | None = None, rows: Sequence[int] = range(TWIST)) -> Any:
        """Determinant of the Jacobian of a frame, by default the first tool, as a product of its factors.

        The rows are of the world-aligned Jacobian, one for each joint: (3, 4, 5) for a position, (3, 4) for a position
        in a plane. The determinant of all rows does not depend on the reference of the twist. StateError if there is no
        such frame, or the number of rows differs from the number of joints.
        """
        constant, powers = self._factored_determinant(frame, rows)
        return sp.Mul(constant, *(factor**power for factor, power in powers.items()))

    def _factored_determinant(self, frame: str | None, rows: Sequence[int]) -> tuple[Any, dict[Any, int]]:
        chosen = tuple(rows)
        if len(chosen) != self.robot.n or not set(chosen) <= set(range(TWIST)):
            raise StateError(
                f"{self.robot.name}: rows must be {self.robot.n} of 0 to 5, as many as joints, are {chosen!r:.60}; "
                "angular rows come first"
            )
        J = self.jacobian(frame, "space" if len(chosen) == TWIST else "world_aligned")[list(chosen), :]
        if len(chosen) == TWIST:
            J = J.subs(self.q[0], 0)  # without effect on the determinant
        J = J.applyfunc(sp.expand_trig)
        names = {atom: sp.Dummy() for atom in J.atoms(sp.sin, sp.cos)}  # SymPy's domains of polynomials have symbols
        entries = sp.polys.matrices.DomainMatrix.from_Matrix(J.xreplace(names))
        determinant = entries.domain.to_sympy(entries.charpoly()[-1]) * (-1) ** J.rows
        return factored(determinant.xreplace({name: atom for atom, name in names.items()}), self.q)

    def singularities(self, frame: str | None = None, rows: Sequence[int] = range(TWIST)) -> tuple[Any, ...]:
        """Factors of :meth:`determinant`; the arm is singular if and only if a factor is zero.

        Constant factors are omitted; (0,) is an arm that is singular everywhere.

        >>> from eom_dynamics import load_robot, lagrange
        >>> lagrange.SymbolicKinematics(load_robot("leg"), symbols=True).singularities(rows=(3, 4, 5))
        (sin(q3), p_z3*cos(q2) + p_z_foot*cos(q2 + q3))
        """
        constant, powers = self._factored_determinant(frame, rows)
        return (sp.S.Zero,) if constant == 0 else tuple(powers)


def factored(expression: Any, q: Sequence[Any]) -> tuple[Any, dict[Any, int]]:
    """Constant, and the q-dependent factors with their powers, of a polynomial in sines and cosines.

    The factors are from the polynomial in tangents of half angles. A factor of half angles is multiplied with another
    factor of the same variables, or by itself, to a function of whole angles.
    """
    rest = normal_form(expression)
    if rest == 0:
        return sp.S.Zero, {}
    t = {sp.Dummy(x.name): x for x in q if x in rest.free_symbols}
    halves: dict[Any, Any] = {}
    for y, x in t.items():
        halves |= {sp.sin(x): 2 * y / (1 + y**2), sp.cos(x): (1 - y**2) / (1 + y**2)}
    numerator, denominator = sp.fraction(sp.together(sp.expand_trig(rest).xreplace(halves)))
    constant, factors = sp.S.One, []
    cosines = dict.fromkeys(t, 0)  # powers of cosines of half angles, including 1 + y²
    for sign, polynomial in ((1, sp.expand(numerator)), (-1, sp.expand(denominator))):
        number, parts = sp.factor_list(polynomial) if polynomial.free_symbols else (polynomial, [])
        constant *= number**sign
        for part, power in parts:
            degrees = {y: sp.degree(part, y) for y in t if part.has(y)}
            if not degrees:
                constant *= part ** (sign * power)
            elif part in [1 + y**2 for y in t]:
                cosines[next(iter(degrees))] -= 2 * sign * power
            else:
                factors.append((_of_angles(part, degrees, t), degrees, power))
                for y, degree in degrees.items():
                    cosines[y] -= power * degree
    factors += [(sp.cos(t[y] / 2), {y: 1}, power) for y, power in cosines.items() if power]
    powers: dict[Any, int] = defaultdict(int)
    for whole, power in _whole(factors):
        content, primitive = normal_form(whole).as_content_primitive()
        if primitive.could_extract_minus_sign():
            content, primitive = -content, -primitive
        constant *= content**power
        powers[primitive] += power
    return constant, dict(powers)


def _whole(factors: Sequence[tuple[Any, dict[Any, int], int]]) -> list[tuple[Any, int]]:
    """Functions of whole angles with their powers, from factors of half angles with their degrees and powers."""
    groups, whole, last = defaultdict(list), [], sp.S.One
    for factor, degrees, power in factors:
        groups[frozenset(degrees) if any(degree % 2 for degree in degrees.values()) else factor].append(
            (factor, degrees, power)
        )
    for group in groups.values():
        while group:
            least = min(power for *_, power in group)
            if any(sum(degrees.get(y, 0) for _, degrees, _ in group) % 2 for y in group[0][1]):
                whole += [(factor**2, power // 2) for factor, _, power in group if power > 1]
                last *= sp.Mul(*(factor for factor, _, power in group if power % 2))
                break
            whole.append((sp.Mul(*(factor for factor, *_ in group)), least))
            group = [(factor, degrees, power - least) for factor, degrees, power in group if power > least]
    return whole if last == 1 else [*whole, (last, 1)]


def _of_angles(polynomial: Any, degrees: dict[Any, int], angles: dict[Any, Any]) -> Any:
    """Polynomial in tangents of half angles times powers of the cosines, by its degrees."""
    total = sp.S.Zero
    for powers, coefficient in sp.Poly(polynomial, *degrees).terms():
        term = coefficient
        for (y, degree), k in zip(degrees.items(), powers, strict=True):
            term *= sp.sin(angles[y] / 2) ** k * sp.cos(angles[y] / 2) ** (degree - k)
        total += term
    return total
