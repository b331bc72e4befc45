// SPDX-License-Identifier: Apache-2.0
// Motion of a control loop to targets: online trajectory, governor, and the time of its cycles.
#ifndef EOM_TARGET_MOTION_HPP
#define EOM_TARGET_MOTION_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "commander.hpp"
#include "governor.hpp"
#include "online_trajectory.hpp"
#include "setpoint.hpp"
#include "stop.hpp"

namespace eom {

/// Motion to the latest target, or to rest, by whole periods of its own, in cycles of any length. After a stall it continues
/// later.
template <class Robot>
class TargetMotion {
  public:
    static constexpr std::size_t n = Robot::joints;

    explicit TargetMotion(const Commander<Robot> &commander) noexcept
        : commander_(commander), robot_(commander.robot), governor_(robot_)
    {
    }

    /// Takes limits of each joint; returns what is wrong with them, or null. Allocates.
    const char *configure(const std::vector<MotionLimits> &limits, bool synchronised)
    {
        if (leads())
            return "limits of motion cannot change while a target leads";
        if (limits.size() != robot_.joint_count())
            return "limits of motion must be those of all joints";
        pursued_.resize(limits.size());
        forget_pursued();
        aimed_ = pursued_;
        const State<n> from = brakes() ? state_of(setpoint()) : State<n>{};
        if (const char *reason = motion_.configure(limits, synchronised))
            return reason;
        period_ = std::llround(motion_.joint(0).period() * 1e9);
        if (brakes())
            take_over(from);
        return nullptr;
    }

    /// Whether there are limits, whether a target leads, and whether the arm rests there.
    bool limited() const noexcept { return motion_.size() > 0; }
    bool leads() const noexcept { return commander_.state_machine.is(Phase::aiming); }
    bool arrived() const noexcept { return leads() && motion_.arrived(); }
    const Governor<Robot> &governor() const noexcept { return governor_; }

    /// Whether joints that were commanded within their ranges come to rest there from a state that another motion has led to.
    bool has_room(const State<n> &from) noexcept
    {
        forget();
        take_over(from);
        for (std::size_t i = 0; i < motion_.size(); ++i) {
            const double lower = robot_.lower.q[i], upper = robot_.upper.q[i], last = commander_.output.setpoint.q[i];
            for (const double position : motion_.joint(i).brake_positions())
                if (last >= lower && last <= upper && !(position >= lower - BEYOND && position <= upper + BEYOND))
                    return false;
        }
        return true;
    }

    /// Begins at a state that is commanded at a time, ns; a target is to follow.
    void begin(const State<n> &from, std::int64_t now) noexcept
    {
        take_over(from);
        left_ = ahead_ = 0;
        lead(now);
    }

    /// Leads again at a time, ns, to which it has gone on on its way to rest; a target is to follow.
    void lead(std::int64_t now) noexcept { time_ = now; }

    /// Comes to rest from a time on, ns, without a target.
    void brake(std::int64_t now) noexcept
    {
        if (leads())
            go_on(now);
        motion_.stop();
    }

    /// Whether the last command is that of this motion, which may still lead, so that it can brake; whether it rests, and the time
    /// until then, s.
    bool commands(bool leads) const noexcept { return (leads && this->leads()) || time_ == commander_.latest; }
    bool rests() const noexcept { return motion_.arrived(); }
    double left() const noexcept { return motion_.left(); }

    /// Takes a target at a time, ns, whose time 0 is another one. A pause before is left out, as it is in going on; one at
    /// rest wholly, so that the first command is one period into the motion.
    void take(const Target &x, std::int64_t origin, std::int64_t now) noexcept
    {
        time_ = std::max(time_, now - (motion_.arrived() ? std::min(period_, LONGEST_RESPONSE_STEP) : LONGEST_RESPONSE_STEP));
        governor_.aim(motion_.take(x, motion_.time() + seconds(origin - time_ + left_)));
    }

    /// Moves the whole target of each continuous joint by whole turns, to be nearest to the target before, or at a time of a
    /// chunk, s, to the last command.
    void turn(Target &x, double at) const noexcept
    {
        const std::size_t size = motion_.size();
        const auto row = std::lower_bound(x.times.begin(), x.times.end(), at) - x.times.begin();
        const std::size_t knots = std::max<std::size_t>(x.times.size(), 1), k = std::min<std::size_t>(row, knots - 1);
        for (std::size_t i = 0; i < size; ++i) {
            const double last = commander_.output.setpoint.q[i];
            const double before = leads() && x.times.empty() ? motion_.joint(i).target() : last;
            const double turns = Limits<Robot>::turns(robot_, i, x.positions[k * size + i], before);
            for (std::size_t j = i; j < x.positions.size() && turns != 0; j += size)
                x.positions[j] += turns;
        }
    }

    /// Where the arm rests at the end of a target.
    JointVector<Robot> rest_of(const Target &x) const noexcept
    {
        JointVector<Robot> q{};
        const std::size_t size = motion_.size(), last = x.positions.size() - size;
        for (std::size_t i = 0; i < size; ++i) {
            const JointTrajectory &joint = motion_.joint(i);
            const double position = x.positions[last + i];
            const double stays = leads() ? joint.target() : static_cast<double>(commander_.output.setpoint.q[i]);
            q[i] = static_cast<Scalar>(joint.rest_of(std::isnan(position) ? stays : position));
        }
        return q;
    }
    /// Comes to rest, at full acceleration, if the target moves on.
    void stay() noexcept
    {
        if (motion_.moves_on())
            motion_.stop();
    }

    /// Another motion leads: it can brake no more.
    void forget() noexcept { time_ = NEVER; }

    /// What is commanded some time later, ns, by the last command.
    State<n> state_after(std::int64_t later) const noexcept
    {
        Setpoint<Robot> x = commander_.output.setpoint;
        const std::int64_t time = std::clamp<std::int64_t>(ahead_ + later, 0, LONGEST_RESPONSE_STEP);
        eom::advance(x, static_cast<Scalar>(seconds(time)));
        return state_of(x);
    }
    /// The same at a time, ns, while it leads.
    State<n> state_at(std::int64_t now) const noexcept { return state_after(now - time_); }

    /// Goes on to a time, ns.
    void go_on(std::int64_t now) noexcept
    {
        advance(std::clamp<std::int64_t>(now - time_, 0, LONGEST_RESPONSE_STEP));
        time_ = now;
    }

    /// Goes on by a time, ns: by whole periods. The governor predicts with wrench, stiffness and payload of the last command.
    void advance(std::int64_t step) noexcept
    {
        time_ += step;
        left_ += step;
        ahead_ += step;
        for (; left_ > 0; left_ -= period_) {
            motion_.prepare();
            governor_.choose(motion_, commander_, commander_.parameters.limits == LimitPolicy::ignore);
            motion_.step();
        }
    }

    /// The present setpoint, to be commanded: back from the end of the last period, within which limits hold.
    Setpoint<Robot> setpoint() noexcept
    {
        ahead_ = 0;
        Setpoint<Robot> x = robot_.rest();
        State<n> state{};
        for (std::size_t i = 0; i < motion_.size(); ++i) {
            const auto joint = motion_.joint(i).state(seconds(left_));
            for (std::size_t k = 0; k < state.size(); ++k)
                state[k][i] = joint[k];
        }
        eom::take(state, x);
        return x;
    }

    // --- Targets of a controller in front, which repeats them ---------------------------

    /// Notes position to acceleration of a setpoint as the target pursued; returns whether there is one that has changed.
    /// Whether none is infinite is usable().
    bool changes(const Setpoint<Robot> &given) noexcept
    {
        usable_ = true;
        const bool position = note(given.q, pursued_.positions), velocity = note(given.qd, pursued_.velocities);
        return note(given.qdd, pursued_.accelerations) || !limited() || position || velocity;
    }

    bool usable() const noexcept { return usable_; }
    /// A copy of it, which may be turned.
    Target &pursued() noexcept
    {
        std::copy(pursued_.positions.begin(), pursued_.positions.end(), aimed_.positions.begin());
        std::copy(pursued_.velocities.begin(), pursued_.velocities.end(), aimed_.velocities.begin());
        std::copy(pursued_.accelerations.begin(), pursued_.accelerations.end(), aimed_.accelerations.begin());
        return aimed_;
    }

    /// Has the next one count, whatever it is.
    void forget_pursued() noexcept
    {
        std::fill(pursued_.positions.begin(), pursued_.positions.end(), std::numeric_limits<double>::infinity());
    }

  private:
    using Scalar = typename Robot::Scalar;
    /// Excess over limits of a motion before, beyond which its jerk and snap are left out.
    static constexpr double LARGEST_EXCESS = 1;
    /// Distance beyond a limit of position that is rounding, rad or m.
    static constexpr double BEYOND = 1e-6;
    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::min();

    /// Whether it comes to rest, or has.
    bool brakes() const noexcept { return commander_.state_machine.braked() && time_ != NEVER; }

    void take_over(const State<n> &from) noexcept
    {
        governor_.restart();
        for (std::size_t i = 0; i < motion_.size(); ++i)
            if (motion_.joint(i).take_over({from[0][i], from[1][i], from[2][i], from[3][i], from[4][i]}) > LARGEST_EXCESS)
                motion_.joint(i).take_over({from[0][i], from[1][i], from[2][i], 0, 0});
        motion_.leave();
    }

    bool note(const JointVector<Robot> &given, std::vector<double> &target) noexcept
    {
        bool changed = false;
        for (std::size_t i = 0; i < target.size(); ++i) {
            const auto x = static_cast<double>(given[i]);
            usable_ = usable_ && !std::isinf(x);
            changed = changed || !(target[i] == x || (std::isnan(target[i]) && std::isnan(x)));
            target[i] = x;
        }
        return changed;
    }

    const Commander<Robot> &commander_;
    const Robot &robot_;
    OnlineTrajectory motion_;
    Governor<Robot> governor_;
    bool usable_ = true;
    // Target of a controller in front that was taken last.
    Target pursued_, aimed_;
    // Period of its own, ns.
    std::int64_t period_ = 0;
    // Time of the last cycle; that less the time of the motion, which is at the end of a period; and that of the last command
    // until then, ns.
    std::int64_t time_ = NEVER, left_ = 0, ahead_ = 0;
};

} // namespace eom

#endif
