# SPDX-License-Identifier: Apache-2.0
"""MuJoCo arm with a push on a body during a motion, and its measurements by sensors and MuJoCo."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from mujoco_arms import MujocoArm, commands

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array

Push = Callable[[float], tuple[int, Array]]
"""Function from time, s, to the index of a body, and force and moment (6,) at its center of mass in the world frame."""


class SensorRecord(NamedTuple):
    """Samples of sensors, and the joint efforts (K, n) of the push by MuJoCo's own Jacobian."""

    t: Array
    q: Array
    qd: Array
    motor_position: Array
    motor_velocity: Array
    motor_effort: Array
    tau: Array
    external: Array

    def sensors(self, *kinds: str) -> dict[str, Array]:
        """Arguments of an observer: of ``links``, ``torque``, ``motors``, ``efforts``."""
        names = {"links": ("q", "qd"), "torque": ("tau",), "motors": ("motor_position", "motor_velocity")}
        return {x: getattr(self, x) for kind in kinds for x in names.get(kind, ("motor_effort",))}


class PushedArm(MujocoArm):
    """Plant with a push, and sensors that are sampled with each command."""

    lossy = True  # so that its losses, and the push with them, are computed in each stage

    def __init__(self, robot: Any, push: Push, **options: Any) -> None:
        super().__init__(robot, **options)
        self.lossy, self.push = True, push
        self.model.tendon_stiffness[:] = 0.0  # springs are among the losses
        self._pushed = self._mujoco.MjData(self.model)

    def _losses(self, model: object, data: Any) -> None:
        super()._losses(model, data)
        body, wrench = self.push(data.time)
        data.xfrc_applied[:] = 0.0
        data.xfrc_applied[body + 1] = wrench

    def record(self, arm: ElasticArm, motion: Any, duration: float, period: float = 1e-3) -> SensorRecord:
        """Follow the feedforward of an arm with the drives' PD."""
        command, n, taken = commands(arm, motion, duration, period), self.n, []
        rows: list[tuple[Array, ...]] = []

        def sampled(t: float) -> tuple[Array, Array, Array]:
            effort, position, velocity = command(t)
            q, qd = self.state[0], self.state[1]
            taken.append(effort + self.kp * position + self.kd * velocity)
            # Half of the step that the command makes at this time.
            own = np.mean(taken[-2:], axis=0) - self.kp * q[n:] - self.kd * qd[n:]
            delta = q[n:] - q[:n]
            tau = self._stiffness * delta + self._cubic * delta**3
            rows.append((np.atleast_1d(t), q[:n], qd[:n], q[n:], qd[n:], own, tau, self._efforts_of_push(t, q)))
            return effort, position, velocity

        self.run(sampled, motion, duration=duration, period=period)
        stacked = [np.array(x) for x in zip(*rows, strict=True)]
        return SensorRecord(stacked[0][:, 0], *stacked[1:])

    def _efforts_of_push(self, t: float, q: Array) -> Array:
        mujoco, data = self._mujoco, self._pushed
        body, wrench = self.push(t)
        data.qpos[:] = q
        mujoco.mj_kinematics(self.model, data)
        mujoco.mj_comPos(self.model, data)
        linear, angular = np.zeros((2, 3, self.model.nv))
        mujoco.mj_jacBodyCom(self.model, data, linear, angular, body + 1)
        found: Array = (linear.T @ wrench[:3] + angular.T @ wrench[3:])[: self.n]
        return found
