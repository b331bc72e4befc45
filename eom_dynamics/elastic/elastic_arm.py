# SPDX-License-Identifier: Apache-2.0
"""Feedforward of arms with elastic joints, by differential flatness.

The reduced model of M. W. Spong, "Modeling and control of elastic joint robots", J. Dyn. Sys. Meas. Control 109 (1987):
a spring f between motor and link at each joint, and rotors with kinetic energy of their own spin only,

    M(q) qdd + C(q, qd) qd + Q_grav + Q_ext = tau,    tau = f(theta - q),    tau_m = B thetadd + tau + friction.

The link motion q(t) is a flat output: q to qdddd determine tau, taud, taudd and thereby motor motion and effort.

In the complete rotor model of :mod:`.carried_rotors`, rotors and links are coupled. The exact map then requires more
derivatives, see :mod:`.motor_derivatives`; with q to qdddd it is approximate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..actuators.actuator import stacked
from ..arguments import choice, joint_states, real_array, sequence
from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, SHAFT_UNITS, Array
from ..codegen.functions import CompiledFunction, compiled_program, payload_keyword, shared_array
from ..codegen.programs import WITH_PAYLOAD
from ..dynamics import Dynamics
from ..exceptions import RobotDescriptionError, StateError
from ..robot import Robot
from ..robot.model import COMPENSATIONS, ROTOR_MODELS
from ..robot.payload import PayloadLike
from ..spelling import shown
from .carried_rotors import CarriedRotors
from .drive_programs import Drive, DriveCommand, DriveState, drive_command, drive_sides, drive_state, scales
from .feedforward import BaseMotion, Feedforward, FeedforwardMethods, method_name
from .limit_violations import LimitViolation, limit_violations
from .motor_functions import MotorFunctions
from .motor_programs import MOTOR_NAMES, SHAFT, STIFFNESS_NAMES
from .motor_side import MotorSide

# Shares of the efforts that the robot adds, and their rates.
_WHOLE, _NONE = np.array([1.0, 0.0]), np.zeros(2)


class Deflections(NamedTuple):
    """Deflections of the springs, each (m,) or (N, m).

    Attributes:
        delta, deltad, deltadd: deflection, joint side of the motor minus link, rad or m, and time derivatives.
        tau: effort at the motor, N m or N.
    """

    delta: Array
    deltad: Array
    deltadd: Array
    tau: Array


class SpringEfforts(NamedTuple):
    """Efforts of the springs on the links, each (n,) or (N, n).

    Attributes:
        tau, taud: effort, N m or N, and its time derivative.
        k, kd: commanded stiffness, N m/rad or N/m, and its time derivative; zero at other joints.
    """

    tau: Array
    taud: Array
    k: Array
    kd: Array


def require_arm(arm: object) -> None:
    """Raise TypeError unless the argument is an ElasticArm."""
    if not isinstance(arm, ElasticArm):
        raise TypeError(f"arm must be an ElasticArm, such as ElasticArm(robot), is {shown(arm)}")


class ElasticArm(FeedforwardMethods):
    """Arm with elastic joints of any kind, rigid joints, or both.

    n joints have m motors: a joint with an antagonistic pair has two, the agonist first; every other joint has one.
    Motors of a transmission are listed in the positions of its joints.

    Attributes:
        robot: the robot.
        dynamics: dynamics of the links.
        springs: springs of the joints; joints of the coupled spring count as rigid here.
        coupled: indices of the coupled joints and their spring, or None.
        functions: compiled programs of springs and motors.
        transmission: indices of joints and their transmission, or None.
        stiffness: (n,) stiffness without load, N m/rad or N/m; infinite at rigid joints, nominal if commanded.
        rigid, damped, variable, paired: (n,) flags of joints that are rigid, have a damper, have commanded stiffness,
            have two motors.
        rotor_inertia: (n,) rotor inertia of the motors of each joint on the link side of the gear, kg m² or kg.
        motor_joint: (m,) joint index of each motor.
        motor_names: (m,) names of the motors.
        motor_inertia: (m,) rotor inertias on the link side of the gears, kg m² or kg.
        gear_ratio: (m,) turns of each motor for one turn of its joint.
        friction, gear, motor: parameters of the m motors.
        has_memory: whether a command depends on previous commands, by damped springs or a state of friction.
        rotor_model: ``reduced`` (the kinetic energy of rotors includes their own spin only) or ``complete``.
        rotors: links and rotors as one system in the complete model, else None.
        converts: whether the drive command differs from the command, see :meth:`drive_command`.
        drive_sides: (m,) sides of the gears on which the drives count, ``joint`` or ``motor``.
        calls: cached compiled functions of the motor side, by name.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        stiffness: ArrayLike | None = None,
        rotor_inertia: ArrayLike | None = None,
        rotor_model: str | None = None,
        backend: str | None = None,
    ) -> None:
        """Use springs and rotors of the robot, or the arguments instead.

        Args:
            robot: the robot.
            stiffness: stiffness of linear springs: (n,) or one number for all joints, ``inf`` is rigid; or a matrix
                (n, n), n > 1, of coupled springs.
            rotor_inertia: (n,) or one number for all joints, on the link side of the gear, kg m² or kg.
            rotor_model: ``reduced`` or ``complete``.
            backend: as in :class:`.Dynamics`, with the same errors.

        Raises:
            RobotDescriptionError: a stiffness is not positive, a rotor inertia is negative or not finite, an argument
                has the wrong shape, the rotor model or an effort that the robot adds is unknown, or the units of a
                drive are incomplete.
        """
        self.dynamics = Dynamics(robot, backend=backend)
        self.robot, self.backend = self.dynamics.robot, self.dynamics.backend
        self.converts = self.robot.has_own_drives
        if unknown := set(robot.compensated_by_robot) - set(COMPENSATIONS):
            names = ", ".join(COMPENSATIONS)
            raise RobotDescriptionError(f"compensated_by_robot: {min(unknown)!r:.60} is not one of {names}")
        self._functions = {}
        self.calls: dict[Any, Callable[..., Any]] = {}
        self._arguments: dict[str, Any] = {
            "stiffness": stiffness,
            "rotor_inertia": rotor_inertia,
            "rotor_model": rotor_model,
            "backend": backend,
        }
        self.rotor_model = robot.rotor_model if rotor_model is None else rotor_model
        choice(self.rotor_model, "rotor_model", ROTOR_MODELS, RobotDescriptionError)
        self.side = MotorSide.of(robot, stiffness, rotor_inertia)
        self.springs, self.coupled, self.transmission = self.side.springs, self.side.coupled, self.side.transmission
        self.rotor_inertia = np.array(self.side.rotor_inertia)
        self.functions = MotorFunctions(self.side, self.dynamics.backend)
        self.stiffness, self.variable = self.side.rest_stiffness, self.side.variable
        self.rigid, self.damped, self.paired = self.side.rigid, self.side.damped, self.side.paired
        self.motor_joint, self.motor_names = self.side.motor_joint, self.side.motor_names
        self.motor_inertia = self.rotor_inertia[self.motor_joint]
        joints = [robot.independent_joints[i] for i in self.motor_joint]
        self.gear_ratio = np.array([joint.gear_ratio for joint in joints])
        self.drive_sides = drive_sides(robot, self.side)
        scales(robot, self.side)  # checks
        self.friction = stacked([joint.actuator.friction for joint in joints])
        self.gear = stacked([joint.actuator.gear for joint in joints])
        self.motor = stacked([joint.actuator.motor for joint in joints])
        self.rotors: CarriedRotors | None = None
        if self.rotor_model == "complete":
            self.rotors = CarriedRotors(robot, self.side)
        self.has_memory = bool(self.damped.any() or self.side.presliding.any())

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the arguments; compiled code comes from the cache."""
        return partial(ElasticArm, **self._arguments), (self.robot,)

    def efforts(
        self,
        *states: ArrayLike,
        wrench: Sequence[ArrayLike] = (),
        base: BaseMotion | None = None,
        payload: PayloadLike | None = None,
    ) -> tuple[Array, ...]:
        """Joint efforts for a motion of the links, as :meth:`feedforward` in the reduced rotor model.

        Args:
            states: q, qd, qdd, qddd, qdddd, each (n,) or (N, n), rad or m and s; jerk and snap may be omitted, which
                means zero.
            wrench, base, payload: as for :meth:`feedforward`.

        Returns:
            tau, taud, taudd, each in the shape of q, N m or N and s.

        Raises:
            StateError: as for :meth:`feedforward`.
        """
        if base is None:
            return self.dynamics.inverse_dynamics(*states, wrench=wrench, payload=payload)
        method = method_name(on_base=True, payload=payload is not None)
        options = {"wrench": wrench, "base": base} | ({"payload": payload} if payload is not None else {})
        known, _ = self._checked(method, states, options)
        return self._link_efforts(method, known)

    def spring_efforts(
        self,
        motor_position: ArrayLike,
        motor_velocity: ArrayLike,
        q: ArrayLike,
        qd: ArrayLike,
        *,
        commanded_stiffness: Sequence[ArrayLike] = (),
        rigid_too: bool = False,
    ) -> SpringEfforts:
        """Efforts of the springs on the links, and their rates, from positions and velocities of motors and links.

        Args:
            motor_position, motor_velocity: (m,) or (N, m), as in :class:`Feedforward`.
            q, qd: joint variables and their rates, (n,) or (N, n).
            commanded_stiffness: (k, kd) as for :meth:`feedforward`; ignored for antagonistic pairs.
            rigid_too: whether rigid joints are accepted; their efforts are NaN.

        Raises:
            StateError: an argument has the wrong shape or is not finite, or a joint is rigid or damped.
        """
        q, qd = joint_states(self.robot.n, q, qd)
        m, samples = len(self.motor_joint), q.shape[:-1]
        motors = [shared_array(x, "motor state", (m,), samples) for x in (motor_position, motor_velocity)]
        commanded = self._commanded(commanded_stiffness, samples)
        self.functions.require_efforts(rigid_too=rigid_too)
        commands = self.functions.commanded(commanded, samples, 2) if self.variable.any() else []
        return SpringEfforts(*self.functions("spring_efforts", q, qd, *motors, *commands, motors=MOTOR_NAMES[:2]))

    def deflections(
        self,
        tau: ArrayLike,
        taud: ArrayLike,
        taudd: ArrayLike,
        *,
        commanded_stiffness: Sequence[ArrayLike] = (),
        deflection: ArrayLike | None = None,
    ) -> Deflections:
        """Deflections of the springs under efforts, without the cancellation of theta - q.

        Args:
            tau, taud, taudd: efforts on the links and time derivatives, each (n,) or (N, n).
            commanded_stiffness, deflection: as for :meth:`feedforward`.

        Raises:
            StateError: as for :meth:`feedforward`.
        """
        efforts = joint_states(self.robot.n, tau, taud, taudd)
        samples = efforts[0].shape[:-1]
        stiffness = self._commanded(commanded_stiffness, samples)
        commands = self.functions.commands(stiffness, self._checked_deflection(deflection, samples), samples)
        result = Deflections(*self.functions("deflections", *efforts, *commands))
        self.functions.refuse(efforts[0], stiffness, result.delta)
        return result

    def motors_following(self, x: Array) -> Array:
        """Motor positions (…, m), or rates, for link positions (…, n), or rates, without spring deflection."""
        links = x[..., self.motor_joint]
        if not self.transmission:
            return links
        return np.stack(self.side.motors_of(list(np.moveaxis(links, -1, 0))), axis=-1)

    def drive(self, command: Feedforward, *, clip: bool = False) -> Drive:
        """Motor shafts for a command, before the gears, with limit violations.

        Args:
            command: result of :meth:`feedforward`.
            clip: whether to clip torques to the limits of torque, current and voltage.
        """
        *shafts, number = self.functions("shafts", *command[len(EFFORT_NAMES) :], clip=bool(clip))
        exceeded: list[LimitViolation] = []
        if np.count_nonzero(number):
            values = self.functions("drive", command.motor_velocity, command.motor_effort)
            shaft, names = dict(zip(SHAFT, values, strict=True)), self.motor_names
            for quantity, unit in SHAFT_UNITS.items():
                most = np.asarray(getattr(self.motor, f"{quantity}_limit"), dtype=float)
                exceeded += limit_violations(names, quantity, [unit] * len(names), shaft[quantity], -most, most)
        return Drive._make((*shafts, tuple(exceeded)))

    def drive_command(
        self, command: Feedforward, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, payload: PayloadLike | None = None
    ) -> DriveCommand:
        """Drive command for a feedforward command: in drive units, without the efforts that the robot adds.

        References of position and velocity are for the ages :attr:`.Robot.drive_feedback_delay`.

        The robot adds the efforts :attr:`.Robot.compensated_by_robot` at its measured state. They are subtracted at the
        motion of the command. From joint efforts, C(q, qd) qd + Q_grav and joint friction are subtracted; from motor
        efforts, the same efforts through the transmission and motor friction. Gear loss of the complete effort remains.

        Args:
            command: result of :meth:`feedforward`, also with efforts clipped to limits.
            q, qd, qdd: motion of the command, (n,) or (N, n); with a lead, the motion at the lead.
            payload: as for :meth:`feedforward`; has an effect only if the robot compensates payloads.

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        if not self.converts:
            efforts = command.motor_effort, command.tau, command.taud
            return DriveCommand(command.motor_position, command.motor_velocity, *efforts)
        values = (q, qd, qdd, command.tau, command.taud, *(getattr(command, name) for name in MOTOR_NAMES), _WHOLE)
        options = {"payload": payload} if payload is not None and self.compensates_payload else {}
        return DriveCommand(*self._drive_call("drive_command", payload=bool(options))(*values, **options))

    def drive_state(
        self,
        position: ArrayLike,
        velocity: ArrayLike,
        effort: ArrayLike,
        *,
        sent_at: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> DriveState:
        """Motor states in SI units from drive reports, each (m,) or (N, m).

        Args:
            position, velocity, effort: numbers reported by, or sent to, the drives, in drive units.
            sent_at: q, qd of the links, (n,) or (N, n), for sent efforts: the efforts that the robot adds at this state
                are added. By default efforts are complete.

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        drives = [np.asarray(x, dtype=float) for x in (position, velocity, effort)]
        if not self.converts:
            return DriveState(*drives)
        rest = np.zeros((*drives[0].shape[:-1], self.robot.n))
        states = (rest, rest) if sent_at is None else sent_at
        share = _NONE if sent_at is None else _WHOLE
        return DriveState(*self._drive_call("drive_state")(*states, *drives, share))

    def drive_report(self, state: DriveState) -> DriveState:
        """Drive reports for motors in SI units with complete efforts: the inverse of drive_state."""
        if not self.converts:
            return state
        position, velocity, effort, offset = np.transpose(scales(self.robot, self.side))
        theta, thetad, tau = state
        return DriveState(theta * position + offset, thetad * velocity, tau * effort)

    @property
    def compensates_payload(self) -> bool:
        """True if the robot compensates payloads at its tools itself."""
        return "payload" in self.robot.compensated_by_robot

    def drive_function(self, name: str, **details: bool) -> CompiledFunction:
        """Compiled program of :mod:`.drive_programs`."""
        key = name + WITH_PAYLOAD * details.get("payload", False)
        if key not in self._functions:
            make = {"drive_command": drive_command, "drive_state": drive_state}[name]
            function = compiled_program(make(self.robot, self.side, **details), self.backend)
            if key != name:
                plain = tuple(x for x in function.signature.arguments if x.name not in PAYLOAD_NAMES)
                signature = replace(function.signature, arguments=plain, keywords=(payload_keyword(self.robot, 2),))
                function = CompiledFunction(signature, function.stages)
            self._functions[key] = function
        return self._functions[key]

    def _drive_call(self, name: str, **details: bool) -> Callable[..., tuple[Array, ...]]:
        """Compiled program of :mod:`.drive_programs` with fast dispatch."""
        key = name, *details.values()
        if key not in self.calls:
            self.calls[key] = self.drive_function(name, **details).state_call()
        return self.calls[key]

    def deflections_over_time(self, t: ArrayLike, efforts: Sequence[Array], start: ArrayLike | None = None) -> Array:
        """Deflections (N, n) of damped springs along a motion, zero at other joints.

        Args:
            t: (N,), s, increasing.
            efforts: tau, taud, taudd, each (N, n).
            start: (n,) deflection at the first time, rad or m; by default the deflection without transient.

        Raises:
            StateError: times do not increase, or an array is not finite or has another shape.
        """
        t = real_array(t, "t")
        if t.ndim != 1 or not np.all(np.diff(t) > 0):
            raise StateError(f"t must increase and have shape (N,), has {t.shape}")
        shape = (len(t), self.robot.n)
        rows = sequence(efforts, "efforts", ", ".join(EFFORT_NAMES), least=len(EFFORT_NAMES), most=len(EFFORT_NAMES))
        efforts = [real_array(x, name, shape) for x, name in zip(rows, EFFORT_NAMES, strict=True)]
        result = np.zeros(shape)
        if not np.any(self.damped):
            return result
        if start is None:
            result[0] = self.functions.settled([x[0] for x in efforts])
        else:
            result[0] = self.deflection_state(start, other=0.0)
        for i, dt in enumerate(np.diff(t)):
            before, after = [x[i] for x in efforts], [x[i + 1] for x in efforts]
            result[i + 1] = self.functions.filtered(result[i], before, after, float(dt))
        return result

    def friction_states(self, position: ArrayLike, velocity: ArrayLike, start: ArrayLike | None = None) -> Array:
        """States (N, m) of presliding friction along a motion, z of :class:`.Friction`; zero at other motors.

        Args:
            position, velocity: motor motion, each (N, m), as in :class:`Feedforward`.
            start: (m,) state at the first position; by default tanh(thetad/v_0).

        Raises:
            StateError: an array is not finite or has another shape.
        """
        theta = real_array(position, "position")
        shape = (*theta.shape[:1], len(self.motor_names))
        theta, thetad = real_array(theta, "position", shape), real_array(velocity, "velocity", shape)
        result = np.zeros(shape)
        if not self.side.presliding.any() or not len(theta):
            return result
        step = np.array([-1.0 if start is None else 0.0])
        z = result[0] if start is None else real_array(start, "start", shape[1:])
        call, before = self.functions.call("presliding"), theta[0]
        for i in range(len(theta)):
            (z,) = call(z, before, theta[i], thetad[i], step)
            result[i], before, step = z, theta[i], np.zeros(1)
        return result

    def stiffness_command(
        self, stiffness: Sequence[ArrayLike], shape: tuple[int, ...], orders: int = len(STIFFNESS_NAMES)
    ) -> list[Array]:
        """Commanded stiffness k, kd, …, each (n,) or (N, n), completed by the defaults of :meth:`feedforward`."""
        return self.functions.commanded(self._commanded(stiffness, shape[:-1], orders), shape[:-1], orders)


def lowest_frequency(arm: ElasticArm, M: Array) -> float:
    """Lowest natural frequency of links with mass matrices M (..., n, n) on unloaded springs, motors at rest, rad/s.

    Raises:
        StateError: no spring of the arm has stiffness at rest.
    """
    E = np.eye(arm.robot.n)[arm.motor_joint]
    K = E.T @ arm.functions.tangents(np.zeros(len(E)))[0] @ E
    # With a stack of matrices, NumPy 1 interprets a single matrix as a stack of vectors.
    squares = np.linalg.eigvals(np.linalg.solve(M, np.broadcast_to(K, M.shape))).real
    # Links on rigid joints have no such frequency.
    elastic = squares[squares > 1e-9 * np.max(squares)]
    if not elastic.size:
        raise StateError(f"{arm.robot.name} has no springs with stiffness at rest, so no feedback of links")
    return float(np.sqrt(np.min(elastic)))
