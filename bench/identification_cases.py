# SPDX-License-Identifier: Apache-2.0
"""Identify simulated arms that differ from their files in what files lack, and recordings that are wrong.

For each case and seed an arm is drawn, moved and recorded with noise, identified by what the command runs, and the
written file is judged by what it predicts of another motion of that arm, without noise. A run is as it should be if the
file predicts that motion, or if an error names what is wrong and the exit code is 1.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
from excited import ENCODER, TORQUE, true_robot
from harness import CONSOLE, Section, Settings, in_parallel

from eom_dynamics import Dynamics, ElasticArm, Robot, load_robot
from eom_dynamics.actuators.actuator import LOSSLESS, Transmission
from eom_dynamics.actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from eom_dynamics.actuators.springs import RIGID
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Options
from eom_dynamics.identification.links.verification import feedforward_efforts
from eom_dynamics.identification.sampling import root_mean_square
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.tools.identify.outputs import write_and_verify
from eom_dynamics.tools.identify.run import IdentificationResult, Request, identify
from eom_dynamics.tools.options import RobotOptions

ARMS = ("sea_planar_2r", "ur5e", "panda")

RATE, DURATION = 50.0, 60.0
"""Of a recording, Hz and s."""

RECOVERED = 0.05
"""Error of the efforts that a file predicts, relative to their RMS; or that of the sensor's noise, if it is larger."""

WORSE = 1.02
"""Ratio of errors of the written file and the given one beyond which it is worse."""

SHARE = 0.95


@dataclass(frozen=True)
class Case:
    """What an arm has that its file lacks, or what is wrong with its recording.

    Attributes:
        name: in the table.
        side: on which efforts are measured: joint, motor, or both.
        given: changes the robot of the file, which the arm is drawn from.
        arm: changes the arm.
        efforts: changes what was recorded of the efforts (N, n).
        options: of the identification.
        named: words of an error that name what is wrong; empty if the file should be good.
    """

    name: str
    side: str = "joint"
    given: Callable[[Robot], Robot] = lambda robot: robot
    arm: Callable[[Robot, np.random.Generator], Robot] = lambda robot, draw: robot
    efforts: Callable[[Array, np.random.Generator], Array] = lambda tau, draw: tau
    options: Options = field(default_factory=Options)
    named: str = ""


@dataclass(frozen=True)
class Outcome:
    """Result of a run.

    Attributes:
        good: whether it is as it should be.
        worse: whether the file is worse than the given one without saying so.
        failures, notes: lines of the command.
        error, before: of the written and the given file (n,), relative to the efforts.
        chosen: the cut-off and the weight of the prior.
    """

    good: bool
    worse: bool
    failures: Sequence[str]
    notes: Sequence[str]
    error: Array
    before: Array
    chosen: dict[str, float]


def identification_cases(section: Section, settings: Settings) -> None:
    """Identify all cases."""
    arms, seeds = (ARMS[:1], 2) if settings.quick else (ARMS, 20)
    table = section.table(
        f"Arms that differ from their files: runs of {seeds} that are as they should be, and files that are worse than "
        "the given one with exit code 0",
        *("case", "should be", *arms, "worse files"),
    )
    found: dict[tuple[str, int], list[Outcome]] = {}
    keys, took = list(product(arms, range(len(CASES)))), 0.0
    for (name, k, _), (outcomes, spent) in in_parallel(_outcomes, [(*key, seeds) for key in keys], optimised=False):
        found[name, k] = outcomes
        took += spent
        for seed, each in enumerate(outcomes):
            if each.worse or not each.good:
                what = f"{name}, {CASES[k].name}, seed {seed}: {each.failures or each.notes}"
                CONSOLE.print(what, each.before, each.error)
    shares = [np.mean([each.good for each in found[key]]) for key in keys]
    worse_files = 0
    for k, case in enumerate(CASES):
        good = [f"{sum(each.good for each in found[name, k])} of {seeds}" for name in arms]
        worse = sum(each.worse for name in arms for each in found[name, k])
        table.add(case.name, "named" if case.named else "recovered", *good, str(worse))
        worse_files += worse
    runs = len(keys) * seeds
    section.text.append(
        "Each run: an arm whose bodies differ from the file by some 4 % in each direction, with friction; "
        f"{DURATION:g} s of a motion of five harmonics of 0.1 Hz at {RATE:g} Hz, noise as above, and the command's "
        "defaults but for `--offset sensor` of the bias; cut-off and weight of the prior are those of the first seed. "
        "*Recovered*: of another motion, without noise, the written file predicts the efforts of all joints to "
        f"{RECOVERED:.0%} of their RMS, or to the noise of the sensor. *Named*: an error, with "
        "exit code 1, says what is wrong. "
        f"*Worse files*: one of a joint that predicts worse than the given one by more than {WORSE - 1:.0%}, with exit "
        f"code 0. {runs} runs took {took / runs:.2g} s of the processor each, compilers included."
    )
    section.promise(
        f"identification of arms that differ: as it should be in {SHARE:.0%} of the runs of each case",
        f"{min(shares):.0%} of the worst, {np.mean(shares):.1%} of all",
        min(shares) >= SHARE,
    )
    promise = "identification of arms that differ: no worse file with exit code 0"
    section.promise(promise, f"{worse_files}", not worse_files)


def _outcomes(name: str, k: int, seeds: int) -> tuple[list[Outcome], float]:
    """Outcomes of the seeds of the k-th case, with what the first one chose, and the time of the processor, s."""
    before = os.times()
    found = [outcome(CASES[k], name, 0)]
    found += [outcome(CASES[k], name, seed, found[0].chosen) for seed in range(1, seeds)]
    return found, sum(os.times()[:4]) - sum(before[:4])


def outcome(case: Case, name: str, seed: int, chosen: dict[str, float] | None = None) -> Outcome:
    """Draw an arm, record it, identify it, and judge the file, with a cut-off and a weight if they were chosen."""
    case = replace(case, options=replace(case.options, **(chosen or {})))
    draw = np.random.default_rng([seed, len(case.name)])
    given = case.given(_described(name, case.side))
    arm = case.arm(true_robot(given, "joint" if case.side == "joint" else "motor", seed=seed + 100), draw)
    arm = replace(arm, joint_friction=case.side == "joint")
    t = np.arange(0.0, DURATION, 1 / RATE)
    states = motion(given.n, t, seed)
    true = ElasticArm(arm, backend="numpy")
    command = true.feedforward(*states)
    effort = command.tau if case.side == "joint" else command.motor_effort
    limit = np.array([joint.limits.effort for joint in given.independent_joints])
    noise = TORQUE * np.where(np.isfinite(limit), limit, np.abs(effort).max(axis=0))

    def noisy(values: Array, size: Array | float) -> Array:
        return values + size * draw.standard_normal(values.shape)

    columns = {"position": noisy(states[0], ENCODER), "effort": case.efforts(noisy(effort, noise), draw)}
    if case.side == "both":
        columns |= {"effort": noisy(command.tau, noise), "motor_position": noisy(command.motor_position, ENCODER)}
        columns["motor_effort"] = case.efforts(noisy(effort, noise), draw)
    with tempfile.TemporaryDirectory() as folder:
        found, robot = _identified(Path(folder), case, given, t, columns)
    judged = motion(given.n, t[::4], seed + 1000)
    exact = feedforward_efforts(true, judged, motor_side=case.side != "joint")
    scale = np.maximum(root_mean_square(exact), noise / RECOVERED)
    error, before = (
        root_mean_square(feedforward_efforts(ElasticArm(x), judged, motor_side=case.side != "joint") - exact) / scale
        for x in (robot, given)
    )
    failed = found.failures
    worse = bool(np.any((error > WORSE * before) & (error > RECOVERED * TORQUE)))
    recovered = bool(np.all(error < RECOVERED)) and not failed
    good = any(case.named in line for line in failed) if case.named else recovered
    assert found.link_fit is not None
    chosen = {"cutoff": found.link_fit.filter.cutoff, "prior_weight": found.link_fit.prior_weight or 1.0}
    return Outcome(good, worse and not failed, failed, found.notes, error.round(3), before.round(3), chosen)


def _identified(
    folder: Path, case: Case, given: Robot, t: Array, columns: dict[str, Array]
) -> tuple[IdentificationResult, Robot]:
    """What the command finds, and the robot that it writes."""
    source, table, written = folder / "given.yaml", folder / "run.csv", folder / "identified.yaml"
    source.write_text(robot_as_yaml(given).text)
    names = [f"{kind}.{joint}" for kind in columns for joint in given.joint_names]
    values = np.column_stack([t, *columns.values()])
    np.savetxt(table, values, fmt="%.9g", delimiter=",", header=",".join(["t", *names]), comments="")
    options = case.options if case.side == "both" else replace(case.options, side=case.side)
    robot = load_robot(str(source))
    found = identify(robot, Request([table], link_options=options), lambda step, done: None)
    found, _ = write_and_verify(written, str(source), RobotOptions(), found, {})
    return found, load_robot(str(written))


def motion(n: int, t: Array, seed: int) -> tuple[Array, ...]:
    """Fourier motion of five harmonics of 0.1 Hz, with q … qdddd, each (N, n)."""
    draw = np.random.default_rng(seed)
    states = np.zeros((5, len(t), n))
    for k in range(1, 6):
        a, b = 0.8 / k * draw.standard_normal((2, n))
        w = 2 * np.pi * 0.1 * k
        z = np.multiply.outer(np.exp(1j * w * t), b - 1j * a)
        states += [np.real((1j * w) ** order * z) for order in range(5)]
    return tuple(states)


def _described(name: str, side: str) -> Robot:
    """The robot of the file, rigid and with lossless gears where efforts are those of the motors alone."""
    robot = load_robot(name)
    if side != "motor":
        return robot
    joints = [replace(joint, spring=RIGID, actuator=replace(joint.actuator, gear=LOSSLESS)) for joint in robot.joints]
    return replace(robot, joints=tuple(joints))


def _with_spring(robot: Robot, spring: ParallelSpring) -> Robot:
    """The robot with a spring beside the motor of the second joint that moves."""
    joints, i = list(robot.joints), robot.independent[1]
    joints[i] = replace(joints[i], parallel_spring=spring)
    return replace(robot, joints=tuple(joints))


def _gravity_spring(robot: Robot, draw: np.random.Generator) -> Robot:
    spring = ParallelSpring(SignedLinearLaw(_weight(robot) * draw.uniform(0.3, 0.8)), draw.uniform(-0.5, 0.5))
    return _with_spring(robot, spring)


def _weight(robot: Robot) -> float:
    """Largest effort of gravity at the second joint in some poses, N m."""
    q = np.linspace(-1, 1, 20)[:, np.newaxis] * np.ones(robot.n)
    return float(np.max(np.abs(Dynamics(robot, order=0, backend="numpy").gravity(q)[:, 1])))


def _scaled(*factors: float) -> Callable[[Array, np.random.Generator], Array]:
    return lambda tau, draw: tau * np.resize(np.array(factors), tau.shape[1])


def _one_scaled(factor: float) -> Callable[[Array, np.random.Generator], Array]:
    """One joint that is drawn."""

    def scaled(tau: Array, draw: np.random.Generator) -> Array:
        factors = np.ones(tau.shape[1])
        factors[draw.integers(tau.shape[1])] = factor
        return tau * factors

    return scaled


def _asymmetric(robot: Robot, draw: np.random.Generator) -> Robot:
    """Dry friction with other constants in each direction: their mean, and a constant effort."""
    joints = list(robot.joints)
    for i in robot.independent:
        joints[i] = replace(joints[i], constant_effort=joints[i].friction * draw.uniform(-0.5, 0.5))
    return replace(robot, joints=tuple(joints))


def _wrist(robot: Robot) -> Robot:
    n = robot.n
    matrix = np.array([[1.0, 0.0], [-0.8, 1.0]])
    return replace(robot, transmission=((n - 2, n - 1), Transmission(matrix)))


def _other_springs(robot: Robot, draw: np.random.Generator) -> Robot:
    joints = [replace(joint, spring=joint.spring.scaled(1 + draw.uniform(-0.2, 0.2))) for joint in robot.joints]
    return replace(robot, joints=tuple(joints))


CASES = (
    Case("as the file says, but for its numbers"),
    Case("the same, efforts of rigid motors", "motor"),
    Case("the same, both sides of the springs", "both", arm=_other_springs),
    Case(
        "gravity spring at the second joint",
        arm=_gravity_spring,
        options=Options(terms=("viscous", "coulomb", "parallel_spring", "offset")),
    ),
    Case(
        "bias of the sensors",
        efforts=lambda tau, draw: tau + 0.1 * np.std(tau, axis=0) * draw.uniform(-1, 1, tau.shape[1]),
        options=Options(offset="sensor"),
    ),
    Case("dry friction that differs by direction", arm=_asymmetric),
    Case("coupled wrist, efforts of motors", "motor", given=_wrist),
    Case("all efforts of the opposite sign", efforts=_scaled(-1.0), named="opposite sign"),
    Case("one effort of the opposite sign", efforts=_one_scaled(-1.0), named="opposite sign"),
    Case("all efforts a hundred times too small", efforts=_scaled(0.01), named="another unit"),
    Case("one effort a hundred times too large", efforts=_one_scaled(100.0), named="another unit"),
    Case("motor currents, A", "motor", efforts=_scaled(1 / 8, 1 / 15, 1 / 14), named="another unit"),
)
