# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with two time derivatives, specialised for one robot, for one state or many."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .exceptions import KernelError, KernelWarning, StateError
from .kernel.backends import KERNELS, Kernel
from .kernel.native import NativeKernel
from .robot import Robot
from .states import joint_states, wrenches

Array = NDArray[np.float64]


class Dynamics:
    """Inverse dynamics of one robot, by code that is made for it.

    At first use a robot's dynamics are traced and compiled, which takes about a second; from then on they come
    from a cache on disk (``$EOM_DYNAMICS_CACHE``, else ``eom_dynamics`` in the user's cache folder).

    Attributes:
        robot: the robot.
        backend: what computes: ``native`` (compiled C), ``casadi`` or ``numpy``.
    """

    def __init__(self, robot: Robot, *, backend: str | None = None) -> None:
        """Prepare the dynamics of a robot.

        Args:
            robot: the robot.
            backend: ``native``, ``casadi`` or ``numpy``. By default the first of them that works; a warning
                (:class:`KernelWarning`) says why if that is not ``native``.

        Raises:
            KernelError: the backend that was asked for does not work here; the message says why.
            ValueError: there is no backend of that name.
            TypeError: the robot is none, but a name, say.
        """
        if backend is not None and backend not in KERNELS:
            raise ValueError(f"backend must be one of {', '.join(KERNELS)}, is {backend!r}")
        if not isinstance(robot, Robot):
            raise TypeError(f"robot must be a Robot, as load_robot gives it, is {robot!r:.60}")
        self.robot = robot
        self._kernels: dict[str, Kernel] = {}
        self.backend = self._working_backend() if backend is None else backend
        kernel = self._kernel("inverse_dynamics")
        if isinstance(kernel, NativeKernel):
            # One state at the cost of a C call; all else comes back to the method below.
            general = self.inverse_dynamics
            self.inverse_dynamics = kernel.state_call(robot.n, 6 * len(robot.tools), general)  # type: ignore[method-assign]

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike,
        qdddd: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        out: Sequence[Array] | None = None,
    ) -> tuple[Array, ...]:
        """Joint efforts tau and their time derivatives taud, taudd.

        Args:
            q, qd, qdd, qddd, qdddd: joint variables and their time derivatives, each (n,) or (N, n); rad or
                m, and per s, s², s³, s⁴.
            wrench: (W, Wd, Wdd), the wrench that the robot exerts on its surroundings at its tool, moment
                first, in the tool's frame, N m and N, with its time derivatives: each (6,) or (N, 6); what is
                not given is zero. With k > 1 tools (k, 6) or (N, k, 6).
            out: three arrays to write the results to, C-contiguous and of their shape.

        Returns:
            tau, taud, taudd: each (n,) or (N, n); N m or N, and per s, s².

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        states = joint_states(self.robot.n, q, qd, qdd, qddd, qdddd, finite=False)
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
        """Joint efforts tau alone, (n,) or (N, n); arguments and errors as of :meth:`inverse_dynamics`."""
        states = joint_states(self.robot.n, q, qd, qdd, finite=False)
        return self._run("effort", states, wrench, 1, [(self.robot.n,)], out)[0]

    def mass_matrix(self, q: ArrayLike, *, out: Sequence[Array] | None = None) -> Array:
        """Mass matrix M, (n, n) for ``q`` (n,), or (N, n, n) for (N, n)."""
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
        """Partial derivatives of tau with respect to q, qd and qdd (the last is M).

        Arguments and errors are those of :meth:`inverse_dynamics`.

        Returns:
            dtau_dq, dtau_dqd, dtau_dqdd: each (n, n) or (N, n, n); row i belongs to effort i.
        """
        n = self.robot.n
        states = joint_states(n, q, qd, qdd, finite=False)
        return self._run("effort_partials", states, wrench, 1, [(n, n)] * 3, out)

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
            inputs = [_apart(_rows(np.reshape(x, (*samples, -1))), out) for x in (*states, *forces)]
            if not self._kernel(program)(count, inputs, [result.reshape(count, -1) for result in results]):
                # Only now that one is known to be there, look for the argument and entry to name.
                joint_states(self.robot.n, *states)
                wrenches(wrench, wrench_count, shape, samples)
        return results

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made anew from the robot; compiled code comes from the cache."""
        return partial(Dynamics, backend=self.backend), (self.robot,)

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
                    f"{self.robot.name}: running on the slower {name} backend: {'; '.join(reasons)}",
                    KernelWarning,
                    stacklevel=3,
                )
            return name
        raise KernelError("; ".join(reasons))


def _rows(x: Array) -> Array:
    """The array as (N, size) with the entries of a row next to each other; copied only if they are not."""
    rows = np.atleast_2d(x)
    return rows if rows.strides[1] == rows.itemsize and rows.strides[0] >= 0 else np.ascontiguousarray(rows)


def _apart(rows: Array, out: Sequence[Array] | None) -> Array:
    """The array, or a copy of it where a result is written over some of its rows before they are read."""
    for array in out or ():
        over_itself = rows.ctypes.data == array.ctypes.data and rows.size == array.size
        if np.may_share_memory(rows, array) and not over_itself:
            return rows.copy()
    return rows


def _outputs(shapes: Sequence[tuple[int, ...]], out: Sequence[Array] | None) -> tuple[Array, ...]:
    if out is None:
        # Results have one shape. In one piece of memory, which the allocator keeps for the next call: it would give
        # three back to the system, and clearing new pages costs as much as computing what goes there.
        return tuple(np.empty((len(shapes), *shapes[0])))
    if len(out) != len(shapes):
        raise StateError(f"out must hold {len(shapes)} arrays, holds {len(out)}")
    for k, (array, shape) in enumerate(zip(out, shapes, strict=True)):
        fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == np.float64
        if not fits or not array.flags.carray:
            raise StateError(f"out[{k}] must be a writable C-contiguous float64 array of shape {shape}")
    return tuple(out)
