// SPDX-License-Identifier: Apache-2.0
// Search for the shortest change of pace along a path within joint and motor limits, spread over cycles.
#ifndef EOM_PACE_SEARCH_HPP
#define EOM_PACE_SEARCH_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "commander.hpp"
#include "path_time.hpp"

namespace eom {

/// Search for pace changes: growth of the duration from candidate to candidate, growth of that factor with each retry, and smallest
/// improvement.
constexpr double PACE_GROWTH = @pace_growth@, PACE_PATIENCE = @pace_patience@, PACE_GAIN = @pace_gain@;
constexpr int PACE_DURATIONS = @pace_durations@;
/// Check density of a pace change: two instants per piece of the path, but PACE_SAMPLES to PACE_MOST_SAMPLES in total, with more in
/// the first section for its growing margin. PACE_CHECKS limits all checked setpoints. The rest of the path is checked at
/// PACE_PLACES even places, and at as many with the largest accelerations.
constexpr int PACE_SAMPLES = @pace_samples@, PACE_MOST_SAMPLES = @pace_most_samples@, PACE_CHECKS = @pace_checks@;
constexpr std::size_t PACE_PLACES = @pace_places@;
/// Margins, as fractions of half a limit range: reserve for the motion between instants; distance for halving their interval;
/// distance for checking motor reversals (steps of friction and gear losses) at PACE_BESIDE times the interval.
constexpr double PACE_MARGIN = @pace_margin@, PACE_NEAR = @pace_near@, PACE_STEP = @pace_step@;
constexpr double PACE_BESIDE[] = {@pace_beside@};
/// Possible excess of a peak over its parabola, as a fraction of its curvature.
constexpr double PACE_CURVED = @pace_curved@;

/// Searches for the shortest pace change within limits, a few setpoints per cycle. Candidates are bells and trapezoids of
/// increasing duration. Then each part of the best candidate is shortened while others grow, with a later start if the state is
/// steady, in steps that halve. A `Path` maps a path state to a joint state of a spline.
template <class Robot>
class PaceSearch {
  public:
    explicit PaceSearch(Commander<Robot> &commander) noexcept : commander_(commander), limits_(commander.robot) {}

    /// Set the pieces of the path per second.
    void set_density(double density) noexcept { density_ = density; }

    /// Start the search for the shortest change to `pace` from path state `from` at `time`, ns. Candidate durations start at
    /// `shortest` s, grow by `growth`, and must be below `less` s; acceleration, jerk and snap of the pace stay within `bounds`.
    /// Above pace 1, or above the present pace with a payload, the path up to `end` must also meet limits at `pace`.
    void begin(const PathState &from, std::int64_t time, double pace, double shortest, double growth, double less, double end,
               const std::array<double, 3> &bounds) noexcept
    {
        keep_on(from, time, pace, end, pace > 1 ? PACE_MARGIN : 0);
        bounds_ = bounds;
        shortest_ = shortest;
        growth_ = growth;
        less_ = less;
        steady_ = from[2] == 0 && from[3] == 0 && from[4] == 0;
        tried_ = 0;
        direction_ = 0;
        size_ = 0.25;
        improved_ = false;
        worst_ = {{{0, 1}, {1, 1}, {3, 1}, {4, 1}}};
        if (pace > 1 || (pace > from[1] && commander_.loaded()))
            return;
        stage_ = Stage::shapes;
        propose();
    }

    /// Start checking that the path up to `end` meets limits reduced by `margin` at `pace`; found() is then true. A negative margin
    /// is for stops, which postpone pending payloads. With `begins`, the first state widens the limits.
    void keep_on(const PathState &from, std::int64_t time, double pace, double end, double margin, bool begins = false) noexcept
    {
        from_ = from;
        time_ = time;
        pace_ = pace;
        end_ = end;
        margin_ = margin;
        begins_ = begins;
        limits_ = Limits<Robot>(commander_.robot);
        place_ = 0;
        checks_ = 0;
        waited_ = -1;
        found_ = false;
        stage_ = Stage::places;
        shortest_ = std::numeric_limits<double>::infinity();
    }

    /// Check about `count` setpoints. Returns true if the search is over.
    template <class Path>
    bool go_on(const Path &path, int count) noexcept
    {
        left_ = count;
        while (left_ > 0 && stage_ != Stage::over) {
            const int before = left_;
            stage_ == Stage::places ? look_at_place(path) : look_at_instant(path);
            left_ = std::min(left_, before - 1);
        }
        return stage_ == Stage::over;
    }

    /// Returns true if a change exists; best() is the shortest so far.
    bool found() const noexcept { return found_; }
    const PaceChange &best() const noexcept { return best_; }

  private:
    enum class Stage { places, shapes, parts, over };

    // --- Candidates ---------------------------------------------------------------------

    /// Start checking the next candidate, if any.
    void propose() noexcept
    {
        // Steps of wait, rise, hold, fall and edge.
        constexpr double DIRECTIONS[][5] = {
            {0, -1, 0, -1, 0},  {-1, 0, 0, 0, 0},     {0, -1, 0, 0, 0},    {0, 0, -1, 0, 0},    {0, 0, 0, -1, 0},
            {0, -1, 1, -1, 0},  {0, -1, .75, 0, 0},   {0, 0, .75, -1, 0},  {0, .75, -1, 0, 0},  {0, 0, -1, .75, 0},
            {0, -1, 0, .75, 0}, {0, .75, 0, -1, 0},   {0, -1, 0, -1, -2},  {0, -1, 0, -1, 2},   {0, -.5, -.5, -.5, -2},
            {-1, .75, 0, 0, 0}, {.75, -1, 0, -1, 0}};
        // Fractions of rise, hold and fall.
        constexpr double SHAPES[][3] = {{.5, 0, .5}, {.25, .5, .25}, {.2, 0, .8}, {.8, 0, .2}};
        constexpr int COUNT = std::size(SHAPES);
        while (stage_ == Stage::shapes && !found_ && tried_ < PACE_DURATIONS * COUNT) {
            const double T = shortest_ * std::pow(growth_, tried_ / COUNT);
            const double(&shares)[3] = SHAPES[tried_++ % COUNT];
            if (begin_check({0, shares[0] * T, shares[1] * T, shares[2] * T, 0.5}))
                return;
        }
        stage_ = found_ ? Stage::parts : Stage::over;
        while (stage_ == Stage::parts) {
            if (direction_ == std::size(DIRECTIONS)) {
                size_ *= improved_ ? 1 : 0.5;
                improved_ = false;
                direction_ = 0;
                if (size_ <= 0.02)
                    stage_ = Stage::over;
                continue;
            }
            const double(&d)[5] = DIRECTIONS[direction_++];
            PaceShape shape = best_.shape();
            const double size = size_ * (shape.total() - shape.wait);
            shape.wait = steady_ ? std::max(shape.wait + d[0] * size, 0.0) : 0;
            shape.rise += d[1] * size;
            shape.hold = std::max(shape.hold + d[2] * size, 0.0);
            shape.fall += d[3] * size;
            shape.edge = std::clamp(shape.edge * (1 + 0.25 * d[4] * (d[4] < 0 ? 1 : 2)), 0.05, 0.5);
            if (shape.total() < less_ * (1 - PACE_GAIN) && begin_check(shape))
                return;
        }
    }

    bool begin_check(const PaceShape &shape) noexcept
    {
        // An edge within rounding would have no instant.
        if (!(shape.total() < less_) || shape.total() < shortest_ || std::min(shape.rise, shape.fall) < 1e-6)
            return false;
        tried_change_ = PaceChange(from_, pace_, shape);
        sections_ = tried_change_.sections();
        const double span = sections_.back() - sections_[0], both = 2 * density_ * span;
        const double rate = std::clamp<double>(both, PACE_SAMPLES, PACE_MOST_SAMPLES) / span;
        next_ = shape.wait == waited_ ? FIRST : START;
        judged_ = false;
        count_ = 0;
        for (std::size_t i = 0; i < PaceChange::SECTIONS; ++i) {
            const double least = steady_ || i > 2 ? 2.8 : 4.8, length = sections_[i + 1] - sections_[i];
            const int count = static_cast<int>(least + (i > 0 ? 1 : 2) * rate * length);
            // A value that rises at the start may peak soon.
            for (double k = i > 0 ? 1 : 0.125; k < 1; k *= 2)
                instants_[count_++] = {i, k / count};
            for (int k = 1; k <= count && length > 0; ++k)
                instants_[count_++] = {i, static_cast<double>(k) / count};
        }
        return true;
    }

    /// Process the result of the candidate, and propose the next candidate.
    void judge(bool meets) noexcept
    {
        if (meets) {
            best_ = tried_change_;
            less_ = best_.duration();
            improved_ = found_;
            found_ = true;
        }
        propose();
    }

    // --- Checks -------------------------------------------------------------------------

    template <class Path>
    void look_at_place(const Path &path) noexcept
    {
        const bool ahead = from_[0] < end_;
        const std::vector<double> &peaks = path.spline.peaks();
        const double s = place_ <= PACE_PLACES
                             ? from_[0] + (end_ - from_[0]) * static_cast<double>(place_) / PACE_PLACES
                             : std::clamp(peaks[place_ - PACE_PLACES - 1], from_[0], end_);
        const double t = (s - from_[0]) / pace_;
        const bool meets =
            !ahead || (excess(path({s, pace_, 0, 0, 0}), t, begins_ && place_ == 0, margin_) <= LIMIT_TOLERANCE &&
                       (margin_ < 0 || commander_.excess_awaited(limits_, margin_, -1, t) <= LIMIT_TOLERANCE));
        if (meets && ahead && ++place_ <= PACE_PLACES + peaks.size())
            return;
        const bool seeks = std::isfinite(shortest_);
        found_ = meets && !seeks;
        stage_ = meets && seeks ? Stage::shapes : Stage::over;
        checks_ = 0;
        if (stage_ == Stage::shapes)
            propose();
    }

    /// Returns true if acceleration, jerk and snap of the candidate stay within bounds, or within their initial size.
    bool is_bounded() const noexcept
    {
        for (std::size_t i = 0; i < PaceChange::SECTIONS; ++i) {
            // A trapezoid has its extremes at ends and in the middle; a fading acceleration anywhere.
            const int samples = steady_ || i > 2 ? 2 : 16;
            for (int k = 1; k <= samples; ++k) {
                const PathState s = tried_change_.at(sections_[i] + (sections_[i + 1] - sections_[i]) * k / samples);
                for (std::size_t d = 0; d < bounds_.size(); ++d)
                    if (std::fabs(s[2 + d]) > std::max(bounds_[d], std::fabs(from_[2 + d])) * (1 + 1e-9))
                        return false;
            }
        }
        return true;
    }

    /// Check the candidate step by step. First its bounds; then its start, with limits widened to it, unless it is known; then
    /// the last violating instants; then all instants. Limits are met with a margin that grows from the start, at instants, at
    /// peaks of parabolas through three instants, and near motor reversals.
    template <class Path>
    void look_at_instant(const Path &path) noexcept
    {
        if (checks_ >= PACE_CHECKS) {
            stage_ = Stage::over;
        } else if (!std::exchange(judged_, true)) {
            if (!is_bounded())
                judge(false);
        } else if (next_ == START) {
            limits_ = Limits<Robot>(commander_.robot);
            start_ = {sections_[0], excess(path(tried_change_.at(sections_[0])), sections_[0], true, 0)};
            if (!std::isfinite(start_[1]))
                return judge(false);
            first_velocity_ = commander_.motor_velocity();
            waited_ = tried_change_.shape().wait;
            next_ = FIRST;
        } else if (next_ < 0) {
            known_ = 0;
            const auto at = worst_.begin() + (next_ - FIRST);
            if (!meets_at(path, *at)) {
                std::rotate(worst_.begin(), at, at + 1);
                return judge(false);
            }
            if (++next_ == 0) {
                before_[1] = start_;
                velocity_ = first_velocity_;
                known_ = 1;
            }
        } else {
            if (!meets_at(path, instants_[next_])) {
                std::copy_backward(worst_.begin(), worst_.end() - 1, worst_.end());
                worst_[0] = instants_[next_];
                return judge(false);
            }
            if (++next_ == count_)
                judge(true);
        }
    }

    /// Section of the change, and fraction of it.
    struct Instant {
        std::size_t section = 0;
        double share = 1;
    };

    template <class Path>
    bool meets_at(const Path &path, const Instant &at) noexcept
    {
        return meets(path, sections_[at.section] + at.share * (sections_[at.section + 1] - sections_[at.section]), true);
    }

    /// Returns true if limits less a margin are met at `t`, s, and since the last instant; with `halves`, bisects the interval if
    /// necessary.
    template <class Path>
    bool meets(const Path &path, double t, bool halves) noexcept
    {
        const PathState s = tried_change_.at(t);
        // No reverse motion, and no excessive pace while an initial acceleration fades slowly.
        if (s[1] < -1e-9 || s[1] > std::max(FASTEST_PACE, from_[1]) + 1e-9)
            return false;
        // The margin grows from zero, because the arm may start at a limit.
        const double share = std::min((t - sections_[0]) / (sections_[1] - sections_[0]), 1.0);
        const double margin = PACE_MARGIN * share * share;
        const double e = excess(path(s), t, false, margin);
        const MotorVector<Robot> velocity = commander_.motor_velocity();
        if (e > LIMIT_TOLERANCE)
            return false;
        if (halves && known_ > 0 && is_close(e, velocity) && !meets(path, 0.5 * (before_[1][0] + t), false))
            return false;
        // Times and excesses of the last two instants; a parabola has its peak between them.
        const auto &[t0, e0] = before_[0];
        const auto &[t1, e1] = before_[1];
        const double rise = (e1 - e0) / (t1 - t0), fall = (e - e1) / (t - t1);
        const double slope = (rise * (t - t1) + fall * (t1 - t0)) / (t - t0);
        const bool peaks = known_ >= 2 && rise > 0 && fall < 0;
        double peak = peaks ? e1 + slope * slope * (t - t0) / (4 * (rise - fall)) + PACE_CURVED * (2 * e1 - e0 - e) : e;
        for (std::size_t i = 0; i < Robot::motors && known_ > 0 && std::max(e, e1) > -PACE_STEP; ++i) {
            if (!(velocity_[i] * velocity[i] < 0))
                continue;
            for (const double side : PACE_BESIDE) {
                // Also outside the interval, because a reversal shortly before an instant is not complete there.
                const double at = t1 + (t - t1) * (velocity_[i] / (velocity_[i] - velocity[i]) + side);
                const double u = std::clamp(at, sections_.front(), sections_.back());
                peak = std::max(peak, excess(path(tried_change_.at(u)), u, false, margin));
            }
        }
        before_[0] = std::exchange(before_[1], {t, e});
        velocity_ = velocity;
        ++known_;
        return peak <= LIMIT_TOLERANCE;
    }

    /// Returns true if limits may be exceeded between the last instant and the instant with excess `e` and motor velocities
    /// `velocity`: close to a limit, by the change of the excess, or with two possible motor reversals.
    bool is_close(double e, const MotorVector<Robot> &velocity) const noexcept
    {
        const double e1 = before_[1][1], change = std::fabs(e - e1) + (known_ > 1 ? std::fabs(e1 - before_[0][1]) : 0);
        if (std::max(e, e1) > -std::max(PACE_NEAR, 0.5 * change))
            return true;
        for (std::size_t i = 0; i < Robot::motors && std::max(e, e1) > -PACE_STEP; ++i)
            if (std::min(std::fabs(velocity_[i]), std::fabs(velocity[i])) < std::fabs(velocity[i] - velocity_[i]))
                return true;
        return false;
    }

    /// Excess `t` s after the start.
    double excess(const State<Robot::joints> &state, double t, bool widens, double margin) noexcept
    {
        ++checks_;
        --left_;
        commander_.move(state, setpoint_);
        return commander_.excess_at(setpoint_, time_ + std::llround(1e9 * t), limits_, widens, margin, -1);
    }

    // Number of remembered violating instants; first steps of a check.
    static constexpr int WORST = 4, FIRST = -WORST, START = FIRST - 1;

    Commander<Robot> &commander_;
    Setpoint<Robot> setpoint_;
    Limits<Robot> limits_;
    Stage stage_ = Stage::over;
    // Request and its start time, ns.
    PathState from_{};
    std::int64_t time_ = 0;
    double pace_ = 1, shortest_ = 0, growth_ = 1, less_ = 0, end_ = 0, margin_ = 0, density_ = 0;
    std::array<double, 3> bounds_{};
    bool begins_ = false, steady_ = false, found_ = false, judged_ = false;
    // Setpoints checked so far, and remaining in this cycle.
    int checks_ = 0, left_ = 0;
    std::size_t place_ = 0;
    PaceChange best_;
    // Shapes: durations tried. Parts: direction, step size, and whether this size has improved the result.
    int tried_ = 0;
    std::size_t direction_ = 0;
    double size_ = 0;
    bool improved_ = false;
    // Wait of the start that has widened the limits; sections, instants and violating instants of the candidate.
    double waited_ = -1;
    PaceChange tried_change_;
    std::array<double, PaceChange::SECTIONS + 1> sections_{};
    std::array<Instant, 2 * PACE_MOST_SAMPLES + 5 * PaceChange::SECTIONS> instants_{};
    int next_ = 0, count_ = 0;
    std::array<Instant, WORST> worst_;
    std::array<std::array<double, 2>, 2> before_{};
    std::array<double, 2> start_{};
    MotorVector<Robot> velocity_{}, first_velocity_{};
    int known_ = 0;
};

} // namespace eom

#endif
