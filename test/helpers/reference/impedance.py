# SPDX-License-Identifier: Apache-2.0
"""Impedance of an arm with elastic joints by its motors, of eom/impedance.hpp, by a root finder in place of cycles."""

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
    """Links, efforts of joints, feedforward of the motors; damping of joints, and friction of motors, in no effort."""

    q: Array
    tau: Array
    motors: Any
    damping: Array
    friction: Array


class Impedance:
    """The law for an arm."""

    def __init__(self, arm: ElasticArm, gains: Gains) -> None:
        self.arm, self.gains, self.kinematics = arm, gains, Kinematics(arm.robot)
        self.n = arm.robot.n
        self.by_tools = bool(np.any(gains.tool_stiffness)) and bool(arm.robot.tools)

    def pull(self, q: Array, target: Array, inertia: Array) -> tuple[Array, Array]:
        """Efforts and damping (n, n) of the springs between links and target."""
        N = np.diag(np.broadcast_to(np.asarray(self.gains.stiffness, dtype=float), self.n))
        if not self.by_tools:
            return N @ (target - q), self.damping(N, inertia)
        A, D, effort = *np.zeros((2, self.n, self.n)), np.zeros(self.n)
        k = np.asarray(self.gains.tool_stiffness)
        for tool in self.arm.robot.tools:
            (here, J), (there, J_there) = (self._at(x, tool.name) for x in (q, target))
            turned = np.trace(np.diag(k[3:])) / 2 * np.eye(3) - np.diag(k[3:])
            turned = turned @ there[:3, :3] @ here[:3, :3].T
            moment = [turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]]
            effort += J.T @ np.r_[moment, k[:3] * (there[:3, 3] - here[:3, 3])]
            A += J_there.T @ np.diag(np.r_[k[3:], k[:3]]) @ J_there
            mobility = np.maximum((J**2 / inertia).sum(axis=1), 1e-300)
            D += 2 * self.gains.damping_ratio * J.T @ np.diag(np.sqrt(np.r_[k[3:], k[:3]] / mobility)) @ J
        series = N @ np.linalg.pinv(100 * A + N) @ N
        return effort + series @ (target - q), self.damping(series, inertia) + D

    def damping(self, K: Array, inertia: Array) -> Array:
        """Damping of joints with these springs."""
        return 2 * self.gains.damping_ratio * np.diag(np.sqrt(inertia * (np.diag(K) + 0.49 * inertia)))

    def potential(self, q: Array, target: Array) -> float:
        """Energy of the tools' springs."""
        energy, k = 0.0, np.asarray(self.gains.tool_stiffness)
        for tool in self.arm.robot.tools:
            here, there = (self.kinematics.pose(x, tool.name) for x in (q, target))
            away = there[:3, 3] - here[:3, 3]
            xyz = Rotation.from_matrix(there[:3, :3] @ here[:3, :3].T).as_quat()[:3]
            energy += 0.5 * k[:3] @ away**2 + 2 * k[3:] @ np.square(xyz)
        return float(energy)

    def _at(self, q: Array, tool: str) -> tuple[Array, Array]:
        """Pose of a tool, and its Jacobian with rows in the base's directions."""
        C, J = self.kinematics.pose(q, tool), self.kinematics.jacobian(q, tool)
        return C, np.vstack([C[:3, :3] @ J[:3], C[:3, :3] @ J[3:]])

    def command(
        self, q: Array, reference: Array, free: bool, inertia: Array, given: dict[str, Any]
    ) -> tuple[Array, Any, Array]:
        """Efforts of joints, feedforward of the motors, and damping where the links are at q."""
        nothing = np.zeros((self.n, self.n))
        added = (nothing[0], self.damping(nothing, inertia)) if free else self.pull(q, reference[0], inertia)
        y, (effort, damping) = self.arm.feedforward(q, *reference[1:], **given), added
        limits = [joint.limits for joint in self.arm.robot.independent_joints]
        back = np.clip(q, [x.lower for x in limits], [x.upper for x in limits]) - q
        if not np.any(effort) and not np.any(back):
            return y.tau, y, damping
        tau = y.tau + effort
        if np.any(back):
            used = 0.0 if free or self.by_tools else np.asarray(self.gains.stiffness)  # tools that leave enough
            k = np.zeros(self.n)
            for _ in range(4):  # under the effort that it adds
                compliance = np.maximum(self.compliance(q, reference, tau + k * back, y, given), self.resting)
                left = np.maximum(0.7 / np.maximum(compliance, 1e-9) - used, 0.0)
                k = np.where(back, np.minimum(900.0 * inertia, left), 0.0)
            tau = tau + k * back
            damping = damping + np.diag(1.4 * np.sqrt(inertia * k) * np.minimum(np.abs(back) / 0.02, 1.0))
        motors = self.motors(q, reference, tau, y, given)
        return tau, y._replace(motor_position=motors[0], motor_velocity=motors[1], motor_effort=motors[3]), damping

    def motors(self, q: Array, reference: Array, tau: Array, y: Any, given: dict[str, Any]) -> Any:
        """Motion and efforts of the motors at other efforts of joints."""
        commands = self.arm.functions.commands(given.get("commanded_stiffness", ()), None, ())
        if self.arm.side.presliding.any():
            commands.append(given["friction_state"])
        return self.arm.functions("motors", q, *reference[1:3], tau, y.taud, y.taudd, *commands)

    def compliance(self, q: Array, reference: Array, tau: Array, y: Any, given: dict[str, Any]) -> Array:
        """Rates of the sides of springs with efforts, by differences."""
        less, more = (self.sides(self.motors(q, reference, tau + h, y, given)[0]) for h in (-1e-3, 1e-3))
        return (more - less) / 2e-3

    def comply(
        self,
        reference: Array,
        motors: Array,
        near: Array,
        *,
        free: bool,
        inertia: Array,
        left: float = 1.0,
        **given: Any,
    ) -> Compliance:
        """The law at positions and velocities of the motors (2, m), for a reference (5, n); links are near some.

        A part of the compensation of friction is left.
        """
        theta, thetad = (self.sides(x) for x in motors)

        def away(q: Array) -> Array:
            return theta - self.sides(self.command(q, reference, free, inertia, given)[1].motor_position)

        q = root(away, near, tol=1e-13).x
        tau, y, damping = self.command(q, reference, free, inertia, given)
        turning = self.motors(q, np.stack([reference[0], thetad, *reference[2:]]), tau, y, given)[3]
        share = 0.8 * left * free * thetad**2 / (thetad**2 + 0.02**2)
        friction = share[self.arm.side.motor_joint] * (turning - y.motor_effort)
        return Compliance(q, tau, y, damping @ (reference[1] - thetad), friction)

    def efforts(self, found: Compliance) -> tuple[Array, Array]:
        """Efforts of motors and joints with damping."""
        side = self.arm.side
        shared = found.damping[side.motor_joint] / np.bincount(side.motor_joint)[side.motor_joint]
        effort = found.motors.motor_effort + found.friction
        return effort + np.array(side.motor_loads(list(shared))), found.tau + found.damping

    def inertia(self, q: Array, **given: Any) -> Array:
        """Inertia of each joint with its rotors, while the others rest."""
        rest = self.arm.feedforward(q, 0 * q, 0 * q, **given)
        self.resting = self.compliance(q, np.zeros((5, self.n)), rest.tau, rest, given)
        moved = (self.arm.feedforward(q, 0 * q, row, **given) for row in np.eye(self.n))
        return np.array([(y.motor_effort - rest.motor_effort) @ y.motor_acceleration for y in moved])

    def sides(self, x: Array) -> Array:
        """Mean of the motors of each joint at the joint sides of its springs."""
        side = np.array(self.arm.side.joint_sides(list(x)))
        return np.array([side[self.arm.motor_joint == joint].mean() for joint in range(self.n)])
