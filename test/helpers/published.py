# SPDX-License-Identifier: Apache-2.0
"""The iiwa's example trajectory in Müller and Kumar (2021), and the values that their code gives for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FILE = Path(__file__).parents[3] / "shared" / "reference" / "iiwa_paper_code.csv"

AMPLITUDE = np.array(
    [
        -1.2943753211777664,
        0.7175341454355011,
        -0.5691380764966176,
        0.5848944158627155,
        1.6216297151633214,
        -0.9187855709752027,
        0.4217605991935227,
    ]
)
FREQUENCY = np.array(
    [
        1.7073873117335832,
        3.079992797637052,
        2.1084514453622774,
        3.5903916041026207,
        1.4183262544423447,
        2.285625793808507,
        5.927533308659986,
    ]
)


def iiwa_motion(t: Array, derivatives: int = 4) -> list[Array]:
    """q = A cos(w t) at times t (N,), and its time derivatives: each (N, 7)."""
    t = np.asarray(t, dtype=float)[:, None]
    return [AMPLITUDE * FREQUENCY**k * np.cos(FREQUENCY * t + k * np.pi / 2) for k in range(derivatives + 1)]


def iiwa_wrench(t: Array, derivatives: int = 2) -> list[Array]:
    """10 sin(pi t) in all six components, and its time derivatives: each (N, 6)."""
    t = np.asarray(t, dtype=float)[:, None]
    return [10 * np.pi**k * np.sin(np.pi * t + k * np.pi / 2) * np.ones(6) for k in range(derivatives + 1)]


class PublishedTrajectory:
    """The file's columns: t (201,), q, tau, taud, taudd, each (201, 7)."""

    def __init__(self) -> None:
        table = np.loadtxt(FILE, delimiter=",", skiprows=1)
        self.t = table[:, 0]
        self.q, self.tau, self.taud, self.taudd = (table[:, 1 + 7 * i : 8 + 7 * i] for i in range(4))
