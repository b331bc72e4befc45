# SPDX-License-Identifier: Apache-2.0
"""Flatness the other way: from measured motors and links to the flat state, and controllers that close the loop.

:meth:`ElasticArm.feedforward` goes from the flat output, q and its time derivatives (and stiffness, where it is
commanded), to all states and inputs. Here is the way back, after A. De Luca and P. Lucibello, "A general algorithm for
dynamic feedback linearization of robots with elastic joints", IEEE Int. Conf. Robotics and Automation (1998):

    tau = f(theta - q),       qdd  = M⁻¹ (tau - C qd - Q_grav - Q_ext),
    taud = f' (thetad - qd),  qddd = M⁻¹ (taud - (Md + C) qdd - Cd qd - Q_gravd - Q_extd).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import StateError
from ..states import joint_states
from .elastic_arm import ElasticArm, Feedforward

Array = NDArray[np.float64]


class FlatState(NamedTuple):
    """The flat output and as many of its time derivatives as the state of an elastic arm holds.

    Attributes:
        q, qd, qdd, qddd: each (n,) or (N, n), rad or m, and per s, s², s³.
        k, kd: stiffness where it is commanded, N m/rad or N/m, and per s, alike; zero at other joints.
    """

    q: Array
    qd: Array
    qdd: Array
    qddd: Array
    k: Array
    kd: Array


def flat_state(
    arm: ElasticArm,
    motor_position: ArrayLike,
    motor_velocity: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    efforts: Sequence[ArrayLike] = (),
    wrench: Sequence[ArrayLike] = (),
    stiffness: Sequence[ArrayLike] = (),
) -> FlatState:
    """The flat state of an arm from what its sensors say.

    Args:
        arm: the arm.
        motor_position, motor_velocity: (m,) or (N, m), link side of the gear, rad or m, and per s.
        q, qd: joint variables and their rates, (n,) or (N, n).
        efforts: (tau, taud), (n,) or (N, n), where sensors measure the efforts in the joints; by default they follow
            from the deflections. A joint that is rigid or has a damper needs them.
        wrench: (W, Wd), tool wrench and its rate, as of :meth:`ElasticArm.feedforward`.
        stiffness: (k, kd) where one motor moves a joint with commanded stiffness, alike.

    Raises:
        StateError: an argument has the wrong shape or is not finite, or a joint needs measured efforts.
    """
    q, qd = joint_states(arm.robot.n, q, qd)
    if len(efforts):
        if len(efforts) != 2:
            raise StateError(f"efforts must be (tau, taud), has {len(efforts)} entries")
        tau, taud = joint_states(arm.robot.n, *efforts)
        k = kd = np.zeros_like(q)
    else:
        tau, taud, k, kd = arm.spring_efforts(motor_position, motor_velocity, q, qd, stiffness=stiffness)
    zero, dynamics = np.zeros_like(q), arm.dynamics
    M = dynamics.mass_matrix(q)
    qdd = _solved(M, tau - dynamics.effort(q, qd, zero, wrench=tuple(wrench)[:1]))
    # M qddd is all that qddd adds to the rate of the efforts.
    without = dynamics.inverse_dynamics(q, qd, qdd, zero, zero, wrench=wrench)[1]
    return FlatState(q, qd, qdd, _solved(M, taud - without), k, kd)


def chain_gains(natural_frequency: float, order: int = 4) -> Array:
    """Gains (order,) of a chain of integrators, on the error and its rates: all poles at -natural_frequency, rad/s.

    They are the coefficients of (s + w)^order but the highest.
    """
    return np.asarray(np.poly(np.full(order, -natural_frequency))[:0:-1], dtype=float)


def linearizing_effort(
    arm: ElasticArm,
    state: FlatState,
    reference: Sequence[ArrayLike],
    gains: ArrayLike,
    *,
    stiffness: Sequence[ArrayLike] = (),
    stiffness_gains: ArrayLike = (0.0, 0.0),
    wrench: Sequence[ArrayLike] = (),
) -> Array:
    """Motor efforts (m,) or (N, m) that make every joint a chain of four integrators, and hold it on a reference.

    The error e = q_ref - q then obeys e'''' + g3 e''' + g2 e'' + g1 e' + g0 e = 0, exactly where the model is: M. W.
    Spong (1987), equation (20) and after. Where two motors move a joint, its stiffness is a chain of two:
    Palli et al. (2008). It needs every joint to be elastic and without damper, for the state holds four derivatives of
    those only.

    Args:
        arm: the arm.
        state: of :func:`flat_state`.
        reference: q, qd, qdd, qddd, qdddd to follow, each (n,) or (N, n).
        gains: (4,) g0 … g3, such as :func:`chain_gains`, or (4, n) for each joint its own.
        stiffness: (k, kd, kdd) to follow, alike; by default nominal.
        stiffness_gains: (2,) on errors of k and kd at joints with two motors.
        wrench: (W, Wd, Wdd), the tool wrench.

    Raises:
        StateError: as :meth:`ElasticArm.feedforward`; a joint is rigid or has a damper.
    """
    arm.require_springs_without_memory()
    n = arm.robot.n
    *wanted, snap = joint_states(n, *reference)
    if len(wanted) != 4:
        raise StateError(f"reference must be q, qd, qdd, qddd, qdddd; has {len(wanted) + 1} entries")
    for gain, value, measured in zip(np.asarray(gains, dtype=float), wanted, state[:4], strict=True):
        snap = snap + gain * (value - measured)
    commanded = arm.stiffness_command(stiffness, state.q.shape)
    if np.any(arm.paired):
        k, kd, kdd = commanded
        g0, g1 = np.asarray(stiffness_gains, dtype=float)
        kdd = kdd + arm.paired * (g0 * (k - state.k) + g1 * (kd - state.kd))
        commanded = [np.where(arm.paired, state.k, k), np.where(arm.paired, state.kd, kd), kdd]
    return arm.feedforward(*state[:4], snap, wrench=wrench, stiffness=commanded).motor_effort


def motor_pd_effort(
    command: Feedforward, motor_position: ArrayLike, motor_velocity: ArrayLike, kp: ArrayLike, kd: ArrayLike
) -> Array:
    """Motor efforts (m,) or (N, m): the feedforward's, and a PD around its motor motion.

    Args:
        command: the feedforward.
        motor_position, motor_velocity: as measured, (m,) or (N, m), link side of the gear.
        kp, kd: gains, one number or (m,), N m/rad and N m s/rad (N/m, N s/m).
    """
    position, velocity = np.asarray(motor_position, dtype=float), np.asarray(motor_velocity, dtype=float)
    proportional = np.asarray(kp, dtype=float) * (command.motor_position - position)
    derivative = np.asarray(kd, dtype=float) * (command.motor_velocity - velocity)
    return command.motor_effort + proportional + derivative


def _solved(M: Array, right: Array) -> Array:
    return np.asarray(np.linalg.solve(M, right[..., np.newaxis])[..., 0], dtype=float)
