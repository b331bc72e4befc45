// SPDX-License-Identifier: Apache-2.0
// Motion of a control loop by an online trajectory and its governor, in cycles of any length, and its stop.
#ifndef EOM_GOVERNED_MOTION_HPP
#define EOM_GOVERNED_MOTION_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "commander.hpp"
#include "governor.hpp"
#include "online_trajectory.hpp"
#include "setpoint.hpp"

namespace eom {

/// Motion to a target or to rest, by whole motion periods in cycles of any length. A stall of the loop delays it.
template <class Robot>
class GovernedMotion {
  public:
    static constexpr std::size_t n = Robot::joints;

    explicit GovernedMotion(const Commander<Robot> &commander) noexcept
        : commander_(commander), robot_(commander.robot), governor_(robot_)
    {
    }

    const Governor<Robot> &governor() const noexcept { return governor_; }
    const OnlineTrajectory &trajectory() const noexcept { return motion_; }

    /// Set the limits of each joint. Returns the error text, or null. Allocates.
    const char *configure(const std::vector<MotionLimits> &limits)
    {
        if (const char *reason = motion_.configure(limits))
            return reason;
        period_ = std::llround(motion_.joint(0).period() * 1e9);
        return nullptr;
    }

    /// Start from the commanded state `from` at `now`, ns. Its acceleration is kept even beyond limits; after a setpoint stream it
    /// is clamped unless `whole`.
    void begin(const State<n> &from, std::int64_t now, bool whole = false) noexcept
    {
        take_over(from, whole);
        since_period_ = since_command_ = 0;
        lead(now);
    }

    /// Resume at `now`, ns. The motion has advanced to this time during its stop.
    void lead(std::int64_t now) noexcept { time_ = now; }

    /// Stop in `duration` s, or longer if limits require it; a joint that would leave its range decelerates up to `haste` times as
    /// hard. Returns the largest utilization (`as_planned`: without backup stops), or infinity if motors cannot realize the stop.
    double brake(double duration, double haste = 1, bool as_planned = false) noexcept
    {
        governor_.weigh(motion_, commander_);
        motion_.stop(duration, haste);
        return governor_.share_of_stop(motion_, commander_, as_planned);
    }

    /// Invalidate the state for a stop, because another motion commands the arm.
    void forget() noexcept { time_ = NEVER; }
    bool can_brake() const noexcept { return time_ != NEVER; }

    /// Returns true if the last command belongs to this motion.
    bool commands() const noexcept { return time_ == commander_.latest; }
    bool rests() const noexcept { return motion_.arrived(); }
    double left() const noexcept { return motion_.left(); } ///< remaining time, s

    /// Returns the commanded state `later` ns after the last cycle, extrapolated from the last command.
    State<n> state_after(std::int64_t later) const noexcept
    {
        Setpoint<Robot> x = commander_.output.setpoint;
        const std::int64_t time = std::clamp<std::int64_t>(since_command_ + later, 0, LONGEST_RESPONSE_STEP);
        eom::advance(x, static_cast<Scalar>(seconds(time)));
        return state_of(x);
    }
    /// Returns the commanded state at `now`, ns, of an active motion.
    State<n> state_at(std::int64_t now) const noexcept { return state_after(now - time_); }

    /// Advance to `now`, ns.
    void go_on(std::int64_t now) noexcept
    {
        advance(std::clamp<std::int64_t>(now - time_, 0, LONGEST_RESPONSE_STEP));
        time_ = now;
    }

    /// Advance by `step` ns, in whole periods. The governor predicts with wrench, stiffness and payload of the last command.
    void advance(std::int64_t step) noexcept
    {
        time_ += step;
        since_period_ += step;
        since_command_ += step;
        governor_.begin_cycle(static_cast<std::size_t>(std::max<std::int64_t>((since_period_ + period_ - 1) / period_, 0)));
        for (; since_period_ > 0; since_period_ -= period_) {
            motion_.prepare();
            governor_.choose(motion_, commander_);
            motion_.step();
        }
    }

    /// Returns the setpoint of the next command, interpolated within the last period, because limits hold there.
    Setpoint<Robot> setpoint() noexcept
    {
        since_command_ = 0;
        Setpoint<Robot> x = robot_.rest();
        State<n> state{};
        for (std::size_t i = 0; i < motion_.size(); ++i) {
            const auto joint = motion_.joint(i).state(seconds(since_period_));
            for (std::size_t k = 0; k < state.size(); ++k)
                state[k][i] = joint[k];
        }
        eom::take(state, x);
        return x;
    }

  protected:
    using Scalar = typename Robot::Scalar;
    /// Relative excess of a stream's state over limits above which its jerk and snap are ignored.
    static constexpr double LARGEST_EXCESS = 1;
    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::min();

    void take_over(const State<n> &from, bool whole = false) noexcept
    {
        const bool streams = commander_.leader() == Leader::setpoints;
        whole = whole || !streams;
        governor_.restart();
        for (std::size_t i = 0; i < motion_.size(); ++i) {
            const double excess = motion_.joint(i).take_over({from[0][i], from[1][i], from[2][i], from[3][i], from[4][i]}, whole);
            if (streams && excess > LARGEST_EXCESS)
                motion_.joint(i).take_over({from[0][i], from[1][i], from[2][i], 0, 0}, whole);
        }
        motion_.leave();
    }

    const Commander<Robot> &commander_;
    const Robot &robot_;
    OnlineTrajectory motion_;
    Governor<Robot> governor_;
    // Motion period, ns.
    std::int64_t period_ = 0;
    // Time of the last cycle, and its distance from the end of the last period and from the last command, ns.
    std::int64_t time_ = NEVER, since_period_ = 0, since_command_ = 0;
};

} // namespace eom

#endif
