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

/// Where a motion comes to rest if it brakes at once, and where it reverses on the way; the same twice if it does not.
inline std::array<double, 2> brake_positions(const Moment &x, const Bounds &brake) noexcept
{
    const Rest rest(x, brake);
    if (rest.side * x.v >= 0)
        return {rest.position, rest.position};
    // The acceleration is too large to fade before the velocity is zero.
    const double a = std::fabs(x.a), J = brake.jerk;
    const double time = (a - std::sqrt(std::max(a * a - 2 * J * std::fabs(x.v), 0.0))) / J;
    return {rest.position, x.with(-rest.side * J).after(time).p};
}

/// Positions within which brakes end: the range of a joint, and its target on the side to which the joint moves.
struct BrakeRange {
    double lower, upper;

    /// Returns true if a brake from `x` ends, or turns, outside.
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

    /// Returns the least part of acceleration, from `part` on, with which a brake from `now` ends within the range; `part` if not even
    /// the whole acceleration does. `bounds` maps a part to the bounds of a brake.
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
    /// Rounding of positions, and the distance by which brakes may pass a target, which is more, rad or m.
    static constexpr double ROUNDING = 1e-12, OVERSHOOT = 1e-9;
};

/// Acceleration and jerk of the stops of a joint, and delay, s, and variance, s^2, of their averages.
struct Viability {
    double braking, jerk, delay, variance;

    /// The least and the greatest position on the way to rest from position, velocity and acceleration: of a stop as hard as one may
    /// be, and with constant acceleration within limits.
    std::array<double, 2> stopping_positions(double q, double v, double a) const noexcept
    {
        constexpr double FASTEST = std::numeric_limits<double>::infinity();
        const double D = delay, A = STOP_HASTE * braking;
        const Bounds most{-FASTEST, FASTEST, -A, A, STOP_HASTE * STOP_HASTE * jerk};
        const Moment led{q + D * v + (D * D - variance) / 2 * a, v + D * a, a};
        const auto [end, turn] = brake_positions(led, most);
        // While the follower decelerates, its average lags behind; more so while that rises.
        const double lag = RISES * std::fabs(a) * variance / 2, way = v * v / (2 * BRAKING_SLACK * braking);
        const double low = std::min(end, turn) + (a > 0 ? lag : 0), high = std::max(end, turn) - (a < 0 ? lag : 0);
        return {std::min(low, q - (v < 0 ? way : 0)), std::max(high, q + (v > 0 ? way : 0))};
    }

    /// False if a stop certainly needs less than a distance, rad or m.
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
