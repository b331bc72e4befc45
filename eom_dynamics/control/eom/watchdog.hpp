// SPDX-License-Identifier: Apache-2.0
// What the arm does without setpoints: it continues or comes to rest, until references are followed again.
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

    Watchdog(Commander<Robot> &commander, TrajectoryPlayer<Robot> &player, TargetMotion<Robot> &motion)
        : commander_(commander), state_machine_(commander.state_machine), player_(player), motion_(motion), stop_(commander),
          way_out_(commander)
    {
        commander_.stops = &stop_.trajectory();
    }

    void configure(double timeout) noexcept
    {
        timeout_ = std::llround(timeout * 1e9);
        // A cycle adds at most half of it.
        if (timeout > 0)
            timeout_ = std::max<std::int64_t>(timeout_, 2);
    }

    /// The stop: its end, s, its excess over limits, and whether it stays on the path; time since the last valid setpoint; and
    /// whether setpoints have ended at rest, where the arm stays: these are not lost, unless later ones were refused.
    struct Progress {
        double age, stop_end, excess;
        bool on_path, ended_at_rest;
    };
    Progress progress() const noexcept
    {
        return {seconds(age_), stop_.end(), excess_, stop_.on_path(), state_machine_.lost() && rested_};
    }
    /// Whether references lead, the last one at most a time ago, ns.
    bool fed_within(std::int64_t time) const noexcept { return state_machine_.is(Phase::following) && age_ <= time; }
    /// Whether the motion to targets comes to rest, or has.
    bool targets_brake() const noexcept { return state_machine_.braked() && stop_.of(motion_); }
    /// The path parameter of the last command.
    PathState path_state() const noexcept
    {
        return state_machine_.braked() && stop_.on_path() ? stop_.path_state() : player_.path_state();
    }

    /// Largest share of a limit that a stop by the joints takes, or would take; looked at after a cycle that takes a time, ns, unless
    /// one brings the arm to rest.
    const WayOut<Robot> &way_out() const noexcept { return way_out_; }
    void look(std::int64_t step) noexcept
    {
        if (!state_machine_.is(Phase::stopping))
            way_out_.look(step);
    }
    void restart() noexcept { way_out_.restart(); }

    /// Another motion leads.
    void leave() noexcept
    {
        stays_ = false;
        motion_.forget();
    }

    /// A cycle after a time of the clock, ns.
    void pass(std::int64_t step) noexcept
    {
        // After a stall, the references that wait are taken before the timeout is over.
        age_ += timeout_ > 0 ? std::min(step, timeout_ / 2) : step;
        const bool begins = std::exchange(begun_, false); // also where a restart has ended that stop
        step_ = state_machine_.braked() && !begins ? std::min(step, LONGEST_RESPONSE_STEP) : 0;
        stop_.advance(step_);
        end_if_over();
    }

    /// A stop that has begun after the last cycle, of which the next one repeats the last command.
    void begin_with_update() noexcept { begun_ = true; }

    /// Keeps the timeout away.
    void keep_away() noexcept { age_ = 0; }
    void feed() noexcept
    {
        age_ = 0;
        moved_ = state_machine_.phase() != Phase::idle && !is_near(q_, AT_REST);
        q_ = commander_.output.setpoint.q;
        refused_ = commander_.counts.refused;
    }

    /// Whether a position is within start_tolerance of the commanded one.
    bool is_near(const JointVector<Robot> &q) const noexcept { return is_near(q, commander_.parameters.start_tolerance); }
    bool is_near(const JointVector<Robot> &q, double distance) const noexcept
    {
        return !apart(q, commander_.output.setpoint.q, distance);
    }

    /// Brings the arm to rest from a setpoint, for an event: on the path of a motion that is played, where limits allow it, or by
    /// the motion to targets, within its limits, from the last command or a time, ns. The motion leads until then, or has ended
    /// with the last command.
    void brake(const Setpoint<Robot> &from, Event why, bool leads = false, std::int64_t now = 0) noexcept
    {
        if (!commander_.output.valid) { // nothing has been commanded that could be stopped
            state_machine_.on(Event::restart);
            return;
        }
        begin_stop(from, leads, now);
        state_machine_.on(why, {true});
        end_if_over();
    }

    /// At rest, which needs no more references.
    void rest(const Setpoint<Robot> &x, std::int64_t now, Event why = Event::end) noexcept
    {
        commander_.begin_company(x, commander_.latest);
        stop_.rest(x, now);
        excess_ = 0;
        stays_ = false;
        last_ = commander_.output.command;
        state_machine_.on(why, {commander_.output.valid});
        end_if_over();
    }

    /// ControlLoop::stop and ControlLoop::lose, of which the next cycle repeats the last command.
    void stop(Event why) noexcept
    {
        if (state_machine_.braked() || !commander_.output.valid) {
            state_machine_.on(why, {commander_.output.valid});
            return;
        }
        if (rests(commander_.output.setpoint))
            return rest(commander_.output.setpoint, commander_.stamp(), why);
        brake(commander_.output.setpoint, why);
        begun_ = !goes_on_;
    }
    void lose() noexcept
    {
        const bool stopped = state_machine_.braked();
        begin_loss();
        begun_ = state_machine_.braked() && !stopped && !goes_on_;
    }

    /// A cycle without a reference: the last command, until setpoints are lost and what the policy says then; returns
    /// whether the arm moves on along a stop.
    bool wait() noexcept
    {
        if (timeout_ > 0 && age_ >= timeout_ && state_machine_.is(Phase::following))
            begin_loss();
        if (state_machine_.braked())
            return come_to_rest();
        if (state_machine_.lost())
            commander_.output.status = Status::held;
        return false;
    }

    /// What the stop commands at a time after the last cycle, ns.
    State<n> state_after(std::int64_t later) const noexcept { return stop_.state_after(later); }

  private:
    /// End a stop that has come to rest.
    void end_if_over() noexcept
    {
        if (state_machine_.is(Phase::stopping) && stop_.rests())
            state_machine_.on(Event::end);
    }

    void begin_loss() noexcept
    {
        constexpr Event LOSSES[] = {Event::loss, Event::loss_hold, Event::loss_deactivate};
        const auto policy = commander_.parameters.on_setpoint_loss;
        const Event why = LOSSES[static_cast<std::size_t>(policy)];
        if (!state_machine_.admits(why, {commander_.output.valid})) {
            state_machine_.on(why);
            return;
        }
        const bool stays = policy != LossPolicy::deactivate;
        rested_ = !moved_ && rests(commander_.output.setpoint) && commander_.counts.refused == refused_ && stays;
        commander_.counts.timeouts += rested_ ? 0 : 1;
        if (policy == LossPolicy::none)
            state_machine_.on(why, {true});
        else
            brake(commander_.output.setpoint, why);
    }

    void begin_stop(const Setpoint<Robot> &from, bool leads, std::int64_t now) noexcept
    {
        const bool stays = player_.on_path(leads) && stop_.brake_on_path(player_, from, now ? now : player_.commanded());
        const bool brakes = !stays && ((leads && motion_.leads() && motion_.can_brake()) || motion_.commands());
        goes_on_ = stays || brakes;
        excess_ = 0;
        if (brakes)
            stop_.brake_motion(motion_, from, now ? now : commander_.latest, commander_.parameters.stop_duration);
        else
            motion_.forget();
        if (!goes_on_)
            stop_by_joints(from);
        step_ = 0;
        stays_ = false;
        last_ = commander_.output.command;
        commander_.renew();
    }

    void stop_by_joints(const Setpoint<Robot> &from, std::int64_t taken = 0) noexcept
    {
        const double share = stop_.brake_joints(from, commander_.stamp(), taken);
        commander_.begin_company(from, commander_.latest, stop_.company_time());
        way_out_.note(share);
        excess_ = std::max(share - 1 - LIMIT_TOLERANCE, 0.0);
    }

    /// Commands what the stop has come to; returns whether that can be computed.
    bool command_stop() noexcept
    {
        State<n> ahead;
        if (stop_.on_path())
            ahead = stop_.state_at_lead(commander_.robot.command_lead());
        const State<n> *const at_lead = stop_.on_path() ? &ahead : nullptr;
        Setpoint<Robot> x = stop_.setpoint();
        commander_.accompany(x);
        return commander_.accept(x, stop_.stamp(), Leader::stop, false, at_lead, !stop_.rests());
    }

    /// Stops by the joints from the last command; returns whether the first step of that can be computed.
    bool restart_stop() noexcept
    {
        if (eom::rests(commander_.output.setpoint))
            return false;
        stop_by_joints(commander_.output.setpoint, stop_.taken() - step_);
        stop_.advance(step_);
        commander_.renew();
        return command_stop();
    }

    /// The command of a stop. Limits do not refuse it: a stop with a part left out would be a step.
    bool come_to_rest() noexcept
    {
        LoopOutput<Robot> &output = commander_.output;
        if (!stays_ && state_machine_.is(Phase::stopping) && !stop_.seek(step_ > 0 ? commander_.period : 0)) {
            stop_by_joints(output.setpoint, stop_.taken());
            stop_.advance(step_);
            commander_.renew();
        }
        // A stop whose command cannot be computed begins anew from the last one; the position is held only at rest, or if none can.
        if (!stays_ && !command_stop() && !restart_stop()) {
            excess_ = std::numeric_limits<double>::infinity();
            stop_.stay(output.setpoint);
            stays_ = !command_stop();
        }
        if (stays_) {
            output.command = last_;
            commander_.stand_still();
        } else {
            last_ = output.command;
        }
        end_if_over();
        output.status = state_machine_.is(Phase::stopping) ? Status::stopping : state_machine_.gone() ? Status::lost : Status::held;
        return true;
    }

    Commander<Robot> &commander_;
    StateMachine &state_machine_;
    TrajectoryPlayer<Robot> &player_;
    TargetMotion<Robot> &motion_;
    Stop<Robot> stop_;
    WayOut<Robot> way_out_;
    // Of the last valid setpoint: its positions, whether they differ from those before, as rates may be unknown, and how many were
    // refused up to then; and whether setpoints that were lost have ended at rest.
    JointVector<Robot> q_{};
    bool moved_ = false, rested_ = false;
    std::uint64_t refused_ = 0;
    // Whether the stop has begun after the last cycle; whether it goes on from there; and whether the last command is held.
    bool begun_ = false, goes_on_ = false, stays_ = false;
    Command<Robot> last_;
    // Time since the last valid reference, and the timeout, ns.
    std::int64_t age_ = 0, timeout_ = 0;
    // How far the stop went in the last cycle, ns, and its excess over limits.
    std::int64_t step_ = 0;
    double excess_ = 0;
};

} // namespace eom

#endif
