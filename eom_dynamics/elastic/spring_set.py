# SPDX-License-Identifier: Apache-2.0
"""All springs of an arm; those of one kind are computed at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..actuators.springs import CoupledSpring, Deflections, Spring
from ..arrays import Array
from ..exceptions import StateError
from ..jet import Jet


class SpringEfforts(NamedTuple):
    """Efforts of the springs on the links, each (n,) or (N, n).

    Attributes:
        tau, taud: effort, N m or N, and its time derivative.
        k, kd: stiffness where it is commanded, N m/rad or N/m, and its time derivative; zero at other joints.
    """

    tau: Array
    taud: Array
    k: Array
    kd: Array


class PlacedSpring(NamedTuple):
    """A spring with its places in joint vectors (…, n) and in motor vectors (…, m), as indices or slices."""

    joints: Any
    motors: Any
    spring: Spring


class SpringSet:
    """The springs of n joints moved by m >= n motors.

    Attributes:
        motor_joint: (m,) joint of each motor, in the order of joints.
        motor_names: (m,) names of the motors.
        rest_stiffness: (n,) stiffness without load, N m/rad or N/m; infinite where rigid.
        rigid: (n,) whether a joint is rigid.
        variable: (n,) whether the stiffness of a joint is commanded.
        damped: (n,) whether the deflection of a joint is a state.
        paired: (n,) whether two motors move a joint.
        is_linear: whether :meth:`tangents` are the same at all deflections.
    """

    def __init__(
        self, names: Sequence[str], springs: Sequence[Spring], coupled: tuple[Sequence[int], CoupledSpring] | None
    ) -> None:
        """Stack the springs of each kind.

        Args:
            names: names of the joints.
            springs: springs of the joints.
            coupled: indices of joints and the spring between them, which replaces their own; or None.
        """
        n = len(springs)
        self._names, self._springs = tuple(names), tuple(springs)
        self.motor_joint = np.repeat(np.arange(n), [len(spring.motors) for spring in springs])
        self.motor_names = tuple(
            name + suffix for name, spring in zip(names, springs, strict=True) for suffix in spring.motors
        )
        self.rest_stiffness = np.array([float(spring.rest_stiffness) for spring in springs])
        self.variable = np.array([spring.is_variable for spring in springs])
        self.damped = np.array([spring.is_damped for spring in springs])
        self.paired = np.array([len(spring.motors) > 1 for spring in springs])
        self._any_variable = bool(np.any(self.variable))
        self._nominal = np.where(self.variable, self.rest_stiffness, 0.0)
        self._single: list[PlacedSpring] = []
        self._groups: list[PlacedSpring] = []
        if coupled is not None:
            joints = np.array(coupled[0])
            self.rest_stiffness[joints] = coupled[1].rest_stiffness
            self._single.append(PlacedSpring(joints, np.searchsorted(self.motor_joint, joints), coupled[1]))
            self._groups += self._single
        kinds: dict[type[Spring], list[int]] = {}
        for joint, spring in enumerate(springs):
            if coupled is None or joint not in coupled[0]:
                motors = np.flatnonzero(self.motor_joint == joint)
                self._single.append(PlacedSpring(joint, motors if len(motors) > 1 else int(motors[0]), spring))
                if not spring.is_rigid:
                    kinds.setdefault(type(spring), []).append(joint)
        self._groups += [self._stacked(kind, members) for kind, members in kinds.items()]
        self.rigid: NDArray[np.bool_] = np.isinf(self.rest_stiffness)
        self._damped_groups = [group for group in self._groups if group.spring.is_damped]
        self.is_linear = all(group.spring.is_linear for group in self._groups)
        # Places of the groups' tangents in matrices (…, m, m): on the diagonal, but for coupled joints.
        numbers = [np.arange(len(self.motor_joint))[group.motors] for group in self._groups]
        self._diagonals: list[Any] = [(..., own, own) for own in numbers]
        if coupled is not None:
            self._diagonals[0] = (..., numbers[0][:, np.newaxis], numbers[0])
        # The only group, if it takes joint vectors as they are, and neither command nor state.
        alone = len(self._groups) == 1 and coupled is None and len(self.motor_joint) == n
        plain = not np.any(self.rigid | self.variable | self.damped)
        self._only = self._groups[0].spring if alone and plain else None

    def _stacked(self, kind: type[Spring], members: Sequence[int]) -> PlacedSpring:
        """The springs of one kind as one spring."""
        stacked = kind.stacked([self._springs[joint] for joint in members])
        motors = np.searchsorted(self.motor_joint, members)[:, np.newaxis] + np.arange(len(kind.motors))
        motors = motors[:, 0] if len(kind.motors) == 1 else motors
        if len(members) < len(self._springs):
            return PlacedSpring(np.array(members), motors, stacked)
        return PlacedSpring(slice(None), slice(None) if len(kind.motors) == 1 else motors, stacked)

    def deflections(
        self, efforts: tuple[Array, Array, Array], stiffness: Sequence[Array] = (), state: Array | None = None
    ) -> Deflections:
        """Deflections of all springs under efforts on the links, each (m,) or (N, m).

        Args:
            efforts: tau, taud, taudd, each (n,) or (N, n).
            stiffness: k, kd, kdd, each (n,) or (N, n); by default nominal and constant.
            state: present deflections (n,) or (N, n), of which those of damped springs are read; by default without
                transient.

        Raises:
            StateError: a stiffness is out of range; the message names the joint.
        """
        if self._only is not None:
            return self._only.deflections(efforts)
        samples = efforts[0].shape[:-1]
        commanded = self.commanded(stiffness, samples) if self._any_variable else []
        delta, deltad, deltadd = np.zeros((3, *samples, len(self.motor_joint)))
        result = Deflections(delta, deltad, deltadd, efforts[0][..., self.motor_joint])
        for group in self._groups:
            try:
                part = self._deflections(group, efforts, commanded, state)
            except StateError:
                self._refuse(efforts, commanded, state)
                raise
            for whole, values in zip(result, part, strict=True):
                whole[..., group.motors] = values
        return result

    def _deflections(
        self, place: PlacedSpring, efforts: tuple[Array, Array, Array], commanded: Sequence[Array], state: Array | None
    ) -> Deflections:
        joints, spring = place.joints, place.spring
        tau, taud, taudd = (x[..., joints] for x in efforts)
        stiffness = [x[..., joints] for x in commanded] if spring.is_variable else ()
        present = None
        if state is not None and spring.is_damped:
            present = np.broadcast_to(state, efforts[0].shape)[..., joints]
        return spring.deflections((tau, taud, taudd), stiffness, present)

    def _refuse(self, efforts: tuple[Array, Array, Array], commanded: Sequence[Array], state: Array | None) -> None:
        """Raise the error of the first joint whose spring refuses, with the joint's name."""
        for place in self._single:
            try:
                self._deflections(place, efforts, commanded, state)
            except StateError as error:
                raise type(error)(f"{self._names[place.joints]}: {error}") from None

    def deflection_jets(
        self, joints: Collection[int], tau: Sequence[Jet], stiffness: Jet, state: Array | None
    ) -> Iterator[tuple[int, Jet, Jet]]:
        """Deflections with time derivatives at the motors of some joints, coupled joints all or none of them.

        Args:
            joints: indices of the joints.
            tau: effort on the link of each joint, with time derivatives.
            stiffness: commanded stiffness of all joints, (n,) or (N, n), with time derivatives.
            state: as for :meth:`deflections`.

        Yields:
            Index of a motor, its deflection, and the effort of the spring at the motor.

        Raises:
            StateError: as for :meth:`deflections`.
        """
        for places, motors, spring in self._single:
            own = np.atleast_1d(places)
            if own[0] not in joints:
                continue
            effort = tau[places] if np.ndim(places) == 0 else _joined([tau[joint] for joint in own])
            commanded = Jet([x[..., places] for x in stiffness]) if spring.is_variable else None
            try:
                delta, load = spring.deflection_jet(effort, commanded, None if state is None else state[..., places])
            except StateError as error:
                raise type(error)(f"{self._names[places]}: {error}") from None
            if np.ndim(motors) == 0:
                yield motors, delta, load
            else:
                for column, motor in enumerate(motors):
                    yield motor, *(Jet([x[..., column] for x in jet]) for jet in (delta, load))

    def effort_jets(
        self, deflections: Sequence[Array], stiffness: Sequence[Array] = ()
    ) -> tuple[list[Array], list[Array]]:
        """Efforts on the links, and stiffness, under deflections: the inverse of :meth:`deflections`.

        Args:
            deflections: deflections at the motors and their time derivatives, each (m,) or (N, m).
            stiffness: stiffness where it is commanded at a joint with one motor, with time derivatives, each (n,) or
                (N, n); by default nominal and constant.

        Returns:
            Efforts with as many time derivatives, each (n,) or (N, n), NaN where the deflections do not determine them;
            and stiffness where it is commanded, zero elsewhere.
        """
        samples, n = deflections[0].shape[:-1], len(self._names)
        tau = list(np.full((len(deflections), *samples, n), np.nan))
        k = list(np.zeros((len(deflections), *samples, n)))
        if self._any_variable:
            for whole, given in zip(k, self.commanded(stiffness, samples), strict=False):
                whole[..., self.variable] = given[..., self.variable]
        for joints, motors, spring in self._groups:
            commanded = Jet([x[..., joints] for x in k]) if spring.is_variable else None
            efforts, stiffnesses = spring.effort_jet(Jet([x[..., motors] for x in deflections]), commanded)
            for whole, part in zip(tau, efforts, strict=False):
                whole[..., joints] = part
            for whole, part in zip(k, stiffnesses or (), strict=False):
                whole[..., joints] = part
        return tau, k

    def efforts(
        self, delta: Array, deltad: Array, stiffness: Sequence[Array], *, rigid_too: bool = False
    ) -> SpringEfforts:
        """Efforts on the links and their rates.

        Args:
            delta, deltad: deflections at the motors and their rates, each (m,) or (N, m).
            stiffness: k, kd as for :meth:`effort_jets`.
            rigid_too: whether joints may be rigid; their efforts are then NaN.

        Raises:
            StateError: a joint is rigid or damped, so that its deflection does not determine the effort and its rate.
        """
        (tau, taud), (k, kd) = self.effort_jets([delta, deltad], stiffness)
        unknown = self.damped if rigid_too else self.damped | self.rigid
        if unknown.any():
            joint = int(np.argmax(unknown))
            raise StateError(
                f"{self._names[joint]}: the deflection of a {self._springs[joint].kind} joint does not determine the "
                "effort and its rate; give them"
            )
        return SpringEfforts(tau, taud, k, kd)

    def commanded(self, stiffness: Sequence[Array], samples: tuple[int, ...]) -> list[Array]:
        """k, kd, kdd, each (n,) or (N, n): the given ones, else nominal stiffness and no change of it."""
        given = [np.broadcast_to(x, (*samples, len(self._names))) for x in stiffness]
        zero = np.zeros((*samples, len(self._names)))
        return (given or [zero + self._nominal]) + [zero] * (3 - max(len(given), 1))

    def loads(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """Efforts of the springs at the motors (…, m), N m or N; zero at rigid joints.

        Args:
            delta, deltad: deflections and their rates (…, m).
            stiffness: (n,) stiffness where it is commanded, N m/rad or N/m; by default nominal.
        """
        loads = np.zeros_like(delta)
        for joints, motors, spring in self._groups:
            commanded = None if stiffness is None else stiffness[joints]
            loads[..., motors] = spring.load(delta[..., motors], deltad[..., motors], commanded)
        return loads

    def tangents(self, delta: Array) -> tuple[Array, Array]:
        """Derivatives of :meth:`loads` with respect to delta and to deltad, each (…, m, m)."""
        slope, damping = np.zeros((2, *delta.shape, delta.shape[-1]))
        for (_, motors, spring), places in zip(self._groups, self._diagonals, strict=True):
            slope[places], damping[places] = spring.tangents(delta[..., motors])
        return slope, damping

    def energy(self, delta: Array) -> Array:
        """Energy of all springs (…), J, at nominal stiffness."""
        energy = np.zeros(delta.shape[:-1])
        for _, motors, spring in self._groups:
            energy = energy + np.sum(spring.energy(delta[..., motors]), axis=-1)
        return energy

    def loss(self, deltad: Array) -> Array:
        """Power that dampers turn to heat (…), W."""
        loss = np.zeros(deltad.shape[:-1])
        for _, motors, spring in self._damped_groups:
            loss = loss + np.sum(spring.power_loss(deltad[..., motors]), axis=-1)
        return loss

    def stretch(self, delta: Array) -> Array:
        """Elongation of tension-only springs (…, m), rad or m, negative where slack; infinite for other springs."""
        stretch = np.full_like(delta, np.inf)
        for _, motors, spring in self._groups:
            stretch[..., motors] = spring.stretch(delta[..., motors])
        return stretch

    def settled(self, efforts: Sequence[Array]) -> Array:
        """Deflections of damped springs without transient (…, n), zero at other joints.

        Args:
            efforts: tau, taud, taudd, each (…, n).
        """
        delta = np.zeros(efforts[0].shape)
        for joints, _, spring in self._damped_groups:
            delta[..., joints] = spring.settled(*(x[..., joints] for x in efforts))
        return delta

    def advance(self, delta: Array, before: Sequence[Array], after: Sequence[Array], dt: float) -> Array:
        """Deflections of damped springs a time step later (…, n), zero at other joints.

        Args:
            delta: deflections at the start (…, n).
            before, after: tau, taud, taudd at the start and at the end, each (…, n).
            dt: time step, s, > 0.
        """
        later = np.zeros(delta.shape)
        for joints, _, spring in self._damped_groups:
            start, end = ([x[..., joints] for x in efforts] for efforts in (before, after))
            later[..., joints] = spring.advance(delta[..., joints], start, end, dt)
        return later


def _joined(jets: Sequence[Jet]) -> Jet:
    """Several jets as one of arrays (…, number of jets)."""
    return Jet([np.stack(row, axis=-1) for row in zip(*jets, strict=False)])
