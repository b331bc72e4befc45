// SPDX-License-Identifier: Apache-2.0
// Deflections of damped springs and presliding friction along a stream of setpoints.
#ifndef EOM_DEFLECTION_FILTER_HPP
#define EOM_DEFLECTION_FILTER_HPP

#include <cstdint>

#include "setpoint.hpp"

namespace eom {

/// Filters D deltad + K delta = tau from effort to deflection, driven by the stamps of setpoints.
///
/// A step goes from the last committed setpoint to the next, with a quintic effort between them. The filter restarts without a
/// stamp, or if the stamp goes back or jumps ahead by more than LONGEST_GAP: the deflection is then the steady-state deflection,
/// and the friction state follows from the velocity.
template <class Robot>
class DeflectionFilter {
  public:
    explicit DeflectionFilter(const Robot &robot) noexcept : robot_(robot) {}

    /// Restart without a transient.
    void forget() noexcept { stamp_ = 0; }

    /// Compute the deflections at `stamp`, ns, for efforts with two derivatives.
    void at(std::int64_t stamp, const Command<Robot> &efforts, JointVector<Robot> &deflection) const noexcept
    {
        robot_.filtered(deflection_, last_, efforts, step_to(stamp), deflection);
    }

    /// Compute the friction states at `stamp`, ns, from the motion of a command; its efforts are not read.
    void slide(std::int64_t stamp, const Command<Robot> &motion, MotorVector<Robot> &friction_state) const noexcept
    {
        robot_.presliding(friction_state_, last_, motion, step_to(stamp), friction_state);
    }

    /// Commit the setpoint with `stamp`, the start of the next step.
    void keep(std::int64_t stamp, const Command<Robot> &command, const Setpoint<Robot> &states) noexcept
    {
        stamp_ = stamp;
        last_ = command;
        deflection_ = states.deflection;
        friction_state_ = states.friction_state;
    }

    /// Skip `time` ns without a transient.
    void skip(std::int64_t time) noexcept { stamp_ += stamp_ != 0 ? time : 0; }

  private:
    using Scalar = typename Robot::Scalar;

    /// Time since the last setpoint, s; negative to restart.
    std::array<Scalar, 1> step_to(std::int64_t stamp) const noexcept
    {
        const std::int64_t step = stamp - stamp_;
        const bool continues = stamp != 0 && stamp_ != 0 && step >= 0 && step <= LONGEST_GAP;
        return {static_cast<Scalar>(continues ? seconds(step) : -1)};
    }

    Robot robot_;
    std::int64_t stamp_ = 0;
    Command<Robot> last_;
    JointVector<Robot> deflection_{};
    MotorVector<Robot> friction_state_{};
};

} // namespace eom

#endif
