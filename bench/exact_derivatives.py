# SPDX-License-Identifier: Apache-2.0
"""What exact taud and taudd are worth against differences of tau over a stream of setpoints.

Differences are of second order in the period of the stream: central ones need the setpoints to come, and thus a motion
known ahead; backward ones need the last three. Both feed the same flatness map; plants are MuJoCo's, with a PD of
70 rad/s at 4 kHz on the motors.
"""

from typing import NamedTuple

import numpy as np
from harness import Section, Settings, TimedTask, interleaved, rms
from mujoco_arms import DriveLoop, MujocoArm, held
from plants import arm_parameters, link_errors

from eom_dynamics import Dynamics, ElasticArm, load_robot, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.simulation.elastic_plant import ElasticPlant
from eom_dynamics.trajectory import paper_motion

ROBOTS = ("sea_planar_2r", "panda", "iiwa", 1, 2, 3)
"""Packaged robots, and seeds of random arms of 6 joints."""

RATES = (1000.0, 500.0, 200.0, 100.0, 50.0)
"""Of setpoints, Hz; drives interpolate commands below :data:`_HELD`, and hold them from there on."""

DECIMALS = (None, 6, 4)
"""Of setpoints q … qdddd in SI units; None for exact ones."""

_HELD = 500.0

_DRIVE_PERIOD = 2.5e-4

# States that are timed together, and setpoints before and after those that are sent, for differences.
_BATCH, _MORE = 1000, 3


class Streamed(NamedTuple):
    """A stream against the exact one.

    Attributes:
        rates, accelerations: root mean square error of taud and taudd over their root mean squares.
        bound: error of the largest taud of a joint at the setpoints, relative.
        effort: root mean square error of motor effort over its root mean square.
        link: root mean square error of the links, rad.
    """

    rates: float
    accelerations: float
    bound: float
    effort: float
    link: float


def derivatives(tau: Array, period: float, *, ahead: bool) -> tuple[Array, Array]:
    """Differences of efforts (N + 2 more, n) at the N setpoints that are sent: taud and taudd (N, n)."""

    def at(k: int) -> Array:
        return tau[_MORE + k : len(tau) - _MORE + k]

    if ahead:
        return (at(1) - at(-1)) / (2 * period), (at(1) - 2 * at(0) + at(-1)) / period**2
    return (
        (3 * at(0) - 4 * at(-1) + at(-2)) / (2 * period),
        (2 * at(0) - 5 * at(-1) + 4 * at(-2) - at(-3)) / period**2,
    )


class Arm:
    """An arm on the motion of the paper."""

    def __init__(self, name: str | int, duration: float) -> None:
        """Take the name of a packaged robot, or the seed of a random one."""
        self.plant = MujocoArm(name if isinstance(name, str) else arm_parameters(name), step=_DRIVE_PERIOD)
        robot = load_robot(name) if isinstance(name, str) else robot_from_parameters(arm_parameters(name))
        self.arm = ElasticArm(robot)
        self.known, self.motion, self.duration = ElasticPlant(self.arm), paper_motion(robot.n), duration

    def missed(self, rate: float) -> float:
        """Share of the largest taud of a joint that setpoints at a rate, Hz, do not hit."""
        fine, coarse = (
            np.max(np.abs(self.arm.dynamics.inverse_dynamics(*self.motion.derivatives(t))[1]), axis=0)
            for t in (np.arange(0.0, self.duration, step) for step in (1e-4, 1 / rate))
        )
        return float(np.max(1 - coarse / fine))

    def stream(self, rate: float, decimals: int | None, *, ahead: bool, differentiated: bool) -> Streamed:
        """Errors with setpoints at a rate.

        Args:
            rate: of setpoints, Hz.
            decimals: of setpoints.
            ahead: whether the motion is known ahead; else it is continued by the Taylor polynomial of a setpoint.
            differentiated: whether taud and taudd are differences of tau; else they are exact.
        """
        T, interpolates, efforts = 1 / rate, rate < _HELD, self.arm.dynamics.inverse_dynamics
        lead = T if interpolates else T / 2
        t = T * np.arange(-_MORE, round(self.duration * rate) + 1 + _MORE)
        states = np.stack(self.motion.derivatives(t + lead * ahead))
        if decimals is not None:
            states = np.round(states, decimals)
        if not ahead:
            states = np.stack(self.arm.ahead(lead, *states)[0])
        sent = slice(_MORE, len(t) - _MORE)
        taus = [x[sent] for x in efforts(*states)]
        if differentiated:
            taus[1:] = derivatives(efforts(*states)[0], T, ahead=ahead)
        exact = np.stack(self.motion.derivatives(t[sent] + lead))
        true = efforts(*exact)
        command, feedforward = self._command(states[:, sent], taus), self.arm.feedforward(*exact)
        options = {"duration": self.duration, "period": T, "drive": DriveLoop(_DRIVE_PERIOD)}
        _, away = link_errors(self.plant, held(T, *command), self.motion, interpolates=interpolates, **options)
        found, largest = (np.max(np.abs(x), axis=0) for x in (taus[1], true[1]))
        return Streamed(
            *(_relative(x, y) for x, y in zip(taus[1:], true[1:], strict=True)),
            float(np.max(np.abs(found / largest - 1))),
            _relative(command[0], feedforward.motor_effort),
            rms(away),
        )

    def _command(self, states: Array, taus: list[Array]) -> tuple[Array, Array, Array]:
        """Effort, position and velocity of the motors, the references as old as the samples of the drives."""
        at, age = self.arm.deflections(*taus), DriveLoop(_DRIVE_PERIOD).delay.position
        theta, thetad, thetadd = (x + y for x, y in zip(states, (at.delta, at.deltad, at.deltadd), strict=False))
        load = self.known.motor_load(self.known.springs.loads(at.delta, at.deltad), thetad)
        return (
            self.arm.motor_inertia * thetadd + load,
            theta - age * thetad + 0.5 * age**2 * thetadd,
            thetad - age * thetadd,
        )


def _share(x: float) -> str:
    return f"{x:.2g} ×" if x >= 1 else f"{100 * x:.2g} %" if x >= 1e-3 else f"{x:.0e}"


def _relative(found: Array, exact: Array) -> float:
    return rms(found - exact) / rms(exact)


def differences(section: Section, settings: Settings) -> None:
    """Stream the motion of the paper with exact derivatives and with differences."""
    arms = [Arm(name, 0.1 if settings.quick else 1.0) for name in (ROBOTS[1:2] if settings.quick else ROBOTS)]
    table = section.table(
        "differences of τ by the rate of setpoints: central ones, of a motion known ahead / backward ones",
        *("setpoints", "error of τ̇", "of τ̈", "of the largest τ̇", "of the motor effort"),
        "largest change of the link error against exact derivatives",
    )
    largest = 0.0
    for decimals in DECIMALS:
        for rate in RATES[:2] if settings.quick else RATES:
            cells: list[list[str]] = []
            for ahead in (True, False):
                pairs = [
                    [arm.stream(rate, decimals, ahead=ahead, differentiated=way) for way in (False, True)]
                    for arm in arms
                ]
                errors = np.max([found for _, found in pairs], axis=0)[:4]
                change = max((found.link / exact.link - 1 for exact, found in pairs), key=abs)
                if decimals != DECIMALS[-1]:
                    largest = max(largest, abs(change))
                cells.append([*map(_share, errors), f"{change:+.2%}"])
            digits = "exact" if decimals is None else f"{decimals} decimals"
            table.add(f"{digits}, {rate:g} Hz", *(" / ".join(both) for both in zip(*cells, strict=True)))
    timed = arms[min(1, len(arms) - 1)].arm.robot
    states = np.random.default_rng(0).normal(size=(5, _BATCH, timed.n))
    dynamics = {order: Dynamics(timed, order=order) for order in (0, 2)}
    tasks = {
        str(order): TimedTask(lambda each=each, order=order: each.inverse_dynamics(*states[: 3 + order]), _BATCH)
        for order, each in dynamics.items()
    }
    times = interleaved(tasks, settings.rounds)
    missed = max(arm.missed(RATES[-1]) for arm in arms)
    names = ", ".join(arm.arm.robot.name for arm in arms)
    section.text.append(
        f"Largest relative errors of {len(arms)} arms ({names}) on the motion of the paper. Drives interpolate "
        f"commands below {_HELD:g} Hz, and hold them from there on. Setpoints at {RATES[-1]:g} Hz miss up to "
        f"{missed:.0%} of the largest τ̇, whichever the derivative. Exact τ, τ̇ and τ̈ take "
        f"{times.ratio('2', '0'):.2g} times as long as τ alone ({timed.name}, a batch)."
    )
    section.promise(
        f"tracking by differences of τ, of setpoints of {DECIMALS[1]} decimals and more: within 1 % of exact ones",
        f"{largest:.2%}",
        largest < 0.01,
    )
