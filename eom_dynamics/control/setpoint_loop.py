# SPDX-License-Identifier: Apache-2.0
"""Setpoint messages for the control loop of an arm, and explanations of refused setpoints."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import all_finite
from ..arrays import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES, Array
from ..codegen.floating_programs import IMU_NAMES
from ..elastic import LimitViolation
from ..elastic.limit_violations import refuse_degrees
from ..elastic.limits import arm_limits
from ..elastic.motor_programs import MOTOR_NAMES, STIFFNESS_NAMES
from ..exceptions import DoubtfulSetpointError, EomDynamicsError, StateError, StiffnessError, TrajectoryError
from ..robot import Payload, Robot
from .control_loop import EXCEEDS, REFUSALS, SUSPICIONS, Check, ControlLoop, LoopRecord, Refusal, rows
from .fields import STATE_FIELDS
from .online_trajectory import limits_of_joints
from .robot_table import RobotTable
from .serialized import Shape, ShapeCall
from .setpoint_to_command import SetpointEvaluator
from .settings import CONSISTENCY_TOLERANCE, CONSISTENCY_WINDOW, LONGEST_BLEND, SHARED_MESSAGES, settings_at


class EarlySetpointError(StateError):
    """A setpoint that waits for the next cycle, as its stamp runs ahead of its arrival."""


_ERRORS: dict[str, type[EomDynamicsError]] = {
    "early": EarlySetpointError,
    **dict.fromkeys(("suspect_stamp", "jump"), DoubtfulSetpointError),
    **dict.fromkeys(
        (
            *("over_limits", "transition", "busy", "starts_away", "under_way", "ended", "too_far_ahead"),
            "path_beyond_range",
        ),
        TrajectoryError,
    ),
}
"""Errors of refusals other than StateError. Setpoints beyond limits have their own errors, trajectories these."""

_EXCEEDS = REFUSALS["over_limits"].partition("{")[0]

# Refusals of setpoints that step away from the command.
_STEPS = "jump", "motor_step", "far_from_hold"


class SetpointLoop:
    """Control loop that answers setpoint messages of an arm.

    Attributes:
        evaluator: evaluator of single requests, which reads messages.
        arm: the arm.
        loop: the loop.
        order: joint order of the last message.
    """

    def __init__(self, evaluator: SetpointEvaluator, table: RobotTable | None = None) -> None:
        """Compile the loop of the evaluator's arm, or load it from the cache; KernelError as :class:`.RobotTable`.

        Args:
            evaluator: evaluator of single requests.
            table: robot table of the arm; created by default.
        """
        self.evaluator, self.arm = evaluator, evaluator.arm
        self.loop = ControlLoop(table or RobotTable(evaluator.arm))
        self.order = evaluator.own_order
        self._limits = arm_limits(self.arm)
        # Sliding window of stamps, ns, and states (5, n), to explain the last inconsistency.
        self._window: deque[tuple[int, Array]] = deque(maxlen=CONSISTENCY_WINDOW + 1)
        self._text = ""

    def renewed(self) -> SetpointLoop:
        """A new loop of the same arm, without payload and settings."""
        self.evaluator.payload[:] = 0.0
        return SetpointLoop(self.evaluator, self.loop.table)

    def carry(self, payload: Payload, blend_time: float, measured: Array | None = None) -> None:
        """Set the payload of a tool, effective from the next setpoint; see :meth:`.ControlLoop.carry`."""
        tool, parameters = self.check(payload, blend_time)
        self.loop.carry(payload, blend_time, measured)
        self.evaluator.payload[tool] = parameters

    def check(self, payload: Payload, blend_time: float) -> tuple[int, Array]:
        """Tool of a payload and its parameters, as :meth:`.Payload.at_tool`; errors as for :meth:`carry`."""
        if not 0 <= blend_time <= LONGEST_BLEND:  # NaN, too
            raise StateError(f"blend_time must be from 0 to {LONGEST_BLEND:g} s, is {blend_time:g}")
        return payload.at_tool(self.arm.robot)

    def configure(self, safety: str = "", **settings: Any) -> None:
        """Set changed settings of the loop; see :meth:`.ControlLoop.configure`."""
        present, settings = self.loop.settings, (settings_at(safety) if safety else {}) | settings
        if changed := {name: value for name, value in settings.items() if present.get(name) != value}:
            self.loop.configure(**changed)

    # --- Answers ------------------------------------------------------------------------

    def answer(self, stamp: int, now: int) -> int:
        """Process the setpoint that was read, with its stamp, ns (0 if absent), at clock time ``now``, ns.

        Returns:
            Bits for warnings: EXCEEDS, SUSPECT.

        Raises:
            EomDynamicsError: the setpoint is refused.
        """
        self.loop.refer(stamp)
        self.remember(stamp)
        return self.accepted(self.loop.update(now), stamped=bool(stamp))

    def accepted(self, code: int, *, stamped: bool | None = None) -> int:
        """Bits for warnings from the result of a cycle; raises the error of a refused reference."""
        if code > 0:
            raise self.refusal(Refusal(code), stamped=stamped)
        return -code

    def responded(self, code: int) -> bool:
        """True if the command of a response exceeds limits; raises the error of a refused command."""
        if code == Refusal["not_finite"]:  # refers to the response, not to the given setpoint
            raise StateError("numbers too large, or a spring would be slack")
        return bool(self.accepted(code) & EXCEEDS)

    def read(self, message: Any) -> None:
        """Write a message into the setpoint that is given to the loop; StateError if it cannot be used."""
        self.order, state, wrench, stiffness, base = self.evaluator.read(message)
        self.loop.rest(on_base=base is not None)
        names = (*STATE_NAMES, *WRENCH_NAMES[: len(wrench)], *STIFFNESS_NAMES[: len(stiffness)])
        values = [*state, *wrench, *stiffness]
        if base is not None:
            names, values = (*names, *IMU_NAMES[0], *IMU_NAMES[1]), [*values, *base[0], *base[1]]
        for name, row in zip(names, values, strict=True):
            self.loop.given[name][:] = row.ravel()

    def call_for(self, setpoint: Any, message: bytes, shape: Shape) -> ShapeCall:
        """Compiled call for messages like the given valid message; see :class:`.ShapeCall`."""
        order = self.evaluator.order_of(setpoint)
        return ShapeCall(self.loop, shape, order, message)

    # --- State of the loop --------------------------------------------------------------

    @property
    def state(self) -> Array:
        """Copy of q … qdddd (5, n) of the present setpoint."""
        return rows(self.loop.setpoint, STATE_NAMES)

    @property
    def record(self) -> LoopRecord:
        """Present numbers of the loop, see :attr:`.ControlLoop.record`."""
        return self.loop.record

    @property
    def moves(self) -> bool:
        """True if joints, wrenches, stiffness or base change at the command."""
        return bool(self.record.moves)

    @property
    def limits_rates(self) -> bool:
        """True if any joint has a limit of velocity, acceleration or jerk."""
        return bool((self._limits.rate_limits < np.inf).any())

    def violations(self, most: int = sys.maxsize) -> tuple[LimitViolation, ...]:
        """Violated limits of the last command beyond limits, before any clipping, the worst first, at most ``most``."""
        return tuple(
            LimitViolation(name, quantity, x.value, x.limit, unit, x.ratio, remark=remark)
            for x, (name, quantity, unit, remark) in self.loop.violations(most)
        )

    @property
    def suspicions(self) -> Counter[str]:
        """Number of failed stream checks since the stream started, by check."""
        record = self.loop.record
        counts = {check: getattr(record, name) for check, name in SUSPICIONS.items()}
        return Counter({check: count for check, count in counts.items() if count})

    def suspicion(self) -> str:
        """Message of the last failed stream check; "" if none failed."""
        record, names = self.loop.record, self.arm.robot.joint_names
        if record.finding == Check["consistency"]:
            if len(self._window) == self._window.maxlen:
                times, states = (np.array(rows) for rows in zip(*self._window, strict=True))
                place = record.finding_field, record.finding_joint, record.finding_joints
                self._text = inconsistency_text(names, times, states, *place)
                self._window.clear()  # a verdict holds until the next window is complete
            return self._text
        return self.loop.text("finding")

    def remember(self, stamp: int) -> None:
        """Record the given state and its stamp, ns, for the explanation of inconsistencies in :meth:`suspicion`."""
        self._window.append((stamp, self.loop.given_state.copy()))

    @property
    def period(self) -> float:
        """Median time between the setpoints remembered, s; 0 until they are a window, or without stamps."""
        complete = len(self._window) == self._window.maxlen
        return 1e-9 * float(np.median(np.diff([stamp for stamp, _ in self._window]))) if complete else 0.0

    def plan(self, now: int, period: float, sag: float) -> Refusal | None:
        """Plan a trajectory as :meth:`.ControlLoop.plan`; returns the reason of a refusal, or None.

        Args:
            now: clock time, ns.
            period: period of the commands, s.
            sag: distance between command and measured position that is added to the start tolerance, rad or m.
        """
        tolerance = self.loop.settings["start_tolerance"]
        self.configure(start_tolerance=tolerance + sag)
        try:
            code = self.loop.plan(now, period)
        finally:
            self.configure(start_tolerance=tolerance)
        return Refusal(code) if code else None

    def refusal(self, why: Refusal, *, stamped: bool | None = None) -> EomDynamicsError:
        """Error of the last refused reference; ``stamped``: True if the given setpoint has a stamp."""
        text = self.loop.text("refusal")
        if stamped is not None and why.name in _STEPS:
            text += "".join(f"; {hint}" for hint in self._step_hints(stamped) if hint not in text)
        if text.startswith(_EXCEEDS):  # not for a payload
            return self.violations(1)[0].error(text)
        exceeded = self.loop.exceeded
        if why.name == "not_finite" and all_finite(*(exceeded[name] for name in EFFORT_NAMES)):
            try:
                self.arm.functions.refuse(exceeded["tau"], [exceeded["k"]], rows(exceeded, MOTOR_NAMES))
            except StiffnessError as error:  # with the range at this effort
                return error
        return _ERRORS.get(why.name, StateError)(text)

    def _step_hints(self, stamped: bool) -> Iterator[str]:
        """Possible mistakes in a setpoint that steps: degrees, position limits, wrong topic, or missing stamp."""
        robot, reference = self.arm.robot, self.loop.given
        lower, upper = limits_of_joints(self.arm)[:2]
        try:
            refuse_degrees(robot, reference["q"], lower, upper, self.loop.setpoint["q"])
        except StateError:
            yield "was that in degrees? Angles are in rad"
        else:
            for i in np.flatnonzero((reference["q"] < lower) | (reference["q"] > upper))[:1]:
                yield f"the range of {robot.joint_names[i]} is {lower[i]:.4g} to {upper[i]:.4g}"
        if not any(reference[name].any() for name in STATE_NAMES[1:]):
            yield SHARED_MESSAGES["positions_alone"]
        elif not stamped:
            yield "in a stream, set header.stamp to the time of the motion"

    def require_radians(self, q: Array) -> None:
        """Refuse a first position (n,) if a joint without limits is so far from zero that it may be in degrees."""
        lower, upper = limits_of_joints(self.arm)[:2]
        refuse_degrees(self.arm.robot, np.where(np.isfinite(lower) & np.isfinite(upper), np.nan, q), lower, upper)

    def refuse_far(self, positions: Array) -> None:
        """Refuse targets (…, n) more than a turn beyond their range, unless limits are ignored; NaN: no target."""
        if self.loop.settings["limits"] != "ignore":
            for q in positions.reshape(-1, self.arm.robot.n):
                self._limits.refuse_far(q)


_DEGREES = 180.0 / np.pi

# Mistakes by the factor that they cause, and the tolerance of the factor.
_MEANINGS = (
    (_DEGREES, "degrees instead of radians"),
    (1.0 / _DEGREES, "degrees instead of radians before"),
    (1e3, "millimeters, or milliseconds"),
    (1e-3, "millimeters, or milliseconds, before"),
    (-1.0, "opposite sign"),
)
_CLOSE = 0.02
_OTHER_PERIOD = 0.2  # relative deviation of a period from command_period of the robot file
_STAMPS = "do stamps advance with the motion?"
_SCALED = f"scaled; or {_STAMPS}"


def period_note(robot: Robot, period: float) -> list[str]:
    """Note on commands whose period, s, differs from ``command_period`` of the robot file; [] if they agree."""
    if not robot.command_period or abs(period / robot.command_period - 1) < _OTHER_PERIOD:
        return []
    return [
        f"commands come every {1e3 * period:.3g} ms, but command_period of the robot is "
        f"{1e3 * robot.command_period:.3g} ms: set it, or send at its rate"
    ]


def inconsistency_text(
    names: Sequence[str], times: NDArray[np.int64], states: Array, field: int, joint: int, joints: int
) -> str:
    """Explain an inconsistency in a window of setpoints.

    Args:
        names: joint names.
        times: stamps (N,), ns.
        states: q … qdddd (N, 5, n).
        field, joint: index of a field, and of a joint, that differs from the rate of the field before.
        joints: number of inconsistent joints.
    """
    # Scaled to at most 1, so that squares do not overflow.
    x, dt = states / max(1.0, float(np.max(np.abs(states)))), np.diff(times) * 1e-9
    change = np.diff(x[:, field - 1, joint])
    integral = 0.5 * dt[:, None, None] * (x[1:] + x[:-1])
    others = f" (and {joints - 1} more joint{'s' if joints > 2 else ''})" if joints > 1 else ""
    cause = _cause(names, field, joint, dt, change, integral)
    return f"{STATE_FIELDS[field]} of {names[joint]}{others} {cause}, over {len(dt)} setpoints"


def _cause(names: Sequence[str], field: int, joint: int, dt: Array, change: Array, integral: Array) -> str:
    """Describe the inconsistency of a field of a joint."""

    def fits(x: Array, y: Array) -> bool:
        return float(np.sum((x - y) ** 2)) <= CONSISTENCY_TOLERANCE**2 * max(float(x @ x), float(y @ y))

    rate, before = integral[:, field, joint], STATE_FIELDS[field - 1]
    for other, name in enumerate(names):
        if other != joint and fits(change, integral[:, field, other]):
            return f"is not the rate of {before}, which is in the place of {name}: joints swapped"
    for other, in_field in enumerate(STATE_FIELDS):
        if other != field and fits(change, integral[:, other, joint]):
            return f"is not the rate of {before}, which is in {in_field}: fields swapped"
    size = float(change @ change)
    factor = float(change @ rate) / size if size > 0 else 0.0
    if factor and fits(rate, factor * change):
        meaning = next((text for f, text in _MEANINGS if abs(factor / f - 1.0) < _CLOSE), _SCALED)
        return f"is {factor:.4g} times the rate of {before}: {meaning}"
    mean = np.divide(rate, dt, out=np.zeros_like(rate), where=dt != 0)  # no time between: no rate
    square = float(mean @ mean)
    step = float(mean @ change) / square if square > 0 else 0.0
    if step > 0 and fits(change, step * mean):
        return f"is the rate of {before} for steps of {step:.3g} s, which stamps do not have: {_STAMPS}"
    miss = np.sqrt(float(np.sum((change - rate) ** 2)) / max(size, float(rate @ rate)))
    return f"is not the rate of {before}: it differs by {100 * miss:.0f} %"
