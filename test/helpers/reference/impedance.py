# SPDX-License-Identifier: Apache-2.0
"""Impedance of an arm with elastic joints by its motors, of eom/impedance.hpp: potentials, and a root in place of cycles."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root
from scipy.spatial.transform import Rotation

from eom_dynamics import ElasticArm, Kinematics
from eom_dynamics.arrays import Array


class Gains(NamedTuple):
    """Settings of the loop, as there."""

    stiffness: Any = 0.0
    tool_stiffness: Any = (0.0,) * 6
    damping_ratio: float = 0.7


class Compliance(NamedTuple):
    """Links, efforts of joints and motors without damping, damping of joints, and their stiffness (n, n)."""

    q: Array
    tau: Array
    motor_effort: Array
    damping: Array
    K: Array


class Impedance:
    """The law for an arm."""

    def __init__(self, arm: ElasticArm, gains: Gains) -> None:
        self.arm, self.gains, self.kinematics = arm, gains, Kinematics(arm.robot)
        self.n = arm.robot.n
        self.by_tools = bool(np.any(gains.tool_stiffness)) and bool(arm.robot.tools)

    def pull(self, q: Array, target: Array) -> tuple[Array, Array]:
        """Efforts and stiffness of the springs between links and target."""
        N = np.diag(np.broadcast_to(np.asarray(self.gains.stiffness, dtype=float), self.n))
        if not self.by_tools:
            return N @ (target - q), N
        A, effort = np.zeros((2, self.n, self.n)), np.zeros(self.n)
        k = np.asarray(self.gains.tool_stiffness)
        for tool in self.arm.robot.tools:
            (here, J), (there, J_there) = (self._at(x, tool.name) for x in (q, target))
            turned = np.trace(np.diag(k[3:])) / 2 * np.eye(3) - np.diag(k[3:])
            turned = turned @ there[:3, :3] @ here[:3, :3].T
            moment = [turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]]
            effort += J.T @ np.r_[moment, k[:3] * (there[:3, 3] - here[:3, 3])]
            A += [M.T @ np.diag(np.r_[k[3:], k[:3]]) @ M for M in (J, J_there)]
        series = N @ np.linalg.pinv(A[1] + N) @ N
        return effort + series @ (target - q), A[0] + series

    def potential(self, q: Array, target: Array) -> float:
        """Energy of the tools' springs."""
        energy, k = 0.0, np.asarray(self.gains.tool_stiffness)
        for tool in self.arm.robot.tools:
            here, there = (self.kinematics.pose(x, tool.name) for x in (q, target))
            away = there[:3, 3] - here[:3, 3]
            w, *xyz = Rotation.from_matrix(there[:3, :3] @ here[:3, :3].T).as_quat(scalar_first=True)
            energy += 0.5 * k[:3] @ away**2 + 2 * k[3:] @ np.square(xyz)
        return float(energy)

    def _at(self, q: Array, tool: str) -> tuple[Array, Array]:
        """Pose of a tool, and its Jacobian with rows in the base's directions."""
        C, J = self.kinematics.pose(q, tool), self.kinematics.jacobian(q, tool)
        return C, np.vstack([C[:3, :3] @ J[:3], C[:3, :3] @ J[3:]])

    def command(self, q: Array, reference: Array, free: bool, given: dict[str, Any]) -> tuple[Array, Any, Array]:
        """Efforts of joints, feedforward (…) of the motors, and stiffness where the links are at q."""
        effort, K = (np.zeros(self.n), np.zeros((self.n, self.n))) if free else self.pull(q, reference[0])
        y = self.arm.feedforward(q, *reference[1:], **given)
        if not np.any(effort):
            return y.tau, y, K
        stiffness = given.get("commanded_stiffness", ())
        commands = self.arm.spring_set.commands(stiffness, None, ())
        if self.arm.side.presliding.any():
            commands.append(given["friction_state"])
        tau = y.tau + effort
        motors = self.arm.functions("motors", q, *reference[1:3], tau, y.taud, y.taudd, *commands)
        return tau, y._replace(motor_position=motors[0], motor_velocity=motors[1], motor_effort=motors[3]), K

    def comply(
        self, reference: Array, motors: Array, near: Array, *, free: bool, inertia: Array, **given: Any
    ) -> Compliance:
        """The law at positions and velocities of the motors (2, m), for a reference (5, n); links are near some."""
        theta, thetad = (self.sides(x) for x in motors)
        found = root(lambda q: theta - self.sides(self.command(q, reference, free, given)[1].motor_position), near, tol=1e-13)
        q = found.x
        tau, y, K = self.command(q, reference, free, given)
        rate = np.sqrt(inertia * (np.diag(K) + 0.49 * inertia))
        return Compliance(q, tau, y.motor_effort, 2 * self.gains.damping_ratio * rate * (reference[1] - thetad), K)

    def inertia(self, q: Array, **given: Any) -> Array:
        """Inertia of each joint with its rotors, while the others rest."""
        rest = self.arm.feedforward(q, 0 * q, 0 * q, **given)
        moved = (self.arm.feedforward(q, 0 * q, row, **given) for row in np.eye(self.n))
        return np.array([(y.motor_effort - rest.motor_effort) @ y.motor_acceleration for y in moved])

    def sides(self, x: Array) -> Array:
        """Mean of the motors of each joint at the joint sides of its springs."""
        side = np.array(self.arm.side.joint_sides(list(x)))
        return np.array([side[self.arm.motor_joint == joint].mean() for joint in range(self.n)])
