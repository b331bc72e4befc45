// SPDX-License-Identifier: Apache-2.0
// Governor of online motion: it slows down before efforts, their rates, or motors exceed their limits.
#ifndef EOM_GOVERNOR_HPP
#define EOM_GOVERNOR_HPP

#include <algorithm>
#include <array>
#include <cmath>

#include "commander.hpp"
#include "online_trajectory.hpp"
#include "stop.hpp"

namespace eom {

/// Factor of the accelerations of an online motion, by which predicted commands are within limits.
///
/// Each cycle predicts one command of the motion that lies ahead; those until its end are a sweep. One beyond its share of
/// a limit scales accelerations down at once, so that what motion adds to the command at rest fits. After a sweep with room
/// to spare they grow again.
template <class Robot>
class Governor {
  public:
    /// Share of limits that commands have, of effort rates, which change fastest, less; and the share of it below which all of
    /// a sweep are before accelerations grow.
    static constexpr double MOST = 0.93, MOST_RATE = 0.85, CALM = 0.93;
    /// Least factor, and of that before a sweep, in which much cannot be changed any more; and growth after a sweep.
    static constexpr double LEAST = 0.05, STEEPEST = 0.4, GROWTH = 1.05;
    /// Samples after a new target, shares of the window of the averages, where it changes the motion most.
    static constexpr std::array<double, 4> PROBES{0.25, 0.4, 0.6, 0.85};
    /// Time between samples: the least, s, and that of a time ahead.
    static constexpr double SHORTEST = 0.01, WIDENING = 0.1;

    explicit Governor(const Robot &robot) noexcept : robot_(robot)
    {
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            voltage_[1][i] = robot.voltage_limit[i];
            voltage_[0][i] = -voltage_[1][i];
        }
        const auto finite = [](Scalar x) { return std::isfinite(x); };
        for (const Row &row : rows())
            limited_ = limited_ || std::any_of(row.high, row.high + row.count, finite);
    }

    /// Begins with accelerations as they are.
    void restart(OnlineTrajectory &motion) noexcept
    {
        time_ = end_ = 0;
        motion.scale(factor_ = begun_ = least_ = 1);
    }

    /// Takes note of a new target; the sweep goes on after its probes, and between those of many targets.
    void aim() noexcept
    {
        next_probe_ = 0;
        if (factor_ == 1)
            least_ = 1;
    }

    /// Whether nothing has been predicted of a new target.
    bool aimed() const noexcept { return next_probe_ == 0; }

    /// Least factor since a target at full acceleration; and the limit, 0 for effort, 1 for effort rate, 2 for motor velocity,
    /// 3 for motor effort, 4 for voltage and 5 for motor effort at a joint, of the joint or motor, that has scaled accelerations
    /// last.
    double least() const noexcept { return least_; }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t place() const noexcept { return place_; }

    /// Predicts a command, with wrench, stiffness, payload and base of the present setpoint, and with what tools are to carry;
    /// returns whether that has changed the scale of the motion.
    bool look(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        if (!limited_)
            return false;
        const double before = factor_;
        const bool probes = next_probe_ < PROBES.size() && probed_ < PROBES.size();
        probed_ = probes ? probed_ + 1 : 0;
        if (!probes && time_ >= end_)
            begin_sweep(motion);
        const double time = probes ? PROBES[next_probe_++] * 2 * motion.joint(0).delay() : time_;
        State<Robot::joints> state{};
        for (std::size_t i = 0; i < motion.size(); ++i) {
            const JointMotion::State at = motion.joint(i).predicted(time);
            for (std::size_t k = 0; k < state.size(); ++k)
                state[k][i] = at[k];
        }
        if (!probes)
            time_ += std::max(SHORTEST, WIDENING * time_);
        setpoint_ = commander.output.setpoint;
        setpoint_.Pd = setpoint_.Pdd = {};
        setpoint_.deflection.fill(Robot::settled);
        setpoint_.friction_state = Robot::settled_friction;
        double fits = fit(state);
        if (commander.blending() && commander.foresee(setpoint_))
            fits = std::min(fits, fit(state));
        if (fits < 1) {
            scale(motion, std::max({LEAST, STEEPEST * begun_, factor_ * fits}));
            if (probes)
                time_ = end_; // so that the sweep begins anew, with what is near
        }
        return factor_ != before;
    }

  private:
    using Scalar = typename Robot::Scalar;

    struct Outcome {
        Command<Robot> command;
        Shafts<Robot> shafts;
    };
    /// A quantity of the command in motion and at rest, and its limits.
    struct Row {
        const Scalar *moving, *resting, *low, *high;
        std::size_t count;
        double most = MOST;
    };

    std::array<Row, 6> rows() const noexcept
    {
        const auto &x = moving_.command, &y = resting_.command;
        const auto &low = robot_.lower, &high = robot_.upper;
        const auto row = [](const auto &a, const auto &b, const auto &from, const auto &to, double most = MOST) {
            return Row{a.data(), b.data(), from.data(), to.data(), a.size(), most};
        };
        return {row(x.tau, y.tau, low.tau, high.tau), row(x.taud, y.taud, low.taud, high.taud, MOST_RATE),
                row(x.motor_velocity, y.motor_velocity, low.motor_velocity, high.motor_velocity),
                row(x.motor_effort, y.motor_effort, low.motor_effort, high.motor_effort),
                row(moving_.shafts.voltage, resting_.shafts.voltage, voltage_[0], voltage_[1]),
                row(moving_.shafts.sum, resting_.shafts.sum, low.motor_sum, high.motor_sum)};
    }

    /// Factor by which the command of a state is within its share of limits, 1 where it is.
    double fit(const State<Robot::joints> &state) noexcept
    {
        take(state, setpoint_);
        compute(moving_);
        double most = 0;
        for (const Row &row : rows())
            for (std::size_t i = 0; i < row.count; ++i)
                most = std::fmax(most, row.moving[i] / (row.most * (row.moving[i] > 0 ? row.high : row.low)[i]));
        calm_ = calm_ && most < CALM;
        if (!(most > 1))
            return 1;
        setpoint_.qd = setpoint_.qdd = setpoint_.qddd = setpoint_.qdddd = {};
        compute(resting_);
        return room();
    }

    void compute(Outcome &y) noexcept
    {
        robot_.feedforward(setpoint_, y.command);
        robot_.drive(y.command, y.shafts);
    }

    void scale(OnlineTrajectory &motion, double factor) noexcept
    {
        if (factor == factor_)
            return;
        motion.scale(factor_ = factor);
        least_ = std::min(least_, factor);
    }

    void begin_sweep(OnlineTrajectory &motion) noexcept
    {
        if (calm_)
            scale(motion, std::min(1.0, factor_ * GROWTH));
        calm_ = true;
        begun_ = factor_;
        end_ = motion.left();
        // Sweeps look at other instants than those before.
        time_ = std::fmod(time_ + 0.618 * SHORTEST, SHORTEST);
    }

    /// Largest share of what motion adds to the command at rest, by which it is within its share of limits; where it is
    /// more than that at rest, half of what is left.
    double room() noexcept
    {
        double least = 1;
        const auto rows = this->rows();
        for (std::size_t k = 0; k < rows.size(); ++k)
            for (std::size_t i = 0; i < rows[k].count; ++i) {
                const double x = rows[k].moving[i], rest = rows[k].resting[i], limit = (x > 0 ? rows[k].high : rows[k].low)[i];
                const double most = std::max(rows[k].most, (rest / limit + 1) / 2);
                if (!(x / limit > most))
                    continue;
                if (const double share = (most * limit - rest) / (x - rest); share < least) {
                    least = share;
                    place_ = i;
                    limit_ = k;
                }
            }
        return least;
    }

    const Robot &robot_;
    bool limited_ = false, calm_ = false;
    // At present, at the begin of the sweep, and the least one.
    double factor_ = 1, begun_ = 1, least_ = 1;
    std::size_t next_probe_ = PROBES.size();
    std::size_t probed_ = 0;
    std::size_t place_ = 0, limit_ = 0;
    // Of the sweep: time of the next sample, and end, s.
    double time_ = 0, end_ = 0;
    Setpoint<Robot> setpoint_;
    Outcome moving_, resting_;
    std::array<MotorVector<Robot>, 2> voltage_;
};

} // namespace eom

#endif
