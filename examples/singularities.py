# SPDX-License-Identifier: Apache-2.0
"""What goes wrong at singularities, drawn: gimbal lock, the wrist of the UR5e, and a leg that stretches its knee.

python examples/singularities.py singularities.png
"""

import sys

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import eom_dynamics as eom
from eom_dynamics.arrays import AnyArray
from eom_dynamics.kinematics import POSITION, newton_raphson


def euler_rates(distance: float) -> tuple[AnyArray, AnyArray]:
    """Rates of yaw, pitch and roll (N, 3) of a body that turns by 1 rad/s about the fixed y axis, at times (N,), s.

    At time 0 its x axis passes the vertical at a distance, rad: there the axes of yaw and roll are almost parallel.
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


def stretched_leg(followed: Axes, knee: Axes, converging: Axes) -> None:
    """Draw a foot that is led straight down beyond the reach of its leg, and Newton's iterates from a stretched leg.

    The singularity-robust inverse J' (J J' + λ I)⁻¹ of Nakamura and Hanafusa is that with the damping √λ in SI units.
    """
    leg = eom.Kinematics(eom.load_robot("leg"))
    step, start = 2e-3, np.array([0.0, 0.5, -1.0])
    t = np.arange(0.0, 1.2, step)
    down = leg.pose(start)[:3, 3] + np.outer(t, [0.0, 0.0, -0.1])
    for k, lam in enumerate((0.0, 1e-4, 1e-3)):
        q, path, speeds = start, [], []
        for target in down:
            # The velocity of the target, and a correction of what was missed before.
            position = leg.pose(q)[:3, 3]
            V = np.concatenate([np.zeros(3), [0.0, 0.0, -0.1] + 10.0 * (target - position)])
            options = {"damping": np.sqrt(lam), "length": 1.0}
            (qd,) = eom.differential_inverse_kinematics(
                leg, q, (V,), reference="world_aligned", task=POSITION, **options
            )
            path.append(np.linalg.norm(target - position))
            speeds.append(np.max(np.abs(qd)))
            q = q + step * qd
        name = f"λ = {lam:g} m²" if lam else "inverse of J"
        followed.semilogy(t, np.array(path) + 1e-6, color=f"C{k}", label=name)
        knee.semilogy(t, speeds, color=f"C{k}", label=name)
        print(f"leg, {name}: joint rates up to {np.max(speeds):.3g} rad/s")
    followed.set(title="Leg: its foot is led down, out of reach, by 0.1 m/s", xlabel="time  [s]", ylabel="missed  [m]")
    knee.set(title="Its largest joint rate", xlabel="time  [s]", ylabel="[rad/s]")
    target = leg.pose(start)[:3, 3]
    for k, (share, damping) in enumerate(((1.0, 0.0), (0.5, 0.0), (1.0, 0.05))):
        found = newton_raphson(leg, target, [0.0, 0.1, -0.02], step=share, damping=damping, iterations=40)
        errors = np.linalg.norm(found.error, axis=1)
        converging.semilogy(errors + 1e-16, ".-", color=f"C{k}", label=f"step {share:g}, √λ = {damping:g} m")
        print(
            f"leg, Newton-Raphson, step {share:g}, damping {damping:g} m: {len(errors) - 1} steps to {errors[-1]:.1e} m"
        )
    converging.set(
        title="Newton–Raphson from an almost stretched leg", xlabel="step", ylabel="distance of the foot  [m]"
    )
    for axes in (followed, knee, converging):
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

    # The twist that the arm cannot make at zero, of unit size; rates without and with damping, and what is missed.
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
