// SPDX-License-Identifier: Apache-2.0
// Control loop around the feedforward: references in, joint and motor commands out.
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

/// Control loop. update() does not allocate, lock or throw, and takes a bounded time.
///
/// One other thread may write to the mailboxes. All times are in ns, from one clock. Loop time follows the clock; in motions of the
/// loop, it advances by at most LONGEST_RESPONSE_STEP per cycle.
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
    /// Payloads of the tools, effective from the next setpoint. Refusals are counted: see payload_refusal().
    Mailbox<Payload<Robot>> payloads;
    /// Requested control mode. The loop changes it without an effort step when measurements suffice.
    std::atomic<Mode> mode{Mode::position};

    explicit ControlLoop(const Robot &robot) : Base(robot) { configure(commander_.parameters); }

    /// Set the parameters. Returns the error text, or null. Do not call while the loop runs.
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

    /// Set the target motion limits of each joint. Returns the error text, or null. Allocates; do not call while the loop runs.
    const char *limit(const std::vector<MotionLimits> &limits)
    {
        retreat_.resize(limits.size());
        stream_.checks.limit(limits);
        return motion_.configure(limits);
    }

    /// Reset all references, and hold the measured position, or stop from the measured motion. Without a measurement, there is no
    /// command. Returns an error text if the measurement cannot be used, or null.
    ///
    /// If the last cycle was less than LONGEST_GAP before `now`, ns, and the arm follows its command, stop from the last command
    /// instead. A controller manager restarts a controller when it switches the preceding controller of a chain.
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
        player_.halt();
        // The clock of a node may lag behind the manager's clock.
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

    /// Compare the measured position with the last command at `now`, ns. The arm deviates if it is more than start_tolerance, and
    /// more than @elsewhere@ rad or m, away.
    /// - With `ends`, or without a command for LONGEST_GAP, a deviating arm was moved: it is held at its measured position.
    /// - During commands at rest for LONGEST_GAP, it does not follow: no target or trajectory starts or resumes in this cycle.
    /// - If the measurement jumped within LONGEST_GAP, without `ends`, the sample may be wrong: the arm does not follow.
    ///
    /// update() calls this before references and mode changes; hosts call it before they plan, set targets or stop. Returns true if
    /// the arm does not follow.
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

    /// Returns the final command when the loop is switched off: see Evaluation::release().
    const DriveCommand<Robot> &release(const Measurement<Robot> &measured) noexcept { return commander_.release(measured); }

    /// Set the reference of the next cycle, with its `stamp`, ns (0: no stamp). Call in the thread of update(). With
    /// `of_controller`, a chained controller writes references in each cycle. Trajectories are then refused, because its references
    /// could be far away at their end.
    void refer(const Setpoint<Robot> &reference, std::int64_t stamp, bool of_controller = false) noexcept
    {
        stream_.refer(reference, stamp, of_controller ? Sender::controller : Sender::other);
    }

    /// Set position, velocity and acceleration of the next cycle's target from a chained controller. NaN leaves the target of a
    /// joint unchanged; a repeated target has no effect.
    void pursue(const Setpoint<Robot> &target) noexcept { stream_.refer(target, 0, Sender::controller_with_targets); }

    /// Set the latest setpoint of the mailbox as the reference. Returns false if there is no new setpoint.
    bool refer_to_mailbox() noexcept
    {
        if (!setpoints.take())
            return false;
        refer(setpoints.taken().setpoint, setpoints.taken().stamp);
        return true;
    }

    /// Set the payload of the tools from the next setpoint on: see Evaluation::carry(). If limits do not allow it for the rest of
    /// the active trajectory, pause the trajectory before the change. Call in the thread of update().
    template <class... Changed>
    const char *carry(const Measurement<Robot> &measured, const Changed &...changed) noexcept
    {
        const JointVector<Robot> *links = nullptr; // commanded position
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

    /// Report a rejected sample, which contradicts earlier samples.
    void doubt() noexcept { where_.doubt(); }

    /// Returns true if a payload changes, or springs settle under it at rest.
    bool blending() const noexcept { return commander_.blending() || settling_ > 0; }

    /// Time of the last change of the commanded position, ns.
    std::int64_t moved_at() const noexcept { return where_.moved_at(); }

    /// Last reference, also if refused.
    const Setpoint<Robot> &reference() const noexcept { return stream_.reference(); }

    /// Run one cycle at `now`, ns, with `period`, s (0: unknown).
    ///
    /// Before the first command, a trajectory has no position to continue from: it starts without a transition, and there is no
    /// command until its start.
    ///
    /// With `hosted`, the host handles planning and clock jumps. The cycle does not plan trajectories, see plan(), and does not end
    /// motions if the clock goes back. It calls locate() only before a mode change or a setpoint with a jump check. It records the
    /// time of a command only if the command is new, or the mode is not position.
    const LoopOutput<Robot> &update(std::int64_t now, double period, const Measurement<Robot> &measured,
                                    bool hosted = false) noexcept
    {
        ++commander_.counts.cycles;
        const std::int64_t time = Base::time_at(now), passed = now - clock_;
        // If the clock goes back, a step of 1 ns marks the command as new.
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
        commander_.period = period > 0 ? period : 1e-3; // checks of pace changes need a period
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
            if (commander_.parameters.on_contact == ContactReaction::retract)
                past_.record(time, commander_.output.setpoint.q);
        }
        return commander_.output;
    }

    // --- Contact ------------------------------------------------------------------------

    /// React to contact as set by on_contact. Refuse references until contact has ended and the arm rests, or until resume().
    void react() noexcept
    {
        ++commander_.counts.contacts;
        const ContactReaction reaction = commander_.parameters.on_contact;
        // In hand guiding, contact is intended.
        touched_ = reaction != ContactReaction::ignore && commander_.mode() != Mode::gravity_compensation;
        if (!touched_)
            return;
        if (reaction != ContactReaction::retract || !Base::retract())
            Base::stop(Event::contact);
    }

    /// Accept references again after contact if the arm rests. With `on_contact: deactivate`, the loop is switched off instead.
    void leave_contact() noexcept
    {
        if (commander_.parameters.on_contact != ContactReaction::deactivate && rests())
            touched_ = false;
    }

    /// Resume paused trajectories, and accept references again even during contact.
    void resume() noexcept { paused = touched_ = false; }

    /// Joint that was measured faster than its velocity limit at the last restart.
    const MeasurementFault &start_fault() const noexcept { return start_fault_; }

    /// Returns true if impedance or hand guiding ended because of missing measurements, until the mode changes again.
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

    /// Continue a payload change at rest after references have ended: repeat the last setpoint until damped springs have settled.
    /// `settling` is the largest motor velocity of the last cycle, rad/s or m/s.
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

    /// Change the mode on request, or return to position mode if measurements are missing for LONGEST_GAP.
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

    /// End all motions because of event `why`.
    void leave(Event why) noexcept
    {
        player_.halt();
        player_.leave();
        watchdog_.leave();
        state_machine_.on(why);
    }

    /// Run a cycle of hand guiding.
    void be_led() noexcept
    {
        if (stream_.received() && !stream_.led())
            stream_.decline(refusal_of(Event::setpoint));
        watchdog_.keep_away();
        commander_.be_led();
        stream_.checks.moved(commander_.output.setpoint);
    }

    // --- Measurements -------------------------------------------------------------------

    /// Largest deviation of an arm that follows its commands, rad or m.
    double farthest() const noexcept { return std::max(commander_.parameters.start_tolerance, @elsewhere@); }

    /// Reset the commands, and start from the measured motion with stiffness and base motion of x. Returns the error text, or null.
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

    /// Set the measured motion as the command, and start a stop if the arm moves. Returns the error text, or null.
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

    /// Set position x as the command, with `rate` if it is a motion. Limits refuse x only at rest, and if `refusable`. Returns true
    /// if the arm moves.
    bool settle(Setpoint<Robot> &x, const JointVector<Robot> &rate, bool refusable = true) noexcept
    {
        const bool moves = finite(rate) && std::any_of(rate.begin(), rate.end(), [](Scalar entry) {
                               return std::fabs(static_cast<double>(entry)) > STANDSTILL;
                           });
        x.qd = moves ? rate : JointVector<Robot>{};
        return commander_.accept(x, 0, Leader::hands, refusable && !moves) && moves;
    }

    MeasurementFault start_fault_;
    // Largest motor velocity while springs settle after a payload change at rest, or 0.
    double settling_ = 0;
    // Last pace event: pause or resume.
    Event pace_ = Event::resume;
    // Time without the measurements that the mode needs, ns, and counts.unmeasured at the last cycle.
    std::int64_t blind_ = 0;
    bool blinded_ = false;
    std::uint64_t unmeasured_ = 0;
};

} // namespace eom

#endif
