# SPDX-License-Identifier: Apache-2.0
"""Dynamics of a robot on a base that moves freely, by code that is specialised for it, for one state or a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arguments import choice
from .arrays import Array
from .codegen import floating_programs as programs
from .codegen.backends import KERNELS, Kernel, with_friction, working_kernel
from .codegen.evaluation import evaluate
from .codegen.floating_programs import IMU_NAMES, RATE_NAMES
from .codegen.native import NativeKernel
from .codegen.recipe import Recipe
from .codegen.state_method import state_method
from .exceptions import RobotDescriptionError, StateError
from .kinematics.frames import Key, frames_by_name, kept_call, named_frame
from .mass_matrix import solve_mass_matrix
from .recursion import link_tree
from .recursion.composite import BASE, mass_matrix
from .recursion.kinematics import REPRESENTATIONS
from .robot import Frame, Robot
from .robot.physical_consistency import admits_articulated_bodies, body_violation
from .spelling import shown
from .states import (
    STATE_NAMES,
    WRENCH_NAMES,
    real_array,
    sequence,
    shape_of,
    state_arrays,
    wrenches,
    zeros_if_omitted,
)

# Smallest eigenvalue of a positive definite mass matrix, of diagonal one; rounding leaves 1e-15.
_SINGULAR = 1e-12

_POSE, _TWIST, _POINT = (4, 4), (6,), (3,)


class _Signature(NamedTuple):
    """Arguments, number of wrenches, and results of a program, with sizes by letter: n joints, m = 6 + n."""

    arguments: Sequence[str]
    wrenches: int
    results: Sequence[str]


_SIGNATURES = {
    "inverse_dynamics": _Signature(("pose", "q", *RATE_NAMES), 3, ("m", "m", "m")),
    "effort": _Signature(("pose", "q", "nu", "nud"), 1, ("m",)),
    "joint_efforts": _Signature(("pose", "q", *RATE_NAMES), 3, ("n", "n", "n")),
    "imu_efforts": _Signature((*STATE_NAMES, *IMU_NAMES[0], *IMU_NAMES[1]), 3, ("n", "n", "n")),
    "bias": _Signature(("pose", "q", "nu"), 1, ("m",)),
    "gravity": _Signature(("pose", "q"), 0, ("m",)),
    "mass_matrix": _Signature(("q",), 0, ("mm",)),
    "coriolis_matrix": _Signature(("q", "nu"), 0, ("mm",)),
    "forward_dynamics": _Signature(("pose", "q", "nu", "tau"), 1, ("m",)),
    "momentum": _Signature(("q", "nu"), 0, ("m",)),
    "kinetic_energy": _Signature(("q", "nu"), 0, ("",)),
    "potential_energy": _Signature(("pose", "q"), 0, ("",)),
    "centroidal_momentum": _Signature(("pose", "q", "nu"), 0, ("6",)),
    "centroidal_momentum_matrix": _Signature(("pose", "q"), 0, ("6m",)),
    "center_of_mass_jacobian": _Signature(("pose", "q"), 0, ("3m",)),
}

_CENTERED = ("centroidal_momentum", "centroidal_momentum_matrix", "center_of_mass_jacobian")


class FloatingBase:
    """Dynamics of one robot on a base that moves freely: a humanoid, a quadruped, a satellite, an arm on a ship.

    The state is the pose C0 (4, 4) of the base in the inertial frame; q (n,); and nu = (V0, qd) (6 + n,), V0 the
    body-fixed twist of the base, (angular; linear) in its own frame. nud, nudd, nuddd are the time derivatives of the
    components of nu. Efforts tau (6 + n,) are the wrench (moment; force) on the base, in its frame and about its
    origin, and the joint efforts:

        M(q) nud + C(q, nu) nu + Q_grav(C0, q) + Q_ext(q, t) = tau.

    A robot that nothing holds has a zero wrench on its base; what acts at the feet is its ``wrench``, or a contact. The
    mass of the base is ``robot.base``, and gravity that of the robot, in the inertial frame. All arrays may have a
    leading axis N of a batch. The rotation of a pose is not checked to be one.

    The first use of each quantity compiles code for it; later uses load it from the cache, as for :class:`.Dynamics`.

    >>> import numpy as np
    >>> import eom_dynamics as eom
    >>> floating = eom.FloatingBase(eom.load_robot("planar_2r"))
    >>> pose, q = np.eye(4), np.array([0.3, -0.5])
    >>> floating.gravity(pose, q).shape, floating.mass_matrix(q).shape
    ((8,), (8, 8))

    Attributes:
        robot: the robot.
        backend: ``native`` (compiled C), ``casadi`` or ``numpy``.
    """

    def __init__(self, robot: Robot, *, friction: bool | None = None, backend: str | None = None) -> None:
        """Compile the efforts of a robot on a floating base, or load them from the cache.

        Args:
            robot: the robot.
            friction, backend: as for :class:`.Dynamics`.

        Raises:
            KernelError: the requested backend is unavailable.
            ValueError: the backend is unknown, or ``friction`` is no truth value.
            TypeError: ``robot`` is not a Robot.
            RobotDescriptionError: no rigid body has the inertia of the base.
        """
        robot = with_friction(robot, friction)
        if violation := body_violation(robot.base):
            raise RobotDescriptionError(f"{robot.name}: base: {violation}")
        self.backend, kernel = working_kernel(robot, programs.recipe(robot, "effort"), backend)
        self.robot = robot
        self._frames = {"base": Frame("base", -1, np.eye(4))} | frames_by_name(robot)
        self._kernels = {"effort": kernel}
        self._calls: dict[Key, Callable[..., Any]] = {}
        _ = self.effort  # compiled and loaded here rather than in the first call

    @cached_property
    def selection(self) -> Array:
        """Selection matrix S = [0 I] (n, 6 + n) of the joint efforts: tau = S' u for joint efforts u on a free base."""
        n = self.robot.n
        return np.hstack([np.zeros((n, BASE)), np.eye(n)])

    @property
    def total_mass(self) -> float:
        """Mass of all bodies with the base, kg."""
        return programs.total_mass(self.robot)

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
        """Wrench on the base and joint efforts, and their time derivatives, by components.

        Args:
            pose: of the base in the inertial frame, (4, 4) or (N, 4, 4), m.
            q: joint variables (n,) or (N, n), rad or m.
            nu, nud, nudd, nuddd: twist of the base and joint rates, and their time derivatives, each (6 + n,) or
                (N, 6 + n). The last two may be omitted, which means zero.
            wrench: (W, Wd, Wdd), the wrench that the robot exerts on its surroundings at its tools and its time
                derivatives, as for :meth:`.Dynamics.inverse_dynamics`.

        Returns:
            tau, taud, taudd: each (6 + n,) or (N, 6 + n); N m and N, and per s, s².

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        return self._run("inverse_dynamics", self._with_zeros(pose, q, nu, nud, nudd, nuddd), wrench)

    @state_method
    def effort(
        self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike, nud: ArrayLike, *, wrench: Sequence[ArrayLike] = ()
    ) -> Array:
        """Efforts tau (6 + n,) or (N, 6 + n); arguments and errors as in :meth:`inverse_dynamics`."""
        return self._run("effort", (pose, q, nu, nud), wrench)[0]

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
        """Joint efforts of an arm on a base with a given motion, such as a mobile platform or a ship.

        The last n components of :meth:`inverse_dynamics`, without what moves the base, whose mass has no effect.

        Returns:
            tau, taud, taudd: each (n,) or (N, n); N m or N, and per s, s².
        """
        return self._run("joint_efforts", self._with_zeros(pose, q, nu, nud, nudd, nuddd), wrench)

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
        """Joint efforts of an arm on a base whose motion an inertial measurement unit measures.

        Neither pose nor velocity of the base are needed. On a base at rest the specific force is R0' (-g).

        Args:
            q, qd, qdd, qddd, qdddd: joint variables and their time derivatives, each (n,) or (N, n).
            angular_velocity: (w, wd, wdd, wddd) of the base in its frame and its time derivatives, each (3,) or (N, 3);
                rad/s, and per s, s², s³.
            specific_force: (f, fd, fdd), what an accelerometer at the origin of the base measures, acceleration less
                gravity, in the frame of the base, and the time derivatives of its components, each (3,) or (N, 3);
                m/s².
            wrench: as for :meth:`inverse_dynamics`.

        Omitted derivatives are zero, except for the specific force itself.

        Returns:
            tau, taud, taudd: each (n,) or (N, n); N m or N, and per s, s².

        Raises:
            StateError: an argument has the wrong shape or is not finite, or there is no specific force.
        """
        zero = np.zeros((*shape_of(q, STATE_NAMES[0])[:-1], 3))
        jets: list[ArrayLike] = []
        given = [("angular_velocity", angular_velocity, 0), ("specific_force", specific_force, 1)]
        for symbols, (name, levels, least) in zip(IMU_NAMES, given, strict=True):
            of = f"vectors, ({', '.join(symbols)})"
            vectors = sequence(levels, name, of, least=least, most=len(symbols))
            if not all(shape_of(vector, name) for vector in vectors):
                raise StateError(f"{name} must be a sequence of {of}, is one of numbers")
            jets += [*vectors, *[zero] * (len(symbols) - len(vectors))]
        rates = zeros_if_omitted(q, qddd, qdddd)
        return self._run("imu_efforts", (q, qd, qdd, *rates, *jets), wrench)

    @state_method
    def bias(self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike, *, wrench: Sequence[ArrayLike] = ()) -> Array:
        """Efforts at nud = 0, C nu + Q_grav + Q_ext: (6 + n,) or (N, 6 + n)."""
        return self._run("bias", (pose, q, nu), wrench)[0]

    @state_method
    def gravity(self, pose: ArrayLike, q: ArrayLike) -> Array:
        """Efforts that hold the robot against gravity, Q_grav: (6 + n,) or (N, 6 + n)."""
        return self._run("gravity", (pose, q))[0]

    @state_method
    def mass_matrix(self, q: ArrayLike) -> Array:
        """Mass matrix M: (6 + n, 6 + n) or (N, 6 + n, 6 + n). It does not depend on the pose of the base."""
        return self._run("mass_matrix", (q,))[0]

    @state_method
    def coriolis_matrix(self, q: ArrayLike, nu: ArrayLike) -> Array:
        """Coriolis matrix C, linear in nu: (6 + n, 6 + n) or (N, 6 + n, 6 + n). dM/dt - 2 C is skew-symmetric.

        Its joint block is that of the Christoffel symbols; see :mod:`.recursion.composite`.
        """
        return self._run("coriolis_matrix", (q, nu))[0]

    def coriolis_tensor(self, q: ArrayLike) -> Array:
        """Coriolis tensor c: C_ij = sum over k of c_ijk nu_k.

        Returns:
            c: (6 + n, 6 + n, 6 + n), or with a leading axis N.

        Raises:
            StateError: q has the wrong shape or is not finite.
        """
        (checked,), samples = state_arrays((q,), ("q",), [(self.robot.n,)])
        size = BASE + self.robot.n
        count = samples[0] if samples else 1
        each = np.repeat(checked.reshape(count, self.robot.n), size, axis=0)
        C = self.coriolis_matrix(each, np.tile(np.eye(size), (count, 1))).reshape(*samples, size, size, size)
        tensor: Array = np.ascontiguousarray(np.moveaxis(C, -3, -1))
        return tensor

    def forward_dynamics(
        self,
        pose: ArrayLike,
        q: ArrayLike,
        nu: ArrayLike,
        tau: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
    ) -> Array:
        """Rate of nu from M nud = tau - C nu - Q_grav - Q_ext.

        By the articulated-body algorithm in O(n) where joints are independent and bodies are possible; else by the mass
        matrix.

        Args:
            pose, q, nu: as for :meth:`inverse_dynamics`.
            tau: (6 + n,) or (N, 6 + n), a wrench on the base in its frame, zero for a free base, and joint efforts.
            wrench: (W,) as for :meth:`inverse_dynamics`.

        Returns:
            nud: (6 + n,) or (N, 6 + n).

        Raises:
            StateError: an argument has the wrong shape or is not finite. For joint efforts u (n,) on a free base, tau
                is ``u @ floating.selection``.
            RobotDescriptionError: the mass matrix is singular or indefinite, for example since the base has no mass.
        """
        if self._articulated:
            return self._forward_dynamics(pose, q, nu, tau, wrench=wrench)
        self._require_wrench_on_base(tau)
        self._require_definite()
        (_, _, _, efforts), _ = state_arrays((pose, q, nu, tau), ("pose", "q", "nu", "tau"), self._shapes("pqmm"))
        return solve_mass_matrix(self.robot.name, self.mass_matrix(q), efforts - self.bias(pose, q, nu, wrench=wrench))

    @state_method
    def momentum(self, q: ArrayLike, nu: ArrayLike) -> Array:
        """Momenta M nu (6 + n,) or (N, 6 + n): that of the robot in the frame of the base, and those of the joints."""
        return self._run("momentum", (q, nu))[0]

    @state_method
    def kinetic_energy(self, q: ArrayLike, nu: ArrayLike) -> Array:
        """Kinetic energy of the bodies, J: () or (N,)."""
        return self._run("kinetic_energy", (q, nu))[0]

    @state_method
    def potential_energy(self, pose: ArrayLike, q: ArrayLike) -> Array:
        """Potential energy in gravity, J: () or (N,); zero with the centre of mass in the inertial origin."""
        return self._run("potential_energy", (pose, q))[0]

    @state_method
    def centroidal_momentum(self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike) -> Array:
        """Angular momentum about the centre of mass, and linear momentum, along the inertial axes: (6,) or (N, 6).

        Raises:
            StateError: an argument has the wrong shape or is not finite.
            RobotDescriptionError: the robot has no mass.
        """
        return self._run("centroidal_momentum", (pose, q, nu))[0]

    @state_method
    def centroidal_momentum_matrix(self, pose: ArrayLike, q: ArrayLike) -> Array:
        """Matrix A of the centroidal momentum h = A nu: (6, 6 + n) or (N, 6, 6 + n); errors as there.

        D. E. Orin, A. Goswami and S.-H. Lee, "Centroidal dynamics of a humanoid robot", Autonomous Robots 35 (2013).
        """
        return self._run("centroidal_momentum_matrix", (pose, q))[0]

    def center_of_mass(self, pose: ArrayLike, q: ArrayLike, *rates: ArrayLike) -> Any:
        """Centre of mass in the inertial frame, and its time derivatives.

        Args:
            pose, q: as for :meth:`inverse_dynamics`.
            rates: nu, nud, …, any number.

        Returns:
            c (3,) or (N, 3), m; with rates the tuple c, cd, …, with as many derivatives as rates.

        Raises:
            StateError: an argument has the wrong shape or is not finite.
            RobotDescriptionError: the robot has no mass.
        """
        orders = len(rates)
        key = "center_of_mass", orders
        call = self._calls.get(key)
        if call is None:
            self._require_mass()
            recipe = programs.center_of_mass(self.robot, orders)
            call = self._compiled(key, recipe, "pq" + orders * "m", orders, [_POINT] * (orders + 1))
        return call(pose, q, *rates)

    @state_method
    def center_of_mass_jacobian(self, pose: ArrayLike, q: ArrayLike) -> Array:
        """Jacobian of the centre of mass: cd = J nu, and Q_grav = -m J' g. (3, 6 + n) or (N, 3, 6 + n)."""
        return self._run("center_of_mass_jacobian", (pose, q))[0]

    def pose(self, pose: ArrayLike, q: ArrayLike, frame: str | Frame | None = None) -> Array:
        """Pose of a frame in the inertial frame.

        Args:
            pose, q: as for :meth:`inverse_dynamics`.
            frame: a frame of the robot by its name, as for :class:`.Kinematics`, or ``base``; or any
                :class:`.robot.Frame` on one of its bodies. By default the first tool.

        Returns:
            C: (4, 4) or (N, 4, 4), m.

        Raises:
            StateError: an argument has the wrong shape or is not finite, or there is no such frame.
        """
        key = "pose", frame
        call = kept_call(self._calls, key)
        if call is None:
            call = self._compiled(key, programs.pose(self.robot, self.frame(frame)), "pq", 0, [_POSE])
        found: Array = call(pose, q)
        return found

    def motion(
        self, pose: ArrayLike, q: ArrayLike, *rates: ArrayLike, frame: str | Frame | None = None
    ) -> tuple[Array, ...]:
        """Pose of a frame in the inertial frame, and its body-fixed twist with time derivatives.

        Args:
            pose, q, frame: as for :meth:`pose`.
            rates: nu, nud, …, at least one.

        Returns:
            C, V, Vd, …: (4, 4) and (6,), or (N, 4, 4) and (N, 6); as many twists and derivatives as rates.

        Raises:
            StateError: as for :meth:`pose`.
        """
        orders = len(rates)
        if not orders:
            raise StateError("motion requires pose, q and at least nu")
        key = "motion", frame, orders
        call = kept_call(self._calls, key)
        if call is None:
            recipe = programs.motion(self.robot, self.frame(frame), orders)
            call = self._compiled(key, recipe, "pq" + orders * "m", orders, [_POSE, *[_TWIST] * orders])
        found: tuple[Array, ...] = call(pose, q, *rates)
        return found

    def jacobian(
        self,
        q: ArrayLike,
        frame: str | Frame | None = None,
        reference: str = "body",
        *,
        pose: ArrayLike | None = None,
    ) -> Array:
        """Jacobian of a frame: V = J nu.

        Args:
            q, frame: as for :meth:`pose`.
            reference: kind of the twist V, as for :meth:`.Kinematics.jacobian`, with the inertial frame as the base:
                ``body``, ``space`` or ``world_aligned``.
            pose: of the base; not needed for ``body``.

        Returns:
            J: (6, 6 + n) or (N, 6, 6 + n).

        Raises:
            StateError: as for :meth:`pose`, or the pose of the base is missing.
            ValueError: ``reference`` is none of these.
        """
        found: Array = self._jacobians((q,), frame, reference, pose)
        return found

    def jacobian_derivatives(
        self,
        q: ArrayLike,
        *rates: ArrayLike,
        frame: str | Frame | None = None,
        reference: str = "body",
        pose: ArrayLike | None = None,
    ) -> tuple[Array, ...]:
        """Jacobian of a frame and its time derivatives: Vd = J nud + Jd nu, and so on.

        Args:
            q, frame, reference, pose: as for :meth:`jacobian`.
            rates: nu, nud, …, any number.

        Returns:
            J, Jd, …: each (6, 6 + n) or (N, 6, 6 + n); as many derivatives as rates.

        Raises:
            StateError, ValueError: as for :meth:`jacobian`.
        """
        found = self._jacobians((q, *rates), frame, reference, pose)
        return found if rates else (found,)

    def frame(self, frame: str | Frame | None = None) -> Frame:
        """The frame of a name; by default the first tool.

        Raises:
            StateError: there is no such frame.
        """
        if isinstance(frame, Frame):
            if not isinstance(frame.joint, int | np.integer):
                raise StateError(f"joint of the frame {shown(frame.name)} must be an index, is {shown(frame.joint)}")
            if not -1 <= frame.joint < len(self.robot.joints):
                raise StateError(f"{self.robot.name} has no body {frame.joint} for the frame {shown(frame.name)}")
            real_array(frame.pose, f"pose of the frame {shown(frame.name)}", _POSE)
            return frame
        return named_frame(self.robot, self._frames, frame)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the robot and the backend; compiled code comes from the cache."""
        return partial(FloatingBase, backend=self.backend), (self.robot,)

    @cached_property
    def _forward_dynamics(self) -> Callable[..., Array]:
        def general(
            pose: ArrayLike, q: ArrayLike, nu: ArrayLike, tau: ArrayLike, *, wrench: Sequence[ArrayLike] = ()
        ) -> Array:
            self._require_wrench_on_base(tau)
            return self._run("forward_dynamics", (pose, q, nu, tau), wrench)[0]

        return self._state_call("forward_dynamics", general)

    @cached_property
    def _articulated(self) -> bool:
        """Whether the articulated-body algorithm gives the accelerations."""
        return admits_articulated_bodies(self.robot, with_base=True) and self._is_definite

    @cached_property
    def _is_definite(self) -> bool:
        """Whether the mass matrix is positive definite in a configuration without symmetry."""
        tree = link_tree(self.robot)
        M = np.array(mass_matrix(tree, np.cos(1.0 + 2.4 * np.arange(self.robot.n)).tolist()), dtype=float)
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

    def _require_wrench_on_base(self, tau: ArrayLike) -> None:
        n, shape = self.robot.n, shape_of(tau, "tau")
        if shape[-1:] == (n,):
            raise StateError(
                f"tau must have shape {(*shape[:-1], BASE + n)}, has {shape}: it starts with the wrench on the base; "
                "for joint efforts u on a free base it is u @ floating.selection"
            )

    def _require_mass(self) -> None:
        if not self.total_mass:
            raise RobotDescriptionError(f"{self.robot.name} has no mass, and thus no centre of mass")

    def _jacobians(
        self, states: tuple[ArrayLike, ...], frame: str | Frame | None, reference: str, pose: ArrayLike | None
    ) -> Any:
        orders = len(states) - 1
        key = "jacobian", frame, reference, orders
        call = kept_call(self._calls, key)
        if call is None:
            choice(reference, "reference", REPRESENTATIONS)
            recipe = programs.jacobian(self.robot, self.frame(frame), reference, orders)
            letters = ("q" if reference == "body" else "pq") + orders * "m"
            call = self._compiled(key, recipe, letters, orders, [(6, BASE + self.robot.n)] * (orders + 1))
        if reference == "body":
            return call(*states)
        if pose is None:
            raise StateError(f"the {reference} Jacobian requires the pose of the base")
        return call(pose, *states)

    def _with_zeros(self, pose: ArrayLike, q: ArrayLike, nu: ArrayLike, *rates: ArrayLike | None) -> list[ArrayLike]:
        """The arguments, with zeros of the shape of nu in place of None."""
        return [pose, q, nu, *zeros_if_omitted(nu, *rates, name=RATE_NAMES[0])]

    def _run(self, program: str, values: Sequence[ArrayLike], wrench: Sequence[ArrayLike] = ()) -> tuple[Array, ...]:
        signature = _SIGNATURES[program]
        shapes = self._argument_shapes(signature)
        states, samples = state_arrays(values, signature.arguments, shapes, finite=False)
        at_tools = wrenches(
            wrench,
            signature.wrenches,
            self.robot.wrench_shape,
            samples,
            most=len(WRENCH_NAMES),
            finite=samples == (0,),
        )
        kernel = self._kernel(program)
        results = evaluate(kernel, samples, (*states, *at_tools), self._result_shapes(signature))
        if results is None:
            # An input is not finite: repeat the checks, which name the argument and the entry.
            state_arrays(states, signature.arguments, shapes)
            wrenches(wrench, signature.wrenches, self.robot.wrench_shape, samples)
            raise StateError("an input is not finite")
        return results

    def _state_call(self, program: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method, or a compiled caller for one state in front of it."""
        kernel = self._kernel(program)
        if not isinstance(kernel, NativeKernel):
            return method
        signature = _SIGNATURES[program]
        return kernel.state_call(
            len(signature.arguments),
            self.robot.n,
            self._result_shapes(signature),
            method,
            wrenches=signature.wrenches,
            wrench_shape=self.robot.wrench_shape,
            alone=len(signature.results) == 1,
            inputs=self._argument_shapes(signature),
        )

    def _compiled(
        self, key: Key, recipe: Recipe, letters: str, orders: int, results: list[tuple[int, ...]]
    ) -> Callable[..., Any]:
        """Function of pose and q as in ``letters``, and of ``orders`` rates; it is kept."""
        names = [{"p": "pose", "q": "q"}[letter] for letter in letters if letter in "pq"] + programs.rate_names(orders)
        shapes, kernel, alone = self._shapes(letters), KERNELS[self.backend](self.robot, recipe), len(results) == 1

        def general(*values: ArrayLike) -> Any:
            states, samples = state_arrays(values, names, shapes)
            found = evaluate(kernel, samples, states, results)
            assert found is not None  # the states are finite
            return found[0] if alone else found

        call: Callable[..., Any] = general
        if isinstance(kernel, NativeKernel):
            call = kernel.state_call(len(names), self.robot.n, results, general, alone=alone, inputs=shapes)
        self._calls[key] = call
        return call

    def _argument_shapes(self, signature: _Signature) -> list[tuple[int, ...]]:
        kinds = {"pose": "p"} | dict.fromkeys(STATE_NAMES, "q") | dict.fromkeys((*IMU_NAMES[0], *IMU_NAMES[1]), "3")
        return self._shapes("".join(kinds.get(name, "m") for name in signature.arguments))

    def _shapes(self, letters: str) -> list[tuple[int, ...]]:
        """Shapes by letter: pose, q, m = 6 + n."""
        shapes = {"p": _POSE, "q": (self.robot.n,), "m": (BASE + self.robot.n,), "3": _POINT}
        return [shapes[letter] for letter in letters]

    def _result_shapes(self, signature: _Signature) -> list[tuple[int, ...]]:
        sizes = {"n": self.robot.n, "m": BASE + self.robot.n}
        return [tuple(sizes[x] if x in sizes else int(x) for x in result) for result in signature.results]

    def _kernel(self, program: str) -> Kernel:
        kernel = self._kernels.get(program)
        if kernel is None:
            if program in _CENTERED:
                self._require_mass()
            kernel = self._kernels[program] = KERNELS[self.backend](self.robot, programs.recipe(self.robot, program))
        return kernel
