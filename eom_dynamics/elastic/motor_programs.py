# SPDX-License-Identifier: Apache-2.0
"""Programs of the motor side of an arm, with their inputs and outputs.

Joint vectors have n entries, motor vectors m. Commanded stiffness is an input only for arms with variable stiffness,
the deflection only for arms with damped springs, the friction state only for arms with presliding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..actuators import Motor
from ..arrays import EFFORT_NAMES, SHAFT_UNITS, STATE_NAMES, derivative_names
from ..codegen.expressions import Expression, Partials, Scalar
from ..codegen.program import Program, Sizes, trace
from ..codegen.straight_line import python_function
from ..elementary import select
from ..filling import SETTLED as SETTLED
from ..jet import Jet
from ..vectors import FAMILIES
from .motor_side import MotorSide

STIFFNESS_NAMES, DELTA_NAMES = (FAMILIES[name].names for name in ("k", "delta"))
"""Names of commanded stiffness, and of deflections at the motors, with their time derivatives."""

DEFLECTION, FRICTION_STATE = "deflection", "friction_state"
"""Names of the state of damped springs, and of the states of presliding friction."""

MOTOR_NAMES = (*FAMILIES["motor_position"].names, "motor_effort")
"""Names of motor motion and effort."""

SHAFT = ("torque", "speed", "current", "voltage", "clipped_effort")
"""Results of :func:`drive`: motor quantities before the gears, and motor effort within limits behind the gears."""

Vectors = Mapping[str, Sequence[Expression]]


def motors(side: MotorSide, *, spin: bool = False) -> Program:
    """Motor motion and effort from motion and efforts of the links.

    With ``spin``, the efforts that accelerate carried rotors are an input; these rotors follow their links.
    """
    n, m = len(side.springs), len(side.motor_joint)
    inputs = dict.fromkeys((*STATE_NAMES[:3], *EFFORT_NAMES), n) | dict(_commands(side))
    inputs |= {FRICTION_STATE: m} if side.presliding.any() else {}

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        tau = _jets(x, EFFORT_NAMES)
        spinning = [Jet([value]) for value in x["spin"]] if spin else None
        position, effort = side.feedforward(
            _jets(x, STATE_NAMES[:3]), tau, _stiffness(x), _state(side, x, tau), spinning, x.get(FRICTION_STATE)
        )
        rows = [[jet[k] for jet in position] for k in range(3)]
        return dict(zip(MOTOR_NAMES, (*rows, [jet[0] for jet in effort]), strict=True))

    return trace("motors", inputs | ({"spin": m} if spin else {}), compute)


def directional(links: Program, of_motors: Program) -> Program:
    """Directional derivative of a feedforward along a change of q … qdddd, inputs ``q_change``, ….

    Args:
        links: link program, from q … qdddd to efforts.
        of_motors: motor program, from :func:`motors`.
    """
    sizes = dict(links.inputs) | {name: size for name, size in of_motors.inputs.items() if name not in links.outputs}
    changes = {f"{name}_change": sizes[name] for name in STATE_NAMES}

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        values: dict[str, Sequence[Scalar]] = dict(x)
        for program in (links, of_motors):
            results = iter(python_function(program)([value for name in program.inputs for value in values[name]]))
            values |= {name: [next(results) for _ in range(size)] for name, size in program.outputs.items()}
        pairs = [pair for name in STATE_NAMES for pair in zip(x[name], x[f"{name}_change"], strict=True)]
        along = Partials(pairs[0][0], along=pairs)
        return {name: [along(value) for value in values[name]] for name in (*EFFORT_NAMES, *MOTOR_NAMES)}

    return trace("directional", sizes | changes, compute)


def deflections(side: MotorSide) -> Program:
    """Deflections with two time derivatives, and spring efforts at the motors, from efforts on the links."""

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        tau = _jets(x, EFFORT_NAMES)
        delta, load = side.deflections(tau, _stiffness(x), _state(side, x, tau))
        rows = [[jet[k] for jet in delta] for k in range(3)]
        return dict(zip((*DELTA_NAMES, "load"), (*rows, [jet[0] for jet in load]), strict=True))

    return trace("deflections", dict.fromkeys(EFFORT_NAMES, len(side.springs)) | dict(_commands(side)), compute)


def spring_efforts(
    side: MotorSide, orders: int = 2, *, motors: Sequence[str] = (), unknown: float = np.nan, constant: bool = True
) -> Program:
    """Spring efforts on the links, and commanded stiffness, with time derivatives.

    Args:
        orders: number of vectors for each quantity.
        motors: names of motor positions and rates, which determine deflections with q and qd; by default deflections at
            the motors are inputs.
        unknown: effort of rigid joints, and of damped joints without the further derivative.
        constant: whether to return zeros as stiffness of arms without commanded stiffness.
    """
    names, stiffness = motors or derivative_names("delta", orders), derivative_names("k", orders)
    sizes = dict.fromkeys(STATE_NAMES[:2] if motors else (), len(side.springs))
    sizes |= dict.fromkeys(names, len(side.motor_joint))
    sizes |= dict.fromkeys(stiffness if side.variable.any() else (), len(side.springs))

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        delta = between(side, x, motors) if motors else _jets(x, names)
        tau, _, k = side.efforts(delta, _jets(x, stiffness) if stiffness[0] in x else None)
        known = [Jet([]) if rigid else jet for rigid, jet in zip(side.rigid, tau, strict=True)]
        rows = [[jet[order] if order < len(jet) else unknown for jet in known] for order in range(orders)]
        if constant or stiffness[0] in x:
            rows += [[jet[order] for jet in k] for order in range(orders)]
        return dict(zip((*spring_names(orders), *spring_names(orders, "stiffness")), rows, strict=False))

    return trace("spring_efforts", sizes, compute)


def spring_names(orders: int = 2, quantity: str = "spring_effort") -> tuple[str, ...]:
    """Names of the results of :func:`spring_efforts`: efforts, or stiffness, and time derivatives."""
    return tuple(quantity + k * "_rate" for k in range(orders))


def between(side: MotorSide, x: Mapping[str, Sequence[Scalar]], motors: Sequence[str]) -> list[Jet]:
    """Deflections and rates from named positions and velocities of motors and links."""
    rows = zip(side.joint_sides(_jets(x, motors)), side.motor_joint, strict=True)
    return [position - Jet([x["q"][joint], x["qd"][joint]]) for position, joint in rows]


def loads(side: MotorSide) -> Program:
    """Spring efforts at the motors, zero at rigid joints."""

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        return {"load": _loads(side, x, _jets(x, DELTA_NAMES[:2]))}

    return trace("loads", _with_stiffness(side, dict.fromkeys(DELTA_NAMES[:2], len(side.motor_joint))), compute)


def _loads(side: MotorSide, x: Vectors, delta: Sequence[Jet]) -> list[Scalar]:
    """Spring efforts at the motors under deflections, with the stiffness ``k`` if it is an input."""
    stiffness = [Jet([value, 0.0]) for value in x["k"]] if "k" in x else None
    return [jet[0] for jet in side.efforts(delta, stiffness)[1]]


def _with_stiffness(side: MotorSide, inputs: Sizes) -> Sizes:
    """Inputs of a program, with the stiffness ``k`` if commanded."""
    return {**inputs, "k": len(side.springs)} if side.variable.any() else inputs


def spring_loads(side: MotorSide) -> Program:
    """Spring efforts on links and at the joint sides of motors, zero at rigid joints, from measured motion."""

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        load = _loads(side, x, between(side, x, MOTOR_NAMES[:2]))
        return {"on_links": _on_links(side, load), "load": load}

    inputs = dict.fromkeys(STATE_NAMES[:2], len(side.springs)) | dict.fromkeys(MOTOR_NAMES[:2], len(side.motor_joint))
    return trace("spring_loads", _with_stiffness(side, inputs), compute)


def _on_links(side: MotorSide, load: Sequence[Scalar]) -> list[Scalar]:
    """Efforts on the links from efforts at the motors."""
    on_links: list[Scalar] = [0.0] * len(side.springs)
    for joint, value in zip(side.motor_joint, load, strict=True):
        on_links[joint] = on_links[joint] + value
    return on_links


def motor_loads(side: MotorSide) -> Program:
    """Motor efforts against the spring efforts ``load``, gears and friction, without rotor inertia."""
    m = len(side.motor_joint)

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        return {"effort": _motor_loads(side, side.motor_loads(x["load"]), x["motor_velocity"])}

    return trace("motor_loads", {"load": m, "motor_velocity": m}, compute)


def _motor_loads(side: MotorSide, behind: Sequence[Scalar], velocity: Sequence[Scalar]) -> list[Scalar]:
    """Motor efforts from efforts behind the gears."""
    rows = enumerate(zip(behind, velocity, strict=True))
    return [side.motor_effort(motor, Jet([load]), Jet([speed]), Jet([0.0]))[0] for motor, (load, speed) in rows]


def plant_efforts(side: MotorSide) -> Program:
    """Spring efforts on links, motor efforts as in :func:`motor_loads`, and the total dissipated power."""
    n, m = len(side.springs), len(side.motor_joint)

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        delta = between(side, x, MOTOR_NAMES[:2])
        load, velocity = _loads(side, x, delta), x["motor_velocity"]
        behind = side.motor_loads(load)
        effort = _motor_loads(side, behind, velocity)
        lost: Scalar = 0.0
        for whole, passed, speed in zip(effort, behind, velocity, strict=True):
            lost = lost + (whole - passed) * speed
        for _, motors, spring in side.placed:
            lost = lost + spring.power_loss([delta[motor][1] for motor in motors])
        return {"on_links": _on_links(side, load), "effort": effort, "lost": [lost]}

    inputs = dict.fromkeys(STATE_NAMES[:2], n) | dict.fromkeys(MOTOR_NAMES[:2], m)
    return trace("plant_efforts", _with_stiffness(side, inputs), compute)


def tangents(side: MotorSide) -> Program:
    """Derivatives of the spring efforts at the motors by the deflections and their rates, row-major."""

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        load, slopes = _loads(side, x, _jets(x, DELTA_NAMES[:2])), {}
        for name, by in (("slope", "delta"), ("damping", "deltad")):
            columns = [[Partials(variable)(value) for value in load] for variable in x[by]]
            slopes[name] = [value for row in zip(*columns, strict=True) for value in row]
        return slopes

    return trace("tangents", _with_stiffness(side, dict.fromkeys(DELTA_NAMES[:2], len(side.motor_joint))), compute)


def energies(side: MotorSide) -> Program:
    """Energy of all springs at nominal stiffness, and the elongations."""
    m = len(side.motor_joint)

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        energy: Scalar = 0.0
        stretch: list[Scalar] = [0.0] * m
        for _, motors, spring in side.placed:
            delta = [x["delta"][motor] for motor in motors]
            energy = energy + spring.stored_energy(delta)
            for motor, value in zip(motors, spring.stretch(delta), strict=True):
                stretch[motor] = value
        return {"energy": [energy], "stretch": stretch}

    return trace("energies", {"delta": m}, compute)


def filtered(side: MotorSide) -> Program:
    """Deflections of damped springs after a time step between two setpoints; zero at other joints.

    ``step`` is the time between the setpoints in s. A zero step leaves the deflections unchanged; a negative step gives
    the deflections without transient.
    """
    before = tuple(f"{name}_before" for name in EFFORT_NAMES)
    inputs = dict.fromkeys((DEFLECTION, *before, *EFFORT_NAMES), len(side.springs)) | {"step": 1}

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        (step,), start, after = x["step"], x[DEFLECTION], _jets(x, EFFORT_NAMES)
        # The unselected branch must not divide by zero.
        dt = select(step, step, 1.0)
        later = side.advanced(start, _jets(x, before), after, dt)
        still = [
            select(-step, settled, old) if spring.is_damped else 0.0
            for spring, settled, old in zip(side.springs, side.settled(after), start, strict=True)
        ]
        return {"deflection_now": [select(step, new, old) for new, old in zip(later, still, strict=True)]}

    return trace("filtered", inputs, compute)


def presliding(side: MotorSide) -> Program:
    """States of presliding friction after the motor displacement between two setpoints; zero at other motors.

    With a negative ``step`` the states follow from the velocities.
    """
    m = len(side.motor_joint)
    motion = MOTOR_NAMES[:2]
    inputs = dict.fromkeys((FRICTION_STATE, f"{motion[0]}_before", *motion), m) | {"step": 1}

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        (step,), states = x["step"], []
        rows = zip(side.motor_joint, *(x[name] for name in list(inputs)[:-1]), strict=True)
        for motor, (joint, z, before, position, velocity) in enumerate(rows):
            law = side.actuators[joint].friction
            moved = law.advanced(z, position - before) if side.presliding[motor] else 0.0
            states.append(select(-step, law.sign(velocity), moved) if side.presliding[motor] else 0.0)
        return {f"{FRICTION_STATE}_now": states}

    return trace("presliding", inputs, compute)


def ahead(side: MotorSide, *, count: int, size: int) -> Program:
    """Vector and time derivatives ``lead`` seconds later, by the Taylor polynomial.

    The remainder of the vector is at most lead^count / count! times the largest count-th derivative within the lead.

    Args:
        side: ignored.
        count: number of vectors x0, x1, … in and y0, y1, … out, a quantity and its successive time derivatives.
        size: size of each vector.
    """
    names = [f"x{k}" for k in range(count)]

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        (lead,) = x["lead"]
        rows: dict[str, Sequence[Scalar]] = {}
        for k in range(count):
            value: Sequence[Scalar] = x[names[-1]]
            for j in range(count - 2, k - 1, -1):
                step = lead * (1 / (j - k + 1))
                value = [a + step * b for a, b in zip(x[names[j]], value, strict=True)]
            rows[f"y{k}"] = value
        return rows

    return trace(f"ahead_{count}_{size}", dict.fromkeys(names, size) | {"lead": 1}, compute)


def drive(side: MotorSide) -> Program:
    """Torque, speed, current and voltage before the gears, and motor efforts within limits behind the gears."""
    m = len(side.motor_joint)

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        return dict(zip(SHAFT, zip(*_shaft_rows(side, x), strict=True), strict=True))

    return trace("drive", dict.fromkeys(MOTOR_NAMES[1::2], m), compute)


def _shaft_rows(side: MotorSide, x: Mapping[str, Sequence[Scalar]]) -> list[list[Scalar]]:
    """Results of :func:`drive` for each motor."""
    rows = []
    for joint, velocity, effort in zip(side.motor_joint, x["motor_velocity"], x["motor_effort"], strict=True):
        motor, ratio = side.actuators[joint].motor, side.gear_ratio[joint]
        torque, speed = effort / ratio, velocity * ratio
        clipped = motor.clipped(torque, speed) * ratio
        rows.append([torque, speed, motor.current(torque), motor.voltage(torque, speed), clipped])
    return rows


def shafts(side: MotorSide, *, clip: bool) -> Program:
    """Motion, torque, current and voltage before the gears, and the number of exceeded limits.

    With ``clip``, torques are clipped to the limits after the check.
    """

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        rows = []
        exceeded: Scalar = 0.0
        for joint, *values in zip(side.motor_joint, *(x[name] for name in MOTOR_NAMES), strict=True):
            motor, ratio = side.actuators[joint].motor, side.gear_ratio[joint]
            position, speed, acceleration, effort = values
            speed, torque = speed * ratio, effort / ratio
            for value, quantity in zip(_limited(motor, torque, speed), SHAFT_UNITS, strict=True):
                most = float(getattr(motor, f"{quantity}_limit"))
                exceeded = exceeded + _is_beyond(value, -most, most)
            if clip:
                torque = motor.clipped(torque, speed)
            _, _, current, voltage = _limited(motor, torque, speed)
            rows.append([position * ratio, speed, acceleration * ratio, torque, current, voltage])
        names = ("position", "speed", "acceleration", "torque", "current", "voltage")
        return dict(zip(names, zip(*rows, strict=True), strict=True)) | {"exceeded": [exceeded]}

    return trace("shafts", dict.fromkeys(MOTOR_NAMES, len(side.motor_joint)), compute)


def violations(
    side: MotorSide, ranges: Sequence[tuple[float, float]], voltage: Sequence[float], sums: Sequence[float]
) -> Program:
    """Number of limits violated by a row q … qdddd, tau … taudd, theta, thetad, thetadd, tau_m.

    Args:
        ranges: ranges of the row's entries, infinite without a limit.
        voltage: voltage limits of the motors.
        sums: limits of the motor efforts at the joints.
    """
    m = len(side.motor_joint)

    def compute(x: Vectors) -> Mapping[str, Sequence[Scalar]]:
        row = x["row"]
        count: Scalar = 0.0
        for value, (low, high) in zip(row, ranges, strict=True):
            count = count + _is_beyond(value, low, high)
        for joint, speed, effort, most in zip(side.motor_joint, row[-3 * m : -2 * m], row[-m:], voltage, strict=True):
            motor, ratio = side.actuators[joint].motor, side.gear_ratio[joint]
            count = count + _is_beyond(motor.voltage(effort / ratio, speed * ratio), -most, most)
        for effort, most in zip(side.motor_sums(row[-m:]), sums, strict=True):
            count = count + _is_beyond(effort, -most, most)
        return {"violations": [count]}

    return trace("violations", {"row": len(ranges)}, compute)


def _limited(motor: Motor, torque: Scalar, speed: Scalar) -> list[Scalar]:
    """Quantities of a motor with limits, in the order of SHAFT_UNITS."""
    return [speed, torque, motor.current(torque), motor.voltage(torque, speed)]


def _is_beyond(value: Scalar, low: float, high: float) -> Scalar:
    """One if a value is outside a range, else zero, also for NaN."""
    beyond: Scalar = 0.0
    if low > -np.inf:
        beyond = select(low - value, 1.0, beyond)
    return select(value - high, 1.0, beyond) if high < np.inf else beyond


def _commands(side: MotorSide) -> Sizes:
    """Inputs of commanded stiffness and of the state of damped springs."""
    n = len(side.springs)
    state = {DEFLECTION: n} if side.damped.any() else {}
    return (dict.fromkeys(STIFFNESS_NAMES, n) if side.variable.any() else {}) | state


def _jets(x: Mapping[str, Sequence[Scalar]], names: Sequence[str]) -> list[Jet]:
    """Jet of each entry of a vector and its successive time derivatives."""
    return [Jet(row) for row in zip(*(x[name] for name in names), strict=True)]


def _stiffness(x: Vectors) -> list[Jet] | None:
    return _jets(x, STIFFNESS_NAMES) if STIFFNESS_NAMES[0] in x else None


def _state(side: MotorSide, x: Vectors, tau: Sequence[Jet]) -> list[Scalar] | None:
    """Deflections of damped springs; :data:`SETTLED` is replaced by the deflection without transient."""
    if DEFLECTION not in x:
        return None
    rows = zip(x[DEFLECTION], side.springs, side.settled(tau), strict=True)
    return [
        select(value - 0.5 * SETTLED, settled, value) if spring.is_damped else 0.0 for value, spring, settled in rows
    ]
