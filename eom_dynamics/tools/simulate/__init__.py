# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics simulate``: trajectory, and page, picture and summary of a feedforward comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...arguments import option
from ...exceptions import EomDynamicsError

LONGEST = 600.0
"""Longest motion, s; a second takes about as long to compute."""

_MOST_GAINS = 50  # each gain is simulated with every feedforward, all of them at once
_GAINS = (70.0,)

# No model is exact: without errors, the feedforward by flatness shows that of the integration alone.
_MODEL_ERRORS = {"stiffness_error": -0.2, "mass_error": 0.1}


@dataclass(frozen=True)
class SimulationRequest:
    """Motion, feedback and integrator.

    Attributes:
        trajectory: cosine, the example motion of the paper; or a .npz file with arrays t, q, qd, qdd, qddd, qdddd and
            optionally joint_names, such as the demo's data.npz; or a .csv file with columns t, q.JOINT … qdddd.JOINT.
        free: in place of TRAJECTORY: let the arm fall, without efforts.
        efforts: in place of TRAJECTORY: efforts over time: a .csv file with columns t and tau.JOINT, or a .npz or .json
            file with t, tau and optionally joint_names and W, the wrenches that the robot exerts at its tools; or
            motion.csv or data.npz of this command.
        start: with --free or --efforts, joint variables at the start, rad or m; default: 0.
        velocity: with --free or --efforts, joint rates at the start, rad/s or m/s; default: 0.
        gains: natural frequencies of the motor PD, rad/s (inspect --gains takes Hz), such as 10,30,100; 0: none.
        stiffness_error: relative error of the simulated springs against the file, 0.1: 10% more; default: -0.2.
        mass_error: relative error of the simulated bodies against the file; default: 0.1.
        exact: simulate the model itself, without these errors.
        duration: duration, s; default: all of a file, 5 s of the example motion and of --free.
        rate: samples per second of a .npz file without t, as for the player.
        method: integrator: DOP853 (default, but with --efforts rk4) or another of SciPy's, or, with --step: euler, rk4.
        step: step of the integrators that have a fixed one, s.
        audit: print energy, work and heat of the arm with flatness and the highest gain.
    """

    trajectory: str | None = option(flag="trajectory", metavar="TRAJECTORY", nargs="?")
    free: bool = option(False)
    efforts: Path | None = option(metavar="FILE")
    start: tuple[float, ...] = option((), metavar="X", nargs="+")
    velocity: tuple[float, ...] = option((), metavar="X", nargs="+")
    # A faster PD takes more steps of the integrator.
    gains: tuple[float, ...] = option(_GAINS, rule="[0, 1000]", metavar="W,…")
    stiffness_error: float | None = option(rule="[-0.9, 9]", metavar="X")
    mass_error: float | None = option(rule="[-0.9, 9]", metavar="X")
    exact: bool = option(False)
    duration: float | None = option(rule=f"(0, {LONGEST:g}]", metavar="S")
    rate: float | None = option(rule="positive", metavar="HZ")
    method: str | None = option(metavar="NAME")
    step: float | None = option(rule="positive", metavar="S")
    audit: bool = option(False)

    def __post_init__(self) -> None:
        """Raise EomDynamicsError where options contradict each other."""
        errors = self.stiffness_error is not None or self.mass_error is not None
        if (self.trajectory is not None) + self.free + (self.efforts is not None) != 1:
            raise EomDynamicsError("give one of TRAJECTORY, --free and --efforts")
        if self.trajectory is None and (errors or self.exact or self.rate or self.gains != _GAINS):
            raise EomDynamicsError("--gains, --rate, --exact and model errors go with TRAJECTORY")
        if self.trajectory is not None and (self.start or self.velocity):
            raise EomDynamicsError(
                "--start and --velocity go with --free and --efforts; a trajectory has its own start"
            )
        if self.exact and errors:
            raise EomDynamicsError("--exact contradicts --stiffness-error and --mass-error; leave one out")
        if len(self.gains) > _MOST_GAINS:
            raise EomDynamicsError(f"--gains: must be at most {_MOST_GAINS} numbers, are {len(self.gains)}")

    @property
    def model_errors(self) -> dict[str, float]:
        """Relative errors of the simulated springs and bodies, as arguments of the comparison."""
        errors = {name: getattr(self, name) for name in _MODEL_ERRORS}
        return {name: 0.0 if self.exact else _MODEL_ERRORS[name] if x is None else x for name, x in errors.items()}
