# SPDX-License-Identifier: Apache-2.0
"""Online trajectory generation: a stream of targets becomes motion that is four times differentiable, within limits."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import count, mapping, number_or_vector, positive, real_array
from ..arrays import STATE_NAMES, Array
from ..dynamics import Dynamics
from ..elastic import ElasticArm, LimitCheck
from ..elastic.elastic_arm import lowest_frequency, require_arm
from ..elastic.limit_violations import refuse_degrees
from ..exceptions import StateError
from ..robot.task_space import poses_within_limits
from ..spelling import hint, listed
from .library import library
from .settings import SHORTEST_AVERAGE, SMOOTHING, STOP_RAMP, UNKNOWN_BRAKING

RAMP = 0.075
"""Longest default of the time in which the full acceleration rises, s (``bench/online_motion.py``)."""

FILTERED = 11.5
"""Lowest joint frequency from which on the default smoothing damps it, Hz (``bench/online_motion.py``)."""

_CONFIGURATIONS = 64


class MotionLimits(NamedTuple):
    """Limits of online trajectories, each (n,), with defaults for those that neither robot nor user gives.

    Attributes:
        lower, upper: rad or m.
        velocity, acceleration, jerk, snap: rad or m, per s … s⁴.
        smoothing: length of the second average, s.
        chosen: default values in SI units, and where they come from; empty for none.
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array
    snap: Array
    smoothing: Array
    chosen: str

    def rows(self, period: float) -> Array:
        """Numbers of eom::MotionLimits for cycles of a period, s, by joint."""
        return np.column_stack([*self[:-1], np.full(len(self.lower), period)])

    def exceeded(self, joints: Sequence[str], positions: Array, velocities: Array | None = None) -> tuple[str, ...]:
        """Joints whose targets, positions (…, n) and velocities (n,), are clamped to the limits."""
        over = ((positions < self.lower) | (positions > self.upper)).reshape(-1, len(joints)).any(axis=0)
        fast = np.abs(np.zeros(len(joints)) if velocities is None else velocities) > self.velocity
        return tuple(name for name, clamped in zip(joints, over | fast, strict=True) if clamped)


def limits_of_joints(arm: ElasticArm) -> list[Array]:
    """Lower, upper, velocity, acceleration and jerk (n,), infinite where a joint has no limit."""
    return [
        np.array([getattr(joint.limits, name) for joint in arm.robot.independent_joints])
        for name in MotionLimits._fields[:5]
    ]


@lru_cache(maxsize=8)  # all motions of an arm have them in common
def inertia_and_frequency(arm: ElasticArm) -> tuple[Array, float]:
    """Largest magnitudes of the mass matrix (n, n), and the lowest joint frequency, Hz, zero without springs.

    Over random configurations within the limits of the joints, to six and three digits, alike on all computers; without
    compiled code.
    """
    poses = poses_within_limits(arm.robot, _CONFIGURATIONS, np.pi / 2)
    M = Dynamics(arm.robot, backend="numpy").mass_matrix(poses)
    largest = np.array([[float(f"{x:.6g}") for x in row] for row in np.abs(M).max(axis=0)])
    try:
        return largest, float(f"{lowest_frequency(arm, M) / (2 * np.pi):.3g}")
    except StateError:
        return largest, 0.0


def smoothing_for(frequency: float) -> float:
    """Default length of the second average, s, for a lowest frequency, Hz, zero without springs.

    :data:`SMOOTHING`, or a whole period where that is shorter: an average over a period removes that frequency. Three
    quarters of a period where these are longer, from :data:`FILTERED` on: below, they would cost more delay than they
    save vibration.
    """
    period = 1 / max(frequency, FILTERED)
    return max(min(SMOOTHING, period), 0.75 * period if frequency >= FILTERED else 0.0)


@lru_cache(maxsize=8)
def braking(arm: ElasticArm) -> Array:
    """Largest accelerations (n,) with which joints brake: their limits.

    Of a joint without one, twice what the largest efforts of all joints, those of their motors included, with the
    weight make of the inertia of links and rotors, each in the direction that adds, over random configurations, to six
    digits: for some milliseconds, springs brake links faster than motors could, in fastest motions 1.5 times as fast.
    Infinite where its own effort has no limit.
    """
    robot, check = arm.robot, LimitCheck(arm)
    jerk = check.rate_limits[1]
    of_motors = np.bincount(arm.motor_joint, check.ends["motor_effort"][1], robot.n)
    effort = np.minimum(check.largest["effort"], of_motors)
    if (unknown := np.isinf(jerk) & (effort < np.inf)).any():
        poses = poses_within_limits(robot, _CONFIGURATIONS, np.pi / 2)
        dynamics = Dynamics(robot, order=0, backend="numpy")
        inverse = np.linalg.inv(dynamics.mass_matrix(poses) + np.diag(arm.rotor_inertia))
        loads = np.where(effort < np.inf, effort + np.abs(dynamics.gravity(poses)), 0.0)
        most = 2.0 * np.einsum("kij,kj->ki", np.abs(inverse), loads).max(axis=0)
        jerk[unknown] = [float(f"{x:.6g}") for x in most[unknown]]
    return jerk


def motion_limits(arm: ElasticArm, limits: Mapping[str, ArrayLike] | None = None) -> MotionLimits:
    """Limits of an arm's online trajectories: those given, those of the robot, or defaults.

    The default jerk ramps to the full acceleration A in 1/f, of the lowest frequency f of the links on their springs,
    but in :data:`RAMP` or V/A where these are shorter. The default snap is S = 2 J/T, with T = :data:`SMOOTHING`.
    The default smoothing is :func:`smoothing_for` that frequency.

    Args:
        arm: the arm.
        limits: by the names of :class:`MotionLimits`, a number or (n,) each; in place of those of the robot.

    Raises:
        StateError: a limit is not usable, or a joint has none of velocity or acceleration.
    """
    require_arm(arm)
    names = MotionLimits._fields[:-1]
    joints, n = arm.robot.joint_names, arm.robot.n
    values = dict(zip(names, (*limits_of_joints(arm), *np.full((2, n), np.inf)), strict=True))
    for name, value in mapping({} if limits is None else limits, "limits", listed(names)).items():
        if name not in names:
            raise StateError(f"limits has no {name}; {hint(name, names)}")
        values[name] = np.array(number_or_vector(value, f"limits[{name!r}]", n, finite=False))
        if np.isnan(values[name]).any() or (name not in names[:2] and not (values[name] >= 0).all()):
            raise StateError(f"limits[{name!r}] must be positive, is {values[name]}")
    for name in ("velocity", "acceleration"):
        if missing := [joint for joint, x in zip(joints, values[name], strict=True) if x == np.inf]:
            raise StateError(
                f"{listed(missing)}: no limit of {name}, which motions to targets need: give each of these joints one, "
                f"in the robot's file (limits: {{{name}: …}}), by parameters of a node "
                f"(urdf.joints.{missing[0]}.limits.{name}: …, or urdf.joint_limits: FILE, of MoveIt), or in Python "
                f"(limits={{{name!r}: …}})"
            )
    V, A = values["velocity"], values["acceleration"]
    chosen: list[str] = []
    inertia, frequency = inertia_and_frequency(arm)

    def default(name: str, value: Array) -> None:
        if (missing := np.isinf(values[name])).any():
            values[name] = np.where(missing, value, values[name])
            chosen.append(f"{name} {_shown(values[name])}")

    default("jerk", A * np.maximum(max(frequency, 1 / RAMP), A / V))
    effort_rates = np.array([joint.limits.effort_rate for joint in arm.robot.independent_joints])
    # Of all joints at once, the worst case, which leaves room for changes of inertia and weight.
    if (share := float(np.min(effort_rates / (inertia @ values["jerk"])))) < 1.0:
        values["jerk"] *= share
        chosen.append(f"jerk {_shown(values['jerk'])} for limits of effort rates")
    default("snap", 2 * values["jerk"] / SMOOTHING)
    default("smoothing", np.full(n, smoothing_for(frequency)))
    reason = f"a lowest joint frequency of {frequency:.3g} Hz" if frequency else "no joint frequency"
    return MotionLimits(**values, chosen=f"{', '.join(chosen)}, by default for {reason}" if chosen else "")


@lru_cache(maxsize=8)
def stop_limits(arm: ElasticArm) -> Array:
    """Limits (n, 8) of the motion by which joints come to rest, in cycles of 1 ms: rows of eom::MotionLimits.

    The acceleration is :func:`braking`, or :data:`UNKNOWN_BRAKING`; it rises within :data:`STOP_RAMP`, or as the limit
    of jerk allows. Both averages are :data:`SMOOTHING` long, or :data:`SHORTEST_AVERAGE` without springs.
    """
    lower, upper, velocity, _, jerk = limits_of_joints(arm)
    fixed = 1e-9 * (lower == upper)
    velocity, A = (np.where(np.isfinite(x), x, UNKNOWN_BRAKING) for x in (velocity, braking(arm)))
    J = np.minimum(A / STOP_RAMP, jerk)
    average = SHORTEST_AVERAGE if arm.rigid.all() else SMOOTHING
    same = np.ones(len(J))
    return np.column_stack([lower - fixed, upper + fixed, velocity, A, J, 2 * J / average, average * same, 1e-3 * same])


def _shown(values: Array) -> str:
    """Numbers (n,) as text: one where all are the same."""
    return f"{values[0]:.4g}" if np.ptp(values) == 0 else np.array2string(values, precision=4)


def read_target(
    joints: Sequence[str], position: ArrayLike | Mapping[str, float], velocity: ArrayLike | None
) -> tuple[Array, Array]:
    """Positions, NaN for joints that are not named, and velocities (n,); arguments and errors as of a target."""
    positions = np.full(len(joints), np.nan)
    if isinstance(position, Mapping):
        if not position:
            raise StateError("position names no joints")
        for name, value in position.items():
            if name not in joints:
                raise StateError(f"position has no joint {name!r} of the robot; {hint(name, joints)}")
            positions[joints.index(name)] = real_array(value, f"position[{name!r}]", ())
    else:
        positions[:] = real_array(position, "position", (len(joints),))
    return positions, np.array(
        real_array(np.zeros(len(joints)) if velocity is None else velocity, "velocity", (len(joints),))
    )


def read_chunk(n: int, times: ArrayLike, positions: ArrayLike) -> tuple[Array, Array]:
    """Times (K,) and positions (K, n) of a chunk; StateError for other shapes."""
    t = np.array(real_array(times, "times"))
    if t.ndim != 1:
        raise StateError(f"times must have shape (K,), has {t.shape}")
    if not len(t):
        raise StateError("a chunk must have 1 to 1000 positions")
    return t, np.ascontiguousarray(real_array(positions, "positions", (len(t), n)))


class OnlineTrajectory:
    """Online trajectory of an arm: positions in, at any rate; motion with continuous snap out.

    Each cycle goes on towards the latest target, within the limits of position, velocity, acceleration, jerk and snap
    of each joint, and rests at a target that stays, without overshoot. A follower goes there in the least time under
    limits up to the jerk, as Ruckig does (L. Berscheid, T. Kröger, 2021); averages over 2 J/S and ``smoothing`` make
    its motion four times differentiable (L. Biagiotti, C. Melchiorri, 2012), and arrive later by their lengths.
    Noise of positions in dense streams is averaged out, over at most 0.3 s, as long as it hides no motion.

    Attributes:
        arm: the arm.
        period: of a cycle, s.
        limits: :class:`MotionLimits`; of which ``chosen`` tells defaults.
        delay: (n,) by which the averages delay motion, s; a target with a velocity is met without it.
        state: q … qdddd (5, n) after the last cycle.
        time: of the cycles so far, s.
    """

    def __init__(self, arm: ElasticArm, period: float = 1e-3, limits: Mapping[str, ArrayLike] | None = None) -> None:
        """Rest at zero, or at the nearest position within limits.

        Args:
            arm: the arm.
            period: of a cycle, s.
            limits: see :func:`motion_limits`.

        Raises:
            StateError: limits are not usable.
            KernelError: the loop is not built.
        """
        self._address = ctypes.c_void_p()
        self.arm, self.period = arm, positive(period, "period")
        self.limits = motion_limits(arm, limits)
        n = arm.robot.n
        self._library = library()
        rows, self.delay, self.time = self.limits.rows(self.period), np.empty(n), 0.0
        of_joints = rows.ctypes.data, n, self.delay.ctypes.data
        if reason := self._library.motion_make(ctypes.byref(self._address), *of_joints):
            raise StateError(reason.decode())
        self.reset(np.clip(np.zeros(n), self.limits.lower, self.limits.upper))

    def __del__(self) -> None:
        if getattr(self, "_address", None):
            self._library.motion_free(self._address)

    def reset(self, q: ArrayLike) -> None:
        """Rest at a position (n,), which becomes the target."""
        position = np.array(real_array(q, "q", (self.arm.robot.n,)))
        self._library.motion_begin(self._address, position.ctypes.data, None)
        self.state = np.vstack([position, np.zeros((4, len(position)))])

    def take_over(self, state: ArrayLike) -> Array:
        """Continue from any state q … qdddd (5, n), and come to rest until the next target.

        Position and velocity go on continuously; acceleration, jerk and snap as far as a motion within their limits has
        them, else from the nearest values. States such as the largest acceleration with a jerk that increases it lead
        beyond limits of acceleration or velocity for as long as the averages; jerk and snap stay within theirs.

        Returns:
            (n,) how far beyond limits, relative to them: those values, or the motion; zero where limits hold.
        """
        n = self.arm.robot.n
        self.state = np.array(real_array(state, listed(STATE_NAMES), (len(STATE_NAMES), n)))
        excess = np.empty(n)
        self._library.motion_begin(self._address, self.state.ctypes.data, excess.ctypes.data)
        return excess

    def target(
        self,
        position: ArrayLike | Mapping[str, float],
        velocity: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
    ) -> tuple[str, ...]:
        """Set the target of the next cycles.

        Args:
            position: (n,), or by the name of a joint, where the others rest at their present targets.
            velocity: (n,) with which the target moves on until the next one, or a limit; by default it rests.
            acceleration: (n,) of the target for the next 0.05 s, if known; not by differences of noisy velocities.

        Returns:
            Joints whose targets exceeded limits, and were clamped.

        Raises:
            StateError: unknown or no joints, wrong shapes, numbers that are not finite, or angles more than a turn
                beyond limits, or without them two turns away: the last target stays.
        """
        names = self.arm.robot.joint_names
        positions, rates = read_target(names, position, velocity)
        second = np.array(
            real_array(np.zeros(len(names)) if acceleration is None else acceleration, "acceleration", (len(names),))
        )
        refuse_degrees(self.arm.robot, positions, self.limits.lower, self.limits.upper, self.state[0])
        pointers = (x.ctypes.data for x in (positions, rates, second))
        self._library.motion_aim(self._address, None, 0, *pointers)
        return self.limits.exceeded(names, positions, rates)

    def follow(self, times: ArrayLike, positions: ArrayLike) -> None:
        """Follow a chunk of positions from its first time on, instead of targets and of the rest of earlier chunks.

        Motion goes on through the seam without rest, and ends at rest at the last position, unless a newer chunk comes
        before. Between positions, targets move along monotone cubics; a fast motion within limits may lag behind them.

        Args:
            times: (K,) :attr:`time` of each position, s, increasing; for a latency, later by it. A first time that is
                past joins the motion at the present time.
            positions: (K, n); those beyond limits are clamped in passing.

        Raises:
            StateError: wrong shapes, more than 1000 positions, times that do not increase, or numbers as for a target:
                the chunks before stay.
        """
        t, q = read_chunk(self.arm.robot.n, times, positions)
        refuse_degrees(self.arm.robot, q, self.limits.lower, self.limits.upper, self.state[0])
        if reason := self._library.motion_aim(self._address, t.ctypes.data, len(t), q.ctypes.data, None, None):
            raise StateError(reason.decode())

    def stop(self) -> None:
        """Come to rest, each joint as soon as it can."""
        self._library.motion_aim(self._address, None, 0, None, None, None)

    def step(self, cycles: int | None = None) -> Array:
        """Run a cycle; returns q … qdddd (5, n) at its end, or those (cycles, 5, n) of so many cycles."""
        states = np.empty((1 if cycles is None else count(cycles, "cycles", 1), *self.state.shape))
        self.time = float(self._library.motion_step(self._address, len(states), states.ctypes.data))
        self.state = states[-1].copy()
        return states if cycles is not None else self.state

    @property
    def arrived(self) -> bool:
        """True if all joints rest at their targets."""
        return bool(self._library.motion_arrived(self._address))
