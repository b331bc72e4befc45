# SPDX-License-Identifier: Apache-2.0
"""Dynamics of a robot in rigid contact.

With the contact Jacobian J_c and contact forces f that act on the robot, in the axes of the contacts,

    M nud + h = S' tau + J_c' f,    J_c nu = 0 while all contacts stick,    hence J_c nud = -dJ_c/dt nu.

S selects the rates that joints drive: all of them with a fixed base. h are the efforts at zero acceleration.
R. Featherstone, *Rigid Body Dynamics Algorithms* (2008), chapter 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from ..arguments import mapping, real_array, sequence
from ..arrays import STATE_NAMES, Array, name_of
from ..codegen.floating_programs import RATE_NAMES
from ..constraints import FrameMotion, solve
from ..dynamics import Dynamics
from ..exceptions import ContactError, StateError
from ..floating_base import FloatingBase
from ..jet import Jet
from ..kinematics import Kinematics
from ..robot import Robot
from ..spelling import duplicates, hint, shown
from .contact import Contact, PointContact, SurfaceContact

_NAMES = "names of contacts, such as a dict"

# m/s; a slower contact has no direction of sliding.
_STILL = 1e-9

# Contact forces and their time derivatives.
_FORCES = ("f", "fd", "fdd")


@dataclass(frozen=True)
class ContactSolution:
    """Motion of a robot in contact.

    Attributes:
        acceleration: nud (base + n,).
        forces: force (3,) or wrench (6,) on the robot of each contact by name, in the contact's axes; N m, N. Redundant
            contacts have the forces of least norm.
        rank: number of independent constraints.
        violation: largest entry of J_c nud + dJ_c/dt nu; zero up to rounding unless constraints contradict each other.
    """

    acceleration: Array
    forces: dict[str, Array]
    rank: int
    violation: float


@dataclass(frozen=True)
class ContactEfforts:
    """Efforts of a robot under given contact forces, with time derivatives.

    Attributes:
        tau: tau, taud, …, each (n,).
        residual: missing wrench (6,) on the floating base for this motion, and its derivatives; zero if forces and
            motion are consistent. Empty vectors for a fixed base.
    """

    tau: tuple[Array, ...]
    residual: tuple[Array, ...]


class ContactDynamics:
    """Dynamics of a robot in contact.

    The configuration is q (n,) for a fixed base, (pose, q) for a floating base; the rates nu are qd, or (V_0, qd).

    >>> import eom_dynamics as eom
    >>> robot = eom.load_robot("planar_2r")
    >>> tip, toward_arm = eom.lie.pose(np.eye(3), [0.4, 0.0, 0.0]), eom.contacts.axes_of_normal([-1.0, 0.0, 0.0])
    >>> wall = eom.contacts.PointContact("tip", "joint_2", friction=0.5, pose=tip, axes=toward_arm)
    >>> arm = eom.contacts.ContactDynamics(robot, [wall])
    >>> answer = arm.forward_dynamics([0.3, -0.9], [0.0, 0.0], tau=[25.0, 14.0])
    >>> answer.rank, bool(abs(answer.acceleration).max() < 1e-12)  # it is held in its plane
    (2, True)
    >>> round(arm.margins(answer.forces)["tip"], 1)  # N: possible decrease of the normal force before the tip slips
    27.7

    Attributes:
        robot: the robot.
        contacts: the contacts.
    """

    def __init__(self, dynamics: Any, contacts: Sequence[Contact]) -> None:
        """Look up the frames of the contacts.

        Args:
            dynamics: a Robot, its Dynamics, or its FloatingBase.
            contacts: contacts with different names; may be empty.

        Raises:
            TypeError: ``dynamics`` is something else.
            StateError: a frame does not exist.
            ContactError: a name occurs twice, an item is not a contact, or a contact joins a body to itself.
        """
        self.contacts = tuple(sequence(contacts, "contacts", "contacts", error=ContactError))
        for contact in self.contacts:
            if not isinstance(contact, (PointContact, SurfaceContact)):
                raise ContactError(f"contacts must be point or surface contacts, has {shown(contact)}")
        if twice := duplicates([contact.name for contact in self.contacts]):
            raise ContactError(f"two contacts have the name {shown(twice[0])}")
        if not isinstance(dynamics, (Robot, Dynamics, FloatingBase)):
            raise TypeError(f"contacts need a Robot, its Dynamics or FloatingBase, not {shown(dynamics)}")
        self._dynamics: Any = Dynamics(dynamics) if isinstance(dynamics, Robot) else dynamics
        self.robot: Robot = self._dynamics.robot
        # Number of leading rates that no joint drives.
        self._base = 6 if isinstance(dynamics, FloatingBase) else 0
        kinematics = (
            dynamics if isinstance(dynamics, FloatingBase) else Kinematics(self.robot, backend=self._dynamics.backend)
        )
        self._kinematics: Any = kinematics
        for contact in self.contacts:
            body = kinematics.frame(contact.frame).joint
            if contact.on is not None and kinematics.frame(contact.on).joint == body:
                raise ContactError(
                    f"{contact.name}: {contact.frame} and {contact.on} are on the same body, which cannot touch itself"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return ContactDynamics, (self._dynamics, self.contacts)

    @property
    def size(self) -> int:
        """Number of entries of all contact forces."""
        return sum(contact.size for contact in self.contacts)

    def jacobian(self, configuration: Any) -> Array:
        """Contact Jacobian J_c (size, base + n): velocities of all contacts in their axes."""
        return self.jacobian_derivatives(configuration)[0]

    def jacobian_derivatives(self, configuration: Any, *rates: ArrayLike) -> tuple[Array, ...]:
        """Contact Jacobian and a time derivative for each of the rates nu, nud, ….

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        state, derivatives = self._state(configuration, rates)
        return tuple(self._jacobian(state, derivatives))

    def velocity(self, configuration: Any, *rates: ArrayLike) -> tuple[Array, ...]:
        """Velocity J_c nu (size,) of the contacts and its time derivatives, a vector for each of nu, nud, ….

        Raises:
            StateError: as for :meth:`jacobian_derivatives`.
        """
        if not rates:
            raise StateError("velocity needs the configuration and at least nu")
        state, derivatives = self._state(configuration, rates)
        return tuple(self._jacobian(state, derivatives[:-1]) @ Jet(derivatives))

    def hessian(self, configuration: Any) -> Array:
        """Contact Hessian H (size, base + n, base + n): dJ_c/dt = H nu, and dJ_c/dt nu = nu' H nu for each row.

        For a point contact and a fixed base, rows are the second derivatives of the point's position, symmetric in the
        last two indices.

        Raises:
            StateError: the configuration has the wrong shape or is not finite.
        """
        state, _ = self._state(configuration, ())
        units = np.eye(self._base + self.robot.n)
        return np.stack([self._jacobian(state, [unit])[1] for unit in units], axis=-1)

    def bias_acceleration(self, configuration: Any, nu: ArrayLike) -> Array:
        """Acceleration of the contacts (size,) at zero nud: dJ_c/dt nu, equal to nu' H nu with :meth:`hessian`."""
        state, (rates,) = self._state(configuration, [nu])
        return self._jacobian(state, [rates])[1] @ rates

    def forward_dynamics(
        self,
        configuration: Any,
        nu: ArrayLike,
        tau: ArrayLike,
        *,
        acceleration: ArrayLike | None = None,
        sliding: Mapping[str, ArrayLike | None] | None = None,
    ) -> ContactSolution:
        """Accelerations and contact forces under joint efforts.

        While all contacts stick, the acceleration follows from Gauss's principle of least constraint: among all nud
        with J_c nud + dJ_c/dt nu = 0 (or ``acceleration``), it minimizes

            (nud - nud_free)' M (nud - nud_free),    M nud_free = S' tau - h,

        and the contact forces are the Lagrange multipliers. Sliding friction is outside of this principle.

        Rigid contacts neither open nor start to slide by themselves: see :meth:`margins` of the forces.

        Args:
            configuration: q, or (pose, q) of a floating base.
            nu: rates (base + n,), rad/s, m/s.
            tau: joint efforts (n,), N m or N.
            acceleration: acceleration (size,) of the contacts, in their axes, for example to correct drift; by default
                zero.
            sliding: names of sliding contacts, each with the direction (2,) of sliding along its x and y axes; None
                takes the direction of its velocity. For a sliding contact, ``acceleration`` sets only the normal entry
                (for a surface also the rotations about x and y).

        Raises:
            StateError: an argument has the wrong shape or is not finite, a contact does not exist, or a sliding contact
                without direction does not move.
            RobotDescriptionError: the mass matrix is not positive definite.
        """
        state, (rates,) = self._state(configuration, [nu])
        J, Jd = self._jacobian(state, [rates])
        target = -Jd @ rates
        if acceleration is not None:
            target = target + real_array(acceleration, "acceleration", (self.size,))
        modes = mapping(sliding, "sliding", _NAMES) if sliding is not None else {}
        P, D = self._modes(modes, J @ rates)
        efforts = -np.asarray(self._dynamics.bias(*state, rates))
        efforts[self._base :] += real_array(tau, "tau", (self.robot.n,))
        directions = D @ J if modes else None
        solution = solve(self.robot.name, self._dynamics.mass_matrix(state[-1]), efforts, P @ J, P @ target, directions)
        return ContactSolution(solution.x, self.split(D.T @ solution.forces), solution.rank, solution.violation)

    def inverse_dynamics(
        self, configuration: Any, *rates: ArrayLike, forces: Mapping[str, Sequence[ArrayLike]]
    ) -> ContactEfforts:
        """Joint efforts for a motion under given contact forces, with time derivatives.

        Args:
            configuration: as for :meth:`forward_dynamics`.
            rates: nu, nud, and for taud and taudd also nudd and nuddd.
            forces: (f, fd, fdd) of contacts by name, on the robot and in the contact axes, each (3,) or (6,). Omitted
                forces are zero.

        Returns:
            tau, and a time derivative for each rate beyond nud.

        Raises:
            StateError: an argument has the wrong shape or is not finite, or a contact does not exist.
        """
        orders = len(rates) - 1
        if orders not in (1, 2, 3):
            raise StateError(f"inverse_dynamics needs nu, nud and at most nudd and nuddd, has {len(rates)} rates")
        state, derivatives = self._state(configuration, rates)
        f = Jet([*self._join(forces, orders)])
        needed = Jet(self._dynamics.inverse_dynamics(*state, *derivatives)[:orders])
        missing = needed - self._jacobian(state, derivatives[: orders - 1]).T @ f
        base = self._base
        return ContactEfforts(tuple(effort[base:] for effort in missing), tuple(effort[:base] for effort in missing))

    def margins(self, forces: Mapping[str, ArrayLike], faces: int | None = None) -> dict[str, float]:
        """Normal-force margin of each contact by name, N; negative if it slips, tilts or opens.

        Args:
            forces: contact forces by name.
            faces: number of faces of pyramids inside the friction cones; by default the cones themselves.

        Raises:
            StateError: a contact does not exist, or a force has the wrong shape or is not finite.
        """
        by_name = mapping(forces, "forces", _NAMES)
        return {name: self._named(name).cone.margin(force, faces) for name, force in by_name.items()}

    def split(self, forces: ArrayLike) -> dict[str, Array]:
        """Contact forces by name, from a vector (size,)."""
        parts = np.split(real_array(forces, "forces", (self.size,)), np.cumsum([x.size for x in self.contacts]))
        return {contact.name: part for contact, part in zip(self.contacts, parts, strict=False)}

    def _join(self, forces: Mapping[str, Sequence[ArrayLike]], orders: int) -> Array:
        """Forces of all contacts with time derivatives (orders, size); zero where omitted."""
        for name, levels in mapping(forces, "forces", _NAMES).items():
            self._named(name)
            sequence(levels, f"force of {name}", f"derivatives, ({', '.join(_FORCES)})", most=len(_FORCES))
        parts = [np.zeros((orders, 0))]
        for contact in self.contacts:
            pairs = zip(forces.get(contact.name, ()), _FORCES, strict=False)
            rows = [real_array(f, f"{symbol} of {contact.name}", (contact.size,)) for f, symbol in pairs]
            parts.append(np.array([*rows, *np.zeros((orders, contact.size))])[:orders])
        return np.concatenate(parts, axis=1)

    def _named(self, name: str) -> Contact:
        for contact in self.contacts:
            if contact.name == name:
                return contact
        known = [contact.name for contact in self.contacts]
        raise StateError(f"{self.robot.name} has no contact {shown(name)}; {hint(str(name), known)}")

    def _modes(self, sliding: Mapping[str, ArrayLike | None], velocity: Array) -> tuple[Array, Array]:
        """Constraints P (k, size) of sticking and sliding contacts, and D (k, size) per unit of remaining force."""
        for name in sliding:
            self._named(name)
        constraints: list[Array] = [np.zeros((0, 0))]
        forces: list[Array] = [np.zeros((0, 0))]
        for contact, (name, moving) in zip(self.contacts, self.split(velocity).items(), strict=True):
            if name in sliding:
                P, D = contact.sliding(_direction(name, sliding[name], moving[-3:-1]))
            else:
                P = D = np.eye(contact.size)
            constraints.append(P)
            forces.append(D)
        return block_diag(*constraints), block_diag(*forces)

    def _state(self, configuration: Any, rates: Sequence[ArrayLike]) -> tuple[tuple[Array, ...], list[Array]]:
        """(q,) or (pose, q), and rates nu, nud, …, as arrays; StateError for wrong shapes or non-finite numbers."""
        n, names = self.robot.n, RATE_NAMES if self._base else STATE_NAMES[1:]
        if not self._base:
            configuration = (configuration,)
        elif not isinstance(configuration, (tuple, list)) or len(configuration) != 2:
            raise StateError(f"the configuration of a floating base is (pose, q), not {shown(configuration)}")
        pose = [real_array(matrix, "pose", (4, 4)) for matrix in configuration[:-1]]
        q = real_array(configuration[-1], STATE_NAMES[0], (n,))
        checked = [real_array(rate, name_of(names, k), (self._base + n,)) for k, rate in enumerate(rates)]
        return (*pose, q), checked

    def _jacobian(self, state: tuple[Array, ...], rates: Sequence[Array]) -> Jet:
        """Contact Jacobian and a time derivative for each rate."""
        names = {name: None for contact in self.contacts for name in (contact.frame, contact.on) if name is not None}
        motions = {name: self._frame_motion(name, state, rates) for name in names}
        levels = [[np.zeros((0, self._base + self.robot.n))] for _ in range(len(rates) + 1)]
        for contact in self.contacts:
            motion = motions[contact.frame].at(contact.pose)
            if contact.on is not None:
                motion = motion.relative_to(motions[contact.on])
            jacobian = motion.jacobian if contact.axes is None else motion.jacobian_along(contact.axes)
            for rows, J in zip(levels, jacobian, strict=True):
                rows.append(J[list(contact.rows)])
        return Jet([np.concatenate(rows) for rows in levels])

    def _frame_motion(self, frame: str, state: tuple[Array, ...], rates: Sequence[Array]) -> FrameMotion:
        jacobians = self._kinematics.jacobian_derivatives(*state, *rates, frame=frame)
        if not rates:
            return FrameMotion(self._kinematics.pose(*state, frame=frame), Jet([]), Jet([*jacobians]))
        pose, *twists = self._kinematics.motion(*state, *rates, frame=frame)
        return FrameMotion(pose, Jet(twists), Jet([*jacobians]))


def _direction(name: str, start: ArrayLike | None, velocity: Array) -> Array:
    direction = velocity if start is None else real_array(start, f"sliding {name}", (2,))
    size = float(np.hypot(*direction))
    if size <= (_STILL if start is None else 0.0):
        raise StateError(f"{name} does not slide; give the direction (2,) of its first motion")
    return direction / size
