# SPDX-License-Identifier: Apache-2.0
"""Supervision of the setpoint stream: timers, parameters and events of the node for the watchdog of the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from ...control.setpoint_loop import SetpointLoop
from ...control.settings import DEFAULTS, LONGEST_GAP, LOOP_SETTINGS, SAFETY, SETTINGS, Status
from ..diagnostics import Level, StatusReport, present
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .measured_arm import MeasuredArm
from .stops import Stops, StreamPhase, description_of_stop

# Between observations, s: as fast as a timer of Python is worth, and often enough to see publishers go.
_SHORTEST_PERIOD, _LONGEST_PERIOD = 5e-4, 0.05

# Observations within a timeout.
_OBSERVATIONS = 10

# Period of counting publishers, s.
_COUNT_PERIOD = 0.02

_CLOCK_STANDS_STILL = (
    "the node's clock stands still, the watchdog goes by the steady clock: publish /clock, or set use_sim_time to false"
)


_MESSAGES = {
    StreamPhase.LOST: (Level.WARN, "no setpoints"),
    StreamPhase.STOPPING: (Level.WARN, "coming to rest"),
    StreamPhase.HELD: (Level.WARN, "holding the last position"),
}

_ENDED_AT_REST = "the stream has ended at rest"


class Supervision:
    """Watchdog and checks of the setpoint stream; all methods are called by the node's executor.

    The control loop responds to a loss; this tells it of what only the node knows, runs its cycles meanwhile, and
    reports.

    Attributes:
        clock: the node's clock, which may stand still.
        losses: how often setpoints were lost.
        last_loss: the cause of the last loss.
    """

    def __init__(
        self, node: RobotNode, clock: WatchedClock, measured: MeasuredArm, stops: Stops, deactivate: Callable[[], None]
    ) -> None:
        self._node, self.clock, self._measured, self._stops = node, clock, measured, stops
        self._deactivate = deactivate
        self._publishers: Callable[[], int] = lambda: 0
        self.losses, self.last_loss = 0, ""
        self._events: list[str] = []
        self._ticks, self._count_every = 0, 1
        self._lost_and_inactive = False
        # True if a setpoint was answered since the last observation, and if it was a trajectory's.
        self._fed = self._last_was_of_trajectory = False
        self._clock_stands_still, self._resets = False, 0
        self._observations = node.punctual.create(node, _LONGEST_PERIOD, self._observe, steady=True)

    def begin(self, loop: SetpointLoop) -> None:
        """Supervise a new stream for a loop, by the parameters of the node.

        An arm that is held at rest stays held by the robot of the loop.
        """
        level = SAFETY[self._node.get_parameter("safety").value]
        settings = {name: self._node.get_parameter(name).value for name in _SETTINGS}
        settings |= {name: level[name] for name in LOOP_SETTINGS}
        loop.configure(**settings | {"setpoint_lifespan": 0.0})  # the node drops setpoints before the loop
        timeout, policy = settings["setpoint_timeout"], settings["on_setpoint_loss"]
        watches = bool(timeout) or policy != "none"
        self.end()
        self._stops.begin(loop)
        self._lost_and_inactive = False
        self._announce(policy, timeout)
        if loop.loop.settings["jump_check"] != "ignore" and not loop.limits_rates:
            self._node.get_logger().warning(
                "jumps are not checked: the robot has no limits of velocity, acceleration or jerk"
            )
        if watches:
            period = timeout / _OBSERVATIONS if timeout else _LONGEST_PERIOD
            period = min(max(period, _SHORTEST_PERIOD), _LONGEST_PERIOD)
            self._count_every = max(round(_COUNT_PERIOD / period), 1)
            self._observations.timer_period_ns = round(period * 1e9)
            self._observations.reset()

    def end(self) -> None:
        """End the supervision: the node is not active."""
        self._observations.cancel()

    def answered(self, loop: SetpointLoop) -> None:
        """Record an answered setpoint or sample of a trajectory."""
        self._stops.answered(loop)
        self._fed = True
        self._last_was_of_trajectory = _leads(loop)

    def watch_quality(self, subscription: Subscription, quality: QoSProfile) -> None:
        """Respond to missed deadlines and lost liveliness of a subscription, where its quality of service has them."""
        self._publishers = subscription.get_publisher_count
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
        phase = self._stops.phase
        if self._stops.loop is not None and (self._watches or self._stops.responding):
            values["watchdog"] = phase.value
        values |= present({"clock resets": self.clock.resets})
        values |= present({"setpoints lost": self.losses, "last loss": self.last_loss})
        if self._stops.loop is not None:
            values |= present({"early setpoints": self._stops.loop.record.early})
            counts = self._stops.loop.suspicions
            values |= {f"in doubt: {check}": str(count) for check, count in sorted(counts.items())}
        if self._clock_stands_still and level <= Level.WARN:
            level, message = Level.WARN, _CLOCK_STANDS_STILL
        if self._stops.loop is not None and self._stops.loop.record.ended_at_rest:
            message = f"{_ENDED_AT_REST}: {self._stops.cause}"
        elif phase in _MESSAGES and (self._stops.cause or phase is StreamPhase.LOST):
            severity, what = _MESSAGES[phase]
            lost = "" if self._stops.done or self._stops.cause not in ("", self.last_loss) else "setpoints lost, "
            level, message = Level(max(level, severity)), f"{lost}{what}: {self._stops.cause}"
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
        loop = self._stops.loop
        if not (self._last_was_of_trajectory and loop is not None and _leads(loop)):
            self._lose(cause)

    def _observe(self) -> None:
        now, loop = self.clock.now(), self._stops.loop
        if loop is None:
            return
        fed, self._fed = self._fed, False
        if self.clock.stands_still and not self._clock_stands_still:
            self._node.get_logger().warning(_CLOCK_STANDS_STILL)
        self._clock_stands_still = self.clock.stands_still
        if self.clock.resets != self._resets:
            self._resets = self.clock.resets
            self._node.warn("clock", "it went back, and is followed from there on")
        self._ticks += 1
        if self._stops.responding or _leads(loop):
            return
        # A loss after a pause must not lead an arm back that rested.
        paused = not fed and loop.loop.settings["setpoint_timeout"] > 1e-9 * LONGEST_GAP
        if paused and not (loop.moves or loop.record.lost):
            self._measured.locate(loop)
        record = loop.record
        waits, followed = record.early_waits, record.followed
        # At the end of a motion nothing is sent, and nothing can be lost; a cycle of the loop would count as a command.
        if record.stopping and not waits:
            return
        code = loop.loop.update(now)
        if waits and loop.record.followed > followed and loop.loop.status is Status.FRESH:
            self._stops.publish(loop, code)
            self.answered(loop)
        if not self.notice_loss(now, code) and not (fed or self._ticks % self._count_every) and not self._publishers():
            self._lose("the last publisher has gone")

    def notice_loss(self, now: int = -1, code: int = 0) -> bool:
        """Respond to a loss found by a cycle, also after a refused setpoint; arguments as for _respond."""
        loop = self._stops.loop
        if loop is None or self._stops.responding or self._stops.cause or not loop.record.lost:
            return False
        age, timeout = loop.record.age, loop.loop.settings["setpoint_timeout"]
        self._respond(loop, f"no valid setpoint for {age:.3g} s (setpoint_timeout {timeout:g} s)", now, code)
        return True

    def _lose(self, cause: str) -> None:
        loop = self._stops.loop
        if loop is None or not self._watches or self._stops.phase is not StreamPhase.STREAMING:
            return
        self._measured.locate(loop)
        loop.loop.act("lose")
        now = self.clock.now()
        self._respond(loop, cause, now, loop.loop.update(now))

    def _respond(self, loop: SetpointLoop, cause: str, now: int, code: int) -> None:
        """Report a loss, and begin its response, if any, with the cycle of a time, ns, and what that has returned."""
        self._stops.cause = cause
        policy, logger = loop.loop.settings["on_setpoint_loss"], self._node.get_logger()
        stops = description_of_stop(loop)
        what = {"hold": stops, "deactivate": "the node stops the arm and deactivates itself"}
        response = what.get(policy, "nothing is done (on_setpoint_loss: none)")
        if loop.record.ended_at_rest:
            logger.info(f"{_ENDED_AT_REST}: {cause}")
        else:
            self.losses += 1
            self.last_loss = cause
            logger.error(f"setpoints lost: {cause}; {response}")
        if policy != "none":
            self._stops.respond(loop, now, code)
        if policy == "deactivate":
            self._lost_and_inactive = True
            self._deactivate()


def _leads(loop: SetpointLoop) -> bool:
    """True if a trajectory is played, or a target leads."""
    record = loop.record
    return bool(record.playing or record.aiming)


# Settings of the loop that are parameters of the node, but for those of the stream.
_SETTINGS = ({*DEFAULTS} & {*SETTINGS}) - {"limits"}
