// SPDX-License-Identifier: Apache-2.0
// Motions of the control loop: setpoints, targets, trajectories and stops.
#ifndef EOM_LOOP_MOTIONS_HPP
#define EOM_LOOP_MOTIONS_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "commander.hpp"
#include "contact.hpp"
#include "mailbox.hpp"
#include "stream.hpp"
#include "target_motion.hpp"
#include "trajectory_player.hpp"
#include "watchdog.hpp"
#include "whereabouts.hpp"

namespace eom {

/// Motion sources of ControlLoop: setpoints, trajectories, targets and stops.
template <class Robot>
class LoopMotions {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    /// Trajectories; the reader keeps two: the active one and the queued one.
    Mailbox<Spline<n>, 2> trajectories;
    /// Targets or chunks, which replace the active motion: see OnlineTrajectory and ControlLoop::limit().
    Mailbox<Target> targets;
    /// Pace of trajectories, 0 to MAX_PACE; `paused` stops them on their path.
    std::atomic<double> speed_scaling{1};
    std::atomic<bool> paused{false};

    explicit LoopMotions(const Robot &robot)
        : commander_(robot), player_(trajectories, commander_), motion_(commander_), watchdog_(commander_, player_, motion_),
          stream_(commander_), state_machine_(commander_.state_machine)
    {}

    // --- For hosts that report on trajectories or detect losses; call in the thread of update() -----

    /// Plan the received or due trajectory, and play or queue it, as update() does. Returns true unless it is refused or missing.
    bool plan(std::int64_t now, double period) noexcept
    {
        where_.ask(now);
        const bool stopped = state_machine_.braked();
        const bool found = plan_at(time_at(now), period);
        if (state_machine_.braked() && !stopped)
            watchdog_.begin_with_update();
        return found;
    }

    /// Delay the queued trajectory by `time` ns, for example while its clock stood still.
    void delay(std::int64_t time) noexcept { player_.shift(time); }

    /// Start the received target, if any, at `now`, ns, ahead of update(). Returns the refusal; the active motion then continues.
    Refusal aim(std::int64_t now) noexcept
    {
        where_.ask(now);
        return aim_at(time_at(now));
    }

    /// Stop the arm from the last command, and cancel active and queued trajectories; on_setpoint_loss has no effect. A stop in
    /// progress continues. At rest, setpoints within start_tolerance are accepted, as after an empty trajectory.
    void stop(Event why = Event::stop) noexcept
    {
        if (!commander_.output.valid)
            return halt(); // the motion has not sent any command
        player_.halt();
        watchdog_.stop(why);
    }

    /// Start the response to a setpoint loss, see on_setpoint_loss. A trajectory continues; a target continues with `none`.
    void lose() noexcept
    {
        watchdog_.lose();
    }

    /// Cancel the active and the queued trajectory and the motion to a target; the last command is the end.
    void halt() noexcept
    {
        player_.halt();
        state_machine_.on(commander_.output.valid ? Event::halt : Event::restart);
    }

    /// Cancel the queued trajectory; the active motion continues.
    void drop() noexcept
    {
        if (!playing())
            player_.halt();
    }

    const StateMachine &state_machine() const noexcept { return state_machine_; }
    const Commander<Robot> &commander() const noexcept { return commander_; }
    const Watchdog<Robot> &watchdog() const noexcept { return watchdog_; }
    const TrajectoryPlayer<Robot> &player() const noexcept { return player_; }

    const LoopOutput<Robot> &output() const noexcept { return commander_.output; }
    const LoopCounts &counts() const noexcept { return commander_.counts; }
    const Reason &reason() const noexcept { return commander_.reason; }
    Refusal refusal() const noexcept { return commander_.reason.refusal; }
    const char *payload_refusal() const noexcept { return commander_.payload_refusal(); }
    /// Finding of the last failed stream check.
    const Finding &finding() const noexcept { return stream_.finding; }
    /// Clock time of the last cycle, ns.
    std::int64_t clock() const noexcept { return clock_; }
    /// Returns true if an early reference is deferred to the next cycle.
    bool early() const noexcept { return stream_.early(); }
    /// Delay of the present or last motion by late cycles, s.
    double lost_time() const noexcept { return lost_time_; }
    bool playing() const noexcept { return player_.playing(); }
    bool waiting() const noexcept { return player_.waiting(); }
    /// Returns true if a motion to a target is active, also after its arrival.
    bool aiming() const noexcept { return motion_.leads(); }
    /// Returns true if the arm rests at the target; setpoints within start_tolerance are then accepted.
    bool arrived() const noexcept { return motion_.arrived(); }
    /// Motion source of the last cycle if it cannot pause or change its speed.
    OffPath off_path() const noexcept
    {
        if (playing() || commander_.mode() == Mode::gravity_compensation)
            return OffPath::nothing;
        if (aiming())
            return arrived() ? OffPath::nothing : OffPath::target;
        return watchdog_.fed_within(LONGEST_GAP) ? OffPath::references : OffPath::nothing;
    }
    /// Returns the largest utilization of a limit in a joint stop from the last command, 0 without a command, infinity if motors
    /// cannot realize the stop. Allocates: call between cycles.
    double stop_utilization() const
    {
        return output().valid ? JointBrake<Robot>(commander_).begin(output().setpoint) : 0;
    }
    /// Governor of the motion to targets.
    const Governor<Robot> &governor() const noexcept { return motion_.governor(); }

    /// Returns true if references are refused after contact.
    bool touched() const noexcept { return touched_; }

  protected:
    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::max(), UNSTAMPED = -NEVER;

    // --- Time ---------------------------------------------------------------------------

    /// Loop time for the clock time `now`, ns. It never goes back; during motion, it advances at most LONGEST_RESPONSE_STEP per
    /// cycle. A queued trajectory starts by the clock, or after the planned end of the active one.
    std::int64_t time_at(std::int64_t now) noexcept
    {
        if (!started_) {
            start_clock(now);
            started_ = true;
        }
        std::int64_t &latest = commander_.latest;
        const std::int64_t before = ahead_;
        const bool moves = in_motion();
        const std::int64_t due = now - (moves ? ahead_ : std::min<std::int64_t>(ahead_, 0));
        const std::int64_t time = std::clamp(due, latest, moves ? latest + LONGEST_RESPONSE_STEP : NEVER);
        if (due > time)
            lost_time_ += seconds(due - time) * (playing() ? player_.path_state()[1] : 1);
        ahead_ = now - time;
        if (!playing())
            player_.shift(before - ahead_);
        if (!moves) {
            commander_.skip(before - ahead_);
            latest = time;
        }
        return time;
    }

    /// Start the loop time at clock time `now`, ns. Loop time is positive on every clock, because stamp 0 means no stamp.
    void start_clock(std::int64_t now) noexcept
    {
        clock_ = now;
        commander_.latest = std::max<std::int64_t>(now, 1);
        ahead_ = now - commander_.latest;
    }

    // --- References ---------------------------------------------------------------------

    /// Process the reference. Returns true if it is accepted; a refused reference does not reset the setpoint timeout.
    bool follow(std::int64_t now) noexcept
    {
        const double age = seconds(clock_ - stream_.stamp());
        const double lifespan = commander_.parameters.setpoint_lifespan;
        if (lifespan > 0 && stream_.stamp() != 0 && std::fabs(age) > lifespan) {
            commander_.refuse({Refusal::too_old, Quantity::none, 0, std::fabs(age), lifespan});
        } else if (stream_.is_early(now, clock_)) {
            // deferred to the next cycle
        } else if (const Refusal barred = refusal_of(Event::setpoint); barred != Refusal::none) {
            commander_.refuse(reason_of(barred));
            if (touched_)
                commander_.output.status = Status::held;
        } else if (const Refusal doubt = stream_.judged(now); doubt != Refusal::none) {
            commander_.refuse(doubt);
            commander_.reason.degrees = state_machine_.is(Phase::idle) && fastest(stream_.reference().qd, IN_DEGREES) < n;
            commander_.output.status = Status::held;
        } else if (commander_.accept(stream_.reference(), stream_.stamp(), Leader::setpoints)) {
            watchdog_.feed();
            watchdog_.leave();
            state_machine_.on(Event::setpoint, facts());
            player_.leave();
            stream_.follow(now);
            return true;
        } else {
            commander_.reason.degrees = commander_.reason.degrees && state_machine_.is(Phase::idle);
            commander_.output.status = Status::held;
        }
        return false;
    }

    /// Reason of a refusal by the state machine.
    EOM_SELDOM Reason reason_of(Refusal why) const noexcept
    {
        return why == Refusal::far_from_hold ? stream_.far_from_hold() : Reason(why);
    }

    void wait() noexcept
    {
        if (watchdog_.wait())
            stream_.checks.moved(commander_.output.setpoint);
        if (touched_ && commander_.parameters.on_contact == ContactReaction::deactivate && rests())
            commander_.output.status = Status::lost;
    }

    /// Returns true if the commanded motion is at rest.
    bool rests() const noexcept
    {
        const auto &qd = commander_.output.setpoint.qd;
        return aiming()         ? arrived()
               : state_machine_.braked() ? !state_machine_.is(Phase::stopping)
                                : std::all_of(qd.begin(), qd.end(), [](Scalar rate) { return rate == 0; });
    }

    /// Retract along the recent motion, as to a target, unless a stop was requested. Returns true if retraction starts.
    bool retract() noexcept
    {
        const JointVector<Robot> *const back = past_.oldest();
        if (!back || !motion_.limited() || !commander_.output.valid || state_machine_.refusal(Event::retract, facts()) != Refusal::none)
            return false;
        Target &x = retreat_;
        std::copy_n(back->begin(), x.positions.size(), x.positions.begin());
        return aim(x, commander_.latest, Refusal::none, Event::retract) == Refusal::none;
    }

    // --- Trajectories and targets -------------------------------------------------------

    /// plan() and aim() at loop time `now`, ns.
    bool plan_at(std::int64_t now, double period) noexcept
    {
        if (player_.begin_waiting(now))
            begin_motion(now, Event::trajectory);
        if (!player_.take_next(now))
            return false;
        if (player_.stops()) {
            Setpoint<Robot> from = commander_.output.setpoint;
            if (playing() || aiming())
                take(commanded(now), from);
            end_motion(from, Event::empty, now);
            return false;
        }
        const Plan<n> *const found =
            player_.plan(now, ahead_, period, refusal_of(Event::trajectory), [this](std::int64_t at) { return commanded(at); });
        const double pace = paused ? 0 : std::min(speed_scaling.load(), 1.0);
        if (!found)
            return false;
        if (!found->waits && commander_.loaded() && !player_.plan_carries(pace)) {
            player_.drop(Refusal::over_limits);
            return false;
        }
        if (player_.play())
            begin_motion(now, Event::trajectory);
        return true;
    }
    Refusal aim_at(std::int64_t now) noexcept
    {
        return targets.take() ? aim(targets.taken(), now, refusal_of(Event::target)) : Refusal::none;
    }

    /// Returns true if the loop generates a motion.
    bool in_motion() const noexcept { return playing() || (aiming() && !arrived()) || state_machine_.is(Phase::stopping); }

    /// Inputs of the state machine.
    Facts facts() const noexcept
    {
        Facts facts;
        facts.commanded = commander_.output.valid;
        facts.near = stream_.received() && watchdog_.is_near(stream_.reference().q);
        facts.arrived = arrived();
        facts.paused = paused;
        facts.touched = touched_;
        facts.led = stream_.led();
        facts.by_hand = commander_.mode() == Mode::gravity_compensation;
        facts.strays = where_.strays();
        return facts;
    }
    /// Refusal of the event by the state machine, or `none`.
    Refusal refusal_of(Event event) noexcept { return state_machine_.refusal(event, facts()); }

    /// Commanded motion at `at`, ns.
    State<n> commanded(std::int64_t at) const noexcept
    {
        return playing()               ? player_.state_at(at)
               : aiming()              ? motion_.state_at(at)
               : state_machine_.braked() ? watchdog_.state_after(at - commander_.latest)
                                       : state_of(stream_.moved_on(at));
    }

    /// Last setpoint with its wrench, stiffness and base motion at loop time `now`, ns.
    Setpoint<Robot> accompanied(std::int64_t now) const noexcept
    {
        const Leader leader = commander_.leader();
        if (leader == Leader::setpoints)
            return stream_.moved_on(now);
        Setpoint<Robot> x = commander_.output.setpoint;
        if (leader == Leader::stop || leader == Leader::trajectory || leader == Leader::target)
            commander_.accompany(x, now - commander_.latest);
        return x;
    }

    /// Reset lateness, stop and stream checks at the start of a motion.
    void begin_motion(std::int64_t now, Event why) noexcept
    {
        lost_time_ = 0;
        commander_.begin_company(accompanied(now), now);
        watchdog_.leave();
        stream_.checks.restart();
        state_machine_.on(why);
    }

    /// Start the motion to target `x`, in the nearest turn, unless `bar` refuses it. Returns the refusal.
    Refusal aim(Target &x, std::int64_t now, Refusal bar, Event event = Event::target) noexcept
    {
        const std::int64_t begin = x.origin != 0 ? x.origin - ahead_ : now;
        motion_.turn(x, seconds(now - begin));
        const std::int64_t clock = now + ahead_;
        std::int64_t &newest = newest_[x.times.empty()];
        newest = newest > clock + LONGEST_GAP ? UNSTAMPED : newest; // the clock was set back
        Reason why = motion_.objection(x, seconds(now - begin));
        if (why.refusal == Refusal::none)
            why = x.origin != 0 && x.origin < newest ? Refusal::older : bar;
        if (why.refusal == Refusal::none && event == Event::target)
            why = motion_.beyond_range(x);
        // The governor slows down targets that keep moving.
        if (why.refusal == Refusal::none && motion_.ends(x) && !commander_.holds(motion_.rest_of(x))) {
            motion_.stay();
            why = commander_.overload();
        }
        if (why.refusal == Refusal::none && !may_take_over(now))
            why = Refusal::no_room;
        if (why.refusal != Refusal::none) {
            commander_.refuse(why);
            return why.refusal;
        }
        if (!aiming())
            begin_target(now, event);
        else
            state_machine_.on(event);
        motion_.take(x, begin, now);
        if (x.origin != 0) // limited, so that the stamp of another clock does not refuse all later targets
            newest = std::max(newest, std::min(x.origin, clock + LONGEST_GAP));
        return Refusal::none;
    }

    /// Start the motion to the target of the chained controller if it has changed.
    void aim_as_led(std::int64_t now) noexcept
    {
        stream_.take();
        const bool changed = motion_.changes(stream_.reference());
        const Refusal bar = motion_.usable() ? refusal_of(Event::target) : Refusal::not_finite;
        if (bar == Refusal::stopping) // the target is accepted once the arm is at rest
            motion_.forget_pursued();
        else if (changed && aim(motion_.pursued(), now, bar) != Refusal::none)
            motion_.forget_pursued();
    }

    /// Returns true if a target motion can take over: no joint would overrun a position limit because targets brake less hard.
    bool may_take_over(std::int64_t now) noexcept
    {
        if (aiming() || watchdog_.targets_brake() || commander_.parameters.limits != LimitPolicy::refuse)
            return true;
        return motion_.can_take_over(commanded(now));
    }

    void begin_target(std::int64_t now, Event event) noexcept
    {
        const bool brakes = watchdog_.targets_brake();
        const State<n> from = commanded(now);
        if (brakes) // a host with its own planning calls aim() before the cycle
            motion_.advance(std::clamp<std::int64_t>(now - commander_.latest, 0, LONGEST_RESPONSE_STEP));
        player_.halt();
        begin_motion(now, event);
        brakes ? motion_.lead(now) : motion_.begin(from, now);
    }

    /// Stop from setpoint `from` because of event `why`, and cancel active and queued motions.
    void end_motion(const Setpoint<Robot> &from, Event why, std::int64_t now = 0) noexcept
    {
        if (playing() || aiming())
            watchdog_.brake(from, why, true, now);
        else
            state_machine_.on(why);
        player_.halt();
    }

    /// Stop because a command was refused.
    void break_off() noexcept
    {
        commander_.output.status = Status::held;
        // Limits may have refused the auxiliary inputs, so freeze them.
        Setpoint<Robot> x = stream_.last();
        x.Wd = x.Wdd = {};
        x.kd = x.kdd = {};
        commander_.begin_company(x, commander_.latest);
        end_motion(x, Event::break_off);
        wait();
    }

    /// Run one cycle of the motion to a target.
    void aim_on(std::int64_t now) noexcept
    {
        if (stream_.received()) {
            if (const Refusal why = refusal_of(Event::setpoint); why != Refusal::none)
                stream_.decline(reason_of(why));
            else if (follow(now))
                return;
        }
        motion_.go_on(now);
        Setpoint<Robot> x = motion_.setpoint();
        commander_.accompany(x);
        if (commander_.accept(x, now, Leader::target)) {
            watchdog_.feed();
            return;
        }
        // Brake from the last command within the limits of targets if there is room; other stops may overrun position limits.
        const State<n> from = state_of(stream_.last());
        if (commander_.parameters.limits != LimitPolicy::refuse || motion_.can_take_over(from))
            motion_.begin(from, commander_.latest);
        break_off();
    }

    void play_on(std::int64_t now) noexcept
    {
        if (stream_.received())
            stream_.decline(refusal_of(Event::setpoint));
        watchdog_.keep_away();
        halts_ = halts_ && commander_.payload_waits();
        player_.keep_pace(paused || halts_ || where_.strays() ? 0.0 : speed_scaling.load(), now, commander_.period);
        State<n> state, ahead;
        if (!player_.advance(now, state, ahead))
            return;
        Setpoint<Robot> x = commander_.robot.rest();
        take(state, x);
        commander_.accompany(x);
        const bool held = player_.changes(now) || (halts_ && player_.path_state()[1] > 0);
        if (!commander_.accept(x, now, Leader::trajectory, true, &ahead, held)) {
            break_off();
            return;
        }
        watchdog_.feed();
        player_.command();
        if (player_.has_ended()) {
            ++commander_.counts.finished;
            player_.halt();
            watchdog_.rest(x, now);
            stream_.checks.moved(x);
        }
    }

    /// Returns the index of a joint that is faster than `times` its limit, or Robot::joints.
    std::size_t fastest(const JointVector<Robot> &rate, double times = 1) const noexcept
    {
        std::size_t i = 0;
        while (i < n && !(std::fabs(rate[i]) > times * commander_.robot.jump_rate[i]))
            ++i;
        return i;
    }

    Commander<Robot> commander_;
    TrajectoryPlayer<Robot> player_;
    TargetMotion<Robot> motion_;
    Watchdog<Robot> watchdog_;
    Stream<Robot> stream_;
    Whereabouts<Robot> where_;
    StateMachine &state_machine_;
    // True after the first cycle.
    bool started_ = false;
    // Clock time of the last cycle, and clock minus loop time, ns.
    std::int64_t clock_ = 0, ahead_ = 0;
    double lost_time_ = 0;
    // Latest origins of chunks and of targets, ns.
    std::array<std::int64_t, 2> newest_{UNSTAMPED, UNSTAMPED};
    // The trajectory pauses until the pending payload has started to change.
    bool halts_ = false;
    // Contact has occurred; references are refused.
    std::atomic<bool> touched_{false};
    // Recent positions, and the target of a retraction.
    Past<Robot> past_;
    Target retreat_;
};

} // namespace eom

#endif
