# SPDX-License-Identifier: Apache-2.0
"""Result of a feedforward comparison: numbers, charts, picture and files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullFormatter

from ...arrays import Array
from ...exceptions import StateError
from ...robot import Robot
from ...simulation.energy import EnergyAudit
from ...simulation.feedforward_comparison import FEEDFORWARDS, Comparison, SupportsDerivatives
from ...simulation.reference import read_motion
from ...terminal import printable
from ...trajectory import paper_motion
from ..pages.charts import CURVE_POINTS, INK, add_line, chart, color, frame, logarithmic, over_time, thinned
from ..pages.page import html_page
from ..quantity_text import compared, for_json, milli, number, position_units, together
from ..results import Result, ResultSection, TextTable
from ..writing import whole_folder
from . import LONGEST

# Legend of the feedforwards, in the order of :data:`FEEDFORWARDS`.
_LABELS = ("no feedforward", "rigid: τ", "flatness: τ, τ̇, τ̈")
_COLORS = (color(6), color(1), color(0))  # colours of the feedforwards: grey, red and blue

# Allowed relative difference between energy and work; above it the integration is not accurate.
_ENERGY_TOLERANCE = 1e-8


def comparison_result(comparison: Comparison, page: Path, about: Mapping[str, str], *, audited: bool = False) -> Result:
    """Make the result of a comparison; ``audited`` with the energy of the arm with flatness and the highest gain."""
    failures, endings = energy_failures(comparison.energy_imbalance), _endings(comparison)
    sweep = len(comparison.natural_frequency) > 1
    arm = shown_gain(comparison) * len(FEEDFORWARDS) + FEEDFORWARDS.index("flatness")
    audit = comparison.audit.of_arm(arm).thinned()
    numbers = {
        "robot": comparison.robot.name,
        "feedforwards": list(FEEDFORWARDS),
        "stiffness_error": comparison.stiffness_error,
        "mass_error": comparison.mass_error,
        "natural_frequency": comparison.natural_frequency.tolist(),
        "rms": for_json(comparison.rms),
        "peak": for_json(comparison.peak),
        "energy_imbalance": comparison.energy_imbalance,
        "endings": endings,
        "failures": failures,
    }
    return Result(
        title=f"Tracking error of {comparison.robot.name} under three kinds of feedforward",
        sections=[
            ResultSection(
                caption="One arm with elastic joints, one trajectory, one motor PD; only the feedforward and its motor "
                "reference differ. Errors are those of the links, which no sensor measures: RMS over time and joints; "
                "peak of any joint at any time.",
                tables=[_table(comparison)],
            ),
            ResultSection(lines=[f"simulated arm: {model_error(comparison)}"]),
            ResultSection(
                "Over time",
                caption=f"With {feedback(comparison, shown_gain(comparison))}. At each time, the error of the joint "
                "with the largest one.",
                charts={"time": _over_time(comparison)},
            ),
            *([ResultSection("Over the feedback gain", charts={"gain": _over_gain(comparison)})] if sweep else ()),
            *([ResultSection("Energy", tables=[energy_table(audit)])] if audited else ()),
        ],
        notes=endings,
        failures=failures,
        files={"page": page},
        json=numbers | ({"audit": {name: for_json(x) for name, x in audit._asdict().items()}} if audited else {}),
        about=about,
    )


def energy_table(audit: EnergyAudit) -> TextTable:
    """Return energy, work and heat of one arm over time."""
    header = [f"{name} [{'s' if name == 't' else 'J'}]" for name in audit._fields]
    rows = [(*(f"{value:.7g}" for value in values), f"{rest:.1e}") for *values, rest in zip(*audit, strict=True)]
    return TextTable(header, rows, text_columns=0)


def energy_failures(imbalance: float) -> list[str]:
    """Return a sentence if energy and work differ, relative to the largest of them, by more than the tolerance."""
    if imbalance <= _ENERGY_TOLERANCE:
        return []
    return [f"energy and work differ by {imbalance:.1e}, tolerance {_ENERGY_TOLERANCE:.0e}, relative"]


def write_comparison(folder: Path, comparison: Comparison, result: Result, *, force: bool = False) -> None:
    """Write index.html, tracking.png and data.npz."""
    with whole_folder(folder, force=force) as aside:
        arrays = {name: getattr(comparison, name) for name in ("t", "q", "natural_frequency", "error")}
        np.savez_compressed(aside / "data.npz", **arrays, joint_names=np.array(comparison.robot.joint_names))
        _write_picture(aside / "tracking.png", comparison)
        (aside / "index.html").write_text(html_page("simulate", result), encoding="utf-8")


def shown_unit(comparison: Comparison) -> str:
    """Return the unit of displayed errors: mrad, mm, or both."""
    return together(milli(position_units(comparison.robot)))


def feedback(comparison: Comparison, gain: int) -> str:
    """Return the motor feedback gain in words."""
    natural_frequency = comparison.natural_frequency[gain]
    return f"a PD of {natural_frequency:g} rad/s on the motors" if natural_frequency else "no feedback at all"


def distance(comparison: Comparison) -> Array:
    """Return the largest error of any joint (T, G, F), rad or m."""
    return np.max(np.abs(comparison.error), axis=3)


def model_error(comparison: Comparison) -> str:
    """Return the error of the model that the feedforwards use, in words."""
    stiffness, mass = comparison.stiffness_error, comparison.mass_error
    if not (stiffness or mass):
        return "exact model"
    return f"springs {100 * stiffness:+.3g}%, masses {100 * mass:+.3g}% against the model"


def shown_gain(comparison: Comparison) -> int:
    """Return the index of the highest gain, whose errors are drawn over time."""
    return int(np.argmax(comparison.natural_frequency))


def _endings(comparison: Comparison) -> list[str]:
    names = {"none": "no feedforward"}
    arms = [(gain, name) for gain in range(len(comparison.natural_frequency)) for name in FEEDFORWARDS]
    return [
        f"with {names.get(name, f'feedforward by {name}')} and {feedback(comparison, gain)}, the simulation ends at "
        f"{end.t:.3g} s: {end.reason}"
        for (gain, name), end in zip(arms, comparison.ends, strict=True)
        if end
    ]


def _table(comparison: Comparison) -> TextTable:
    shown = shown_unit(comparison)

    def with_unit(value: float, unit: str) -> str:
        return number(value) if np.isnan(value) else f"{number(value)} {unit}"

    rows = [
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
    return TextTable(("PD [rad/s]", "feedforward", "RMS", "peak", "RMS of rigid / this"), rows, text_columns=2)


def _over_time(comparison: Comparison) -> go.Figure:
    t = comparison.t
    figure = over_time("Largest link error", shown_unit(comparison), t[0], t[-1], group="")
    off = 1e3 * distance(comparison)[:, shown_gain(comparison)]
    for errors, label, shade in zip(off.T, _LABELS, _COLORS, strict=True):
        kept = thinned(errors, CURVE_POINTS)
        # A logarithmic axis has no zero, which errors reach where a link crosses its path.
        shown = np.maximum(errors[kept], 1e-13)
        add_line(figure, t[kept], shown, label, {"color": shade}, unit=shown_unit(comparison))
    # Only the start and zero crossings lie below.
    return _of_feedforwards(figure, 0.3 * float(np.nanpercentile(off, 2)), 2 * float(np.nanmax(off)))


def _over_gain(comparison: Comparison) -> go.Figure:
    rms, gains, shown = 1e3 * comparison.rms, comparison.natural_frequency, shown_unit(comparison)
    figure = chart("RMS link error", "natural frequency of the motor PD [rad/s]", shown)
    for errors, label, shade in zip(rms.T, _LABELS, _COLORS, strict=True):
        add_line(figure, gains, errors, label, {"color": shade}, unit=shown, mode="lines+markers")
    return _of_feedforwards(figure, 0.7 * float(np.nanmin(rms)), 1.4 * float(np.nanmax(rms)))


def _of_feedforwards(figure: go.Figure, low: float, high: float) -> go.Figure:
    figure.update_layout(showlegend=True)
    return logarithmic(figure, max(low, 1e-13), max(high, 1e-12))


def _write_picture(path: Path, comparison: Comparison) -> None:
    """Write the picture as PNG for a light background, legible at half its size."""
    figure = Figure(figsize=(13, 6.5), layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.1, rect=(0, 0, 1, 0.845)))
    axes, others = figure.subplots(1, 2, width_ratios=(1.2, 1))
    unit, gain = shown_unit(comparison), shown_gain(comparison)
    gains, rms = comparison.natural_frequency, 1e3 * comparison.rms
    frame(axes, f"Largest link error  [{unit}]\nwith {feedback(comparison, gain)}")
    over_gain = "natural frequency of the motor PD  [rad/s]"
    frame(others, f"RMS link error  [{unit}]\nover the feedback gain", over_gain)
    for k, (name, shade) in enumerate(zip(_LABELS, _COLORS, strict=True)):
        axes.plot(comparison.t, 1e3 * distance(comparison)[:, gain, k], color=shade, linewidth=2.6, label=name)
        others.plot(gains, rms[:, k], "o-", color=shade, linewidth=2.6, markersize=7)
    axes.set_ylim(bottom=0.0)
    axes.margins(x=0.02)
    others.set_yscale("log")
    others.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    others.yaxis.set_minor_formatter(NullFormatter())
    _, rigid, flatness = rms[gain]
    if np.isfinite(rigid / flatness):  # the ratio of both errors at the highest gain
        arrow = {"arrowstyle": "<->", "color": INK, "shrinkA": 6, "shrinkB": 6}
        others.annotate("", xy=(gains[gain], flatness), xytext=(gains[gain], rigid), arrowprops=arrow)
        shade, label = _COLORS[2] if flatness <= rigid else _COLORS[1], f"{compared(rigid / flatness)} "
        others.text(gains[gain], np.sqrt(rigid * flatness), label, fontsize=14, color=shade, ha="right", va="center")
    title = f"Link tracking error of an arm with elastic joints ({printable(comparison.robot.name)})"
    about = f"Same trajectory, same motor PD; only the feedforward differs. Simulated arm: {model_error(comparison)}."
    figure.text(0.012, 0.98, title, fontsize=18.5, color=INK, va="top", weight="bold", parse_math=False)
    figure.text(0.012, 0.905, about, fontsize=13.5, color=INK, va="top")
    legend = figure.legend(
        handles=axes.get_lines(), loc="outside lower center", ncols=len(_LABELS), frameon=False, fontsize=15
    )
    for text, shade in zip(legend.get_texts(), _COLORS, strict=True):
        text.set_color(shade)
        text.set_fontweight("bold")
    figure.savefig(path, dpi=130)


_COSINE = "cosine"  # name of the paper's example motion
_COSINE_DURATION = 5.0
_RATE = 500.0


def read_trajectory(
    name: str, robot: Robot, duration: float | None = None, rate: float | None = None
) -> tuple[SupportsDerivatives, Array]:
    """Read a trajectory; returns the motion, and times (T,) at 500 Hz, s.

    Args:
        name: :data:`_COSINE`, or path of a file as for :func:`eom_dynamics.simulation.reference.read_motion`.
        duration: s, at most LONGEST; None for all of a file, or 5 s of the example motion.
        rate: Hz, of the samples of a .npz file without times.
    """
    if name == _COSINE:
        motion: SupportsDerivatives = paper_motion(robot.n)
        start, end = 0.0, duration or _COSINE_DURATION
    else:
        motion = samples = read_motion(Path(name), robot, rate)
        start = float(samples.t[0])
        end = min(float(samples.t[-1]), start + (duration or math.inf))
    if end - start > LONGEST:
        raise StateError(f"{name}: takes {end - start:.6g} s; select at most {LONGEST:g} of them, --duration S")
    return motion, np.linspace(start, end, max(2, round(_RATE * (end - start)) + 1), dtype=np.float64)
