// SPDX-License-Identifier: Apache-2.0
// Joint stop from any state.
#ifndef EOM_JOINT_BRAKE_HPP
#define EOM_JOINT_BRAKE_HPP

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "governed_motion.hpp"

namespace eom {

/// Stop of the joints within the limits of the table.
template <class Robot>
class JointBrake : public GovernedMotion<Robot> {
  public:
    explicit JointBrake(const Commander<Robot> &commander) : Base(commander)
    {
        const RobotTable &table = commander.robot.table();
        std::vector<MotionLimits> limits(table.joints);
        static_assert(sizeof(MotionLimits) == 8 * sizeof(double));
        std::memcpy(limits.data(), table.stops.data(), table.joints * sizeof(MotionLimits));
        Base::configure(limits);
    }

    /// Start a stop from setpoint `from` of the last command, in `stop_duration`, or as limits and ranges allow. Returns the
    /// largest utilization of a limit, or infinity if motors cannot realize the stop.
    ///
    /// Jerk and snap of a stream are suppressed as noise. Beyond limits, other durations are tried: first for the auxiliary inputs,
    /// then longer for the joints. A stop that motors cannot realize ignores jerk and snap, because their averages persist.
    double begin(const Setpoint<Robot> &from) noexcept
    {
        best_ = {state_of(from), commander_.parameters.stop_duration, commander_.parameters.stop_duration};
        if (commander_.leader() == Leader::setpoints)
            quiet(best_.from, best_.duration);
        const bool limited = commander_.parameters.limits != LimitPolicy::ignore;
        double least = plan(from, best_);
        if (!fits(least) && limited && !search(from, least))
            least = plan(from, best_);
        governor_.shares().end_plan();
        return least;
    }

    /// Time until wrench, stiffness and base motion rest, s.
    double company_time() const noexcept { return best_.company; }

  private:
    using Base = GovernedMotion<Robot>;
    using Base::commander_;
    using Base::governor_;
    using Base::motion_;

    /// Minimum and maximum durations of the search, and its minimum for auxiliary inputs, s.
    static constexpr double SHORTEST = 0.05, LONGEST = 3, SHORTEST_COMPANY = 0.01;

    /// State at the start of a stop, its duration, and the duration for wrench, stiffness and base motion, s.
    struct Plan {
        State<Base::n> from;
        double duration, company;
    };

    static bool fits(double share) noexcept { return share <= 1 + LIMIT_TOLERANCE; }

    /// Start the stop of plan `x`. Returns its largest utilization of a limit.
    double plan(const Setpoint<Robot> &from, const Plan &x, bool as_planned = false) noexcept
    {
        governor_.shares().plan(from, x.company);
        Base::begin(x.from, commander_.latest, true);
        return Base::brake(x.duration, STOP_HASTE, as_planned);
    }

    /// Search for the plan with the smallest utilization, `least`. Returns true if it has started a stop within limits.
    bool search(const Setpoint<Robot> &from, double &least) noexcept
    {
        const Plan wanted = best_;
        const auto makes = [&](const Plan &x) {
            const double share = plan(from, x, true);
            if (share < least)
                least = share, best_ = x;
            return fits(least);
        };
        Plan x = wanted;
        const bool fades = governor_.shares().fades(commander_);
        for (x.company /= 2; fades && x.company >= SHORTEST_COMPANY; x.company /= 2)
            if (makes(x))
                return true;
        for (x.company = 2 * wanted.company; fades && x.company < LONGEST; x.company *= 2)
            if (makes(x))
                return true;
        x = best_;
        for (const bool even : {false, true}) {
            if (even && std::isfinite(least))
                break;
            if (even)
                x.from[3] = x.from[4] = {};
            for (x.duration = std::max(wanted.duration, SHORTEST) * (even ? 1 : 2); x.duration < LONGEST; x.duration *= 2)
                if (makes(x))
                    return true;
            for (x.duration = wanted.duration / 2; even && x.duration >= 2 * SHORTEST; x.duration /= 2)
                if (makes(x))
                    return true;
        }
        return false;
    }

    Plan best_{};
};

} // namespace eom

#endif
