# SPDX-License-Identifier: Apache-2.0
"""Numbers and sentences of a feedforward comparison, for the text table, the HTML page and JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ...arrays import Array
from ...simulation.energy import EnergyAudit
from ...simulation.feedforward_comparison import FEEDFORWARDS, Comparison
from ..pages.charts import color
from ..quantity_text import for_json, milli, number, position_units, together
from ..text_tables import columns

LABELS = ("no feedforward", "rigid: τ", "flatness: τ, τ̇, τ̈")
"""Legend of the feedforwards, in the order of :data:`FEEDFORWARDS`."""

COLORS = (color(6), color(1), color(0))
"""Colours of the feedforwards: grey, red and blue."""

ENERGY_TOLERANCE = 1e-8
"""Allowed relative difference between energy and work; above it the integration is not accurate."""

HEADER = ("PD [rad/s]", "feedforward", "RMS", "peak", "RMS of rigid / this")
"""Column titles of :func:`rows`."""


def unit(comparison: Comparison) -> str:
    """Return the unit of displayed errors: mrad, mm, or both."""
    return together(milli(position_units(comparison.robot)))


def feedback(comparison: Comparison, gain: int) -> str:
    """Return the motor feedback gain in words."""
    natural_frequency = comparison.natural_frequency[gain]
    return f"a PD of {natural_frequency:g} rad/s on the motors" if natural_frequency else "no feedback at all"


def distance(comparison: Comparison) -> Array:
    """Return the largest error of any joint (T, G, F), rad or m."""
    largest: Array = np.max(np.abs(comparison.error), axis=3)
    return largest


def model_error(comparison: Comparison) -> str:
    """Return the error of the model that the feedforwards use, in words."""
    stiffness, mass = comparison.stiffness_error, comparison.mass_error
    return (
        f"springs {100 * stiffness:+.3g}%, masses {100 * mass:+.3g}% against the model"
        if stiffness or mass
        else "exact model"
    )


def compared(ratio: float) -> str:
    """Compare an error with another in words, by the other's ratio to it: below 1, the error is larger."""
    if ratio < 1:
        return f"{number(1 / ratio)} × larger"
    return f"{number(ratio)} × smaller"


def shown_gain(comparison: Comparison) -> int:
    """Return the index of the highest gain, whose errors are drawn over time."""
    return int(np.argmax(comparison.natural_frequency))


def floor(comparison: Comparison) -> float:
    """Return the lower end of the logarithmic error axis, rad or m; only the start and zero crossings lie below."""
    return max(0.3 * float(np.nanpercentile(distance(comparison)[:, shown_gain(comparison)], 2)), 1e-16)


def endings(comparison: Comparison) -> list[str]:
    """Return one line for each arm whose simulation ended early, with time and reason."""
    names = {"none": "no feedforward"}
    arms = [(gain, name) for gain in range(len(comparison.natural_frequency)) for name in FEEDFORWARDS]
    return [
        f"with {names.get(name, f'feedforward by {name}')} and {feedback(comparison, gain)}, the simulation ends at "
        f"{end.t:.3g} s: {end.reason}"
        for (gain, name), end in zip(arms, comparison.ends, strict=True)
        if end
    ]


def rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return a table row for each gain and feedforward, below :data:`HEADER`."""
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


def as_text(comparison: Comparison) -> str:
    """Return the table of results as plain text."""
    return "\n".join(columns([HEADER, *rows(comparison)], right_from=2))


def failures(comparison: Comparison) -> list[str]:
    """Return failed checks of the simulation, one line each."""
    if comparison.energy_imbalance <= ENERGY_TOLERANCE:
        return []
    return [f"energy and work differ by {comparison.energy_imbalance:.1e}, tolerance {ENERGY_TOLERANCE:.0e}, relative"]


def audit(comparison: Comparison) -> EnergyAudit:
    """Return energy, work and heat over time of the arm with the feedforward by flatness and the highest gain."""
    arm = shown_gain(comparison) * len(FEEDFORWARDS) + FEEDFORWARDS.index("flatness")
    return comparison.audit.of_arm(arm).thinned()


def as_json(comparison: Comparison, *, audited: bool = False) -> dict[str, Any]:
    """Return the numbers of the table, and of the audit, for JSON; None for an arm whose simulation ended early."""
    columns = asdict(audit(comparison)) if audited else {}
    return {
        "robot": comparison.robot.name,
        "feedforwards": list(FEEDFORWARDS),
        "stiffness_error": comparison.stiffness_error,
        "mass_error": comparison.mass_error,
        "natural_frequency": comparison.natural_frequency.tolist(),
        "rms": for_json(comparison.rms),
        "peak": for_json(comparison.peak),
        "energy_imbalance": comparison.energy_imbalance,
        "endings": endings(comparison),
        "failures": failures(comparison),
        **({"audit": {name: for_json(column) for name, column in columns.items()}} if audited else {}),
    }
