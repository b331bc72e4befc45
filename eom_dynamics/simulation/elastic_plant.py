# SPDX-License-Identifier: Apache-2.0
"""Plant: links and motors coupled by springs.

Motor efforts determine the motion of links and motors, in the reduced model of M. W. Spong, "Modeling and control of
elastic joint robots", J. Dyn. Sys. Meas. Control 109 (1987),

    M(q) qdd + C(q, qd) qd + Q_grav = tau,    tau = f(theta - q),    B thetadd = tau_m - tau - friction.

The motor of a rigid joint moves with the link, and its rotor inertia adds to the link inertia. In the complete rotor
model (:mod:`eom_dynamics.elastic.carried_rotors`):

    (M + S B⁻¹ Sᵀ) qdd + S thetadd + c_q = tau,    Sᵀ qdd + B thetadd + c_theta = tau_m - tau - friction.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators.actuator import stacked
from ..arguments import joint_states, real_array
from ..arrays import STATE_NAMES, Array
from ..elastic import ElasticArm, motor_jet
from ..elastic.carried_rotors import CarriedRotors
from ..elastic.elastic_arm import require_arm
from ..exceptions import RobotDescriptionError, StateError
from ..recursion.inverse_mass_matrix import solve_mass_matrix
from ..spelling import shown


class PlantInertia:
    """Inertia of n links and m motors in the reduced rotor model.

    Vectors (…, n + m) have the links, then the motors. Motors at rigid joints move with their links: their entries are
    zero, with a one on the diagonal of the inertia matrix.
    """

    def __init__(self, arm: ElasticArm, rigid: NDArray[np.bool_]) -> None:
        """Set the arm, and flags (m,) of motors at rigid joints."""
        self._dynamics, self._rigid, self._rotors = arm.dynamics, rigid, arm.motor_inertia
        self._of_joint, self._any_rigid = np.eye(arm.robot.n)[arm.motor_joint], bool(rigid.any())
        self._added = np.where(rigid, arm.motor_inertia, 0.0) @ self._of_joint
        self._motor_diagonal = np.where(rigid, 1.0, arm.motor_inertia)

    def accelerations(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """Accelerations (…, n + m) under efforts (…, n) on links and (…, m) on motors, N m or N.

        Raises:
            StateError: a state is not finite.
            RobotDescriptionError: the inertia is not positive definite.
        """
        if not self._any_rigid:
            return np.concatenate(
                [self._dynamics.forward_dynamics(q, qd, on_links), on_motors / self._motor_diagonal], axis=-1
            )
        efforts = on_links + np.where(self._rigid, on_motors, 0.0) @ self._of_joint
        qdd = self._dynamics.forward_dynamics(q, qd, efforts, added_inertia=self._added)
        return np.concatenate([qdd, np.where(self._rigid, 0.0, on_motors / self._motor_diagonal)], axis=-1)

    def matrix(self, q: Array) -> Array:
        """Inertia matrix (…, n + m, n + m), kg m² or kg."""
        n, m = q.shape[-1], len(self._motor_diagonal)
        matrix = np.zeros((*q.shape[:-1], n + m, n + m))
        matrix[..., :n, :n] = self._dynamics.mass_matrix(q) + self._added * np.eye(n)
        matrix[..., n:, n:] = np.diag(self._motor_diagonal)
        return matrix

    def kinetic_energy(self, q: Array, qd: Array, thetad: Array) -> Array:
        """Kinetic energy (N,) in states (N, n), (N, n), (N, m), J."""
        return self._dynamics.kinetic_energy(q, qd) + 0.5 * np.sum(self._rotors * thetad**2, axis=-1)


class CarriedInertia(PlantInertia):
    """Inertia in the complete rotor model: links and carried rotors as one system."""

    def __init__(self, arm: ElasticArm, rotors: CarriedRotors, rigid: NDArray[np.bool_]) -> None:
        n, m = arm.robot.n, len(rigid)
        self._name, self._carried = arm.robot.name, rotors
        # Map from independent velocities to velocities of all links and motors.
        self._free = np.eye(n + m)
        self._free[n:, n:][rigid, rigid] = 0.0
        self._free[n:, :n][rigid] = np.eye(n)[arm.motor_joint[rigid]]
        self._rigid_diagonal = np.diag(np.concatenate([np.zeros(n), rigid]))

    def accelerations(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """See :meth:`PlantInertia.accelerations`."""
        return solve_mass_matrix(self._name, self.matrix(q), self.free(q, qd, thetad, on_links, on_motors))

    def matrix(self, q: Array) -> Array:
        """See :meth:`PlantInertia.matrix`."""
        return self._free.T @ self._carried.mass_matrix(q) @ self._free + self._rigid_diagonal

    def free(self, q: Array, qd: Array, thetad: Array, on_links: Array, on_motors: Array) -> Array:
        """Efforts (…, n + m) minus the bias at zero acceleration."""
        efforts = np.concatenate([on_links, on_motors], axis=-1) - self._carried.bias(q, qd, thetad)
        return efforts @ self._free

    def kinetic_energy(self, q: Array, qd: Array, thetad: Array) -> Array:
        """See :meth:`PlantInertia.kinetic_energy`."""
        velocity = np.concatenate([qd, thetad], axis=-1)[..., np.newaxis]
        return 0.5 * np.sum(velocity * (self._carried.mass_matrix(q) @ velocity), axis=(-2, -1))


class State(NamedTuple):
    """Parts of a state: links (…, n), rad or m, motors (…, m) on the link side of their gears, and rates, per s."""

    q: Array
    theta: Array
    qd: Array
    thetad: Array


class _Loads(NamedTuple):
    """Spring efforts on links, motor loads, dissipated power, and efforts of tool wrenches on links.

    Shapes are (…, n), (…, m), (…) and (…, n). Motor loads include springs, gears and friction.
    """

    links: Array
    motor: Array
    lost: Array
    tools: Array | float


class ElasticPlant:
    """Plant of an arm: links and motors coupled by springs, for one or many states.

    A state is an array (2n + 2m,), or (N, 2n + 2m) for N independent arms, of q, theta, qd and thetad in sequence. At a
    rigid joint theta is q.

    Attributes:
        arm: the arm: links, springs, rotors, gears and friction.
        springs: springs of the arm.
        rigid: (m,) flags of motors at rigid joints.
        inertia: inertia of links and motors.
        geared: matrix (m, m) from motor positions to the joint sides of the springs.
        joints: matrix (m, n), 1 if a motor moves a joint, else 0.
    """

    def __init__(self, arm: ElasticArm) -> None:
        """Check that the arm can be simulated.

        Raises:
            RobotDescriptionError: a motor at an elastic joint has no rotor inertia; or a rigid joint has a gear with
                loss or a transmission, which this model does not cover.
            TypeError: ``arm`` is not an ElasticArm.
        """
        require_arm(arm)
        self.arm = arm
        self.springs = arm.functions
        self.rigid = arm.rigid[arm.motor_joint]
        self._any_rigid = bool(self.rigid.any())
        n, m = arm.robot.n, len(arm.motor_joint)
        self._ends = n, n + m, 2 * n + m
        self.joints = np.eye(n)[arm.motor_joint]
        self.geared = np.eye(m)
        if arm.transmission:
            motors = np.searchsorted(arm.motor_joint, arm.transmission.joints)
            self.geared[np.ix_(motors, motors)] = arm.transmission.matrices.matrix
            self._refuse(self.rigid & np.isin(np.arange(m), motors), "a transmission moves rigid joints")
        self._refuse(~self.rigid & (arm.motor_inertia == 0), "rotor_inertia must be positive at elastic joints")
        self._refuse(self.rigid & (arm.gear.efficiency < 1), "efficiency must be 1 at rigid joints")
        self.inertia = (
            PlantInertia(arm, self.rigid) if arm.rotors is None else CarriedInertia(arm, arm.rotors, self.rigid)
        )

    def _refuse(self, motors: NDArray[np.bool_], reason: str) -> None:
        if np.any(motors):
            names = [name for name, bad in zip(self.arm.motor_names, motors, strict=True) if bad]
            raise RobotDescriptionError(f"{self.arm.robot.name}: cannot be simulated: {reason}; see {', '.join(names)}")

    def checked(self, state: ArrayLike, name: str = "state") -> Array:
        """States (…, 2n + 2m) as an array; StateError unless they are finite and of this plant."""
        size = 2 * (self.arm.robot.n + len(self.rigid))
        if isinstance(state, str) or np.ndim(array := real_array(state, name)) == 0 or np.shape(array)[-1] != size:
            raise StateError(
                f"{name} must be finite and have shape ({size},) or (N, {size}): q, theta, qd, thetad, see "
                f"ElasticPlant.state; has shape {np.shape(state)}"
            )
        return array

    def parts(self, state: Array) -> State:
        """q, theta, qd, thetad of a state."""
        i, j, k = self._ends
        return State(state[..., :i], state[..., i:j], state[..., j:k], state[..., k:])

    def state(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """State with links at q, qd, (n,) or (N, n), and motors that follow with unloaded springs.

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        positions, rates = joint_states(self.arm.robot.n, q, qd)
        theta, thetad = (self.arm.motors_following(x) for x in (positions, rates))
        return np.concatenate([positions, theta + self.unloaded, rates, thetad], axis=-1)

    @cached_property
    def unloaded(self) -> Array:
        """Deflections (m,) of unloaded springs, rad or m; not zero for a pretensioned antagonistic pair."""
        zero = np.zeros(self.arm.robot.n)
        return self.arm.deflections(zero, zero, zero).delta

    def driven_inertia(self, q: Array) -> Array:
        """Inertia (m,) for drive gains: rotors, plus the links at q (n,) at rigid joints; kg m² or kg."""
        links = np.diagonal(self.arm.dynamics.mass_matrix(q))
        return self.arm.motor_inertia + np.where(self.rigid, links[self.arm.motor_joint], 0.0)

    def on_trajectory(self, *motion: ArrayLike) -> Array:
        """State of the arm on a trajectory: link motion, and the required motor motion.

        Damped springs are without transient, variable springs at nominal stiffness.

        Args:
            motion: q, qd, qdd, qddd, qdddd as for :meth:`ElasticArm.feedforward`, with its approximation of carried
                rotors and its errors; or as many derivatives as :func:`motor_jet` needs, with its errors.
        """
        if len(motion) == len(STATE_NAMES):
            command = self.arm.feedforward(*motion)
            position, velocity = command.motor_position, command.motor_velocity
        else:
            position, velocity = motor_jet(self.arm, motion).motor_position[:2]
        return np.concatenate([motion[0], position, motion[1], velocity], axis=-1)

    def deflection(self, theta: Array, q: Array) -> Array:
        """Deflections (…, m) from positions of motors (…, m) and links (…, n), or rates from velocities."""
        behind = theta @ self.geared.T if self.arm.transmission else theta
        delta: Array = behind - q[..., self.arm.motor_joint]
        return np.where(self.rigid, 0.0, delta) if self._any_rigid else delta

    def motor_load(self, spring: Array, thetad: Array) -> Array:
        """Motor loads (…, m) by springs, gear loss and friction, N m or N.

        Args:
            spring: spring efforts (…, m), N m or N; zero at rigid joints.
            thetad: motor velocities (…, m), rad/s or m/s.
        """
        return self.springs("motor_loads", spring, thetad)[0]

    def tool_efforts(self, q: Array, wrench: Array) -> Array:
        """Efforts (…, n) on the joints by the wrenches W that the robot exerts at its tools, -J' W, N m or N.

        Args:
            q: link positions (…, n), rad or m.
            wrench: W (…, 6), or (…, k, 6) of k tools, moment first, in the frame of the tool, N m and N.
        """
        rest, dynamics = np.zeros_like(q), self.arm.dynamics
        return dynamics.bias(q, rest) - dynamics.bias(q, rest, wrench=(wrench,))

    def rate(
        self, state: Array, motor_effort: Array, stiffness: Array | None = None, wrench: Array | None = None
    ) -> Array:
        """Time derivative of the state, in its shape.

        Args:
            state: q, theta, qd, thetad, see the class.
            motor_effort: motor efforts (…, m), N m or N.
            stiffness: (n,) commanded stiffness, N m/rad or N/m; by default nominal.
            wrench: wrenches that the robot exerts at its tools, as for :meth:`tool_efforts`; by default none.
        """
        return self._rate(state, motor_effort, self._loads(state, stiffness, wrench))

    def _rate(self, state: Array, motor_effort: Array, loads: _Loads) -> Array:
        q, _, qd, thetad = self.parts(state)
        efforts = (loads.links + loads.tools, motor_effort - loads.motor)
        change = np.concatenate([qd, thetad, self.inertia.accelerations(q, qd, thetad, *efforts)], axis=-1)
        if self._any_rigid:  # motors at rigid joints accelerate with their links
            qdd, thetadd = self.parts(change)[2:]
            thetadd[...] = np.where(self.rigid, qdd[..., self.arm.motor_joint], thetadd)
        return change

    def rate_and_powers(self, state: Array, motor_effort: Array, wrench: Array | None = None) -> tuple[Array, Array]:
        """Time derivative of the state, and powers (2, …), W, by one evaluation of springs, at nominal stiffness.

        The first power is from motors and wrench; the second is dissipated by friction, gears and dampers. See
        :meth:`rate`.
        """
        loads, (_, _, qd, thetad) = self._loads(state, wrench=wrench), self.parts(state)
        robot, lost = self.arm.robot, loads.lost
        if robot.joint_friction:
            # Joint friction is part of the joint efforts.
            rates = qd @ robot.coupling[0].T
            lost = lost + np.sum(rates * stacked([joint.friction_law for joint in robot.joints]).effort(rates), axis=-1)
        work = np.einsum("...i,...i", motor_effort, thetad)
        if np.ndim(loads.tools):
            work = work + np.einsum("...i,...i", loads.tools, qd)
        return self._rate(state, motor_effort, loads), np.array([work, lost])

    def _loads(self, state: Array, stiffness: Array | None = None, wrench: Array | None = None) -> _Loads:
        q, theta, qd, thetad = self.parts(state)
        links, motor, lost = self.springs.plant_efforts(q, qd, theta, thetad, stiffness=stiffness)
        return _Loads(links, motor, lost[..., 0], 0.0 if wrench is None else self.tool_efforts(q, wrench))


def require_plant(plant: object) -> None:
    """Raise TypeError unless the argument is an ElasticPlant."""
    if not isinstance(plant, ElasticPlant):
        raise TypeError(f"plant must be an ElasticPlant, such as ElasticPlant(ElasticArm(robot)), is {shown(plant)}")
