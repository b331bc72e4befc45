# SPDX-License-Identifier: Apache-2.0
"""Arms with elastic joints in MuJoCo, with drives that hold or interpolate commands and act after a delay.

A motor is a body that spins in place, with the rotor's inertia; a spring is a tendon over motor and link. The PD of the
drives is an actuator, and runs at each stage of the integrator, or is sampled by a :class:`DriveLoop`. Cubic springs,
friction and gear loss are efforts that this module computes by the formulas of docs/actuators.md; Coulomb friction with
the sign of the velocity is MuJoCo's ``frictionloss``.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from chains import packaged_parameters
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from eom_dynamics import ElasticArm, robot_from_parameters
from eom_dynamics.actuators.drive_units import FeedbackDelay
from eom_dynamics.arrays import Array
from eom_dynamics.elastic import DriveCommand
from eom_dynamics.robot.inertia import steiner

Command = Callable[[float], tuple[Array, Array, Array]]
"""Function from the time of computation, s, to effort, position and velocity of the motors."""


HARD_FRICTION = 'solreffriction="2e-4 1" solimpfriction="0.9999 0.9999 0.001"'
"""Solver parameters for motors that stop within 0.2 ms below their Coulomb friction."""


def text(numbers: ArrayLike) -> str:
    return " ".join(f"{x:.17g}" for x in np.ravel(numbers))


def sent(arm: ElasticArm, motion: Any, t: Array) -> DriveCommand:
    """Drive commands for a motion at times t (N,), with references for the times of the measurements."""
    states = motion.derivatives(t)
    command = arm.feedforward(*states)
    if arm.side.presliding.any():
        z = arm.friction_states(command.motor_position, command.motor_velocity)
        command = arm.feedforward(*states, friction_state=z)
    return arm.drive_command(command, *states[:3])


def commands(arm: ElasticArm, motion: Any, duration: float, period: float) -> Command:
    """Commands from time 0 on, half a period ahead."""
    y = sent(arm, motion, period * (np.arange(round(duration / period) + 1) + 0.5))
    return held(period, y.effort, y.position, y.velocity)


def held(period: float, *rows: Array) -> Command:
    """Commands of effort, position and velocity, each (N, n), at multiples of a period; the last command is held."""
    return lambda t: (lambda k: (rows[0][k], rows[1][k], rows[2][k]))(min(max(round(t / period), 0), len(rows[0]) - 1))


class DriveLoop:
    """Samples of a drive: motor positions, and velocities that are exact, differences, or differences after a low-pass.

    Attributes:
        period: s.
        delay: mean age of its measurements.
    """

    def __init__(self, period: float, time_constant: float | None = None, *, noise: float = 0.0) -> None:
        """Set how velocities are measured.

        Args:
            period: s.
            time_constant: of the low-pass, s, 0 for differences alone; None for exact velocities.
            noise: standard deviation of positions, and thus of differences; rad or m.
        """
        self.period, self._filters, self._share = period, time_constant is not None, 1.0
        age = period if self._filters else 0.5 * period
        if time_constant:
            self._share = -np.expm1(-period / time_constant)
            age += period * (1 / self._share - 1)
        self.delay = FeedbackDelay(0.5 * period, age)
        self._noise = noise
        self.restart()

    def restart(self) -> None:
        """Clear all samples, and repeat the noise: the first velocity of a run is exact."""
        self._last: tuple[Array, Array] | None = None
        self._random = np.random.default_rng(0)

    def measured(self, theta: Array, thetad: Array) -> tuple[Array, Array]:
        """Positions and velocities by one sample."""
        theta = theta + self._noise * self._random.standard_normal(theta.shape)
        if self._last and self._filters:
            last, filtered = self._last
            thetad = filtered + self._share * ((theta - last) / self.period - filtered)
        self._last = theta, thetad.copy()
        return self._last


class MujocoArm:
    """Arm with linear or cubic springs, with the parameters of its file, or perturbed.

    Attributes:
        step: of the integrator, RK4, s.
        state: positions and velocities (2, 2 n) of links and motors at the computation of the command.
        measured: positions and velocities of the motors (2, n).
    """

    def __init__(
        self,
        robot: str | Mapping[str, Any],
        *,
        step: float = 2.5e-4,
        natural_frequency: float = 70.0,
        stiffness: float = 1.0,
        mass: float = 1.0,
        friction: float = 1.0,
        rotor_inertia: float = 1.0,
        stiction: Array | None = None,
        hard: bool = True,
        damping_ratio: float = 0.0,
    ) -> None:
        """Build a plant.

        Args:
            robot: name of a packaged one, or parameters of a serial chain.
            step: of the integrator, s.
            natural_frequency: of the PD, rad/s.
            stiffness, mass, friction, rotor_inertia: factors of the parameters, not of the PD's gains.
            stiction: (n,) Coulomb friction with the sign of the velocity, not smoothed, N m or N.
            hard: whether that is :data:`HARD_FRICTION`, not MuJoCo's default, which creeps.
            damping_ratio: of springs with their motors, which the robot's file does not have.
        """
        import mujoco

        self._mujoco, self.step = mujoco, step
        parameters = packaged_parameters(robot) if isinstance(robot, str) else robot
        robot = robot_from_parameters(parameters)
        entries = [parameters["joints"][joint.name] for joint in robot.joints]
        self.n, self.names = robot.n, robot.joint_names
        self._stiffness = np.array([float(x["elasticity"]["stiffness"]) for x in entries]) * stiffness
        self._cubic = np.array([float(x["elasticity"].get("cubic", 0.0)) for x in entries]) * stiffness
        self._rotor = np.array([float(x["rotor_inertia"]) for x in entries])
        actuators = [x.get("actuator", {}) for x in entries]
        laws = [x.get("friction", {}) for x in actuators]
        self._viscous = np.array([x.get("viscous", 0.0) for x in laws]) * friction
        self._dry, self._solver = np.zeros(self.n) if stiction is None else stiction, hard * HARD_FRICTION
        self._coulomb = np.array([x.get("coulomb", 0.0) for x in laws]) * friction * (stiction is None)
        self._smoothing = np.array([x.get("smoothing_velocity", 0.01) for x in laws])
        self._efficiency = np.array([x.get("efficiency", 1.0) for x in actuators])
        self.lossy = bool(np.any([self._cubic, self._viscous, self._coulomb, self._efficiency < 1]))
        self.kp, self.kd = natural_frequency**2 * self._rotor, 2 * natural_frequency * self._rotor
        self._rotor *= rotor_inertia
        self._damping = 2 * damping_ratio * np.sqrt(self._stiffness * self._rotor)
        self.model = mujoco.MjModel.from_xml_string(self._mjcf(robot, mass))
        for k, joint in enumerate(robot.joints, start=1):
            # Inertias that MuJoCo would refuse for rounding are set after compilation.
            about_center = joint.inertia_about_origin - steiner(joint.mass, joint.center_of_mass)
            moments, axes = np.linalg.eigh(about_center)
            axes[:, 2] *= np.linalg.det(axes)
            x, y, z, w = Rotation.from_matrix(axes).as_quat()
            self.model.body_inertia[k], self.model.body_iquat[k] = mass * np.maximum(moments, 1e-9), [w, x, y, z]
        mujoco.mj_setConst(self.model, mujoco.MjData(self.model))
        self._robot, self.state = robot, np.zeros((2, 2 * self.n))
        self.measured = self.state[:, self.n :]

    def _mjcf(self, robot: Any, mass: float) -> str:
        head, tail, motors, springs, drives = "", "", "", "", ""
        kinds = {"revolute": "hinge", "prismatic": "slide"}
        for k, joint in enumerate(robot.joints):
            x, y, z, w = Rotation.from_matrix(joint.reference_pose[:3, :3]).as_quat()
            head += (
                f'<body pos="{text(joint.reference_pose[:3, 3])}" quat="{text(np.array([w, x, y, z]))}">'
                f'<joint name="link_{k}" type="{kinds[joint.type]}" axis="{text(joint.axis)}"/>'
                f'<inertial pos="{text(joint.center_of_mass)}" mass="{mass * joint.mass:.17g}" diaginertia="1 1 1"/>'
            )
            tail += "</body>"
            motors += (
                f'<body><joint name="motor_{k}" axis="0 0 1" frictionloss="{self._dry[k]:.17g}" {self._solver}/>'
                f'<inertial pos="0 0 0" mass="1" diaginertia="{text(np.full(3, self._rotor[k]))}"/></body>'
            )
            linear = 0.0 if self.lossy else self._stiffness[k]
            springs += (
                f'<fixed stiffness="{linear:.17g}" damping="{self._damping[k]:.17g}" springlength="0">'
                f'<joint joint="motor_{k}" coef="1"/><joint joint="link_{k}" coef="-1"/></fixed>'
            )
            drives += (
                f'<general joint="motor_{k}" gainprm="1" biastype="affine" '
                f'biasprm="0 {-self.kp[k]:.17g} {-self.kd[k]:.17g}"/>'
            )
        return (
            f'<mujoco><compiler angle="radian"/><option integrator="RK4" timestep="{self.step}" '
            f'gravity="{text(robot.gravity)}"><flag contact="disable"/></option><worldbody>{head}{tail}{motors}'
            f"</worldbody><tendon>{springs}</tendon><actuator>{drives}</actuator></mujoco>"
        )

    def _losses(self, _: object, data: Any) -> None:
        """Springs, friction and gear loss."""
        n = self.n
        delta, speed = data.qpos[n:] - data.qpos[:n], data.qvel[n:]
        effort = self._stiffness * delta + self._cubic * delta**3
        friction = self._viscous * speed + self._coulomb * np.tanh(speed / self._smoothing)
        data.qfrc_passive[:n] += effort
        data.qfrc_passive[n:] -= effort * self._efficiency ** -np.tanh(effort * speed / 0.1) + friction

    def run(
        self,
        command: Command,
        motion: Any,
        *,
        duration: float,
        period: float,
        delay: float = 0.0,
        interpolates: bool = False,
        drive: DriveLoop | None = None,
        start: tuple[Array, Array] | None = None,
    ) -> tuple[Array, Array, Array]:
        """Follow commands from the exact state of the nominal arm at time 0; returns times, and positions.

        Args:
            command: computes commands.
            motion: of the links, for the initial state.
            duration: s.
            period: of the commands, s; a multiple of the step.
            delay: from a command to its effect, s; a multiple of the step.
            interpolates: True if the drives interpolate linearly from the previous to the last command (to the middle
                of each step); False if they hold the last command.
            drive: how the drives measure; by default without samples.
            start: positions and velocities of the motors at time 0; by default from the nominal arm.

        Returns:
            Times (T,), and positions of links (T, n) and motors (T, n) then.
        """
        mujoco, n = self._mujoco, self.n
        data = mujoco.MjData(self.model)
        if start is None:
            y = ElasticArm(self._robot).feedforward(*motion.derivatives(0.0))
            start = y.motor_position, y.motor_velocity
        q, qd = motion.derivatives(0.0, order=1)
        data.qpos[:], data.qvel[:] = np.r_[q, start[0]], np.r_[qd, start[1]]
        steps, hold, late = (round(x / self.step) for x in (duration, period, delay))
        states = np.empty((steps + 1, 2, 2 * n))
        states[0] = data.qpos, data.qvel
        taken = np.zeros(n)

        def computed(number: int) -> Array:
            """Efforts at zero position and velocity of the motors, of the command at a step."""
            self.state = states[max(number, 0)]
            self.measured = self.state[:, n:]
            effort, position, velocity = command(number * self.step)
            reference: Array = effort + self.kp * position + self.kd * velocity
            return reference

        own_feedback = (-self.kp, -self.kd) if drive is None else (0.0, 0.0)
        self.model.actuator_biasprm[:, 1], self.model.actuator_biasprm[:, 2] = own_feedback
        feedback = np.zeros(n)
        if drive is not None:
            drive.restart()
        mujoco.set_mjcb_passive(self._losses if self.lossy else None)
        try:
            for k in range(steps):
                if (k - late) % hold == 0 or k == 0:
                    number = (k - late) // hold * hold
                    former = computed(number - hold) if interpolates and k == 0 else taken
                    taken = computed(number)
                left = 1 - ((k - late) % hold + 0.5) / hold if interpolates else 0.0
                if drive is not None and k % round(drive.period / self.step) == 0:
                    theta, thetad = drive.measured(data.qpos[n:], data.qvel[n:])
                    feedback = self.kp * theta + self.kd * thetad
                data.ctrl[:] = taken + left * (former - taken) - feedback
                mujoco.mj_step(self.model, data)
                states[k + 1] = data.qpos, data.qvel
        finally:
            mujoco.set_mjcb_passive(None)
        return self.step * np.arange(1, steps + 1), states[1:, 0, :n], states[1:, 0, n:]
