// SPDX-License-Identifier: Apache-2.0
// Stop of the present motion: on its path, by the motion to targets, or by the joints.
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

/// A motion to rest: that of a player on its path, that of a motion to targets, or a brake of its own from any state.
template <class Robot>
class Stop {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    explicit Stop(const Commander<Robot> &commander) : joint_brake_(commander) {}

    /// Trajectory of the brake of the joints; its limits decide whether the arm can stop after a setpoint.
    const OnlineTrajectory &trajectory() const noexcept { return joint_brake_.trajectory(); }

    /// Begins a stop by the joints from a setpoint, that of the last command with a stamp, ns; returns its largest share of a limit. In
    /// place of another stop, its time goes on from what that has taken, ns.
    double brake_joints(const Setpoint<Robot> &from, std::int64_t stamp, std::int64_t taken) noexcept
    {
        rest(from, stamp - taken, taken);
        const double share = joint_brake_.begin(from);
        lead(joint_brake_);
        return share;
    }

    /// Time in which wrench, stiffness and base come to rest in a stop by the joints, s.
    double company_time() const noexcept { return joint_brake_.company_time(); }

    /// Begins a stop on the path of a player from a time on, ns, with a setpoint there; returns whether there is a path. The
    /// motion goes on until seek() has found the shortest one.
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

    /// Goes on to seek in a cycle of a period, s, or begins to, with 0; returns whether limits may still allow a stop.
    bool seek(double period) noexcept
    {
        constexpr std::int64_t UNKNOWN = std::numeric_limits<std::int64_t>::max();
        std::int64_t end = UNKNOWN;
        const bool allowed = !path_ || path_->seek_stop(time_, begin_ + ns_, period, end);
        if (end != UNKNOWN)
            duration_ = seconds(std::max<std::int64_t>(end - begin_, 0)); // in a pause, at once
        return allowed;
    }

    /// Begins the stop of a motion to targets, within its limits, from a time on, ns, with a setpoint there, in a time, s, or as limits
    /// allow; returns its largest share of a limit.
    double brake_motion(TargetMotion<Robot> &motion, const Setpoint<Robot> &from, std::int64_t now, double duration) noexcept
    {
        if (motion.leads())
            motion.go_on(now);
        rest(from, now);
        const double share = motion.brake(duration);
        lead(motion);
        return share;
    }

    /// Whether the stop stays on a path, or is that of a motion to targets.
    bool on_path() const noexcept { return path_ != nullptr; }
    bool of(const TargetMotion<Robot> &motion) const noexcept { return motion_ == &motion; }
    PathState path_state() const noexcept { return time_.at(begin_ + ns_); }

    /// At rest at once, or a time after the begin of the stop, ns.
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

    /// At rest from now on.
    void stay(const Setpoint<Robot> &setpoint) noexcept { rest(setpoint, stamp_, ns_); }

    /// Goes on by a time, ns: in ns, so that the sum does not depend on the steps.
    void advance(std::int64_t step) noexcept
    {
        ns_ += step;
        if (motion_)
            motion_->advance(step);
    }

    /// Time since its start, ns, and at its end, s.
    std::int64_t taken() const noexcept { return ns_; }
    double end() const noexcept { return duration_; }
    bool rests() const noexcept { return motion_ ? motion_->rests() : seconds(ns_) >= end(); }

    /// Stamp of the present setpoint, ns; not 0, which is none.
    std::int64_t stamp() const noexcept { return stamp_ + ns_ != 0 ? stamp_ + ns_ : 1; }

    /// The state some time after the last cycle, ns.
    State<n> state_after(std::int64_t later) const noexcept
    {
        return path_     ? path_->follow(time_, begin_ + ns_, seconds(later))
               : motion_ ? motion_->state_after(later)
                         : state_of(from_);
    }
    /// The state on a path at the lead of commands, s.
    State<n> state_at_lead(double lead) const noexcept { return path_->follow(time_, begin_ + ns_, lead); }

    /// The present setpoint, but for what accompanies it.
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
    // The motion that brakes, or the player whose path it stays on; the time of the latter, its begin, ns, and its duration, s.
    GovernedMotion<Robot> *motion_ = nullptr;
    TrajectoryPlayer<Robot> *path_ = nullptr;
    PathTime time_;
    std::int64_t begin_ = 0;
    double duration_ = 0;
    Setpoint<Robot> from_;
    // Of the setpoint, and time since the start, ns.
    std::int64_t stamp_ = 0, ns_ = 0;
};

} // namespace eom

#endif
