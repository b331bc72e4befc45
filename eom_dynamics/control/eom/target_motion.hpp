// SPDX-License-Identifier: Apache-2.0
// Motion of a control loop to targets, and chained targets of another controller.
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

    /// Set the limits of each joint. Returns the error text, or null. Allocates.
    const char *configure(const std::vector<MotionLimits> &limits)
    {
        if (leads())
            return "limits of motion cannot change while a target leads";
        if (limits.size() != robot_.joint_count())
            return "limits of motion must have one entry for each joint";
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

    bool limited() const noexcept { return motion_.size() > 0; } ///< motion limits are set
    bool leads() const noexcept { return commander_.state_machine.is(Phase::aiming); } ///< a target is active
    bool arrived() const noexcept { return leads() && motion_.arrived(); } ///< at rest at the target

    /// Returns true if this motion can take over from `from`: each joint that was commanded within its range can stop within it,
    /// and within its velocity limit. If not, stop with another motion first.
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
            // The averages may reverse later than the follower, or prolong the motion.
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

    /// Set target `x` with its time 0 at `origin`, ns, at loop time `now`, ns. Pauses beyond LONGEST_RESPONSE_STEP are skipped; at
    /// rest, pauses beyond one period, so that the first command is one period into the motion.
    void take(const Target &x, std::int64_t origin, std::int64_t now) noexcept
    {
        const bool rests = motion_.arrived();
        const std::int64_t longest = rests ? std::min(Base::period_, LONGEST_RESPONSE_STEP) : LONGEST_RESPONSE_STEP;
        Base::time_ = std::max(Base::time_, now - longest);
        Base::governor_.aim(motion_.take(x, motion_.time() + seconds(origin - Base::time_ + Base::since_period_)), rests);
    }

    /// Shift all positions of each continuous joint by whole turns: nearest to the last target, or for a chunk, at time `at` s, to
    /// the last command.
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

    /// Returns the reason to refuse a target at `time` s after its time 0: no motion limits, no command, or a chunk that starts too
    /// far ahead or has ended.
    Refusal objection(const Target &x, double time) const noexcept
    {
        return !limited()                                         ? Refusal::unlimited
               : !commander_.output.valid                         ? Refusal::from_nothing
               : x.times.empty()                                  ? Refusal::none
               : x.times.front() - time > LONGEST_START_DELAY     ? Refusal::too_far_ahead
               : x.times.back() - time < -seconds(LATEST_CHUNK)   ? Refusal::ended
                                                                  : Refusal::none;
    }

    /// Returns the refusal of the position furthest beyond its range, if the loop refuses limit violations. Rounding of messages in
    /// single precision is accepted.
    Reason beyond_range(const Target &x) const noexcept
    {
        constexpr double SINGLE = 0x1p-24, ROUNDING = 1e-9;
        Reason found;
        const std::size_t size = motion_.size();
        for (std::size_t k = 0; k < x.positions.size() && commander_.parameters.limits == LimitPolicy::refuse; ++k) {
            const double position = x.positions[k], limit = motion_.joint(k % size).rest_of(position);
            const double beyond = std::fabs(position - limit); // NaN if the joint keeps its position
            if (beyond > ROUNDING + SINGLE * std::fabs(limit) && beyond > std::fabs(found.value - found.limit))
                found = {Refusal::beyond_range, Quantity::position, k % size, position, limit};
        }
        return found;
    }

    /// Returns true if all joints rest at the target.
    static bool ends(const Target &x) noexcept
    {
        for (std::size_t i = 0; i < x.velocities.size(); ++i)
            if (x.moves_on(i))
                return false;
        return true;
    }

    /// Returns the rest position at the end of a target.
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
    /// Stop at full acceleration if the target moves.
    void stay() noexcept
    {
        if (motion_.moves_on())
            motion_.stop();
    }

    // --- Chained targets, which the other controller repeats ----------------------------

    /// Update the chained target from position, velocity and acceleration of `given`. Returns true if it has changed, or if motion
    /// limits are missing. usable() is false for infinite values.
    bool changes(const Setpoint<Robot> &given) noexcept
    {
        usable_ = true;
        const bool position = note(given.q, pursued_.positions), velocity = note(given.qd, pursued_.velocities);
        return note(given.qdd, pursued_.accelerations) || !limited() || position || velocity;
    }

    bool usable() const noexcept { return usable_; }
    /// Returns a copy of the chained target, which turn() may shift.
    Target &pursued() noexcept
    {
        std::copy(pursued_.positions.begin(), pursued_.positions.end(), aimed_.positions.begin());
        std::copy(pursued_.velocities.begin(), pursued_.velocities.end(), aimed_.velocities.begin());
        std::copy(pursued_.accelerations.begin(), pursued_.accelerations.end(), aimed_.accelerations.begin());
        return aimed_;
    }

    /// Invalidate the chained target; the next target then counts as changed.
    void forget_pursued() noexcept
    {
        std::fill(pursued_.positions.begin(), pursued_.positions.end(), std::numeric_limits<double>::infinity());
    }

  private:
    using Scalar = typename Robot::Scalar;
    /// Tolerances: rounding of positions at their limits, rad or m; relative excess of velocity.
    static constexpr double BEYOND = 1e-6, FASTER = 0.05;
    /// Approximate maximum number of position checks within the averages.
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
    // Last chained target, and its copy.
    Target pursued_, aimed_;
};

} // namespace eom

#endif
