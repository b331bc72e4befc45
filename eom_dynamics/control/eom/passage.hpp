// SPDX-License-Identifier: Apache-2.0
// Bumpless transfer: offsets that fade from 1 to 0, twice continuously differentiable at both ends.
#ifndef EOM_PASSAGE_HPP
#define EOM_PASSAGE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "setpoint.hpp"

namespace eom {

/// Fades an offset from 1 to 0 within `duration` ns, C2, with its rate, 1/s.
struct Passage {
    std::int64_t duration, since = duration;
    double share = 1; // of the elapsed time, to limit rates
    /// Usable fraction of limits, because rates grow within a cycle; twice the largest rate of a unit offset fading within 1 s.
    static constexpr double WITHIN = 0.98, STEEPEST = 2 * 1.875;
    /// Maximum duration, s.
    static constexpr double LONGEST = 1e4;

    bool lasts() const noexcept { return since < duration; }
    void pass(std::int64_t step) noexcept { since = std::min(since + step, duration); }
    /// Advance more slowly if the command's own `rates` leave too little of `limits` to the offsets.
    template <class Values>
    void pass(std::int64_t step, const Values &offsets, const Values &limits, const Values &rates) noexcept
    {
        if (!lasts())
            return;
        const double steepness = std::min(slope(since), slope(std::min(since + step, duration))); // grows within the cycle
        double least = 1;
        for (std::size_t i = 0; i < offsets.size(); ++i) {
            const double passes = std::fabs(offsets[i] * steepness), left = WITHIN * limits[i] - std::fabs(rates[i]);
            if (passes > left)
                least = std::min(least, std::max(left, 0.0) / passes);
        }
        const double mean = (std::exchange(share, least) + least) / 2; // mean, so that positions match velocities
        pass(std::llround(mean * static_cast<double>(step)));
    }
    /// Start with a duration of at least `least` s, and long enough for rates of at most half of `limits`.
    template <class Values>
    void begin(double least, const Values &offsets, const Values &limits) noexcept
    {
        for (std::size_t i = 0; i < offsets.size(); ++i)
            if (offsets[i] != 0)
                least = std::max(least, STEEPEST * std::fabs(offsets[i]) / limits[i]);
        *this = {std::llround(1e9 * std::min(least, LONGEST)), 0};
    }
    void end() noexcept { since = duration; }
    double left() const noexcept
    {
        const double s = seconds(since) / seconds(duration), r = 1 - s;
        return r * r * r * (1 + s * (3 + 6 * s));
    }
    double rate() const noexcept { return share * slope(since); }
    double slope(std::int64_t time) const noexcept
    {
        const double s = seconds(time) / seconds(duration), r = 1 - s;
        return -30 * s * s * r * r / seconds(duration);
    }
};

/// Fades motor position offsets after a change of mode, without increasing the distance beyond joint limits.
template <class Robot>
class PositionPassage {
  public:
    explicit PositionPassage(const Robot &robot) noexcept : robot_(robot) {}

    bool lasts() const noexcept { return time_.lasts(); }
    void end() noexcept { time_.end(), offset_ = {}; }
    const std::array<MotorVector<Robot>, 2> &offset() const noexcept { return offset_; }

    /// Start from the last command, including its offsets, to command y of setpoint x, within at least `least` s.
    void begin(double least, const Command<Robot> &from, const Setpoint<Robot> &x, const Command<Robot> &y) noexcept
    {
        for (std::size_t i = 0; i < Robot::motors; ++i)
            whole_[i] = from.motor_position[i] + offset_[0][i] - y.motor_position[i];
        for (Scalar &way : whole_)
            way = std::fabs(way) <= FARTHEST ? way : 0;
        time_.begin(least, whole_, robot_.motor_speed);
        beyond_.fill(std::numeric_limits<typename Robot::Scalar>::infinity());
        find(x);
    }

    /// Advance by `step` ns, with command y of setpoint x.
    void pass(std::int64_t step, const Setpoint<Robot> &x, const Command<Robot> &y) noexcept
    {
        if (!lasts())
            return;
        time_.pass(step, whole_, robot_.motor_speed, y.motor_velocity);
        find(x);
    }

  private:
    using Scalar = typename Robot::Scalar;
    /// Rounding of positions, and the largest faded offset, rad or m.
    static constexpr double ROUNDING = 1e-12, FARTHEST = 1e6;

    void find(const Setpoint<Robot> &x) noexcept
    {
        const auto left = static_cast<Scalar>(time_.left()), rate = static_cast<Scalar>(time_.rate());
        for (std::size_t i = 0; i < Robot::motors; ++i)
            offset_[0][i] = left * whole_[i], offset_[1][i] = rate * whole_[i];
        const JointVector<Robot> side = sides_of(robot_, offset_[0]), velocity = sides_of(robot_, offset_[1]);
        JointVector<Robot> less{}, slower{};
        for (std::size_t i = 0; i < robot_.joint_count(); ++i) {
            const Scalar place = x.q[i] + side[i];
            const Scalar low = std::min(robot_.lower.q[i], x.q[i]), high = std::max(robot_.upper.q[i], x.q[i]);
            beyond_[i] = std::min(beyond_[i], std::max({place - high, low - place, Scalar{0}}));
            const Scalar more = std::clamp(place, low - beyond_[i], high + beyond_[i]) - place;
            if (std::fabs(more) <= ROUNDING)
                continue;
            less[i] = more;
            // A limit does not move; beyond it, the setpoint itself is the limit.
            slower[i] = -velocity[i] - (x.q[i] > robot_.lower.q[i] && x.q[i] < robot_.upper.q[i] ? x.qd[i] : 0);
        }
        robot_.add_sides(less, offset_[0]);
        robot_.add_sides(slower, offset_[1]);
    }

    const Robot robot_;
    Passage time_{1};
    MotorVector<Robot> whole_{};
    std::array<MotorVector<Robot>, 2> offset_{};
    JointVector<Robot> beyond_{}; // allowed distance beyond joint limits, never increasing
};

} // namespace eom

#endif
