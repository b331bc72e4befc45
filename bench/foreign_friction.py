# SPDX-License-Identifier: Apache-2.0
"""Identify random arms: efforts by MuJoCo, friction of another law than the model.

Link efforts come from ``mj_rne``, which shares no code with the library. Friction of the motors has a Stribeck effect,
a part that grows with the load, cogging, another constant in each direction, and no viscous law. Sides that are
recorded, the share that is held out, and the rate differ from arm to arm.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
from excited import ENCODER, TORQUE, true_robot
from harness import CONSOLE, Section, Settings, in_parallel
from identification_cases import motion
from plants import random_arm
from scipy.interpolate import CubicSpline

from eom_dynamics import ElasticArm, Robot, load_robot, robot_from_parameters
from eom_dynamics.actuators.springs import RIGID, LinearSpring
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Options
from eom_dynamics.identification.links.verification import feedforward_efforts
from eom_dynamics.identification.sampling import root_mean_square
from eom_dynamics.robot.writers.mjcf import robot_as_mjcf
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.tools.identify.outputs import write_and_verify
from eom_dynamics.tools.identify.run import Request, identify
from eom_dynamics.tools.options import RobotOptions

ARMS, DURATION = 40, 30.0
"""Random arms, and s of each recording."""

SIDES = ("motor", "joint", "both", "both, no sensor")
SHARES = (0.0, 0.1, 0.2, 0.3)
RATES = (100.0, 250.0, 500.0, 1000.0)

WORSE = 1.02
"""Ratio of errors of the written file and the given one, beyond the noise, from which on it is worse."""


@dataclass(frozen=True)
class Found:
    """What an identification came to.

    Attributes:
        worse: joints that the written file predicts worse than the given one on another motion.
        kept: joints that stay as in the given file, but that plain least squares predict better.
        verdicts: what the recording is said to be wrong in; it is right.
        ratio: geometric mean of the errors after and before, over joints.
    """

    worse: tuple[str, ...]
    kept: tuple[str, ...]
    verdicts: tuple[str, ...]
    ratio: float


def foreign_friction(section: Section, settings: Settings) -> None:
    """Identify all arms."""
    arms = 8 if settings.quick else ARMS
    found = dict(in_parallel(identified, [(seed,) for seed in range(arms)], optimised=False))
    table = section.table(
        "Random arms on MuJoCo, friction that is not the model's",
        *("recorded", "arms", "error relative to the given file", "worse joints", "not identified", "false verdicts"),
    )
    for side in SIDES:
        rows = [found[(seed,)] for seed in range(arms) if SIDES[seed % len(SIDES)] == side]
        ratio = float(np.exp(np.mean([np.log(x.ratio) for x in rows])))
        counts = (sum(len(getattr(x, name)) for x in rows) for name in ("worse", "kept", "verdicts"))
        table.add(side, str(len(rows)), f"{ratio:.1%}", *map(str, counts))
    for (seed,), x in sorted(found.items()):
        if x.worse or x.kept or x.verdicts:
            CONSOLE.print(f"arm {seed}, {SIDES[seed % len(SIDES)]}: {x}")
    for name, what in (("worse", "no joint worse"), ("kept", "no joint left out"), ("verdicts", "no false verdict")):
        count = sum(len(getattr(x, name)) for x in found.values())
        section.promise(f"identification with friction that is not the model's: {what}", str(count), not count)


def friction(rate: Array, load: Array, position: Array, scale: Array, draw: np.random.Generator) -> Array:
    """Friction (N, n) of motors by their rates and positions, and the load behind the gear."""
    size = len(scale)
    coulomb, smooth = scale * draw.uniform(0.5, 1.5, size), draw.uniform(0.005, 0.03, size)
    stribeck = 1 + draw.uniform(0, 0.5, size) * np.exp(-np.square(rate / draw.uniform(0.05, 0.2, size)))
    dry = coulomb * stribeck * (1 + draw.uniform(0, 0.2, size) * np.sign(rate)) + 0.02 * np.abs(load)
    cogging = 0.1 * coulomb * np.sin(draw.integers(5, 20, size) * position)
    return dry * np.tanh(rate / smooth) + 2 * scale * np.sign(rate) * np.abs(rate) ** 0.7 + cogging


def simulated(robot: Robot, seed: int, t: Array, of_friction: int) -> dict[str, Array]:
    """Signals (N, n) of a motion: links by MuJoCo, springs, and motors with friction."""
    q, qd, qdd, *_ = motion(robot.n, t, seed)
    rigid = replace(robot, joints=tuple(replace(x, spring=RIGID, rotor_inertia=0.0) for x in robot.joints))
    model = mujoco.MjModel.from_xml_string(robot_as_mjcf(rigid).text)
    data, tau = mujoco.MjData(model), np.zeros_like(q)
    for k in range(len(t)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_rne(model, data, 1, tau[k])
    stiffness = ElasticArm(robot).stiffness
    theta = CubicSpline(t, q + tau / stiffness)
    scale = 0.03 * root_mean_square(tau)
    rubbing = friction(theta(t, 1), tau, theta(t), scale, np.random.default_rng(of_friction))
    return {"q": q, "tau": tau, "theta": theta(t), "effort": tau + robot.rotor_inertia * theta(t, 2) + rubbing}


def identified(seed: int) -> Found:
    """Draw an arm, record it, identify it by what the command runs, and judge the file on another motion."""
    side, share, rate = SIDES[seed % 4], SHARES[seed // 4 % 4], RATES[(seed // 4 + seed) % 4]
    draw = np.random.default_rng([seed, 88])
    given = robot_from_parameters(random_arm(seed))
    if side in SIDES[:2]:
        given = replace(given, joints=tuple(replace(joint, spring=RIGID) for joint in given.joints))
    bodies = true_robot(given, "joint", seed=seed + 100, deviation=0.08)
    joints = [
        replace(x, damping=0.0, friction=0.0, spring=LinearSpring(y.spring.rest_stiffness * draw.uniform(0.8, 1.2)))
        if side not in SIDES[:2]
        else replace(x, damping=0.0, friction=0.0)
        for x, y in zip(bodies.joints, given.joints, strict=True)
    ]
    true, t = replace(bodies, joints=tuple(joints)), np.arange(0.0, DURATION, 1 / rate)
    stiff = replace(true, joints=tuple(replace(x, spring=LinearSpring(1e9)) for x in true.joints))
    plant = stiff if side in SIDES[:2] else true
    signals, judged = simulated(plant, seed, t, seed), simulated(plant, seed + 1000, t, seed)
    noise = {name: TORQUE * np.abs(signals[name]).max(axis=0) for name in ("tau", "effort")}
    sizes = {"q": ENCODER, "theta": ENCODER, **noise}
    noisy = {name: x + sizes[name] * draw.standard_normal(x.shape) for name, x in signals.items()}
    columns = {"position": noisy["q"], "effort": noisy["effort" if side == "motor" else "tau"]}
    if side not in SIDES[:2]:
        columns |= {"motor_position": noisy["theta"], "motor_effort": noisy["effort"]}
        if side == SIDES[3]:
            del columns["effort"]
    measured = "effort" if side != "joint" else "tau"
    with tempfile.TemporaryDirectory() as folder:
        source, table, written = (Path(folder, x) for x in ("given.yaml", "run.csv", "identified.yaml"))
        source.write_text(robot_as_yaml(given).text)
        names = [f"{kind}.{joint}" for kind in columns for joint in given.joint_names]
        values = np.column_stack([t, *columns.values()])
        np.savetxt(table, values, fmt="%.9g", delimiter=",", header=",".join(["t", *names]), comments="")
        options = Options(side=side) if side in SIDES[:2] else Options()
        request = Request([table], hold_out=share, link_options=options)
        robot = load_robot(str(source))
        found, _ = write_and_verify(
            written, str(source), RobotOptions(), identify(robot, request, lambda step, done: None), {}
        )
        identified_arm = load_robot(str(written))
    states = motion(given.n, t, seed + 1000)
    before, after = (
        root_mean_square(feedforward_efforts(ElasticArm(x), states, motor_side=side != "joint") - judged[measured])
        for x in (given, identified_arm)
    )
    links = found.link_fit
    assert links is not None
    worse = (after > WORSE * before) & (after - before > noise[measured] / np.sqrt(len(t)))
    return Found(
        tuple(name for name, bad in zip(given.joint_names, worse, strict=True) if bad),
        tuple(line.split()[0] for line in links.behind if line.split()[0] in links.kept),
        (*links.contradictions, *(line for line in links.notes if "bend" in line)),
        float(np.exp(np.mean(np.log(after / before)))),
    )
