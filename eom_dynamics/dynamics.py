# SPDX-License-Identifier: Apache-2.0
"""Compiled dynamics of one robot, for one state or a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arguments import count, joint_states, real_array
from .arrays import EFFORT_NAMES, STATE_NAMES, Array
from .codegen.backends import with_friction, working_kernel
from .codegen.functions import (
    CompiledFunction,
    Signature,
    Vector,
    declared_signature,
    derivatives,
    motion_vectors,
    payload_keyword,
    vectors,
    wrench_keyword,
)
from .codegen.programs import PROGRAMS, WITH_PAYLOAD, inverse_dynamics_of_order
from .codegen.recipe import Recipe
from .codegen.state_method import CompiledMethods, state_method
from .exceptions import StateError
from .recursion import PARAMETERS
from .recursion.inverse_mass_matrix import solve_mass_matrix
from .robot import Robot
from .robot.mass_matrix import admits_articulated_bodies, joints_without_inertia
from .robot.payload import PayloadLike

# Higher orders take minutes and gigabytes to trace and compile.
_HIGHEST_ORDER = 10

# Methods with another program name, as used in exported code.
_PROGRAM_OF_METHOD = {
    "inverse_dynamics_derivatives": "effort_partials",
    "forward_dynamics_derivatives": "forward_dynamics_partials",
}


def _vectors(robot: Robot) -> dict[str, Vector]:
    """Arguments and results by name, for one state."""
    n, matrix = robot.n, (robot.n, robot.n)
    return (
        {vector.name: vector for vector in motion_vectors(n, len(STATE_NAMES))}
        | vectors((n,), tau="joint efforts, N m or N", bias="joint efforts at zero acceleration, N m or N")
        | vectors((n,), Q_grav="joint efforts against gravity, N m or N", p="momenta, N m s or N s")
        | vectors((n,), beta="C qd + Q_grav - (dM/dt) qd, N m or N")
        | vectors((n,), added_inertia="added to the diagonal of M, kg m² or kg")
        | vectors(matrix, M="mass matrix, kg m², kg m or kg", C="Coriolis matrix of Christoffel symbols")
        | vectors(matrix, dtau_dq="partial derivative of tau by q", dtau_dqd="by qd", dtau_dqdd="by qdd: M")
        | vectors(matrix, dqdd_dq="partial derivative of qdd by q", dqdd_dqd="by qd", dqdd_dtau="by tau")
        | vectors((n, n, n), c="Christoffel symbols of the first kind")
        | vectors((n, PARAMETERS * len(robot.joints)), Y="tau = Y pi", Yd="taud = Yd pi", Ydd="taudd = Ydd pi")
        | vectors((), T="kinetic energy, J", U="potential energy, J")
    )


class Dynamics(CompiledMethods):
    """Inverse dynamics with time derivatives, forward dynamics, and the terms of the equations of motion of one robot.

    The first use of each method of a robot traces and compiles its program, which takes about a second. Later uses load
    it from a cache on disk (``$EOM_DYNAMICS_CACHE``, by default ``eom_dynamics`` in the user's cache folder).

    Attributes:
        robot: the robot.
        order: highest time derivative of the efforts of :meth:`inverse_dynamics`.
        backend: ``native`` (compiled C) or ``numpy``.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        order: int = 2,
        friction: bool | None = None,
        rotor_inertia: bool = False,
        backend: str | None = None,
    ) -> None:
        """Compile the inverse dynamics of a robot, or load them from the cache.

        Args:
            robot: the robot.
            order: highest time derivative of the efforts, from 0 to 10; each order doubles the code.
            friction: whether joint damping and dry friction are part of all efforts; by default, whether the robot's
                ``joint_friction`` is set.
            rotor_inertia: whether the rotors of rigid joints are part of all efforts, of M and of accelerations: n² I_m
                on the link side of a gear n, so I + m d² + n² I_m for one link, A. De Luca, Robotics 2, slide "Dynamics
                of an actuated pendulum". By default they are only part of the motor efforts of :class:`.ElasticArm`.
                Rotors of elastic joints move independently. The regressor has links only.
            backend: ``native`` or ``numpy``. The default is ``native``; if it is unavailable, ``numpy``, with a
                :class:`KernelWarning` that gives the reason.

        Raises:
            KernelError: the requested backend is unavailable.
            RobotDescriptionError: with ``rotor_inertia``, rotors are coupled by a transmission or the complete rotor
                model.
            StateError: an option is out of range or unknown.
            TypeError: ``robot`` is not a Robot.
        """
        order = count(order, "order", 0, _HIGHEST_ORDER)
        robot = with_friction(robot, friction, rotor_inertia)
        self.backend, kernel = working_kernel(robot, inverse_dynamics_of_order(order), backend)
        self.robot, self.order = robot, order
        self._functions = {"inverse_dynamics": CompiledFunction(self.signature("inverse_dynamics"), kernel)}
        _ = self.inverse_dynamics  # compiled and loaded here rather than in the first call

    @state_method
    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike | None = None,
        qdddd: ArrayLike | None = None,
        *rates: ArrayLike | None,
        wrench: Sequence[ArrayLike] = (),
        payload: PayloadLike | None = None,
        out: Sequence[Array] | None = None,
    ) -> tuple[Array, ...]:
        """Joint efforts tau and their time derivatives taud, taudd, … up to ``order``.

        Args:
            q, qd, qdd, qddd, qdddd: joint variables and their time derivatives, each (n,) or (N, n); rad or m, and
                per s, s², s³, s⁴. Jerk and snap may be omitted, which means zero.
            rates: further time derivatives of q, up to order + 2, each (n,) or (N, n).
            wrench: (W, Wd, Wdd, …), the wrench that the robot exerts on its surroundings at its tool and its time
                derivatives, each (6,) or (N, 6), or with k > 1 tools (k, 6) or (N, k, 6); moment first, in the tool's
                frame, N m and N, and per s, s². Omitted derivatives are zero.
            payload: additional body carried by a tool, or several payloads; or (P, Pd, Pdd, …), payload parameters
                :attr:`.Payload.parameters` and their time derivatives, each (10,) or (N, 10), or with k > 1 tools (k,
                10) or (N, k, 10). Efforts are linear in the parameters, which need not be physically consistent; their
                rates are part of taud, taudd, …. The first use compiles code for it.
            out: C-contiguous arrays for the results, in their shapes.

        Returns:
            tau, taud, taudd, …: order + 1 arrays (n,) or (N, n); N m or N, and per s, s², ….

        Raises:
            StateError: an argument has the wrong shape or is not finite, or there are too many for the order.
        """
        further = [qddd, qdddd, *rates]
        while further and further[-1] is None:
            further.pop()
        if len(further) > self.order:
            raise StateError(
                f"efforts to order {self.order} depend on q and {self.order + 2} time derivatives, not on "
                f"{len(further) + 2}; see the order of Dynamics"
            )
        return self._run("inverse_dynamics", q, qd, qdd, *further, wrench=wrench, payload=payload, out=out)

    @state_method
    def effort(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        payload: PayloadLike | None = None,
        out: Sequence[Array] | None = None,
    ) -> Array:
        """Joint efforts tau, (n,) or (N, n); arguments and errors as in :meth:`inverse_dynamics`."""
        return self._run("effort", q, qd, qdd, wrench=wrench, payload=payload, out=out)[0]

    @state_method
    def mass_matrix(
        self, q: ArrayLike, *, payload: PayloadLike | None = None, out: Sequence[Array] | None = None
    ) -> Array:
        """Mass matrix M: (n, n) for ``q`` (n,), (N, n, n) for ``q`` (N, n); payload as in :meth:`inverse_dynamics`."""
        return self._run("mass_matrix", q, payload=payload, out=out)[0]

    @state_method
    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        out: Sequence[Array] | None = None,
    ) -> tuple[Array, ...]:
        """Partial derivatives of tau with respect to q, qd and qdd, which is M: each (n, n) or (N, n, n).

        Row i is the gradient of effort i. Arguments and errors are as in :meth:`inverse_dynamics`.
        """
        return self._run("inverse_dynamics_derivatives", q, qd, qdd, wrench=wrench, out=out)

    @state_method
    def bias(
        self, q: ArrayLike, qd: ArrayLike, *, wrench: Sequence[ArrayLike] = (), out: Sequence[Array] | None = None
    ) -> Array:
        """Joint efforts at zero acceleration, C qd + Q_grav + Q_ext: (n,) or (N, n).

        Arguments and errors are as in :meth:`inverse_dynamics`.
        """
        return self._run("bias", q, qd, wrench=wrench, out=out)[0]

    @state_method
    def gravity(self, q: ArrayLike, *, payload: PayloadLike | None = None, out: Sequence[Array] | None = None) -> Array:
        """Efforts that hold the robot against gravity, constant loads and parallel springs: (n,) or (N, n).

        The payload is as in :meth:`inverse_dynamics`.
        """
        return self._run("gravity", q, payload=payload, out=out)[0]

    @state_method
    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike, *, out: Sequence[Array] | None = None) -> Array:
        """Coriolis matrix C of Christoffel symbols: (n, n) or (N, n, n). C qd are efforts; dM/dt - 2 C is skew."""
        return self._run("coriolis_matrix", q, qd, out=out)[0]

    @state_method
    def coriolis_tensor(self, q: ArrayLike, *, out: Sequence[Array] | None = None) -> Array:
        """Christoffel symbols of the first kind c, (n, n, n) or (N, n, n, n): C_ij = sum over k of c_ijk qd_k.

        c_ijk = (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) / 2.
        """
        return self._run("coriolis_tensor", q, out=out)[0]

    @state_method
    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, out: Sequence[Array] | None = None) -> Array:
        """Regressor Y, (n, 10 B) or (N, n, 10 B): joint efforts without a wrench are tau = Y pi.

        The parameters pi (10 B,) are :attr:`inertial_parameters`. Arguments and errors are as in
        :meth:`inverse_dynamics`.
        """
        return self._run("regressor", q, qd, qdd, out=out)[0]

    @state_method
    def regressor_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike,
        qdddd: ArrayLike,
        *,
        out: Sequence[Array] | None = None,
    ) -> tuple[Array, ...]:
        """Regressor and its time derivatives Y, Yd, Ydd, as for :meth:`regressor`: taud = Yd pi, taudd = Ydd pi."""
        return self._run("regressor_derivatives", q, qd, qdd, qddd, qdddd, out=out)

    @property
    def inertial_parameters(self) -> Array:
        """Parameters pi (10 B,): :attr:`.Inertial.parameters` of the B bodies, in the order of ``robot.joints``."""
        return np.concatenate([joint.inertial.parameters for joint in self.robot.joints])

    @state_method
    def momentum(self, q: ArrayLike, qd: ArrayLike, *, out: Sequence[Array] | None = None) -> Array:
        """Momenta of the joint variables, M qd: (n,) or (N, n)."""
        return self._run("momentum", q, qd, out=out)[0]

    @state_method
    def momentum_balance(
        self, q: ArrayLike, qd: ArrayLike, *, payload: PayloadLike | None = None, out: Sequence[Array] | None = None
    ) -> tuple[Array, ...]:
        """Momenta p = M qd, and beta of their rates dp/dt = tau - beta without a wrench: two arrays (n,) or (N, n).

        beta = Q_grav - C' qd, with C of Christoffel symbols, plus joint friction that is part of the efforts. The
        payload is as in :meth:`inverse_dynamics`.
        """
        return self._run("momentum_balance", q, qd, payload=payload, out=out)

    @state_method
    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, *, out: Sequence[Array] | None = None) -> Array:
        """Kinetic energy of the bodies, J: () or (N,)."""
        return self._run("kinetic_energy", q, qd, out=out)[0]

    @state_method
    def potential_energy(self, q: ArrayLike, *, out: Sequence[Array] | None = None) -> Array:
        """Potential energy, J: () or (N,).

        The gravity term is zero at zero first moment, the term of parallel springs is zero without deflection, and the
        term of constant efforts is zero at q = 0.
        """
        return self._run("potential_energy", q, out=out)[0]

    @state_method
    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        added_inertia: ArrayLike = 0.0,
        payload: PayloadLike | None = None,
    ) -> Array:
        """Joint accelerations qdd from (M + diag(added_inertia)) qdd = tau - C qd - Q_grav - Q_ext, equation (1).

        Computed by the articulated-body algorithm in O(n) if joints are independent and inertias are physically
        consistent; else from the mass matrix.

        Args:
            q, qd, tau: joint variables, velocities and efforts, each (n,) or (N, n); rad or m, per s, N m or N.
            wrench: (W,) as in :meth:`inverse_dynamics`.
            added_inertia: inertia added to the diagonal of the mass matrix, for example of rotors that rotate with
                their links; a number, (n,) or (N, n), kg m² or kg, not negative.
            payload: as in :meth:`inverse_dynamics`; accelerations then come from the mass matrix.

        Returns:
            qdd: (n,) or (N, n), rad/s² or m/s².

        Raises:
            StateError: an argument has the wrong shape or is not finite, or an added inertia is negative.
            RobotDescriptionError: the mass matrix is not positive definite; see :func:`solve_mass_matrix`.
        """
        states = joint_states(self.robot.n, q, qd, tau, finite=False, names=("q", "qd", "tau"))
        added = _added_inertia(added_inertia, states[0].shape)
        if self._articulated and payload is None and np.any(added):
            return self._run("forward_dynamics_with_added_inertia", *states, added, wrench=wrench)[0]
        if self._articulated and payload is None:
            return self._run("forward_dynamics", *states, wrench=wrench)[0]
        q, qd, tau = joint_states(self.robot.n, *states, names=("q", "qd", "tau"))
        mass_matrix = self.mass_matrix(q, payload=payload) + np.eye(self.robot.n) * added[..., np.newaxis, :]
        bias = self.effort(q, qd, np.zeros_like(q), wrench=wrench, payload=payload)
        return solve_mass_matrix(self.robot.name, mass_matrix, tau - bias)

    @state_method
    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        added_inertia: ArrayLike = 0.0,
    ) -> tuple[Array, ...]:
        """Partial derivatives of qdd with respect to q, qd and tau, each (n, n) or (N, n, n).

        The last matrix is the inverse of M + diag(added_inertia). Row i is the gradient of acceleration i. Arguments
        and errors are as in :meth:`forward_dynamics`.
        """
        states = joint_states(self.robot.n, q, qd, tau, finite=False, names=("q", "qd", "tau"))
        added = _added_inertia(added_inertia, states[0].shape)
        if self._articulated and not np.any(added):
            return self._run("forward_dynamics_derivatives", *states, wrench=wrench)
        qdd = self.forward_dynamics(q, qd, tau, wrench=wrench, added_inertia=added_inertia)
        by_q, by_qd, M = self.inverse_dynamics_derivatives(q, qd, qdd, wrench=wrench)
        M = M + np.eye(self.robot.n) * added[..., np.newaxis, :]
        inverse = np.asarray(np.linalg.inv(M), dtype=float)
        return -inverse @ by_q, -inverse @ by_qd, inverse

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the robot and the backend; compiled code comes from the cache."""
        rotors = self.robot.joint_rotors
        return partial(Dynamics, order=self.order, rotor_inertia=rotors, backend=self.backend), (self.robot,)

    def signature(self, method: str) -> Signature:
        """Signature of a method, as :meth:`.CompiledMethods.signature`."""
        n, shape = self.robot.n, self.robot.wrench_shape
        if method.endswith(WITH_PAYLOAD):
            method = method.removesuffix(WITH_PAYLOAD)
            used = self.order + 1 if method == "inverse_dynamics" else 1
            plain = self.signature(method)
            return replace(plain, keywords=(*plain.keywords, payload_keyword(self.robot, used)))
        if method == "inverse_dynamics":
            efforts = derivatives(EFFORT_NAMES, self.order + 1, (n,), "joint efforts, N m or N")
            states = motion_vectors(n, self.order + 3, required=3)
            return Signature(states, efforts, wrench_keyword(shape, self.order + 1))
        return declared_signature(PROGRAMS[_PROGRAM_OF_METHOD.get(method, method)], _vectors(self.robot), shape)

    def _recipe(self, name: str) -> Recipe:
        if name == "inverse_dynamics" + WITH_PAYLOAD:
            return inverse_dynamics_of_order(self.order, payload=True)
        return PROGRAMS[_PROGRAM_OF_METHOD.get(name, name)]

    def _state_call(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if name.startswith("forward_dynamics") and not self._articulated:
            return method
        return super()._state_call(name, method)

    @cached_property
    def _articulated(self) -> bool:
        """True if the articulated-body algorithm computes accelerations: the mass matrix is positive definite."""
        return admits_articulated_bodies(self.robot) and not joints_without_inertia(self.robot)


def _added_inertia(value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Inertia for each joint of each state of this shape."""
    added = real_array(value, "added_inertia")
    if added.size != 1 and added.shape not in (shape, shape[-1:]):
        shapes = " or ".join(map(str, dict.fromkeys((shape[-1:], shape))))
        raise StateError(f"added_inertia must be a number or have shape {shapes}, has {added.shape}")
    if np.any(added < 0):
        raise StateError(f"added_inertia must not be negative, is {np.min(added):g}")
    return np.broadcast_to(added if added.size != 1 else added.reshape(()), shape)
