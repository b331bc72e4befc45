// SPDX-License-Identifier: Apache-2.0
// One cycle of a controller around the feedforward: references in, commands of joints and motors out.
#ifndef EOM_CONTROL_LOOP_HPP
#define EOM_CONTROL_LOOP_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "commander.hpp"
#include "contact.hpp"
#include "mailbox.hpp"
#include "plausibility.hpp"
#include "target_motion.hpp"
#include "trajectory_player.hpp"
#include "watchdog.hpp"

namespace eom {

/// The loop. update() neither allocates nor locks nor throws, and takes a bounded time.
///
/// One other thread may send setpoints and trajectories by the mailboxes. All times are those of one clock, in ns; within the
/// loop, time passes as on the clock, but by at most LONGEST_RESPONSE_STEP in a cycle of a motion that the loop makes.
template <class Robot>
class ControlLoop {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;

    /// Largest velocity of an arm at rest, rad/s or m/s.
    static constexpr double STANDSTILL = 0.01;

    Mailbox<StampedSetpoint<Robot>> setpoints;
    /// Of which two are kept: the one that is played, and one that takes over later.
    Mailbox<Spline<n>, 2> trajectories;
    /// What the tools carry from the next setpoint on; a refused one is counted, see payload_refusal().
    Mailbox<Payload<Robot>> payloads;
    /// Targets, or chunks of them, in place of what leads: see OnlineTrajectory, and limit().
    Mailbox<Target> targets;
    /// Pace of motions that are played, 0 to FASTEST_PACE, and whether they pause, on their paths.
    std::atomic<double> speed_scaling{1};
    std::atomic<bool> paused{false};
    /// Who leads the arm: changed without a step of efforts, once what is measured suffices.
    std::atomic<Mode> mode{Mode::position};

    explicit ControlLoop(const Robot &robot) noexcept
        : commander_(robot), player_(trajectories, commander_), motion_(commander_), watchdog_(commander_, player_, motion_),
          checks_(robot)
    {
        reference_.setpoint = robot.rest();
        configure(commander_.parameters);
    }

    /// Takes parameters, in the ranges of the node's; returns what is wrong with them, or null. Not while the loop runs.
    const char *configure(const LoopParameters<Robot> &parameters) noexcept
    {
        if (const char *reason = eom::objection(parameters, commander_.robot))
            return reason;
        if (parameters.mode != commander_.parameters.mode)
            mode = parameters.mode;
        commander_.configure(parameters);
        watchdog_.configure(parameters.setpoint_timeout);
        checks_.configure(parameters);
        return nullptr;
    }

    /// Takes limits of the motion to targets, for each joint; returns what is wrong with them, or null. Allocates; not while
    /// the loop runs.
    const char *limit(const std::vector<MotionLimits> &limits, bool synchronised = false)
    {
        retreat_.resize(limits.size());
        checks_.limit(limits);
        return motion_.configure(limits, synchronised);
    }

    /// Forgets all references, and holds the measured position, or comes to rest from the measured motion; without a
    /// measurement, there is no command. Returns why there is none, or null.
    ///
    /// With a time, ns, of less than LONGEST_GAP after the last cycle, of an arm that follows its command, this comes to
    /// rest from the command: a controller manager restarts a controller when that in front of it is switched.
    const char *restart(const Measurement<Robot> &measured, std::int64_t now = NEVER) noexcept
    {
        setpoints.take();
        trajectories.take();
        targets.take();
        paused = false;
        touched_ = false;
        past_.restart();
        mode = commander_.parameters.mode;
        blind_ = 0;
        blinded_ = false;
        unmeasured_ = 0;
        commander_.counts = {};
        commander_.reason = {};
        finding_ = {};
        checks_.restart();
        leads_ = {};
        received_ = false;
        motion_.forget_pursued();
        newest_ = {};
        watchdog_.restart();
        halt();
        // The clock of a node may lag behind that of the manager.
        const bool recent = started_ && now != NEVER && std::abs(now - clock_) < LONGEST_GAP;
        const double ago = recent ? seconds(std::max<std::int64_t>(now - clock_, 0)) : 0;
        if (recent && commander_.output.valid && !watchdog_.released() &&
            follows(commander_.output, commander_.unshifted(measured), farthest(), commander_.parameters.command_lead + ago,
                    ago > 2 * commander_.period)) {
            if (!watchdog_.stopping())
                watchdog_.begin_stop(commander_.output.setpoint);
            watchdog_.keep_stopping();
            return nullptr;
        }
        sent_at_ = moved_at_ = LONG_AGO;
        started_ = false;
        if (now != NEVER)
            commander_.latest = clock_ = now;
        return begin_at(measured, commander_.robot.rest(), true, recent);
    }

    /// Has what begins at a time, ns, begin where the arm is. After LONGEST_GAP without a command, and where all ends, an arm
    /// measured further than start_tolerance and @elsewhere@ rad or m from the last command is held where it is measured. While
    /// commands go on, at rest for LONGEST_GAP, it does not follow: in a cycle of this time no target or trajectory begins,
    /// and none that stands still goes on; nor does any where what is measured has jumped, which may be a wrong sample, within
    /// this time. update() does so with references and modes; hosts do before they plan, aim or stop. Returns whether the arm
    /// does not follow.
    bool locate(std::int64_t now, const Measurement<Robot> &measured, bool ends = false) noexcept
    {
        if (now < sent_at_) { // the clock was set back
            moved_at_ -= sent_at_ - now;
            sent_at_ = now;
        }
        const bool idle = now - sent_at_ > LONGEST_GAP, rested = sent_at_ - moved_at_ > LONGEST_GAP;
        const bool moves = playing() || (aiming() && !arrived()) || commander_.output.status == Status::stopping;
        if (commander_.mode() != Mode::position || !commander_.output.valid || watchdog_.released() ||
            !(idle ? !moves : rested) || !is_elsewhere(commander_.unshifted(measured)))
            return false;
        const bool doubtful = idle && !ends && now - seen_at_ < LONGEST_GAP && (steady_ < LONGEST_GAP || jumps(measured));
        if (!idle || doubtful)
            strays_ = now;
        if (moves || doubtful || !(idle || ends))
            return true;
        const Setpoint<Robot> &last = commander_.output.setpoint;
        Setpoint<Robot> x = commander_.robot.rest();
        x.k = last.k;
        x.base = last.base;
        x.on_base = last.on_base;
        if (aiming()) // no setpoints are lost
            watchdog_.restart();
        motion_.halt();
        checks_.restart();
        past_.restart();
        begin_at(measured, x, false);
        return false;
    }

    /// What is sent last when the loop is switched off: Commander::release. Efforts that fade, or have faded, do not come
    /// back.
    const DriveCommand<Robot> &release(const Measurement<Robot> &measured) noexcept
    {
        return commander_.release(measured, watchdog_.fades());
    }

    /// Takes the reference of the next cycle, in the thread of update().
    ///
    /// With one of a controller in front, which writes its own in each cycle, trajectories are refused: after them, its
    /// references would be followed again, from wherever they are.
    void refer(const Setpoint<Robot> &reference, std::int64_t stamp, bool of_controller = false) noexcept
    {
        reference_.setpoint = reference;
        reference_.stamp = stamp;
        received_ = arrives_ = true;
        led_ = of_controller;
        pursues_ = false;
    }

    /// Takes position to acceleration of a setpoint as the target of the next cycle, of a controller in front: NaN where the
    /// target of a joint stays. One that repeats is that of the cycles before.
    void pursue(const Setpoint<Robot> &target) noexcept
    {
        refer(target, 0, true);
        pursues_ = true;
    }

    /// Takes the latest setpoint of the mailbox as the reference, if there is a new one; returns whether there was.
    bool refer_to_mailbox() noexcept
    {
        if (!setpoints.take())
            return false;
        refer(setpoints.taken().setpoint, setpoints.taken().stamp);
        return true;
    }

    /// Takes what the tools carry from the next setpoint on, in the thread of update(), as Commander::carry; from a pause on
    /// where limits that are refused do not allow the rest of the motion that is played with it.
    template <class... Changed>
    const char *carry(const Measurement<Robot> &measured, const Changed &...changed) noexcept
    {
        if (const char *reason = commander_.carry(measured, changed...))
            return reason;
        halts_ = commander_.loaded() && !player_.carries(commander_.latest);
        return nullptr;
    }

    /// Time at which the position commanded last has changed, ns.
    std::int64_t moved_at() const noexcept { return moved_at_; }

    /// The reference taken last.
    const Setpoint<Robot> &reference() const noexcept { return reference_.setpoint; }

    /// A cycle at a time, ns, of a period, s; 0 where it is not known.
    ///
    /// Before the first setpoint, and without a measured position at restart(), a trajectory has no commanded position
    /// to continue from: it is played as it is, and there is no command until it starts. A host that plans itself, and
    /// ends motions where its clock goes back, says so.
    const LoopOutput<Robot> &update(std::int64_t now, double period, const Measurement<Robot> &measured,
                                    bool hosted = false) noexcept
    {
        ++commander_.counts.cycles;
        const std::int64_t time = time_at(now), passed = now - clock_;
        // Where the clock goes back, the command is a new one all the same.
        const std::int64_t step = std::clamp<std::int64_t>(passed, passed < 0 ? 1 : 0, LONGEST_RESPONSE_STEP);
        clock_ = now;
        watchdog_.pass(std::max<std::int64_t>(passed, 0));
        if (passed < -LARGEST_CORRECTION && (playing() || waiting()) && !hosted)
            playing() ? end_motion(commander_.output.setpoint) : player_.halt();
        commander_.pass(time, step, passed);
        commander_.period = period > 0 ? period : 1e-3; // else no stop would ever be found
        asked_at_ = now;
        steady_ = jumps(measured) ? 0 : std::min(steady_ + step, LONGEST_GAP);
        const bool begins = (received_ && commander_.parameters.jump_check != CheckPolicy::ignore) || mode != commander_.mode();
        if (!hosted || begins)
            locate(now, measured);
        const std::uint64_t followed = commander_.counts.followed;
        if (payloads.take())
            carry(measured, payloads.taken());
        if (!hosted)
            plan_at(time, period);
        aim_at(time);
        if (received_ && pursues_)
            pursue(time);
        keep_mode(step, measured);
        if (commander_.mode() == Mode::gravity_compensation)
            be_led();
        else if (playing())
            play_on(time);
        else if (aiming())
            aim_on(time);
        else if (!received_ || !follow(time)) {
            wait();
            blend(step);
        }
        received_ = std::exchange(waits_, false);
        if (measured.links || measured.motors)
            seen_ = measured, seen_at_ = now;
        if (commander_.output.valid) {
            commander_.complete(measured);
            if (!hosted || commander_.counts.followed != followed || commander_.mode() != Mode::position)
                note_sent(now);
            if (commander_.parameters.on_contact == ContactReaction::retract)
                past_.record(time, commander_.output.setpoint.q);
        }
        return commander_.output;
    }

    // --- Contact ------------------------------------------------------------------------

    /// Reacts to contact, by on_contact, and refuses references until it has ended and the arm rests, or until resume().
    void react() noexcept
    {
        ++commander_.counts.contacts;
        const ContactReaction reaction = commander_.parameters.on_contact;
        if (reaction == ContactReaction::ignore || commander_.mode() == Mode::gravity_compensation)
            return;
        touched_ = true;
        if (reaction == ContactReaction::hold && playing())
            paused = true;
        else if (reaction != ContactReaction::retract || !retract())
            stop();
    }

    /// Contact has ended: references are followed again, once the arm rests, unless the loop is to be switched off.
    void leave_contact() noexcept
    {
        if (commander_.parameters.on_contact != ContactReaction::deactivate && rests())
            touched_ = false;
    }

    /// Ends the pause of motions that are played, and follows references again, whether contact has ended or not.
    void resume() noexcept { paused = touched_ = false; }

    /// Whether the last mode has ended, or another one has not begun, for lack of measurements.
    bool blinded() const noexcept { return blinded_; }

    /// Whether references are refused after contact.
    bool touched() const noexcept { return touched_; }

    // --- For hosts that answer senders of trajectories, or know of losses, in the thread of update() -----

    /// Plans the trajectory that has arrived, or whose start has come, as update(): plays it, or has it wait for its start, in
    /// place of another one that waits. Returns whether there is one that is not refused.
    bool plan(std::int64_t now, double period) noexcept
    {
        asked_at_ = now;
        const bool stopped = watchdog_.stopping();
        const bool found = plan_at(time_at(now), period);
        if (watchdog_.stopping() && !stopped)
            watchdog_.begin_with_update();
        return found;
    }

    /// Has the trajectory that waits begin later by a time, ns, for which the clock of its start stood still.
    void delay(std::int64_t time) noexcept { player_.shift(time); }

    /// Takes the target that has arrived, if there is one, from what is commanded at a time, ns, on: as update(), before it.
    /// Returns why it was refused, and what leads stays.
    Refusal aim(std::int64_t now) noexcept
    {
        asked_at_ = now;
        return aim_at(time_at(now));
    }

    /// Ends what is played and what waits, and brings the arm to rest from the last command, whatever on_setpoint_loss says;
    /// a stop under way goes on. At rest, setpoints within resume_distance lead again, as after an empty trajectory.
    void stop() noexcept
    {
        halt();
        watchdog_.stop();
    }

    /// Begins the response to a loss of setpoints, by on_setpoint_loss, unless a trajectory is played.
    void lose() noexcept
    {
        motion_.halt();
        if (!playing())
            watchdog_.lose();
    }

    /// Ends what is played and what waits, and the motion to a target, with the last command.
    void halt() noexcept
    {
        player_.halt();
        motion_.halt();
    }

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
    const Finding &finding() const noexcept { return finding_; }
    bool blending() const noexcept { return commander_.blending(); }
    /// Time of the last cycle on the clock, ns.
    std::int64_t clock() const noexcept { return clock_; }
    /// Whether a reference that is early waits for the next cycle.
    bool early() const noexcept { return received_ && !arrives_; }
    /// By how much a motion that the loop makes, or the last one, is late, since cycles were late, s.
    double lost_time() const noexcept { return lost_time_; }
    bool playing() const noexcept { return player_.playing(); }
    bool waiting() const noexcept { return player_.waiting(); }
    /// Whether a target leads, and whether the arm rests there, where setpoints within resume_distance lead again.
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

  private:
    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::max(), LONG_AGO = -(NEVER / 2);

    // --- Time ---------------------------------------------------------------------------

    /// Time of the loop at one of the clock, ns. While the loop moves the arm, it is at most LONGEST_RESPONSE_STEP after the
    /// last cycle; it never goes back. What waits begins by the clock, or after what is played as planned.
    std::int64_t time_at(std::int64_t now) noexcept
    {
        if (!started_) {
            commander_.latest = clock_ = now;
            ahead_ = 0;
            started_ = true;
        }
        std::int64_t &latest = commander_.latest;
        const std::int64_t before = ahead_;
        const bool moves = playing() || (aiming() && !arrived()) || watchdog_.moves();
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

    // --- References ---------------------------------------------------------------------

    /// Follows the reference; returns whether it was not refused. One that is refused does not keep the timeout away.
    bool follow(std::int64_t now) noexcept
    {
        const double age = seconds(clock_ - reference_.stamp);
        const double lifespan = commander_.parameters.setpoint_lifespan;
        if (lifespan > 0 && reference_.stamp != 0 && std::fabs(age) > lifespan) {
            commander_.refuse({Refusal::too_old, Quantity::none, 0, std::fabs(age), lifespan});
        } else if (is_early(now)) {
            waits_ = true;
        } else if (touched_) {
            commander_.refuse(Refusal::in_contact);
            commander_.output.status = Status::held;
        } else if (!watchdog_.resumes(reference_.setpoint.q)) {
            commander_.refuse(watchdog_.released() ? Refusal::released : far_from_hold());
        } else if (const Refusal doubt = judged(now); doubt != Refusal::none) {
            commander_.refuse(doubt);
            commander_.reason.degrees = !watchdog_.progress().fed && is_too_fast(reference_.setpoint.qd, IN_DEGREES);
            commander_.output.status = Status::held;
        } else if (commander_.accept(reference_.setpoint, reference_.stamp, Leader::setpoints)) {
            checks_.answered(reference_.stamp, reference_.setpoint);
            watchdog_.feed();
            watchdog_.resume();
            player_.leave();
            interval_ = now - followed_;
            followed_ = now;
            return true;
        } else {
            commander_.reason.degrees = commander_.reason.degrees && !watchdog_.progress().fed;
            commander_.output.status = Status::held;
        }
        return false;
    }

    /// Refuses the reference while another source leads; one that has waited is forgotten, as it is not of this cycle.
    void decline(const Reason &why) noexcept
    {
        if (arrives_)
            commander_.refuse(why);
    }

    /// Whether the stamp of the reference runs ahead of its arrival, so that it waits for the next cycle, by stamp_check.
    bool is_early(std::int64_t now) noexcept
    {
        const CheckPolicy policy = commander_.parameters.stamp_check;
        if (policy == CheckPolicy::ignore || reference_.stamp == 0 || !leads_.is_early(reference_.stamp - clock_, now, arrives_))
            return false;
        commander_.counts.early += std::exchange(arrives_, false);
        return policy == CheckPolicy::refuse;
    }

    /// Why the reference is refused before anything is computed, or by the plausibility checks, if it is.
    Refusal judged(std::int64_t now) noexcept
    {
        commander_.resuming = 0;
        if (const Refusal why = commander_.objection(reference_.setpoint); why != Refusal::none)
            return why;
        const bool is_near = watchdog_.holds() || aiming(); // it was checked before
        if (is_near)
            commander_.resuming = commander_.parameters.resume_distance;
        // By its own time, where its stamp goes back: what was refused as the clock was set back counts as well.
        const std::int64_t since = now - followed_ + std::max<std::int64_t>(interval_, 0);
        return checks_.judge(reference_.stamp, since, reference_.setpoint, is_near, commander_.counts, finding_);
    }

    /// The joint of the reference that is furthest from where the arm is held; none where it is near, in a stop that was asked for.
    EOM_SELDOM Reason far_from_hold() const noexcept
    {
        Reason why(Refusal::far_from_hold);
        for (std::size_t i = 0; i < n; ++i) {
            const double away = std::fabs(reference_.setpoint.q[i] - commander_.output.setpoint.q[i]);
            if (!(away <= std::max(commander_.parameters.resume_distance, why.value)))
                why = {Refusal::far_from_hold, Quantity::position, i, away, commander_.parameters.resume_distance};
        }
        return why;
    }

    void wait() noexcept
    {
        if (watchdog_.wait())
            checks_.moved(commander_.output.setpoint);
        if (touched_ && commander_.parameters.on_contact == ContactReaction::deactivate && rests())
            commander_.output.status = Status::lost;
    }

    /// At rest, efforts pass to another payload also where references have ended: the last one is repeated.
    void blend(std::int64_t step) noexcept
    {
        const bool ended = std::abs(commander_.latest - followed_) > LONGEST_GAP;
        if (commander_.blending() && commander_.output.valid && ended && !watchdog_.stopping() && rests())
            commander_.repeat(step);
    }

    /// Whether what is commanded rests.
    bool rests() const noexcept
    {
        const auto &qd = commander_.output.setpoint.qd;
        return aiming()                ? arrived()
               : watchdog_.stopping() ? commander_.output.status != Status::stopping
                                      : std::all_of(qd.begin(), qd.end(), [](Scalar rate) { return rate == 0; });
    }

    /// Goes back along the motion just made, as to a target, unless a stop was asked for; returns whether it does.
    bool retract() noexcept
    {
        const JointVector<Robot> *const back = past_.oldest();
        if (!back || !motion_.limited() || !commander_.output.valid || watchdog_.released() || watchdog_.asked())
            return false;
        Target &x = retreat_;
        std::copy_n(back->begin(), x.positions.size(), x.positions.begin());
        return aim(x, commander_.latest, Refusal::none) == Refusal::none;
    }

    // --- Modes --------------------------------------------------------------------------

    /// Changes the mode where another one is wanted, or nothing has been measured for too long.
    void keep_mode(std::int64_t step, const Measurement<Robot> &measured) noexcept
    {
        const auto unmeasured = commander_.counts.unmeasured;
        blind_ = unmeasured > unmeasured_ ? blind_ + step : 0;
        unmeasured_ = unmeasured;
        const Mode before = commander_.mode();
        blinded_ = blinded_ && before == Mode::position;
        if (blind_ > LONGEST_GAP && before != Mode::position) {
            blinded_ = true;
            mode = Mode::position;
        }
        const Mode wanted = mode;
        if (wanted == before || !commander_.output.valid)
            return;
        if (steady_ < LONGEST_GAP || !commander_.change(wanted, measured)) {
            ++commander_.counts.unmeasured;
            return;
        }
        const auto &links = commander_.impedance().links();
        if (wanted == Mode::gravity_compensation) {
            halt();
            watchdog_.resume();
            commander_.output.setpoint.q = links;
        } else if (before == Mode::gravity_compensation ||
                   (wanted == Mode::position && !watchdog_.is_near(links, commander_.parameters.start_tolerance))) {
            halt();
            watchdog_.resume();
            Setpoint<Robot> x = commander_.output.setpoint;
            x.q = links;
            x.qd = x.qdd = x.qddd = x.qdddd = {};
            settle(x, blind_ > 0 ? JointVector<Robot>{} : commander_.impedance().rates(), false);
            watchdog_.hold(commander_.output.setpoint);
        }
    }

    /// A cycle in which hands lead.
    void be_led() noexcept
    {
        if (received_ && !led_)
            decline(Refusal::led_by_hand);
        watchdog_.keep_away();
        commander_.be_led();
        checks_.moved(commander_.output.setpoint);
    }

    // --- Trajectories and targets -------------------------------------------------------

    /// plan() and aim() at a time of the loop, ns.
    bool plan_at(std::int64_t now, double period) noexcept
    {
        if (player_.begin_waiting(now))
            begin_trajectory(now);
        if (!player_.take_next(now))
            return false;
        if (player_.stops()) {
            Setpoint<Robot> from = commander_.output.setpoint;
            if (playing() || aiming())
                take(commanded(now), from);
            end_motion(from, true, now);
            return false;
        }
        const Plan<n> *const found =
            player_.plan(now, ahead_, period, barred(), [this](std::int64_t at) { return commanded(at); });
        const double pace = paused ? 0 : std::min(speed_scaling.load(), 1.0);
        if (!found)
            return false;
        if (!found->waits && commander_.loaded() && !player_.plan_carries(pace)) {
            player_.drop(Refusal::over_limits);
            return false;
        }
        if (player_.play())
            begin_trajectory(now);
        return true;
    }
    Refusal aim_at(std::int64_t now) noexcept
    {
        return targets.take() ? aim(targets.taken(), now, target_barred()) : Refusal::none;
    }

    /// Why neither trajectories nor targets may lead, if so.
    Refusal barred() const noexcept
    {
        return touched_                                           ? Refusal::in_contact
               : received_ && led_                                ? Refusal::led
               : watchdog_.released()                             ? Refusal::released
               : commander_.mode() == Mode::gravity_compensation ? Refusal::led_by_hand
               : strays_ == asked_at_                            ? Refusal::elsewhere
                                                                  : Refusal::none;
    }

    /// Why no target may lead, if so: in a pause the arm stays where it is, while trajectories wait.
    Refusal target_barred() const noexcept { return paused ? Refusal::paused : barred(); }

    /// What is commanded at a time, ns.
    State<n> commanded(std::int64_t at) const noexcept
    {
        return playing()               ? player_.state_at(at)
               : aiming()              ? motion_.state_at(at)
               : watchdog_.stopping() ? watchdog_.state_after(at - commander_.latest)
                                       : state_of(moved_on(at));
    }

    /// The last command; at rest where setpoints have ended, or a motion of the loop was left.
    Setpoint<Robot> last() const noexcept
    {
        if (commander_.leader() != Leader::setpoints && !commander_.stands())
            return commander_.output.setpoint;
        const bool ended = std::abs(commander_.latest - followed_) > LONGEST_GAP;
        return moved_on(ended ? commander_.latest : followed_);
    }
    /// The setpoint of references at a time, ns: until the next one it moves on as the last one; where they have ended, it
    /// is held at rest.
    Setpoint<Robot> moved_on(std::int64_t now) const noexcept
    {
        Setpoint<Robot> x = commander_.output.setpoint;
        State<n> state = state_of(x);
        quiet(state, commander_.parameters.stop_duration);
        eom::take(state, x);
        const std::int64_t gap = now - followed_;
        if (std::abs(gap) > LONGEST_GAP || commander_.leader() != Leader::setpoints) { // or a motion of the loop was left
            x.qd = x.qdd = x.qddd = x.qdddd = x.kd = x.kdd = {};
            x.Wd = x.Wdd = {};
            x.base.wd = x.base.wdd = x.base.wddd = x.base.fd = x.base.fdd = {};
        } else {
            advance(x, static_cast<Scalar>(seconds(std::max<std::int64_t>(std::min(gap, interval_), 0))));
        }
        return x;
    }

    /// The last setpoint, with wrenches, stiffness and motion of the base at a time of the loop, ns.
    Setpoint<Robot> accompanied(std::int64_t now) const noexcept
    {
        const Leader leader = commander_.leader();
        if (leader == Leader::setpoints)
            return moved_on(now);
        Setpoint<Robot> x = commander_.output.setpoint;
        if (leader == Leader::stop)
            watchdog_.accompany(x, now - commander_.latest);
        else if (leader == Leader::trajectory || leader == Leader::target)
            commander_.accompany(x, now - commander_.latest);
        return x;
    }

    /// Of what happened before, nothing matters any more.
    void begin_trajectory(std::int64_t now) noexcept
    {
        lost_time_ = 0;
        commander_.begin_company(accompanied(now), now);
        motion_.halt();
        watchdog_.resume();
        checks_.restart();
    }

    /// Aims at a target unless something bars it, at the nearest turn; returns why it was refused.
    Refusal aim(Target &x, std::int64_t now, Refusal bar) noexcept
    {
        const std::int64_t begin = x.origin != 0 ? x.origin - ahead_ : now;
        motion_.turn(x, seconds(now - begin));
        const auto at = [&](double t) { return seconds(begin - now) + t; };
        std::int64_t &newest = newest_[x.times.empty()];
        Refusal why = !motion_.limited()                                     ? Refusal::unlimited
                      : !commander_.output.valid                             ? Refusal::from_nothing
                      : x.origin != 0 && x.origin < newest                   ? Refusal::older
                      : x.times.empty()                                      ? bar
                      : at(x.times.front()) > LONGEST_START_DELAY            ? Refusal::too_far_ahead
                      : at(x.times.back()) < -seconds(LATEST_CHUNK)            ? Refusal::ended
                                                                             : bar;
        // One that moves on is slowed down by the governor.
        bool rests = true;
        for (std::size_t i = 0; i < x.velocities.size(); ++i)
            rests = rests && !x.moves_on(i);
        if (why == Refusal::none && rests && !commander_.holds(motion_.rest_of(x))) {
            motion_.stay();
            why = Refusal::overload;
        }
        if (why == Refusal::none && !has_room(now))
            why = Refusal::no_room;
        if (why != Refusal::none) {
            commander_.refuse(why == Refusal::overload ? commander_.overload() : why);
            return why;
        }
        if (!aiming())
            begin_target(now);
        motion_.take(x, begin, now);
        // The stamp of a target that is far ahead, of another clock, must not bar all later ones.
        newest = std::max(newest, x.times.empty() ? std::min(x.origin, now + ahead_ + LONGEST_GAP) : x.origin);
        return why;
    }

    /// Aims at the target of the controller in front, if it has changed.
    void pursue(std::int64_t now) noexcept
    {
        received_ = false;
        const bool changed = motion_.changes(reference_.setpoint);
        const Refusal bar = motion_.usable() ? target_barred() : Refusal::not_finite;
        if (changed && aim(motion_.pursued(), now, bar) != Refusal::none)
            motion_.forget_pursued();
    }

    /// Whether a target may begin: what leads now may brake harder before limits of positions that are refused than it does.
    bool has_room(std::int64_t now) noexcept
    {
        if (aiming() || watchdog_.brakes() || commander_.parameters.limits != LimitPolicy::refuse)
            return true;
        return motion_.has_room(commanded(now));
    }

    void begin_target(std::int64_t now) noexcept
    {
        const bool brakes = watchdog_.brakes();
        const State<n> from = commanded(now);
        if (brakes) // a host that plans itself aims before the cycle
            motion_.advance(std::clamp<std::int64_t>(now - commander_.latest, 0, LONGEST_RESPONSE_STEP));
        player_.halt();
        begin_trajectory(now);
        brakes ? motion_.lead(now) : motion_.begin(from, now);
    }

    /// Ends what leads and what waits, and brings the arm to rest from a setpoint; whether that was asked for.
    void end_motion(const Setpoint<Robot> &from, bool asked = false, std::int64_t now = 0) noexcept
    {
        if (playing() || aiming())
            watchdog_.hold(from, asked, now);
        halt();
    }

    /// Comes to rest where a command is refused.
    void break_off() noexcept
    {
        commander_.output.status = Status::held;
        // Where limits refuse what accompanies a motion, it must not go on.
        Setpoint<Robot> x = last();
        x.Wd = x.Wdd = {};
        x.kd = x.kdd = {};
        commander_.begin_company(x, commander_.latest);
        watchdog_.hold(x);
        halt();
        wait();
    }

    /// Goes on towards the target.
    void aim_on(std::int64_t now) noexcept
    {
        if (received_) {
            if (!arrived() || !watchdog_.is_near(reference_.setpoint.q)) {
                decline(arrived() ? far_from_hold() : Refusal::aiming);
            } else if (follow(now)) {
                motion_.halt();
                return;
            }
        }
        motion_.go_on(now);
        Setpoint<Robot> x = motion_.setpoint();
        commander_.accompany(x);
        if (commander_.accept(x, now, Leader::target)) {
            watchdog_.feed();
            return;
        }
        // It brakes from the last command, within its own limits where there is room: any other stop may pass those of positions.
        const State<n> from = state_of(last());
        if (commander_.parameters.limits != LimitPolicy::refuse || motion_.has_room(from))
            motion_.begin(from, commander_.latest);
        break_off();
    }

    void play_on(std::int64_t now) noexcept
    {
        if (received_)
            decline(Refusal::busy);
        watchdog_.keep_away();
        halts_ = halts_ && commander_.payload_waits();
        player_.keep_pace(paused || halts_ || strays_ == asked_at_ ? 0.0 : speed_scaling.load(), now, commander_.period);
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
            checks_.moved(x);
        }
    }

    // --- Measurements -------------------------------------------------------------------

    /// Largest distance of an arm that is where it was commanded, rad or m.
    double farthest() const noexcept { return std::max(commander_.parameters.start_tolerance, @elsewhere@); }

    /// Whether an arm at rest is away from its command: by its motors, which a push leaves there, or else by its links.
    bool is_elsewhere(const Measurement<Robot> &measured) const noexcept
    {
        const double most = farthest();
        const auto &y = commander_.output;
        return measured.motors ? finite(measured.motor_position) && apart(measured.motor_position, y.command.motor_position, most)
                               : measured.links && finite(measured.q) && apart(measured.q, y.setpoint.q, most);
    }

    /// Whether what is measured is away from where it was in the last cycle: a wrong sample, or an arm that was moved.
    bool jumps(const Measurement<Robot> &measured) const noexcept
    {
        return (measured.motors && seen_.motors && apart(measured.motor_position, seen_.motor_position, Impedance<Robot>::JUMP)) ||
               (measured.links && seen_.links && apart(measured.q, seen_.q, Impedance<Robot>::JUMP));
    }

    /// Notes that the output is sent at a time, ns.
    void note_sent(std::int64_t now) noexcept
    {
        if (moved_at_ == LONG_AGO || apart(commander_.output.setpoint.q, stays_, AT_REST)) {
            moved_at_ = now;
            stays_ = commander_.output.setpoint.q;
        }
        sent_at_ = now;
    }

    /// Forgets commands, and begins at the measured motion, with the rest of a setpoint; returns why not, or null.
    const char *begin_at(const Measurement<Robot> &measured, const Setpoint<Robot> &x, bool refusable,
                         bool passes = false) noexcept
    {
        commander_.forget(passes);
        watchdog_.resume();
        const char *reason = measured.links || measured.motors ? start(measured, x, refusable) : nullptr;
        if (!commander_.output.valid)
            return reason;
        checks_.moved(commander_.output.setpoint);
        commander_.complete(measured);
        return reason;
    }

    /// Makes the measured motion the present one, and begins a stop where it is one; returns why not, or null.
    const char *start(const Measurement<Robot> &measured, Setpoint<Robot> x, bool refusable) noexcept
    {
        if (measured.links) {
            x.q = measured.q;
            x.qd = measured.qd;
            if (is_too_fast(x.qd)) {
                if (refusable)
                    return "a joint is measured faster than its limit of velocity: check the units of its sensor";
                x.qd = {};
            }
        } else if (!commander_.find_links(measured, x)) {
            return "gravity and springs have no equilibrium at the measured position of the motors: measure links, too";
        }
        settle(x, JointVector<Robot>(x.qd), refusable);
        commander_.output.status = watchdog_.stopping() ? Status::stopping : Status::waiting;
        return nullptr;
    }

    bool is_too_fast(const JointVector<Robot> &rate, double times = 1) const noexcept
    {
        for (std::size_t i = 0; i < Robot::joints; ++i)
            if (std::fabs(rate[i]) > times * commander_.robot.jump_rate[i])
                return true;
        return false;
    }

    /// Makes a position the present one, and begins a stop where its rate is a motion; unless it may be refused, whatever limits
    /// say.
    void settle(Setpoint<Robot> &x, const JointVector<Robot> &rate, bool refusable = true) noexcept
    {
        const bool moves = finite(rate) && std::any_of(rate.begin(), rate.end(), [](Scalar entry) {
                               return std::fabs(static_cast<double>(entry)) > STANDSTILL;
                           });
        x.qd = moves ? rate : JointVector<Robot>{};
        if (commander_.accept(x, 0, Leader::hands, refusable && !moves) && moves)
            watchdog_.begin_stop(commander_.output.setpoint);
    }

    Commander<Robot> commander_;
    TrajectoryPlayer<Robot> player_;
    TargetMotion<Robot> motion_;
    Watchdog<Robot> watchdog_;
    PlausibilityChecks<Robot> checks_;
    Finding finding_;
    StampedSetpoint<Robot> reference_;
    // Whether there is a reference in this cycle, of a controller in front, and whether there was a cycle.
    bool received_ = false, led_ = false, started_ = false;
    // Whether that reference is a target; whether it is new, and whether it is early and waits for the next cycle.
    bool pursues_ = false, arrives_ = false, waits_ = false;
    StampLeads leads_;
    // Time of the last cycle on the clock, that less the time of the loop, ns, and what motions have lost, s.
    std::int64_t clock_ = 0, ahead_ = 0;
    double lost_time_ = 0;
    // Latest origins of chunks and of targets, ns.
    std::array<std::int64_t, 2> newest_{};
    // Time of the last reference that was followed, and since the one before, ns.
    std::int64_t followed_ = 0, interval_ = 0;
    // Whether the motion that is played pauses until the payload that waits has begun.
    bool halts_ = false;
    // Whether there was contact; where the arm came from, and would go.
    std::atomic<bool> touched_{false};
    Past<Robot> past_;
    // Times, ns: of the last command, of the first one at its position, of the last cycle that the arm did not follow, and of the
    // last call on the clock.
    std::int64_t sent_at_ = LONG_AGO, moved_at_ = LONG_AGO, strays_ = NEVER, asked_at_ = 0;
    JointVector<Robot> stays_{};
    // What was measured last, when, ns, and for how long without a jump, ns.
    Measurement<Robot> seen_;
    std::int64_t seen_at_ = LONG_AGO, steady_ = LONGEST_GAP;
    Target retreat_;
    // Time without usable measurements where the mode needs them, ns, and their count in the last cycle.
    std::int64_t blind_ = 0;
    bool blinded_ = false;
    std::uint64_t unmeasured_ = 0;
};

} // namespace eom

#endif
