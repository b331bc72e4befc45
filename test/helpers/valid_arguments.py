# SPDX-License-Identifier: Apache-2.0
"""Small robots and valid arguments, for tests of what is refused."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from linkages import four_bar, four_bar_angles
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics import ElasticArm, equations
from eom_dynamics.contacts import ContactDynamics, PointContact, SurfaceContact
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.robot import Inertial
from eom_dynamics.simulation import ElasticPlant

Call = Callable[..., Any]

INF, NAN = float("inf"), float("nan")
Q, Z, W, POSE, NU, SHORT = np.array([0.3, -0.5]), np.zeros(2), np.arange(6.0), np.eye(4), np.zeros(8), np.zeros(3)
ROBOT, RAGGED = eom.load_robot("planar_2r"), [[1.0, 2.0], [3.0]]
REFUSED = (EomDynamicsError, TypeError, ValueError)


@cache
def dynamics(backend: str | None = None) -> eom.Dynamics:
    return eom.Dynamics(ROBOT, backend=backend)


@cache
def floating(backend: str | None = None) -> eom.FloatingBase:
    return eom.FloatingBase(ROBOT, backend=backend)


@cache
def kinematics() -> eom.Kinematics:
    return eom.Kinematics(ROBOT)


@cache
def arm(*kinds: str, model: str = "reduced") -> ElasticArm:
    springs = [EVERY_KIND[kind] for kind in kinds or ("linear",)]
    return ElasticArm(with_springs(ROBOT, *springs), rotor_model=model)


@cache
def rigid() -> ElasticPlant:
    return ElasticPlant(ElasticArm(ROBOT, stiffness=INF, rotor_inertia=0.0))


@cache
def touching() -> ContactDynamics:
    tip, sole = PointContact("tip", "joint_2", 0.5), SurfaceContact("sole", "joint_2", 0.5, SQUARE)
    return ContactDynamics(dynamics(), [tip, sole])


SQUARE = np.array([[0.1, 0.1], [-0.1, 0.1], [-0.1, -0.1], [0.1, -0.1]])
MOTION = np.array([[0.3, -0.5], [1.0, 0.5], [0.1, 0.2], [0.3, 0.1], [0.2, 0.5]])
NAMES = "q", "qd", "qdd", "qddd", "qdddd"
MOVED = dict(zip(NAMES, MOTION, strict=True))
STATES = {name: MOVED[name] for name in NAMES[:3]}
AT_REST = eom.FlatState(*np.zeros((6, 2)))
LOOPED, CLOSED = four_bar(), four_bar_angles(0.7)
BODY = equations.RigidBody(Inertial.about_center(2.0, SHORT, np.eye(3)))
T = np.linspace(0.0, 2.0, 401)
TURNING = 0.1 * np.sin(5 * T)
WAYPOINTS = np.array([[0.0, 0.0], [0.5, 0.2], [0.4, 0.9]])
POSES = np.array([eom.lie.pose(np.eye(3), [x, 1.0, 0.1 * x * x]) for x in (0.9, 1.0, 1.1)])
REACHED = eom.Kinematics(ROBOT).pose(Q)
GAINS = np.array([1.6e5, 3.2e4, 2400.0, 80.0])
START = np.zeros(8)
