# SPDX-License-Identifier: Apache-2.0
"""Motion of an arm, rigid or elastic, under efforts and tool wrenches over time, or under none: files and page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array
from ...elastic import ElasticArm
from ...exceptions import StateError
from ...simulation import ElasticPlant, EnergyAudit, Simulation, energy_audit, simulate
from ...simulation.integrators import output_times
from ...simulation.number_files import read_arrays, read_table, write_table
from ...spelling import listed
from ...states import real_array
from ..pages.charts import CURVE_POINTS, add_joints, over_time
from ..pages.page import html_page
from ..quantity_text import effort_units, position_units, together
from ..results import Result, ResultSection
from ..writing import whole_folder
from . import LONGEST
from .results import energy_failures, energy_table

_RATE = 500.0
_FREE = 5.0

# Longest step from sample to sample of efforts, s: a method that chooses its steps halves them at each bend.
_STEP = 1e-3
_ENTRIES = ("t", "tau", "joint_names", "W")
_ENERGIES = ("kinetic", "gravity", "spring", "work", "heat")


@dataclass(frozen=True)
class EffortSamples:
    """Efforts over time, linear between samples, and constant before the first one and after the last.

    Attributes:
        t: (T,) s.
        tau: (T, m) of the motors on the link side of their gears, at rigid joints of the joints, N m or N.
        wrench: (T, 6), or (T, k, 6) of k tools, that the robot exerts on its surroundings, N m and N; None for none.
    """

    t: Array
    tau: Array
    wrench: Array | None = None

    def at(self, values: Array, t: float) -> Array:
        """Values (T, …) at a time."""
        rows = values.reshape(len(self.t), -1)
        return np.array([np.interp(t, self.t, column) for column in rows.T]).reshape(values.shape[1:])


@dataclass(frozen=True)
class OpenLoop:
    """Motion of an arm under given efforts.

    Attributes:
        plant: the arm.
        simulation: its states, at 500 Hz or at the samples of the efforts, one arm.
        effort: (T, m) N m or N.
        audit: energy, work and heat.
    """

    plant: ElasticPlant
    simulation: Simulation
    effort: Array
    audit: EnergyAudit


def read_efforts(path: Path, arm: ElasticArm) -> EffortSamples:
    """Read efforts over time.

    Args:
        path: a ``.csv`` file with columns t and tau.NAME for each motor; or a ``.npz`` file with arrays, or a ``.json``
            file with an object of lists: t (T,), tau (T, m), and optionally joint_names (m,) and W (T, 6) or (T, k, 6).
            Files of :func:`write_motion` have motor_effort in place of tau, and motor_names.
        arm: whose motors they are; without names in its order.

    Raises StateError if the file has no efforts of these motors, OSError if it cannot be read.
    """
    names = list(arm.motor_names)
    try:
        entries = {".csv": _csv, ".json": _json}.get(path.suffix, read_arrays)(path)
        entry, named = ("motor_effort", "motor_names") if "motor_effort" in entries else ("tau", "joint_names")
        order = [str(name) for name in entries.get(named, names)]
        if sorted(order) != sorted(names):
            recorded = listed(order) or "no joint (columns tau.NAME)"
            raise ValueError(f"has efforts of {recorded}; {arm.robot.name} has {listed(names)}")
        t = output_times(entries["t"])
        tau = real_array(entries[entry], entry, (len(t), len(names)))[:, [order.index(name) for name in names]]
        shape = (len(t), *arm.robot.wrench_shape)
        return EffortSamples(t, tau, real_array(entries["W"], "W", shape) if "W" in entries else None)
    except (ValueError, KeyError, TypeError) as error:
        reason = f"has no {error}" if isinstance(error, KeyError) else error
        raise StateError(f"{path}: cannot be read as efforts over time: {reason}") from None


def _csv(path: Path) -> Mapping[str, Any]:
    names, table = read_table(path)
    columns = dict(zip(names or (), table.T, strict=bool(names)))
    prefix = "motor_effort." if any(name.startswith("motor_effort.") for name in columns) else "tau."
    motors = [name for name in columns if name.startswith(prefix)]
    return {
        "t": columns["t"],
        "tau": table[:, [list(columns).index(name) for name in motors]],
        "joint_names": [name.removeprefix(prefix) for name in motors],
    }


def _json(path: Path) -> Mapping[str, Any]:
    content: Mapping[str, Any] = dict(json.loads(path.read_text(encoding="utf-8")))
    if unknown := [repr(name) for name in content if name not in _ENTRIES]:
        raise ValueError(f"has the unknown {listed(unknown)}; known are {', '.join(_ENTRIES)}")
    return content


def run_open_loop(
    arm: ElasticArm,
    q: ArrayLike,
    qd: ArrayLike,
    efforts: EffortSamples | None = None,
    *,
    duration: float | None = None,
    method: str | None = None,
    step: float | None = None,
) -> OpenLoop:
    """Simulate an arm under efforts, or without any.

    Args:
        arm: links and motors.
        q, qd: (n,) at the start, rad or m and per s, with unloaded springs.
        efforts: over time; None for none.
        duration: s; by default that of the efforts, or 5 s.
        method, step: as for :func:`eom_dynamics.simulation.simulate`; by default DOP853 without efforts, and with them
            ``rk4`` in steps from sample to sample, of at most 1 ms.

    Raises StateError if the start is not finite, out of bounds or of the wrong shape, or the motion takes too long, and
    SimulationError if the integrator cannot continue.
    """
    plant = ElasticPlant(arm)
    samples = EffortSamples(np.zeros(1), np.zeros((1, len(plant.rigid)))) if efforts is None else efforts
    start, W = float(samples.t[0]), samples.wrench
    length = duration or float(samples.t[-1]) - start or _FREE
    if not 0 < length <= LONGEST:
        raise StateError(f"efforts take {length:.6g} s; give a --duration of up to {LONGEST:g} s")
    t = np.linspace(start, start + length, max(2, round(_RATE * length) + 1), dtype=np.float64)
    if efforts is not None:
        t = np.union1d(t[[0, -1]] if len(samples.t) > 1 else t, samples.t[samples.t < t[-1]])
    if method is None:
        method, step = ("DOP853", None) if efforts is None else ("rk4", step or _STEP)

    def effort_at(now: float, _: Any = None) -> Array:
        return samples.at(samples.tau, now)

    wrench = None if W is None else lambda now, _: samples.at(W, now)
    state = plant.state(q, qd)
    simulation = simulate(plant, effort_at, t, state, wrench=wrench, method=method, step=step, partial=True)
    (end,) = simulation.ends
    if end is not None and not np.any(np.isfinite(simulation.work)):
        raise StateError(f"{arm.robot.name}: the simulation cannot start: {end.reason}")
    effort = np.array([effort_at(now) for now in t])
    return OpenLoop(plant, simulation, effort, energy_audit(plant, simulation))


def open_loop_result(motion: OpenLoop, page: Path, about: Mapping[str, str]) -> Result:
    """Make the result of a motion: its last state, energy, and charts over time."""
    robot, simulation, audit = motion.plant.arm.robot, motion.simulation, motion.audit
    t = simulation.t
    q, _, qd, _ = motion.plant.parts(simulation.states)
    last = int(np.flatnonzero(np.isfinite(simulation.work))[-1])
    imbalance = float(audit.relative_imbalance)
    (end,) = simulation.ends
    failures = [] if end is None else [f"the simulation ends at {end.t:.3g} s: {end.reason}"]
    failures += energy_failures(imbalance)
    limits = [joint.limits for joint in robot.independent_joints]
    beyond = (q < [x.lower for x in limits]) | (q > [x.upper for x in limits])
    notes = [
        f"{robot.joint_names[j]} passes its limits at {t[np.argmax(beyond[:, j])]:.3g} s: there are no end stops"
        for j in np.flatnonzero(beyond.any(axis=0))
    ]
    position, effort = position_units(robot), effort_units(robot)
    of_motors = [effort[i] for i in motion.plant.arm.motor_joint]
    drawn = {
        "position": (robot.joint_names, position, q),
        "velocity": (robot.joint_names, [f"{unit}/s" for unit in position], qd),
        "effort": (motion.plant.arm.motor_names, of_motors, motion.effort),
        "energy": (_ENERGIES, ["J"] * len(_ENERGIES), _energies(audit)),
    }
    charts = {}
    for name, (names, units, values) in drawn.items():
        charts[name] = over_time(name.capitalize(), together(units), t[0], t[-1])
        add_joints(charts[name], names, units, t, values, points=CURVE_POINTS)
    return Result(
        title=f"Motion of {robot.name} {'under given efforts' if np.any(motion.effort) else 'without efforts'}",
        sections=[
            ResultSection(charts=charts),
            ResultSection(lines=[f"q at {t[last]:g} s: {' '.join(f'{x:.6g}' for x in q[last])}"]),
            ResultSection("Energy", tables=[energy_table(audit.thinned())]),
        ],
        notes=notes,
        failures=failures,
        files={"page": page},
        json={
            "robot": robot.name,
            "t": float(t[last]),
            "q": q[last].tolist(),
            "qd": qd[last].tolist(),
            "energy_imbalance": imbalance,
            "failures": failures,
        },
        about=about,
    )


def write_motion(folder: Path, motion: OpenLoop, result: Result, *, force: bool = False) -> None:
    """Write index.html, data.npz and motion.csv."""
    robot, t = motion.plant.arm.robot, motion.simulation.t
    q, theta, qd, thetad = motion.plant.parts(motion.simulation.states)
    names, motors = robot.joint_names, motion.plant.arm.motor_names
    with whole_folder(folder, force=force) as aside:
        np.savez_compressed(
            aside / "data.npz",
            t=t,
            q=q,
            qd=qd,
            theta=theta,
            thetad=thetad,
            motor_effort=motion.effort,
            energy=_energies(motion.audit),
            energy_names=np.array(_ENERGIES),
            joint_names=np.array(names),
            motor_names=np.array(motors),
        )
        header = ["t", *(f"{x}.{name}" for x in ("q", "qd") for name in names)]
        header += [f"{x}.{name}" for x in ("motor_effort", "motor_position") for name in motors]
        write_table(aside / "motion.csv", header, (t, q, qd, motion.effort, theta))
        (aside / "index.html").write_text(html_page("simulate", result), encoding="utf-8")


def _energies(audit: EnergyAudit) -> Array:
    """Energies, work and heat (T, 5), J."""
    return np.stack([getattr(audit, name) for name in _ENERGIES], axis=1)
