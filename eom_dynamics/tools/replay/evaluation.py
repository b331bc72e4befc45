# SPDX-License-Identifier: Apache-2.0
"""Commands for recorded setpoints, computed as in the node but in batches.

Setpoints that fail in a batch are evaluated one by one by :class:`.SetpointEvaluator`, which decides what is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array
from ...bags import Bag, Topic
from ...bags.layout import Stamps
from ...elastic import DriveCommand, ElasticArm, Feedforward, LimitCheck, LimitViolation
from ...elastic.limit_violations import MANY_TURNS, TURN
from ...exceptions import LimitError
from ...messages.fields import (
    BASE_FIELD,
    COMMAND_FIELDS,
    EFFORT_FIELDS,
    MOTOR_SETPOINT_FIELDS,
    STATE_FIELDS,
    STIFFNESS_FIELDS,
    WRENCH_FIELDS,
)
from ...messages.joint_order import JointOrder, JointOrders
from ...messages.payload_blend import read_payload
from ...messages.setpoint_to_command import EvaluatedCommand, SetpointEvaluator, is_held, refusal_reason
from ...messages.spatial import base_of_rows, force_is_unset
from ..recording_options import CommandOptions, Sampling
from .batch import Batch, Refusals
from .joint_states import FitFigures
from .sources import read_setpoints, recorded_payloads


@dataclass(frozen=True)
class Commands:
    """N commands for setpoints with the same joint names and frame.

    Attributes:
        stamps, frame: those of the setpoints.
        joint_names, motor_names: n and m of them, in the setpoints' order.
        values: by COMMAND_FIELDS, each (N, n) or (N, m), in that order.
        motor_setpoint: by MOTOR_SETPOINT_FIELDS, each (N, m), in that order, in the units of the drives.
        effort_command: (N, n) or (N, m), in the robot's order.
        held: (N,) whether a command repeats an earlier one, for a refused setpoint.
        lead: time after the setpoint of the motion that the commands are for, s.
        measured: (N, n) recorded efforts, or None.
    """

    stamps: Stamps
    frame: str
    joint_names: tuple[str, ...]
    motor_names: tuple[str, ...]
    values: dict[str, Array]
    motor_setpoint: dict[str, Array]
    effort_command: Array
    held: NDArray[np.bool_]
    lead: float = 0.0
    measured: Array | None = None

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, rows: NDArray[np.intp]) -> Commands:
        return replace(
            self,
            stamps=self.stamps[rows],
            values={name: values[rows] for name, values in self.values.items()},
            motor_setpoint={name: values[rows] for name, values in self.motor_setpoint.items()},
            effort_command=self.effort_command[rows],
            held=self.held[rows],
            measured=None if self.measured is None else self.measured[rows],
        )


@dataclass
class ExceededLimits:
    """Limits of joints and motors that commands exceed, before any clipping.

    Attributes:
        commands: number of commands that exceed a limit.
        worst: by joint or motor, and quantity.
    """

    commands: int = 0
    worst: dict[tuple[str, str], LimitViolation] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The number of commands, then the worst violation of each joint or motor and quantity; empty without any."""
        worst = list(map(str, sorted(self.worst.values(), key=lambda violation: -violation.ratio)))
        return [f"{self.commands:,} commands exceed limits, at worst:", *worst] if worst else []

    def add(self, exceeded: tuple[LimitViolation, ...], commands: int) -> None:
        """Add the violations of some commands."""
        self.commands += commands
        for violation in exceeded:
            key = violation.name, violation.quantity
            if key not in self.worst or violation.ratio > self.worst[key].ratio:
                self.worst[key] = violation


class _Rows:
    """Commands of N setpoints, in the robot's order of joints and motors.

    Attributes:
        efforts, motors: (3, N, n) and (4, N, m), by EFFORT_FIELDS and MOTOR_FIELDS.
        sent: in the units of drives; parts of those where the robot has none of its own.
        good, held: (N,) which of them are computed, and which are refused, and answered with an earlier one.
    """

    def __init__(self, arm: ElasticArm, count: int) -> None:
        n, m = arm.robot.n, len(arm.motor_names)
        self.efforts, self.motors = np.empty((3, count, n)), np.empty((4, count, m))
        position, velocity, _, effort = self.motors
        self.sent = DriveCommand(position, velocity, effort, *self.efforts[:2])
        if arm.converts:
            self.sent = DriveCommand(*np.empty((3, count, m)), *np.empty((2, count, n)))
        self.good, self.held = np.zeros((2, count), dtype=bool)

    def command(self, rows: NDArray[np.intp]) -> Feedforward:
        """The commands at some rows."""
        return Feedforward(*self.efforts[:, rows], *self.motors[:, rows])


class Evaluation:
    """Computes commands for one arm, and counts the setpoints that it refuses.

    Attributes:
        refusals: by reason.
        violations: of limits.
        figures: errors of the fit to measured positions.
    """

    def __init__(self, arm: ElasticArm, options: CommandOptions | None = None, lead: float = 0.0) -> None:
        """Prepare for an arm; ``lead`` is that of the commands, s."""
        self.arm, self.refusals, self.violations, self.figures = (
            arm,
            Refusals(),
            ExceededLimits(),
            FitFigures(arm.robot.n),
        )
        self._options, self._lead = options or CommandOptions(), lead
        self._evaluator = SetpointEvaluator(arm, lead=lead)
        self._orders = JointOrders(arm)
        self._payloads: list[tuple[int, Any]] = []
        self._one_by_one = arm.has_memory
        self._limits = LimitCheck(arm)
        self._last: Commands | None = None
        # Least and largest positions, rad or m.
        self._least, self._most = np.full((2, arm.robot.n), [[np.inf], [-np.inf]])
        # Largest ratio to a limit, by reason of refusal.
        self._worst_refused: dict[str, float] = {}

    def of_topic(self, bag: Bag, topic: Topic, sampling: Sampling) -> Iterator[tuple[Batch, Iterator[Commands]]]:
        """Yield the setpoints of a topic with the commands for them, to be used up before the next setpoints.

        Arguments as of :func:`.sources.read_setpoints`.
        """
        self._payloads = recorded_payloads(bag, topic, self.refusals)
        # Deflections with dampers, presliding friction, and payloads that change, go on from one setpoint to the next.
        self._one_by_one |= bool(self._payloads)
        for batch in read_setpoints(bag, topic, self.arm.robot, sampling, self.refusals, self.figures):
            yield batch, self.commands(batch)

    def commands(self, batch: Batch) -> Iterator[Commands]:
        """Compute the commands of setpoints, in order, without those that are refused and not held."""
        count, made = len(batch), _Rows(self.arm, len(batch))
        order = None
        try:
            order = self._orders.of(batch.names)
            if not self._one_by_one and self._lengths_fit(batch, order):
                made.good = self._together(batch, order, made)
        except Exception:
            pass  # caused by one setpoint or by all; one by one shows which of them are good
        for row in np.flatnonzero(~made.good).tolist():
            try:
                command = self._alone(batch, row)
                made.efforts[:, row], made.motors[:, row] = command.efforts, command.motors
                for values, own in zip(made.sent, command.sent or (), strict=command.sent is not None):
                    values[row] = own
                made.good[row] = True
            except Exception as error:  # the node survives an internal error, too
                reason = self._limits_reason(error) if isinstance(error, LimitError) else refusal_reason(error)
                self.refusals.add(reason, int(batch.stamps.recorded[row]))
                made.held[row] = is_held(error, self._options.hold_last_command)
        first = int(np.argmax(made.good)) if made.good.any() else count
        if made.held[:first].any() and self._last is not None:
            # The last good command of an earlier batch, for refused setpoints of this one.
            rows = np.flatnonzero(made.held[:first])
            again, held = self._last[np.zeros(len(rows), dtype=np.intp)], np.ones(len(rows), dtype=bool)
            yield replace(again, stamps=batch.stamps[rows], frame=batch.frame, held=held, measured=None)
        if order is not None and first < count:
            yield self._result(batch, order, made)

    def far(self) -> list[str]:
        """A line on the joint without limits that moves furthest, if that is over many turns; not of damped springs."""
        n, limits = self.arm.robot.n, self._limits
        free = np.isinf(limits.lower[:n]) & np.isinf(limits.upper[:n]) & np.isfinite(limits.turn)
        moved = np.where(free, self._most - self._least, 0.0)
        k = int(np.argmax(moved))
        if moved[k] <= MANY_TURNS:
            return []
        turns = f"{self.arm.robot.joint_names[k]} moves over {moved[k] / TURN:.3g} turns"
        return [f"{turns}; if that was in degrees: angles must be in rad"]

    def _limits_reason(self, error: LimitError) -> str:
        """The reason without values, which differ from setpoint to setpoint; keeps the worst of them as its detail."""
        reason = f"exceeds limits, most of all {error.worst}"
        if error.ratio > self._worst_refused.get(reason, 0.0):
            self._worst_refused[reason] = error.ratio
            self.refusals.details[reason] = f" (at worst {error.numbers}); --limits warn computes commands all the same"
        return reason

    def _alone(self, batch: Batch, row: int) -> EvaluatedCommand:
        stamp, recorded = int(batch.stamps.header[row]), int(batch.stamps.recorded[row])
        while self._payloads and self._payloads[0][0] <= recorded:
            self._take_payload(*self._payloads.pop(0))
        self._evaluator.clock = lambda: recorded
        command = self._evaluator.evaluate(batch.message(row), stamp=stamp, limit_policy=self._options.limits)
        self._evaluator.commit()
        if command.violations:
            self.violations.add(command.violations, 1)
        return command

    def _take_payload(self, recorded: int, message: Any) -> None:
        """Have a tool carry a payload from the next setpoint on, unless the node refused it."""
        try:
            self._evaluator.payload.change(read_payload(message), message.blend_time)
        except Exception as error:
            reason = refusal_reason(error).removeprefix("payload: ")
            self.refusals.add(f"payload: {reason}", recorded)

    def _lengths_fit(self, batch: Batch, order: JointOrder) -> bool:
        n, tools = len(order.names), len(self.arm.robot.tools)
        stiffness = {batch.entries(name) for name in STIFFNESS_FIELDS}
        return (
            all(batch.entries(name) == n for name in STATE_FIELDS)
            and all(batch.entries(name) in (0, tools) for name in WRENCH_FIELDS)
            and batch.entries(BASE_FIELD) <= 1
            and stiffness <= {0, n}
            and (batch.entries("stiffness") == n or stiffness == {0})
        )

    def _together(self, batch: Batch, order: JointOrder, made: _Rows) -> NDArray[np.bool_]:
        """Compute the commands of all setpoints whose numbers are finite; returns (N,) which are done."""
        numbers = {name: values for name, values in batch.fields.items() if batch.entries(name)}
        done = np.ones(len(batch), dtype=bool)
        for values in numbers.values():
            # Where stiffness is not commanded, an entry of it may be anything; the evaluator handles that one by one.
            done &= np.isfinite(values).reshape(len(batch), -1).all(axis=1)
        rows = slice(None) if done.all() else np.flatnonzero(done)

        def given(fields: Sequence[str]) -> list[Array]:
            """The fields, zero where they are empty; none where all are."""
            shapes = [numbers[name].shape[1:] for name in fields if name in numbers]
            return [numbers[name][rows] if name in numbers else np.zeros(shapes[0]) for name in fields if shapes]

        states, stiffness = (list(map(order.to_robot, given(fields))) for fields in (STATE_FIELDS, STIFFNESS_FIELDS))
        self._least = np.minimum(self._least, np.min(states[0], axis=0, initial=np.inf))
        self._most = np.maximum(self._most, np.max(states[0], axis=0, initial=-np.inf))
        one_tool = len(self.arm.robot.tools) == 1
        wrench = [W[..., 0, :] if one_tool else W for W in given(WRENCH_FIELDS)]
        bases = given([BASE_FIELD])
        base = None
        if bases:
            vectors = np.moveaxis(bases[0][:, 0], 0, 1)
            # The evaluator refuses these one by one.
            done[rows] &= ~force_is_unset(vectors)
            base = base_of_rows(vectors)
        with np.errstate(all="ignore"):
            command = self.arm.feedforward(
                *states, wrench=wrench, commanded_stiffness=stiffness, base=base, lead=self._lead
            )
            made.efforts[:, rows], made.motors[:, rows] = command[: len(EFFORT_FIELDS)], command[len(EFFORT_FIELDS) :]
            # Rows that were not computed hold anything.
            done &= np.isfinite(made.efforts).all(axis=(0, 2)) & np.isfinite(made.motors).all(axis=(0, 2))
            if self._limits.limited and self._options.limits != "ignore":
                self._limit([x[done[rows]] for x in states], np.flatnonzero(done), made, done)
            if self.arm.converts and done.any():
                self._send([x[done[rows]] for x in states], np.flatnonzero(done), made, done)
        return done

    def _send(self, states: list[Array], rows: NDArray[np.intp], made: _Rows, done: NDArray[np.bool_]) -> None:
        """Compute what drives are sent for the commands at some rows, which are within limits, or clipped.

        Those that overflow are marked as not done, to be refused.
        """
        later = self.arm.ahead(self._lead, *states)[0] if self._lead else states
        for values, own in zip(made.sent, self.arm.drive_command(made.command(rows), *later[:3]), strict=True):
            values[rows] = own
            done[rows] &= np.isfinite(own).all(axis=1)

    def _limit(self, states: list[Array], rows: NDArray[np.intp], made: _Rows, done: NDArray[np.bool_]) -> None:
        """Report or clip the commands at some rows that exceed limits, or mark them as not done, to be refused."""
        command = made.command(rows)
        over = self._limits.violated(np.concatenate((*states, *command), axis=1))
        if not over.any():
            return
        refused = over if self._options.limits == "refuse" else over & self._limits.far(states[0]).any(axis=1)
        if refused.any():
            # The evaluator says why, one by one.
            done[rows[refused]] = False
            self._limit([x[~refused] for x in states], rows[~refused], made, done)
            return
        self.violations.add(self._limits.violations(states, command), int(over.sum()))
        if self._options.limits == "clip":
            clipped = self._limits.clipped(Feedforward(*(x[over] for x in command)))
            made.efforts[0, rows[over]], made.motors[-1, rows[over]] = clipped.tau, clipped.motor_effort

    def _result(self, batch: Batch, order: JointOrder, made: _Rows) -> Commands:
        """The commands from the first good one on, with held ones between them."""
        # The last good command up to each row.
        sources = np.maximum.accumulate(np.where(made.good, np.arange(len(batch)), -1))
        kept = np.flatnonzero((made.good | made.held) & (sources >= 0))
        values = (*order.to_message(made.efforts), *order.motors_to_message(made.motors))
        everything = Commands(
            batch.stamps,
            batch.frame,
            tuple(order.names),
            tuple(order.motor_names),
            dict(zip(COMMAND_FIELDS, values, strict=True)),
            {name: order.motors_to_message(getattr(made.sent, name)) for name in MOTOR_SETPOINT_FIELDS},
            made.sent.effort if self._options.effort_command == "motor" else made.sent.joint_effort,
            made.held,
            self._lead,
            batch.measured,
        )
        self._last = everything[np.flatnonzero(made.good)[-1:]]
        if len(kept) == len(batch) and not made.held.any():
            return everything
        measured = None if batch.measured is None else batch.measured[kept]
        return replace(everything[sources[kept]], stamps=batch.stamps[kept], held=made.held[kept], measured=measured)
