# SPDX-License-Identifier: Apache-2.0
"""The same arm on the same trajectory under no feedforward, one for rigid joints, and one by flatness.

All three close the loop by the same PD on the motors, each around its own motor reference:

    tau_m = feedforward + kp (theta_ref - theta) + kd (thetad_ref - thetad),    kp = B w²,  kd = 2 B w

with the natural frequency w and without overshoot of a motor alone; w = 0 is the open loop.

| feedforward | theta_ref                | effort                                  |
|-------------|--------------------------|-----------------------------------------|
| none        | q                        | 0                                       |
| rigid       | q                        | B qdd + tau                             |
| flatness    | q + spring deflection    | B thetadd + tau, which holds taudd      |

and, where it is known, friction and the loss of gears at the reference's velocity. Two motors that pull against each
other stand apart without load in all three, or they would not pull.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm
from ..drivetrain.springs import AntagonisticPair
from ..robot import Robot
from .elastic_plant import ElasticPlant
from .energy import energy_imbalance
from .integration import Control, End, SimulationError, simulate
from .model_error import with_model_error

Array = NDArray[np.float64]

FEEDFORWARDS = ("none", "rigid", "flatness")
"""What is compared, in the order of all results."""

# The height of every body takes longer than the step that led there.
_ENERGY_SAMPLES = 50


class Motion(Protocol):
    """A motion of the links, known with its time derivatives."""

    def derivatives(self, t: ArrayLike, order: int = 4) -> Sequence[Array]:
        """q and its time derivatives up to ``order``, each (n,) at one time, (T, n) at times (T,)."""
        ...


@dataclass(frozen=True)
class Comparison:
    """How far links were off their trajectory; F feedforwards, as :data:`FEEDFORWARDS`, under G gains.

    An arm that cannot be followed to the last time has errors until then, NaN after it, and as RMS and peak.

    Attributes:
        robot: as the feedforwards know it.
        stiffness_error, mass_error: by how much the real springs and bodies differ from that, relative.
        t: (T,) s.
        natural_frequency: (G,) of the motors' PD, rad/s.
        q: (T, n) links as they should be, rad or m.
        error: (T, G, F, n) links as they were less that, rad or m.
        energy_imbalance: the most by which energy and work of an arm differ, relative to the largest energy or work.
        ends: (G F,) where an arm is followed no further, gain by gain; None of one that is followed to the last time.
    """

    robot: Robot
    stiffness_error: float
    mass_error: float
    t: Array
    natural_frequency: Array
    q: Array
    error: Array
    energy_imbalance: float
    ends: tuple[End | None, ...]

    @property
    def rms(self) -> Array:
        """(G, F) root of the mean square of the error over time and joints, rad or m."""
        rms: Array = np.sqrt(np.mean(self.error**2, axis=(0, 3)))
        return rms

    @property
    def peak(self) -> Array:
        """(G, F) largest error at any time of any joint, rad or m."""
        peak: Array = np.max(np.abs(self.error), axis=(0, 3))
        return peak


def compare_feedforward(
    robot: Robot,
    motion: Motion,
    t: ArrayLike,
    natural_frequency: ArrayLike,
    *,
    stiffness_error: float = 0.0,
    mass_error: float = 0.0,
    tolerance: float = 1e-10,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Simulate the arm under every feedforward with every gain, all from the same state.

    The start is that of the arm as it really is: links on the trajectory, springs as they need them there.

    Args:
        robot: as the feedforwards know it.
        motion: of the links.
        t: times (T,), s.
        natural_frequency: (G,) of the motors' PD, rad/s; 0 for no feedback.
        stiffness_error, mass_error: by how much springs and bodies of the arm differ from what is known, relative.
        tolerance: of the integrator, relative, and absolute in rad or m.
        progress: is told the time that is reached, s.

    Raises:
        RobotDescriptionError: the robot cannot be simulated; see :class:`ElasticPlant`.
        SimulationError: no arm can be followed to the last time.
    """
    times, gains = np.asarray(t, dtype=float), np.atleast_1d(np.asarray(natural_frequency, dtype=float))
    plant = ElasticPlant(ElasticArm(with_model_error(robot, stiffness=stiffness_error, mass=mass_error)))
    start = plant.on_trajectory(*motion.derivatives(times[0]))
    count = len(gains) * len(FEEDFORWARDS)
    simulation = simulate(
        plant,
        motor_control(ElasticPlant(ElasticArm(robot)), motion, gains, times[0]),
        times,
        np.repeat(start[np.newaxis], count, axis=0),
        relative_tolerance=tolerance,
        absolute_tolerance=tolerance,
        partial=True,
        progress=progress,
    )
    if None not in simulation.ends:
        last = max((end for end in simulation.ends if end), key=lambda end: end.t)
        raise SimulationError(
            f"{robot.name}: no arm is followed to the end of the motion, the last until {last.t:.6g} s: {last.reason}"
        )
    q = np.asarray(motion.derivatives(times, order=0)[0])
    error = plant.parts(simulation.states).q - q[:, np.newaxis]
    return Comparison(
        robot=robot,
        stiffness_error=stiffness_error,
        mass_error=mass_error,
        t=times,
        natural_frequency=gains,
        q=q,
        error=error.reshape(len(times), len(gains), len(FEEDFORWARDS), robot.n),
        energy_imbalance=float(np.max(energy_imbalance(plant, simulation, _ENERGY_SAMPLES))),
        ends=simulation.ends,
    )


def motor_control(known: ElasticPlant, motion: Motion, natural_frequency: Array, start: float) -> Control:
    """Motor efforts (G F, m) from time and state, for gains (G,) and each of the feedforwards in turn.

    Args:
        known: the arm as it is known.
        motion: of the links.
        natural_frequency: (G,) of the motors' PD, rad/s.
        start: time at which the mass matrix is taken, s: the motor of a rigid joint also moves its link.
    """
    arm = known.arm
    shape = (len(natural_frequency), len(FEEDFORWARDS), len(arm.motor_joint))
    rest = _preload(known)
    links = np.diagonal(arm.dynamics.mass_matrix(motion.derivatives(start, order=0)[0]))
    inertia = arm.motor_inertia + np.where(known.rigid, links[arm.motor_joint], 0.0)
    w = natural_frequency[:, np.newaxis]
    kp, kd = (np.repeat(gain, len(FEEDFORWARDS), axis=0) for gain in (w**2 * inertia, 2 * w * inertia))

    def control(t: float, state: Array) -> Array:
        q, qd, qdd, qddd, qdddd = motion.derivatives(t)
        command = arm.feedforward(q, qd, qdd, qddd, qdddd)
        # What the springs give under flatness is what the links need under any feedforward.
        delta, deltad = known.deflection(command.motor_position, q), known.deflection(command.motor_velocity, qd)
        load = np.where(known.rigid, command.tau[arm.motor_joint], known.springs.effort(delta, deltad))
        position, velocity, acceleration = (arm.motors_following(x) for x in (q, qd, qdd))
        position = position + rest
        rigid = arm.motor_inertia * acceleration + known.motor_load(load, velocity)
        effort = np.stack([np.zeros_like(rigid), rigid, command.motor_effort])
        theta = np.stack([position, position, command.motor_position])
        thetad = np.stack([velocity, velocity, command.motor_velocity])
        effort, theta, thetad = (np.broadcast_to(x, shape).reshape(-1, shape[-1]) for x in (effort, theta, thetad))
        now = known.parts(state)
        return effort + kp * (theta - now.theta) + kd * (thetad - now.thetad)

    return control


def _preload(plant: ElasticPlant) -> Array:
    """Positions (m,) of motors less those of links where no link has a load: two that pull apart stand apart."""
    rest = np.zeros(len(plant.arm.motor_joint))
    for joint, spring in enumerate(plant.arm.springs):
        if isinstance(spring, AntagonisticPair):
            zero = np.zeros(())
            rest[plant.arm.motor_joint == joint] = spring.deflection(
                zero, zero, zero, np.asarray(spring.nominal), zero, zero
            ).delta
    return rest
