# SPDX-License-Identifier: Apache-2.0
"""Identification regressor: base inertial parameters, friction, rotors and sensor offsets.

    tau = Y pi + sum over the terms of (basis of the joint) x,

with the compiled :meth:`eom_dynamics.Dynamics.regressor` and joint effort terms, each linear in a parameter. Columns of
Y depend linearly on each other for every motion: a body that turns about a fixed axis shows nothing of its inertia
about others. With b independent columns Y_b, all others are Y_b times constants, so that

    Y pi = Y_b beta,      beta = K pi,      K (b, 10 B), a unit matrix in the independent columns.

M. Gautier, "Numerical calculation of the base inertial parameters of robots", Journal of Robotic Systems 8 (1991).
Columns are processed body by body from the base to the tips; for each body, columns that its joint always feels come
first. The others join the columns of the parent, as in W. Khalil and E. Dombre, Modeling, Identification and Control
of Robots (2002), section 9.4.

If efforts of motors were recorded, and a transmission theta = T phi is between them and the joints, each equation
belongs to a motor: its inertial columns are columns of T' tau, and bases of friction and rotor have the rates of phi.

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
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...actuators.friction import FRICTIONLESS
from ...actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from ...arrays import Array
from ...dynamics import Dynamics
from ...exceptions import StateError
from ...jet import Jet
from ...recursion import PARAMETERS
from ...robot import Joint, Robot
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

    A spring that would push instead of pull is omitted.
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
    """Motion for the basis functions of the terms.

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
    """Return the names in the order of :data:`TERMS`; StateError for unknown names."""
    for name in names:
        if name not in TERMS:
            raise StateError(f"there is no term {name!r}; {hint(name, tuple(TERMS))}")
    return tuple(name for name in TERMS if name in names)


_STATES = 4  # random states that decide on independence, per parameter; each gives n equations

# Standard deviations of their velocities and accelerations, rad/s and rad/s²: inertia then counts as much as gravity.
_RATES = (3.0, 10.0)

# Part of a column that is independent of others, relative to the column: rounding errors are at 1e-15, and the smallest
# true parts of the packaged robots at 1e-2.
_INDEPENDENT = 1e-7

# Maximum size of rounding errors in coefficients; larger coefficients are lengths and their products, m and m².
_ZERO = 1e-9

_MASS, _MOMENTS, _INERTIAS = 0, (1, 2, 3), ((4, 5, 6), (5, 7, 8), (6, 8, 9))
"""Places of the mass, the first moments (3) and the inertias (3, 3) in the parameters of a body."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters beta = K pi of a robot.

    Attributes:
        names: of the P = 10 B inertial parameters pi, such as ``m3``, ``mx3`` and ``Ixx3`` of the third body.
        independent: (b,) indices of the parameters that beta is named after, one in each combination.
        combinations: K (b, P).
    """

    names: tuple[str, ...]
    independent: NDArray[np.intp]
    combinations: Array

    def __len__(self) -> int:
        return len(self.independent)

    def __call__(self, parameters: Array) -> Array:
        """Base parameters beta (…, b) of inertial parameters pi (…, P)."""
        return np.asarray(parameters, dtype=float) @ self.combinations.T

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Each base parameter as a sum, such as ``Izz1 + Iyy2 + 0.0625 m3``; lengths in m."""
        pairs = zip(self.independent.tolist(), self.combinations, strict=True)
        return tuple(_sum(self.names, row, first) for first, row in pairs)


def base_parameters(robot: Robot, *, dynamics: Dynamics | None = None) -> BaseParameters:
    """Find the base parameters of a robot from the columns of its regressor in random states.

    They depend neither on its inertias nor on how well a motion shows them. ``dynamics`` of the robot
    can be passed to save compiling them.
    """
    dynamics = Dynamics(robot, order=0) if dynamics is None else dynamics
    columns = PARAMETERS * len(robot.joints)
    Y = dynamics.regressor(*random_states(robot.n, _STATES * columns, seed=1991)).reshape(-1, columns)
    size = np.linalg.norm(Y, axis=0)
    size[size <= _ZERO * np.max(size)] = 0.0
    # From here on, only inner products of columns are needed, and R has them.
    R: Array = np.asarray(np.linalg.qr(np.divide(Y, size, out=np.zeros_like(Y), where=size > 0), mode="r"))
    chosen: list[int] = []
    axes: Array = np.zeros((len(R), 0))
    for k in (PARAMETERS * body + k for body, joint in enumerate(robot.joints) for k in _order(joint)):
        rest = R[:, k]
        for _ in range(2):  # the second pass removes the rounding of the first
            rest = rest - axes @ (axes.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > _INDEPENDENT:
            chosen.append(k)
            axes = np.column_stack([axes, rest / length])
    independent = np.array(sorted(chosen), dtype=np.intp)
    K: Array = np.asarray(np.linalg.lstsq(R[:, independent], R, rcond=None)[0], dtype=float)
    K *= size / size[independent, np.newaxis]
    K[np.abs(K) < _ZERO] = 0.0
    K[:, independent] = np.eye(len(independent))
    return BaseParameters(parameter_names(robot), independent, K)


def parameter_names(robot: Robot) -> tuple[str, ...]:
    """Names of the inertial parameters pi, in their order; bodies are counted from 1 in the order of their joints."""
    kinds = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    return tuple(f"{kind}{body}" for body in range(1, len(robot.joints) + 1) for kind in kinds)


def random_states(n: int, count: int, seed: int) -> tuple[Array, Array, Array]:
    """Random q, qd, qdd, each (count, n); columns that are dependent there are dependent in all motions."""
    draw = np.random.default_rng(seed)
    q = draw.uniform(-np.pi, np.pi, (count, n))
    qd, qdd = (rate * draw.standard_normal((count, n)) for rate in _RATES)
    return q, qd, qdd


def _order(joint: Joint) -> list[int]:
    """Order of choice of the ten parameters of a body: parameters that the parent can absorb come last."""
    if joint.type == "prismatic":
        return list(range(PARAMETERS))
    z = int(np.argmax(np.abs(joint.axis)))
    x, y = (z + 1) % 3, (z + 2) % 3
    inertia = [_INERTIAS[i][j] for i, j in ((z, z), (x, x), (x, y), (x, z), (y, z))]
    return [*inertia, _MOMENTS[x], _MOMENTS[y], _INERTIAS[y][y], _MOMENTS[z], _MASS]


def _sum(names: tuple[str, ...], coefficients: Array, first: int) -> str:
    """A sum of parameters in words; it starts with index ``first``, with a coefficient of one."""
    text = names[first]
    for k in np.flatnonzero(coefficients).tolist():
        if k != first:
            size = abs(coefficients[k])
            factor = "" if abs(size - 1) < _ZERO else f"{size:.4g} "
            text += f" {'-' if coefficients[k] < 0 else '+'} {factor}{names[k]}"
    return text


def transmission_matrix(robot: Robot) -> Array | None:
    """Transmission matrix T (n, n), identity for joints without a transmission; None without transmissions."""
    if robot.transmission is None:
        return None
    joints, transmission = robot.transmission
    T = np.eye(robot.n)
    T[np.ix_(joints, joints)] = transmission.matrix
    return T


class Regressor:
    """Regressor of a robot's joint efforts, compiled and for batches.

    Attributes:
        robot: the robot.
        dynamics: compiled dynamics of the robot.
        base: its base parameters.
        terms: names of the terms of joints, in their order.
        names: (P,) of the parameters, such as ``Izz1 + Iyy2`` and ``viscous elbow``.
        inertial: number of inertial columns, which come first.
        transmission: T (n, n) for efforts of motors behind a transmission, else None.
    """

    def __init__(self, robot: Robot, terms: Sequence[str] = (), *, motor_side: bool = False) -> None:
        """Compile the regressor, or load it from the cache; raises StateError for unknown terms.

        With ``motor_side``, efforts are motor efforts, behind the robot's transmission.
        """
        self.robot = robot
        self.transmission = transmission_matrix(robot) if motor_side else None
        self.dynamics = Dynamics(robot, order=0)
        self.base: BaseParameters = base_parameters(robot, dynamics=self.dynamics)
        self.terms = check_terms(terms)
        self.inertial = len(self.base)
        self.names = (*self.base.words, *(f"{term} {joint}" for term in self.terms for joint in robot.joint_names))

    def __call__(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, **others: Any) -> Array:
        """Regressor (n, P), or (N, n, P) of a batch, at q, qd, qdd, each (n,) or (N, n).

        ``others`` are other arguments of the terms, see :class:`Motion`. Raises StateError for wrong arguments.
        """
        Y = self.inertial_columns(q, qd, qdd)
        positions, rates, accelerations = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
        springs = [joint.parallel_spring for joint in self.robot.independent_joints]
        if self.transmission is not None:
            rates, accelerations = (x @ np.linalg.inv(self.transmission).T for x in (rates, accelerations))
            others |= {"coupled": coupled(self.transmission)}
        bases = self.bases(Motion(rates, accelerations, q=positions, springs=springs, **others))
        # Column j of each term is felt by joint j alone.
        return np.concatenate([Y, *(basis[..., np.newaxis] * np.eye(self.robot.n) for basis in bases)], axis=-1)

    def inertial_columns(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Columns of the base parameters alone, (n, inertial) or (N, n, inertial)."""
        Y = self.dynamics.regressor(q, qd, qdd)[..., self.base.independent]
        return Y if self.transmission is None else self.transmission.T @ Y

    def inertial_efforts(self, q: Array, qd: Array, qdd: Array, x: Array) -> Array:
        """Efforts (N, n) due to the inertial part of x (P,)."""
        # Zeros cost less than a copy of the columns that count.
        pi = np.zeros(len(self.dynamics.inertial_parameters))
        pi[self.base.independent] = x[: self.inertial]
        Y = self.dynamics.regressor(q, qd, qdd)
        # One matrix-vector product for all samples.
        return self.at_motors((Y.reshape(-1, len(pi)) @ pi).reshape(Y.shape[:-1]))

    def at_motors(self, efforts: Array) -> Array:
        """Efforts (N, n) at the motors, from efforts of the joints: T' tau behind a transmission."""
        return efforts if self.transmission is None else efforts @ self.transmission

    def bases(self, motion: Motion) -> list[Array]:
        """Bases of the terms, each (n,) or (N, n)."""
        return [TERMS[term].basis(motion) for term in self.terms]

    def column(self, term: str, joint: int) -> int:
        """Index of the column of a term of a joint."""
        return self.inertial + self.terms.index(term) * self.robot.n + joint

    @property
    def parameters_of_file(self) -> Array:
        """Base parameters beta (inertial,) of the robot as described."""
        return self.base(self.dynamics.inertial_parameters)
