// SPDX-License-Identifier: Apache-2.0
// Deflections of springs with dampers along a stream of setpoints.
#ifndef EOM_DEFLECTION_FILTER_HPP
#define EOM_DEFLECTION_FILTER_HPP

#include <cstdint>

#include "setpoint.hpp"

namespace eom {

/// Filters D deltad + K delta = tau from effort to deflection, driven by the stamps of setpoints.
///
/// A step goes from the last answered setpoint to the next, with the effort between them a quintic in time. Without a
/// stamp, and where the stamp goes back or more than LONGEST_GAP ahead, the deflection is that without transient.
template <class Robot>
class DeflectionFilter {
  public:
    /// Starts again without transient.
    void forget() noexcept { stamp_ = 0; }

    /// Writes the deflections at a stamp, ns, under efforts with two time derivatives.
    void at(std::int64_t stamp, const Command<Robot> &efforts, JointVector<Robot> &deflection) const noexcept
    {
        const std::int64_t step = stamp - stamp_;
        const bool continues = stamp != 0 && stamp_ != 0 && step >= 0 && step <= LONGEST_GAP;
        // A negative step gives deflections without transient.
        const double seconds = continues ? static_cast<double>(step) * 1e-9 : -1;
        Robot::filtered(deflection_, efforts_, efforts, {static_cast<Scalar>(seconds)}, deflection);
    }

    /// Starts the next step here, where the setpoint of that stamp has been answered.
    void keep(std::int64_t stamp, const Command<Robot> &efforts, const JointVector<Robot> &deflection) noexcept
    {
        stamp_ = stamp;
        efforts_ = efforts;
        deflection_ = deflection;
    }

  private:
    using Scalar = typename Robot::Scalar;

    std::int64_t stamp_ = 0;
    Command<Robot> efforts_;
    JointVector<Robot> deflection_{};
};

} // namespace eom

#endif
