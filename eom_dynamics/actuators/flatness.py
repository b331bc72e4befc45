# SPDX-License-Identifier: Apache-2.0
"""Flatness the other way: from measured motors and links to the flat state, and controllers that close the loop.

:meth:`ElasticArm.feedforward` goes from the flat output, q and its time derivatives (and stiffness, where it is
commanded), to all states and inputs. Here is the way back, after A. De Luca and P. Lucibello, "A general algorithm for
dynamic feedback linearization of robots with elastic joints", IEEE Int. Conf. Robotics and Automation (1998):

    tau = f(theta - q),       qdd  = M⁻¹ (tau - C qd - Q_grav - Q_ext),
    taud = f' (thetad - qd),  qddd = M⁻¹ (taud - (Md + C) qdd - Cd qd - Q_gravd - Q_extd).

A rigid joint has no state beyond q and qd, and its effort acts on qdd at once. So that all joints of an arm are chains
of four integrators, two are put before the motor of each rigid one, and their states are its qdd and qddd: dynamic
feedback. All of it is for the reduced model of rotors; in the complete one the state of an arm is not q … qddd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
    deflections: Sequence[ArrayLike] = (),
    wrench: Sequence[ArrayLike] = (),
    stiffness: Sequence[ArrayLike] = (),
    rigid: Sequence[ArrayLike] = (),
) -> FlatState:
    """The flat state of an arm from what its sensors say.

    Efforts or deflections that are measured as such tell qdd and qddd to full precision. The difference theta - q of
    two angles has lost digits before it comes here, by stiffness over inertia times as many as the angles have.

    Args:
        arm: the arm.
        motor_position, motor_velocity: (m,) or (N, m), link side of the gear, rad or m, and per s.
        q, qd: joint variables and their rates, (n,) or (N, n).
        efforts: (tau, taud), (n,) or (N, n), where sensors measure the efforts in the joints. A joint that has a damper
            needs them, and one that is rigid them or ``rigid``.
        deflections: (delta, deltad), (m,) or (N, m), where sensors measure the deflections of the springs instead; by
            default they are the difference of motors and links.
        wrench: (W, Wd), tool wrench and its rate, as of :meth:`ElasticArm.feedforward`.
        stiffness: (k, kd) where one motor moves a joint with commanded stiffness, alike.
        rigid: (qdd, qddd), (n,) or (N, n), of rigid joints, as the integrators before their motors hold them; entries
            of other joints are not read.

    Raises:
        StateError: an argument has the wrong shape or is not finite, a joint needs measured efforts, or the arm has the
            complete model of rotors.
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
    # M qdd is all that qdd adds to the efforts, and M qddd all that qddd adds to their rate.
    qdd = _with_solved(M, tau - dynamics.effort(q, qd, given[0], wrench=tuple(wrench)[:1]), given[0], free)
    without = dynamics.inverse_dynamics(q, qd, qdd, given[1], zero, wrench=wrench)[1]
    return FlatState(q, qd, qdd, _with_solved(M, taud - without, given[1], free), k, kd)


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
    Palli et al. (2008). No joint may have a damper, whose memory is no part of the state. Of rigid joints the state
    holds what the integrators before their motors do; let these run with the fourth derivative that
    :func:`linearizing_snap` gives.

    Args:
        arm: the arm.
        state: of :func:`flat_state`.
        reference: q, qd, qdd, qddd, qdddd to follow, each (n,) or (N, n).
        gains: (4,) g0 … g3, such as :func:`chain_gains`, or (4, n) for each joint its own.
        stiffness: (k, kd, kdd) to follow, alike; by default nominal.
        stiffness_gains: (2,) on errors of k and kd at joints with two motors.
        wrench: (W, Wd, Wdd), the tool wrench.

    Raises:
        StateError: as :meth:`ElasticArm.feedforward`; a joint has a damper; or the arm has the complete model of
            rotors.
    """
    _require_reduced(arm)
    for name in np.array(arm.robot.joint_names)[arm.damped]:
        raise StateError(f"{name}: is damped; no spring may have a damper")
    snap = linearizing_snap(state, reference, gains)
    commanded = arm.stiffness_command(stiffness, state.q.shape)
    if np.any(arm.paired):
        k, kd, kdd = commanded
        g0, g1 = np.asarray(stiffness_gains, dtype=float)
        kdd = kdd + arm.paired * (g0 * (k - state.k) + g1 * (kd - state.kd))
        commanded = [np.where(arm.paired, state.k, k), np.where(arm.paired, state.kd, kd), kdd]
    return arm.feedforward(*state[:4], snap, wrench=wrench, stiffness=commanded).motor_effort


def linearizing_snap(state: FlatState, reference: Sequence[ArrayLike], gains: ArrayLike) -> Array:
    """The fourth derivative (n,) or (N, n) that :func:`linearizing_effort` gives to q: s⁻⁴ of it is the motion.

    Arguments and errors are of that.
    """
    *wanted, snap = joint_states(state.q.shape[-1], *reference)
    if len(wanted) != 4:
        raise StateError(f"reference must be q, qd, qdd, qddd, qdddd; has {len(wanted) + 1} entries")
    for gain, value, measured in zip(np.asarray(gains, dtype=float), wanted, state[:4], strict=True):
        snap = snap + gain * (value - measured)
    return snap


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


def _require_reduced(arm: ElasticArm) -> None:
    if arm.rotors is not None:
        raise StateError(
            f"{arm.robot.name}: in the complete model of rotors the state of an arm is not q … qddd; take "
            "rotor_model='reduced'"
        )


def _of_rigid_joints(arm: ElasticArm, rigid: Sequence[ArrayLike], shape: tuple[int, ...]) -> tuple[Array, Array] | None:
    """qdd and qddd with zeros at joints that are not rigid, or None where nothing is given."""
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
    """The vectors (…, n) with entries ``free`` such that M takes these to the right side's."""
    solved = np.array(given)
    square = M[..., free, :][..., free]
    solved[..., free] = np.linalg.solve(square, right[..., free, np.newaxis])[..., 0]
    return solved
