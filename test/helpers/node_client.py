# SPDX-License-Identifier: Apache-2.0
"""The real node in a process of its own, and a client in this one that talks to it over DDS."""

import itertools
import os
import subprocess
import sys
import time
from array import array
from contextlib import contextmanager
from pathlib import Path

import numpy as np

CONFIG = Path(__file__).parents[2] / "config"

# A guard against waiting forever, not a measure of anything: a shared machine may stall for seconds.
PATIENCE = 30.0


class NodeProcess:
    """``dynamics_node`` or another as a process; what it logs is in ``log``.

    In its arguments ``{namespace}`` is its own.
    """

    _numbers = itertools.count(1)

    def __init__(self, folder, *ros_arguments, name=None, prefix=(), module="dynamics_node"):
        self.name = name or f"dynamics_{next(self._numbers)}"
        self._log = (folder / f"{self.name}.log").open("w+b")
        self.process = subprocess.Popen(
            [
                *prefix,
                *(sys.executable, "-m", f"eom_dynamics.ros.{module}", "--ros-args", "-r", f"__node:={self.name}"),
                # Of its own: two nodes of one run do not hear each other.
                *("-r", f"__ns:=/{self.name}", "-r", f"/diagnostics:=/{self.name}/diagnostics"),
                # A second process for each node: for those tests that want it.
                *("-p", "planning_services:=false"),
                *(str(argument).replace("{namespace}", f"/{self.name}") for argument in ros_arguments),
            ],
            # Away from the source folder, which Python would put first on its path.
            cwd=folder,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    @property
    def log(self):
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    @property
    def resident_bytes(self):
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def children(self):
        """Numbers of the processes that it started."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(number) for task in tasks for number in (task / "children").read_text().split()]

    def stop(self, number):
        """Send a signal; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._log.close()


class Client:
    """Publishes setpoints to one node, collects all that it publishes, and calls its services."""

    def __init__(self, rclpy, process):
        from diagnostic_msgs.msg import DiagnosticArray
        from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import QoSProfile
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        self.process = process
        self.node = rclpy.create_node("client", namespace=f"/{process.name}")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._clients = {}
        self._stamps = itertools.count(1)
        qos = QoSProfile(depth=10_000)
        self.feedforward, self.motor_setpoint, self.effort_command, self.diagnostics = [], [], [], []
        self._subscriptions = [
            self.node.create_subscription(FeedforwardCommand, "feedforward", self.feedforward.append, qos),
            self.node.create_subscription(JointState, "motor_setpoint", self.motor_setpoint.append, qos),
            self.node.create_subscription(Float64MultiArray, "effort_command", self.effort_command.append, qos),
            self.node.create_subscription(DiagnosticArray, "diagnostics", self.diagnostics.append, qos),
        ]
        self._publisher = self.node.create_publisher(JointTrajectorySetpoint, "setpoint", qos)

    def wait_for_node(self):
        """Wait until both sides know each other, in both directions."""
        self.wait(self._publisher.get_subscription_count, "a subscriber of setpoint")
        for subscription in self._subscriptions:
            self.wait(subscription.get_publisher_count, f"a publisher of {subscription.topic_name}")
        # The node's writers have met this client's readers when something of it arrives; diagnostics always come.
        self.wait(lambda: self.diagnostics, "diagnostics")

    def spin(self, seconds=0.0):
        deadline = time.monotonic() + seconds
        self._executor.spin_once(timeout_sec=0)
        while (remaining := deadline - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=remaining)

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.process.poll() is None, f"the node ended:\n{self.process.log}"
            assert time.monotonic() < deadline, f"waited {PATIENCE:g} s for {what}; the node said:\n{self.process.log}"
            self._executor.spin_once(timeout_sec=0.05)

    def publish(self, *, at=None, **fields):
        """Publish a setpoint of these fields; returns the number in its stamp, ``at`` or the next, ns."""
        from eom_dynamics.msg import JointTrajectorySetpoint

        message = JointTrajectorySetpoint(**message_fields(fields))
        number = next(self._stamps) if at is None else at
        message.header.stamp.sec, message.header.stamp.nanosec = 1_700_000_000, number
        message.header.frame_id = f"frame {number}"
        self._publisher.publish(message)
        return number

    def publish_serialized(self, data):
        """Publish a setpoint as bytes."""
        self._publisher.publish(data)

    def answers_to(self, number):
        """What came on the three topics for the setpoint of that number."""
        self.wait(
            lambda: (
                any(m.header.stamp.nanosec == number for m in self.feedforward)
                and any(m.header.stamp.nanosec == number for m in self.motor_setpoint)
                and len(self.effort_command) >= len(self.motor_setpoint)
            ),
            f"the answer to setpoint {number}",
        )
        place = next(i for i, m in enumerate(self.motor_setpoint) if m.header.stamp.nanosec == number)
        feedforward = next(m for m in self.feedforward if m.header.stamp.nanosec == number)
        return feedforward, self.motor_setpoint[place], self.effort_command[place]

    def call(self, service_type, name, request):
        """The answer of a service of the node."""
        key = f"{self.process.name}/{name}"
        if key not in self._clients:
            self._clients[key] = self.node.create_client(service_type, f"/{self.process.name}/{key}")
        client = self._clients[key]
        self.wait(client.service_is_ready, f"the service {name}")
        future = client.call_async(request)
        self.wait(future.done, f"an answer of {name}")
        return future.result()

    def inverse_dynamics(self, **fields):
        from eom_dynamics.srv import ComputeInverseDynamics

        request = ComputeInverseDynamics.Request(**message_fields(fields))
        return self.call(ComputeInverseDynamics, "inverse_dynamics", request)

    def transition(self, label):
        """Ask for a lifecycle transition; whether it succeeded."""
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        number = getattr(Transition, f"TRANSITION_{label.upper()}")
        request = ChangeState.Request(transition=Transition(id=number))
        return self.call(ChangeState, "change_state", request).success

    @property
    def state(self):
        from lifecycle_msgs.srv import GetState

        return self.call(GetState, "get_state", GetState.Request()).current_state.label

    def set_parameter(self, name, value):
        """Set a parameter; None removes it. Returns the reason of a refusal, empty where there was none."""
        from rcl_interfaces.srv import SetParameters
        from rclpy.parameter import Parameter

        parameter = Parameter(name, value=value).to_parameter_msg()
        (result,) = self.call(SetParameters, "set_parameters", SetParameters.Request(parameters=[parameter])).results
        assert result.successful == (not result.reason)
        return result.reason

    def get_parameter(self, name):
        from rcl_interfaces.srv import GetParameters
        from rclpy.parameter import parameter_value_to_python

        (value,) = self.call(GetParameters, "get_parameters", GetParameters.Request(names=[name])).values
        return parameter_value_to_python(value)

    def next_diagnostics(self):
        """Level, message and values of a diagnostic status that the node makes after this call."""
        # Some may be on their way already, with figures from before: many, where this process was held up.
        count, now = len(self.diagnostics), time.time()

        def made_since():
            stamps = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in self.diagnostics[count:]]
            # Of a simulation's clock, which has another origin, all count.
            return sum(stamp >= now or stamp < now / 2 for stamp in stamps)

        self.wait(lambda: made_since() >= 2, "two diagnostic messages")
        return status_of(self.diagnostics[-1])

    def wait_for_diagnostics(self, condition, what):
        """The first diagnostic status from now on for which ``condition(level, message, values)`` holds."""
        start = len(self.diagnostics)
        self.wait(lambda: any(condition(*status_of(m)) for m in self.diagnostics[start:]), what)
        return next(status_of(m) for m in self.diagnostics[start:] if condition(*status_of(m)))

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()


@contextmanager
def active_node(rclpy, folder, *ros_arguments):
    """A node with these arguments, and its client, for as long as the context."""
    client = Client(rclpy, NodeProcess(folder, *ros_arguments))
    client.wait_for_node()
    yield client
    client.close()
    client.process.kill()


def status_of(message):
    """Level, message and values of the one status in a DiagnosticArray."""
    (status,) = message.status
    return status.level[0], status.message, {pair.key: pair.value for pair in status.values}


def message_fields(fields):
    """Fields with NumPy arrays as array.array."""
    return {
        name: array("d", np.asarray(value, dtype=float).tobytes()) if isinstance(value, np.ndarray) else value
        for name, value in fields.items()
    }
