# SPDX-License-Identifier: Apache-2.0
"""Position-controlled arm with a tool that swings at the stop: a tap, limits of jerk and effort rate, and θ = q + τ/K.

Usage: python examples/swinging_tool.py; needs MuJoCo and matplotlib, writes swinging_tool.png to the present folder.

The arm is a MuJoCo plant with a spring between drive and link of the shoulder. Only positions of the drives are
commanded, every 4 ms. The tap is measured on the plant; motions are planned with a frequency that is 10 % too high.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import mujoco
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import eom_dynamics as eom
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.robot.writers.mjcf import robot_as_mjcf
from eom_dynamics.trajectory import minimum_time

Array = NDArray[np.float64]
PATH = np.array([[0.3, 0.6], [1.2, -0.4]])  # rad
PERIOD, STEP = 4e-3, 0.5e-3  # of commands and of the simulation, s
TOO_HIGH = 1.1  # ratio of the frequency in the plan to the plant
STIFFNESS = 400.0  # of the plant, N m/rad; nobody knows it
INERTIA, SERVO = 0.5, 400.0  # of the drives: gain of their position loops, kg m², and bandwidth, rad/s
AFTER = 1.5  # time after a motion, s
LIMITS = {"velocity": 3.0, "acceleration": 12.0}  # of a planner
SMOOTH = {"jerk": 150.0, "effort_rate": 250.0}
LINKS = """
<mujoco model="position_only">
  <worldbody>
    <body name="upper_arm">
      <joint name="shoulder" axis="0 -1 0"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.04" mass="2"/>
      <body name="forearm" pos="0.5 0 0">
        <joint name="elbow" axis="0 -1 0"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="1"/>
        <site name="tip" pos="0.4 0 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def arm(stiffness: float | None) -> eom.ElasticArm:
    """The links with a spring at the shoulder, or rigid, and the limits that an industrial planner knows."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "links.xml"
        file.write_text(LINKS, encoding="utf-8")
        robot = eom.load_robot(file)
    limits = {"velocity": 3.0, "acceleration": 12.0}
    joints = [replace(x, limits=replace(x.limits, **limits), rotor_inertia=0.1) for x in robot.joints]
    if stiffness is not None:
        joints[0] = replace(joints[0], spring=LinearSpring(stiffness))
    return eom.ElasticArm(replace(robot, joints=tuple(joints)))


def simulated(plant: eom.ElasticArm, times: Array, positions: Array, tap: float = 0.0) -> tuple[Array, Array, Array]:
    """Times (N,), s, deflections of the shoulder (N,), rad, and positions of the tip (N, 3), m, by commands (K, 2).

    Drives interpolate commands. A tap is a force on the tip for a step, N.
    """
    model = mujoco.MjModel.from_xml_string(robot_as_mjcf(plant.robot).text)
    model.opt.timestep = STEP
    motors = [model.joint(name).qposadr[0] for name in ("shoulder_motor", "elbow")]
    spring = model.joint("shoulder_spring").qposadr[0]
    data = mujoco.MjData(model)
    data.qpos[motors] = positions[0]
    data.qpos[spring] = -plant.dynamics.gravity(PATH[0])[0] / plant.stiffness[0]
    t = np.arange(0.0, times[-1], STEP)
    wanted = np.stack([np.interp(t, times, x) for x in positions.T], axis=1)
    rate = np.gradient(wanted, STEP, axis=0)
    deflection, tip = np.empty(len(t)), np.empty((len(t), 3))
    for k in range(len(t)):
        off, speed = wanted[k] - data.qpos[motors], rate[k] - data.qvel[motors]
        data.ctrl = INERTIA * (SERVO**2 * off + 2 * SERVO * speed)
        data.xfrc_applied[-1, 2] = tap * (k == 1)
        mujoco.mj_step(model, data)
        mujoco.mj_kinematics(model, data)
        deflection[k], tip[k] = data.qpos[spring], data.site("tip").xpos
    return t, deflection, tip


def frequency(t: Array, x: Array) -> float:
    """Frequency of the ringing after a tap, Hz: the highest peak of the spectrum, between bins."""
    spectrum = np.abs(np.fft.rfft((x - x.mean()) * np.hanning(len(t)), 16 * len(t)))
    return float(np.argmax(spectrum) / (16 * len(t) * (t[1] - t[0])))


def sent(sender: eom.ElasticArm, limits: dict[str, float]) -> tuple[float, Array, Array]:
    """End of the fastest motion within limits, s, and times (K,) and positions (K, 2) of commands: θ = q + τ/K."""
    motion = minimum_time(sender, PATH, dict.fromkeys(sender.robot.joint_names, limits))
    times = np.arange(0.0, motion.end + AFTER, PERIOD)
    return motion.end, times, sender.feedforward(*motion.derivatives(times)).motor_position


def main() -> None:
    """Tap, plan, play, and draw."""
    plant = arm(STIFFNESS)
    at_rest = plant.feedforward(PATH[0], *np.zeros((4, 2))).motor_position
    t, deflection, _ = simulated(plant, np.array([0.0, 4.0]), np.stack([at_rest] * 2), tap=200.0)
    rings = frequency(t, deflection)
    inertia = plant.dynamics.mass_matrix(PATH[0])[0, 0]
    stiffness = (2 * np.pi * TOO_HIGH * rings) ** 2 * inertia
    print(f"the tool rings at {rings:.2f} Hz: K = (2 pi f)^2 M = {(2 * np.pi * rings) ** 2 * inertia:.0f} N m/rad")
    print(f"planned with a frequency 10 % too high: {stiffness:.0f} N m/rad")

    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    axes = figure.subplots()
    steps = {
        "before: q": (None, LIMITS),
        "θ = q + τ/K alone": (stiffness, LIMITS),
        "limits of jerk and effort rate, θ = q + τ/K": (stiffness, LIMITS | SMOOTH),
    }
    for name, (spring, limits) in steps.items():
        end, times, positions = sent(arm(spring), limits)
        t, _, tip = simulated(plant, times, positions)
        swing = 1e3 * np.linalg.norm(tip - tip[t > end].mean(axis=0), axis=1)
        swings = 1e3 * np.ptp(tip[t > end], axis=0).max()
        print(f"{name}: {end:.2f} s, swings by {swings:.2g} mm after the stop")
        axes.plot(t - end, swing, label=f"{name}: {end:.2f} s")
    axes.set(xlim=(-0.2, 1.0), ylim=(0, 40), xlabel="time after the stop  [s]", ylabel="tool from its rest  [mm]")
    axes.legend(frameon=False, fontsize="small")
    figure.savefig("swinging_tool.png", dpi=100)


if __name__ == "__main__":
    main()
