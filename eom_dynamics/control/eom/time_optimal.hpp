// SPDX-License-Identifier: Apache-2.0
// Time-optimal motion of one joint with limited velocity, acceleration and jerk, from any state to a moving target.
//
// The target has no jerk and is at rest in its own frame. The motion accelerates toward the maximum or minimum velocity, and starts
// its stop when the stop would end at the target: R. Haschke, E. Weitnauer, H. Ritter, "On-line planning of time-optimal,
// jerk-limited trajectories", 2008. The start of the stop is the root of one monotone function.
#ifndef EOM_TIME_OPTIMAL_HPP
#define EOM_TIME_OPTIMAL_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace eom {

/// Position, velocity, acceleration, and the jerk that follows.
struct Moment {
    double p = 0, v = 0, a = 0, j = 0;

    Moment after(double t) const noexcept
    {
        return {p + t * (v + t * (a / 2 + t * j / 6)), v + t * (a + t * j / 2), a + t * j, j};
    }
    Moment with(double jerk) const noexcept { return {p, v, a, jerk}; }
    Moment times(double x) const noexcept { return {x * p, x * v, x * a, x * j}; }
    Moment operator+(const Moment &x) const noexcept { return {p + x.p, v + x.v, a + x.a, j + x.j}; }
    /// Integrals over t of the position, and of the position times the remaining time until `until_end`.
    std::array<double, 2> integrals(double t, double until_end) const noexcept
    {
        const double whole = t * (p + t / 2 * (v + t / 3 * (a + t / 4 * j)));
        return {whole, until_end * whole - t * t * (p / 2 + t * (v / 3 + t * (a / 8 + t * j / 30)))};
    }
};

/// Velocity and acceleration ranges about zero, and maximum jerk.
struct Bounds {
    double slowest, fastest, least, most, jerk;

    Bounds mirrored() const noexcept { return {-fastest, -slowest, -most, -least, jerk}; }
};

/// Fastest change to `velocity` with zero final acceleration: the acceleration rises to a peak, holds and falls.
struct SpeedChange {
    /// Duration, s, and jerk of each phase; sign and magnitude of the peak.
    std::array<double, 3> times, jerks;
    double side, peak;

    SpeedChange(const Moment &x, double velocity, const Bounds &most) noexcept
    {
        const double J = most.jerk, change = velocity - x.v;
        side = change < x.a * std::fabs(x.a) / (2 * J) ? -1 : 1;
        const double a = side * x.a, gain = side * change, limit = side > 0 ? most.most : -most.least;
        peak = std::sqrt(std::max(0.0, J * gain + a * a / 2));
        double hold = 0;
        if (peak > limit) {
            peak = limit;
            hold = std::max(0.0, (gain - (peak > a ? 2 * peak * peak - a * a : a * a) / (2 * J)) / peak);
        }
        times = {std::fabs(peak - a) / J, hold, peak / J};
        jerks = {peak < a ? -side * J : side * J, 0, -side * J};
    }
    double duration() const noexcept { return times[0] + times[1] + times[2]; }
};

/// End of an immediate time-optimal brake: rest position, and its derivative with respect to acceleration.
struct Rest {
    double position, by_acceleration, side;

    Rest(const Moment &x, const Bounds &most) noexcept
    {
        const SpeedChange stop(x, 0, most);
        const auto [t1, t2, t3] = stop.times;
        const double J = most.jerk, peak = stop.peak, a = -stop.side * x.a;
        const Moment braking = x.with(stop.jerks[0]).after(t1);
        const double v = -stop.side * braking.v;
        side = -stop.side;
        position = braking.p + side * (t2 * (v - t2 * peak / 2) + t3 * t3 * peak / 6);
        by_acceleration = t1 * t1 / 2 + (t2 > 0 ? v / J + a * (t2 + t3 / 2) / J : t3 * (t3 + a / J) / 2);
    }
};

/// Pieces of constant jerk, from time 0; the last piece has no end.
class FollowerPlan {
  public:
    /// Plan the time-optimal motion to a target. Bounds are relative to the target; a state beyond them returns within them.
    void reach(const Moment &from, const Moment &target, const Bounds &bounds) noexcept
    {
        const Moment relative{from.p - target.p, from.v - target.v, from.a - target.a};
        const double side = Rest(relative, bounds).position < 0 ? 1 : -1;
        const Bounds most = side > 0 ? bounds : bounds.mirrored();
        Moment x = relative.times(side);
        begin(target);
        const SpeedChange change(x, most.fastest, most);
        for (std::size_t i = 0; i < change.times.size(); ++i) {
            const Moment section = x.with(change.jerks[i]), next = section.after(change.times[i]);
            if (Rest(next, most).position > 0) {
                const double time = leave(section, change.times[i], most);
                add(time, section, side);
                return stop(section.after(time), side, most);
            }
            add(change.times[i], section, side);
            x = next;
        }
        x = {x.p, most.fastest};
        const double cruise = -Rest(x, most).position / most.fastest;
        add(cruise, x, side);
        stop(x.after(cruise), side, most);
    }

    /// Plan an immediate brake. Returns the rest position.
    double brake(const Moment &from, const Bounds &bounds) noexcept
    {
        const double end = Rest(from, bounds).position;
        begin({end});
        stop({from.p - end, from.v, from.a}, 1, bounds);
        return end;
    }

    /// Plan the piece `first`, then `second` after `after` s.
    void join(const Moment &first, const Moment &second, double after) noexcept
    {
        count_ = 2;
        begin_[1] = after;
        piece_[0] = first;
        piece_[1] = second;
    }

    std::size_t size() const noexcept { return count_; }
    double time_of(std::size_t piece) const noexcept { return begin_[piece]; } ///< start of a piece, s
    double end() const noexcept { return begin_[count_ - 1]; }                 ///< start of the last piece, s
    Moment at(double t) const noexcept
    {
        const std::size_t i = index(t);
        return piece_[i].after(t - begin_[i]);
    }

    /// Integrals over h s from t of the position relative to `origin`, see Moment::integrals. Returns the state at the end.
    Moment advance(double t, double h, double origin, std::array<double, 2> &integrals) const noexcept
    {
        const double end = t + h;
        integrals = {};
        for (std::size_t i = index(t);; ++i) {
            const bool last = i + 1 == count_ || begin_[i + 1] >= end;
            const double until = last ? end : begin_[i + 1];
            Moment x = piece_[i].after(t - begin_[i]);
            x.p -= origin;
            const auto [whole, moment] = x.integrals(until - t, end - t);
            integrals[0] += whole;
            integrals[1] += moment;
            if (last)
                return piece_[i].after(end - begin_[i]);
            t = until;
        }
    }

  private:
    static constexpr int MOST_STEPS = 60;

    std::size_t index(double t) const noexcept
    {
        std::size_t i = count_ - 1;
        while (i > 0 && begin_[i] > t)
            --i;
        return i;
    }

    void begin(const Moment &target) noexcept
    {
        target_ = target.with(0);
        begin_[0] = 0;
        piece_[0] = target_;
        count_ = 1;
    }

    /// Insert a piece of relative motion before the last piece, which is the target.
    void add(double duration, const Moment &x, double side) noexcept
    {
        const double t = end();
        if (!(duration > 0))
            return;
        piece_[count_ - 1] = x.times(side) + target_.after(t);
        begin_[count_] = t + duration;
        piece_[count_++] = target_.after(t + duration);
    }

    void stop(Moment x, double side, const Bounds &most) noexcept
    {
        const SpeedChange change(x, 0, most);
        for (std::size_t i = 0; i < change.times.size(); ++i) {
            const Moment section = x.with(change.jerks[i]);
            add(change.times[i], section, side);
            x = section.after(change.times[i]);
        }
    }

    /// Returns the time within a section, s, for a stop to end at zero. Newton's method from above, where the function is convex,
    /// safeguarded by bisection.
    static double leave(const Moment &section, double duration, const Bounds &most) noexcept
    {
        const auto slope = [&](const Rest &x) { return x.by_acceleration * (section.j + x.side * most.jerk); };
        const Rest first(section, most);
        double low = 0, high = duration, t = std::cbrt(-first.position / (2 * most.jerk));
        if (const double steepest = slope(first); steepest * t > -first.position)
            t = -first.position / steepest;
        t = std::max(0.0, std::min(t, high)); // within rounding, rest may be beyond the target, and slopes zero
        for (int i = 0; i < MOST_STEPS; ++i) {
            const Rest rest(section.after(t), most);
            (rest.position < 0 ? low : high) = t;
            double next = t - rest.position / slope(rest);
            if (!(next >= low && next <= high))
                next = low + (high - low) / 2;
            const double step = std::fabs(next - t);
            t = next;
            if (step <= 2e-16 * duration)
                break;
        }
        return t;
    }

    Moment target_;
    std::array<double, 9> begin_{};
    std::array<Moment, 9> piece_{};
    std::size_t count_ = 1;
};

} // namespace eom

#endif
