// SPDX-License-Identifier: Apache-2.0
// Deflections of springs with dampers, and states of presliding friction, along a stream of setpoints.
#ifndef EOM_DEFLECTION_FILTER_HPP
#define EOM_DEFLECTION_FILTER_HPP

#include <cstdint>

#include "setpoint.hpp"

namespace eom {

/// Filters D deltad + K delta = tau from effort to deflection, driven by the stamps of setpoints.
///
/// A step goes from the last answered setpoint to the next, with the effort between them a quintic in time. Without a
/// stamp, and where the stamp goes back or more than LONGEST_GAP ahead, the deflection is that without transient, and the
/// state of friction that of the velocity.
template <class Robot>
class DeflectionFilter {
  public:
    explicit DeflectionFilter(const Robot &robot) noexcept : robot_(robot) {}

    /// Starts again without transient.
    void forget() noexcept { stamp_ = 0; }

    /// Writes the deflections at a stamp, ns, under efforts with two time derivatives.
    void at(std::int64_t stamp, const Command<Robot> &efforts, JointVector<Robot> &deflection) const noexcept
    {
        robot_.filtered(deflection_, last_, efforts, step_to(stamp), deflection);
    }

    /// Writes the states of friction at a stamp, ns, with the motion of a command, whose efforts are not read.
    void slide(std::int64_t stamp, const Command<Robot> &motion, MotorVector<Robot> &friction_state) const noexcept
    {
        robot_.presliding(friction_state_, last_, motion, step_to(stamp), friction_state);
    }

    /// Starts the next step here, where the setpoint of that stamp has been answered.
    void keep(std::int64_t stamp, const Command<Robot> &command, const Setpoint<Robot> &states) noexcept
    {
        stamp_ = stamp;
        last_ = command;
        deflection_ = states.deflection;
        friction_state_ = states.friction_state;
    }

    /// Leaves out time, ns.
    void skip(std::int64_t time) noexcept { stamp_ += stamp_ != 0 ? time : 0; }

  private:
    using Scalar = typename Robot::Scalar;

    /// Time since the last setpoint, s; negative where the filters start again.
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
