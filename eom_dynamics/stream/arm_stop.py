# SPDX-License-Identifier: Apache-2.0
"""Stop of an arm from its last command, within limits, and the command that remains in effect after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array
from ..elastic import BaseMotion, DriveCommand, ElasticArm, LimitCheck
from ..elastic.bounds import TOLERANCE
from ..exceptions import StateError
from ..messages.setpoint_to_command import EvaluatedCommand
from ..trajectory.rest_to_rest import StopPolynomial

GROWTH = 1.5
"""Each duration that is tried is this many times the one before."""

LONGER, SHORTER = 8, 5
"""How many longer durations are tried after the wanted one, and then how many shorter ones."""

SAMPLES = 64
"""Instants at which limits are checked, evenly over the stop."""


class Flow(NamedTuple):
    """Setpoint contents, the arguments of an arm's feedforward, at one time or N times.

    Attributes:
        state: q … qdddd (5, n) or (5, N, n).
        wrench: W, Wd, Wdd at the tools, or ().
        stiffness: k, kd, kdd, or () where it is not commanded.
        base: motion of the base, or None at rest.
    """

    state: Array
    wrench: tuple[Array, ...]
    stiffness: tuple[Array, ...]
    base: BaseMotion | None


class ArmStop:
    """Synchronous stop of arm, wrench, stiffness and base from a command to rest.

    Attributes:
        duration: s.
        end: q at rest (n,).
    """

    def __init__(self, last: EvaluatedCommand, duration: float, variable: NDArray[np.bool_]) -> None:
        """Continue a command.

        Args:
            last: the command.
            duration: s, positive.
            variable: (n,) whether the stiffness of a joint is commanded; others may have any entry.
        """
        self.duration = duration
        self._state = StopPolynomial(_without_noise(last.state, duration), duration)
        self.end = self._state.end
        self._wrench = StopPolynomial(last.wrench, duration) if last.wrench else None
        self._stiffness = None
        if last.stiffness:
            self._stiffness = StopPolynomial(np.where(variable, last.stiffness, 0.0), duration)
        self._base = [StopPolynomial(part, duration) for part in last.base] if last.base else None

    def at(self, s: ArrayLike) -> Flow:
        """Stop at times ``s`` since the command; at rest from ``duration`` on."""
        return Flow(
            self._state.derivatives(s),
            tuple(self._wrench.derivatives(s)) if self._wrench else (),
            tuple(self._stiffness.derivatives(s)) if self._stiffness else (),
            BaseMotion(*(part.derivatives(s) for part in self._base)) if self._base else None,
        )


def _without_noise(state: Array, T: float) -> Array:
    """The state (5, n) of a stop of T s, without jerk and snap where they would move a joint further than the rest.

    A stop moves a joint by T qd / 2 + 3 T² qdd / 28 + T³ qddd / 84 + T⁴ qdddd / 1680. Differences of rounded
    positions have a jerk and a snap of noise, which a stop must not extrapolate.
    """
    _, qd, qdd, qddd, qdddd = np.abs(state)
    noise = T * T * (qddd / 84 + T * qdddd / 1680) > qd / 2 + T * 3 * qdd / 28
    if not noise.any():
        return state
    state = state.copy()
    state[3:, noise] = 0.0
    return state


def choose_stop(arm: ElasticArm, limits: LimitCheck, last: EvaluatedCommand, duration: float) -> tuple[ArmStop, float]:
    """Choose a stop within the limits of joints and motors, or else the one that exceeds them least.

    Durations are ``duration`` and longer ones, which accelerate less, then shorter ones, which need less of the range
    of positions; the first that meets all limits is taken. A limit counts where the last command meets it.

    Args:
        arm: the arm.
        limits: its limits.
        last: the last command.
        duration: wanted, s.

    Returns:
        The stop, and its excess as of :meth:`.LimitCheck.excess`; at most zero within limits.

    Raises:
        StateError: the motors can realise no stop, for example because a spring would be slack.
    """
    best: tuple[ArmStop, float] | None = None
    reason = StateError("numbers too large")
    for k in (*range(LONGER + 1), *range(-1, -SHORTER - 1, -1)):
        stop = ArmStop(last, duration * GROWTH**k, arm.variable)
        try:
            excess = _excess(arm, limits, stop, last.payload[:1])
        except StateError as error:
            reason = error
            continue
        if np.isfinite(excess) and (best is None or excess < best[1]):
            best = stop, excess
            if excess <= TOLERANCE:
                break
    if best is None:
        raise reason
    return best


def _excess(arm: ElasticArm, limits: LimitCheck, stop: ArmStop, payload: tuple[Array, ...]) -> float:
    """Largest excess over limits of a stop; infinite where numbers overflow."""
    state, wrench, stiffness, base = stop.at(np.linspace(0.0, stop.duration, SAMPLES + 1))
    with np.errstate(all="ignore"):
        command = arm.feedforward(
            *state, wrench=wrench, commanded_stiffness=stiffness, base=base, payload=payload or None
        )
        rows = np.concatenate((*state, *command), axis=-1)
        if not np.isfinite(rows).all():
            return np.inf
        return float(np.max(limits.excess(rows[1:], rows[0]))) if limits.limited else 0.0


EFFORTS_ON_DEACTIVATE = ("zero", "gravity", "keep")
"""Efforts that remain: none; those that hold the arm at rest without a wrench at its tools; or those of the last
command."""


def final_command(last: EvaluatedCommand, efforts: EvaluatedCommand | None) -> EvaluatedCommand:
    """The command after the last one: its motor positions are held, velocities, accelerations and rates are zero.

    Args:
        last: the last command.
        efforts: the command whose efforts of joints and motors remain; None for zero.
    """
    remaining, motors = np.zeros_like(last.efforts), np.zeros_like(last.motors)
    motors[0] = last.motors[0]
    if efforts:
        remaining[0], motors[-1] = efforts.efforts[0], efforts.motors[-1]
    sent = last.sent
    if sent is not None:
        zero = DriveCommand(*map(np.zeros_like, sent))
        own = efforts.sent if efforts and efforts.sent else zero
        sent = zero._replace(position=sent.position, effort=own.effort, joint_effort=own.joint_effort)
    return last._replace(efforts=remaining, motors=motors, sent=sent)
