# SPDX-License-Identifier: Apache-2.0
"""Stored values: states with results of the closed form, against which exported code is tested.

The closed form is independent of the recursion from which the code was traced. Motor motion and efforts are those of
:meth:`eom_dynamics.ElasticArm.feedforward`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..actuators.springs import AntagonisticPair, Spring, VariableSpring
from ..arrays import Array
from ..codegen.emit_python import python_function
from ..codegen.straight_line import angles
from ..elastic import ElasticArm
from ..elastic.elastic_arm import STIFFNESS_NAMES
from ..equations import equations_of_motion
from ..exceptions import EomDynamicsError, KernelWarning
from ..kinematics import body_poses
from ..robot import Robot
from ..states import STATE_NAMES, WRENCH_NAMES
from .motors import DEFLECTION, MOTOR_NAMES, MotorFeedforward
from .plant import ACCELERATIONS, EFFORTS, MOTOR_STATE
from .project import Project

TOLERANCE = 1e-11
"""Allowed error relative to 1 + the largest entry of an output in a state."""

SINGLE_TOLERANCE = 1e-4
"""The same in single precision."""

_STATES = 10

# Angles in one of the states, beyond the 2^20 rad from which the argument reduction of sines differs.
_FAR_TURN = 1e7


class ExportError(EomDynamicsError):
    """Generated code of a robot that differs from the closed form."""


@dataclass(frozen=True)
class StoredValues:
    """States, and results of the closed form for them.

    Attributes:
        inputs: by name (q … qdddd, W … Wdd; those of the motor feedforward if it is exported) arrays (states, size).
        outputs: by name arrays (states, size); matrices in row-major order.
        relative_tolerance: allowed error of exported code, relative to 1 + the largest entry of an output in a state.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    relative_tolerance: float = TOLERANCE

    @property
    def count(self) -> int:
        """Number of states."""
        return len(self.inputs["q"])

    def tolerance(self, output: str) -> Array:
        """Allowed error of an output (states,)."""
        return np.asarray(TOLERANCE * (1.0 + np.abs(self.outputs[output]).max(axis=1)))


def stored_values(project: Project) -> StoredValues:
    """States, always the same for a robot, with the results of all programs of a project.

    In single precision, inputs are numbers of that precision.

    Raises:
        ExportError: a program does not agree with the closed form.
    """
    single = project.precision == "single"
    inputs = _states(project)
    if single:
        inputs = _rounded_to_single(inputs)
    outputs: dict[str, Array] = {}
    for function, program in project.programs.items():
        results = [_CLOSED_FORMS[function](project.robot, *state) for state in zip(*inputs.values(), strict=True)]
        for name, values in zip(program.outputs, zip(*results, strict=True), strict=True):
            outputs[name] = np.array([np.ravel(value) for value in values])
    _check(project, StoredValues(inputs, outputs))
    if project.feedforward is not None:
        commands = _commands(project.feedforward, outputs["tau"])
        inputs |= _rounded_to_single(commands) if single else commands
        outputs |= _motor_side(project.robot, inputs)
    if project.plant:
        motors = _motor_states(project.robot, inputs["q"])
        inputs |= _rounded_to_single(motors) if single else motors
        outputs |= _plant(project, inputs)
    return StoredValues(inputs, outputs, SINGLE_TOLERANCE if single else TOLERANCE)


def _rounded_to_single(arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: values.astype(np.float32).astype(float) for name, values in arrays.items()}


def _states(project: Project) -> dict[str, Array]:
    """Random states with few digits; the first one is zero, and the last one has large angles."""
    robot = project.robot
    random = np.random.default_rng(2021)
    inputs = {name: random.uniform(-np.pi, np.pi, (_STATES, robot.n)) for name in STATE_NAMES}
    inputs |= {name: random.uniform(-10, 10, (_STATES, 6 * len(robot.tools))) for name in WRENCH_NAMES}
    for values in inputs.values():
        values[0] = 0.0
    inputs["q"][-1] *= [_FAR_TURN if _may_turn_far(project, k) else 1.0 for k in range(robot.n)]
    return {name: np.round(values, 4) for name, values in inputs.items()}


def _may_turn_far(project: Project, joint: int) -> bool:
    """Whether large angles of a joint have no rounding error.

    They do if a constant is added, if the angle is multiplied by the length of an axis that is 1 up to rounding, or if
    the axis is off the origin of the joint, where the exponential has the difference of the angle and its sine.
    """
    moving = project.robot.independent_joints[joint]
    exact = moving.type == "revolute" and np.count_nonzero(moving.screw) == 1
    taken = [angle for program in project.programs.values() for angle in angles(program) if angle.position == joint]
    # The joint sides of a transmission are sums of the angles of its motors, which would be rounded.
    exact = exact and not (project.plant and project.robot.transmission)
    return exact and all(angle.scale == 1 and not angle.shift for angle in taken)


def _check(project: Project, stored: StoredValues) -> None:
    for program in project.programs.values():
        entries = [column for name in program.inputs for column in stored.inputs[name].T]
        results = iter(python_function(program)(entries))
        for name, size in program.outputs.items():
            computed = np.transpose([np.broadcast_to(next(results), stored.count) for _ in range(size)])
            errors, allowed = np.abs(computed - stored.outputs[name]).max(axis=1), stored.tolerance(name)
            if not np.all(errors <= allowed):
                worst = np.argmax(errors / allowed)
                raise ExportError(
                    f"{program.name}: {name} differs from the closed form by {errors[worst]:.2g}, "
                    f"more than {allowed[worst]:.2g}; nothing was written"
                )


def _commands(feedforward: MotorFeedforward, tau: Array) -> dict[str, Array]:
    """Commanded stiffness within the range of each spring, and deflections, with few digits."""
    random = np.random.default_rng(2022)
    stiffness = {name: random.uniform(-1.0, 1.0, tau.shape) for name in STIFFNESS_NAMES}
    for place in feedforward.springs:
        if place.spring.is_variable:
            (joint,) = place.joints
            low, high = _stiffness_range(place.spring, tau[:, joint])
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            stiffness["k"][:, joint] = middle + 0.9 * half * stiffness["k"][:, joint]
            for name in STIFFNESS_NAMES[1:]:
                stiffness[name][:, joint] *= half
    deflection = random.uniform(-0.1, 0.1, tau.shape)
    inputs = {**stiffness, DEFLECTION: deflection}
    return {name: np.round(values, 4) for name, values in inputs.items() if name in feedforward.inputs}


def _stiffness_range(spring: Spring, tau: Array) -> tuple[Array, Array]:
    """Stiffness that can be commanded under efforts, N m/rad or N/m; at most twice the least where it has no limit."""
    if isinstance(spring, AntagonisticPair):
        least = spring.least_stiffness(tau)
        return least, 2 * least
    assert isinstance(spring, VariableSpring)
    return np.full_like(tau, spring.lower), np.full_like(tau, spring.upper)


def _motor_side(robot: Robot, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Motor motion and efforts by the library."""
    motion = (inputs[name] for name in STATE_NAMES)
    samples = len(inputs["q"])
    wrench = [np.reshape(inputs[name], (samples, *robot.wrench_shape)) for name in WRENCH_NAMES]
    stiffness = [inputs[name] for name in STIFFNESS_NAMES if name in inputs]
    command = arm_of(robot).feedforward(*motion, wrench=wrench, stiffness=stiffness, deflection=inputs.get(DEFLECTION))
    return {name: getattr(command, name) for name in MOTOR_NAMES}


def _motor_states(robot: Robot, q: Array) -> dict[str, Array]:
    """Motors near the links, under moderate efforts of the springs, and motor efforts, with few digits."""
    random = np.random.default_rng(2023)
    arm = arm_of(robot)
    tau, taud = random.uniform(-5.0, 5.0, (2, *q.shape))
    delta, deltad, *_ = arm.deflections(tau, taud, np.zeros_like(tau))
    theta = arm.motors_following(q) + _geared(arm, delta)
    rates = np.round(_geared(arm, deltad), 6)
    effort = np.round(random.uniform(-20.0, 20.0, theta.shape), 4)
    return {"theta": np.round(theta, 6), "thetad": rates, "tau_m": effort}


def _geared(arm: ElasticArm, delta: Array) -> Array:
    """Motor positions (N, m) of deflections at the springs (N, m)."""
    if arm.transmission is None:
        return delta
    joints, transmission = arm.transmission
    places = np.searchsorted(arm.motor_joint, joints)
    delta = delta.copy()
    delta[:, places] = transmission.motors(delta[:, places])
    return delta


def _plant(project: Project, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Efforts of the springs, and accelerations, by the library."""
    from ..simulation import ElasticPlant

    arm = arm_of(project.robot)
    plant = ElasticPlant(arm)
    q, qd, theta, thetad = (inputs[name] for name in ("q", "qd", *MOTOR_STATE))
    stiffness = [inputs[name] for name in STIFFNESS_NAMES[:2] if name in inputs]
    deflections = [plant.deflection(theta, q), plant.deflection(thetad, qd)]
    tau, k = arm.spring_set.effort_jets(deflections, stiffness)
    outputs = {name: np.nan_to_num(x) for name, x in zip(EFFORTS, (*tau, *k), strict=True)}
    rates = np.array(
        [
            plant.rate(np.concatenate(row[:4]), row[4], *row[5:])
            for row in zip(q, theta, qd, thetad, inputs["tau_m"], *stiffness[:1], strict=True)
        ]
    )
    n = project.robot.n
    outputs |= zip(ACCELERATIONS, np.split(rates[:, n + theta.shape[1] :], [n], axis=1), strict=True)
    return {name: x for name, x in outputs.items() if any(name in each.outputs for each in project.plant.values())}


def arm_of(robot: Robot) -> ElasticArm:
    """The arm of a robot, without a warning where its kernels are slow for lack of a compiler."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWarning)
        return ElasticArm(robot)


def _at_tools(robot: Robot, *wrench: Array) -> list[Array]:
    """Wrenches of all tools, in the shape that the closed form expects."""
    return [np.reshape(W, robot.wrench_shape) for W in wrench]


def _inverse_dynamics(robot: Robot, *state: Array) -> tuple[Array, ...]:
    q, qd, qdd, qddd, qdddd, *wrench = state
    return equations_of_motion(robot, q, qd, qdd, qddd, wrench=_at_tools(robot, *wrench)).efforts(qdddd)


def _effort(robot: Robot, *state: Array) -> tuple[Array, ...]:
    q, qd, qdd, _, _, W, *_ = state
    return equations_of_motion(robot, q, qd, wrench=_at_tools(robot, W)).efforts(qdd)


def _mass_matrix(robot: Robot, *state: Array) -> tuple[Array, ...]:
    q, qd, *_ = state
    return (equations_of_motion(robot, q, qd).M[0],)


def _effort_partials(robot: Robot, *state: Array) -> tuple[Array, ...]:
    """Partial derivatives of tau, from time derivatives along suitable motions.

    With C of Christoffel symbols, C(x) y = C(y) x is linear in both, and so is its derivative along w,
    B(w; x) y. At qd = w and qdd = 0, dC/dt is B(w; w). With unit vectors e and bilinearity,

        B(e; qd) qd = (B(e + qd; e + qd) - B(e; e) - B(qd; qd)) qd - B(qd; qd) e.
    """
    q, qd, qdd, _, _, W, *_ = state
    rest = np.zeros(robot.n)
    moving = equations_of_motion(robot, q, qd, rest, wrench=_at_tools(robot, W))
    columns = []
    for e in np.eye(robot.n):
        along = equations_of_motion(robot, q, e, rest, wrench=_at_tools(robot, W))
        both = equations_of_motion(robot, q, e + qd, rest, wrench=_at_tools(robot, W))
        coriolis = (both.C[1] - along.C[1] - moving.C[1]) @ qd - moving.C[1] @ e
        columns.append(along.M[1] @ qdd + coriolis + along.gravity[1] + along.external[1])
    return np.transpose(columns), 2 * moving.C[0], moving.M[0]


def _forward_kinematics(robot: Robot, *state: Array) -> tuple[Array, ...]:
    """Poses of the tools by the product of exponentials."""
    bodies = body_poses(robot, state[0])
    return tuple(bodies[tool.joint] @ tool.pose if tool.joint >= 0 else tool.pose for tool in robot.tools)


_CLOSED_FORMS: Mapping[str, Callable[..., Iterable[Array]]] = {
    "inverse_dynamics": _inverse_dynamics,
    "effort": _effort,
    "mass_matrix": _mass_matrix,
    "effort_partials": _effort_partials,
    "forward_kinematics": _forward_kinematics,
}
