# SPDX-License-Identifier: Apache-2.0
"""Options of an identification: terms, estimator, prior and filter."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..option_fields import check_options, option
from ..robot import Robot
from .estimators import ESTIMATORS
from .exceptions import IdentificationError
from .joint_terms import TERMS
from .parallel_springs import LINE, spring_terms
from .pseudo_inertia import KINDS

_COMMON_TERMS = ("viscous", "coulomb", "offset")

# The others are entries of the law of a parallel spring, which follow from the robot's file.
_ELECTIVE_TERMS = tuple(name for name in TERMS if not name.startswith("spring_"))


@dataclass(frozen=True)
class Options:
    """Identification of links.

    Attributes:
        side: where efforts were measured: at the joints, behind the gears, or at the motors, in units of the joints;
            default: joint if the robot's joints have springs, else motor.
        terms: terms besides inertias, or none; default: viscous, coulomb and offset, rotor_inertia on the motor side,
            and parallel springs of the file; offset where springs and motors are identified, too.
        inertia: if False, keep the inertias of the file, and identify terms alone.
        estimator: linear estimator; huber is weighted where only terms are identified.
        prior: distance from the file.
        prior_weight: weight of that distance: 1 if inertias of the file are known to a factor of e; default: chosen by
            held-out blocks of the training data.
        cutoff: cut-off frequency of the filter, Hz; default: chosen in the same way.
        measured_velocity: recorded velocities, or differences of positions; default: whichever predicts held-out
            efforts better.
        offset: whether offsets are constant efforts of the arm, such as a counterbalance, written to its file, or
            sensor biases; one recording cannot distinguish them.
        keep: if the identified parameters predict a joint worse than those of the file, the exit code is 1, and those
            of the file are kept for that joint, or for the whole file.
        suspect: if a recording contradicts the robot's file in signs, units, joint order or time, the exit code is 1
            and the parameters of the file are kept, or it is used nevertheless.
        payload: identify only a payload on the body of this joint, and offsets; all else as in the file.
    """

    side: str | None = option(choices=("joint", "motor"))
    terms: tuple[str, ...] | None = option(choices=_ELECTIVE_TERMS, metavar="NAME,…")
    inertia: bool = option(True)
    estimator: str = option("huber", choices=ESTIMATORS)
    prior: str = option("entropic", choices=KINDS)
    prior_weight: float | None = option(rule="positive", metavar="W")
    cutoff: float | None = option(rule="positive", metavar="HZ")
    measured_velocity: bool | None = option(
        flag="--velocity", choices={"auto": None, "measured": True, "position": False}
    )
    offset: str = option("arm", choices=("arm", "sensor"))
    keep: str = option("joint", choices=("joint", "file"))
    suspect: str = option("keep", choices=("keep", "use"))
    payload: str | None = option(metavar="JOINT")

    def __post_init__(self) -> None:
        """Check names and numbers; raises IdentificationError."""
        check_options(self, IdentificationError, terms=tuple(TERMS))

    def for_robot(self, robot: Robot) -> Options:
        """These options, completed by defaults that depend on the robot."""
        side = self.side or ("joint" if any(not j.spring.is_rigid for j in robot.independent_joints) else "motor")
        default = (*_COMMON_TERMS, "rotor_inertia") if side == "motor" else _COMMON_TERMS
        terms = (*default, *spring_terms(robot)) if self.terms is None else self.terms
        if LINE in terms:
            terms = tuple(dict.fromkeys((*terms, *spring_terms(robot))))
        return replace(self, side=side, terms=terms)
