# SPDX-License-Identifier: Apache-2.0
"""Small robots and valid arguments, for tests of what is refused."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from linkages import four_bar, four_bar_angles
from springs import EVERY_KIND, with_springs

import eom_dynamics as eom
from eom_dynamics import ElasticArm, equations, identification, trajectory
from eom_dynamics.contacts import (
    ContactDynamics,
    FrictionCone,
    PointContact,
    SurfaceContact,
    WrenchCone,
    axes_of_normal,
)
from eom_dynamics.elastic import base_motion, flat_state, linearizing_effort, motor_jet, motor_pd_effort
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.identification import ExcitationOptions, fit_motor, fit_resonance, fit_spring
from eom_dynamics.kinematics import newton_raphson, planar_2r_inverse
from eom_dynamics.robot import Inertial, solids
from eom_dynamics.simulation import ElasticPlant, SimulatedDrives, SimulatedRobot, Stepper, energy, simulate
from eom_dynamics.simulation.margins import motor_loop, outer_loop
from eom_dynamics.simulation.simulated_robot import SensorNoise
from eom_dynamics.trajectory import Fourier, Spline, fit_trajectory, rest_to_rest, shortest_duration, through
from eom_dynamics.trajectory.feedforward import trajectory_feedforward

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


def spread(**known: Any) -> dict[str, Any]:
    return known


HEAVY = replace(ROBOT, base=Inertial(4.0, SHORT, np.eye(3)))

# Function, its arguments in order, and its options; None of an option is its default.
CALLS: dict[str, tuple[Call, dict[str, Any], dict[str, Any]]] = {
    "Dynamics": (lambda **x: eom.Dynamics(ROBOT, **x), {}, spread(order=2, rotor_inertia=False, backend="numpy")),
    "effort": (dynamics().effort, STATES, spread(wrench=(W,))),
    "inverse_dynamics": (dynamics().inverse_dynamics, STATES, spread(wrench=(W, W))),
    "mass_matrix": (dynamics().mass_matrix, {"q": Q}, {}),
    "forward_dynamics": (
        dynamics().forward_dynamics,
        spread(q=Q, qd=Z, tau=Z),
        spread(wrench=(W,), added_inertia=np.ones(2)),
    ),
    "forward_dynamics_derivatives": (
        dynamics().forward_dynamics_derivatives,
        spread(q=Q, qd=Z, tau=Z),
        spread(wrench=(W,), added_inertia=np.ones(2)),
    ),
    "floating effort": (floating().effort, spread(pose=POSE, q=Q, nu=NU, nud=NU), spread(wrench=(W,))),
    "floating forward": (eom.FloatingBase(HEAVY).forward_dynamics, spread(pose=POSE, q=Q, nu=NU, tau=NU), {}),
    "floating motion": (floating().motion, spread(pose=POSE, q=Q, nu=NU), spread(frame="joint_2")),
    "floating jacobian": (floating().jacobian, spread(pose=POSE, q=Q, frame="joint_2", reference="space"), {}),
    "imu_efforts": (
        floating().imu_efforts,
        STATES,
        spread(angular_velocity=np.zeros((2, 3)), specific_force=np.ones((1, 3))),
    ),
    "jacobian": (kinematics().jacobian, spread(q=Q, frame="joint_2", reference="body"), spread(point=SHORT)),
    "motion": (kinematics().motion, spread(q=Q, qd=Z, qdd=Z), {}),
    "statics": (kinematics().statics, spread(q=Q, wrench=W), {}),
    "wrench": (kinematics().wrench, spread(q=Q, tau=Z), {}),
    "singular_directions": (kinematics().singular_directions, {"q": Q}, spread(tolerance=0.1)),
    "inverse_kinematics": (
        partial(eom.inverse_kinematics, kinematics()),
        spread(target=REACHED, frame="joint_2", start=Q),
        spread(
            weights=np.ones(6),
            objective="central",
            limits=False,
            tolerance=1e-6,
            iterations=9,
            attempts=3,
            iterates=False,
        ),
    ),
    "differential_inverse_kinematics": (
        partial(eom.differential_inverse_kinematics, kinematics()),
        spread(q=Q, twists=(W,)),
        spread(reference="body", null_motion=(Z,), weights=np.ones(2), task=np.ones(6), damping=0.1, length=1.0),
    ),
    "newton_raphson": (
        partial(newton_raphson, kinematics()),
        spread(target=REACHED, start=Z),
        spread(error="twist", step=1.0, damping=0.1, length=1.0, tolerance=1e-3, iterations=3),
    ),
    "planar_2r_inverse": (planar_2r_inverse, spread(lengths=np.ones(2), target=np.ones(2)), {}),
    "equations_of_motion": (partial(eom.equations_of_motion, ROBOT), STATES, spread(wrench=(W,), coriolis="skew")),
    "floating_equations_of_motion": (
        partial(eom.floating_equations_of_motion, ROBOT),
        spread(pose=POSE, q=Q, nu=NU),
        spread(coriolis="skew"),
    ),
    "spatial_equations_of_motion": (partial(equations.spatial_equations_of_motion, ROBOT), STATES, {}),
    "system_matrices": (partial(equations.system_matrices, ROBOT), STATES, spread(coriolis="paper")),
    "spatial_momentum": (partial(equations.spatial_momentum, ROBOT), STATES, spread(about="origin")),
    "floating_spatial_momentum": (
        partial(equations.floating_spatial_momentum, ROBOT),
        spread(pose=POSE, q=Q, nu=NU),
        spread(about="origin"),
    ),
    "system_form": (
        partial(equations.system_form, ROBOT),
        STATES,
        spread(base_twist=W, base_acceleration=W, wrench=(W,)),
    ),
    "coriolis_tensor": (partial(equations.coriolis_tensor, ROBOT), spread(q=Q, route="kernel"), {}),
    "mass_matrix_from_jacobians": (partial(equations.mass_matrix_from_jacobians, ROBOT), {"q": Q}, {}),
    "rigid body": (BODY.wrench, spread(V=W, Vd=W), {}),
    "newton_euler": (
        equations.newton_euler,
        spread(mass=1.0, inertia=np.eye(3), w=SHORT, wd=SHORT, acceleration=SHORT),
        {},
    ),
    "loop motion": (LOOPED.motion, spread(q=CLOSED, ud=np.ones(1)), {}),
    "loop close": (LOOPED.close, spread(u=CLOSED[:1], guess=CLOSED), {}),
    "ElasticArm": (
        partial(ElasticArm, ROBOT),
        {},
        spread(stiffness=np.full(2, 300.0), rotor_inertia=np.ones(2), rotor_model="reduced"),
    ),
    "feedforward": (
        arm("variable").feedforward,
        MOVED,
        spread(wrench=(W,), commanded_stiffness=(np.full(2, 400.0),), lead=1e-3),
    ),
    "feedforward on a base": (arm().feedforward, MOVED, spread(base=(np.zeros((4, 3)), np.ones((3, 3))))),
    "damped feedforward": (arm("damped").feedforward, MOVED, spread(deflection=np.zeros(2))),
    "deflections_over_time": (
        arm("damped").deflections_over_time,
        spread(t=T[:3], efforts=(np.zeros((3, 2)),) * 3),
        spread(start=Z),
    ),
    "friction_states": (arm().friction_states, spread(position=np.zeros((3, 2)), velocity=np.zeros((3, 2))), {}),
    "flat_state": (
        partial(flat_state, arm("rigid", "linear")),
        spread(motor_position=Z, motor_velocity=Z, q=Z, qd=Z),
        spread(rigid=(Z, Z), wrench=(W,)),
    ),
    "linearizing_effort": (
        lambda reference, gains, **x: linearizing_effort(arm(), AT_REST, reference, gains, **x),
        spread(reference=tuple(MOTION), gains=GAINS),
        spread(wrench=(W,)),
    ),
    "motor_jet": (partial(motor_jet, arm()), spread(motion=tuple(MOTION), order=0), {}),
    "motor_pd_effort": (
        lambda **x: motor_pd_effort(arm().feedforward(*MOTION), **x),
        {},
        spread(motor_position=Z, motor_velocity=Z, kp=np.ones(2), kd=np.ones(2)),
    ),
    "base_motion": (partial(base_motion, ROBOT), spread(pose=POSE, V0=W, V0d=W), {}),
    "observer": (partial(eom.ExternalEffortObserver, arm()), spread(bandwidth=30.0, sensors="torque"), {}),
    "simulate": (
        partial(simulate, rigid(), None),
        spread(t=np.array([0.0, 0.01]), start=START),
        spread(method="DOP853", relative_tolerance=1e-6, absolute_tolerance=1e-6),
    ),
    "energy": (partial(energy, rigid()), {"state": START}, {}),
    "Stepper": (partial(Stepper, rigid()), {"period": 1e-3}, spread(limited=True)),
    "SimulatedRobot": (partial(SimulatedRobot, rigid().arm), {}, spread(period=1e-3, position=Z, limited=True, seed=1)),
    "SimulatedDrives": (
        lambda **x: SimulatedRobot(rigid().arm, drives=SimulatedDrives(**x)),
        {},
        spread(natural_frequency=70.0, damping_ratio=1.0, kp=np.ones(2), kd=np.ones(2), drive_interpolation="none"),
    ),
    "SensorNoise": (
        lambda **x: SimulatedRobot(rigid().arm, noise=SensorNoise(**x)),
        {},
        spread(position=1e-3, velocity=1e-3, effort=np.ones(2)),
    ),
    "motor_loop": (partial(motor_loop, rigid()), spread(q=Q, natural_frequency=70.0), {}),
    "outer_loop": (partial(outer_loop, ElasticPlant(arm())), spread(q=Q, natural_frequency=70.0, delay=1e-3), {}),
    "margins": (lambda delay: motor_loop(rigid(), Q, 70.0).margins(delay), {"delay": 1e-3}, {}),
    "PointContact": (partial(PointContact, "tip", "joint_2"), spread(friction=0.5, pose=POSE), {}),
    "SurfaceContact": (partial(SurfaceContact, "tip", "joint_2"), spread(friction=0.5, corners=SQUARE), {}),
    "WrenchCone": (WrenchCone, spread(corners=SQUARE, friction=0.5), {}),
    "half_spaces": (FrictionCone(0.5).half_spaces, {"faces": 4}, {}),
    "axes_of_normal": (axes_of_normal, {"normal": np.ones(3)}, {}),
    "contact forward_dynamics": (
        touching().forward_dynamics,
        spread(q=Q, nu=Z, tau=Z),
        spread(acceleration=np.zeros(9)),
    ),
    "contact split": (touching().split, {"forces": np.zeros(9)}, {}),
    "through": (
        through,
        spread(t=np.arange(3.0), positions=WAYPOINTS),
        spread(velocities=0 * WAYPOINTS, accelerations=0 * WAYPOINTS, ends="rest"),
    ),
    "rest_to_rest": (rest_to_rest, spread(start=Z, end=Q, duration=1.0), {}),
    "shortest_duration": (
        shortest_duration,
        spread(start=Z, end=Q),
        spread(velocity=1.0, acceleration=1.0, jerk=np.ones(2)),
    ),
    "Spline": (Spline, spread(t=np.arange(2.0), states=np.zeros((5, 2, 1))), {}),
    "Fourier": (Fourier, spread(frequency=1.0, sine=np.eye(2), cosine=np.eye(2), offset=Z), {}),
    "fit_trajectory": (fit_trajectory, spread(t=T, positions=np.stack([TURNING] * 2, axis=1)), spread(cutoff=9.0)),
    "check": (
        lambda **x: trajectory.check(rigid().arm, rest_to_rest(Z, Q, 1.0), **x),
        {},
        spread(rate=100.0, wrench=(W,)),
    ),
    "trajectory_feedforward": (
        lambda **x: trajectory_feedforward(rigid().arm, rest_to_rest(Z, Q, 1.0), **x),
        {},
        spread(t=np.linspace(0.0, 1.0, 5), rate=1000.0),
    ),
    "minimum_time": (
        lambda path, **x: trajectory.minimum_time(rigid().arm, path, {"joint_1": {"velocity": 1.0}}, **x),
        {"path": WAYPOINTS},
        spread(tolerance=1e-3),
    ),
    "through_poses": (trajectory.through_poses, spread(t=np.arange(3.0), poses=POSES), spread(start=(W,))),
    "straight_lines": (trajectory.straight_lines, spread(poses=POSES, corner=0.01), {}),
    "fit_spring": (
        fit_spring,
        spread(deflection=TURNING, deflection_rate=np.gradient(TURNING), effort=400 * TURNING, law="linear"),
        {},
    ),
    "fit_motor": (
        lambda **x: fit_motor(t=T, **x),
        {},
        spread(theta=TURNING, tau=TURNING, effort=2 * TURNING, gear_ratio=1.0, cutoff=9.0),
    ),
    "fit_resonance": (fit_resonance, spread(t=T, theta=TURNING, effort=TURNING), spread(inertia=np.eye(1))),
    "excitation": (
        lambda **x: identification.Excitation(ROBOT, replace(EXCITATION, **x)),
        {},
        spread(period=4.0, harmonics=5, periods=1, clearance=0.1, share=0.8, noise=1.0, condition_weight=1.0),
    ),
    "identification": (lambda **x: identification.Options(**x), {}, spread(side="joint", cutoff=5.0, offset="arm")),
    "box": (solids.box, {"size": np.ones(3)}, spread(mass=1.0)),
    "sphere": (solids.sphere, {"radius": 1.0}, spread(density=1.0)),
    "hollow_cylinder": (
        solids.hollow_cylinder,
        spread(inner_radius=0.1, outer_radius=0.2, length=1.0),
        spread(mass=1.0),
    ),
    "Payload": (lambda **x: dynamics().effort(Q, Z, Z, payload=eom.Payload(**x)), {}, spread(mass=1.0)),
}
EXCITATION = ExcitationOptions(
    limits={name: {"lower": -1.5, "upper": 2.0, "velocity": 3.0} for name in ROBOT.joint_names}
)
