// SPDX-License-Identifier: Apache-2.0
// Stop of the present motion: on its path, by the target motion, or by the joints.
#ifndef EOM_STOP_HPP
#define EOM_STOP_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "commander.hpp"
#include "joint_brake.hpp"
#include "path_time.hpp"
#include "target_motion.hpp"
#include "trajectory_player.hpp"

namespace eom {

/// Motion to rest: on the path of a player, by the motion to targets, or by a joint stop from any state.
template <class Robot>
class Stop {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    explicit Stop(const Commander<Robot> &commander) : joint_brake_(commander) {}

    /// Trajectory of the joint stop; its limits decide if the arm can stop after a setpoint.
    const OnlineTrajectory &trajectory() const noexcept { return joint_brake_.trajectory(); }

    /// Start a joint stop from setpoint `from` of the last command, with its `stamp`, ns. `taken` is the elapsed time, ns, of the
    /// stop that it replaces. Returns the largest utilization of a limit.
    double brake_joints(const Setpoint<Robot> &from, std::int64_t stamp, std::int64_t taken) noexcept
    {
        rest(from, stamp - taken, taken);
        const double share = joint_brake_.begin(from);
        lead(joint_brake_);
        return share;
    }

    /// Time until wrench, stiffness and base motion rest in a joint stop, s.
    double company_time() const noexcept { return joint_brake_.company_time(); }

    /// Start a stop on the path of `player` from setpoint `from` at `now`, ns. Returns false without a path. The motion continues
    /// until advance_on_path() knows it.
    bool brake_on_path(TrajectoryPlayer<Robot> &player, const Setpoint<Robot> &from, std::int64_t now) noexcept
    {
        if (!player.begin_stop(time_))
            return false;
        rest(from, now);
        path_ = &player;
        begin_ = now;
        duration_ = std::numeric_limits<double>::infinity();
        return true;
    }

    /// Continue the stop on the path in a cycle of `period` s. Returns false if limits do not allow it.
    bool advance_on_path(double period) noexcept
    {
        constexpr std::int64_t UNKNOWN = std::numeric_limits<std::int64_t>::max();
        std::int64_t end = UNKNOWN;
        const bool allowed = !path_ || path_->advance_stop(time_, begin_ + ns_, period, end);
        if (end != UNKNOWN)
            duration_ = seconds(std::max<std::int64_t>(end - begin_, 0)); // 0 in a pause
        return allowed;
    }

    /// Stop the motion to targets within its own limits, from setpoint `from` at `now`, ns, in `duration` s, or longer if limits
    /// require it. Returns the largest utilization of a limit.
    double brake_motion(TargetMotion<Robot> &motion, const Setpoint<Robot> &from, std::int64_t now, double duration) noexcept
    {
        if (motion.leads())
            motion.go_on(now);
        rest(from, now);
        const double share = motion.brake(duration);
        lead(motion);
        return share;
    }

    bool on_path() const noexcept { return path_ != nullptr; }
    bool of(const TargetMotion<Robot> &motion) const noexcept { return motion_ == &motion; } ///< `motion` is stopping
    PathState path_state() const noexcept { return time_.at(begin_ + ns_); }

    /// Hold the position of `setpoint`, `taken` ns after the start of the stop.
    void rest(const Setpoint<Robot> &setpoint, std::int64_t stamp, std::int64_t taken = 0) noexcept
    {
        from_ = setpoint;
        from_.qd = from_.qdd = from_.qddd = from_.qdddd = {};
        stamp_ = stamp;
        duration_ = 0;
        path_ = nullptr;
        motion_ = nullptr;
        ns_ = taken;
    }

    /// Hold the position of `setpoint`, and continue the elapsed time.
    void stay(const Setpoint<Robot> &setpoint) noexcept { rest(setpoint, stamp_, ns_); }

    /// Advance by `step` ns; sums of integers do not depend on the steps.
    void advance(std::int64_t step) noexcept
    {
        ns_ += step;
        if (motion_)
            motion_->advance(step);
    }

    std::int64_t taken() const noexcept { return ns_; } ///< elapsed time, ns
    double end() const noexcept { return duration_; } ///< duration, s
    bool rests() const noexcept { return motion_ ? motion_->rests() : seconds(ns_) >= end(); }

    /// Stamp of the present setpoint, ns; never 0, which means no stamp.
    std::int64_t stamp() const noexcept { return stamp_ + ns_ != 0 ? stamp_ + ns_ : 1; }

    /// Returns the state `later` ns after the last cycle.
    State<n> state_after(std::int64_t later) const noexcept
    {
        return path_     ? path_->follow(time_, begin_ + ns_, seconds(later))
               : motion_ ? motion_->state_after(later)
                         : state_of(from_);
    }
    /// Returns the state on the path, `lead` s ahead.
    State<n> state_at_lead(double lead) const noexcept { return path_->follow(time_, begin_ + ns_, lead); }

    /// Returns the present setpoint without auxiliary inputs.
    Setpoint<Robot> setpoint() noexcept
    {
        if (motion_)
            return motion_->setpoint();
        Setpoint<Robot> x = from_;
        take(state_after(0), x);
        return x;
    }

  private:
    void lead(GovernedMotion<Robot> &motion) noexcept
    {
        motion_ = &motion;
        duration_ = motion.left();
    }

    JointBrake<Robot> joint_brake_;
    // Stopping motion, or player of the path; path time, start, ns, and duration of the stop, s.
    GovernedMotion<Robot> *motion_ = nullptr;
    TrajectoryPlayer<Robot> *path_ = nullptr;
    PathTime time_;
    std::int64_t begin_ = 0;
    double duration_ = 0;
    Setpoint<Robot> from_;
    // Stamp at the start of the stop, and elapsed time, ns.
    std::int64_t stamp_ = 0, ns_ = 0;
};

} // namespace eom

#endif
