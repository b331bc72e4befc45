# SPDX-License-Identifier: Apache-2.0
"""JAX: tau by the recursion, its time derivatives by forward-mode differentiation, compiled by XLA."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp

from eom_dynamics import Robot
from eom_dynamics.recursion import inverse_dynamics, link_tree

jax.config.update("jax_enable_x64", True)


class JaxPeer:
    """A compiled function.

    Attributes:
        function: returns tau, taud, taudd for a state (5, n), a JAX array, when they are computed.
        compile_seconds: time for tracing and compiling.
    """

    def __init__(self, robot: Robot) -> None:
        tree = link_tree(robot)

        def tau(state: Any) -> Any:
            rows = [[_Scalar(state[k, i]) for i in range(robot.n)] for k in range(3)]
            (efforts,) = inverse_dynamics(tree, rows)
            return jnp.stack([effort.value for effort in efforts])

        def tau_taud(state: Any, rate: Any) -> Any:
            return jax.jvp(tau, (state,), (rate,))

        def efforts(x: Any) -> Any:
            (tau, taud), (_, taudd) = jax.jvp(tau_taud, (x[:3], x[1:4]), (x[1:4], x[2:5]))
            return tau, taud, taudd

        start = time.perf_counter()
        compiled = jax.jit(efforts).lower(jax.ShapeDtypeStruct((5, robot.n), jnp.float64)).compile()
        self.compile_seconds = time.perf_counter() - start
        self.function = lambda state: jax.block_until_ready(compiled(state))


def on_device(state: Any) -> Any:
    """A state as a JAX array."""
    return jnp.asarray(state)


class _Scalar:
    """Traced scalar with sine and cosine; zeros and ones cause no operations, as in the library."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, other: Any) -> Any:
        if isinstance(other, _Scalar):
            return _Scalar(self.value + other.value)
        return _Scalar(self.value + other) if other else self

    __radd__ = __add__

    def __neg__(self) -> _Scalar:
        return _Scalar(-self.value)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, _Scalar):
            return _Scalar(self.value * other.value)
        if not other:
            return 0.0
        return self if other == 1 else _Scalar(self.value * other)

    __rmul__ = __mul__

    def sin(self) -> _Scalar:
        return _Scalar(jnp.sin(self.value))

    def cos(self) -> _Scalar:
        return _Scalar(jnp.cos(self.value))
