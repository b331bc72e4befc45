# SPDX-License-Identifier: Apache-2.0
"""List of vectors of programs, control loop and messages, with units. Without NumPy."""

from __future__ import annotations

JOINTS, MOTORS, TOOLS, PAYLOADS, AXES = "JointVector", "MotorVector", "WrenchVector", "PayloadVector", "AxisVector"
"""Owners of vectors, by C++ type."""

SHAFT_UNITS = {"speed": "rad/s", "torque": "N m", "current": "A", "voltage": "V"}
"""Units of motor shafts, before the gear."""


class Family:
    """Family of vectors: a vector and its time derivatives, or vectors of one kind.

    Attributes:
        names: names in programs, of their arguments in C, and in eom_loop_vector().
        about: meaning of the first vector, with its unit unless it is a joint unit; or of each vector without an order.
        unit: joint unit; the first vector is a rate of this quantity.
        order: order of this rate; -1 if the vectors are not derivatives.
        fields: fields of messages.
        of: owner of the vectors.
        part: part of the loop: setpoint, payload, base, command or sent.
    """

    def __init__(
        self, names: str, about: str, unit: str = "", order: int = 0, fields: str = "", of: str = "", part: str = ""
    ) -> None:
        self.names, self.fields = tuple(names.split()), tuple(fields.split())
        self.about, self.unit, self.order, self.of, self.part = about, unit, order, of, part


def _rates(name: str) -> str:
    return f"{name} {name}_rate {name}_acceleration"


_STATE, _MOTOR = "position velocity acceleration jerk snap", "motor_position motor_velocity motor_acceleration"
_ANGULAR = "angular_velocity angular_acceleration angular_jerk angular_snap"
_FORCE = "specific force at the origin of the base in its frame: acceleration less gravity"
_PAYLOAD = (
    "inertial parameters of the payload at each tool, in its frame: mass, first moment x y z, inertia about the "
    "origin xx xy xz yy yz zz; kg, kg m, kg m^2"
)
_STEP = "time of the step, s; zero keeps deflections; negative: steady-state deflections, and friction by velocity"
_SHARE = "of the efforts that the robot adds, and its time derivative: 1 and 0 but while efforts fade; 1, 1/s"
_JACOBIANS = "Jacobians of all tools in their frames, 6 x n each, row-major: angular velocity, velocity"
_DRIVE, _SENT = "drive_position drive_velocity drive_effort", "sent_effort sent_effort_rate"

FAMILIES = {
    family.names[0]: family
    for family in (
        Family("q qd qdd qddd qdddd", "joint variables", "rad", 0, _STATE, JOINTS, "setpoint"),
        Family("W Wd Wdd", "tool wrench", "N m and N", 0, _rates("wrench"), TOOLS, "setpoint"),
        Family("k kd kdd", "commanded stiffness", "N m/rad", 0, _rates("stiffness"), JOINTS, "setpoint"),
        Family("deflection", "present deflections of damped springs", "rad", of=JOINTS, part="setpoint"),
        Family("friction_state", "states of presliding friction, -1 to 1", of=MOTORS, part="setpoint"),
        Family("P Pd Pdd", _PAYLOAD, of=PAYLOADS, part="payload"),
        Family("w wd wdd wddd", "angular velocity of the base in its frame", "rad", 1, _ANGULAR, AXES, "base"),
        Family("f fd fdd", _FORCE, "m", 2, _rates("specific_force"), AXES, "base"),
        Family("tau taud taudd", "joint efforts", "N m", 0, _rates("effort"), JOINTS, "command"),
        Family(_MOTOR, "motor positions", "rad", 0, _MOTOR, MOTORS, "command"),
        Family("motor_effort", "motor efforts", "N m", 0, "motor_effort", MOTORS, "command"),
        Family(
            _DRIVE, "of the motors, in the units of their drives", "", -1, "position velocity effort", MOTORS, "sent"
        ),
        Family(_SENT, "joint efforts without efforts that the robot adds", "N m", of=JOINTS, part="sent"),
        *(Family(name, f"{name} of the motors before their gears, {unit}") for name, unit in SHAFT_UNITS.items()),
        Family("deflection_now", "deflections of damped springs after the step", "rad"),
        Family("tau_before taud_before taudd_before", "joint efforts at the start of the step", "N m"),
        Family("motor_position_before", "motor positions at the setpoint before", "rad"),
        Family("friction_state_now", "states of presliding friction after the step, -1 to 1"),
        Family("theta thetad", "motor positions", "rad"),
        Family("tau_m", "motor efforts", "N m"),
        Family("joint_friction", "efforts against the friction of joints that is part of their efforts", "N m"),
        Family("motor_friction", "efforts against the friction of motors without presliding", "N m"),
        Family("spin", "motor efforts that accelerate the rotors", "N m"),
        Family("clipped_effort", "motor efforts within the limits of torque, current and voltage", "N m"),
        Family("spring_effort spring_effort_rate", "efforts of the springs on the links", "N m"),
        Family("stiffness stiffness_rate", "commanded stiffness; for pairs, stiffness of the deflections", "N m/rad"),
        Family("beta", "joint efforts less rates of the momenta", "N m"),
        Family("on_links", "efforts of the springs on the links", "N m"),
        Family("load", "efforts of the springs at the motors", "N m"),
        Family("effort", "motor efforts without acceleration", "N m"),
        Family("delta deltad deltadd", "deflections at the motors", "rad"),
        Family("qdd_held qddd_held", "given accelerations, read at rigid joints", "rad", 2),
        Family("link_acceleration", "joint accelerations", "rad", 2),
        Family("rotor_acceleration", "motor accelerations", "rad", 2),
        Family("p", "momenta of the joint variables, N m s and N s"),
        Family("step", _STEP),
        Family("share", _SHARE),
        Family("tool_poses", "poses of all tools in the base frame, 4 x 4 each, row-major, m"),
        Family("tool_jacobians", _JACOBIANS),
    )
}
"""Families by the name of the first vector."""

VECTORS = {name: (family, k) for family in FAMILIES.values() for k, name in enumerate(family.names)}
"""Family of each vector by name, and its index in the family."""


def of_part(part: str) -> dict[str, str]:
    """Vectors of a part of the loop by name, and their owners."""
    return {name: x.of for x in FAMILIES.values() if x.part == part for name in x.names}
