// SPDX-License-Identifier: Apache-2.0
// Controller of the pace along a path: searches pace changes over several cycles.
#ifndef EOM_PACE_KEEPER_HPP
#define EOM_PACE_KEEPER_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "pace_search.hpp"

namespace eom {

/// Retry interval for pace changes beyond limits, and delay from the start of a search to the start of its change, ns.
constexpr std::int64_t PACE_RETRY = @pace_retry@, PACE_LEAD = @pace_lead@;
/// Number of setpoints checked per cycle and 1 ms of its period for up to 8 joints; fewer in proportion for more joints.
constexpr int PACE_RATE = @pace_rate@;

/// Changes the pace of a path parameter until it has the requested value.
template <class Robot>
class PaceKeeper {
  public:
    explicit PaceKeeper(Commander<Robot> &commander) noexcept : commander_(commander), search_(commander) {}

    /// Start a motion at pace 1 up to path parameter `end`, s, with `density` pieces per second.
    void begin(double end, double density) noexcept
    {
        end_ = end;
        search_.set_density(density);
        want(1);
    }

    /// Returns true if limits do not allow the requested pace yet.
    bool limited() const noexcept { return limited_; }

    /// Returns true if a search is running, or a change is active at `now`, ns.
    bool changes(const PathTime &time, std::int64_t now) const noexcept
    {
        return sought_.on || seconds(now + ahead() - time.begin()) < time.last().duration();
    }

    /// Returns true if the rest of the path meets limits with a pending payload, at the larger of present and searched pace. The
    /// check runs within this call.
    template <class Path>
    bool carries(const PathTime &time, const Path &path, std::int64_t now) const noexcept
    {
        const double pace = std::max(time.last().pace(), sought_.on ? sought_.pace : 0.0);
        return carries(path, time.at(now), now, pace, end_, false);
    }

    /// Returns true if a path from state `from` to `end`, s, meets limits at `pace`; with `begins`, the motion starts there.
    template <class Path>
    bool carries(const Path &path, const PathState &from, std::int64_t now, double pace, double end,
                 bool begins) const noexcept
    {
        if (pace == 0)
            return true;
        PaceSearch<Robot> search(commander_);
        search.keep_on(from, now, pace, end, 0, begins);
        search.go_on(path, 2 * PACE_PLACES + 1);
        return search.found();
    }

    /// Change the pace to `wanted` within limits, in cycles of `period` s. `path` maps a path state to a joint state. Returns true
    /// if `time` has a new change.
    ///
    /// A search runs until its change must start, and continues for shorter changes during the change. If limits do not allow the
    /// pace, partial changes are tried, and retries have longer durations. Above pace 1, and with payloads, the rest of the path
    /// must meet limits. A new request interrupts a running search only for a pause, or for a lower pace during a search for a
    /// higher pace.
    template <class Path>
    bool keep(PathTime &time, const Path &path, double wanted, std::int64_t now, double period) noexcept
    {
        const double pace = time.last().pace();
        const bool seeks = sought_.on && pace != sought_.pace;
        if (wanted != wanted_ && (!seeks || wanted == 0 || (wanted <= pace && pace < sought_.pace)))
            want(wanted);
        if (!sought_.on) {
            before_ = pace;
            if (before_ == wanted_ || (limited_ && now < retry_))
                return false;
            sought_ = {};
            seek(time, wanted_, now);
        }
        const Outcome outcome = seek_on(time, path, now, period);
        if (outcome == Outcome::change) {
            limited_ = sought_.pace != wanted_;
            growth_ = PACE_GROWTH;
            sought_.on = !limited_;
            retry_ = now;
        } else if (outcome == Outcome::nothing && time.last().pace() != sought_.pace) {
            retry_ = now + PACE_RETRY;
            if (sought_.parts < 3) {
                seek(time, before_ + (1 - 0.3 * ++sought_.parts) * (wanted_ - before_), now);
            } else {
                limited_ = true;
                growth_ = growth_ < 2 ? growth_ * PACE_PATIENCE : PACE_GROWTH;
            }
        }
        return outcome == Outcome::change;
    }

    /// Start the search for the shortest stop. If the motion ends moving, the stop may be shorter than `stop_duration` if
    /// necessary.
    void begin_stop() noexcept { want(0); }

    /// Continue the search for a stop. Returns false if limits allow neither a stop nor the rest of the motion. Writes the `end` of
    /// the stop, ns, when known.
    template <class Path>
    bool seek_stop(PathTime &time, const Path &path, std::int64_t now, double period, std::int64_t &end) noexcept
    {
        if (sought_.on && sought_.ends) {
            if (!search_.go_on(path, checks(period)))
                return true;
            sought_ = {};
            rests_ = search_.found();
            if (!rests_)
                return false;
        } else if (keep(time, path, 0, now, period) && time.last().pace() > 0 && !rests_) {
            return true; // the change continues
        }
        if (sought_.parts > 0 && !hurries_ && !ends_at_rest(path)) {
            hurries_ = true;
            sought_.parts = 0;
            seek(time, 0, now);
        }
        const PaceChange &last = time.last();
        if (last.pace() == 0 || rests_) {
            const double rest = last.pace() > 0 ? (end_ - time.at(time.begin(), last.duration())[0]) / last.pace() : 0;
            end = time.begin() + std::llround(1e9 * (last.duration() + std::max(rest, 0.0)));
            return true;
        }
        if (sought_.on || !limited_)
            return true;
        if (!ends_at_rest(path))
            return false;
        sought_.ends = sought_.on = true;
        search_.keep_on(time.at(now + ahead()), now, last.pace(), end_, -PACE_MARGIN);
        return true;
    }

  private:
    enum class Outcome { more, change, nothing };

    /// Request `pace`, and clear the last search.
    void want(double pace) noexcept
    {
        wanted_ = pace;
        limited_ = sought_.on = rests_ = hurries_ = false;
        growth_ = PACE_GROWTH;
    }

    /// Start the search for a change to `pace` that replaces the rest of the present change `lead` ns from now; if that already
    /// ends at `pace`, for a shorter change.
    void seek(const PathTime &time, double pace, std::int64_t now, std::int64_t lead = PACE_LEAD) noexcept
    {
        sought_.on = true;
        sought_.pace = pace;
        sought_.lead = lead;
        sought_.begin = std::max(now + ahead() + lead, time.begin());
        const PathState from = time.at(sought_.begin);
        const PaceChange &last = time.last();
        const double less = last.pace() == pace
                                ? (1 - PACE_GAIN) * (seconds(time.begin() - sought_.begin) + last.duration())
                                : (end_ - from[0]) / std::max({from[1], 0.5 * (from[1] + pace), SLOWEST});
        const auto most = bounds();
        // Size of the change by its difference in pace, or by the present acceleration and jerk.
        const double size = std::max({std::fabs(pace - from[1]), std::pow(std::fabs(from[2]) / most[0], 1.5),
                                      std::pow(std::fabs(from[3]) / most[1], 3)});
        const double shortest = commander_.parameters.stop_duration * std::max(size, std::cbrt(size));
        search_.begin(from, sought_.begin - ahead(), pace, hurries_ ? SHORTEST_CHANGE : std::max(shortest, SHORTEST_CHANGE),
                      hurries_ ? growth_ * growth_ : growth_, less, end_, most);
    }

    /// Continue the search in a cycle, and apply the best change when it must start.
    template <class Path>
    Outcome seek_on(PathTime &time, const Path &path, std::int64_t now, double period) noexcept
    {
        const bool over = search_.go_on(path, checks(period));
        if (over && !search_.found()) {
            sought_.on = false;
            return Outcome::nothing;
        }
        const std::int64_t spare = sought_.begin - (now + ahead());
        if (!over && seconds(spare) > 1.5 * period)
            return Outcome::more;
        if (search_.found() && spare >= 0) {
            time.change(sought_.begin, search_.best());
            seek(time, sought_.pace, now);
            return Outcome::change;
        }
        seek(time, sought_.pace, now, 2 * sought_.lead);
        return Outcome::more;
    }

    /// Number of setpoints to check in a cycle of `period` s.
    int checks(double period) const noexcept
    {
        const auto joints = static_cast<double>(std::max<std::size_t>(commander_.robot.joint_count(), 8));
        return static_cast<int>(std::min<double>(std::ceil(8e3 * PACE_RATE * period / joints), PACE_CHECKS));
    }

    /// Command lead, ns.
    std::int64_t ahead() const noexcept { return std::llround(commander_.robot.command_lead() * 1e9); }

    /// Returns true if the motion ends at rest, within rounding of a message.
    template <class Path>
    bool ends_at_rest(const Path &path) const noexcept
    {
        const auto last = path({end_, 1, 0, 0, 0});
        const auto rests = [](double rate) { return std::fabs(rate) <= AT_REST; };
        return std::all_of(last[1].begin(), last[1].end(), rests) && std::all_of(last[2].begin(), last[2].end(), rests);
    }

    /// Maximum acceleration, jerk and snap of the pace, 1/s to 1/s^3, for a change from 1 to 0 in the duration of a stop.
    std::array<double, 3> bounds() const noexcept
    {
        const double T = hurries_ ? SHORTEST_CHANGE : commander_.parameters.stop_duration;
        return {2 / T, 8 / (T * T), 48 / (T * T * T)};
    }

    static constexpr double SHORTEST_CHANGE = 0.01; // minimum duration of a pace change, s
    static constexpr double SLOWEST = 0.01;         // pace of a motion at rest, at most

    Commander<Robot> &commander_;
    double end_ = 0;
    // Requested pace, and pace before the search.
    double wanted_ = 1, before_ = 1;
    bool limited_ = false; // limits do not allow the requested pace
    std::int64_t retry_ = 0; // time of the next retry, ns
    double growth_ = PACE_GROWTH; // factor between candidate durations
    // The rest of the motion is the stop; a stop may be shorter than `stop_duration`.
    bool rests_ = false, hurries_ = false;
    // Search: pace, start of its change and delay from the search, ns, partial changes tried, and check of the rest of the motion.
    struct {
        bool on = false;
        double pace = 1;
        std::int64_t begin = 0, lead = 0;
        int parts = 0;
        bool ends = false;
    } sought_;
    PaceSearch<Robot> search_;
};

} // namespace eom

#endif
