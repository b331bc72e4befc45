# SPDX-License-Identifier: Apache-2.0
"""Planner that calls every service in turn, back to back, with batches of 10,000 states, until SIGTERM.

    python batch_planner.py COUNTS.json

The first answers are compared with the library, all others bit by bit with the first. COUNTS.json has the number of
answers of each service, and why one was wrong.
"""

import json
import os
import signal
import sys
from array import array
from pathlib import Path

import numpy as np
import rclpy
from eom_dynamics.srv import ComputeInverseDynamics, ComputeTrajectoryFeedforward
from rclpy.executors import SingleThreadedExecutor
from trajectory_msgs.msg import JointTrajectoryPoint

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS, doubles
from eom_dynamics.trajectory import paper_motion

STATES, ROUNDING = 10_000, 1e-12
RATE, WAYPOINTS = 1000.0, 200

# Wait for the services, and for an answer, s: the middleware takes up to 20 s to miss a process that was killed.
PATIENCE, LONGEST = 60.0, 30.0


def requests(robot):
    """Service, request, and the fields of the answer with the numbers that the library has for them."""
    arm = ElasticArm(robot)
    state = paper_motion(robot.n).derivatives(np.linspace(0.0, 10.0, STATES))
    flat = {field: doubles(np.ascontiguousarray(x)) for field, x in zip(STATE_FIELDS, state, strict=True)}
    command = arm.feedforward(*state)
    return {
        "inverse_dynamics": (
            ComputeInverseDynamics,
            ComputeInverseDynamics.Request(**flat),
            dict(zip(COMMAND_FIELDS, command, strict=True)),
        ),
        "trajectory_feedforward": (ComputeTrajectoryFeedforward, _trajectory(robot), {}),
    }


def _trajectory(robot):
    """Waypoints of a motion whose answer has 10,001 samples."""
    request = ComputeTrajectoryFeedforward.Request(sample_rate=RATE)
    request.trajectory.joint_names = list(robot.joint_names)
    motion = paper_motion(robot.n)
    for t in np.linspace(0.0, STATES / RATE, WAYPOINTS):
        q, qd, qdd = (x / 5.0**k for k, x in enumerate(motion.derivatives(t / 5.0, 2)))
        point = JointTrajectoryPoint(positions=array("d", q), velocities=array("d", qd), accelerations=array("d", qdd))
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(t * 1e9), 10**9)
        request.trajectory.points.append(point)
    return request


def numbers(answer):
    """Bytes of all arrays of an answer."""
    names = [name for name, kind in answer.get_fields_and_field_types().items() if kind == "sequence<double>"]
    return {name: bytes(getattr(answer, name)) for name in names}


def wrong(answer, wanted):
    """Which field differs from the library, or an empty string."""
    for field, values in wanted.items():
        answered = np.frombuffer(getattr(answer, field)).reshape(np.shape(values))
        if not np.abs(answered - values).max() <= ROUNDING * np.abs(values).max():
            return f"{field} differs from the library"
    return ""


def main():
    path = Path(sys.argv[1])
    os.nice(5)  # as a user would who has one machine for all of it
    ended = False

    def end(*_):
        nonlocal ended
        ended = True

    rclpy.init(args=sys.argv[2:], signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    signal.signal(signal.SIGTERM, end)
    node = rclpy.create_node(f"planner_{os.getpid()}")
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    calls = requests(load_robot("iiwa"))
    clients = {name: node.create_client(kind, f"planning/{name}") for name, (kind, _, _) in calls.items()}
    counts, first, problem, missed = dict.fromkeys(calls, 0), {}, "", 0
    for client in clients.values():
        client.wait_for_service(PATIENCE)
    print("ready", flush=True)
    while not ended and not problem:
        for name, (_, request, wanted) in calls.items():
            future = clients[name].call_async(request)
            executor.spin_until_future_complete(future, LONGEST)
            if not future.done():  # the server is gone or stopped
                missed += 1
                clients[name].remove_pending_request(future)
                continue
            answer = future.result()
            if not answer.success:
                problem = f"{name}: {answer.message}"
            elif name not in first:
                problem = wrong(answer, wanted)
                first[name] = numbers(answer)
            elif numbers(answer) != first[name]:
                problem = f"{name}: another answer to the same request"
            counts[name] += 1
            if ended or problem:
                break
    path.write_text(json.dumps({"counts": counts, "missed": missed, "problem": problem}))
    os._exit(0)


if __name__ == "__main__":
    main()
