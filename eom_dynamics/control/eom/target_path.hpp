// SPDX-License-Identifier: Apache-2.0
// Path through chunks of timed positions, as policies send them. A new chunk replaces the remainder of earlier chunks.
#ifndef EOM_TARGET_PATH_HPP
#define EOM_TARGET_PATH_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "time_optimal.hpp"

namespace eom {

/// Cubic interpolation of positions with continuous velocity, without overshoot (F. N. Fritsch, J. Butland, 1984). At rest before
/// the first and after the last knot.
class TargetPath {
  public:
    static constexpr std::size_t MOST_KNOTS = 1000;

    /// Reserve memory for `joints`, and clear the path. Allocates.
    void configure(std::size_t joints)
    {
        joints_ = joints;
        times_.reserve(2 * MOST_KNOTS);
        positions_.reserve(2 * MOST_KNOTS * joints);
        clear();
    }

    bool empty() const noexcept { return times_.empty(); }
    double begin() const noexcept { return times_.front(); }
    double end() const noexcept { return times_.back(); }
    void clear() noexcept
    {
        times_.clear();
        positions_.clear();
    }

    /// Returns the error text of a chunk, or null. A joint that keeps its position has NaN at all knots.
    static const char *objection(const double *times, const double *positions, std::size_t knots, std::size_t joints) noexcept
    {
        if (knots == 0 || knots > MOST_KNOTS)
            return "a chunk must have 1 to 1000 positions";
        for (std::size_t k = 0; k < knots; ++k)
            if (!std::isfinite(times[k]) || (k > 0 && !(times[k] - times[k - 1] >= SHORTEST)))
                return "times must be finite and increase by at least 0.0001 s";
        for (std::size_t k = 0; k < knots * joints; ++k)
            if (!std::isfinite(positions[k]) && !(std::isnan(positions[k]) && std::isnan(positions[k % joints])))
                return "positions must be finite";
        for (std::size_t i = 0; i < joints; ++i)
            for (std::size_t k = 0; k < knots && std::isnan(positions[i]); ++k)
                if (!std::isnan(positions[k * joints + i]))
                    return "a joint must have a position at each time, or none";
        return nullptr;
    }

    /// Add a chunk, knots by joints, at `times` after `origin`, s. Replaces knots from its start on, and removes knots long before
    /// `now`, s. Does not allocate or throw.
    void take(double now, double origin, const double *times, const double *positions, std::size_t knots) noexcept
    {
        const auto first = std::lower_bound(times_.begin(), times_.end(), origin + times[0] - SHORTEST);
        // Keep two knots before `now` for the velocity, and at most MOST_KNOTS before the chunk.
        const auto kept = static_cast<std::size_t>(first - times_.begin());
        const auto passed = static_cast<std::size_t>(std::lower_bound(times_.begin(), first, now) - times_.begin());
        const std::size_t room = kept > MOST_KNOTS ? kept - MOST_KNOTS : 0, old = std::max(passed > 2 ? passed - 2 : 0, room);
        const auto at = [this](std::size_t k) { return positions_.begin() + static_cast<std::ptrdiff_t>(k * joints_); };
        positions_.erase(at(kept), positions_.end());
        positions_.erase(positions_.begin(), at(std::min(old, kept)));
        times_.erase(first, times_.end());
        times_.erase(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(std::min(old, kept)));
        for (std::size_t k = 0; k < knots; ++k)
            times_.push_back(origin + times[k]);
        positions_.insert(positions_.end(), positions, positions + knots * joints_);
    }

    /// Set the position of a joint in the last knots.
    void hold(std::size_t joint, double position, std::size_t knots) noexcept
    {
        for (std::size_t k = times_.size() - knots; k < times_.size(); ++k)
            positions_[k * joints_ + joint] = position;
    }

    /// Returns position and velocity of a joint at time `t`, s.
    Moment at(double t, std::size_t joint) const noexcept
    {
        const std::size_t next = static_cast<std::size_t>(std::upper_bound(times_.begin(), times_.end(), t) - times_.begin());
        if (next == 0 || next == times_.size())
            return {position(next == 0 ? 0 : next - 1, joint)};
        const std::size_t k = next - 1;
        const double h = times_[next] - times_[k], u = (t - times_[k]) / h, rise = position(next, joint) - position(k, joint);
        const double left = h * velocity(k, joint), right = h * velocity(next, joint);
        const double c = 3 * rise - 2 * left - right, d = left + right - 2 * rise;
        return {position(k, joint) + u * (left + u * (c + u * d)), (left + u * (2 * c + u * 3 * d)) / h};
    }

    /// Returns the motion averaged over `width` s around time `t`, s, with continuous acceleration.
    Moment mean(double t, double width, std::size_t joint) const noexcept
    {
        const double begin = t - width / 2, end = t + width / 2;
        const Moment first = at(begin, joint), last = at(end, joint);
        auto next = std::upper_bound(times_.begin(), times_.end(), begin);
        double from = begin, sum = 0;
        for (Moment x = first; from < end; ++next) { // Simpson's rule, exact for cubics
            const double to = next != times_.end() ? std::min(*next, end) : end;
            const Moment y = to < end ? at(to, joint) : last;
            sum += (to - from) / 6 * (x.p + 4 * at((from + to) / 2, joint).p + y.p);
            from = to;
            x = y;
            if (next == times_.end())
                break;
        }
        return {sum / width, (last.p - first.p) / width, (last.v - first.v) / width};
    }

  private:
    static constexpr double SHORTEST = 1e-4;

    double position(std::size_t knot, std::size_t joint) const noexcept { return positions_[knot * joints_ + joint]; }

    /// Returns the harmonic mean of the slopes on both sides, weighted by their times; zero at reversals and ends.
    double velocity(std::size_t k, std::size_t joint) const noexcept
    {
        if (k == 0 || k + 1 == times_.size())
            return 0;
        const double before = times_[k] - times_[k - 1], after = times_[k + 1] - times_[k];
        const double a = (position(k, joint) - position(k - 1, joint)) / before;
        const double b = (position(k + 1, joint) - position(k, joint)) / after;
        if (!(a * b > 0))
            return 0;
        return 3 * (before + after) / ((2 * after + before) / a + (after + 2 * before) / b);
    }

    std::size_t joints_ = 0;
    std::vector<double> times_, positions_;
};

} // namespace eom

#endif
