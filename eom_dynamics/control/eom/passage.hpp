// SPDX-License-Identifier: Apache-2.0
// How an offset passes: from 1 to 0 in a time, twice continuously differentiable at both ends.
#ifndef EOM_PASSAGE_HPP
#define EOM_PASSAGE_HPP

#include <cstdint>

#include "setpoint.hpp"

namespace eom {

/// What is left of an offset some time after its begin, ns, from 1 to 0, C2, and its rate, 1/s.
struct Passage {
    std::int64_t duration, since = duration;

    bool lasts() const noexcept { return since < duration; }
    void pass(std::int64_t step, double share = 1) noexcept
    {
        since = std::min<std::int64_t>(since + std::llround(share * static_cast<double>(step)), duration);
    }
    void end() noexcept { since = duration; }
    double left() const noexcept
    {
        const double s = seconds(since) / seconds(duration), r = 1 - s;
        return r * r * r * (1 + s * (3 + 6 * s));
    }
    double rate() const noexcept
    {
        const double s = seconds(since) / seconds(duration), r = 1 - s;
        return -30 * s * s * r * r / seconds(duration);
    }
};

} // namespace eom

#endif
