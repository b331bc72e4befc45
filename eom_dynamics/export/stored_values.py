# SPDX-License-Identifier: Apache-2.0
"""Stored values for tests of exported code: states, program results over arrays, and values of a control loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import EFFORT_NAMES, PAYLOAD_NAMES, STATE_NAMES, WRENCH_NAMES, Array
from ..codegen.floating_programs import IMU_NAMES
from ..codegen.programs import WITH_PAYLOAD
from ..codegen.straight_line import python_function
from ..elastic.drive_programs import DRIVE_NAMES, SHARE
from ..elastic.flatness import HELD
from ..elastic.motor_programs import DEFLECTION, FRICTION_STATE, MOTOR_NAMES, SETTLED, STIFFNESS_NAMES
from ..elastic.motor_side import MotorSide
from ..jet import Jet
from ..recursion import PARAMETERS
from .functions import OF_DRIVES, OF_MOTORS, PLANT, Function, Steps, links_of, traced
from .project import Project

TOLERANCE = 1e-11
"""Allowed error relative to 1 + the largest entry of an output in a state."""

# Large angles of a state, beyond the 2^20 rad at which the argument reduction of sines changes.
_FAR_TURN = 1e7


Values = Mapping[str, Array]


@dataclass(frozen=True)
class StoredValues:
    """States, and results of the programs.

    Attributes:
        inputs: inputs of all functions by name, each (states, size), including results of other functions.
        outputs: results by function and name, each (states, size); matrices in row-major order.
    """

    inputs: Values
    outputs: Mapping[str, Values]

    @property
    def count(self) -> int:
        """Number of states."""
        return len(self.inputs["q"])

    def tolerance(self, function: str, output: str) -> Array:
        """Allowed error of an output (states,)."""
        largest = np.nan_to_num(np.abs(self.outputs[function][output])).max(axis=1)
        return np.asarray(TOLERANCE * (1.0 + largest))

    def named(self, functions: Mapping[str, Function]) -> tuple[dict[str, Array], dict[str, dict[str, str]]]:
        """All arrays of functions by unique name, and the names by function and vector."""
        arrays: dict[str, Array] = {}
        names: dict[str, dict[str, str]] = {}
        for key, function in functions.items():
            values = {**{name: self.inputs[name] for name in function.inputs}, **self.outputs[key]}
            names[key] = {}
            for vector, array in values.items():
                name, number = vector, 1
                while name in arrays and not np.array_equal(arrays[name], array, equal_nan=True):
                    number += 1
                    name = f"{vector}_{number}"
                arrays[name], names[key][vector] = array, name
        return arrays, names


def stored_values(project: Project, states: int = 10) -> StoredValues:
    """Reproducible states of a robot, with the results of all functions of a project.

    Args:
        project: the functions.
        states: number of states, at least 2.
    """
    inputs = _states(project, states)
    if set(project.functions) & {*OF_MOTORS, PLANT, *OF_DRIVES}:
        links = links_of(project.robot)
        others = ("efforts_on_base", "efforts_on_base" + WITH_PAYLOAD, links + WITH_PAYLOAD)
        efforts = {
            name: program_results(project, name, inputs)
            for name in (links, *others)
            if name == links or name in project.functions
        }
        inputs |= efforts[links]
        inputs |= _commands(project.side, [x["tau"] for x in efforts.values()])
        inputs |= _motor_states(project.side, inputs) | _drives(project.side, states)
        inputs |= _held(project.side, states)
        # Functions with results that other functions take.
        for name in ("motors", "spring_efforts", "spring_loads"):
            inputs |= program_results(project, name, inputs) if name in project.functions else {}
        inputs |= _motors_before(project.side, inputs[MOTOR_NAMES[0]])
    outputs: dict[str, Values] = {}
    for key, function in project.functions.items():
        results: dict[str, Array] = {}
        for name in function.keys if isinstance(function, Steps) else (key,):
            results |= program_results(project, name, {**inputs, **results})
        outputs[key] = {name: results[name] for name in function.outputs}
    return StoredValues(inputs, outputs)


def _states(project: Project, count: int) -> dict[str, Array]:
    """Random states with few digits; the first state is zero, and the last state has large angles."""
    robot = project.robot
    random = np.random.default_rng(2021)
    inputs = {name: random.uniform(-np.pi, np.pi, (count, robot.n)) for name in STATE_NAMES}
    inputs |= {name: random.uniform(-10, 10, (count, 6 * len(robot.tools))) for name in WRENCH_NAMES}
    inputs |= {name: random.uniform(-10, 10, (count, 3)) for names in IMU_NAMES for name in names}
    inputs |= {name: random.uniform(0.1, 1, (count, PARAMETERS * len(robot.tools))) for name in PAYLOAD_NAMES[1:]}
    inputs[PAYLOAD_NAMES[0]] = _payloads(random, count, len(robot.tools))
    for values in inputs.values():
        values[0] = 0.0
    inputs["q"][-1] *= [_FAR_TURN if _may_turn_far(project, k) else 1.0 for k in range(robot.n)]
    return {name: np.round(values, 4) for name, values in inputs.items()}


def _payloads(random: np.random.Generator, count: int, tools: int) -> Array:
    """Inertial parameters of four particles at each tool, since others may make a mass matrix singular."""
    masses, places = random.uniform(0.1, 1, (count, tools, 4)), random.uniform(-0.3, 0.3, (count, tools, 4, 3))
    second = np.einsum("...k,...ki,...kj", masses, places, places)
    inertia = np.trace(second, axis1=-2, axis2=-1)[..., np.newaxis, np.newaxis] * np.eye(3) - second
    moment = np.einsum("...k,...ki", masses, places)
    rows, columns = np.triu_indices(3)
    parts = [masses.sum(-1, keepdims=True), moment, inertia[..., rows, columns]]
    return np.concatenate(parts, axis=-1).reshape(count, -1)


def _may_turn_far(project: Project, joint: int) -> bool:
    """True if large angles of a joint have no rounding error.

    Rounding errors arise if a constant is added, or if the angle is multiplied by an axis length of 1 up to rounding.
    They also arise if the axis is off the origin of the joint: the exponential then contains the difference of the
    angle and its sine.
    """
    moving = project.robot.independent_joints[joint]
    exact = moving.type == "revolute" and np.count_nonzero(moving.screw) == 1
    taken = [angle for program in project.programs.values() for angle in program.angles if angle.position == joint]
    # The joint sides of a transmission are sums of motor angles, which would be rounded.
    exact = exact and not ({"spring_efforts", "spring_loads"} & set(project.functions) and project.robot.transmission)
    return exact and all(angle.scale == 1 and not angle.shift for angle in taken)


def program_results(project: Project, function: str, inputs: Values) -> dict[str, Array]:
    """Results (states, size) of a program by name, from its operations over arrays."""
    # Link efforts are inputs of motor functions, even if the project lacks their function.
    program = project.programs.get(function) or traced(project.robot, project.side, function)
    entries = [column for name in program.inputs for column in inputs[name].T]
    with np.errstate(all="ignore"):
        results = iter(python_function(program)(entries))
    return {
        name: np.transpose([np.broadcast_to(next(results), len(inputs["q"])) for _ in range(size)])
        for name, size in program.outputs.items()
    }


def _commands(side: MotorSide, efforts: Sequence[Array]) -> dict[str, Array]:
    """Stiffness within each spring's range under all efforts, deflections, and steps; with few digits."""
    random = np.random.default_rng(2022)
    shape = efforts[0].shape
    stiffness = {name: random.uniform(-1.0, 1.0, shape) for name in STIFFNESS_NAMES}
    for joint in np.flatnonzero(side.variable):
        ranges = np.broadcast_arrays(
            *(x for tau in efforts for x in side.springs[joint].stiffness_range(tau[:, joint]))
        )
        low, high = np.max(ranges[::2], axis=0), np.min(ranges[1::2], axis=0)
        high = np.where(np.isfinite(high), high, 2 * low)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        stiffness["k"][:, joint] = middle + 0.9 * half * stiffness["k"][:, joint]
        for name in STIFFNESS_NAMES[1:]:
            stiffness[name][:, joint] *= half
    deflection = random.uniform(-0.1, 0.1, shape)
    deflection[1] = SETTLED
    step = random.uniform(0.0, 0.1, (len(deflection), 1))
    step[2:4] = [[0.0], [-1.0]]
    before = {f"{name}_before": random.uniform(-20.0, 20.0, shape) for name in EFFORT_NAMES}
    inputs = {**stiffness, DEFLECTION: deflection, "step": step, **before}
    inputs[FRICTION_STATE] = random.uniform(-1.0, 1.0, (len(deflection), len(side.motor_joint)))
    inputs[FRICTION_STATE][1] = SETTLED
    return {name: np.round(values, 4) for name, values in inputs.items()}


def _motors_before(side: MotorSide, position: Array) -> dict[str, Array]:
    """Motor positions before a step: within the presliding distance, or far beyond."""
    random = np.random.default_rng(2026)
    distance = np.array([side.actuators[joint].friction.presliding_distance for joint in side.motor_joint])
    displacements = random.uniform(-2.0, 2.0, position.shape) * np.fmax(distance, 0.1)
    return {f"{MOTOR_NAMES[0]}_before": np.round(position + displacements, 6)}


def _motor_states(side: MotorSide, inputs: Values) -> dict[str, Array]:
    """Motor motion with the links under moderate spring efforts, and motor efforts, with few digits."""
    random, q = np.random.default_rng(2023), inputs["q"]
    delta, _ = side.deflections([Jet([*x]) for x in np.moveaxis(random.uniform(-5.0, 5.0, (3, *q.shape)), -1, 0)])
    theta, rates = (
        side.motors_of([inputs[name][:, i] + jet[k] for i, jet in zip(side.motor_joint, delta, strict=True)])
        for k, name in enumerate(("q", "qd"))
    )
    effort = random.uniform(-20.0, 20.0, (len(q), len(delta)))
    states = {"theta": np.column_stack(theta), "thetad": np.column_stack(rates), "tau_m": effort}
    return {name: np.round(x, 4 if name == "tau_m" else 6) for name, x in states.items()}


def _held(side: MotorSide, count: int) -> dict[str, Array]:
    """Accelerations of rigid joints and their rates, inputs of ``flat_state``; with few digits."""
    random = np.random.default_rng(2024)
    return {name: np.round(random.uniform(-5.0, 5.0, (count, len(side.rigid))), 4) for name in HELD}


def _drives(side: MotorSide, count: int) -> dict[str, Array]:
    """Drive numbers, and shares of the efforts that the robot adds; motors if no function computes them."""
    random = np.random.default_rng(2025)
    shape = count, len(side.motor_joint)
    numbers = {name: np.round(random.uniform(-20.0, 20.0, shape), 4) for name in (*MOTOR_NAMES, *DRIVE_NAMES)}
    return numbers | {SHARE: np.round(random.uniform(0.0, 1.0, (count, 2)), 4)}
