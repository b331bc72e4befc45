# SPDX-License-Identifier: Apache-2.0
"""The iiwa example of the paper: efforts over its motion, and their differences from the published values.

A. Müller and S. Kumar, "Closed form time derivatives of the equations of motion of rigid body systems", Multibody
System Dynamics 53 (2021). The published values are those of its MATLAB code, which takes the inertias of the paper's
table as if they were about the link frames, and applies a wrench at the tool.
"""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array
from ...dynamics import Dynamics
from ...exceptions import RobotDescriptionWarning
from ...robot import Robot, load_robot
from ...states import EFFORT_NAMES
from ...trajectory import paper_motion, paper_wrench

TOLERANCE = 1e-11
"""Allowed difference, relative to the largest published value: above rounding, below any mistake."""

# Of the curves on the page.
_SAMPLES = 1001


@dataclass(frozen=True)
class PublishedTrajectory:
    """Values of the paper's MATLAB code over 5 s.

    Attributes:
        t: times (201,), s.
        q: joint variables (201, 7), rad.
        tau, taud, taudd: joint efforts and their first two time derivatives (201, 7), N m, N m/s, N m/s².
    """

    t: Array
    q: Array
    tau: Array
    taud: Array
    taudd: Array

    @property
    def efforts(self) -> tuple[Array, ...]:
        """tau, taud, taudd."""
        return self.tau, self.taud, self.taudd


def published_trajectory() -> PublishedTrajectory:
    """Read the published values."""
    packed = resources.files(__package__).joinpath("published.csv.gz").read_bytes()
    table = np.loadtxt(io.StringIO(gzip.decompress(packed).decode()), delimiter=",", skiprows=1)
    return PublishedTrajectory(table[:, 0], *(table[:, 1 + 7 * i : 8 + 7 * i] for i in range(4)))


class ModelDifference(NamedTuple):
    """Largest differences of efforts from the published ones, under one reading of the paper's table.

    Attributes:
        inertia_reference: ``link`` or ``com``, the point that the inertias of the table are about.
        wrench: whether the wrench of the example acts at the tool.
        largest: of tau, taud, taudd; N m, N m/s, N m/s².
    """

    inertia_reference: str
    wrench: bool
    largest: tuple[float, ...]


@dataclass(frozen=True)
class PaperExample:
    """Results of the example.

    Attributes:
        robot: the iiwa, with inertias about the centres of mass, as in the paper's table.
        published: the published values.
        t: times (N,), s, of q (N, 7) and efforts, three (N, 7) in the model of the published values.
        models: differences of all readings from the published values; the first is that of the published code.
    """

    robot: Robot
    published: PublishedTrajectory
    t: Array
    q: Array
    efforts: tuple[Array, ...]
    models: tuple[ModelDifference, ...]

    @property
    def scale(self) -> tuple[float, ...]:
        """Largest published tau, taud, taudd."""
        return tuple(float(np.max(np.abs(x))) for x in self.published.efforts)

    def failures(self) -> list[str]:
        """Return the quantities that differ from the published values, one line each."""
        return [
            f"{name}: differs from the published values by {off:.1e} of the largest, tolerance {TOLERANCE:.0e}"
            for name, off in zip(EFFORT_NAMES, self.relative(), strict=True)
            if not off <= TOLERANCE
        ]

    def relative(self) -> list[float]:
        """Return the largest differences of tau, taud, taudd, relative to the largest published values."""
        return [off / most for off, most in zip(self.models[0].largest, self.scale, strict=True)]


def paper_example() -> PaperExample:
    """Compute the example, under each reading of the paper's table."""
    published = published_trajectory()
    with warnings.catch_warnings():
        # About the link frames, the table is of no physical body: the page says so.
        warnings.simplefilter("ignore", RobotDescriptionWarning)
        robots = {reference: load_robot("iiwa", inertia_reference=reference) for reference in ("link", "com")}
    dynamics = {reference: Dynamics(robot) for reference, robot in robots.items()}
    models = []
    for reference in dynamics:
        for wrench in (True, False):
            found = _efforts(dynamics[reference], published.t, wrench=wrench)
            pairs = zip(found, published.efforts, strict=True)
            models.append(ModelDifference(reference, wrench, tuple(float(np.max(np.abs(x - y))) for x, y in pairs)))
    t = np.linspace(published.t[0], published.t[-1], _SAMPLES)
    efforts = tuple(_efforts(dynamics["link"], t, wrench=True))
    return PaperExample(robots["com"], published, t, paper_motion().derivatives(t)[0], efforts, tuple(models))


def _efforts(dynamics: Dynamics, t: ArrayLike, *, wrench: bool) -> Sequence[Array]:
    """tau, taud, taudd (N, 7) of the example at times (N,)."""
    at_tool = paper_wrench().derivatives(t, order=2) if wrench else ()
    return dynamics.inverse_dynamics(*paper_motion().derivatives(t), wrench=at_tool)
