# SPDX-License-Identifier: Apache-2.0
"""Elastic arms in MuJoCo's compiled rollouts: hours of motions with stiction, under the PD of their drives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from mujoco_arms import MujocoArm, sent

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array
from eom_dynamics.trajectory import Fourier


class Samples(NamedTuple):
    """What exact sensors measure at 1 kHz, and when a push starts, s; infinite without one."""

    t: Array
    sensors: dict[str, Array]
    qdd: Array
    pushed: float


class RolledArm(MujocoArm):
    """A plant of the packaged robot with stiction for its friction, and without gear loss.

    Trajectories have the bits of :class:`.PushedArm`: springs, viscous friction and drives are those of the model.
    """

    def __init__(self, name: str, *, mass: float, stiction: float, step: float) -> None:
        """Build a plant with masses and inertias by a factor."""
        super().__init__(name, mass=mass, step=step)
        mujoco, model = self._mujoco, self.model
        model.dof_frictionloss[:] = np.where(model.dof_frictionloss > 0, stiction, 0.0)
        self.hold = round(1e-3 / step)
        model.tendon_stiffness[:], model.tendon_stiffnesspoly[:, 1] = self._stiffness, self._cubic
        for k in range(self.n):
            joint = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, f"motor_{k}")
            model.dof_damping[model.jnt_dofadr[joint]] = self._viscous[k]
            model.dof_frictionloss[model.jnt_dofadr[joint]] = stiction
        model.actuator_biasprm[:, 1], model.actuator_biasprm[:, 2] = -self.kp, -self.kd

    def rolled(
        self, arm: ElasticArm, motions: Sequence[Fourier], seconds: float, pushes: Sequence[tuple[float, Array]] = ()
    ) -> list[Samples]:
        """Samples of motions by the feedforward of an arm; pushes are times and forces at the last link."""
        from mujoco import rollout

        mujoco, n, count = self._mujoco, self.n, round(1e3 * seconds)
        spec = mujoco.mjtState
        taken, starts, inputs = [], [], []
        for k, motion in enumerate(motions):
            y = sent(arm, motion, 1e-3 * (np.arange(count) + 0.5))
            taken.append(y.effort + self.kp * y.position + self.kd * y.velocity)
            forces = np.zeros((count, 6 * self.model.nbody))
            if pushes:
                forces[round(1e3 * pushes[k][0]) :, 6 * n : 6 * n + 3] = pushes[k][1]
            inputs.append(np.repeat(np.hstack([taken[-1], forces]), self.hold, axis=0))
            y = arm.feedforward(*motion.derivatives(0.0))
            q, qd = motion.derivatives(0.0, order=1)
            data = mujoco.MjData(self.model)
            data.qpos[:], data.qvel[:] = np.r_[q, y.motor_position], np.r_[qd, y.motor_velocity]
            starts.append(np.empty(mujoco.mj_stateSize(self.model, spec.mjSTATE_FULLPHYSICS)))
            mujoco.mj_getState(self.model, data, starts[-1], spec.mjSTATE_FULLPHYSICS)
        threads = [mujoco.MjData(self.model) for _ in range(2)]
        both = spec.mjSTATE_CTRL | spec.mjSTATE_XFRC_APPLIED
        states, _ = rollout.rollout(self.model, threads, np.array(starts), np.array(inputs), control_spec=int(both))
        found = []
        for k, (rows, start, effort) in enumerate(zip(states, starts, taken, strict=True)):
            x = np.vstack([start, rows[self.hold - 1 : -1 : self.hold]])
            t, (q, theta, qd, thetad) = x[:, 0], np.split(x[:, 1 : 1 + 4 * n], 4, axis=1)
            # Half of the step that the command makes at this time.
            mean = np.vstack([effort[:1], (effort[1:] + effort[:-1]) / 2]) - self.kp * theta - self.kd * thetad
            tau = self._stiffness * (theta - q) + self._cubic * (theta - q) ** 3
            sensors = {"q": q, "qd": qd, "tau": tau, "motor_position": theta, "motor_velocity": thetad}
            qdd = motions[k].derivatives(t, 2)[2]
            found.append(Samples(t, sensors | {"motor_effort": mean}, qdd, pushes[k][0] if pushes else np.inf))
        return found
