# SPDX-License-Identifier: Apache-2.0
"""Dynamics of common MJCF models, such as google-deepmind/mujoco_menagerie, compared with MuJoCo.

``make bench BENCH_ARGS="--only mjcf_models --models FOLDER"`` reads all ``.xml`` files in folders of FOLDER.
"""

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from harness import CONSOLE, Section, Settings
from mujoco_reference import mujoco_dynamics

from eom_dynamics import equations_of_motion, load_robot
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.robot.readers.files import DescriptionFile
from eom_dynamics.robot.readers.mjcf import compiled_model
from eom_dynamics.robot.readers.urdf import expand_xacro

LARGEST = 1e-9  # difference, relative to the largest entry or to 1 N m, 1 kg m²
_STATES = 3


def mjcf_models(section: Section, settings: Settings) -> None:
    """Compare each model in random states."""
    refused, worst, read, warned = [], np.zeros(3), 0, Counter[str]()
    paths = sorted(settings.models.glob("*/*.xml"))
    for path in paths:
        name = str(path.relative_to(settings.models))
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                differences = _differences(path)
        except RobotDescriptionError as error:
            refused.append(f"`{name}`")
            CONSOLE.print(error)
            continue
        read += 1
        worst = np.maximum(worst, differences)
        warned.update({str(warning.message).removeprefix(f"{path}: ").partition(":")[0] for warning in caught})
        if np.max(differences) > LARGEST:
            CONSOLE.print(f"{name}: {differences}")
    figures = section.table("Largest difference to MuJoCo", "effort", "mass matrix", "gravity")
    figures.add(*(f"{x:.1e}" for x in worst))
    named = section.table("Warnings", "warning", "files")
    for line, count in sorted(warned.items()):
        named.add(line, str(count))
    section.text.append(
        f"{read} of {len(paths)} files are read. Efforts, mass matrix and gravity are compared with `mj_rne` and the "
        "springs of joints, in random states; differences are relative to the largest entry or 1."
    )
    if refused:
        section.text.append(f"Not read: {', '.join(refused)}.")
    section.promise(f"differences at most {LARGEST:g}", f"{np.max(worst):.1e}", np.max(worst) <= LARGEST)


def _differences(path: Path) -> np.ndarray:
    """Largest differences of effort, mass matrix and gravity (3,), relative to the largest entry or 1."""
    robot = load_robot(path)
    model = compiled_model(DescriptionFile(str(path), path, None, None, {}, expand_xacro)).model
    model.tendon_stiffness[:] = 0.0  # tendons are not read
    rng, largest = np.random.default_rng(0), np.zeros(3)
    for q, qd, qdd in rng.uniform(-1, 1, (_STATES, 3, robot.n)):
        equations = equations_of_motion(robot, q, qd, qdd)
        ours = equations.efforts(qdd)[0], equations.M[0], equations.gravity[0]
        theirs = mujoco_dynamics(model, robot, q, qd, qdd)
        found = [np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(b))) for a, b in zip(ours, theirs, strict=True)]
        largest = np.maximum(largest, found)
    return largest
