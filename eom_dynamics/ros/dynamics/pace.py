# SPDX-License-Identifier: Apache-2.0
"""Speed and pause of trajectories: topics ``speed_scaling`` and ``~/speed_scaling_input``, services of a pause."""

from __future__ import annotations

from functools import partial

from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from ...control.control_loop import REFUSALS
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import FASTEST_PACE, LONGEST_GAP, REFUSAL_MESSAGES
from ..diagnostics import present
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .measured_arm import MeasuredArm

# Time that a motion loses in late cycles, s, from which on that is reported.
_LATE = 0.1

# Names of eom::OffPath, and how each comes to rest.
_REST = {
    "a motion to a target": "send another target, or an empty trajectory to stop",
    "a stream of setpoints": "have its publisher come to rest",
}


class TrajectoryPace:
    """Speed of trajectories on their paths; all methods are called by the node's executor."""

    def __init__(self, node: RobotNode, clock: WatchedClock, measured: MeasuredArm) -> None:
        self._node, self._clock, self._measured = node, clock, measured
        self._host: SetpointLoop | None = None
        self._scaling, self._pause_cause = 1.0, ""
        node.create_subscription(Float64, "speed_scaling", lambda message: self.scale(message.data), 1)
        self._subscribe_as_controller()
        node.create_service(Trigger, "~/pause", partial(self._answer, True))
        node.create_service(Trigger, "~/resume", partial(self._answer, False))

    def _subscribe_as_controller(self) -> None:
        """Take the topic of ``joint_trajectory_controller``, if ``control_msgs`` has its message."""
        try:
            from control_msgs.msg import SpeedScalingFactor
        except ImportError:
            return
        kept = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        topic = "~/speed_scaling_input"
        self._node.create_subscription(SpeedScalingFactor, topic, lambda message: self.scale(message.factor), kept)

    def take(self, host: SetpointLoop) -> None:
        """Scale the speed of a loop from now on."""
        self._host = host
        host.loop.speed(self._scaling)

    @property
    def held_by(self) -> str:
        """Why motions are refused until the service resume; empty for nothing."""
        return self._pause_cause if self._host is not None and self._host.record.paused else ""

    def scale(self, factor: float) -> None:
        """Play motions at a factor of their speed, 0 to 1.5, on their paths; others are reported, and ignored."""
        if not 0 <= factor <= FASTEST_PACE:
            self._node.warn("speed_scaling", f"it must be 0 to {FASTEST_PACE:g}, is {factor:g}: ignored")
            return
        if factor != self._scaling:
            warn_of_speed(self._node, factor, self._leader)
        self._scaling = factor
        if self._host is not None:
            self._host.loop.speed(factor)

    def pause(self, pauses: bool, cause: str = "") -> None:
        """Pause motions on their paths, or resume them; with a cause, others are refused until then."""
        self._pause_cause = cause
        if self._host is not None:
            self._host.loop.act("pause" if pauses else "resume")

    def _answer(self, pauses: bool, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Services pause and resume: apply the request, and answer whether it has an effect."""
        leader = self._leader if pauses else ""
        strays = self._host is not None and not pauses and self._measured.locate(self._host)
        response.success = self._host is not None and not leader and not strays
        if strays:
            response.message = REFUSALS["elsewhere"]
        elif response.success:
            idle = pauses and self._host is not None and not self._host.record.playing
            response.message = "nothing is played: the next trajectory waits" * idle
            self.pause(pauses)
        else:
            response.message = (
                f"{leader} does not pause: {_REST[leader]}" if leader else "there is no robot yet: load one first"
            )
        return response

    @property
    def _leader(self) -> str:
        """Active motion without a path to pause on: a key of _REST; empty if none."""
        record = self._host.record if self._host is not None else None
        if record is None or self._clock.now() - record.latest > LONGEST_GAP:
            return ""
        return ("", *_REST)[record.off_path]

    @property
    def standstill(self) -> str:
        """Why trajectories stand still, and what to do; empty for nothing."""
        if self._host is not None and self._host.record.paused:
            return f"paused{self._pause_cause and ' by '}{self._pause_cause}: call ~/resume"
        if not self._scaling:
            return "speed_scaling is 0: publish more"
        return "" if self._allowed else REFUSAL_MESSAGES["standstill"]

    @property
    def _allowed(self) -> float:
        """Speed scaling in effect, at most the requested one."""
        return self._scaling if self._host is None else self._host.record.allowed_pace

    @property
    def lateness(self) -> str:
        """Time that the last motion lost in late cycles, and the cause; empty if small."""
        lost = self._host.record.lost_time if self._host is not None else 0.0
        return f"{lost:.3g} s lost in late cycles: the process was held up, or the clock has jumped" * (lost > _LATE)

    @property
    def values(self) -> dict[str, str]:
        """Values of diagnostics: why trajectories stand still, or a speed that is not theirs."""
        scaling = "" if self._scaling == self._allowed == 1 else f"{100 * self._scaling:.0f} %"
        scaling += f", limits allow {100 * self._allowed:.0f} %" if self._allowed < self._scaling else ""
        scaling += ", of trajectories alone" if scaling and self._leader else ""
        late = self.lateness if self._host is not None and self._host.record.playing else ""
        return present({"trajectories": self.standstill, "speed scaling": scaling, "trajectory late": late})

    def warn_of_standstill(self) -> None:
        """Log that limits do not let a trajectory go on."""
        if (why := self.standstill) == REFUSAL_MESSAGES["standstill"]:
            self._node.warn("trajectory stands still", why)


def warn_of_speed(node: RobotNode, factor: float, leader: str) -> None:
    """Log that speed scaling has no effect on an active target, stop or setpoint stream."""
    if factor != 1 and leader:
        node.warn("speed_scaling", f"it is for trajectories alone, {leader} keeps its speed")
