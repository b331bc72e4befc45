# SPDX-License-Identifier: Apache-2.0
"""Topics ``contact`` and ``external_wrench``, by the observer of the control loop."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.time import Time
from std_msgs.msg import Header

from ...arrays import unit
from ...control.contact_thresholds import ContactThresholds, seen_wrench
from ...control.external_effort import ExternalEffortObserver
from ...control.fields import doubles
from ...control.observed_payload import LONGEST_TIME, EffortBlocks, ObservedPayload, payload_of_efforts
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import SHARED_MESSAGES
from ...exceptions import EomDynamicsError, StateError
from ...kinematics import Kinematics
from ...terminal import printable
from ..diagnostics import present
from ..robot_node import RobotNode
from .clocks import WatchedClock
from .measured_arm import MeasuredArm

SENSORS_PARAMETER = "external_effort.sensors"


class ContactTopics:
    """Publishers after each sample that is measured, where ``external_effort.sensors`` is set.

    Args:
        react: called with a contact when it begins, after the reaction of the loop.

    Attributes:
        thresholds: of contact; None if the robot file has no spread of efforts.
        problem: why no contact is found; empty for none.
        last: joint of the last contact, its effort and threshold; empty for none.
    """

    def __init__(
        self, node: RobotNode, clock: WatchedClock, measured: MeasuredArm, react: Callable[[str], None]
    ) -> None:
        self._node, self._clock, self._measured, self._react = node, clock, measured, react
        self._loop: SetpointLoop | None = None
        self._observer: ExternalEffortObserver | None = None
        self.thresholds: ContactThresholds | None = None
        self.last, self._begun, self._in_contact = "", 0, False
        self.problem = ""
        self._blocks: EffortBlocks | None = None
        measured.on_sample.append(self._sampled)
        sensors = node.get_parameter(SENSORS_PARAMETER).value
        self._sensors = "" if sensors == "none" else sensors
        if self._sensors:
            from eom_dynamics.msg import Contact  # of nodes that observe

            self._message = Contact
            self._wrenches = node.create_publisher(WrenchStamped, "external_wrench", 10)
            self._contacts = node.create_publisher(Contact, "contact", 10)

    def objection(self, loop: SetpointLoop) -> str:
        """Fault that prevents a reaction to contact, and the remedy; empty if none."""
        reaction = self._node.get_parameter("on_contact").value
        if reaction == "ignore":
            return ""
        if not self._sensors:
            why = "external_effort.sensors is none: set torque, springs or motor"
        else:
            try:
                ContactThresholds(self._observer_of(loop))
                return ""
            except EomDynamicsError as error:
                why = str(error)
        return printable(f"on_contact is {reaction}, but {why}; or set on_contact to ignore")

    def _observer_of(self, loop: SetpointLoop) -> ExternalEffortObserver:
        return ExternalEffortObserver(loop.arm, sensors=self._sensors, loop=loop.loop)

    def take(self, loop: SetpointLoop | None) -> None:
        """Observe the measurements of a loop."""
        self._loop, self._observer, self.thresholds, self.problem = loop, None, None, ""
        self._blocks = None
        self._in_contact = False
        self._measured.need("observer", links=False, motors=False)
        if loop is None or not self._sensors:
            return
        self._contact = self._message(joint_names=list(loop.arm.robot.joint_names))
        try:
            self._observer = self._observer_of(loop)
            self._kinematics = Kinematics(loop.arm.robot)
            # While no sample waits for the compiler.
            self._kinematics.jacobian(np.zeros(loop.arm.robot.n))
            self.thresholds = ContactThresholds(self._observer)
            self.thresholds.prepare()
        except EomDynamicsError as error:
            self.problem = printable(f"no contact is found: {error}")
            self._node.get_logger().error(self.problem)
        if self._observer is not None:
            self._blocks = EffortBlocks(self._observer)
            needed = self._observer.needed
            self._measured.need("observer", links="q" in needed, motors="motor_position" in needed)
            n = loop.arm.robot.n
            endless = np.zeros((n, 1)), np.full((n, 1), np.inf), np.zeros(n)
            self._observer.watch(*(self.thresholds.rows() if self.thresholds else endless))

    def _sampled(self) -> None:
        loop, observer, blocks = self._loop, self._observer, self._blocks
        if loop is None or observer is None or blocks is None:
            return
        external, _ = observer.read()
        if loop.record.blending:
            blocks.clear()
        elif observer.settled:
            blocks.add(1e-9 * self._clock.now(), *observer.motion, external)
        stamp = Time(nanoseconds=max(self._clock.reading, 0)).to_msg()
        if observer.settled and self._wrenches.get_subscription_count():
            self._wrenches.publish(self._wrench(observer, stamp))
        changes = loop.record.contact != self._in_contact
        if changes:
            self._change(loop)
        if changes or (observer.settled and self._contacts.get_subscription_count()):
            message = copy(self._contact)
            message.header = Header(stamp=stamp)
            message.external_effort = doubles(external) if observer.settled else []
            self._contacts.publish(message)
        if changes and self._in_contact:
            self._react(f"contact at {self.last}")

    def forget(self) -> None:
        """Clear external efforts before a change of the payload."""
        if self._blocks is not None:
            self._blocks.clear()

    def proposal(self, tool: str, duration: float) -> Callable[[], ObservedPayload]:
        """Estimation, in a thread, of a tool's payload from the external efforts of the last seconds."""
        if self._loop is None or self._observer is None or self._blocks is None:
            raise StateError("external efforts are not observed: set external_effort.sensors")
        if not 0 < duration <= LONGEST_TIME:
            raise StateError(f"duration must be more than 0 s and at most {LONGEST_TIME:g} s, is {duration:g}")
        if self._loop.record.blending:
            begins = "" if self._loop.record.valid else ", which begins with the first setpoint or target"
            raise StateError(f"the payload is changing{begins}: ask again after that")
        blocks = self._blocks.since(1e-9 * self._clock.now() - duration)
        carried = self._loop.evaluator.payload.copy()
        return partial(payload_of_efforts, self._observer, blocks, tool, carried, self.thresholds)

    def _wrench(self, observer: ExternalEffortObserver, stamp: object) -> WrenchStamped:
        """The wrench at the first tool, along its axes, without parts that are not seen."""
        q, qd = observer.motion
        frame = self._kinematics.frame(None).name
        limits = self.thresholds.limits(qd) if self.thresholds else np.ones(len(q))
        wrench, _ = seen_wrench(self._kinematics.jacobian(q, frame), observer.external, limits)
        message = WrenchStamped()
        message.header.stamp, message.header.frame_id = stamp, frame
        torque, force = message.wrench.torque, message.wrench.force
        torque.x, torque.y, torque.z, force.x, force.y, force.z = wrench.tolist()
        return message

    def _change(self, loop: SetpointLoop) -> None:
        """Note that contact begins or has ended."""
        record, robot, message = loop.record, loop.arm.robot, self._contact
        self._in_contact = message.in_contact = record.contact
        if not self._in_contact:
            return
        joint, message.effort, message.threshold = record.contact_joint, record.contact_effort, record.contact_threshold
        message.joint_name, kind = robot.joint_names[joint], robot.independent_joints[joint].type
        if self.thresholds and (contact := self.thresholds.contact()):
            message.cause, message.links = contact.causes.get(message.joint_name, ""), list(contact.links)
        self._begun += 1
        effort = f"{message.effort:.3g} {unit('effort', kind)}"
        self.last = printable(f"{message.joint_name}: {effort}, beyond {message.threshold:.3g}")

    @property
    def consequence(self) -> str:
        """Effect of contact on references; empty if none."""
        if self._loop is None or self._observer is None or self._node.get_parameter("on_contact").value == "ignore":
            return ""
        if self._loop.record.touched:
            return f"contact at {self.last}: {SHARED_MESSAGES['until_rest']}"
        return f"contact at {self.last}" if self._in_contact else ""

    def report(self) -> dict[str, str]:
        """Values for diagnostics."""
        if self._observer is None:
            return {"contact": self.problem} if self.problem else {}
        contact = self.problem or ("yes" if self._in_contact else "no")
        return present({"contact": contact, "contacts": self._begun, "last contact": self.last})
