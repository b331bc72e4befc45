# SPDX-License-Identifier: Apache-2.0
"""Friction of motor and gear: viscous, Coulomb and Stribeck, smooth in the velocity, or with presliding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ..arrays import Array
from ..elementary import absolute, exp, select, tanh
from ..jet import Jet
from ..jet_functions import exponential, hyperbolic_tangent
from .parameters import Entry, not_negative, positive, refuse


@dataclass(frozen=True, eq=False)
class Friction:
    """D v + (c + (s - c) exp(-(v/v_s)²)) tanh(v/v_0), each parameter one number or (m,) for m motors.

    B. Armstrong-Hélouvry, P. Dupont, C. Canudas de Wit, "A survey of models … for machines with friction", Automatica
    30 (1994), with the sign of the velocity replaced by tanh(v/v_0), so that all derivatives exist. Above 3 v_0 the
    effort is within 0.5 % of the law with the sign. Below, a loaded joint creeps, whereas a real joint sticks.

    With a presliding distance x_p, a state z in [-1, 1] replaces the tanh if the previous motion is known, as in a
    stream of setpoints: the deflection of bristles, relative to its largest, of P. R. Dahl, "A solid friction model",
    Aerospace Corporation TOR-0158 (1968), dz/dtheta = (1 - z sign(thetad))/x_p. This is the model of C. Canudas de Wit,
    H. Olsson, K. J. Åström, P. Lischinsky, IEEE Trans. Autom. Control 40 (1995), without damping of the bristles. At
    rest z stays (stiction); after a reversal the effort changes its sign over some x_p. If only the velocity is
    known, z is tanh(v/v_0), as without x_p.

    D and c may differ by direction: their values at tanh(v/v_0), or z, = ±1 are D+ and D-, c+ and c-, linear between.

    Attributes:
        viscous: D, N m s/rad (N s/m), like all parameters on the link side of the gear; D+ where D- is given.
        coulomb: c, N m (N); c+ where c- is given.
        static: s >= c, breakaway effort, N m (N), in the direction of the larger c; the other direction rises as much.
            NaN stands for the larger c.
        stribeck_velocity: v_s > 0, rad/s (m/s): scale of the fall from s to c.
        smoothing_velocity: v_0 > 0, rad/s (m/s); docs/command_lead.md says which one when.
        viscous_negative, coulomb_negative: D- and c- of negative velocities; NaN stands for D+ and c+.
        presliding_distance: x_p > 0, rad (m); NaN for friction without a state.
    """

    viscous: Annotated[float | Array, Entry("viscous friction", "N m s/rad", "not negative", example=0.5)] = 0.0
    coulomb: Annotated[float | Array, Entry("dry friction", "N m", "not negative", example=0.5)] = 0.0
    static: Annotated[
        float | Array, Entry("breakaway effort; at least coulomb, its default", "N m", "not negative", example=0.6)
    ] = np.nan
    stribeck_velocity: Annotated[
        float | Array, Entry("velocity scale of the fall from static to coulomb", "rad/s", "positive")
    ] = 0.1
    smoothing_velocity: Annotated[float | Array, Entry("velocity scale of the change of sign", "rad/s", "positive")] = (
        0.01
    )
    viscous_negative: Annotated[
        float | Array, Entry("viscous friction at negative velocities", "N m s/rad", "not negative")
    ] = np.nan
    coulomb_negative: Annotated[float | Array, Entry("dry friction at negative velocities", "N m", "not negative")] = (
        np.nan
    )
    presliding_distance: Annotated[
        float | Array, Entry("deflection of bristles, for stiction", "rad", "positive", example=1e-4)
    ] = np.nan

    def __post_init__(self) -> None:
        """Check parameters; raises ParameterError for a negative parameter, or s below c."""
        if np.all(np.isnan(self.static)):
            larger = np.fmax(self.coulomb, self.coulomb_negative)
            object.__setattr__(self, "static", larger if larger.ndim else float(larger))
        for name in ("viscous", "coulomb", "static", "viscous_negative", "coulomb_negative"):
            not_negative(name, _or(getattr(self, name), 0.0))
        for name in ("stribeck_velocity", "smoothing_velocity"):
            positive(name, getattr(self, name))
        positive("presliding_distance", _or(self.presliding_distance, 1.0))
        for name in ("coulomb", "coulomb_negative"):
            coulomb = getattr(self, name)
            if np.any(np.less(self.static, coulomb)):
                refuse("static", f"must be at least {name}, {coulomb}, is {self.static}")

    @property
    def is_none(self) -> bool:
        """True if there is no friction at any velocity."""
        return not (np.any(self.viscous) or np.any(self.static) or np.any(_or(self.viscous_negative, 0.0)))

    @property
    def has_state(self) -> bool:
        """True if there is dry friction with a presliding distance."""
        return bool(np.any(self.static) and np.isfinite(self.presliding_distance).all())

    def advanced(self, state: Any, step: Any) -> Any:
        """State z after a step of the motor position, rad (m), without reversal, by Dahl's equation."""
        kept = exp(absolute(step) * (-1 / self.presliding_distance))
        return state * kept + select(step, 1.0 - kept, kept - 1.0)

    def sign(self, velocity: Any) -> Any:
        """tanh(v/v_0)."""
        return tanh(velocity * (1 / self.smoothing_velocity))

    def effort_jet(self, velocity: Jet, state: Any = None) -> Jet:
        """Friction effort, N m (N), with as many time derivatives as the velocity; without any under a state z.

        Without a state (None, or a number of more than 1.5), z is tanh(v/v_0).
        """
        viscous, skewed_viscous = _directions(self.viscous, self.viscous_negative)
        coulomb, skewed_coulomb = _directions(self.coulomb, self.coulomb_negative)
        effort = velocity * viscous
        if not (np.any(self.static) or np.any(skewed_viscous)):
            return effort
        sign = hyperbolic_tangent(velocity * (1 / self.smoothing_velocity))
        if state is not None:
            sign = Jet([select(state - 1.5, sign[0], state)])
        if np.any(skewed_viscous):
            effort = effort + velocity * sign * skewed_viscous
        dry: Jet | float | Array = sign * skewed_coulomb + coulomb if np.any(skewed_coulomb) else coulomb
        excess = self.static - np.maximum(self.coulomb, _or(self.coulomb_negative, self.coulomb))
        if np.any(excess):
            square = velocity * velocity
            dry = exponential(square * (-1 / np.square(self.stribeck_velocity))) * excess + dry
        return effort + sign * dry

    def effort(self, velocity: Array, state: Array | None = None) -> Array:
        """Effort at velocities (…,), or (…, m) for m motors; with the state of :meth:`effort_jet`."""
        return np.asarray(self.effort_jet(Jet([velocity]), state)[0])


def _or(value: float | Array, default: float | Array) -> Array:
    """Value, or the default for NaN."""
    return np.where(np.isnan(value), default, value)


def _directions(positive: float | Array, negative: float | Array) -> tuple[float | Array, float | Array]:
    """Mean of both directions, and half their difference."""
    other = _or(negative, positive)
    mean, half = 0.5 * (np.asarray(positive) + other), 0.5 * (np.asarray(positive) - other)
    return (float(mean), float(half)) if mean.ndim == 0 else (mean, half)


FRICTIONLESS = Friction()
"""No friction."""


# Largest second derivative of tanh.
_STEEPEST = 4 / 3**1.5
# Largest acceleration of a motor for the change of sign of joint friction, relative to the joint's limit.
_REVERSAL = 0.25
# rad/s (m/s): least smoothing velocity of joint friction.
_SLOWEST_REVERSAL = 0.01


def joint_friction(damping: float, dry: float, stiffness: float, acceleration: float) -> Friction:
    """Return joint friction D v + c tanh(v/v_0) with damping D, dry friction c and smoothing velocity v_0, rad/s (m/s).

    At a reversal with the acceleration limit A, the deflection c/K tanh(v/v_0) of a spring K changes its sign. The
    motor follows with an acceleration of at most 0.77 c/K (A/v_0)²: v_0 is such that this is at most A/4, and at least
    0.01.

    Args:
        damping: D, N m s/rad (N s/m).
        dry: c, N m (N).
        stiffness: K, N m/rad (N/m), infinite if rigid.
        acceleration: A, rad/s² (m/s²), infinite if unknown.
    """
    deflection = dry / stiffness if math.isfinite(acceleration) else 0.0
    width = math.sqrt(_STEEPEST * deflection * acceleration / _REVERSAL) if deflection > 0 else 0.0
    return Friction(damping, dry, dry, smoothing_velocity=max(_SLOWEST_REVERSAL, width))
