// SPDX-License-Identifier: Apache-2.0
// Checks of pace changes along a path against all limits, and a table of the durations of stops that pass.
#ifndef EOM_PACE_TABLE_HPP
#define EOM_PACE_TABLE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

#include "commander.hpp"
#include "path_time.hpp"

namespace eom {

/// Candidate durations of a pace change, s. A longer change is not always safer, so that each duration is checked.
constexpr double PACE_DURATIONS[] = {0.3, 0.35, 0.4, 0.5, 0.6, 0.8, 1, 1.3, 1.7, 2.2, 3};
constexpr std::size_t PACE_CANDIDATES = std::size(PACE_DURATIONS);

/// Check of a pace change, or of the rest of a path at a constant pace, one setpoint after the other.
///
/// A `Path` maps a path state to a joint state of a spline. Damped springs and friction have no transients.
template <class Robot>
class PaceCheck {
  public:
    enum class Result { pending, passed, failed };

    explicit PaceCheck(Commander<Robot> &commander) noexcept : commander_(commander), limits_(commander.robot) {}

    /// Start to check `change` at `count` instants after its start, with `margin` to limits,
    /// relative to half their range, for the motion between instants. A change beyond path parameter `end` fails.
    void begin(const PaceChange &change, int count, double margin, double end) noexcept
    {
        change_ = change;
        limits_ = Limits<Robot>(commander_.robot);
        instant_ = 0;
        count_ = count;
        stride_ = static_cast<int>(0.618 * count);
        while (std::gcd(stride_, count + 1) > 1)
            ++stride_;
        margin_ = margin;
        end_ = end;
        places_ = false;
    }

    /// Start to check the path from `place` to `end`, s, at `pace`. With `begins`, limits are widened to the first state.
    void begin_rest(double place, double end, double pace, bool begins) noexcept
    {
        place_ = place;
        end_ = end;
        pace_ = pace;
        limits_ = Limits<Robot>(commander_.robot);
        instant_ = 0;
        places_ = true;
        begins_ = begins;
    }

    /// Returns true if the state at the start of the change meets limits that are not widened.
    bool starts_within() const noexcept { return starts_within_; }

    /// Number of setpoints of the rest of a path, at most.
    static constexpr int MAX_PLACES = 201;

    /// Check setpoints while `left`, their permitted number, is positive.
    template <class Path>
    Result advance(const Path &path, int &left) noexcept
    {
        Result result = Result::pending;
        while (result == Result::pending && left > 0) {
            --left;
            result = places_ ? check_place(path) : check_instant(path);
        }
        return result;
    }

  private:
    template <class Path>
    Result check_instant(const Path &path) noexcept
    {
        // The margin grows from zero, because the arm may start at a limit.
        // Distant instants follow each other, because a change that exceeds limits does so for some time.
        const int instant = static_cast<int>(static_cast<std::int64_t>(instant_) * stride_ % (count_ + 1));
        const double part = static_cast<double>(instant) / count_, t = part * change_.duration();
        const double share = std::min(4 * part, 1.0);
        const PathState s = change_.at(t);
        if (instant_ == 0)
            starts_within_ = excess(path(s), false, 0) <= LIMIT_TOLERANCE;
        if (s[0] > end_ || excess(path(s), instant_ == 0, margin_ * share * share) > LIMIT_TOLERANCE)
            return Result::failed;
        return instant_++ == count_ ? Result::passed : Result::pending;
    }

    /// Check an even place, or after these, a peak of accelerations.
    template <class Path>
    Result check_place(const Path &path) noexcept
    {
        if (place_ >= end_)
            return Result::passed;
        const std::vector<double> &peaks = path.spline.peaks();
        const auto k = static_cast<std::size_t>(instant_);
        const double s = k <= EVEN_PLACES ? place_ + (end_ - place_) * static_cast<double>(k) / EVEN_PLACES
                                          : std::clamp(peaks[k - EVEN_PLACES - 1], place_, end_);
        if (excess(path({s, pace_, 0, 0, 0}), begins_ && k == 0, 0) > LIMIT_TOLERANCE ||
            commander_.excess_awaited(limits_, 0, -1) > LIMIT_TOLERANCE)
            return Result::failed;
        ++instant_;
        return k == EVEN_PLACES + peaks.size() ? Result::passed : Result::pending;
    }

    double excess(const State<Robot::joints> &state, bool widens, double margin) noexcept
    {
        commander_.move(state, setpoint_);
        return commander_.excess_at(setpoint_, limits_, widens, margin, -1);
    }

    static constexpr std::size_t EVEN_PLACES = 100;

    Commander<Robot> &commander_;
    Setpoint<Robot> setpoint_;
    Limits<Robot> limits_;
    PaceChange change_;
    int instant_ = 0, count_ = 0, stride_ = 1;
    double margin_ = 0;
    // Last path parameter, s. Rest of a path: its start and its pace.
    double end_ = 0, place_ = 0, pace_ = 1;
    bool places_ = false, begins_ = false, starts_within_ = true;
};

/// Durations of stops on the path ahead, computed over several cycles.
///
/// The path has segments of equal length. The duration of a segment is the shortest candidate with which stops from its start, middle
/// and end meet limits. The table contains the present segment and later segments, in a ring.
template <class Robot>
class PaceTable {
  public:
    static constexpr double UNKNOWN = std::numeric_limits<double>::infinity();

    explicit PaceTable(Commander<Robot> &commander) noexcept : check_(commander) {}

    /// Start the table of a path from `start` to `end`, s. `rests`: the path ends at rest.
    void begin(double start, double end, bool rests) noexcept
    {
        start_ = start;
        rests_ = rests;
        const double length = std::max(end - start, 1e-9);
        segments_ = std::max<std::int64_t>(MIN_SEGMENTS, std::llround(std::ceil(length / LONGEST_SEGMENT)));
        width_ = length / static_cast<double>(segments_);
        clear();
    }

    /// Forget all durations, because the payload changes.
    void clear() noexcept
    {
        first_ = 0;
        known_ = 0;
        checks_ = false;
    }

    /// Compute durations of stops from `pace`, at least `shortest` s, by checks of `left` setpoints. `place` is the present path
    /// parameter.
    template <class Path>
    void advance(const Path &path, double place, double pace, double shortest, int left) noexcept
    {
        if (pace != pace_ || shortest != shortest_) {
            clear();
            pace_ = pace;
            shortest_ = shortest;
        }
        const std::int64_t present = segment(place);
        if (present > first_) { // leave passed segments
            known_ = std::max<std::int64_t>(known_ - (present - first_), 0);
            first_ = present;
            checks_ = checks_ && computed_ >= first_;
        }
        while (left > 0 && known_ < static_cast<std::int64_t>(SIZE) && first_ + known_ < segments_) {
            if (!checks_ || computed_ != first_ + known_) {
                computed_ = first_ + known_;
                candidate_ = first_candidate();
                at_ = 0;
                passes_ = true;
                begin_check();
            }
            const auto result = check_.advance(path, left);
            if (result == PaceCheck<Robot>::Result::pending)
                return;
            passes_ = passes_ && check_.starts_within();
            if (result == PaceCheck<Robot>::Result::failed) {
                at_ = 0;
                ++candidate_;
            } else {
                ++at_;
            }
            if (at_ == PLACES || candidate_ == PACE_CANDIDATES) {
                ring_[static_cast<std::size_t>(computed_) % SIZE] = {candidate_ < PACE_CANDIDATES ? duration(candidate_) : UNKNOWN,
                                                                     passes_};
                ++known_;
                checks_ = false;
            } else {
                begin_check();
            }
        }
    }

    /// Candidate k, s.
    double duration(std::size_t k) const noexcept { return std::max(PACE_DURATIONS[k], shortest_); }
    /// Index of the shortest candidate; shorter candidates are equal.
    std::size_t first_candidate() const noexcept
    {
        std::size_t k = 0;
        while (k + 1 < PACE_CANDIDATES && PACE_DURATIONS[k + 1] <= shortest_)
            ++k;
        return k;
    }

    /// Last path parameter of changes: the end of a path that ends in motion.
    double last_place() const noexcept { return rests_ ? UNKNOWN : start_ + width_ * static_cast<double>(segments_); }

    /// Returns true if a duration may still be computed for a stop from `place` or later.
    bool is_pending(double place) const noexcept
    {
        const std::int64_t present = segment(place), last = first_ + known_;
        return present >= last || (at(present).passes && last < segments_);
    }

    /// Stop from path parameter `place` at `pace`: duration of a stop that starts there; time until rest if the arm goes on to the
    /// best later stop or to the end; UNKNOWN if there is none.
    struct Stop {
        double duration = UNKNOWN, wait = UNKNOWN;
        bool now() const noexcept { return duration < UNKNOWN && duration <= wait; }
        bool exists() const noexcept { return std::min(duration, wait) < UNKNOWN; }
    };
    /// With `hopes`, the next unknown segment counts as having the shortest stop.
    Stop stop(double place, double pace, bool hopes = false) const noexcept
    {
        const std::int64_t present = segment(place), last = first_ + known_;
        Stop found;
        if (last < segments_)
            found.wait = hopes ? duration(first_candidate()) : UNKNOWN;
        else if (rests_)
            found.wait = 0;
        const auto pass = [&](const Segment &x, double length) { found.wait = x.passes ? found.wait + length / pace : UNKNOWN; };
        for (std::int64_t k = last; k-- > present + 1;) {
            pass(at(k), width_);
            found.wait = std::min(at(k).duration, found.wait);
        }
        if (present < last)
            found.duration = at(present).duration;
        pass(present < last ? at(present) : Segment(), std::max(start_ + static_cast<double>(present + 1) * width_ - place, 0.0));
        return found;
    }

  private:
    /// Duration of a stop; true if the path meets limits at the pace of the table, so that a later stop may be waited for.
    struct Segment {
        double duration = UNKNOWN;
        bool passes = true;
    };

    std::int64_t segment(double place) const noexcept
    {
        const double found = std::floor((place - start_) / width_);
        return static_cast<std::int64_t>(std::clamp(found, static_cast<double>(first_), static_cast<double>(segments_ - 1)));
    }
    const Segment &at(std::int64_t k) const noexcept { return ring_[static_cast<std::size_t>(k) % SIZE]; }

    void begin_check() noexcept
    {
        checks_ = true;
        const double s = start_ + width_ * (static_cast<double>(computed_) + static_cast<double>(at_) / (PLACES - 1));
        const double T = duration(candidate_);
        check_.begin(PaceChange(s, pace_, 0, T), std::clamp(static_cast<int>(T / INTERVAL), 60, 150), 0, last_place());
    }

    // Number of segments of a short path, and longest segment, s.
    static constexpr std::int64_t MIN_SEGMENTS = 64;
    static constexpr double LONGEST_SEGMENT = 0.04, INTERVAL = 0.005;
    // Checked places of a segment; segments in the ring, which cover the longest change.
    static constexpr int PLACES = 3;
    static constexpr std::size_t SIZE = 80;

    PaceCheck<Robot> check_;
    double start_ = 0, width_ = 1, pace_ = 1, shortest_ = 0;
    bool rests_ = true;
    // Segments of the path, first segment in the ring, and number of known segments.
    std::int64_t segments_ = MIN_SEGMENTS, first_ = 0, known_ = 0;
    std::array<Segment, SIZE> ring_{};
    // Segment, candidate and place of the present check.
    bool checks_ = false, passes_ = true;
    std::int64_t computed_ = 0;
    std::size_t candidate_ = 0;
    int at_ = 0;
};

} // namespace eom

#endif
