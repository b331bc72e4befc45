// SPDX-License-Identifier: Apache-2.0
// How an offset passes: from 1 to 0 in a time, twice continuously differentiable at both ends.
#ifndef EOM_PASSAGE_HPP
#define EOM_PASSAGE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "setpoint.hpp"

namespace eom {

/// What is left of an offset some time after its begin, ns, from 1 to 0, C2, and its rate, 1/s.
struct Passage {
    std::int64_t duration, since = duration;
    double share = 1; // of time that passes
    static constexpr double WITHIN = 0.98; // share of limits, as rates grow within a cycle

    bool lasts() const noexcept { return since < duration; }
    void pass(std::int64_t step) noexcept { since = std::min(since + step, duration); }
    /// The same beside a command whose own rates leave less of limits to offsets: slower.
    template <class Values>
    void pass(std::int64_t step, const Values &offsets, const Values &limits, const Values &rates) noexcept
    {
        if (!lasts())
            return;
        const double steepness = slope();
        double least = 1;
        for (std::size_t i = 0; i < offsets.size(); ++i) {
            const double passes = std::fabs(offsets[i] * steepness), left = WITHIN * limits[i] - std::fabs(rates[i]);
            if (passes > left)
                least = std::min(least, std::max(left, 0.0) / passes);
        }
        const double mean = (std::exchange(share, least) + least) / 2; // so that positions are those of velocities
        pass(std::llround(mean * static_cast<double>(step)));
    }
    void end() noexcept { since = duration; }
    double left() const noexcept
    {
        const double s = seconds(since) / seconds(duration), r = 1 - s;
        return r * r * r * (1 + s * (3 + 6 * s));
    }
    double rate() const noexcept { return share * slope(); }
    double slope() const noexcept
    {
        const double s = seconds(since) / seconds(duration), r = 1 - s;
        return -30 * s * s * r * r / seconds(duration);
    }
};

} // namespace eom

#endif
