# SPDX-License-Identifier: Apache-2.0
"""Springs, transmission, gears, friction and motors of an arm, over jets of scalars.

The only description of the motor side: numbers, compiled and exported code, derivatives of any order, and the inverse
evaluate these lines over different scalars.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import Actuator, parameters
from ..actuators.actuator import Transmission
from ..actuators.springs import RIGID, CoupledSpring, Spring, spring_of_stiffness
from ..arrays import AnyArray, Array, Scalar
from ..jet import Jet
from ..robot import Robot


class PlacedSpring(NamedTuple):
    """Spring with the indices of its joints (several if it couples them) and of its motors."""

    joints: tuple[int, ...]
    motors: tuple[int, ...]
    spring: Spring


class CoupledJoints(NamedTuple):
    """Indices of joints, and the spring that couples them."""

    joints: tuple[int, ...]
    spring: CoupledSpring


class TransmissionJoints(NamedTuple):
    """Indices of joints with one motor each, and the matrices of the transmission that drives them."""

    joints: tuple[int, ...]
    matrices: Transmission


@dataclass(frozen=True, eq=False)
class MotorSide:
    """Motor side of n joints with m >= n motors: springs, transmission, gears, rotors and motors.

    Attributes:
        joint_names: (n,) names of the joints.
        springs: (n,) springs of the joints; joints of the coupled spring count as rigid here.
        coupled: coupled joints and their spring, which replaces their individual springs; or None.
        transmission: joints with a transmission; or None.
        rotor_inertia: (n,) rotor inertia of each motor of a joint, link side of the gear, kg m² or kg.
        actuators: (n,) friction, gear and motor data of each joint.
        gear_ratio: (n,) turns of a motor for one turn of its joint.
    """

    joint_names: tuple[str, ...]
    springs: tuple[Spring, ...]
    coupled: CoupledJoints | None
    transmission: TransmissionJoints | None
    rotor_inertia: tuple[float, ...]
    actuators: tuple[Actuator, ...]
    gear_ratio: tuple[float, ...]

    @classmethod
    def of(cls, robot: Robot, stiffness: ArrayLike | None = None, rotor_inertia: ArrayLike | None = None) -> MotorSide:
        """Motor side of a robot, or with springs and rotors as in the arguments of :class:`.ElasticArm`."""
        springs, coupled = _springs(robot, stiffness)
        rotors = robot.rotor_inertia if rotor_inertia is None else rotor_inertia
        inertia = parameters.not_negative(
            "rotor_inertia", parameters.repeated_parameter("rotor_inertia", rotors, robot.n)
        )
        joints = robot.independent_joints
        return cls(
            robot.joint_names,
            springs,
            coupled,
            None if robot.transmission is None else TransmissionJoints(*robot.transmission),
            tuple(inertia.tolist()),
            tuple(joint.actuator for joint in joints),
            tuple(joint.gear_ratio for joint in joints),
        )

    @cached_property
    def motor_joint(self) -> NDArray[np.intp]:
        """Joint index of each motor (m,), in the order of joints."""
        return np.repeat(np.arange(len(self.springs)), [len(spring.motor_suffixes) for spring in self.springs])

    @cached_property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the motors (m,)."""
        rows = zip(self.joint_names, self.springs, strict=True)
        return tuple(name + suffix for name, spring in rows for suffix in spring.motor_suffixes)

    @cached_property
    def placed(self) -> tuple[PlacedSpring, ...]:
        """All springs with their joints and motors."""
        group = self.coupled.joints if self.coupled else ()
        places = [
            PlacedSpring((joint,), tuple(np.flatnonzero(self.motor_joint == joint).tolist()), spring)
            for joint, spring in enumerate(self.springs)
            if joint not in group
        ]
        if self.coupled:
            places.append(PlacedSpring(tuple(group), self._motor_indices(group), self.coupled.spring))
        return tuple(places)

    @cached_property
    def rest_stiffness(self) -> Array:
        """Stiffness (n,) without load, N m/rad or N/m; infinite if rigid, nominal if commanded."""
        stiffness = np.empty(len(self.springs))
        for joints, _, spring in self.placed:
            stiffness[list(joints)] = spring.rest_stiffness
        return stiffness

    @property
    def rigid(self) -> NDArray[np.bool_]:
        """Flags (n,) of rigid joints."""
        return np.isinf(self.rest_stiffness)

    @cached_property
    def variable(self) -> NDArray[np.bool_]:
        """Flags (n,) of joints with commanded stiffness."""
        return np.array([spring.is_variable for spring in self.springs])

    @cached_property
    def damped(self) -> NDArray[np.bool_]:
        """Flags (n,) of joints with a damped spring, which has its deflection as a state."""
        return np.array([spring.is_damped for spring in self.springs])

    @cached_property
    def presliding(self) -> NDArray[np.bool_]:
        """Flags (m,) of motors with a friction state."""
        return np.array([self.actuators[joint].friction.has_state for joint in self.motor_joint])

    @cached_property
    def paired(self) -> NDArray[np.bool_]:
        """Flags (n,) of joints with two motors."""
        return np.array([len(spring.motor_suffixes) > 1 for spring in self.springs])

    @property
    def nominal_stiffness(self) -> Array:
        """Default of the commanded stiffness (n,), N m/rad or N/m; zero at other joints."""
        return np.where(self.variable, self.rest_stiffness, 0.0)

    def deflections(
        self,
        tau: Sequence[Jet],
        stiffness: Sequence[Jet] | None = None,
        state: Sequence[Scalar] | None = None,
        joints: Collection[int] | None = None,
    ) -> tuple[list[Jet], list[Jet]]:
        """Deflections, rad or m, and efforts, N m or N, of the springs at all motors under efforts on the links.

        Args:
            tau: effort of each joint, N m or N.
            stiffness: commanded stiffness, for each joint, N m/rad or N/m; by default nominal and constant. Results are
                NaN for a stiffness out of range.
            state: present deflections of damped springs, for each joint, rad or m; by default without transient.
            joints: joints to compute; deflections and efforts of other joints are None.
        """
        delta: list[Any] = [None] * len(self.motor_joint)
        load: list[Any] = [None] * len(self.motor_joint)
        for place in self.placed:
            first = place.joints[0]
            if joints is not None and first not in joints:
                continue
            commanded = stiffness[first] if stiffness is not None and place.spring.is_variable else None
            present = state[first] if state is not None and place.spring.is_damped else None
            jets = place.spring.deflections([tau[joint] for joint in place.joints], commanded, present)
            for motor, deflection, effort in zip(place.motors, *jets, strict=True):
                delta[motor], load[motor] = deflection, effort
        return delta, load

    def efforts(
        self, delta: Sequence[Jet], stiffness: Sequence[Jet] | None = None
    ) -> tuple[list[Jet], list[Jet], list[Jet]]:
        """Spring efforts on the links and at the motors, and stiffness, for deflections at the motors.

        Args:
            delta: deflection at each motor, rad or m.
            stiffness: commanded stiffness of joints with one motor, for each joint, N m/rad or N/m; by default nominal.

        Returns:
            Efforts on the links, N m or N, NaN at rigid joints; efforts at the motors, zero at rigid joints; commanded
            stiffness, zero at other joints.
        """
        links: list[Any] = [None] * len(self.springs)
        motors: list[Any] = [None] * len(self.motor_joint)
        k = [Jet([0.0] * len(delta[0]))] * len(self.springs)
        for place in self.placed:
            commanded = None if stiffness is None or not place.spring.is_variable else stiffness[place.joints[0]]
            jets = place.spring.efforts([delta[motor] for motor in place.motors], commanded)
            for joint, effort in zip(place.joints, jets.links, strict=True):
                links[joint] = effort
            for motor, effort in zip(place.motors, jets.motors, strict=True):
                motors[motor] = effort
            if jets.stiffness is not None:
                k[place.joints[0]] = jets.stiffness
        return links, motors, k

    def motors_of(self, x: Sequence[Any]) -> list[Any]:
        """Motor positions, or rates, from the motor ends of all springs (m,), through the transmission."""
        return self._transmitted(x, None if self.transmission is None else self.transmission.matrices.inverse)

    def joint_sides(self, x: Sequence[Any]) -> list[Any]:
        """Motor ends of all springs (m,), or rates, from motor positions, through the transmission."""
        return self._transmitted(x, None if self.transmission is None else self.transmission.matrices.matrix)

    def motor_loads(self, load: Sequence[Any]) -> list[Any]:
        """Motor loads, on the link side of the gears, from the spring efforts (m,)."""
        return self._transmitted(load, None if self.transmission is None else self.transmission.matrices.matrix.T)

    def is_ideal(self, joint: int) -> bool:
        """True if a joint's motors have the effort of its springs: without inertia, friction and loss."""
        actuator = self.actuators[joint]
        return not self.rotor_inertia[joint] and actuator.friction.is_none and actuator.gear.is_lossless

    def motor_sums(self, effort: Sequence[Any]) -> list[Any]:
        """Motor effort at each joint (n,), from the efforts of the motors, through the transmission.

        The efforts of a joint's motors add up, so that efforts of a pair against each other cancel.
        """
        inverse = None if self.transmission is None else self.transmission.matrices.inverse.T
        sums: list[Any] = [0.0] * len(self.springs)
        for joint, part in zip(self.motor_joint, self._transmitted(effort, inverse), strict=True):
            sums[joint] = sums[joint] + part
        return sums

    def motor_shares(self, effort: Sequence[Any]) -> list[Any]:
        """Motor efforts (m,) for an effort at each joint; a pair shares it equally."""
        count = np.bincount(self.motor_joint, minlength=len(self.springs))
        return self.motor_loads([effort[joint] * (1 / count[joint]) for joint in self.motor_joint])

    def motor_effort(self, motor: int, load: Jet, velocity: Jet, spin: Jet, state: Scalar | None = None) -> Jet:
        """Effort of a motor on the link side of its gear.

        Args:
            motor: index of the motor.
            load: effort behind the gear, N m or N.
            velocity: motor velocity, rad/s or m/s.
            spin: effort that accelerates the rotor, N m or N.
            state: state of presliding friction, as in :meth:`.Friction.effort_jet`.
        """
        actuator = self.actuators[self.motor_joint[motor]]
        effort = load if actuator.gear.is_lossless else actuator.gear.load_jet(load, velocity)
        if not actuator.friction.is_none:
            effort = effort + actuator.friction.effort_jet(velocity, state if self.presliding[motor] else None)
        return spin + effort

    def feedforward(
        self,
        q: Sequence[Jet],
        tau: Sequence[Jet],
        stiffness: Sequence[Jet] | None = None,
        state: Sequence[Scalar] | None = None,
        spin: Sequence[Jet] | None = None,
        friction: Sequence[Scalar] | None = None,
    ) -> tuple[list[Jet], list[Jet]]:
        """Motor motion with r + 2 and motor efforts with r time derivatives, from link motion with r + 2.

        Args:
            q: joint variable of each joint, rad or m.
            tau: effort on the links at each joint, N m or N.
            stiffness, state: as for :meth:`deflections`.
            spin: effort of each motor that accelerates its rotor while it follows its links without deflection; by
                default zero, as in the reduced rotor model.
            friction: state of presliding friction of each motor, as in :meth:`.Friction.effort_jet`.
        """
        delta, load = self.deflections(tau, stiffness, state)
        link = [q[joint] for joint in self.motor_joint]
        position = self.motors_of([x + y for x, y in zip(link, delta, strict=True)])
        load = self.motor_loads(load)
        # The motion of the rotor that the effort `spin` does not accelerate: all of it, or relative to the link.
        remainder = position if spin is None else self.motors_of(delta)
        effort = []
        for motor, joint in enumerate(self.motor_joint):
            inertial = self.rotor_inertia[joint] * remainder[motor].rate.rate
            if spin is not None:
                inertial = spin[motor] + inertial
            behind, velocity = Jet(load[motor][: len(inertial)]), Jet(position[motor][1 : len(inertial) + 1])
            presliding = None if friction is None else friction[motor]
            effort.append(self.motor_effort(motor, behind, velocity, inertial, presliding))
        return position, effort

    @cached_property
    def linear_map(self) -> tuple[Array, Array]:
        """Matrices (m, 2n) from q and tau to motor positions, and to motor efforts at rest.

        The matrices hold for linear springs and for motors without friction and loss.
        """
        n = len(self.springs)
        jets = [Jet.constant(unit, 3) for unit in np.eye(2 * n)]
        position, effort = self.feedforward(jets[:n], jets[n:])
        return np.array([jet[0] for jet in position]), np.array([jet[0] for jet in effort])

    def settled(self, tau: Sequence[Jet]) -> list[Scalar]:
        """Settled deflections of damped springs, without transient, for each joint; zero at others."""
        return [spring.settled(x) for spring, x in zip(self.springs, tau, strict=True)]

    def advanced(
        self, delta: Sequence[Scalar], before: Sequence[Sequence[Scalar]], after: Sequence[Sequence[Scalar]], dt: Scalar
    ) -> list[Scalar]:
        """Deflections of damped springs a time step later, for each joint; zero at others.

        Args:
            delta: deflection of each joint at the start, rad or m.
            before, after: tau, taud, taudd at the start and at the end, for each joint.
            dt: time step, s, > 0.
        """
        rows = zip(self.springs, delta, before, after, strict=True)
        return [spring.advanced(x, first, last, dt) for spring, x, first, last in rows]

    def _transmitted(self, x: Sequence[Any], matrix: AnyArray | None) -> list[Any]:
        """Motor vector with the matrix applied to the entries of the transmission."""
        values = list(x)
        if matrix is not None and self.transmission is not None:
            motors = self._motor_indices(self.transmission.joints)
            for motor, row in zip(motors, matrix.tolist(), strict=True):
                terms = [x[other] * weight for other, weight in zip(motors, row, strict=True) if weight]
                values[motor] = sum(terms[1:], terms[0])
        return values

    def _motor_indices(self, joints: Sequence[int]) -> tuple[int, ...]:
        """Motor index of each of the joints, all with one motor."""
        return tuple(np.searchsorted(self.motor_joint, joints).tolist())


def _springs(robot: Robot, stiffness: ArrayLike | None) -> tuple[tuple[Spring, ...], CoupledJoints | None]:
    """Springs of the joints, and the spring of coupled joints."""
    if stiffness is None:
        coupled = None if robot.coupled_stiffness is None else CoupledJoints(*robot.coupled_stiffness)
        return tuple(joint.spring for joint in robot.independent_joints), coupled
    values = parameters.parameter_array("stiffness", stiffness)
    if robot.n > 1 and values.shape == (robot.n, robot.n):
        return (RIGID,) * robot.n, CoupledJoints(tuple(range(robot.n)), CoupledSpring(values))
    return tuple(map(spring_of_stiffness, parameters.repeated_parameter("stiffness", values, robot.n))), None
