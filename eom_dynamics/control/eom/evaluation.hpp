// SPDX-License-Identifier: Apache-2.0
// Commands of candidate setpoints with payloads, and their excess over limits.
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

/// Computes commands of setpoints with payloads, and checks them against limits without sending them.
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
    /// Loop time of the last cycle, ns.
    std::int64_t latest = 0;
    /// Motion limits of stops.
    const OnlineTrajectory *stops = nullptr;

    /// Returns the refusal of setpoint x as far as it needs no dynamics, or `none`.
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

    /// Returns the largest excess of a motion over limits widened to its start. The motion is sampled until the excess reaches
    /// `least`. Dampers and friction have no transients. Returns infinity if the motors cannot realize the motion.
    template <class Motion>
    double excess_of(const Motion &motion, std::size_t samples, double least) noexcept
    {
        Limits<Robot> limits(robot);
        double most = 0;
        for (std::size_t k = 0; k <= samples && most < least; ++k) {
            const double part = static_cast<double>(k) / static_cast<double>(samples);
            motion(part, candidate_);
            most = std::max(most, excess_at(candidate_, limits, k == 0));
        }
        return most;
    }

    /// Set x to the motion `state`, with stiffness, wrench and base motion of the last command at rest.
    void move(const State<n> &state, Setpoint<Robot> &x) const noexcept
    {
        x = resting();
        x.W = output.setpoint.W;
        take(state, x);
    }

    /// Returns the excess of x over the limits reduced by `margin`, and at least `least`, at both ends of a payload change. With
    /// `widens`, first widen the limits to contain x, as at the start of a motion.
    double excess_at(const Setpoint<Robot> &x, Limits<Robot> &limits, bool widens, double margin = 0, double least = 0) noexcept
    {
        if (&x != &candidate_)
            candidate_ = x;
        payload_.apply_present(candidate_);
        const double present = excess(limits, widens, margin, least);
        return foresee(candidate_) ? std::max(present, excess(limits, widens, margin, least)) : present;
    }

    /// Returns the excess of the last evaluated setpoint with the final payload.
    double excess_awaited(Limits<Robot> &limits, double margin = 0, double least = 0) noexcept
    {
        if (!payload_.is_changing())
            return least;
        payload_.apply_final(candidate_);
        return excess(limits, false, margin, least);
    }

    /// Returns the most violated limit of this motion, and records the command there as the last violation.
    template <class Motion>
    EOM_SELDOM Reason worst_of(Refusal why, const Motion &motion, std::size_t samples) noexcept
    {
        Limits<Robot> limits(robot);
        double most = 0;
        for (std::size_t k = 0; k <= samples; ++k) {
            const double part = static_cast<double>(k) / static_cast<double>(samples);
            motion(part, candidate_);
            const double found = excess_at(candidate_, limits, k == 0);
            if (found > most) {
                most = found;
                exceeded_ = result_;
                exceeding_ = candidate_;
            }
        }
        return worst(why);
    }

    /// Motor velocities of the last evaluated setpoint.
    const MotorVector<Robot> &motor_velocity() const noexcept { return result_.motor_velocity; }

    /// Returns true if limits allow the arm to rest at q with its final payload.
    bool holds(const JointVector<Robot> &q) noexcept
    {
        if (!limited())
            return true;
        candidate_ = robot.rest();
        candidate_.q = q;
        payload_.apply_final(candidate_);
        if (settle() && Limits<Robot>::meets_others(robot, candidate_, result_, shafts_))
            return true;
        overload_ = {};
        find_overload();
        return false;
    }

    /// Set the payload of x to its value after the present change. Returns true if the payload changes.
    bool foresee(Setpoint<Robot> &x) const noexcept
    {
        if (!payload_.is_fading())
            return false;
        payload_.apply_after(x);
        return true;
    }

    /// Set the payload from the next setpoint on: see PayloadFade::change. Call in the thread of update(). With `limits: refuse`,
    /// the arm must be able to hold the payload at rest, at `links`, rad or m (null: commanded position). Returns the refusal
    /// text, or null.
    template <class... Changed>
    const char *carry(const JointVector<Robot> *links, const Changed &...changed) noexcept
    {
        overload_ = {};
        const PayloadFade<Robot> before = payload_;
        payload_refusal_ = robot.carries() ? payload_.change(changed...) : "export feedforward_with_payload as well, for payloads";
        if (!payload_refusal_ && overloads(links)) {
            payload_ = before;
            payload_refusal_ = OVERLOADED;
        }
        if (!output.valid)
            payload_.complete();
        counts.refused_payloads += payload_refusal_ != nullptr;
        return payload_refusal_;
    }

    /// Last command beyond limits, before clipping.
    const Command<Robot> &exceeded() const noexcept { return exceeded_; }
    /// Setpoint of that command.
    const Setpoint<Robot> &exceeding() const noexcept { return exceeding_; }
    /// Call `call` with each violation of the last command beyond limits, before clipping.
    template <class Function>
    void violations(const Function &call) const noexcept
    {
        Shafts<Robot> shafts;
        robot.drive(exceeded_, shafts);
        Limits<Robot>::violations(robot, exceeding_, exceeded_, shafts, *stops, call);
    }

    /// Text of the last payload refusal, or null.
    const char *payload_refusal() const noexcept { return payload_refusal_; }
    /// Limit that a refused payload or target would exceed.
    const Reason &overload() const noexcept { return overload_; }
    /// Returns true if a payload change is active or pending.
    bool blending() const noexcept { return payload_.is_changing(); }
    bool payload_waits() const noexcept { return payload_.waits(); }
    /// Returns true if a motion planned with another payload may exceed limits (limits: refuse).
    bool loaded() const noexcept { return parameters.limits == LimitPolicy::refuse && payload_.loads(); }

    /// Set q and qd of x from the measured motors, with springs that carry gravity. Returns false if there is no equilibrium; the
    /// iteration starts without deflection.
    bool find_links(const Measurement<Robot> &measured, Setpoint<Robot> &x) noexcept
    {
        const JointVector<Robot> wanted = sides_of(robot, measured.motor_position);
        const auto flow = [&](const JointVector<Robot> &q) {
            candidate_ = x;
            candidate_.q = q;
            payload_.apply_present(candidate_);
            compute(filter_, 0);
            JointVector<Robot> away = sides_of(robot, result_.motor_position);
            for (std::size_t i = 0; i < n; ++i)
                away[i] = wanted[i] - away[i];
            // Unused entries converge to zero.
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

    /// Returns the final command when the loop is switched off: motors hold their positions, with the efforts of
    /// effort_on_deactivate. The output is unchanged.
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
            payload_.apply_present(candidate_);
            compute(filter_, 0);
            final_efforts_ = finite(result_);
            if (final_efforts_ && limited()) // final efforts cannot be refused
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

    /// Result of the last release().
    const DriveCommand<Robot> &final_sent() const noexcept { return released_; }
    /// Command of final_sent().
    const Command<Robot> &final_command() const noexcept { return released_command_; }
    /// Returns true if the final efforts could be computed.
    bool final_efforts() const noexcept { return final_efforts_; }

  protected:
    /// Returns true if commands beyond limits are refused.
    bool limited() const noexcept { return parameters.limits == LimitPolicy::refuse; }

    /// Last position at rest, with stiffness and base motion.
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

    /// Compute the command of the candidate without transients. Returns true if it is finite.
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

    /// Returns true if the resting arm cannot hold the pending payload within limits.
    bool overloads(const JointVector<Robot> *links) noexcept
    {
        if (!limited() || !(output.valid || links))
            return false;
        Limits<Robot> limits(robot);
        Setpoint<Robot> x = resting();
        if (links)
            x.q = *links;
        excess_at(x, limits, true);
        if (excess_awaited(limits) <= LIMIT_TOLERANCE)
            return false;
        find_overload();
        return true;
    }

    /// Record the quantity of the last result with the largest ratio to its limit.
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

    /// Most violated limit of the last command beyond limits, with the number of other violations.
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

    /// First quantity that is not finite in the last result or its drive command.
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

    /// Returns true if the command is finite in drive units.
    bool can_be_sent() const noexcept
    {
        if (!robot.converts())
            return true;
        DriveCommand<Robot> sent;
        return robot.drive_command(candidate_, result_, result_.motor_effort, result_.tau, {1, 0}, sent);
    }

    /// Compute the feedforward of the candidate with deflections of damped springs and presliding friction.
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

    // Damped springs and presliding friction of accepted commands.
    DeflectionFilter<Robot> filter_;
    // Final drive command and its feedforward command.
    DriveCommand<Robot> released_;
    Command<Robot> released_command_;
    bool final_efforts_ = false; // its efforts were computed
    // Candidate setpoint with its payload, its command and motor shafts.
    Setpoint<Robot> candidate_;
    Command<Robot> result_;
    Shafts<Robot> shafts_;
    // Last command beyond limits.
    Command<Robot> exceeded_;
    Setpoint<Robot> exceeding_;
    // Payload along the loop time paced_, ns: the sum of the steps of cycles.
    PayloadFade<Robot> payload_;
    std::int64_t paced_ = 0;
    static constexpr const char *OVERLOADED = "give mass in kg and centre of mass in m, or move to a position that can hold it";
    const char *payload_refusal_ = nullptr;
    // Limit that a refused payload or target would exceed.
    Reason overload_;
};

} // namespace eom

#endif
