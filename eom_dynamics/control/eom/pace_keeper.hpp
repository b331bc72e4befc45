// SPDX-License-Identifier: Apache-2.0
// Changes of the pace of a motion that is played, sought over cycles.
#ifndef EOM_PACE_KEEPER_HPP
#define EOM_PACE_KEEPER_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "pace_search.hpp"

namespace eom {

/// Time until a change that limits do not allow is tried again, and from the begin of a search to that of its change, ns.
constexpr std::int64_t PACE_RETRY = @pace_retry@, PACE_LEAD = @pace_lead@;
/// Setpoints of a robot of at most 8 joints that are checked in a cycle for each 1 ms of its period; of larger ones, fewer in
/// proportion.
constexpr int PACE_RATE = @pace_rate@;

/// Leads the course of a path parameter to the pace that is wanted.
template <class Robot>
class PaceKeeper {
  public:
    explicit PaceKeeper(Commander<Robot> &commander) noexcept : commander_(commander), search_(commander) {}

    /// Begins a motion until a path parameter, s, of a number of pieces per second, at the pace 1.
    void begin(double end, double density) noexcept
    {
        end_ = end;
        search_.set_density(density);
        want(1);
    }

    /// Whether the pace that is wanted is not reached, for lack of limits.
    bool limited() const noexcept { return limited_; }

    /// Whether a change is sought, or is under way at a time, ns.
    bool changes(const PathTime &time, std::int64_t now) const noexcept
    {
        return sought_.on || seconds(now + ahead() - time.begin()) < time.last().duration();
    }

    /// Whether the rest of the path meets limits at the pace of now, or one that is sought, with a payload that waits: checked
    /// at once.
    template <class Path>
    bool carries(const PathTime &time, const Path &path, std::int64_t now) const noexcept
    {
        const double pace = std::max(time.last().pace(), sought_.on ? sought_.pace : 0.0);
        return carries(path, time.at(now), now, pace, end_, false);
    }

    /// The same of a path from a state, with which it may begin, until an end at a pace.
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

    /// Leads to a pace by a change within limits, in cycles of a period, s: one is sought until it must begin, and shorter ones
    /// as long as it goes on. Where limits do not allow it, a part of it may come first, and each retry tries longer ones, until
    /// they begin anew. Above the pace 1, and with payloads, the rest of the path must meet limits, too. A search goes on until
    /// it has a change, so that paces in quick succession have an effect, but for a pause, or where it is for a higher pace and
    /// a lower one is wanted. Paths are functions from a state of the path to that of the joints. Returns whether there is
    /// another change.
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

    /// Begins to seek the shortest stop; where the motion ends moving, one that is shorter than wanted, if need be.
    void begin_stop() noexcept { want(0); }

    /// Goes on to seek a stop; returns whether limits may still allow one, be it the end of the motion. Writes the time when it
    /// ends, ns, once that is known.
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
            return true; // the rest of the change is to come
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

    /// Another pace is wanted: forgets what was sought for the one before.
    void want(double pace) noexcept
    {
        wanted_ = pace;
        limited_ = sought_.on = rests_ = hurries_ = false;
        growth_ = PACE_GROWTH;
    }

    /// Begins to seek a change to a pace in place of the rest of a course, some time from now on, ns; a shorter one, if that
    /// leads there.
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
        // A change of a size of which these are bounds, or that has the present acceleration and jerk.
        const double size = std::max({std::fabs(pace - from[1]), std::pow(std::fabs(from[2]) / most[0], 1.5),
                                      std::pow(std::fabs(from[3]) / most[1], 3)});
        const double shortest = commander_.parameters.stop_duration * std::max(size, std::cbrt(size));
        search_.begin(from, sought_.begin - ahead(), pace, hurries_ ? SHORTEST_CHANGE : std::max(shortest, SHORTEST_CHANGE),
                      hurries_ ? growth_ * growth_ : growth_, less, end_, most);
    }

    /// Goes on to seek in a cycle, and takes the best change when it must begin.
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

    /// Setpoints that are checked in a cycle of a period, s.
    int checks(double period) const noexcept
    {
        const auto joints = static_cast<double>(std::max<std::size_t>(commander_.robot.joint_count(), 8));
        return static_cast<int>(std::min<double>(std::ceil(8e3 * PACE_RATE * period / joints), PACE_CHECKS));
    }

    /// By how much commands are ahead, ns.
    std::int64_t ahead() const noexcept { return std::llround(commander_.robot.command_lead() * 1e9); }

    /// Whether the motion ends at rest, but for rounding of a message.
    template <class Path>
    bool ends_at_rest(const Path &path) const noexcept
    {
        const auto last = path({end_, 1, 0, 0, 0});
        const auto rests = [](double rate) { return std::fabs(rate) <= AT_REST; };
        return std::all_of(last[1].begin(), last[1].end(), rests) && std::all_of(last[2].begin(), last[2].end(), rests);
    }

    /// Largest acceleration, jerk and snap of the pace, 1/s to 1/s^3: of a change from 1 to 0 in the duration of a stop.
    std::array<double, 3> bounds() const noexcept
    {
        const double T = hurries_ ? SHORTEST_CHANGE : commander_.parameters.stop_duration;
        return {2 / T, 8 / (T * T), 48 / (T * T * T)};
    }

    /// Shortest change of pace, s, and pace below which the motion is as if at rest.
    static constexpr double SHORTEST_CHANGE = 0.01, SLOWEST = 0.01;

    Commander<Robot> &commander_;
    double end_ = 0;
    // The pace that is wanted, and that before; whether limits do not allow it, when it is tried again, ns, and by which factor
    // durations grow then.
    double wanted_ = 1, before_ = 1;
    bool limited_ = false;
    std::int64_t retry_ = 0;
    double growth_ = PACE_GROWTH;
    // Whether the rest of the motion is a stop, and whether a stop may be shorter than wanted.
    bool rests_ = false, hurries_ = false;
    // What is sought: a change to a pace that begins at a time, ns, some time after the search does; how many parts of it have
    // been tried, and whether the rest of the motion is checked.
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
