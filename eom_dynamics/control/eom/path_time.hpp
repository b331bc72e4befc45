// SPDX-License-Identifier: Apache-2.0
// Path parameter of a trajectory: the pace changes with four continuous derivatives, and the path is unchanged.
#ifndef EOM_PATH_TIME_HPP
#define EOM_PATH_TIME_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "setpoint.hpp"
#include "spline.hpp"

namespace eom {

/// Path parameter s, in s, with four time derivatives; the first derivative is the pace.
using PathState = std::array<double, 5>;

/// Maximum pace: speed_scaling reduces speeds.
constexpr double MAX_PACE = 1;

/// Chain rule: convert q(s) to q(s(t)), with primes for derivatives by s:
///
///     q'' v^2 + q' a,   q''' v^3 + 3 q'' v a + q' j,   q'''' v^4 + 6 q''' v^2 a + q'' (3 a^2 + 4 v j) + q' snap
template <std::size_t n>
void along(State<n> &q, const PathState &s) noexcept
{
    const double v = s[1], a = s[2], j = s[3];
    for (std::size_t i = 0; i < n; ++i) {
        const double first = q[1][i], second = q[2][i], third = q[3][i];
        q[1][i] = first * v;
        q[2][i] = second * v * v + first * a;
        q[3][i] = third * v * v * v + 3 * second * v * a + first * j;
        q[4][i] = q[4][i] * v * v * v * v + 6 * third * v * v * a + second * (3 * a * a + 4 * v * j) + first * s[4];
    }
}

/// Path parameter from one constant pace to another: the pace is a smoothstep of degree 7 in a time T, so that the path parameter is
/// C4. With u = t/T, the step is u^4 (35 - 84 u + 70 u^2 - 20 u^3), and its derivative 140 u^3 (1 - u)^3.
class PaceChange {
  public:
    /// Pace 1 from 0.
    PaceChange() noexcept = default;

    /// Constant path parameter `place`.
    explicit PaceChange(double place) noexcept : place_(place), end_(place), from_(0), pace_(0) {}

    /// Change from pace `from` at path parameter `place` to `pace` in `duration` s.
    PaceChange(double place, double from, double pace, double duration) noexcept
        : place_(place), end_(place + duration * (from + 0.5 * (pace - from))), from_(from), pace_(pace), duration_(duration)
    {
    }

    /// Path state at time t, s.
    PathState at(double t) const noexcept
    {
        if (!(t < duration_))
            return {end_ + pace_ * (t - duration_), pace_, 0, 0, 0};
        if (t <= 0)
            return {place_ + from_ * t, from_, 0, 0, 0};
        const double T = duration_, u = t / T, v = 1 - u, change = pace_ - from_, u2 = u * u, scale = change / T;
        return {place_ + t * (from_ + change * u2 * u2 * (7 - u * (14 - u * (10 - 2.5 * u)))),
                from_ + change * u2 * u2 * (35 - u * (84 - u * (70 - 20 * u))), scale * 140 * u2 * u * v * v * v,
                scale / T * 420 * u2 * v * v * (v - u), scale / (T * T) * 840 * u * v * (1 - 5 * u * v)};
    }

    double duration() const noexcept { return duration_; }
    /// Final pace.
    double pace() const noexcept { return pace_; }

  private:
    // Path parameters at both ends, initial and final pace, and duration, s.
    double place_ = 0, end_ = 0, from_ = 1, pace_ = 1, duration_ = 0;
};

/// Path parameter over the clock: a sequence of pace changes. Earlier changes serve commands behind the command lead.
class PathTime {
  public:
    /// Start with pace 1 from 0 at `origin`, ns.
    void start(std::int64_t origin) noexcept { changes_.fill({PaceChange(), origin}); }

    /// Hold `place` from `begin`, ns, until the next change.
    void stay(double place, std::int64_t begin) noexcept { changes_.fill({PaceChange(place), begin}); }

    /// Append a change that starts at `begin`, ns, after the end of the last change.
    void change(std::int64_t begin, const PaceChange &change) noexcept
    {
        std::copy_backward(changes_.begin(), changes_.end() - 1, changes_.end());
        changes_[0] = {change, begin};
    }

    /// Returns the path state `later` s after `now`, ns.
    PathState at(std::int64_t now, double later = 0) const noexcept
    {
        std::size_t k = 0;
        while (k + 1 < changes_.size() && seconds(now - changes_[k].begin) + later < 0)
            ++k;
        return changes_[k].of.at(seconds(now - changes_[k].begin) + later);
    }

    const PaceChange &last() const noexcept { return changes_[0].of; }
    std::int64_t begin() const noexcept { return changes_[0].begin; } ///< start of the last change, ns

  private:
    struct Begun {
        PaceChange of;
        std::int64_t begin = 0;
    };
    // Changes follow each other, so that these begin further back than any command lead.
    std::array<Begun, 4> changes_{};
};

} // namespace eom

#endif
