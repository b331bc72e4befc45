# SPDX-License-Identifier: Apache-2.0
"""Poses and Jacobians as SymPy expressions, their determinant, and the conditions of singularities.

The recursion is that of :class:`eom_dynamics.Kinematics`, over SymPy's expressions in place of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp

from .. import lie
from ..arrays import AnyArray
from ..codegen.backends import require_robot
from ..exceptions import StateError
from ..kinematics.frames import named_frame
from ..recursion import kinematics
from ..recursion.kinematics import representation
from ..recursion.links import Link, LinkTree, Moments, axis_rotation
from ..robot import Joint, Robot
from ..robot.model import frames_by_name
from .normal_form import exact, normal_form, normal_forms
from .robots import exact_model, with_symbols
from .variables import LagrangianError, variables

_TWIST = 6

# Of a sum of terms that cancel, relative to the largest one.
_ROUNDING = 1e-9


class SymbolicKinematics:
    """Kinematics of a robot as SymPy expressions in its joint variables q1 … qn; names as of :class:`.Kinematics`.

    Attributes:
        robot: the robot, with fractions or symbols in place of numbers.
        q: (n,) symbols of the joint variables.
        values: numbers of the symbols.

    >>> from eom_dynamics import lagrange
    >>> arm = lagrange.SymbolicKinematics(lagrange.planar_arm(2))
    >>> arm.pose()[0, 3], arm.determinant(rows=(3, 4))
    (L1*cos(q1) + L2*cos(q1 + q2), L1*L2*sin(q2))
    """

    def __init__(self, robot: Robot, *, symbols: bool = False) -> None:
        """Take a robot of numbers or of symbols.

        Args:
            robot: the robot; its lengths may be SymPy expressions, directions of axes are numbers.
            symbols: put a symbol p_x2 in place of each coordinate of the position of body 2 in its parent, or p_x_tip
                of a tool in its body, that is not zero, as :func:`.robot_lagrangian` does. Lengths in screws, as of
                Denavit-Hartenberg tables, stay numbers.

        Raises:
            LagrangianError: the direction of an axis is symbolic.
            TypeError: ``robot`` is not a Robot.
        """
        require_robot(robot)
        model = exact_model(robot)
        self.values: dict[Any, float] = {}
        if symbols:
            model, self.values = with_symbols(model)
        self.robot = model.robot
        self.q, _ = variables(robot.n)
        axes = [_axis_frame(joint) for joint in self.robot.joints]
        E, e = self.robot.coupling
        self._links = tuple(
            _link(self.robot, i, axes, int(np.flatnonzero(row)[0]), row[np.flatnonzero(row)[0]], shift)
            for i, (row, shift) in enumerate(zip(E, e, strict=True))
        )
        self._axes = axes
        self._frames = frames_by_name(self.robot)
        used = set().union(*(x.free_symbols for link in self._links for x in link.translation.flat))
        used |= set().union(*(sp.sympify(x).free_symbols for tool in self.robot.tools for x in tool.pose.flat))
        self.values = {symbol: value for symbol, value in self.values.items() if symbol in used}

    def pose(self, frame: str | None = None) -> Any:
        """Pose of a frame, by default the first tool, in the base frame: a matrix (4, 4).

        Raises:
            StateError: there is no such frame.
        """
        return sp.Matrix(lie.pose(*map(normal_forms, kinematics.pose(self._tree(frame), self.q))))

    def jacobian(self, frame: str | None = None, reference: str = "body") -> Any:
        """Jacobian of a frame: a matrix (6, n), angular rows first.

        Args:
            frame: its name; by default the first tool.
            reference: ``body``, ``space`` or ``world_aligned``, as for :meth:`.Kinematics.jacobian`.

        Raises:
            StateError: there is no such frame, or the reference is unknown.
        """
        (columns,) = kinematics.jacobian(self._tree(frame), [self.q], representation(reference))
        return sp.Matrix(normal_forms(columns).T)

    def determinant(self, frame: str | None = None, rows: Sequence[int] = range(_TWIST)) -> Any:
        """Determinant of the Jacobian of a frame, or of some of its rows.

        That of all rows does not depend on the reference of the twist.

        Args:
            frame: its name; by default the first tool.
            rows: of the world-aligned Jacobian, as many as joints: (3, 4, 5) are a position, (3, 4) one in a plane.

        Raises:
            StateError: there is no such frame, or the rows are not as many as joints.
        """
        chosen = tuple(rows)
        if len(chosen) != self.robot.n or not set(chosen) <= set(range(_TWIST)):
            raise StateError(
                f"{self.robot.name}: rows must be {self.robot.n} of 0 to 5, as many as joints, are {chosen!r:.60}; "
                "angular rows come first"
            )
        J = self.jacobian(frame, "space" if len(chosen) == _TWIST else "world_aligned")[list(chosen), :]
        if len(chosen) == _TWIST:
            J = J.subs(self.q[0], 0)  # which leaves the determinant as it is
        return normal_form(_determinant(J))

    def singularities(self, frame: str | None = None, rows: Sequence[int] = range(_TWIST)) -> tuple[Any, ...]:
        """Factors of :meth:`determinant`, by arguments of which one is zero where the arm is singular.

        Constant factors are left out; (0,) is an arm that is singular everywhere.

        >>> from eom_dynamics import load_robot, lagrange
        >>> lagrange.SymbolicKinematics(load_robot("leg"), symbols=True).singularities(rows=(3, 4, 5))
        (sin(q3), p_z3*cos(q2) + p_z_foot*cos(q2 + q3))
        """
        return factors(self.determinant(frame, rows), self.q)

    def _tree(self, name: str | None) -> LinkTree:
        frame = named_frame(self.robot, self._frames, name)
        pose = _exact(frame.pose)
        at = pose if frame.joint < 0 else _inverse(self._axes[frame.joint]) @ pose
        none = Moments(0.0, np.zeros(3), np.zeros((3, 3)))
        return LinkTree(self._links, self.robot.gravity, ((frame.joint, at),), none)


def factors(expression: Any, q: Sequence[Any]) -> tuple[Any, ...]:
    """Factors of a polynomial in sines and cosines that depend on some of the variables q.

    First sines and cosines of q_i + … + q_j; then those of the polynomial in tangents of half angles, as far as they
    are sines and cosines of whole angles again.
    """
    rest, found = normal_form(expression), []
    if rest == 0:
        return (sp.S.Zero,)
    for i in range(len(q)):
        for j in range(i, len(q)):
            for function in (sp.sin, sp.cos):
                while (quotient := _divided(rest, q[i : j + 1], function)) is not None:
                    found.append(function(sum(q[i : j + 1])))
                    rest = quotient
    found += _by_half_angles(rest, q)
    return tuple(dict.fromkeys(found))


def _divided(expression: Any, angles: Sequence[Any], function: Any) -> Any:
    """The expression over the sine or cosine of a sum of angles; None if that is no factor."""
    if not set(angles) <= expression.free_symbols:
        return None
    # At one zero of the divisor, before the algebra.
    zero = (0.0 if function is sp.sin else np.pi / 2) - sum(_probe(x) for x in angles[1:])
    at = {x: _probe(x) for x in expression.free_symbols} | {angles[0]: zero}
    terms = [float(term.subs(at)) for term in sp.Add.make_args(expression)]
    if abs(sum(terms)) > _ROUNDING * max(map(abs, terms)):
        return None
    total, s, c = sp.Dummy("a", real=True), sp.Dummy("s"), sp.Dummy("c")
    turned = sp.expand_trig(expression.subs(angles[0], total - sum(angles[1:])))
    # The divisor is s; a cosine is the sine of the angle less a quarter of a turn, but for the sign.
    names = {sp.sin(total): s, sp.cos(total): c} if function is sp.sin else {sp.sin(total): c, sp.cos(total): s}
    even: Any = 0
    odd: Any = 0
    for (k,), coefficient in sp.Poly(sp.expand(turned.xreplace(names)), s).terms():
        power = (1 - c**2) ** (k // 2) * coefficient
        even, odd = (even + power, odd) if k % 2 == 0 else (even, odd + power)
    quotient, remainder = sp.div(sp.Poly(even, c), sp.Poly(1 - c**2, c))
    if any(normal_form(x) != 0 for x in remainder.all_coeffs()):
        return None
    back = {value: key for key, value in names.items()}
    return normal_form((s * quotient.as_expr() + odd).xreplace(back).subs(total, sum(angles)))


def _probe(symbol: Any) -> float:
    """A number for a symbol, by its name."""
    return 1.0 + float(np.modf(np.sqrt(2.0) * sum(map(ord, symbol.name)))[0])


def _by_half_angles(expression: Any, q: Sequence[Any]) -> list[Any]:
    used = [x for x in q if x in expression.free_symbols]
    if not used:
        return []
    t = sp.symbols(f"t:{len(used)}", cls=sp.Dummy)
    halves: dict[Any, Any] = {}
    for x, y in zip(used, t, strict=True):
        halves |= {sp.sin(x): 2 * y / (1 + y**2), sp.cos(x): (1 - y**2) / (1 + y**2)}
    numerator, _ = sp.fraction(sp.together(sp.expand_trig(expression).xreplace(halves)))
    found, odd = [], sp.S.One
    for factor, power in sp.factor_list(numerator)[1]:
        degrees = [sp.degree(factor, y) for y in t]
        if not any(degrees) or factor in [1 + y**2 for y in t]:
            continue
        if any(degree % 2 for degree in degrees):
            odd *= factor**power
        else:
            found.append(_whole_angles(factor, t, used))
    return found if odd == 1 else [*found, _whole_angles(sp.expand(odd), t, used)]


def _whole_angles(polynomial: Any, t: Sequence[Any], used: Sequence[Any]) -> Any:
    """The polynomial in tangents of half angles times even powers of their cosines."""
    total = sp.S.Zero
    degrees = [2 * ((sp.degree(polynomial, y) + 1) // 2) for y in t]
    for powers, coefficient in sp.Poly(polynomial, *t).terms():
        term = coefficient
        for x, k, degree in zip(used, powers, degrees, strict=True):
            term *= sp.sin(x / 2) ** k * sp.cos(x / 2) ** (degree - k)
        total += term
    _, primitive = normal_form(total).as_content_primitive()
    return -primitive if primitive.could_extract_minus_sign() else primitive


def _determinant(matrix: Any) -> Any:
    """Determinant over the polynomials in sines, cosines and symbols."""
    atoms = sorted(matrix.atoms(sp.sin, sp.cos), key=sp.default_sort_key)
    names = {atom: sp.Dummy(f"a{k}") for k, atom in enumerate(atoms)}
    entries = sp.polys.matrices.DomainMatrix.from_Matrix(matrix.xreplace(names))
    found = entries.domain.to_sympy(entries.charpoly()[-1]) * (-1) ** matrix.rows
    return found.xreplace({name: atom for atom, name in names.items()})


def _axis_frame(joint: Joint) -> AnyArray:
    """Pose (4, 4) of a frame with z along the axis of a joint in the body's frame."""
    e, m = joint.screw[:3], joint.screw[3:]
    axis, point = (e, np.cross(e, m)) if np.any(e != 0) else (m, np.zeros(3, dtype=int))
    try:
        rotation = axis_rotation(np.array(axis, dtype=float))
    except TypeError:
        raise LagrangianError(f"{joint.name}: the direction of its axis must be numbers, is {axis.tolist()}") from None
    return lie.pose(_exact(rotation), point)


def _link(robot: Robot, i: int, axes: Sequence[AnyArray], coordinate: int, ratio: Any, shift: Any) -> Link:
    """A joint with its frame in that of its parent; not regrouped, and without mass."""
    joint = robot.joints[i]
    step = _exact(joint.reference_pose) @ axes[i]
    if joint.parent >= 0:
        step = _inverse(axes[joint.parent]) @ step
    turns = bool(np.any(joint.screw[:3] != 0))
    pitch = sp.expand(joint.screw[:3] @ joint.screw[3:]) if turns else sp.S.One
    return Link(
        parent=joint.parent,
        coordinate=coordinate,
        ratio=exact(ratio),
        rotation=step[:3, :3],
        translation=np.array([sp.expand(x) for x in step[:3, 3]], dtype=object),
        turns=turns,
        angle=float(shift) if turns else 0.0,
        offset=pitch * exact(shift),
        pitch=pitch,
        mass=0.0,
        first_moment=np.zeros(3),
        second_moment=np.zeros((3, 3)),
    )


def _inverse(C: AnyArray) -> AnyArray:
    R = C[:3, :3].T
    return lie.pose(R, -R @ C[:3, 3])


def _exact(matrix: AnyArray) -> AnyArray:
    return np.array([exact(x) for x in np.asarray(matrix, dtype=object).flat], dtype=object).reshape(np.shape(matrix))
