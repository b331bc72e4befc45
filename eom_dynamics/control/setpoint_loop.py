# SPDX-License-Identifier: Apache-2.0
"""Setpoint messages for the control loop of an arm, and what is wrong with those that it refuses."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..arrays import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES, Array, unit
from ..codegen.floating_programs import IMU_NAMES
from ..elastic import Feedforward, LimitCheck, LimitViolation
from ..elastic.limit_violations import limit_violations, question_of_speed, refuse_degrees, summary
from ..elastic.motor_programs import MOTOR_NAMES, STIFFNESS_NAMES
from ..exceptions import DoubtfulSetpointError, EomDynamicsError, StateError, TrajectoryError
from ..robot import Payload
from . import diagnosis
from .control_loop import EXCEEDS, ControlLoop, Refusal, blocked, enumerators, overload, rows
from .fields import POSITIONS_ALONE
from .online_trajectory import braking, limits_of_joints
from .robot_table import RobotTable
from .serialized import Shape, ShapeCall
from .setpoint_to_command import SetpointEvaluator
from .settings import CONSISTENCY_WINDOW, LONGEST_BLEND, SAID, settings_at
from .spatial import read_base_motion

_IN_DOUBT = ("suspect_stamp", "jump")


class EarlySetpointError(StateError):
    """A setpoint that waits for the next cycle, as its stamp runs ahead of its arrival."""


# Counts of the loop.
_COUNTS = {
    "stamps": "suspect_stamps",
    "jumps": "jumps",
    "consistency": "inconsistent",
    "without stamp": "without_stamp",
}


_CHECKS = enumerators("Check")


class SetpointLoop:
    """Answers setpoint messages by the control loop of an arm.

    Attributes:
        evaluator: the reference, by which refusals are explained.
        arm: the arm.
        loop: the loop.
        order: joint order of the last message that was read.
    """

    def __init__(self, evaluator: SetpointEvaluator, table: RobotTable | None = None) -> None:
        """Compile the loop of the evaluator's arm, or load it from the cache; KernelError as :class:`.RobotTable`.

        Args:
            evaluator: the reference.
            table: of the arm, by default a new one.
        """
        self.evaluator, self.arm = evaluator, evaluator.arm
        self.loop = ControlLoop(table or RobotTable(evaluator.arm, moving_base=evaluator.moving_base))
        self.order = evaluator.own_order
        self._limits = LimitCheck(self.arm)
        # Sliding window of stamps, ns, and states (5, n), by which the last inconsistency is explained.
        self._window: deque[tuple[int, Array]] = deque(maxlen=CONSISTENCY_WINDOW + 1)
        self._text = ""

    def renewed(self) -> SetpointLoop:
        """A new loop of the same arm, without payload and settings."""
        self.evaluator.payload[:] = 0.0
        return SetpointLoop(self.evaluator, self.loop.table)

    def carry(self, payload: Payload, blend_time: float, measured: Array | None = None) -> None:
        """Have a tool carry a payload from the next setpoint on; arguments and errors as :meth:`.ControlLoop.carry`."""
        tool, parameters = self.check(payload, blend_time)
        self.loop.carry(payload, blend_time, measured)
        self.evaluator.payload[tool] = parameters

    def check(self, payload: Payload, blend_time: float) -> tuple[int, Array]:
        """Tool of a payload and its parameters, as :meth:`.Payload.at_tool`; errors as for :meth:`carry`."""
        if not 0 <= blend_time <= LONGEST_BLEND:  # NaN, too
            raise StateError(f"blend_time must be from 0 to {LONGEST_BLEND:g} s, is {blend_time:g}")
        return payload.at_tool(self.arm.robot)

    def configure(self, safety: str = "", **settings: Any) -> None:
        """Set settings of the loop that differ from the present ones, as :meth:`.ControlLoop.configure`."""
        present, settings = self.loop.settings, (settings_at(safety) if safety else {}) | settings
        if changed := {name: value for name, value in settings.items() if present.get(name) != value}:
            self.loop.configure(**changed)

    @property
    def lead(self) -> float:
        """Time by which commands are ahead of setpoints, s."""
        return float(self.loop.settings.get("command_lead", 0.0))

    # --- Answers ------------------------------------------------------------------------

    def answer(self, stamp: int, now: int) -> int:
        """Answer the setpoint that was read, with a stamp, ns, 0 for none, at a time of the clock, ns, by the loop.

        Returns:
            Bits of what is wrong with it all the same: EXCEEDS, SUSPECT.

        Raises:
            EomDynamicsError: the setpoint is refused.
        """
        self.loop.refer(stamp)
        self.remember(stamp)
        return self.accepted(self.loop.update(now))

    def accepted(self, code: int) -> int:
        """Bits by what a cycle has returned; raises the error of a reference that was refused."""
        if code > 0:
            raise self.refusal(Refusal(code))
        return -code

    def responded(self, code: int) -> tuple[LimitViolation, ...]:
        """Violations of the command of a response; the error if it was refused."""
        if code == Refusal["not_finite"]:  # of the response, not of the setpoint that was given
            raise StateError("numbers too large, or a spring would be slack")
        return self.violations(self.state) if self.accepted(code) & EXCEEDS else ()

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
        """Compiled call for messages like a valid one; arguments and errors as of :class:`.ShapeCall`."""
        order = self.evaluator.order_of(setpoint)
        return ShapeCall(self.loop, shape, order, message, self.lead)

    # --- What the loop says -------------------------------------------------------------

    @property
    def state(self) -> Array:
        """A copy of q … qdddd (5, n) of the setpoint that is followed."""
        return rows(self.loop.setpoint, STATE_NAMES)

    @property
    def moves(self) -> bool:
        """Whether joints, wrenches, stiffness or base change at the command."""
        return bool(self.loop.number("moves"))

    @property
    def limits_rates(self) -> bool:
        """Whether any joint has a limit of velocity, acceleration or jerk."""
        return bool((self._limits.rate_limits < np.inf).any())

    @property
    def unclipped(self) -> list[str]:
        """Names of the joints whose efforts ``limits: clip`` does not limit, since they have no limit of effort."""
        return self._limits.unclipped if self.loop.settings["limits"] == "clip" else []

    def violations(self, state: Array | None = None) -> tuple[LimitViolation, ...]:
        """Limits that the last command beyond limits exceeds, before any clipping, the worst first.

        Args:
            state: q … qdddd (5, n) of its setpoint, by default as it is followed.
        """
        command = Feedforward(*(self.loop.exceeded[name].copy() for name in (*EFFORT_NAMES, *MOTOR_NAMES)))
        state = rows(self.loop.exceeded, STATE_NAMES) if state is None else state
        return self._limits.violations(state, command) or self._overruns(state)

    def _overruns(self, state: Array) -> tuple[LimitViolation, ...]:
        """Joints of a state (5, n) that could not stop before a limit of their positions."""
        q, v, a = state[:3]
        names, n = self.arm.robot.joint_names, self.arm.robot.n
        units = [[unit(x, joint.type) for x in ("position", "velocity")] for joint in self.arm.robot.independent_joints]
        lower, upper = self._limits.ends["q"]
        A, now = braking(self.arm), np.maximum(-np.sign(v) * a, 0.0)
        A = np.where(np.isfinite(A), A, now + np.abs(v) / self.loop.settings["stop_duration"])
        way = np.divide(v * np.abs(v), 2 * A, out=np.zeros(n), where=(v != 0) & (q >= lower) & (q <= upper))
        stopping = limit_violations(names, "stopping position", [of for of, _ in units], q + way, lower, upper)
        found = {x.name: x for x in stopping if way[names.index(x.name)]}
        remarks = zip(names, q, v, A, units, strict=True)
        return tuple(
            found[name]._replace(
                remark=f", from {q:.4g} {of} at {v:.4g} {per_s} with {A:.3g} {per_s}²: slow down before the limit"
            )
            for name, q, v, A, (of, per_s) in remarks
            if name in found
        )

    @property
    def suspicions(self) -> Counter[str]:
        """How many setpoints were not plausible since the stream began, by check."""
        counts = {check: int(self.loop.number(name)) for check, name in _COUNTS.items()}
        return Counter({check: count for check, count in counts.items() if count})

    def suspicion(self) -> str:
        """What was not plausible last; empty for nothing."""
        number, names = self.loop.number, self.arm.robot.joint_names
        finding, field, joint = (int(number(f"finding{part}")) for part in ("", "_field", "_joint"))
        check, time = _CHECKS[finding], number("finding_time")
        if check == "stamps":
            return diagnosis.stamp_text(time)
        if check == "jumps":
            text = diagnosis.jump_text(names[joint], field, number("finding_step"), number("finding_allowed"), time)
            return text if self.loop.given["qd"].any() else f"{text}; {POSITIONS_ALONE}"
        if check == "away":
            kind = unit("position", self.arm.robot.independent_joints[joint].type)
            return diagnosis.away_text(names[joint], kind, number("finding_step"), number("finding_allowed"))
        if check == "without_stamp":
            return SAID["unstamped"]
        if check == "consistency":
            if len(self._window) == self._window.maxlen:
                times, states = (np.array(rows) for rows in zip(*self._window, strict=True))
                joints = int(number("finding_joints"))
                self._text = diagnosis.inconsistency_text(names, times, states, field, joint, joints)
                self._window.clear()  # a verdict holds until the next window is complete
            return self._text
        return ""

    def remember(self, stamp: int) -> None:
        """Keep the given state and its stamp, ns, by which :meth:`suspicion` explains an inconsistency."""
        self._window.append((stamp, self.loop.given_state.copy()))

    def refusal(self, why: Refusal) -> EomDynamicsError:
        """The error of a refused reference, which is what is given to the loop."""
        loop = self.loop
        if why.name in ("over_limits", "cannot_stop"):
            violations = self.violations()
            question = "" if loop.number("fed") else question_of_speed(violations)
            return violations[0].error(f"exceeds limits: {summary(violations)}{question}")
        if why.name == "far_beyond_limits":
            return _error_of(lambda: self._limits.refuse_far(loop.given["q"]))
        if why.name == "far_from_hold":
            return self._far_from_hold()
        if why.name == "too_old":
            lifespan = loop.settings["setpoint_lifespan"]
            return StateError(f"its stamp is further than {lifespan:g} s (parameter setpoint_lifespan) from the clock")
        if why.name == "in_contact":
            joint = self.arm.robot.joint_names[int(loop.number("contact_joint"))]
            return StateError(f"contact at {joint}: {SAID['until_rest']}")
        if why.name == "early":
            return EarlySetpointError(SAID[why.name])
        if why.name == "busy" and loop.number("aiming"):
            return StateError("the arm moves to a target")
        if why.name == "overload":
            return StateError(": ".join(filter(None, [overload(loop), "the arm cannot rest at the target"])))
        if why.name == "motor_step":
            return StateError(f"{blocked(loop)}: {SAID[why.name]}")
        if text := SAID.get(why.name):
            return (TrajectoryError if why.name in ("busy", "ended", "too_far_ahead") else StateError)(text)
        if why.name in _IN_DOUBT:
            return DoubtfulSetpointError(f"in doubt: {self.suspicion()}{self._question()}")
        return _error_of(self._evaluate)

    def require_radians(self, q: Array) -> None:
        """Refuse a first position (n,) of which a joint without limits is so far from zero as if it was in degrees."""
        lower, upper = limits_of_joints(self.arm)[:2]
        refuse_degrees(self.arm.robot, np.where(np.isfinite(lower) & np.isfinite(upper), np.nan, q), lower, upper)

    def refuse_far(self, positions: Array) -> None:
        """Refuse targets (…, n), NaN for none, more than a turn beyond their range, unless limits are ignored."""
        if self.loop.settings["limits"] != "ignore":
            for q in positions.reshape(-1, self.arm.robot.n):
                self._limits.refuse_far(q)

    def _evaluate(self) -> None:
        """Raise the error of the reference for the setpoint that is given."""
        given, arm = self.loop.given, self.arm
        wrench = tuple(given[name].reshape(arm.robot.wrench_shape) for name in WRENCH_NAMES)
        stiffness = tuple(given[name].copy() for name in STIFFNESS_NAMES) if arm.variable.any() else ()
        base = None
        if self.loop.number("given_on_base"):
            base = read_base_motion(SimpleNamespace(base=[rows(given, (*IMU_NAMES[0], *IMU_NAMES[1]))]))
        state, policy = rows(given, STATE_NAMES), self.loop.settings["limits"]
        self.evaluator.command(self.order, state, wrench, stiffness, base, limit_policy=policy, lead=self.lead)

    def _question(self) -> str:
        """A question at the end of the refusal of a first setpoint that is as fast as in degrees; else empty."""
        if self.loop.number("fed"):
            return ""
        most, joints = self._limits.rate_limits[0], self.arm.robot.independent_joints
        units = [unit("velocity", joint.type) for joint in joints]
        names = self.arm.robot.joint_names
        return question_of_speed(limit_violations(names, "velocity", units, self.loop.given["qd"], -most, most))

    def _far_from_hold(self) -> StateError:
        """The error of the given setpoint with a joint further than ``resume_distance`` from where it is held."""
        with np.errstate(over="ignore"):
            away = np.abs(self.loop.given["q"] - self.loop.setpoint["q"])
        joint, most = int(np.argmax(away)), self.loop.settings["resume_distance"]
        if away[joint] <= most:  # a stop that was asked for
            return StateError("the arm is being stopped: setpoints are followed again once it rests")
        name, kind = self.arm.robot.joint_names[joint], self.arm.robot.independent_joints[joint].type
        return StateError(
            f"{name} is {away[joint]:.3g} {unit('position', kind)} from where it is held, after a loss of "
            f"setpoints or a stop, more than {most:g} (parameter resume_distance): begin there, or send a target"
        )


def _error_of(call: Callable[[], object]) -> EomDynamicsError:
    """The error that a call raises."""
    try:
        call()
    except EomDynamicsError as error:
        return error
    return StateError("numbers too large: the command would not be finite")
