// SPDX-License-Identifier: Apache-2.0
// Utilization of effort, effort-rate and motor limits by the predicted commands of a motion.
#ifndef EOM_LIMIT_SHARES_HPP
#define EOM_LIMIT_SHARES_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "commander.hpp"
#include "online_trajectory.hpp"

namespace eom {

/// Predicts commands of an online motion and their utilization of limits.
///
/// Rows of limits: 0 effort, 1 effort rate, 2 motor velocity, 3 motor effort, 4 voltage, 5 motor effort at a joint. If limits are
/// exceeded, motion may use half of the reserve that the command at rest leaves.
template <class Robot>
class LimitShares {
  public:
    using Way = JointTrajectory::Way;

    /// Maximum utilization of predicted commands; with damped springs; and with presliding friction, because its transients are not
    /// predicted.
    static constexpr double MOST = 0.99, MOST_FILTERED = 0.98, MOST_SETTLED = 0.97;

    explicit LimitShares(const Robot &robot) noexcept
        : robot_(robot), most_(robot.slides() ? MOST_SETTLED : robot.filters() ? MOST_FILTERED : MOST)
    {
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            voltage_[1][i] = robot.voltage_limit[i];
            voltage_[0][i] = -voltage_[1][i];
        }
        const auto finite = [](Scalar x) { return std::isfinite(x); };
        for (const Row &row : rows(moving_, resting_))
            limited_ = limited_ || std::any_of(row.high, row.high + row.count, finite);
    }

    bool limited() const noexcept { return limited_; }
    /// Utilization that counts as 1.
    double most() const noexcept { return most_; }
    /// Row of the limit that was exceeded last.
    std::size_t limit() const noexcept { return limit_; }
    /// Joint or motor of limit().
    std::size_t place() const noexcept { return place_; }
    /// Last predicted state.
    const State<Robot::joints> &state() const noexcept { return state_; }

    /// Predict a stop from setpoint `from` until end_plan(). Its wrench, stiffness and base motion come to rest within `time` s.
    void plan(const Setpoint<Robot> &from, double time) noexcept
    {
        plans_ = true;
        planned_.begin(from, time);
    }
    void end_plan() noexcept { plans_ = false; }
    /// Returns true if wrench, stiffness or base motion change.
    bool fades(const Commander<Robot> &commander) const noexcept { return plans_ ? planned_.fades() : commander.company.fades(); }

    /// Record the present positions and the auxiliary inputs and payload of the present setpoint.
    void look(const OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        for (std::size_t i = 0; i < motion.size(); ++i)
            now_[i] = static_cast<Scalar>(motion.joint(i).state()[0]);
        beyond_ = -1;
        prepare(commander);
    }

    /// Largest utilization by the largest jerks and snaps, compared with rest.
    double of_snaps(const OnlineTrajectory &motion) noexcept
    {
        state_ = {};
        for (std::size_t i = 0; i < motion.size(); ++i) {
            state_[0][i] = motion.joint(i).state()[0];
            state_[3][i] = motion.joint(i).largest_jerk();
            state_[4][i] = motion.joint(i).largest_snap();
        }
        take(state_, setpoint_);
        compute(setpoint_, moving_);
        setpoint_.qddd = setpoint_.qdddd = {};
        compute(setpoint_, resting_);
        double most = 0;
        for (const Row &row : rows(moving_, resting_))
            for (std::size_t i = 0; i < row.count; ++i)
                most = std::fmax(most, std::fabs(row.moving[i] - row.resting[i]) / row.high[i]);
        return most;
    }

    /// Start from the present deflections of damped springs.
    void begin(const Commander<Robot> &commander) noexcept
    {
        if (!robot_.filters())
            return;
        since_begin_ = 0;
        before_ = commander.output.command;
        deflection_ = commander.output.setpoint.deflection;
    }

    /// Predict the state after `cycles` cycles on `way`.
    void predict(const OnlineTrajectory &motion, long cycles, Way way) noexcept
    {
        for (std::size_t i = 0; i < motion.size(); ++i) {
            const JointTrajectory::State at = motion.joint(i).predicted(cycles, way);
            for (std::size_t n = 0; n < at.size(); ++n)
                state_[n][i] = at[n];
        }
    }

    /// Returns the largest utilization of the command after `cycles` cycles; at most 1 if the motion fits, infinity if it cannot be
    /// computed.
    double of(const OnlineTrajectory &motion, const Commander<Robot> &commander, long cycles, Way way) noexcept
    {
        predict(motion, cycles, way);
        if (setpoint_.loaded)
            prepare(commander);
        const double time = static_cast<double>(cycles) * motion.joint(0).period();
        if (plans_ && planned_.fades())
            planned_.accompany(setpoint_, time);
        else if (!plans_ && commander.leader() == Leader::stop && commander.company.fades())
            commander.accompany(setpoint_, std::llround(1e9 * time));
        const double now = at(time);
        return commander.foresee(setpoint_) ? std::max(now, at(time)) : now;
    }

  private:
    using Scalar = typename Robot::Scalar;
    /// Command and the resulting motor shafts.
    struct Outcome {
        Command<Robot> command;
        Shafts<Robot> shafts;
    };
    /// Quantity of the command in motion and at rest, and its limits.
    struct Row {
        const Scalar *moving, *resting, *low, *high;
        std::size_t count;
    };

    void prepare(const Commander<Robot> &commander) noexcept
    {
        setpoint_ = commander.output.setpoint;
        setpoint_.Pd = setpoint_.Pdd = {};
        setpoint_.deflection.fill(Robot::settled);
        setpoint_.friction_state = Robot::settled_friction;
    }

    void compute(const Setpoint<Robot> &x, Outcome &y) const noexcept
    {
        robot_.feedforward(x, y.command);
        robot_.drive(y.command, y.shafts);
    }

    std::array<Row, 6> rows(const Outcome &moving, const Outcome &resting) const noexcept
    {
        const auto &x = moving.command, &y = resting.command;
        const auto &low = robot_.lower, &high = robot_.upper;
        const auto row = [](const auto &a, const auto &b, const auto &from, const auto &to) {
            return Row{a.data(), b.data(), from.data(), to.data(), a.size()};
        };
        return {row(x.tau, y.tau, low.tau, high.tau), row(x.taud, y.taud, low.taud, high.taud),
                row(x.motor_velocity, y.motor_velocity, low.motor_velocity, high.motor_velocity),
                row(x.motor_effort, y.motor_effort, low.motor_effort, high.motor_effort),
                row(moving.shafts.voltage, resting.shafts.voltage, voltage_[0], voltage_[1]),
                row(moving.shafts.sum, resting.shafts.sum, low.motor_sum, high.motor_sum)};
    }

    /// Largest utilization of the command.
    double largest(const Outcome &moving) const noexcept
    {
        double most = 0;
        for (const Row &row : rows(moving, moving))
            for (std::size_t i = 0; i < row.count; ++i)
                most = std::fmax(most, row.moving[i] / (row.moving[i] > 0 ? row.high : row.low)[i]);
        return most;
    }

    /// Returns the utilization of the predicted state, `time` s from now. Deflections of damped springs follow from the previous
    /// prediction, or have no transient if it is later.
    double at(double time) noexcept
    {
        auto &x = setpoint_;
        take(state_, x);
        if (robot_.command_lead() > 0)
            advance(std::array<JointVector<Robot> *, 5>{&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd},
                    static_cast<Scalar>(robot_.command_lead()));
        setpoint_.deflection.fill(Robot::settled);
        if (robot_.filters() && time > since_begin_) {
            robot_.inverse_dynamics(setpoint_, moving_.command);
            const std::array<Scalar, 1> step{static_cast<Scalar>(time - since_begin_)};
            robot_.filtered(deflection_, before_, moving_.command, step, setpoint_.deflection);
            deflection_ = setpoint_.deflection;
            before_ = moving_.command;
            since_begin_ = time;
        }
        compute(setpoint_, moving_);
        if (!finite(moving_.command)) // springs are slack, or numbers overflow
            return std::numeric_limits<double>::infinity();
        const double most = largest(moving_) / most_;
        if (!(most > 1))
            return most;
        setpoint_.qd = setpoint_.qdd = setpoint_.qddd = setpoint_.qdddd = {};
        setpoint_.deflection.fill(Robot::settled);
        compute(setpoint_, resting_);
        return has_room() ? 1 : most;
    }

    /// Returns true if the motion fits: each quantity stays below `most_` of its limit, or below the midpoint between its value at
    /// rest and the limit if that is higher. Otherwise records the most critical quantity and its index.
    bool has_room() noexcept
    {
        double least = 1;
        const auto rows = this->rows(moving_, resting_);
        for (std::size_t k = 0; k < rows.size(); ++k)
            for (std::size_t i = 0; i < rows[k].count; ++i) {
                const double x = rows[k].moving[i], rest = rows[k].resting[i], limit = (x > 0 ? rows[k].high : rows[k].low)[i];
                const double most = std::max(most_, (rest / limit + 1) / 2);
                if (!(x / limit > most))
                    continue;
                const double share = rest / limit > 1 && rest / limit > beyond() ? 0 : (most * limit - rest) / (x - rest);
                if (share < least) {
                    least = share;
                    place_ = i;
                    limit_ = k;
                }
            }
        return least == 1;
    }

    /// Largest utilization at rest at the present positions.
    double beyond() noexcept
    {
        if (beyond_ < 0) {
            Outcome rest;
            setpoint_.q = now_;
            compute(setpoint_, rest);
            beyond_ = largest(rest);
        }
        return beyond_;
    }

    const Robot &robot_;
    const double most_;
    std::array<MotorVector<Robot>, 2> voltage_;
    bool limited_ = false;
    std::size_t place_ = 0, limit_ = 0;
    // Present positions, and the largest utilization at rest there, < 0 if unknown.
    JointVector<Robot> now_{};
    double beyond_ = -1;
    // Previous prediction: time from now, s, command, and deflections of damped springs.
    double since_begin_ = 0;
    Command<Robot> before_;
    JointVector<Robot> deflection_{};
    // Auxiliary inputs of a planned stop.
    Company<Robot> planned_;
    bool plans_ = false;
    // Predicted state.
    State<Robot::joints> state_{};
    Setpoint<Robot> setpoint_;
    Outcome moving_, resting_;
};

} // namespace eom

#endif
