# SPDX-License-Identifier: Apache-2.0
"""Delay between a command and the motion that it causes, from recordings.

A command u acts a time D later on a system that is linear in known functions of the motion,

    u(t - D) + sum_j b_j c_j(t - D) = sum_i a_i x_i(t) + noise,

such as a motor effort u with B thetadd, thetad, its sign, the spring's effort and a constant as x, and the reference of
the drive's PD as c. All signals pass the same low-pass without phase, by which the equation stays true. D is where the
residual of the least squares in a and b is smallest; its standard deviation is that of Gauss-Newton with the noise that
the residual shows, where each half period of the band counts as one independent sample.

A drive that holds commands for a period T adds T/2 to D: it is the lead that undoes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import minimize_scalar

from ...arguments import positive
from ...arrays import Array
from ...elastic import ElasticArm
from ...states import real_array
from ..recording import IdentificationError
from ..sampling import column_lengths, continued

# Candidates over the range of delays, before the best one is refined.
_CANDIDATES = 81

# Bandwidth of the motion of an arm, Hz; and that of derivatives over it.
_BANDWIDTH, _DERIVATIVES = 8.0, 8.0

# Periods of the band's edge that are left out at both ends.
_MARGIN = 2.0


class Delay(NamedTuple):
    """A delay with its standard deviation, s."""

    value: float
    standard_deviation: float


def command_delay(
    t: ArrayLike,
    command: ArrayLike,
    response: ArrayLike,
    *,
    references: ArrayLike | None = None,
    bandwidth: float = 10.0,
    longest: float = 0.02,
) -> Delay:
    """Delay of a command.

    Args:
        t: (N,) s, in equal steps.
        command: u (N,).
        response: x (N, k), functions of the motion at the same times; a constant is added.
        references: c (N, l), what is late with the command.
        bandwidth: of the motion, Hz; above, there is noise.
        longest: largest delay, and least negative one, s.

    Raises:
        IdentificationError: there are too few samples, or the signals do not determine the delay.
        StateError: a signal has the wrong shape or is not finite.
    """
    positive(bandwidth, "bandwidth"), positive(longest, "longest")
    times = real_array(t, "t")
    u = real_array(command, "command", times.shape)
    x = real_array(response, "response")
    late = np.zeros((len(times), 0)) if references is None else real_array(references, "references")
    step = float(np.median(np.diff(times)))
    margin = int(np.ceil((_MARGIN / bandwidth + longest) / step))
    if len(times) < 4 * margin + 10 * (x.shape[1] + late.shape[1] + 1):
        raise IdentificationError(f"{len(times)} samples are too few to find a delay; record a longer motion")
    inner = slice(margin, len(times) - margin)
    still = low_passed(np.column_stack([x, np.ones_like(times)]), step, bandwidth)[inner]
    moving = CubicSpline(times, low_passed(np.column_stack([u, late]), step, bandwidth))
    at = times[inner]
    # Each half period of the band is one independent sample.
    independent = 2 * bandwidth * (at[-1] - at[0])

    def parts(delay: float) -> tuple[Array, Array, Array]:
        """Residual, its derivative with respect to the delay, and an orthonormal basis of what is fitted."""
        shifted, rates = moving(at - delay), -moving(at - delay, 1)
        design = np.column_stack([still, -shifted[:, 1:]])
        scale = column_lengths(design)
        design = design / scale
        solution = np.linalg.lstsq(design, shifted[:, 0], rcond=1e-10)[0]
        later = rates[:, 0] + rates[:, 1:] @ (solution[still.shape[1] :] / scale[still.shape[1] :])
        basis, _ = np.linalg.qr(design)
        return shifted[:, 0] - design @ solution, later, basis

    def cost(delay: float) -> float:
        # The command's own size changes with the delay by next to nothing.
        return float(np.sum(parts(delay)[0] ** 2))

    candidates = np.linspace(-longest, longest, _CANDIDATES)
    best = int(np.argmin([cost(delay) for delay in candidates.tolist()]))
    if best in (0, _CANDIDATES - 1):
        raise IdentificationError(
            f"the delay is not within {1e3 * longest:g} ms: command and motion do not belong together, or the motion "
            "does not determine it"
        )
    found = minimize_scalar(cost, bounds=candidates[[best - 1, best + 1]], method="bounded", options={"xatol": 1e-8})
    residual, later, basis = parts(float(found.x))
    later = later - basis @ (basis.T @ later)
    information = float(later @ later)
    degrees = independent - basis.shape[1] - 1
    if degrees <= 0 or not information > 0:
        raise IdentificationError("the motion does not determine the delay; record a longer one, with more frequencies")
    # Sums over samples count each independent one len / independent times, in residual and information alike.
    variance = (residual @ residual) / information / degrees
    return Delay(float(found.x), float(np.sqrt(variance)))


def drive_delay(
    arm: ElasticArm,
    t: ArrayLike,
    q: ArrayLike,
    motor_position: ArrayLike,
    command: Sequence[ArrayLike],
) -> Delay:
    """Delay from the commands of an arm to its motion: drive delay plus half the hold period.

    Inertia, friction, stiffness, gear loss and the gains of the PD are fitted with it; of the arm's file only the
    shapes of the springs' laws count, and at rigid joints the inverse dynamics. All is measured by one clock.

    Args:
        arm: the arm, without a transmission.
        t: (N,) s, in equal steps.
        q: measured positions (N, n) of the links, rad or m.
        motor_position: measured positions (N, m) of the motors on the link side of their gears, rad or m.
        command: commanded effort, and position and velocity where the drives have a PD, of the motors, each (N, m).

    Raises:
        IdentificationError: as :func:`command_delay`.
        StateError: an array has the wrong shape or is not finite.
    """
    times = real_array(t, "t")
    n, m = arm.robot.n, len(arm.motor_joint)
    links = real_array(q, "q", (len(times), n))
    motors = real_array(motor_position, "motor_position", (len(times), m))
    given = [real_array(values, "command", (len(times), m)) for values in command]
    # Derivatives need less noise; what is above the band is left out later.
    step, bandwidth = float(np.median(np.diff(times))), _DERIVATIVES * _BANDWIDTH
    smooth = CubicSpline(times, low_passed(np.column_stack([links, motors]), step, bandwidth))
    (x, xd, xdd) = (smooth(times, k) for k in range(3))
    deltad = xd[:, n:] - xd[:, arm.motor_joint]
    spring = arm.efforts_of_deflections(x[:, n:] - x[:, arm.motor_joint], 0 * deltad, rigid_too=True).tau
    modelled = arm.dynamics.effort(x[:, :n], xd[:, :n], xdd[:, :n])
    load = np.where(arm.rigid, modelled, np.nan_to_num(spring))[:, arm.motor_joint]
    numbers = (arm.friction.smoothing_velocity, arm.gear.efficiency, arm.gear.smoothing_power)
    delays = []
    for i, (smoothing, efficiency, power) in enumerate(zip(*(np.broadcast_to(k, (m,)) for k in numbers), strict=True)):
        speed, tau = xd[:, n + i], load[:, i]
        columns = [xdd[:, n + i], speed, np.tanh(speed / smoothing), x[:, n + i], tau]
        columns += [tau * np.tanh(tau * speed / power)] if efficiency < 1 else []
        u, references = given[0][:, i], np.array([part[:, i] for part in given[1:]]).reshape(-1, len(times)).T
        with suppress(IdentificationError):
            response = np.column_stack(columns)
            delays.append(command_delay(times, u, response, references=references, bandwidth=_BANDWIDTH))
    return combined(delays)


def combined(delays: Sequence[Delay]) -> Delay:
    """Variance-weighted mean of the delays of several joints, at least one; their scatter increases its deviation."""
    if not delays:
        raise IdentificationError("no joint has moved enough to find a delay")
    values, deviations = np.array(delays).T
    weights = 1 / np.maximum(deviations, 1e-9) ** 2
    mean = float(weights @ values / weights.sum())
    own = float(1 / np.sqrt(weights.sum()))
    scatter = float(np.sqrt(weights @ (values - mean) ** 2 / weights.sum() / max(len(delays) - 1, 1)))
    return Delay(mean, max(own, scatter))


def low_passed(values: Array, step: float, bandwidth: float) -> Array:
    """Signals (N, …) after a zero-phase Gaussian low-pass of this bandwidth, Hz.

    The gain at the bandwidth is 1/sqrt(2). Ends are continued by their reflection about the end points.
    """
    width = np.sqrt(np.log(2)) / (2 * np.pi * bandwidth * step)
    half = min(int(np.ceil(5 * width)), len(values) - 1)
    found = gaussian_filter1d(continued(values, half), width, axis=0, truncate=half / width)
    return np.asarray(found[half : len(values) + half])


def period_of(stamps: ArrayLike) -> Delay:
    """Command period from stamps (N,), s: the median interval and its standard deviation.

    Raises:
        IdentificationError: there are fewer than three.
    """
    intervals = np.diff(real_array(stamps, "stamps"))
    intervals = intervals[intervals > 0]
    if len(intervals) < 2:
        raise IdentificationError(f"{len(intervals)} intervals between commands are too few to find their period")
    scatter = 1.4826 * float(np.median(np.abs(intervals - np.median(intervals))))
    return Delay(float(np.median(intervals)), float(scatter * np.sqrt(np.pi / 2 / len(intervals))))
