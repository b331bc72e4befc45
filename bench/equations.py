# SPDX-License-Identifier: Apache-2.0
"""Terms of the equations of motion, and kinematics, compared with Pinocchio; inverse kinematics of random poses.

Results are first compared with Pinocchio's.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from harness import (
    BATCH,
    Section,
    Settings,
    Table,
    TimedTask,
    beside,
    error,
    interleaved,
    largest_difference,
    one_by_one,
    seconds,
    timed,
)
from peers import RandomStates
from pinocchio_model import PinocchioFloating, pinocchio_model

from eom_dynamics import Dynamics, FloatingBase, Kinematics, Robot, inverse_kinematics, lie, load_robot
from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.robot.inertia import Inertial

_STATES, _ROUNDING = 64, 1e-10


class _Pair(NamedTuple):
    """Arguments of a method, and Pinocchio's function with the same result."""

    arguments: str  # names of their vectors
    function: Callable[..., Any]  # of Pinocchio
    read: Callable[[Any, Any], Any] = lambda result, data: result  # the compared part of its result or its data
    results: Callable[[Any, Any], tuple[Any, ...]] = lambda result, data: (
        result,
    )  # the results that a loop stores for a state


_PAIRS = {
    "effort": _Pair("q qd qdd", pin.rnea),
    "bias": _Pair("q qd", pin.nonLinearEffects),
    "gravity": _Pair("q", pin.computeGeneralizedGravity),
    "mass_matrix": _Pair("q", pin.crba, lambda result, data: np.triu(result) + np.triu(result, 1).T),
    "coriolis_matrix": _Pair("q qd", pin.computeCoriolisMatrix),
    "forward_dynamics": _Pair("q qd tau", pin.aba),
    "inverse_dynamics_derivatives": _Pair(
        "q qd qdd",
        pin.computeRNEADerivatives,
        lambda result, data: np.array([data.dtau_dq, data.dtau_dv]),
        lambda result, data: (data.dtau_dq, data.dtau_dv, data.M),
    ),
    "forward_dynamics_derivatives": _Pair(
        "q qd tau",
        pin.computeABADerivatives,
        lambda result, data: np.array([data.ddq_dq, data.ddq_dv]),
        lambda result, data: (data.ddq_dq, data.ddq_dv, data.Minv),
    ),
    "regressor": _Pair("q qd qdd", pin.computeJointTorqueRegressor),
    "kinetic_energy": _Pair("q qd", pin.computeKineticEnergy),
    "potential_energy": _Pair("q", pin.computePotentialEnergy),
}

# Methods of FloatingBase.
_OF_BASE = {
    "effort": _Pair("pose q nu nud", pin.rnea),
    "bias": _Pair("pose q nu", pin.nonLinearEffects),
    "gravity": _Pair("pose q", pin.computeGeneralizedGravity),
    "mass_matrix": _Pair("q", pin.crba),
    "forward_dynamics": _Pair("pose q nu tau", pin.aba),
    "kinetic_energy": _Pair("q nu", pin.computeKineticEnergy),
    "potential_energy": _Pair("pose q", pin.computePotentialEnergy),
    "center_of_mass": _Pair("pose q", pin.centerOfMass),
}


def equations(section: Section, settings: Settings) -> None:
    """Terms of fixed and floating bases, of one state and in batches.

    Differences are relative to the largest entry of all states. Pinocchio's functions are called with vectors that
    are ready; its regressor has other parameters, so that efforts are compared. Results of batches are new arrays,
    whose memory the system clears: clearing and writing take most of the time for results with many entries, unless
    arrays are passed as `out`. Loops go over the rows of arrays of states and fill arrays of results by the function
    for one state.
    """
    robot = load_robot("iiwa")
    model, dynamics = pinocchio_model(robot), Dynamics(robot)
    data, vectors = model.createData(), _vectors(robot, BATCH)
    each = [{name: x[i].copy() for name, x in vectors.items()} for i in range(_STATES)]
    errors, tasks = {}, {}
    for name, pair in _PAIRS.items():
        errors[name] = _error(dynamics, model, name, pair, each)
        states = [tuple(state[key] for key in pair.arguments.split()) for state in each]
        peer = one_by_one(pair.function, [(model, data, *state) for state in states])
        tasks[name] = one_by_one(getattr(dynamics, name), states), peer
    ratios = _one_state(section, "iiwa", "Dynamics", _PAIRS, tasks, errors, settings)
    ratios |= {f"FloatingBase.{name}": ratio for name, ratio in _floating_base(section, settings).items()}
    worst = max(ratios, key=lambda name: ratios[name])
    measured = f"at most {ratios[worst]:.2f} × (`{worst}`)"
    section.promise("each call at most 1.0 × Pinocchio's", measured, ratios[worst] <= 1.0)
    _batches(section, dynamics, model, vectors, settings)


def _floating_base(section: Section, settings: Settings) -> dict[str, float]:
    """Times of calls of a robot on a floating base and of Pinocchio with a free flyer, and their ratios."""
    base = Inertial.about_center(10.0, np.zeros(3), np.eye(3))
    robot = replace(load_robot("dual_arm"), base=base)
    peer, floating = PinocchioFloating(pinocchio_model(robot, floating=True), robot), FloatingBase(robot)
    rng = np.random.default_rng(0)
    tasks, errors, states = {}, {}, []
    for _ in range(_STATES):
        states.append({name: rng.normal(size=6 + robot.n) for name in ("nu", "nud", "tau")})
        states[-1] |= {"pose": lie.exp(rng.normal(size=6)), "q": rng.uniform(-1.0, 1.0, robot.n)}
    for name, pair in _OF_BASE.items():
        names, method = pair.arguments.split(), getattr(floating, name)
        ours = [tuple(state[key] for key in names) for state in states]
        # Pinocchio takes the configuration as a single vector, and the linear part of the base's rates first.
        rates = [[peer.rates(state[key]) for key in names if key not in ("pose", "q")] for state in states]
        theirs = [
            (peer.model, peer.data, peer.configuration(state["pose"], state["q"]), *vectors)
            for state, vectors in zip(states, rates, strict=True)
        ]
        own, found = [method(*x) for x in ours], [np.array(pair.function(*x)) for x in theirs]
        if name == "mass_matrix":
            found = [peer.both(x) for x in found]
        elif np.ndim(own[0]) and len(own[0]) > 3:
            found = [peer.back(x) for x in found]
        errors[name] = largest_difference(own, found)
        tasks[name] = one_by_one(method, ours), one_by_one(pair.function, theirs)
    return _one_state(section, "dual_arm on a free base of 10 kg", "FloatingBase", _OF_BASE, tasks, errors, settings)


def _one_state(
    section: Section,
    robot: str,
    kind: str,
    pairs: Mapping[str, _Pair],
    tasks: Mapping[str, tuple[TimedTask, TimedTask]],
    errors: Mapping[str, float],
    settings: Settings,
) -> dict[str, float]:
    """Table of times of methods of a class and of Pinocchio's functions; returns their ratios."""
    for name, off in errors.items():
        assert off < _ROUNDING, f"{name} is off by {off}"
    table = section.table(
        f"{robot}, one state, called from Python",
        *(f"`{kind}`", "Pinocchio", "ours, median", "Pinocchio's", "ratio", "largest difference"),
    )
    ratios = {}
    for name, (ours, theirs, ratios[name]) in beside(tasks, settings.rounds).items():
        peer = f"`{pairs[name].function.__name__}`"
        table.add(f"`{name}`", peer, ours, theirs, f"{ratios[name]:.2f}", error(errors[name]))
    return ratios


def _batches(
    section: Section, dynamics: Dynamics, model: Any, vectors: Mapping[str, Array], settings: Settings
) -> None:
    """Times per state of batches, and of loops over both functions for single states that fill the same arrays."""
    tasks, data = {}, model.createData()
    for name, pair in _PAIRS.items():
        states = [vectors[key] for key in pair.arguments.split()]
        method = getattr(dynamics, name)
        tasks[f"batch {name}"] = TimedTask(partial(method, *states), BATCH)
        few = [x[:_STATES] for x in states]
        out = [np.empty(x.shape) for x in _tuple(method(*few))]
        function, results = partial(pair.function, model, data), lambda result, of=pair.results: of(result, data)
        tasks[name] = _loop(method, few, out)
        tasks[f"pin {name}"] = _loop(function, few, out, results)
    kept = np.empty((BATCH, dynamics.robot.n, len(dynamics.inertial_parameters)))
    reused = partial(dynamics.regressor, *(vectors[key] for key in ("q", "qd", "qdd")), out=[kept])
    tasks["batch into old arrays"] = TimedTask(reused, BATCH)
    times = interleaved(tasks, settings.slow_rounds, at_least=0.02)
    table = section.table(
        f"iiwa, batches of {BATCH:,} states, all cores",
        *("`Dynamics`", "median a state", "× loop over the same method", "× loop over Pinocchio's"),
    )

    def add(title: str, batch: str, name: str) -> float:
        own, theirs = times.ratio(name, batch), times.ratio(f"pin {name}", batch)
        table.add(title, times.cell(batch), f"{own:.1f}", f"{theirs:.1f}")
        return theirs

    faster = {name: add(f"`{name}`", f"batch {name}", name) for name in _PAIRS}
    add("`regressor`, with `out`", "batch into old arrays", "regressor")
    worst = min(faster, key=lambda name: faster[name])
    promise = "a batch at least 15 × faster than a loop over Pinocchio's function"
    section.promise(promise, f"at least {faster[worst]:.1f} × (`{worst}`)", faster[worst] >= 15)


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _loop(
    function: Callable[..., Any],
    states: list[Array],
    out: list[Array],
    results: Callable[[Any], tuple[Any, ...]] = _tuple,
) -> TimedTask:
    """Task of filling arrays of results, a row for each state, by a function for one state."""
    (first, *more) = out

    def run() -> None:
        for i, state in enumerate(zip(*states, strict=True)):
            first[i] = function(*state)

    def run_several() -> None:
        for i, state in enumerate(zip(*states, strict=True)):
            for array, value in zip(out, results(function(*state)), strict=True):
                array[i] = value

    return TimedTask(run_several if more else run, _STATES)


def _vectors(robot: Robot, count: int) -> dict[str, Array]:
    few = RandomStates(robot, _STATES)
    vectors = {name: np.resize(x, (count, robot.n)) for name, x in zip(STATE_NAMES, few.states, strict=True)}
    return vectors | {"tau": np.resize(few.efforts[0], (count, robot.n))}


def _error(dynamics: Dynamics, model: Any, name: str, pair: _Pair, each: list[dict[str, Array]]) -> float:
    """Largest difference from Pinocchio, relative to its largest entry."""
    data, ours, theirs = model.createData(), [], []
    for state in each:
        arguments = [state[key] for key in pair.arguments.split()]
        mine = getattr(dynamics, name)(*arguments)
        found = pair.read(pair.function(model, data, *arguments), data)
        if name == "regressor":
            mine = mine @ dynamics.inertial_parameters
            found = found @ np.concatenate([i.toDynamicParameters() for i in model.inertias.tolist()[1:]])
        elif isinstance(mine, tuple):
            mine = np.array(mine[:2])
        ours.append(np.array(mine))
        theirs.append(np.array(found))
    a, b = np.array(ours), np.array(theirs)
    if name == "potential_energy":  # the same up to a constant
        a, b = a - a[0], b - b[0]
    return largest_difference(a, b)


# --- Kinematics -------------------------------------------------------------------------

ARMS = ("iiwa", "panda", "ur5e")

REPRESENTATIONS = {"body": pin.LOCAL, "space": pin.WORLD, "world_aligned": pin.LOCAL_WORLD_ALIGNED}


def kinematics(section: Section, settings: Settings) -> None:
    """Poses and Jacobians of one state, called from Python; inverse kinematics of random poses.

    Pinocchio's `forwardKinematics` with `updateFramePlacement`, and `computeFrameJacobian`; results agree to 1e-13.
    Times of one target are of calls from Python. Attempts and steps are means.
    """
    table = section.table("one state, called from Python", "call", "ours", "Pinocchio", "ours / Pinocchio")
    ratios: dict[str, list[float]] = {"pose": [], "jacobian": []}
    for name in ARMS:
        for call, (ours, theirs, ratio) in beside(_kinematic_tasks(load_robot(name)), settings.rounds).items():
            table.add(f"{name}: {call}", ours, theirs, f"{ratio:.2f}")
            ratios[call.partition(",")[0]].append(ratio)
    count = 500 if settings.quick else 10_000
    solved = section.table(
        f"inverse kinematics of {count:,} random poses within joint limits, from random starts, to 1e-10 m and rad",
        *("arm", "solved", "attempts", "steps", "one target: median", "99 %", "in a batch, each"),
    )
    rate = min(_inverse(solved, load_robot(name), count) for name in ARMS)
    for call, found in ratios.items():
        section.promise(f"`{call}` in at most 1.0 × Pinocchio's time", f"{max(found):.2f} ×", max(found) <= 1)
    section.promise("at least 99.9 % of reachable poses solved", f"{100 * rate:.2f} %", rate >= 0.999)


def _kinematic_tasks(robot: Robot) -> dict[str, tuple[TimedTask, TimedTask]]:
    """Tasks of pose and Jacobians, ours and Pinocchio's."""
    own, model = Kinematics(robot), pinocchio_model(robot)
    data, frame = model.createData(), model.getFrameId(robot.tools[0].name)
    q = np.random.default_rng(1).uniform(-1, 1, robot.n)

    def placement() -> Any:
        pin.forwardKinematics(model, data, q)
        return pin.updateFramePlacement(model, data, frame)

    assert np.allclose(own.pose(q), placement().homogeneous, rtol=0, atol=1e-13)
    tasks = {"pose": (TimedTask(partial(own.pose, q)), TimedTask(placement))}
    for name, reference in REPRESENTATIONS.items():
        ours = partial(own.jacobian, q, reference=name)
        theirs = partial(pin.computeFrameJacobian, model, data, q, frame, reference)
        assert np.allclose(ours(), np.roll(theirs(), 3, axis=0), rtol=0, atol=1e-13)
        tasks[f'jacobian, reference="{name}"'] = TimedTask(ours), TimedTask(theirs)
    return tasks


def _inverse(table: Table, robot: Robot, count: int) -> float:
    """Share of random reachable poses that are solved from random starts."""
    own = Kinematics(robot)
    limits = np.array([(joint.limits.lower, joint.limits.upper) for joint in robot.independent_joints])
    # Joints without limits move by half a turn.
    lower, upper = np.where(np.isfinite(limits), limits, np.pi * np.array([-1, 1])).T
    q, starts = np.random.default_rng(2).uniform(lower, upper, (2, count, robot.n))
    targets = own.pose(q)
    inverse_kinematics(own, targets[0], start=starts[0])  # compiled
    each = [timed(partial(inverse_kinematics, own, targets[i], start=starts[i]))[1] for i in range(min(count, 2000))]
    found, whole = timed(partial(inverse_kinematics, own, targets, start=starts))
    rate = float(np.mean(found.success))
    table.add(
        robot.name,
        *(f"{100 * rate:.2f} %", f"{np.mean(found.attempts):.2f}", f"{np.mean(found.iterations):.1f}"),
        *(seconds(float(np.median(each))), seconds(float(np.quantile(each, 0.99))), seconds(whole / count)),
    )
    return rate
