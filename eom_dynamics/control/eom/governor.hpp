// SPDX-License-Identifier: Apache-2.0
// Governor of online motion: it slows down before efforts, their rates, or motors exceed their limits.
#ifndef EOM_GOVERNOR_HPP
#define EOM_GOVERNOR_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "commander.hpp"
#include "online_trajectory.hpp"
#include "stop.hpp"

namespace eom {

/// Chooses each cycle of an online motion: as planned, where the arm can brake after it with all commands within limits; else
/// slower, the joint whose limit is exceeded first; else as the brake that was possible after the cycle before.
///
/// A brake is predicted with what the averages know already: each joint has the gentlest one that ends within its limits of
/// position. What motion adds to a command at rest beyond limits fits where it takes less than half of what is left.
template <class Robot>
class Governor {
  public:
    /// Share of limits that predicted commands have, and where springs are damped or friction slides, whose transients are not
    /// predicted; the one below which a
    /// part of these is looked at in turn, and the one above which there are instants between.
    static constexpr double MOST = 0.99, MOST_SETTLED = 0.97, CALM = 0.5, CLOSE = 0.9;
    /// Parts of the acceleration that are tried; and the least that is told, for a brake.
    static constexpr std::array<double, 4> PARTS{0.7, 0.4, 0.2, 0.1};
    static constexpr double LEAST = 0.05;
    /// Parts of the acceleration with which brakes are tried, the gentlest first.
    static constexpr std::array<double, 3> BRAKES{0.05, 0.25, 1};
    /// Instants within the window of the averages, and from its end to that of the brake.
    static constexpr std::size_t NEAR = 8, FAR = 8, TURNS = 2;
    /// Time over which what is told is averaged, s.
    static constexpr double TOLD = 0.1;
    /// Time after which a motion that hardly goes on comes to rest, s.
    static constexpr double STUCK = 0.5;

    explicit Governor(const Robot &robot) noexcept : robot_(robot)
    {
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            voltage_[1][i] = robot.voltage_limit[i];
            voltage_[0][i] = -voltage_[1][i];
        }
        most_ = robot.filters() || robot.slides() ? MOST_SETTLED : MOST;
        const auto finite = [](Scalar x) { return std::isfinite(x); };
        for (const Row &row : rows())
            limited_ = limited_ || std::any_of(row.high, row.high + row.count, finite);
    }

    /// Begins without a brake that is known to be possible.
    void restart() noexcept
    {
        known_ = false;
        part_ = least_ = 1;
    }

    /// Takes note of a new target.
    void aim() noexcept
    {
        stuck_ = 0;
        if (part_ > 1 - LEAST)
            part_ = least_ = 1;
    }

    /// Least part since a target at full acceleration; and the limit, 0 for effort, 1 for effort rate, 2 for motor velocity,
    /// 3 for motor effort, 4 for voltage and 5 for motor effort at a joint, of the joint or motor, that has scaled accelerations
    /// last.
    double least() const noexcept { return least_; }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t place() const noexcept { return place_; }

    /// Chooses the next cycle of a motion that is prepared, with wrench, stiffness, payload and base of the present setpoint, and
    /// with what tools are to carry.
    void choose(OnlineTrajectory &motion, const Commander<Robot> &commander, bool ignores) noexcept
    {
        if (ignores || !limited_ || motion.rests()) {
            known_ = false;
            return;
        }
        motion.propose(1, BRAKES[0]);
        const double part = fitting_part(motion, commander);
        part_ += (std::max(part, LEAST) - part_) * std::min(1.0, motion.joint(0).period() / TOLD);
        least_ = std::min(least_, part_);
        stuck_ = part_ < 2 * LEAST ? stuck_ + motion.joint(0).period() : 0;
        if (stuck_ > STUCK) { // the target leads to where the arm cannot rest
            stuck_ = 0;
            motion.stop();
            motion.propose(0);
        }
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
    };

    std::array<Row, 6> rows() const noexcept
    {
        const auto &x = moving_.command, &y = resting_.command;
        const auto &low = robot_.lower, &high = robot_.upper;
        const auto row = [](const auto &a, const auto &b, const auto &from, const auto &to) {
            return Row{a.data(), b.data(), from.data(), to.data(), a.size()};
        };
        return {row(x.tau, y.tau, low.tau, high.tau), row(x.taud, y.taud, low.taud, high.taud),
                row(x.motor_velocity, y.motor_velocity, low.motor_velocity, high.motor_velocity),
                row(x.motor_effort, y.motor_effort, low.motor_effort, high.motor_effort),
                row(moving_.shafts.voltage, resting_.shafts.voltage, voltage_[0], voltage_[1]),
                row(moving_.shafts.sum, resting_.shafts.sum, low.motor_sum, high.motor_sum)};
    }

    /// Proposes the largest part of the acceleration that fits, and returns it.
    double fitting_part(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        if (fits(motion, commander))
            return 1;
        const std::size_t first = limit_ >= 2 && limit_ < 5 ? robot_.motor_joint[place_] : place_;
        for (const bool together : {motion.together(), true}) {
            for (const double part : PARTS) {
                together ? motion.propose(part, BRAKES[0]) : motion.joint(first).propose(part, BRAKES[0]);
                if (fits(motion, commander))
                    return part;
            }
            if (together)
                break;
            motion.joint(first).propose(0, 1);
            if (fits(motion, commander))
                return 0;
        }
        motion.propose(0);
        if (known_ || fits(motion, commander))
            return 0;
        motion.propose(PARTS.back());
        return PARTS.back();
    }

    /// Whether the cycle that is proposed leaves one of some brakes within limits.
    bool fits(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        for (const double gentle : BRAKES) {
            motion.escape(gentle);
            if (brake_fits(motion, commander))
                return true;
        }
        return false;
    }

    /// At instants over the window of the averages, and over the brake, and about the one with the largest share of a limit.
    bool brake_fits(const OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        const double h = motion.joint(0).period();
        double window = 0, brake = 0;
        for (std::size_t i = 0; i < motion.size(); ++i) {
            window = std::max(window, 2 * motion.joint(i).delay());
            brake = std::max(brake, motion.joint(i).escape_time());
        }
        const bool calm = calm_ && known_;
        calm_ = true;
        turn_ = (turn_ + 1) % TURNS;
        double most = 0, where = 0, apart = 0;
        const auto passes = [&](double time, double spacing) {
            const bool fit = command_fits(motion, commander, std::max(std::lround(time / h), 1L));
            calm_ = calm_ && fit && share_ < CALM;
            if (share_ > most) {
                most = share_;
                where = time;
                apart = spacing;
            }
            return fit;
        };
        for (std::size_t k = 0; k < NEAR + FAR; ++k) {
            if (calm && calm_ && k % TURNS != turn_)
                continue;
            // Denser at the begin of the brake, where jerks change.
            const double share = (static_cast<double>(k) - NEAR + 1) / FAR;
            const double time = k < NEAR ? window * static_cast<double>(k + 1) / NEAR : window + brake * share * share * share;
            const double spacing = k < NEAR ? window / NEAR : brake * share * share * 3 / FAR;
            if (!passes(time, spacing))
                return false;
        }
        if (most <= CLOSE)
            return known_ = true;
        for (double time = h; time <= window + h / 2; time += h) // the snap changes within some cycles
            if (!passes(time, h))
                return false;
        while ((apart /= 2) >= h) {
            const double middle = where;
            for (const double side : {-apart, apart})
                if (!passes(middle + side, apart))
                    return false;
        }
        return known_ = true;
    }

    bool command_fits(const OnlineTrajectory &motion, const Commander<Robot> &commander, long cycles) noexcept
    {
        State<Robot::joints> state{};
        for (std::size_t i = 0; i < motion.size(); ++i) {
            const JointMotion::State at = motion.joint(i).predicted(cycles);
            for (std::size_t n = 0; n < state.size(); ++n)
                state[n][i] = at[n];
        }
        setpoint_ = commander.output.setpoint;
        setpoint_.Pd = setpoint_.Pdd = {};
        setpoint_.deflection.fill(Robot::settled);
        setpoint_.friction_state = Robot::settled_friction;
        share_ = 0;
        return fits(state) && !(commander.blending() && commander.foresee(setpoint_) && !fits(state));
    }

    /// Whether the command of a state is within its share of limits.
    bool fits(const State<Robot::joints> &state) noexcept
    {
        take(state, setpoint_);
        compute(moving_);
        double most = 0;
        for (const Row &row : rows())
            for (std::size_t i = 0; i < row.count; ++i)
                most = std::fmax(most, row.moving[i] / (most_ * (row.moving[i] > 0 ? row.high : row.low)[i]));
        share_ = std::max(share_, most);
        if (!(most > 1))
            return true;
        setpoint_.qd = setpoint_.qdd = setpoint_.qddd = setpoint_.qdddd = {};
        compute(resting_);
        return has_room();
    }

    void compute(Outcome &y) noexcept
    {
        robot_.feedforward(setpoint_, y.command);
        robot_.drive(y.command, y.shafts);
    }

    /// Whether what motion adds to a command at rest is within limits, or takes less than half of what is left at rest; else the
    /// limit and place are kept.
    bool has_room() noexcept
    {
        double least = 1;
        const auto rows = this->rows();
        for (std::size_t k = 0; k < rows.size(); ++k)
            for (std::size_t i = 0; i < rows[k].count; ++i) {
                const double x = rows[k].moving[i], rest = rows[k].resting[i], limit = (x > 0 ? rows[k].high : rows[k].low)[i];
                const double most = std::max(most_, (rest / limit + 1) / 2);
                if (!(x / limit > most))
                    continue;
                if (const double share = (most * limit - rest) / (x - rest); share < least) {
                    least = share;
                    place_ = i;
                    limit_ = k;
                }
            }
        return least == 1;
    }

    const Robot &robot_;
    bool limited_ = false;
    double most_ = MOST;
    // Whether the last commands predicted were far from limits; whether a brake is known to be possible; what is looked at next.
    bool calm_ = false, known_ = false;
    std::size_t turn_ = 0;
    // Largest share of a limit in the last command predicted.
    double share_ = 0;
    // Part of the acceleration, averaged, and the least one; place and limit that it is for.
    double part_ = 1, least_ = 1, stuck_ = 0;
    std::size_t place_ = 0, limit_ = 0;
    Setpoint<Robot> setpoint_;
    Outcome moving_, resting_;
    std::array<MotorVector<Robot>, 2> voltage_;
};

} // namespace eom

#endif
