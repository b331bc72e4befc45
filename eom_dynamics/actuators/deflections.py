# SPDX-License-Identifier: Apache-2.0
"""The springs of a whole arm: deflections of all of them, those of one kind at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..drivetrain.springs import (
    AntagonisticPair,
    AnySpring,
    CoupledSpring,
    DampedSpring,
    RigidSpring,
    Spring,
    VariableSpring,
)
from ..exceptions import StateError

Array = NDArray[np.float64]


class Deflections(NamedTuple):
    """What springs do at all m motors, each (m,) or (N, m).

    Attributes:
        delta, deltad, deltadd: joint side of the motor minus link, rad or m, and its time derivatives.
        tau: effort on the spring, N m or N.
    """

    delta: Array
    deltad: Array
    deltadd: Array
    tau: Array


class SpringEfforts(NamedTuple):
    """What springs do at all n joints, each (n,) or (N, n).

    Attributes:
        tau, taud: effort on the link, N m or N, and its time derivative.
        k, kd: stiffness where it is commanded, N m/rad or N/m, and its time derivative; zero at other joints.
    """

    tau: Array
    taud: Array
    k: Array
    kd: Array


class _Group(NamedTuple):
    """Springs of one kind: their joints, their motors, and one spring that stands for all."""

    joints: Any
    motors: Any
    spring: Any


class SpringSet:
    """The springs of n joints, moved by m >= n motors: two at a joint with an antagonistic pair, else one.

    Attributes:
        motor_joint: (m,) the joint of each motor, in the order of joints.
        variable: (n,) whether the stiffness of a joint is commanded.
        rest_stiffness: (n,) without load, N m/rad or N/m; infinite where rigid.
    """

    def __init__(
        self, names: Sequence[str], springs: Sequence[AnySpring], coupled: tuple[Sequence[int], CoupledSpring] | None
    ) -> None:
        """Sort springs by kind.

        Args:
            names: of the joints.
            springs: one a joint.
            coupled: joints, by number, and the spring between them, which replaces their own; or None.
        """
        n = len(springs)
        self._names, self._springs = tuple(names), tuple(springs)
        pairs = [isinstance(spring, AntagonisticPair) for spring in springs]
        self.motor_joint = np.repeat(np.arange(n), np.where(pairs, 2, 1))
        first = np.searchsorted(self.motor_joint, np.arange(n))
        self.variable = np.array([isinstance(spring, (AntagonisticPair, VariableSpring)) for spring in springs])
        self.rest_stiffness = np.array([float(spring.rest_stiffness) for spring in springs])
        self._nominal = np.where(self.variable, self.rest_stiffness, 0.0)
        self._groups: list[_Group] = []
        taken = set(coupled[0]) if coupled else set()
        if coupled:
            joints = np.array(coupled[0])
            self.rest_stiffness[joints] = coupled[1].rest_stiffness
            self._groups.append(_Group(joints, first[joints], coupled[1]))
        kinds: dict[type, list[int]] = {}
        for i, spring in enumerate(springs):
            if i not in taken and not isinstance(spring, RigidSpring):
                kinds.setdefault(type(spring), []).append(i)
        for kind, members in kinds.items():
            alone = len(members) == n
            stacked = kind.stacked([springs[i] for i in members])  # type: ignore[attr-defined]
            where = slice(None) if alone else np.array(members)
            motors = first[members]
            if isinstance(stacked, AntagonisticPair):
                self._groups.append(_Group(where, motors[:, np.newaxis] + np.arange(2), stacked))
            else:
                self._groups.append(_Group(where, where if alone else motors, stacked))
        only = self._groups[0] if len(self._groups) == 1 else None
        one_kind = only is not None and isinstance(only.joints, slice) and isinstance(only.spring, Spring)
        self._only: Spring | None = only.spring if only and one_kind else None

    @property
    def rigid(self) -> NDArray[np.bool_]:
        """(n,) whether a joint has no spring, nor one with others."""
        return np.isinf(self.rest_stiffness)

    @property
    def damped(self) -> NDArray[np.intp]:
        """Numbers of the joints with a damper."""
        return np.flatnonzero([isinstance(spring, DampedSpring) for spring in self._springs])

    def deflections(
        self, efforts: tuple[Array, Array, Array], stiffness: Sequence[Array], state: Array | None
    ) -> Deflections:
        """The deflections of all springs under these efforts.

        Args:
            efforts: tau, taud, taudd, each (n,) or (N, n).
            stiffness: k, kd, kdd, alike; what is not given is nominal, and constant.
            state: deflection of all joints, alike, of which those with a damper are read; None: settled.

        Raises:
            StateError: a stiffness is out of range; the message names the joint.
        """
        if self._only:
            return Deflections(*self._only.deflection(*efforts), efforts[0])
        samples = efforts[0].shape[:-1]
        delta, deltad, deltadd = np.zeros((3, *samples, len(self.motor_joint)))
        tau = efforts[0][..., self.motor_joint]
        for joints, motors, spring in self._groups:
            own: Any = [x[..., joints] for x in efforts]
            if isinstance(spring, (VariableSpring, AntagonisticPair)):
                own += [x[..., joints] for x in self.commanded(stiffness, samples)]
            elif isinstance(spring, DampedSpring):
                start = spring.settled(*own) if state is None else np.broadcast_to(state, efforts[0].shape)[..., joints]
                own = [start, *own[:2]]
            try:
                result = spring.deflection(*own)
            except StateError as error:
                raise self._named(error, joints, own) from None
            for whole, part in zip((delta, deltad, deltadd, tau), result, strict=False):
                whole[..., motors] = part
        return Deflections(delta, deltad, deltadd, tau)

    def efforts(
        self, delta: Array, deltad: Array, stiffness: Sequence[Array], *, rigid_too: bool = False
    ) -> SpringEfforts:
        """The efforts that deflections cause: the other way than :meth:`deflections`.

        Args:
            delta, deltad: of springs at all motors, each (m,) or (N, m).
            stiffness: k and kd where one motor moves a joint with commanded stiffness, each (n,) or (N, n).
            rigid_too: whether joints may be rigid; their efforts are then NaN.

        Raises:
            StateError: a joint is rigid or has a damper, so that its deflection does not say the effort and its rate.
        """
        samples, n = delta.shape[:-1], len(self._names)
        tau, taud = np.full((2, *samples, n), np.nan)
        commanded = self.commanded(stiffness, samples)
        k, kd = commanded[0].copy(), commanded[1].copy()
        for joints, motors, spring in self._groups:
            x, xd = delta[..., motors], deltad[..., motors]
            if isinstance(spring, AntagonisticPair):
                tau[..., joints] = np.sum(spring.effort(x), axis=-1)
                k[..., joints] = spring.stiffness(x)
                taud[..., joints], kd[..., joints] = spring.rates(x, xd)
            elif isinstance(spring, VariableSpring):
                own, ownd = k[..., joints], kd[..., joints]
                tau[..., joints], taud[..., joints] = own * x, own * xd + ownd * x
            elif isinstance(spring, CoupledSpring):
                tau[..., joints], taud[..., joints] = spring.effort(x), spring.effort(xd)
            elif isinstance(spring, Spring):
                tau[..., joints], taud[..., joints] = spring.effort(x), spring.stiffness(x) * xd
        for joint in range(n):
            if np.any(np.isnan(tau[..., joint])) and not (rigid_too and self.rigid[joint]):
                raise StateError(
                    f"{self._names[joint]}: the deflection of a {self._springs[joint].kind} joint does not say the "
                    "effort and its rate; give them"
                )
        return SpringEfforts(tau, taud, k, kd)

    def commanded(self, stiffness: Sequence[Array], samples: tuple[int, ...]) -> list[Array]:
        """k, kd, kdd, each (n,) or (N, n): the given ones, else nominal stiffness and no change of it."""
        given = [np.broadcast_to(x, (*samples, len(self._names))) for x in stiffness]
        zero = np.zeros((*samples, len(self._names)))
        return (given or [zero + self._nominal]) + [zero] * (3 - max(len(given), 1))

    def _named(self, error: StateError, joints: Any, own: Sequence[Array]) -> StateError:
        """The error with the name of the joint that it is about."""
        for column, joint in enumerate(np.arange(len(self._names))[joints]):
            try:
                self._springs[joint].deflection(*(x[..., column] for x in own))
            except StateError as single:
                return type(single)(f"{self._names[joint]}: {single}")
        return error
