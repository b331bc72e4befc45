// SPDX-License-Identifier: Apache-2.0
// Check of changes of pace along a path by the limits of joints and motors, of a bounded number of setpoints.
#ifndef EOM_PACE_LIMITS_HPP
#define EOM_PACE_LIMITS_HPP

#include <array>
#include <cmath>
#include <utility>

#include "commander.hpp"
#include "path_time.hpp"

namespace eom {

/// Instants of a change of pace, evenly in time, beside two of each section, places of the rest of the path, and setpoints in all, that are checked.
constexpr int PACE_SAMPLES = @pace_samples@, PACE_PLACES = @pace_places@, PACE_CHECKS = @pace_checks@;
/// Distance from limits for the instants between, of half their range.
constexpr double PACE_MARGIN = @pace_margin@;

/// Limits of one search for a change of pace; paths are functions from a state of the path to that of the joints.
template <class Robot>
class PaceLimits {
  public:
    explicit PaceLimits(Commander<Robot> &commander) noexcept : commander_(commander) {}

    /// Begins a search.
    void begin() noexcept
    {
        checks_ = 0;
        worst_ = {0, 1};
    }

    /// Whether a change keeps limits that its start meets, less a margin that begins with it, at instants and at peaks of
    /// parabolas through three. The instant that has exceeded
    /// them last comes first.
    template <class Path>
    bool meets(const Path &path, const PaceChange &change) noexcept
    {
        const auto sections = change.sections();
        Limits<Robot> limits(commander_.robot);
        // Times and excesses of the last two instants, between which a parabola has its peak.
        double before = 0, last = 0, e_before = 0, e_last = 0;
        int known = 0;
        const auto meets_at = [&](std::size_t section, double share) {
            const double t = sections[section] + share * (sections[section + 1] - sections[section]);
            const double margin = PACE_MARGIN * (section > 0 ? 1 : share);
            const PathState at = change.at(t);
            // Not back, where an acceleration at the start fades slowly.
            if (at[1] < -1e-9 || checks_ >= PACE_CHECKS)
                return false;
            const double e = excess(path(at), limits, false, margin);
            const double rise = (e_last - e_before) / (last - before), fall = (e - e_last) / (t - last);
            const double slope = (rise * (t - last) + fall * (last - before)) / (t - before);
            const bool peaks = known >= 2 && rise > 0 && fall < 0;
            const double peak = peaks ? e_last + slope * slope * (t - before) / (4 * (rise - fall)) : e;
            before = std::exchange(last, t);
            e_before = std::exchange(e_last, e);
            ++known;
            return e <= LIMIT_TOLERANCE && peak <= LIMIT_TOLERANCE;
        };
        if (checks_ >= PACE_CHECKS || !std::isfinite(excess(path(change.at(sections[0])), limits, true, 0)))
            return false;
        if (!meets_at(worst_.first, worst_.second))
            return false;
        known = 0;
        const double rate = PACE_SAMPLES / (sections.back() - sections[0]);
        for (std::size_t i = 0; i < PaceChange::SECTIONS; ++i) {
            const int count = static_cast<int>(2.8 + rate * (sections[i + 1] - sections[i]));
            for (int k = 1; k <= count && sections[i + 1] > sections[i]; ++k)
                if (!meets_at(i, static_cast<double>(k) / count)) {
                    worst_ = {i, static_cast<double>(k) / count};
                    return false;
                }
        }
        return true;
    }

    /// Whether the path between two places meets limits, less a margin, at a pace.
    template <class Path>
    bool meets(const Path &path, double s, double end, double pace, double margin = PACE_MARGIN) noexcept
    {
        Limits<Robot> limits(commander_.robot);
        for (int k = 0; k <= PACE_PLACES && s < end; ++k)
            if (excess(path({s + (end - s) * k / PACE_PLACES, pace, 0, 0, 0}), limits, false, margin) > LIMIT_TOLERANCE)
                return false;
        return true;
    }

  private:
    double excess(const State<Robot::joints> &state, Limits<Robot> &limits, bool widens, double margin) noexcept
    {
        ++checks_;
        commander_.move(state, setpoint_);
        return commander_.excess_at(setpoint_, limits, widens, margin, -1);
    }

    Commander<Robot> &commander_;
    Setpoint<Robot> setpoint_;
    // Setpoints checked so far, and section and instant where limits were exceeded last.
    int checks_ = 0;
    std::pair<std::size_t, double> worst_{0, 1};
};

} // namespace eom

#endif
