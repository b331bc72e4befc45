# SPDX-License-Identifier: Apache-2.0
"""Stribeck velocity, the only nonlinear friction parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from ..arrays import Array
from .equations import equations, predictions
from .estimators import weighted
from .filtering import Filter, FilteredSamples
from .joint_terms import TERMS, Motion
from .regressor import Regressor

# Range of the velocity, in smoothing velocities and in RMS velocities of the joint: below, the law is that of Coulomb.
_LOWEST, _HIGHEST = 2.0, 1.0


def stribeck_velocities(regressor: Regressor, samples: Sequence[FilteredSamples], using: Filter, file: Array) -> Array:
    """Best-fit Stribeck velocities v_s (n,), joint by joint, rad/s or m/s.

    For each v_s the other parameters of the joint follow by least squares (variable projection, G. Golub, V. Pereyra,
    1973); inertial parameters are those of a fit without the Stribeck term, which they hardly depend on.
    """
    x = weighted(equations(regressor, samples), file).x
    x[regressor.inertial :] = 0.0
    found = np.array(np.broadcast_to(using.stribeck_velocity, regressor.robot.n), dtype=float)
    rest = [part.tau - predictions(regressor, part, x) for part in samples]
    for j in range(regressor.robot.n):
        used = [part.used[:, j] for part in samples]
        if not any(rows.any() for rows in used):
            continue
        efforts = np.concatenate([r[rows, j] for r, rows in zip(rest, used, strict=True)])
        qd = np.concatenate([using.rates(part.qd)[rows, j] for part, rows in zip(samples, used, strict=True)])
        names = [name for name in regressor.terms if name != "stribeck"]
        fixed = [
            np.concatenate([part.bases[name][rows, j] for part, rows in zip(samples, used, strict=True)])
            for name in names
        ]
        smoothing = float(np.broadcast_to(using.smoothing_velocity, regressor.robot.n)[j])
        motion = Motion(qd, np.zeros_like(qd), smoothing_velocity=smoothing)

        def error(
            log_velocity: float, motion: Motion = motion, fixed: list[Array] = fixed, efforts: Array = efforts
        ) -> float:
            own = TERMS["stribeck"].basis(replace(motion, stribeck_velocity=float(np.exp(log_velocity))))
            A = np.column_stack([*fixed, own])
            solution = np.linalg.lstsq(A, efforts, rcond=None)[0]
            return float(np.sum(np.square(A @ solution - efforts)))

        low, high = _LOWEST * smoothing, _HIGHEST * float(np.sqrt(np.mean(np.square(qd))))
        if high > low:
            found[j] = np.exp(minimize_scalar(error, bounds=(np.log(low), np.log(high)), method="bounded").x)
    return found
