// SPDX-License-Identifier: Apache-2.0
// Command of a setpoint: payload, feedforward within limits, feedback, and conversion to drive units.
#ifndef EOM_COMMANDER_HPP
#define EOM_COMMANDER_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "company.hpp"
#include "evaluation.hpp"
#include "feedback.hpp"
#include "gate.hpp"
#include "state_machine.hpp"
#include "step_time.hpp"

namespace eom {

/// Computes and checks the command of each setpoint; the motion sources choose the setpoint of a cycle.
template <class Robot>
class Commander : public Evaluation<Robot> {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    using Base = Evaluation<Robot>;
    using Base::robot;
    using Base::parameters;
    using Base::output;
    using Base::counts;
    using Base::latest;
    using Base::stops;

    explicit Commander(const Robot &of) noexcept
        : Base(of), present_filter_(of), feedback_(of), gate_(of)
    {
        forget();
    }

    StateMachine state_machine;
    /// Period of the last cycle, s.
    double period = 0;
    /// Wrench, stiffness and base motion of motions without setpoints.
    Company<Robot> company;
    /// Maximum motor position step of resuming setpoints, rad or m; 0 if setpoints do not resume.
    double resuming = 0;

    void configure(const LoopParameters<Robot> &chosen) noexcept
    {
        parameters = chosen;
        feedback_.configure(chosen);
        const std::int64_t timeout = chosen.setpoint_timeout > 0 ? std::llround(1e9 * chosen.setpoint_timeout) : LONGEST_GAP;
        step_time_.limit(std::min<std::int64_t>(timeout, LONGEST_GAP));
    }

    /// Start a cycle at loop time `time`, ns, `passed` after the last cycle. `step` is `passed`, at most LONGEST_RESPONSE_STEP.
    void pass(std::int64_t time, std::int64_t step, std::int64_t passed) noexcept
    {
        latest = time;
        step_ = step;
        paced_ += step;
        step_time_.pass(std::max<std::int64_t>(passed, 0));
    }

    /// Returns true if the last command is older than the last cycle, so that the motors hold it.
    bool stands() const noexcept { return step_time_.stands(); }

    /// After a motion of the loop, skip the delay `time`, ns, that loop time makes up, without transients of springs and friction.
    void skip(std::int64_t time) noexcept
    {
        if (time <= 0 || stamp_ == 0 || leader_ == Leader::setpoints)
            return;
        stamp_ += time;
        filter_.skip(time);
        present_filter_.skip(time);
    }

    /// Reset the commands. With `passes`, blend from the last efforts to the next command.
    void forget(bool passes = false) noexcept
    {
        passes = passes && output.valid;
        const DriveCommand<Robot> sent = output.sent;
        output = {};
        if (passes)
            output.sent = sent;
        leader_ = Leader::none;
        output.setpoint = robot.rest();
        if (!passes)
            payload_.complete();
        filter_.forget();
        present_filter_.forget();
        feedback_.forget();
        gate_.forget(passes);
    }

    /// Start the auxiliary inputs from setpoint `from` at loop time `now`, ns; their rates fade within `time` s or stop_duration.
    void begin_company(const Setpoint<Robot> &from, std::int64_t now) noexcept { begin_company(from, now, parameters.stop_duration); }
    void begin_company(const Setpoint<Robot> &from, std::int64_t now, double time) noexcept
    {
        company.begin(from, time);
        accompanied_ = now;
    }
    /// Set the auxiliary inputs of x to their values `later` ns after the last cycle.
    void accompany(Setpoint<Robot> &x, std::int64_t later = 0) const noexcept
    {
        company.accompany(x, seconds(std::max<std::int64_t>(latest + later - accompanied_, 0)));
    }

    /// Treat the next command as the start of another motion, also from the same source.
    void renew() noexcept { gate_.renew(); }
    /// Set velocities and higher derivatives of the last command and its setpoint to zero.
    void stand_still() noexcept
    {
        output.command.motor_velocity = output.command.motor_acceleration = {};
        for (Setpoint<Robot> *const x : {&output.setpoint, &sent_for_})
            x->qd = x->qdd = x->qddd = x->qdddd = {};
        renewed_ = true;
    }

    EOM_SELDOM void refuse(const Reason &why) noexcept
    {
        ++counts.refused;
        reason = why;
    }

    /// Compute the command of setpoint x and make both current. Returns false if x is refused.
    ///
    /// The command is the feedforward at the command lead, with the motion `ahead` there, or else extrapolated from x. Limits are
    /// checked first, then the step from the last command; complete() adds feedback and the drive command. With `refusable` false,
    /// limits and steps cannot refuse x. With `held`, a pending payload change waits, because the limit checks of pace changes do
    /// not include it.
    bool accept(const Setpoint<Robot> &x, std::int64_t stamp, Leader leader, bool refusable = true,
                const State<n> *ahead = nullptr, bool held = false) noexcept
    {
        payload_stamp_ = leader == Leader::setpoints ? stamp : 0;
        const Refusal why = leader == Leader::setpoints ? Refusal::none : Base::objection(x); // the stream validates setpoints
        if (why != Refusal::none && (refusable || why != Refusal::free_fall)) {
            refuse(why);
            return false;
        }
        if (!evaluate(x, stamp, ahead)) {
            exceeded_ = result_;
            exceeding_ = candidate_;
            const Reason far = Limits<Robot>::far(robot, own().q);
            refuse(parameters.limits != LimitPolicy::ignore && far.refusal != Refusal::none ? far : Base::undefined());
            return false;
        }
        bool exceeds = false;
        if (!admits(leader, refusable, exceeds))
            return false;
        if (!can_step(leader, stamp)) {
            if (refusable) {
                refuse(blocked_);
                return false;
            }
            if (blocked_.quantity == Quantity::motor_position)
                gate_.change(); // blend positions into a stop that ignores noise or is at rest
        }
        commit_payload(held);
        keep(stamp, leader, exceeds);
        return true;
    }

    /// Compute the command of the last setpoint again, `step` ns later, with the present payload.
    void repeat(std::int64_t step) noexcept
    {
        const Status status = output.status;
        accept(output.setpoint, stamp_ ? stamp_ + step : 0, leader_, false);
        output.status = status;
        payload_.follow_clock();
    }

    /// Add feedback and the drive command to the output. In compliant modes, motor position commands equal measured positions.
    void complete(const Measurement<Robot> &measured) noexcept
    {
        const Mode mode = feedback_.mode();
        const bool complies = mode != Mode::position;
        const Setpoint<Robot> &x = leads() ? sent_for_ : output.setpoint;
        gate_.pass_positions(x, output.command, complies, step_);
        const bool passes = gate_.positions().is_active(); // otherwise, avoid copies
        const double time = seconds(step_);
        const bool usable =
            passes ? feedback_.add(output, unshifted(measured), time) : feedback_.add(output, measured, time);
        counts.unmeasured += !usable;
        if (mode != Mode::position)
            sent_for_ = output.setpoint;
        if (mode == Mode::gravity_compensation) {
            output.setpoint.q = feedback_.impedance().links();
            output.command = feedback_.impedance().command();
            Gate<Robot>::clip(robot, output.command.motor_effort, output.command.tau, feedback_.impedance().command(), false,
                              parameters.limits);
        }
        const Command<Robot> &y = complies ? feedback_.impedance().command() : output.command;
        if (!usable && output.status == Status::fresh)
            output.status = Status::held;
        const LimitPolicy policy = complies ? LimitPolicy::refuse : parameters.limits;
        const bool passed =
            gate_.pass(output, x, y, leader_, !renewed_ && !complies, complies, step_, seconds(least_step()), policy);
        renewed_ = complies || !passed;
        if (!passed) {
            output.valid = gate_.sends();
            return;
        }
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

    /// Returns the measurement without the position offsets of a mode change.
    Measurement<Robot> unshifted(Measurement<Robot> measured) const noexcept
    {
        if (!gate_.positions().is_active())
            return measured;
        const auto &[position, velocity] = gate_.positions().offset();
        measured.motor_position = difference(measured.motor_position, position);
        measured.motor_velocity = difference(measured.motor_velocity, velocity);
        measured.q = difference(measured.q, sides_of(robot, position));
        measured.qd = difference(measured.qd, sides_of(robot, velocity));
        return measured;
    }

    Mode mode() const noexcept { return feedback_.mode(); }
    /// Impedance, with the link positions estimated from the motors.
    const Impedance<Robot> &impedance() const noexcept { return feedback_.impedance(); }

    /// Returns the joint, from 1, that is furthest beyond its position limit in a compliant mode, or 0.
    std::size_t led_beyond() const noexcept
    {
        const std::size_t joint = mode() == Mode::position ? robot.joint_count() : impedance().beyond();
        return joint < robot.joint_count() ? joint + 1 : 0;
    }

    /// Returns the joint, from 1, that was guided too fast since hand guiding started, or 0.
    std::size_t guided_too_fast() const noexcept
    {
        const std::size_t joint = mode() == Mode::gravity_compensation ? impedance().too_fast() : robot.joint_count();
        return joint < robot.joint_count() ? joint + 1 : 0;
    }

    double guided_limit() const noexcept { return guided_too_fast() ? impedance().speed_limit(guided_too_fast() - 1) : 0; }

    /// Change the mode. Returns false if measurements do not suffice.
    bool change(Mode mode, const Measurement<Robot> &measured) noexcept
    {
        if (!feedback_.change(mode, output.setpoint, measured))
            return false;
        gate_.change();
        leader_ = Leader::hands; // the next setpoint starts a motion
        return true;
    }

    /// Set the output to a setpoint at rest for hand guiding; complete() computes its position and its command.
    void be_led() noexcept
    {
        Setpoint<Robot> &x = candidate_ = Base::resting();
        x.deflection.fill(Robot::settled);
        payload_stamp_ = 0;
        payload_.advance(0, paced_);
        payload_.apply(x);
        commit_payload(false);
        x.Pd = x.Pdd = {};
        output.setpoint = x;
        output.status = Status::fresh;
        leader_ = Leader::hands;
    }

    /// Source of the last command.
    Leader leader() const noexcept { return leader_; }
    /// Stamp of the last setpoint, or loop time if it has no stamp, ns. Damper transients continue from it.
    std::int64_t stamp() const noexcept { return stamp_ != 0 ? stamp_ : latest; }

  private:
    using Base::filter_;
    using Base::candidate_;
    using Base::result_;
    using Base::shafts_;
    using Base::exceeded_;
    using Base::exceeding_;
    using Base::payload_;
    using Base::paced_;
    using Base::payload_refusal_;

    bool leads() const noexcept { return robot.command_lead() > 0; }
    /// Returns true if motor feedback also needs the command without lead.
    bool apart() const noexcept { return leads() && feedback_.reads_motors(); }
    /// Setpoint of the last result, without lead.
    const Setpoint<Robot> &own() const noexcept { return leads() ? setpoint_ : candidate_; }
    bool meets() const noexcept { return Limits<Robot>::meets(robot, own(), result_, shafts_); }

    /// Extrapolate x to the command lead, or set its motion `ahead` there.
    void lead(Setpoint<Robot> &x, const State<n> *ahead) const noexcept
    {
        if (!leads())
            return;
        advance(x, static_cast<Scalar>(robot.command_lead()));
        if (ahead) {
            take(*ahead, x);
            accompany(x, std::llround(1e9 * robot.command_lead()));
        }
    }

    /// Call `call` with the commands of x before and after the present payload change, without transients.
    template <class Function>
    void compare_payloads(Setpoint<Robot> x, const Function &call) noexcept
    {
        Command<Robot> before, after;
        x.deflection.fill(Robot::settled);
        x.friction_state = Robot::settled_friction;
        payload_.apply_before(x);
        robot.feedforward(x, before);
        payload_.apply_after(x);
        robot.feedforward(x, after);
        call(before, after);
    }

    /// Commit the payload of the candidate, and start a pending change unless it is `held`.
    void commit_payload(bool held) noexcept
    {
        payload_.commit(payload_stamp_, paced_);
        if (held || !payload_.can_begin())
            return;
        payload_.begin();
        if (parameters.limits != LimitPolicy::ignore)
            compare_payloads(candidate_, [this](const auto &...commands) { payload_.begin_fade(robot, commands...); });
    }

    /// Compute the command of x. Returns true if it is finite, also in drive units.
    bool evaluate(const Setpoint<Robot> &x, std::int64_t stamp, const State<n> *ahead) noexcept
    {
        candidate_ = x;
        payload_.advance(payload_stamp_, paced_);
        if (payload_.is_fading() && parameters.limits != LimitPolicy::ignore) {
            lead(candidate_, ahead);
            compare_payloads(candidate_, [this](const auto &...commands) { payload_.slow_down(robot, commands...); });
            candidate_ = x;
        }
        payload_.apply(candidate_);
        if (leads())
            setpoint_ = candidate_;
        if (apart()) {
            Base::compute(present_filter_, stamp);
            present_ = result_;
            setpoint_.deflection = candidate_.deflection;
            setpoint_.friction_state = candidate_.friction_state;
        }
        lead(candidate_, ahead);
        Base::compute(filter_, stamp);
        if (!(finite(result_) && Base::can_be_sent()))
            return false;
        if (parameters.limits != LimitPolicy::ignore)
            robot.drive(result_, shafts_);
        return true;
    }

    /// Check the last result against limits, and set `exceeds`. Returns false if it is refused. After a setpoint of a stream, the
    /// arm must also be able to stop within position limits; motions of the loop end within them.
    bool admits(Leader leader, bool refusable, bool &exceeds) noexcept
    {
        const bool can_stop = leader != Leader::setpoints || Limits<Robot>::can_stop(robot, own(), *stops);
        exceeds = parameters.limits != LimitPolicy::ignore && !(can_stop && meets());
        if (!exceeds)
            return true;
        ++counts.over_limits;
        exceeded_ = result_;
        exceeding_ = own();
        if (!refusable)
            return true;
        if (const Reason far = Limits<Robot>::far(robot, own().q); far.refusal != Refusal::none) {
            refuse(far);
            return false;
        }
        // An arm beyond position limits may return, for example after hand guiding.
        const bool returns = can_stop && output.valid && Limits<Robot>::returns(robot, own().q, output.setpoint.q) &&
                             Limits<Robot>::meets_others(robot, own(), result_, shafts_);
        if (!returns && parameters.limits == LimitPolicy::refuse) {
            refuse(Base::worst(can_stop ? Refusal::over_limits : Refusal::cannot_stop));
            return false;
        }
        return true;
    }

    /// Commit the last result and its setpoint as the output. With `exceeds`, clip its efforts.
    void keep(std::int64_t stamp, Leader leader, bool exceeds) noexcept
    {
        if (robot.filters() || robot.slides()) {
            filter_.keep(stamp, result_, candidate_);
            if (apart())
                present_filter_.keep(stamp, present_, setpoint_);
        }
        find_deflections();
        feedback_.refer(apart() ? present_ : result_);
        if (exceeds)
            Gate<Robot>::clip(robot, result_.motor_effort, result_.tau, Command<Robot>(result_), leader == Leader::stop,
                              parameters.limits);
        output.setpoint = own();
        output.setpoint.deflection = candidate_.deflection;
        output.setpoint.friction_state = candidate_.friction_state;
        output.command = result_;
        stamp_ = stamp;
        output.status = Status::fresh;
        output.valid = true;
        if (robot.converts() || leads())
            sent_for_ = candidate_;
        leader_ = leader;
        renewed_ = true;
        step_time_.keep();
        ++counts.followed;
    }

    /// Update the deflections: motor positions at the joint sides of the springs minus link positions.
    void find_deflections() noexcept
    {
        const std::size_t count = robot.motor_count();
        for (std::size_t i = 0; i < count; ++i) {
            Scalar side = result_.motor_position[i];
            if (robot.has_transmission()) {
                side = 0;
                for (std::size_t j = 0; j < count; ++j)
                    side += robot.joint_sides[i * count + j] * result_.motor_position[j];
            }
            output.deflection[i] = side - candidate_.q[robot.motor_joint[i]];
        }
    }

    /// Returns the time of the cycle, at least its period, ns.
    std::int64_t least_step() const noexcept
    {
        return std::max(step_, std::min<std::int64_t>(std::llround(1e9 * period), LONGEST_RESPONSE_STEP));
    }

    /// Returns the minimum time of the motors from the last command to the last result, s.
    double least_time() const noexcept
    {
        double longest = 0;
        for (std::size_t i = 0; i < robot.motor_count(); ++i)
            longest = std::max(longest, static_cast<double>(std::fabs(result_.motor_position[i] - output.command.motor_position[i]) /
                                                            robot.motor_speed[i]));
        return longest;
    }

    /// Returns true if motors can make the step in a cycle, or to a setpoint in its StepTime. Otherwise, sets `blocked_`.
    bool can_step(Leader leader, std::int64_t stamp) noexcept
    {
        const bool streams = leader == Leader::setpoints, goes_on = leader_ == Leader::setpoints;
        if (streams)
            step_time_.judge(goes_on, goes_on && stamp_ && stamp ? std::optional(stamp - stamp_) : std::nullopt);
        else
            step_time_.judge();
        if (!output.valid || parameters.limits == LimitPolicy::ignore ||
            (streams && parameters.jump_check != CheckPolicy::refuse))
            return true;
        const std::int64_t time = streams ? step_time_.left() : least_step();
        if (streams)
            step_time_.use(std::llround(1e9 * std::min(least_time(), 1.0)));
        if (!gate_.judge(result_, output.command, seconds(time), !streams, leader == leader_, blocked_))
            return true;
        if (streams && blocked_.quantity == Quantity::motor_position && blocked_.value <= resuming) {
            gate_.change(); // blend positions into the resumed stream
            step_time_.use(0);
            return true;
        }
        return false;
    }

    /// Write the drive command of y with the efforts of the output, if it is finite in drive units.
    void send(const Command<Robot> &y) noexcept
    {
        if (robot.converts()) {
            DriveCommand<Robot> sent;
            if (robot.drive_command(sent_for_, y, output.motor_effort, output.joint_effort, {1, 0}, sent))
                output.sent = sent;
        } else {
            output.sent.drive_position = y.motor_position;
            output.sent.drive_velocity = y.motor_velocity;
            output.sent.drive_effort = output.motor_effort;
            output.sent.sent_effort = output.joint_effort;
        }
    }

    // Setpoint without lead, if commands have a lead.
    Setpoint<Robot> setpoint_;
    // Its command, if motor feedback needs it.
    Command<Robot> present_;
    DeflectionFilter<Robot> present_filter_;
    Feedback<Robot> feedback_;
    Gate<Robot> gate_;
    Leader leader_ = Leader::none;
    // True if the output has changed since the gate last checked it.
    bool renewed_ = true;
    // Stamp that times payload changes, ns; 0 for loop time, as in motions of the loop.
    std::int64_t payload_stamp_ = 0;
    // Step of the last cycle, start of the auxiliary inputs, and stamp of the last setpoint, ns.
    std::int64_t step_ = 0, accompanied_ = 0, stamp_ = 0;
    StepTime step_time_;
    // Setpoint at the command lead, if the drive command depends on it.
    Setpoint<Robot> sent_for_;
    // Last step that motors cannot make, placed after the members that cycles read.
    Reason blocked_;

  public:
    /// Reason of the last refused reference.
    Reason reason;
};

} // namespace eom

#endif
