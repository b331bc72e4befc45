# SPDX-License-Identifier: Apache-2.0
"""Stream setpoints to several nodes at the same time, each with its own robot; recompute every answer.

    python several_streams.py RESULT.npz --rate 200 --seconds 5 --robots /arm_1=arm_1.urdf /arm_2=arm_2.urdf ...

RESULT.npz has round trips, s, setpoints sent and lost, and the number of answers that are not those of the node's
robot. It prints a line when all nodes have answered and the streams begin.
"""

import argparse
import gc
import os
import time

import numpy as np
import rclpy
from streamer import GRACE, Side, Streamer

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.control.fields import COMMAND_FIELDS
from eom_dynamics.ros.interfaces import JointTrajectorySetpoint
from eom_dynamics.trajectory import paper_motion


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result")
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--robots", nargs="+", required=True)
    options, ros_arguments = parser.parse_known_args()
    rclpy.init(args=ros_arguments)
    spaces, paths = zip(*(each.split("=") for each in options.robots), strict=True)
    arms = [ElasticArm(load_robot(path)) for path in paths]
    streamer = Streamer(arms[0].robot)
    sides = [Side(streamer, space) for space in spaces]
    messages = [JointTrajectorySetpoint(joint_names=list(arm.robot.joint_names)) for arm in arms]
    for side, message in zip(sides, messages, strict=True):
        streamer.message = message
        streamer.connect(side)
    count = round(options.seconds * options.rate)
    states = paper_motion(arms[0].robot.n).derivatives(np.arange(count) / options.rate)
    first = time.time_ns()
    stamps = [divmod(first + round(k * 1e9 / options.rate), 10**9) for k in range(count)]
    sent = np.empty((len(sides), count))
    print("connected", flush=True)
    gc.disable()
    # In turn and not all at once: each in its part of the period.
    for turn in streamer.paced(count * len(sides), options.rate * len(sides)):
        k, number = divmod(turn, len(sides))
        streamer.message = messages[number]
        sent[number, k] = time.monotonic()
        streamer.send(sides[number], [x[k] for x in states], stamps[k])
    deadline = time.monotonic() + GRACE
    while any(len(side.answers) < count for side in sides) and time.monotonic() < deadline:
        streamer.take_answers_until(time.monotonic() + 0.02)
    wrong = 0
    for arm, side, times in zip(arms, sides, sent, strict=True):
        side.stamps = {stamp: k for k, stamp in enumerate(stamps)}
        wanted = arm.feedforward(*states)
        for k, answer in side.by_setpoint(times).items():
            fits = (list(getattr(answer, name)) == list(x[k]) for name, x in zip(COMMAND_FIELDS, wanted, strict=True))
            wrong += not (all(fits) and answer.joint_names == list(arm.robot.joint_names))
    received = sum(side.received for side in sides)
    trips = np.concatenate([trip for side in sides for trip in side.round_trips])
    np.savez(options.result, round_trip=trips, sent=sent.size, lost=sent.size - received, wrong=wrong)
    os._exit(0)


if __name__ == "__main__":
    main()
