# SPDX-License-Identifier: Apache-2.0
"""The real node in its own process, and a client in this process that communicates with it over DDS."""

import itertools
import os
import subprocess
import sys
import time
from array import array
from functools import cache
from pathlib import Path

import numpy as np
import processes
from forks import ForkServer

from eom_dynamics.control.fields import STATE_FIELDS, WRENCH_FIELDS
from eom_dynamics.control.spatial import wrench_messages

# A guard against waiting forever, not a measure of anything: a shared machine may stall for seconds.
PATIENCE = 60.0


fork_server = cache(ForkServer)  # one for all

EACH_WARNING, FEW_WARNINGS = ({"robot_node.WARNING_PERIOD": period} for period in (0.0, 60.0))
"""Constants of nodes that log every warning, or every warning of a kind."""

NOT_NICED = {"running.NICENESS": 0}
"""Constants of nodes whose planning is not delayed by the workers of a test run."""

OFTEN = {"robot_node.DIAGNOSTIC_PERIOD": 0.1}
"""Constants of nodes that publish diagnostics ten times a second."""

FOR_TRAJECTORIES = {"dynamics.trajectory_topics._START_DELAY": 1e6}
"""Constants of nodes that start their planner process with the first trajectory."""


class NodeProcess:
    """``dynamics_node`` or another as a process; ``log`` is its output.

    It is a fork of a prepared process (:mod:`forks`), in which a ``patch``, Python code, runs before the node; or, with
    a ``prefix`` to its command, a separate process from the start. It has its own namespace, ``{namespace}`` in its
    arguments, unless ``beside`` another node. A dict among the arguments sets constants of :mod:`eom_dynamics.ros`,
    such as EACH_WARNING, in a fork.
    """

    _numbers = itertools.count(1)

    def __init__(self, folder, *ros_arguments, name=None, prefix=(), patch="", module="dynamics_node", beside=None):
        constants = [item for x in ros_arguments if isinstance(x, dict) for item in x.items()]
        ros_arguments = [x for x in ros_arguments if not isinstance(x, dict)]
        for constant, value in reversed(constants):
            owner, _, constant_name = constant.rpartition(".")
            there = f"import eom_dynamics.ros.{owner} as owner\nassert hasattr(owner, {constant_name!r})"
            patch = f"{there}\nowner.{constant_name} = {value!r}\n{patch}"
        self.name = name or f"{module.removesuffix('_node')}_{next(self._numbers)}"
        self.namespace = beside.namespace if beside else f"/{self.name}"
        self._log = (folder / f"{self.name}.log").open("a+b")  # reading moves the place of a process that shares it
        if module == "dynamics_node" and not any("safety" in str(argument) for argument in ros_arguments):
            # Tests of a function send their own inputs, and need not wait for nodes in other namespaces.
            ros_arguments = ("-p", "safety:=permissive", "-p", "allow_other_publishers:=true", *ros_arguments)
        module = f"eom_dynamics.ros.{module}"
        arguments = [
            *("--ros-args", "-r", f"__node:={self.name}", "-r", f"__ns:={self.namespace}"),
            *("-r", f"/diagnostics:={self.namespace}/diagnostics"),
            *(str(argument).replace("{namespace}", self.namespace) for argument in ros_arguments),
        ]
        if prefix:
            command = [*prefix, sys.executable, "-m", module, *arguments]
            self.process = processes.popen(command, cwd=folder, stdout=self._log, stderr=subprocess.STDOUT)
        else:
            self.process = fork_server().start(module, arguments, folder, self._log, patch=patch)

    @property
    def log(self):
        # Without seeking: the process shares the position in the file, and moves it to the end by writing.
        text = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        return processes.own_lines(text.decode(errors="replace"))

    def wait_for(self, text):
        deadline = time.monotonic() + PATIENCE
        while text not in self.log:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log
            time.sleep(0.02)

    @property
    def resident_bytes(self):
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self, number):
        """Send a signal; returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def end(self):
        """End in good order, if it has not ended yet."""
        processes.end(self.process)
        self._log.close()


def ended(module, folder, *arguments, patch=""):
    """Exit code, output and errors of the main function of a module, which ends by itself, as a fork."""
    with (folder / "output").open("w") as output, (folder / "errors").open("w") as errors:
        code = fork_server().start(module, arguments, folder, output, errors, patch).wait(PATIENCE)
    return code, (folder / "output").read_text(), processes.own_lines((folder / "errors").read_text())


def refusals_at_start(folder, cases, module="dynamics_node"):
    """Start nodes together, each with refused arguments; yields exit code, log and reason of each."""
    nodes = [(NodeProcess(folder, *arguments, module=module), reason) for arguments, reason in cases]
    for node, reason in nodes:
        yield node.process.wait(PATIENCE), node.log, reason
        node.end()


class Client:
    """A node of this process, in the namespace of a :class:`NodeProcess`: its diagnostics, services and topics."""

    takes_events = False
    """True for the events executor, which needs half the time for many messages; it crashes with an action client."""

    def __init__(self, rclpy, process):
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import DurabilityPolicy, QoSProfile

        from eom_dynamics.ros.executors import make_executor

        self.process = process
        self.node = rclpy.create_node("client", namespace=process.namespace)
        self._executor = make_executor() if self.takes_events else SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._clients = {}
        self._stamps = itertools.count(1)
        self._qos = QoSProfile(depth=10_000)
        self._latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._subscriptions = []
        self._hardware = f"{process.namespace}/{process.name}"
        self.diagnostics = []
        self._connect()
        # Last, since the node meets the readers of a client in this order: when diagnostics arrive, it has met all.
        self._subscribe(DiagnosticArray, "diagnostics", self._on_diagnostics)

    def _connect(self):
        """Create the subscriptions and publishers of a kind of node."""

    def _on_diagnostics(self, message):
        if message.status[0].hardware_id == self._hardware:
            self.diagnostics.append(message)

    def _subscribe(self, message_type, topic, callback):
        self._subscriptions.append(self.node.create_subscription(message_type, topic, callback, self._qos))

    def collect(self, message_type, topic):
        """List of the messages published on a topic, growing."""
        messages = []
        self._subscribe(message_type, topic, messages.append)
        return messages

    def publisher(self, message_type, topic):
        quality = self._latched if topic == "payload" else self._qos
        publisher = self.node.create_publisher(message_type, topic, quality)
        self.wait(publisher.get_subscription_count, f"a subscriber of {topic}")
        return publisher

    def wait_for_node(self):
        """Wait until both sides know each other, in both directions."""
        for subscription in self._subscriptions:
            self.wait(subscription.get_publisher_count, f"a publisher of {subscription.topic_name}")
        self.wait(lambda: self.diagnostics, "diagnostics")

    def spin(self, seconds=0.0):
        deadline = time.monotonic() + seconds
        self._executor.spin_once(timeout_sec=0)
        while (remaining := deadline - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=remaining)

    def join(self, other):
        """Receive whenever another client does."""
        self._executor.remove_node(self.node)
        self._executor.shutdown()
        self._executor = other._executor
        self._executor.add_node(self.node)

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.process.poll() is None, f"the node ended:\n{self.process.log}"
            assert time.monotonic() < deadline, (
                f"waited {PATIENCE:g} s for {what}; the node said:\n{self.process.log}"
                f"\nand last {self.diagnostics[-1:]}"
            )
            self._executor.spin_once(timeout_sec=0.02)

    def repeat(self, action, condition, what):
        """Run an action now and ten times a second, until a condition holds."""
        done = False

        def act():
            nonlocal done
            if not done:
                action()

        act()
        timer = self.node.create_timer(0.1, act)
        try:
            self.wait(condition, what)
        finally:
            done = True
            self.node.destroy_timer(timer)

    def call(self, service_type, name, request):
        """The answer of a service: of the node, by its own name, or of another, by a name with a slash."""
        client = self.client(service_type, name)
        future = client.call_async(request)
        self.wait(future.done, f"an answer of {name}")
        return future.result()

    def client(self, service_type, name, depth=10):
        from rclpy.qos import QoSProfile

        key = name if "/" in name else f"{self.process.name}/{name}", depth
        if key not in self._clients:
            self._clients[key] = self.node.create_client(service_type, key[0], qos_profile=QoSProfile(depth=depth))
        self.wait(self._clients[key].service_is_ready, f"the service {name}")
        return self._clients[key]

    def inverse_dynamics(self, state=None, **fields):
        from eom_dynamics.srv import ComputeInverseDynamics

        request = ComputeInverseDynamics.Request(**message_fields(state_fields(state) | fields))
        return self.call(ComputeInverseDynamics, "inverse_dynamics", request)

    def trajectory_feedforward(self, **fields):
        """The answer of the planning node to a trajectory."""
        from eom_dynamics.srv import ComputeTrajectoryFeedforward

        request = ComputeTrajectoryFeedforward.Request(**fields)
        return self.call(ComputeTrajectoryFeedforward, "trajectory_feedforward", request)

    def begin_transition(self, label):
        """Ask for a lifecycle transition; returns the future of the answer."""
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        number = getattr(Transition, f"TRANSITION_{label.upper()}")
        request = ChangeState.Request(transition=Transition(id=number))
        return self.client(ChangeState, "change_state").call_async(request)

    def transition(self, label):
        """Ask for a lifecycle transition; whether it succeeded."""
        future = self.begin_transition(label)
        self.wait(future.done, f"an answer to {label}")
        return future.result().success

    @property
    def state(self):
        from lifecycle_msgs.srv import GetState

        # A node answers before it has discovered the reader of a new client: such an answer is lost.
        client, asked = self.client(GetState, "get_state"), []
        self.repeat(
            lambda: asked.append(client.call_async(GetState.Request())),
            lambda: any(future.done() for future in asked),
            "an answer of get_state",
        )
        return next(future for future in asked if future.done()).result().current_state.label

    def set_parameter(self, name, value):
        """Set a parameter; None removes it. Returns the reason of a refusal, or ""."""
        return self.set_parameters({name: value})

    def set_parameters(self, values):
        from rcl_interfaces.srv import SetParameters
        from rclpy.parameter import Parameter

        parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        results = self.call(SetParameters, "set_parameters", SetParameters.Request(parameters=parameters)).results
        assert all(result.successful == (not result.reason) for result in results)
        return "; ".join(result.reason for result in results if result.reason)

    def get_parameter(self, name):
        from rcl_interfaces.srv import GetParameters
        from rclpy.parameter import parameter_value_to_python

        client, request, answers = self.client(GetParameters, "get_parameters"), GetParameters.Request(names=[name]), []
        # Asked again, since the middleware may lose an answer to a client that the node has not met quite.
        self.repeat(
            lambda: answers.append(client.call_async(request)), lambda: any(x.done() for x in answers), "an answer"
        )
        (value,) = next(x.result().values for x in answers if x.done())
        return parameter_value_to_python(value)

    @property
    def values(self):
        return status_of(self.diagnostics[-1])[2]

    def next_diagnostics(self):
        """Level, message and values of a diagnostic status created after this call."""
        # Older messages may still arrive, with older figures: many, if this process was held up.
        count, now = len(self.diagnostics), time.time()

        def made_since():
            stamps = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in self.diagnostics[count:]]
            # Messages with the clock of a simulation, which has another origin, all count.
            return sum(stamp >= now or stamp < now / 2 for stamp in stamps)

        self.wait(lambda: made_since() >= 2, "two diagnostic messages")
        return status_of(self.diagnostics[-1])

    def wait_for_diagnostics(self, condition, what):
        """The next diagnostic status for which ``condition(level, message, values)`` holds."""
        start = len(self.diagnostics)
        self.wait(lambda: any(condition(*status_of(m)) for m in self.diagnostics[start:]), what)
        return next(status_of(m) for m in self.diagnostics[start:] if condition(*status_of(m)))

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()


class StreamClient(Client):
    """Publishes setpoints to a ``dynamics_node``, and collects its commands."""

    takes_events = True

    def _connect(self):
        from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint
        from sensor_msgs.msg import JointState
        from std_msgs.msg import Float64MultiArray

        self.feedforward = self.collect(FeedforwardCommand, "feedforward")
        self.motor_setpoint = self.collect(JointState, "motor_setpoint")
        self.effort_command = self.collect(Float64MultiArray, "effort_command")
        self._setpoints = self.node.create_publisher(JointTrajectorySetpoint, "setpoint", self._qos)

    def wait_for_node(self):
        self.wait(self._setpoints.get_subscription_count, "a subscriber of setpoint")
        super().wait_for_node()

    frame = ""
    """Frame of all setpoints; by default from :func:`frame_of`."""

    def publish(self, state=None, *, at=None, seconds=1_700_000_000, **fields):
        """Publish a setpoint: q … qdddd (5, n), and fields; returns the number in its stamp, ``at`` or the next, ns."""
        from eom_dynamics.msg import JointTrajectorySetpoint

        message = JointTrajectorySetpoint(**message_fields(state_fields(state) | fields))
        number = next(self._stamps) if at is None else at
        message.header.stamp.sec, message.header.stamp.nanosec = seconds, number
        message.header.frame_id = self.frame or frame_of(number)
        self._setpoints.publish(message)
        return number

    def publish_serialized(self, data):
        self._setpoints.publish(data)

    def answers_to(self, number):
        """Messages on the three topics for the setpoint with this number."""
        feedforward, motor_setpoint = Search(self.feedforward, number), Search(self.motor_setpoint, number)
        self.wait(
            lambda: feedforward.found and motor_setpoint.found and len(self.effort_command) >= len(self.motor_setpoint),
            f"the answer to setpoint {number}",
        )
        place = motor_setpoint.place
        return self.feedforward[feedforward.place], self.motor_setpoint[place], self.effort_command[place]

    def until_silent(self):
        """Receive commands until none comes for a while on any topic."""
        count, topics = -1, (self.feedforward, self.motor_setpoint, self.effort_command)
        while count < sum(map(len, topics)):
            count = sum(map(len, topics))
            self.spin(0.3)


def frame_of(number):
    """Frame of a setpoint: some in a row have the same, so that streams are answered in both ways of the node."""
    return f"frame {number // 6}"


class Search:
    """Search for the first message of a growing list with a number in its stamp; each message is read once."""

    def __init__(self, messages, number):
        self._messages, self._number = messages, number
        self.place = 0

    @property
    def found(self):
        while self.place < len(self._messages):
            if self._messages[self.place].header.stamp.nanosec == self._number:
                return True
            self.place += 1
        return False


class Starter:
    """Starts nodes, each with a client, until it is closed."""

    def __init__(self, rclpy, folder):
        self._rclpy, self._folder = rclpy, folder
        self._clients = []

    def __call__(self, *ros_arguments, discovered=True, client=StreamClient, depth=1000, **options):
        """Start a node; a ``depth`` of its outputs other than the default counts every command.

        Stops and trajectories run at a low rate by default.
        """
        topics = ["feedforward", *(("motor_setpoint", "effort_command") if issubclass(client, StreamClient) else ())]
        arguments = []
        constants = OFTEN
        if options.get("module", "dynamics_node") == "dynamics_node":
            constants = OFTEN | FOR_TRAJECTORIES
            arguments += ["stream_rate:=250.0"]
            arguments += [f"qos_overrides.{{namespace}}/{x}.publisher.depth:={depth}" for x in topics if depth]
        words = [word for value in arguments for word in ("-p", value)]
        process = NodeProcess(self._folder, constants, *words, *ros_arguments, **options)
        self._clients.append(client(self._rclpy, process))
        if discovered:
            self._clients[-1].wait_for_node()
        return self._clients[-1]

    def planning(self, *ros_arguments, **options):
        """Start a ``planning_node``, by default not niced."""
        return self(NOT_NICED, *ros_arguments, module="planning_node", client=Client, **options)

    def replace(self, client):
        """End a client whose node is replaced: its readers would continue to receive each message."""
        self._clients.remove(client)
        processes.end(client.process.process)
        client.close()
        client.process.end()

    def close(self):
        processes.end(*(client.process.process for client in self._clients))
        while self._clients:
            self.replace(self._clients[-1])


def status_of(message):
    """Level, message and values of the one status in a DiagnosticArray."""
    (status,) = message.status
    return status.level[0], status.message, {pair.key: pair.value for pair in status.values}


def state_fields(state):
    """Fields of a state q … qdddd, or of its first rows; none without one."""
    return {} if state is None else dict(zip(STATE_FIELDS, np.asarray(state, dtype=float), strict=False))


def message_fields(fields):
    """Fields with NumPy arrays as array.array; wrenches (…, 6), moment first, as messages."""

    def converted(name, value):
        if not isinstance(value, np.ndarray):
            return value
        return wrench_messages(value) if name in WRENCH_FIELDS else array("d", np.asarray(value, dtype=float).tobytes())

    return {name: converted(name, value) for name, value in fields.items()}


def joint_trajectory(names, t, positions, **rows):
    """A JointTrajectory at times, s, through positions, and with other arrays by the name of their field."""
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    trajectory = JointTrajectory(joint_names=names)
    for k, at in enumerate(t):
        fields = {"positions": positions, **rows}
        point = JointTrajectoryPoint(**{field: array("d", values[k]) for field, values in fields.items()})
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(at * 1e9), 10**9)
        trajectory.points.append(point)
    return trajectory


def stamp_of(message):
    """The stamp in its header, ns."""
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def assert_no_step(commands):
    """Velocities of an arm with stiff springs change like a smooth motion within its limits."""
    velocity = np.array([m.motor_velocity for m in commands])
    acceleration = np.diff(velocity, axis=0) / (1e-9 * np.diff([stamp_of(m) for m in commands]))[:, np.newaxis]
    # A step would be some 100 rad/s²; the motor has the joint's, up to 15 rad/s², and the deflection's acceleration.
    assert np.max(np.abs(acceleration)) < 30
