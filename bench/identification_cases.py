# SPDX-License-Identifier: Apache-2.0
"""Identification of simulated arms with properties that files lack, and from wrong recordings.

For each case and seed, an arm is drawn, moved and recorded with noise, and identified by the code of the command. The
prediction of another motion of that arm, without noise, rates the written file.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
from excited import ENCODER, TORQUE, true_robot
from harness import CONSOLE, Section, Settings, in_parallel
from identification import effort_noise, write_columns
from plants import random_arm
from scipy.interpolate import CubicSpline

from eom_dynamics import Dynamics, ElasticArm, Robot, load_robot, robot_from_parameters
from eom_dynamics.actuators.actuator import LOSSLESS, Transmission
from eom_dynamics.actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from eom_dynamics.actuators.springs import RIGID, LinearSpring
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Options
from eom_dynamics.identification.links.verification import feedforward_efforts
from eom_dynamics.identification.sampling import root_mean_square
from eom_dynamics.robot.writers.mjcf import robot_as_mjcf
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.tools.cli.identify import write_and_verify
from eom_dynamics.tools.identify.run import IdentificationResult, Request, identify
from eom_dynamics.tools.options import RobotOptions
from eom_dynamics.trajectory import Fourier

ARMS = ("sea_planar_2r", "ur5e", "panda")
RATE, DURATION = 50.0, 60.0  # of a recording, Hz and s
RECOVERED = 0.05  # error of predicted efforts, relative to their RMS; or the sensor's noise, if larger
WORSE = 1.02  # minimum ratio of the errors of a worse file to the given file
SHARE = 0.95


@dataclass(frozen=True)
class Case:
    """Property of an arm that its file lacks, or fault of its recording."""

    name: str
    side: str = "joint"  # side with measured efforts: joint, motor, or both
    given: Callable[[Robot], Robot] = lambda robot: robot  # changes the robot of the file, which the arm is drawn from
    arm: Callable[[Robot, np.random.Generator], Robot] = lambda robot, draw: robot  # changes the arm
    efforts: Callable[[Array, np.random.Generator], Array] = lambda tau, draw: tau  # changes recorded efforts (N, n)
    options: Options = field(default_factory=Options)
    named: str = ""  # words of an error that name the fault; empty if the file should be good


class Outcome(NamedTuple):
    """Result of a run."""

    good: bool  # the file predicts the other motion, or an error names the fault and the exit code is 1
    worse: bool  # the file is worse than the given one, with exit code 0
    failures: Sequence[str]  # lines of the command
    notes: Sequence[str]
    error: Array  # of the written file (n,), relative to the efforts
    before: Array  # of the given file
    chosen: dict[str, float]  # cut-off and weight of the prior


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
    for (name, k, _), (outcomes, spent) in in_parallel(_outcomes, [(*key, seeds) for key in keys], optimized=False):
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
        "defaults but for `--offset sensor` of the bias; cut-off and weight of the prior are chosen for the first "
        "seed. *Recovered*: the written file predicts the efforts of all joints on another motion, without noise, to "
        f"{RECOVERED:.0%} of their RMS, or to the noise of the sensor. *Named*: an error with "
        "exit code 1 names the fault. "
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
    """Outcomes of the seeds of the k-th case, with the choices of the first seed, and processor time, s."""
    before = os.times()
    found = [outcome(CASES[k], name, 0)]
    found += [outcome(CASES[k], name, seed, found[0].chosen) for seed in range(1, seeds)]
    return found, sum(os.times()[:4]) - sum(before[:4])


def outcome(case: Case, name: str, seed: int, chosen: Mapping[str, float] | None = None) -> Outcome:
    """Draw an arm, record it, identify it, and judge the file, with a cut-off and a weight if they were chosen."""
    draw, motor = np.random.default_rng([seed, len(case.name)]), case.side != "joint"
    given = load_robot(name)
    if case.side == "motor":
        given = _joints(given, lambda x: {"spring": RIGID, "actuator": replace(x.actuator, gear=LOSSLESS)})
    given = case.given(given)
    arm = case.arm(true_robot(given, "motor" if motor else "joint", seed=seed + 100), draw)
    true = ElasticArm(replace(arm, joint_friction=not motor), backend="numpy")
    t = np.arange(0.0, DURATION, 1 / RATE)
    states = motion(given.n, t, seed)
    command = true.feedforward(*states)
    effort = command.motor_effort if motor else command.tau
    noise = effort_noise(given, effort)

    def noisy(values: Array, size: Array | float) -> Array:
        return values + size * draw.standard_normal(values.shape)

    columns = {"position": noisy(states[0], ENCODER), "effort": case.efforts(noisy(effort, noise), draw)}
    if case.side == "both":
        columns |= {"effort": noisy(command.tau, noise), "motor_position": noisy(command.motor_position, ENCODER)}
        columns["motor_effort"] = case.efforts(noisy(effort, noise), draw)
    options = replace(case.options, **(chosen or {}), **({} if case.side == "both" else {"side": case.side}))
    found, robot = by_command(given, t, columns, link_options=options)
    judged = motion(given.n, t[::4], seed + 1000)
    exact = feedforward_efforts(true, judged, motor_side=motor)
    scale = np.maximum(root_mean_square(exact), noise / RECOVERED)
    error, before = (x / scale for x in errors_of((robot, given), judged, exact, motor_side=motor))
    failed = found.failures
    worse = bool(np.any((error > WORSE * before) & (error > RECOVERED * TORQUE)))
    recovered = bool(np.all(error < RECOVERED)) and not failed
    good = any(case.named in line for line in failed) if case.named else recovered
    chosen = {"cutoff": found.link_fit.filter.cutoff, "prior_weight": found.link_fit.prior_weight or 1.0}
    return Outcome(good, worse and not failed, failed, found.notes, error.round(3), before.round(3), chosen)


def by_command(
    given: Robot, t: Array, columns: Mapping[str, Array], **request: object
) -> tuple[IdentificationResult, Robot]:
    """Result of the command for a recording of columns (N, n) by kind, and the robot of the written file."""
    with tempfile.TemporaryDirectory() as folder:
        source, table, written = (Path(folder, x) for x in ("given.yaml", "run.csv", "identified.yaml"))
        source.write_text(robot_as_yaml(given).text)
        write_columns(table, given.joint_names, t, columns)
        found = identify(load_robot(str(source)), Request([table], **request), lambda step, done: None)
        found, _ = write_and_verify(written, str(source), RobotOptions(), found, {})
        return found, load_robot(str(written))


def errors_of(robots: Sequence[Robot], states: Sequence[Array], exact: Array, *, motor_side: bool) -> Iterator[Array]:
    """Root mean square errors (n,) of the efforts that robots predict."""
    for robot in robots:
        yield root_mean_square(feedforward_efforts(ElasticArm(robot), states, motor_side=motor_side) - exact)


def motion(n: int, t: Array, seed: int) -> tuple[Array, ...]:
    """Fourier motion of five harmonics of 0.1 Hz, with q … qdddd, each (N, n)."""
    sine, cosine = 0.8 * 2 * np.pi * 0.1 * np.random.default_rng(seed).standard_normal((5, 2, n)).T.swapaxes(0, 1)
    return Fourier(0.1, sine, -cosine, np.zeros(n), periods=round(DURATION * 0.1)).derivatives(t)


def _joints(robot: Robot, change: Callable[..., Mapping[str, object]]) -> Robot:
    """The robot with changed fields of its joints."""
    return replace(robot, joints=tuple(replace(joint, **change(joint)) for joint in robot.joints))


def _gravity_spring(robot: Robot, draw: np.random.Generator) -> Robot:
    """A spring parallel to the motor of the second moving joint, for a part of the largest gravity in some poses."""
    q = np.linspace(-1, 1, 20)[:, np.newaxis] * np.ones(robot.n)
    weight = float(np.max(np.abs(Dynamics(robot, order=0, backend="numpy").gravity(q)[:, 1])))
    spring = ParallelSpring(SignedLinearLaw(weight * draw.uniform(0.3, 0.8)), draw.uniform(-0.5, 0.5))
    moved = robot.joints[robot.independent[1]]
    return _joints(robot, lambda joint: {"parallel_spring": spring} if joint is moved else {})


def _scaled(*factors: float) -> Callable[[Array, np.random.Generator], Array]:
    return lambda tau, draw: tau * np.resize(np.array(factors), tau.shape[1])


def _one_scaled(factor: float) -> Callable[[Array, np.random.Generator], Array]:
    """One joint that is drawn."""
    return lambda tau, draw: tau * np.where(np.arange(tau.shape[1]) == draw.integers(tau.shape[1]), factor, 1.0)


def _asymmetric(robot: Robot, draw: np.random.Generator) -> Robot:
    """Dry friction with other constants in each direction: their mean, and a constant effort."""
    moving = robot.independent_joints
    return _joints(robot, lambda x: {"constant_effort": x.friction * draw.uniform(-0.5, 0.5)} if x in moving else {})


def _wrist(robot: Robot) -> Robot:
    matrix = np.array([[1.0, 0.0], [-0.8, 1.0]])
    return replace(robot, transmission=((robot.n - 2, robot.n - 1), Transmission(matrix)))


def _other_springs(robot: Robot, draw: np.random.Generator) -> Robot:
    return _joints(robot, lambda joint: {"spring": joint.spring.scaled(1 + draw.uniform(-0.2, 0.2))})


CASES = (
    Case("as the file says, with other numbers"),
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


# --- Friction of another law than the model's -------------------------------------------

FOREIGN, FOREIGN_DURATION = 40, 30.0  # random arms, and s of each recording
SIDES = ("motor", "joint", "both", "both, no sensor")
SHARES = (0.0, 0.1, 0.2, 0.3)  # held-out shares
RATES = (100.0, 250.0, 500.0, 1000.0)


class Found(NamedTuple):
    """Outcome of an identification with foreign friction."""

    worse: Sequence[str]  # joints that the written file predicts worse than the given one on another motion
    kept: Sequence[str]  # joints that stay as in the given file
    verdicts: Sequence[str]  # faults reported of the faultless recording
    ratio: float  # geometric mean of the errors after and before, over joints


def foreign_friction(section: Section, settings: Settings) -> None:
    """Identify random arms with different recorded sides, held-out shares and rates."""
    arms = 8 if settings.quick else FOREIGN
    found = {seed: x for (seed,), x in in_parallel(identified, [(seed,) for seed in range(arms)], optimized=False)}
    table = section.table(
        "Random arms on MuJoCo, friction that is not the model's",
        *("recorded", "arms", "error relative to the given file", "worse joints", "not identified", "false verdicts"),
    )
    for k, side in enumerate(SIDES):
        rows = [found[seed] for seed in range(k, arms, len(SIDES))]
        ratio = float(np.exp(np.mean([np.log(x.ratio) for x in rows])))
        counts = (sum(len(getattr(x, name)) for x in rows) for name in ("worse", "kept", "verdicts"))
        table.add(side, str(len(rows)), f"{ratio:.1%}", *map(str, counts))
    for seed, x in sorted(found.items()):
        if x.worse or x.kept or x.verdicts:
            CONSOLE.print(f"arm {seed}, {SIDES[seed % len(SIDES)]}: {x}")
    for name, what in (("worse", "no joint worse"), ("kept", "no joint left out"), ("verdicts", "no false verdict")):
        count = sum(len(getattr(x, name)) for x in found.values())
        section.promise(f"identification with friction that is not the model's: {what}", str(count), not count)


def friction(rate: Array, load: Array, position: Array, scale: Array, draw: np.random.Generator) -> Array:
    """Friction (N, n) of motors by their rates and positions, and the load behind the gear.

    It has a Stribeck effect, a part that grows with the load, cogging, another constant in each direction, and no
    viscous law.
    """
    size = len(scale)
    coulomb, smooth = scale * draw.uniform(0.5, 1.5, size), draw.uniform(0.005, 0.03, size)
    stribeck = 1 + draw.uniform(0, 0.5, size) * np.exp(-np.square(rate / draw.uniform(0.05, 0.2, size)))
    dry = coulomb * stribeck * (1 + draw.uniform(0, 0.2, size) * np.sign(rate)) + 0.02 * np.abs(load)
    cogging = 0.1 * coulomb * np.sin(draw.integers(5, 20, size) * position)
    return dry * np.tanh(rate / smooth) + 2 * scale * np.sign(rate) * np.abs(rate) ** 0.7 + cogging


def simulated(robot: Robot, seed: int, t: Array, of_friction: int) -> dict[str, Array]:
    """Signals (N, n) of a motion: links by MuJoCo, without code of the library, springs, and motors with friction."""
    q, qd, qdd, *_ = motion(robot.n, t, seed)
    rigid = _joints(robot, lambda joint: {"spring": RIGID, "rotor_inertia": 0.0})
    model = mujoco.MjModel.from_xml_string(robot_as_mjcf(rigid).text)
    data, tau = mujoco.MjData(model), np.zeros_like(q)
    for k in range(len(t)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_rne(model, data, 1, tau[k])
    theta = CubicSpline(t, q + tau / ElasticArm(robot).stiffness)
    scale = 0.03 * root_mean_square(tau)
    rubbing = friction(theta(t, 1), tau, theta(t), scale, np.random.default_rng(of_friction))
    return {"q": q, "tau": tau, "theta": theta(t), "effort": tau + robot.rotor_inertia * theta(t, 2) + rubbing}


def identified(seed: int) -> Found:
    """Draw an arm, record it, identify it by the code of the command, and judge the file on another motion."""
    side, share, rate = SIDES[seed % 4], SHARES[seed // 4 % 4], RATES[(seed // 4 + seed) % 4]
    draw, one_side = np.random.default_rng([seed, 88]), side in SIDES[:2]
    given = robot_from_parameters(random_arm(seed))
    springs = [LinearSpring(1e9)] * given.n  # springs of the arm, if efforts of one side alone are recorded
    if one_side:
        given = _joints(given, lambda joint: {"spring": RIGID})
    else:
        springs = [LinearSpring(x.spring.rest_stiffness * draw.uniform(0.8, 1.2)) for x in given.joints]
    drawn = iter(springs)
    bodies = true_robot(given, "joint", seed=seed + 100, deviation=0.08)
    plant = _joints(bodies, lambda joint: {"damping": 0.0, "friction": 0.0, "spring": next(drawn)})
    t = np.arange(0.0, FOREIGN_DURATION, 1 / rate)
    signals, judged = (simulated(plant, number, t, seed) for number in (seed, seed + 1000))
    noise = {name: TORQUE * np.abs(signals[name]).max(axis=0) for name in ("tau", "effort")}
    sizes = {"q": ENCODER, "theta": ENCODER, **noise}
    noisy = {name: x + sizes[name] * draw.standard_normal(x.shape) for name, x in signals.items()}
    columns = {"position": noisy["q"], "effort": noisy["effort" if side == "motor" else "tau"]}
    if not one_side:
        columns |= {"motor_position": noisy["theta"], "motor_effort": noisy["effort"]}
        if side == SIDES[3]:
            del columns["effort"]
    options = Options(side=side) if one_side else Options()
    found, written = by_command(given, t, columns, hold_out=share, link_options=options)
    measured, states = "tau" if side == "joint" else "effort", motion(given.n, t, seed + 1000)
    before, after = errors_of((given, written), states, judged[measured], motor_side=side != "joint")
    links, worse = found.link_fit, (after > WORSE * before) & (after - before > noise[measured] / np.sqrt(len(t)))
    return Found(
        [name for name, bad in zip(given.joint_names, worse, strict=True) if bad],
        list(links.kept),
        [*links.contradictions, *(line for line in links.notes if "bend" in line)],
        float(np.exp(np.mean(np.log(after / before)))),
    )
