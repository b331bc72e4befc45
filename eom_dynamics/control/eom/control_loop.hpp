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

#include "loop_motions.hpp"

namespace eom {

/// The loop. update() neither allocates nor locks nor throws, and takes a bounded time.
///
/// One other thread may send setpoints and trajectories by the mailboxes. All times are those of one clock, in ns; within the
/// loop, time passes as on the clock, but by at most LONGEST_RESPONSE_STEP in a cycle of a motion that the loop makes.
template <class Robot>
class ControlLoop : public LoopMotions<Robot> {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;

    /// Largest velocity of an arm at rest, rad/s or m/s.
    static constexpr double STANDSTILL = 0.01;

    using Base = LoopMotions<Robot>;
    using Base::paused;
    using Base::targets;
    using Base::trajectories;
    using Base::aiming;
    using Base::arrived;
    using Base::playing;

    Mailbox<StampedSetpoint<Robot>> setpoints;
    /// What the tools carry from the next setpoint on; a refused one is counted, see payload_refusal().
    Mailbox<Payload<Robot>> payloads;
    /// Control mode: changed without a step of efforts, once measurements suffice.
    std::atomic<Mode> mode{Mode::position};

    explicit ControlLoop(const Robot &robot) : Base(robot) { configure(commander_.parameters); }

    /// Takes parameters, in the ranges of the node's; returns what is wrong with them, or null. Not while the loop runs.
    const char *configure(const LoopParameters<Robot> &parameters) noexcept
    {
        if (const char *reason = eom::objection(parameters, commander_.robot))
            return reason;
        if (parameters.mode != commander_.parameters.mode)
            mode = parameters.mode;
        commander_.configure(parameters);
        watchdog_.configure(parameters.setpoint_timeout);
        stream_.checks.configure(parameters);
        return nullptr;
    }

    /// Takes limits of the motion to targets, for each joint; returns what is wrong with them, or null. Allocates; not while
    /// the loop runs.
    const char *limit(const std::vector<MotionLimits> &limits)
    {
        retreat_.resize(limits.size());
        stream_.checks.limit(limits);
        return motion_.configure(limits);
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
        start_fault_ = {};
        paused = false;
        touched_ = false;
        past_.restart();
        mode = commander_.parameters.mode;
        blind_ = 0;
        blinded_ = false;
        unmeasured_ = 0;
        commander_.counts = {};
        commander_.reason = {};
        stream_.restart();
        motion_.forget_pursued();
        newest_.fill(Base::UNSTAMPED);
        watchdog_.keep_away();
        watchdog_.restart();
        player_.halt();
        // The clock of a node may lag behind that of the manager.
        const bool recent = started_ && now != NEVER && std::abs(now - clock_) < LONGEST_GAP;
        const double ago = recent ? seconds(std::max<std::int64_t>(now - clock_, 0)) : 0;
        if (recent && commander_.output.valid && !state_machine_.gone() &&
            follows(commander_.output, commander_.unshifted(measured), farthest(), commander_.robot.command_lead() + ago,
                    ago > 2 * commander_.period)) {
            if (state_machine_.braked())
                state_machine_.on(Event::restart_soon);
            else
                watchdog_.brake(commander_.output.setpoint, Event::restart_soon);
            stream_.checks.moved(commander_.output.setpoint);
            return nullptr;
        }
        where_.restart();
        started_ = false;
        if (now != NEVER)
            Base::start_clock(now);
        return begin_at(measured, commander_.robot.rest(), Event::restart, recent);
    }

    /// Has what begins at a time, ns, begin where the arm is. After LONGEST_GAP without a command, and where all ends, an arm
    /// measured further than start_tolerance and @elsewhere@ rad or m from the last command is held where it is measured. While
    /// commands go on, at rest for LONGEST_GAP, it does not follow: in a cycle of this time no target or trajectory begins,
    /// and none that stands still goes on; nor does any where what is measured has jumped, which may be a wrong sample, within
    /// this time. update() does so with references and modes; hosts do before they plan, aim or stop. Returns whether the arm
    /// does not follow.
    bool locate(std::int64_t now, const Measurement<Robot> &measured, bool ends = false) noexcept
    {
        using Place = typename Whereabouts<Robot>::Place;
        where_.follow_clock(now);
        if (commander_.mode() != Mode::position || !commander_.output.valid || state_machine_.gone())
            return false;
        const Place place = where_.look(now, commander_.output, measured, commander_.unshifted(measured), farthest(), in_motion(), ends);
        if (place != Place::moved)
            return place == Place::elsewhere;
        const Setpoint<Robot> &last = commander_.output.setpoint;
        Setpoint<Robot> x = commander_.robot.rest();
        x.k = last.k;
        x.base = last.base;
        x.on_base = last.on_base;
        if (aiming()) // no setpoints are lost
            watchdog_.keep_away();
        stream_.checks.restart();
        past_.restart();
        begin_at(measured, x, Event::located);
        return false;
    }

    /// Returns the last command when the loop is switched off, see Evaluation::release.
    const DriveCommand<Robot> &release(const Measurement<Robot> &measured) noexcept { return commander_.release(measured); }

    /// Takes the reference of the next cycle, in the thread of update().
    ///
    /// With one of a controller in front, which writes its own in each cycle, trajectories are refused: after them, its
    /// references would be followed again, from wherever they are.
    void refer(const Setpoint<Robot> &reference, std::int64_t stamp, bool of_controller = false) noexcept
    {
        stream_.refer(reference, stamp, of_controller ? Sender::controller : Sender::other);
    }

    /// Takes position to acceleration of a setpoint as the target of the next cycle, of a controller in front: NaN where the
    /// target of a joint stays. One that repeats is that of the cycles before.
    void pursue(const Setpoint<Robot> &target) noexcept { stream_.refer(target, 0, Sender::controller_with_targets); }

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
        const JointVector<Robot> *links = nullptr; // where it is commanded
        if (commander_.mode() != Mode::position)
            links = &commander_.impedance().links();
        else if (!commander_.output.valid && measured.links && finite(measured.q))
            links = &measured.q;
        if (const char *reason = commander_.carry(links, changed...))
            return reason;
        state_machine_.on(Event::payload);
        halts_ = commander_.loaded() && !player_.carries(commander_.latest);
        return nullptr;
    }

    /// A sample of what is measured contradicts the ones before, and was left out.
    void doubt() noexcept { where_.doubt(); }

    /// Whether a payload changes, or springs settle under it at rest.
    bool blending() const noexcept { return commander_.blending() || settling_ > 0; }

    /// Time at which the position commanded last has changed, ns.
    std::int64_t moved_at() const noexcept { return where_.moved_at(); }

    /// The reference taken last.
    const Setpoint<Robot> &reference() const noexcept { return stream_.reference(); }

    /// A cycle at a time, ns, of a period, s; 0 where it is not known.
    ///
    /// Before the first setpoint, and without a measured position at restart(), a trajectory has no commanded position
    /// to continue from: it is played as it is, and there is no command until it starts.
    ///
    /// A host with hosted does itself what costs time, or needs its clock. Then a cycle ends no motion where the clock goes
    /// back; takes no trajectory, see plan(); looks where the arm is only before a setpoint whose jump is checked and before
    /// a change of mode, see locate(); and notes when the position was sent only with a new command, or in another mode than
    /// position.
    const LoopOutput<Robot> &update(std::int64_t now, double period, const Measurement<Robot> &measured,
                                    bool hosted = false) noexcept
    {
        ++commander_.counts.cycles;
        const std::int64_t time = Base::time_at(now), passed = now - clock_;
        // Where the clock goes back, the command is a new one all the same.
        const std::int64_t step = std::clamp<std::int64_t>(passed, passed < 0 ? 1 : 0, LONGEST_RESPONSE_STEP);
        clock_ = now;
        watchdog_.pass(std::max<std::int64_t>(passed, 0));
        if (passed < -LARGEST_CORRECTION && (playing() || Base::waiting()) && !hosted) {
            if (playing())
                Base::end_motion(commander_.output.setpoint, Event::break_off);
            else
                player_.halt();
        }
        commander_.pass(time, step, passed);
        commander_.period = period > 0 ? period : 1e-3; // else no stop would ever be found
        where_.ask(now);
        where_.pass(step, measured);
        const bool begins = (stream_.received() && commander_.parameters.jump_check != CheckPolicy::ignore) || mode != commander_.mode();
        if (!hosted || begins)
            locate(now, measured);
        const std::uint64_t followed = commander_.counts.followed;
        if (const Event pace = paused ? Event::pause : Event::resume; pace != pace_) {
            pace_ = pace;
            state_machine_.on(pace);
        }
        if (payloads.take())
            carry(measured, payloads.taken());
        if (!hosted)
            Base::plan_at(time, period);
        Base::aim_at(time);
        if (stream_.pursues())
            Base::aim_as_led(time);
        keep_mode(step, measured);
        const double settling = std::exchange(settling_, 0);
        if (commander_.mode() == Mode::gravity_compensation)
            be_led();
        else if (playing())
            Base::play_on(time);
        else if (aiming())
            Base::aim_on(time);
        else if (!stream_.received() || !Base::follow(time)) {
            Base::wait();
            blend(step, settling);
        }
        stream_.end_cycle();
        where_.see(now, measured);
        if (commander_.output.valid) {
            commander_.complete(measured);
            if (!hosted || commander_.counts.followed != followed || commander_.mode() != Mode::position)
                where_.send(now, commander_.output.setpoint.q);
            if (commander_.mode() == Mode::position)
                watchdog_.look(step);
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
        // Hands that lead the arm touch it.
        touched_ = reaction != ContactReaction::ignore && commander_.mode() != Mode::gravity_compensation;
        if (!touched_)
            return;
        if (reaction != ContactReaction::retract || !Base::retract())
            Base::stop(Event::contact);
    }

    /// Contact has ended: references are followed again, once the arm rests, unless the loop is to be switched off.
    void leave_contact() noexcept
    {
        if (commander_.parameters.on_contact != ContactReaction::deactivate && rests())
            touched_ = false;
    }

    /// Ends the pause of motions that are played, and follows references again, whether contact has ended or not.
    void resume() noexcept { paused = touched_ = false; }

    /// Joint that was faster than its limit at the last restart, by what was measured.
    const MeasurementFault &start_fault() const noexcept { return start_fault_; }

    /// Whether the last mode has ended, or another one has not begun, for lack of measurements.
    bool blinded() const noexcept { return blinded_; }

  private:
    using Sender = typename Stream<Robot>::Sender;
    using Base::NEVER;
    using Base::clock_;
    using Base::commander_;
    using Base::halts_;
    using Base::state_machine_;
    using Base::motion_;
    using Base::in_motion;
    using Base::newest_;
    using Base::past_;
    using Base::player_;
    using Base::refusal_of;
    using Base::rests;
    using Base::retreat_;
    using Base::started_;
    using Base::stream_;
    using Base::touched_;
    using Base::watchdog_;
    using Base::where_;
    using Base::ahead_;

    /// At rest, efforts pass to another payload also where references have ended: the last one is repeated, until springs with
    /// dampers have settled under it, from a velocity of motors.
    void blend(std::int64_t step, double settling) noexcept
    {
        const bool blends = commander_.blending();
        if (!(blends || settling > 0) || !commander_.output.valid || !stream_.ended() || state_machine_.braked() ||
            !eom::rests(commander_.output.setpoint))
            return;
        commander_.repeat(step);
        double rate = 0;
        for (const Scalar x : commander_.output.command.motor_velocity)
            rate = std::max(rate, static_cast<double>(std::fabs(x)));
        settling_ = commander_.robot.filters() && rate > AT_REST && (blends || rate < settling) ? rate : 0;
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
        if (!where_.steady() || !commander_.change(wanted, measured)) {
            ++commander_.counts.unmeasured;
            return;
        }
        const auto &links = commander_.impedance().links();
        if (wanted == Mode::position && state_machine_.gone()) {
            state_machine_.on(Event::mode);
        } else if (wanted == Mode::gravity_compensation) {
            leave(Event::hands);
            commander_.output.setpoint.q = links;
        } else if (before == Mode::gravity_compensation ||
                   (wanted == Mode::position && !watchdog_.is_near(links, commander_.parameters.start_tolerance))) {
            player_.halt();
            watchdog_.leave();
            Setpoint<Robot> x = commander_.output.setpoint;
            x.q = links;
            x.qd = x.qdd = x.qddd = x.qdddd = {};
            settle(x, blind_ > 0 ? JointVector<Robot>{} : commander_.impedance().rates(), false);
            watchdog_.brake(commander_.output.setpoint, Event::mode);
        }
    }

    /// Ends all motions, with an event.
    void leave(Event why) noexcept
    {
        player_.halt();
        player_.leave();
        watchdog_.leave();
        state_machine_.on(why);
    }

    /// A cycle in which hands lead.
    void be_led() noexcept
    {
        if (stream_.received() && !stream_.led())
            stream_.decline(refusal_of(Event::setpoint));
        watchdog_.keep_away();
        commander_.be_led();
        stream_.checks.moved(commander_.output.setpoint);
    }

    // --- Measurements -------------------------------------------------------------------

    /// Largest distance of an arm that is where it was commanded, rad or m.
    double farthest() const noexcept { return std::max(commander_.parameters.start_tolerance, @elsewhere@); }

    /// Forgets commands, and begins at the measured motion, with the rest of a setpoint; returns why not, or null.
    const char *begin_at(const Measurement<Robot> &measured, const Setpoint<Robot> &x, Event why, bool passes = false) noexcept
    {
        commander_.forget(passes);
        leave(why);
        const bool refusable = why == Event::restart;
        const char *reason = measured.links || measured.motors ? start(measured, x, refusable) : nullptr;
        if (!commander_.output.valid)
            return reason;
        stream_.checks.moved(commander_.output.setpoint);
        commander_.complete(measured);
        return reason;
    }

    /// Makes the measured motion the present one, and begins a stop where it is one; returns why not, or null.
    const char *start(const Measurement<Robot> &measured, Setpoint<Robot> x, bool refusable) noexcept
    {
        if (measured.links)
            x.q = measured.q, x.qd = measured.qd;
        else if (!commander_.find_links(measured, x))
            return "gravity and springs have no equilibrium at the measured position of the motors: measure links, too";
        if (const std::size_t i = Base::fastest(x.qd); i < n) {
            if (refusable) {
                start_fault_ = {Fault::too_fast, false, i, x.qd[i], commander_.robot.jump_rate[i]};
                return "a joint is measured faster than its limit of velocity: check the units of its sensor";
            }
            x.qd = {};
        }
        if (settle(x, JointVector<Robot>(x.qd), refusable))
            watchdog_.brake(commander_.output.setpoint, Event::motion);
        commander_.output.status = state_machine_.is(Phase::stopping) ? Status::stopping : Status::waiting;
        return nullptr;
    }

    /// Makes a position the present one, unless it may be refused whatever limits say; returns whether its rate is a motion.
    bool settle(Setpoint<Robot> &x, const JointVector<Robot> &rate, bool refusable = true) noexcept
    {
        const bool moves = finite(rate) && std::any_of(rate.begin(), rate.end(), [](Scalar entry) {
                               return std::fabs(static_cast<double>(entry)) > STANDSTILL;
                           });
        x.qd = moves ? rate : JointVector<Robot>{};
        return commander_.accept(x, 0, Leader::hands, refusable && !moves) && moves;
    }

    MeasurementFault start_fault_;
    // Largest velocity of motors while springs settle after a payload has changed at rest, or 0.
    double settling_ = 0;
    // The last change of the pace: a pause, or its end.
    Event pace_ = Event::resume;
    // Time without usable measurements where the mode needs them, ns, and their count in the last cycle.
    std::int64_t blind_ = 0;
    bool blinded_ = false;
    std::uint64_t unmeasured_ = 0;
};

} // namespace eom

#endif
