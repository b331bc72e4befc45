// SPDX-License-Identifier: Apache-2.0
// Transition from what is commanded to a trajectory, as in eom_dynamics.trajectory.takeover.
#ifndef EOM_TAKE_OVER_HPP
#define EOM_TAKE_OVER_HPP

#include <cstdint>

#include "spline.hpp"

namespace eom {

/// Durations of longer transitions that are tried, s.
constexpr double TRANSITIONS[] = {@transitions@};
/// Instants at which limits of a transition are checked, beside its start.
constexpr std::size_t TRANSITION_SAMPLES = @transition_samples@;
/// What joints may have moved until a trajectory is played that is late, for it to be as if on time, rad or m.
constexpr double SMALL_STEP = @small_step@;

/// Largest backward step of the clock during which a trajectory only pauses, ns, and the smallest jump forward, in periods
/// and in ns.
constexpr std::int64_t LARGEST_CORRECTION = @largest_correction@, SHORTEST_JUMP = @shortest_jump@;
constexpr int JUMP_PERIODS = @jump_periods@;

/// How a trajectory takes over. Its times, s, count from its origin, ns, since a float cannot resolve the time of day.
template <std::size_t n>
struct Plan {
    std::int64_t origin = 0;
    /// When it takes over, ns.
    std::int64_t begin = 0;
    /// Whether it takes over from setpoints that are commanded until then: its transition is planned then.
    bool waits = false;
    /// From start < end between two states, unless it waits, or starts where nothing is commanded.
    Piece<n> transition;
    double start = 0, end = 0;
    State<n> from{}, to{};
    /// Of the transition over limits that its start meets, relative to half their range: zero within.
    double excess = 0;
};

/// Whether the start of a trajectory is within the tolerance of a state, plus the latency times its velocity.
template <std::size_t n>
bool is_near(const State<n> &first, const State<n> &present, double tolerance, double latency) noexcept
{
    for (std::size_t i = 0; i < n; ++i)
        if (!(std::fabs(first[0][i] - present[0][i]) <= tolerance + latency * std::fabs(present[1][i])))
            return false;
    return true;
}

} // namespace eom

#endif
