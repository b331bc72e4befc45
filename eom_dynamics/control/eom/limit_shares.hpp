// SPDX-License-Identifier: Apache-2.0
// Shares of limits that commands take: of efforts, their rates, and motors.
#ifndef EOM_LIMIT_SHARES_HPP
#define EOM_LIMIT_SHARES_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "commander.hpp"

namespace eom {

/// Limits of a robot, row by row: 0 for effort, 1 for effort rate, 2 for motor velocity, 3 for motor effort, 4 for voltage and 5 for
/// motor effort at a joint.
template <class Robot>
class LimitShares {
  public:
    using Scalar = typename Robot::Scalar;

    /// A command, and what it takes of the motors.
    struct Outcome {
        Command<Robot> command;
        Shafts<Robot> shafts;
    };
    /// A quantity of the command in motion and at rest, and its limits.
    struct Row {
        const Scalar *moving, *resting, *low, *high;
        std::size_t count;
    };
    using Rows = std::array<Row, 6>;

    explicit LimitShares(const Robot &robot) noexcept : robot_(robot)
    {
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            voltage_[1][i] = robot.voltage_limit[i];
            voltage_[0][i] = -voltage_[1][i];
        }
    }

    void compute(const Setpoint<Robot> &x, Outcome &y) const noexcept
    {
        robot_.feedforward(x, y.command);
        robot_.drive(y.command, y.shafts);
    }

    Rows rows(const Outcome &moving, const Outcome &resting) const noexcept
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

    /// The largest share that is in motion.
    static double largest(const Rows &rows) noexcept
    {
        double most = 0;
        for (const Row &row : rows)
            for (std::size_t i = 0; i < row.count; ++i)
                most = std::fmax(most, row.moving[i] / (row.moving[i] > 0 ? row.high : row.low)[i]);
        return most;
    }

  private:
    const Robot &robot_;
    std::array<MotorVector<Robot>, 2> voltage_;
};

} // namespace eom

#endif
