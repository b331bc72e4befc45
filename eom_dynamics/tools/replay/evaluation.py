# SPDX-License-Identifier: Apache-2.0
"""Commands for recorded setpoints, computed by the control loop of the node at the times of recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES, Array
from ...codegen.floating_programs import IMU_NAMES
from ...control.control_loop import EXCEEDS, Refusal
from ...control.fields import (
    BASE_FIELD,
    COMMAND_FIELDS,
    MOTOR_SETPOINT_FIELDS,
    STATE_FIELDS,
    STIFFNESS_FIELDS,
    WRENCH_FIELDS,
)
from ...control.joint_order import JointOrder
from ...control.robot_table import RobotTable
from ...control.setpoint_loop import EarlySetpointError, SetpointLoop
from ...control.setpoint_to_command import SetpointEvaluator, refusal_reason
from ...control.settings import LONGEST_GAP, settings_at
from ...control.spatial import force_is_unset, read_payload
from ...elastic import ElasticArm, Feedforward, LimitCheck, LimitViolation
from ...elastic.drive_programs import DRIVE_NAMES
from ...elastic.motor_programs import MOTOR_NAMES, STIFFNESS_NAMES
from ...exceptions import LimitError, StateError, StiffnessError
from ...recordings import Sampling, renaming_to
from ...recordings.bags import Bag, Topic
from ...recordings.bags.types import SETPOINT
from ...recordings.fitted_motion import FitFigures, read_setpoints, recorded_payloads, recorded_responses
from ...recordings.streams import Refusals, Stream
from ..options import CommandOptions

# Period of cycles without setpoints, ns.
_PERIOD = 1_000_000

# Time between stamp and recording, ns, above which stamps are of another clock, for example simulated time.
_OTHER_CLOCK = 3_600_000_000_000


@dataclass(frozen=True)
class Commands:
    """N commands for setpoints with the same joint names and frame.

    Attributes:
        setpoints: with the ``effort`` that was measured, if it was.
        joint_names, motor_names: n and m of them, in the setpoints' order.
        values: by COMMAND_FIELDS, each (N, n) or (N, m), in that order.
        motor_setpoint: by MOTOR_SETPOINT_FIELDS, each (N, m), in that order, in the units of the drives.
        effort_command: (N, m), in the robot's order.
        status: (N,) of :class:`.Status`; HELD for a repeated command after a refused setpoint.
        lead: command lead, s.
    """

    setpoints: Stream
    joint_names: tuple[str, ...]
    motor_names: tuple[str, ...]
    values: dict[str, Array]
    motor_setpoint: dict[str, Array]
    effort_command: Array
    status: NDArray[np.uint8]
    lead: float = 0.0

    def __len__(self) -> int:
        return len(self.status)


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


class Evaluation:
    """Computes commands for one arm, and counts the setpoints that it refuses.

    Attributes:
        refusals: by reason.
        violations: of limits.
        held: number of refused setpoints that are answered with the last good command.
        stop_utilization: largest utilization of a limit in a stop from a command, computed every 0.1 s; infinite if
            motors cannot stop.
        figures: errors of the fit to measured positions.
    """

    def __init__(self, arm: ElasticArm, options: CommandOptions | None = None) -> None:
        """Prepare for an arm."""
        self.arm, self.refusals, self.violations = arm, Refusals(), ExceededLimits()
        self.figures, self.held = FitFigures(arm.robot.n), 0
        self.stop_utilization = 0.0
        self._options = options or CommandOptions()
        self._host = SetpointLoop(SetpointEvaluator(arm), RobotTable(arm))
        self._loop = loop = self._host.loop
        self._configure(self._options.safety)
        # Read after each cycle: the command, the command in drive units, and the command beyond limits.
        names = (*EFFORT_NAMES, *MOTOR_NAMES)
        self._vectors = [loop.command[name] for name in names]
        self._vectors += [loop.sent[name] for name in DRIVE_NAMES]
        self._vectors += [loop.exceeded[name] for name in names]
        self._ends = np.cumsum([len(vector) for vector in self._vectors])
        self._payloads: list[tuple[int, Any]] = []
        self._limits = LimitCheck(arm)
        self._responses = np.empty((4, 0), dtype=np.int64)
        # Time of the last computed command, ns; setpoints that were refused in the meantime come after it.
        self._responded = -(2**63)
        # Start time of cycles without setpoints, ns.
        self._ended = -(2**63)
        # Frame, joint order and row of the last good command.
        self._last: tuple[str, JointOrder, Array] | None = None
        # Largest ratio to a limit, by reason of refusal.
        self._worst_refused: dict[str, float] = {}

    def of_topic(self, bag: Bag, topic: Topic, sampling: Sampling) -> Iterator[Commands]:
        """Compute the commands for the setpoints of a topic, in blocks.

        Arguments as of :func:`.read_setpoints`.
        """
        self._payloads = recorded_payloads(bag, topic, self.refusals)
        self._responses = recorded_responses(bag, topic)
        self._configure(self._options.safety if topic.type == SETPOINT else "permissive")
        for batch in read_setpoints(bag, topic, self.arm.robot, sampling, self.refusals, self.figures):
            yield from self.commands(batch)

    @property
    def early(self) -> int:
        """Number of setpoints with stamps ahead of their arrival, as counted by the node; they are not refused."""
        return self._loop.record.early

    def _configure(self, safety: str) -> None:
        """Apply a safety level without loss detection: the recording has the node's own stops."""
        settings = settings_at(safety) | {"setpoint_timeout": 0.0, "on_setpoint_loss": "none"}
        settings |= {"limits": self._options.limits} if self._options.limits else {}
        self._host.configure(**settings | dict(self._options.parameters))

    def commands(self, batch: Stream) -> Iterator[Commands]:
        """Compute the commands of setpoints, in order, and between them the commands of recorded responses to a loss.

        Refused setpoints without a held command have no command.
        """
        recorded, stamps = batch.recorded, batch.stamp
        if self._last is None and abs(int(recorded[0]) - int(stamps[0])) > _OTHER_CLOCK:
            self._host.configure(setpoint_lifespan=0.0)
        cuts = {0, len(batch), *np.searchsorted(recorded, [time for time, _ in self._payloads]).tolist()}
        cuts.update((np.flatnonzero(np.isin(stamps, self._responses[0])) + 1).tolist())
        if self._payloads or self._loop.record.blending:
            cuts.update((np.flatnonzero(np.diff(recorded) > LONGEST_GAP) + 1).tolist())
        for start, end in pairwise(sorted(cuts)):
            while self._payloads and self._payloads[0][0] <= recorded[start]:
                time, message = self._payloads.pop(0)
                self._blend(time)
                try:
                    self._host.carry(read_payload(message), message.blend_time)
                except Exception as error:  # as the node, which goes on without it
                    reason = refusal_reason(error).removeprefix("payload: ")
                    self.refusals.add(f"payload: {reason}", time)
            self._blend(int(recorded[start]))
            yield from self._answers(batch[start:end])
            self._ended = int(recorded[end - 1]) + LONGEST_GAP
            yield from self._respond(self._responses[0] == stamps[end - 1])

    def _blend(self, end: int) -> None:
        """Run cycles until ``end``, ns, while the payload of a resting arm changes, as the node does."""
        now, followed, record = self._ended, -1, self._loop.record
        while now < end and record.valid and record.blending and record.followed > followed:
            followed = record.followed
            self._loop.update(now := now + _PERIOD)
            record = self._loop.record
        self._ended = max(self._ended, end)

    def _answers(self, batch: Stream) -> Iterator[Commands]:
        """Commands of setpoints without a payload change between them."""
        count, recorded, stamps = len(batch), batch.recorded, batch.stamp
        times = np.stack([stamps, np.maximum(recorded, self._responded)])
        readable, names, rows_of_setpoints = self._read(batch)
        results = np.empty((count, self._ends[-1]))
        good, held = np.zeros((2, count), dtype=bool)
        ends, start = np.append(np.flatnonzero(~readable), count), 0
        while start < count:
            end, error = int(ends[np.searchsorted(ends, start)]), None
            if end == start:
                end, error = start + 1, self._error_of(batch, start)
            else:
                end = start + max(1, int(np.searchsorted(recorded[start:end], recorded[start] + LONGEST_GAP)))
                rows = slice(start, end)
                codes = self._loop.answer(times[:, rows], names, rows_of_setpoints[rows], self._vectors, results[rows])
                end = start + len(codes)
                self.stop_utilization = max(self.stop_utilization, self._loop.stop_utilization())
                good[start:end] = codes <= 0
                self._exceed(rows_of_setpoints[start:end], results[start:end], (codes < 0) & (-codes & EXCEEDS > 0))
                error = self._host.refusal(Refusal(codes[-1])) if codes[-1] > 0 else None
            if error is not None and not isinstance(error, EarlySetpointError):  # which waits for the next cycle
                reason = self._limits_reason(error) if isinstance(error, LimitError) else refusal_reason(error)
                remedy = renaming_to(self.arm.robot.joint_names, batch.names)
                self.refusals.add(reason, int(recorded[end - 1]), detail=remedy)
                # During a stop, its commands are sent.
                stops = self._loop.record.stopping
                held[end - 1] = isinstance(error, StiffnessError) and not stops
            start = end
        # The last good command up to each row.
        sources = np.maximum.accumulate(np.where(good, np.arange(count), -1))
        before = np.flatnonzero(held & (sources < 0))
        if len(before) and self._last is not None:
            _, order, last = self._last
            self.held += len(before)
            yield self._commands(batch[before], order, np.repeat(last, len(before), axis=0), held[before])
        kept = np.flatnonzero((good | held) & (sources >= 0))
        if len(kept):
            results, order = results[sources[kept]], self._host.order
            self._last = batch.frame, order, results[-1:].copy()
            self.held += int(held[kept].sum())
            yield self._commands(batch[kept], order, results, held[kept])

    def _respond(self, rows: NDArray[np.bool_]) -> Iterator[Commands]:
        """Commands of some responses, at the recorded times."""
        _, recorded, stamps, status = self._responses[:, rows]
        self._responses = self._responses[:, ~rows]
        if not len(stamps) or self._last is None:
            return
        loop, (frame, order, _) = self._loop, self._last
        loop.act("stop")
        results = np.empty((len(stamps), self._ends[-1]))
        for k, stamp in enumerate(stamps.tolist()):
            if -loop.update(stamp) & EXCEEDS:
                self.violations.add(self._host.violations(), 1)
            status[k], results[k] = loop.status, np.concatenate(self._vectors)
        self._last, self._responded = (frame, order, results[-1:].copy()), int(stamps[-1])
        yield self._commands(Stream("", stamps, recorded, (), {}, frame), order, results, status)

    def _error_of(self, batch: Stream, row: int) -> Exception:
        """Error for the message of a refused setpoint."""
        empty = dict.fromkeys((*STATE_FIELDS, *WRENCH_FIELDS, *STIFFNESS_FIELDS, BASE_FIELD), ())
        fields = {name: np.ascontiguousarray(values[row]) for name, values in batch.values.items()}
        try:
            self._host.read(SimpleNamespace(joint_names=batch.names, **(empty | fields)))
        except Exception as error:  # the node survives internal errors as well
            return error
        return AssertionError("read as a message, and not as a row")

    def _read(self, batch: Stream) -> tuple[NDArray[np.bool_], list[str], Array]:
        """Mask of readable setpoints (N,), and their rows (N, …) of the loop's vectors, the state first."""
        variable, loop, fields = self.arm.variable, self._loop, batch.values
        readable = np.zeros(len(batch), dtype=bool)
        try:
            self._host.order = order = JointOrder.of(self.arm, batch.names)
        except StateError:
            return readable, [], np.empty((len(batch), 0))
        if not self._lengths_fit(batch):
            return readable, [], np.empty((len(batch), 0))
        on_base = batch.entries(BASE_FIELD) > 0
        loop.rest(on_base=on_base)
        vectors = {name: order.to_robot(fields[key]) for name, key in zip(STATE_NAMES, STATE_FIELDS, strict=True)}
        for name, key in zip(WRENCH_NAMES, WRENCH_FIELDS, strict=True):
            if batch.entries(key):
                vectors[name] = fields[key].reshape(len(batch), -1)
        if on_base:
            base = np.moveaxis(fields[BASE_FIELD][:, 0], 1, 0)
            vectors |= dict(zip((*IMU_NAMES[0], *IMU_NAMES[1]), base, strict=True))
            readable |= force_is_unset(base)
        readable = ~readable & np.isfinite(np.hstack([*vectors.values()])).all(axis=1)
        for name, key in zip(STIFFNESS_NAMES, STIFFNESS_FIELDS, strict=True):
            if batch.entries(key):
                # Entries of other joints may be anything.
                vectors[name] = np.where(variable, order.to_robot(fields[key]), loop.given[name])
                readable &= np.isfinite(vectors[name]).all(axis=1)
        return readable, [*vectors], np.ascontiguousarray(np.hstack([*vectors.values()]))

    def _lengths_fit(self, batch: Stream) -> bool:
        n, tools = self.arm.robot.n, len(self.arm.robot.tools)
        stiffness = {batch.entries(name) for name in STIFFNESS_FIELDS}
        return (
            all(batch.entries(name) == n for name in STATE_FIELDS)
            and all(batch.entries(name) in (0, tools) for name in WRENCH_FIELDS)
            and batch.entries(BASE_FIELD) <= 1
            and stiffness <= {0, n}
            and (batch.entries("stiffness") == n or stiffness == {0})
        )

    def _states(self, setpoints: Array) -> Array:
        """q to qdddd (…, 5, n) of rows of vectors."""
        n = self.arm.robot.n
        return setpoints[..., : len(STATE_NAMES) * n].reshape(*setpoints.shape[:-1], len(STATE_NAMES), n)

    def _exceed(self, setpoints: Array, results: Array, over: NDArray[np.bool_]) -> None:
        if over.any():
            states = list(np.moveaxis(self._states(setpoints[over]), 1, 0))
            command = Feedforward(*np.split(results[over], self._ends[:-1], axis=1)[-len(COMMAND_FIELDS) :])
            self.violations.add(self._limits.violations(states, command), int(over.sum()))

    def _limits_reason(self, error: LimitError) -> str:
        """Reason without values, which differ between setpoints; the values of the worst one become its detail."""
        reason = f"exceeds limits, most of all {error.worst}"
        if error.ratio > self._worst_refused.get(reason, 0.0):
            self._worst_refused[reason] = error.ratio
            self.refusals.details[reason] = f" (at worst {error.numbers}); --limits warn computes commands anyway"
        return reason

    def _commands(self, batch: Stream, order: JointOrder, results: Array, status: NDArray[Any]) -> Commands:
        """Commands for setpoints, in a joint order; held setpoints also have a status."""
        vectors = np.split(results, self._ends[:-1], axis=1)
        efforts, motors, drives = vectors[:3], vectors[3:7], vectors[7:10]
        values = (*map(order.to_message, efforts), *map(order.motors_to_message, motors))
        return Commands(
            batch,
            tuple(order.names),
            tuple(order.motor_names),
            dict(zip(COMMAND_FIELDS, values, strict=True)),
            dict(zip(MOTOR_SETPOINT_FIELDS, map(order.motors_to_message, drives), strict=True)),
            drives[-1],
            status.astype(np.uint8),
            self.arm.robot.command_lead,
        )
