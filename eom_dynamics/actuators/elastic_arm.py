# SPDX-License-Identifier: Apache-2.0
"""Feedforward of an arm with elastic joints, by differential flatness.

The reduced model of M. W. Spong, "Modeling and control of elastic joint robots", J. Dyn. Sys. Meas. Control
109 (1987): a spring f between motor and link at each joint, and rotors whose spin dominates their motion,

    M(q) qdd + C(q, qd) qd + Q_grav + Q_ext = tau,    tau = f(theta - q),    tau_m = B thetadd + tau + friction.

The links' motion q(t) is a flat output: q to qdddd give tau, taud, taudd and with them the whole motor side.

Where the rotors' coupling with the links that carry them counts too, in the complete model of :mod:`.carried_rotors`,
the exact map takes more derivatives, :mod:`.motor_series`; from qdddd alone it is an approximation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..drivetrain.actuator import stacked
from ..drivetrain.springs import AntagonisticPair, AnySpring, CoupledSpring, LinearSpring, RigidSpring
from ..dynamics import Dynamics
from ..exceptions import RobotDescriptionError, StateError
from ..robot import Robot
from ..robot.model import ROTOR_MODELS
from ..states import joint_states
from .carried_rotors import CarriedRotors
from .deflections import Deflections, SpringEfforts, SpringSet
from .drive import Drive, excesses

Array = NDArray[np.float64]

STIFFNESS_NAMES = ("k", "kd", "kdd")
"""Names of a commanded stiffness and its time derivatives."""


class Feedforward(NamedTuple):
    """What joints and motors must do in a state; motors on the link side of the gear.

    Attributes:
        tau, taud, taudd: joint efforts (n,) or (N, n), N m or N, and their time derivatives.
        motor_position, motor_velocity, motor_acceleration: (m,) or (N, m), rad or m, and per s, s².
        motor_effort: (m,) or (N, m), N m or N.
    """

    tau: Array
    taud: Array
    taudd: Array
    motor_position: Array
    motor_velocity: Array
    motor_acceleration: Array
    motor_effort: Array


class ElasticArm:
    """An arm whose joints have springs of any kind, are rigid, or any mix of both.

    There are m motors for n joints: two at a joint with an antagonistic pair, the agonist first; one at any other.
    The motors of a transmission stand in the places of its joints.

    Attributes:
        dynamics: inverse dynamics of the links.
        springs: of the joints; those of joints with a coupled spring are rigid here.
        coupled: joints, by number, and the spring between them, or None.
        transmission: that of the robot, with its joints by number, or None.
        stiffness: of the joint springs without load (n,), N m/rad or N/m; infinite where a joint is rigid. Where it
            is commanded, that of a command that does not say it.
        rotor_inertia: of the motors of each joint (n,) on the link side of the gear, kg m² or kg.
        variable: (n,) whether the stiffness of a joint is commanded.
        motor_joint: (m,) the joint of each motor.
        motor_names: (m,) the names of the motors.
        motor_inertia: (m,) rotor inertias.
        friction, gear, motor: of the m motors.
        ideal: whether no motor has friction or a gear with loss.
        rotor_model: ``reduced``, in which rotors feel no more than their own spin, or ``complete``.
        rotors: links and rotors as one system, where the model is complete; else None.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        stiffness: ArrayLike | None = None,
        rotor_inertia: ArrayLike | None = None,
        rotor_model: str | None = None,
    ) -> None:
        """Take joint elasticity from the robot's file, or from arguments where they are given.

        Args:
            robot: the robot.
            stiffness: of linear springs instead of the robot's: (n,) or one number for all joints, ``inf`` is rigid;
                or a matrix (n, n), n > 1, of springs that act on each other.
            rotor_inertia: (n,) or one number for all joints, instead of the robot's.
            rotor_model: ``reduced`` or ``complete``, instead of the robot's.

        Raises:
            RobotDescriptionError: a stiffness is not positive, a rotor inertia is negative or not finite, or
                there are not n of them; or there is no model of rotors of that name.
        """
        self.dynamics = Dynamics(robot)
        self.rotor_model = robot.rotor_model if rotor_model is None else rotor_model
        if self.rotor_model not in ROTOR_MODELS:
            raise RobotDescriptionError(f"rotor_model must be one of {', '.join(ROTOR_MODELS)}, is {rotor_model!r}")
        self.springs, self.coupled = _springs(robot, stiffness)
        self.transmission = robot.transmission
        self._set = SpringSet(robot.joint_names, self.springs, self.coupled)
        self.stiffness, self.variable = self._set.rest_stiffness, self._set.variable
        self.motor_joint = self._set.motor_joint
        self.motor_names = _motor_names(robot.joint_names, self.springs)
        self.rotor_inertia = _per_joint(
            robot, "rotor_inertia", robot.rotor_inertia if rotor_inertia is None else rotor_inertia
        )
        if not np.all((self.rotor_inertia >= 0) & np.isfinite(self.rotor_inertia)):
            raise RobotDescriptionError(
                f"rotor_inertia must be finite and not negative at each joint, is {self.rotor_inertia}"
            )
        self.motor_inertia = self.rotor_inertia[self.motor_joint]
        joints = [robot.independent_joints[i] for i in self.motor_joint]
        self.gear_ratio = np.array([joint.gear_ratio for joint in joints])
        self.friction = stacked([joint.actuator.friction for joint in joints])
        self.gear = stacked([joint.actuator.gear for joint in joints])
        self.motor = stacked([joint.actuator.motor for joint in joints])
        self.rotors: CarriedRotors | None = None
        if self.rotor_model == "complete":
            self.rotors = CarriedRotors(
                robot, self.motor_names, self.motor_joint.tolist(), self.motor_inertia, self.gear_ratio
            )
        self.ideal = all(joint.actuator.friction.is_none and joint.actuator.gear.is_lossless for joint in joints)

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.dynamics.robot

    def feedforward(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike,
        qdddd: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
        stiffness: Sequence[ArrayLike] = (),
        deflection: ArrayLike | None = None,
    ) -> Feedforward:
        """Joint efforts and the motor side for a motion of the links.

        In the complete model of rotors it is an approximation: the links feel rotors that follow them, theta = q, while
        the motors' own motion is that of the springs. :func:`.motor_series.motor_series` is exact.

        Motion and wrench, their shapes and units are those of :meth:`Dynamics.inverse_dynamics`.

        Args:
            q, qd, qdd, qddd, qdddd: motion of the links.
            wrench: tool wrench with its time derivatives.
            stiffness: (k, kd, kdd), the stiffness of joints where it is commanded, N m/rad or N/m, with its time
                derivatives, each (n,) or (N, n); entries of other joints are not read. What is not given is the
                nominal stiffness, and no change of it.
            deflection: (n,) or (N, n), rad or m, the present deflection of springs with dampers, which have a memory;
                entries of other joints are not read. By default that without transient,
                :meth:`DampedSpring.settled`.

        Raises:
            StateError: an argument has the wrong shape or is not finite, or a stiffness is out of its range.
        """
        if self.rotors is None:
            tau, taud, taudd = self.dynamics.inverse_dynamics(q, qd, qdd, qddd, qdddd, wrench=wrench)
        else:
            links = joint_states(self.robot.n, q, qd, qdd, qddd, qdddd)
            following = [self.motors_following(x) for x in links]
            (tau, taud, taudd), spin = self.rotors.efforts(links, following, wrench)
        commanded = self._commanded(stiffness, tau.shape)
        state = None if deflection is None else self.deflection_state(deflection, tau.shape)
        delta, deltad, deltadd, load = self._set.deflections((tau, taud, taudd), commanded, state)
        motion = [self._at_motors(np.asarray(x, dtype=float)) for x in (q, qd, qdd)]
        position, velocity, acceleration = (x + y for x, y in zip(motion, (delta, deltad, deltadd), strict=True))
        if self.transmission:
            joints, transmission = self.transmission
            motors = np.searchsorted(self.motor_joint, joints)
            for x in (position, velocity, acceleration):
                x[..., motors] = transmission.motors(x[..., motors])
            load = load.copy()
            load[..., motors] = transmission.motor_effort(load[..., motors])
        if self.rotors is None:
            effort = self.motor_inertia * acceleration
        else:
            effort = spin + self.motor_inertia * (acceleration - following[2])
        if self.ideal:
            effort = effort + load
        else:
            effort = effort + self.gear.load(load, velocity) + self.friction.effort(velocity)
        return Feedforward(tau, taud, taudd, position, velocity, acceleration, effort)

    def spring_efforts(
        self,
        motor_position: ArrayLike,
        motor_velocity: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike,
        *,
        stiffness: Sequence[ArrayLike] = (),
        rigid_too: bool = False,
    ) -> SpringEfforts:
        """The efforts of the springs on the links, and their rates, from where motors and links are.

        Args:
            motor_position, motor_velocity: (m,) or (N, m), as of :class:`Feedforward`.
            q, qd: joint variables and their rates, (n,) or (N, n).
            stiffness: (k, kd) as of :meth:`feedforward`; of antagonistic pairs it follows from the deflections.
            rigid_too: whether joints may be rigid; their efforts are then NaN.

        Raises:
            StateError: an argument has the wrong shape or is not finite, or a joint is rigid or has a damper.
        """
        q, qd = joint_states(self.robot.n, q, qd)
        shape = (*q.shape[:-1], len(self.motor_joint))
        motors = [np.array(_like_joints(x, "motor state", shape)) for x in (motor_position, motor_velocity)]
        if self.transmission:
            joints, transmission = self.transmission
            places = np.searchsorted(self.motor_joint, joints)
            for x in motors:
                x[..., places] = transmission.joints(x[..., places])
        delta, deltad = (x - self._at_motors(y) for x, y in zip(motors, (q, qd), strict=True))
        return self._set.efforts(delta, deltad, self._commanded(stiffness, q.shape), rigid_too=rigid_too)

    def deflections(
        self,
        tau: ArrayLike,
        taud: ArrayLike,
        taudd: ArrayLike,
        *,
        stiffness: Sequence[ArrayLike] = (),
        deflection: ArrayLike | None = None,
    ) -> Deflections:
        """The deflections of the springs under efforts, to full precision: theta - q loses digits to its size.

        Args:
            tau, taud, taudd: efforts on the links and their time derivatives, each (n,) or (N, n).
            stiffness, deflection: as of :meth:`feedforward`.

        Raises:
            StateError: as of :meth:`feedforward`.
        """
        efforts = joint_states(self.robot.n, tau, taud, taudd)
        shape = efforts[0].shape
        state = None if deflection is None else self.deflection_state(deflection, shape)
        return self._set.deflections((efforts[0], efforts[1], efforts[2]), self._commanded(stiffness, shape), state)

    def efforts_of_deflections(
        self, delta: ArrayLike, deltad: ArrayLike, *, stiffness: Sequence[ArrayLike] = (), rigid_too: bool = False
    ) -> SpringEfforts:
        """The efforts of the springs on the links from measured deflections and their rates, each (m,) or (N, m).

        Other arguments and errors are those of :meth:`spring_efforts`.
        """
        m = len(self.motor_joint)
        delta, deltad = np.asarray(delta, dtype=float), np.asarray(deltad, dtype=float)
        if delta.shape != deltad.shape or delta.shape[-1:] != (m,) or delta.ndim > 2:
            raise StateError(f"deflections must both have shape ({m},) or (N, {m}), have {delta.shape}, {deltad.shape}")
        if not np.all(np.isfinite(delta) & np.isfinite(deltad)):
            raise StateError("deflections must be finite")
        commanded = self._commanded(stiffness, (*delta.shape[:-1], self.robot.n))
        return self._set.efforts(delta, deltad, commanded, rigid_too=rigid_too)

    def motors_following(self, x: Array) -> Array:
        """Positions (…, m) of motors, or their rates, from those of links (…, n), if no spring were deflected."""
        motors = self._at_motors(x)
        if self.transmission is None:
            return motors
        joints, transmission = self.transmission
        places = np.searchsorted(self.motor_joint, joints)
        motors = motors.copy()
        motors[..., places] = transmission.motors(motors[..., places])
        return motors

    def drive(self, command: Feedforward, *, clip: bool = False) -> Drive:
        """What the motors' shafts do and need for a command, and which of their limits that exceeds.

        A shaft turns ``gear_ratio`` times as far as the link side of its gear, and gives as much less.

        Args:
            command: of :meth:`feedforward`.
            clip: whether to give the nearest torque that the limits of torque, current and voltage allow.
        """
        names, ratio, motor = self.motor_names, self.gear_ratio, self.motor
        position, velocity, acceleration = (ratio * x for x in command[3:6])
        torque = command.motor_effort / ratio
        exceeded = [
            *excesses(names, "torque", torque, np.asarray(motor.torque_limit)),
            *excesses(names, "speed", velocity, np.asarray(motor.speed_limit)),
            *excesses(names, "current", motor.current(torque), np.asarray(motor.current_limit)),
            *excesses(names, "voltage", motor.voltage(torque, velocity), np.asarray(motor.voltage_limit)),
        ]
        if clip:
            torque = motor.clipped(torque, velocity)
        return Drive(
            position,
            velocity,
            acceleration,
            torque,
            motor.current(torque),
            motor.voltage(torque, velocity),
            tuple(exceeded),
        )

    def deflections_over_time(self, time: ArrayLike, efforts: Sequence[Array], start: ArrayLike | None = None) -> Array:
        """Deflections (N, n) of springs with dampers along a motion, zero at other joints.

        Args:
            time: (N,), s, increasing.
            efforts: tau, taud, taudd, each (N, n).
            start: (n,), rad or m, the deflection at the first time; by default that without transient.

        Raises:
            StateError: times do not increase, or shapes differ.
        """
        t = np.asarray(time, dtype=float)
        shape = (len(t), self.robot.n) if t.ndim == 1 else ()
        if any(np.shape(x) != shape for x in efforts) or not np.all(np.diff(t) > 0):
            raise StateError(f"time must be (N,) and increase, and efforts be (N, {self.robot.n})")
        result = np.zeros(shape)
        for joint in self._set.damped:
            spring: Any = self.springs[joint]
            own = [x[:, joint] for x in efforts]
            first = [x[0] for x in own]
            state = spring.settled(*first) if start is None else self.deflection_state(start, (self.robot.n,))[joint]
            result[0, joint] = state
            for i, dt in enumerate(np.diff(t)):
                before, after = [x[i] for x in own], [x[i + 1] for x in own]
                state = spring.advance(state, before, after, dt)
                result[i + 1, joint] = state
        return result

    @property
    def paired(self) -> NDArray[np.bool_]:
        """(n,) whether two motors pull at a joint."""
        return np.array([isinstance(spring, AntagonisticPair) for spring in self.springs])

    def stiffness_command(self, stiffness: Sequence[ArrayLike], shape: tuple[int, ...]) -> list[Array]:
        """k, kd, kdd, each of a shape (n,) or (N, n), with what :meth:`feedforward` takes where they are not given."""
        return self._set.commanded(self._commanded(stiffness, shape), shape[:-1])

    @property
    def rigid(self) -> NDArray[np.bool_]:
        """(n,) whether a joint is rigid."""
        return self._set.rigid

    @property
    def damped(self) -> NDArray[np.bool_]:
        """(n,) whether the spring of a joint has a damper."""
        return np.isin(np.arange(self.robot.n), self._set.damped)

    def _at_motors(self, x: Array) -> Array:
        return x if len(self.motor_joint) == x.shape[-1] else x[..., self.motor_joint]

    def _commanded(self, stiffness: Sequence[ArrayLike], shape: tuple[int, ...]) -> list[Array]:
        if not len(stiffness):
            return []
        if len(stiffness) > 3:
            raise StateError(f"stiffness must be (k, kd, kdd) or the first of them, has {len(stiffness)} entries")
        given = [
            _like_joints(x, f"stiffness {name}", shape) for x, name in zip(stiffness, STIFFNESS_NAMES, strict=False)
        ]
        for x, name in zip(given, STIFFNESS_NAMES, strict=False):
            if not np.all(np.isfinite(x[..., self.variable])):
                raise StateError(f"stiffness {name} must be finite at joints where it is commanded")
        return given

    def deflection_state(self, deflection: ArrayLike, shape: tuple[int, ...]) -> Array:
        """The deflection of springs with dampers as an array (n,) or (N, n), checked where it is read."""
        given = _like_joints(deflection, "deflection", shape)
        if not np.all(np.isfinite(given[..., self._set.damped])):
            raise StateError("deflection must be finite at joints with dampers")
        return given


def _springs(
    robot: Robot, stiffness: ArrayLike | None
) -> tuple[tuple[AnySpring, ...], tuple[tuple[int, ...], CoupledSpring] | None]:
    """The springs of joints, and that between some of them."""
    if stiffness is None:
        return tuple(joint.spring for joint in robot.independent_joints), robot.coupled_stiffness
    given = _numbers(robot, "stiffness", stiffness)
    if robot.n > 1 and given.shape == (robot.n, robot.n):
        return (RigidSpring(),) * robot.n, (tuple(range(robot.n)), CoupledSpring(given))
    values = _per_joint(robot, "stiffness", stiffness)
    if not np.all(values > 0):
        raise RobotDescriptionError(f"stiffness must be greater than 0 at each joint, is {values}")
    return tuple(RigidSpring() if np.isinf(K) else LinearSpring(K) for K in values), None


def _motor_names(names: Sequence[str], springs: Sequence[AnySpring]) -> tuple[str, ...]:
    rows = [
        (f"{name}_agonist", f"{name}_antagonist") if isinstance(spring, AntagonisticPair) else (name,)
        for name, spring in zip(names, springs, strict=True)
    ]
    return tuple(name for row in rows for name in row)


def _like_joints(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    """The value as an array (n,), or of the shape of all joint vectors."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise StateError(f"{name} is not an array of numbers") from None
    if array.shape not in (shape, shape[-1:]):
        raise StateError(f"{name} must have shape {shape}, has {array.shape}")
    return array


def _per_joint(robot: Robot, name: str, value: ArrayLike) -> Array:
    array = _numbers(robot, name, value)
    if array.shape not in ((), (robot.n,)):
        raise RobotDescriptionError(f"{name} must be one number or {robot.n}, one a joint; has shape {array.shape}")
    return np.broadcast_to(array, (robot.n,)).copy()


def _numbers(robot: Robot, name: str, value: ArrayLike) -> Array:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise RobotDescriptionError(f"{name} must be one number or {robot.n}, one a joint; is {value!r:.60}") from None
