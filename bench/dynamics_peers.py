# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics of other libraries, with derivatives where their automatic differentiation reaches.

They are compared where they are installed: pip install dynibo frax "adam-robotics[jax]"
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from report import Table, error, seconds
from settings import Settings

from eom_dynamics import Dynamics, Robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.inertia import Inertial
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.tools.benchmark.states import one_by_one
from eom_dynamics.tools.benchmark.timing import interleaved

Function = Callable[..., Any]

_FEW = 64
_ROUNDING = 1e-9


def peers(robot: Robot, vectors: Mapping[str, Array], settings: Settings) -> tuple[Table, list[str]]:
    """Times of one call beside ours, and which libraries are not installed.

    Args:
        robot: the robot.
        vectors: q … qdddd (N, n).
        settings: number of samples.
    """
    dynamics = Dynamics(robot)
    states = [tuple(x[i].copy() for x in vectors.values()) for i in range(_FEW)]
    ours: dict[str, Function] = {
        "`Dynamics.effort`": lambda *state: (dynamics.effort(*state[:3]),),
        "`Dynamics.inverse_dynamics`": dynamics.inverse_dynamics,
    }
    ways, missing = dict(ours), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(robot_as_urdf(base_with_inertia(robot)).text, encoding="utf-8")
        for package, make in _PEERS.items():
            if importlib.util.find_spec(package) is None:
                missing.append(package)
            else:
                ways |= make(robot, path)
    table = Table(
        f"{robot.name}, one state, beside other libraries",
        ("way", "gives", "median", "× ours of as many orders", "error of tau, taud, taudd"),
    )
    wanted = [dynamics.inverse_dynamics(*state) for state in states]
    tasks = {name: one_by_one(way, states) for name, way in ways.items()}
    times = interleaved(tasks, settings.slow_rounds)
    for name, way in ways.items():
        found = [[np.asarray(x, dtype=float) for x in way(*state)] for state in states]
        errors = []
        for k in range(len(found[0])):
            exact = np.array([efforts[k] for efforts in wanted])
            errors.append(float(np.max(np.abs(np.array([x[k] for x in found]) - exact)) / np.max(np.abs(exact))))
        assert max(errors) < _ROUNDING, f"{name} is off by {max(errors)}"
        same = "`Dynamics.effort`" if len(errors) == 1 else "`Dynamics.inverse_dynamics`"
        table.add(
            name,
            ("tau", "tau, taud", "all three")[len(errors) - 1],
            seconds(times.median(name)),
            f"{times.ratio(name, same):.3g}",
            ", ".join(map(error, errors)),
        )
    return table, [f"Not installed, and therefore not compared: {', '.join(missing)}."] if missing else []


def base_with_inertia(robot: Robot) -> Robot:
    """Robot whose base has an inertia, which some libraries require, although it does not move."""
    return replace(robot, base=Inertial.about_center(1.0, np.zeros(3), np.eye(3)))


def _dynibo(robot: Robot, urdf: Path) -> dict[str, Function]:
    from dynibo import Robot as Model

    model = Model.from_urdf(str(urdf))

    def tau(q: Array, qd: Array, qdd: Array, *_: Array) -> tuple[Array]:
        return (model.inverse_dynamics(q, qd, qdd),)

    return {"dynibo: `inverse_dynamics`": tau}


def _frax(robot: Robot, urdf: Path) -> dict[str, Function]:
    # What frax recommends.
    os.environ.update(JAX_ENABLE_X64="1", XLA_FLAGS="--xla_cpu_multi_thread_eigen=false")
    import jax.numpy as jnp
    from frax import Robot as Model

    model = Model(str(urdf))
    # Gravity as an acceleration of the base.
    base = jnp.concatenate([-jnp.asarray(robot.gravity), jnp.zeros(3)])
    return _by_jax("frax: `rnea`", lambda q, qd, qdd: model.rnea(q, qd, qdd, base, None))


def _adam(robot: Robot, urdf: Path) -> dict[str, Function]:
    import adam
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", val=True)
    from adam.jax import KinDynComputations

    model = KinDynComputations(str(urdf), [joint.name for joint in robot.joints])
    model.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)
    model.g = jnp.concatenate([jnp.asarray(robot.gravity), jnp.zeros(3)])
    base, rest = jnp.eye(4), jnp.zeros(6)

    def tau(q: Any, qd: Any, qdd: Any) -> Any:
        mass_matrix = model.mass_matrix(base, q)[6:, 6:]
        return mass_matrix @ qdd + model.bias_force(base, q, rest, qd)[6:]

    return _by_jax("adam-robotics: `mass_matrix`, `bias_force`", tau)


def _by_jax(name: str, tau: Function) -> dict[str, Function]:
    """A function that XLA compiles, and its time derivatives by forward-mode differentiation."""
    import jax

    def all_three(q: Any, qd: Any, qdd: Any, qddd: Any, qdddd: Any) -> Any:
        def with_rate(a: Any, b: Any, c: Any, d: Any) -> Any:
            return jax.jvp(tau, (a, b, c), (b, c, d))

        (value, rate), (_, second) = jax.jvp(with_rate, (q, qd, qdd, qddd), (qd, qdd, qddd, qdddd))
        return value, rate, second

    alone, derived = jax.jit(tau), jax.jit(all_three)
    return {
        name: lambda *state: (jax.block_until_ready(alone(*state[:3])),),
        f"{name}, forward mode": lambda *state: jax.block_until_ready(derived(*state)),
    }


_PEERS: Mapping[str, Callable[[Robot, Path], dict[str, Function]]] = {"dynibo": _dynibo, "frax": _frax, "adam": _adam}
