// SPDX-License-Identifier: Apache-2.0
// Motion of a control loop to targets: what leads there, and targets of a controller in front.
#ifndef EOM_TARGET_MOTION_HPP
#define EOM_TARGET_MOTION_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "governed_motion.hpp"

namespace eom {

/// Motion to the latest target.
template <class Robot>
class TargetMotion : public GovernedMotion<Robot> {
  public:
    static constexpr std::size_t n = Robot::joints;
    using Base = GovernedMotion<Robot>;

    using Base::Base;

    /// Takes limits of each joint; returns what is wrong with them, or null. Allocates.
    const char *configure(const std::vector<MotionLimits> &limits)
    {
        if (leads())
            return "limits of motion cannot change while a target leads";
        if (limits.size() != robot_.joint_count())
            return "limits of motion must be those of all joints";
        pursued_.resize(limits.size());
        forget_pursued();
        aimed_ = pursued_;
        const bool brakes = commander_.state_machine.braked() && Base::time_ != Base::NEVER;
        const State<n> from = brakes ? state_of(Base::setpoint()) : State<n>{};
        if (const char *reason = Base::configure(limits))
            return reason;
        if (brakes)
            Base::take_over(from);
        return nullptr;
    }

    /// Whether there are limits, whether a target leads, and whether the arm rests there.
    bool limited() const noexcept { return motion_.size() > 0; }
    bool leads() const noexcept { return commander_.state_machine.is(Phase::aiming); }
    bool arrived() const noexcept { return leads() && motion_.arrived(); }

    /// Whether it can take over from a state that another motion has led to: joints that were commanded within their ranges come to
    /// rest there, no faster than they may be. If not, another motion than this one must bring them to rest.
    bool can_take_over(const State<n> &from) noexcept
    {
        Base::forget();
        Base::take_over(from);
        for (std::size_t i = 0; i < motion_.size(); ++i) {
            const double lower = robot_.lower.q[i], upper = robot_.upper.q[i], last = commander_.output.setpoint.q[i];
            const auto inside = [lower, upper](double position) { return position >= lower - BEYOND && position <= upper + BEYOND; };
            if (!(last >= lower && last <= upper))
                continue;
            const JointTrajectory &joint = motion_.joint(i);
            for (const double position : joint.brake_positions())
                if (!inside(position))
                    return false;
            // It may have turned already, which its average is still to do, or long averages may have it go on and on.
            const double fastest = std::max(std::min(robot_.upper.qd[i], 2 * joint.limit()), std::fabs(from[1][i])) * (1 + FASTER);
            if (joint.fastest() > fastest)
                return false;
            const long cycles = std::lround(2 * joint.delay() / joint.period()), stride = std::max(cycles / MOST_INSTANTS, 1L);
            for (long k = stride; k <= cycles && !joint.rests(); k += stride)
                if (const auto x = joint.predicted(k, JointTrajectory::Way::plan); !inside(x[0]) || std::fabs(x[1]) > fastest)
                    return false;
        }
        return true;
    }

    /// Takes a target at a time, ns, whose time 0 is another one. A pause before is left out, as it is in going on; one at
    /// rest wholly, so that the first command is one period into the motion.
    void take(const Target &x, std::int64_t origin, std::int64_t now) noexcept
    {
        const bool rests = motion_.arrived();
        const std::int64_t longest = rests ? std::min(Base::period_, LONGEST_RESPONSE_STEP) : LONGEST_RESPONSE_STEP;
        Base::time_ = std::max(Base::time_, now - longest);
        Base::governor_.aim(motion_.take(x, motion_.time() + seconds(origin - Base::time_ + Base::since_period_)), rests);
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

    /// Returns the reason why a target cannot be taken at a time, s, after its time 0: no limits of motion, no command, or a chunk
    /// that begins far ahead or has ended.
    Refusal objection(const Target &x, double time) const noexcept
    {
        return !limited()                                         ? Refusal::unlimited
               : !commander_.output.valid                         ? Refusal::from_nothing
               : x.times.empty()                                  ? Refusal::none
               : x.times.front() - time > LONGEST_START_DELAY     ? Refusal::too_far_ahead
               : x.times.back() - time < -seconds(LATEST_CHUNK)   ? Refusal::ended
                                                                  : Refusal::none;
    }

    /// Returns the refusal of the position of a target that is furthest beyond its range, if one is and limits are refused. Rounding of
    /// messages in single precision is accepted.
    Reason beyond_range(const Target &x) const noexcept
    {
        constexpr double SINGLE = 0x1p-24, ROUNDING = 1e-9;
        Reason found;
        const std::size_t size = motion_.size();
        for (std::size_t k = 0; k < x.positions.size() && commander_.parameters.limits == LimitPolicy::refuse; ++k) {
            const double position = x.positions[k], limit = motion_.joint(k % size).rest_of(position);
            const double beyond = std::fabs(position - limit); // NaN for a joint that stays
            if (beyond > ROUNDING + SINGLE * std::fabs(limit) && beyond > std::fabs(found.value - found.limit))
                found = {Refusal::beyond_range, Quantity::position, k % size, position, limit};
        }
        return found;
    }

    /// Whether all joints rest at a target.
    static bool ends(const Target &x) noexcept
    {
        for (std::size_t i = 0; i < x.velocities.size(); ++i)
            if (x.moves_on(i))
                return false;
        return true;
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
    /// Distance beyond a limit of position that is rounding, rad or m, and share of one of velocity that passes.
    static constexpr double BEYOND = 1e-6, FASTER = 0.05;
    /// Instants within the averages at which positions are looked at, at most about.
    static constexpr long MOST_INSTANTS = 100;

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

    using Base::commander_;
    using Base::motion_;
    using Base::robot_;

    bool usable_ = true;
    // Target of a controller in front that was taken last.
    Target pursued_, aimed_;
};

} // namespace eom

#endif
