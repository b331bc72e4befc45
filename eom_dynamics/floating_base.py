# SPDX-License-Identifier: Apache-2.0
"""Compiled floating-base dynamics of one robot, for one state or a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arguments import by_unit_rates, real_array, sequence, shape_of, state_arrays, with_unit_rates
from .arrays import Array
from .codegen import floating_programs as programs
from .codegen.backends import with_friction, working_kernel
from .codegen.floating_programs import IMU_NAMES
from .codegen.functions import CompiledFunction, Keyword, Signature, declared_signature, derivatives
from .codegen.recipe import Recipe
from .codegen.state_method import state_method
from .equations.floating_base import CenterOfMassCoordinates, center_of_mass_coordinates
from .exceptions import RobotDescriptionError, StateError
from .kinematics.floating import FloatingKinematics, state_vectors
from .recursion import link_tree
from .recursion.composite import BASE, composite_mass_matrix
from .recursion.inverse_mass_matrix import solve_mass_matrix
from .robot import Frame, Robot
from .robot.inertia import body_violation
from .robot.mass_matrix import admits_articulated_bodies
from .robot.model import frames_by_name

# Smallest eigenvalue of a positive definite mass matrix with unit diagonal; rounding errors are 1e-15.
_SINGULAR = 1e-12

_POINT = (3,)

_CENTERED = ("centroidal_momentum", "centroidal_momentum_matrix", "center_of_mass_jacobian")


def _imu_keyword(name: str, symbols: Sequence[str], least: int, about: str) -> Keyword:
    """Keyword of vectors measured by an inertial measurement unit, with time derivatives."""
    of = f"vectors, ({', '.join(symbols)})"

    def checked(value: Any, samples: tuple[int, ...]) -> list[Array]:
        vectors = sequence(value, name, of, least=least, most=len(symbols))
        if not all(shape_of(vector, name) for vector in vectors):
            raise StateError(f"{name} must be a sequence of {of}, is one of numbers")
        return [real_array(vector, symbol, samples + _POINT) for vector, symbol in zip(vectors, symbols, strict=False)]

    defaults = tuple(None if k < least else np.zeros(_POINT) for k in range(len(symbols)))
    return Keyword(name, derivatives(symbols, len(symbols), _POINT, about), defaults=defaults, check=checked)


_IMU = (
    _imu_keyword("angular_velocity", IMU_NAMES[0], 0, "of the base in its frame, rad/s"),
    _imu_keyword("specific_force", IMU_NAMES[1], 1, "acceleration less gravity, in the frame of the base, m/s²"),
)


class FloatingBase(FloatingKinematics):
    """Floating-base dynamics of one robot: a humanoid, a quadruped, a satellite, an arm on a ship.

    The state is the pose C0 (4, 4) of the base in the inertial frame; q (n,); and nu = (V0, qd) (6 + n,), V0 the
    body-fixed twist of the base, (angular; linear) in its own frame. nud, nudd, nuddd are the time derivatives of the
    components of nu. Efforts tau (6 + n,) are the wrench (moment; force) on the base, in its frame and about its
    origin, and the joint efforts:

        M(q) nud + C(q, nu) nu + Q_grav(C0, q) + Q_ext(q, t) = tau.

    A free robot has a zero wrench on its base; wrenches at the feet are its ``wrench`` or contacts. ``robot.base`` is
    the inertia of the base, and the robot's gravity is in the inertial frame. All arrays may have a leading axis N of a
    batch. Rotation matrices of poses are not validated. All methods raise StateError if an argument has the wrong shape
    or is not finite.

    The first use of each quantity compiles code for it; later uses load it from the cache, as for :class:`.Dynamics`.

    >>> import numpy as np
    >>> import eom_dynamics as eom
    >>> floating = eom.FloatingBase(eom.load_robot("planar_2r"))
    >>> pose, q = np.eye(4), np.array([0.3, -0.5])
    >>> floating.gravity(pose, q).shape, floating.mass_matrix(q).shape
    ((8,), (8, 8))

    Attributes:
        robot: the robot.
        backend: ``native`` (compiled C) or ``numpy``.
    """

    def __init__(self, robot: Robot, *, friction: bool | None = None, backend: str | None = None) -> None:
        """Compile the efforts of a robot on a floating base, or load them from the cache.

        Arguments and errors are as in :class:`.Dynamics`; RobotDescriptionError for a physically inconsistent inertia
        of the base.
        """
        robot = with_friction(robot, friction)
        if violation := body_violation(robot.base):
            raise RobotDescriptionError(f"{robot.name}: base: {violation}")
        self.backend, kernel = working_kernel(robot, programs.recipe(robot, "effort"), backend)
        self.robot = robot
        self._frames = {"base": Frame("base", -1, np.eye(4))} | frames_by_name(robot)
        self._functions = {"effort": CompiledFunction(self.signature("effort"), kernel)}
        self._calls = {}
        _ = self.effort  # compiled and loaded here rather than in the first call

    @cached_property
    def selection(self) -> Array:
        """Selection matrix S = [0 I] (n, 6 + n): tau = S' u for joint efforts u on a free base."""
        n = self.robot.n
        return np.hstack([np.zeros((n, BASE)), np.eye(n)])

    @state_method
    def inverse_dynamics(
        self,
        pose: ArrayLike,
        q: ArrayLike,
        nu: ArrayLike,
        nud: ArrayLike,
        nudd: ArrayLike | None = None,
        nuddd: ArrayLike | None = None,
        *,
        wrench: Sequence[ArrayLike] = (),
    ) -> tuple[Array, ...]:
        """Wrench on the base and joint efforts, and time derivatives of their components.

        Args:
            pose: pose of the base in the inertial frame, (4, 4) or (N, 4, 4), m.
            q: joint variables (n,) or (N, n), rad or m.
            nu, nud, nudd, nuddd: twist of the base and joint rates, and their time derivatives, each (6 + n,) or
                (N, 6 + n). The last two may be omitted, which means zero.
            wrench: (W, Wd, Wdd), the wrench that the robot exerts on its surroundings at its tools and its time
                derivatives, as for :meth:`.Dynamics.inverse_dynamics`.

        Returns:
            tau, taud, taudd: each (6 + n,) or (N, 6 + n); N m and N, and per s, s².
        """
        return self._run("inverse_dynamics", pose, q, nu, nud, nudd, nuddd, wrench=wrench)

    @state_method
    def effort(
        self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike, nud: ArrayLike, *, wrench: Sequence[ArrayLike] = ()
    ) -> Array:
        """Efforts tau (6 + n,) or (N, 6 + n); arguments as in :meth:`inverse_dynamics`."""
        return self._run("effort", pose, q, nu, nud, wrench=wrench)[0]

    @state_method
    def joint_efforts(
        self,
        pose: ArrayLike,
        q: ArrayLike,
        nu: ArrayLike,
        nud: ArrayLike,
        nudd: ArrayLike | None = None,
        nuddd: ArrayLike | None = None,
        *,
        wrench: Sequence[ArrayLike] = (),
    ) -> tuple[Array, ...]:
        """Joint efforts of an arm on a base with prescribed motion, such as a mobile platform or a ship.

        The last n components of :meth:`inverse_dynamics`, tau, taud, taudd, each (n,) or (N, n), without the wrench
        that moves the base. The mass of the base has no effect.
        """
        return self._run("joint_efforts", pose, q, nu, nud, nudd, nuddd, wrench=wrench)

    @state_method
    def imu_efforts(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike | None = None,
        qdddd: ArrayLike | None = None,
        *,
        angular_velocity: Sequence[ArrayLike] | Array = (),
        specific_force: Sequence[ArrayLike] | Array,
        wrench: Sequence[ArrayLike] = (),
    ) -> tuple[Array, ...]:
        """Joint efforts of an arm on a base with motion measured by an inertial measurement unit.

        Returns tau, taud, taudd, each (n,) or (N, n); N m or N, and per s, s². Neither pose nor velocity of the base is
        required. On a base at rest the specific force is R0' (-g).

        Args:
            q, qd, qdd, qddd, qdddd: joint variables and their time derivatives, each (n,) or (N, n).
            angular_velocity: (w, wd, wdd, wddd), angular velocity of the base in its frame and its time derivatives,
                each (3,) or (N, 3); rad/s, and per s, s², s³.
            specific_force: (f, fd, fdd), measurement of an accelerometer at the base origin (acceleration minus
                gravity) in the base frame, and time derivatives of its components, each (3,) or (N, 3); m/s². Omitted
                derivatives are zero; the specific force itself is required.
            wrench: as for :meth:`inverse_dynamics`.
        """
        base: dict[str, Any] = {"angular_velocity": angular_velocity, "specific_force": specific_force}
        return self._run("imu_efforts", q, qd, qdd, qddd, qdddd, **base, wrench=wrench)

    @state_method
    def bias(self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike, *, wrench: Sequence[ArrayLike] = ()) -> Array:
        """Efforts at nud = 0, C nu + Q_grav + Q_ext: (6 + n,) or (N, 6 + n)."""
        return self._run("bias", pose, q, nu, wrench=wrench)[0]

    @state_method
    def gravity(self, pose: ArrayLike, q: ArrayLike) -> Array:
        """Efforts that hold the robot against gravity, Q_grav: (6 + n,) or (N, 6 + n)."""
        return self._run("gravity", pose, q)[0]

    @state_method
    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix M: (6 + n, 6 + n) or (N, 6 + n, 6 + n). It does not depend on the pose of the base."""
        return self._run("mass_matrix", q)[0]

    @state_method
    def coriolis_matrix(self, q: ArrayLike, nu: ArrayLike) -> Array:
        """Coriolis matrix C, linear in nu: (6 + n, 6 + n) or (N, 6 + n, 6 + n). dM/dt - 2 C is skew-symmetric.

        Its joint block is the matrix of Christoffel symbols; see :mod:`.recursion.composite`.
        """
        return self._run("coriolis_matrix", q, nu)[0]

    def coriolis_tensor(self, q: ArrayLike) -> Array:
        """Coriolis tensor c (6 + n, 6 + n, 6 + n), or with a leading axis N: C_ij = sum over k of c_ijk nu_k."""
        repeated, units, samples = with_unit_rates(q, self.robot.n, BASE + self.robot.n)
        return by_unit_rates(self.coriolis_matrix(repeated, units), samples)

    @state_method
    def forward_dynamics(
        self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike, tau: ArrayLike, *, wrench: Sequence[ArrayLike] = ()
    ) -> Array:
        """Rate of nu, (6 + n,) or (N, 6 + n), from M nud = tau - C nu - Q_grav - Q_ext.

        Computed by the articulated-body algorithm in O(n) if joints are independent and inertias are physically
        consistent; else from the mass matrix.

        Args:
            pose, q, nu: as for :meth:`inverse_dynamics`.
            tau: (6 + n,) or (N, 6 + n), a wrench on the base in its frame, zero for a free base, and joint efforts; for
                joint efforts u (n,) on a free base ``u @ floating.selection``.
            wrench: (W,) as for :meth:`inverse_dynamics`.

        Raises:
            RobotDescriptionError: the mass matrix is singular or indefinite, for example because the base has no mass.
        """
        n, shape = self.robot.n, shape_of(tau, "tau")
        if shape[-1:] == (n,):
            raise StateError(
                f"tau must have shape {(*shape[:-1], BASE + n)}, has {shape}: it starts with the wrench on the base; "
                "for joint efforts u on a free base it is u @ floating.selection"
            )
        if self._articulated:
            return self._run("forward_dynamics", pose, q, nu, tau, wrench=wrench)[0]
        self._require_definite()
        known, names = state_vectors(self.robot), ("pose", "q", "nu", "tau")
        (_, _, _, efforts), _ = state_arrays((pose, q, nu, tau), names, [known[name].shape for name in names])
        return solve_mass_matrix(self.robot.name, self.mass_matrix(q), efforts - self.bias(pose, q, nu, wrench=wrench))

    @state_method
    def momentum(self, q: ArrayLike, nu: ArrayLike) -> Array:
        """Momenta M nu (6 + n,) or (N, 6 + n): of the robot in the base frame, then of the joints."""
        return self._run("momentum", q, nu)[0]

    @state_method
    def kinetic_energy(self, q: ArrayLike, nu: ArrayLike) -> Array:
        """Kinetic energy of the bodies, J: () or (N,)."""
        return self._run("kinetic_energy", q, nu)[0]

    @state_method
    def potential_energy(self, pose: ArrayLike, q: ArrayLike) -> Array:
        """Potential energy in gravity, J: () or (N,); zero with the center of mass in the inertial origin."""
        return self._run("potential_energy", pose, q)[0]

    @state_method
    def centroidal_momentum(self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike) -> Array:
        """Angular momentum about the center of mass, and linear momentum, along the inertial axes: (6,) or (N, 6).

        Raises RobotDescriptionError if the robot has no mass.
        """
        return self._run("centroidal_momentum", pose, q, nu)[0]

    @state_method
    def centroidal_momentum_matrix(self, pose: ArrayLike, q: ArrayLike) -> Array:
        """Centroidal momentum matrix A, h = A nu: (6, 6 + n) or (N, 6, 6 + n); errors as for the momentum.

        D. E. Orin, A. Goswami and S.-H. Lee, "Centroidal dynamics of a humanoid robot", Autonomous Robots 35 (2013).
        """
        return self._run("centroidal_momentum_matrix", pose, q)[0]

    @state_method
    def center_of_mass_jacobian(self, pose: ArrayLike, q: ArrayLike) -> Array:
        """Jacobian of the center of mass: cd = J nu, and Q_grav = -m J' g. (3, 6 + n) or (N, 3, 6 + n)."""
        return self._run("center_of_mass_jacobian", pose, q)[0]

    def center_of_mass_coordinates(self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike) -> CenterOfMassCoordinates:
        """Equations of motion in the velocities xi = T nu = (w, cd, qd), with a block-diagonal mass matrix.

        w is the average angular velocity, cd the velocity of the center of mass, both along the inertial axes; see
        :class:`.CenterOfMassCoordinates`. RobotDescriptionError if the mass matrix is not positive definite.
        """
        self._require_definite()
        gravity = self.gravity(pose, q)
        C = self.coriolis_matrix(q, nu)
        arrays = (np.asarray(x, dtype=float) for x in (pose, nu))
        return center_of_mass_coordinates(self.mass_matrix(q), C, gravity, *arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the robot and the backend; compiled code comes from the cache."""
        return partial(FloatingBase, backend=self.backend), (self.robot,)

    @cached_property
    def _articulated(self) -> bool:
        """True if the articulated-body algorithm computes accelerations."""
        return admits_articulated_bodies(self.robot, with_base=True) and self._is_definite

    @cached_property
    def _is_definite(self) -> bool:
        """True if the mass matrix is positive definite in a configuration without symmetry."""
        tree = link_tree(self.robot)
        M = np.array(composite_mass_matrix(tree, np.cos(1.0 + 2.4 * np.arange(self.robot.n)).tolist()), dtype=float)
        diagonal = np.diag(M)
        if np.any(diagonal <= 0):
            return False
        scale = np.sqrt(diagonal)
        return bool(np.linalg.eigvalsh(M / np.outer(scale, scale))[0] > _SINGULAR)

    def _require_definite(self) -> None:
        if not self._is_definite:
            raise RobotDescriptionError(
                f"{self.robot.name}: the mass matrix of the floating base is not positive definite, so that forward "
                "dynamics has no unique solution; give the base mass and inertia (inertial of the root link of a URDF, "
                f"base of a parameter file), it has {self.robot.base.mass:g} kg"
            )

    def signature(self, method: str, orders: int = 0) -> Signature:
        """Signature of a method, as :meth:`.CompiledMethods.signature`."""
        if method not in programs.PROGRAMS:
            return super().signature(method, orders)
        recipe, known = programs.recipe(self.robot, method), state_vectors(self.robot)
        signature = declared_signature(recipe, known, self.robot.wrench_shape)
        return replace(signature, keywords=(*_IMU, *signature.keywords)) if method == "imu_efforts" else signature

    def _recipe(self, name: str) -> Recipe:
        if name in _CENTERED:
            self._require_mass()
        return programs.recipe(self.robot, name)

    def _state_call(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        if name == "forward_dynamics" and not self._articulated:
            return method
        return super()._state_call(name, method)
