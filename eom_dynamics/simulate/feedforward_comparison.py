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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm
from ..robot import Robot
from .elastic_plant import ElasticPlant
from .energy import energy_imbalance
from .integration import Control, simulate
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

    Attributes:
        robot: as the feedforwards know it.
        t: (T,) s.
        natural_frequency: (G,) of the motors' PD, rad/s.
        q: (T, n) links as they should be, rad or m.
        error: (T, G, F, n) links as they were less that, rad or m.
        energy_imbalance: the most by which energy and work of an arm differ, relative to the largest energy or work.
    """

    robot: Robot
    t: Array
    natural_frequency: Array
    q: Array
    error: Array
    energy_imbalance: float

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
        SimulationError: an arm leaves all bounds.
    """
    times, gains = np.asarray(t, dtype=float), np.atleast_1d(np.asarray(natural_frequency, dtype=float))
    plant = ElasticPlant(ElasticArm(with_model_error(robot, stiffness=stiffness_error, mass=mass_error)))
    start = plant.on_trajectory(*motion.derivatives(times[0], order=3))
    count = len(gains) * len(FEEDFORWARDS)
    simulation = simulate(
        plant,
        motor_control(ElasticArm(robot), motion, gains, times[0]),
        times,
        np.repeat(start[:, np.newaxis], count, axis=1),
        relative_tolerance=tolerance,
        absolute_tolerance=tolerance,
        progress=progress,
    )
    q = np.asarray(motion.derivatives(times, order=0)[0])
    error = simulation.states[:, 0] - q[:, np.newaxis]
    return Comparison(
        robot=robot,
        t=times,
        natural_frequency=gains,
        q=q,
        error=error.reshape(len(times), len(gains), len(FEEDFORWARDS), robot.n),
        energy_imbalance=float(np.max(energy_imbalance(plant, simulation, _ENERGY_SAMPLES))),
    )


def motor_control(arm: ElasticArm, motion: Motion, natural_frequency: Array, start: float) -> Control:
    """Motor efforts (G F, n) from time and state, for gains (G,) and each of the feedforwards in turn.

    Args:
        arm: as it is known.
        motion: of the links.
        natural_frequency: (G,) of the motors' PD, rad/s.
        start: time at which the mass matrix is taken, s: the motor of a rigid joint also moves its link.
    """
    shape = (len(natural_frequency), len(FEEDFORWARDS), arm.robot.n)
    links = np.diagonal(arm.dynamics.mass_matrix(motion.derivatives(start, order=0)[0]))
    inertia = arm.rotor_inertia + np.where(np.isinf(arm.stiffness), links, 0.0)
    w = natural_frequency[:, np.newaxis]
    kp, kd = (np.repeat(gain, len(FEEDFORWARDS), axis=0) for gain in (w**2 * inertia, 2 * w * inertia))

    def control(t: float, state: Array) -> Array:
        q, qd, qdd, qddd, qdddd = motion.derivatives(t)
        command = arm.feedforward(q, qd, qdd, qddd, qdddd)
        rigid = command.tau + arm.rotor_inertia * qdd
        effort = np.stack([np.zeros_like(rigid), rigid, command.motor_effort])
        theta, thetad = np.stack([q, q, command.motor_position]), np.stack([qd, qd, command.motor_velocity])
        effort, theta, thetad = (np.broadcast_to(x, shape).reshape(-1, shape[-1]) for x in (effort, theta, thetad))
        return effort + kp * (theta - state[1]) + kd * (thetad - state[3])

    return control
