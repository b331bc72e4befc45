# SPDX-License-Identifier: Apache-2.0
"""Write the robot, motions and recordings that pages of the documentation use to the present folder.

my_arm.yaml, an arm with springs, and my_arm.urdf without springs; motion.npz, bags of two runs of it, run1 and
run2, with measured.npy of run1, and both again in the folder archive; recording.npz of a heavier arm with friction
(t, q, tau), springs.npz and springs.csv of both sides of its springs, and resonance.npz of a motor with a spring
(t, theta, effort).
"""

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import StateSpace, chirp, lsim

import eom_dynamics as eom
from eom_dynamics.recordings.bags import BagWriter, Storage
from eom_dynamics.recordings.bags.types import serialized
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.robot.writers.urdf import robot_as_urdf
from eom_dynamics.trajectory import Fourier, rest_to_rest

Array = NDArray[np.float64]
NOISE = np.random.default_rng(0)
SETPOINT, JOINT_STATE = "eom_dynamics/msg/JointTrajectorySetpoint", "sensor_msgs/msg/JointState"
FIELDS = ("position", "velocity", "acceleration", "jerk", "snap")


def noisy(values: Array, deviation: float) -> Array:
    """Values as a sensor measures them."""
    return np.asarray(values + deviation * NOISE.standard_normal(values.shape))


def write_run(folder: Path, names: list[str], t: Array, states: Array, position: Array, effort: Array) -> None:
    """Write a bag of setpoints, and of measured positions and efforts of the joints."""
    folder.mkdir(parents=True)
    times = 1_700_000_000_000_000_000 + np.round(1e9 * t).astype(np.int64)
    rows: list[list[NDArray[np.uint8]]] = [[], []]
    for k, at in enumerate(times.tolist()):
        header = {"stamp": dict(zip(("sec", "nanosec"), divmod(at, 10**9), strict=True)), "frame_id": ""}
        setpoint = dict(zip(FIELDS, states[:, k], strict=True))
        measured = {"name": names, "position": position[k], "effort": effort[k]}
        rows[0].append(np.frombuffer(serialized(SETPOINT, header=header, joint_names=names, **setpoint), np.uint8))
        rows[1].append(np.frombuffer(serialized(JOINT_STATE, header=header, **measured), np.uint8))
    topics = {"/setpoint": SETPOINT, "/joint_states": JOINT_STATE}
    with BagWriter(folder, folder.name, Storage.SQLITE3, topics) as bag:
        bag.write(times, [np.array(each) for each in rows])


for path in (Path("run1"), Path("run2"), Path("archive")):
    shutil.rmtree(path, ignore_errors=True)
robot = eom.load_robot("sea_planar_2r")
Path("my_arm.yaml").write_text(robot_as_yaml(robot).text, encoding="utf-8")
Path("my_arm.urdf").write_text(robot_as_urdf(robot).text, encoding="utf-8")

arm = eom.ElasticArm(eom.load_robot("my_arm.yaml"))
names = list(arm.robot.joint_names)
t: Array = np.arange(0, 2.001, 0.005, dtype=np.float64)
states = np.stack(rest_to_rest([0.0, 0.0], [0.6, -0.4], 2.0).derivatives(t))
keys = ("q", "qd", "qdd", "qddd", "qdddd")
np.savez("motion.npz", allow_pickle=False, t=t, joint_names=np.array(names), **dict(zip(keys, states, strict=True)))
measured = states[0] - 1e-3 * states[2]
np.save("measured.npy", measured)
effort = arm.dynamics.effort(*states[:3])
for folder in (Path(), Path("archive")):
    write_run(folder / "run1", names, t, states, measured, effort)
    write_run(folder / "run2", names, t, states, states[0] - 1e-4 * states[2], effort)

sine, cosine = 0.5 * NOISE.standard_normal((2, 2, 8))
motion = Fourier(0.1, sine, cosine, np.zeros(2), periods=2)
t = np.arange(0.0, 20.0, 0.004, dtype=np.float64)
q, *rates = motion.derivatives(t)
command = arm.feedforward(q, *rates)
both = {"theta": noisy(command.motor_position, 1e-5), "q": noisy(q, 1e-5), "tau": noisy(command.tau, 0.05)}
both["motor_effort"] = noisy(command.motor_effort, 0.05)
np.savez("springs.npz", allow_pickle=False, t=t, **both)
columns = [f"{side}.{name}" for side in ("motor_position", "position", "effort", "motor_effort") for name in names]
table = np.column_stack([t, *both.values()])
np.savetxt("springs.csv", table, delimiter=",", header=",".join(["t", *columns]), comments="")
rigid = eom.Dynamics(eom.load_robot("my_arm.urdf"))
tau = 1.2 * rigid.effort(q, *rates[:2]) + 0.4 * rates[0] + 0.3 * np.tanh(rates[0] / 0.01)
both = {"q": noisy(q, 1e-5), "tau": noisy(tau, 0.05)}
np.savez("recording.npz", allow_pickle=False, t=t, **both, joint_names=np.array(names))

K, B, J, D = 200.0, 0.05, 0.25, 0.1  # N m/rad, kg m² of motor and link, N m s/rad
t = np.arange(0.0, 14.0, 0.002, dtype=np.float64)
effort = 2.0 * chirp(t, 0.5, 12, 30, method="logarithmic") * np.clip(np.minimum(t, 12 - t), 0, 1)
A = [[0, 0, 1, 0], [0, 0, 0, 1], [-K / B, K / B, -D / B, 0], [K / J, -K / J, 0, 0]]
theta = lsim(StateSpace(A, [[0], [0], [1 / B], [0]], [[1, 0, 0, 0]], [[0]]), effort, t)[1]
np.savez("resonance.npz", allow_pickle=False, t=t, theta=theta, effort=effort)
print(
    "wrote my_arm.yaml, my_arm.urdf, motion.npz, run1, run2, archive, recording.npz, springs.npz, springs.csv, "
    "resonance.npz"
)
