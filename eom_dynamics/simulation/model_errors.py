# SPDX-License-Identifier: Apache-2.0
"""Tracking with four feedforwards under model errors, with drives that hold or interpolate their commands.

All four have the same PD on the motors, kp = B w², kd = 2 B w, around references of one period:

| feedforward | theta_ref | thetad_ref | effort           |
|-------------|-----------|------------|------------------|
| rigid       | q         | qd         | B qdd + tau      |
| tau         | q + delta | qd         | B qdd + tau      |
| taud        | q + delta | qd + deltad| B qdd + tau      |
| taudd       | q + delta | qd + deltad| B thetadd + tau  |

with the deflections delta of the springs under tau, taud and taudd; the last is flatness. Friction and gear loss at the
velocity of the reference are part of all. Commands are ahead by their mean age, :meth:`Robot.command_lead_at`.

The feedback of the links by :func:`.outer_loop` adds efforts to any of them: it reads links and motors at the start of
a period, and acts in the next one after the delay of the drives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..arguments import not_negative, positive
from ..arrays import Array
from ..dynamics import Dynamics
from ..elastic import ElasticArm
from ..exceptions import RobotDescriptionError, StateError
from ..robot import Robot
from ..robot.model import DRIVE_INTERPOLATIONS
from .elastic_plant import ElasticPlant
from .feedforward_comparison import SupportsDerivatives, motor_references
from .integrators import rk4
from .outer_loop import lowest_frequency, squared_frequencies
from .perturbation import perturbed

WAYS = ("rigid", "tau", "taud", "taudd")
"""Feedforwards, in the order of all results."""

# Largest product of the step of the integrator, RK4, and the highest frequency of the arm: stable below 2.8.
_STEP = 1.0

# Rounding of the stretch of springs at their least stiffness.
_SLACK = 1e-9

# Bound on positions and velocities, rad or m, and per s.
_BOUND = 1e4


class ModelError(NamedTuple):
    """Errors of a model; relative errors are real over modelled value, minus 1.

    Attributes:
        stiffness, mass, rotor_inertia, friction: relative.
        delay: of the drives, real less named, s.
    """

    stiffness: float = 0.0
    mass: float = 0.0
    rotor_inertia: float = 0.0
    friction: float = 0.0
    delay: float = 0.0


@dataclass(frozen=True)
class Sweep:
    """Root mean square errors of the links over model errors.

    Attributes:
        robot: the model.
        errors: E model errors.
        rms: (E, 4) over time and joints, rad or m, as :data:`WAYS`; NaN where the motion leaves all bounds or a
            tension-only spring goes slack.
        period: of the commands, s.
        natural_frequency: of the motors' PD, rad/s.
        motion_frequency: of the motion, rms of qdd over that of qd, the largest of all joints, rad/s.
        resonance: lowest frequency of the links on their springs with motors at rest, during the motion, rad/s.
    """

    robot: Robot
    errors: tuple[ModelError, ...]
    rms: Array
    period: float
    natural_frequency: float
    motion_frequency: float
    resonance: float

    @property
    def lead(self) -> float:
        """Time by which commands are ahead, s: their mean age, as :attr:`Robot.command_lead`."""
        return replace(self.robot, command_period=self.period).command_lead

    def of(self, error: ModelError) -> Array:
        """(4,) root mean square errors under one model error."""
        row: Array = self.rms[self.errors.index(error)]
        return row


def sweep(
    robot: Robot,
    motion: SupportsDerivatives,
    start: float,
    end: float,
    errors: Sequence[ModelError],
    *,
    natural_frequency: float = 70.0,
    period: float = 1e-3,
    outer: Array | None = None,
    progress: Callable[[float], None] | None = None,
) -> Sweep:
    """Simulate arms with model errors under all feedforwards, from the exact state of the real arm.

    Args:
        robot: the model.
        motion: motion of the links.
        start, end: times, s.
        errors: model errors.
        natural_frequency: of the motors' PD, rad/s.
        period: of the commands, s; drives use them by :attr:`.Robot.drive_interpolation`.
        outer: F of :func:`.outer_loop`, feedback of the links; without, there is none.
        progress: is called with the time reached, s.

    Raises:
        RobotDescriptionError: the robot cannot be simulated; see :class:`ElasticPlant`.
        StateError: a number is out of range.
    """
    w, T = not_negative(natural_frequency, "natural_frequency"), positive(period, "period")
    count = int((end - start) / T + 1e-9)
    if count < 1:
        raise StateError(f"the motion must take at least a period of {T:g} s, takes {end - start:g} s")
    arms = _ErrorPlant(robot, errors)
    known = arms.known
    times = np.asarray(start + T * np.arange(count + 1), dtype=float)
    desired = [np.asarray(x) for x in motion.derivatives(times, order=2)]
    # By the error of the delay, at which the motion is that much earlier.
    delays = np.array([error.delay for error in errors])
    own, which = np.unique(delays, return_inverse=True)
    # Of each period the command, from which the next begins where drives interpolate.
    leads = times - T + DRIVE_INTERPOLATIONS[robot.drive_interpolation] * T
    commands = [_commands(known, motion, leads - delay) for delay in own]
    inertia = known.driven_inertia(desired[0][0])
    kp, kd = w**2 * inertia, 2 * w * inertia
    poses = desired[0][:: max(1, count // 50)]
    fastest, slowest = _highest_frequency(known, poses), lowest_frequency(known, poses)
    feedback = None if outer is None else _LinkFeedback(known, motion, times, outer, len(errors) * len(WAYS))
    steps = max(1, int(np.ceil(T * max(fastest, w) * 1.2 / _STEP)))
    y = np.repeat(arms.on_trajectory(motion.derivatives(start)), len(WAYS), axis=0)
    rows, h = len(y), T / steps
    squares, going = np.zeros(rows), np.ones(rows, dtype=bool)

    def command(k: int) -> Array:
        """Efforts, positions and velocities (3, rows, m), a row for each error and way."""
        at = [[part[k] for part in of_delay] for of_delay in commands]
        return np.stack([np.stack(parts)[which].reshape(rows, -1) for parts in zip(*at, strict=True)])

    former = command(0)
    for k in range(count):
        last = command(k + 1)
        if feedback is not None:
            last[0] += feedback.effort(k, y)
        first, former = former if robot.drive_interpolation == "linear" else last, last
        before = y

        def rate(t: float, y: Array, first: Array = first, slope: Array = (last - first) / T) -> Array:
            return arms.rate(y, first + t * slope, kp, kd)

        for step in range(steps):
            y = rk4(rate, step * h, y, h, 0)
        parts = known.parts(y)
        stretch = known.springs.stretch(known.deflection(parts.theta, parts.q))
        going &= np.all(np.abs(y) < _BOUND, axis=1) & np.all(stretch > -_SLACK, axis=1)
        # An arm that has left the validity of its model is frozen.
        y = np.where(going[:, np.newaxis], y, before)
        squares += np.mean((known.parts(y).q - desired[0][k + 1]) ** 2, axis=1)
        if progress is not None:
            progress((k + 1) * T)
    rms = np.where(going, np.sqrt(squares / count), np.nan).reshape(len(errors), len(WAYS))
    return Sweep(robot, tuple(errors), rms, T, w, _frequency(*desired[1:]), slowest)


class _ErrorPlant:
    """Arms with model errors side by side, each with all feedforwards, by the functions of the model alone.

    With factors s of stiffness, m of mass, b of rotors and c of friction, and the efforts p of the joints' own springs
    and friction, which have none,

        m (M qdd + C qd + Q_grav) + p = s f(delta),    b B thetadd = tau_m - load(s f(delta)) - c friction.
    """

    def __init__(self, robot: Robot, errors: Sequence[ModelError]) -> None:
        self.known = ElasticPlant(ElasticArm(robot))
        arm = self.known.arm
        if arm.rotors is not None:
            raise RobotDescriptionError(f"{robot.name}: rotor_model must be reduced for model errors, is complete")
        relative = np.repeat([error[:4] for error in errors], len(WAYS), axis=0).reshape(-1, 4)
        if np.any(relative <= -1):
            raise StateError(f"relative model errors must be above -1, the least is {np.min(relative):g}")
        self._s, self._m, self._b, self._c = (1 + relative.T)[..., np.newaxis]
        self._count = len(errors)
        massless = replace(perturbed(robot, mass=-1.0), gravity=np.zeros(3))
        has_own = robot.joint_friction or any(joint.constant_effort or joint.parallel_spring for joint in robot.joints)
        self._own = Dynamics(massless) if has_own else None
        self._rigid = self.known.rigid
        rotors = np.where(self._rigid, arm.motor_inertia, 0.0) @ self.known.joints
        self._added = self._b / self._m * rotors
        self._inertia = self._b * np.where(self._rigid, 1.0, arm.motor_inertia)

    def on_trajectory(self, state: Sequence[Array]) -> Array:
        """States (E, 2n + 2m) of the real arms on the trajectory."""
        known, arm, n = self.known, self.known.arm, self.known.arm.robot.n
        first = slice(None, None, len(WAYS))
        own = np.zeros((3, n)) if self._own is None else np.stack(self._own.inverse_dynamics(*state))
        modelled = np.stack(arm.dynamics.inverse_dynamics(*state)) - own
        tau = (self._m[first] * modelled[:, np.newaxis] + own[:, np.newaxis]) / self._s[first]
        found = arm.deflections(*tau)
        q, qd = (np.broadcast_to(x, (self._count, n)) for x in state[:2])
        unity = np.linalg.inv(known.geared).T
        theta, thetad = (
            np.where(self._rigid, x[:, arm.motor_joint], (x[:, arm.motor_joint] + delta) @ unity)
            for x, delta in ((q, found.delta), (qd, found.deltad))
        )
        return np.concatenate([q, theta, qd, thetad], axis=1)

    def rate(self, y: Array, command: Array, kp: Array, kd: Array) -> Array:
        """Time derivative of all states under efforts, and PD around positions and velocities, of a command."""
        known, arm = self.known, self.known.arm
        q, theta, qd, thetad = known.parts(y)
        effort, position, velocity = command
        effort = effort + kp * (position - theta) + kd * (velocity - thetad)
        spring = self._s * known.springs.loads(known.deflection(theta, q), known.deflection(thetad, qd))
        friction = known.motor_load(np.zeros_like(spring), thetad)
        on_motors = effort - (known.motor_load(spring, thetad) + (self._c - 1) * friction)
        on_links = (spring + np.where(self._rigid, on_motors, 0.0)) @ known.joints
        own = 0.0 if self._own is None else self._own.effort(q, qd, np.zeros_like(q))
        qdd = arm.dynamics.forward_dynamics(q, qd, (on_links - own) / self._m + own, added_inertia=self._added)
        thetadd = np.where(self._rigid, qdd[:, arm.motor_joint], on_motors / self._inertia)
        return np.concatenate([qd, thetad, qdd, thetadd], axis=1)


class _LinkFeedback:
    """Efforts of the feedback F of links and motors in each period, by their state some periods before."""

    def __init__(self, known: ElasticPlant, motion: SupportsDerivatives, times: Array, F: Array, rows: int) -> None:
        self._known, self._F, self._free = known, F, ~known.rigid
        self._references = known.parts(known.on_trajectory(*motion.derivatives(times)))
        self._integral, self._period = np.zeros((rows, known.arm.robot.n)), times[1] - times[0]
        late = round(known.arm.robot.drive_delay / self._period)
        self._waiting = deque([np.zeros((rows, len(F)))] * late)

    def effort(self, k: int, y: Array) -> Array:
        """Efforts (rows, m) in period k, with states y at its start."""
        q, theta, qd, thetad = (now - then[k] for now, then in zip(self._known.parts(y), self._references, strict=True))
        self._integral += self._period * q
        state = np.concatenate([q, theta[:, self._free], qd, thetad[:, self._free], self._integral], axis=1)
        self._waiting.append(-state @ self._F.T)
        return self._waiting.popleft()


def _commands(known: ElasticPlant, motion: SupportsDerivatives, t: Array) -> tuple[Array, Array, Array]:
    """Efforts, positions and velocities (N, 4, m) of the motors for a motion at times t (N,)."""
    y, position, velocity, effort = motor_references(known, motion.derivatives(t))
    return (
        np.stack([effort(velocity), effort(velocity), effort(y.motor_velocity), y.motor_effort], axis=1),
        np.stack([position, *[y.motor_position] * 3], axis=1),
        np.stack([velocity, velocity, *[y.motor_velocity] * 2], axis=1),
    )


def _frequency(qd: Array, qdd: Array) -> float:
    rates, accelerations = (np.sqrt(np.mean(x**2, axis=0)) for x in (qd, qdd))
    moving = rates > 0
    return float(np.max(accelerations[moving] / rates[moving])) if moving.any() else 0.0


def _highest_frequency(known: ElasticPlant, q: Array) -> float:
    """Highest frequency of links at q (N, n) and motors on unloaded springs, rad/s."""
    elastic = ~known.rigid
    K = known.springs.tangents(np.zeros(len(elastic)))[0][np.ix_(elastic, elastic)]
    of_motors = np.linalg.norm(K / known.arm.motor_inertia[elastic, np.newaxis], 2, axis=(0, 1))
    return float(np.sqrt(np.max(squared_frequencies(known, q)) + of_motors))
