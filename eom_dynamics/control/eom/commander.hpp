// SPDX-License-Identifier: Apache-2.0
// The command of a setpoint: its payload, feedforward within limits, feedback, and what is sent to the drives.
#ifndef EOM_COMMANDER_HPP
#define EOM_COMMANDER_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "company.hpp"
#include "deflection_filter.hpp"
#include "equilibrium.hpp"
#include "feedback.hpp"
#include "gate.hpp"
#include "loop_parameters.hpp"
#include "payload.hpp"

namespace eom {

/// Makes setpoints commands, unless it refuses them, for the classes that choose the setpoint of a cycle.
template <class Robot>
class Commander {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    explicit Commander(const Robot &of) noexcept
        : robot(of), filter_(of), present_filter_(of), feedback_(of), gate_(of)
    {
        forget();
    }

    const Robot robot;
    LoopParameters<Robot> parameters;
    LoopOutput<Robot> output;
    LoopCounts counts;
    /// Time of the last cycle, of the loop, ns, and its period, s.
    std::int64_t latest = 0;
    double period = 0;
    /// What motions without setpoints have beside the motion of joints.
    Company<Robot> company;
    /// Distance from the arm, at rest, from which setpoints may lead again, or 0.
    double resuming = 0;
    /// Factor of efforts in a ramp, and its time derivative.
    std::array<Scalar, 2> share{1, 0};

    void configure(const LoopParameters<Robot> &chosen) noexcept
    {
        parameters = chosen;
        feedback_.configure(chosen);
        longest_gap_ = LONGEST_GAP; // within a stream
        if (chosen.setpoint_timeout > 0)
            longest_gap_ = std::min<std::int64_t>(std::llround(1e9 * chosen.setpoint_timeout), LONGEST_GAP);
    }

    /// A cycle at a time of the loop, ns, after a step of at most LONGEST_RESPONSE_STEP, and another one on the clock.
    void pass(std::int64_t time, std::int64_t step, std::int64_t passed) noexcept
    {
        latest = time;
        step_ = step;
        paced_ += step;
        passed = std::max<std::int64_t>(passed, 0);
        passed_ = std::min(passed, longest_gap_);
        unchanged_ = std::min(unchanged_ + passed, longest_gap_);
        silent_ = std::min(silent_ + passed, longest_gap_);
    }

    /// Whether the last command is older than the last cycle: motors stand there.
    bool stands() const noexcept { return unchanged_ > passed_; }

    /// Leaves out time, ns, which a motion of the loop has lost and which is over once it rests: its springs go on.
    void skip(std::int64_t time) noexcept
    {
        if (time <= 0 || stamp_ == 0 || leader_ == Leader::setpoints)
            return;
        stamp_ += time;
        filter_.skip(time);
        present_filter_.skip(time);
    }

    /// Forgets commands; efforts may pass from those that were sent last.
    void forget(bool passes = false) noexcept
    {
        passes = passes && output.valid;
        output = {};
        leader_ = Leader::none;
        output.setpoint = robot.rest();
        filter_.forget();
        present_filter_.forget();
        feedback_.forget();
        gate_.forget(passes);
    }

    /// Has a motion without setpoints begin at a time of the loop, ns, with the wrenches, the stiffness and the motion of the
    /// base of a setpoint then; and has others have them some time after the last cycle, ns.
    void begin_company(const Setpoint<Robot> &from, std::int64_t now) noexcept
    {
        company.begin(from);
        accompanied_ = now;
    }
    void accompany(Setpoint<Robot> &x, std::int64_t later = 0) const noexcept
    {
        company.accompany(x, seconds(std::max<std::int64_t>(latest + later - accompanied_, 0)), parameters.stop_duration);
    }

    /// Another motion begins, such as a stop after another one; or the output has been changed.
    void renew() noexcept { gate_.renew(); }
    void change_output() noexcept { renewed_ = true; }

    EOM_SELDOM void refuse(const Reason &why) noexcept
    {
        ++counts.refused;
        reason = why;
    }

    /// Makes a setpoint and its command the present ones, unless it is refused; returns whether it was not.
    ///
    /// The command is for the motion at the lead, which may be given. One that is not refused by limits that are to be refused
    /// leaves the payload as it is: see yield_payload(). Amid a stop or a change of pace, whose limits were checked without
    /// changes of the payload that have not begun, these are held. From a setpoint of a stream the arm must be able to stop
    /// within limits of positions; what the loop makes itself ends there.
    bool accept(const Setpoint<Robot> &x, std::int64_t stamp, Leader leader, bool refusable = true,
                const State<n> *ahead = nullptr, bool held = false) noexcept
    {
        payload_.hold(held);
        payload_stamp_ = leader == Leader::setpoints ? stamp : 0;
        const Refusal why = leader == Leader::setpoints ? Refusal::none : objection(x); // which were judged before
        if (why != Refusal::none && (refusable || why != Refusal::free_fall)) {
            refuse(why);
            return false;
        }
        const bool yields = !refusable && parameters.limits == LimitPolicy::refuse;
        if (!evaluate(x, stamp, ahead, payload_) || (yields && !meets() && !yield_payload(x, stamp, ahead))) {
            exceeded_ = result_;
            exceeding_ = candidate_;
            const Reason far = Limits<Robot>::far(robot, own().q);
            refuse(parameters.limits != LimitPolicy::ignore && far.refusal != Refusal::none ? far : undefined());
            return false;
        }
        const bool stops = leader != Leader::setpoints || Limits<Robot>::can_stop(robot, own(), parameters.stop_duration);
        const bool exceeds = parameters.limits != LimitPolicy::ignore && !(stops && meets());
        if (exceeds) {
            ++counts.over_limits;
            exceeded_ = result_;
            exceeding_ = own();
            if (const Reason far = Limits<Robot>::far(robot, own().q); refusable && far.refusal != Refusal::none) {
                refuse(far);
                return false;
            }
            // An arm that was led, or found, beyond limits of its positions may come back.
            const bool returns = stops && output.valid && Limits<Robot>::returns(robot, own().q, output.setpoint.q) &&
                                 Limits<Robot>::meets_others(robot, own(), result_, shafts_);
            if (refusable && !returns && parameters.limits == LimitPolicy::refuse) {
                refuse(worst(stops ? Refusal::over_limits : Refusal::cannot_stop));
                return false;
            }
        }
        if (blocks(leader, stamp)) {
            if (refusable) {
                refuse(blocked_);
                return false;
            }
            if (blocked_.quantity == Quantity::motor_position)
                gate_.change(); // to a stop that leaves out noise, or rests at once, motors pass
        }
        payload_.keep(payload_stamp_, paced_);
        if (refusable)
            payload_.resume();
        if (robot.filters() || robot.slides()) {
            filter_.keep(stamp, result_, candidate_);
            if (apart())
                present_filter_.keep(stamp, present_, setpoint_);
        }
        find_deflections();
        feedback_.refer(apart() ? present_ : result_);
        if (parameters.limits == LimitPolicy::clip)
            Limits<Robot>::clip(robot, result_);
        else if (exceeds)
            gate_.clip(result_.motor_effort, result_.tau, Command<Robot>(result_), leader, parameters.limits);
        output.setpoint = own();
        output.setpoint.deflection = candidate_.deflection;
        output.setpoint.friction_state = candidate_.friction_state;
        output.command = result_;
        stamp_ = stamp;
        output.status = Status::fresh;
        output.valid = true;
        if (robot.converts())
            sent_for_ = candidate_;
        share = {1, 0};
        leader_ = leader;
        renewed_ = true;
        spare_ = std::clamp<std::int64_t>(unchanged_ + spare_ - used_, 0, most_spare_);
        unchanged_ = 0;
        ++counts.followed;
        return true;
    }

    /// Makes a command of the last setpoint again some time after it, ns, with the payload of now.
    void repeat(std::int64_t step) noexcept
    {
        const Status status = output.status;
        accept(output.setpoint, stamp_ ? stamp_ + step : 0, leader_, false);
        output.status = status;
        payload_.go_by_clock();
    }

    /// Why a setpoint is refused before anything is computed.
    Refusal objection(const Setpoint<Robot> &x) const noexcept
    {
        if (!finite(x.q, x.qd, x.qdd, x.qddd, x.qdddd) || !finite(x.W, x.Wd, x.Wdd))
            return Refusal::not_finite;
        if (!x.on_base)
            return Refusal::none;
        const BaseMotion<Scalar> &base = x.base;
        if (!robot.base_moves())
            return Refusal::moving_base;
        if (!finite(base.w, base.wd, base.wdd, base.wddd, base.f, base.fd, base.fdd))
            return Refusal::not_finite;
        const auto none = [](Scalar entry) { return entry == 0; };
        return std::all_of(base.f.begin(), base.f.end(), none) ? Refusal::free_fall : Refusal::none;
    }

    /// Largest excess of a motion from a time on, ns, in a time, s, over limits that its start meets, at instants after it, or
    /// that of the first ones if it is not below the least so far; infinite where motors cannot realise it. Without transients
    /// of dampers and friction, with the payload as it changes meanwhile.
    template <class Motion>
    double excess_of(const Motion &motion, std::int64_t begin, double duration, std::size_t samples, double least) noexcept
    {
        Limits<Robot> limits(robot);
        double most = 0;
        for (std::size_t k = 0; k <= samples && most < least; ++k) {
            const double part = static_cast<double>(k) / static_cast<double>(samples);
            motion(part, candidate_);
            most = std::max(most, excess_at(candidate_, begin + std::llround(1e9 * part * duration), limits, k == 0));
        }
        return most;
    }

    /// The setpoint of a state, with what the last command has beside the motion of joints, at rest.
    void move(const State<n> &state, Setpoint<Robot> &x) const noexcept
    {
        x = resting();
        x.W = output.setpoint.W;
        take(state, x);
    }

    /// Excess of one setpoint at a time, ns, over limits, or over those less a margin, at least a number; the start of a motion
    /// widens them first.
    double excess_at(const Setpoint<Robot> &x, std::int64_t time, Limits<Robot> &limits, bool widens, double margin = 0,
                     double least = 0) noexcept
    {
        if (&x != &candidate_)
            candidate_ = x;
        payload_.predict(paced_ + (time - latest), paced_, candidate_);
        return excess(limits, widens, margin, least);
    }

    /// The same, but of the setpoint of the last excess, with what is to come of payloads by a time from now on, s: see
    /// PayloadBlend::expect.
    double excess_awaited(Limits<Robot> &limits, double margin = 0, double least = 0, double time = -1) noexcept
    {
        double most = least;
        for (const bool halfway : {false, true})
            if (most <= LIMIT_TOLERANCE && payload_.expect(time, halfway, candidate_))
                most = std::max(most, excess(limits, false, margin, least));
        return most;
    }

    /// The worst limit of such a motion where it exceeds them most, which is then as a command beyond limits.
    template <class Motion>
    EOM_SELDOM Reason worst_of(Refusal why, const Motion &motion, std::int64_t begin, double duration, std::size_t samples) noexcept
    {
        Limits<Robot> limits(robot);
        double most = 0;
        for (std::size_t k = 0; k <= samples; ++k) {
            const double part = static_cast<double>(k) / static_cast<double>(samples);
            motion(part, candidate_);
            const double found = excess_at(candidate_, begin + std::llround(1e9 * part * duration), limits, k == 0);
            if (found > most) {
                most = found;
                exceeded_ = result_;
                exceeding_ = candidate_;
            }
        }
        return worst(why);
    }

    /// Motor velocities of the last excess.
    const MotorVector<Robot> &motor_velocity() const noexcept { return result_.motor_velocity; }

    /// Adds feedback, and what is sent, to the output. Where the arm complies, the motors are sent to where they are.
    void complete(const Measurement<Robot> &measured) noexcept
    {
        const Mode mode = feedback_.mode();
        // Where the arm complies, its motors give up what joints do.
        const bool complies = mode != Mode::position;
        gate_.pass_positions(output.setpoint, output.command, complies, step_);
        const bool passes = gate_.positions().lasts(); // else nothing is to be copied
        const bool usable =
            passes ? feedback_.add(output, share[0], unshifted(measured)) : feedback_.add(output, share[0], measured);
        counts.unmeasured += !usable;
        if (mode != Mode::position)
            sent_for_ = output.setpoint;
        if (mode == Mode::gravity_compensation) {
            output.setpoint.q = feedback_.impedance().links();
            output.command = feedback_.impedance().command();
            gate_.clip(output.command.motor_effort, output.command.tau, feedback_.impedance().command(), leader_, parameters.limits);
        }
        const Command<Robot> &y = complies ? feedback_.impedance().command() : output.command;
        if (!usable && output.status == Status::fresh)
            output.status = Status::held;
        const LimitPolicy policy = complies ? LimitPolicy::clip : parameters.limits;
        const bool passed =
            gate_.pass(output, y, leader_, !renewed_ && !complies, complies, step_, seconds(least_step()), policy);
        renewed_ = complies || !passed;
        if (!passed)
            return;
        if (!passes) {
            send(y);
            return;
        }
        Command<Robot> elsewhere = y;
        const auto &[position, velocity] = gate_.positions().offset();
        for (std::size_t i = 0; i < Robot::motors; ++i)
            elsewhere.motor_position[i] += position[i], elsewhere.motor_velocity[i] += velocity[i];
        send(elsewhere);
    }

    /// What would be measured were motors sent to where they are commanded, also while they pass from another mode.
    Measurement<Robot> unshifted(Measurement<Robot> measured) const noexcept
    {
        if (!gate_.positions().lasts())
            return measured;
        const auto &[position, velocity] = gate_.positions().offset();
        measured.motor_position = difference(measured.motor_position, position);
        measured.motor_velocity = difference(measured.motor_velocity, velocity);
        measured.q = difference(measured.q, sides_of(robot, position));
        measured.qd = difference(measured.qd, sides_of(robot, velocity));
        return measured;
    }

    /// Who leads the arm, and where the measured motors have its links.
    Mode mode() const noexcept { return feedback_.mode(); }
    const Impedance<Robot> &impedance() const noexcept { return feedback_.impedance(); }

    /// The joint, from 1 on, that hands have led furthest beyond a limit of its position, or 0.
    std::size_t led_beyond() const noexcept
    {
        const std::size_t joint = mode() == Mode::position ? robot.joint_count() : impedance().beyond();
        return joint < robot.joint_count() ? joint + 1 : 0;
    }

    /// Changes the mode; returns whether what is measured suffices.
    bool change(Mode mode, const Measurement<Robot> &measured) noexcept
    {
        if (!feedback_.change(mode, output.setpoint, measured))
            return false;
        gate_.change();
        leader_ = Leader::hands; // another one begins with the next setpoint
        return true;
    }

    /// Makes a state of the arm the setpoint without a command, which is that of gravity compensation.
    void be_led() noexcept
    {
        Setpoint<Robot> &x = candidate_ = resting();
        x.deflection.fill(Robot::settled);
        payload_.hold(false);
        payload_.at(0, paced_, x);
        payload_.keep(0, paced_);
        x.Pd = x.Pdd = {};
        output.setpoint = x;
        output.status = Status::fresh;
        leader_ = Leader::hands;
        share = {1, 0};
    }

    /// Takes the motion of the links from that of the motors, between which the springs carry gravity; returns whether
    /// there is an equilibrium, to which links go that start without deflection.
    bool find_links(const Measurement<Robot> &measured, Setpoint<Robot> &x) noexcept
    {
        const JointVector<Robot> wanted = sides_of(robot, measured.motor_position);
        const auto flow = [&](const JointVector<Robot> &q) {
            candidate_ = x;
            candidate_.q = q;
            payload_.at(0, paced_, candidate_);
            compute(filter_, 0);
            JointVector<Robot> away = sides_of(robot, result_.motor_position);
            for (std::size_t i = 0; i < n; ++i)
                away[i] = wanted[i] - away[i];
            // Places without a joint stay where they are.
            for (std::size_t i = robot.joint_count(); i < n; ++i)
                away[i] = -q[i];
            return away;
        };
        x.qd = {};
        JointVector<Robot> q = wanted;
        if (!relax(flow, q))
            return false;
        JointVector<Robot> rate = sides_of(robot, measured.motor_velocity);
        x.q = q;
        if (solve(slope(flow, q, flow(q)), rate))
            x.qd = rate;
        return true;
    }

    /// Takes what the tools carry from the next setpoint on, in the thread of update(), as PayloadBlend::change, unless the
    /// arm cannot hold it where it is, or pass to it in that time, within limits that are refused or clipped. While nothing is
    /// commanded, it is where its links are measured.
    template <class... Changed>
    const char *carry(const Measurement<Robot> &measured, const Changed &...changed) noexcept
    {
        overload_ = {};
        const PayloadBlend<Robot> before = payload_;
        payload_refusal_ = robot.carries() ? payload_.change(changed...) : "export feedforward_with_payload, too, for payloads";
        if (!payload_refusal_ && overloads(measured)) {
            payload_ = before;
            payload_refusal_ = OVERLOADED;
        }
        counts.refused_payloads += payload_refusal_ != nullptr;
        return payload_refusal_;
    }

    /// Whether the arm can rest at a position with what the tools are to carry, within limits that are refused or clipped.
    bool holds(const JointVector<Robot> &q) noexcept
    {
        if (!limited())
            return true;
        candidate_ = robot.rest();
        candidate_.q = q;
        foresee(candidate_);
        if (settle() && Limits<Robot>::meets_others(robot, candidate_, result_, shafts_))
            return true;
        overload_ = {};
        find_overload();
        return false;
    }

    /// Has a setpoint carry what the tools are to carry in the end; returns whether that is to change.
    bool foresee(Setpoint<Robot> &x) const noexcept
    {
        payload_.predict(paced_, paced_, x);
        const bool changes = payload_.expect(-1, false, x);
        x.Pd = x.Pdd = {};
        return changes;
    }

    /// What is sent last when the loop is switched off: motors hold their positions, at the efforts of
    /// effort_on_deactivate, unless these have faded. The output stays as it is.
    const DriveCommand<Robot> &release(const Measurement<Robot> &measured, bool faded) noexcept
    {
        released_ = {output.sent.drive_position, {}, {}, {}, {}};
        released_command_ = {};
        final_efforts_ = false;
        released_command_.motor_position = output.command.motor_position;
        if (parameters.effort_on_deactivate == EffortOnDeactivate::keep) {
            released_.drive_effort = output.sent.drive_effort;
            released_.sent_effort = output.sent.sent_effort;
            released_command_.tau = output.joint_effort;
            released_command_.motor_effort = output.motor_effort;
        } else if (parameters.effort_on_deactivate == EffortOnDeactivate::gravity && !faded) {
            Setpoint<Robot> x = resting();
            if (measured.links && finite(measured.q))
                x.q = measured.q;
            else if (!measured.links && measured.motors)
                find_links(measured, x);
            x.qd = {};
            candidate_ = x;
            payload_.at(0, paced_, candidate_);
            candidate_.Pd = candidate_.Pdd = {};
            compute(filter_, 0);
            if (finite(result_)) {
                if (parameters.limits == LimitPolicy::clip)
                    Limits<Robot>::clip(robot, result_);
                DriveCommand<Robot> sent{{}, {}, result_.motor_effort, result_.tau, {}};
                if (robot.converts())
                    robot.drive_command(candidate_, result_, result_.motor_effort, result_.tau, {1, 0}, sent);
                released_.drive_effort = sent.drive_effort;
                released_.sent_effort = sent.sent_effort;
                final_efforts_ = true;
                released_command_.tau = result_.tau;
                released_command_.motor_effort = result_.motor_effort;
            }
        }
        return released_;
    }

    /// What release() has written, and the command that it is of.
    const DriveCommand<Robot> &final_sent() const noexcept { return released_; }
    const Command<Robot> &final_command() const noexcept { return released_command_; }
    /// Whether its efforts could be computed.
    bool final_efforts() const noexcept { return final_efforts_; }
    /// The command that exceeded limits last, before it was clipped or refused.
    const Command<Robot> &exceeded() const noexcept { return exceeded_; }
    /// The setpoint of that command.
    const Setpoint<Robot> &exceeding() const noexcept { return exceeding_; }
    /// Source of the last command.
    Leader leader() const noexcept { return leader_; }
    /// Calls a function with each limit that the last command beyond limits exceeds, before any clipping.
    template <class Function>
    void violations(const Function &call) const noexcept
    {
        Shafts<Robot> shafts;
        robot.drive(exceeded_, shafts);
        Limits<Robot>::violations(robot, exceeding_, exceeded_, shafts, parameters.stop_duration, call);
    }
    /// Stamp of the last setpoint, ns.
    std::int64_t stamp() const noexcept { return stamp_; }
    /// Why the last payload was refused, or null.
    const char *payload_refusal() const noexcept { return payload_refusal_; }
    /// Whether limits have kept a payload that was not refused from changing further.
    bool payload_stays() const noexcept { return payload_refusal_ == NO_FURTHER; }
    /// The limit that the arm would exceed with it, or at a target that was refused later, or none.
    const Reason &overload() const noexcept { return overload_; }
    /// Whether the payload changes, or waits for a setpoint.
    bool blending() const noexcept { return payload_.blending(); }
    bool payload_waits() const noexcept { return payload_.waits(); }
    /// Whether limits that are refused may be those of a payload, too, for which no motion was planned.
    bool loaded() const noexcept { return parameters.limits == LimitPolicy::refuse && payload_.loads(); }

  private:
    /// Whether limits are refused or clipped.
    bool limited() const noexcept
    {
        return parameters.limits == LimitPolicy::refuse || parameters.limits == LimitPolicy::clip;
    }

    /// The last position at rest, with the stiffness and the motion of the base.
    Setpoint<Robot> resting() const noexcept
    {
        Setpoint<Robot> x = robot.rest();
        x.q = output.setpoint.q;
        x.k = output.setpoint.k;
        x.base = output.setpoint.base;
        x.on_base = output.setpoint.on_base;
        return x;
    }

    /// Whether the command is for a lead, and whether feedback needs that of the setpoint itself beside it.
    bool leads() const noexcept { return parameters.command_lead > 0; }
    bool apart() const noexcept { return leads() && feedback_.reads_motors(); }
    /// The setpoint of the last result, and whether both are within limits.
    const Setpoint<Robot> &own() const noexcept { return leads() ? setpoint_ : candidate_; }
    bool meets() const noexcept { return Limits<Robot>::meets(robot, own(), result_, shafts_); }

    /// Computes the command of a setpoint with a payload; returns whether it is finite.
    bool evaluate(const Setpoint<Robot> &x, std::int64_t stamp, const State<n> *ahead,
                  const PayloadBlend<Robot> &payload) noexcept
    {
        candidate_ = x;
        payload.at(payload_stamp_, paced_, candidate_);
        if (leads())
            setpoint_ = candidate_;
        if (apart()) {
            compute(present_filter_, stamp);
            present_ = result_;
            setpoint_.deflection = candidate_.deflection;
            setpoint_.friction_state = candidate_.friction_state;
        }
        if (leads())
            advance(candidate_, static_cast<Scalar>(parameters.command_lead));
        if (leads() && ahead)
            take(*ahead, candidate_);
        compute(filter_, stamp);
        if (!(finite(result_) && can_be_sent()))
            return false;
        if (parameters.limits != LimitPolicy::ignore)
            robot.drive(result_, shafts_);
        return true;
    }

    /// Has the payload stay as it is while the arm slows, or where its change takes the command of a setpoint further beyond a
    /// limit than the payload before it would; returns whether the command is finite.
    bool yield_payload(const Setpoint<Robot> &x, std::int64_t stamp, const State<n> *ahead) noexcept
    {
        PayloadBlend<Robot> before = payload_;
        if (!before.stay(true))
            return true;
        const bool stays = payload_.held() || (evaluate(x, stamp, ahead, before) && meets());
        Limits<Robot> limits(robot);
        limits.widen(own(), result_, shafts_);
        evaluate(x, stamp, ahead, payload_);
        if (!stays && limits.excess(own(), result_, shafts_) <= LIMIT_TOLERANCE)
            return true;
        find_overload();
        counts.refused_payloads += !payload_stays();
        payload_refusal_ = NO_FURTHER;
        payload_.stay();
        gate_.renew(); // its rates end at once
        return evaluate(x, stamp, ahead, payload_);
    }

    /// Excess of the candidate, see excess_at().
    double excess(Limits<Robot> &limits, bool widens, double margin = 0, double least = 0) noexcept
    {
        if (!settle())
            return std::numeric_limits<double>::infinity();
        if (widens)
            limits.widen(candidate_, result_, shafts_);
        return limits.excess(candidate_, result_, shafts_, margin, least);
    }

    /// Computes the command of the candidate without transients; returns whether it is finite.
    bool settle() noexcept
    {
        candidate_.deflection.fill(Robot::settled);
        candidate_.friction_state = Robot::settled_friction;
        robot.feedforward(candidate_, result_);
        if (!finite(result_))
            return false;
        robot.drive(result_, shafts_);
        return true;
    }

    /// Whether the resting arm cannot hold the payload that waits, or cannot pass to it, within limits.
    bool overloads(const Measurement<Robot> &measured) noexcept
    {
        if (!limited() || !(output.valid || (measured.links && finite(measured.q))))
            return false;
        Limits<Robot> limits(robot);
        Setpoint<Robot> x = resting();
        if (!output.valid)
            x.q = measured.q;
        excess_at(x, latest, limits, true);
        if (excess_awaited(limits) <= LIMIT_TOLERANCE)
            return false;
        find_overload();
        return true;
    }

    /// Notes which quantity of the last result is furthest beyond its limit.
    void find_overload() noexcept
    {
        double most = 0;
        const auto look = [&](Quantity of, const auto &values, const auto &low, const auto &high) {
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double value = std::fabs(values[i]), bound = std::fabs(values[i] > 0 ? high[i] : low[i]);
                if (value > most * bound) {
                    most = value / bound;
                    overload_ = {Refusal::overload, of, i, value, bound};
                }
            }
        };
        const auto &low = robot.lower, &high = robot.upper;
        look(Quantity::effort, result_.tau, low.tau, high.tau);
        look(Quantity::effort_rate, result_.taud, low.taud, high.taud);
        look(Quantity::motor_velocity, result_.motor_velocity, low.motor_velocity, high.motor_velocity);
        look(Quantity::motor_effort, result_.motor_effort, low.motor_effort, high.motor_effort);
        look(Quantity::voltage, shafts_.voltage, robot.voltage_limit, robot.voltage_limit);
        look(Quantity::motors_effort, shafts_.sum, low.motor_sum, high.motor_sum);
    }

    /// The worst limit that the last command beyond limits exceeds, and how many others it does.
    EOM_SELDOM Reason worst(Refusal why) const noexcept
    {
        Reason most(why);
        std::size_t count = 0;
        bool degrees = false;
        violations([&](const Reason &x) {
            ++count;
            const bool rate = x.quantity == Quantity::velocity || x.quantity == Quantity::speed;
            degrees = degrees || (rate && x.ratio > IN_DEGREES);
            if (x.ratio > most.ratio)
                most = x;
        });
        most.refusal = why;
        most.more = count - (count > 0);
        most.degrees = degrees;
        return most;
    }

    /// What is not finite of the last result, or of what would be sent for it.
    EOM_SELDOM Reason undefined() const noexcept
    {
        Reason found(Refusal::not_finite);
        const auto look = [&](Quantity of, const auto &values) {
            for (std::size_t i = 0; i < values.size() && found.quantity == Quantity::none; ++i)
                if (!std::isfinite(values[i]))
                    found = {Refusal::not_finite, of, i, values[i]};
        };
        look(Quantity::effort, result_.tau), look(Quantity::effort_rate, result_.taud);
        look(Quantity::effort_acceleration, result_.taudd), look(Quantity::motor_position, result_.motor_position);
        look(Quantity::motor_velocity, result_.motor_velocity), look(Quantity::motor_acceleration, result_.motor_acceleration);
        look(Quantity::motor_effort, result_.motor_effort);
        DriveCommand<Robot> sent;
        if (found.quantity != Quantity::none || !robot.converts() ||
            robot.drive_command(candidate_, result_, result_.motor_effort, result_.tau, {1, 0}, sent))
            return found;
        look(Quantity::drive_position, sent.drive_position), look(Quantity::drive_velocity, sent.drive_velocity);
        look(Quantity::drive_effort, sent.drive_effort);
        look(Quantity::sent_effort, sent.sent_effort), look(Quantity::sent_effort_rate, sent.sent_effort_rate);
        return found;
    }

    /// The feedforward of the candidate, with the states of damped springs and of presliding friction.
    void compute(DeflectionFilter<Robot> &filter, std::int64_t stamp) noexcept
    {
        if (robot.filters()) {
            robot.inverse_dynamics(candidate_, result_);
            filter.at(stamp, result_, candidate_.deflection);
        }
        robot.feedforward(candidate_, result_);
        if (robot.slides()) {
            filter.slide(stamp, result_, candidate_.friction_state);
            robot.feedforward(candidate_, result_);
        }
    }

    /// Motor positions at the joint sides of the springs, less those of the links.
    void find_deflections() noexcept
    {
        const std::size_t count = robot.motor_count();
        for (std::size_t i = 0; i < count; ++i) {
            Scalar side = result_.motor_position[i];
            if (robot.couples()) {
                side = 0;
                for (std::size_t j = 0; j < count; ++j)
                    side += robot.joint_sides[i * count + j] * result_.motor_position[j];
            }
            output.deflection[i] = side - candidate_.q[robot.motor_joint[i]];
        }
    }

    /// Time of a cycle, of at least a period, ns.
    std::int64_t least_step() const noexcept
    {
        return std::max(step_, std::min<std::int64_t>(std::llround(1e9 * period), LONGEST_RESPONSE_STEP));
    }

    /// Time that motors take at least from the last command to the next one, s.
    double least_time() const noexcept
    {
        double longest = 0;
        for (std::size_t i = 0; i < robot.motor_count(); ++i)
            longest = std::max(longest, static_cast<double>(std::fabs(result_.motor_position[i] - output.command.motor_position[i]) /
                                                            robot.motor_speed[i]));
        return longest;
    }

    /// Whether a step from the last command is more than motors can make in a cycle, or, of setpoints, in the time of their stamps,
    /// with jitter: in all not more than passes, and a little that others before have left.
    bool blocks(Leader leader, std::int64_t stamp) noexcept
    {
        const bool given = leader == Leader::setpoints;
        used_ = 0;
        if (given) {
            const bool goes_on = leader_ == Leader::setpoints; // what waits in a gap of a stream has its time
            most_spare_ = goes_on ? std::max({MOST_SPARE, most_spare_ - silent_, silent_}) : MOST_SPARE;
            spare_ = std::min(spare_, most_spare_);
            silent_ = 0;
        }
        if (!output.valid || parameters.limits == LimitPolicy::ignore || (given && parameters.jump_check != CheckPolicy::refuse))
            return false;
        std::int64_t time = least_step();
        if (given) {
            const bool stamped = stamp_ && stamp && leader_ == Leader::setpoints;
            time = std::min(unchanged_ + spare_, STAMP_JITTER + std::max(unchanged_, stamped ? stamp - stamp_ : 0));
            used_ = std::llround(1e9 * std::min(least_time(), 1.0));
        }
        if (!gate_.judge(result_, output.command, seconds(time), !given, leader == leader_, blocked_))
            return false;
        if (given && blocked_.quantity == Quantity::motor_position && blocked_.value <= resuming) {
            gate_.change(); // motors pass to where they are to be
            used_ = 0;
            return false;
        }
        return true;
    }

    /// Writes what is sent of a command with the efforts of the output, where that is finite in the units of the drives.
    void send(const Command<Robot> &y) noexcept
    {
        if (robot.converts()) {
            DriveCommand<Robot> sent;
            if (robot.drive_command(sent_for_, y, output.motor_effort, output.joint_effort, share, sent))
                output.sent = sent;
        } else {
            output.sent.drive_position = y.motor_position;
            output.sent.drive_velocity = y.motor_velocity;
            output.sent.drive_effort = output.motor_effort;
            output.sent.sent_effort = output.joint_effort;
        }
    }

    /// Whether the command is finite in the units of the drives.
    bool can_be_sent() const noexcept
    {
        if (!robot.converts())
            return true;
        DriveCommand<Robot> sent;
        return robot.drive_command(candidate_, result_, result_.motor_effort, result_.tau, {1, 0}, sent);
    }

    // A setpoint with its payload: as given, kept where there is a lead, and at the lead.
    Setpoint<Robot> setpoint_, candidate_;
    Command<Robot> result_;
    DeflectionFilter<Robot> filter_;
    // Of the setpoint itself, where feedback of the motors needs it beside that at the lead.
    Command<Robot> present_;
    DeflectionFilter<Robot> present_filter_;
    Feedback<Robot> feedback_;
    Gate<Robot> gate_;
    Leader leader_ = Leader::none;
    // Whether the output has changed since the gate has passed it.
    bool renewed_ = true;
    // Stamp by which the payload changes, ns; 0 for the time of the loop, by which the loop's own motions go.
    std::int64_t payload_stamp_ = 0;
    // Time of the last cycle, by the loop and by the clock; time since the last command that was new, and since the last
    // setpoint, also a refused one; and when the motion without setpoints began, ns.
    std::int64_t step_ = 0, passed_ = 0, unchanged_ = 0, silent_ = 0, accompanied_ = 0;
    std::int64_t longest_gap_ = LONGEST_GAP;
    // Time that the step of a setpoint takes motors, that which steps before have left of the time that has passed, and the most, ns.
    std::int64_t used_ = 0, spare_ = MOST_SPARE, most_spare_ = MOST_SPARE;
    // Sum of the steps, by which payloads change, ns.
    std::int64_t paced_ = 0;
    static constexpr std::int64_t STAMP_JITTER = std::int64_t(1e9 * @stamp_jitter@),
                                  MOST_SPARE = LONGEST_RESPONSE_STEP + STAMP_JITTER;
    PayloadBlend<Robot> payload_;
    static constexpr const char *OVERLOADED = "give mass in kg, centre of mass in m, and a blend_time that is long enough",
                                *NO_FURTHER = "limits allow no more of it here: set a lighter one, or move";
    const char *payload_refusal_ = nullptr;
    Shafts<Robot> shafts_;
    DriveCommand<Robot> released_;
    Command<Robot> released_command_, exceeded_;
    Setpoint<Robot> exceeding_;
    bool final_efforts_ = false;
    std::int64_t stamp_ = 0;
    // The setpoint that the command is for, where what is sent depends on it.
    Setpoint<Robot> sent_for_;
    // Behind what cycles read: the last step that motors cannot make, and the limit that a payload or target exceeds.
    Reason blocked_, overload_;

  public:
    /// Why the last reference was refused.
    Reason reason;
};

} // namespace eom

#endif
