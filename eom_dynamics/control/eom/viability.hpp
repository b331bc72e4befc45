// SPDX-License-Identifier: Apache-2.0
// Viability of a joint motion: it can stop within its range.
#ifndef EOM_VIABILITY_HPP
#define EOM_VIABILITY_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "time_optimal.hpp"

namespace eom {

/// Largest factor on the deceleration of a stop that would otherwise end beyond a position limit.
constexpr double STOP_HASTE = @stop_haste@;

/// Returns the rest position of an immediate brake, and its turning point; without reversal, the rest position again.
inline std::array<double, 2> brake_positions(const Moment &x, const Bounds &brake) noexcept
{
    const Rest rest(x, brake);
    if (rest.side * x.v >= 0)
        return {rest.position, rest.position};
    // The acceleration cannot fade before the velocity is zero.
    const double a = std::fabs(x.a), J = brake.jerk;
    const double time = (a - std::sqrt(std::max(a * a - 2 * J * std::fabs(x.v), 0.0))) / J;
    return {rest.position, x.with(-rest.side * J).after(time).p};
}

/// Range for the ends of brakes: the joint range, limited by the target ahead of the joint.
struct BrakeRange {
    double lower, upper;

    /// Returns true if a brake from `x` ends or turns outside the range.
    bool excludes(const Moment &x, const Bounds &brake) const noexcept
    {
        const auto ends = brake_positions(x, brake);
        return std::any_of(ends.begin(), ends.end(), [this](double p) { return p < lower - ROUNDING || p > upper + ROUNDING; });
    }

    /// Exclude brakes that pass `target`, if the hardest brake from `now` does not.
    void narrow(double target, const Moment &now, const Bounds &hardest) noexcept
    {
        const auto [end, turn] = brake_positions(now, hardest);
        if (std::max({now.p, end, turn}) <= target + OVERSHOOT)
            upper = std::min(upper, target + OVERSHOOT);
        if (std::min({now.p, end, turn}) >= target - OVERSHOOT)
            lower = std::max(lower, target - OVERSHOOT);
    }

    /// Returns the smallest fraction of acceleration, at least `part`, for a brake from `now` to end within the range; `part` if
    /// even the full acceleration is insufficient. `bounds` maps a fraction to bounds.
    template <class F>
    double least_part(double part, const Moment &now, const F &bounds) const noexcept
    {
        if (!excludes(now, bounds(part)) || excludes(now, bounds(1)))
            return part;
        double low = part, high = 1;
        for (int i = 0; i < MAX_BISECTIONS; ++i) {
            const double middle = (low + high) / 2;
            (excludes(now, bounds(middle)) ? low : high) = middle;
        }
        return high;
    }

  private:
    static constexpr int MAX_BISECTIONS = 24;
    /// Rounding of positions, and allowed overshoot of a target, which is larger, rad or m.
    static constexpr double ROUNDING = 1e-12, OVERSHOOT = 1e-9;
};

/// Viability of a joint by its deceleration and jerk, and by delay, s, and variance, s^2, of its averages.
struct Viability {
    double braking, jerk, delay, variance;

    /// Returns the smallest and largest position of a stop from q, v and a: for the hardest stop, and for constant deceleration.
    std::array<double, 2> stopping_positions(double q, double v, double a) const noexcept
    {
        constexpr double FASTEST = std::numeric_limits<double>::infinity();
        const double D = delay, A = STOP_HASTE * braking;
        const Bounds most{-FASTEST, FASTEST, -A, A, STOP_HASTE * STOP_HASTE * jerk};
        const Moment led{q + D * v + (D * D - variance) / 2 * a, v + D * a, a};
        const auto [end, turn] = brake_positions(led, most);
        // The average lags behind a decelerating follower, more so while deceleration rises.
        const double lag = RISES * std::fabs(a) * variance / 2, way = v * v / (2 * BRAKING_SLACK * braking);
        const double low = std::min(end, turn) + (a > 0 ? lag : 0), high = std::max(end, turn) - (a < 0 ? lag : 0);
        return {std::min(low, q - (v < 0 ? way : 0)), std::max(high, q + (v > 0 ? way : 0))};
    }

    /// Returns false if a stop certainly needs less than `room`, rad or m.
    bool may_exceed(double room, double v, double a) const noexcept
    {
        const double time = delay + braking / jerk, fast = std::fabs(v) + time * std::fabs(a);
        return fast * time + fast * fast / braking > room;
    }

  private:
    static constexpr double BRAKING_SLACK = @braking_slack@, RISES = 1.25;
};

} // namespace eom

#endif
