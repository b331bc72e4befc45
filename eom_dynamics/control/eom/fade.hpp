// SPDX-License-Identifier: Apache-2.0
// Bumpless transfer: the decay of offsets at every hand-over.
#ifndef EOM_FADE_HPP
#define EOM_FADE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "setpoint.hpp"

namespace eom {

/// Decay from 1 to 0 within a duration: quintic, twice continuously differentiable at both ends, with limited rates.
///
/// Every hand-over uses it: mode, source, payload, motor positions, auxiliary inputs, and the efforts of deactivation.
class Fade {
  public:
    /// Largest rate of a unit offset that fades within 1 s, and its largest second derivative, 10 / sqrt(3).
    static constexpr double STEEPEST = 1.875, MOST_BENT = 5.7735026918962576;

    /// Weight at the fraction `u` of the duration.
    static double weight_at(double u) noexcept
    {
        const double r = 1 - u;
        return r * r * r * (1 + u * (3 + 6 * u));
    }
    /// Derivatives of the weight by `u`.
    static double slope_at(double u) noexcept { return -30 * u * u * (1 - u) * (1 - u); }
    static double bend_at(double u) noexcept { return -60 * u * (1 - u) * (1 - u - u); }
    /// Integrals of the weight times 1, u and u^2, from 0 to `u`.
    static std::array<double, 3> integrals(double u) noexcept
    {
        return {u * (1 - u * u * u * (2.5 - u * (3 - u))), u * u * (0.5 - u * u * u * (2 - u * (2.5 - u * 6 / 7))),
                u * u * u * (1.0 / 3 - u * u * u * (5.0 / 3 - u * (15.0 / 7 - u * 0.75)))};
    }

    bool is_active() const noexcept { return elapsed_ < duration_; }
    void end() noexcept { elapsed_ = duration_; }

    /// Start with `duration`, s.
    void begin(double duration) noexcept
    {
        duration_ = std::max<std::int64_t>(std::llround(1e9 * std::min(duration, MAX_DURATION)), 1);
        elapsed_ = duration > 0 ? 0 : duration_;
        share_ = 1;
    }
    /// Start with a duration of at least `least` s, and long enough for rates of at most half of `limits`.
    template <class Values, class... More>
    void begin(double least, const Values &offsets, const Values &limits, const More &...more) noexcept
    {
        for (std::size_t i = 0; i < offsets.size(); ++i)
            if (offsets[i] != 0)
                least = std::max(least, 2 * STEEPEST * std::fabs(offsets[i]) / limits[i]);
        begin(least, more...);
    }

    /// Advance by `step` ns.
    void advance(std::int64_t step) noexcept { elapsed_ = std::min(elapsed_ + step, duration_); }
    /// Advance by a share of `step` ns.
    void advance(std::int64_t step, double share) noexcept
    {
        const double mean = (std::exchange(share_, share) + share) / 2; // mean, so that positions match velocities
        advance(std::llround(mean * static_cast<double>(step)));
    }
    /// Returns the share of a step of `step` ns with which `offsets` keep `limits`, in addition to the `rates` of the command itself.
    template <class Values>
    double share(std::int64_t step, const Values &offsets, const Values &limits, const Values &rates) const noexcept
    {
        if (!is_active())
            return 1;
        const double steepness = std::min(slope(elapsed_), slope(std::min(elapsed_ + step, duration_))); // grows within the cycle
        double least = 1;
        for (std::size_t i = 0; i < offsets.size(); ++i) {
            const double needed = std::fabs(offsets[i] * steepness), room = USABLE * limits[i] - std::fabs(rates[i]);
            if (needed > room)
                least = std::min(least, std::max(room, 0.0) / needed);
        }
        return least;
    }

    /// Weight, its rate, 1/s, and its second derivative at a constant share of the time, 1/s^2.
    double weight() const noexcept { return weight_at(fraction(elapsed_)); }
    double rate() const noexcept { return share_ * slope(elapsed_); }
    double second() const noexcept
    {
        const double scale = share_ / seconds(duration_);
        return scale * scale * bend_at(fraction(elapsed_));
    }

  private:
    /// Usable fraction of limits, because rates grow within a cycle.
    static constexpr double USABLE = 0.98;
    static constexpr double MAX_DURATION = 1e4; // s

    double fraction(std::int64_t time) const noexcept { return seconds(time) / seconds(duration_); }
    double slope(std::int64_t time) const noexcept { return slope_at(fraction(time)) / seconds(duration_); }

    std::int64_t duration_ = 1, elapsed_ = 1; // ns
    double share_ = 1; // of the elapsed time, to limit rates
};

/// Fades motor position offsets after a hand-over, without increasing the distance beyond joint limits.
template <class Robot>
class PositionFade {
  public:
    explicit PositionFade(const Robot &robot) noexcept : robot_(robot) {}

    bool is_active() const noexcept { return fade_.is_active(); }
    void end() noexcept { fade_.end(), offset_ = {}; }
    const std::array<MotorVector<Robot>, 2> &offset() const noexcept { return offset_; }

    /// Start from the last command, including its offsets, to command y of setpoint x, within at least `least` s.
    void begin(double least, const Command<Robot> &from, const Setpoint<Robot> &x, const Command<Robot> &y) noexcept
    {
        for (std::size_t i = 0; i < Robot::motors; ++i)
            whole_[i] = from.motor_position[i] + offset_[0][i] - y.motor_position[i];
        for (Scalar &offset : whole_)
            offset = std::fabs(offset) <= MAX_OFFSET ? offset : 0;
        fade_.begin(least, whole_, robot_.motor_speed);
        beyond_.fill(std::numeric_limits<typename Robot::Scalar>::infinity());
        find(x);
    }

    /// Advance by `step` ns, with command y of setpoint x.
    void advance(std::int64_t step, const Setpoint<Robot> &x, const Command<Robot> &y) noexcept
    {
        if (!is_active())
            return;
        fade_.advance(step, fade_.share(step, whole_, robot_.motor_speed, y.motor_velocity));
        find(x);
    }

  private:
    using Scalar = typename Robot::Scalar;
    /// Rounding of positions, and the largest faded offset, rad or m.
    static constexpr double ROUNDING = 1e-12, MAX_OFFSET = 1e6;

    void find(const Setpoint<Robot> &x) noexcept
    {
        const auto left = static_cast<Scalar>(fade_.weight()), rate = static_cast<Scalar>(fade_.rate());
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
    Fade fade_;
    MotorVector<Robot> whole_{};
    std::array<MotorVector<Robot>, 2> offset_{};
    JointVector<Robot> beyond_{}; // allowed distance beyond joint limits, never increasing
};

} // namespace eom

#endif
