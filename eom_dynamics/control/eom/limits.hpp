// SPDX-License-Identifier: Apache-2.0
// Check and clipping of commands by the limits of joints and motors.
#ifndef EOM_LIMITS_HPP
#define EOM_LIMITS_HPP

#include <algorithm>
#include <limits>

#include "online_trajectory.hpp"
#include "reasons.hpp"
#include "setpoint.hpp"

namespace eom {

/// Relative limit violation that counts as rounding.
constexpr double LIMIT_TOLERANCE = @limit_tolerance@;

namespace detail {

inline constexpr auto within = [](const auto &values, const auto &lower, const auto &upper) noexcept {
    long outside = 0; // vectorized, without branches
    for (std::size_t i = 0; i < values.size(); ++i)
        outside |= static_cast<long>(values[i] < lower[i]) | static_cast<long>(values[i] > upper[i]);
    return outside == 0;
};

/// Widen a range to contain `values`. Returns true.
inline constexpr auto widen = [](const auto &values, auto &lower, auto &upper) noexcept {
    for (std::size_t i = 0; i < values.size(); ++i) {
        lower[i] = std::min(lower[i], values[i]);
        upper[i] = std::max(upper[i], values[i]);
    }
    return true;
};

/// Raise `most` to the largest excess of `values` over a range, relative to half its width, or absolute for ranges with one end.
/// NaN is ignored. `margin`, relative, narrows ranges with two ends.
template <class Scalar, std::size_t n>
void add_excess(double &most, const std::array<Scalar, n> &values, const std::array<Scalar, n> &lower,
                const std::array<Scalar, n> &upper, double margin = 0) noexcept
{
    for (std::size_t i = 0; i < n; ++i) {
        const double low = lower[i], high = upper[i], beyond = std::max(values[i] - high, low - values[i]);
        const double half = 0.5 * (high - low);
        const bool bounded = std::isfinite(half) && half > 0;
        if (beyond > (bounded ? (most - margin) * half : most))
            most = std::max(most, bounded ? beyond / half + margin : beyond);
    }
}

} // namespace detail

/// Motors before their gears, SI units. Current and voltage are NaN if motor constants are unknown. `sum` is the motor effort at
/// each joint, see motor_sums().
template <class Robot>
struct Shafts {
    MotorVector<Robot> torque{}, speed{}, current{}, voltage{}, clipped_effort{};
    JointVector<Robot> sum{};
};

/// Limits of the robot; a mimic joint limits the joint that it follows.
template <class Robot>
struct Limits {
    using Scalar = typename Robot::Scalar;

    /// Returns true if the setpoint, its command and the motor shafts meet all limits.
    static bool meets(const Robot &robot, const Setpoint<Robot> &x, const Command<Robot> &y,
                      const Shafts<Robot> &shafts) noexcept
    {
        return detail::within(x.q, robot.lower.q, robot.upper.q) && meets_others(robot, x, y, shafts);
    }

    /// Returns true if all limits except positions are met.
    static bool meets_others(const Robot &robot, const Setpoint<Robot> &x, const Command<Robot> &y,
                             const Shafts<Robot> &shafts) noexcept
    {
        return each_other(x, y, shafts, robot.lower, robot.upper, detail::within) && voltages_meet(robot, shafts);
    }

    /// Call `call` with each limit violation of a setpoint and its command. Without violations, call it with each joint that is
    /// within its range, but cannot stop there by the motion `stops`.
    template <class Function>
    static void violations(const Robot &robot, const Setpoint<Robot> &x, const Command<Robot> &y, const Shafts<Robot> &shafts,
                           const OnlineTrajectory &stops, const Function &call) noexcept
    {
        bool any = false;
        const auto judge = [&](Reason found, double lower, double upper) {
            if (!(found.value > upper || found.value < lower))
                return;
            found.limit = found.value > upper ? upper : lower;
            const double half = (upper - lower) / 2, beyond = std::fabs(found.value - found.limit);
            found.ratio = half > 0 && std::isfinite(half) ? 1 + beyond / half : std::numeric_limits<double>::infinity();
            any = true;
            call(found);
        };
        const auto look = [&](Quantity of, const auto &values, const auto &lower, const auto &upper) {
            for (std::size_t i = 0; i < values.size(); ++i)
                judge({Refusal::none, of, i, values[i]}, lower[i], upper[i]);
        };
        const auto look_at_shafts = [&](Quantity of, const auto &values, Span<const double> limit) {
            for (std::size_t i = 0; i < limit.size(); ++i)
                judge({Refusal::none, of, i, values[i]}, -limit[i], limit[i]);
        };
        const auto &low = robot.lower, &high = robot.upper;
        look(Quantity::position, x.q, low.q, high.q);
        look(Quantity::velocity, x.qd, low.qd, high.qd);
        look(Quantity::acceleration, x.qdd, low.qdd, high.qdd);
        look(Quantity::jerk, x.qddd, low.qddd, high.qddd);
        look(Quantity::effort, y.tau, low.tau, high.tau);
        look(Quantity::effort_rate, y.taud, low.taud, high.taud);
        JointVector<Robot> sums = shafts.sum; // for ideal motors, equal to the joint efforts
        for (std::size_t i = 0; i < Robot::joints; ++i)
            sums[i] = std::fabs(sums[i] - y.tau[i]) <= LIMIT_TOLERANCE * std::fabs(y.tau[i]) ? 0 : sums[i];
        look(Quantity::motors_effort, sums, low.motor_sum, high.motor_sum);
        look_at_shafts(Quantity::speed, shafts.speed, robot.table().speed_limit);
        look_at_shafts(Quantity::torque, shafts.torque, robot.table().torque_limit);
        look_at_shafts(Quantity::current, shafts.current, robot.table().current_limit);
        look_at_shafts(Quantity::voltage, shafts.voltage, robot.table().voltage_limit);
        for (std::size_t i = 0; !any && i < robot.joint_count(); ++i) {
            Reason found(Refusal::none, Quantity::stopping_position, i);
            found.from = x.q[i], found.rate = x.qd[i], found.braking = stops.joint(i).viability().braking;
            const auto [least, greatest] = stops.joint(i).viability().stopping_positions(x.q[i], x.qd[i], x.qdd[i]);
            found.value = greatest > high.q[i] ? greatest : least;
            if (found.from >= low.q[i] && found.from <= high.q[i])
                judge(found, low.q[i], high.q[i]);
            any = false;
        }
    }

    /// Start with the limits of the robot; widen() extends them.
    explicit Limits(const Robot &robot) noexcept : lower_(robot.lower), upper_(robot.upper)
    {
        for (std::size_t i = 0; i < Robot::motors; ++i)
            voltage_[i] = robot.voltage_limit[i] * static_cast<Scalar>(1 + LIMIT_TOLERANCE);
    }

    /// Widen the ranges to contain a setpoint and its command.
    void widen(const Setpoint<Robot> &x, const Command<Robot> &y, const Shafts<Robot> &shafts) noexcept
    {
        detail::widen(x.q, lower_.q, upper_.q);
        each_other(x, y, shafts, lower_, upper_, detail::widen);
        for (std::size_t i = 0; i < Robot::motors; ++i)
            voltage_[i] = std::fmax(voltage_[i], std::fabs(shafts.voltage[i]));
    }

    /// Returns the largest relative excess of the setpoint and its command over the ranges, and at least `most`. `margin` narrows
    /// all ranges except positions.
    double excess(const Setpoint<Robot> &x, const Command<Robot> &y, const Shafts<Robot> &shafts, double margin = 0,
                  double most = 0) const noexcept
    {
        detail::add_excess(most, x.q, lower_.q, upper_.q);
        each_other(x, y, shafts, lower_, upper_, [&](const auto &values, const auto &lower, const auto &upper) {
            detail::add_excess(most, values, lower, upper, margin);
            return true;
        });
        MotorVector<Robot> least;
        for (std::size_t i = 0; i < Robot::motors; ++i)
            least[i] = -voltage_[i];
        detail::add_excess(most, shafts.voltage, least, voltage_, margin);
        return most;
    }

    /// Returns true if each joint that is within its range can stop there by the motion `stops`.
    static bool can_stop(const Robot &robot, const Setpoint<Robot> &x, const OnlineTrajectory &stops) noexcept
    {
        for (std::size_t i = 0; i < robot.joint_count(); ++i) {
            const double q = x.q[i], v = x.qd[i], a = x.qdd[i];
            const double below = q - robot.lower.q[i], above = robot.upper.q[i] - q;
            const double room = below < 0 ? above : above < 0 ? below : std::min(below, above);
            const Viability &joint = stops.joint(i).viability();
            if (!joint.may_exceed(room, v, a))
                continue;
            const auto [least, greatest] = joint.stopping_positions(q, v, a);
            if ((below >= 0 && least < robot.lower.q[i]) || (above >= 0 && greatest > robot.upper.q[i]))
                return false;
        }
        return true;
    }

    /// Returns true if no position is further beyond a limit than `before`, except for rounding.
    static bool returns(const Robot &robot, const JointVector<Robot> &q, const JointVector<Robot> &before) noexcept
    {
        const Scalar rounding = 16 * std::numeric_limits<Scalar>::epsilon();
        for (std::size_t i = 0; i < Robot::joints; ++i) {
            const Scalar slack = rounding * (1 + std::fabs(before[i]));
            const Scalar lower = robot.lower.q[i], upper = robot.upper.q[i];
            if (q[i] < (before[i] < lower ? before[i] - slack : lower) || q[i] > (before[i] > upper ? before[i] + slack : upper))
                return false;
        }
        return true;
    }

    /// First position more than a turn beyond its limit, if any.
    EOM_SELDOM static Reason far(const Robot &robot, const JointVector<Robot> &q) noexcept
    {
        const auto &low = robot.lower.q, &high = robot.upper.q;
        Reason found;
        for (std::size_t i = Robot::joints; i-- > 0;)
            if (q[i] < low[i] - robot.turn[i] || q[i] > high[i] + robot.turn[i])
                found = {Refusal::far_beyond_limits, Quantity::position, i, q[i], high[i]}, found.from = low[i];
        return found;
    }

    /// Whole turns, rad, that bring `position` of joint i nearest to `other`; zero if the joint is not continuous.
    static double turns(const Robot &robot, std::size_t i, double position, double other) noexcept
    {
        constexpr double TURN = 6.283185307179586;
        const bool continuous = std::isinf(robot.lower.q[i]) && std::isinf(robot.upper.q[i]) && std::isfinite(robot.turn[i]);
        const double found = continuous ? std::round((other - position) / TURN) * TURN : 0;
        return std::isfinite(found) ? found : 0;
    }

    /// Clip motor efforts to the limits at the joints, then to torque, current and voltage limits at `velocity`; all on the link
    /// side. Motors of one joint are reduced equally. If the back-EMF alone exceeds the voltage limit, the motor brakes within its
    /// torque and current limits. The result is scaled to the joint limits, or to `allowed` efforts beyond them.
    static void clip_motors(const Robot &robot, const MotorVector<Robot> &velocity, MotorVector<Robot> &effort,
                            const MotorVector<Robot> &allowed = {}) noexcept
    {
        struct Motors {
            const MotorVector<Robot> &motor_velocity, &motor_effort;
        };
        for (Scalar &x : effort) // larger values would lose the limits in rounding
            x = std::clamp(x, -LARGEST_EFFORT, LARGEST_EFFORT);
        const JointVector<Robot> sums = robot.motor_sums(effort), most = robot.motor_sums(allowed);
        JointVector<Robot> less;
        for (std::size_t i = 0; i < Robot::joints; ++i)
            less[i] = std::clamp(sums[i], std::min(robot.lower.motor_sum[i], most[i]),
                                 std::max(robot.upper.motor_sum[i], most[i])) - sums[i];
        robot.add_at_joints(less, effort);
        Shafts<Robot> shafts;
        robot.drive(Motors{velocity, effort}, shafts);
        effort = shafts.clipped_effort;
        const JointVector<Robot> left = robot.motor_sums(effort);
        for (std::size_t i = 0; i < robot.joint_count(); ++i) {
            const Scalar bound = std::max(robot.upper.motor_sum[i], std::fabs(most[i]));
            if (std::fabs(left[i]) > bound)
                robot.scale_at_joint(i, bound / std::fabs(left[i]), effort);
        }
    }

  private:
    static constexpr Scalar LARGEST_EFFORT = 1e6;

    /// Call `call` with each limited quantity except positions, and its range, until it returns false.
    template <class Ends, class Function>
    static bool each_other(const Setpoint<Robot> &x, const Command<Robot> &y, const Shafts<Robot> &shafts, Ends &lower,
                           Ends &upper, const Function &call) noexcept
    {
        return call(x.qd, lower.qd, upper.qd) && call(x.qdd, lower.qdd, upper.qdd) && call(x.qddd, lower.qddd, upper.qddd) &&
               call(y.tau, lower.tau, upper.tau) && call(y.taud, lower.taud, upper.taud) &&
               call(y.motor_velocity, lower.motor_velocity, upper.motor_velocity) &&
               call(y.motor_effort, lower.motor_effort, upper.motor_effort) &&
               call(shafts.sum, lower.motor_sum, upper.motor_sum);
    }

    static bool voltages_meet(const Robot &robot, const Shafts<Robot> &shafts) noexcept
    {
        for (std::size_t i = 0; i < Robot::motors; ++i)
            if (std::fabs(shafts.voltage[i]) > robot.voltage_limit[i]) // false for NaN, if constants are unknown
                return false;
        return true;
    }

    typename Robot::Ends lower_, upper_;
    MotorVector<Robot> voltage_;
};

} // namespace eom

#endif
