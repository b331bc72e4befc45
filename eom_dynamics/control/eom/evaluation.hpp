// SPDX-License-Identifier: Apache-2.0
// Evaluation of setpoints without sending them: commands with payloads, and their excess over limits.
#ifndef EOM_EVALUATION_HPP
#define EOM_EVALUATION_HPP

#include <algorithm>
#include <cstdint>
#include <limits>

#include "deflection_filter.hpp"
#include "equilibrium.hpp"
#include "gate.hpp"
#include "loop_parameters.hpp"
#include "payload.hpp"

namespace eom {

/// Commands of setpoints by limits, with what the tools carry.
template <class Robot>
class Evaluation {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    explicit Evaluation(const Robot &of) noexcept : robot(of), filter_(of) {}

    const Robot robot;
    LoopParameters<Robot> parameters;
    LoopOutput<Robot> output;
    LoopCounts counts;
    /// Time of the last cycle, of the loop, ns.
    std::int64_t latest = 0;
    /// The motion of stops.
    const OnlineTrajectory *stops = nullptr;

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
        const bool begins = !output.valid && payload_.steps(); // with the first command, which is no step
        for (const bool halfway : {false, true})
            if (most <= LIMIT_TOLERANCE && !(halfway && begins) && payload_.expect(time, halfway, candidate_))
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

    /// Takes what the tools carry from the next setpoint on, in the thread of update(), as PayloadBlend::change, unless the
    /// arm cannot hold it where it is, or pass to it in that time, within limits that are refused or clipped: at links, rad or m,
    /// or null where it is as commanded.
    template <class... Changed>
    const char *carry(const JointVector<Robot> *links, const Changed &...changed) noexcept
    {
        overload_ = {};
        const PayloadBlend<Robot> before = payload_;
        payload_refusal_ = robot.carries() ? payload_.change(changed...) : "export feedforward_with_payload, too, for payloads";
        if (!payload_refusal_ && overloads(links)) {
            payload_ = before;
            payload_refusal_ = OVERLOADED;
        }
        counts.refused_payloads += payload_refusal_ != nullptr;
        return payload_refusal_;
    }

    /// The command that exceeded limits last, before it was clipped or refused.
    const Command<Robot> &exceeded() const noexcept { return exceeded_; }
    /// The setpoint of that command.
    const Setpoint<Robot> &exceeding() const noexcept { return exceeding_; }
    /// Calls a function with each limit that the last command beyond limits exceeds, before any clipping.
    template <class Function>
    void violations(const Function &call) const noexcept
    {
        Shafts<Robot> shafts;
        robot.drive(exceeded_, shafts);
        Limits<Robot>::violations(robot, exceeding_, exceeded_, shafts, *stops, call);
    }

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

    /// Returns the last command when the loop is switched off: motors hold their positions, at the efforts of
    /// effort_on_deactivate. Does not change the output.
    const DriveCommand<Robot> &release(const Measurement<Robot> &measured) noexcept
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
        } else if (parameters.effort_on_deactivate == EffortOnDeactivate::gravity) {
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
            final_efforts_ = finite(result_);
            if (final_efforts_ && limited()) // they cannot be refused, as those of a stop
                Gate<Robot>::clip(robot, result_.motor_effort, result_.tau, Command<Robot>(result_), true, parameters.limits);
            DriveCommand<Robot> sent{{}, {}, result_.motor_effort, result_.tau, {}};
            if (robot.converts() && !robot.drive_command(candidate_, result_, result_.motor_effort, result_.tau, {1, 0}, sent))
                final_efforts_ = false;
            if (final_efforts_) {
                released_.drive_effort = sent.drive_effort;
                released_.sent_effort = sent.sent_effort;
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

  protected:
    /// Returns true if commands beyond limits are refused.
    bool limited() const noexcept { return parameters.limits == LimitPolicy::refuse; }

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
    bool overloads(const JointVector<Robot> *links) noexcept
    {
        if (!limited() || !(output.valid || links))
            return false;
        Limits<Robot> limits(robot);
        Setpoint<Robot> x = resting();
        if (links)
            x.q = *links;
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

    /// Whether the command is finite in the units of the drives.
    bool can_be_sent() const noexcept
    {
        if (!robot.converts())
            return true;
        DriveCommand<Robot> sent;
        return robot.drive_command(candidate_, result_, result_.motor_effort, result_.tau, {1, 0}, sent);
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

    // Damped springs and presliding friction of what is sent.
    DeflectionFilter<Robot> filter_;
    // What is sent last, of which command, and whether its efforts could be computed.
    DriveCommand<Robot> released_;
    Command<Robot> released_command_;
    bool final_efforts_ = false;
    // A setpoint with its payload, and its command, also of motors before their gears.
    Setpoint<Robot> candidate_;
    Command<Robot> result_;
    Shafts<Robot> shafts_;
    // The command that exceeded limits last.
    Command<Robot> exceeded_;
    Setpoint<Robot> exceeding_;
    // What the tools carry, by the sum of the steps of cycles, ns.
    PayloadBlend<Robot> payload_;
    std::int64_t paced_ = 0;
    static constexpr const char *OVERLOADED = "give mass in kg, centre of mass in m, and a blend_time that is long enough",
                                *NO_FURTHER = "limits allow no more of it here: set a lighter one, or move";
    const char *payload_refusal_ = nullptr;
    // The limit that a payload or target exceeds.
    Reason overload_;
};

} // namespace eom

#endif
