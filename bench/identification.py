# SPDX-License-Identifier: Apache-2.0
"""Identification of simulated arms with known truth, twenty recordings with noise each, and of a long recording.

Each arm carries a tool, moves on its optimal excitation for 100 s, and differs from its file by its inertias, springs,
rotors and friction. Noise: 1e-5 rad of encoders, and efforts of 0.5 % of their limit.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from excited import ENCODER, TORQUE, efforts, recording, true_robot, with_pseudo_inertia
from excited import pseudo_inertia as of_joint
from harness import PEAK_MEMORY, Section, Settings, in_fresh_process, scratch, seconds

from eom_dynamics import ElasticArm, Joint, Robot, load_robot
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Excitation, ExcitationOptions, Fit, Options, Recording, fit, identify_elasticity
from eom_dynamics.identification.links.consistent import pseudo_inertia
from eom_dynamics.identification.recording import ArmRecording
from eom_dynamics.recordings.number_files import write_table
from eom_dynamics.trajectory import Fourier

# --- Arms and recordings ----------------------------------------------------------------

ROBOTS = ("iiwa", "ur5e", "dual_arm", "sea_planar_2r")
RATE, PERIODS = 500.0, 10  # rate of the recordings, Hz; number of periods of 10 s
TOOL_MASS, TOOL_PLACE, TOOL_RADIUS = 3.0, (0.1, 0.0, 0.1), 0.05
"""Tool at each tip: kg, m in the frame of the last body, radius of gyration, m."""

_SPREAD = 0.2  # errors of the files: stiffness and rotor inertia, at most
_CANDIDATES, _ITERATIONS = 10, 15  # of the search for the motion: it gains little after these

# Least and largest viscous friction at the highest speed, and Coulomb friction, relative to the limit of effort, or to
# the largest effort of a joint without a limit. A gear of an arm has some hundredths.
_FRICTION = 0.02, 0.05


def limits(robot: Robot) -> dict[str, dict[str, float]]:
    """Joint limits missing in robot files: the iiwa's from its data sheet, the others plausible."""
    values: dict[str, Any] = {"acceleration": 10, "effort_rate": 1500}
    if robot.name == "iiwa":
        position = np.deg2rad([170, 120, 170, 120, 170, 120, 175])
        values |= {"lower": -position, "upper": position, "velocity": np.deg2rad([85, 85, 100, 75, 130, 135, 135])}
        values |= {"effort": [320, 320, 176, 176, 110, 40, 40]}
    if robot.name == "sea_planar_2r":
        values = {"lower": -np.pi / 2, "upper": np.pi / 2, "velocity": 4}
    shaped = {name: np.broadcast_to(x, robot.n) for name, x in values.items()}
    return {joint: {name: float(x[k]) for name, x in shaped.items()} for k, joint in enumerate(robot.joint_names)}


def with_tools(robot: Robot) -> Robot:
    """The robot with a tool on each last body, to load the springs of the wrist."""
    parents = {joint.parent for joint in robot.joints}
    place = np.append(TOOL_PLACE, 1.0)
    tool = TOOL_MASS * (np.outer(place, place) + np.diag([TOOL_RADIUS**2] * 3 + [0.0]))
    joints = [
        joint if i in parents else with_pseudo_inertia(joint, of_joint(joint) + tool)
        for i, joint in enumerate(robot.joints)
    ]
    return replace(robot, joints=tuple(joints))


@dataclass(frozen=True, eq=False)
class Truth:
    """A robot as described by its file, the true robot, and a motion that is optimal for the described robot."""

    robot: Robot  # as described, with limits
    true: Robot
    motion: Fourier
    side: str  # side of the joints with measured efforts: joint, motor, or elastic for both

    @property
    def inertias(self) -> Array:
        """True inertial parameters (10 B,)."""
        return np.concatenate([joint.inertial.parameters for joint in self.true.joints])

    @property
    def t(self) -> Array:
        """Times of the samples (N,), s."""
        return np.arange(self.motion.start, self.motion.end, 1 / RATE)


def arm(name: str, side: str) -> Truth:
    """An arm with other inertias, springs, rotors and friction (of joints or of their motors) than its file."""
    robot, motion = _described(name)
    draw = np.random.default_rng(3)
    q, qd, qdd = motion.derivatives(np.linspace(motion.start, motion.end, 1000), 2)
    speeds = np.max(np.abs(qd), axis=0)
    range_of_effort = effort_noise(robot, efforts(robot, q, qd, qdd)) / TORQUE
    joints = list(true_robot(robot, "joint").joints)
    for i, effort, speed in zip(robot.independent, range_of_effort, speeds, strict=True):
        old = robot.joints[i]
        viscous, dry = effort * draw.uniform(*_FRICTION, 2) / [speed, 1.0]
        stiffer, heavier = 1 + draw.uniform(-_SPREAD, _SPREAD, 2)
        law = Friction(viscous, dry, dry, smoothing_velocity=old.actuator.friction.smoothing_velocity)
        changes = {"damping": viscous, "friction": dry, "actuator": old.actuator}
        if side != "joint":
            changes = {
                "damping": old.damping,
                "friction": old.friction,
                "actuator": replace(old.actuator, friction=law),
            }
        spring, rotor = old.spring.scaled(stiffer), old.rotor_inertia * heavier
        joints[i] = replace(joints[i], spring=spring, rotor_inertia=rotor, **changes)
    return Truth(robot, replace(robot, joints=tuple(joints)), motion, side)


def rigid_recording(truth: Truth, seed: int) -> Recording:
    """Positions and efforts with noise."""
    q = truth.motion.derivatives(truth.t, 0)[0]
    tau = _rigid_efforts(truth)
    draw = np.random.default_rng(seed)
    noise = effort_noise(truth.robot, tau) * draw.standard_normal(tau.shape)
    return Recording(truth.robot.joint_names, truth.t, q + ENCODER * draw.standard_normal(q.shape), tau + noise)


def elastic_recording(truth: Truth, seed: int) -> ArmRecording:
    """Both sides of the springs with noise; velocities of the links as drives compute them from positions."""
    exact = _elastic_signals(truth)
    return with_noise(exact, np.random.default_rng(seed), ENCODER, lambda x: effort_noise(truth.robot, x))


def with_noise(
    exact: ArmRecording, draw: np.random.Generator, position: float, effort: Callable[[Array], Array]
) -> ArmRecording:
    """A recording with noise of positions, rad or m, and of efforts, as a function of these."""
    q, theta = (x + position * draw.standard_normal(x.shape) for x in (exact.q, exact.theta))
    tau, motor = (x + effort(x) * draw.standard_normal(x.shape) for x in (exact.tau, exact.motor_effort))
    return replace(exact, q=q, theta=theta, tau=tau, motor_effort=motor)


def effort_noise(robot: Robot, tau: Array) -> Array:
    """Standard deviations (n,): 0.5 % of the effort limits, or of the largest effort without a limit."""
    limit = np.array([joint.limits.effort for joint in robot.independent_joints])
    return np.asarray(TORQUE * np.where(np.isfinite(limit), limit, np.max(np.abs(tau), axis=0)))


def write_columns(path: Path, joint_names: Sequence[str], t: Array, columns: Mapping[str, Array]) -> None:
    """Write times (N,) and columns (N, n) by kind as a table."""
    names = [f"{kind}.{joint}" for kind in columns for joint in joint_names]
    write_table(path, ["t", *names], [t, *columns.values()])


@cache
def _described(name: str) -> tuple[Robot, Fourier]:
    """A robot with limits and tools, and its optimal excitation."""
    options = ExcitationOptions(periods=PERIODS, limits=limits(load_robot(name)))
    task = Excitation(with_tools(load_robot(name)), options)
    return task.robot, task.optimize(candidates=_CANDIDATES, iterations=_ITERATIONS).trajectory


@lru_cache(maxsize=1)
def _rigid_efforts(truth: Truth) -> Array:
    return efforts(truth.true, *truth.motion.derivatives(truth.t, 2), truth.side)


@lru_cache(maxsize=1)
def _elastic_signals(truth: Truth) -> ArmRecording:
    states = truth.motion.derivatives(truth.t, 4)
    command = ElasticArm(truth.true).feedforward(*states)
    return ArmRecording(truth.t, states[0], states[1], command.tau, command.motor_position, command.motor_effort)


# --- Results ----------------------------------------------------------------------------

DEVIATIONS, SHARE = 3.0, 0.95  # base parameters are within as many standard deviations, in this share of the runs
PROMISES = {"stiffness": 0.01, "rotor_inertia": 0.02, "viscous": 0.03, "coulomb": 0.03}  # largest relative errors
HONEST = (0.8, 1.25)  # range of the RMS of errors over their standard deviations
_LONGEST, _MOST = 10.0, 2048.0  # limits of the long recording: processor time, s, and memory, MB


class Run(NamedTuple):
    """Result of a recording."""

    scores: Array  # errors of identifiable base parameters in standard deviations; otherwise NaN
    errors: dict[str, Array]  # relative errors by parameter, for joints with an identifiable parameter
    consistent: bool  # whether the pseudo-inertias of all bodies are positive definite


def identification(section: Section, settings: Settings) -> None:
    """Identify the arms, bad recordings, and a long one."""
    runs, robots = (3, ROBOTS[-1:]) if settings.quick else (20, ROBOTS)
    bases = section.table(
        f"Base parameters, {runs} recordings of {10 * PERIODS} s each",
        *("arm, efforts of", "identifiable", "within 3 s, of all", "least of a parameter"),
        *("RMS of error / s", "consistent", "time of a run"),
    )
    names = [x.replace("_", " ") for x in PROMISES]
    errors = section.table("Largest relative error of any joint in any run", "arm, efforts of", *names)
    covered, consistent, largest = list[Array](), [], []
    for name in robots:
        for side in ("joint", "motor"):
            truth = arm(name, side)
            start = time.process_time()
            options = _chosen(truth)
            found = [_identified(truth, seed, options) for seed in range(runs)]
            took = (time.process_time() - start) / runs
            covered.append(coverage([each.scores for each in found]))
            consistent += [each.consistent for each in found]
            identifiable = int(np.isfinite(found[0].scores).sum())
            bases.add(
                f"{name}, {'links' if side == 'joint' else 'rigid motors'}",
                f"{identifiable} of {len(found[0].scores)}",
                *(f"{100 * share:.1f} %" for share in covered[-1][:2]),
                f"{covered[-1][2]:.2f}",
                f"{sum(each.consistent for each in found)} of {runs}",
                seconds(took),
            )
            largest.append(_largest([each.errors for each in found]))
            errors.add(bases.rows[-1][0], *_cells(largest[-1]))
        truth = arm(name, "elastic")
        largest.append(_largest([_both_sides(truth, seed) for seed in range(runs)]))
        errors.add(f"{name}, both sides of springs", *_cells(largest[-1]))
    bad = _bad_recordings(arm(robots[-1], "motor"))
    consistent += [_is_consistent(found) for found in bad.values()]
    section.text.append(
        "*Within 3 s*: errors of the linear estimate of at most three of its standard deviations: the share of all "
        f"base parameters of all {runs} runs, and the least share of a parameter. Base parameters and rotors do not "
        "count if only their sum is identifiable. Friction and rotors of rigid joints are from the fit with physically "
        "consistent inertias. Cut-off and weight of the file are chosen by the first "
        "recording of each arm. *Time*: of the processor, with that choice. "
        f"*Consistent*: all pseudo-inertias are positive definite, also from bad recordings: {', '.join(bad)}."
    )
    of_all, of_one, rms = np.transpose(covered)
    section.promise(
        f"identification: each base parameter within {DEVIATIONS:g} standard deviations in {SHARE:.0%} of the runs",
        f"{of_one.min():.0%} of the worst; {of_all.min():.1%} of all",
        of_one.min() >= SHARE,
    )
    section.promise(
        f"identification: RMS of errors over standard deviations from {HONEST[0]} to {HONEST[1]}",
        f"{min(rms):.2f} to {max(rms):.2f}",
        HONEST[0] <= min(rms) and max(rms) <= HONEST[1],
    )
    for name, most in PROMISES.items():
        worst = max(each.get(name, 0.0) for each in largest)
        promise = f"identification: {name.replace('_', ' ')} within {most:.0%}"
        section.promise(promise, f"{worst:.2%}", worst <= most)
    measured = f"{sum(consistent)} of {len(consistent)} fits"
    section.promise("identification: inertias always physically consistent", measured, all(consistent))
    _long(section, 60.0 if settings.quick else 600.0)


def coverage(scores: Sequence[Array]) -> Array:
    """Shares of errors within DEVIATIONS standard deviations, of all and of the worst parameter, and their RMS (3,).

    Errors are (parameters,) of each run, in standard deviations, NaN for unidentifiable parameters.
    """
    z = np.array(scores)
    z = z[:, np.isfinite(z).any(axis=0)]
    within = np.where(np.isfinite(z), np.abs(z) < DEVIATIONS, np.nan)
    return np.array([np.nanmean(within), np.nanmean(within, axis=0).min(), np.sqrt(np.nanmean(z**2))])


def _chosen(truth: Truth) -> Options:
    """Options with the cut-off and the weight chosen by a first recording."""
    first = fit(truth.robot, rigid_recording(truth, 0), options=Options(side=truth.side))
    return Options(side=truth.side, cutoff=first.filter.cutoff, prior_weight=first.prior_weight)


def _identified(truth: Truth, seed: int, options: Options) -> Run:
    side = truth.side
    found = fit(truth.robot, rigid_recording(truth, seed), options=options)
    count = found.regressor.inertial
    spread = found.base_deviations[:count]
    with np.errstate(invalid="ignore"):
        off = (found.estimate.x[:count] - found.regressor.base(truth.inertias)) / spread
    joints = truth.true.independent_joints
    laws = [joint.friction_law if side == "joint" else joint.actuator.friction for joint in joints]
    errors = {
        name: found.terms[name] / [float(getattr(law, name)) for law in laws] - 1 for name in ("viscous", "coulomb")
    }
    if side == "motor":
        identifiable = found.term_identifiable["rotor_inertia"]
        errors["rotor_inertia"] = (found.terms["rotor_inertia"] / truth.true.rotor_inertia - 1)[identifiable]
    return Run(np.where(np.isfinite(spread), off, np.nan), errors, _is_consistent(found))


def _both_sides(truth: Truth, seed: int) -> dict[str, Array]:
    """Relative errors of springs and motors, by name, of each joint."""
    elasticity = identify_elasticity(truth.robot, [elastic_recording(truth, seed)])
    errors: dict[str, list[float]] = {name: [] for name in PROMISES}
    for joint in truth.true.independent_joints:
        spring, motor = elasticity.springs[joint.name], elasticity.motors[joint.name]
        found = {"stiffness": spring.stiffness[0], "rotor_inertia": motor.rotor_inertia[0]}
        found |= {name: motor.parameters[name][0] for name in ("viscous", "coulomb")}
        for name, value in true_parameters(joint).items():
            errors[name].append(found[name] / value - 1)
    return {name: np.array(values) for name, values in errors.items()}


def true_parameters(joint: Joint) -> dict[str, float]:
    """Parameters of spring and motor, with the stiffness without load, which all laws have."""
    law = joint.actuator.friction
    found = {"stiffness": float(np.asarray(joint.spring.tangent(0.0))), "rotor_inertia": float(joint.rotor_inertia)}
    return found | {"viscous": float(law.viscous), "coulomb": float(law.coulomb)}


def _bad_recordings(truth: Truth) -> dict[str, Fit]:
    """Fits of recordings that are too short, incomplete or wrong."""
    good = rigid_recording(truth, 0)
    draw = np.random.default_rng(1)
    still, silent, jumping = good.q.copy(), good.tau.copy(), good.t.copy()
    still[:, 0] = still[0, 0]
    silent[:, 0] = 0.0
    jumping[len(jumping) // 2 :] -= 5.0
    cases: dict[str, Recording] = {
        "3 s": good[: round(3 * RATE)],
        "a joint at rest": replace(good, q=still),
        "a joint without efforts": replace(good, tau=silent),
        "a jump of the clock": replace(good, t=jumping),
        "efforts of the wrong sign": replace(good, tau=-good.tau),
        "efforts of noise alone": replace(good, tau=np.std(good.tau, axis=0) * draw.standard_normal(good.tau.shape)),
        "positions in degrees": replace(good, q=np.rad2deg(good.q)),
    }
    options = Options(side="motor", suspect="use")
    return {name: fit(truth.robot, source, options=options) for name, source in cases.items()}


def _is_consistent(found: Fit) -> bool:
    """True if all identified bodies are physically consistent; bodies kept from the file need not be."""
    of_file = found.regressor.dynamics.inertial_parameters.reshape(-1, 10)
    pairs = zip(found.parameters.reshape(-1, 10), of_file, strict=True)
    return all(np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0 for body, given in pairs if np.any(body != given))


def _largest(errors: Sequence[dict[str, Array]]) -> dict[str, float]:
    """Largest magnitudes by name."""
    return {name: max(float(np.max(np.abs(each[name]), initial=0.0)) for each in errors) for name in errors[0]}


def _cells(largest: dict[str, float]) -> list[str]:
    return [f"{100 * largest[name]:.2f} %" if name in largest else "" for name in PROMISES]


def _long(section: Section, duration: float) -> None:
    """Time and memory of the identification of a recording of seven joints at 1 kHz, in a process of its own."""
    robot = load_robot("panda")
    source = recording(robot, true_robot(robot), rate=1000.0, duration=duration, velocity=True)
    path = scratch() / "recording.npz"
    np.savez(path, t=source.t, q=source.q, tau=source.tau, qd=source.qd)
    took, peak = in_fresh_process(_IDENTIFY_LONG, path)
    section.promise(
        f"identification: {duration:g} s of seven joints at 1 kHz in {_LONGEST:g} s and {_MOST / 1024:g} GB",
        f"{took:.1f} s of the processor, {peak / 2**20:.0f} MB",
        took <= _LONGEST and peak <= _MOST * 2**20,
    )


_IDENTIFY_LONG = f"""
import json, sys, time
import numpy as np
from eom_dynamics import load_robot
from eom_dynamics.identification import Recording, fit
{PEAK_MEMORY}
robot = load_robot("panda")
with np.load(sys.argv[1]) as arrays:
    source = Recording(robot.joint_names, **arrays)
start = time.process_time()
fit(robot, *source.split(0.3))
print(json.dumps([time.process_time() - start, peak_memory()]))
"""
