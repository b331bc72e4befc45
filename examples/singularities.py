# SPDX-License-Identifier: Apache-2.0
"""Pictures of singularities: gimbal lock, the wrist of the UR5e, and a stretched biped leg.

python examples/singularities.py singularities.png
"""

import sys

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import eom_dynamics as eom
from eom_dynamics.arrays import AnyArray
from eom_dynamics.kinematics import newton_raphson


def euler_rates(distance: float) -> tuple[AnyArray, AnyArray]:
    """Rates of yaw, pitch and roll (N, 3) of a body that turns by 1 rad/s about the fixed y axis, at times (N,), s.

    At time 0, its x axis passes the vertical at ``distance``, rad: there, the axes of yaw and roll are almost parallel.
    """
    t = np.linspace(-0.5, 0.5, 2000)
    aside = eom.lie.rotation_from_rotation_vector([0.0, 0.0, distance])
    R = eom.lie.rotation_from_rotation_vector(np.outer(t + np.pi / 2, [0.0, 1.0, 0.0])) @ aside
    return t, np.gradient(np.unwrap(eom.lie.euler_angles("ZYX", R), axis=0), t, axis=0)


def wrist(angle: AnyArray) -> AnyArray:
    """Configurations (N, 6) of the UR5e by its fifth joint: at zero, the axes of the fourth and sixth are parallel."""
    q = np.tile([0.3, -1.2, 1.4, 0.3, 0.0, 0.6], (len(angle), 1))
    q[:, 4] = angle
    return q


def leg_angles(foot: AnyArray, thigh: float = 0.3, shank: float = 0.3) -> AnyArray:
    """Joint angles (6,) of the biped leg for a pose of its foot, in closed form; stretched if it is out of reach.

    S. Kajita et al., Introduction to Humanoid Robotics (2014), section 2.5: the position of the hip in the frame of the
    foot gives knee and ankle; the remaining rotation gives the hip.
    """
    x, y, z = -foot[:3, :3].T @ foot[:3, 3]
    cosine = (x**2 + y**2 + z**2 - thigh**2 - shank**2) / (2 * thigh * shank)
    knee = np.arccos(np.clip(cosine, -1.0, 1.0))
    pitch = -np.arctan2(x, np.hypot(y, z)) - np.arctan2(thigh * np.sin(knee), shank + thigh * np.cos(knee))
    roll = np.arctan2(y, z)
    turn = eom.lie.rotation_from_rotation_vector
    hip = eom.lie.euler_angles("ZXY", foot[:3, :3] @ turn([-roll, 0.0, 0.0]) @ turn([0.0, -pitch - knee, 0.0]))
    return np.array([*hip, knee, pitch, roll])


def stretched_leg(newton: Axes, robust: Axes, converging: Axes) -> None:
    """Draw joint angles of a biped leg with a foot that moves forward, out of reach: its boundary singularity.

    They are solved by Newton-Raphson from the previous angles, with the inverse of J and with the
    singularity-robust inverse J' (J J' + λ I)⁻¹ of Nakamura and Hanafusa, which has the damping √λ in SI units; and
    in closed form. Also drawn: the convergence of single solutions from an almost stretched leg.
    """
    leg = eom.Kinematics(eom.load_robot("biped_leg"))
    bent = np.array([0.0, 0.0, -np.pi / 6, np.pi / 3, -np.pi / 6, 0.0])
    rates = eom.differential_inverse_kinematics(leg, bent, ([0, 0, 0, 0, 0, 0.1],), reference="world_aligned").rates[0]
    print(f"leg, foot lifted by 0.1 m/s: hip, knee, ankle {np.array2string(rates[2:5], precision=4)} rad/s")
    forward = np.linspace(0.0, 0.4, 81)
    feet = np.tile(leg.pose(bent), (len(forward), 1, 1))
    feet[:, 0, 3] += forward
    exact = np.array([leg_angles(foot) for foot in feet])
    for axes, lam, name in ((newton, 0.0, "inverse of J"), (robust, 0.01, "singularity-robust inverse")):
        q, found = bent, []
        for foot in feet:
            q = newton_raphson(leg, foot, q, damping=np.sqrt(lam), iterations=20).q[-1]
            found.append(q)
        for k, joint in enumerate(("hip", "knee", "ankle")):
            axes.plot(forward, np.array(found)[:, k + 2], color=f"C{k}", label=f"{joint} pitch")
            axes.plot(forward, exact[:, k + 2], ":", color=f"C{k}")
        axes.set(title=f"Biped leg, foot forward: {name}", xlabel="foot  [m]", ylim=(-1.6, 1.6))
        print(f"leg, {name}: joint angles off by up to {np.max(np.abs(found - exact)):.2g} rad")
    newton.set_ylabel("joint angles; dotted: in closed form  [rad]")
    for k, (share, damping) in enumerate(((1.0, 0.0), (0.5, 0.0), (1.0, 0.05))):
        start = [0.0, 0.0, -0.01, 0.02, -0.01, 0.0]
        steps = newton_raphson(leg, feet[0], start, step=share, damping=damping, iterations=40)
        errors = np.max(np.abs(steps.error), axis=1)
        converging.semilogy(errors + 1e-16, ".-", color=f"C{k}", label=f"step {share:g}, √λ = {damping:g} m")
    converging.set(title="Newton–Raphson from an almost stretched leg", xlabel="step", ylabel="error  [m, rad]")
    for axes in (newton, robust, converging):
        axes.legend(frameon=False)


def main() -> None:
    """Draw six pictures, and print the largest joint rates."""
    kinematics = eom.Kinematics(eom.load_robot("ur5e"))
    figure = Figure(figsize=(15, 9.2), layout="constrained")
    (gimbal, singular, rates), leg = figure.subplots(2, 3)

    t, angular = euler_rates(0.05)
    for name, column in zip(("yaw", "pitch", "roll"), angular.T, strict=True):
        gimbal.plot(t, column, label=name, ls="--" if name == "roll" else "-")  # as fast as yaw
    gimbal.set(
        title="Gimbal lock: a body turns evenly, by 1 rad/s", xlabel="time, at 0 the nose is 3° from vertical  [s]"
    )
    gimbal.set_ylabel("rates of its Euler angles  [rad/s]")
    gimbal.legend(frameon=False)

    angle = np.linspace(-0.3, 0.3, 601)
    q = wrist(angle)
    values = np.linalg.svd(kinematics.jacobian(q), compute_uv=False)
    singular.plot(angle, values[:, -1], label="smallest singular value of J")
    singular.plot(angle, kinematics.manipulability(q), label="manipulability")
    singular.set(title="Wrist of the UR5e: two axes become parallel", xlabel="fifth joint  [rad]", ylim=(0.0, None))
    singular.legend(frameon=False)

    # Twist of unit size that the arm cannot make at zero; rates without and with damping, and the missing twist.
    (direction,) = kinematics.singular_directions(wrist(np.zeros(1))[0])
    twist = np.tile(0.1 * direction, (len(angle), 1))
    exact = eom.differential_inverse_kinematics(kinematics, q, (twist,), damping=0.0)
    damped = eom.differential_inverse_kinematics(kinematics, q, (twist,))
    for name, motion in (("exact", exact), ("damped", damped)):
        largest = np.max(np.abs(motion.rates[0]), axis=1)
        rates.semilogy(angle, largest, label=f"largest joint rate, {name}  [rad/s]")
        print(f"{name}: joint rates up to {np.max(largest[largest < 1e6]):.3g} rad/s")
    rates.semilogy(
        angle, np.linalg.norm(damped.missed[0], axis=1) + 1e-6, label="missed, damped  [rad/s, m/s]", ls="--"
    )
    rates.set(title="The tool is to move by 0.1 rad/s, m/s", xlabel="fifth joint  [rad]", ylim=(1e-3, 1e4))
    rates.legend(frameon=False, loc="upper right")

    stretched_leg(*leg)
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1], dpi=110)
        print(f"drawn to {sys.argv[1]}")


if __name__ == "__main__":
    main()
