// SPDX-License-Identifier: Apache-2.0
// References that another controller writes in each cycle, of which it may leave jerk and snap out.
#ifndef EOM_REFERENCES_HPP
#define EOM_REFERENCES_HPP

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <limits>

#include "setpoint.hpp"

namespace eom {

/// Jerk and snap where they are missing.
enum class MissingDerivatives {
    zero,
    fit, ///< the slope of the derivative before, since the last reference
};

/// Reads setpoints from numbers, of which NaN is one that was not written.
///
/// The numbers are rows of all joints: position to snap, then stiffness with two derivatives where it is commanded.
/// Stiffness that is missing is the nominal one, and its derivatives are zero.
template <class Robot>
class References {
  public:
    /// Most numbers.
    static constexpr std::size_t capacity = Robot::joints * (Robot::commanded_stiffness ? 8 : 5);

    using Missing = std::bitset<capacity>;

    explicit References(const Robot &robot = Robot()) noexcept
        : robot_(robot), last_(robot.rest()), next_(last_), setpoint_(last_)
    {
    }

    /// How many numbers there are.
    std::size_t size() const noexcept { return robot_.joint_count() * (robot_.commands_stiffness() ? 8 : 5); }

    MissingDerivatives missing_derivatives = MissingDerivatives::zero;
    /// Time by which the numbers are ahead, s: setpoint() is for so much earlier, by the Taylor polynomial.
    double lead = 0;

    /// Forgets what has been read.
    void restart() noexcept { count_ = next_count_ = 0; }

    /// Reads and clears the numbers of a time, ns; returns whether those are there that are required. Call keep() if the
    /// setpoint is followed.
    bool read(double *values, std::int64_t now) noexcept
    {
        const std::size_t n = robot_.joint_count(), count = size();
        Setpoint<Robot> &next = next_;
        next = robot_.rest();
        const std::array<JointVector<Robot> *, 8> rows = {&next.q,     &next.qd, &next.qdd, &next.qddd,
                                                          &next.qdddd, &next.k,  &next.kd,  &next.kdd};
        for (std::size_t k = 0; k < count; ++k) {
            missing_[k] = std::isnan(values[k]);
            if (!missing_[k])
                (*rows[k / n])[k % n] = values[k];
            values[k] = std::numeric_limits<double>::quiet_NaN();
        }
        // Position, velocity and acceleration must be there.
        for (std::size_t k = 0; k < 3 * n; ++k)
            if (missing_[k])
                return false;
        const std::int64_t gap = now - time_;
        next_count_ = gap > 0 && gap <= LONGEST_GAP ? std::min(count_ + 1, 3) : 1;
        if (missing_derivatives == MissingDerivatives::fit)
            fit(next, static_cast<double>(gap) * 1e-9);
        setpoint_ = next;
        advance(setpoint_, static_cast<typename Robot::Scalar>(-lead));
        next_time_ = now;
        return true;
    }

    /// Has the slopes of later references begin at the last one, unless that was refused.
    void keep() noexcept
    {
        last_ = next_;
        count_ = next_count_;
        time_ = next_time_;
    }

    const Setpoint<Robot> &setpoint() const noexcept { return setpoint_; }

    /// Which numbers were missing in the last call.
    const Missing &missing() const noexcept { return missing_; }

  private:
    void fit(Setpoint<Robot> &next, double gap) const noexcept
    {
        const std::size_t n = robot_.joint_count();
        for (std::size_t i = 0; i < n; ++i) {
            // One reference in a row less for each slope.
            int count = next_count_;
            if (missing_[3 * n + i] && count-- > 1)
                next.qddd[i] = (next.qdd[i] - last_.qdd[i]) / gap;
            if (missing_[4 * n + i] && count > 1)
                next.qdddd[i] = (next.qddd[i] - last_.qddd[i]) / gap;
        }
    }

    Robot robot_;
    // The last reference that was kept, the last one, and the same without its lead.
    Setpoint<Robot> last_, next_, setpoint_;
    Missing missing_;
    // References in a row, at most three, and their time, ns, of the one that was kept and of the last one.
    int count_ = 0, next_count_ = 0;
    std::int64_t time_ = 0, next_time_ = 0;
};

} // namespace eom

#endif
