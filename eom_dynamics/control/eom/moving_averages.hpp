// SPDX-License-Identifier: Apache-2.0
// Two exact moving averages of the motion of one joint, over whole cycles.
//
// With d[f] = f(t) - f(t - T1) - f(t - T2) + f(t - T1 - T2), acceleration to snap of the averages are d[p, v, a] / (T1 T2), and
// velocity and position the same of integrals of p. A sine whose period is the length of an average does not pass.
#ifndef EOM_MOVING_AVERAGES_HPP
#define EOM_MOVING_AVERAGES_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "time_optimal.hpp"

namespace eom {

/// Averages of a follower, and its last cycles.
class MovingAverages {
  public:
    /// q ... qdddd
    using State = std::array<double, 5>;

    /// Of so many cycles of a period, s. Allocates.
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

    /// Delay, half their length, length of the shorter and of the longer one, s, and variance of their kernel, s^2.
    double delay() const noexcept { return (short_ + long_) / 2; }
    double shorter() const noexcept { return short_; }
    double longer() const noexcept { return long_; }
    double variance() const noexcept { return variance_; }
    /// Cycles of both together.
    std::size_t window() const noexcept { return window_; }
    /// Whether the follower has rested for all of them.
    bool rests() const noexcept { return quiet_ > window_; }

    const State &state() const noexcept { return state_; }
    /// Derivative of the snap in the last cycle.
    double fifth() const noexcept { return fifth_; }
    /// The follower so many cycles ago.
    const Moment &past(std::size_t cycles) const noexcept { return ring_[head_ + std::min(cycles, window_)].end; }

    /// Takes the cycle of a plan from a time on, s, whose end it returns; in which the follower rests, or does not.
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

    /// Computes position and velocity from the window, so that rounding does not add up.
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

    /// Predicts the state after so many cycles, where a function has the follower so many cycles later, or earlier.
    template <class F>
    State predicted(long k, const F &moment) const noexcept
    {
        const auto few = static_cast<long>(few_), many = static_cast<long>(many_);
        const Moment x[] = {moment(k), moment(k - few), moment(k - many), moment(k - few - many)};
        const long middle = (few + many) / 2;
        const Moment y = moment(k - middle), z = moment(k - (few + many - middle));
        const double scale = 1 / (short_ * long_);
        const double qdd = (x[0].p - x[1].p - x[2].p + x[3].p) * scale, qddd = (x[0].v - x[1].v - x[2].v + x[3].v) * scale;
        return {(y.p + z.p + variance_ * qdd) / 2, (y.v + z.v + variance_ * qddd) / 2, qdd, qddd,
                (x[0].a - x[1].a - x[2].a + x[3].a) * scale};
    }

    /// Least jerk whose sign changes once in the window, for this average jerk and snap, and the time since then, s: near an end of the
    /// window, or between, where the snap is the same.
    std::array<double, 2> reversal(double jerk, double snap) const noexcept
    {
        const double square = short_ * long_, size = std::fabs(jerk), change = std::fabs(snap);
        double j = change * long_ / 2, ago = (short_ + long_) / 2;
        if (size > j * (1 - short_ / long_))
            j = size / 2 + std::sqrt(size * size + change * change * square) / 2;
        if (j > 0) {
            const double share = (1 - size / j) / 2, edge = short_ / (2 * long_); // of the kernel, by the smaller part
            ago = share < edge ? std::sqrt(2 * share * square) : short_ / 2 + share * long_;
        }
        return {j, ago};
    }

    /// Fills the window with what a plan has until a time, and a parabola about it.
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

    /// Rests where the follower does, for a whole window.
    void settle(const Moment &now) noexcept
    {
        std::fill(ring_.begin(), ring_.end(), Sample{now});
        quiet_ = window_ + 1;
        origin_ = now.p;
        first_ = second_ = fifth_ = 0;
        state_ = {now.p};
    }

  private:
    /// Of a cycle: the moment at its end, and integrals of the position, and of that times the time to the end.
    struct Sample {
        Moment end;
        std::array<double, 2> integrals{};
    };

    void differences() noexcept
    {
        const Moment &a = ring_[head_].end, &b = ring_[head_ + few_].end, &c = ring_[head_ + many_].end;
        const Moment &d = ring_[head_ + window_].end;
        const double scale = 1 / (short_ * long_);
        if (rests()) // exactly at rest, or at constant velocity
            state_ = {a.p - delay() * a.v, a.v, 0, 0, 0};
        else
            state_ = {origin_ + second_ * scale, first_ * scale, (a.p - b.p - c.p + d.p) * scale, (a.v - b.v - c.v + d.v) * scale,
                      (a.a - b.a - c.a + d.a) * scale};
    }

    // Period of cycles, s; cycles and lengths, s, of the averages; and variance of their kernel, s^2.
    double period_ = 0;
    std::size_t few_ = 1, many_ = 1, window_ = 2;
    double short_ = 0, long_ = 0, variance_ = 0;
    // Cycles of the follower, the latest first, at the head, and once more after the window; the position from which integrals
    // count, so that these are exact near it; and integrals over the kernel.
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
