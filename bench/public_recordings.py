# SPDX-License-Identifier: Apache-2.0
"""Identification from public recordings of real arms: prediction by the written file, and the printed figures.

``make bench BENCH_ARGS="--only public_recordings --recordings FOLDER"`` takes a folder with checkouts of
marcocognetti/FrankaEmikaPandaDynModel, YanjunLIU-ac/Dynamic_Parameter_Identification_for_Rokae_xMate and
thanhndv212/figaroh-examples; missing checkouts are skipped. The last 30 % of each recording are for validation.
"""

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from harness import Section, Settings
from identification import write_columns
from paths import PANDA_BAG
from pinocchio_model import pinocchio_model

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Recording
from eom_dynamics.identification.links.filtering import Filter, FilteredSamples, default_filter, filter_recording
from eom_dynamics.identification.links.verification import feedforward_efforts
from eom_dynamics.identification.sampling import LowPass, root_mean_square
from eom_dynamics.recordings.joint_recordings import read_recording

HELD_OUT = 0.3

CLAIMED, WORSE, LEAST_SQUARES = 1.10, 1.02, 1.15
"""Largest ratios of the RMS of the written file to the printed RMS, and to the RMS of given robot and least squares."""


class Source(NamedTuple):
    """A recording, its robot (a name or a file), and the side of its efforts, joint or motor."""

    recording: Recording
    robot: str
    side: str = "joint"


def public_recordings(section: Section, settings: Settings) -> None:
    """Identify each arm by the command, and judge the written file.

    Each figure is of held-out efforts, predicted for the filtered motion; errors are filtered at the chosen
    cut-off. *Given*, *written*: the feedforward of the given robot, and of the file that the command wrote.
    *Printed*: by the command. *Least squares*: Pinocchio's regressor with viscous and Coulomb friction and
    offsets (and rotors on the motor side), weighted by joint, without physically consistent inertias, from the same
    samples; its friction is predicted like the file's.
    """
    ratios: dict[str, list[float]] = {"claimed": [], "worse": [], "least squares": []}
    with tempfile.TemporaryDirectory() as scratch:
        for name, (about, source) in _SOURCES.items():
            try:
                found = source(settings.recordings, Path(scratch))
            except OSError as error:
                section.text.append(f"{name}: skipped, {error.filename} is missing.")
                continue
            _judge(section, f"{name}: RMS on the last 30 %, {about}", found, Path(scratch), ratios)
    for other, key, most in (("the printed one", "claimed", CLAIMED), ("that of the given robot", "worse", WORSE)):
        promise = f"RMS of the written file at most {most:g} times {other}, of all joints of all arms"
        largest = max(ratios[key], default=np.inf)
        section.promise(promise, f"{largest:.2f}", largest <= most)
    means = ratios["least squares"]
    section.promise(
        f"geometric mean over joints at most {LEAST_SQUARES:g} times the error of least squares",
        " ".join(f"{x:.2f}" for x in means),
        max(means, default=np.inf) <= LEAST_SQUARES,
    )


def _judge(section: Section, title: str, source: Source, scratch: Path, ratios: dict[str, list[float]]) -> None:
    """Add a table of an arm, and its ratios."""
    training, validation = source.recording.split(HELD_OUT)
    files = [scratch / "training.csv", scratch / "validation.csv"]
    for path, part in zip(files, (training, validation), strict=True):
        velocity = {} if part.qd is None else {"velocity": part.qd}
        write_columns(path, part.joint_names, part.t, {"position": part.q, "effort": part.tau} | velocity)
    written = scratch / "identified.yaml"
    command = [sys.executable, "-m", "eom_dynamics.tools.cli.main", "identify", str(files[0]), "--validate"]
    command += [str(files[1]), "--robot", source.robot, "--side", source.side, "-o", str(written), "--force", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    results = json.loads(done.stdout)
    robot, motor = load_robot(source.robot), source.side == "motor"
    terms = ("viscous", "coulomb", "offset", *(("rotor_inertia",) if motor else ()))
    using = replace(
        default_filter(robot, results["cutoff"], motor_side=motor), measured_velocity=results["measured_velocity"]
    )
    train = filter_recording(training, terms, using)
    judge = filter_recording(validation, terms, replace(using, decimate=False))

    def of_robot(each: Robot) -> Array:
        arm = ElasticArm(each)
        states = [(s.q, s.qd, s.qdd, 0 * s.qd, 0 * s.qd) for s in judge]
        return rms_errors([feedforward_efforts(arm, state, motor_side=motor) for state in states], judge, using)

    plain = rms_errors(least_squares(robot, train, judge, using, motor), judge, using)
    given, after = of_robot(robot), of_robot(load_robot(str(written)))
    printed = np.array([np.nan if v is None else v for v in results["validation"]["rms_after"]], dtype=float)
    ratios["claimed"] += (after / printed).tolist()
    ratios["worse"] += (after / given).tolist()
    ratios["least squares"].append(float(np.exp(np.mean(np.log(after / plain)))))
    ending = f"; {results['cutoff']:.2g} Hz; exit code {done.returncode}"
    table = section.table(title + ending, "", *robot.joint_names)
    for what, values in (("given", given), ("least squares", plain), ("written", after), ("printed", printed)):
        table.add(what, *(f"{value:.3g}" for value in values))


def rms_errors(predicted: Sequence[Array], judge: Sequence[FilteredSamples], using: Filter) -> Array:
    """RMS errors (n,) of efforts (N, n) of each motion, filtered as a whole, jumps of friction included."""
    errors = []
    for efforts, s in zip(predicted, judge, strict=True):
        low_pass = LowPass(float(s.t[1] - s.t[0]), using.cutoff)
        errors.append((low_pass.whole(efforts) - s.tau)[low_pass.inner(len(s))])
    return root_mean_square(np.concatenate(errors))


def least_squares(
    robot: Robot, train: Sequence[FilteredSamples], judge: Sequence[FilteredSamples], using: Filter, motor: bool
) -> list[Array]:
    """Efforts (N, n) of each motion by least squares with Pinocchio's regressor and terms of the joints, weighted."""
    model = pinocchio_model(robot)
    data = model.createData()

    def rows(samples: FilteredSamples) -> Array:
        states = zip(samples.q, samples.qd, samples.qdd, strict=True)
        Y = np.array([pin.computeJointTorqueRegressor(model, data, *state).copy() for state in states])
        qd = samples.qd
        bases = [qd, np.tanh(qd / using.smoothing_velocity), np.ones_like(qd), *([samples.qdd] if motor else [])]
        return np.concatenate([Y, *(basis[..., np.newaxis] * np.eye(robot.n) for basis in bases)], axis=-1)

    Y, tau, used = (np.concatenate(parts) for parts in zip(*((rows(s), s.tau, s.used) for s in train), strict=True))
    weights = np.ones(robot.n)
    for _ in range(5):
        x = np.linalg.lstsq((Y * weights[:, np.newaxis])[used], (tau * weights)[used], rcond=1e-8)[0]
        residual = np.where(used, Y @ x - tau, 0.0)
        weights = 1 / np.maximum(np.sqrt(np.sum(residual**2, axis=0) / used.sum(axis=0)), 1e-9)
    return [rows(s) @ x for s in judge]


def _panda(folder: Path, scratch: Path) -> Source:
    robot = load_robot("panda")
    if not PANDA_BAG.exists():
        raise FileNotFoundError(2, "", PANDA_BAG.name)
    return Source(read_recording(PANDA_BAG, robot), "panda")


def _franka(folder: Path, scratch: Path) -> Source:
    log = folder / "FrankaEmikaPandaDynModel" / "matlab/data/Exciting_Traj/Trajectory_1/rbt_log"
    t = np.loadtxt(log / "exciting_traj_time.txt")
    q, tau, qd = (
        np.loadtxt(log / f"exciting_traj_{name}.txt").reshape(len(t), -1)
        for name in ("positions", "torques", "velocity")
    )
    return Source(Recording(load_robot("panda").joint_names, t, q, tau, qd), "panda")


# Modified Denavit-Hartenberg parameters of the arm, m and rad, and estimates of its masses, kg: its repository has no
# description of the robot.
_ROKAE_D = (0.3415, 0.0, 0.394, 0.0, 0.366, 0.0, 0.2503)
_ROKAE_ALPHA = (0.0, *np.tile([-np.pi / 2, np.pi / 2], 3))
_ROKAE_MASS = (4.0, 4.5, 3.0, 3.5, 2.5, 2.5, 1.0)


def _rokae(folder: Path, scratch: Path) -> Source:
    data = folder / "Dynamic_Parameter_Identification_for_Rokae_xMate" / "filtering/data/excit"
    q, tau, qd = (np.loadtxt(data / f"excit_{name}_record.txt") for name in ("ang", "torque", "vel"))
    parts = ['<link name="l0"/>']
    for k, (d, alpha, mass) in enumerate(zip(_ROKAE_D, _ROKAE_ALPHA, _ROKAE_MASS, strict=True)):
        parts.append(
            f'<link name="l{k + 1}"><inertial><mass value="{mass}"/>'
            '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="joint_{k + 1}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/>'
            f'<origin xyz="0 {-d * np.sin(alpha)} {d * np.cos(alpha)}" rpy="{alpha} 0 0"/><axis xyz="0 0 1"/>'
            '<limit lower="-3" upper="3" effort="300" velocity="4"/></joint>'
        )
    path = scratch / "rokae.urdf"
    path.write_text(f'<robot name="rokae">{"".join(parts)}</robot>')
    names = tuple(f"joint_{k}" for k in range(1, 8))
    return Source(Recording(names, np.arange(0.0, len(q)) * 1e-3, q, tau, qd), str(path))


# Samples of the motion; gear ratios, and torque constants, N m/A; only currents are known of the lift.
_TIAGO_MOTION = slice(921, 6791)
_TIAGO_RATIO = np.array([1, 100, 100, 100, 100, 336, 336, 336])
_TIAGO_CONSTANT = np.array([1, 0.136, 0.136, -0.087, -0.087, -0.0613, -0.0613, -0.0613])


def _tiago(folder: Path, scratch: Path) -> Source:
    example = folder / "figaroh-examples" / "examples/tiago"
    names = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))
    root = ET.parse(example / "urdf/tiago_schunk.urdf").getroot()
    for transmission in root.findall("transmission"):
        root.remove(transmission)
    for joint in root.findall("joint"):
        if joint.get("type") != "fixed" and joint.get("name") not in names:
            joint.set("type", "fixed")
            for tag in ("mimic", "limit", "axis", "dynamics", "safety_controller"):
                for element in joint.findall(tag):
                    joint.remove(element)
    path = scratch / "tiago.urdf"
    ET.ElementTree(root).write(path)
    data = example / "data/identification/dynamic"
    position, velocity, effort = (
        np.genfromtxt(data / f"tiago_{name}.csv", delimiter=",", skip_header=1)[_TIAGO_MOTION]
        for name in ("position", "velocity", "effort")
    )
    tau = effort[:, 1:] * _TIAGO_RATIO * _TIAGO_CONSTANT
    return Source(Recording(names, position[:, 0], position[:, 1:], tau, velocity[:, 1:]), str(path), "motor")


def _tx40(folder: Path, scratch: Path) -> Source:
    example = folder / "figaroh-examples" / "examples/staubli_TX40"
    effort, position = (
        np.loadtxt(example / f"data/{name}.csv", delimiter=",", skiprows=1) for name in ("curr_data", "pos_read_data")
    )
    ratio = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    of_position, of_effort = ratio.copy(), ratio.copy()
    of_position[5, 4] = of_effort[4, 5] = 32.0  # the fifth joint turns the sixth motor
    q: Array = np.linalg.solve(of_position, position.T).T + np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    names = tuple(f"joint_{k}" for k in range(1, 7))
    urdf = str(example / "urdf/tx40_mdh_modified.urdf")
    return Source(Recording(names, np.arange(0.0, len(q)) * 2e-4, q, effort @ of_effort.T), urdf, "motor")


_SOURCES: dict[str, tuple[str, Callable[[Path, Path], Source]]] = {
    "Panda": ("bag of shared/, N m", _panda),
    "Franka Emika Panda": ("marcocognetti/FrankaEmikaPandaDynModel, N m", _franka),
    "Rokae xMate": ("YanjunLIU-ac/Dynamic_Parameter_Identification_for_Rokae_xMate, N m", _rokae),
    "TIAGo": ("thanhndv212/figaroh-examples, N and N m", _tiago),
    "Stäubli TX40": ("thanhndv212/figaroh-examples, N m", _tx40),
}
