// SPDX-License-Identifier: Apache-2.0
// Feedforward of an elastic-joint arm: from the motion of the links to the efforts and motion of the motors.
#ifndef EOM_FEEDFORWARD_HPP
#define EOM_FEEDFORWARD_HPP

#include "setpoint.hpp"

namespace eom {

/// Feedforward of a robot, which is one of the classes in eom/robots.
///
/// A call neither allocates nor locks nor throws, and gives the bits of the C function that it calls. An object may be
/// used by one thread at a time; any number of objects may be used at once.
///
///     eom::Feedforward<eom::robots::Iiwa> feedforward;
///     feedforward.setpoint.q[3] = 0.5;
///     const auto &command = feedforward.update();
///     drive.send(command.motor_effort);
template <class Robot>
class Feedforward {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t joints = Robot::joints, motors = Robot::motors, tools = Robot::tools;

    /// At rest at q = 0, with nominal stiffness, until it is written.
    Setpoint<Robot> setpoint;
    /// Of the last call.
    Command<Robot> command;

    /// The command for the setpoint.
    const Command<Robot> &update() noexcept
    {
        Robot::feedforward(setpoint, command);
        return command;
    }

    /// What is sent for the command: in the units of the drives, without efforts that the robot adds itself.
    DriveCommand<Robot> sent() const noexcept
    {
        DriveCommand<Robot> y{command.motor_position, command.motor_velocity, command.motor_effort, command.tau,
                              command.taud};
        if constexpr (Robot::has_drives)
            Robot::drive_command(setpoint, command, command.motor_effort, command.tau, {1, 0}, y);
        return y;
    }

    /// The command for a motion (joints,) each, with the rest of the setpoint as it is.
    const Command<Robot> &operator()(const JointVector<Robot> &q, const JointVector<Robot> &qd,
                                     const JointVector<Robot> &qdd, const JointVector<Robot> &qddd,
                                     const JointVector<Robot> &qdddd) noexcept
    {
        setpoint.q = q;
        setpoint.qd = qd;
        setpoint.qdd = qdd;
        setpoint.qddd = qddd;
        setpoint.qdddd = qdddd;
        return update();
    }

#if EOM_EIGEN
    using Vector = Eigen::Matrix<Scalar, static_cast<int>(joints), 1>;

    const Command<Robot> &operator()(const Vector &q, const Vector &qd, const Vector &qdd, const Vector &qddd,
                                     const Vector &qdddd) noexcept
    {
        map(setpoint.q) = q;
        map(setpoint.qd) = qd;
        map(setpoint.qdd) = qdd;
        map(setpoint.qddd) = qddd;
        map(setpoint.qdddd) = qdddd;
        return update();
    }
#endif
};

} // namespace eom

#endif
