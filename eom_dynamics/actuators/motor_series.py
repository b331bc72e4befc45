# SPDX-License-Identifier: Apache-2.0
"""The motor side of a motion to any order, in the reduced and, exactly, in the complete model of rotors.

In the reduced model m derivatives of the motor effort take m + 4 of q. In the complete one links feel the acceleration
of the rotors that they carry, which follow from the springs behind, so that the motion is found joint by joint, from
those on which no later rotor acts to the base: A. De Luca and P. Lucibello, "A general algorithm for dynamic feedback
linearization of robots with elastic joints", IEEE Int. Conf. Robotics and Automation (1998); G. Buondonno and A. De
Luca, "Efficient computation of inverse dynamics and feedback linearization for VSA-based robots", IEEE Robotics and
Automation Letters 1 (2016). Each step costs two derivatives: a chain of n joints takes 2 n + 2 of q for the effort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..drivetrain.springs import AntagonisticPair, DampedSpring, VariableSpring
from ..exceptions import RobotDescriptionError, StateError
from ..jet import Jet, leibniz
from ..kinematics import body_poses
from ..recursion import inverse_dynamics, link_tree
from ..robot import Robot
from ..states import joint_states, wrenches
from .elastic_arm import ElasticArm

Array = NDArray[np.float64]

Vector = Jet
"""A jet of vectors (…, 3)."""


class MotorSeries(NamedTuple):
    """Efforts and motors with their time derivatives: entry k is the k-th derivative.

    Attributes:
        tau: efforts on the links, each (n,) or (N, n), N m or N; to order m + 2.
        motor_position: each (m,) or (N, m), rad or m, on the link side of the gear; to order m + 2.
        motor_effort: alike, N m or N; to order m.
    """

    tau: tuple[Array, ...]
    motor_position: tuple[Array, ...]
    motor_effort: tuple[Array, ...]


def derivatives_needed(arm: ElasticArm, order: int = 0) -> int:
    """How many time derivatives of q the motor effort and ``order`` derivatives of it take.

    Raises:
        RobotDescriptionError: the rotors of an arm's joints act on each other's links; see :func:`motor_series`.
    """
    return order + 2 + 2 * _depth(arm, _elimination(arm))


def motor_series(
    arm: ElasticArm,
    motion: Sequence[ArrayLike],
    order: int = 0,
    *,
    wrench: Sequence[ArrayLike] = (),
    stiffness: Sequence[ArrayLike] = (),
    deflection: ArrayLike | None = None,
) -> MotorSeries:
    """The motor side of a motion of the links, exactly, with ``order`` derivatives of the motor effort.

    It costs some milliseconds in the reduced model and some hundred in the complete one, little more for many states
    than for one.

    Args:
        arm: the arm.
        motion: q and :func:`derivatives_needed` or more time derivatives, each (n,) or (N, n).
        order: of the last derivative of the motor effort.
        wrench: tool wrench and time derivatives, each (6,) or (N, 6), or with tools as of
            :meth:`Dynamics.inverse_dynamics`; what is not given is zero.
        stiffness: k, kd, … of joints where it is commanded, each (n,) or (N, n); what is not given is the nominal
            stiffness, and no change of it.
        deflection: as of :meth:`ElasticArm.feedforward`.

    Raises:
        StateError: an argument has the wrong shape, is not finite, or is missing; or a stiffness is out of range.
        RobotDescriptionError: in the complete model, the rotors of some joints act on each other's links, so that no
            motion of the links tells that of the motors by algebra.
    """
    robot, groups = arm.robot, _elimination(arm)
    needed = order + 2 + 2 * _depth(arm, groups)
    if len(motion) <= needed:
        raise StateError(f"motion must have q and {needed} time derivatives of it, has {max(len(motion) - 1, 0)}")
    states = joint_states(robot.n, *motion[: needed + 1])
    samples = states[0].shape[:-1]
    columns = [list(np.moveaxis(x, -1, 0)) for x in states]
    forces = [W.reshape(*samples, -1) for W in wrenches(wrench, needed - 1, robot.wrench_shape, samples)]
    rows = [list(np.moveaxis(W, -1, 0)) for W in forces] if len(wrench) else []
    efforts = inverse_dynamics(link_tree(robot), columns, rows)
    # What no joint moves is a plain number.
    tau = [Jet([np.broadcast_to(row[i], samples) for row in efforts]) for i in range(robot.n)]
    carried = _Carried(arm, states) if arm.rotors is not None else None
    k = [np.asarray(x) for x in _commanded(arm, stiffness, samples, needed)]
    memory = None if deflection is None else arm.deflection_state(deflection, states[0].shape)

    position: list[Any] = [None] * len(arm.motor_joint)
    load: list[Any] = [None] * len(arm.motor_joint)
    for joints in groups:
        motors = [i for i, joint in enumerate(arm.motor_joint) if joint in joints]
        for joint in joints:
            if carried is not None:
                tau[joint] = tau[joint] + carried.on_link(joint, position)
        _springs(arm, joints, tau, Jet(k), memory, position, load)
        for i in motors:
            position[i] = position[i] + Jet([x[..., arm.motor_joint[i]] for x in states])
        _through_transmission(arm, joints, position, load)
    effort = []
    for i in range(len(position)):
        velocity = position[i].rate
        spin = arm.motor_inertia[i] * velocity.rate if carried is None else carried.on_motor(i, position)
        if not arm.ideal:
            joint = robot.independent_joints[arm.motor_joint[i]].actuator
            load[i] = joint.gear.load_series(load[i], velocity) + joint.friction.effort_series(velocity)
        effort.append(spin + load[i])
    return MotorSeries(_stacked(tau, order + 3), _stacked(position, order + 3), _stacked(effort, order + 1))


class _Carried:
    """What carried rotors do to links and to their own motors."""

    def __init__(self, arm: ElasticArm, states: Sequence[Array]) -> None:
        """Find axes and spins for motions q, qd, … of the links, each (n,) or (N, n)."""
        assert arm.rotors is not None
        robot, self._rotors = arm.robot, arm.rotors
        self._axes, spins = _axes(robot, states)
        self._links = [_turning(robot, joint) for joint in range(robot.n)]
        self._carriers = [_ancestors(robot, mount.carrier) for mount in self._rotors.mounts]
        self._own: list[Vector] = []  # spin axes, which turn with their links
        self._turn: list[Jet] = []  # their links' turn about them
        frames = _rotations(robot, states[0])
        for mount in self._rotors.mounts:
            if mount.carrier < 0:
                zero = np.zeros((*states[0].shape[:-1], 3))
                self._own.append(Jet([zero + mount.axis] + [zero] * (len(states) - 1)))
                self._turn.append(Jet([zero[..., 0]] * (len(states) - 1)))
                continue
            spin = spins[mount.carrier]
            self._own.append(_carried_along(frames[mount.carrier] @ mount.axis, spin))
            self._turn.append(_dot(spin, self._own[-1]))

    def on_link(self, joint: int, position: Sequence[Any]) -> Jet:
        """Effort on the links at a joint, of motors at these positions; those it does not feel may be unknown."""
        total: Any = None
        for i, motor in enumerate(position):
            for body, ratio in self._links[joint]:
                if body in self._carriers[i]:
                    # The moment that takes along the spin's angular momentum.
                    momentum = _scaled(self._momentum(i, motor), self._own[i]).rate
                    term = ratio * _dot(self._axes[body], momentum)
                    total = term if total is None else total + term
        return Jet([0.0] * len(self._axes[0])) if total is None else total

    def on_motor(self, i: int, position: Sequence[Any]) -> Jet:
        """Effort that accelerates the rotor, on the link side of the gear."""
        return self._rotors.gear_ratio[i] * self._momentum(i, position[i]).rate

    def _momentum(self, i: int, motor: Jet) -> Jet:
        """Of the spin, kg m²/s."""
        return self._rotors.inertia[i] * (self._turn[i] + self._rotors.gear_ratio[i] * motor.rate)


def _elimination(arm: ElasticArm) -> list[tuple[int, ...]]:
    """Joints in the order in which they tell their motors, those that do together in one group."""
    waiting = [set(group[0]) for group in (arm.coupled, arm.transmission) if group is not None]
    if len(waiting) == 2 and waiting[0] & waiting[1]:
        waiting = [waiting[0] | waiting[1]]
    waiting += [{joint} for joint in range(arm.robot.n) if not any(joint in group for group in waiting)]
    if arm.rotors is None:
        return [tuple(sorted(group)) for group in waiting]
    felt = [_felt(arm, joint) for joint in range(arm.robot.n)]
    order: list[tuple[int, ...]] = []
    known: set[int] = set()
    while waiting:
        ready = [group for group in waiting if set().union(*(felt[joint] for joint in group)) <= known]
        if not ready:
            names = ", ".join(arm.robot.joint_names[joint] for group in waiting for joint in sorted(group))
            raise RobotDescriptionError(
                f"{arm.robot.name}: rotors act on the links by which their own motion is known, among {names}: the "
                "complete model has no exact feedforward; mount them on links before these joints, or take the "
                "approximation of ElasticArm.feedforward"
            )
        order += [tuple(sorted(group)) for group in ready]
        known |= set().union(*ready)
        waiting = [group for group in waiting if group not in ready]
    return order


def _depth(arm: ElasticArm, groups: Sequence[tuple[int, ...]]) -> int:
    """How many times an effort becomes a position on the longest way to a motor's effort."""
    if arm.rotors is None:
        return 1
    steps = np.zeros(arm.robot.n, dtype=int)
    for joints in groups:
        behind = [steps[other] for joint in joints for other in _felt(arm, joint)]
        steps[list(joints)] = max(behind, default=0) + 1
    return int(steps.max())


def _felt(arm: ElasticArm, joint: int) -> set[int]:
    """Joints whose rotors act on the links at a joint."""
    assert arm.rotors is not None
    bodies = {body for body, _ in _turning(arm.robot, joint)}
    return {
        int(other)
        for other, mount, inertia in zip(arm.motor_joint, arm.rotors.mounts, arm.rotors.inertia, strict=True)
        if inertia and bodies & set(_ancestors(arm.robot, mount.carrier))
    }


def _turning(robot: Robot, joint: int) -> list[tuple[int, float]]:
    """Bodies that a joint variable turns, by their number, and how far for a unit of it."""
    E, _ = robot.coupling
    return [
        (body, float(E[body, joint]))
        for body, element in enumerate(robot.joints)
        if E[body, joint] and element.type != "prismatic"
    ]


def _ancestors(robot: Robot, body: int) -> list[int]:
    """A body and those that carry it."""
    row = []
    while body >= 0:
        row.append(body)
        body = robot.joints[body].parent
    return row


def _axes(robot: Robot, states: Sequence[Array]) -> tuple[list[Vector], list[Vector]]:
    """Joint axes and angular velocities of all bodies in the base frame; of joints that do not turn no axes."""
    frames, (E, _) = _rotations(robot, states[0]), robot.coupling
    axes: list[Vector] = []
    spins: list[Vector] = []
    still = Jet([np.zeros((*states[0].shape[:-1], 3))] * (len(states) - 1))
    for body, joint in enumerate(robot.joints):
        spin = spins[joint.parent] if joint.parent >= 0 else still
        axes.append(_carried_along(frames[body] @ joint.axis, spin))
        if joint.type != "prismatic":
            spin = spin + _scaled(Jet([x @ E[body] for x in states[1:]]), axes[-1])
        spins.append(spin)
    return axes, spins


def _rotations(robot: Robot, q: Array) -> list[Array]:
    """Rotation matrices (…, 3, 3) of all bodies to the base frame."""
    poses = [np.array([C[:3, :3] for C in body_poses(robot, row)]) for row in q.reshape(-1, robot.n)]
    return list(np.moveaxis(np.array(poses).reshape(*q.shape[:-1], -1, 3, 3), -3, 0))


def _carried_along(direction: Array, spin: Vector) -> Vector:
    """A direction (…, 3) that turns with a body: its rate is omega x it."""
    series = [direction]
    for k in range(len(spin)):
        series.append(leibniz(spin, series, k, np.cross))
    return Jet(series)


def _dot(x: Vector, y: Vector) -> Jet:
    length = min(len(x), len(y))
    return Jet([leibniz(x, y, k, lambda a, b: np.sum(a * b, axis=-1)) for k in range(length)])


def _scaled(x: Jet, y: Vector) -> Vector:
    length = min(len(x), len(y))
    return Jet([leibniz(x, y, k, lambda a, b: np.asarray(a)[..., np.newaxis] * b) for k in range(length)])


def _commanded(arm: ElasticArm, stiffness: Sequence[ArrayLike], samples: tuple[int, ...], order: int) -> list[Array]:
    """Commanded stiffness with ``order`` derivatives."""
    shape = (*samples, arm.robot.n)
    first = arm.stiffness_command(stiffness[:3], shape)
    rest = [np.asarray(x, dtype=float) for x in stiffness[3:]]
    if any(x.shape not in (shape, shape[-1:]) for x in rest):
        raise StateError(f"stiffness must have shape {shape}")
    rows = [*first, *(np.broadcast_to(x, shape) for x in rest)]
    return (rows + [np.zeros(shape)] * order)[: order + 1]


def _springs(
    arm: ElasticArm,
    joints: Sequence[int],
    tau: Sequence[Jet],
    k: Jet,
    memory: Array | None,
    position: list[Any],
    load: list[Any],
) -> None:
    """Set deflections and loads at the motors of joints from the efforts on links."""
    first = {joint: int(np.searchsorted(arm.motor_joint, joint)) for joint in joints}
    coupled = arm.coupled[0] if arm.coupled is not None else ()
    if arm.coupled is not None and joints and set(coupled) <= set(joints):
        together = Jet([np.stack(rows, axis=-1) for rows in zip(*(tau[joint] for joint in coupled), strict=False)])
        delta = arm.coupled[1].deflection_series(together)
        for place, joint in enumerate(coupled):
            position[first[joint]] = Jet([x[..., place] for x in delta])
            load[first[joint]] = tau[joint]
    for joint in joints:
        spring, i = arm.springs[joint], first[joint]
        if joint in coupled:
            continue
        own = Jet([x[..., joint] for x in k])
        load[i] = tau[joint]
        try:
            if isinstance(spring, AntagonisticPair):
                pairs = spring.deflection_series(tau[joint], own)
                (position[i], load[i]), (position[i + 1], load[i + 1]) = pairs
            elif isinstance(spring, VariableSpring):
                position[i] = spring.deflection_series(tau[joint], own)
            elif isinstance(spring, DampedSpring):
                position[i] = spring.deflection_series(tau[joint], None if memory is None else memory[..., joint])
            else:
                position[i] = spring.deflection_series(tau[joint])
        except StateError as error:
            raise StateError(f"{arm.robot.joint_names[joint]}: {error}") from None


def _through_transmission(arm: ElasticArm, joints: Sequence[int], position: list[Any], load: list[Any]) -> None:
    """Motors' own positions and loads in place of those at the springs."""
    if arm.transmission is None or not set(arm.transmission[0]) <= set(joints):
        return
    places = np.searchsorted(arm.motor_joint, arm.transmission[0])
    for series, change in ((position, arm.transmission[1].motors), (load, arm.transmission[1].motor_effort)):
        rows = [change(np.stack(x, axis=-1)) for x in zip(*(series[i] for i in places), strict=False)]
        for column, i in enumerate(places):
            series[i] = Jet([x[..., column] for x in rows])


def _stacked(series: Sequence[Jet], count: int) -> tuple[Array, ...]:
    """The first derivatives of all, each (…, number of them)."""
    return tuple(np.stack([np.asarray(x[k], dtype=float) for x in series], axis=-1) for k in range(count))
