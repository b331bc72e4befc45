# SPDX-License-Identifier: Apache-2.0
"""Flat state from measured motors and links, and feedback linearization.

:meth:`ElasticArm.feedforward` maps the flat output, q and its time derivatives (and commanded stiffness), to states and
inputs. The inverse map follows A. De Luca and P. Lucibello, "A general algorithm for dynamic feedback
linearization of robots with elastic joints", IEEE Int. Conf. Robotics and Automation (1998):

    tau = f(theta - q),       qdd  = M⁻¹ (tau - C qd - Q_grav - Q_ext),
    taud = f' (thetad - qd),  qddd = M⁻¹ (taud - (Md + C) qdd - Cd qd - Q_gravd - Q_extd).

A rigid joint has no state beyond q and qd, and its effort acts on qdd directly. To make every joint a chain of four
integrators, two integrators before the motor of each rigid joint hold its qdd and qddd (dynamic feedback). All this is
for the reduced rotor model; in the complete one the state of an arm is not q … qddd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import StateError
from ..states import joint_states
from .elastic_arm import ElasticArm, Feedforward


class FlatState(NamedTuple):
    """Flat output with the time derivatives that are states of an elastic arm.

    Attributes:
        q, qd, qdd, qddd: each (n,) or (N, n), rad or m, and per s, s², s³.
        k, kd: commanded stiffness, N m/rad or N/m, and its rate, each (n,) or (N, n); zero at other joints.
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
    deflections: Sequence[ArrayLike] = (),
    wrench: Sequence[ArrayLike] = (),
    stiffness: Sequence[ArrayLike] = (),
    rigid: Sequence[ArrayLike] = (),
) -> FlatState:
    """Flat state of an arm from sensor readings.

    Measured efforts or deflections determine qdd and qddd to full precision. The difference theta - q has the rounding
    error of both angles, which stiffness over inertia amplifies.

    Args:
        arm: the arm.
        motor_position, motor_velocity: (m,) or (N, m), link side of the gear, rad or m, and per s.
        q, qd: joint variables and their rates, (n,) or (N, n).
        efforts: measured joint efforts (tau, taud), (n,) or (N, n). Damped joints require them; rigid joints require
            them or ``rigid``.
        deflections: measured deflections of the springs (delta, deltad), (m,) or (N, m); by default the difference of
            motors and links.
        wrench: (W, Wd), tool wrench and its rate, as for :meth:`ElasticArm.feedforward`.
        stiffness: commanded stiffness (k, kd) at joints with one motor, (n,) or (N, n).
        rigid: (qdd, qddd), (n,) or (N, n), states of the integrators at rigid joints; entries of other joints are not
            read.

    Raises:
        StateError: an argument has the wrong shape or is not finite, a joint requires measured efforts, or the arm has
            the complete rotor model.
    """
    _require_reduced(arm)
    q, qd = joint_states(arm.robot.n, q, qd)
    if len(efforts):
        if len(efforts) != 2:
            raise StateError(f"efforts must be (tau, taud), has {len(efforts)} entries")
        tau, taud = joint_states(arm.robot.n, *efforts)
        k = kd = np.zeros_like(q)
    elif len(deflections):
        if len(deflections) != 2:
            raise StateError(f"deflections must be (delta, deltad), has {len(deflections)} entries")
        measured = arm.efforts_of_deflections(*deflections, stiffness=stiffness, rigid_too=bool(len(rigid)))
        tau, taud, k, kd = measured
    else:
        tau, taud, k, kd = arm.spring_efforts(
            motor_position, motor_velocity, q, qd, stiffness=stiffness, rigid_too=bool(len(rigid))
        )
    zero, dynamics = np.zeros_like(q), arm.dynamics
    known = _of_rigid_joints(arm, rigid, q.shape)
    M = dynamics.mass_matrix(q)
    free = slice(None) if known is None else np.flatnonzero(~arm.rigid)
    given = (zero, zero) if known is None else known
    # Efforts are affine in qdd, and their rates in qddd, both with the slope M.
    qdd = _with_solved(M, tau - dynamics.effort(q, qd, given[0], wrench=tuple(wrench)[:1]), given[0], free)
    without = dynamics.inverse_dynamics(q, qd, qdd, given[1], zero, wrench=wrench)[1]
    return FlatState(q, qd, qdd, _with_solved(M, taud - without, given[1], free), k, kd)


def chain_gains(natural_frequency: float, order: int = 4) -> Array:
    """Gains (order,) on the error and its rates that put all poles of a chain of integrators at -natural_frequency.

    They are the coefficients of (s + w)^order, lowest first, without the highest.

    Args:
        natural_frequency: w, rad/s.
        order: number of integrators.
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
    """Motor efforts (m,) or (N, m) of feedback linearization, which makes every joint a chain of four integrators.

    The error e = q_ref - q obeys e'''' + g3 e''' + g2 e'' + g1 e' + g0 e = 0 where the model is exact: M. W. Spong
    (1987), equation (20) and after. Where two motors move a joint, its stiffness is a chain of two integrators: Palli
    et al. (2008). Damped springs are not supported, since their deflection is not in the flat state. At rigid joints
    the state has that of the integrators; :func:`linearizing_snap` is their input.

    Args:
        arm: the arm.
        state: result of :func:`flat_state`.
        reference: q, qd, qdd, qddd, qdddd to follow, each (n,) or (N, n).
        gains: g0 … g3, (4,) such as :func:`chain_gains`, or (4, n) joint by joint.
        stiffness: (k, kd, kdd) to follow, each (n,) or (N, n); by default nominal.
        stiffness_gains: (2,) gains on errors of k and kd at joints with two motors.
        wrench: tool wrench with time derivatives (W, Wd, Wdd).

    Raises:
        StateError: as for :meth:`ElasticArm.feedforward`; a joint is damped; or the arm has the complete rotor model.
    """
    _require_reduced(arm)
    for name in np.array(arm.robot.joint_names)[arm.damped]:
        raise StateError(f"{name}: is damped; feedback linearization needs springs without dampers")
    snap = linearizing_snap(state, reference, gains)
    commanded = arm.stiffness_command(stiffness, state.q.shape)
    if np.any(arm.paired):
        k, kd, kdd = commanded
        g0, g1 = np.asarray(stiffness_gains, dtype=float)
        kdd = kdd + arm.paired * (g0 * (k - state.k) + g1 * (kd - state.kd))
        commanded = [np.where(arm.paired, state.k, k), np.where(arm.paired, state.kd, kd), kdd]
    return arm.feedforward(*state[:4], snap, wrench=wrench, stiffness=commanded).motor_effort


def linearizing_snap(state: FlatState, reference: Sequence[ArrayLike], gains: ArrayLike) -> Array:
    """Fourth derivative of q (n,) or (N, n) under :func:`linearizing_effort`, whose arguments and errors it has."""
    *wanted, snap = joint_states(state.q.shape[-1], *reference)
    if len(wanted) != 4:
        raise StateError(f"reference must be q, qd, qdd, qddd, qdddd; has {len(wanted) + 1} entries")
    for gain, value, measured in zip(np.asarray(gains, dtype=float), wanted, state[:4], strict=True):
        snap = snap + gain * (value - measured)
    return snap


def motor_pd_effort(
    command: Feedforward, motor_position: ArrayLike, motor_velocity: ArrayLike, kp: ArrayLike, kd: ArrayLike
) -> Array:
    """Motor efforts (m,) or (N, m) of the feedforward with a PD around its motor motion.

    Args:
        command: the feedforward.
        motor_position, motor_velocity: measured, (m,) or (N, m), on the link side of the gear.
        kp, kd: gains, one number or (m,), N m/rad and N m s/rad (N/m, N s/m).
    """
    position, velocity = np.asarray(motor_position, dtype=float), np.asarray(motor_velocity, dtype=float)
    proportional = np.asarray(kp, dtype=float) * (command.motor_position - position)
    derivative = np.asarray(kd, dtype=float) * (command.motor_velocity - velocity)
    return command.motor_effort + proportional + derivative


def _require_reduced(arm: ElasticArm) -> None:
    if arm.rotors is not None:
        raise StateError(
            f"{arm.robot.name}: in the complete rotor model the state of an arm is not q … qddd; use "
            "rotor_model='reduced'"
        )


def _of_rigid_joints(arm: ElasticArm, rigid: Sequence[ArrayLike], shape: tuple[int, ...]) -> tuple[Array, Array] | None:
    """qdd and qddd with zeros at elastic joints, or None if nothing is given."""
    if not len(rigid):
        return None
    if len(rigid) != 2:
        raise StateError(f"rigid must be (qdd, qddd), has {len(rigid)} entries")
    rows = [np.asarray(x, dtype=float) for x in rigid]
    if any(x.shape not in (shape, shape[-1:]) for x in rows):
        raise StateError(f"rigid must be (qdd, qddd) of shape {shape}")
    first, second = (np.where(arm.rigid, np.broadcast_to(x, shape), 0.0) for x in rows)
    if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
        raise StateError("rigid must be finite at rigid joints")
    return first, second


def _with_solved(M: Array, right: Array, given: Array, free: Any) -> Array:
    """Replace entries ``free`` of given (…, n) by the solution of M[free, free] x = right[free]."""
    solved = np.array(given)
    square = M[..., free, :][..., free]
    solved[..., free] = np.linalg.solve(square, right[..., free, np.newaxis])[..., 0]
    return solved
