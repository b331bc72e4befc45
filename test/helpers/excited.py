# SPDX-License-Identifier: Apache-2.0
"""Recordings of simulated robots with known differences of inertias, friction and rotors from their files."""

from dataclasses import replace

import numpy as np

from eom_dynamics import Dynamics, Joint, Robot
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Recording

ENCODER = 1e-5  # noise of positions, rad

TORQUE = 0.005
"""Noise of efforts, relative to the range of the sensor, which is the limit of the joint or else its largest effort."""


def pseudo_inertia(joint: Joint) -> Array:
    inertia, h = joint.inertia_about_origin, joint.mass * np.asarray(joint.center_of_mass)
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return np.block([[second, h[:, np.newaxis]], [h[np.newaxis], np.array([[joint.mass]])]])


def with_pseudo_inertia(joint: Joint, P: Array) -> Joint:
    inertia = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return replace(joint, mass=float(P[3, 3]), center_of_mass=P[:3, 3] / P[3, 3], inertia_about_origin=inertia)


def true_robot(robot: Robot, side: str = "joint", seed: int = 3, deviation: float = 0.04) -> Robot:
    """Robot with deformed, slightly wider bodies of another robot, and its own friction or rotors.

    A deformation of the mass distribution is a congruence of the pseudo-inertia: a body that can be stays one.
    """
    draw = np.random.default_rng(seed)
    joints = []
    for joint in robot.joints:
        if joint.mass:
            P = pseudo_inertia(joint) + joint.mass * np.diag([4e-4, 4e-4, 4e-4, 0.0])
            G = np.eye(4) + deviation * draw.standard_normal((4, 4))
            joint = with_pseudo_inertia(joint, G @ P @ G.T)
        viscous, dry = draw.uniform(0.5, 3.0, 2)
        if side == "joint":
            joint = replace(joint, damping=viscous, friction=dry)
        else:
            smoothing = float(joint.actuator.friction.smoothing_velocity)
            law = Friction(viscous, dry, dry, smoothing_velocity=smoothing)
            rotor = draw.uniform(0.3, 1.0)
            joint = replace(joint, rotor_inertia=rotor, actuator=replace(joint.actuator, friction=law))
        joints.append(joint)
    return replace(robot, joints=tuple(joints))


def motion(n: int, t: Array, amplitude: float = 0.8, slowest: float = 0.1) -> tuple[Array, Array, Array]:
    """Fourier motion of five harmonics: q, qd, qdd, each (N, n)."""
    a, b = np.moveaxis(np.random.default_rng(7).standard_normal((5, 2, n)), 1, 0)
    k = np.arange(1, 6)[:, np.newaxis]
    w, angle = 2 * np.pi * slowest * k, 2 * np.pi * slowest * np.multiply.outer(t, np.arange(1, 6))
    s, c, a, b = np.sin(angle), np.cos(angle), amplitude / k * a, amplitude / k * b
    return s @ a + c @ b, c @ (w * a) - s @ (w * b), -s @ (w**2 * a) - c @ (w**2 * b)


def efforts(robot: Robot, q: Array, qd: Array, qdd: Array, side: str = "joint") -> Array:
    """Efforts (N, n) of the joints, or of the motors of rigid joints; not compiled, as each test has its own robot."""
    tau = Dynamics(robot, order=0, friction=side == "joint", backend="numpy").effort(q, qd, qdd)
    if side == "motor":
        if robot.transmission is not None:
            joints, transmission = robot.transmission
            T = np.eye(robot.n)
            T[np.ix_(joints, joints)] = transmission.matrix
            tau, qd, qdd = tau @ T, qd @ np.linalg.inv(T).T, qdd @ np.linalg.inv(T).T
        laws = [joint.actuator.friction for joint in robot.independent_joints]
        tau = tau + robot.rotor_inertia * qdd
        tau = tau + np.column_stack([law.effort(qd[:, k]) for k, law in enumerate(laws)])
    return tau


def recording(
    robot: Robot,
    true: Robot,
    side: str = "joint",
    seed: int = 0,
    rate: float = 200.0,
    duration: float = 40.0,
    velocity: bool = False,
    noise: float = 1.0,
) -> Recording:
    draw = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 1 / rate)
    q, qd, qdd = motion(robot.n, t)
    tau = efforts(true, q, qd, qdd, side)
    limits = np.array([joint.limits.effort for joint in robot.independent_joints])
    scale = TORQUE * np.where(np.isfinite(limits), limits, np.abs(tau).max(axis=0))
    return Recording(
        robot.joint_names,
        t,
        q + noise * ENCODER * draw.standard_normal(q.shape),
        tau + noise * scale * draw.standard_normal(q.shape),
        qd + 1e-4 * draw.standard_normal(q.shape) if velocity else None,
        "simulated",
    )
