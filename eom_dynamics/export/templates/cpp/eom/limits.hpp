// SPDX-License-Identifier: Apache-2.0
// Check and clipping of commands by the limits of joints and motors.
#ifndef EOM_LIMITS_HPP
#define EOM_LIMITS_HPP

#include <algorithm>

#include "setpoint.hpp"

namespace eom {

/// What to do if a setpoint or its command exceeds limits, as the parameter limits of the node eom_dynamics.
enum class LimitPolicy { ignore, warn, refuse, clip };

namespace detail {

template <class Scalar, std::size_t n>
bool within(const std::array<Scalar, n> &values, const std::array<Scalar, n> &lower,
            const std::array<Scalar, n> &upper) noexcept
{
    bool inside = true;
    for (std::size_t i = 0; i < n; ++i)
        inside = inside && !(values[i] < lower[i] || values[i] > upper[i]);
    return inside;
}

} // namespace detail

/// The robot's limits; those of mimic joints are limits of the joints that they follow.
template <class Robot>
struct Limits {
    using Scalar = typename Robot::Scalar;

    /// Whether a setpoint and its command are within all limits.
    static bool meets(const Setpoint<Robot> &x, const Command<Robot> &y) noexcept
    {
        const auto &lower = Robot::lower;
        const auto &upper = Robot::upper;
        return detail::within(x.q, lower.q, upper.q) && detail::within(x.qd, lower.qd, upper.qd) &&
               detail::within(x.qdd, lower.qdd, upper.qdd) && detail::within(x.qddd, lower.qddd, upper.qddd) &&
               detail::within(y.tau, lower.tau, upper.tau) && detail::within(y.taud, lower.taud, upper.taud) &&
               detail::within(y.motor_velocity, lower.motor_velocity, upper.motor_velocity) &&
               detail::within(y.motor_effort, lower.motor_effort, upper.motor_effort) && voltages_meet(y);
    }

    /// The nearest joint efforts within their limits.
    static void clip_efforts(JointVector<Robot> &tau) noexcept
    {
        for (std::size_t i = 0; i < Robot::joints; ++i)
            tau[i] = std::clamp(tau[i], -Robot::largest_effort[i], Robot::largest_effort[i]);
    }

    /// The nearest motor efforts within the limits of torque, current and voltage at motor velocities, all link side.
    ///
    /// Where the back-EMF alone exceeds the voltage limit, the motor brakes within the limits of torque and current.
    static void clip_motors(const MotorVector<Robot> &velocity, MotorVector<Robot> &effort) noexcept
    {
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            const auto &motor = Robot::drives[i];
            const Scalar back_emf = motor.back_emf_constant * (motor.gear_ratio * velocity[i]);
            const Scalar per_volt = motor.torque_constant / motor.resistance;
            Scalar torque = effort[i] / motor.gear_ratio;
            torque = clamped(torque, (-motor.voltage_limit - back_emf) * per_volt,
                             (motor.voltage_limit - back_emf) * per_volt);
            effort[i] = motor.gear_ratio * clamped(torque, -motor.largest_torque, motor.largest_torque);
        }
    }

  private:
    // Ends that are NaN, for lack of the motor's constants, are none.
    static Scalar clamped(Scalar value, Scalar low, Scalar high) noexcept
    {
        if (value < low)
            value = low;
        return value > high ? high : value;
    }

    static bool voltages_meet(const Command<Robot> &y) noexcept
    {
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            const auto &motor = Robot::drives[i];
            const Scalar speed = motor.gear_ratio * y.motor_velocity[i], torque = y.motor_effort[i] / motor.gear_ratio;
            const Scalar voltage =
                motor.resistance * (torque / motor.torque_constant) + motor.back_emf_constant * speed;
            if (std::fabs(voltage) > motor.voltage_limit)
                return false;
        }
        return true;
    }
};

} // namespace eom

#endif
