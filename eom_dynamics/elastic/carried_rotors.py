# SPDX-License-Identifier: Apache-2.0
"""Complete rotor model: rotors carried by the links, with the coupling that the reduced model neglects.

The kinetic energy of rotor i, of inertia I about its spin axis a, on a link that turns by omega, with gear ratio N, is

    I/2 (a · omega + N thetad)² = I/2 (a · omega)² + I N thetad (a · omega) + B/2 thetad²,    B = N² I,

M. W. Spong's reduced model has the last term only. P. Tomei, "A simple PD controller for robots with elastic joints",
IEEE Trans. Automatic Control 36 (1991), writes all terms as M(q) + S B⁻¹ Sᵀ for the links and S(q) between links and
motors; see also A. De Luca and W. Book, "Robots with flexible elements", Springer Handbook of Robotics. Along a chain
with each motor on the link before its joint, S is strictly upper triangular.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from .. import lie, recursion
from ..arrays import EFFORT_NAMES, Array
from ..codegen.expressions import Scalar
from ..codegen.program import Program
from ..codegen.programs import PROGRAMS, WITH_PAYLOAD, carrying_jets
from ..codegen.recipe import Inputs, declared, levels
from ..dynamics import Dynamics
from ..recursion.links import axis_rotation
from ..robot.model import Joint, Robot, RotorMount
from ..spelling import unused_name
from .motor_side import MotorSide

_Z = np.array([0.0, 0.0, 1.0])


SPIN = "spin"
"""Name of the efforts that accelerate the rotors."""


class CarriedRotors:
    """Links and rotors of m motors as one system, motors on the link side of their gears.

    Attributes:
        mounts: (m,) carriers and spin axes of the rotors.
        inertia: (m,) rotor inertias before the gears, kg m².
        gear_ratio: gear ratios (m,).
        dynamics: dynamics of links and rotors, with joint variables q and rotor angles.
    """

    def __init__(self, robot: Robot, side: MotorSide) -> None:
        """Mount the rotors of the motors on the links."""
        joints = side.motor_joint.tolist()
        self.mounts: tuple[RotorMount, ...] = tuple(robot.independent_joints[joint].mount for joint in joints)
        self.gear_ratio = np.array(side.gear_ratio)[joints]
        self.inertia = np.array(side.rotor_inertia)[joints] / self.gear_ratio**2
        self.dynamics = Dynamics(rotor_robot(robot, side))
        self._n = robot.n
        self._scale = np.concatenate([np.ones(robot.n), self.gear_ratio])

    def mass_matrix(self, q: Array) -> Array:
        """Mass matrix of links and motors, [[M + S B⁻¹ Sᵀ, S], [Sᵀ, B]].

        Returns:
            (n + m, n + m), or (N, n + m, n + m) for q (N, n).
        """
        return self.dynamics.mass_matrix(self._angles(q)) * self._scale * self._scale[:, np.newaxis]

    def bias(self, q: Array, qd: Array, motor_velocity: Array) -> Array:
        """Efforts on links and motors at zero acceleration: centrifugal, Coriolis, gyroscopic, gravity.

        Args:
            q, qd: (n,) or (N, n).
            motor_velocity: (m,) or (N, m).

        Returns:
            (n + m,) or (N, n + m).
        """
        angles = self._angles(q)
        velocity = np.concatenate([qd, self.gear_ratio * motor_velocity], axis=-1)
        return self.dynamics.bias(angles, velocity) * self._scale

    def _angles(self, q: Array) -> Array:
        """q and rotor angles, which have no effect and are 0."""
        return np.concatenate([q, np.zeros((*q.shape[:-1], len(self.gear_ratio)))], axis=-1)


def links_with_rotors(robot: Robot, side: MotorSide, *, payload: bool = False) -> Program:
    """tau, taud and taudd of the links with locked rotors, and the efforts that accelerate these rotors.

    Inputs and first outputs are as in :meth:`Dynamics.inverse_dynamics`; ``spin`` (m,) is an input of
    :func:`.motor_programs.motors`. With payloads, their parameters and time derivatives are inputs, too.
    """
    inputs = PROGRAMS["inverse_dynamics" + payload * WITH_PAYLOAD].inputs
    compute = partial(_links_with_rotors, side)
    return declared("links_with_rotors" + payload * WITH_PAYLOAD, inputs, (*EFFORT_NAMES, SPIN), compute)(robot)


def _links_with_rotors(side: MotorSide, robot: Robot, x: Inputs) -> Sequence[Sequence[Scalar]]:
    ratio = [side.gear_ratio[joint] for joint in side.motor_joint]
    states: list[list[Scalar]] = []
    for level in levels(x, "q"):
        motors = side.motors_of([level[joint] for joint in side.motor_joint])
        # Rotor angles have no effect.
        turned = [factor * y for factor, y in zip(ratio, motors, strict=True)] if states else [0.0] * len(ratio)
        states.append([*level, *turned])
    tree = carrying_jets(recursion.link_tree(rotor_robot(robot, side)), levels(x, "P"))
    efforts = recursion.inverse_dynamics(tree, states, levels(x, "W"))
    spin = [factor * effort for factor, effort in zip(ratio, efforts[0][robot.n :], strict=True)]
    return [*(effort[: robot.n] for effort in efforts), spin]


def rotor_robot(robot: Robot, side: MotorSide) -> Robot:
    """Links and rotors as bodies of one robot, with q and the rotor angles, rad, as joint variables.

    A rotor has inertia about its spin axis only; its mass and transverse inertia belong to the link that carries it.
    The dynamics do not depend on the rotor angles.
    """
    taken = {joint.name for joint in robot.joints}
    bodies = []
    for name, joint in zip(side.motor_names, side.motor_joint, strict=True):
        mount, inertia = robot.independent_joints[joint].mount, side.rotor_inertia[joint] / side.gear_ratio[joint] ** 2
        screw, pose = np.array([*_Z, 0.0, 0.0, 0.0]), lie.pose(axis_rotation(mount.axis), np.zeros(3))
        body = 0.0, np.zeros(3), np.diag(inertia * _Z)
        bodies.append(Joint(unused_name(f"{name}_rotor", taken), screw, pose, mount.carrier, *body))
    return replace(robot, joints=(*robot.joints, *bodies), coupled_stiffness=None, transmission=None)
