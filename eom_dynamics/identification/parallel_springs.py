# SPDX-License-Identifier: Apache-2.0
"""Linear parameters of parallel springs, by kind of spring.

| spring | terms | its constant part, which the term ``offset`` has |
|---|---|---|
| none, or linear without anchors | ``parallel_spring``: stiffness K of K q | effort at q = 0 |
| tabulated without anchors | ``spring_table_1`` …: efforts at its points less that at the last one | their mean |
| tabulated with anchors | ``spring_table_1`` …: efforts at its points | none |
| any other | ``spring_scale``: its effort over that of the file | none |

So the bias of a sensor cannot be told from the mean of a table without anchors, nor from the rest position of a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..actuators.parallel_springs import ParallelSpring, SignedLinearLaw, TableLaw
from ..arrays import Array
from ..jet import Jet
from ..robot import Robot
from .exceptions import IdentificationError

LINE, SCALE = "parallel_spring", "spring_scale"

TABLE = tuple(f"spring_table_{k}" for k in range(1, 16))
"""Terms of tables."""


def spring_terms(robot: Robot) -> tuple[str, ...]:
    """Terms of the parallel springs of a robot's file.

    Raises:
        IdentificationError: a table has more points than there are terms.
    """
    terms: dict[str, None] = {}
    for joint in robot.independent_joints:
        spring = joint.parallel_spring
        if spring is not None:
            if isinstance(spring.law, TableLaw) and len(spring.law.tau) > len(TABLE):
                raise IdentificationError(
                    f"{joint.name}: parallel_spring has {len(spring.law.tau)} points, of which at most {len(TABLE)} "
                    "are identified; thin the table, or name terms without parallel_spring"
                )
            terms.update(dict.fromkeys(values(spring)))
    return tuple(terms)


def values(spring: ParallelSpring | None) -> dict[str, float]:
    """Parameters of a spring by term."""
    if spring is None:
        return {LINE: 0.0}
    if isinstance(spring.law, TableLaw):
        tau = spring.law.tau if spring.anchors else spring.law.tau[:-1] - spring.law.tau[-1]
        return dict(zip(TABLE, tau.tolist(), strict=False))
    if isinstance(spring.law, SignedLinearLaw) and spring.anchors is None:
        return {LINE: spring.law.constant}
    return {SCALE: 1.0}


def basis(spring: ParallelSpring | None, term: str, q: Array) -> Array:
    """Efforts (…) per unit of a term's parameter at positions (…); zero if the spring has no such term."""
    if term not in values(spring):
        return np.zeros_like(q)
    if term == LINE:
        return q
    assert spring is not None
    if isinstance(spring.law, TableLaw):
        points = len(spring.law.tau)
        unit = np.eye(points)[TABLE.index(term)] - (0.0 if spring.anchors else 1.0 / points)
        spring = replace(spring, law=replace(spring.law, tau=unit))
    return effort(spring, q)


def constant_part(spring: ParallelSpring | None) -> float:
    """Constant part of a spring's effort, which counts as an offset, N m or N."""
    if spring is None or spring.anchors is not None:
        return 0.0
    if isinstance(spring.law, TableLaw):
        return float(np.mean(spring.law.tau))
    return float(effort(spring, np.zeros(1))[0]) if isinstance(spring.law, SignedLinearLaw) else 0.0


def with_values(spring: ParallelSpring | None, found: Mapping[str, float]) -> ParallelSpring | None:
    """The spring with identified parameters, by term; a new linear one for None.

    A spring that turns out to push where it should pull is left out.
    """
    if not set(values(spring)) <= set(found):
        return spring
    if spring is None:
        return ParallelSpring(SignedLinearLaw(found[LINE])) if found[LINE] else None
    if LINE in values(spring):
        return replace(spring, law=SignedLinearLaw(found[LINE]))
    if isinstance(spring.law, TableLaw):
        tau = np.array([found[term] for term in values(spring)])
        if spring.anchors is None:
            tau = np.append(tau, 0.0)
            tau += np.mean(spring.law.tau) - np.mean(tau)
        return replace(spring, law=replace(spring.law, tau=tau))
    return replace(spring, law=spring.law.scaled(found[SCALE])) if found[SCALE] > 0 else None


def effort(spring: ParallelSpring, q: Array) -> Array:
    """Efforts (…) that hold a spring at positions (…), N m or N."""
    return np.asarray(spring.effort_jet(Jet([q]))[0])
