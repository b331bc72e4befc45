# SPDX-License-Identifier: Apache-2.0
"""Feedback of the links under hold and delay: margins over the bandwidth, and errors with a wrong model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from ...arrays import Array
from ...elastic import ElasticArm
from ...exceptions import StateError
from ...robot.model import DRIVE_INTERPOLATIONS
from ...simulation import ElasticPlant, OuterLoop, link_loop, outer_loop
from ...simulation.feedforward_comparison import SupportsDerivatives
from ...simulation.model_errors import ModelError, Sweep, sweep
from ..pages.charts import add_line, chart, logarithmic
from ..pages.numbers import for_json, number
from ..pages.style import color
from ..pages.units import milli, position_units, together
from .sweep import compared

DELAYS = (0.0, 1e-3, 2e-3, 4e-3)
"""Delays of the charts, besides the hold, s."""

ERRORS = (ModelError(), *(ModelError(**{name: sign * 0.05}) for name in ("stiffness", "mass") for sign in (-1, 1)))
"""Model errors, of the sweep."""

HEADER = ("delay, hold included", "weight", "stable up to a delay of", "gains times", "lag")
"""Titles of the columns of :func:`rows`."""

# Bandwidths of the charts, in units of the lowest resonance.
_BANDWIDTHS = np.geomspace(0.5, 5.0, 8)

# Share of the progress at which the margins are found; the rest is the simulation.
_MARGINS = 0.1

# A loop with less gain margin is not used in practice.
_ENOUGH = 2.0


@dataclass(frozen=True)
class LinkFeedback:
    """Limits of feedback of the links at rest at the start of a motion, and its errors.

    Attributes:
        hold: mean age of commands of drives without delay, s.
        delays: D delays, :data:`DELAYS` and the drives' own, s.
        names: their names, with hold.
        bandwidth: (B,) of feedback linearization, Hz.
        gain, phase: (D, B) its margins for each delay, a factor and degrees; None where it is refused.
        refused: why; empty if it is not.
        outer: for each delay, :func:`.outer_loop`, or why there is none.
        before, after: (E,) errors of the links with flatness, without and with the outer loop for the drives' own
            delay, with each of :data:`ERRORS`, rad or m; ``after`` is None if there is no such loop.
    """

    hold: float
    delays: tuple[float, ...]
    names: tuple[str, ...]
    bandwidth: Array
    gain: Array | None
    phase: Array | None
    refused: str
    outer: tuple[OuterLoop | str, ...]
    before: Array
    after: Array | None


def link_feedback(
    swept: Sweep, motion: SupportsDerivatives, start: float, end: float, progress: Callable[[float], None]
) -> LinkFeedback:
    """Find the limits, and simulate with the outer loop; ``progress`` is called with the fraction, others as there."""
    robot, w = swept.robot, swept.natural_frequency
    hold = DRIVE_INTERPOLATIONS[robot.drive_interpolation] * swept.period
    plant, q = ElasticPlant(ElasticArm(robot)), motion.derivatives(start, order=0)[0]
    bandwidth = _BANDWIDTHS * swept.resonance / (2 * np.pi)
    delays = tuple(sorted({*DELAYS, robot.drive_delay}))
    names = [f"{1e3 * (hold + delay):.4g} ms" for delay in delays]
    if robot.command_lead:
        names[delays.index(robot.drive_delay)] += " (this arm)"
    gain = phase = None
    refused = ""
    try:
        loops = [link_loop(plant, q, 2 * np.pi * x) for x in bandwidth]
    except StateError as error:
        refused = str(error)
    else:
        margins = []
        for k, delay in enumerate(delays):
            margins.append([loop.margins(hold + delay) for loop in loops])
            progress(_MARGINS * (k + 1) / len(delays))
        gain, phase = (np.array([[getattr(x, name) for x in row] for row in margins]) for name in ("gain", "phase"))

    def recommended(delay: float) -> OuterLoop | str:
        try:
            return outer_loop(plant, q, w, hold + delay)
        except StateError as error:
            return str(error)

    own, after = recommended(robot.drive_delay), None
    if isinstance(own, OuterLoop):
        found = sweep(
            robot,
            motion,
            start,
            end,
            ERRORS,
            natural_frequency=w,
            period=swept.period,
            outer=own.F,
            progress=lambda t: progress(_MARGINS + (1 - _MARGINS) * t / (end - start)),
        )
        after = found.rms[:, -1]
    before = np.array([swept.of(error)[-1] for error in ERRORS])
    outer = tuple(own if delay == robot.drive_delay else recommended(delay) for delay in delays)
    return LinkFeedback(hold, delays, tuple(names), bandwidth, gain, phase, refused, outer, before, after)


def verdicts(found: LinkFeedback, swept: Sweep) -> list[str]:
    """Sentences on the limits of feedback linearization and the benefit of the outer loop."""
    lines = []
    if found.gain is None:
        lines.append(f"Feedback linearization is not available: {found.refused}.")
    else:
        ends = f"{found.bandwidth[0]:.3g} to {found.bandwidth[-1]:.3g} Hz"
        enough = [_range(found.bandwidth, row) for row in found.gain]
        parts = [f"{x or 'nowhere'} at {name}" for x, name in zip(enough, found.names, strict=True)]
        lines.append(
            f"Feedback linearization, among bandwidths from {ends}, has a gain margin of {_ENOUGH:g}, by the delay "
            f"with hold included: {', '.join(parts)}."
        )
    if found.after is None:
        lines.append("Feedback of the links around the PD of the motors: no gains leave margins at this delay.")
        return lines
    unit = together(milli(position_units(swept.robot)))
    ratios = found.before / found.after
    if not np.isfinite(ratios[1:]).all():
        lines.append("Feedback of the links around the PD of the motors: an arm with errors of 5 % leaves all bounds.")
        return lines
    low, high = (f"{number(1e3 * x)}" for x in (np.min(found.after[1:]), np.max(found.after[1:])))
    lines.append(
        f"With feedback of the links around the PD of {swept.natural_frequency:g} rad/s, and errors of 5 % of "
        f"stiffness or mass of both signs, errors with flatness are {compared(float(np.min(ratios[1:])))} to "
        f"{compared(float(np.max(ratios[1:])))} than without it, {low} to {high} {unit}; with the exact model "
        f"{compared(float(ratios[0]))}. Encoder noise is not simulated."
    )
    return lines


def rows(found: LinkFeedback) -> list[tuple[str, ...]]:
    """A row for each delay, below :data:`HEADER`, on the outer loop that is recommended."""
    result: list[tuple[str, ...]] = []
    for total, outer in zip(found.names, found.outer, strict=True):
        if isinstance(outer, str):
            result.append((total, "none", "–", "–", "–"))
            continue
        limits = outer.margins
        numbers = (f"{number(1e3 * limits.delay)} ms", f"{number(limits.gain)} ×", f"{number(limits.phase)}°")
        result.append((total, f"{outer.weight:g}", *numbers))
    return result


def margin_charts(found: LinkFeedback) -> dict[str, go.Figure]:
    """Charts of gain and phase margin of feedback linearization over its bandwidth, a curve for each delay."""
    figures = {}
    for name, unit, values in (
        ("gain margin", "factor on all gains", found.gain),
        ("phase margin", "degrees", found.phase),
    ):
        if values is None:
            continue
        figure = chart(f"Feedback linearization: {name}", "bandwidth [Hz]", unit)
        for k, label in enumerate(found.names):
            add_line(figure, found.bandwidth, values[k], label, {"color": color(k)}, unit="", mode="lines+markers")
        figure.update_layout(showlegend=True)
        if values is found.gain:
            logarithmic(figure, 0.9, max(10.0, 1.2 * float(np.max(values[np.isfinite(values)], initial=1.0))))
        figures[name.replace(" ", "_")] = figure
    return figures


def as_json(found: LinkFeedback) -> dict[str, Any]:
    """The numbers for JSON; None for infinite values."""
    return {
        "delays": [found.hold + delay for delay in found.delays],
        "bandwidth": found.bandwidth.tolist(),
        "gain_margin": None if found.gain is None else for_json(found.gain),
        "phase_margin": None if found.phase is None else for_json(found.phase),
        "rms_before": for_json(found.before),
        "rms_after": None if found.after is None else for_json(found.after),
        "errors": [error._asdict() for error in ERRORS],
    }


def _range(bandwidth: Array, gains: Array) -> str:
    enough = bandwidth[gains >= _ENOUGH]
    ends = dict.fromkeys(f"{x:.3g}" for x in (*enough[:1], *enough[-1:]))
    return f"{' to '.join(ends)} Hz" if ends else ""
