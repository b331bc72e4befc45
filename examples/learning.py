# SPDX-License-Identifier: Apache-2.0
"""Iterative learning: correct a repeated motion by the results of its last run, without and with a model.

*Nominal torque*: A. De Luca, G. Paesano, G. Ulivi, "A frequency-domain approach to learning control: implementation for
a robot manipulator", IEEE Trans. Industrial Electronics 39 (1992). The feedforward of the next run is the last
feedforward plus the PD effort, low-pass filtered. If the arm repeats the motion well, the PD effort vanishes, and the
feedforward is the nominal torque of the inverse dynamics.

*Correction of the links*, for elastic joints and a model that is a few percent wrong: the next run commands the
feedforward for q_d + c. With an exact model the links follow q_d + c, so that from the link error e = q - q_d of a run

    c+ = S (c - gain e),

norm-optimal iterative learning: N. Amann, D. H. Owens, E. Rogers, "Iterative learning control for discrete-time systems
with exponential rate of convergence", IEE Proc. D 143 (1996). S is the least-squares fit of a spline whose knots set
the bandwidth, a low-pass without phase. With the transfer function P(i w) from c to the links, 1 for an exact model,
errors shrink from run to run by rho = max over w of |S(w) (1 - gain P(i w))|, which :func:`contraction` bounds for
errors of the model; from 1 on, learning diverges.

python examples/learning.py
"""

from itertools import product

import numpy as np
from scipy.interpolate import BSpline
from scipy.signal import butter, sosfiltfilt

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import SimulatedDrives, SimulatedRobot
from eom_dynamics.simulation.feedforward_comparison import perturbed
from eom_dynamics.trajectory import rest_to_rest

RUNS = 6
PERIOD, DURATION = 0.004, 1.0  # of the nominal torque, s
FILTER = butter(2, 15.0, fs=1 / PERIOD, output="sos")  # Q, applied without phase; Hz
NATURAL_FREQUENCY = 70.0  # of the motors' PD, rad/s
DEGREE = 7  # of the spline, with four smooth derivatives


def trial(arm: eom.ElasticArm, motion: tuple[Array, ...], nominal: Array) -> tuple[Array, Array]:
    """Tracking errors and PD efforts (N, n) of a run of the motors under PD with this feedforward (N, n)."""
    robot = SimulatedRobot(arm, period=PERIOD, position=motion[0][0], drives=SimulatedDrives(natural_frequency=15.0))
    errors, efforts = [], []
    for q, qd, effort in zip(*motion[:2], nominal, strict=True):
        before = robot.readings()
        robot.follow(q, qd, effort)
        robot.advance()
        # Setpoints and efforts are held for a period: they belong to its middle.
        after = robot.readings()
        errors.append(q - (before.q + after.q) / 2)
        efforts.append(robot.kp * errors[-1] + robot.kd * (qd - (before.qd + after.qd) / 2))
    return np.array(errors), np.array(efforts)


def learn_nominal_torque() -> None:
    """Learn the torques of a swing of a planar arm with rigid joints, and compare them with the inverse dynamics."""
    arm = eom.ElasticArm(eom.load_robot("planar_2r"), stiffness=np.inf)
    swing = rest_to_rest([-1.0, 0.5], [0.5, -0.7], duration=DURATION)
    motion = swing.derivatives(np.arange(PERIOD / 2, DURATION, PERIOD))
    needed = arm.feedforward(*motion).motor_effort
    # The first run uses the torques that hold the ends, known from the arm at rest.
    nominal = np.linspace(needed[0], needed[-1], len(needed))
    for k in range(RUNS):
        errors, efforts = trial(arm, motion, nominal)
        off = np.sqrt(np.mean((nominal - needed) ** 2) / np.mean(needed**2))
        print(f"run {k + 1}: error {milli(errors):6.3f} mrad, nominal torque {100 * off:5.2f} % off")
        nominal = sosfiltfilt(FILTER, nominal + efforts, axis=0)


def learn(t: Array, reference: Array, commanded: Array, measured: Array, bandwidth: float, gain: float = 0.8) -> Array:
    """Motion to command in the next run (5, N, n).

    Args:
        t: times (N,) in equal steps, s.
        reference: q_d and its time derivatives (5, N, n), rad or m and per s … s⁴.
        commanded: motion commanded in the last run (5, N, n).
        measured: positions of the links in it (N, n), rad or m.
        bandwidth: maximum frequency of learned errors, Hz; below the first resonance.
        gain: share of the error that is corrected.
    """
    error = measured - reference[0]
    return np.asarray(reference + spline_fit(t, commanded[0] - reference[0] - gain * error, bandwidth))


def spline_fit(t: Array, values: Array, bandwidth: float) -> Array:
    """Spline (5, N, n) nearest to values (N, n) at times (N,), with knots at half the period of the bandwidth.

    It begins at zero, and its derivatives vanish at both ends: a motion at rest there still is, and drives hold the
    last command.
    """
    pieces = max(1, int(np.ceil(2 * bandwidth * (t[-1] - t[0]))))
    knots = np.concatenate([[t[0]] * DEGREE, np.linspace(t[0], t[-1], pieces + 1), [t[-1]] * DEGREE])
    basis = BSpline.design_matrix(t, knots, DEGREE).toarray()
    # The first five coefficients are zero, the last five are equal.
    free = np.hstack([basis[:, 5:-5], basis[:, -5:].sum(axis=1, keepdims=True)])
    coefficients = np.linalg.lstsq(free, values, rcond=None)[0]
    coefficients = np.pad(np.pad(coefficients, ((5, 0), (0, 0))), ((0, 4), (0, 0)), mode="edge")
    spline = BSpline(knots, coefficients, DEGREE)
    return np.stack([spline(t, nu=k) for k in range(5)])


def contraction(
    arm: eom.ElasticArm,
    positions: Array,
    bandwidth: float,
    gain: float = 0.8,
    *,
    stiffness: float = 0.1,
    mass: float = 0.1,
    rotor_inertia: float = 0.1,
    delay: float = 0.0,
) -> float:
    """Bound of the ratio of errors from run to run, over all signs of the errors of the model.

    The arm is linear around each pose, with its inertia, gravity and springs, at rest; friction and Coriolis efforts
    are not part of it.

    Args:
        arm: the model, with a motor and a spring at each joint, in the reduced rotor model.
        positions: poses (N, n), rad or m.
        bandwidth, gain: as for :func:`learn`.
        stiffness, mass, rotor_inertia: largest relative errors of the model.
        delay: largest error of its delay, s.
    """
    n, w0 = arm.robot.n, NATURAL_FREQUENCY
    K, B, E = np.diag(arm.stiffness), np.diag(arm.motor_inertia), np.eye(n)
    steps = 1e-6 * E
    masses = np.atleast_3d(arm.dynamics.mass_matrix(positions))
    weight = arm.dynamics.gravity
    gravity = np.stack([(weight(positions + h) - weight(positions - h)) / 2e-6 for h in steps], -1)
    omega = np.geomspace(0.02, 2.0, 40) * 2 * np.pi * bandwidth
    low_pass = spline_response(omega / (2 * np.pi * bandwidth))
    # (frequencies, poses, n, n): from c to joint efforts, motor positions and motor efforts of the model.
    s = 1j * omega[:, np.newaxis, np.newaxis, np.newaxis]
    tau = s**2 * masses + gravity
    command = (s**2 + w0**2 + 2 * w0 * s) * B @ (E + np.linalg.solve(K, tau)) + tau
    worst, zero = 0.0, np.zeros_like(command)
    for off in product(*({-x, x} for x in (stiffness, mass, rotor_inertia, delay))):
        real = (1 + off[0]) * K
        links = (1 + off[1]) * tau + real
        motors = s**2 * (1 + off[2]) * B + (w0**2 + 2 * w0 * s) * B + real
        motors, across = np.broadcast_to(motors, command.shape), np.broadcast_to(-real, command.shape)
        both = np.block([[links, across], [across, motors]])
        P = np.linalg.solve(both, np.concatenate([zero, np.exp(-s * off[3]) * command], axis=-2))[..., :n, :]
        change = np.linalg.norm(E - gain * P, 2, axis=(-2, -1)).max(axis=1)
        worst = max(worst, float(np.max(low_pass * change)))
    return worst


def spline_response(x: Array) -> Array:
    """Response of the least-squares spline at frequencies in units of the bandwidth.

    Approximation of M. Unser, A. Aldroubi, M. Eden, "Polynomial spline signal approximations: filter design and
    asymptotic equivalence with Shannon's sampling theorem", IEEE Trans. Inf. Theory 38 (1992), of the first alias.
    """
    other = np.maximum(2.0 - x, 1e-9)
    return np.asarray(1.0 / (1.0 + (x / other) ** (2 * (DEGREE + 1))))


def follow(arm: eom.ElasticArm, real: eom.ElasticArm, t: Array, commanded: Array) -> Array:
    """Link positions (N, n) of a real arm with drives that get the feedforward of a motion (5, N, n)."""
    period = float(t[1] - t[0])
    drives = SimulatedDrives(natural_frequency=NATURAL_FREQUENCY)
    robot = SimulatedRobot(real, period=period, position=commanded[0, 0], drives=drives)
    command, links = arm.feedforward(*commanded, lead=period / 2), []
    for k in range(len(t)):
        links.append(robot.readings().q)
        robot.follow(command.motor_position[k], command.motor_velocity[k], command.motor_effort[k])
        robot.advance()
    return np.array(links)


def learn_links(bandwidth: float = 10.0, wrong: float = 0.05) -> None:
    """Correct a swing of an arm with softer springs and heavier links than in its file, by 5 %."""
    robot = eom.load_robot("sea_planar_2r")
    arm, real = eom.ElasticArm(robot), eom.ElasticArm(perturbed(robot, stiffness=-wrong, mass=wrong))
    t = np.arange(0.0, 2.001, 0.002, dtype=np.float64)
    reference = np.stack(rest_to_rest([0.0, 0.0], [0.6, -0.4], duration=2.0).derivatives(t))
    bound = contraction(arm, reference[0, ::200], bandwidth, stiffness=wrong, mass=wrong, rotor_inertia=wrong)
    print(f"bound of the errors' ratio from run to run: {bound:.2f}")
    if bound >= 1:
        raise SystemExit("learning may diverge: lower the bandwidth or the gain, or identify the model")
    commanded = reference
    for k in range(RUNS):
        measured = follow(arm, real, t, commanded)
        print(f"run {k + 1}: error of the links {milli(measured - reference[0]):6.3f} mrad")
        commanded = learn(t, reference, commanded, measured, bandwidth)


def milli(errors: Array) -> float:
    """Root mean square in thousandths."""
    return 1e3 * float(np.sqrt(np.mean(errors**2)))


if __name__ == "__main__":
    learn_nominal_torque()
    learn_links()
