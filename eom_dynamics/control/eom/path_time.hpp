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

/// Maximum pace.
constexpr double FASTEST_PACE = @fastest_pace@;

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

/// Durations of a pace change, s: waiting, rise, hold and fall of the acceleration; `edge` is the fraction of rise and fall used by
/// each change of the jerk.
struct PaceShape {
    double wait = 0, rise = 0, hold = 0, fall = 0, edge = 0.5;
    double total() const noexcept { return wait + rise + hold + fall; }
};

/// Path parameter from one pace to another: a trapezoid of acceleration with cubic jerk edges, C4. An initial acceleration fades
/// within the rise, by a polynomial of degree five.
class PaceChange {
  public:
    PaceChange() noexcept = default;

    /// Constant path parameter `place`.
    explicit PaceChange(double place) noexcept : pace_(0), end_(place) {}

    PaceChange(const PathState &from, double pace, const PaceShape &shape) noexcept
        : shape_(shape), from_(from), pace_(pace), duration_(shape.total())
    {
        const double T = shape.rise, a = from[2], j = T * from[3], k = T * T * from[4];
        fading_ = {a, j, k / 2, -10 * a - 6 * j - 1.5 * k, 15 * a + 8 * j + 1.5 * k, -6 * a - 3 * j - 0.5 * k};
        const double faded = T * (a / 2 + j / 10 + k / 120);
        const double most = (pace - from[1] - faded) / (shape.hold + 0.5 * (shape.rise + shape.fall));
        const double falls = shape.wait + shape.rise + shape.hold, r = 1 - shape.edge;
        times_ = {shape.wait, shape.wait + r * shape.rise, falls, falls + r * shape.fall};
        widths_ = {shape.edge * shape.rise, shape.edge * shape.fall};
        jerks_ = {most / (r * shape.rise), most / (r * shape.fall)};
        end_ = under_way(duration_)[0];
    }

    /// Path state at time t, s; without a change, pace 1 from 0.
    PathState at(double t) const noexcept
    {
        if (t < duration_ && shape_.rise > 0)
            return under_way(t);
        return {end_ + pace_ * (t - duration_), pace_, 0, 0, 0};
    }

    double duration() const noexcept { return duration_; }
    /// Final pace.
    double pace() const noexcept { return pace_; }
    const PaceShape &shape() const noexcept { return shape_; }

    static constexpr std::size_t SECTIONS = 7;
    /// Boundaries of the intervals with smooth derivatives, s.
    std::array<double, SECTIONS + 1> sections() const noexcept
    {
        return {times_[0], times_[0] + widths_[0], times_[1], times_[1] + widths_[0],
                times_[2], times_[2] + widths_[1], times_[3], duration_};
    }

  private:
    PathState under_way(double t) const noexcept
    {
        const double x = t - shape_.wait, T = shape_.rise, u = x / T;
        PathState s = {from_[0] + from_[1] * t, from_[1], 0, 0, 0};
        const auto &c = fading_;
        if (u >= 1) {
            const double v = T * (c[0] + c[1] / 2 + c[2] / 3 + c[3] / 4 + c[4] / 5 + c[5] / 6);
            s[0] += v * (x - T) + T * T * (c[0] / 2 + c[1] / 6 + c[2] / 12 + c[3] / 20 + c[4] / 30 + c[5] / 42);
            s[1] += v;
        } else if (u >= 0) {
            s[0] += x * x * (c[0] / 2 + u * (c[1] / 6 + u * (c[2] / 12 + u * (c[3] / 20 + u * (c[4] / 30 + u * c[5] / 42)))));
            s[1] += x * (c[0] + u * (c[1] / 2 + u * (c[2] / 3 + u * (c[3] / 4 + u * (c[4] / 5 + u * c[5] / 6)))));
            s[2] += c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))));
            s[3] += (c[1] + u * (2 * c[2] + u * (3 * c[3] + u * (4 * c[4] + u * 5 * c[5])))) / T;
            s[4] += (2 * c[2] + u * (6 * c[3] + u * (12 * c[4] + u * 20 * c[5]))) / (T * T);
        }
        for (std::size_t i = 0; i < times_.size(); ++i)
            step(t - times_[i], widths_[i / 2], (i == 1 || i == 2 ? -1 : 1) * jerks_[i / 2], s);
        return s;
    }

    /// Add a jerk step that started x s ago and rises by a cubic within w s.
    static void step(double x, double w, double jerk, PathState &s) noexcept
    {
        if (x <= 0)
            return;
        const double u = x / w;
        if (u < 1) {
            s[0] += jerk * x * x * x * u * u * (1.0 / 20 - u / 60);
            s[1] += jerk * x * x * u * u * (0.25 - u / 10);
            s[2] += jerk * x * u * u * (1 - u / 2);
            s[3] += jerk * u * u * (3 - 2 * u);
            s[4] += jerk / w * 6 * u * (1 - u);
        } else {
            s[0] += jerk * (x * x * x / 6 - w * x * x / 4 + 0.15 * w * w * x - w * w * w / 30);
            s[1] += jerk * (x * x / 2 - w * x / 2 + 0.15 * w * w);
            s[2] += jerk * (x - w / 2);
            s[3] += jerk;
        }
    }

    PaceShape shape_;
    PathState from_{0, 1, 0, 0, 0};
    double pace_ = 1, duration_ = 0, end_ = 0;
    std::array<double, 6> fading_{};
    std::array<double, 4> times_{};
    std::array<double, 2> widths_{}, jerks_{};
};

/// Path parameter over the clock: a sequence of pace changes. Earlier changes are kept for commands behind the command lead.
class PathTime {
  public:
    /// Start with pace 1 from 0 at `origin`, ns.
    void start(std::int64_t origin) noexcept { changes_.fill({PaceChange(), origin}); }

    /// Hold `place` from `begin`, ns, until the next change.
    void stay(double place, std::int64_t begin) noexcept { changes_.fill({PaceChange(place), begin}); }

    /// Replace the remainder of the present change from `begin`, ns.
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
    // Sized for shorter changes that replace earlier changes every few cycles, some time ahead.
    std::array<Begun, 32> changes_{};
};

} // namespace eom

#endif
