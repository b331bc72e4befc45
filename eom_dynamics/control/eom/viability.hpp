// SPDX-License-Identifier: Apache-2.0
// Viability of the motion of a joint: whether it can come to rest within its range.
#ifndef EOM_VIABILITY_HPP
#define EOM_VIABILITY_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "time_optimal.hpp"

namespace eom {

/// Factor of acceleration up to which a stop brakes harder where it would end beyond limits of position.
constexpr double STOP_HASTE = @stop_haste@;

/// Where a motion rests that brakes at once, and where it turns before.
inline std::array<double, 2> brake_positions(const Moment &x, const Bounds &brake) noexcept
{
    const Rest rest(x, brake);
    if (rest.side * x.v >= 0)
        return {rest.position, rest.position};
    // Too much acceleration is left to rest without a turn.
    const double a = std::fabs(x.a), J = brake.jerk;
    const double time = (a - std::sqrt(std::max(a * a - 2 * J * std::fabs(x.v), 0.0))) / J;
    return {rest.position, x.with(-rest.side * J).after(time).p};
}

/// A joint with its range, the acceleration and jerk of its stops, and delay, s, and variance, s^2, of their averages.
struct Viability {
    double lower, upper, braking, jerk, delay, variance;

    /// Where it would rest in the direction of its velocity, if it came to rest from position, velocity and acceleration as hard as a
    /// stop may, or with constant acceleration within limits.
    double stopping_position(double q, double v, double a) const noexcept
    {
        constexpr double FASTEST = std::numeric_limits<double>::infinity();
        const double D = delay, side = (v != 0 ? v : a) < 0 ? -1 : 1, A = STOP_HASTE * braking;
        const Bounds most{-FASTEST, FASTEST, -A, A, STOP_HASTE * STOP_HASTE * jerk};
        const Moment led{q + D * v + (D * D - variance) / 2 * a, v + D * a, a};
        const auto [end, turn] = brake_positions(led, most);
        // The average of what slows down is behind; more so where that rises.
        const double behind = RISES * std::max(-side * a, 0.0) * variance / 2;
        return side * std::max({side * end - behind, side * turn - behind, side * q + v * v / (2 * BRAKING_SLACK * braking)});
    }

    /// Whether that is within its range, but for rounding.
    bool can_stop(double q, double v, double a) const noexcept
    {
        const double end = stopping_position(q, v, a);
        return (v != 0 ? v : a) > 0 ? end <= upper + ROUNDING : end >= lower - ROUNDING;
    }

    /// Whether it may be beyond a distance, rad or m.
    bool may_pass(double room, double v, double a) const noexcept
    {
        const double time = delay + braking / jerk, fast = std::fabs(v) + time * std::fabs(a);
        return fast * time + fast * fast / braking > room;
    }

  private:
    static constexpr double BRAKING_SLACK = @braking_slack@, RISES = 1.25, ROUNDING = 1e-12;
};

} // namespace eom

#endif
