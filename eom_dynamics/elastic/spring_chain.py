# SPDX-License-Identifier: Apache-2.0
"""Chains of springs: elastic joints in series, from the link to the motor.

Between link and motor of a joint are inertias x_1 … x_s with a spring before each; the last one is the motor's rotor:

    tau = f_1(x_1 - q),    B_i x_i'' + friction_i(x_i') = y_i - y_(i-1),    y_(i-1) = f_i(x_i - x_(i-1)),

with x_0 = q, y_0 = tau and the motor effort y_s. Each stage is the feedforward of one elastic joint (M. W. Spong, 1987)
for the motion and the effort of the stage before it, and takes two more derivatives: q is the flat output of the chain,
and the motor effort takes 2 s + 2 derivatives of it (M. Fliess et al., Int. J. Control 61, 1995; for s = 1, the four of
A. De Luca, IEEE Int. Conf. Robotics and Automation, 1998).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..actuators.friction import FRICTIONLESS, Friction
from ..actuators.parameters import not_negative, refuse
from ..actuators.springs import Spring
from ..arguments import count
from ..exceptions import RobotDescriptionError, StateError
from ..jet import Jet
from ..robot import Robot
from ..states import real_array, sequence
from .motor_derivatives import MotorJet, arrays_of, motion_and_efforts


@dataclass(frozen=True, eq=False)
class SpringStage:
    """A spring, and the inertia behind it.

    Attributes:
        spring: any with one motor whose effort is a function of its deflection (and nominal stiffness), or a rigid one.
        inertia: B of the body behind the spring, on the link side of the gear, kg m² (kg).
        friction: of that body against the link that carries it, the parent of the joint: a function of the velocity xd
            of the body, not of the deflection rate xd - qd; N m (N).
    """

    spring: Spring
    inertia: float
    friction: Friction = FRICTIONLESS

    def __post_init__(self) -> None:
        """Check the parts.

        Raises:
            ParameterError: the spring is not a Spring, or has a damper or a second motor; B is not one number from 0;
                or the friction is not a Friction.
        """
        if not isinstance(self.spring, Spring):
            refuse("spring", f"must be a spring, such as LinearSpring(300.0), is {self.spring!r:.60}")
        if not isinstance(self.friction, Friction):
            refuse("friction", f"must be a Friction, is {self.friction!r:.60}; leave it out for none")
        if not_negative("inertia", self.inertia).ndim:
            refuse("inertia", f"must be one number, is {self.inertia!r:.60}; each body has a stage of its own")
        if self.spring.is_damped:
            refuse("spring", "must not be damped, since its deflection is a state")
        if len(self.spring.motors) > 1:
            refuse("spring", f"must have one motor; one of type {self.spring.kind} has {len(self.spring.motors)}")


class ChainJet(NamedTuple):
    """Motion and effort of the inertias of a chain with time derivatives: ``position[i][k]`` is the k-th of stage i.

    Attributes:
        position: of each inertia, rad or m; the last is the motor's.
        effort: on each inertia from behind, N m or N; the last is the motor's.
    """

    position: tuple[Jet, ...]
    effort: tuple[Jet, ...]


class SpringChain:
    """Springs and inertias of one joint in series.

    Attributes:
        stages: from the link to the motor; none is a motor without inertia, fixed to the link.
    """

    def __init__(self, stages: Sequence[SpringStage]) -> None:
        """Take the stages; raises ParameterError if one is not a :class:`SpringStage`."""
        if isinstance(stages, str) or not np.iterable(stages):
            refuse("stages", f"must be a list of SpringStage, is {stages!r:.60}")
        self.stages = tuple(stages)
        for i, stage in enumerate(self.stages):
            if not isinstance(stage, SpringStage):
                refuse(f"stages[{i}]", f"must be a SpringStage, of spring and inertia, is {stage!r:.60}")

    def __repr__(self) -> str:
        """The stages, as they are written."""
        return f"SpringChain({list(self.stages)!r})"

    def derivatives_needed(self, order: int = 0) -> int:
        """Number of time derivatives of the joint effort that the motor effort with ``order`` derivatives takes."""
        return count(order, "order") + 2 * len(self.stages)

    def jet(self, q: Sequence[ArrayLike], tau: Sequence[ArrayLike], order: int = 0) -> ChainJet:
        """Motion and effort of all inertias for a motion of the link.

        Args:
            q: joint variable with at least :meth:`derivatives_needed` time derivatives, numbers or (N,); rad or m.
            tau: joint effort with as many, N m or N.
            order: highest derivative of the motor effort.

        Raises:
            StateError: derivatives are missing, have different shapes, or are not finite.
        """
        needed = self.derivatives_needed(order)
        position, effort = (
            _jet(name, rows, needed, f"two for each of the {len(self.stages)} springs and {order} of the motor effort")
            for name, rows in (("q", q), ("tau", tau))
        )
        positions, efforts = [], []
        for stage in self.stages:
            (delta,), _ = stage.spring.deflections([effort])
            position = position + delta
            velocity = position.rate
            effort = effort + stage.inertia * velocity.rate
            if not stage.friction.is_none:
                effort = effort + stage.friction.effort_jet(velocity)
            positions.append(position)
            efforts.append(effort)
        return ChainJet(tuple(positions), tuple(efforts))


def chain_derivatives_needed(chains: Sequence[SpringChain], order: int = 0) -> int:
    """Number of time derivatives of q that the motor efforts of an arm with ``order`` derivatives take."""
    return 2 + max(chain.derivatives_needed(order) for chain in chains)


def chain_motor_jet(
    robot: Robot,
    chains: Sequence[SpringChain],
    motion: Sequence[ArrayLike],
    order: int = 0,
    *,
    wrench: Sequence[ArrayLike] = (),
) -> MotorJet:
    """Exact motor motion and effort of an arm with a chain of springs at each joint, for a motion of the links.

    The springs, rotors and actuators of the robot itself are not read. In the reduced rotor model.

    Args:
        robot: the links.
        chains: (n,); one without stages is a motor without inertia, fixed to the link.
        motion: q and at least :func:`chain_derivatives_needed` time derivatives, each (n,) or (N, n).
        order: highest derivative of the motor effort.
        wrench: tool wrench and time derivatives as for :func:`motor_jet`.

    Raises:
        StateError: an argument has the wrong shape, is not finite, or derivatives are missing.
        RobotDescriptionError: the number of chains is not that of the joints.
    """
    if isinstance(chains, SpringChain) or not all(
        isinstance(chain, SpringChain) for chain in sequence(chains, "chains", "SpringChain, one for each joint")
    ):
        raise RobotDescriptionError(f"{robot.name}: chains must be a list of SpringChain, one for each joint")
    if len(chains) != robot.n:
        raise RobotDescriptionError(f"{robot.name}: chains must be {robot.n}, one for each joint, are {len(chains)}")
    needed = chain_derivatives_needed(chains, order)
    why = f", two for the links, two for each spring of the longest chain and {order} of the motor effort; "
    states, tau = motion_and_efforts(robot, motion, wrench, needed, why)
    position, effort = [], []
    for i, chain in enumerate(chains):
        count = chain.derivatives_needed(order) + 1
        q = [x[..., i] for x in states]
        jet = chain.jet(q[:count], tau[i][:count], order)
        position.append((Jet(q), *jet.position)[-1])
        effort.append((tau[i], *jet.effort)[-1])
    return MotorJet(arrays_of(tau, order + 3), arrays_of(position, order + 3), arrays_of(effort, order + 1))


def _jet(name: str, levels: Sequence[ArrayLike], needed: int, why: str) -> Jet:
    levels = sequence(levels, name, "a quantity and its time derivatives")
    if len(levels) <= needed:
        raise StateError(f"{name} must have {needed} time derivatives, {why}; has {max(len(levels) - 1, 0)}")
    rows = [real_array(x, f"{name} and its derivatives").reshape(np.shape(x)) for x in levels[: needed + 1]]
    if any(row.shape != rows[0].shape or row.ndim > 1 for row in rows):
        raise StateError(f"{name} and its derivatives must be numbers or all have shape (N,)")
    return Jet(rows)
