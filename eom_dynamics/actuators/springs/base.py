# SPDX-License-Identifier: Apache-2.0
"""Interface of all springs between motors and links, and declaration of their parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar, get_type_hints

import numpy as np

from ...arrays import Array
from ...jet import Jet

Kind = TypeVar("Kind", bound="Spring")

SPRINGS: dict[str, type[Spring]] = {}
"""Springs of a single joint by their type in robot files."""


class Parameter(NamedTuple):
    """Declaration of a parameter of a spring, in the annotation of its field.

    Attributes:
        name: name in robot files and in errors.
        check: one of :mod:`eom_dynamics.actuators.checks`: ``positive``, ``not_negative`` or ``row``.
        scales: whether it is proportional to the effort at a given deflection.
    """

    name: str
    check: Callable[[str, Any], Array]
    scales: bool = False


class Deflections(NamedTuple):
    """Deflections of springs, each of the shape of motor vectors, see :class:`Spring`.

    Attributes:
        delta, deltad, deltadd: joint side of the motor minus link, rad or m, and time derivatives.
        tau: effort at the motor, N m or N.
    """

    delta: Array
    deltad: Array
    deltadd: Array
    tau: Array


class Spring(ABC):
    """Elasticity between the motor, or motors, and the link of a joint.

    A kind of spring is one file with one subclass, a dataclass whose annotated fields are its entries in robot files;
    those with a default are optional. The class keyword ``kind`` registers it under its type in robot files:

    .. code-block:: python

        @dataclass(frozen=True, eq=False)
        class LinearSpring(MemorylessSpring, kind="linear"):
            constant: Annotated[float | Array, Parameter("stiffness", positive, scales=True)]

    A spring whose parameters are numbers takes joint vectors of any shape; one of g springs (:meth:`stacked`) takes
    joint vectors (…, g). Motor vectors have the shape of joint vectors, with one more axis (…, 2) where two motors
    move a joint.

    Units: deflections rad (m at prismatic joints), efforts N m (N), stiffness N m/rad (N/m).
    """

    kind: ClassVar[str]
    """Its type in robot files."""

    motors: ClassVar[tuple[str, ...]] = ("",)
    """For each motor of a joint, what its name adds to that of the joint."""

    is_rigid: ClassVar[bool] = False
    """Whether it never deflects."""

    is_damped: ClassVar[bool] = False
    """Whether its deflection is a state, which does not follow from effort and stiffness alone."""

    is_variable: ClassVar[bool] = False
    """Whether its stiffness is commanded."""

    is_linear: ClassVar[bool] = False
    """Whether its :meth:`tangents` are the same at all deflections."""

    def __init_subclass__(cls, *, kind: str | None = None, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if kind is not None:
            cls.kind = kind
            SPRINGS[kind] = cls

    def __post_init__(self) -> None:
        """Check all parameters.

        Raises:
            ParameterError: a parameter has an impossible value.
        """
        for attribute, declared in self.parameters().items():
            object.__setattr__(self, attribute, declared.check(declared.name, getattr(self, attribute)))

    @classmethod
    @cache
    def parameters(cls) -> dict[str, Parameter]:
        """Declarations of its parameters by attribute."""
        annotations = get_type_hints(cls, include_extras=True)
        return {entry.name: annotations[entry.name].__metadata__[0] for entry in fields(cls)}  # type: ignore[arg-type]

    @classmethod
    def stacked(cls: type[Kind], springs: Sequence[Any]) -> Kind:
        """One spring of g springs of this kind, for joint vectors (…, g)."""
        return cls(*(np.stack([getattr(spring, attribute) for spring in springs]) for attribute in cls.parameters()))

    def scaled(self: Kind, factor: float) -> Kind:
        """The spring with ``factor`` times the effort at every deflection."""
        scaling = [attribute for attribute, declared in self.parameters().items() if declared.scales]
        return replace(self, **{attribute: factor * getattr(self, attribute) for attribute in scaling})  # type: ignore[type-var]

    @property
    @abstractmethod
    def rest_stiffness(self) -> float | Array:
        """Stiffness without load; nominal stiffness where it is commanded."""

    @abstractmethod
    def deflection_jet(self, tau: Jet, stiffness: Jet | None = None, state: Array | None = None) -> tuple[Jet, Jet]:
        """Deflections and efforts at the motors under an effort on the link, with as many time derivatives as it has.

        Args:
            tau: effort on the link.
            stiffness: commanded stiffness; by default nominal and constant.
            state: present deflection of a damped spring; by default :meth:`settled`.

        Raises:
            StiffnessError: the commanded stiffness is out of range.
        """

    def deflections(
        self, efforts: tuple[Array, Array, Array], stiffness: Sequence[Array] = (), state: Array | None = None
    ) -> Deflections:
        """:meth:`deflection_jet` for an effort with two time derivatives.

        Args:
            efforts: tau, taud, taudd.
            stiffness: k, kd, kdd; by default nominal and constant.
            state: as for :meth:`deflection_jet`.
        """
        delta, load = self.deflection_jet(Jet(efforts), Jet(stiffness) if len(stiffness) else None, state)
        return Deflections(delta[0], delta[1], delta[2], load[0])

    @abstractmethod
    def effort_jet(self, delta: Jet, stiffness: Jet | None = None) -> tuple[Jet, Jet | None]:
        """Effort on the link and, if it is commanded, stiffness, under deflections with time derivatives.

        The inverse of :meth:`deflection_jet`. The effort of a damped spring has one time derivative less.

        Args:
            delta: motor vectors.
            stiffness: commanded stiffness, where it does not follow from the deflections.
        """

    @abstractmethod
    def load(self, delta: Array, deltad: Array, stiffness: Array | None = None) -> Array:
        """Effort at the motors.

        Args:
            delta, deltad: deflections and their rates, motor vectors.
            stiffness: commanded stiffness; by default nominal.
        """

    @abstractmethod
    def tangents(self, delta: Array) -> tuple[Array | float, Array | float]:
        """Derivatives of :meth:`load` with respect to delta and to deltad, at nominal stiffness.

        Returns:
            Two motor vectors, or numbers for all motors; (g, g) each for g coupled joints.
        """

    @abstractmethod
    def energy(self, delta: Array) -> Array:
        """Stored energy, J, a joint vector, at nominal stiffness."""

    def power_loss(self, deltad: Array) -> Array | float:
        """Power that a damper turns to heat, W, a joint vector."""
        return 0.0

    def stretch(self, delta: Array) -> Array | float:
        """Elongation of tension-only springs, negative where slack; infinite for springs that push and pull."""
        return np.inf

    def settled(self, tau: Array, taud: Array, taudd: Array) -> Array:
        """Deflection without transient under an effort with these time derivatives and none above."""
        return self.deflections((tau, taud, taudd)).delta

    def advance(self, delta: Array, before: Sequence[Array], after: Sequence[Array], dt: float | Array) -> Array:
        """Deflection a time step later.

        Args:
            delta: deflection at the start.
            before, after: (tau, taud, taudd) at the start and at the end.
            dt: time step, s, > 0.
        """
        return self.settled(*after)
