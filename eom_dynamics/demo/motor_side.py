# SPDX-License-Identifier: Apache-2.0
"""What the motion of motors says of efforts: the way back from the node's answers, by the laws of springs alone.

The node solves tau = f(delta) and its time derivatives for the deflection of a spring and its rates. Here the answered
motor motion is put into the law,

    tau = f(delta),    taud = f' deltad,    taudd = f' deltadd + f'' deltad²,    delta = theta - q,

and must give the efforts of the closed form. Beside it are, of two motors at a joint, stiffness f'(s1) + f'(s2) and its
rates; of a spring with a damper the differential equation K delta + D deltad = tau and its rate; of a rigid joint
delta = 0. The motors' efforts are those of springs, rotors, gears and friction in the answered motion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm
from ..drivetrain.springs import AntagonisticPair, DampedSpring, RigidSpring, VariableSpring

Array = NDArray[np.float64]


class Residual(NamedTuple):
    """What should be zero (…), and the size of that of which it is the difference."""

    value: Array
    scale: Array


def spring_residuals(
    arm: ElasticArm, links: Sequence[Array], motors: Sequence[Array], efforts: Sequence[Array]
) -> Iterator[Residual]:
    """By how much the laws of the springs are missed, at nominal stiffness.

    Args:
        arm: springs and transmission.
        links: q, qd, qdd, each (N, n), rad or m and per s, s².
        motors: their positions, velocities and accelerations, each (N, m).
        efforts: tau, taud, taudd on the links, each (N, n), N m or N.
    """
    deltas = _deflections(arm, links, motors)
    coupled = list(arm.coupled[0]) if arm.coupled else []
    if arm.coupled:
        own = [x[:, np.searchsorted(arm.motor_joint, coupled)] for x in deltas]
        for x, effort in zip(own, efforts, strict=True):
            yield _difference(x @ arm.coupled[1].matrix, effort[:, coupled], effort)
    for joint, spring in enumerate(arm.springs):
        if joint in coupled:
            continue
        own = [x[:, arm.motor_joint == joint] for x in deltas]
        if isinstance(spring, RigidSpring):
            for x, link in zip(own, links, strict=True):
                yield _difference(x, 0.0, link)
            continue
        if isinstance(spring, AntagonisticPair):
            given, stiffness, sizes = _of_pair(spring, *own)
            for residual, size in zip(stiffness, sizes, strict=True):
                yield Residual(residual, size)
        elif isinstance(spring, DampedSpring):
            given = [(spring.constant * own[k] + spring.damping * own[k + 1])[:, 0] for k in range(2)]
        elif isinstance(spring, VariableSpring):
            given = [spring.nominal * x[:, 0] for x in own]
        else:
            slope, bend = spring.stiffness(own[0]), spring.stiffness_rate(own[0])
            rates = (spring.effort(own[0]), slope * own[1], slope * own[2] + bend * own[1] ** 2)
            given = [x[:, 0] for x in rates]
        for x, effort in zip(given, efforts, strict=False):
            yield _difference(x, effort[:, joint], effort)


def motor_load(arm: ElasticArm, links: Array, motors: Array, tau: Array) -> Array:
    """Efforts of the springs at the motors (N, m), N m or N.

    Args:
        arm: springs and transmission.
        links: q (N, n).
        motors: their positions (N, m).
        tau: on the links (N, n), of which two motors at a joint have parts that their positions tell.
    """
    (delta,) = _deflections(arm, [links], [motors])
    load = tau[:, arm.motor_joint]
    for joint, spring in enumerate(arm.springs):
        if isinstance(spring, AntagonisticPair):
            first, second = np.flatnonzero(arm.motor_joint == joint)
            load[:, first], load[:, second] = spring.pull(delta[:, first]), -spring.pull(-delta[:, second])
    if arm.transmission:
        places = np.searchsorted(arm.motor_joint, arm.transmission[0])
        load[:, places] = load[:, places] @ arm.transmission[1].matrix
    return load


def motor_effort(arm: ElasticArm, load: Array, rotor: Array, velocity: Array) -> Array:
    """Efforts of motors (N, m): rotors, springs behind gears with loss, and friction; N m or N.

    Args:
        arm: gears and friction.
        load: as of :func:`motor_load`.
        rotor: what accelerates the rotors (N, m), N m or N.
        velocity: of the motors (N, m).
    """
    gear, friction = arm.gear, arm.friction
    driven = load / gear.efficiency ** np.tanh(load * velocity / gear.smoothing_power)
    stribeck = (friction.static - friction.coulomb) / np.exp((velocity / friction.stribeck_velocity) ** 2)
    dry = (friction.coulomb + stribeck) * np.tanh(velocity / friction.smoothing_velocity)
    effort: Array = rotor + driven + friction.viscous * velocity + dry
    return effort


def _deflections(arm: ElasticArm, links: Sequence[Array], motors: Sequence[Array]) -> list[Array]:
    """Joint sides of motors less links (N, m), and rates alike."""
    geared = np.eye(len(arm.motor_joint))
    if arm.transmission:
        places = np.searchsorted(arm.motor_joint, arm.transmission[0])
        geared[np.ix_(places, places)] = arm.transmission[1].matrix
    return [theta @ geared.T - q[:, arm.motor_joint] for q, theta in zip(links, motors, strict=True)]


def _of_pair(
    pair: Any, delta: Array, deltad: Array, deltadd: Array
) -> tuple[list[Array], tuple[Array, ...], tuple[Array, ...]]:
    """Effort of a pair with two rates (N,), by how much stiffness and its rates are off (N,), and their sizes."""
    sign = np.array([1.0, -1.0])
    s, sd, sdd = delta * sign, deltad * sign, deltadd * sign
    slope, bend = pair.pull_stiffness(s), pair.pull_stiffness_rate(s)
    # f''' by a complex step, which is exact to rounding where a law is analytic, as those of pairs are.
    tiny = 1e-30
    turn = np.imag(pair.pull_stiffness_rate(s + 1j * tiny)) / tiny
    rates = (pair.pull(s), slope * sd, slope * sdd + bend * sd**2)
    efforts = [x @ sign for x in rates]
    terms = (slope, bend * sd, bend * sdd + turn * sd**2)
    stiffness = (slope.sum(axis=1) - pair.nominal, terms[1].sum(axis=1), terms[2].sum(axis=1))
    sizes = (slope, bend * deltad, bend * deltadd)
    return efforts, stiffness, sizes


def _difference(given: Array, expected: Array | float, size: Array) -> Residual:
    return Residual(given - expected, size)
