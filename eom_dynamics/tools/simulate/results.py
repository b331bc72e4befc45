# SPDX-License-Identifier: Apache-2.0
"""The folder of results of a feedforward comparison: HTML page, picture and data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...simulation import Comparison
from ...simulation.model_errors import Sweep
from ..writing import whole_folder
from .picture import write_picture
from .simulation_page import write_page


def write_results(
    folder: Path,
    comparison: Comparison,
    about: Mapping[str, str],
    sweep: Sweep | None = None,
    *,
    force: bool = False,
) -> Path:
    """Write index.html, tracking.png and data.npz.

    Args:
        folder: created if necessary; other files in it stay.
        comparison: the results.
        about: names and values for the foot of the page.
        sweep: the results over errors of the model.
        force: write into a folder that is not empty.

    Returns:
        The path of the page.

    Raises:
        FolderError: the folder cannot be written; what was in it stays.
    """
    with whole_folder(folder, force=force) as aside:
        np.savez_compressed(
            aside / "data.npz",
            t=comparison.t,
            q=comparison.q,
            natural_frequency=comparison.natural_frequency,
            error=comparison.error,
            joint_names=np.array(comparison.robot.joint_names),
        )
        write_picture(aside / "tracking.png", comparison)
        write_page(aside / "index.html", comparison, about, sweep)
    return folder / "index.html"
