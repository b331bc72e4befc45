// SPDX-License-Identifier: Apache-2.0
// One cycle of a controller around the feedforward: references in, commands of joints and motors out.
#ifndef EOM_CONTROL_LOOP_HPP
#define EOM_CONTROL_LOOP_HPP

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "deflection_filter.hpp"
#include "equilibrium.hpp"
#include "feedback.hpp"
#include "loop_parameters.hpp"
#include "mailbox.hpp"
#include "payload.hpp"
#include "plausibility.hpp"
#include "stop.hpp"
#include "take_over.hpp"

namespace eom {

/// The loop. update() neither allocates nor locks nor throws, and takes a bounded time.
///
/// One other thread may send setpoints and trajectories by the mailboxes. All times are those of one clock, in ns.
template <class Robot>
class ControlLoop {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;

    /// Largest velocity of an arm at rest, rad/s or m/s.
    static constexpr double STANDSTILL = 0.01;

    Mailbox<StampedSetpoint<Robot>> setpoints;
    /// Of which two are kept: the one that is played, and one that takes over later.
    Mailbox<StampedSpline<Robot>, 2> trajectories;
    /// What the tools carry from the next setpoint on; a refused one is counted, see payload_refusal().
    Mailbox<Payload<Robot>> payloads;

    explicit ControlLoop(const Robot &robot = Robot()) noexcept
        : robot_(robot), filter_(robot), present_filter_(robot), feedback_(robot), payload_(robot), checks_(robot)
    {
        reference_.setpoint = robot_.rest();
        forget_output();
    }

    /// Takes parameters, in the ranges of the node's; returns what is wrong with them, or null. Not while the loop runs.
    const char *configure(const LoopParameters<Robot> &parameters) noexcept
    {
        if (const char *reason = eom::objection(parameters, robot_))
            return reason;
        parameters_ = parameters;
        timeout_ = std::llround(parameters.setpoint_timeout * 1e9);
        // A cycle adds at most half of it.
        if (parameters.setpoint_timeout > 0)
            timeout_ = std::max<std::int64_t>(timeout_, 2);
        feedback_.configure(parameters);
        checks_.configure(parameters);
        return nullptr;
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
        counts_ = {};
        refusal_ = Refusal::none;
        finding_ = {};
        checks_.restart();
        age_ = 0;
        received_ = fed_ = waiting_ = false;
        // The clock of a node may lag behind that of the manager.
        const bool recent = started_ && now != NEVER && std::abs(now - latest_) < LONGEST_GAP;
        if (recent && output_.valid && !(lost_ && released()) && follows(measured, std::max<std::int64_t>(now - latest_, 0))) {
            if (!stopping_)
                begin_stop(output_.setpoint);
            lost_ = held_ = false;
            return nullptr;
        }
        forget_output();
        filter_.forget();
        present_filter_.forget();
        playing_ = stopping_ = lost_ = held_ = started_ = false;
        if (now != NEVER)
            latest_ = now;
        const char *reason = measured.links || measured.motors ? start(measured) : nullptr;
        feedback_.restart(output_.setpoint);
        if (output_.valid)
            complete(0, measured);
        return reason;
    }

    /// What is sent last when the loop is switched off: motors hold their positions, at the efforts of
    /// effort_on_deactivate. The loop itself stays as it is.
    const DriveCommand<Robot> &release(const Measurement<Robot> &measured) noexcept
    {
        // Efforts that fade, or have faded, do not come back.
        const bool faded = lost_ && parameters_.on_setpoint_loss == LossPolicy::ramp;
        released_ = {output_.sent_motor_position(), {}, {}, {}, {}};
        if (parameters_.effort_on_deactivate == EffortOnDeactivate::keep) {
            released_.effort = output_.sent_motor_effort();
            released_.joint_effort = output_.sent_joint_effort();
        } else if (parameters_.effort_on_deactivate == EffortOnDeactivate::gravity && !faded) {
            Setpoint<Robot> x = robot_.rest();
            x.q = output_.setpoint.q;
            x.k = output_.setpoint.k;
            x.base = output_.setpoint.base;
            x.on_base = output_.setpoint.on_base;
            if (measured.links && finite(measured.q))
                x.q = measured.q;
            else if (measured.links || !measured.motors || !find_links(measured, x))
                x.q = output_.setpoint.q;
            x.qd = {};
            candidate_ = x;
            payload_.at(0, latest_, candidate_);
            candidate_.Pd = candidate_.Pdd = {};
            compute(filter_, 0);
            if (finite(result_)) {
                if (parameters_.limits == LimitPolicy::clip) {
                    Limits<Robot>::clip_efforts(robot_, result_.tau);
                    Limits<Robot>::clip_motors(robot_, result_.motor_velocity, result_.motor_effort);
                }
                DriveCommand<Robot> sent{{}, {}, result_.motor_effort, result_.tau, {}};
                if constexpr (Robot::has_drives)
                    if (robot_.converts())
                        robot_.drive_command(candidate_, result_, result_.motor_effort, result_.tau, {1, 0}, sent);
                released_.effort = sent.effort;
                released_.joint_effort = sent.joint_effort;
            }
        }
        return released_;
    }

    /// Takes the reference of the next cycle, in the thread of update().
    ///
    /// With one of a controller in front, which writes its own in each cycle, trajectories are refused: after them, its
    /// references would be followed again, from wherever they are.
    void refer(const Setpoint<Robot> &reference, std::int64_t stamp, bool of_controller = false) noexcept
    {
        reference_.setpoint = reference;
        reference_.stamp = stamp;
        received_ = true;
        led_ = of_controller;
    }

    /// Takes the latest setpoint of the mailbox as the reference, if there is a new one; returns whether there was.
    bool refer_to_mailbox() noexcept
    {
        if (!setpoints.take())
            return false;
        refer(setpoints.taken().setpoint, setpoints.taken().stamp);
        return true;
    }

    /// The reference taken last.
    const Setpoint<Robot> &reference() const noexcept { return reference_.setpoint; }

    /// A cycle at a time, ns, of a period, s.
    ///
    /// Before the first setpoint, and without a measured position at restart(), a trajectory has no commanded position
    /// to continue from: it is played as it is, and there is no command until it starts.
    const LoopOutput<Robot> &update(std::int64_t now, double period, const Measurement<Robot> &measured) noexcept
    {
        ++counts_.cycles;
        const std::int64_t step = started_ ? std::max<std::int64_t>(now - latest_, 0) : 0;
        // After a stall, the references that wait are taken before the timeout is over.
        age_ += std::min(step, timeout_ / 2);
        stop_step_ = stopping_ ? seconds(std::min(step, LONGEST_RESPONSE_STEP)) : 0;
        stop_.advance(stop_step_);
        if (started_ && (playing_ || waiting_))
            follow_clock(now, period);
        latest_ = now;
        period_ = period;
        started_ = true;
        take_payload();
        if (plan(now, period))
            play();
        if (playing_)
            play_on(now);
        else if (received_)
            follow(now);
        else
            wait();
        received_ = false;
        if (output_.valid)
            complete(period, measured);
        return output_;
    }

    // --- For hosts that judge trajectories, or know of losses, in the thread of update() -----

    /// Plans the trajectory that has arrived, or whose start has come, without playing it; returns the plan, or null where
    /// there is none, or it has been refused. It must be played, or dropped, before update(), which plans and plays others.
    const Plan<n> *plan(std::int64_t now, double period) noexcept
    {
        if (waiting_ && !next_.waits && now >= next_.begin)
            begin(next_, WAITING);
        if (trajectories.take()) {
            const StampedSpline<Robot> &next = trajectories.taken();
            slot_ = ARRIVED;
            if (next.stop) {
                Setpoint<Robot> from = output_.setpoint;
                if (playing_) {
                    State<n> present;
                    evaluate(seconds(now - origin_), present);
                    take(present, from);
                }
                end_trajectory(from, false);
                return nullptr;
            }
        } else if (waiting_ && now >= next_.begin) {
            slot_ = WAITING;
        } else {
            return nullptr;
        }
        const std::int64_t stamp = trajectories.taken(slot_).stamp;
        const std::int64_t origin = slot_ == WAITING ? next_.origin : stamp != 0 ? stamp : now;
        const Refusal refusal = plan_to_begin(slot_, origin, now, period);
        later_ = plan_.begin > now;
        if (refusal == Refusal::none)
            return &plan_;
        drop(refusal);
        return nullptr;
    }

    /// Plays what has been planned, or has it wait for its start, in place of another one that waits.
    void play() noexcept
    {
        if (later_) {
            trajectories.exchange(WAITING, slot_);
            next_ = plan_;
            waiting_ = true;
        } else {
            begin(plan_, slot_);
        }
    }

    /// Refuses what has been planned.
    void drop(Refusal why = Refusal::over_limits) noexcept
    {
        refuse(why);
        if (slot_ == WAITING)
            waiting_ = false;
    }

    /// Ends what is played and what waits, and brings the arm to rest from the last command, whatever on_setpoint_loss says;
    /// a stop under way goes on. Setpoints within resume_distance end it.
    void stop() noexcept
    {
        waiting_ = false;
        held_ = output_.valid;
        if (!stopping_) {
            lost_ = false;
            begin_stop(output_.setpoint);
        }
    }

    /// Begins the response to a loss of setpoints, by on_setpoint_loss, unless a trajectory is played.
    void lose() noexcept
    {
        if (!fed_ || playing_ || stopping_ || lost_)
            return;
        ++counts_.timeouts;
        lost_ = true;
        if (stops())
            begin_stop(output_.setpoint);
    }

    const LoopOutput<Robot> &output() const noexcept { return output_; }
    const LoopCounts &counts() const noexcept { return counts_; }
    Refusal refusal() const noexcept { return refusal_; }
    /// What a plausibility check has found last.
    const Finding &finding() const noexcept { return finding_; }
    /// Why the last payload was refused, or null.
    const char *payload_refusal() const noexcept { return payload_refusal_; }
    /// Whether the payload changes, or waits for a setpoint.
    bool blending() const noexcept { return payload_.blending(); }
    bool playing() const noexcept { return playing_; }
    /// Whether a trajectory waits until it begins.
    bool waiting() const noexcept { return waiting_; }

  private:
    /// Stops that are tried after that of the wanted duration, each longer than the one before, and then each shorter.
    static constexpr int LONGER_STOPS = @longer_stops@, SHORTER_STOPS = @shorter_stops@;
    static constexpr std::size_t STOP_SAMPLES = @stop_samples@;

    /// Largest distance of an arm from its command, for it to follow that, rad or m.
    static constexpr double DISTANCE = 0.01;

    /// Slots of trajectories.
    static constexpr std::size_t ARRIVED = 0, PLAYED = 1, WAITING = 2;

    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::max();

    static double seconds(std::int64_t nanoseconds) noexcept { return static_cast<double>(nanoseconds) * 1e-9; }

    void forget_output() noexcept
    {
        output_ = {};
        output_.setpoint = robot_.rest();
    }

    // --- Payload ------------------------------------------------------------------------

    void take_payload() noexcept
    {
        if (!payloads.take())
            return;
        payload_refusal_ = payload_.change(payloads.taken());
        counts_.refused_payloads += payload_refusal_ != nullptr;
    }

    // --- References ---------------------------------------------------------------------

    /// Whether the arm moves as it was commanded a time ago, ns, as far as that is measured.
    bool follows(const Measurement<Robot> &measured, std::int64_t ago) const noexcept
    {
        // Commands of motors are ahead by the lead, and since the last cycle the arm has moved on.
        const double time = parameters_.command_lead + seconds(ago);
        const auto near = [time](const auto &values, const auto &commanded, const auto &rates, double allowed) {
            for (std::size_t i = 0; i < values.size(); ++i)
                if (!(std::fabs(static_cast<double>(values[i] - commanded[i])) <=
                      allowed + time * std::fabs(static_cast<double>(rates[i]))))
                    return false;
            return true;
        };
        // Between two cycles, nothing but noise can change velocities; some hardware does not measure them.
        const auto alike = [&](const auto &values, const auto &commanded, const auto &rates) {
            return seconds(ago) <= 2 * period_ || !finite(values) ||
                   near(values, commanded, rates, DISTANCE / seconds(LONGEST_GAP));
        };
        const Setpoint<Robot> &x = output_.setpoint;
        const Command<Robot> &y = output_.command;
        return (!measured.links ||
                (near(measured.q, x.q, x.qd, DISTANCE) && alike(measured.qd, x.qd, x.qdd))) &&
               (!measured.motors ||
                (near(measured.motor_position, y.motor_position, y.motor_velocity, DISTANCE) &&
                 alike(measured.motor_velocity, y.motor_velocity, y.motor_acceleration)));
    }

    void follow(std::int64_t now) noexcept
    {
        const double age = seconds(now - reference_.stamp);
        if (parameters_.setpoint_lifespan > 0 && reference_.stamp != 0 && age > parameters_.setpoint_lifespan) {
            refuse(Refusal::too_old);
        } else if ((lost_ || held_) && !resumes(reference_.setpoint.q)) {
            refuse(lost_ && released() ? Refusal::released : Refusal::far_from_hold);
        } else if (const Refusal doubt = judged(); doubt != Refusal::none) {
            refuse(doubt);
            output_.status = Status::held;
        } else if (accept(reference_.setpoint, reference_.stamp)) {
            checks_.answered(reference_.stamp, reference_.setpoint);
            age_ = 0;
            fed_ = true;
            stopping_ = lost_ = held_ = false;
            interval_ = now - followed_;
            followed_ = now;
            return;
        } else {
            output_.status = Status::held;
        }
        // References that are refused do not keep the timeout away.
        wait();
    }

    /// Why the plausibility checks refuse the reference, if they do; accept() refuses what they cannot judge.
    Refusal judged() noexcept
    {
        if (!checks_.on() || objection(reference_.setpoint) != Refusal::none)
            return Refusal::none;
        return checks_.judge(reference_.stamp, reference_.setpoint, counts_, finding_);
    }

    /// Without a reference: the last command, until setpoints are lost and what the policy says then.
    void wait() noexcept
    {
        const bool late = timeout_ > 0 && age_ >= timeout_;
        if (late)
            lose();
        if (stopping_)
            come_to_rest();
        else if (lost_)
            output_.status = parameters_.on_setpoint_loss == LossPolicy::deactivate ? Status::lost : Status::held;
    }

    bool stops() const noexcept
    {
        return parameters_.on_setpoint_loss == LossPolicy::hold || parameters_.on_setpoint_loss == LossPolicy::ramp;
    }

    /// Whether nobody knows where the arm is, once setpoints are lost: no reference is followed before a restart.
    bool released() const noexcept
    {
        return parameters_.on_setpoint_loss == LossPolicy::ramp ||
               parameters_.on_setpoint_loss == LossPolicy::deactivate;
    }

    /// Whether a reference is followed after a loss, or after a trajectory that was ended.
    bool resumes(const JointVector<Robot> &q) const noexcept
    {
        if (lost_ && released())
            return false;
        if (held_ || parameters_.on_setpoint_loss == LossPolicy::hold)
            for (std::size_t i = 0; i < n; ++i)
                if (std::fabs(static_cast<double>(q[i] - output_.setpoint.q[i])) > parameters_.resume_distance)
                    return false;
        return true;
    }

    void begin_stop(const Setpoint<Robot> &from) noexcept
    {
        playing_ = false;
        // Nothing has been commanded that could be stopped.
        if (!output_.valid)
            return;
        choose_stop(from);
        stop_step_ = 0;
        stopping_ = true;
    }

    /// Begins the stop of the wanted duration, or of longer ones, which accelerate less, then of shorter ones, which need
    /// less of the ranges: the first within the limits that the start meets, or else the one that exceeds them least.
    void choose_stop(const Setpoint<Robot> &from) noexcept
    {
        double best = parameters_.stop_duration, least = std::numeric_limits<double>::infinity();
        for (int i = 0; i <= LONGER_STOPS + SHORTER_STOPS && least > LIMIT_TOLERANCE; ++i) {
            const int power = i <= LONGER_STOPS ? i : LONGER_STOPS - i;
            const double T = parameters_.stop_duration * std::pow(@stop_growth@, power);
            stop_.begin(from, stamp_, T);
            const double excess = excess_of(
                [this](double share, Setpoint<Robot> &x) {
                    stop_.seek(stop_.end() * share);
                    x = stop_.setpoint();
                },
                STOP_SAMPLES, least);
            if (excess < least) {
                least = excess;
                best = T;
            }
        }
        stop_.begin(from, stamp_, best);
    }

    /// Largest excess of a motion over limits that its start meets, at instants after it, or that of the first ones if it is
    /// not below the least so far; infinite where motors cannot realise it. Without transients of dampers and friction, with
    /// the present payload.
    template <class Motion>
    double excess_of(const Motion &motion, std::size_t samples, double least) noexcept
    {
        Limits<Robot> limits(robot_);
        Shafts<Robot> shafts;
        double most = 0;
        for (std::size_t k = 0; k <= samples && most < least; ++k) {
            motion(static_cast<double>(k) / static_cast<double>(samples), candidate_);
            candidate_.Pd = candidate_.Pdd = {};
            candidate_.deflection.fill(Robot::settled);
            candidate_.friction_state = Robot::settled_friction;
            robot_.feedforward(candidate_, result_);
            if (!finite(result_))
                return std::numeric_limits<double>::infinity();
            robot_.drive(result_, shafts);
            if (k == 0)
                limits.widen(candidate_, result_, shafts);
            else
                most = std::max(most, limits.excess(candidate_, result_, shafts));
        }
        return most;
    }

    /// The command of a stop, and of a ramp along it. Limits do not refuse it: a part of a stop would be a step.
    void come_to_rest() noexcept
    {
        if (!accept(stop_.setpoint(), stop_.stamp(), false)) {
            output_.status = Status::held;
            stop_.advance(-stop_step_);
            return;
        }
        checks_.moved(output_.setpoint);
        const bool ramps = lost_ && parameters_.on_setpoint_loss == LossPolicy::ramp;
        const double end = ramps ? std::max(stop_.end(), parameters_.ramp_duration) : stop_.end();
        if (ramps)
            share_ = stop_.fade(output_.command, parameters_.ramp_duration);
        if (stop_.time() >= end)
            output_.status = Status::held;
        else
            output_.status = ramps ? Status::ramping : Status::stopping;
    }

    // --- Trajectories -------------------------------------------------------------------

    /// Plans a trajectory in a slot to begin at a time, ns, or later.
    Refusal plan_to_begin(std::size_t slot, std::int64_t origin, std::int64_t now, double period) noexcept
    {
        const Spline<n> &next = trajectories.taken(slot).spline;
        const double t = seconds(now - origin);
        plan_ = {};
        plan_.origin = origin;
        plan_.begin = std::max(origin, now);
        // Allow for rounding of the time.
        if (next.start() - t > parameters_.max_start_delay + 1e-9)
            return Refusal::too_far_ahead;
        if (t > next.end())
            return Refusal::ended;
        if (received_ && led_)
            return Refusal::led;
        if (lost_ && released())
            return Refusal::released;
        State<n> from, later;
        if (playing_) {
            // The motion that is played goes on until then.
            const double at = std::max(t, 0.0), present = seconds(now - origin_) + (at - t);
            evaluate(present, from);
            evaluate(present + std::max(next.start() - at, 0.0), later);
            return plan_transition(next, at, from, later, period);
        }
        if (!output_.valid) {
            plan_.begin = std::max<std::int64_t>(now, origin + std::llround(std::max(next.start(), 0.0) * 1e9));
            plan_.waits = plan_.begin > now;
            next.evaluate(t, from);
            next.evaluate(next.start(), later);
            plan_.start = plan_.end = std::max(t, next.start());
            plan_.from = plan_.to = from;
            plan_.transition = Piece<n>(plan_.start - 1, plan_.start, from, from);
            later[1] = {};
            return plan_.waits || is_near(from, later, parameters_.start_tolerance, 0) ? Refusal::none : Refusal::under_way;
        }
        plan_.waits = origin > now;
        if (plan_.waits)
            return Refusal::none;
        // Up to a period late, it is as if on time.
        const double at = t < period ? 0 : t;
        commanded(at > 0 ? now : origin, from);
        if (at > 0 && rests(from) && plan_from(next, 0, from, period) == Refusal::none && begun_on_time(next, from, t))
            return Refusal::none;
        return plan_from(next, at, from, period);
    }

    /// From a state that is commanded, and its position later.
    Refusal plan_from(const Spline<n> &next, double at, const State<n> &from, double period) noexcept
    {
        State<n> later = from;
        if (next.start() > at)
            later[1] = {};
        return plan_transition(next, at, from, later, period);
    }

    /// Plans the transition from a state at a time of a spline, s, with what would be commanded at its start: to the next
    /// knot; where that exceeds a limit, and the spline starts near, the shortest longer one that meets all, or else the one
    /// that exceeds them least. Returns why there is none.
    Refusal plan_transition(const Spline<n> &next, double at, const State<n> &from, const State<n> &later,
                            double period) noexcept
    {
        State<n> first;
        next.evaluate(std::max(at, next.start()), first);
        const bool near = is_near(first, later, parameters_.start_tolerance, parameters_.start_latency);
        if (!near && at + period >= next.start())
            return Refusal::starts_away;
        const double knot = next.knot_after(at), shortest = knot > at ? knot : at + period;
        plan_.start = at;
        plan_.from = from;
        plan_.excess = std::numeric_limits<double>::infinity();
        Piece<n> tried;
        const auto attempt = [&](double end) {
            State<n> to;
            next.evaluate(end, to);
            tried = Piece<n>(at, end, from, to);
            const double excess = excess_of(
                [&](double share, Setpoint<Robot> &x) {
                    State<n> state;
                    tried.evaluate(at + (end - at) * share, state);
                    x = robot_.rest();
                    take(state, x);
                    x.P = output_.setpoint.P;
                    x.loaded = output_.setpoint.loaded;
                },
                TRANSITION_SAMPLES, plan_.excess);
            if (excess < plan_.excess) {
                plan_.excess = excess;
                plan_.end = end;
                plan_.to = to;
                plan_.transition = tried;
            }
        };
        attempt(shortest);
        for (const double duration : TRANSITIONS)
            if (near && plan_.excess > LIMIT_TOLERANCE && duration > shortest - at)
                attempt(at + duration);
        return std::isfinite(plan_.excess) ? Refusal::none : Refusal::not_finite;
    }

    /// Whether the plan of an arm at rest would be no step by now, at t of the spline, had it begun on time.
    bool begun_on_time(const Spline<n> &next, const State<n> &from, double t) const noexcept
    {
        constexpr int SAMPLES = 200;
        for (int k = 0; k < SAMPLES; ++k) {
            const double at = t * k / (SAMPLES - 1);
            State<n> state;
            if (at < plan_.end)
                plan_.transition.evaluate(at, state);
            else
                next.evaluate(at, state);
            for (std::size_t i = 0; i < n; ++i)
                if (!(std::fabs(state[0][i] - from[0][i]) <= SMALL_STEP))
                    return false;
        }
        return true;
    }

    static bool rests(const State<n> &state) noexcept
    {
        for (std::size_t k = 1; k < 5; ++k)
            for (const double rate : state[k])
                if (rate != 0)
                    return false;
        return true;
    }

    /// Begins to play a plan, whose spline is in a slot.
    void begin(const Plan<n> &plan, std::size_t slot) noexcept
    {
        trajectories.exchange(PLAYED, slot);
        origin_ = plan.origin;
        transition_ = plan.transition;
        trajectory_end_ = std::max(trajectories.taken(PLAYED).spline.end(), plan.end);
        if (!playing_)
            played_ = -NEVER;
        checks_.restart();
        playing_ = true;
        waiting_ = stopping_ = lost_ = held_ = false;
    }

    /// What is commanded at a time, ns, where no trajectory is played.
    void commanded(std::int64_t at, State<n> &state) const noexcept
    {
        if (stopping_)
            stop_.evaluate(state, seconds(at - latest_));
        else
            give(moved_on(at), state);
    }

    /// The setpoint of references at a time, ns: until the next one it moves on as the last one; where they have ended, it
    /// is held at rest.
    Setpoint<Robot> moved_on(std::int64_t now) const noexcept
    {
        Setpoint<Robot> x = output_.setpoint;
        const std::int64_t gap = now - followed_;
        if (std::abs(gap) > LONGEST_GAP)
            x.qd = x.qdd = x.qddd = x.qdddd = {};
        else
            advance(x, static_cast<Scalar>(seconds(std::max<std::int64_t>(std::min(gap, interval_), 0))));
        return x;
    }

    void evaluate(double t, State<n> &state) const noexcept
    {
        if (t < transition_.end())
            transition_.evaluate(t, state);
        else
            trajectories.taken(PLAYED).spline.evaluate(t, state);
    }

    /// Ends or delays a trajectory where the clock has jumped.
    void follow_clock(std::int64_t now, double period) noexcept
    {
        const std::int64_t step = now - latest_, expected = std::llround(period * 1e9);
        const bool back = now < std::max(latest_, playing_ ? played_ : latest_) - LARGEST_CORRECTION;
        if (!back && (step - expected <= std::max(JUMP_PERIODS * expected, SHORTEST_JUMP) || (!playing_ && now < next_.begin)))
            return;
        if (back || parameters_.on_clock_jump == JumpPolicy::stop) {
            end_trajectory(output_.setpoint);
            return;
        }
        // The rest would be a step.
        origin_ += step;
        next_.origin += step;
        next_.begin += step;
    }

    /// Ends what is played and what waits, and brings the arm to rest from a setpoint.
    void end_trajectory(const Setpoint<Robot> &from, bool held = true) noexcept
    {
        waiting_ = false;
        if (!playing_)
            return;
        held_ = held && output_.valid;
        begin_stop(from);
    }

    void play_on(std::int64_t now) noexcept
    {
        if (received_)
            refuse(Refusal::busy);
        age_ = 0;
        // Pause where the clock goes back a little.
        if (now <= played_)
            return;
        played_ = now;
        const double t = seconds(now - origin_);
        State<n> state;
        evaluate(t, state);
        Setpoint<Robot> x = robot_.rest();
        take(state, x);
        evaluate(std::min(t + parameters_.command_lead, std::max(t, trajectory_end_)), state);
        if (!accept(x, now, true, &state)) {
            output_.status = Status::held;
            end_trajectory(output_.setpoint);
            wait();
            return;
        }
        fed_ = true;
        if (t >= trajectory_end_ && !waiting_) {
            // At rest, which needs no more references.
            playing_ = false;
            stopping_ = true;
            stop_.rest(x, now);
        }
    }

    // --- Commands -----------------------------------------------------------------------

    void refuse(Refusal why) noexcept
    {
        ++counts_.refused;
        refusal_ = why;
    }

    /// Makes a setpoint and its command the present ones, unless it is refused; returns whether it was not.
    ///
    /// The command is for the motion at the lead, which may be given.
    bool accept(const Setpoint<Robot> &x, std::int64_t stamp, bool refusable = true,
                const State<n> *ahead = nullptr) noexcept
    {
        const Refusal why = objection(x);
        if (why != Refusal::none && (refusable || why != Refusal::free_fall)) {
            refuse(why);
            return false;
        }
        candidate_ = x;
        payload_.at(stamp, latest_, candidate_);
        const bool leads = parameters_.command_lead > 0, apart = leads && feedback_.reads_motors();
        const Setpoint<Robot> &own = leads ? setpoint_ : candidate_;
        if (leads)
            setpoint_ = candidate_;
        if (apart) {
            compute(present_filter_, stamp);
            present_ = result_;
            setpoint_.deflection = candidate_.deflection;
            setpoint_.friction_state = candidate_.friction_state;
        }
        if (leads)
            advance(candidate_, static_cast<Scalar>(parameters_.command_lead));
        if (leads && ahead)
            take(*ahead, candidate_);
        compute(filter_, stamp);
        if (!(finite(result_) && can_be_sent())) {
            refuse(Refusal::not_finite);
            return false;
        }
        Shafts<Robot> shafts;
        if (parameters_.limits != LimitPolicy::ignore)
            robot_.drive(result_, shafts);
        if (parameters_.limits != LimitPolicy::ignore && !Limits<Robot>::meets(robot_, own, result_, shafts)) {
            ++counts_.over_limits;
            if (refusable && Limits<Robot>::far(robot_, own.q)) {
                refuse(Refusal::far_beyond_limits);
                return false;
            }
            if (refusable && parameters_.limits == LimitPolicy::refuse) {
                refuse(Refusal::over_limits);
                return false;
            }
        }
        payload_.keep(stamp, latest_);
        if constexpr (Robot::damped || Robot::has_presliding) {
            if (robot_.filters() || robot_.slides()) {
                filter_.keep(stamp, result_, candidate_);
                if (apart)
                    present_filter_.keep(stamp, present_, setpoint_);
            }
        }
        find_deflections();
        feedback_.refer(apart ? present_ : result_);
        if (parameters_.limits == LimitPolicy::clip) {
            Limits<Robot>::clip_efforts(robot_, result_.tau);
            result_.motor_effort = shafts.clipped_effort;
        }
        output_.setpoint = own;
        output_.setpoint.deflection = candidate_.deflection;
        output_.setpoint.friction_state = candidate_.friction_state;
        output_.command = result_;
        stamp_ = stamp;
        output_.status = Status::fresh;
        output_.valid = true;
        if constexpr (Robot::has_drives)
            if (robot_.converts())
                sent_for_ = candidate_;
        share_ = {1, 0};
        ++counts_.followed;
        return true;
    }

    /// Why a setpoint is refused before anything is computed.
    Refusal objection(const Setpoint<Robot> &x) const noexcept
    {
        if (!finite(x.q, x.qd, x.qdd, x.qddd, x.qdddd, x.W, x.Wd, x.Wdd))
            return Refusal::not_finite;
        if (!x.on_base)
            return Refusal::none;
        const BaseMotion<Scalar> &base = x.base;
        if (!robot_.base_moves() || parameters_.linearize)
            return Refusal::moving_base;
        if (!finite(base.w, base.wd, base.wdd, base.wddd, base.f, base.fd, base.fdd))
            return Refusal::not_finite;
        const auto none = [](Scalar entry) { return entry == 0; };
        return std::all_of(base.f.begin(), base.f.end(), none) ? Refusal::free_fall : Refusal::none;
    }

    /// The feedforward of the candidate, with the states of damped springs and of presliding friction.
    void compute(DeflectionFilter<Robot> &filter, std::int64_t stamp) noexcept
    {
        if constexpr (Robot::damped) {
            if (robot_.filters()) {
                robot_.inverse_dynamics(candidate_, result_);
                filter.at(stamp, result_, candidate_.deflection);
            }
        }
        robot_.feedforward(candidate_, result_);
        if constexpr (Robot::has_presliding) {
            if (robot_.slides()) {
                filter.slide(stamp, result_, candidate_.friction_state);
                robot_.feedforward(candidate_, result_);
            }
        }
    }

    /// Motor positions at the joint sides of the springs, less those of the links.
    void find_deflections() noexcept
    {
        const std::size_t count = robot_.motor_count();
        for (std::size_t i = 0; i < count; ++i) {
            Scalar side = result_.motor_position[i];
            if (robot_.couples()) {
                side = 0;
                for (std::size_t j = 0; j < count; ++j)
                    side += robot_.joint_sides[i * count + j] * result_.motor_position[j];
            }
            output_.deflection[i] = side - candidate_.q[robot_.motor_joint[i]];
        }
    }

    /// Whether the command is finite in the units of the drives.
    bool can_be_sent() const noexcept
    {
        if constexpr (Robot::has_drives) {
            if (robot_.converts()) {
                DriveCommand<Robot> sent;
                robot_.drive_command(candidate_, result_, result_.motor_effort, result_.tau, {1, 0}, sent);
                return finite(sent.position, sent.velocity, sent.effort, sent.joint_effort);
            }
        }
        return true;
    }

    /// Adds feedback, and what is sent, to the output.
    void complete(double period, const Measurement<Robot> &measured) noexcept
    {
        feedback_.add(output_, share_[0], period, measured);
        if constexpr (Robot::has_drives) {
            const Command<Robot> &y = output_.command;
            if (robot_.converts())
                robot_.drive_command(sent_for_, y, output_.motor_effort, output_.joint_effort, share_, output_.sent);
            else
                output_.copy_to_sent();
        }
    }

    // --- Measurements -------------------------------------------------------------------

    /// Makes the measured motion the present one, and begins a stop where it is one; returns why not, or null.
    const char *start(const Measurement<Robot> &measured) noexcept
    {
        Setpoint<Robot> x = robot_.rest();
        if (measured.links) {
            x.q = measured.q;
            x.qd = measured.qd;
        } else if (!find_links(measured, x)) {
            return "gravity and springs have no equilibrium at the measured position of the motors: measure links, too";
        }
        const bool moves = finite(x.qd) && std::any_of(x.qd.begin(), x.qd.end(), [](Scalar rate) {
                               return std::fabs(static_cast<double>(rate)) > STANDSTILL;
                           });
        if (!moves)
            x.qd = {};
        if (accept(x, 0, !moves) && moves)
            begin_stop(output_.setpoint);
        output_.status = stopping_ ? Status::stopping : Status::waiting;
        return nullptr;
    }

    /// Takes the motion of the links from that of the motors, between which the springs carry gravity; returns whether
    /// there is an equilibrium, to which links go that start without deflection.
    bool find_links(const Measurement<Robot> &measured, Setpoint<Robot> &x) noexcept
    {
        std::array<Scalar, n> count{};
        const std::size_t motors = robot_.motor_count();
        for (std::size_t i = 0; i < motors; ++i)
            count[robot_.motor_joint[i]] += 1;
        // Mean of the motors of each joint.
        const auto sides = [this, motors, &count](const MotorVector<Robot> &values) {
            JointVector<Robot> mean{};
            for (std::size_t i = 0; i < motors; ++i)
                for (std::size_t j = 0; j < motors; ++j)
                    mean[robot_.motor_joint[i]] +=
                        robot_.joint_sides[i * motors + j] * values[j] / count[robot_.motor_joint[i]];
            return mean;
        };
        const JointVector<Robot> wanted = sides(measured.motor_position);
        const auto flow = [&](const JointVector<Robot> &q) {
            candidate_ = x;
            candidate_.q = q;
            payload_.at(0, latest_, candidate_);
            compute(filter_, 0);
            JointVector<Robot> away = sides(result_.motor_position);
            for (std::size_t i = 0; i < n; ++i)
                away[i] = wanted[i] - away[i];
            // Places without a joint stay where they are.
            for (std::size_t i = robot_.joint_count(); i < n; ++i)
                away[i] = -q[i];
            return away;
        };
        x.qd = {};
        JointVector<Robot> q = wanted;
        if (!relax(flow, q))
            return false;
        JointVector<Robot> rate = sides(measured.motor_velocity);
        x.q = q;
        if (solve(slope(flow, q, flow(q)), rate))
            x.qd = rate;
        return true;
    }

    Robot robot_;
    LoopParameters<Robot> parameters_;
    LoopOutput<Robot> output_;
    LoopCounts counts_;
    Refusal refusal_ = Refusal::none;

    StampedSetpoint<Robot> reference_;
    // With its payload: as given, kept where there is a lead, and at the lead.
    Setpoint<Robot> setpoint_, candidate_;
    Command<Robot> result_;
    DeflectionFilter<Robot> filter_;
    // Of the setpoint itself, where feedback of the motors needs it beside that at the lead.
    Command<Robot> present_;
    DeflectionFilter<Robot> present_filter_;
    Feedback<Robot> feedback_;
    PayloadBlend<Robot> payload_;
    const char *payload_refusal_ = nullptr;
    PlausibilityChecks<Robot> checks_;
    Finding finding_;
    DriveCommand<Robot> released_;
    bool received_ = false, led_ = false, lost_ = false, fed_ = false, started_ = false;
    // Time since the last valid reference, the timeout, and the time of the last cycle, ns.
    std::int64_t age_ = 0, timeout_ = 0, latest_ = 0;
    // Time of the last reference that was followed, and since the one before, ns.
    std::int64_t followed_ = 0, interval_ = 0;
    // Period of the last cycle, and how far the stop went in it, s.
    double period_ = 0, stop_step_ = 0;

    // Splines have times in s from their origin, ns, since a float cannot resolve the time of day.
    bool playing_ = false, waiting_ = false, stopping_ = false, held_ = false;
    Piece<n> transition_;
    Stop<Robot> stop_;
    // Time of t = 0, and of the last cycle that was played, ns.
    std::int64_t origin_ = 0, played_ = 0;
    double trajectory_end_ = 0;
    // What has been planned, the slot of its spline, and what waits.
    Plan<n> plan_, next_;
    std::size_t slot_ = 0;
    bool later_ = false;
    // Stamp of the last setpoint, ns.
    std::int64_t stamp_ = 0;
    // Factor of efforts in a ramp, and its time derivative.
    std::array<Scalar, 2> share_{1, 0};
    // The setpoint that the command is for, where what is sent depends on it.
    Setpoint<Robot> sent_for_;
};

} // namespace eom

#endif
