# SPDX-License-Identifier: Apache-2.0
"""Joint effort terms, each linear in a parameter: friction, rotor, parallel spring and offset.

The friction laws are those of :class:`eom_dynamics.actuators.friction.Friction`; B. Armstrong-Hélouvry, P. Dupont,
C. Canudas de Wit, Automatica 30 (1994).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..actuators.friction import FRICTIONLESS
from ..actuators.parallel_springs import ParallelSpring
from ..arrays import Array
from ..exceptions import StateError
from ..spelling import hint
from .parallel_springs import LINE, SCALE, TABLE, basis


def coupled(transmission: Array) -> NDArray[np.bool_]:
    """(n,) whether a transmission T (n, n) couples a joint with others."""
    return np.asarray(np.any(transmission != np.eye(len(transmission)), axis=1))


@dataclass(frozen=True)
class Motion:
    """Motion and load on which the terms depend.

    Attributes:
        qd, qdd: joint velocities and accelerations (N, n), rad/s and rad/s² (m/s and m/s²).
        load: joint efforts (N, n) that the gears transmit, N m or N.
        smoothing_velocity: v_0, one number or (n,), rad/s or m/s.
        stribeck_velocity: v_s, one number or (n,), rad/s or m/s.
        q: joint positions (N, n), rad or m.
        springs: parallel springs of the file, one a joint; none by default.
        coupled: (n,) whether a transmission drives the joint with others; qd and qdd are then those of its motor, and
            its spring has no basis.
    """

    qd: Array
    qdd: Array
    load: Array | float = 0.0
    smoothing_velocity: float | Array = float(FRICTIONLESS.smoothing_velocity)
    stribeck_velocity: float | Array = float(FRICTIONLESS.stribeck_velocity)
    q: Array | float = 0.0
    springs: Sequence[ParallelSpring | None] = ()
    coupled: NDArray[np.bool_] | bool = False

    def of_springs(self, term: str) -> Array:
        """Basis (N, n) of a term of :mod:`.parallel_springs`."""
        q = self.q + np.zeros_like(self.qd)
        springs = self.springs or [None] * q.shape[-1]
        bases = [basis(spring, term, x) for spring, x in zip(springs, np.moveaxis(q, -1, 0), strict=True)]
        return np.where(self.coupled, 0.0, np.stack(bases, axis=-1))

    @property
    def sign(self) -> Array:
        """Smooth sign of the velocities, tanh(v/v_0)."""
        return np.asarray(np.tanh(self.qd / self.smoothing_velocity))


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
        Term("coulomb", "N m", lambda motion: motion.sign, "c tanh(v/v_0)"),
        Term(
            "stribeck",
            "N m",
            lambda motion: np.exp(-np.square(motion.qd / motion.stribeck_velocity)) * motion.sign,
            "s exp(-(v/v_s)²) tanh(v/v_0), s = breakaway effort - c",
        ),
        Term("asymmetric", "N m s/rad", lambda motion: np.abs(motion.qd), "A |v|"),
        Term("load", "", lambda motion: np.abs(motion.load) * motion.sign, "mu |load| tanh(v/v_0)"),
        Term("rotor_inertia", "kg m²", lambda motion: motion.qdd, "B qdd"),
        Term(LINE, "N m/rad", lambda motion: motion.of_springs(LINE), "K q"),
        Term(SCALE, "", lambda motion: motion.of_springs(SCALE), "r times the parallel spring of the file"),
        *(Term(name, "N m", partial(Motion.of_springs, term=name), "point of a parallel spring") for name in TABLE),
        Term("offset", "N m", lambda motion: np.ones_like(motion.qd), "o"),
    )
}
"""The terms by name."""


def check_terms(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the order of :data:`TERMS`.

    Raises:
        StateError: there is no such term.
    """
    for name in names:
        if name not in TERMS:
            raise StateError(f"there is no term {name!r}; {hint(name, tuple(TERMS))}")
    return tuple(name for name in TERMS if name in names)
