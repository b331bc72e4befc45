# SPDX-License-Identifier: Apache-2.0
"""Comparison of feedforwards: robots with model errors, and motor references with and without springs.

A PD on the motors adds kp (theta_ref - theta) + kd (thetad_ref - thetad) to the feedforward effort:

| feedforward | theta_ref                | effort                                  |
|-------------|--------------------------|-----------------------------------------|
| rigid       | q                        | B qdd + tau                             |
| flatness    | q + spring deflection    | B thetadd + tau, which includes taudd   |

Both include friction and gear loss at the velocity of the reference. The motors of an antagonistic pair keep their
pretension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..elastic import Feedforward
from ..robot import Robot
from ..robot.inertia import Inertial
from .elastic_plant import ElasticPlant


def perturbed(robot: Robot, *, stiffness: float = 0.0, mass: float = 0.0) -> Robot:
    """Perturbed robot, with changed springs and bodies.

    Args:
        stiffness: relative change of all spring efforts at the same deflection: 0.1 is 10 % stiffer.
        mass: relative change of all masses and inertias, at the same centers of mass.
    """
    joints = tuple(
        replace(
            joint,
            mass=joint.mass * (1 + mass),
            inertia_about_origin=joint.inertia_about_origin * (1 + mass),
            spring=joint.spring.scaled(1 + stiffness),
        )
        for joint in robot.joints
    )
    coupled = robot.coupled_stiffness
    if coupled is not None:
        coupled = (coupled[0], coupled[1].scaled(1 + stiffness))
    base = Inertial(robot.base.mass * (1 + mass), robot.base.center_of_mass, robot.base.about_origin * (1 + mass))
    return replace(robot, joints=joints, coupled_stiffness=coupled, base=base)


def motor_references(
    known: ElasticPlant, states: Sequence[Array]
) -> tuple[Feedforward, Array, Array, Callable[[Array], Array]]:
    """Motor references by flatness and for a rigid arm, for states q … qdddd of the links, each (…, n).

    Returns the command by flatness; positions and velocities (…, m) of motors that follow the links; and a function. It
    maps motor velocities (…, m), for friction and gear loss, to efforts (…, m) that accelerate the motors with the
    links.
    """
    arm = known.arm
    q, qd, qdd = states[:3]
    command = arm.feedforward(*states)
    # The links require the spring efforts by flatness for any feedforward.
    delta, deltad = known.deflection(command.motor_position, q), known.deflection(command.motor_velocity, qd)
    load = np.where(known.rigid, command.tau[..., arm.motor_joint], known.springs.loads(delta, deltad))
    position, velocity, acceleration = (arm.motors_following(x) for x in (q, qd, qdd))
    inertial = arm.motor_inertia * acceleration

    def effort(speed: Array) -> Array:
        return inertial + known.motor_load(load, speed)

    return command, position + known.unloaded, velocity, effort
