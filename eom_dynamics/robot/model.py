# SPDX-License-Identifier: Apache-2.0
"""Robot model: a tree of bodies, each moved by one joint."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import lie
from ..actuators.actuator import IDEAL_ACTUATOR, Actuator, Transmission
from ..actuators.drive_units import NO_FEEDBACK_DELAY, SI_UNITS, DriveUnits, FeedbackDelay
from ..actuators.friction import Friction, joint_friction
from ..actuators.parallel_springs import ParallelSpring
from ..actuators.parameters import Entry, refuse
from ..actuators.springs import RIGID, CoupledSpring, Spring
from ..arguments import constant
from ..arrays import Array
from .inertia import Inertial, spatial_inertia

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
"""Default gravitational acceleration in the base frame, m/s² (z up)."""

# m/rad: a joint with a smaller pitch is revolute.
_NO_PITCH = 1e-5


@dataclass(frozen=True)
class Mimic:
    """Mimic relation q = ratio * q_leader + offset, rad or m, with the index of the leader, no mimic joint itself."""

    joint: int
    ratio: float
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame on a body, such as a tool frame, with its pose (4, 4) in the frame of the body.

    The body is given by the index of its joint; -1 is the base.
    """

    name: str
    joint: int
    pose: Array

    def __post_init__(self) -> None:
        """Copy the pose, which is read-only: compiled code is kept for each frame."""
        object.__setattr__(self, "pose", constant(self.pose, f"pose of the frame {self.name!r:.60}"))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the constructor, so that copies are read-only as well."""
        return Frame, (self.name, self.joint, self.pose)


@dataclass(frozen=True)
class Limits:
    """Limits of a joint; infinite where unknown.

    Attributes:
        lower, upper: limits of the joint variable, rad or m.
        velocity: rad/s or m/s.
        effort: N m or N.
        acceleration, jerk: rad or m, per s² and s³.
        effort_rate: N m/s or N/s.
        effort_rms: root mean square of the effort of a motor over a motion, on the link side of its gear, N m or N.
    """

    lower: Annotated[float, Entry("least position", "rad", example=-2.9)] = -np.inf
    upper: Annotated[float, Entry("largest position", "rad", example=2.9)] = np.inf
    velocity: Annotated[float, Entry("largest velocity", "rad/s", "positive", example=2.0)] = np.inf
    effort: Annotated[float, Entry("largest effort", "N m", "positive", example=80.0)] = np.inf
    acceleration: Annotated[float, Entry("largest acceleration", "rad/s²", "positive", example=10.0)] = np.inf
    jerk: Annotated[float, Entry("largest jerk", "rad/s³", "positive", example=500.0)] = np.inf
    effort_rate: Annotated[float, Entry("largest rate of effort", "N m/s", "positive", example=1000.0)] = np.inf
    effort_rms: Annotated[
        float, Entry("largest root mean square of the motor's effort over a motion", "N m", "positive")
    ] = np.inf

    @property
    def known(self) -> dict[str, float]:
        """Finite limits by name."""
        return {name: float(value) for name, value in vars(self).items() if np.isfinite(value)}


NO_LIMITS = Limits()
"""Limits of a joint without any."""

ENDS = ("lower", "upper")
"""Limits that are ends of a range; all others are largest magnitudes."""


JOINT_FRICTION = ("ignored", "included")
"""Options for joint friction in the joint efforts, see :attr:`Robot.joint_friction`."""

IMPLAUSIBLE = ("refuse", "accept")
"""Treatment of implausible values, see :attr:`Robot.implausible`."""

COMPENSATIONS = ("gravity", "coriolis", "friction", "payload")
"""Efforts that a robot may add to commanded efforts, see :attr:`Robot.compensated_by_robot`."""

ROTOR_MODELS = ("reduced", "complete")
"""Rotor models: only the spin relative to the stator (M. W. Spong, 1987), or the full motion of the rotor."""

DRIVE_INTERPOLATIONS = {"none": 0.5, "linear": 1.0}
"""How drives use commands, with the mean age of the command that acts, in periods: hold each for a period, or move in a
straight line from one to the next in the period after that arrives (zero- and first-order hold)."""


@dataclass(frozen=True, eq=False)
class RotorMount:
    """Mounting of the rotor of a joint's motor.

    Attributes:
        carrier: index of the joint with the body that carries the rotor; -1 is the base.
        axis: unit vector (3,) of the spin axis in that body's frame. A positive joint rate spins the rotor forward
            about it (backward if the gear ratio is negative).
    """

    carrier: int
    axis: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class JointProperties:
    """Properties of a joint with one variable that its description and the robot share, see :class:`Joint`."""

    limits: Annotated[Limits, Entry("each optional", completes=True)] = NO_LIMITS
    damping: Annotated[float, Entry("viscous friction of the joint", "N m s/rad", "not negative")] = 0.0
    friction: Annotated[float, Entry("dry friction of the joint", "N m", "not negative")] = 0.0
    constant_effort: Annotated[float, Entry("joint effort that holds against a constant load", "N m")] = 0.0
    parallel_spring: Annotated[ParallelSpring | None, Entry("beside the motor: docs/actuators.md")] = None
    spring: Annotated[
        Spring,
        Entry(
            "spring; rigid if not given; all types: docs/actuators.md",
            name="elasticity",
            example={"type": "linear", "stiffness": 1e4},
            of_motor=True,
        ),
    ] = RIGID
    rotor_inertia: Annotated[
        float, Entry("on the link side of the gear", "kg m²", "not negative", example=0.2, of_motor=True)
    ] = 0.0
    gear_ratio: Annotated[
        float, Entry("motor revolutions per joint revolution", "", "not zero", example=100.0, of_motor=True)
    ] = 1.0
    actuator: Annotated[Actuator, Entry("friction, gear and motor", of_motor=True)] = IDEAL_ACTUATOR
    drive: Annotated[DriveUnits, Entry("units of the drive: docs/parameter_files.md", of_motor=True)] = SI_UNITS
    effort_spread: Annotated[
        EffortSpread | None, Entry("deviation of measured efforts from the model, by identify", of_motor=True)
    ] = None


@dataclass(frozen=True, eq=False)
class Joint(JointProperties):
    """A joint and the body that it moves.

    Attributes:
        name: name of the joint.
        screw: joint screw (6,) in the body's frame, angular part first; the angular part is a unit vector, or zero and
            the linear part a unit vector.
        reference_pose: pose (4, 4) of the body in its parent at q = 0.
        parent: index of the joint that moves the parent body; -1 for the base.
        mass: kg.
        center_of_mass: (3,) in m, in the body's frame.
        inertia_about_origin: (3, 3) in kg m², about the body frame's origin and along its axes.
        spring: between motor and link; a rigid one by default.
        rotor_inertia: of the motor, reflected to the link side of the gear, kg m² (prismatic: kg).
        mimic: mimic relation, or None for an independent joint.
        limits: limits of position, velocity, effort and their rates.
        damping: viscous friction, N m s/rad (prismatic: N s/m).
        friction: dry friction of the joint, N m (prismatic: N); the friction of its motor is ``actuator.friction``.
        constant_effort: joint effort that holds against a constant load, such as a counterbalance, N m (prismatic: N).
        parallel_spring: spring between the link and its parent, or None.
        gear_ratio: motor revolutions per joint revolution.
        actuator: friction, gear loss and motor.
        rotor_mount: mounting of the rotor; None is on the parent body, along the joint's axis.
        drive: units of the drive of the motor.
        effort_spread: spread of measured efforts about the efforts of the model; None if unknown.
    """

    name: str
    screw: Array
    reference_pose: Array
    parent: int
    mass: float
    center_of_mass: Array
    inertia_about_origin: Array
    mimic: Mimic | None = None
    rotor_mount: RotorMount | None = None

    @cached_property
    def mount(self) -> RotorMount:
        """Mounting of the rotor, given or default."""
        if self.rotor_mount is not None:
            return self.rotor_mount
        return RotorMount(self.parent, self.reference_pose[:3, :3] @ self.axis)

    @property
    def axis(self) -> Array:
        """Unit vector (3,) along the joint axis, in the body's frame."""
        return self.screw[:3] if np.any(self.screw[:3]) else self.screw[3:]

    @property
    def friction_law(self) -> Friction:
        """Joint friction, see :func:`.joint_friction`."""
        return joint_friction(self.damping, self.friction, self.stiffness, self.limits.acceleration)

    @property
    def stiffness(self) -> float:
        """Stiffness of the spring without load, N m/rad (prismatic: N/m); infinite if rigid."""
        return float(self.spring.rest_stiffness)

    @property
    def type(self) -> str:
        """Type of the joint by its screw: revolute, prismatic or helical."""
        angular, linear = self.screw[:3], self.screw[3:]
        if not np.any(angular):
            return "prismatic"
        return "helical" if abs(angular @ linear) > _NO_PITCH else "revolute"

    @property
    def inertial(self) -> Inertial:
        """Mass and inertia of the body, in its own frame."""
        return Inertial(self.mass, self.center_of_mass, self.inertia_about_origin)

    def with_inertial(self, body: Inertial) -> Joint:
        """The joint with another mass and inertia of its body."""
        return replace(self, mass=body.mass, center_of_mass=body.center_of_mass, inertia_about_origin=body.about_origin)

    @cached_property
    def spatial_inertia(self) -> Array:
        """Inertia matrix (6, 6) of the body in its own frame, equation (31)."""
        return spatial_inertia(self.mass, self.center_of_mass, self.inertia_about_origin)

    @cached_property
    def ad_screw(self) -> Array:
        """Matrix ad_X (6, 6) of the joint screw, equation (21)."""
        return lie.ad(self.screw)


class ModelUncertainty(NamedTuple):
    """Relative standard deviations of a robot's parameters; zero where unknown.

    Attributes:
        stiffness, rotor_inertia: of springs and of rotors.
        mass: of masses and inertias, and thus of the efforts that links require.
    """

    stiffness: Annotated[float, Entry("of springs", "1", "[0, 1)", example=0.02)] = 0.0
    mass: Annotated[float, Entry("of masses and inertias", "1", "[0, 1)", example=0.05)] = 0.0
    rotor_inertia: Annotated[float, Entry("of rotors", "1", "[0, 1)", example=0.1)] = 0.0


@dataclass(frozen=True)
class EffortSpread:
    """Spread of measured joint efforts about the efforts of the model: errors by speed, and noise.

    Attributes:
        velocity: increasing speeds, rad/s or m/s, not negative.
        deviation: standard deviation of errors at each, N m or N; linear between them, constant beyond.
        correlation_time: T of the autocorrelation of errors, exp(-t/T), s.
        noise: standard deviation of noise at any speed, N m or N.
        noise_time: its correlation time, s.
        velocity_noise: standard deviation of noise of the measured velocity, rad/s or m/s.
    """

    velocity: Annotated[tuple[float, ...], Entry("increasing speeds", "rad/s", example=[0.0, 0.5])]
    deviation: Annotated[tuple[float, ...], Entry("standard deviation of errors at each", "N m", example=[0.4, 0.2])]
    correlation_time: Annotated[float, Entry("of these errors", "s", "positive", example=0.2)]
    noise: Annotated[float, Entry("standard deviation of noise", "N m", "not negative", example=0.5)] = 0.0
    noise_time: Annotated[float, Entry("correlation time of the noise", "s", "positive", example=1e-3)] = 1e-3
    velocity_noise: Annotated[float, Entry("of the measured velocity", "rad/s", "not negative", example=0.0)] = 0.0

    def __post_init__(self) -> None:
        """Check the rows; raises ParameterError if speeds do not increase, or deviations are not positive."""
        if self.velocity[0] < 0 or not (np.diff(self.velocity) > 0).all():
            refuse("velocity", f"must not be negative, and must increase, is {[*self.velocity]}")
        if len(self.deviation) != len(self.velocity) or not np.greater(self.deviation, 0).all():
            refuse("deviation", f"must be positive, one for each velocity, is {[*self.deviation]}")

    def at(self, velocity: Array) -> Array:
        """Standard deviations of errors at velocities, N m or N."""
        return np.interp(np.abs(velocity), self.velocity, self.deviation)


UNKNOWN = ModelUncertainty()
"""Uncertainty of a robot if the file has no uncertainty."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RobotProperties:
    """Properties that the description of a robot and the robot share, see :class:`Robot`."""

    rotor_model: Annotated[str, Entry("docs/elastic_models.md", options=ROTOR_MODELS)] = "reduced"
    joint_friction: Annotated[bool, Entry("damping and friction of joints, in efforts", options=JOINT_FRICTION)] = False
    command_period: Annotated[
        float, Entry("from one command of the drives to the next; 0 is unknown", "s", "not negative", example=1e-3)
    ] = 0.0
    drive_delay: Annotated[
        float, Entry("time from a command to its effect on the motors", "s", "not negative", example=0.0)
    ] = 0.0
    drive_interpolation: Annotated[
        str, Entry("drives hold a command, or interpolate: docs/command_lead.md", options=(*DRIVE_INTERPOLATIONS,))
    ] = "none"
    moving_base: Annotated[bool, Entry("setpoints may have a motion of the base: docs/node.md")] = False
    drive_feedback_delay: Annotated[
        FeedbackDelay, Entry("age of the positions that the drives compare with references", completes=True)
    ] = NO_FEEDBACK_DELAY
    compensated_by_robot: Annotated[
        tuple[str, ...],
        Entry("efforts that the robot adds itself", options=COMPENSATIONS, example=["gravity", "friction"]),
    ] = ()
    implausible: Annotated[
        str, Entry("strict nodes refuse values that look as if in another unit, or accept them", options=IMPLAUSIBLE)
    ] = "refuse"
    uncertainty: Annotated[ModelUncertainty, Entry("relative standard deviations; 0 is unknown", completes=True)] = (
        UNKNOWN
    )


@dataclass(frozen=True, eq=False)
class Robot(RobotProperties):
    """A robot: a tree of bodies on a base, which is fixed except in :class:`eom_dynamics.FloatingBase`.

    Attributes:
        name: name of the robot.
        joints: all joints with their bodies, parents before children.
        gravity: gravitational acceleration (3,) in the base frame, m/s².
        tools: frames for external wrenches; by default the frame of the last body.
        frames: all named frames of the description, including merged links and tools.
        merged: links merged into other bodies, one line each.
        assumed: assumptions in place of missing values of the description, one line each.
        coupled_stiffness: joints, by index in joint vectors, and the spring that couples them; or None.
        transmission: joints, by index in joint vectors, and the transmission that drives them together; or None.
        rotor_model: one of :data:`ROTOR_MODELS`.
        base: mass and inertia of the base body, in the base frame; of no effect while the base is fixed.
        joint_friction: whether :attr:`Joint.friction_law` is part of the joint efforts.
        joint_rotors: whether the rotor inertia of rigid joints is part of the joint efforts; set only by
            ``Dynamics(robot, rotor_inertia=True)``.
        command_period: time between commands of the drives, s; 0 if unknown.
        drive_delay: time from a command to the start of its effect on the motors, s.
        drive_interpolation: one of :data:`DRIVE_INTERPOLATIONS`.
        moving_base: whether setpoints may have a motion of the base.
        drive_feedback_delay: age of the measurements that drives compare with their references.
        compensated_by_robot: efforts of :data:`COMPENSATIONS` that the robot adds itself, so that drives are not sent
            them: ``gravity`` are the joint efforts at rest, ``coriolis`` is C qd, ``friction`` the friction of motors,
            and of the joints if it is part of their efforts, all at the measured state. With ``payload``, the first two
            include payloads at the tools.
        implausible: one of :data:`IMPLAUSIBLE`: strict nodes refuse values that seem to be in another unit, or accept
            them because they are intended, such as the range of a winch.
        uncertainty: of the parameters.
    """

    name: str
    joints: tuple[Joint, ...]
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    tools: tuple[Frame, ...] = ()
    frames: tuple[Frame, ...] = ()
    merged: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    coupled_stiffness: tuple[tuple[int, ...], CoupledSpring] | None = None
    transmission: tuple[tuple[int, ...], Transmission] | None = None
    base: Inertial = field(default_factory=Inertial.massless)
    joint_rotors: bool = False

    def __post_init__(self) -> None:
        if not self.tools:
            object.__setattr__(self, "tools", (Frame(self.joints[-1].name, len(self.joints) - 1, np.eye(4)),))

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """Indices of the independent joints, which mimic no other joint."""
        return tuple(i for i, joint in enumerate(self.joints) if joint.mimic is None)

    @cached_property
    def independent_joints(self) -> tuple[Joint, ...]:
        """The independent joints, in the order of all joint vectors."""
        return tuple(self.joints[i] for i in self.independent)

    @property
    def n(self) -> int:
        """Number of independent joint variables, without mimic joints; ``len(joints)`` counts these, too."""
        return len(self.independent)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the independent joints, in the order of all joint vectors."""
        return tuple(joint.name for joint in self.independent_joints)

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """True for continuous independent joints (n,): the robot is the same after a whole turn.

        They are revolute, without a range of positions or a parallel spring, and so are joints that follow them, by a
        whole number of turns.
        """
        repeats = [
            joint.type == "revolute" and joint.parallel_spring is None and joint.limits.known.keys().isdisjoint(ENDS)
            for joint in self.joints
        ]
        E, _ = self.coupling
        whole = (np.round(E) == E) & np.array(repeats)[:, np.newaxis]
        return np.all((E == 0) | whole, axis=0)

    @property
    def continuous_names(self) -> tuple[str, ...]:
        """Names of the continuous joints."""
        return tuple(name for name, repeats in zip(self.joint_names, self.continuous, strict=True) if repeats)

    @cached_property
    def coupling(self) -> tuple[Array, Array]:
        """E (number of joints, n) and e (number of joints,) of the positions E q + e of all joints, with mimics."""
        E, e = np.zeros((len(self.joints), self.n)), np.zeros(len(self.joints))
        position = {joint: k for k, joint in enumerate(self.independent)}
        for i, joint in enumerate(self.joints):
            mimic = joint.mimic or Mimic(i, 1.0)
            E[i, position[mimic.joint]], e[i] = mimic.ratio, mimic.offset
        if all(joint.mimic is None for joint in self.joints):
            return E.astype(int), e.astype(int)  # keeps floating-point numbers out of symbolic expressions
        return E, e

    @cached_property
    def stiffness(self) -> Array:
        """Stiffness of each independent joint without load (n,), N m/rad or N/m; infinite if rigid."""
        return np.array([joint.stiffness for joint in self.independent_joints])

    @cached_property
    def rotor_inertia(self) -> Array:
        """Rotor inertia of each independent joint (n,), reflected to the link side, kg m² or kg."""
        return np.array([joint.rotor_inertia for joint in self.independent_joints])

    @cached_property
    def rigid_rotors(self) -> Array:
        """Rotor inertia of each independent joint (n,) that is rigid, on the link side; zero at elastic joints."""
        elastic = np.isfinite(self.stiffness)
        if self.coupled_stiffness is not None:
            elastic[list(self.coupled_stiffness[0])] = True
        return np.where(elastic, 0.0, self.rotor_inertia)

    def path(self, body: int) -> list[int]:
        """Indices of a body and of all bodies before it, toward the base; empty for the base, -1."""
        path = []
        while body >= 0:
            path.append(body)
            body = self.joints[body].parent
        return path

    @property
    def command_lead(self) -> float:
        """Lead of commands, s: their mean age when they act; without a known period, the drive delay alone."""
        return DRIVE_INTERPOLATIONS[self.drive_interpolation] * self.command_period + self.drive_delay

    @property
    def wrench_shape(self) -> tuple[int, ...]:
        """Shape of an external wrench: (6,), or (number of tools, 6) for several tools."""
        return (6,) if len(self.tools) == 1 else (len(self.tools), 6)

    @property
    def has_own_drives(self) -> bool:
        """True if drive commands differ from feedforward commands: by units, delays or efforts that the robot adds."""
        differs = self.compensated_by_robot or any(self.drive_feedback_delay)
        return bool(differs) or any(joint.drive != SI_UNITS for joint in self.independent_joints)

    def with_prefix(self, prefix: str) -> Robot:
        """The robot with a prefix, such as ``left_``, before the names of its joints, motors, tools and frames."""
        if not prefix:
            return self
        return replace(
            self,
            joints=tuple(replace(joint, name=f"{prefix}{joint.name}") for joint in self.joints),
            tools=tuple(replace(tool, name=f"{prefix}{tool.name}") for tool in self.tools),
            frames=tuple(replace(frame, name=f"{prefix}{frame.name}") for frame in self.frames),
        )

    def __repr__(self) -> str:
        return f"Robot({self.name!r}, n={self.n})"


def frames_by_name(robot: Robot) -> dict[str, Frame]:
    """Tools, other frames and bodies by name; tools take precedence over frames, frames over bodies."""
    bodies = [Frame(joint.name, i, np.eye(4)) for i, joint in enumerate(robot.joints)]
    return {frame.name: frame for frame in (*bodies, *robot.frames[::-1], *robot.tools[::-1])}
