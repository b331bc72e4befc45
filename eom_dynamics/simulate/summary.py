# SPDX-License-Identifier: Apache-2.0
"""What a comparison says, in words and numbers, for table, page and JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pages.numbers import number
from ..pages.style import color
from ..pages.units import milli, position_units, together
from .feedforward_comparison import FEEDFORWARDS, Comparison

Array = NDArray[np.float64]

LABELS = ("no feedforward", "rigid: τ", "flatness: τ, τ̇, τ̈")
"""The feedforwards in the legend of a figure, in the order of :data:`FEEDFORWARDS`."""

COLORS = (color(6), color(1), color(0))
"""Their colours: grey, red and blue."""

ENERGY_TOLERANCE = 1e-8
"""What energy and work may differ by, relative: above it the integration cannot be trusted."""

HEADER = ("PD [rad/s]", "feedforward", "RMS", "peak", "RMS of rigid over this")
"""Columns of the table of results."""


def unit(comparison: Comparison) -> str:
    """The unit in which errors are shown: a thousandth of that of the joint variables."""
    return together(milli(position_units(comparison.robot)))


def feedback(comparison: Comparison, gain: int) -> str:
    """What holds the motors under one of the gains, in words."""
    natural_frequency = comparison.natural_frequency[gain]
    return f"a PD of {natural_frequency:g} rad/s on the motors" if natural_frequency else "no feedback at all"


def distance(comparison: Comparison) -> Array:
    """(T, G, F) the largest error of any joint, rad or m."""
    largest: Array = np.max(np.abs(comparison.error), axis=3)
    return largest


def model_error(comparison: Comparison) -> str:
    """How the real arm differs from what the feedforwards know, in words."""
    stiffness, mass = comparison.stiffness_error, comparison.mass_error
    return f"springs {stiffness:+.0%}, masses {mass:+.0%} against the model" if stiffness or mass else "exact model"


def shown_gain(comparison: Comparison) -> int:
    """The gain that is shown over time: the stiffest."""
    return int(np.argmax(comparison.natural_frequency))


def floor(comparison: Comparison) -> float:
    """Where the logarithmic axis of the error over time begins, rad or m: below are the start and crossings alone."""
    return max(0.3 * float(np.nanpercentile(distance(comparison)[:, shown_gain(comparison)], 2)), 1e-16)


def endings(comparison: Comparison) -> list[str]:
    """Where arms are followed no further, and why, a line each."""
    names = {"none": "no feedforward"}
    arms = [(gain, name) for gain in range(len(comparison.natural_frequency)) for name in FEEDFORWARDS]
    return [
        f"with {names.get(name, f'feedforward by {name}')} and {feedback(comparison, gain)} the arm is followed until "
        f"{end.t:.3g} s only: {end.reason}"
        for (gain, name), end in zip(arms, comparison.ends, strict=True)
        if end
    ]


def rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row for each gain and feedforward, below :data:`HEADER`."""
    shown = unit(comparison)

    def with_unit(value: float, unit: str) -> str:
        return number(value) if np.isnan(value) else f"{number(value)} {unit}"

    return [
        (
            f"{gain:g}" if gain else "open loop",
            name,
            with_unit(1e3 * comparison.rms[g, k], shown),
            with_unit(1e3 * comparison.peak[g, k], shown),
            with_unit(comparison.rms[g, 1] / comparison.rms[g, k], "×"),
        )
        for g, gain in enumerate(comparison.natural_frequency)
        for k, name in enumerate(FEEDFORWARDS)
    ]


def failures(comparison: Comparison) -> list[str]:
    """What makes the run worthless, a line each; empty if it can be trusted."""
    if comparison.energy_imbalance <= ENERGY_TOLERANCE:
        return []
    return [f"energy and work differ by {comparison.energy_imbalance:.1e}, tolerance {ENERGY_TOLERANCE:.0e}, relative"]


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The numbers of the table; None of an arm that is not followed to the end."""
    return {
        "robot": comparison.robot.name,
        "feedforwards": list(FEEDFORWARDS),
        "natural_frequency": comparison.natural_frequency.tolist(),
        "rms": _or_none(comparison.rms),
        "peak": _or_none(comparison.peak),
        "energy_imbalance": comparison.energy_imbalance,
        "endings": endings(comparison),
        "failures": failures(comparison),
    }


def _or_none(values: Array) -> list[Any]:
    listed: list[Any] = np.where(np.isnan(values), None, values).tolist()  # type: ignore[call-overload]
    return listed
