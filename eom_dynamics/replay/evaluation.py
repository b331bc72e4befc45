# SPDX-License-Identifier: Apache-2.0
"""From setpoints to commands, as the node does it, but many at a time.

What is refused, and why, is what the node's solver says: it looks at every setpoint that does not pass here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm, Excess, Feedforward
from ..exceptions import StateError, StiffnessError
from ..stream.conversions import (
    COMMAND_FIELDS,
    EFFORT_FIELDS,
    MOTOR_FIELDS,
    STATE_FIELDS,
    STIFFNESS_FIELDS,
    WRENCH_FIELDS,
    JointOrder,
    JointOrders,
)
from ..stream.deflection_filter import DeflectionFilter
from ..stream.solver import Solver
from .batch import Batch, Refusals, Stamps

Array = NDArray[np.float64]

EFFORT_COMMANDS = ("motor", "joint")
"""What the topic effort_command carries, as the node's parameter says."""

HOLDS: dict[str, tuple[type[StateError], ...]] = {
    "stiffness": (StiffnessError,),
    "always": (StateError,),
    "never": (),
}
"""Refused setpoints that are answered with the last good command, as the node's parameter says."""


_UNITS = {"torque": "N m", "speed": "rad/s", "current": "A", "voltage": "V"}


@dataclass(frozen=True)
class Options:
    """The node's parameters of the same names."""

    effort_command: str = EFFORT_COMMANDS[0]
    clip_to_limits: bool = False
    hold_last_command: str = "stiffness"


@dataclass(frozen=True)
class Commands:
    """N commands for setpoints with the same joint names and frame.

    Attributes:
        stamps, frame: those of the setpoints.
        joint_names, motor_names: n and m of them, in the setpoints' order.
        values: by COMMAND_FIELDS, each (N, n) or (N, m), in that order.
        effort_command: (N, n) or (N, m), in the robot's order.
        held: (N,) whether a command is an earlier one again, for a setpoint that was refused.
        measured: (N, n) recorded efforts, or None.
    """

    stamps: Stamps
    frame: str
    joint_names: tuple[str, ...]
    motor_names: tuple[str, ...]
    values: dict[str, Array]
    effort_command: Array
    held: NDArray[np.bool_]
    measured: Array | None = None

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, rows: NDArray[np.intp]) -> Commands:
        return replace(
            self,
            stamps=self.stamps[rows],
            values={name: values[rows] for name, values in self.values.items()},
            effort_command=self.effort_command[rows],
            held=self.held[rows],
            measured=None if self.measured is None else self.measured[rows],
        )


@dataclass
class Excesses:
    """Limits of the motors that commands exceed, before any clipping.

    Attributes:
        commands: number of commands that exceed one.
        worst: by motor and quantity.
    """

    commands: int = 0
    worst: dict[tuple[str, str], Excess] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The worst of each motor and quantity, before the gear; the first line says how many commands there are."""
        worst = [
            f"{excess.motor}: {excess.quantity} {excess.value:.4g} {_UNITS[excess.quantity]}, limit {excess.limit:.4g}"
            for excess in self.worst.values()
        ]
        return [f"{self.commands:,} commands exceed limits of motors, at worst:", *worst] if worst else []

    def add(self, exceeded: tuple[Excess, ...], commands: int) -> None:
        """Take those of some commands."""
        self.commands += commands
        for excess in exceeded:
            key = excess.motor, excess.quantity
            if key not in self.worst or excess.value > self.worst[key].value:
                self.worst[key] = excess


class Evaluation:
    """Computes commands for one arm, and counts the setpoints that it refuses.

    Attributes:
        refusals: by reason.
        excesses: of limits.
    """

    def __init__(self, arm: ElasticArm, options: Options, refusals: Refusals) -> None:
        self.arm, self.refusals, self.excesses = arm, refusals, Excesses()
        self._options = options
        self._solver = Solver(arm)
        self._orders = JointOrders(arm.robot.joint_names, (arm.motor_names, arm.motor_joint))
        # Their deflections go on from one setpoint to the next.
        self._one_by_one = DeflectionFilter(arm).needed
        motor = arm.motor
        self._limits = (motor.torque_limit, motor.speed_limit, motor.current_limit, motor.voltage_limit)
        self._limited = any(np.isfinite(limit).any() for limit in self._limits)
        self._last: Commands | None = None

    def commands(self, batch: Batch) -> Iterator[Commands]:
        """The commands of setpoints, without those that are refused and not held, in their order."""
        count, (n, m) = len(batch), (self.arm.robot.n, len(self.arm.motor_names))
        efforts, motors = np.empty((3, count, n)), np.empty((4, count, m))
        good, held = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        order = None
        try:
            order = self._orders.of(batch.names)
            if not self._one_by_one and self._lengths_fit(batch, order):
                good = self._together(batch, order, efforts, motors)
        except StateError:
            # Of one of them, or of all; which, and which others are good, shows one by one.
            good[:] = False
        for row in np.flatnonzero(~good).tolist():
            try:
                efforts[:, row], motors[:, row] = self._alone(batch, row)
                good[row] = True
            except StateError as error:
                self.refusals.add(str(error), int(batch.stamps.recorded[row]))
                held[row] = isinstance(error, HOLDS[self._options.hold_last_command])
        first = int(np.argmax(good)) if good.any() else count
        if held[:first].any() and self._last is not None:
            yield self._again(batch, np.flatnonzero(held[:first]))
        if order is not None and first < count:
            yield self._result(batch, order, efforts, motors, good, held)

    def _alone(self, batch: Batch, row: int) -> tuple[Array, Array]:
        stamp = int(batch.stamps.header[row])
        solution = self._solver.solve(batch.message(row), stamp=stamp, clip=self._options.clip_to_limits)
        if solution.exceeded:
            self.excesses.add(solution.exceeded, 1)
        return solution.efforts, solution.motors

    def _lengths_fit(self, batch: Batch, order: JointOrder) -> bool:
        lengths = {name: values.shape[1] for name, values in batch.fields.items()}
        n, wrench = len(order.names), prod(self.arm.robot.wrench_shape)
        return (
            all(lengths.get(name, 0) == n for name in STATE_FIELDS)
            and all(lengths.get(name, 0) in (0, wrench) for name in WRENCH_FIELDS)
            and all(lengths.get(name, 0) in (0, n) for name in STIFFNESS_FIELDS)
            and (lengths.get("stiffness", 0) == n or not any(lengths.get(name, 0) for name in STIFFNESS_FIELDS))
        )

    def _together(self, batch: Batch, order: JointOrder, efforts: Array, motors: Array) -> NDArray[np.bool_]:
        """Compute the commands of all setpoints whose numbers are finite; returns (N,) which are done."""
        numbers = {name: values for name, values in batch.fields.items() if values.shape[1]}
        done = np.ones(len(batch), dtype=bool)
        for values in numbers.values():
            # Where stiffness is not commanded, an entry of it may be anything; that is seen one by one.
            done &= np.isfinite(values).all(axis=1)
        rows = slice(None) if done.all() else np.flatnonzero(done)
        state = [order.to_robot(numbers[name][rows]) for name in STATE_FIELDS]
        count = len(state[0])
        wrench, stiffness = [], []
        if any(name in numbers for name in WRENCH_FIELDS):
            shape = (count, *self.arm.robot.wrench_shape)
            wrench = [
                numbers[name][rows].reshape(shape) if name in numbers else np.zeros(shape) for name in WRENCH_FIELDS
            ]
        if "stiffness" in numbers:
            stiffness = [
                order.to_robot(numbers[name][rows]) if name in numbers else np.zeros(state[0].shape)
                for name in STIFFNESS_FIELDS
            ]
        with np.errstate(all="ignore"):
            command = self.arm.feedforward(*state, wrench=wrench, stiffness=stiffness)
            efforts[:, rows], motors[:, rows] = command[: len(EFFORT_FIELDS)], command[len(EFFORT_FIELDS) :]
            finite = np.isfinite(efforts).all(axis=(0, 2)) & np.isfinite(motors).all(axis=(0, 2))
            # What was not computed holds anything.
            done &= finite
            if self._limited:
                self._limit(Feedforward(*efforts[:, done], *motors[:, done]), np.flatnonzero(done), motors)
        return done

    def _limit(self, command: Feedforward, rows: NDArray[np.intp], motors: Array) -> None:
        drive = self.arm.drive(command)
        if not drive.exceeded:
            return
        quantities = (drive.torque, drive.velocity, drive.current, drive.voltage)
        over = np.zeros(len(rows), dtype=bool)
        for values, limit in zip(quantities, self._limits, strict=True):
            over |= (np.abs(values) > limit).any(axis=1)
        self.excesses.add(drive.exceeded, int(over.sum()))
        if self._options.clip_to_limits:
            clipped = self.arm.gear_ratio * self.arm.drive(command, clip=True).torque
            motors[-1, rows[over]] = clipped[over]

    def _result(
        self,
        batch: Batch,
        order: JointOrder,
        efforts: Array,
        motors: Array,
        good: NDArray[np.bool_],
        held: NDArray[np.bool_],
    ) -> Commands:
        """The commands from the first good one on, with held ones between them."""
        # The last good command up to each.
        sources = np.maximum.accumulate(np.where(good, np.arange(len(batch)), -1))
        kept = np.flatnonzero((good | held) & (sources >= 0))
        values = dict(zip(EFFORT_FIELDS, order.to_message(efforts), strict=True))
        values |= dict(zip(MOTOR_FIELDS, order.motors_to_message(motors), strict=True))
        everything = Commands(
            batch.stamps,
            batch.frame,
            tuple(order.names),
            tuple(order.motor_names),
            {name: values[name] for name in COMMAND_FIELDS},
            motors[-1] if self._options.effort_command == "motor" else efforts[0],
            held,
            batch.measured,
        )
        self._last = everything[np.flatnonzero(good)[-1:]]
        if len(kept) == len(batch) and not held.any():
            return everything
        result = everything[sources[kept]]
        measured = None if batch.measured is None else batch.measured[kept]
        return replace(result, stamps=batch.stamps[kept], held=held[kept], measured=measured)

    def _again(self, batch: Batch, rows: NDArray[np.intp]) -> Commands:
        """The last good command of an earlier batch, for setpoints that were refused."""
        assert self._last is not None
        again = self._last[np.zeros(len(rows), dtype=np.intp)]
        return replace(
            again, stamps=batch.stamps[rows], frame=batch.frame, held=np.ones(len(rows), dtype=bool), measured=None
        )
