# SPDX-License-Identifier: Apache-2.0
"""Setpoints of the demo, and checks of the node's answers: counts, times, and deviations from two computations.

Each answer must equal the feedforward computed in this process, and agree with the closed form of the equations of
motion, which shares no code with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import Array
from ...control.fields import COMMAND_FIELDS, EFFORT_FIELDS, MOTOR_FIELDS, WRENCH_FIELDS
from ...elastic import ElasticArm
from ...equations import equations_of_motion
from ...exceptions import StiffnessError
from ...robot import Robot
from ...states import STATE_NAMES
from ...trajectory import paper_motion, paper_wrench

CLOSED_FORM_SAMPLES = 250
"""Largest number of answers compared with the closed form, which takes a millisecond each."""

REMEDY = "run again while the machine is idle, or with a lower --rate"
"""What to do where setpoints are late or lost."""

TOLERANCE = 1e-10
"""Largest relative deviation that passes: some hundred operations, in different orders."""


_NO_STATE = 2.0  # in place of a state of friction without presliding


class Plan:
    """Setpoints of the paper's motion and tool wrench, and the feedforward that is computed in this process.

    The wrench is scaled down where tension-only springs would go slack under it.

    Attributes:
        robot, arm: the robot, and the same with its springs and motors.
        rate: of the setpoints, Hz.
        t: their times (N,), s.
        states: q … qdddd (5, N, n).
        wrench: wrenches (3, N, 6 × number of tools) and two derivatives, moment first, in the tool frames, N m and N.
        share: share of the paper's wrench.
        command: feedforward.
        friction_state: (N, m) states of presliding friction along it, as of :meth:`.Friction.effort_jet`.
    """

    def __init__(self, robot: Robot, rate: float, duration: float) -> None:
        """Sample the motion for ``duration`` s; StiffnessError if springs go slack without a wrench, too."""
        self.robot, self.rate, self.arm = robot, rate, ElasticArm(robot)
        self.t = np.arange(round(rate * duration)) / rate
        self.states = np.stack(paper_motion(robot.n).derivatives(self.t))
        wrench = np.stack(paper_wrench(len(robot.tools)).derivatives(self.t, order=2))
        for self.share in (1.0, 0.5, 0.2, 0.1, 0.05, 0.0):
            self.wrench = self.share * wrench
            with suppress(*[StiffnessError] * (self.share > 0)):
                self.command = self.arm.feedforward(*self.states, wrench=self._wrench(slice(None)))
                break
        sliding, state = self.arm.side.presliding, self.arm.friction_states(*self.command[3:5])
        self.friction_state = np.where(sliding, state, _NO_STATE)
        if sliding.any():
            self.command = self.arm.feedforward(*self.states, wrench=self._wrench(slice(None)), friction_state=state)

    def closed_form(self, row: int) -> tuple[Array, ...]:
        """tau, taud, taudd (n,) of a setpoint by the closed form of the equations of motion, and effort (m,) of rotors.

        Those are of rotors that move with their links, in the complete rotor model; zero in the reduced one.
        """
        arm, robot, states = self.arm, self.robot, list(self.states[:, row])
        if arm.rotors is not None:
            robot = arm.rotors.dynamics.robot
            states = [np.concatenate([x, arm.gear_ratio * arm.motors_following(x)]) for x in states]
        efforts = equations_of_motion(robot, *states[:-1], wrench=self._wrench(row)).efforts(states[-1])
        rotor = np.zeros(len(arm.motor_joint)) if arm.rotors is None else arm.gear_ratio * efforts[0][self.robot.n :]
        return *(x[: self.robot.n] for x in efforts), rotor

    def arrays(self) -> dict[str, Any]:
        """Return times and setpoints as arrays, with the names that the player reads."""
        names, values = (*STATE_NAMES, *WRENCH_FIELDS), (*self.states, *self.wrench)
        return {"t": self.t, "joint_names": np.array(self.robot.joint_names), **dict(zip(names, values, strict=True))}

    def _wrench(self, rows: int | slice) -> list[Array]:
        return [W.reshape(*W.shape[:-1], *self.robot.wrench_shape) for W in self.wrench[:, rows]]


class RunChecks(NamedTuple):
    """Results of the checks of one run.

    Attributes:
        sent, received, lost, late: numbers of setpoints, of answers, of setpoints without an answer, and of setpoints
            sent more than one period late.
        rate: actual rate of setpoints, Hz.
        round_trip: median, 99th percentile and maximum of the time from setpoint to answer, s; NaN without answers.
        deviations: largest ones of all answers, relative to the largest value of each quantity; NaN if unknown.
        closed_form: indices of setpoints (K,), and tau, taud, taudd (K, n) by the closed form.
        backend: of the dynamics in the node.
    """

    sent: int
    received: int
    lost: int
    late: int
    rate: float
    round_trip: dict[str, float]
    deviations: dict[str, float]
    closed_form: tuple[Any, ...]
    backend: str

    @property
    def failures(self) -> list[str]:
        """Failed checks, one line each."""
        remedy = f": {REMEDY}" if self.received else ""
        lines = [f"{self.lost} of {self.sent} setpoints were not answered{remedy}"] if self.lost else []
        for name, value in self.deviations.items():
            if not value <= TOLERANCE:
                off = f"off by {value:.1e}, tolerance {TOLERANCE:.1e}"
                lines.append(f"{name}: {'no answers to compare' if np.isnan(value) else off}")
        return lines


def evaluate(plan: Plan, answers: Mapping[str, Array]) -> RunChecks:
    """Check the answers of a run, arrays of the player; rows without an answer are NaN."""
    sent, arrived = answers["sent"], np.isfinite(answers["round_trip"])
    trips = answers["round_trip"][arrived] if arrived.any() else np.array([np.nan])
    computed = zip(COMMAND_FIELDS, plan.command, strict=True)
    rows = np.unique(np.linspace(0, len(sent) - 1, CLOSED_FORM_SAMPLES).round().astype(int))
    *efforts, rotor = (np.array(x) for x in zip(*map(plan.closed_form, rows), strict=True))
    compared = {name: answers[name][rows] for name in COMMAND_FIELDS}
    return RunChecks(
        sent=len(sent),
        received=int(arrived.sum()),
        lost=int(np.sum(~arrived)),
        late=int(np.sum(sent - sent[0] - plan.t > 1 / plan.rate)),
        rate=(len(sent) - 1) / (sent[-1] - sent[0]),
        round_trip=dict(zip(("p50", "p99", "max"), np.percentile(trips, (50, 99, 100)).tolist(), strict=True)),
        deviations={
            "every answer against feedforward": _largest(
                [_relative(np.nan_to_num(answers[name] - x, nan=np.inf)[arrived], x) for name, x in computed]
            ),
            "all quantities against closed form": _largest([*_off_closed_form(plan, rows, compared, efforts, rotor)]),
        },
        closed_form=(rows, *efforts),
        backend=str(answers["backend"]) or "not reported",
    )


def _off_closed_form(
    plan: Plan, rows: NDArray[np.intp], answers: Mapping[str, Array], efforts: Sequence[Array], rotor: Array
) -> Iterator[float]:
    """Deviations of answers to some setpoints from efforts by the closed form, relative to the largest value.

    Efforts are compared directly. Motor motion is inserted into the spring laws, which must return these efforts and
    the nominal stiffness; motor efforts must be those of rotors, springs, gears and friction in this motion.
    """
    arm, links = plan.arm, plan.states[:3, rows]
    for field, x in zip(EFFORT_FIELDS, efforts, strict=True):
        yield _relative(answers[field] - x, x)
    position, velocity, acceleration = (answers[name] for name in MOTOR_FIELDS[:3])
    joint_side = [x.copy() for x in (position, velocity, acceleration)]
    if arm.transmission:
        joints, transmission = arm.transmission
        places = np.searchsorted(arm.motor_joint, joints)
        for x in joint_side:
            x[:, places] = x[:, places] @ transmission.matrix.T
    deltas = [x - link[:, arm.motor_joint] for x, link in zip(joint_side, links, strict=True)]
    commands = arm.stiffness_command((), links[0].shape) if arm.variable.any() else ()
    results = arm.functions("spring_efforts", *deltas, *commands, orders=3)
    springs, stiffness = results[:3], results[3:]
    # NaN where a deflection does not determine the effort: at rigid joints, and taudd of damped springs.
    for x, effort in zip(springs, efforts, strict=True):
        yield _relative(x - effort, effort)
    rigid, paired = arm.rigid[arm.motor_joint], arm.paired
    for delta, x in zip(deltas, links, strict=True):
        yield _relative(delta[:, rigid], x)
    for order, k in enumerate(stiffness):
        nominal = arm.stiffness[paired]
        scale = nominal * _largest(np.abs(deltas[order])) / _largest(np.abs(deltas[0]))
        yield _relative(k[:, paired] - (0.0 if order else nominal), scale)
    # Acceleration of the rotors relative to their links; in the reduced model, the absolute one.
    beyond = acceleration if arm.rotors is None else acceleration - arm.motors_following(links[2])
    # Efforts of the springs at the motors; rigid joints transmit those on the links.
    load = np.where(rigid, efforts[0][:, arm.motor_joint], arm.spring_set.loads(*deltas[:2]))
    if arm.transmission:
        load[:, places] = load[:, places] @ transmission.matrix
    friction = arm.friction.effort(velocity, plan.friction_state[rows])
    effort = rotor + arm.motor_inertia * beyond + arm.gear.load(load, velocity) + friction
    yield _relative(answers["motor_effort"] - effort, effort)


def _relative(difference: Array, scale: Array) -> float:
    """Return the largest difference over the largest entry of the scale; NaN if there is nothing to compare."""
    return _largest(np.abs(difference)) / (_largest(np.abs(scale)) or 1.0)


def _largest(values: ArrayLike) -> float:
    """Return the largest of all numbers; NaN if none is known."""
    return float(np.fmax.reduce(values, axis=None, initial=np.nan))
