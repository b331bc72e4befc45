// SPDX-License-Identifier: Apache-2.0
// Gate between loop and drives: commands are finite, within motor effort limits, and continuous with the last command.
#ifndef EOM_GATE_HPP
#define EOM_GATE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "limits.hpp"
#include "loop_parameters.hpp"
#include "fade.hpp"

namespace eom {

/// Remembers the last command sent, and accepts a command only if the motors can follow from there.
template <class Robot>
class Gate {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;

    explicit Gate(const Robot &robot) noexcept : robot_(robot), positions_(robot) {}

    /// Reset to the state before the first command. With `passes`, keep its efforts for a transition to the next command.
    void forget(bool passes) noexcept
    {
        changes_ = false;
        renew(), positions_.end();
        if (!passes)
            sends_ = false, efforts_.fade.end(), efforts_before_.fade.end();
    }

    /// Returns true if a command was sent, also before a restart with effort transition.
    bool sends() const noexcept { return sends_; }

    /// Blend efforts and positions into the next command, because its mode or position differs.
    void change() noexcept { changes_ = true; }

    /// Treat the next command as the start of another motion, also from the same source.
    void renew() noexcept { sent_[0].leader = sent_[1].leader = Leader::none; }

    /// Returns true if a motor position or joint effort steps too far within `time` s after `before`, and sets `found`. With
    /// `moves`, steps may match the commanded velocity. With `goes_on`, or after change(), they may also match the velocity of
    /// `before` and its change by the acceleration.
    bool judge(const Command<Robot> &y, const Command<Robot> &before, double time, bool moves, bool goes_on,
               Reason &found) const noexcept
    {
        Quantity quantity = Quantity::none;
        std::size_t place = 0;
        double most = 0, bound = 0;
        const auto compare = [&](Quantity of, const auto &values, const auto &last, const auto &rates, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                const double step = std::fabs(values[i] - last[i]), limit = rates[i] * time;
                if (step > limit * (1 + LIMIT_TOLERANCE) + ROUNDING && (quantity == Quantity::none || step > most))
                    quantity = of, place = i, most = step, bound = limit;
            }
        };
        goes_on = goes_on || changes_;
        MotorVector<Robot> speed = robot_.motor_speed;
        for (std::size_t i = 0; moves && i < m; ++i)
            speed[i] = std::max({speed[i], std::fabs(y.motor_velocity[i]), goes_on * std::fabs(before.motor_velocity[i])}) +
                       (goes_on ? time * std::fabs(y.motor_acceleration[i] - before.motor_acceleration[i]) : 0);
        MotorVector<Robot> position = y.motor_position;
        for (std::size_t i = 0; positions_.is_active() && i < m; ++i) // add the blended offset
            position[i] += static_cast<Scalar>(time) * positions_.offset()[1][i];
        compare(Quantity::motor_position, position, before.motor_position, speed, robot_.motor_count());
        if (quantity == Quantity::none)
            compare(Quantity::effort, y.tau, before.tau, robot_.upper.taud, robot_.joint_count());
        if (quantity == Quantity::none)
            return false;
        found = {Refusal::motor_step, quantity, place, most, bound, time};
        return true;
    }

    /// Make efforts of `output` continuous with the last efforts, and clip them. x and y are the setpoint and its command, `step`
    /// ns after the last command; the period is `cycle` s. With `repeats`, y may be the last command. With `complies`, positions
    /// are measured. Returns false if a value is not finite; efforts are then the last efforts.
    bool pass(LoopOutput<Robot> &output, const Setpoint<Robot> &x, const Command<Robot> &y, Leader leader, bool repeats, bool complies,
              std::int64_t step, double cycle, LimitPolicy policy) noexcept
    {
        if (!finite(output.motor_effort, y.motor_position, y.motor_velocity) || !finite(output.joint_effort)) {
            output.motor_effort = sent_[latest_].motor_effort;
            output.joint_effort = sent_[latest_].joint_effort;
            return false;
        }
        JointVector<Robot> rates = y.taud; // at the start or end of the cycle
        for (std::size_t i = 0; i < n; ++i)
            rates[i] = std::max(std::fabs(rates[i]), std::fabs(sent_[latest_].command.taud[i]));
        efforts_.fade.advance(step, efforts_.fade.share(step, efforts_.joints, robot_.upper.taud, rates));
        if (step > 0)
            latest_ = 1 - latest_, efforts_before_ = efforts_;
        else if (!efforts_.of_mode) // this command replaces the last command of the same time
            efforts_ = efforts_before_;
        const Sent &before = sent_[1 - latest_];
        if (sends_ && changes_)
            begin_efforts(before, output);
        else if (sends_ && leader != before.leader && !complies)
            begin_source(before, x, y, output, cycle);
        efforts_.add(output);
        const bool plain = leader != Leader::stop && !apart(output.motor_effort, y.motor_effort, 0) &&
                           !apart(output.joint_effort, y.tau, 0);
        if (complies || (policy != LimitPolicy::ignore && !plain)) // the command itself is already clipped
            clip(robot_, output.motor_effort, output.joint_effort, y, complies || leader == Leader::stop, policy);
        Sent &now = sent_[latest_];
        if (!repeats || !repeats_) // otherwise the last two belong to the same command
            now.setpoint = x, now.command = y;
        repeats_ = repeats && (step > 0 || repeats_);
        now.leader = leader, now.complied = complies, now.motor_effort = output.motor_effort, now.joint_effort = output.joint_effort;
        if (!sends_)
            sent_[1 - latest_] = sent_[latest_];
        sends_ = true;
        changes_ = false;
        return true;
    }

    /// Clip efforts to limits. With policy `warn`, joint efforts that the feedforward y exceeds remain, and motor efforts are
    /// clipped to motor limits. Motors are clipped if a joint or motor effort is beyond its limit, or `always`.
    static void clip(const Robot &robot, MotorVector<Robot> &motor_effort, JointVector<Robot> &joint_effort, const Command<Robot> &y,
                     bool always, LimitPolicy policy) noexcept
    {
        const bool reports = policy == LimitPolicy::warn;
        JointVector<Robot> less;
        bool gives = false;
        for (std::size_t i = 0; i < n; ++i) {
            const Scalar allowed = reports ? y.tau[i] : 0, most = robot.largest_effort[i], whole = joint_effort[i];
            joint_effort[i] = std::clamp(whole, std::min(-most, allowed), std::max(most, allowed));
            less[i] = joint_effort[i] - whole;
            gives = gives || less[i] != 0;
        }
        if (gives) // reduce motors by the clipped joint efforts
            robot.add_at_joints(less, motor_effort);
        const bool exceeds = !detail::within(motor_effort, robot.lower.motor_effort, robot.upper.motor_effort);
        if (always || exceeds || motor_effort != y.motor_effort)
            Limits<Robot>::clip_motors(robot, y.motor_velocity, motor_effort, reports ? y.motor_effort : MotorVector<Robot>{});
    }

    /// Blend positions of y, `step` ns after the last command and before feedback, from the positions sent in another mode. With
    /// `complies`, measured positions need no blending.
    void pass_positions(const Setpoint<Robot> &x, const Command<Robot> &y, bool complies, std::int64_t step) noexcept
    {
        if (complies)
            positions_.end();
        else if (sends_ && changes_)
            positions_.begin(MODE_DURATION, sent_[step > 0 ? latest_ : 1 - latest_].command, x, y);
        else
            positions_.advance(step, x, y);
    }
    const PositionFade<Robot> &positions() const noexcept { return positions_; }

  private:
    /// Minimum durations, s, of the fades after a change of mode and of source.
    static constexpr double MODE_DURATION = 0.3, SOURCE_DURATION = 0.01;
    /// Allowed effort step at a change of source, as a fraction of the limit; step within rounding, rad, m, N m or N.
    static constexpr double STEP = 0.015, ROUNDING = 1e-9;
    /// Largest plausible effort, N m or N.
    static constexpr double MAX_EFFORT = 1e6;

    /// Sent command, and its efforts with feedback.
    struct Sent {
        Leader leader = Leader::none;
        bool complied = false;
        Setpoint<Robot> setpoint;
        Command<Robot> command;
        MotorVector<Robot> motor_effort{};
        JointVector<Robot> joint_effort{};
    };

    /// Fading offset of sent from computed efforts.
    struct Offset {
        Fade fade;
        bool of_mode = false;
        MotorVector<Robot> motors{};
        JointVector<Robot> joints{};

        double weight() const noexcept { return fade.is_active() ? fade.weight() : 0; }

        /// Start with a duration of at least `least` s. Offsets that are not finite or not plausible are dropped.
        void begin(double least, bool mode, const Robot &robot) noexcept
        {
            const auto drop = [](auto &values) {
                for (Scalar &x : values)
                    x = std::fabs(x) <= MAX_EFFORT ? x : 0;
            };
            drop(motors), drop(joints);
            of_mode = mode;
            fade.begin(least, joints, robot.upper.taud);
        }

        void add(LoopOutput<Robot> &output) const noexcept
        {
            if (!fade.is_active())
                return;
            const auto weight = static_cast<Scalar>(fade.weight());
            for (std::size_t i = 0; i < m; ++i)
                output.motor_effort[i] += weight * motors[i];
            for (std::size_t i = 0; i < n; ++i)
                output.joint_effort[i] += weight * joints[i];
        }
    };

    /// Start the fade of a mode change from the sent efforts, including active offsets.
    void begin_efforts(const Sent &before, const LoopOutput<Robot> &output) noexcept
    {
        efforts_.motors = difference(before.motor_effort, output.motor_effort);
        efforts_.joints = difference(before.joint_effort, output.joint_effort);
        efforts_.begin(MODE_DURATION, true, robot_);
    }

    /// Start the fade to another source: the effort change beyond the present rate and an allowed step, within `time` s.
    void begin_source(const Sent &last, const Setpoint<Robot> &x, const Command<Robot> &y, const LoopOutput<Robot> &output,
                      double time) noexcept
    {
        if (last.complied || (efforts_.of_mode && efforts_.fade.is_active()))
            return begin_efforts(last, output);
        const auto beyond = [](double step, double least, double most) {
            return std::isfinite(most - least) ? static_cast<Scalar>(step - std::clamp(step, least, most)) : 0;
        };
        const double weight = efforts_.weight();
        MotorVector<Robot> now = frictionless(x, y), before = frictionless(last.setpoint, last.command), rate{};
        robot_.add_at_joints(last.command.taud, rate);
        for (std::size_t i = 0; i < robot_.motor_count(); ++i) {
            const double limit = std::min(robot_.upper.motor_effort[i], robot_.upper.motor_sum[robot_.motor_joint[i]]);
            const double most = STEP * limit + std::fabs(rate[i]) * time;
            efforts_.motors[i] = beyond(before[i] + weight * efforts_.motors[i] - now[i], -most, most);
        }
        for (std::size_t i = 0; i < robot_.joint_count(); ++i) {
            const double change = last.command.taud[i] * time, size = std::fabs(change), largest = robot_.upper.taud[i] * time;
            const double most = std::min(STEP * robot_.largest_effort[i] + size, largest / 2);
            const double on = size <= largest * (1 + LIMIT_TOLERANCE) ? std::max(most, size) : most; // keep the present rate
            Scalar &more = efforts_.joints[i];
            more = beyond(last.command.tau[i] + weight * more - y.tau[i], change > 0 ? -on : -most, change > 0 ? most : on);
        }
        efforts_.begin(SOURCE_DURATION, false, robot_);
    }

    /// Motor efforts without friction and gear losses, which vanish at rest.
    MotorVector<Robot> frictionless(Setpoint<Robot> x, Command<Robot> y) const noexcept
    {
        MotorVector<Robot> effort = y.motor_effort;
        robot_.motors_of(x, y);
        const MotorVector<Robot> whole = y.motor_effort;
        x.qd = difference(x.qd, sides_of(robot_, y.motor_velocity));
        robot_.motors_of(x, y);
        for (std::size_t i = 0; i < m; ++i) // in proportion if the effort is clipped
            effort[i] -= (whole[i] - y.motor_effort[i]) * std::min(1.0, whole[i] != 0 ? std::fabs(effort[i] / whole[i]) : 1.0);
        return effort;
    }

    const Robot robot_;
    bool sends_ = false, changes_ = false, repeats_ = false;
    std::array<Sent, 2> sent_; // the last two commands
    std::size_t latest_ = 0;
    Offset efforts_, efforts_before_; // before the present time
    PositionFade<Robot> positions_;
};

} // namespace eom

#endif
