// SPDX-License-Identifier: Apache-2.0
// Brake of the joints from any state, and the share of limits that it would take now.
#ifndef EOM_JOINT_BRAKE_HPP
#define EOM_JOINT_BRAKE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "governed_motion.hpp"

namespace eom {

/// Motion of the joints to rest, by the limits of the table.
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

    /// Begins from a setpoint, that of the last command, to come to rest in `stop_duration`, or as limits and ranges allow. Jerk and
    /// snap of a stream may be noise. Returns the largest share of a limit that it takes, infinite where motors cannot realise it.
    ///
    /// A stop beyond limits is made longer. One that motors cannot realise leaves out jerk and snap, whose averages last on.
    double begin(const Setpoint<Robot> &from) noexcept
    {
        const double wanted = commander_.parameters.stop_duration;
        State<Base::n> state = state_of(from);
        if (commander_.leader() == Leader::setpoints)
            quiet(state, wanted);
        Plan best{state, wanted};
        double least = plan(best);
        if (fits(least) || commander_.parameters.limits == LimitPolicy::ignore)
            return least;
        for (const bool even : {false, true}) {
            if (even && std::isfinite(least))
                break;
            if (even)
                state[3] = state[4] = {};
            for (double time = std::max(wanted, SHORTEST) * (even ? 1 : 2); time < LONGEST; time *= 2) {
                const Plan longer{state, time};
                const double share = plan(longer, true);
                if (fits(share))
                    return share;
                if (share < least)
                    least = share, best = longer;
            }
        }
        return plan(best);
    }

  private:
    using Base = GovernedMotion<Robot>;
    using Base::commander_;
    using Base::governor_;
    using Base::motion_;

    /// Durations of longer stops, s.
    static constexpr double SHORTEST = 0.05, LONGEST = 3;

    /// State at the begin of a stop, and its duration, s.
    struct Plan {
        State<Base::n> from;
        double duration;
    };

    static bool fits(double share) noexcept { return share <= 1 + LIMIT_TOLERANCE; }

    /// Makes a plan the stop; returns its share of a limit.
    double plan(const Plan &x, bool as_planned = false) noexcept
    {
        Base::begin(x.from, commander_.latest, true);
        return Base::brake(x.duration, STOP_HASTE, as_planned);
    }
};

/// Largest share of a limit that a stop by the joints would take after the last command, looked at every 0.1 s and where the arm comes
/// to rest.
template <class Robot>
class WayOut {
  public:
    explicit WayOut(const Commander<Robot> &commander) : commander_(commander), brake_(commander) {}

    /// 0.4 where it needs 40 % of a limit; and the largest one since the restart of the loop.
    double share() const noexcept { return share_; }
    double largest() const noexcept { return largest_; }
    /// Records the share of a stop that begins.
    void note(double share) noexcept
    {
        share_ = share;
        largest_ = std::max(largest_, share);
    }
    void restart() noexcept
    {
        share_ = largest_ = 0;
        left_ = 0;
    }

    /// After a cycle with a command, that takes a time, ns.
    void look(std::int64_t step) noexcept
    {
        const bool rested = std::exchange(rests_, rests(commander_.output.setpoint));
        if ((left_ -= step) > 0 && (rested || !rests_))
            return;
        left_ = EVERY;
        note(brake_.begin(commander_.output.setpoint));
    }

  private:
    static constexpr std::int64_t EVERY = 100'000'000;

    const Commander<Robot> &commander_;
    JointBrake<Robot> brake_;
    double share_ = 0, largest_ = 0;
    std::int64_t left_ = 0;
    bool rests_ = false;
};

} // namespace eom

#endif
