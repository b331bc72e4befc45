# SPDX-License-Identifier: Apache-2.0
"""Tracking of the paper's motion: without feedback, with springs of every kind; and by differences of efforts.

The simulation without feedback, test/helpers/open_loop_cases.py, is independent of the feedforward. Differences of
efforts show the benefit of exact taud and taudd over a stream of setpoints. They are of second order in the period of
the stream: central differences need future setpoints, and so a known motion; backward differences need the last three.
Both feed the same flatness map; plants are MuJoCo's, with a PD of 70 rad/s at 4 kHz on the motors.
"""

import time
from functools import partial
from typing import NamedTuple

import numpy as np
from harness import Section, Settings, TimedTask, interleaved, rms
from mujoco_arms import DriveLoop, MujocoArm, held
from open_loop_cases import CASES, Feedforward
from open_loop_cases import link_errors as errors_of_case
from plants import arm_parameters, link_errors

from eom_dynamics import Dynamics, ElasticArm, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant
from eom_dynamics.trajectory import paper_motion

# Time, s, maximum error of any link until then, rad, and minimum error with rigid feedforward, rad.
BARS = ((1.0, 1e-10), (5.0, 1e-6))
RIGID = (1.0, 1e-3)
GONE = 0.1  # error that ends a simulation with rigid feedforward, rad


def open_loop(section: Section, settings: Settings) -> None:
    """Simulate every kind of spring without feedback."""
    start = time.perf_counter()
    duration = 0.05 if settings.quick else BARS[-1][0]
    columns = [*(f"flatness, {t:g} s" for t, _ in BARS), f"rigid, {RIGID[0]:g} s"]
    table = section.table("largest error of any link, rad", "springs", *columns)
    worst, least = [0.0] * len(BARS), float("inf")
    for name, make in CASES.items():
        case = make()
        errors = errors_of_case(Feedforward(case), duration)
        row = [max(error for t, error in errors.items() if t <= until) for until, _ in BARS]
        rigid = max(errors_of_case(Feedforward(case, rigid=True), min(duration, RIGID[0]), give_up=GONE).values())
        worst, least = [max(x, y) for x, y in zip(worst, row, strict=True)], min(least, rigid)
        table.add(name, *(f"{x:.1e}" for x in row), f"{rigid:.1e}" if rigid < GONE else f"> {GONE:g}")
    for (t, most), x in zip(BARS, worst, strict=True):
        section.promise(f"springs of every kind, flatness, {t:g} s: within {most:.0e} rad", f"{x:.1e}", x < most)
    if not settings.quick:
        promise = f"springs of every kind, rigid, {RIGID[0]:g} s: off by more than {RIGID[1]:.0e} rad"
        section.promise(promise, f"at least {least:.1e}", least > RIGID[1])
    section.text.append(f"{duration:g} s of the paper's motion, in {(time.perf_counter() - start) / 60:.0f} minutes.")


# --- Differences ------------------------------------------------------------------------

ROBOTS = ("sea_planar_2r", "panda", "iiwa", 1, 2, 3)  # packaged robots, and seeds of random arms of 6 joints
RATES = (1000.0, 500.0, 200.0, 100.0, 50.0)  # of setpoints, Hz
HELD = 500.0  # maximum rate of interpolating drives; from this rate on, they hold commands
DECIMALS = (None, 6, 4)  # of setpoints q … qdddd in SI units; None for exact setpoints
DRIVE_PERIOD = 2.5e-4
BATCH, MORE = 1000, 3  # states that are timed together; additional setpoints before and after


class Streamed(NamedTuple):
    """Errors of a stream against the exact one."""

    rates: float  # root mean square error of taud over its root mean square
    accelerations: float  # root mean square error of taudd over its root mean square
    bound: float  # error of the largest taud of a joint at the setpoints, relative
    effort: float  # root mean square error of motor effort over its root mean square
    link: float  # root mean square error of the links, rad


def derivatives(tau: Array, period: float, *, ahead: bool) -> tuple[Array, Array]:
    """Differences of efforts (N + 2 more, n) at the N setpoints that are sent: taud and taudd (N, n)."""

    def at(k: int) -> Array:
        return tau[MORE + k : len(tau) - MORE + k]

    if ahead:
        return (at(1) - at(-1)) / (2 * period), (at(1) - 2 * at(0) + at(-1)) / period**2
    rates = (3 * at(0) - 4 * at(-1) + at(-2)) / (2 * period)
    return rates, (2 * at(0) - 5 * at(-1) + 4 * at(-2) - at(-3)) / period**2


class Arm:
    """A packaged or random arm on the motion of the paper."""

    def __init__(self, name: str | int, duration: float) -> None:
        parameters = arm_parameters(name)
        self.plant = MujocoArm(parameters, step=DRIVE_PERIOD)
        self.arm = ElasticArm(robot_from_parameters(parameters))
        self.known, self.motion, self.duration = ElasticPlant(self.arm), paper_motion(self.arm.robot.n), duration

    def missed(self, rate: float) -> float:
        """Share of the largest taud of a joint that setpoints at ``rate``, Hz, miss."""
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
        T, interpolates, efforts = 1 / rate, rate < HELD, self.arm.dynamics.inverse_dynamics
        lead = T if interpolates else T / 2
        t = T * np.arange(-MORE, round(self.duration * rate) + 1 + MORE)
        states = np.stack(self.motion.derivatives(t + lead * ahead))
        if decimals is not None:
            states = np.round(states, decimals)
        if not ahead:
            states = np.stack(self.arm.ahead(lead, *states)[0])
        sent = slice(MORE, len(t) - MORE)
        taus = [x[sent] for x in efforts(*states)]
        if differentiated:
            taus[1:] = derivatives(efforts(*states)[0], T, ahead=ahead)
        exact = np.stack(self.motion.derivatives(t[sent] + lead))
        true = efforts(*exact)
        command, feedforward = self._command(states[:, sent], taus), self.arm.feedforward(*exact)
        options = {"duration": self.duration, "period": T, "drive": DriveLoop(DRIVE_PERIOD)}
        _, away = link_errors(self.plant, held(T, *command), self.motion, interpolates=interpolates, **options)
        found, largest = (np.max(np.abs(x), axis=0) for x in (taus[1], true[1]))
        bound, pairs = float(np.max(np.abs(found / largest - 1))), zip(taus[1:], true[1:], strict=True)
        effort = _relative(command[0], feedforward.motor_effort)
        return Streamed(*(_relative(*both) for both in pairs), bound, effort, rms(away))

    def _command(self, states: Array, taus: list[Array]) -> tuple[Array, Array, Array]:
        """Effort, position and velocity of the motors, the references as old as the samples of the drives."""
        at, age = self.arm.deflections(*taus), DriveLoop(DRIVE_PERIOD).delay.position
        theta, thetad, thetadd = (x + y for x, y in zip(states, (at.delta, at.deltad, at.deltadd), strict=False))
        load = self.known.motor_load(self.known.springs.loads(at.delta, at.deltad), thetad)
        effort = self.arm.motor_inertia * thetadd + load
        return effort, theta - age * thetad + 0.5 * age**2 * thetadd, thetad - age * thetadd


def _share(x: float) -> str:
    return f"{x:.2g} ×" if x >= 1 else f"{100 * x:.2g} %" if x >= 1e-3 else f"{x:.0e}"


def _relative(found: Array, exact: Array) -> float:
    return rms(found - exact) / rms(exact)


def differences(section: Section, settings: Settings) -> None:
    """Stream the motion of the paper with exact derivatives and with differences."""
    arms = [Arm(name, 0.1 if settings.quick else 1.0) for name in (ROBOTS[1:2] if settings.quick else ROBOTS)]
    table = section.table(
        "differences of τ by the rate of setpoints: central (motion known ahead) / backward",
        *("setpoints", "error of τ̇", "of τ̈", "of the largest τ̇", "of the motor effort"),
        "largest change of the link error against exact derivatives",
    )
    largest = 0.0
    for decimals in DECIMALS:
        for rate in RATES[:2] if settings.quick else RATES:
            cells: list[list[str]] = []
            for ahead in (True, False):
                stream = {"ahead": ahead, "rate": rate, "decimals": decimals}
                pairs = [[arm.stream(**stream, differentiated=way) for way in (False, True)] for arm in arms]
                errors = np.max([found for _, found in pairs], axis=0)[:4]
                change = max((found.link / exact.link - 1 for exact, found in pairs), key=abs)
                if decimals != DECIMALS[-1]:
                    largest = max(largest, abs(change))
                cells.append([*map(_share, errors), f"{change:+.2%}"])
            digits = "exact" if decimals is None else f"{decimals} decimals"
            table.add(f"{digits}, {rate:g} Hz", *(" / ".join(both) for both in zip(*cells, strict=True)))
    timed = arms[min(1, len(arms) - 1)].arm.robot
    states = np.random.default_rng(0).normal(size=(5, BATCH, timed.n))
    tasks = {
        order: TimedTask(partial(Dynamics(timed, order=order).inverse_dynamics, *states[: 3 + order]), BATCH)
        for order in (0, 2)
    }
    times = interleaved(tasks, settings.rounds)
    missed = max(arm.missed(RATES[-1]) for arm in arms)
    names = ", ".join(arm.arm.robot.name for arm in arms)
    section.text.append(
        f"Largest relative errors of {len(arms)} arms ({names}) on the motion of the paper. Drives interpolate "
        f"commands below {HELD:g} Hz, and hold them from there on. Setpoints at {RATES[-1]:g} Hz miss up to "
        f"{missed:.0%} of the largest τ̇, whichever the derivative. Exact τ, τ̇ and τ̈ take "
        f"{times.ratio(2, 0):.2g} times as long as τ alone ({timed.name}, a batch)."
    )
    promise = (
        f"tracking by differences of τ, of setpoints of {DECIMALS[1]} decimals and more: within 1 % of exact setpoints"
    )
    section.promise(promise, f"{largest:.2%}", largest < 0.01)
