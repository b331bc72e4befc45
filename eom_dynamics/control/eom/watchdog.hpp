// SPDX-License-Identifier: Apache-2.0
// What the arm does without setpoints: it continues, comes to rest, or fades, until references are followed again.
#ifndef EOM_WATCHDOG_HPP
#define EOM_WATCHDOG_HPP

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "commander.hpp"
#include "stop.hpp"
#include "target_motion.hpp"
#include "trajectory_player.hpp"

namespace eom {

/// Response to lost setpoints and to trajectories that were ended.
template <class Robot>
class Watchdog {
  public:
    static constexpr std::size_t n = Robot::joints;

    Watchdog(Commander<Robot> &commander, TrajectoryPlayer<Robot> &player, TargetMotion<Robot> &motion) noexcept
        : commander_(commander), player_(player), motion_(motion)
    {
    }

    void configure(double timeout) noexcept
    {
        timeout_ = std::llround(timeout * 1e9);
        // A cycle adds at most half of it.
        if (timeout > 0)
            timeout_ = std::max<std::int64_t>(timeout_, 2);
    }

    /// Whether setpoints are lost, or a trajectory was ended, whether the arm comes to rest, or is at rest, and whether there
    /// was a setpoint at all; time since the last valid one, and the stop: its end, s, its excess over limits, and whether
    /// it stays on the path. Setpoints that end at rest, where the arm stays, are not lost, unless later ones were refused.
    struct Progress {
        bool lost, held, stopping, fed;
        double age, stop_end, excess;
        bool on_path, ended_at_rest;
    };
    Progress progress() const noexcept
    {
        return {lost_, held_, stopping_, fed_, seconds(age_), stop_.end(), excess_, stop_.on_path(), lost_ && rested_};
    }
    bool stopping() const noexcept { return stopping_; }
    /// Whether references lead, the last one at most a time ago, ns.
    bool fed_within(std::int64_t time) const noexcept { return fed_ && !stopping_ && age_ <= time; }
    /// Whether a motion to targets comes to rest, or has.
    bool brakes() const noexcept { return stopping_ && stop_.brakes(); }
    /// The path parameter of the last command.
    PathState path_state() const noexcept
    {
        return stopping_ && stop_.on_path() ? stop_.path_state() : player_.path_state();
    }
    /// Whether efforts fade, or have faded.
    bool fades() const noexcept { return lost_ && policy() == LossPolicy::ramp; }
    /// Whether nobody knows where the arm is, since setpoints were lost: no reference is followed before a restart.
    bool released() const noexcept { return fades() || (lost_ && policy() == LossPolicy::deactivate); }

    /// Begins anew, with no setpoint so far.
    void restart() noexcept
    {
        age_ = 0;
        fed_ = false;
    }

    /// Ends all responses.
    void resume() noexcept
    {
        stopping_ = lost_ = held_ = asked_ = stays_ = false;
        motion_.forget();
    }

    /// Goes on with a stop under way, as if nothing was lost.
    void keep_stopping() noexcept { lost_ = held_ = asked_ = false; }

    /// A cycle after a time of the clock, ns.
    void pass(std::int64_t step) noexcept
    {
        // After a stall, the references that wait are taken before the timeout is over.
        age_ += std::min(step, timeout_ / 2);
        // The first command of a stop that a host has begun repeats the last one, but where time goes on.
        const bool goes_on = !std::exchange(waits_, false) && (!begun_ || stop_.on_path() || stop_.brakes());
        step_ = stopping_ && goes_on ? std::min(step, LONGEST_RESPONSE_STEP) : 0;
        begun_ = false;
        stop_.advance(step_);
    }

    /// A stop that has begun at the time of the next update(): it does not go on before.
    void begin_with_update() noexcept { waits_ = true; }

    /// Keeps the timeout away; once there is a valid setpoint, setpoints can be lost.
    void keep_away() noexcept { age_ = 0; }
    void feed() noexcept
    {
        age_ = 0;
        moved_ = fed_ && !is_near(q_, AT_REST);
        q_ = commander_.output.setpoint.q;
        fed_ = true;
        refused_ = commander_.counts.refused;
    }

    /// Whether a reference is followed after a loss, or after a trajectory that was ended; of a stop that was asked for, at rest.
    bool resumes(const JointVector<Robot> &q) const noexcept
    {
        return !released() && (!holds() || (is_near(q) && !(asked_ && moves())));
    }

    /// Whether the arm comes to rest, or rests, since that was asked for.
    bool asked() const noexcept { return asked_; }

    /// Whether a stop or a ramp is under way.
    bool moves() const noexcept { return stopping_ && !ended(); }

    /// Whether the arm is held, so that references must be near.
    bool holds() const noexcept { return held_ || (lost_ && policy() == LossPolicy::hold); }

    /// Whether a position is within resume_distance of the commanded one.
    bool is_near(const JointVector<Robot> &q) const noexcept { return is_near(q, commander_.parameters.resume_distance); }
    bool is_near(const JointVector<Robot> &q, double distance) const noexcept
    {
        return !apart(q, commander_.output.setpoint.q, distance);
    }

    /// From a setpoint: on the path of a motion that is played, where limits allow it, or by the motion to targets, within
    /// its limits, from the last command or a time, ns.
    void begin_stop(const Setpoint<Robot> &from, std::int64_t now = 0) noexcept
    {
        // Nothing has been commanded that could be stopped.
        if (!commander_.output.valid)
            return;
        const bool stays = player_.on_path() && stop_.choose(player_, from, now ? now : player_.commanded());
        const bool brakes = !stays && motion_.commands();
        if (brakes)
            stop_.choose(motion_, from, now ? now : commander_.latest);
        if (stays || brakes)
            excess_ = 0;
        else
            stop_by_joints(from);
        step_ = 0;
        stays_ = false;
        last_ = commander_.output.command;
        commander_.renew();
        stopping_ = true;
    }

    /// Brings the arm to rest at the end of a trajectory, after which setpoints near it are followed; whether that was asked for.
    void hold(const Setpoint<Robot> &from, bool asked = false, std::int64_t now = 0) noexcept
    {
        held_ = commander_.output.valid;
        asked_ = asked;
        begin_stop(from, now);
    }

    /// At rest, which needs no more references.
    void rest(const Setpoint<Robot> &x, std::int64_t now) noexcept
    {
        stopping_ = true;
        stop_.rest(x, now);
    }

    /// ControlLoop::stop and ControlLoop::lose, of which the next cycle repeats the last command.
    void stop() noexcept
    {
        held_ = asked_ = commander_.output.valid;
        if (stopping_)
            return;
        lost_ = false;
        if (held_ && rests(commander_.output.setpoint))
            return rest(commander_.output.setpoint, commander_.stamp());
        begin_stop(commander_.output.setpoint);
        begun_ = true;
    }
    void lose() noexcept
    {
        const bool stopped = stopping_;
        begin_loss();
        begun_ = stopping_ && !stopped;
    }

    /// A cycle without a reference: the last command, until setpoints are lost and what the policy says then; returns
    /// whether the arm moves on along a stop.
    bool wait() noexcept
    {
        if (timeout_ > 0 && age_ >= timeout_)
            begin_loss();
        if (stopping_)
            return come_to_rest();
        if (lost_)
            commander_.output.status = policy() == LossPolicy::deactivate ? Status::lost : Status::held;
        return false;
    }

    /// Has a setpoint have what accompanies the stop at a time after the last cycle, ns.
    void accompany(Setpoint<Robot> &x, std::int64_t later = 0) const noexcept
    {
        stop_.on_path() || stop_.brakes() ? commander_.accompany(x, later) : stop_.accompany(x, seconds(later));
    }

    /// What the stop commands at a time after the last cycle, ns.
    State<n> state_after(std::int64_t later) const noexcept
    {
        return brakes() ? motion_.state_after(later) : stop_.state_after(seconds(later));
    }

  private:
    LossPolicy policy() const noexcept { return commander_.parameters.on_setpoint_loss; }

    /// Whether the stop, and a ramp along it, have come to their end.
    bool ended() const noexcept
    {
        return stop_.rests() && !(fades() && stop_.time() < commander_.parameters.ramp_duration);
    }

    void begin_loss() noexcept
    {
        if (!fed_ || stopping_ || lost_)
            return;
        lost_ = true;
        rested_ = !moved_ && rests(commander_.output.setpoint) && commander_.counts.refused == refused_ && !fades() &&
                  policy() != LossPolicy::deactivate;
        commander_.counts.timeouts += rested_ ? 0 : 1;
        if (policy() == LossPolicy::hold || policy() == LossPolicy::ramp)
            begin_stop(commander_.output.setpoint);
    }

    /// Begins a stop by the joints, or holds the position where motors can realise none.
    void stop_by_joints(const Setpoint<Robot> &from) noexcept
    {
        excess_ = stop_.choose(commander_, from);
        if (!std::isfinite(excess_))
            stop_.rest(commander_.output.setpoint, commander_.stamp());
    }

    /// Commands what the stop has come to; returns whether that can be computed.
    bool command_stop() noexcept
    {
        State<n> ahead;
        if (stop_.on_path())
            ahead = stop_.state_after(commander_.parameters.command_lead);
        const State<n> *const at_lead = stop_.on_path() ? &ahead : nullptr;
        Setpoint<Robot> x = stop_.setpoint();
        if (stop_.on_path() || stop_.brakes())
            accompany(x);
        return commander_.accept(x, stop_.stamp(), Leader::stop, false, at_lead, !stop_.rests());
    }

    /// The command of a stop, and of a ramp along it. Limits do not refuse it: a part of a stop would be a step.
    bool come_to_rest() noexcept
    {
        LoopOutput<Robot> &output = commander_.output;
        if (!stays_ && !stop_.seek_on(step_ > 0 ? commander_.period : 0)) {
            stop_by_joints(output.setpoint);
            stop_.advance(step_);
            commander_.renew();
        }
        // What cannot be computed is held: the position, or else the last command.
        if (!stays_ && !command_stop()) {
            excess_ = std::numeric_limits<double>::infinity();
            stop_.stay(output.setpoint);
            stays_ = !command_stop();
        }
        if (stays_) {
            output.command = last_;
            output.command.motor_velocity = output.command.motor_acceleration = {};
            commander_.change_output();
            Setpoint<Robot> &x = output.setpoint;
            x.qd = x.qdd = x.qddd = x.qdddd = {};
        } else {
            last_ = output.command;
        }
        const double ramp = commander_.parameters.ramp_duration;
        if (fades())
            commander_.share = stop_.fade(output.command, ramp);
        output.status = ended() ? Status::held : fades() ? Status::ramping : Status::stopping;
        return true;
    }

    Commander<Robot> &commander_;
    TrajectoryPlayer<Robot> &player_;
    TargetMotion<Robot> &motion_;
    Stop<Robot> stop_;
    bool lost_ = false, held_ = false, asked_ = false, stopping_ = false, fed_ = false, rested_ = false;
    // Of the last valid setpoint: its positions, whether they differ from those before, as rates may be unknown, and how many were
    // refused up to then.
    JointVector<Robot> q_{};
    bool moved_ = false;
    std::uint64_t refused_ = 0;
    // Whether a host has begun a stop after the last cycle, or at the time of the next one; and whether the last command is held, before efforts fade.
    bool begun_ = false, waits_ = false, stays_ = false;
    Command<Robot> last_;
    // Time since the last valid reference, and the timeout, ns.
    std::int64_t age_ = 0, timeout_ = 0;
    // How far the stop went in the last cycle, ns, and its excess over limits.
    std::int64_t step_ = 0;
    double excess_ = 0;
};

} // namespace eom

#endif
