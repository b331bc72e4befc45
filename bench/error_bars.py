# SPDX-License-Identifier: Apache-2.0
"""Coverage of the standard deviations that identification prints, on random elastic arms with noise.

Each arm has six joints, and differs from its file by its inertias, springs, rotors and friction. With smooth friction
its motion is the closed form's. With Coulomb's, it is that of MuJoCo, whose ``frictionloss`` sticks, under a PD whose
feedforward knows the file alone. A standard deviation is honest if the truth is within 1.96 of it 19 times in 20.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from excited import ENCODER, TORQUE, pseudo_inertia, with_pseudo_inertia
from harness import Section, Settings, in_parallel, rms

from eom_dynamics import ElasticArm, Robot, robot_from_parameters
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Options, fit
from eom_dynamics.identification.elastic.arm import Elasticity, identify_elasticity, with_spring_efforts
from eom_dynamics.identification.recording import ArmRecording
from eom_dynamics.robot.writers.mjcf import robot_as_mjcf
from eom_dynamics.trajectory import Fourier

LAWS, SENSORS = ("tanh", "Coulomb"), (True, False)
"""Friction of the motors, and whether efforts of the springs were recorded."""

RATE, PERIODS, JOINTS = 500.0, 4, 6
"""Hz; periods of 10 s."""

RECORDINGS = 3
"""Of each arm, each with noise of its own: of 240 numbers, chance alone often leaves less than 93 % inside."""

INSIDE, HONEST = 1.96, (0.93, 0.97)
"""Standard deviations that 95 % of normal errors are within, and the shares of the truths that shall be."""

# Step of the plant, s, at which its drives sample; their natural frequency, rad/s; settling of its dry friction, s.
_STEP, _DRIVE, _SETTLING = 2.5e-4, 70.0, 1e-3

_SMOOTHING = 0.01


@dataclass(frozen=True, eq=False)
class Plant:
    """An arm, its file, and an exact recording."""

    given: Robot
    true: Robot
    law: str
    exact: ArmRecording

    def recording(self, seed: int, number: int, sensors: bool) -> ArmRecording:
        """A recording with noise, with or without efforts of the springs."""
        draw, x = np.random.default_rng([seed, 2, number]), self.exact
        q, theta = (y + ENCODER * draw.standard_normal(y.shape) for y in (x.q, x.theta))
        tau, effort = (
            y + TORQUE * np.max(np.abs(y), axis=0) * draw.standard_normal(y.shape) for y in (x.tau, x.motor_effort)
        )
        return replace(x, q=q, theta=theta, tau=tau if sensors else np.full_like(tau, np.nan), motor_effort=effort)


class Score(NamedTuple):
    """Error of a printed number, over its standard deviation and over its value; NaN without a deviation."""

    quantity: str
    z: float
    relative: float


def error_bars(section: Section, settings: Settings) -> None:
    """Identify all arms and count."""
    arms = 8 if settings.quick else 40
    found: dict[tuple[str, bool], list[Score]] = {key: [] for key in product(LAWS, SENSORS)}
    for (_, law), of_arm in in_parallel(scores, product(range(1, arms + 1), LAWS), optimised=False):
        for sensors, rows in of_arm.items():
            found[law, sensors] += rows
    for key, rows in found.items():
        _coverage(section, *key, rows, arms)
    section.text.append(
        f"Arms of the seeds 1 to {arms}: six joints, {10 * PERIODS} s of five harmonics of 0.1 Hz at {RATE:g} Hz, "
        f"{RECORDINGS} recordings each, of which links are identified from the first; "
        f"noise of {ENCODER:g} rad, and of {TORQUE:.1%} of the largest effort. *Inside*: share of the truths within "
        f"{INSIDE} standard deviations. *RMS*: of errors in standard deviations, 1 if these are exact. *Bias*: mean of "
        "these. *Error*: median of relative errors. *Without*: numbers printed without a standard deviation."
    )


def _coverage(section: Section, law: str, sensors: bool, rows: list[Score], arms: int) -> None:
    what = f"{law} friction, {'with' if sensors else 'without'} efforts of the springs"
    columns = ("quantity", "numbers", "without", "inside 95 %", "RMS", "bias", "error")
    table = section.table(f"{what}, {arms} arms", *columns)
    shares = {}
    for name in dict.fromkeys(row.quantity for row in rows):
        z, relative = np.array([(row.z, row.relative) for row in rows if row.quantity == name]).T
        known = np.isfinite(z)
        cells = [str(len(z)), str(int(np.sum(~known)))]
        if known.any():
            shares[name] = float(np.mean(np.abs(z[known]) < INSIDE))
            cells += [f"{shares[name]:.1%}", f"{rms(z[known]):.2f}", f"{np.mean(z[known]):+.2f}"]
        else:
            cells += ["", "", ""]
        table.add(name, *cells, "" if np.isnan(relative).all() else f"{np.nanmedian(np.abs(relative)):.2%}")
    wrong = {name: share for name, share in shares.items() if not HONEST[0] <= share <= HONEST[1]}
    measured = f"{min(shares.values()):.1%} to {max(shares.values()):.1%}; outside: {', '.join(wrong) or 'none'}"
    section.promise(f"error bars: {what}: {HONEST[0]:.0%} to {HONEST[1]:.0%} inside", measured, not wrong)


def scores(seed: int, law: str) -> dict[bool, list[Score]]:
    """Scores of an arm with and without efforts of the springs."""
    plant = simulated(seed, law)
    found: dict[bool, list[Score]] = {}
    for sensors in SENSORS:
        recordings = [plant.recording(seed, number, sensors) for number in range(RECORDINGS)]
        elasticities = [identify_elasticity(plant.given, [recorded]) for recorded in recordings]
        found[sensors] = [score for elasticity in elasticities for score in _scores_of_joints(plant, elasticity)]
        found[sensors] += _scores_of_links(plant, elasticities[0], recordings[0])
    return found


def _scores_of_joints(plant: Plant, found: Elasticity) -> Iterator[Score]:
    for joint in plant.true.independent_joints:
        law = joint.actuator.friction
        truth = {"stiffness": float(joint.spring.tangent(0.0)), "damping": 0.0, "offset": 0.0}
        spring, motor = found.springs.get(joint.name), found.motors.get(joint.name)
        for name, pair in {} if spring is None else spring.parameters.items():
            yield _score("spring, " + name, pair, truth[name])
        truth = {"rotor_inertia": float(joint.rotor_inertia), "viscous": float(law.viscous), "offset": 0.0}
        truth |= {"coulomb": float(law.coulomb)}
        truth |= {"smoothing_velocity": float(law.smoothing_velocity)} if plant.law == "tanh" else {}
        for name, pair in {} if motor is None else motor.parameters.items():
            if name in truth:
                yield _score("motor, " + name, pair, truth[name])


def _scores_of_links(plant: Plant, found: Elasticity, recorded: ArmRecording) -> Iterator[Score]:
    given, true = plant.given, plant.true
    source = with_spring_efforts(given, found, recorded).links(given, "arm")
    links = fit(given, source, options=Options(side="joint", terms=("offset",)))
    for pair in zip(links.terms["offset"], links.term_deviations["offset"], strict=True):
        yield _score("links, offset", pair, 0.0)
    inertias = np.concatenate([joint.inertial.parameters for joint in true.joints])
    count = links.regressor.inertial
    exact = links.regressor.base(inertias)
    for value, std, truth in zip(links.estimate.x[:count], links.base_deviations[:count], exact, strict=True):
        yield _score("base parameters", (value, std), truth)


def _score(name: str, pair: tuple[float, float], truth: float) -> Score:
    std, error = pair[1], pair[0] - truth
    z = error / std if 0 < std < np.inf else np.nan
    return Score(name.replace("_", " "), z, error / truth if truth else np.nan)


@lru_cache(maxsize=4)
def simulated(seed: int, law: str, joints: int = JOINTS) -> Plant:
    """An arm of a seed, with friction of a law."""
    given, draw = drawn(seed, joints), np.random.default_rng([seed, 1])
    motion = excitation(given, draw)
    t = np.arange(0.0, 10.0 * PERIODS, 1 / RATE)
    states = motion.derivatives(t, 4)
    before = ElasticArm(given, backend="numpy").feedforward(*states)
    # A tenth of the efforts, as gears of arms have.
    viscous, dry = np.max(np.abs(before.motor_effort), axis=0) * draw.uniform(0.05, 0.15, (2, joints))
    viscous = viscous / np.max(np.abs(before.motor_velocity), axis=0)
    parts = []
    for k, joint in enumerate(given.joints):
        G = np.eye(4) + 0.04 * draw.standard_normal((4, 4))
        stiffer, heavier = 1 + draw.uniform(-0.2, 0.2, 2)
        friction = Friction(viscous[k], dry[k], dry[k], smoothing_velocity=_SMOOTHING)
        body = with_pseudo_inertia(joint, G @ pseudo_inertia(joint) @ G.T)
        parts.append(
            replace(
                body,
                spring=joint.spring.scaled(stiffer),
                rotor_inertia=joint.rotor_inertia * heavier,
                actuator=replace(joint.actuator, friction=friction),
            )
        )
    true = replace(given, joints=tuple(parts))
    if law == "tanh":
        y = ElasticArm(true, backend="numpy").feedforward(*states)
        return Plant(given, true, law, ArmRecording(t, states[0], None, y.tau, y.motor_position, y.motor_effort))
    return Plant(given, true, law, _sticking(given, true, motion, t))


def drawn(seed: int, joints: int) -> Robot:
    """An arm as its file describes it, without friction."""
    draw, entries = np.random.default_rng(seed), {}
    for k in range(joints):
        mass, length = float(draw.uniform(6, 12) * 0.55**k + 0.3), 0.35 * 0.8**k
        second = np.sort(draw.uniform(0.1, 0.3, 3) * length) ** 2 * mass
        axis = draw.normal(size=3)
        entries[f"joint_{k + 1}"] = {
            "type": "revolute",
            "screw": [*(axis / np.linalg.norm(axis)).tolist(), 0.0, 0.0, 0.0],
            "origin": {"xyz": (draw.uniform(-1, 1, 3) * length).tolist(), "rpy": draw.uniform(-3, 3, 3).tolist()},
            "mass": mass,
            "center_of_mass": (draw.uniform(-0.5, 0.5, 3) * length).tolist(),
            "inertia": np.diag(second.sum() - second)[np.triu_indices(3)].tolist(),
            "rotor_inertia": float(0.8 * 0.5**k * draw.uniform(0.7, 1.3)),
            "elasticity": {"type": "linear", "stiffness": float(1.2e4 * 0.45**k * draw.uniform(0.7, 1.3))},
        }
    return robot_from_parameters(
        {"name": f"arm_{seed}", "joint_names": list(entries), "inertia_reference": "com", "joints": entries}
    )


def excitation(robot: Robot, draw: np.random.Generator) -> Fourier:
    """A periodic motion of five harmonics of 0.1 Hz."""
    k = np.arange(1, 6)
    sine, cosine = 2 * np.pi * 0.1 * 0.6 * draw.standard_normal((2, robot.n, 5)) * np.sqrt(k) / np.sqrt(5)
    return Fourier(0.1, sine, cosine, np.zeros(robot.n), periods=PERIODS)


def _sticking(given: Robot, true: Robot, motion: Fourier, t: Array) -> ArmRecording:
    """Recording of an arm whose motors stick, in MuJoCo, under a PD with the feedforward of the file."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(robot_as_mjcf(true).text)
    model.opt.timestep, model.dof_solref[:, 0] = _STEP, _SETTLING
    data, n, every = mujoco.MjData(model), given.n, round(1 / RATE / _STEP)
    steps = len(t) * every
    command = ElasticArm(given, backend="numpy").feedforward(*motion.derivatives(_STEP * np.arange(steps), 4))
    kp, kd = _DRIVE**2 * given.rotor_inertia, 2 * _DRIVE * given.rotor_inertia
    # Motors, and links relative to them.
    data.qpos[::2], data.qvel[::2] = command.motor_position[0], command.motor_velocity[0]
    q, qd = motion.derivatives(0.0, 1)
    data.qpos[1::2], data.qvel[1::2] = q - data.qpos[::2], qd - data.qvel[::2]
    rows = np.empty((steps, 3, n))
    for k in range(steps):
        theta, thetad = data.qpos[::2], data.qvel[::2]
        off = kp * (command.motor_position[k] - theta) + kd * (command.motor_velocity[k] - thetad)
        data.ctrl[:] = command.motor_effort[k] + off
        rows[k] = theta, theta + data.qpos[1::2], data.ctrl
        mujoco.mj_step(model, data)
    theta, q, held = rows.transpose(1, 0, 2)
    # The effort of a time is the mean of the one held before and the one held after.
    effort = held.copy()
    effort[1:] = (held[1:] + held[:-1]) / 2
    stiffness = np.array([float(joint.spring.tangent(0.0)) for joint in true.joints])
    theta, q, effort = (x[::every] for x in (theta, q, effort))
    return ArmRecording(t, q, None, stiffness * (theta - q), theta, effort)
