# SPDX-License-Identifier: Apache-2.0
"""Dynamics of a robot on a floating base, called from Python, beside Pinocchio's functions with a free flyer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
from pinocchio_model import pinocchio_model
from random_states import one_by_one
from report import Table, error, seconds
from settings import Settings
from timing import TimedTask, interleaved

from eom_dynamics import FloatingBase, lie, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.robot.inertia import Inertial

_STATES = 64

_ROUNDING = 1e-10

_PAIRS: dict[str, tuple[str, Callable[..., Any]]] = {
    "effort": ("pose q nu nud", pin.rnea),
    "bias": ("pose q nu", pin.nonLinearEffects),
    "gravity": ("pose q", pin.computeGeneralizedGravity),
    "mass_matrix": ("q", pin.crba),
    "forward_dynamics": ("pose q nu tau", pin.aba),
    "kinetic_energy": ("q nu", pin.computeKineticEnergy),
    "potential_energy": ("pose q", pin.computePotentialEnergy),
    "center_of_mass": ("pose q", pin.centerOfMass),
}
"""Methods of :class:`FloatingBase`, their arguments, and the functions of Pinocchio that give the same."""


def floating_base(settings: Settings) -> tuple[Table, dict[str, float]]:
    """Times of one call beside Pinocchio's, and their ratios.

    Args:
        settings: number of samples.
    """
    base = Inertial.about_center(10.0, np.zeros(3), np.eye(3))
    robot = replace(load_robot("dual_arm"), base=base)
    model = pinocchio_model(robot, floating=True)
    data = model.createData()
    floating = FloatingBase(robot)
    rng = np.random.default_rng(0)
    states = [_state(rng, robot.n) for _ in range(_STATES)]
    tasks, errors = {}, {}
    for name, (arguments, function) in _PAIRS.items():
        method = getattr(floating, name)
        ours = [tuple(state[key] for key in arguments.split()) for state in states]
        # Pinocchio takes the configuration as one vector.
        theirs = [(model, data, _configuration(s), *_rates(s, arguments)) for s in states]
        errors[name] = _error(name, [method(*x) for x in ours], [np.array(function(*x)) for x in theirs])
        tasks[name], tasks[f"pin {name}"] = one_by_one(method, ours), one_by_one(function, theirs)
    functions = {name: function for name, (_, function) in _PAIRS.items()}
    return beside("dual_arm on a free base of 10 kg", "FloatingBase", functions, tasks, errors, settings)


def beside(
    robot: str,
    kind: str,
    functions: Mapping[str, Callable[..., Any]],
    tasks: Mapping[str, TimedTask],
    errors: Mapping[str, float],
    settings: Settings,
) -> tuple[Table, dict[str, float]]:
    """Times of methods of a class and of Pinocchio's functions, whose tasks begin with ``pin``, and their ratios."""
    for name, off in errors.items():
        assert off < _ROUNDING, f"{name} is off by {off}"
    times = interleaved(tasks, settings.rounds)
    ratios = {name: times.ratio(name, f"pin {name}") for name in functions}
    table = Table(
        f"{robot}, one state, called from Python",
        (f"`{kind}`", "Pinocchio", "ours, median", "Pinocchio's", "ratio", "largest difference"),
    )
    for name, function in functions.items():
        ours, theirs = (seconds(times.median(key)) for key in (name, f"pin {name}"))
        table.add(f"`{name}`", f"`{function.__name__}`", ours, theirs, f"{ratios[name]:.2f}", error(errors[name]))
    return table, ratios


def _state(rng: np.random.Generator, n: int) -> dict[str, Array]:
    state = {name: rng.normal(size=6 + n) for name in ("nu", "nud", "tau")}
    return state | {"pose": lie.exp(rng.normal(size=6)), "q": rng.uniform(-1.0, 1.0, n)}


def _configuration(state: dict[str, Array]) -> Array:
    return np.concatenate([pin.SE3ToXYZQUAT(pin.SE3(state["pose"])), state["q"]])


def _rates(state: dict[str, Array], arguments: str) -> list[Array]:
    """The vectors with the linear part of the base first."""
    return [_swapped(state[key]) for key in arguments.split() if key not in ("pose", "q")]


def _swapped(x: Array) -> Array:
    return np.concatenate([x[3:6], x[:3], x[6:]])


def _error(name: str, ours: list[Array], theirs: list[Array]) -> float:
    """Largest difference, relative to the largest entry of all states."""
    a, b = np.array(ours), np.array(theirs)
    if name == "mass_matrix":
        upper = np.triu(b)
        b = upper + np.transpose(np.triu(b, 1), (0, 2, 1))
        order = [3, 4, 5, 0, 1, 2, *range(6, b.shape[-1])]
        b = b[:, order][:, :, order]
    elif a.ndim == 2 and a.shape[1] > 3:
        b = np.array([_swapped(x) for x in b])
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))
