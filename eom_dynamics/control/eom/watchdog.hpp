// SPDX-License-Identifier: Apache-2.0
// Watchdog: stops, and the response to lost setpoints until references are accepted again.
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

/// Stops motions that were ended, and responds to lost setpoints.
template <class Robot>
class Watchdog {
  public:
    static constexpr std::size_t n = Robot::joints;

    Watchdog(Commander<Robot> &commander, TrajectoryPlayer<Robot> &player, TargetMotion<Robot> &motion)
        : commander_(commander), state_machine_(commander.state_machine), player_(player), motion_(motion), stop_(commander)
    {
        commander_.stops = &stop_.trajectory();
    }

    void configure(double timeout) noexcept
    {
        timeout_ = std::llround(timeout * 1e9);
        // pass() adds half the timeout, which must not round to 0.
        if (timeout > 0)
            timeout_ = std::max<std::int64_t>(timeout_, 2);
    }

    /// `age`: time since the last valid setpoint, s. `stop_end`: duration of the stop, s. `excess`: its excess over limits.
    /// `on_path`: it stays on the path. `ended_at_rest`: setpoints ended at rest without later refusals, which is no loss.
    struct Progress {
        double age, stop_end, excess;
        bool on_path, ended_at_rest;
    };
    Progress progress() const noexcept
    {
        return {seconds(age_), stop_.end(), excess_, stop_.on_path(), state_machine_.lost() && rested_};
    }
    /// Returns true if setpoints are followed, and the last valid setpoint arrived within `time` ns.
    bool fed_within(std::int64_t time) const noexcept { return state_machine_.is(Phase::following) && age_ <= time; }
    /// Returns true if the stop, active or completed, is by the motion to targets.
    bool targets_brake() const noexcept { return state_machine_.braked() && stop_.of(motion_); }
    /// Path state of the last command.
    PathState path_state() const noexcept
    {
        return state_machine_.braked() && stop_.on_path() ? stop_.path_state() : player_.path_state();
    }

    /// Reset the hold and the motion to targets, because another motion starts.
    void leave() noexcept
    {
        stays_ = false;
        motion_.forget();
    }

    /// Start a cycle, `step` ns after the last cycle by the clock.
    void pass(std::int64_t step) noexcept
    {
        // At most half the timeout, so that queued references are processed after a stall before it expires.
        age_ += timeout_ > 0 ? std::min(step, timeout_ / 2) : step;
        const bool begins = std::exchange(begun_, false); // also if a restart has ended the stop
        step_ = state_machine_.braked() && !begins ? std::min(step, LONGEST_RESPONSE_STEP) : 0;
        stop_.advance(step_);
        end_if_over();
    }

    /// Start the stop with the next cycle, which repeats the last command.
    void begin_with_update() noexcept { begun_ = true; }

    /// Reset the setpoint timeout.
    void keep_away() noexcept { age_ = 0; }
    /// Record the last command as a valid setpoint.
    void feed() noexcept
    {
        age_ = 0;
        moved_ = state_machine_.phase() != Phase::idle && !is_near(q_, AT_REST);
        q_ = commander_.output.setpoint.q;
        refused_ = commander_.counts.refused;
    }

    /// Returns true if q is within start_tolerance of the commanded position.
    bool is_near(const JointVector<Robot> &q) const noexcept { return is_near(q, commander_.parameters.start_tolerance); }
    bool is_near(const JointVector<Robot> &q, double distance) const noexcept
    {
        return !apart(q, commander_.output.setpoint.q, distance);
    }

    /// Stop from setpoint `from` because of event `why`: on the path if limits allow it, by the motion to targets, or by the
    /// joints. With `leads`, the motion is active until `now`, ns (0: last command); otherwise, it ended with the last command.
    void brake(const Setpoint<Robot> &from, Event why, bool leads = false, std::int64_t now = 0) noexcept
    {
        if (!commander_.output.valid) { // no command to stop from
            state_machine_.on(Event::restart);
            return;
        }
        begin_stop(from, leads, now);
        state_machine_.on(why, {true});
        end_if_over();
    }

    /// Hold setpoint x with stamp `now`, ns, because of event `why`. Missing references then have no effect.
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

    /// Implement ControlLoop::stop() and ControlLoop::lose(). The next cycle of a joint stop repeats the last command.
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

    /// Run a cycle without a reference: keep the last command, and respond to lost setpoints after the timeout. Returns true if a
    /// stop commands the arm.
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

    /// Returns the state of the stop `later` ns after the last cycle.
    State<n> state_after(std::int64_t later) const noexcept { return stop_.state_after(later); }

  private:
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
        excess_ = std::max(share - 1 - LIMIT_TOLERANCE, 0.0);
    }

    /// Command the present setpoint of the stop. Returns true if the command can be computed.
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

    /// Start a joint stop from the last command. Returns true if its first step can be computed.
    bool restart_stop() noexcept
    {
        if (eom::rests(commander_.output.setpoint))
            return false;
        stop_by_joints(commander_.output.setpoint, stop_.taken() - step_);
        stop_.advance(step_);
        commander_.renew();
        return command_stop();
    }

    /// Run a cycle of the stop. Limits do not refuse its commands, because a missing command would cause a step.
    bool come_to_rest() noexcept
    {
        LoopOutput<Robot> &output = commander_.output;
        if (!stays_ && state_machine_.is(Phase::stopping) && !stop_.advance_on_path(step_ > 0 ? commander_.period : 0)) {
            stop_by_joints(output.setpoint, stop_.taken());
            stop_.advance(step_);
            commander_.renew();
        }
        // If the command cannot be computed, restart the stop from the last command. Hold the position at rest, or if this fails.
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
    // Position of the last valid setpoint.
    JointVector<Robot> q_{};
    // Flags: q_ has changed (rates may be unknown); the lost setpoints had ended at rest.
    bool moved_ = false, rested_ = false;
    // Number of refusals at the last valid setpoint.
    std::uint64_t refused_ = 0;
    // Flags: the stop starts with the next cycle; it continues the active motion; the last command is held.
    bool begun_ = false, goes_on_ = false, stays_ = false;
    Command<Robot> last_;
    // Time since the last valid reference, and the timeout, ns.
    std::int64_t age_ = 0, timeout_ = 0;
    // Progress of the stop in the last cycle, ns, and its excess over limits.
    std::int64_t step_ = 0;
    double excess_ = 0;
};

} // namespace eom

#endif
