// SPDX-License-Identifier: Apache-2.0
// Motions that a control loop makes beside setpoints: to targets, along trajectories, and to rest.
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

/// Motions of ControlLoop: trajectories, targets, stops, and setpoints that are followed.
template <class Robot>
class LoopMotions {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    /// Of which two are kept: the one that is played, and one that takes over later.
    Mailbox<Spline<n>, 2> trajectories;
    /// Targets, or chunks of them, in place of what leads: see OnlineTrajectory, and ControlLoop::limit().
    Mailbox<Target> targets;
    /// Pace of motions that are played, 0 to FASTEST_PACE, and whether they pause, on their paths.
    std::atomic<double> speed_scaling{1};
    std::atomic<bool> paused{false};

    explicit LoopMotions(const Robot &robot)
        : commander_(robot), player_(trajectories, commander_), motion_(commander_), watchdog_(commander_, player_, motion_),
          stream_(commander_), state_machine_(commander_.state_machine)
    {}

    // --- For hosts that answer senders of trajectories, or know of losses, in the thread of update() -----

    /// Plans the trajectory that has arrived, or whose start has come, as update(): plays it, or has it wait for its start, in
    /// place of another one that waits. Returns whether there is one that is not refused.
    bool plan(std::int64_t now, double period) noexcept
    {
        where_.ask(now);
        const bool stopped = state_machine_.braked();
        const bool found = plan_at(time_at(now), period);
        if (state_machine_.braked() && !stopped)
            watchdog_.begin_with_update();
        return found;
    }

    /// Has the trajectory that waits begin later by a time, ns, for which the clock of its start stood still.
    void delay(std::int64_t time) noexcept { player_.shift(time); }

    /// Takes the target that has arrived, if there is one, from what is commanded at a time, ns, on: as update(), before it.
    /// Returns why it was refused, and what leads stays.
    Refusal aim(std::int64_t now) noexcept
    {
        where_.ask(now);
        return aim_at(time_at(now));
    }

    /// Ends what is played and what waits, and brings the arm to rest from the last command, whatever on_setpoint_loss says;
    /// a stop under way goes on. At rest, setpoints within start_tolerance lead again, as after an empty trajectory.
    void stop(Event why = Event::stop) noexcept
    {
        if (!commander_.output.valid)
            return halt(); // a motion of which nothing has been commanded
        player_.halt();
        watchdog_.stop(why);
    }

    /// Begins the response to a loss of setpoints, by on_setpoint_loss. A trajectory continues; a target does with none.
    void lose() noexcept
    {
        watchdog_.lose();
    }

    /// Ends what is played and what waits, and the motion to a target, with the last command.
    void halt() noexcept
    {
        player_.halt();
        state_machine_.on(commander_.output.valid ? Event::halt : Event::restart);
    }

    /// Ends what waits; what leads goes on.
    void drop() noexcept
    {
        if (!playing())
            player_.halt();
    }

    /// State of the loop: see state_machine.hpp.
    const StateMachine &state_machine() const noexcept { return state_machine_; }
    /// Commands, and why they were refused; what the arm does without setpoints; and what is played, and planned.
    const Commander<Robot> &commander() const noexcept { return commander_; }
    const Watchdog<Robot> &watchdog() const noexcept { return watchdog_; }
    const TrajectoryPlayer<Robot> &player() const noexcept { return player_; }

    const LoopOutput<Robot> &output() const noexcept { return commander_.output; }
    const LoopCounts &counts() const noexcept { return commander_.counts; }
    const Reason &reason() const noexcept { return commander_.reason; }
    Refusal refusal() const noexcept { return commander_.reason.refusal; }
    const char *payload_refusal() const noexcept { return commander_.payload_refusal(); }
    /// What a plausibility check has found last.
    const Finding &finding() const noexcept { return stream_.finding; }
    /// Time of the last cycle on the clock, ns.
    std::int64_t clock() const noexcept { return clock_; }
    /// Whether a reference that is early waits for the next cycle.
    bool early() const noexcept { return stream_.early(); }
    /// By how much a motion that the loop makes, or the last one, is late, since cycles were late, s.
    double lost_time() const noexcept { return lost_time_; }
    bool playing() const noexcept { return player_.playing(); }
    bool waiting() const noexcept { return player_.waiting(); }
    /// Whether a target leads, and whether the arm rests there, where setpoints within start_tolerance lead again.
    bool aiming() const noexcept { return motion_.leads(); }
    bool arrived() const noexcept { return motion_.arrived(); }
    /// What leads in place of a trajectory, by the last cycle.
    OffPath off_path() const noexcept
    {
        if (playing() || commander_.mode() == Mode::gravity_compensation)
            return OffPath::nothing;
        if (aiming())
            return arrived() ? OffPath::nothing : OffPath::target;
        return watchdog_.fed_within(LONGEST_GAP) ? OffPath::references : OffPath::nothing;
    }
    /// What slows down the motion to targets.
    const Governor<Robot> &governor() const noexcept { return motion_.governor(); }

    /// Whether references are refused after contact.
    bool touched() const noexcept { return touched_; }

  protected:
    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::max(), UNSTAMPED = -NEVER;

    // --- Time ---------------------------------------------------------------------------

    /// Time of the loop at one of the clock, ns. While the loop moves the arm, it is at most LONGEST_RESPONSE_STEP after the
    /// last cycle; it never goes back. What waits begins by the clock, or after what is played as planned.
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

    /// Start the time of the loop at a time of the clock, ns. It is positive on each clock, since a stamp of 0 means none.
    void start_clock(std::int64_t now) noexcept
    {
        clock_ = now;
        commander_.latest = std::max<std::int64_t>(now, 1);
        ahead_ = now - commander_.latest;
    }

    // --- References ---------------------------------------------------------------------

    /// Follows the reference; returns whether it was not refused. One that is refused does not keep the timeout away.
    bool follow(std::int64_t now) noexcept
    {
        const double age = seconds(clock_ - stream_.stamp());
        const double lifespan = commander_.parameters.setpoint_lifespan;
        if (lifespan > 0 && stream_.stamp() != 0 && std::fabs(age) > lifespan) {
            commander_.refuse({Refusal::too_old, Quantity::none, 0, std::fabs(age), lifespan});
        } else if (stream_.is_early(now, clock_)) {
            // it waits for the next cycle
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

    /// The reason of a refusal by the table.
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

    /// Whether what is commanded rests.
    bool rests() const noexcept
    {
        const auto &qd = commander_.output.setpoint.qd;
        return aiming()         ? arrived()
               : state_machine_.braked() ? !state_machine_.is(Phase::stopping)
                                : std::all_of(qd.begin(), qd.end(), [](Scalar rate) { return rate == 0; });
    }

    /// Goes back along the motion just made, as to a target, unless a stop was asked for; returns whether it does.
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

    /// plan() and aim() at a time of the loop, ns.
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

    /// Whether the loop makes a motion.
    bool in_motion() const noexcept { return playing() || (aiming() && !arrived()) || state_machine_.is(Phase::stopping); }

    /// Facts for the conditions of the table; in a pause the arm stays where it is, while trajectories wait.
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
    /// Why an event is refused, by the table, or none.
    Refusal refusal_of(Event event) noexcept { return state_machine_.refusal(event, facts()); }

    /// What is commanded at a time, ns.
    State<n> commanded(std::int64_t at) const noexcept
    {
        return playing()               ? player_.state_at(at)
               : aiming()              ? motion_.state_at(at)
               : state_machine_.braked() ? watchdog_.state_after(at - commander_.latest)
                                       : state_of(stream_.moved_on(at));
    }

    /// The last setpoint, with wrenches, stiffness and motion of the base at a time of the loop, ns.
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

    /// Resets late time, stop and plausibility checks at the start of a motion.
    void begin_motion(std::int64_t now, Event why) noexcept
    {
        lost_time_ = 0;
        commander_.begin_company(accompanied(now), now);
        watchdog_.leave();
        stream_.checks.restart();
        state_machine_.on(why);
    }

    /// Aims at a target unless something bars it, at the nearest turn; returns why it was refused.
    Refusal aim(Target &x, std::int64_t now, Refusal bar, Event event = Event::target) noexcept
    {
        const std::int64_t begin = x.origin != 0 ? x.origin - ahead_ : now;
        motion_.turn(x, seconds(now - begin));
        const std::int64_t clock = now + ahead_;
        std::int64_t &newest = newest_[x.times.empty()];
        newest = newest > clock + LONGEST_GAP ? UNSTAMPED : newest; // of a clock that has gone back
        Reason why = motion_.objection(x, seconds(now - begin));
        if (why.refusal == Refusal::none)
            why = x.origin != 0 && x.origin < newest ? Refusal::older : bar;
        if (why.refusal == Refusal::none && event == Event::target)
            why = motion_.beyond_range(x);
        // One that moves on is slowed down by the governor.
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
        if (x.origin != 0) // a stamp far ahead, of another clock, does not bar all later ones
            newest = std::max(newest, std::min(x.origin, clock + LONGEST_GAP));
        return Refusal::none;
    }

    /// Aims at the target of the controller in front, if it has changed.
    void aim_as_led(std::int64_t now) noexcept
    {
        stream_.take();
        const bool changed = motion_.changes(stream_.reference());
        const Refusal bar = motion_.usable() ? refusal_of(Event::target) : Refusal::not_finite;
        if (bar == Refusal::stopping) // it counts once the arm rests
            motion_.forget_pursued();
        else if (changed && aim(motion_.pursued(), now, bar) != Refusal::none)
            motion_.forget_pursued();
    }

    /// Whether a target may begin: what leads now may brake harder before limits of positions that are refused than it does.
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
        if (brakes) // a host that plans itself aims before the cycle
            motion_.advance(std::clamp<std::int64_t>(now - commander_.latest, 0, LONGEST_RESPONSE_STEP));
        player_.halt();
        begin_motion(now, event);
        brakes ? motion_.lead(now) : motion_.begin(from, now);
    }

    /// Ends what leads and what waits, and brings the arm to rest from a setpoint, for an event.
    void end_motion(const Setpoint<Robot> &from, Event why, std::int64_t now = 0) noexcept
    {
        if (playing() || aiming())
            watchdog_.brake(from, why, true, now);
        else
            state_machine_.on(why);
        player_.halt();
    }

    /// Comes to rest where a command is refused.
    void break_off() noexcept
    {
        commander_.output.status = Status::held;
        // Where limits refuse what accompanies a motion, it must not go on.
        Setpoint<Robot> x = stream_.last();
        x.Wd = x.Wdd = {};
        x.kd = x.kdd = {};
        commander_.begin_company(x, commander_.latest);
        end_motion(x, Event::break_off);
        wait();
    }

    /// Goes on towards the target.
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
        // It brakes from the last command, within its own limits where there is room: any other stop may pass those of positions.
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
    // Whether there was a cycle; time of the last one on the clock, that less the time of the loop, ns, and what motions have lost, s.
    bool started_ = false;
    std::int64_t clock_ = 0, ahead_ = 0;
    double lost_time_ = 0;
    // Latest origins of chunks and of targets, ns.
    std::array<std::int64_t, 2> newest_{UNSTAMPED, UNSTAMPED};
    // Whether the motion that is played pauses until the payload that waits has begun.
    bool halts_ = false;
    // Whether there was contact; where the arm came from, and would go.
    std::atomic<bool> touched_{false};
    Past<Robot> past_;
    Target retreat_;
};

} // namespace eom

#endif
