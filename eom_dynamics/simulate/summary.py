# SPDX-License-Identifier: Apache-2.0
"""What a comparison says, in words and numbers, for table, page and JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..demo.style import position_unit
from .feedforward_comparison import FEEDFORWARDS, Comparison

Array = NDArray[np.float64]

LABELS = ("no feedforward", "rigid: τ", "flatness: τ, τ̇, τ̈")
"""The feedforwards in the legend of a figure, in the order of :data:`FEEDFORWARDS`."""

ENERGY_TOLERANCE = 1e-8
"""What energy and work may differ by, relative: above it the integration cannot be trusted."""

HEADER = ("PD [rad/s]", "feedforward", "RMS", "peak", "RMS of rigid over this")


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
    return max(0.3 * float(np.percentile(distance(comparison)[:, shown_gain(comparison)], 2)), 1e-16)


def rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """A row for each gain and feedforward, below :data:`HEADER`."""
    unit = position_unit(comparison.robot)
    return [
        (
            f"{gain:g}" if gain else "open loop",
            name,
            f"{comparison.rms[g, k]:.3e} {unit}",
            f"{comparison.peak[g, k]:.3e} {unit}",
            f"{comparison.rms[g, 1] / comparison.rms[g, k]:.3g}",
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
    """The numbers of the table."""
    return {
        "robot": comparison.robot.name,
        "feedforwards": list(FEEDFORWARDS),
        "natural_frequency": comparison.natural_frequency.tolist(),
        "rms": comparison.rms.tolist(),
        "peak": comparison.peak.tolist(),
        "energy_imbalance": comparison.energy_imbalance,
        "failures": failures(comparison),
    }
