// SPDX-License-Identifier: Apache-2.0
// Two exact moving averages of the motion of one joint, over whole cycles.
//
// With d[f] = f(t) - f(t - T1) - f(t - T2) + f(t - T1 - T2), acceleration, jerk and snap of the averages are d[p], d[v] and d[a]
// over T1 T2; velocity and position use the first and second integral of p. A sine with a period of either length is blocked.
#ifndef EOM_MOVING_AVERAGES_HPP
#define EOM_MOVING_AVERAGES_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "time_optimal.hpp"

namespace eom {

/// Averages the motion of a follower over a window of its last cycles.
class MovingAverages {
  public:
    /// q ... qdddd
    using State = std::array<double, 5>;

    /// Set the averages to `one` and `other` cycles of `period` s. Allocates.
    void configure(double period, double one, double other)
    {
        period_ = period;
        few_ = static_cast<std::size_t>(std::min(one, other));
        many_ = static_cast<std::size_t>(std::max(one, other));
        window_ = few_ + many_;
        short_ = period * static_cast<double>(few_);
        long_ = period * static_cast<double>(many_);
        variance_ = (short_ * short_ + long_ * long_) / 12;
        ring_.assign(2 * (window_ + 1), {});
    }

    /// Delay of the averages, half their total length, s.
    double delay() const noexcept { return (short_ + long_) / 2; }
    double shorter() const noexcept { return short_; }      ///< length of the shorter average, s
    double longer() const noexcept { return long_; }        ///< length of the longer average, s
    double variance() const noexcept { return variance_; }  ///< variance of the kernel, s^2
    /// Cycles of both averages together.
    std::size_t window() const noexcept { return window_; }
    /// Returns true if the follower has been at rest for the whole window.
    bool rests() const noexcept { return quiet_ > window_; }

    const State &state() const noexcept { return state_; }
    /// Derivative of the snap in the last cycle.
    double fifth() const noexcept { return fifth_; }
    /// State of the follower `cycles` cycles ago.
    const Moment &past(std::size_t cycles) const noexcept { return ring_[head_ + std::min(cycles, window_)].end; }

    /// Advance one cycle of `plan` from `time`, s; `quiet` if the follower is at rest. Returns its state at the end of the cycle.
    Moment step(const FollowerPlan &plan, double time, bool quiet) noexcept
    {
        Sample next;
        next.end = plan.advance(time, period_, origin_, next.integrals);
        quiet_ = quiet ? std::min(quiet_ + 1, window_ + 1) : 0;
        head_ = (head_ > 0 ? head_ : window_ + 1) - 1;
        ring_[head_] = ring_[head_ + window_ + 1] = next;
        const auto change = [x = &ring_[head_], this](std::size_t k) {
            return x[0].integrals[k] - x[few_].integrals[k] - x[many_].integrals[k] + x[window_].integrals[k];
        };
        second_ += period_ * first_ + change(1);
        first_ += change(0);
        const double before = state_[4];
        differences();
        fifth_ = rests() ? 0 : (state_[4] - before) / period_;
        return next.end;
    }

    /// Recompute position and velocity from the window, so that rounding errors do not accumulate.
    void anchor() noexcept
    {
        if (rests())
            return;
        const Sample *x = &ring_[head_];
        first_ = second_ = 0;
        for (std::size_t i = 0; i < window_; ++i) {
            const double sign = i < few_ ? 1 : i < many_ ? 0 : -1;
            const auto weight = static_cast<double>(std::min({i, few_, window_ - i}));
            first_ += sign * x[i].integrals[0];
            second_ += weight * period_ * x[i].integrals[0] + sign * x[i].integrals[1];
        }
        differences();
    }

    /// Predict the state k cycles ahead; `moment` returns the follower for a relative number of cycles.
    template <class F>
    State predicted(long k, const F &moment) const noexcept
    {
        const auto few = static_cast<long>(few_), many = static_cast<long>(many_);
        const Moment x[] = {moment(k), moment(k - few), moment(k - many), moment(k - few - many)};
        const long before = (few + many) / 2, after = few + many - before; // middle
        const Moment y = moment(k - before), z = after == before ? y : moment(k - after);
        const double scale = 1 / (short_ * long_);
        const double qdd = (x[0].p - x[1].p - x[2].p + x[3].p) * scale, qddd = (x[0].v - x[1].v - x[2].v + x[3].v) * scale;
        return {(y.p + z.p + variance_ * qdd) / 2, (y.v + z.v + variance_ * qddd) / 2, qdd, qddd,
                (x[0].a - x[1].a - x[2].a + x[3].a) * scale};
    }

    /// Returns the smallest jerk with one sign change in the window that explains this average jerk and snap, and the time since
    /// the change, s.
    std::array<double, 2> reversal(double jerk, double snap) const noexcept
    {
        const double square = short_ * long_, size = std::fabs(jerk), change = std::fabs(snap);
        double j = change * long_ / 2, ago = (short_ + long_) / 2;
        if (size > j * (1 - short_ / long_))
            j = size / 2 + std::sqrt(size * size + change * change * square) / 2;
        if (j > 0) {
            const double share = (1 - size / j) / 2, edge = short_ / (2 * long_); // fraction of the kernel in the smaller part
            ago = share < edge ? std::sqrt(2 * share * square) : short_ / 2 + share * long_;
        }
        return {j, ago};
    }

    /// Fill the window with `plan` up to `until`, plus the parabola `more`.
    void fill(const FollowerPlan &plan, double until, const Moment &more) noexcept
    {
        const double h = period_;
        head_ = quiet_ = 0;
        origin_ = more.p;
        for (std::size_t i = 0; i <= window_; ++i) {
            const double t = -h * static_cast<double>(i);
            Sample x;
            x.end = plan.advance(until + t - h, h, 0, x.integrals) + more.after(t);
            const auto [whole, moment] = Moment{more.p - origin_, more.v, more.a}.after(t - h).integrals(h, h);
            x.integrals[0] += whole;
            x.integrals[1] += moment;
            ring_[i] = ring_[i + window_ + 1] = x;
        }
        fifth_ = 0;
        anchor();
    }

    /// Reset to a follower that has been at `now` for a whole window.
    void settle(const Moment &now) noexcept
    {
        std::fill(ring_.begin(), ring_.end(), Sample{now});
        quiet_ = window_ + 1;
        origin_ = now.p;
        first_ = second_ = fifth_ = 0;
        state_ = {now.p};
    }

  private:
    /// State at the end of a cycle; integrals of the position, and of the position times the remaining time.
    struct Sample {
        Moment end;
        std::array<double, 2> integrals{};
    };

    void differences() noexcept
    {
        const Moment &a = ring_[head_].end, &b = ring_[head_ + few_].end, &c = ring_[head_ + many_].end;
        const Moment &d = ring_[head_ + window_].end;
        const double scale = 1 / (short_ * long_);
        if (rests()) // exact at rest or at constant velocity
            state_ = {a.p - delay() * a.v, a.v, 0, 0, 0};
        else
            state_ = {origin_ + second_ * scale, first_ * scale, (a.p - b.p - c.p + d.p) * scale, (a.v - b.v - c.v + d.v) * scale,
                      (a.a - b.a - c.a + d.a) * scale};
    }

    // Period, s; lengths in cycles; lengths in s, and variance of the kernel, s^2.
    double period_ = 0;
    std::size_t few_ = 1, many_ = 1, window_ = 2;
    double short_ = 0, long_ = 0, variance_ = 0;
    // Ring of cycles, latest at the head, stored twice; origin of position integrals for accuracy; integrals over the kernel.
    std::vector<Sample> ring_;
    std::size_t head_ = 0;
    double origin_ = 0, first_ = 0, second_ = 0;
    // Cycles since the follower has reached its target.
    std::size_t quiet_ = 0;
    State state_{};
    double fifth_ = 0;
};

} // namespace eom

#endif
