# SPDX-License-Identifier: Apache-2.0
"""The folder of results of the demo: HTML page, picture and data."""

from __future__ import annotations

import shutil
from pathlib import Path

from ...robot.writers.parameters import robot_as_yaml
from ...simulation import Comparison
from ..writing import whole_folder
from .circle.result import IdentificationResult
from .data import write_csv, write_npz
from .demo_page import write_page
from .evaluate import Answers, RunChecks
from .picture import write_picture
from .plan import Plan


def write_results(
    folder: Path,
    plan: Plan,
    recording: Answers,
    evaluation: RunChecks,
    tracking: Comparison | str,
    *,
    circle: tuple[IdentificationResult, Path] | None = None,
    force: bool = False,
) -> Path:
    """Write index.html, demo.png, data.npz and data.csv.

    With an identification, the folder ``identification`` has its bags and the robot as described, as it is, and as
    identified.

    Args:
        folder: created if necessary; other files in it stay.
        plan: setpoints that were played.
        recording: the node's answers.
        evaluation: their checks.
        tracking: feedforwards compared in simulation, or the reason why they were not.
        circle: an identification, and the folder with its bags.
        force: write into a folder that is not empty.

    Returns:
        The path of the page.

    Raises:
        FolderError: the folder cannot be written; what was in it stays.
    """
    with whole_folder(folder, force=force) as aside:
        write_npz(aside / "data.npz", plan, recording)
        write_csv(aside / "data.csv", plan, recording)
        write_picture(aside / "demo.png", plan, recording, evaluation)
        write_page(aside / "index.html", plan, recording, evaluation, tracking, circle and circle[0])
        if circle is not None:
            _write_identification(aside / "identification", *circle)
    return folder / "index.html"


def _write_identification(folder: Path, result: IdentificationResult, bags: Path) -> None:
    shutil.copytree(bags, folder)
    robots = {"described": result.task.robot, "true": result.task.true_robot, "identified": result.fit.robot}
    for name, robot in robots.items():
        (folder / f"{name}.yaml").write_text(robot_as_yaml(robot).text, encoding="utf-8")
