# SPDX-License-Identifier: Apache-2.0
"""Tracking of a trajectory without feedforward, with rigid-joint feedforward, and with flatness feedforward.

All three have the same PD on the motors, each around its own motor reference:

    tau_m = feedforward + kp (theta_ref - theta) + kd (thetad_ref - thetad),    kp = B w²,  kd = 2 B w

A motor alone is critically damped with natural frequency w; w = 0 is open loop.

| feedforward | theta_ref                | effort                                  |
|-------------|--------------------------|-----------------------------------------|
| none        | q                        | 0                                       |
| rigid       | q                        | B qdd + tau                             |
| flatness    | q + spring deflection    | B thetadd + tau, which includes taudd   |

The last two include friction and gear loss at the velocity of the reference. The motors of an antagonistic pair keep
their pretension in all three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..actuators.friction import Friction
from ..arguments import real_number
from ..arrays import Array
from ..codegen.backends import require_robot
from ..elastic import ElasticArm, Feedforward
from ..exceptions import SimulationError, StateError
from ..robot import Robot
from ..robot.inertia import Inertial
from ..spelling import shown
from ..states import real_array
from .elastic_plant import ElasticPlant
from .energy import EnergyAudit, energy_audit
from .integration import Control, End, require_progress, simulate
from .integrators import check_method, output_times


def perturbed(
    robot: Robot, *, stiffness: float = 0.0, mass: float = 0.0, rotor_inertia: float = 0.0, friction: float = 0.0
) -> Robot:
    """Robot with other springs, bodies and motors.

    Args:
        stiffness: relative change of the efforts of all springs at a given deflection: 0.1 is 10 % stiffer.
        mass: relative change of all masses and inertias, at the same centers of mass.
        rotor_inertia: relative change of all rotor inertias.
        friction: relative change of the friction of all motors, at the same velocities.
    """
    joints = tuple(
        replace(
            joint,
            mass=joint.mass * (1 + mass),
            inertia_about_origin=joint.inertia_about_origin * (1 + mass),
            spring=joint.spring.scaled(1 + stiffness),
            rotor_inertia=joint.rotor_inertia * (1 + rotor_inertia),
            actuator=replace(joint.actuator, friction=_scaled(joint.actuator.friction, 1 + friction)),
        )
        for joint in robot.joints
    )
    coupled = robot.coupled_stiffness
    if coupled is not None:
        coupled = (coupled[0], coupled[1].scaled(1 + stiffness))
    base = Inertial(robot.base.mass * (1 + mass), robot.base.center_of_mass, robot.base.about_origin * (1 + mass))
    return replace(robot, joints=joints, coupled_stiffness=coupled, base=base)


def _scaled(friction: Friction, factor: float) -> Friction:
    efforts = ("viscous", "coulomb", "static", "viscous_negative", "coulomb_negative")
    return replace(friction, **{name: factor * getattr(friction, name) for name in efforts})


FEEDFORWARDS = ("none", "rigid", "flatness")
"""Compared feedforwards, in the order of all results."""


class SupportsDerivatives(Protocol):
    """Motion of the links with time derivatives."""

    def derivatives(self, t: ArrayLike, order: int = 4) -> Sequence[Array]:
        """q and its time derivatives up to ``order``, each (n,) at one time, (T, n) at times (T,)."""
        ...


@dataclass(frozen=True)
class Comparison:
    """Tracking errors of the links with the F feedforwards of :data:`FEEDFORWARDS` and G gains.

    Errors of an arm whose simulation ends early are NaN from there on, as are their RMS and peak.

    Attributes:
        robot: the model of the feedforwards.
        stiffness_error, mass_error: relative errors of that model, real over modelled stiffness and mass less 1.
        t: (T,) s.
        natural_frequency: (G,) of the motors' PD, rad/s.
        q: (T, n) desired link positions, rad or m.
        error: (T, G, F, n) actual less desired link positions, rad or m.
        audit: energy, work and heat of all G F arms, gain by gain.
        ends: (G F,) early ends of simulations, gain by gain; None for a complete one.
    """

    robot: Robot
    stiffness_error: float
    mass_error: float
    t: Array
    natural_frequency: Array
    q: Array
    error: Array
    audit: EnergyAudit
    ends: tuple[End | None, ...]

    @property
    def energy_imbalance(self) -> float:
        """Largest relative difference of energy and work of any arm."""
        return float(np.max(self.audit.relative_imbalance))

    @property
    def rms(self) -> Array:
        """(G, F) root mean square of the error over time and joints, rad or m."""
        return np.sqrt(np.mean(self.error**2, axis=(0, 3)))

    @property
    def peak(self) -> Array:
        """(G, F) largest error over time and joints, rad or m."""
        return np.max(np.abs(self.error), axis=(0, 3))


def compare_feedforward(
    robot: Robot,
    motion: SupportsDerivatives,
    t: ArrayLike,
    natural_frequency: ArrayLike,
    *,
    stiffness_error: float = 0.0,
    mass_error: float = 0.0,
    tolerance: float = 1e-10,
    method: str = "DOP853",
    step: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Simulate the arm with every feedforward and every gain, all from the same state.

    In the initial state the real arm is on the trajectory, with the spring deflections that it requires.

    Args:
        robot: the model of the feedforwards.
        motion: motion of the links.
        t: times (T,), s.
        natural_frequency: (G,) of the motors' PD, rad/s; 0 for no feedback.
        stiffness_error, mass_error: relative errors of the model; 0.1: the real springs are 10 % stiffer.
        tolerance: relative tolerance of SciPy's integrators, and absolute tolerance in rad or m.
        method, step: integrator, and step of those of fixed step, s, as for :func:`simulate`.
        progress: is called with the time reached, s.

    Raises:
        RobotDescriptionError: the robot cannot be simulated; see :class:`ElasticPlant`.
        SimulationError: every simulation ends early.
        StateError: the times do not increase or are too far apart, there would be too many steps, or a number is out
            of range.
        TypeError: ``robot`` is not a Robot, ``motion`` has no derivatives, or ``progress`` is not a function.
        ValueError: the integrator is unknown, or a step is missing or superfluous.
    """
    check_method(method, step, tolerance=tolerance)
    require_progress(progress)
    require_robot(robot)
    if not callable(getattr(motion, "derivatives", None)):
        raise TypeError(f"motion must have a method derivatives, as a trajectory has, is {shown(motion)}")
    times, gains = output_times(t, step), np.atleast_1d(real_array(natural_frequency, "natural_frequency"))
    if gains.ndim != 1 or np.any(gains < 0):
        raise StateError(f"natural_frequency must be numbers (G,), not negative, is {shown(natural_frequency)}")
    stiffness, mass = _relative_error(stiffness_error, "stiffness_error"), _relative_error(mass_error, "mass_error")
    plant = ElasticPlant(ElasticArm(perturbed(robot, stiffness=stiffness, mass=mass)))
    start = plant.on_trajectory(*motion.derivatives(times[0]))
    count = len(gains) * len(FEEDFORWARDS)
    simulation = simulate(
        plant,
        motor_control(ElasticPlant(ElasticArm(robot)), motion, gains, times[0]),
        times,
        np.repeat(start[np.newaxis], count, axis=0),
        method=method,
        step=step,
        relative_tolerance=tolerance,
        absolute_tolerance=tolerance,
        partial=True,
        progress=progress,
    )
    if None not in simulation.ends:
        last = max((end for end in simulation.ends if end), key=lambda end: end.t)
        raise SimulationError(
            f"{robot.name}: no arm reaches the end of the motion; the last one gets to {last.t:.6g} s: {last.reason}"
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
        audit=energy_audit(plant, simulation),
        ends=simulation.ends,
    )


def _relative_error(value: float, name: str) -> float:
    error = real_number(value, name)
    if error <= -1:
        raise StateError(f"{name} must be above -1, is {error:g}")
    return error


def motor_references(
    known: ElasticPlant, states: Sequence[Array]
) -> tuple[Feedforward, Array, Array, Callable[[Array], Array]]:
    """Motor references by flatness, and for a rigid arm, for states q … qdddd of the links, each (…, n).

    The command by flatness; positions and velocities (…, m) of motors that follow the links; and a function from their
    velocities (…, m), for friction and gear loss, to efforts (…, m) that accelerate them with the links.
    """
    arm = known.arm
    q, qd, qdd = states[:3]
    command = arm.feedforward(*states)
    # Spring efforts by flatness are what the links require, whatever the feedforward.
    delta, deltad = known.deflection(command.motor_position, q), known.deflection(command.motor_velocity, qd)
    load = np.where(known.rigid, command.tau[..., arm.motor_joint], known.springs.loads(delta, deltad))
    position, velocity, acceleration = (arm.motors_following(x) for x in (q, qd, qdd))
    inertial = arm.motor_inertia * acceleration

    def effort(speed: Array) -> Array:
        return inertial + known.motor_load(load, speed)

    return command, position + known.unloaded, velocity, effort


def motor_control(known: ElasticPlant, motion: SupportsDerivatives, natural_frequency: Array, start: float) -> Control:
    """Control law of motor efforts (G F, m) for every gain (G,), rad/s, and feedforward.

    Gains at rigid joints include the diagonal of the mass matrix at the start, s.
    """
    shape = (len(natural_frequency), len(FEEDFORWARDS), len(known.rigid))
    inertia = known.driven_inertia(motion.derivatives(start, order=0)[0])
    w = natural_frequency[:, np.newaxis, np.newaxis]
    kp, kd = w**2 * inertia, 2 * w * inertia

    def control(t: float, state: Array) -> Array:
        command, position, velocity, effort_at = motor_references(known, motion.derivatives(t))
        # Not by np.stack, which takes four times as long.
        effort = np.array([np.zeros_like(velocity), effort_at(velocity), command.motor_effort])
        theta = np.array([position, position, command.motor_position])
        thetad = np.array([velocity, velocity, command.motor_velocity])
        now = known.parts(state.reshape(*shape[:2], -1))
        efforts: Array = effort + kp * (theta - now.theta) + kd * (thetad - now.thetad)
        return efforts.reshape(-1, shape[-1])

    return control
