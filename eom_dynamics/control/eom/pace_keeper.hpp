// SPDX-License-Identifier: Apache-2.0
// Controller of the pace along a path: one change after the other, each checked before it starts.
#ifndef EOM_PACE_KEEPER_HPP
#define EOM_PACE_KEEPER_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "pace_table.hpp"

namespace eom {

/// Retry interval for pace changes beyond limits, and maximum wait of a lower pace for the table, ns.
constexpr std::int64_t PACE_RETRY = 20'000'000, PACE_WAIT = 200'000'000;
/// Number of setpoints checked per cycle and 1 ms of its period for up to 8 joints, fewer in proportion for more joints: of the next
/// change, and of the table; and largest number in a cycle.
constexpr int PACE_RATE = 60, TABLE_RATE = 60, PACE_CHECKS = 1500;

/// Changes the pace of a path parameter until it has the requested value.
///
/// A change ends before the next change starts. A lower pace starts where the table of stops predicts the earliest rest, and a higher
/// pace as soon as limits allow it. The change itself is checked before it starts, within a few cycles.
template <class Robot>
class PaceKeeper {
  public:
    explicit PaceKeeper(Commander<Robot> &commander) noexcept : commander_(commander), check_(commander), table_(commander) {}

    /// Start the path from `start` to `end`, s, at pace 1.
    template <class Path>
    void begin(const Path &path, double start, double end) noexcept
    {
        end_ = end;
        table_.begin(start, end, ends_at_rest(path));
        request(1, 0);
    }

    /// Returns true if limits do not allow the requested pace yet.
    bool limited() const noexcept { return limited_; }

    /// Returns true if a change is active or about to start at `now`, ns.
    bool changes(const PathTime &time, std::int64_t now) const noexcept { return checks_ || runs(time, now); }

    /// Returns true if the rest of the path meets limits at the present pace with a pending payload, and forget the table of stops.
    /// The check runs within this call.
    template <class Path>
    bool carries(const PathTime &time, const Path &path, std::int64_t now) noexcept
    {
        table_.clear();
        return carries(path, time.at(now)[0], time.last().pace(), end_, false);
    }

    /// Returns true if a path from `place` to `end`, s, meets limits at `pace`; with `begins`, the motion starts there.
    template <class Path>
    bool carries(const Path &path, double place, double pace, double end, bool begins) const noexcept
    {
        if (pace == 0)
            return true;
        PaceCheck<Robot> check(commander_);
        check.begin_rest(place, end, pace, begins);
        int left = PaceCheck<Robot>::MAX_PLACES + 1;
        return check.advance(path, left) == Result::passed;
    }

    /// Change the pace to `pace` within limits, in cycles of `period` s, 0 in the first cycle of a stop. Returns true if `time` has a
    /// new change.
    ///
    /// If limits do not allow a higher pace, parts of the change are tried. With payloads, the rest of the path must meet limits.
    template <class Path>
    bool keep(PathTime &time, const Path &path, double pace, std::int64_t now, double period) noexcept
    {
        const double last = time.last().pace();
        const PathState at = time.at(now + ahead());
        const double of = commander_.loaded() ? last : 1;
        if (now > tabulated_ && of > 0 && at[0] < end_)
            table_.advance(path, at[0], of, commander_.parameters.stop_duration, max_checks(TABLE_RATE, commander_.period));
        tabulated_ = now;
        if (!(period > 0))
            return false;
        // A change that is checked starts, unless the arm shall stop or not become faster.
        if (pace != requested_ && (!checks_ || (pace == 0 && change_.pace() > 0) || (pace <= last && last < change_.pace())))
            request(pace, now);
        return !runs(time, now) && advance(time, path, now, period);
    }

    /// Start a stop.
    void begin_stop() noexcept { asked_ = UNASKED; }

    /// Continue the stop. Returns false if limits allow no stop on the path. Writes the `end` of the stop, ns, when known.
    template <class Path>
    bool advance_stop(PathTime &time, const Path &path, std::int64_t now, double period, std::int64_t &end) noexcept
    {
        if (asked_ == UNASKED)
            asked_ = now;
        keep(time, path, 0, now, period);
        const PathState at = time.at(now);
        if (time.last().pace() == 0) {
            end = time.begin() + std::llround(1e9 * time.last().duration());
        } else if (at[0] >= end_) {
            end = now;
            return ends_at_rest(path);
        } else if (!changes(time, now) && !table_.stop(at[0], at[1]).exists()) {
            return now - asked_ <= (table_.is_pending(at[0]) ? PACE_WAIT : 0);
        }
        return true;
    }

  private:
    using Result = typename PaceCheck<Robot>::Result;

    /// Request `pace`, and drop the change that is about to start.
    void request(double pace, std::int64_t now) noexcept
    {
        requested_ = pace;
        requested_at_ = now;
        limited_ = checks_ = false;
        retry_ = 0;
        part_ = 0;
        lateness_ = 1;
    }

    /// Returns true during a change.
    bool runs(const PathTime &time, std::int64_t now) const noexcept
    {
        return seconds(now + ahead() - time.begin()) < time.last().duration();
    }

    /// Check the next change, and start it. Returns true if it starts.
    template <class Path>
    bool advance(PathTime &time, const Path &path, std::int64_t now, double period) noexcept
    {
        int left = max_checks(PACE_RATE, period);
        const double pace = time.last().pace();
        if (pace == requested_) {
            request(requested_, now);
            return false;
        }
        if (!checks_ && (now < retry_ || !propose(time, now, period, table_.first_candidate())))
            return false;
        for (Result result; (result = check_.advance(path, left)) != Result::pending;) {
            if (result == Result::passed && rest_) { // next, the change itself
                rest_ = false;
                begin_check();
            } else if (result == Result::passed && begin_ >= now + ahead()) {
                time.change(begin_, change_);
                checks_ = false;
                limited_ = change_.pace() != requested_;
                retry_ = now + PACE_RETRY;
                part_ = 0;
                return true;
            } else {
                const bool late = result == Result::passed; // cycles are longer than their period
                lateness_ = late ? std::min(2 * lateness_, MAX_LATENESS) : 1;
                if (!propose(time, now, period, late ? candidate_ : candidate_ + 1))
                    return false;
            }
        }
        return false;
    }

    /// Start to check the change with candidate k, or a smaller change. Returns false if there is none now.
    bool propose(const PathTime &time, std::int64_t now, double period, std::size_t k) noexcept
    {
        const double pace = time.last().pace();
        const bool lower = requested_ < pace;
        checks_ = false;
        // A part of the change may be possible if the rest of the path, or no duration, is within limits.
        if (!lower && (k == PACE_CANDIDATES || (checked_rest_ && rest_))) {
            k = table_.first_candidate();
            if (++part_ == PARTS) {
                part_ = 0;
                limited_ = true;
                retry_ = now + PACE_RETRY;
                return false;
            }
        }
        if (k == PACE_CANDIDATES)
            return false;
        const double to = lower ? requested_ : pace + (1 - 0.3 * part_) * (requested_ - pace);
        checked_rest_ = !lower && commander_.loaded();
        const int setpoints = instants(table_.duration(k)) + (checked_rest_ ? PaceCheck<Robot>::MAX_PLACES : 0);
        const double cycles = (2 + setpoints / max_checks(PACE_RATE, period)) * lateness_;
        begin_ = std::max<std::int64_t>(now + ahead() + std::llround(1e9 * cycles * period), time.begin());
        const double place = time.at(begin_)[0];
        if (lower) {
            const auto stop = table_.stop(place, pace, now - requested_at_ < PACE_WAIT);
            while (k < PACE_CANDIDATES && table_.duration(k) < stop.duration)
                ++k;
            if (!stop.now() || k == PACE_CANDIDATES || table_.duration(k) > stop.wait)
                return false;
        }
        candidate_ = k;
        change_ = PaceChange(place, pace, to, table_.duration(k));
        rest_ = checked_rest_;
        checks_ = true;
        if (rest_)
            check_.begin_rest(place, end_, to, false);
        else
            begin_check();
        return true;
    }

    void begin_check() noexcept { check_.begin(change_, instants(change_.duration()), MARGIN, table_.last_place()); }
    static int instants(double duration) noexcept { return static_cast<int>(std::min(duration, 3.0) / INTERVAL); }

    /// Number of setpoints to check in a cycle of `period` s, with `rate` in 1 ms.
    int max_checks(int rate, double period) const noexcept
    {
        const auto joints = static_cast<double>(std::max<std::size_t>(commander_.robot.joint_count(), 8));
        return static_cast<int>(std::clamp<double>(std::round(8e3 * rate * period / joints), 1, PACE_CHECKS));
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

    static constexpr std::int64_t UNASKED = std::numeric_limits<std::int64_t>::min();
    static constexpr int PARTS = 4, MAX_LATENESS = 64;
    // Time between the instants of a check, s, and margin.
    static constexpr double INTERVAL = 0.001, MARGIN = 0.003;

    Commander<Robot> &commander_;
    double end_ = 0, requested_ = 1;
    bool limited_ = false; // limits do not allow the requested pace
    std::int64_t requested_at_ = 0, retry_ = 0; // time of the request, and of the next attempt, ns
    std::int64_t tabulated_ = UNASKED; // time of the last work on the table, ns
    std::int64_t asked_ = UNASKED; // time of the first cycle of a stop, ns
    // Change that is checked: its start, ns, candidate, and part of the request; the rest of the path is checked first.
    bool checks_ = false, rest_ = false, checked_rest_ = false;
    PaceChange change_;
    std::int64_t begin_ = 0;
    std::size_t candidate_ = 0;
    int part_ = 0, lateness_ = 1; // factor of the time for the check
    PaceCheck<Robot> check_;
    PaceTable<Robot> table_;
};

} // namespace eom

#endif
