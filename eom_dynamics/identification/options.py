# SPDX-License-Identifier: Apache-2.0
"""Options of an identification: terms, estimator, prior and filter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..robot import Robot
from .estimators import ESTIMATORS
from .exceptions import IdentificationError
from .joint_terms import TERMS
from .parallel_springs import LINE, spring_terms
from .prior import KINDS

SIDES = ("joint", "motor")
"""Where efforts were measured: between gear and link, or at the motor, in units of the joint."""

KEPT = ("joint", "file")
"""What is kept of the file where a joint is predicted worse than by the file: all of that joint, or of the robot."""

OFFSETS = ("arm", "sensor")
"""Where an offset belongs: a constant effort of the arm, in its file, or a bias of the sensor, of the recording."""

SUSPECT = ("keep", "use")
"""What happens if a recording contradicts the file: its parameters are kept, or the recording is used all the same."""

_COMMON_TERMS = ("viscous", "coulomb", "offset")


@dataclass(frozen=True)
class Options:
    """Options of an identification.

    Attributes:
        side: one of SIDES; None for ``joint`` if the robot has springs, else ``motor``.
        terms: names in :data:`.joint_terms.TERMS`; None for viscous and Coulomb friction and offset, with rotor
            inertia on the motor side, and parallel springs if the file has any. ``parallel_spring`` stands for those of
            all kinds.
        inertia: identify the inertias of bodies; else those of the file stay.
        estimator: one of ESTIMATORS; ``huber`` is ``weighted`` where only terms are identified.
        prior: distance from the file, one of :data:`.prior.KINDS`.
        prior_weight: of that distance; None to choose it by blocks of the training data that are held out.
        cutoff: of the filter, Hz; None to choose it.
        measured_velocity: use recorded velocities; None to choose.
        offset: where offsets belong, one of OFFSETS.
        keep: what is kept of the file if it predicts the efforts of a joint better, one of KEPT.
        suspect: what happens if a recording contradicts the file, one of SUSPECT.
        payload: joint whose body carries a payload, which is identified alone with the offsets.
    """

    side: str | None = None
    terms: tuple[str, ...] | None = None
    inertia: bool = True
    estimator: str = "huber"
    prior: str = "entropic"
    prior_weight: float | None = None
    cutoff: float | None = None
    measured_velocity: bool | None = None
    offset: str = "arm"
    keep: str = "joint"
    suspect: str = "keep"
    payload: str | None = None

    def __post_init__(self) -> None:
        """Check names; raises IdentificationError."""
        for name, value, known in (
            ("estimator", self.estimator, ESTIMATORS),
            ("prior", self.prior, KINDS),
            ("side", self.side or SIDES[0], SIDES),
            ("keep", self.keep, KEPT),
            ("offset", self.offset, OFFSETS),
            ("suspect", self.suspect, SUSPECT),
        ):
            if value not in known:
                raise IdentificationError(f"{name} must be {' or '.join(known)}, is {value!r}")
        for name in self.terms or ():
            if name not in TERMS:
                raise IdentificationError(f"terms: there is no {name!r}; there are {', '.join(TERMS)}")

    def for_robot(self, robot: Robot) -> Options:
        """These options, completed by defaults that depend on the robot."""
        side = self.side or ("joint" if any(not j.spring.is_rigid for j in robot.independent_joints) else "motor")
        default = (*_COMMON_TERMS, "rotor_inertia") if side == "motor" else _COMMON_TERMS
        terms = (*default, *spring_terms(robot)) if self.terms is None else self.terms
        if LINE in terms:
            terms = tuple(dict.fromkeys((*terms, *spring_terms(robot))))
        return replace(self, side=side, terms=terms)
