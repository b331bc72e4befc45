# SPDX-License-Identifier: Apache-2.0
"""Link errors with drives that sample, differentiate and filter their measurements, and with Coulomb friction.

Plants are MuJoCo's (test/helpers/mujoco_arms.py), with held commands and drives with a PD at another sampling rate.
Models are exact except for the law of Coulomb friction.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import mujoco
import numpy as np
from chains import packaged_parameters
from harness import Section, Settings, in_parallel, rms
from mujoco_arms import HARD_FRICTION, Command, DriveLoop, MujocoArm, commands, held
from plants import link_errors, random_arm

from eom_dynamics import ElasticArm, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import NO_FEEDBACK_DELAY
from eom_dynamics.trajectory import Spline, Trajectory, paper_motion

Parameters = Mapping[str, Any]

Families = Mapping[str, tuple[list[Parameters], float]]
"""Arms of one kind, and the damping of their springs."""

PERIOD = 1e-3  # of the commands, s
RATES = (1e3, 4e3, 20e3)  # of the drives, Hz
VELOCITIES = {"exact": None, "differences": 0.0, "differences, low-pass of 1 ms": 1e-3}
"""Velocities that the drives measure: time constants of the low-pass, s, as :class:`.DriveLoop` takes them."""

GAINS = (70.0, 280.0)  # natural frequencies of the PD, rad/s; the first also without friction
LAWS: dict[str, Mapping[str, float] | None] = {
    "none": None,
    "tanh, v₀ = 0.01 rad/s": {"smoothing_velocity": 1e-2},
    "tanh, v₀ = 0.001 rad/s": {"smoothing_velocity": 1e-3},
    "presliding, x_p = 10⁻⁹ rad": {"presliding_distance": 1e-9},
    "presliding, x_p = 10⁻⁴ rad": {"presliding_distance": 1e-4},
}
"""Models of Coulomb friction: ``friction`` entries of a robot file after ``coulomb`` and ``static``, by name."""

KINDS = ((True, False), (True, True), (False, True))  # whether friction is hard, and whether the motion rests
COULOMB = 0.1  # Coulomb friction over the rms effort of a motor
NOISE = 1e-6  # of a motor encoder, rad or m, on the link side of the gear
DAMPING = 0.01  # damping ratio of the springs of random arms, which their models lack

# Rms error, mrad, without friction, and with it at each of GAINS, of random 6R arms.
LARGEST, RUBBING = 0.005, (0.07, 0.04)

SCALES, LEAST, BEST = (1e-5, 3e-5, 3e-4, 1e-3, 2e-3, 4e-3, 1e-2), 3e-5, 1.3
"""Scales v₀ of dry friction, the least one of the page, rad/s; largest ratio to the error of the best scale."""

PUSH, PUSHED = 0.5, 0.5  # effort that shows the creep of a motor at rest, over its Coulomb friction; s
STEP = 1.25e-4  # longest step of the integrator, RK4, s
SETTLING = 0.1  # time until the low-pass of a drive, which starts at the true velocity, has settled, s


def drives(section: Section, settings: Settings) -> None:
    """Measure errors without and with Coulomb friction."""
    quick = settings.quick
    revolute = [random_arm(seed) for seed in range(1, 3 if quick else 21)]
    sliding = [random_arm(seed, prismatic=True) for seed in range(1, 2 if quick else 11)]
    packaged = [packaged_parameters(name) for name in ("panda", "iiwa", "sea_planar_2r")[: 1 if quick else 3]]
    families: Families = {
        "random 6R": (revolute, DAMPING),
        "random, second joint prismatic": (sliding, DAMPING),
        "panda, iiwa, sea_planar_2r": (packaged, 0.0),
    }
    _without_friction(section, _of_arms(_of_rates, families, quick))
    _with_friction(section, _of_arms(_of_laws, families, quick))
    section.text = [
        f"{len(revolute)} random arms 6R and {len(sliding)} "
        "with a prismatic joint have the seeds from 1 on (`bench/plants.py`), and springs with "
        f"{100 * DAMPING:g} % of damping that their models lack. Commands are held for {1e3 * PERIOD:g} ms, half a "
        "period ahead. Rms over time and joints, rad and m alike, from "
        f"{1e3 * SETTLING:g} ms after the start on; median / worst of the arms.",
        f"Coulomb friction is {100 * COULOMB:g} % of the rms effort of each motor and known to all laws but none; the "
        f"drives run at {RATES[1] / 1e3:g} kHz with a low-pass of 1 ms, encoders have noise of {1e3 * NOISE:g} mrad. "
        "*Hard* friction stops a motor within 0.2 ms, *soft* friction, MuJoCo's default, lets it creep. Moves are two "
        "of 0.8 s between random positions, with rests of 0.2 s.",
    ]


def friction_scale(section: Section, settings: Settings) -> None:
    """Measure errors of moves with rests by the scale of friction, with commands of the code on the page."""
    arms = range(1, 2 if settings.quick else 5)
    found = dict(in_parallel(_of_scales, product(arms, RATES)))
    columns = (f"{rate / 1e3:g} kHz" for rate in RATES)
    table = section.table("advised v₀, best of all (its v₀, rad/s): links, µrad", "friction, arm", *columns)
    for k, kind in enumerate(("hard", "soft")):
        ratios = []
        for seed in arms:
            cells = []
            for rate in RATES:
                advised, *errors = 1e3 * found[seed, rate][k]
                best = int(np.argmin(errors))
                ratios.append(advised / errors[best])
                cells.append(f"{advised:.2g}, {errors[best]:.2g} ({SCALES[best]:g})")
            table.add(f"{kind}, {seed}", *cells)
        promise = f"{kind} friction, v₀ by creep: at most {BEST:g} times the error of the best v₀"
        section.promise(promise, f"{max(ratios):.2f}", max(ratios) <= BEST)
    section.text.append(
        f"Random arms of the seeds 1 to {len(arms)}, moves with rests, PD of {GAINS[0]:g} rad/s whose drives sample at "
        f"the rate of the column with a low-pass of 1 ms; v₀ of all joints {', '.join(f'{v:g}' for v in SCALES)} rad/s "
        f"or by the creep of each motor at rest under {100 * PUSH:g} % of its Coulomb friction, at least {LEAST:g} "
        "rad/s. Commands come from the Python code of the page."
    )


def _of_scales(seed: int, rate: float) -> Array:
    """Errors, mrad, of an arm by kind of friction, with the scale of the page and with all others."""
    parameters, drive = random_arm(seed), DriveLoop(1 / rate, 1e-3, noise=NOISE)
    dry, moves = _dry(parameters), _moves(len(parameters["joint_names"]))
    plant = {"stiction": dry, "natural_frequency": GAINS[0], "damping_ratio": DAMPING, "command": _of_page}
    error = partial(_error, parameters, moves, drive, 1.2, **plant)
    errors = [
        error(model=_rubbing(parameters, dry, {"smoothing_velocity": scale}), hard=hard)
        for hard in (True, False)
        for scale in (_creep(parameters, dry, hard), *SCALES)
    ]
    return np.reshape(errors, (2, 1 + len(SCALES)))


def _creep(parameters: Parameters, dry: Array, hard: bool) -> Array:
    """Scales v₀ (n,), rad/s, by the creep velocity v of motors at rest under an effort F: v c/F."""
    solver, scales = HARD_FRICTION if hard else "", []
    for name, coulomb in zip(parameters["joint_names"], dry, strict=True):
        inertia = " ".join([f"{parameters['joints'][name]['rotor_inertia']:.17g}"] * 3)
        body = f'<inertial pos="0 0 0" mass="1" diaginertia="{inertia}"/><joint frictionloss="{coulomb}" {solver}/>'
        model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body>{body}</body></worldbody></mujoco>")
        model.opt.timestep, data = STEP, mujoco.MjData(model)
        data.qfrc_applied[0] = PUSH * coulomb
        mujoco.mj_step(model, data, round(PUSHED / STEP))
        scales.append(max(float(data.qvel[0]) / PUSH, LEAST))
    return np.array(scales)


def _of_page(arm: ElasticArm, motion: Trajectory, duration: float, period: float) -> Command:
    """Commands by the code of the page, from setpoints at the times of the commands."""
    state = motion.derivatives(period * np.arange(round(duration / period) + 1))
    lead = arm.robot.command_lead
    sent = arm.drive_command(arm.feedforward(*state, lead=lead), *arm.ahead(lead, *state)[0][:3])
    return held(period, sent.effort, sent.position, sent.velocity)


def _dry(parameters: Parameters) -> Array:
    """Coulomb friction (n,) of the motors of an arm, N m or N."""
    n = len(parameters["joint_names"])
    arm = ElasticArm(robot_from_parameters(parameters), backend="numpy")
    effort = arm.feedforward(*paper_motion(n).derivatives(np.linspace(0.0, 2.0, 400))).motor_effort
    return np.asarray(COULOMB * np.sqrt(np.mean(effort**2, axis=0)))


def _without_friction(section: Section, families: Mapping[str, Array]) -> None:
    """Errors of arms without Coulomb friction, without and with ages of the drives' feedback."""
    table = section.table(
        f"exact model, PD of {GAINS[0]:g} rad/s: without → with `drive_feedback_delay`, mrad",
        *("arms, velocity of the drive", *(f"sampled at {rate / 1e3:g} kHz" for rate in RATES)),
    )
    worst = 0.0
    for name, errors in families.items():
        worst = max(worst, float(np.max(errors[..., 1])))
        for velocity, of_rates in zip(VELOCITIES, errors.transpose(1, 2, 3, 0), strict=True):
            table.add(f"{name}, {velocity}", *(" → ".join(_spread(x) for x in pair) for pair in of_rates))
    promise = f"exact model, with ages: at most {LARGEST:g} mrad at every rate, worst arm"
    section.promise(promise, f"{worst:.2g}", worst <= LARGEST)


def _with_friction(section: Section, families: Mapping[str, Array]) -> None:
    """Errors of arms with Coulomb friction under its laws."""
    columns = [f"{name}, {gain:g} rad/s" for name, gain in product(families, GAINS)]
    table = section.table("Coulomb friction, mrad", "friction, motion: law", *columns)
    for (i, (hard, rests)), (j, law) in product(enumerate(KINDS), enumerate(LAWS)):
        label = f"{'hard' if hard else 'soft'}, {'moves with rests' if rests else 'motion of the paper'}: {law}"
        table.add(label, *(_spread(errors[:, k, i, j]) for errors in families.values() for k in range(len(GAINS))))
    laws = list(LAWS)
    for worst, gain, most in zip(np.max(families["random 6R"], axis=(0, 2)), GAINS, RUBBING, strict=True):
        best = int(np.argmin(worst))
        promise = f"Coulomb friction, random 6R, PD of {gain:g} rad/s: at most {most:g} mrad, worst arm, best law"
        section.promise(promise, f"{worst[best]:.2g}: {laws[best]}", worst[best] <= most)


def _of_arms(measure: Callable[..., Array], families: Families, quick: bool) -> dict[str, Array]:
    """Errors of all arms of each family, which are measured side by side."""
    cases = [(arm, damping, quick) for arms, damping in families.values() for arm in arms]
    found = {id(arm): errors for (arm, *_), errors in in_parallel(measure, cases)}
    return {name: np.array([found[id(arm)] for arm in arms]) for name, (arms, _) in families.items()}


def _of_rates(parameters: Parameters, damping: float, quick: bool) -> Array:
    """Errors of one arm by velocity, rate, and whether ages are known."""
    motion, duration = paper_motion(len(parameters["joint_names"])), 0.2 if quick else 0.5
    errors = [
        _error(parameters, motion, DriveLoop(1 / rate, constant), duration, aged=aged, damping_ratio=damping)
        for constant, rate, aged in product(VELOCITIES.values(), RATES, (False, True))
    ]
    return np.reshape(errors, (len(VELOCITIES), len(RATES), 2))


def _of_laws(parameters: Parameters, damping: float, quick: bool) -> Array:
    """Errors of one arm by gain, kind of friction and motion, and law."""
    n = len(parameters["joint_names"])
    motions: tuple[Trajectory, Trajectory] = paper_motion(n), _moves(n)
    dry = _dry(parameters)
    drive, duration = DriveLoop(1 / RATES[1], 1e-3, noise=NOISE), 0.5 if quick else 2.0
    plant = {"stiction": dry, "damping_ratio": damping}
    models = [_rubbing(parameters, dry, law) for law in LAWS.values()]
    errors = [
        _error(parameters, motions[rests], drive, duration, model=model, hard=hard, natural_frequency=gain, **plant)
        for gain, (hard, rests), model in product(GAINS, KINDS, models)
    ]
    return np.reshape(errors, (len(GAINS), len(KINDS), len(LAWS)))


def _error(
    parameters: Parameters,
    motion: Trajectory,
    drive: DriveLoop,
    duration: float,
    *,
    model: Parameters | None = None,
    aged: bool = True,
    command: Callable[[ElasticArm, Any, float, float], Command] = commands,
    **plant: Any,
) -> float:
    """Root mean square error of the links on a motion, mrad.

    Args:
        parameters, plant: parameters of the plant, and further arguments of :class:`.MujocoArm`.
        motion, drive, duration: motion of the links, measurement of the drives, and duration, s.
        model: parameters of the feedforward; by default the plant's parameters.
        aged: whether the model knows the ages of the drives' feedback.
        command: gives the commands of an arm, a motion, a duration and a period.
    """
    robot = robot_from_parameters(parameters if model is None else model)
    ages = drive.delay if aged else NO_FEEDBACK_DELAY
    robot = replace(robot, command_period=PERIOD, drive_feedback_delay=ages)
    arm = ElasticArm(robot, backend="numpy")
    y = arm.feedforward(*motion.derivatives(0.0))
    real = MujocoArm(parameters, step=min(STEP, drive.period), **plant)
    options = {"duration": duration, "period": PERIOD, "drive": drive, "start": (y.motor_position, y.motor_velocity)}
    t, errors = link_errors(real, command(arm, motion, duration, PERIOD), motion, **options)
    return 1e3 * rms(errors[t > SETTLING])


def _moves(n: int) -> Spline:
    """Two moves between random positions, with rests before, between and after."""
    states = np.zeros((5, 4, n))
    states[0] = np.cumsum(np.random.default_rng(0).uniform(-0.6, 0.6, (3, n)), axis=0)[[0, 1, 1, 2]]
    return Spline([0.1, 0.9, 1.1, 1.9], states)


def _rubbing(parameters: Parameters, dry: Array, law: Mapping[str, float | Array] | None) -> Parameters:
    """Parameters with a law of Coulomb friction instead of the one in the file; its numbers may differ by joint."""
    model = copy.deepcopy(dict(parameters))
    for k, (name, coulomb) in enumerate(zip(model["joint_names"], dry, strict=True)):
        actuator = model["joints"][name].setdefault("actuator", {})
        friction = {"viscous": actuator.get("friction", {}).get("viscous", 0.0)}
        if law is not None:
            numbers = {key: float(np.broadcast_to(x, dry.shape)[k]) for key, x in law.items()}
            friction |= {"coulomb": float(coulomb), "static": float(coulomb), **numbers}
        actuator["friction"] = friction
    return model


def _spread(errors: Array) -> str:
    """Median and worst."""
    return f"{np.median(errors):.2g} / {np.max(errors):.2g}"
