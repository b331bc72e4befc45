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
"""Maximum default rise time of the acceleration, s (``bench/online_motion.py``)."""

FILTERED = 11.5
"""Minimum joint frequency that the default smoothing damps, Hz (``bench/online_motion.py``)."""

_CONFIGURATIONS = 64


class MotionLimits(NamedTuple):
    """Limits of online trajectories, each (n,): overrides, limits of the robot, or defaults.

    Attributes:
        lower, upper: rad or m.
        velocity, acceleration, jerk, snap: rad or m, per s … s⁴.
        smoothing: length of the second moving average, s.
        chosen: description of the defaults in SI units with their reason; "" without defaults.
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
        """Rows of eom::MotionLimits by joint for cycles of ``period`` s."""
        return np.column_stack([*self[:-1], np.full(len(self.lower), period)])

    def exceeded(self, joints: Sequence[str], positions: Array, velocities: Array | None = None) -> tuple[str, ...]:
        """Names of joints with targets beyond limits; positions (…, n) and velocities (n,) are clamped in place."""
        over = ((positions < self.lower) | (positions > self.upper)).reshape(-1, len(joints)).any(axis=0)
        fast = np.abs(np.zeros(len(joints)) if velocities is None else velocities) > self.velocity
        return tuple(name for name, clamped in zip(joints, over | fast, strict=True) if clamped)


def limits_of_joints(arm: ElasticArm) -> list[Array]:
    """Lower, upper, velocity, acceleration and jerk limits (n,) of the joints; infinite without a limit."""
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
    """Default length of the second average, s, for a lowest joint frequency, Hz, zero without springs.

    It is :data:`SMOOTHING` or one period, whichever is shorter, because an average over a period removes its frequency;
    from :data:`FILTERED` on, it is at least three quarters of a period. For lower frequencies, the delay would cost
    more than the reduced vibration gains.
    """
    period = 1 / max(frequency, FILTERED)
    return max(min(SMOOTHING, period), 0.75 * period if frequency >= FILTERED else 0.0)


@lru_cache(maxsize=8)
def braking(arm: ElasticArm) -> Array:
    """Maximum deceleration of each joint (n,): its acceleration limit.

    Without that limit, twice the acceleration that the maximum efforts of all joints and motors and the weight cause
    together, over random configurations, to six digits. For some milliseconds, springs decelerate links faster than
    motors could, 1.5 times as fast in minimum-time motions. Infinite without an effort limit of the joint.
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
    """Limits of online trajectories of an arm: overrides, limits of the robot, or defaults.

    With the default jerk, the acceleration A rises in the shortest of 1/f, :data:`RAMP` and V/A, with the lowest
    frequency f of the links on their springs. The default snap is S = 2 J/T with T = :data:`SMOOTHING`. The default
    smoothing is :func:`smoothing_for` f.

    Args:
        arm: the arm.
        limits: overrides by the names of :class:`MotionLimits`, a number or (n,) each.

    Raises:
        StateError: a limit is invalid, or a joint has no velocity or acceleration limit. With joint friction and a
            spring, the acceleration limit must be that of the robot.
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
    rough = [
        joint.name
        for joint in arm.robot.independent_joints
        if arm.robot.joint_friction and joint.friction > 0 and np.isfinite(joint.stiffness)
        if not np.isfinite(joint.limits.acceleration)
    ]
    if rough:
        raise StateError(
            f"{listed(rough)}: dry friction on a spring without a limit of acceleration: a reversal can exceed the "
            f"motor's effort; give each of these joints a limit in the robot's file (limits: {{acceleration: …}}), or "
            f"set joint_friction: ignored"
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
    # Worst case, with all joints at once. It leaves a margin for changes of inertia and weight.
    if (share := float(np.min(effort_rates / (inertia @ values["jerk"])))) < 1.0:
        values["jerk"] *= share
        chosen.append(f"jerk {_shown(values['jerk'])} for limits of effort rates")
    default("snap", 2 * values["jerk"] / SMOOTHING)
    default("smoothing", np.full(n, smoothing_for(frequency)))
    reason = f"a lowest joint frequency of {frequency:.3g} Hz" if frequency else "no joint frequency"
    return MotionLimits(**values, chosen=f"{', '.join(chosen)}, by default for {reason}" if chosen else "")


@lru_cache(maxsize=8)
def stop_limits(arm: ElasticArm) -> Array:
    """Limits (n, 8) of the joint stop in cycles of 1 ms, as rows of eom::MotionLimits.

    The acceleration is :func:`braking`, or :data:`UNKNOWN_BRAKING`; it rises within :data:`STOP_RAMP`, or as the jerk
    limit allows. Both averages are :data:`SMOOTHING` long, or :data:`SHORTEST_AVERAGE` without springs.
    """
    lower, upper, velocity, _, jerk = limits_of_joints(arm)
    fixed = 1e-9 * (lower == upper)
    velocity, A = (np.where(np.isfinite(x), x, UNKNOWN_BRAKING) for x in (velocity, braking(arm)))
    J = np.minimum(A / STOP_RAMP, jerk)
    average = SHORTEST_AVERAGE if arm.rigid.all() else SMOOTHING
    same = np.ones(len(J))
    return np.column_stack([lower - fixed, upper + fixed, velocity, A, J, 2 * J / average, average * same, 1e-3 * same])


def _shown(values: Array) -> str:
    """Numbers (n,) as text; a single number if all are equal."""
    return f"{values[0]:.4g}" if np.ptp(values) == 0 else np.array2string(values, precision=4)


def read_target(
    joints: Sequence[str], position: ArrayLike | Mapping[str, float], velocity: ArrayLike | None
) -> tuple[Array, Array]:
    """Target positions, NaN for unnamed joints, and velocities (n,); errors as for :meth:`OnlineTrajectory.target`."""
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
    """Online trajectory of an arm: target positions at any rate in, motion with continuous snap out.

    Each cycle moves towards the latest target within the limits of position, velocity, acceleration, jerk and snap of
    each joint, without overshoot. A time-optimal follower meets the limits up to the jerk, as in Ruckig (L. Berscheid,
    T. Kröger, 2021). Moving averages over 2 J/S and ``smoothing`` make its motion four times differentiable
    (L. Biagiotti, C. Melchiorri, 2012) and delay it by their lengths. Position noise of dense streams is averaged over
    at most 0.3 s, as long as this hides no motion.

    Attributes:
        arm: the arm.
        period: cycle period, s.
        limits: :class:`MotionLimits`; ``chosen`` describes the defaults.
        delay: (n,) delay by the averages, s; moving targets are met without delay.
        state: q … qdddd (5, n) after the last cycle.
        time: time of the cycles so far, s.
    """

    def __init__(self, arm: ElasticArm, period: float = 1e-3, limits: Mapping[str, ArrayLike] | None = None) -> None:
        """Start at rest at zero, or at the nearest position within limits.

        Args:
            arm: the arm.
            period: cycle period, s.
            limits: see :func:`motion_limits`.

        Raises:
            StateError: invalid limits.
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
        """Restart at rest at position q (n,), which becomes the target."""
        position = np.array(real_array(q, "q", (self.arm.robot.n,)))
        self._library.motion_begin(self._address, position.ctypes.data, None)
        self.state = np.vstack([position, np.zeros((4, len(position)))])

    def take_over(self, state: ArrayLike) -> Array:
        """Continue from any state q … qdddd (5, n), and stop unless a target is set.

        Position and velocity are continuous; acceleration, jerk and snap are replaced by the nearest values of a motion
        within limits. From extreme states, for example maximum acceleration with a jerk that increases it, the motion
        exceeds limits of acceleration or velocity for the length of the averages; jerk and snap stay within limits.

        Returns:
            (n,) relative excess of the given values or of the motion over the limits; zero within limits.
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
            position: (n,), or by joint name; other joints keep their targets.
            velocity: (n,) of a moving target, until the next target or a limit; zero by default.
            acceleration: (n,) of the target for the next 0.05 s, if known. Do not differentiate noisy velocities.

        Returns:
            Names of joints with targets beyond limits, which are clamped.

        Raises:
            StateError: unknown or no joints, wrong shapes, numbers that are not finite, or angles more than a turn
                beyond limits (two turns away without limits). The last target is unchanged.
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
        """Follow a chunk of positions from its first time on; it replaces targets and the remainder of earlier chunks.

        The motion continues through the seam without stopping. It ends at rest at the last position unless a newer
        chunk arrives first. Targets move along monotone cubics between positions; fast motions may lag.

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
        """Stop each joint as soon as possible."""
        self._library.motion_aim(self._address, None, 0, None, None, None)

    def step(self, cycles: int | None = None) -> Array:
        """Run one cycle, or ``cycles``; returns q … qdddd after it (5, n), or after each of them (cycles, 5, n)."""
        states = np.empty((1 if cycles is None else count(cycles, "cycles", 1), *self.state.shape))
        self.time = float(self._library.motion_step(self._address, len(states), states.ctypes.data))
        self.state = states[-1].copy()
        return states if cycles is not None else self.state

    @property
    def arrived(self) -> bool:
        """True if all joints rest at their targets."""
        return bool(self._library.motion_arrived(self._address))
