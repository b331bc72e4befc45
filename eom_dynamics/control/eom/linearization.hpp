// SPDX-License-Identifier: Apache-2.0
// Feedback linearization of an elastic-joint arm from measured motors and links.
#ifndef EOM_LINEARIZATION_HPP
#define EOM_LINEARIZATION_HPP

#include "setpoint.hpp"

namespace eom {

/// Measured motion and efforts of links and motors, on the link side of the gears.
template <class Robot>
struct Measurement {
    JointVector<Robot> q{}, qd{}, tau{};
    MotorVector<Robot> motor_position{}, motor_velocity{}, motor_effort{};
    /// Which of them are measured: motions, and efforts of joints and of motors.
    bool links = false, motors = false, torque = false, efforts = false;
};

/// Takes motors that are measured in the units of their drives into SI units.
template <class Robot>
void read_drives([[maybe_unused]] Measurement<Robot> &measured, [[maybe_unused]] const Robot &robot = Robot()) noexcept
{
    if constexpr (Robot::has_drives) {
        if (!robot.converts())
            return;
        const Measurement<Robot> given = measured;
        robot.drive_state({}, {}, given.motor_position, given.motor_velocity, given.motor_effort, {},
                          measured.motor_position, measured.motor_velocity, measured.motor_effort);
    }
}

/// Makes every joint a chain of four integrators: eom_dynamics.elastic.linearizing_effort.
///
/// The error e = q_ref - q obeys e'''' + g3 e''' + g2 e'' + g1 e' + g0 e = 0 where the model is exact: M. W. Spong,
/// "Modeling and control of elastic joint robots", J. Dyn. Sys. Meas. Control 109 (1987); with integrators before the
/// motors of rigid joints, A. De Luca and P. Lucibello, "A general algorithm for dynamic feedback linearization of
/// robots with elastic joints", IEEE Int. Conf. Robotics and Automation (1998). Damped springs have no such feedback.
template <class Robot>
class Linearization {
  public:
    using Scalar = typename Robot::Scalar;

    /// Whether the robot has it.
    static constexpr bool available = Robot::has_linearization;

    /// Gains of the errors of q, then of qd, qdd and qddd, joint by joint; and of k and kd at joints with two motors.
    std::array<Scalar, 4 * Robot::joints> gains{};
    std::array<Scalar, 2> stiffness_gains{};

    explicit Linearization(const Robot &robot = Robot()) noexcept : robot_(robot) {}

    /// All poles at -w, rad/s.
    void place_poles(Scalar w) noexcept
    {
        const std::size_t n = robot_.joint_count();
        for (std::size_t i = 0; i < n; ++i) {
            gains[i] = w * w * w * w;
            gains[n + i] = 4 * w * w * w;
            gains[2 * n + i] = 6 * w * w;
            gains[3 * n + i] = 4 * w;
        }
    }

    /// Starts the integrators of rigid joints at a motion.
    void restart(const Setpoint<Robot> &reference) noexcept
    {
        qdd_ = reference.qdd;
        qddd_ = reference.qddd;
    }

    /// The setpoint, in the measured state, whose feedforward is the motor effort; period in s, for the integrators.
    Setpoint<Robot> setpoint(const Setpoint<Robot> &reference, const Measurement<Robot> &measured,
                             Scalar period) noexcept
    {
        Setpoint<Robot> x = reference;
        if constexpr (available) {
            x.q = measured.q;
            x.qd = measured.qd;
            robot_.linearizing_setpoint(reference, measured, gains, stiffness_gains, qdd_, qddd_, x);
            for (std::size_t i = 0; i < Robot::joints; ++i) {
                qdd_[i] += period * (qddd_[i] + period / 2 * x.qdddd[i]);
                qddd_[i] += period * x.qdddd[i];
            }
            // A measurement that is not finite must not stay in the integrators.
            if (!finite(x.qdddd, qdd_, qddd_))
                restart(reference);
        }
        return x;
    }

  private:
    Robot robot_;
    JointVector<Robot> qdd_{}, qddd_{};
};

} // namespace eom

#endif
