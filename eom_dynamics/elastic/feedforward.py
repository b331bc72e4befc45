# SPDX-License-Identifier: Apache-2.0
"""Compiled feedforward of an arm with elastic joints, on a fixed or moving base: link program, then motor program.

Base motion is as an inertial measurement unit measures it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import all_finite, checked_pose, not_negative, real_array, refuse_overflow, sequence
from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES, Array, name_of
from ..codegen import floating_programs
from ..codegen.backends import KERNELS
from ..codegen.floating_programs import IMU_NAMES
from ..codegen.functions import (
    CompiledFunction,
    Keyword,
    Signature,
    Stage,
    Vector,
    compiled_program,
    derivatives,
    motion_vectors,
    payload_keyword,
    selected_array,
    shared_array,
    stage_of,
    wrench_keyword,
)
from ..codegen.programs import WITH_PAYLOAD, inverse_dynamics_of_order
from ..codegen.state_method import CompiledMethods, state_method
from ..dynamics import Dynamics
from ..exceptions import StateError
from ..jet import Jet
from ..recursion.newton_euler import specific_force
from ..robot import Robot
from ..robot.payload import PayloadLike
from .carried_rotors import CarriedRotors, links_with_rotors
from .motor_functions import MotorFunctions
from .motor_programs import DEFLECTION, FRICTION_STATE, MOTOR_NAMES, SETTLED, STIFFNESS_NAMES, directional
from .motor_side import MotorSide

# Derivatives of each part of a BaseMotion, the part itself included.
_ROWS = {"angular_velocity": 4, "specific_force": 3}


class BaseMotion(NamedTuple):
    """Angular velocity and specific force of the base, in its frame; efforts depend on these only.

    Attributes:
        angular_velocity: w, wd, wdd, wddd (4, 3), of N states (4, N, 3), rad/s and time derivatives of the components.
        specific_force: f, fd, fdd (3, 3) or (3, N, 3), acceleration of the base origin minus gravity, as measured by an
            accelerometer there; m/s² and time derivatives of the components.
    """

    angular_velocity: Array
    specific_force: Array


def base_motion(
    robot: Robot,
    pose: ArrayLike,
    V0: ArrayLike,
    V0d: ArrayLike,
    V0dd: ArrayLike | None = None,
    V0ddd: ArrayLike | None = None,
) -> BaseMotion:
    """Motion of a base with a given pose and twist.

    Args:
        robot: robot with gravity in the inertial frame.
        pose: pose (4, 4) of the base in the inertial frame.
        V0, V0d, V0dd, V0ddd: body-fixed twist of the base (angular; linear) and its time derivatives, each (6,). The
            last two may be omitted, which means zero.

    Raises:
        StateError: an argument has the wrong shape or is not finite, or the pose is invalid.
    """
    C0 = checked_pose(real_array(pose, "pose", (4, 4)), "pose")
    twists = [V0, V0d, *(np.zeros(6) if V is None else V for V in (V0dd, V0ddd))]
    V = [real_array(x, name, (6,)) for x, name in zip(twists, ("V0", "V0d", "V0dd", "V0ddd"), strict=True)]
    columns = [Jet(column) for column in np.transpose(V)]
    f = specific_force(columns[:3], columns[3:], (C0[:3, :3].T @ robot.gravity).tolist())
    return BaseMotion(np.array(V)[:, :3], np.transpose([list(x) for x in f]))


def checked_base(base: BaseMotion) -> BaseMotion:
    """Base motion as arrays with all derivatives.

    Raises:
        StateError: ``base`` is not a BaseMotion, or a part has the wrong shape or is not finite.
    """
    parts = sequence(base, "base", "angular_velocity and specific_force, see BaseMotion")
    if len(parts) != len(_ROWS):
        raise StateError(f"base must have {' and '.join(_ROWS)}, see BaseMotion; has {len(parts)} parts")
    checked = []
    for (name, rows), part in zip(_ROWS.items(), parts, strict=True):
        array = real_array(part, f"base {name}")
        if array.ndim not in (2, 3) or array.shape[0] != rows or array.shape[-1] != 3:
            raise StateError(
                f"base {name} must have shape ({rows}, 3) or ({rows}, N, 3), a row for each derivative, zero if it "
                f"is not known; has {array.shape}"
            )
        checked.append(array)
    return BaseMotion(*checked)


_ON_BASE = "feedforward_on_base"


class Feedforward(NamedTuple):
    """Joint efforts, motor motion and motor efforts; motors on the link side of their gears.

    Attributes:
        tau, taud, taudd: joint efforts, (n,) or (N, n), N m or N, and time derivatives.
        motor_position, motor_velocity, motor_acceleration: motor motion, (m,) or (N, m), rad or m, and per s, s².
        motor_effort: motor efforts, (m,) or (N, m), N m or N.
    """

    tau: Array
    taud: Array
    taudd: Array
    motor_position: Array
    motor_velocity: Array
    motor_acceleration: Array
    motor_effort: Array


class FeedforwardMethods(CompiledMethods):
    """Feedforward methods of :class:`.ElasticArm`, including derivatives."""

    dynamics: Dynamics
    side: MotorSide
    functions: MotorFunctions
    rotors: CarriedRotors | None
    variable: NDArray[np.bool_]
    damped: NDArray[np.bool_]
    motor_joint: NDArray[np.intp]

    @state_method
    def feedforward(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike | None = None,
        qdddd: ArrayLike | None = None,
        *,
        wrench: Sequence[ArrayLike] = (),
        commanded_stiffness: Sequence[ArrayLike] = (),
        deflection: ArrayLike | None = None,
        friction_state: ArrayLike | None = None,
        base: BaseMotion | None = None,
        payload: PayloadLike | None = None,
        lead: float = 0.0,
    ) -> Feedforward:
        """Joint efforts, motor motion and motor efforts for a motion of the links.

        In the complete rotor model the result is approximate: the coupling assumes that rotors follow the links, theta
        = q, while motor motion includes the deflections. :func:`.motor_derivatives.motor_jet` is exact.

        Shapes and units of motion and wrench are as in :meth:`Dynamics.inverse_dynamics`.

        Args:
            q, qd, qdd, qddd, qdddd: motion of the links; jerk and snap may be omitted, which means zero.
            wrench: tool wrench with time derivatives.
            commanded_stiffness: (k, kd, kdd), N m/rad or N/m, with time derivatives, each (n,) or (N, n); entries of
                other joints are ignored. By default stiffness is nominal, and derivatives are zero.
            deflection: present deflection of damped springs, (n,) or (N, n), rad or m; entries of other joints are
                ignored. By default deflections are without transient, :meth:`DampedSpring.settled`.
            friction_state: state z in [-1, 1] of presliding friction, (m,) or (N, m), as from
                :meth:`.ElasticArm.friction_states`; entries of other motors are ignored. The default follows from the
                velocity, tanh(thetad/v_0).
            base: motion of the base; by default it is at rest. The first use compiles code for it.
            payload: as for :meth:`Dynamics.inverse_dynamics`. Its rates are part of the rates of efforts, and thereby
                of motor velocity and effort. The first use compiles code for it.
            lead: command lead, s: the command is for the motion this much later, by :meth:`ahead`. A command that a
                drive holds for a period T after a delay D acts, on average, T/2 + D after its instant. With this lead
                the error of the hold is of second order in T.

        Returns:
            Joint efforts, each (n,) or (N, n), and motor motion and efforts, each (m,) or (N, m).

        Raises:
            StateError: an argument has the wrong shape or is not finite, or a stiffness is out of range; or the base
                moves in the complete rotor model; or the lead is negative.
        """
        options: dict[str, Any] = {"wrench": wrench, "commanded_stiffness": commanded_stiffness, "payload": payload}
        if not_negative(lead, "lead"):
            state, later = self.ahead(lead, q, qd, qdd, qddd, qdddd, **options, base=base)
            return self.feedforward(*state, deflection=deflection, friction_state=friction_state, **later)
        options |= {"deflection": deflection, "friction_state": friction_state}
        motion = (q, qd, qdd, qddd, qdddd)
        if base is None:
            return Feedforward(*self._run("feedforward", *motion, **options))
        if self.rotors is not None:
            raise StateError("the complete rotor model has no moving base; use the reduced rotor model")
        return Feedforward(*self._run(_ON_BASE, *motion, base=base, **options))

    def ahead(
        self,
        lead: float,
        *states: ArrayLike | None,
        wrench: Sequence[ArrayLike] = (),
        commanded_stiffness: Sequence[ArrayLike] = (),
        base: BaseMotion | None = None,
        payload: PayloadLike | None = None,
    ) -> tuple[list[Array], dict[str, Any]]:
        """Motion ``lead`` seconds later, by Taylor polynomials of all passed derivatives.

        With the largest fifth derivative within the lead, the error of q is at most lead⁵/120 times this derivative,
        and the error of qdddd lead times it. For a lead of 1 ms and a sine of 10 rad/s, the errors are 1e-12 and 0.01
        times the amplitudes of q and qdddd.

        Args:
            lead: command lead, s, not negative.
            states, wrench, commanded_stiffness, base, payload: as for :meth:`feedforward`.

        Returns:
            q … qdddd, and the other passed arguments, for :meth:`feedforward`.

        Raises:
            StateError: an argument has the wrong shape or is not finite, or the lead is negative.
        """
        after = np.array([not_negative(lead, "lead")])
        options: dict[str, Any] = {"wrench": wrench, "commanded_stiffness": commanded_stiffness}
        options |= {name: x for name, x in (("base", base), ("payload", payload)) if x is not None}
        method = method_name(on_base=base is not None, payload=payload is not None)
        known, samples = self._checked(method, states, options)
        shapes = {vector.name: (*samples, *vector.shape) for vector in self.signature(method).inputs}

        def later(names: Sequence[str]) -> list[Array]:
            whole = shapes[names[0]]
            rows = [np.broadcast_to(known[name], whole).reshape(*samples, -1) for name in names]
            moved = self.functions("ahead", *rows, after, count=len(rows), size=rows[0].shape[-1])
            return [x.reshape(whole) for x in moved]

        others: dict[str, Any] = {}
        if len(wrench):
            others["wrench"] = later(WRENCH_NAMES)
        if len(commanded_stiffness):
            others["commanded_stiffness"] = later(STIFFNESS_NAMES)
        if base is not None:
            others["base"] = BaseMotion(*(np.stack(later(names)) for names in IMU_NAMES))
        if payload is not None:
            others["payload"] = later(PAYLOAD_NAMES)
        return later(STATE_NAMES), others

    def feedforward_partials(self, *motion: ArrayLike | None, **options: Any) -> Feedforward:
        """Partial derivatives of the feedforward with respect to q, qd, qdd, qddd and qdddd.

        Args:
            motion: q, qd, qdd, qddd, qdddd as for :meth:`feedforward`, with the same errors.
            options: wrench, commanded_stiffness, deflection and friction_state as for :meth:`feedforward`.

        Returns:
            For each vector of the feedforward its derivatives (r, 5, n) or (N, r, 5, n). Entry [i, k, j] is the
            derivative of the i-th number with respect to the k-th time derivative of q_j; it is zero without such a
            dependence. A passed deflection or friction state is constant.
        """
        known, samples = self._checked("feedforward", motion, options)
        n, orders, count = self.robot.n, len(STATE_NAMES), samples[0] if samples else 1
        directions = np.eye(orders * n).reshape(orders * n, 1, orders, n)
        changes = [np.broadcast_to(directions[:, :, k], (orders * n, count, n)) for k in range(orders)]
        partials = self._along(known, changes)
        if not all_finite(*partials):
            self._refuse(known)  # raises the error if the feedforward refuses the state
            raise StateError("numbers too large: derivatives of the feedforward would not be finite")
        shaped = (x.reshape(orders, n, *samples, x.shape[-1]) for x in partials)
        return Feedforward(*(np.moveaxis(x, (-1, 0, 1), (-3, -2, -1)) for x in shaped))

    def feedforward_along(self, states: Sequence[Array], changes: Sequence[Array]) -> Feedforward:
        """Derivatives of the feedforward along changes of q … qdddd, without a wrench, at nominal stiffness.

        Deflections of damped springs are without transient. The first use compiles code for it.

        Args:
            states: q, qd, qdd, qddd, qdddd, each (N, n).
            changes: changes of the states, each (D, N, n) for D directions.

        Returns:
            Feedforward of the derivatives, each (D, N, n) or (D, N, m).
        """
        return Feedforward(*self._along(self._checked("feedforward", states, {})[0], changes))

    def _along(self, known: Mapping[str, Array], changes: Sequence[Array]) -> list[Array]:
        """Derivatives (D, N, …) along changes (D, N, n) of q … qdddd, at checked inputs by name."""
        rows, leading = [], changes[0].shape[:2]
        for vector in self._directional.signature.inputs[: -len(STATE_NAMES)]:
            vectors = known[vector.name]  # as passed: wrenches of several tools are rows
            shared = vectors.size == math.prod(vector.shape)
            row = vectors.reshape(*(() if shared else vectors.shape[:1]), *vector.shape)
            rows.append(np.broadcast_to(row, (*leading, *vector.shape)))
        flat = (np.ascontiguousarray(x).reshape(-1, *x.shape[2:]) for x in (*rows, *changes))
        return [x.reshape(*leading, -1) for x in self._directional.results(*flat)]

    def _checked(
        self, method: str, motion: Sequence[ArrayLike | None], options: Mapping[str, Any]
    ) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Finite inputs of a feedforward method by name, and their leading axes, () or (N,)."""
        signature = self.signature(method)
        inputs, samples = signature.checked(tuple(motion), dict(options), finite=True)
        return dict(zip((vector.name for vector in signature.inputs), inputs, strict=True)), samples

    def signature(self, method: str) -> Signature:
        """Signature of ``feedforward`` or ``feedforward_on_base``, as :meth:`.CompiledMethods.signature`.

        With payloads the names end in ``_with_payload``.
        """
        if method.endswith(WITH_PAYLOAD):
            plain = self.signature(method.removesuffix(WITH_PAYLOAD))
            return replace(plain, keywords=(*plain.keywords, payload_keyword(self.robot, len(PAYLOAD_NAMES))))
        n, m = self.robot.n, len(self.motor_joint)
        deflection = Vector(DEFLECTION, (n,), "present deflection of damped springs, rad or m")
        keywords = (
            *wrench_keyword(self.robot.wrench_shape, len(WRENCH_NAMES)),
            self.stiffness_keyword,
            Keyword(
                DEFLECTION,
                (deflection,),
                defaults=(np.full(n, SETTLED),),
                alone=True,
                check=lambda value, samples: [x for x in [self._checked_deflection(value, samples)] if x is not None],
            ),
            self.friction_keyword,
        )
        if method == _ON_BASE:
            parts = tuple(Vector(name, (3,), "motion of the base") for names in IMU_NAMES for name in names)
            keywords += (
                Keyword("base", parts, check=lambda base, _: [row for part in checked_base(base) for row in part]),
            )
        motors = derivatives(MOTOR_NAMES[:3], 3, (m,), "motor positions, link side of the gear, rad or m")
        effort = Vector(MOTOR_NAMES[3], (m,), "motor efforts, link side of the gear, N m or N")
        results = (*derivatives(EFFORT_NAMES, 3, (n,), "joint efforts, N m or N"), *motors, effort)
        return Signature(motion_vectors(n, len(STATE_NAMES), required=3), results, keywords, Feedforward)

    @property
    def stiffness_keyword(self) -> Keyword:
        """Keyword argument for the commanded stiffness."""
        zero = np.zeros(self.robot.n)
        vectors = derivatives(STIFFNESS_NAMES, 3, zero.shape, "commanded stiffness, N m/rad or N/m")
        return Keyword(
            "commanded_stiffness", vectors, defaults=(self.side.nominal_stiffness, zero, zero), check=self._commanded
        )

    @property
    def friction_keyword(self) -> Keyword:
        """Keyword argument for the states of presliding friction."""
        state = Vector(FRICTION_STATE, self.motor_joint.shape, "states of presliding friction")
        settled = np.full(state.shape, SETTLED)
        return Keyword(state.name, (state,), defaults=(settled,), alone=True, check=self._checked_friction_state)

    def stages(self, *, on_base: bool = False, payload: bool = False) -> Sequence[Stage]:
        """Kernels of the feedforward: link program, which may read payloads, then motor program."""
        return self._function(method_name(on_base=on_base, payload=payload)).stages

    def _links(self, *, on_base: bool, payload: bool) -> Stage:
        """Link program."""
        if on_base:
            recipe = floating_programs.efforts_on_base(payload=payload)
            return Stage(KERNELS[self.backend](self.robot, recipe), recipe.inputs, recipe.outputs)
        if self.rotors is None:
            (stage,) = self.dynamics._function("inverse_dynamics" + payload * WITH_PAYLOAD).stages
            return stage
        return stage_of(links_with_rotors(self.robot, self.side, payload=payload), self.backend)

    def _function(self, name: str) -> CompiledFunction:
        if name not in self._functions:
            links = self._links(on_base=name.startswith(_ON_BASE), payload=name.endswith(WITH_PAYLOAD))
            self._functions[name] = CompiledFunction(
                self.signature(name),
                [links, *self.functions.function("motors", spin=self.rotors is not None).stages],
                intermediate={"spin": len(self.motor_joint)} if self.rotors is not None else {},
                finite_results=bool(self.variable.any()),
                refuse=self._refuse,
            )
        return self._functions[name]

    @cached_property
    def _directional(self) -> CompiledFunction:
        """Derivative of the feedforward along a change of q … qdddd."""
        reduced = self.rotors is None
        links = inverse_dynamics_of_order(2)(self.robot) if reduced else links_with_rotors(self.robot, self.side)
        program = directional(links, self.functions.program("motors", spin=not reduced))
        return compiled_program(program, self.backend)

    def _refuse(self, inputs: Mapping[str, Array]) -> None:
        """Raise the error for inputs with a command that is not finite."""
        method = method_name(on_base=IMU_NAMES[1][0] in inputs, payload=PAYLOAD_NAMES[0] in inputs)
        with np.errstate(all="ignore"):
            efforts = self._link_efforts(method, inputs)
        refuse_overflow(efforts, ("effort", "effort_rate", "effort_acceleration"), "joint", self.robot.joint_names)
        tau = efforts[0]
        self.functions.refuse(tau, [np.broadcast_to(inputs[STIFFNESS_NAMES[0]], tau.shape)], np.full(1, np.nan))

    def _link_efforts(self, method: str, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
        """Link efforts of a feedforward method, from checked inputs by name."""
        name = f"links of {method}"
        if name not in self._functions:
            signature, on_base = self.signature(method), method.startswith(_ON_BASE)
            links = self._links(on_base=on_base, payload=method.endswith(WITH_PAYLOAD))
            known = {vector.name: replace(vector, optional=False, shared=True) for vector in signature.inputs}
            of_links = Signature(tuple(known[name] for name in links.inputs), signature.results[: len(EFFORT_NAMES)])
            spin = {"spin": len(self.motor_joint)} if "spin" in links.outputs else {}
            self._functions[name] = CompiledFunction(of_links, [links], intermediate=spin)
        function = self._functions[name]
        return function.results(*(inputs[vector.name] for vector in function.signature.inputs))

    def _commanded(
        self, stiffness: Sequence[ArrayLike], samples: tuple[int, ...], orders: int = len(STIFFNESS_NAMES)
    ) -> list[Array]:
        """Passed commanded stiffness and time derivatives, zero at other joints."""
        rows = []
        for k, x in enumerate(sequence(stiffness, "commanded_stiffness", ", ".join(STIFFNESS_NAMES), most=orders)):
            name = f"stiffness {name_of(STIFFNESS_NAMES, k)}"
            rows.append(selected_array(x, name, self.variable, samples, "joints where it is commanded"))
        return rows

    def _checked_deflection(self, deflection: ArrayLike | None, samples: tuple[int, ...]) -> Array | None:
        """:meth:`deflection_state`; None for None."""
        return None if deflection is None else self.deflection_state(deflection, samples)

    def _checked_friction_state(self, state: ArrayLike | None, samples: tuple[int, ...]) -> list[Array]:
        """State of presliding friction, SETTLED at other motors; empty for None."""
        if state is None:
            return []
        presliding = self.side.presliding
        z = np.where(presliding, shared_array(state, FRICTION_STATE, presliding.shape, samples, finite=False), SETTLED)
        if not np.all((np.abs(z) <= 1.0) | (z == SETTLED)):
            raise StateError(f"{FRICTION_STATE} must be from -1 to 1")
        return [z]

    def deflection_state(self, deflection: ArrayLike, samples: tuple[int, ...] = (), other: float = SETTLED) -> Array:
        """Deflection of damped springs as an array (n,) or (N, n), ``other`` at joints without a damper."""
        return selected_array(deflection, "deflection", self.damped, samples, "damped joints", other)


def method_name(*, on_base: bool, payload: bool) -> str:
    """Name of the feedforward on a base at rest or in motion, without or with payloads."""
    return (_ON_BASE if on_base else "feedforward") + WITH_PAYLOAD * payload
