# SPDX-License-Identifier: Apache-2.0
"""Supervision of the setpoint stream: timers, parameters and events of the node for the watchdog of the loop."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from math import isfinite
from typing import Any, cast

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from ...control.control_loop import LoopRecord
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import DEFAULTS, LONGEST_GAP, Status
from ...elastic import LimitViolation
from ...exceptions import StateError
from ..diagnostics import Level, StatusReport, present
from ..robot_node import RobotNode
from .clocks import WatchedClock

# Between observations, s: as fast as a timer of Python is worth, and often enough to see publishers go.
_SHORTEST_PERIOD, _LONGEST_PERIOD = 5e-4, 0.05

# Observations within a timeout.
_OBSERVATIONS = 10

# Of counting publishers, s.
_COUNT_PERIOD = 0.02

_CLOCK_STANDS_STILL = (
    "the node's clock stands still, the watchdog goes by the steady clock: publish /clock, or set use_sim_time to false"
)


class Phase(Enum):
    """State of the stream, with its name in diagnostics."""

    WAITING = "waiting"
    STREAMING = "streaming"
    LOST = "lost"
    STOPPING = "stopping"
    HELD = "held"
    RAMPING = "ramping"
    RELEASED = "released"


_MESSAGES = {
    Phase.LOST: (Level.WARN, "no setpoints"),
    Phase.STOPPING: (Level.WARN, "coming to rest"),
    Phase.HELD: (Level.WARN, "holding the last position"),
    Phase.RAMPING: (Level.ERROR, "ramping efforts down"),
    Phase.RELEASED: (Level.ERROR, "efforts are zero: deactivate and activate the node"),
}

_ENDED_AT_REST = "the stream has ended at rest"


class Supervision:
    """Watchdog and checks of the setpoint stream; all methods are called by the node's executor.

    The control loop responds to a loss; this tells it of what only the node knows, runs its cycles meanwhile, and
    reports.

    Args:
        send: publishes the command of a loop in its response to a loss, with the limits that it exceeds.
        publishers: counts publishers of setpoints.
        playing: whether a trajectory is being played.

    Attributes:
        clock: the node's clock, which may stand still.
        losses: how often setpoints were lost.
        last_loss: the cause of the last loss.
        locate: has a loop begin where the arm is.
    """

    def __init__(
        self,
        node: RobotNode,
        send: Callable[[SetpointLoop, tuple[LimitViolation, ...]], None],
        deactivate: Callable[[], None],
        publishers: Callable[[], int],
        playing: Callable[[], bool],
    ) -> None:
        self._node, self._send, self._deactivate = node, send, deactivate
        self._publishers, self._playing = publishers, playing
        clock = node.get_clock().handle
        self.clock = WatchedClock(lambda: clock.get_now().nanoseconds)  # in a quarter of the time of Clock.now()
        self.losses, self.last_loss = 0, ""
        self.locate: Callable[[SetpointLoop], object] = lambda loop: None
        # That which is watched; None while nothing is.
        self._loop: SetpointLoop | None = None
        # Why the arm is brought to rest, or held; empty while setpoints are answered.
        self._cause = ""
        self._events: list[str] = []
        self._ticks, self._count_every = 0, 1
        self._lost_and_inactive = self._responds = False
        # Whether a setpoint was answered since the last observation, and whether that was one of a trajectory.
        self._fed = self._last_was_of_trajectory = False
        self._clock_stands_still = False
        # Time of the last response.
        self._responded = -1
        # Called at the end of a response that ends the stream.
        self._done: Callable[[], None] | None = None
        period = 1.0 / node.get_parameter("stream_rate").value
        self._responses = node.punctual.create(node, period, self._tick_response, steady=True)
        self._observations = node.punctual.create(node, _LONGEST_PERIOD, self._observe, steady=True)

    @property
    def phase(self) -> Phase:
        """State of the stream."""
        if self._loop is None:
            return Phase.WAITING
        record = self._loop.record
        status, lost = Status(record.status), record.lost
        if (lost or record.held) and record.stopping:
            if lost and self._loop.loop.settings["on_setpoint_loss"] == "ramp":
                return Phase.RAMPING if status is Status.RAMPING else Phase.RELEASED
            return Phase.STOPPING if status is Status.STOPPING else Phase.HELD
        if lost:
            return Phase.LOST
        # At the end of a trajectory, the arm is at rest as intended.
        return Phase.STREAMING if record.fed and not record.stopping else Phase.WAITING

    @property
    def responding(self) -> bool:
        """Whether the loop brings the arm to rest, or holds it, in the place of setpoints."""
        return self._responds

    def begin(self, loop: SetpointLoop) -> None:
        """Supervise a new stream for a loop, by the parameters of the node.

        An arm that is held at rest stays held by the robot of the loop.
        """
        settings = {name: self._node.get_parameter(name).value for name in _SETTINGS}
        loop.configure(**settings, setpoint_lifespan=0.0)  # the node drops setpoints before the loop
        timeout, policy = settings["setpoint_timeout"], settings["on_setpoint_loss"]
        watches = bool(timeout) or policy != "none"
        holds, cause = self._responds, self._cause
        self.end()
        self._loop = loop
        self._lost_and_inactive = False
        self._announce(policy, timeout)
        if settings["jump_check"] != "ignore" and not loop.limits_rates:
            self._node.get_logger().warning(
                "jump_check has no effect: the robot has no limits of velocity, acceleration or jerk"
            )
        if watches:
            period = timeout / _OBSERVATIONS if timeout else _LONGEST_PERIOD
            period = min(max(period, _SHORTEST_PERIOD), _LONGEST_PERIOD)
            self._count_every = max(round(_COUNT_PERIOD / period), 1)
            self._observations.timer_period_ns = round(period * 1e9)
            self._observations.reset()
        if holds:
            loop.loop.act("stop")
            self._cause, self._responds, self._responded = cause, True, -1
            self._responses.reset()

    def end(self) -> None:
        """End the supervision: the node is not active."""
        self._observations.cancel()
        self._responses.cancel()
        self._loop = self._done = None
        self._cause = ""
        self._responds = False

    def come_to_rest(self, loop: SetpointLoop, cause: str, done: Callable[[], None] | None = None) -> None:
        """Bring the arm of a loop to rest, whatever the policy.

        A response under way goes on.

        Args:
            done: called at the end, at once or by a timer; it ends the stream.
        """
        if not self._responds or self._overtaken:
            self._responds = False
            self.locate(loop)
            if not loop.moves:
                if done:
                    done()
                return
            names = ("stop_duration", "resume_distance")
            loop.configure(**{name: self._node.get_parameter(name).value for name in names})
            loop.loop.act("stop")
            self._loop, self._cause = loop, cause
            self._responds, self._responded = True, -1
            self._node.get_logger().info(f"{cause}: {_description_of_stop(loop)}")
        elif done and self._at_rest:
            done()
            return
        self._done = done
        self._responses.reset()
        self._tick_response()

    @property
    def _at_rest(self) -> bool:
        """Whether the response has come to its end, at once where no stop is possible."""
        return self.phase not in (Phase.STOPPING, Phase.RAMPING)

    @property
    def _overtaken(self) -> bool:
        """Whether a motion or a mode has begun in the place of the response, of which nothing has been sent yet."""
        record = self._loop.record if self._loop else LoopRecord()
        return not (record.held or record.lost)

    def answered(self, loop: SetpointLoop) -> None:
        """Record a setpoint, or a sample of a trajectory, whose command has been sent."""
        if self._responds:
            self._responds = False
            self._responses.cancel()
            if not (self._playing() or loop.record.aiming):
                self._node.get_logger().info("setpoints are back")
        self._loop, self._cause = loop, ""
        self._fed = True
        self._last_was_of_trajectory = self._playing()

    def watch_quality(self, subscription: Subscription, quality: QoSProfile) -> None:
        """Respond to missed deadlines and lost liveliness of a subscription, where its quality of service has them."""
        deadline, lease = quality.deadline.nanoseconds, quality.liveliness_lease_duration.nanoseconds
        self._events = [f"a missed deadline of {deadline * 1e-9:g} s"] if deadline else []
        self._events += [f"an expired lease of {lease * 1e-9:g} s"] if lease else []

        def on_liveliness(changed: Any) -> None:
            if not changed.alive_count and changed.alive_count_change < 0:
                self._miss("no publisher is alive")

        callbacks = SubscriptionEventCallbacks(
            deadline=(lambda _: self._miss(f"deadline of {deadline * 1e-9:g} s missed")) if deadline else None,
            liveliness=on_liveliness if lease else None,
            use_default_callbacks=False,
        )
        group = self._node.default_callback_group
        for handler in callbacks.create_event_handlers(group, subscription.handle, subscription.topic_name):
            cast(Any, subscription).event_handlers.append(handler)
            self._node.add_waitable(handler)

    def report(self, report: StatusReport) -> StatusReport:
        """The diagnostic status with the findings of the supervision added."""
        level, message, values = report
        phase = self.phase
        if self._loop is not None and (self._watches or self._responds):
            values["watchdog"] = phase.value
        values |= present({"setpoints lost": self.losses, "last loss": self.last_loss})
        if self._loop is not None:
            values |= present({"early setpoints": self._loop.record.early})
            counts = self._loop.suspicions
            values |= {f"in doubt: {check}": str(count) for check, count in sorted(counts.items())}
        if self._clock_stands_still and level <= Level.WARN:
            level, message = Level.WARN, _CLOCK_STANDS_STILL
        if self._loop is not None and self._loop.record.ended_at_rest:
            message = f"{_ENDED_AT_REST}: {self._cause}"
        elif phase in _MESSAGES and (self._cause or phase is Phase.LOST):
            own, what = _MESSAGES[phase]
            lost = "" if self._done or self._cause not in ("", self.last_loss) else "setpoints lost, "
            level, message = Level(max(level, own)), f"{lost}{what}: {self._cause}"
        elif self._lost_and_inactive:
            level, message = Level.ERROR, f"setpoints lost, deactivated: {self.last_loss}"
        return StatusReport(level, message, values)

    @property
    def _watches(self) -> bool:
        return not self._observations.is_canceled()

    def _announce(self, policy: str, timeout: float) -> None:
        """Log what counts as a loss of setpoints, and the response to it."""
        logger = self._node.get_logger()
        if not timeout and policy == "none":
            logger.info("watchdog: off (setpoint_timeout 0, on_setpoint_loss none)")
            return
        causes = [f"{timeout:g} s without setpoints"] if timeout else []
        causes += [*self._events, "the end of the last publisher"]
        response = "report" if policy == "none" else policy
        logger.info(f"watchdog: {response} after {' or '.join(causes)}")
        if not timeout and not self._events:
            logger.warning(
                f"on_setpoint_loss is {policy}, but setpoint_timeout is 0: a publisher that hangs is not noticed, one "
                "that was killed up to 20 s later; set setpoint_timeout, such as 0.02"
            )

    def _miss(self, cause: str) -> None:
        """Respond to a late or absent publisher, unless setpoints come from a trajectory."""
        if not (self._last_was_of_trajectory and self._playing()):
            self._lose(cause)

    def _observe(self) -> None:
        now, loop = self.clock.now(), self._loop
        if loop is None:
            return
        fed, self._fed = self._fed, False
        if self.clock.stands_still and not self._clock_stands_still:
            self._node.get_logger().warning(_CLOCK_STANDS_STILL)
        self._clock_stands_still = self.clock.stands_still
        self._ticks += 1
        if self._responds or self._playing():
            return
        # A loss after a pause must not lead an arm back that rested.
        paused = not fed and loop.loop.settings["setpoint_timeout"] > 1e-9 * LONGEST_GAP
        if paused and not (loop.moves or loop.record.lost):
            self.locate(loop)
        record = loop.record
        waits, followed = record.early_waits, record.followed
        code = loop.loop.update(now)
        if waits and loop.record.followed > followed and loop.loop.status is Status.FRESH:
            self._publish(loop, code)
            self.answered(loop)
        if not self.notice_loss(now, code) and not (fed or self._ticks % self._count_every) and not self._publishers():
            self._lose("the last publisher has gone")

    def notice_loss(self, now: int = -1, code: int = 0) -> bool:
        """Respond to a loss that a cycle has found, also that of a refused setpoint; arguments as of _respond."""
        loop = self._loop
        if loop is None or self._responds or self._cause or not loop.record.lost:
            return False
        age, timeout = loop.record.age, loop.loop.settings["setpoint_timeout"]
        self._respond(loop, f"no valid setpoint for {age:.3g} s (setpoint_timeout {timeout:g} s)", now, code)
        return True

    def _lose(self, cause: str) -> None:
        loop = self._loop
        if loop is None or not self._watches or self.phase is not Phase.STREAMING:
            return
        self.locate(loop)
        loop.loop.act("lose")
        now = self.clock.now()
        self._respond(loop, cause, now, loop.loop.update(now))

    def _respond(self, loop: SetpointLoop, cause: str, now: int, code: int) -> None:
        """Report a loss, and begin its response, if any, with the cycle of a time, ns, and what that has returned."""
        self._cause = cause
        policy, logger = loop.loop.settings["on_setpoint_loss"], self._node.get_logger()
        stops = _description_of_stop(loop)
        ramp = loop.loop.settings["ramp_duration"]
        fades = f"efforts fade to zero within {ramp:g} s, {stops}"
        what = {"hold": stops, "ramp": fades, "deactivate": "the node stops the arm and deactivates itself"}
        response = what.get(policy, "nothing is done (on_setpoint_loss: none)")
        if loop.record.ended_at_rest:
            logger.info(f"{_ENDED_AT_REST}: {cause}")
        else:
            self.losses += 1
            self.last_loss = cause
            logger.error(f"setpoints lost: {cause}; {response}")
        if policy in ("hold", "ramp"):
            self._responds, self._responded = True, now
            self._responses.reset()
            self._publish(loop, code)
        elif policy == "deactivate":
            self._lost_and_inactive = True
            self._deactivate()

    def _tick_response(self) -> None:
        loop = self._loop
        if loop is None or not self._responds:
            self._responses.cancel()
            return
        if self._overtaken:  # by a motion that waits where the node's clock stands still
            self._responds, done = False, self._done
            if done:
                self.come_to_rest(loop, self._cause, done)
            return
        now = self.clock.now()
        if now == self._responded:  # between two readings of /clock
            return
        self._responded = now
        self._publish(loop, loop.loop.update(now, 1e-9 * self._responses.timer_period_ns))
        if self._done and self._at_rest:
            done, self._done = self._done, None
            done()

    def _publish(self, loop: SetpointLoop, code: int) -> None:
        """Publish the command of a cycle of the response, by what the cycle has returned."""
        try:
            self._send(loop, loop.responded(code))
        except StateError as error:
            if self._node.is_due("no response"):
                self._node.get_logger().error(f"no command for the response to lost setpoints: {error}")


def _description_of_stop(loop: SetpointLoop) -> str:
    record = loop.record
    excess, duration = record.excess, record.stop_end
    if not isfinite(excess):
        return "its position is held, as no stop is possible: numbers would be too large, or a spring slack"
    beyond = f", beyond limits by {100 * excess / 2:.2g} % of their range" if excess > 0 else ""
    return f"the arm stops within {duration:.3g} s{beyond}" if isfinite(duration) else "the arm stops on its path"


# Settings of the loop that are parameters of the node, but for those of the stream.
_SETTINGS = {*DEFAULTS} - {"limits", "setpoint_lifespan"}
