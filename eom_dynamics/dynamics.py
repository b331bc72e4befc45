# SPDX-License-Identifier: Apache-2.0
"""Dynamics of one robot by code that is specialised for it, for one state or a batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .codegen.backends import KERNELS, Kernel
from .codegen.native import NativeKernel
from .exceptions import KernelError, KernelWarning, RobotDescriptionError, StateError
from .robot import Robot
from .states import joint_states, wrenches, zeros_if_omitted

_Method = TypeVar("_Method", bound=Callable[..., Any])


class _StateMethod:
    """A method of :class:`Dynamics` whose calls for one state cost no more than a call in C.

    Like :func:`functools.cached_property`: the class has the plain method, each instance a compiled caller, which is
    made at first access. The caller takes one state of plain arrays; it passes any other arguments to the method.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, dynamics: Dynamics | None, owner: type | None = None) -> Callable[..., Any]:
        if dynamics is None:
            return self._method
        call = dynamics._state_call(self._name, self._method.__get__(dynamics))
        # Not through vars(), which would slow down each attribute access of the instance.
        setattr(dynamics, self._name, call)
        return call


def _state_method(method: _Method) -> _Method:
    return cast(_Method, _StateMethod(method))


class Dynamics:
    """Inverse dynamics with two time derivatives, and forward dynamics, of one robot.

    The first use of a robot traces its dynamics and compiles them, which takes about a second; later uses load the
    result from a cache on disk (``$EOM_DYNAMICS_CACHE``, by default ``eom_dynamics`` in the user's cache folder).

    Attributes:
        robot: the robot.
        backend: ``native`` (compiled C), ``casadi`` or ``numpy``.
    """

    def __init__(self, robot: Robot, *, backend: str | None = None) -> None:
        """Compile the inverse dynamics of a robot, or load them from the cache.

        Args:
            robot: the robot.
            backend: ``native``, ``casadi`` or ``numpy``; by default the first of these that is available. A
                :class:`KernelWarning` gives the reason if that is not ``native``.

        Raises:
            KernelError: the requested backend is unavailable.
            ValueError: the backend is unknown.
            TypeError: ``robot`` is not a Robot.
        """
        if backend is not None and backend not in KERNELS:
            raise ValueError(f"backend must be one of {', '.join(KERNELS)}, is {backend!r}")
        if not isinstance(robot, Robot):
            raise TypeError(f"robot must be a Robot, as returned by load_robot, is {robot!r:.60}")
        self.robot = robot
        self._kernels: dict[str, Kernel] = {}
        self.backend = self._working_backend() if backend is None else backend
        _ = self.inverse_dynamics  # compiled and loaded here rather than in the first call

    @_state_method
    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike | None = None,
        qdddd: ArrayLike | None = None,
        *,
        wrench: Sequence[ArrayLike] = (),
        out: Sequence[Array] | None = None,
    ) -> tuple[Array, ...]:
        """Joint efforts tau and their time derivatives taud, taudd.

        Args:
            q, qd, qdd, qddd, qdddd: joint variables and their time derivatives, each (n,) or (N, n); rad or m, and
                per s, s², s³, s⁴. Jerk and snap may be omitted, which means zero.
            wrench: (W, Wd, Wdd), the wrench that the robot exerts on its surroundings at its tool and its time
                derivatives, each (6,) or (N, 6), or with k > 1 tools (k, 6) or (N, k, 6); moment first, in the
                tool's frame, N m and N, and per s, s². Omitted ones are zero.
            out: three C-contiguous arrays for the results, in their shapes.

        Returns:
            tau, taud, taudd: each (n,) or (N, n); N m or N, and per s, s².

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        states = joint_states(self.robot.n, q, qd, qdd, *zeros_if_omitted(q, qddd, qdddd), finite=False)
        return self._run("inverse_dynamics", states, wrench, 3, [(self.robot.n,)] * 3, out)

    def effort(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        out: Sequence[Array] | None = None,
    ) -> Array:
        """Joint efforts tau, (n,) or (N, n); arguments and errors as in :meth:`inverse_dynamics`."""
        states = joint_states(self.robot.n, q, qd, qdd, finite=False)
        return self._run("effort", states, wrench, 1, [(self.robot.n,)], out)[0]

    def mass_matrix(self, q: ArrayLike, *, out: Sequence[Array] | None = None) -> Array:
        """Mass matrix M: (n, n) for ``q`` (n,), (N, n, n) for ``q`` (N, n)."""
        n = self.robot.n
        return self._run("mass_matrix", joint_states(n, q, finite=False), (), 0, [(n, n)], out)[0]

    def effort_partials(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        out: Sequence[Array] | None = None,
    ) -> tuple[Array, ...]:
        """Partial derivatives of tau with respect to q, qd and qdd; the last is M.

        Arguments and errors are those of :meth:`inverse_dynamics`.

        Returns:
            dtau_dq, dtau_dqd, dtau_dqdd: each (n, n) or (N, n, n); row i is the gradient of effort i.
        """
        n = self.robot.n
        states = joint_states(n, q, qd, qdd, finite=False)
        return self._run("effort_partials", states, wrench, 1, [(n, n)] * 3, out)

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        added_inertia: ArrayLike = 0.0,
    ) -> Array:
        """Joint accelerations qdd from (M + diag(added_inertia)) qdd = tau - C qd - Q_grav - Q_ext, equation (27).

        Args:
            q, qd, tau: joint variables, velocities and efforts, each (n,) or (N, n); rad or m, per s, N m or N.
            wrench: (W,) as in :meth:`inverse_dynamics`.
            added_inertia: added to the diagonal of the mass matrix, for example of rotors that turn with their links;
                a number, (n,) or (N, n), kg m² or kg.

        Returns:
            qdd: (n,) or (N, n), rad/s² or m/s².

        Raises:
            StateError: an argument has the wrong shape or is not finite.
            RobotDescriptionError: the mass matrix is not positive definite; see :func:`solve_mass_matrix`.
        """
        q = np.asarray(q, dtype=float)
        added = np.broadcast_to(added_inertia, q.shape)[..., np.newaxis, :]
        mass_matrix = self.mass_matrix(q) + np.eye(self.robot.n) * added
        bias = self.effort(q, qd, np.zeros_like(q), wrench=wrench)
        return solve_mass_matrix(self.robot.name, mass_matrix, np.asarray(tau, dtype=float) - bias)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the robot and the backend; compiled code comes from the cache."""
        return partial(Dynamics, backend=self.backend), (self.robot,)

    def _run(
        self,
        program: str,
        states: Sequence[Array],
        wrench: Sequence[ArrayLike],
        wrench_count: int,
        shapes: Sequence[tuple[int, ...]],
        out: Sequence[Array] | None,
    ) -> tuple[Array, ...]:
        """Run a program on states that are all (n,) or all (N, n)."""
        if not hasattr(wrench, "__len__") or len(wrench) > 3:
            raise StateError(f"wrench must be (W, Wd, Wdd) or the first of them, is {wrench!r}")
        samples = states[0].shape[:-1]
        count = samples[0] if samples else 1
        results = _outputs([samples + shape for shape in shapes], out)
        shape = self.robot.wrench_shape
        forces = wrenches(wrench, wrench_count, shape, samples, finite=not count)
        if count:
            inputs = [_unaliased(_rows(np.reshape(x, (*samples, -1))), out) for x in (*states, *forces)]
            if not self._kernel(program)(count, inputs, [result.reshape(count, -1) for result in results]):
                # An input is not finite: repeat the checks, which name the argument and the entry.
                joint_states(self.robot.n, *states)
                wrenches(wrench, wrench_count, shape, samples)
        return results

    def _state_call(self, program: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method, or a compiled caller for one state in front of it."""
        kernel = self._kernel(program)
        if not isinstance(kernel, NativeKernel):
            return method
        return kernel.state_call(self.robot.n, 6 * len(self.robot.tools), method)

    def _kernel(self, program: str) -> Kernel:
        kernel = self._kernels.get(program)
        if kernel is None:
            kernel = self._kernels[program] = KERNELS[self.backend](self.robot, program)
        return kernel

    def _working_backend(self) -> str:
        reasons = []
        for name, kernel in KERNELS.items():
            try:
                self._kernels["inverse_dynamics"] = kernel(self.robot, "inverse_dynamics")
            except KernelError as error:
                reasons.append(str(error))
                continue
            if reasons:
                warnings.warn(
                    f"{self.robot.name}: using the slower {name} backend: {'; '.join(reasons)}",
                    KernelWarning,
                    stacklevel=3,
                )
            return name
        raise KernelError("; ".join(reasons))


def solve_mass_matrix(robot: str, inertia: Array, efforts: Array) -> Array:
    """Accelerations (…, k) for an inertia matrix (…, k, k) and efforts (…, k).

    Args:
        robot: name of the robot, for the error message.
        inertia: symmetric, kg m² or kg.
        efforts: N m or N.

    Raises:
        RobotDescriptionError: the matrix is not positive definite, because a body has an impossible inertia or a chain
            ends in massless bodies.
    """
    try:
        # Cholesky rather than LU, since it fails exactly if the matrix is not positive definite.
        lower = np.linalg.cholesky(inertia)
    except np.linalg.LinAlgError:
        raise RobotDescriptionError(
            f"{robot}: the mass matrix is not positive definite, so forward dynamics has no unique solution; check "
            "mass, center_of_mass and inertia of the bodies, and look for a massless body at the end of a chain"
        ) from None
    right = efforts[..., np.newaxis]
    solved: Array = np.linalg.solve(np.swapaxes(lower, -1, -2), np.linalg.solve(lower, right))[..., 0]
    return solved


def _rows(x: Array) -> Array:
    """The array as (N, size) with contiguous rows; copied only if they are not."""
    rows = np.atleast_2d(x)
    return rows if rows.strides[1] == rows.itemsize and rows.strides[0] >= 0 else np.ascontiguousarray(rows)


def _unaliased(rows: Array, out: Sequence[Array] | None) -> Array:
    """The array, or a copy if writing a result would overwrite rows that are not yet read."""
    for array in out or ():
        same_place = rows.ctypes.data == array.ctypes.data and rows.size == array.size
        if np.may_share_memory(rows, array) and not same_place:
            return rows.copy()
    return rows


def _outputs(shapes: Sequence[tuple[int, ...]], out: Sequence[Array] | None) -> tuple[Array, ...]:
    if out is None:
        # All results have the same shape. They are allocated together: the allocator keeps one large block for the
        # next call but returns three to the system, and clearing fresh memory costs as much as the computation.
        return tuple(np.empty((len(shapes), *shapes[0])))
    if len(out) != len(shapes):
        raise StateError(f"out must hold {len(shapes)} arrays, holds {len(out)}")
    for k, (array, shape) in enumerate(zip(out, shapes, strict=True)):
        fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == np.float64
        if not fits or not array.flags.carray:
            raise StateError(f"out[{k}] must be a writable C-contiguous float64 array of shape {shape}")
    return tuple(out)
