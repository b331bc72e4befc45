# SPDX-License-Identifier: Apache-2.0
"""Supervision of the setpoint stream: connects :mod:`...stream` to timers, parameters and events of the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from ...arrays import Array
from ...exceptions import StateError
from ...messages.setpoint_to_command import EvaluatedCommand, SetpointEvaluator, refusal_reason
from ...stream.doubts import Doubts, DoubtSettings
from ...stream.watchdog import OBSERVATIONS, Phase, Response, Settings, Watchdog, WatchedClock
from ...terminal import printable
from ..diagnostics import Level, StatusReport
from ..executors import steady_timer
from ..robot_node import RobotNode

# Between observations, s: as fast as a timer of Python is worth, and often enough to see publishers go.
_SHORTEST_PERIOD, _LONGEST_PERIOD = 5e-4, 0.05

# Of counting publishers, s.
_COUNT_PERIOD = 0.02

_CLOCK_STANDS_STILL = (
    "the node's clock stands still, the watchdog goes by the steady clock: publish /clock, or set use_sim_time to false"
)

_MESSAGES = {
    Phase.LOST: (Level.WARN, "no setpoints"),
    Phase.STOPPING: (Level.WARN, "coming to rest"),
    Phase.HELD: (Level.WARN, "holding the last position"),
    Phase.RAMPING: (Level.ERROR, "ramping efforts down"),
    Phase.RELEASED: (Level.ERROR, "efforts are zero: deactivate and activate the node"),
}


class Supervision:
    """Watchdog and checks of the setpoint stream; all methods are called by the node's executor.

    Args:
        send: publishes a response to a loss by an evaluator, in the message order of a command; returns whether that
            was possible.
        publishers: counts publishers of setpoints.
        playing: whether setpoints are those of a trajectory.

    Attributes:
        clock: the node's clock, which may stand still.
        on: whether setpoints are to be passed to :meth:`admit` and :meth:`feed`.
        losses: how often setpoints were lost.
        last_loss: the cause of the last loss.
    """

    def __init__(
        self,
        node: RobotNode,
        send: Callable[[SetpointEvaluator, EvaluatedCommand, Response], bool],
        deactivate: Callable[[], None],
        publishers: Callable[[], int],
        playing: Callable[[], bool],
    ) -> None:
        self._node, self._send, self._deactivate = node, send, deactivate
        self._publishers, self._playing = publishers, playing
        self.clock = WatchedClock(lambda: int(node.get_clock().now().nanoseconds))
        self.on = False
        self.losses, self.last_loss = 0, ""
        self._watchdog: Watchdog | None = None
        # That of the arm that the watchdog watches; and both for a robot that is to take over.
        self._evaluator: SetpointEvaluator | None = None
        self._successor: tuple[Watchdog, SetpointEvaluator] | None = None
        self._doubts: Doubts | None = None
        self._reported = 0
        self._events: list[str] = []
        self._ticks, self._count_every = 0, 1
        self._lost_and_inactive = False
        # Whether the last answered setpoint was one of a trajectory.
        self._last_was_of_trajectory = False
        self._clock_stands_still = False
        # Time of the last response.
        self._responded = -1
        # Called at the end of a response that ends the stream.
        self._done: Callable[[], None] | None = None
        period = 1.0 / node.get_parameter("stream_rate").value
        self._responses = steady_timer(node, period, self._tick_response, autostart=False)
        self._observations = steady_timer(node, _LONGEST_PERIOD, self._observe, autostart=False)

    @property
    def responding(self) -> bool:
        """Whether commands come from the watchdog instead of setpoints."""
        return self._watchdog is not None and self._watchdog.responding

    def begin(self, evaluator: SetpointEvaluator) -> None:
        """Supervise a new stream for the arm of an evaluator, by the parameters of the node.

        An arm that moves is not left alone where another robot takes its place: it is watched, and stopped, until the
        first valid setpoint for the new one.
        """
        arm = evaluator.arm
        settings = Settings(*(self._node.get_parameter(name).value for name in _SETTINGS))
        checks = DoubtSettings(*(self._node.get_parameter(name).value for name in _CHECKS))
        watches = bool(settings.timeout) or settings.policy != "none"
        watchdog = self._watchdog
        if watchdog is not None and (watchdog.phase is Phase.STREAMING or watchdog.responding):
            self._successor = Watchdog(arm, settings), evaluator
        else:
            self.end()
            self._watchdog, self._evaluator = (Watchdog(arm, settings) if watches else None), evaluator
        self._doubts = Doubts(arm, checks) if checks.any else None
        self.on = watches or checks.any or self._successor is not None
        self._lost_and_inactive = False
        self._reported = 0
        self._announce(settings)
        if checks.jumps != "ignore" and self._doubts is not None and not self._doubts.limited:
            self._node.get_logger().warning(
                "jump_check has no effect: the robot has no limits of velocity, acceleration or jerk"
            )
        if watches:
            period = settings.timeout / OBSERVATIONS if settings.timeout else _LONGEST_PERIOD
            period = min(max(period, _SHORTEST_PERIOD), _LONGEST_PERIOD)
            self._count_every = max(round(_COUNT_PERIOD / period), 1)
            self._observations.timer_period_ns = round(period * 1e9)
            self._observations.reset()

    def end(self) -> None:
        """End the supervision: the node is not active."""
        self._observations.cancel()
        self._responses.cancel()
        self._watchdog = self._doubts = self._evaluator = self._successor = self._done = None
        self.on = False

    def come_to_rest(
        self, evaluator: SetpointEvaluator, last: EvaluatedCommand, cause: str, done: Callable[[], None] | None = None
    ) -> None:
        """Bring the arm to rest from the last command of an evaluator, whatever the policy.

        A response under way goes on.

        Args:
            done: called at the end, at once or by a timer; it ends the stream.
        """
        watchdog = self._watchdog
        if watchdog is None or not watchdog.responding:
            names = ("stop_duration", "resume_distance")
            settings = Settings(**{name: self._node.get_parameter(name).value for name in names})
            watchdog = Watchdog(evaluator.arm, settings)
            self._watchdog, self._evaluator = watchdog, evaluator
            self._responded = -1
            try:
                watchdog.end(last, cause)
            except Exception as error:
                reason = printable(refusal_reason(error))
                self._node.get_logger().error(f"{cause}: the arm is not brought to rest, no stop is possible: {reason}")
                if done:
                    done()
                return
            if watchdog.stop_duration:
                self._node.get_logger().info(f"{cause}: {_description_of_stop(watchdog)}")
        if watchdog.at_rest and done:
            done()
            return
        self._done, self._successor = done, None
        self._responses.reset()
        self._tick_response()

    @property
    def released(self) -> bool:
        """Whether efforts fade, or have faded, to zero."""
        return self._watchdog is not None and self._watchdog.released

    def require_efforts(self) -> None:
        """Raise StateError if efforts fade, or have faded, to zero."""
        if self._watchdog is not None:
            self._watchdog.require_efforts()

    def expect_nothing(self) -> None:
        """Record that the stream has ended as intended."""
        if self._watchdog is not None and not self._watchdog.responding:
            self._watchdog.disarm()
        if self._doubts is not None:
            self._doubts.restart()

    def admit(self, stamp: int, state: Array) -> None:
        """Check a setpoint q … qdddd (5, n) with a stamp, ns, 0 for none; StateError if it is refused."""
        if self._watchdog is not None:
            robots = (self._evaluator, self._successor and self._successor[1])
            joints = {evaluator.arm.robot.joint_names for evaluator in robots if evaluator}
            self._watchdog.admit(state[0] if len(joints) == 1 else None)
        if self._doubts is not None and not self._playing() and (text := self._doubts.judge(stamp, state)):
            self._node.warn("setpoint in doubt", printable(text))

    def feed(self, stamp: int, command: EvaluatedCommand) -> None:
        """Record an answered setpoint and its stamp, ns."""
        if self._watchdog is not None:
            if self._watchdog.responding:
                self._responses.cancel()
                self._node.get_logger().info("setpoints are back")
            if self._successor is not None:
                self._watchdog, self._evaluator = self._successor
                self._successor = None
            self._watchdog.feed(command)
            self._last_was_of_trajectory = self._playing()
        if self._doubts is not None:
            self._doubts.answered(stamp, command.state)

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
        watchdog, doubts = self._watchdog, self._doubts
        if watchdog is not None:
            values["watchdog"] = watchdog.phase.value
        if self.losses:
            values["setpoints lost"] = str(self.losses)
            values["last loss"] = self.last_loss
        if doubts is not None:
            values |= {f"in doubt: {check}": str(count) for check, count in sorted(doubts.counts.items())}
            found, self._reported = doubts.counts.total() - self._reported, doubts.counts.total()
            if found and level == Level.OK:
                level, message = Level.WARN, f"{found} suspect setpoints, the last: {doubts.last}"
        if self._clock_stands_still and self.on and level <= Level.WARN:
            level, message = Level.WARN, _CLOCK_STANDS_STILL
        if watchdog is not None and watchdog.phase in _MESSAGES:
            own, what = _MESSAGES[watchdog.phase]
            lost = "" if self._done else "setpoints lost, "
            level, message = Level(max(level, own)), f"{lost}{what}: {watchdog.cause}"
        elif self._lost_and_inactive:
            level, message = Level.ERROR, f"setpoints lost, deactivated: {self.last_loss}"
        return StatusReport(level, message, values)

    def _announce(self, settings: Settings) -> None:
        """Log what counts as a loss of setpoints, and the response to it."""
        policy, timeout, logger = settings.policy, settings.timeout, self._node.get_logger()
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

    @property
    def _follows_trajectory(self) -> bool:
        """Whether setpoints come from a trajectory, and not from publishers; no longer, or not yet, is not."""
        return self._last_was_of_trajectory and self._playing()

    def _miss(self, cause: str) -> None:
        if not self._follows_trajectory:
            self._lose(cause)

    def _observe(self) -> None:
        watchdog = self._watchdog
        if watchdog is None:
            return
        fed = watchdog.age.fed
        cause = watchdog.observe(self.clock.now())
        if self.clock.stands_still and not self._clock_stands_still:
            self._node.get_logger().warning(_CLOCK_STANDS_STILL)
        self._clock_stands_still = self.clock.stands_still
        self._ticks += 1
        if not (cause or fed or self._ticks % self._count_every or self._follows_trajectory) and not self._publishers():
            cause = "the last publisher has gone"
        if cause:
            self._lose(cause)

    def _lose(self, cause: str) -> None:
        watchdog = self._watchdog
        if watchdog is None or watchdog.phase is not Phase.STREAMING:
            return
        self.losses += 1
        self.last_loss = cause
        policy, logger = watchdog.settings.policy, self._node.get_logger()
        try:
            responds = watchdog.lose(cause)
        except StateError as error:
            logger.error(f"setpoints lost: {cause}; the last command is repeated, as no stop is possible: {error}")
            responds = True
        else:
            stops = _description_of_stop(watchdog)
            fades = f"efforts fade to zero within {watchdog.settings.ramp_duration:g} s, {stops}"
            what = {"hold": stops, "ramp": fades, "deactivate": "the node stops the arm and deactivates itself"}
            logger.error(f"setpoints lost: {cause}; {what.get(policy, 'nothing is done (on_setpoint_loss: none)')}")
        if responds:
            self._responded = -1
            self._responses.reset()
            self._tick_response()
        elif policy == "deactivate":
            self._lost_and_inactive = True
            self._deactivate()

    def _tick_response(self) -> None:
        watchdog = self._watchdog
        if watchdog is None or self._evaluator is None or not watchdog.responding or watchdog.last is None:
            self._responses.cancel()
            return
        now = self.clock.now()
        if now == self._responded:  # between two readings of /clock
            return
        self._responded = now
        response = watchdog.respond(now)
        if self._send(self._evaluator, watchdog.last, response):
            watchdog.commit(response)
            if self._doubts is not None:
                self._doubts.moved(response.flow.state)
        if watchdog.at_rest and self._done:
            done, self._done = self._done, None
            done()


def _description_of_stop(watchdog: Watchdog) -> str:
    beyond = "" if watchdog.within_limits else f", beyond limits by {100 * watchdog.excess / 2:.2g} % of their range"
    return f"the arm stops within {watchdog.stop_duration:.3g} s{beyond}"


# Parameters of the node, in the order of Settings and of DoubtSettings.
_SETTINGS = ("on_setpoint_loss", "setpoint_timeout", "stop_duration", "ramp_duration", "resume_distance")
_CHECKS = (
    *("stamp_check", "jump_check", "consistency_check"),
    *("consistency_tolerance", "consistency_window", "consistency_order"),
)
