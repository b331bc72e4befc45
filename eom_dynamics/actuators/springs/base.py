# SPDX-License-Identifier: Apache-2.0
"""Base classes of springs between motors and links: of all springs, and of springs without memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array, Scalar
from ...elementary import root, select
from ...jet import Jet
from ...jet_functions import inverted
from ..parameters import Declared
from ..parameters import Parameter as Parameter

Jets: TypeAlias = Sequence[Jet]

SPRINGS: dict[str, type[Spring]] = {}
"""Springs of a single joint by their type in robot files."""


class EffortJets(NamedTuple):
    """Efforts of a spring with time derivatives, on links and at motors, and the commanded stiffness."""

    links: Sequence[Jet]
    motors: Sequence[Jet]
    stiffness: Jet | None = None


class Spring(Declared, ABC):
    """Spring between the motor (or motors) and the link of a joint, or between motors and links of coupled joints.

    Each kind of spring is a file with one subclass, a dataclass. Its annotated fields are its entries in robot files;
    fields with a default are optional. The class keyword ``kind`` registers it under its type in robot files:

    .. code-block:: python

        @dataclass(frozen=True, eq=False)
        class LinearSpring(MemorylessSpring, kind="linear"):
            constant: Annotated[float, Parameter("stiffness", positive, scales=True)]

    Its law is written once, over jets of scalars: NumPy arrays, compiled code, exported code, derivatives of any order
    and the inverse follow from it.

    Units: deflections rad (m at prismatic joints), efforts N m (N), stiffness N m/rad (N/m). A deflection is the
    position of a motor's joint side minus the link position.
    """

    motor_suffixes: ClassVar[tuple[str, ...]] = ("",)
    """Suffixes of motor names, added to the joint name, for each motor of a joint."""

    is_rigid: ClassVar[bool] = False
    """True for a spring without deflection."""

    is_damped: ClassVar[bool] = False
    """True if the deflection is a state, which does not follow from effort and stiffness only."""

    is_variable: ClassVar[bool] = False
    """True if the stiffness is commanded."""

    def __init_subclass__(cls, *, kind: str | None = None, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if kind is not None:
            cls.kind = kind
            SPRINGS[kind] = cls

    @classmethod
    def first_values(cls, stiffness: float, reach: float) -> dict[str, float]:
        """Initial values of the parameters, by attribute, for identification.

        Parameters proportional to the effort start with the stiffness, the slope of the line through the recorded
        deflections and efforts, N m/rad (N/m). Others start with the reach, the largest deflection, rad (m).
        """
        return {name: stiffness if declared.scales else reach for name, declared in cls.parameters().items()}

    @property
    @abstractmethod
    def rest_stiffness(self) -> float | Array:
        """Stiffness without load; nominal stiffness if it is commanded."""

    @abstractmethod
    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """Deflections and efforts at the motors under link efforts, with the same number of time derivatives.

        Args:
            tau: effort on the link of each joint of the spring.
            stiffness: commanded stiffness; by default nominal and constant. Results are NaN for a stiffness out of
                range.
            state: present deflection of a damped spring; by default :meth:`settled`.
        """

    @abstractmethod
    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """Efforts under deflections at the motors, with time derivatives: the inverse of :meth:`deflections`.

        Efforts of a damped spring have one time derivative less than the deflection. The stiffness is commanded if it
        does not follow from the deflections, and by default nominal.
        """

    @abstractmethod
    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """Stored energy at nominal stiffness, J."""

    def power_loss(self, deltad: Sequence[Scalar]) -> Scalar:
        """Power dissipated by a damper, W."""
        return 0.0

    def stretch(self, delta: Sequence[Scalar]) -> Sequence[Scalar]:
        """Elongation of tension-only springs, negative if slack; infinite for springs that push and pull."""
        return [np.inf] * len(delta)

    def settled(self, tau: Jet) -> Scalar:
        """Settled deflection of a damped spring, without transient; zero for other springs, which have no state."""
        return 0.0

    def advanced(self, delta: Scalar, before: Sequence[Scalar], after: Sequence[Scalar], dt: Scalar) -> Scalar:
        """Deflection of a damped spring after a time step dt > 0, s; zero for other springs.

        Arguments are the deflection and tau, taud, taudd at the start (``before``), and these efforts at the end
        (``after``).
        """
        return 0.0

    def stiffness_range(self, tau: Scalar) -> tuple[Scalar, Scalar]:
        """Range of stiffness commands under an effort."""
        return -np.inf, np.inf

    def commanded(self, tau: Jet, stiffness: Jet | None) -> Jet:
        """Commanded stiffness, NaN out of range; by default nominal and constant."""
        if stiffness is None:
            stiffness = Jet.constant(self.rest_stiffness, len(tau))
        low, high = self.stiffness_range(tau[0])
        k = stiffness[0]
        most = k if isinstance(high, float) and np.isposinf(high) else select(k - high, np.nan, k)
        return Jet([select(low - k, np.nan, most), *stiffness[1:]])

    def load(self, delta: ArrayLike, deltad: ArrayLike = 0.0) -> Array:
        """Efforts at the motors, for deflections and their rates (…,), or (…, 2) with two motors."""
        rates = np.broadcast_to(deltad, np.shape(delta))
        return self._at_motors(delta, [self._columns(x) for x in (delta, rates)], 0)

    def tangent(self, delta: ArrayLike) -> Array:
        """Derivative of each entry of :meth:`load` with respect to its deflection."""
        zero = np.zeros(np.shape(delta))
        return self._at_motors(delta, [self._columns(x) for x in (delta, zero + 1.0, zero)], 1)

    def energy(self, delta: ArrayLike) -> Array:
        """Stored energy, J, for deflections as in :meth:`load`."""
        columns = self._columns(delta)
        return np.zeros(np.shape(columns[0])) + self.stored_energy(columns)

    def _at_motors(self, delta: ArrayLike, rows: Sequence[list[Array]], order: int) -> Array:
        """Time derivative of the efforts at the motors, in the shape of the deflections."""
        efforts = [jet[order] for jet in self.efforts([Jet(column) for column in zip(*rows, strict=True)]).motors]
        return np.zeros(np.shape(delta)) + (efforts[0] if len(efforts) == 1 else np.stack(efforts, axis=-1))

    def _columns(self, delta: ArrayLike) -> list[Array]:
        """Deflections of each motor."""
        x = np.asarray(delta, dtype=float)
        return [x] if len(self.motor_suffixes) == 1 else [x[..., 0], x[..., 1]]


class EffortLaw(Declared, ABC):
    """Effort as a function of a deflection, with declared parameters."""

    @abstractmethod
    def law(self, delta: Jet) -> Jet:
        """Effort with time derivatives."""

    @abstractmethod
    def energy_law(self, delta: Scalar) -> Scalar:
        """Integral of the effort from 0."""


class MemorylessSpring(Spring, EffortLaw):
    """tau = f(delta) with f(0) = 0 and f' > 0.

    A kind defines f, its integral, and either the inverse or its bounds and an initial value.
    """

    def bounds(self, tau: Scalar) -> tuple[tuple[Scalar, Scalar], Scalar]:
        """Lower and upper bound of the deflection under an effort, and an initial value."""
        raise NotImplementedError(f"{type(self).__name__} has neither bounds nor an inverse of its own")

    def inverse_law(self, tau: Scalar) -> Scalar:
        """Deflection delta with f(delta) = tau, by root finding unless a kind overrides it."""
        ends, start = self.bounds(tau)
        return root(self.law, tau, ends, start)

    def inverse_jet(self, tau: Jet) -> Jet:
        """Deflection delta with f(delta) = tau, with time derivatives as the effort."""
        return inverted(self.law, self.inverse_law(tau[0]), tau)

    @property
    def rest_stiffness(self) -> float | Array:
        """f'(0)."""
        return float(self.law(Jet([0.0, 1.0]))[1])

    def deflections(self, tau: Jets, stiffness: Jet | None = None, state: Scalar | None = None) -> tuple[Jets, Jets]:
        """Deflection by the derivatives of the inverse function."""
        return [self.inverse_jet(tau[0])], tau

    def efforts(self, delta: Sequence[Jet], stiffness: Jet | None = None) -> EffortJets:
        """f(delta)."""
        effort = [self.law(delta[0])]
        return EffortJets(effort, effort)

    def stored_energy(self, delta: Sequence[Scalar]) -> Scalar:
        """Integral of f from 0."""
        return self.energy_law(delta[0])
