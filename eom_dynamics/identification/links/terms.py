# SPDX-License-Identifier: Apache-2.0
"""Joint effort terms, each linear in a parameter: friction, rotor, parallel spring and offset.

For the friction laws see :class:`eom_dynamics.actuators.friction.Friction`; B. Armstrong-Hélouvry, P. Dupont,
C. Canudas de Wit, Automatica 30 (1994). The terms of a parallel spring depend on its kind:

| spring | terms | its constant part, which the term ``offset`` has |
|---|---|---|
| none, or linear without anchors | ``parallel_spring``: stiffness K of K q | effort at q = 0 |
| any other | ``spring_scale``: ratio of its effort to the file's | none |

The bias of a sensor is therefore inseparable from the rest position of a line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...actuators.friction import FRICTIONLESS
from ...actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from ...arrays import Array
from ...exceptions import StateError
from ...jet import Jet
from ...robot import Robot
from ...spelling import hint

LINE, SCALE = "parallel_spring", "spring_scale"


def spring_terms(robot: Robot) -> tuple[str, ...]:
    """Terms of the parallel springs of a robot's file."""
    springs = [x.parallel_spring for x in robot.independent_joints if x.parallel_spring is not None]
    return tuple(dict.fromkeys(term for spring in springs for term in spring_values(spring)))


def spring_values(spring: ParallelSpring | None) -> dict[str, float]:
    """Parameters of a spring by term."""
    if spring is None:
        return {LINE: 0.0}
    if isinstance(spring.law, SignedLinearLaw) and spring.anchors is None:
        return {LINE: spring.law.constant}
    return {SCALE: 1.0}


def _spring_basis(spring: ParallelSpring | None, term: str, q: Array) -> Array:
    """Efforts (…) per unit of a term's parameter at positions (…); zero if the spring has no such term."""
    if term not in spring_values(spring):
        return np.zeros_like(q)
    if term == LINE:
        return q
    assert spring is not None
    return spring_effort(spring, q)


def constant_part(spring: ParallelSpring | None) -> float:
    """Constant part of a spring's effort, which counts as an offset, N m or N."""
    if spring is None or spring.anchors is not None:
        return 0.0
    return float(spring_effort(spring, np.zeros(1))[0]) if isinstance(spring.law, SignedLinearLaw) else 0.0


def with_spring_values(spring: ParallelSpring | None, values: Mapping[str, float]) -> ParallelSpring | None:
    """The spring with identified parameters, by term; a new linear one for None.

    A spring that turns out to push where it should pull is left out.
    """
    if not set(spring_values(spring)) <= set(values):
        return spring
    if spring is None:
        return ParallelSpring(SignedLinearLaw(values[LINE])) if values[LINE] else None
    if LINE in spring_values(spring):
        return replace(spring, law=SignedLinearLaw(values[LINE]))
    return replace(spring, law=spring.law.scaled(values[SCALE])) if values[SCALE] > 0 else None


def spring_effort(spring: ParallelSpring, q: Array) -> Array:
    """Efforts (…) that hold a spring at positions (…), N m or N."""
    return np.asarray(spring.effort_jet(Jet([q]))[0])


def coupled(transmission: Array) -> NDArray[np.bool_]:
    """(n,) whether a transmission T (n, n) couples a joint with others."""
    return np.asarray(np.any(transmission != np.eye(len(transmission)), axis=1))


@dataclass(frozen=True)
class Motion:
    """Motion on which the terms depend.

    Attributes:
        qd, qdd: joint velocities and accelerations (N, n), rad/s and rad/s² (m/s and m/s²).
        smoothing_velocity: v_0, one number or (n,), rad/s or m/s.
        q: joint positions (N, n), rad or m.
        springs: parallel springs of the file, one a joint; none by default.
        coupled: (n,) whether a transmission drives the joint with others; qd and qdd are then rates of its motor, and
            its spring has no basis.
    """

    qd: Array
    qdd: Array
    smoothing_velocity: float | Array = float(FRICTIONLESS.smoothing_velocity)
    q: Array | float = 0.0
    springs: Sequence[ParallelSpring | None] = ()
    coupled: NDArray[np.bool_] | bool = False

    def of_springs(self, term: str) -> Array:
        """Basis (N, n) of a term of a parallel spring."""
        q = self.q + np.zeros_like(self.qd)
        springs = self.springs or [None] * q.shape[-1]
        bases = [_spring_basis(spring, term, x) for spring, x in zip(springs, np.moveaxis(q, -1, 0), strict=True)]
        return np.where(self.coupled, 0.0, np.stack(bases, axis=-1))


@dataclass(frozen=True)
class Term:
    """A term of the joint efforts: parameter times basis.

    Attributes:
        name: of the parameter.
        unit: of the parameter, for a revolute joint; "N m" becomes "N", "rad" becomes "m" for a prismatic one.
        basis: (N, n) efforts for parameters of one.
        about: formula.
    """

    name: str
    unit: str
    basis: Callable[[Motion], Array]
    about: str


TERMS = {
    term.name: term
    for term in (
        Term("viscous", "N m s/rad", lambda motion: motion.qd, "D v"),
        Term("coulomb", "N m", lambda motion: np.tanh(motion.qd / motion.smoothing_velocity), "c tanh(v/v_0)"),
        Term("rotor_inertia", "kg m²", lambda motion: motion.qdd, "B qdd"),
        Term(LINE, "N m/rad", lambda motion: motion.of_springs(LINE), "K q"),
        Term(SCALE, "", lambda motion: motion.of_springs(SCALE), "r times the parallel spring of the file"),
        Term("offset", "N m", lambda motion: np.ones_like(motion.qd), "o"),
    )
}
"""The terms by name."""


def check_terms(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the order of :data:`TERMS`; raises StateError for unknown ones."""
    for name in names:
        if name not in TERMS:
            raise StateError(f"there is no term {name!r}; {hint(name, tuple(TERMS))}")
    return tuple(name for name in TERMS if name in names)
