# SPDX-License-Identifier: Apache-2.0
"""Options of an identification: terms, estimator, prior and filter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..robot import Robot
from .estimators import ESTIMATORS
from .exceptions import IdentificationError
from .joint_terms import TERMS
from .parallel_springs import LINE, spring_terms
from .pseudo_inertia import KINDS

_CHOICES = {
    "estimator": ESTIMATORS,
    "prior": KINDS,
    "side": ("joint", "motor"),
    "keep": ("joint", "file"),
    "offset": ("arm", "sensor"),
    "suspect": ("keep", "use"),
}

_COMMON_TERMS = ("viscous", "coulomb", "offset")


@dataclass(frozen=True)
class Options:
    """Options of an identification.

    Attributes:
        side: where efforts were measured: ``joint``, between gear and link, or ``motor``, in units of the joint; None
            for ``joint`` if the robot has springs, else ``motor``.
        terms: names in :data:`.joint_terms.TERMS`; None for viscous and Coulomb friction and offset, with rotor
            inertia on the motor side, and parallel springs if the file has any. ``parallel_spring`` stands for those of
            all kinds.
        inertia: identify the inertias of bodies; else those of the file stay.
        estimator: ``huber``, which is ``weighted`` where only terms are identified, ``weighted``, ``ordinary`` or
            ``total``.
        prior: distance from the file, ``entropic`` or ``geodesic``.
        prior_weight: of that distance; None to choose it by blocks of the training data that are held out.
        cutoff: of the filter, Hz; None to choose it.
        measured_velocity: use recorded velocities; None to choose.
        offset: what offsets are: ``arm``, constant efforts, in the robot's file, or ``sensor``, biases of a recording.
        keep: what is kept of the file if it predicts a joint better: that ``joint``, or the whole ``file``.
        suspect: if a recording contradicts the file, ``keep`` the file's parameters, or ``use`` it all the same.
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
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value not in known and not (name == "side" and value is None):
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
