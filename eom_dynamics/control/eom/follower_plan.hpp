// SPDX-License-Identifier: Apache-2.0
// What the follower of an online trajectory is about to do.
#ifndef EOM_FOLLOWER_PLAN_HPP
#define EOM_FOLLOWER_PLAN_HPP

#include <algorithm>
#include <array>
#include <cstddef>

namespace eom {

/// Durations, and accelerations during these, then constant velocity.
struct FollowerPlan {
    std::array<std::array<double, 2>, 6> pieces{};
    std::size_t count = 0;
    double x = 0, v = 0;

    void add(double duration, double a) noexcept { pieces[count++] = {std::max(duration, 0.0), a}; }
    double end() const noexcept
    {
        double sum = 0;
        for (std::size_t i = 0; i < count; ++i)
            sum += pieces[i][0];
        return sum;
    }
    /// Position, velocity and acceleration at a time, s.
    std::array<double, 3> at(double t) const noexcept
    {
        std::array<double, 3> state{x, v, 0};
        for (std::size_t i = 0; i < count; ++i) {
            const auto [duration, a] = pieces[i];
            const double step = std::min(t, duration);
            state = {state[0] + step * (state[1] + step * a / 2), state[1] + step * a, a};
            if ((t -= step) <= 0)
                return state;
        }
        return {state[0] + t * state[1], state[1], 0};
    }
};

} // namespace eom

#endif
