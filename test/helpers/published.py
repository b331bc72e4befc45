# SPDX-License-Identifier: Apache-2.0
"""Published values of the iiwa example of Müller and Kumar (2021)."""

from __future__ import annotations

import numpy as np
from paths import SHARED

FILE = SHARED / "reference" / "iiwa_paper_code.csv"


class PublishedTrajectory:
    """Columns of the file: t (201,), q, tau, taud, taudd, each (201, 7)."""

    def __init__(self) -> None:
        table = np.loadtxt(FILE, delimiter=",", skiprows=1)
        self.t = table[:, 0]
        self.q, self.tau, self.taud, self.taudd = (table[:, 1 + 7 * i : 8 + 7 * i] for i in range(4))
