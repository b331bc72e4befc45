# SPDX-License-Identifier: Apache-2.0
"""Motor motion and effort to any order, exact in both rotor models.

In the reduced model, m derivatives of the motor effort require m + 4 derivatives of q. In the complete model the rotors
on later links act on a joint, so that motor motion is computed joint by joint, toward the base: A. De Luca and P.
Lucibello, "A general algorithm for dynamic feedback linearization of robots with elastic joints", IEEE Int. Conf.
Robotics and Automation (1998); G. Buondonno and A. De Luca, "Efficient computation of inverse dynamics and feedback
linearization for VSA-based robots", IEEE Robotics and Automation Letters 1 (2016). Each step requires two more
derivatives of q: the motor effort of a chain of n joints requires 2 n + 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import count, joint_states, sequence, wrench_sequence, wrenches
from ..arrays import Array
from ..exceptions import RobotDescriptionError, StateError
from ..jet import Jet
from ..recursion import LinkTree, inverse_dynamics, link_tree
from ..robot import Robot
from ..robot.inertia import Inertial
from .elastic_arm import ElasticArm, require_arm


class MotorJet(NamedTuple):
    """Efforts, motor positions and motor efforts with time derivatives: entry k is the k-th derivative.

    Attributes:
        tau: efforts on the links, each (n,) or (N, n), N m or N; to two orders more than ``motor_effort``.
        motor_position: motor positions, each (m,) or (N, m), rad or m, on the link side of the gear; to two orders
            more.
        motor_effort: motor efforts, each (m,) or (N, m), N m or N, on the link side of the gear.
    """

    tau: tuple[Array, ...]
    motor_position: tuple[Array, ...]
    motor_effort: tuple[Array, ...]


def derivatives_needed(arm: ElasticArm, order: int = 0) -> int:
    """Number of time derivatives of q for the motor effort with ``order`` derivatives.

    Raises:
        RobotDescriptionError: rotors act on each other's links; see :func:`motor_jet`.
    """
    return order + 2 + 2 * _depth(arm, _elimination(arm))


def motor_jet(
    arm: ElasticArm,
    motion: Sequence[ArrayLike],
    order: int = 0,
    *,
    wrench: Sequence[ArrayLike] = (),
    commanded_stiffness: Sequence[ArrayLike] = (),
    deflection: ArrayLike | None = None,
) -> MotorJet:
    """Exact motor motion and effort for a motion of the links, with ``order`` derivatives of the effort.

    The computation takes some milliseconds in the reduced model and some hundred in the complete model, hardly more for
    many states than for one.

    Args:
        arm: the arm.
        motion: q and at least :func:`derivatives_needed` time derivatives, each (n,) or (N, n).
        order: highest derivative of the motor effort.
        wrench: tool wrench and time derivatives, each (6,) or (N, 6), or for several tools as for
            :meth:`Dynamics.inverse_dynamics`; missing derivatives are zero.
        commanded_stiffness: k, kd, …, each (n,) or (N, n); by default nominal, missing derivatives are zero.
        deflection: as for :meth:`ElasticArm.feedforward`.

    Raises:
        StateError: an argument has the wrong shape, is not finite, or is missing; or a stiffness is out of range.
        RobotDescriptionError: in the complete model, rotors of some joints act on each other's links, so that link
            motion does not determine motor motion algebraically.
    """
    groups, robot = _elimination(arm), arm.robot
    needed = count(order, "order") + 2 + 2 * _depth(arm, groups)
    states, tau = _motion_and_efforts(robot, motion, wrench, needed)
    rotors = None if arm.rotors is None else _rotor_tree(arm)
    rows = sequence(commanded_stiffness, "commanded_stiffness", "k, kd, …")[: needed + 1]
    commanded = arm.stiffness_command(rows, states[0].shape, needed + 1)
    k = [Jet([x[..., joint] for x in commanded]) for joint in range(robot.n)]
    state = None if deflection is None else arm.deflection_state(deflection, states[0].shape[:-1])

    present = None if state is None else list(np.moveaxis(state, -1, 0))
    position: list[Any] = [None] * len(arm.motor_joint)
    load: list[Any] = [None] * len(arm.motor_joint)
    for joints in groups:
        acting = set() if rotors is None else set().union(*(_acting_rotors(arm, joint) for joint in joints))
        if rotors is not None and acting:
            known = [x if joint in acting else None for x, joint in zip(position, arm.motor_joint, strict=True)]
            carried = _rotor_efforts(arm, rotors, states, known)
            for joint in joints:
                tau[joint] = tau[joint] + carried[joint]
        delta, efforts = arm.side.deflections(tau, k, present, joints)
        for i in np.flatnonzero(np.isin(arm.motor_joint, joints)).tolist():
            if np.isnan(delta[i][0]).any():
                arm.functions.refuse(np.stack([x[0] for x in tau], axis=-1), commanded[:1], np.asarray(delta[i][0]))
            position[i] = delta[i] + Jet([x[..., arm.motor_joint[i]] for x in states])
            load[i] = efforts[i]
        if arm.transmission is not None and set(arm.transmission.joints) <= set(joints):
            position, load = arm.side.motors_of(position), arm.side.motor_loads(load)
    spins = [inertia * x.rate.rate for inertia, x in zip(arm.motor_inertia, position, strict=True)]
    if rotors is not None:
        efforts = _rotor_efforts(arm, rotors, states, position)[robot.n :]
        spins = [ratio * effort for ratio, effort in zip(arm.gear_ratio, efforts, strict=True)]
    motor_effort = [arm.side.motor_effort(i, load[i], x.rate, spins[i]) for i, x in enumerate(position)]
    return MotorJet(arrays_of(tau, order + 3), arrays_of(position, order + 3), arrays_of(motor_effort, order + 1))


def _motion_and_efforts(
    robot: Robot, motion: Sequence[ArrayLike], wrench: Sequence[ArrayLike], needed: int
) -> tuple[list[Array], list[Jet]]:
    """Checked motion with ``needed`` time derivatives, and a jet of the effort, numbers or (N,), for each joint.

    Args:
        motion, wrench: as for :func:`motor_jet`, with the same errors.
        needed: m + 2, for m time derivatives of the efforts.
    """
    motion = sequence(motion, "motion", "q and its time derivatives")
    if len(motion) <= needed:
        raise StateError(f"motion must have q and {needed} time derivatives, has {max(len(motion) - 1, 0)}")
    states = joint_states(robot.n, *motion[: needed + 1])
    samples = states[0].shape[:-1]
    levels = wrench_sequence(wrench)
    at_tools = wrenches(levels, needed - 1, robot.wrench_shape, samples) if levels else []
    columns = [list(np.moveaxis(x, -1, 0)) for x in states]
    rows = [list(np.moveaxis(W.reshape(*samples, -1), -1, 0)) for W in at_tools]
    return states, _jets(inverse_dynamics(link_tree(robot), columns, rows), samples)


def _jets(efforts: Sequence[Sequence[Any]], samples: tuple[int, ...]) -> list[Jet]:
    """A jet, numbers or (N,), for each joint."""
    # The recursion returns efforts that depend on no joint as plain numbers.
    return [Jet([np.broadcast_to(x, samples) for x in column]) for column in zip(*efforts, strict=True)]


def _rotor_tree(arm: ElasticArm) -> LinkTree:
    """Rotors carried by massless links, without gravity."""
    assert arm.rotors is not None
    bodies = arm.rotors.dynamics.robot
    links = [joint.with_inertial(Inertial.massless()) for joint in bodies.joints[: len(arm.robot.joints)]]
    rotors = replace(bodies, joints=(*links, *bodies.joints[len(links) :]))
    return replace(link_tree(rotors), friction=(), passive=())


def _rotor_efforts(
    arm: ElasticArm, rotors: LinkTree, states: Sequence[Array], position: Sequence[Jet | None]
) -> list[Jet]:
    """Efforts of the rotors on the links at all joints, then at the rotors, before their gears.

    Args:
        rotors: result of :func:`_rotor_tree`.
        states: q, qd, …, each (n,) or (N, n).
        position: motor positions; None for motors that do not act on the joints of interest.
    """
    samples, known = states[0].shape[:-1], [x for x in position if x is not None]
    orders = min(map(len, known), default=len(states))
    rows = []
    for k, x in enumerate(states[:orders]):
        angles = [0.0 if y is None else ratio * y[k] for ratio, y in zip(arm.gear_ratio, position, strict=True)]
        rows.append([*np.moveaxis(x, -1, 0), *angles])
    return _jets(inverse_dynamics(rotors, rows), samples)


def _elimination(arm: ElasticArm) -> list[tuple[int, ...]]:
    """Groups of joints in the order of computation of their motor motion."""
    require_arm(arm)
    waiting = [set(group.joints) for group in (arm.coupled, arm.transmission) if group is not None]
    if len(waiting) == 2 and waiting[0] & waiting[1]:
        waiting = [waiting[0] | waiting[1]]
    waiting += [{joint} for joint in range(arm.robot.n) if not any(joint in group for group in waiting)]
    if arm.rotors is None:
        return [tuple(sorted(group)) for group in waiting]
    acting = [_acting_rotors(arm, joint) for joint in range(arm.robot.n)]
    order: list[tuple[int, ...]] = []
    known: set[int] = set()
    while waiting:
        ready = [group for group in waiting if set().union(*(acting[joint] for joint in group)) <= known]
        if not ready:
            names = ", ".join(arm.robot.joint_names[joint] for group in waiting for joint in sorted(group))
            raise RobotDescriptionError(
                f"{arm.robot.name}: the rotors of {names} act on each other's links, so that the complete model has no "
                "exact feedforward; mount them on links before these joints, or use ElasticArm.feedforward, an "
                "approximation"
            )
        order += [tuple(sorted(group)) for group in ready]
        known |= set().union(*ready)
        waiting = [group for group in waiting if group not in ready]
    return order


def _depth(arm: ElasticArm, groups: Sequence[tuple[int, ...]]) -> int:
    """Length of the longest chain of joints with rotors that act on each other."""
    if arm.rotors is None:
        return 1
    steps = np.zeros(arm.robot.n, dtype=int)
    for joints in groups:
        behind = [steps[other] for joint in joints for other in _acting_rotors(arm, joint)]
        steps[list(joints)] = max(behind, default=0) + 1
    return int(steps.max())


def _acting_rotors(arm: ElasticArm, joint: int) -> set[int]:
    """Joints with rotors that act on the links at a joint."""
    assert arm.rotors is not None
    E, _ = arm.robot.coupling
    bodies = {body for body, x in enumerate(arm.robot.joints) if E[body, joint] and x.type != "prismatic"}
    return {
        int(other)
        for other, mount, inertia in zip(arm.motor_joint, arm.rotors.mounts, arm.rotors.inertia, strict=True)
        if inertia and bodies & set(arm.robot.path(mount.carrier))
    }


def arrays_of(jets: Sequence[Jet], count: int) -> tuple[Array, ...]:
    """The first ``count`` derivatives of all jets, each (…, number of jets)."""
    return tuple(np.stack([np.asarray(x[k], dtype=float) for x in jets], axis=-1) for k in range(count))
