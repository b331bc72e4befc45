# SPDX-License-Identifier: Apache-2.0
"""Coverage of the standard deviations that identification prints, on random elastic arms with sticking motors.

Each arm has six joints, and differs from its file by its inertias, springs, rotors and friction. MuJoCo moves
it under a PD with a feedforward by the file. Friction is not the model's: ``frictionloss``, hard or as soft
as MuJoCo's default, or LuGre with a Stribeck effect (C. Canudas de Wit et al., IEEE Trans. Automatic Control 40, 1995).
Excitations, friction, drives, rates and noise are drawn at random. A standard deviation is honest if the truth is
within 1.96 of it 19 times in 20.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import mujoco
import numpy as np
from excited import pseudo_inertia, with_pseudo_inertia
from harness import Section, Settings, in_parallel, rms
from identification import true_parameters, with_noise
from plants import described, elastic_joint

from eom_dynamics import ElasticArm, Robot, robot_from_parameters
from eom_dynamics.actuators.friction import Friction
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Options, fit
from eom_dynamics.identification.elastic.arm import Elasticity, identify_elasticity, with_spring_efforts
from eom_dynamics.identification.recording import ArmRecording
from eom_dynamics.robot.writers.mjcf import robot_as_mjcf
from eom_dynamics.trajectory import Fourier

SENSORS = (True, False)  # whether efforts of the springs were recorded
JOINTS, SECONDS, RATES = 6, 25.0, (250, 500, 1000)  # joints of an arm; length of a recording, about, s; Hz

INSIDE, POOLED, EACH, RMS = 1.96, (0.93, 0.97), (0.9, 0.995), (0.8, 1.2)
"""Standard deviations that hold 95 % of normal errors; promised shares within them, of all and each; promised RMS."""

# Step of the plant and of its drives, s; settling of frictionloss, s; maximum velocity with damped bristles of
# LuGre, rad/s.
_STEP, _SETTLING, _BRISTLES = 2.5e-4, (1e-3, 5e-3, 20e-3), 0.01


@dataclass(frozen=True, eq=False)
class Plant:
    """An arm, its file, an exact recording, and noise: of positions, rad, and of efforts over the largest efforts."""

    given: Robot
    true: Robot
    exact: ArmRecording
    noise: tuple[float, float]

    def recording(self, seed: int, sensors: bool) -> ArmRecording:
        """A recording with noise, with or without efforts of the springs."""
        position, effort = self.noise
        draw = np.random.default_rng([seed, 2])
        found = with_noise(self.exact, draw, position, lambda x: effort * np.max(np.abs(x), axis=0))
        return found if sensors else replace(found, tau=np.full_like(found.tau, np.nan))


class Score(NamedTuple):
    """Error of a printed number, over its standard deviation and over its value; NaN without a deviation."""

    quantity: str
    z: float
    relative: float


def error_bars(section: Section, settings: Settings) -> None:
    """Identify all arms and count."""
    arms = 8 if settings.quick else 40
    found: dict[bool, list[Score]] = {sensors: [] for sensors in SENSORS}
    for _, of_arm in in_parallel(scores, [(seed,) for seed in range(1, arms + 1)], optimized=False):
        for sensors, rows in of_arm.items():
            found[sensors] += rows
    for sensors, rows in found.items():
        _coverage(section, f"{'with' if sensors else 'without'} efforts of the springs", rows, arms)
    section.text.append(
        f"Arms of the seeds 1 to {arms}: even ones with `frictionloss` that settles in 1, 5 or 20 ms, odd ones with "
        "LuGre friction whose static part is up to 1.5 times the dry one; dry friction of 5 to 30 % of the largest "
        f"efforts. Periodic motions of 3 to 7 harmonics for some {SECONDS:g} s, PDs of 25 to 100 rad/s, 250 Hz to "
        "1 kHz; noise of 1e-6 to 1.6e-5 rad, and of 0.01 to 0.5 % of the largest effort. *Inside*: share of the "
        f"truths within {INSIDE} standard deviations. *RMS*: of errors in standard deviations, 1 if these are exact. "
        "*Bias*: mean of these. *Error*: median of relative errors, and the largest. *Without*: numbers printed "
        "without a standard deviation."
    )


def _coverage(section: Section, what: str, rows: list[Score], arms: int) -> None:
    columns = ("quantity", "numbers", "without", "inside 95 %", "RMS", "bias", "error", "largest")
    table = section.table(f"{arms} arms whose motors stick, {what}", *columns)
    shares, pooled = {}, np.array([row.z for row in rows if np.isfinite(row.z)])
    for name in dict.fromkeys(row.quantity for row in rows):
        z, relative = np.array([(row.z, row.relative) for row in rows if row.quantity == name]).T
        known = np.isfinite(z)
        cells = [str(len(z)), str(int(np.sum(~known))), "", "", ""]
        if known.any():
            shares[name] = float(np.mean(np.abs(z[known]) < INSIDE))
            cells[2:] = f"{shares[name]:.1%}", f"{rms(z[known]):.2f}", f"{np.mean(z[known]):+.2f}"
        sizes = np.abs(relative[np.isfinite(relative)])
        table.add(name, *cells, *((f"{np.median(sizes):.2%}", f"{np.max(sizes):.2%}") if len(sizes) else ("", "")))
    share, size = float(np.mean(np.abs(pooled) < INSIDE)), rms(pooled)
    table.add("all", str(len(rows)), str(len(rows) - len(pooled)), f"{share:.1%}", f"{size:.2f}", "", "", "")
    for words, (low, high), values in (
        ("{:.0%} to {:.0%} of all inside", POOLED, {"all": share}),
        ("{:.1%} to {:.1%} of each quantity inside", EACH, shares),
        ("RMS of errors over standard deviations from {} to {}", RMS, {"all": size}),
    ):
        wrong = [name for name, value in values.items() if not low <= value <= high]
        measured = f"{min(values.values()):.3f} to {max(values.values()):.3f}; outside: {', '.join(wrong) or 'none'}"
        section.promise(f"error bars, motors that stick, {what}: {words.format(low, high)}", measured, not wrong)


def scores(seed: int) -> dict[bool, list[Score]]:
    """Scores of an arm with and without efforts of the springs."""
    plant = simulated(seed)
    found: dict[bool, list[Score]] = {}
    for sensors in SENSORS:
        recorded = plant.recording(seed, sensors)
        elasticity = identify_elasticity(plant.given, [recorded])
        found[sensors] = [*_scores_of_joints(plant, elasticity), *_scores_of_links(plant, elasticity, recorded)]
    return found


def _scores_of_joints(plant: Plant, found: Elasticity) -> Iterator[Score]:
    for joint in plant.true.independent_joints:
        truth = true_parameters(joint) | {"damping": 0.0, "offset": 0.0}
        of_motor = ("rotor_inertia", "viscous", "coulomb", "offset")
        for kind, parts, names in (("spring", found.springs, truth), ("motor", found.motors, of_motor)):
            part = parts.get(joint.name)
            for name, pair in {} if part is None else part.parameters.items():
                if name in names:
                    yield _score(f"{kind}, {name}", pair, truth[name])


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


def simulated(seed: int) -> Plant:
    """The arm of a seed."""
    given, draw, lugre = drawn(seed), np.random.default_rng([seed, 1]), seed % 2 == 1
    motion = excitation(given, draw)
    t = np.arange(0.0, motion.end, 1 / draw.choice(RATES))
    before = ElasticArm(given, backend="numpy").feedforward(*motion.derivatives(t, 4))
    efforts = np.max(np.abs(before.motor_effort), axis=0)
    viscous = efforts * draw.uniform(0.02, 0.15, JOINTS) / np.max(np.abs(before.motor_velocity), axis=0)
    dry = efforts * draw.uniform(0.05, 0.3, JOINTS)
    parts = []
    for k, joint in enumerate(given.joints):
        G = np.eye(4) + 0.04 * draw.standard_normal((4, 4))
        stiffer, heavier = 1 + draw.uniform(-0.2, 0.2, 2)
        spring, rotor = joint.spring.scaled(stiffer), joint.rotor_inertia * heavier
        actuator = replace(joint.actuator, friction=Friction(viscous[k], dry[k], dry[k]))
        body = with_pseudo_inertia(joint, G @ pseudo_inertia(joint) @ G.T)
        parts.append(replace(body, spring=spring, rotor_inertia=rotor, actuator=actuator))
    true = replace(given, joints=tuple(parts))
    noise = tuple((10 ** draw.uniform([-6, -4], [-4.8, -2.3])).tolist())
    return Plant(given, true, _recorded(given, true, motion, t, LuGre(dry, true, draw) if lugre else None, draw), noise)


def drawn(seed: int) -> Robot:
    """An arm as its file describes it, without friction."""
    draw, joints = np.random.default_rng(seed), {}
    for k in range(JOINTS):
        mass, length = float(draw.uniform(6, 12) * 0.55**k + 0.3), 0.35 * 0.8**k
        squares = np.sort(draw.uniform(0.1, 0.3, 3) * length) ** 2 * mass
        axis, xyz, rpy = draw.normal(size=3), draw.uniform(-1, 1, 3) * length, draw.uniform(-3, 3, 3)
        joint = elastic_joint(axis, xyz, rpy, mass, draw.uniform(-0.5, 0.5, 3) * length, squares)
        rotor = float(0.8 * 0.5**k * draw.uniform(0.7, 1.3))
        spring = {"type": "linear", "stiffness": float(1.2e4 * 0.45**k * draw.uniform(0.7, 1.3))}
        joints[f"joint_{k + 1}"] = joint | {"rotor_inertia": rotor, "elasticity": spring}
    return robot_from_parameters(described(f"arm_{seed}", joints))


def excitation(robot: Robot, draw: np.random.Generator) -> Fourier:
    """A periodic motion of 3 to 7 harmonics of 0.05 to 0.15 Hz."""
    count, frequency, size = int(draw.integers(3, 8)), float(draw.uniform(0.05, 0.15)), draw.uniform(0.3, 0.7)
    weights = 2 * np.pi * frequency * size * np.sqrt(np.arange(1, count + 1) / count)
    sine, cosine = weights * draw.standard_normal((2, robot.n, count))
    return Fourier(frequency, sine, cosine, np.zeros(robot.n), periods=max(2, round(SECONDS * frequency)))


class LuGre:
    """LuGre friction of motors, without its viscous part: bristles z (n,), rad, of a stiffness and a damping."""

    def __init__(self, dry: Array, robot: Robot, draw: np.random.Generator) -> None:
        """Draw the laws: presliding of 0.05 to 0.5 mrad, Stribeck velocities of 0.01 to 0.1 rad/s."""
        self._dry, self._static, self._slow = dry, draw.uniform(0, 0.5, len(dry)), draw.uniform(0.01, 0.1, len(dry))
        self._stiffness = dry / 10 ** draw.uniform(-4.3, -3.3, len(dry))
        self._damping, self._z = np.sqrt(self._stiffness * robot.rotor_inertia), np.zeros(len(dry))

    def effort(self, v: Array) -> Array:
        """Friction (n,) over a step, N m, by an implicit step of the bristles."""
        largest = self._dry * (1 + self._static * np.exp(-np.square(v / self._slow)))
        z = (self._z + _STEP * v) / (1 + _STEP * np.abs(v) * self._stiffness / largest)
        rate, self._z = (z - self._z) / _STEP, z
        return np.asarray(self._stiffness * z + self._damping * np.exp(-np.square(v / _BRISTLES)) * rate)


def _recorded(
    given: Robot, true: Robot, motion: Fourier, t: Array, lugre: LuGre | None, draw: np.random.Generator
) -> ArmRecording:
    """Recording of an arm with sticking motors, in MuJoCo, under a PD with the feedforward of the file."""
    plant = true
    if lugre:
        laws = [Friction(float(joint.actuator.friction.viscous)) for joint in true.joints]
        pairs = zip(true.joints, laws, strict=True)
        plant = replace(true, joints=tuple(replace(x, actuator=replace(x.actuator, friction=law)) for x, law in pairs))
    model = mujoco.MjModel.from_xml_string(robot_as_mjcf(plant).text)
    model.opt.timestep, model.dof_solref[:, 0] = _STEP, draw.choice(_SETTLING)
    data, every = mujoco.MjData(model), round(float(t[1] - t[0]) / _STEP)
    steps = len(t) * every
    command = ElasticArm(given, backend="numpy").feedforward(*motion.derivatives(_STEP * np.arange(steps), 4))
    frequency = draw.uniform(25, 100)
    kp, kd = frequency**2 * given.rotor_inertia, 2 * frequency * given.rotor_inertia
    # Motors, and links relative to them.
    data.qpos[::2], data.qvel[::2] = command.motor_position[0], command.motor_velocity[0]
    q, qd = motion.derivatives(0.0, 1)
    data.qpos[1::2], data.qvel[1::2] = q - data.qpos[::2], qd - data.qvel[::2]
    rows = np.empty((steps, 3, JOINTS))
    for k in range(steps):
        theta, thetad = data.qpos[::2], data.qvel[::2]
        off = kp * (command.motor_position[k] - theta) + kd * (command.motor_velocity[k] - thetad)
        data.ctrl[:] = command.motor_effort[k] + off
        rows[k] = theta, theta + data.qpos[1::2], data.ctrl
        if lugre:
            data.qfrc_applied[::2] = -lugre.effort(thetad)
        mujoco.mj_step(model, data)
    theta, q, held = rows.transpose(1, 0, 2)
    # The effort at a time is the mean of the efforts held before and after it.
    effort = held.copy()
    effort[1:] = (held[1:] + held[:-1]) / 2
    stiffness = np.array([float(joint.spring.tangent(0.0)) for joint in true.joints])
    theta, q, effort = (x[::every] for x in (theta, q, effort))
    return ArmRecording(t, q, None, stiffness * (theta - q), theta, effort)
