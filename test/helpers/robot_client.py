# SPDX-License-Identifier: Apache-2.0
"""A client of the simulated robot, and of the clock that it may follow."""

from node_client import Client, message_fields

BY_CLOCK = ("-p", "use_sim_time:=true", "-r", "/clock:={namespace}/clock")
"""Arguments of a robot with the time of /clock."""


class RobotClient(Client):
    """Publishes commands to one simulated robot, and collects its states."""

    takes_events = True

    def _connect(self):
        from rosgraph_msgs.msg import Clock
        from sensor_msgs.msg import JointState

        self.joints, self.motors = self.collect(JointState, "joint_states"), self.collect(JointState, "motor_states")
        self._command_publishers = {}
        self._clock, self._time = self.node.create_publisher(Clock, "clock", 10), Clock()

    def send(self, topic, **fields):
        from eom_dynamics.msg import FeedforwardCommand
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        kinds = {"feedforward": FeedforwardCommand, "effort_command": Float64MultiArray}
        kind = kinds.get(topic, JointState)
        if topic not in self._command_publishers:
            self._command_publishers[topic] = self.publisher(kind, topic)
        self._command_publishers[topic].publish(kind(**message_fields(fields)))

    def next_states(self, count=2):
        """The last joint and motor states of as many as come after this call."""
        before = len(self.joints), len(self.motors)
        self.wait(lambda: len(self.joints) >= before[0] + count and len(self.motors) >= before[1] + count, "joint")
        return self.joints[-1], self.motors[-1]

    def start_clock(self):
        self.wait_for_diagnostics(lambda *s: s[1] == "waiting for /clock", "the robot")
        # Readers of /clock do not request lost messages: the time is repeated.
        self.node.create_timer(0.1, lambda: self._clock.publish(self._time))
        self.tick(0, lambda: self.diagnostics[-1].status[0].message != "waiting for /clock")
        self.next_diagnostics()  # created after the first count

    def tick(self, milliseconds, condition):
        """Set the time of /clock, and wait for its effect."""
        self._time.clock.sec, self._time.clock.nanosec = divmod(5 * 10**9 + milliseconds * 1_000_000, 10**9)
        self._clock.publish(self._time)
        self.wait(condition, "the expected time")

    def settle(self, condition, what):
        self.wait(lambda: bool(self.joints) and bool(self.motors) and condition(self.joints[-1], self.motors[-1]), what)
