# SPDX-License-Identifier: Apache-2.0
"""Flat state from measured motors and links, and feedback linearization, with their programs.

:meth:`ElasticArm.feedforward` maps the flat output, q and its time derivatives (and commanded stiffness), to states and
inputs. The inverse map follows A. De Luca and P. Lucibello, "A general algorithm for dynamic feedback
linearization of robots with elastic joints", IEEE Int. Conf. Robotics and Automation (1998):

    tau = f(theta - q),       qdd  = M⁻¹ (tau - C qd - Q_grav - Q_ext),
    taud = f' (thetad - qd),  qddd = M⁻¹ (taud - (Md + C) qdd - Cd qd - Q_gravd - Q_extd).

A rigid joint has no state beyond q and qd, and its effort acts on qdd directly. To make every joint a chain of four
integrators, two integrators before the motor of each rigid joint hold its qdd and qddd (dynamic feedback). All this is
for the reduced rotor model; in the complete model the state of an arm is not q … qddd.

The efforts of the springs come from :func:`.motor_programs.spring_efforts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import recursion
from ..arguments import real_array, sequence, shape_of
from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES, Array
from ..codegen.expressions import Scalar
from ..codegen.functions import (
    CompiledFunction,
    Keyword,
    Signature,
    Vector,
    compiled_program,
    motion_vectors,
    payload_keyword,
    selected_array,
    stage_of,
    wrench_keyword,
)
from ..codegen.program import Program, trace
from ..codegen.programs import WITH_PAYLOAD, carrying_jets
from ..exceptions import KernelError, StateError
from ..recursion.composite import composite_mass_matrix, of_joints
from ..recursion.inverse_mass_matrix import solver
from ..robot import Robot
from ..robot.payload import PayloadLike
from .elastic_arm import ElasticArm, require_arm
from .feedforward import Feedforward
from .motor_programs import (
    DELTA_NAMES,
    FRICTION_STATE,
    MOTOR_NAMES,
    STIFFNESS_NAMES,
    Vectors,
    spring_efforts,
    spring_names,
)
from .motor_side import MotorSide

HELD = ("qdd_held", "qddd_held")
"""Names of the states of the integrators at rigid joints."""

SPRING_EFFORTS, STIFFNESS = spring_names(), spring_names(quantity="stiffness")
"""Names of measured efforts of the springs and of measured stiffness, with their rates."""

FLAT_STATE = ("q_now", "qd_now", "qdd", "qddd")
"""Results of :func:`flat_state_program`."""

REFERENCE = tuple(f"{name}_reference" for name in STATE_NAMES)
"""Names of the reference motion of :func:`linearizing_snap_program`."""

COMMANDED = tuple(f"{name}_commanded" for name in STIFFNESS_NAMES)
"""Name of the stiffness returned by :func:`linearizing_snap_program`."""


def given_efforts(n: int) -> Program:
    """Measured efforts of n joints and their rates, an alternative to :func:`.motor_programs.spring_efforts`."""

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        zero = [0.0] * n
        return dict(zip((*SPRING_EFFORTS, *STIFFNESS), (*x.values(), zero, zero), strict=True))

    return trace("given_efforts", dict.fromkeys(EFFORT_NAMES[:2], n), compute)


def flat_state_program(robot: Robot, held: Sequence[int], *, payload: bool = False, whole: bool = False) -> Program:
    """qdd and qddd from q, qd, and the efforts of the springs with their rates.

    Args:
        held: joints with qdd and qddd as inputs.
        payload: whether payload parameters at the tools and their rates are inputs, too.
        whole: whether q and qd are results, too.
    """
    n, tree = robot.n, recursion.link_tree(robot)
    free = [joint for joint in range(n) if joint not in held]
    loads = dict.fromkeys(PAYLOAD_NAMES[:2] if payload else (), recursion.PARAMETERS * len(robot.tools))

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        q, qd, P = x["q"], x["qd"], [x[name] for name in loads]
        M = of_joints(composite_mass_matrix(recursion.carrying(tree, P[0]) if P else tree, q))
        solved = solver([[M[i][j] for j in free] for i in free])
        accelerations: list[list[Scalar]] = []
        # Efforts are affine in qdd, and their rates in qddd, both with the slope M.
        for order, wrench in enumerate(([x["W"]], [x["W"], x["Wd"]])):
            known: list[Scalar] = list(x[HELD[order]]) if held else [0.0] * n
            for joint in free:
                known[joint] = 0.0
            loaded = carrying_jets(tree, P[: order + 1])
            effort = recursion.inverse_dynamics(loaded, [q, qd, *accelerations, known], wrench)[order]
            right = [x[SPRING_EFFORTS[order]][joint] - effort[joint] for joint in free]
            for joint, value in zip(free, solved(right), strict=True):
                known[joint] = value
            accelerations.append(known)
        state = dict(zip(FLAT_STATE, (q, qd, *accelerations), strict=True))
        return state if whole else {name: state[name] for name in FLAT_STATE[2:]}

    inputs = dict.fromkeys((*STATE_NAMES[:2], *SPRING_EFFORTS), n)
    inputs |= dict.fromkeys(WRENCH_NAMES[:2], 6 * len(robot.tools)) | dict.fromkeys(HELD if held else (), n)
    return trace("flat_state" + payload * WITH_PAYLOAD, inputs | loads, compute)


def linearizing_snap_program(side: MotorSide, gains: int) -> Program:
    """Fourth derivative of q and commanded stiffness, if any, of feedback linearization.

    Args:
        gains: number of gains: four, or four for each joint.
    """
    n, paired = len(side.springs), np.flatnonzero(side.paired).tolist()

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        snap: list[Scalar] = list(x[REFERENCE[-1]])
        for order, (name, wanted) in enumerate(zip(STATE_NAMES, REFERENCE[:-1], strict=False)):
            for joint in range(n):
                gain = x["gains"][order if gains == len(STATE_NAMES) - 1 else order * n + joint]
                snap[joint] = snap[joint] + gain * (x[wanted][joint] - x[name][joint])
        if not side.variable.any():
            return {STATE_NAMES[-1]: snap}
        k, kd, kdd = (list[Scalar](x[name]) for name in STIFFNESS_NAMES)
        g0, g1 = x["stiffness_gains"]
        for joint in paired:
            now, rate = (x[name][joint] for name in STIFFNESS)
            kdd[joint] = kdd[joint] + (g0 * (k[joint] - now) + g1 * (kd[joint] - rate))
            k[joint], kd[joint] = now, rate
        return {STATE_NAMES[-1]: snap} | dict(zip(COMMANDED, (k, kd, kdd), strict=True))

    inputs = dict.fromkeys((*STATE_NAMES[:-1], *REFERENCE), n) | {"gains": gains}
    if side.variable.any():
        inputs |= dict.fromkeys((*STIFFNESS, *STIFFNESS_NAMES), n) | {"stiffness_gains": 2}
    return trace("linearizing_snap", inputs, compute)


def motor_pd(m: int) -> Program:
    """Effort of m motors with a PD around their motion."""
    names = (*MOTOR_NAMES[:2], "measured_position", "measured_velocity", MOTOR_NAMES[3], "kp", "kd")

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        rows = zip(*(x[name] for name in names), strict=True)
        return {"effort": [u + kp * (p - y) + kd * (v - w) for p, v, y, w, u, kp, kd in rows]}

    return trace("motor_pd", dict.fromkeys(names, m), compute)


# Names of the measurements that determine the spring efforts.
_MEASURED = {"efforts": EFFORT_NAMES[:2], "deflections": DELTA_NAMES[:2], "motors": MOTOR_NAMES[:2]}

_NO_GAINS: Array = np.zeros(2)


class FlatState(NamedTuple):
    """Flat state: flat output and the time derivatives that are states of an elastic arm.

    Attributes:
        q, qd, qdd, qddd: link motion, each (n,) or (N, n), rad or m, and per s, s², s³.
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
    commanded_stiffness: Sequence[ArrayLike] = (),
    rigid: Sequence[ArrayLike] = (),
    payload: PayloadLike | None = None,
) -> FlatState:
    """Flat state of an arm from sensor readings.

    Measured efforts or deflections determine qdd and qddd to full precision. The difference theta - q has the rounding
    error of both angles, which stiffness over inertia amplifies.

    Args:
        arm: the arm.
        motor_position, motor_velocity: measured, (m,) or (N, m), link side of the gear, rad or m, and per s.
        q, qd: joint variables and their rates, (n,) or (N, n).
        efforts: measured joint efforts (tau, taud), (n,) or (N, n). Damped joints require them; rigid joints require
            them or ``rigid``.
        deflections: measured deflections of the springs (delta, deltad), (m,) or (N, m); by default the difference of
            motors and links.
        wrench: (W, Wd), tool wrench and its rate, as for :meth:`ElasticArm.feedforward`.
        commanded_stiffness: (k, kd) at joints with one motor, (n,) or (N, n).
        rigid: (qdd, qddd), (n,) or (N, n), states of the integrators at rigid joints; entries of other joints are
            ignored.
        payload: as for :meth:`ElasticArm.feedforward`.

    Raises:
        StateError: an argument has the wrong shape or is not finite, a joint requires measured efforts, or the arm has
            the complete rotor model.
    """
    _require_reduced(arm)
    source, measured = "motors", (motor_position, motor_velocity)
    for name, readings in (("efforts", efforts), ("deflections", deflections)):
        if len(readings) and source == "motors":
            source, measured = name, _pair(readings, name, _MEASURED[name])
    keywords: dict[str, Any] = {"wrench": wrench, "commanded_stiffness": commanded_stiffness}
    if held := bool(rigid if type(rigid) is tuple else sequence(rigid, "rigid", "qdd and qddd")):
        keywords["rigid"] = _pair(rigid, "rigid", ("qdd", "qddd"))
    if loaded := payload is not None:
        keywords["payload"] = payload
    key = "flat_state", source, held, loaded
    call = arm.calls.get(key)
    if call is None:
        if source != "efforts":
            arm.functions.require_efforts(rigid_too=held)
        call = arm.calls[key] = _flat_state(arm, source, held, loaded).state_call()
    return call(q, qd, *measured, **keywords)


def linearizing_effort(
    arm: ElasticArm,
    state: FlatState,
    reference: Sequence[ArrayLike],
    gains: ArrayLike,
    *,
    commanded_stiffness: Sequence[ArrayLike] = (),
    stiffness_gains: ArrayLike = _NO_GAINS,
    wrench: Sequence[ArrayLike] = (),
    friction_state: ArrayLike | None = None,
    payload: PayloadLike | None = None,
) -> Array:
    """Motor efforts (m,) or (N, m) of feedback linearization, which makes every joint a chain of four integrators.

    For an exact model, the error e = q_ref - q obeys e'''' + g3 e''' + g2 e'' + g1 e' + g0 e = 0: M. W. Spong (1987),
    equation (20) and after. The stiffness of a joint with two motors is a chain of two integrators: Palli et al.
    (2008). Damped springs are not supported, since their deflection is not in the flat state. At rigid joints the state
    includes the integrators; their input is the snap of the reference plus the errors times the gains.

    Args:
        arm: the arm.
        state: result of :func:`flat_state`.
        reference: q, qd, qdd, qddd, qdddd to follow, each (n,) or (N, n).
        gains: g0 … g3, (4,), such as the coefficients of (s + w)⁴, w⁴, 4 w³, 6 w² and 4 w; or (4, n) joint by joint.
        commanded_stiffness: (k, kd, kdd) to follow, each (n,) or (N, n); by default nominal.
        stiffness_gains: (2,) gains on errors of k and kd at joints with two motors.
        wrench: tool wrench with time derivatives (W, Wd, Wdd).
        friction_state: (m,) or (N, m), as for :meth:`ElasticArm.feedforward`.
        payload: as for :meth:`ElasticArm.feedforward`.

    Raises:
        StateError: as for :meth:`ElasticArm.feedforward`; a joint is damped; or the arm has the complete rotor model.
    """
    _require_reduced(arm)
    loaded = payload is not None
    dimensions = len(shape_of(gains, "gains"))
    key = "linearizing_effort", dimensions, loaded
    call = arm.calls.get(key)
    if call is None:
        for name in np.array(arm.robot.joint_names)[arm.damped]:
            raise StateError(f"{name}: is damped; feedback linearization needs springs without dampers")
        call = arm.calls[key] = _linearizing_effort(arm, dimensions, loaded).state_call()
    options: dict[str, Any] = {
        "wrench": wrench,
        "commanded_stiffness": commanded_stiffness,
        "stiffness_gains": stiffness_gains,
        FRICTION_STATE: friction_state,
    }
    if loaded:
        options["payload"] = payload
    motion = sequence(reference, "reference", ", ".join(STATE_NAMES), least=len(STATE_NAMES), most=len(STATE_NAMES))
    return call(*state, *motion, gains, **options)[-1]


def motor_pd_effort(
    command: Feedforward, motor_position: ArrayLike, motor_velocity: ArrayLike, kp: ArrayLike, kd: ArrayLike
) -> Array:
    """Motor efforts (m,) or (N, m) of the feedforward with a PD around its motor motion.

    Args:
        command: the feedforward.
        motor_position, motor_velocity: measured, (m,) or (N, m), on the link side of the gear.
        kp, kd: gains, one number or (m,), N m/rad and N m s/rad (N/m, N s/m).

    Raises:
        StateError: an array is not finite, or has another shape.
    """
    return _motor_pd(command.motor_effort.shape[-1])(
        command.motor_position, command.motor_velocity, motor_position, motor_velocity, command.motor_effort, kp, kd
    )[0]


def _require_reduced(arm: ElasticArm) -> None:
    require_arm(arm)
    if arm.rotors is not None:
        raise StateError(
            f"{arm.robot.name}: in the complete rotor model the state of an arm is not q … qddd; use "
            "rotor_model='reduced'"
        )


def _pair(pair: Sequence[ArrayLike], name: str, of: Sequence[str]) -> tuple[ArrayLike, ArrayLike]:
    if len(pair) != 2:
        raise StateError(f"{name} must be ({', '.join(of)}), has {len(pair)} entries")
    return pair[0], pair[1]


def _flat_state(arm: ElasticArm, source: str, held: bool, loaded: bool) -> CompiledFunction:
    """Function of q, qd and the measurements."""
    n, m = arm.robot.n, len(arm.motor_joint)
    measured = tuple(Vector(name, (n if source == "efforts" else m,), shared=True) for name in _MEASURED[source])
    keywords = (*wrench_keyword(arm.robot.wrench_shape, len(WRENCH_NAMES)), arm.stiffness_keyword)

    def of_rigid_joints(value: Sequence[ArrayLike], samples: tuple[int, ...]) -> list[Array]:
        return [
            selected_array(x, f"rigid {name}", arm.rigid, samples, "rigid joints")
            for x, name in zip(value, STATE_NAMES[2:4], strict=True)
        ]

    if held:
        keywords += (Keyword("rigid", tuple(Vector(name, (n,)) for name in HELD), check=of_rigid_joints),)
    if loaded:
        keywords += (payload_keyword(arm.robot, 2),)
    joints = np.flatnonzero(arm.rigid).tolist() if held else []
    first = given_efforts(n)
    if source != "efforts":
        first = spring_efforts(arm.side, motors=MOTOR_NAMES[:2] if source == "motors" else (), unknown=0.0)
    programs = first, flat_state_program(arm.dynamics.robot, joints, payload=loaded, whole=True)
    results = tuple(Vector(name, (n,)) for name in (*FLAT_STATE, *STIFFNESS))
    return CompiledFunction(
        Signature((*motion_vectors(n, 2), *measured), results, keywords, FlatState),
        [stage_of(program, arm.backend) for program in programs],
        intermediate=dict.fromkeys(SPRING_EFFORTS, n),
        finite_results=True,
    )


def _linearizing_effort(arm: ElasticArm, dimensions: int, loaded: bool) -> CompiledFunction:
    """Function of the state, the reference, and gains with one axis or two."""
    n, orders = arm.robot.n, len(STATE_NAMES) - 1
    gains = Vector("gains", (orders, n)[:dimensions] if dimensions else (orders,), shared=True)
    names = (*STATE_NAMES[1:-1], *STIFFNESS, *REFERENCE)
    arguments = (*motion_vectors(n, 1), *(Vector(name, (n,), shared=True) for name in names), gains)
    keywords = (*wrench_keyword(arm.robot.wrench_shape, len(WRENCH_NAMES)), arm.stiffness_keyword)
    of_pairs = Vector("stiffness_gains", (2,))
    keywords += (Keyword(of_pairs.name, (of_pairs,), alone=True), arm.friction_keyword)
    if loaded:
        keywords += (payload_keyword(arm.robot, len(PAYLOAD_NAMES)),)
    program = linearizing_snap_program(arm.side, prod(gains.shape))
    first = stage_of(program, arm.backend)
    links, motors = arm.stages(payload=loaded)
    renamed = dict(zip(STIFFNESS_NAMES, COMMANDED, strict=True))
    last = motors._replace(inputs=[renamed.get(name, name) for name in motors.inputs])
    results = (Vector(name, (len(arm.motor_joint),)) for name in MOTOR_NAMES)
    signature = Signature(
        (*(replace(x, shared=True) for x in (*arguments, *keywords[1].vectors)), of_pairs),
        tuple(Vector(name, (n,)) for name in program.outputs),
    )
    commands = CompiledFunction(signature, [first])

    def refuse(inputs: Mapping[str, Array]) -> None:
        """Raise the error of the feedforward for the state and the feedback."""
        snap, *stiffness = commands(*(inputs[vector.name] for vector in signature.arguments))
        q, qd, qdd, qddd = (inputs[name] for name in STATE_NAMES[:-1])
        payload = [inputs[name] for name in PAYLOAD_NAMES] if loaded else None
        options: dict[str, Any] = {"wrench": [inputs[name] for name in WRENCH_NAMES], "payload": payload}
        options |= {"commanded_stiffness": stiffness, FRICTION_STATE: inputs[FRICTION_STATE]}
        arm.feedforward(q, qd, qdd, qddd, snap, **options)

    return CompiledFunction(
        Signature(arguments, tuple(results), keywords),
        [first, links, last],
        intermediate=dict.fromkeys((*program.outputs, *EFFORT_NAMES), n),
        finite_results=True,
        refuse=refuse,
    )


@cache
def _motor_pd(m: int) -> Callable[..., tuple[Array, ...]]:
    """Function of the inputs of :func:`motor_pd`."""
    program = motor_pd(m)
    try:
        function = compiled_program(program, "native")
    except KernelError:
        function = compiled_program(program, "numpy")

    def general(*values: ArrayLike) -> tuple[Array, ...]:
        arrays = [real_array(x, name) for x, name in zip(values, program.inputs, strict=True)]
        try:
            rows = np.broadcast_arrays(*arrays)
        except ValueError:
            shapes = ", ".join(f"{name} {x.shape}" for x, name in zip(arrays, program.inputs, strict=True))
            raise StateError(
                f"arrays must have shape ({m},) or (N, {m}), gains be numbers or ({m},): {shapes}"
            ) from None
        return function(*rows)

    return function.state_call(general)
