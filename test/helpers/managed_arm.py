# SPDX-License-Identifier: Apache-2.0
"""The simulated robot of the package for ros2_control under a controller manager of its own, advanced cycle by cycle.

The manager runs in simulated time: ``/clock`` starts a cycle after the states of the last cycle have arrived. So
results do not depend on the load of the machine.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import domains
import numpy as np
import processes
import pytest
import yaml
from exported import export, robot, succeed

from eom_dynamics.export import FEEDFORWARD as FUNCTION
from eom_dynamics.export import loop_library
from eom_dynamics.export.ros2_control import PACKAGE

FEEDFORWARD, TRAJECTORY = "feedforward_controller", "joint_trajectory_controller"
BROADCASTERS = ("joint_state_broadcaster", "motor_broadcaster")

NEEDED = ("controller_manager", "joint_state_broadcaster", "joint_trajectory_controller", "eom_dynamics")

PERIOD = 1_000_000  # of a cycle, ns

# A guard against waiting forever.
_PATIENCE = 60.0


def missing():
    """Reason why no manager can be started, or ""."""
    lacking = [name for name in NEEDED if not _installed(name)]
    lacking += [name for name in ("cmake",) if not shutil.which(name)]
    return f"ros2_control needs a workspace that is sourced, with {', '.join(lacking)}" if lacking else ""


def absent(name):
    """A mark that skips a test without a package."""
    return pytest.mark.skipif(not _installed(name), reason=f"{name} is not installed")


def _installed(name):
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / name / "cmake").is_dir() for prefix in prefixes)


def install(name, folder):
    """Build the package with the files of a packaged robot in a folder and install it there; returns its share."""
    package = folder / "package"
    package.mkdir()
    export(robot(name), "ros2_control", package, [FUNCTION])
    built = ["-DBUILD_TESTING=OFF", f"-DCMAKE_INSTALL_PREFIX={folder / 'installed'}"]
    succeed(["cmake", "-S", package, "-B", folder / "build", *built], folder)
    succeed(["cmake", "--build", folder / "build", "--target", "install"], folder)
    return folder / "installed" / "share" / PACKAGE


def controllers(text):
    """Configuration of controllers, a path or text, by the names of their nodes without a namespace."""
    text = text.read_text() if isinstance(text, Path) else text
    return {name.removeprefix("/**/"): entry for name, entry in yaml.safe_load(text).items()}


def node_path():
    for prefix in os.environ["AMENT_PREFIX_PATH"].split(os.pathsep):
        path = Path(prefix, "lib/controller_manager/ros2_control_node")
        if path.exists():
            return path
    raise FileNotFoundError("ros2_control_node is in no prefix of AMENT_PREFIX_PATH")


class ManagedArm:
    """A controller manager on the simulated robot of an installed package, with the states of every cycle.

    ``change(parameters)`` may change the configuration of the robot, a dictionary of nodes. All links start at
    ``position``, rad.
    """

    def __init__(self, share, name, folder, change=lambda parameters: None, position=0.0):
        domains.claim_domain()
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rosgraph_msgs.msg import Clock

        self._share, self._name, self._folder = Path(share), name, Path(folder)
        self._kernel = str(loop_library(robot(name)).path)
        self._folder.mkdir(parents=True, exist_ok=True)
        description = (self._share / f"description/{name}.urdf").read_text()
        rate = '<param name="rate">'
        given = "".join(f'<param name="{x}">{y}</param>' for x, y in (("kernel", self._kernel), ("position", position)))
        self._description = description.replace(rate, f"{given}\n      {rate}")
        self.parameters = self._configure(change)
        given = self.parameters[FEEDFORWARD]["ros__parameters"]
        self.joints, self.motors = given["joints"], given["motors"]
        self._rclpy, self._context = rclpy, rclpy.Context()
        rclpy.init(context=self._context, args=[])
        self.node = rclpy.create_node("managed_arm", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._clock = self.node.create_publisher(Clock, "/clock", 10)
        self.now = 1_000_000_000_000
        self._arrived, self.rows = {}, []
        self._publish_description()
        self._subscribe()
        self._start()

    def _configure(self, change):
        """The configuration of the robot, in simulated time, with its library and the efforts of the motors."""
        parameters = controllers(self._share / f"config/{self._name}_controllers.yaml")
        parameters[FEEDFORWARD]["ros__parameters"]["kernel"] = self._kernel
        manager = parameters["controller_manager"]["ros__parameters"]
        manager["use_sim_time"] = True
        manager["motor_broadcaster"] = dict(manager["joint_state_broadcaster"])
        motors = parameters[FEEDFORWARD]["ros__parameters"]["motors"]
        parameters["motor_broadcaster"] = {
            "ros__parameters": {"joints": motors, "interfaces": ["effort"], "use_local_topics": True}
        }
        change(parameters)
        file = self._folder / "parameters.yaml"
        for entry in manager.values():
            if isinstance(entry, dict):
                entry["params_file"] = [str(file)]
        # In YAML proper, lists that occur twice would be aliases, which parameter files must not have.
        file.write_text(json.dumps(parameters))
        return parameters

    def _publish_description(self):
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from std_msgs.msg import String

        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_publisher(String, "/robot_description", latched).publish(String(data=self._description))

    def _subscribe(self):
        from sensor_msgs.msg import JointState

        def keep(column, names, field):
            def receive(message):
                stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
                values = dict(zip(message.name, getattr(message, field), strict=True))
                row = self._arrived.setdefault(stamp, {})
                row[column] = [values[name] for name in names]
                if len(row) == 2:
                    self.rows.append((stamp, row["q"], row["effort"]))
                    del self._arrived[stamp]

            return receive

        node = self.node
        node.create_subscription(JointState, "/joint_states", keep("q", self.joints, "position"), 100)
        efforts = "/motor_broadcaster/joint_states"
        node.create_subscription(JointState, efforts, keep("effort", self.motors, "effort"), 100)

    # --- Process --------------------------------------------------------------------------------

    def _start(self):
        installed = self._share.parents[1]
        environment = dict(os.environ)
        for name, folder in (("AMENT_PREFIX_PATH", installed), ("LD_LIBRARY_PATH", installed / "lib")):
            environment[name] = os.pathsep.join([str(folder), environment.get(name, "")])
        arguments = ["--ros-args", "--params-file", self._folder / "parameters.yaml"]
        self._log = (self._folder / "log").open("wb")
        self._process = processes.popen(
            [node_path(), *arguments], env=environment, stdout=self._log, stderr=subprocess.STDOUT
        )
        self.load(*BROADCASTERS)
        self.switch(BROADCASTERS)

    def kill(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self):
        processes.end(self._process)
        self._log.close()
        self.node.destroy_node()
        self._rclpy.shutdown(context=self._context)

    @property
    def log(self):
        return (self._folder / "log").read_text(errors="replace")

    # --- Time -----------------------------------------------------------------------------------

    def _tick(self):
        from builtin_interfaces.msg import Time
        from rosgraph_msgs.msg import Clock

        seconds, nanoseconds = divmod(self.now, 1_000_000_000)
        self._clock.publish(Clock(clock=Time(sec=seconds, nanosec=nanoseconds)))

    def cycle(self, patience=0.5):
        """Advance by a cycle, and wait for its states for at most ``patience`` s: broadcasters may drop them."""
        self.now += PERIOD
        self._tick()
        end = time.monotonic() + patience
        while not (self.rows and self.rows[-1][0] >= self.now) and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.01)

    def run(self, seconds, action=lambda: None):
        """Advance by ``seconds``, with an action before each cycle; returns the rows of these cycles.

        They are time, s; link positions; motor efforts that acted until then.
        """
        first = len(self.rows)
        for _ in range(round(seconds * 1e9 / PERIOD)):
            action()
            self.cycle()
        assert self._process.poll() is None, self.log[-2000:]
        return columns(self.rows[first:])

    def wait(self, condition, cycles=True):
        """Advance until a condition holds; with time standing still if so wanted."""
        end = time.monotonic() + _PATIENCE
        while not condition():
            assert time.monotonic() < end and self._process.poll() is None, self.log[-2000:]
            if cycles:
                self.cycle()
            else:
                self._executor.spin_once(timeout_sec=0.01)

    # --- Services -------------------------------------------------------------------------------

    def call(self, service_type, service, /, **fields):
        client = self.node.create_client(service_type, service)
        self.wait(client.service_is_ready)
        future = client.call_async(service_type.Request(**fields))
        self.wait(future.done)
        self.node.destroy_client(client)
        return future.result()

    def load(self, *names):
        from controller_manager_msgs.srv import ConfigureController, LoadController

        for name in names:
            assert self.call(LoadController, "/controller_manager/load_controller", name=name).ok, self.log
            assert self.call(ConfigureController, "/controller_manager/configure_controller", name=name).ok, self.log

    def switch(self, activate=(), deactivate=(), within_cycle=False):
        """Activate and deactivate controllers, both or neither; while cycles go on, or within one."""
        from controller_manager_msgs.srv import SwitchController

        request = {"activate_controllers": list(activate), "deactivate_controllers": list(deactivate)}
        request |= {"strictness": SwitchController.Request.STRICT, "activate_asap": within_cycle}
        assert self.call(SwitchController, "/controller_manager/switch_controller", **request).ok, self.log

    def set_parameter(self, controller, name, value):
        """Set a parameter of a controller; returns the reason of a refusal, or ""."""
        from rcl_interfaces.srv import SetParameters
        from rclpy.parameter import Parameter

        request = [Parameter(name, value=value).to_parameter_msg()]
        (result,) = self.call(SetParameters, f"/{controller}/set_parameters", parameters=request).results
        return "" if result.successful else result.reason

    # --- Goals ----------------------------------------------------------------------------------

    def follow(self, times, *derivatives, delay=0.1):
        """Send a goal to joint_trajectory_controller: rows of positions, velocities … at times from its start, s.

        Returns the start of the trajectory, s, and a future of its result.
        """
        from builtin_interfaces.msg import Duration, Time
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionClient
        from trajectory_msgs.msg import JointTrajectoryPoint

        start = self.now + round(delay * 1e9)
        goal = FollowJointTrajectory.Goal()
        trajectory = goal.trajectory
        names = self.parameters[TRAJECTORY]["ros__parameters"]["joints"]
        trajectory.joint_names = names
        trajectory.header.stamp = Time(sec=start // 1_000_000_000, nanosec=start % 1_000_000_000)
        for k, at in enumerate(times):
            seconds, nanoseconds = divmod(round(at * 1e9), 1_000_000_000)
            point = JointTrajectoryPoint(time_from_start=Duration(sec=seconds, nanosec=nanoseconds))
            for field, rows in zip(("positions", "velocities", "accelerations"), derivatives, strict=False):
                setattr(point, field, [float(rows[k])] * len(names))
            trajectory.points.append(point)
        client = ActionClient(self.node, FollowJointTrajectory, f"/{TRAJECTORY}/follow_joint_trajectory")
        self.wait(client.server_is_ready)
        accepted = client.send_goal_async(goal)
        # The start must not pass before the goal has arrived.
        self.wait(accepted.done, cycles=False)
        assert accepted.result().accepted, self.log
        return start * 1e-9, accepted.result().get_result_async()


def columns(rows):
    """Time, s, link positions and motor efforts of rows of cycles."""
    stamps, q, efforts = zip(*rows, strict=True)
    return np.array(stamps) * 1e-9, np.array(q), np.array(efforts)
