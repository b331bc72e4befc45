// SPDX-License-Identifier: Apache-2.0
// Search for the shortest change of pace along a path within the limits of joints and motors, continued over cycles.
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

/// How changes of pace are sought: by which factor durations grow, and that factor with each retry; and the least gain.
constexpr double PACE_GROWTH = @pace_growth@, PACE_PATIENCE = @pace_patience@, PACE_GAIN = @pace_gain@;
constexpr int PACE_DURATIONS = @pace_durations@;
/// Instants of a change of pace, evenly in time but for more in its first section, where the margin begins, beside two
/// of each section, or four while an acceleration fades: at least, and at most, for two of each piece of the path; and setpoints
/// in all, that are checked. Places of the rest of the path, evenly, and as many where it accelerates most.
constexpr int PACE_SAMPLES = @pace_samples@, PACE_MOST_SAMPLES = @pace_most_samples@, PACE_CHECKS = @pace_checks@;
constexpr std::size_t PACE_PLACES = @pace_places@;
/// Distance from limits for the instants between, of half their range; that within which they are halved; and that within which
/// the reversal of a motor, at which friction and losses of gears step, is looked at: beside it, in shares of their distance.
constexpr double PACE_MARGIN = @pace_margin@, PACE_NEAR = @pace_near@, PACE_STEP = @pace_step@;
constexpr double PACE_BESIDE[] = {@pace_beside@};
/// Share of the bend of a peak by which it may be higher than its parabola.
constexpr double PACE_CURVED = @pace_curved@;

/// Candidates are bells and trapezoids from short to long; then each part of the best one is tried shorter, and others longer,
/// also some time later, if the state may go on until then, in steps that halve. Paths are functions from a state of the path to
/// that of the joints, of a spline.
template <class Robot>
class PaceSearch {
  public:
    explicit PaceSearch(Commander<Robot> &commander) noexcept : commander_(commander), limits_(commander.robot) {}

    /// Sets the pieces of the path per second.
    void set_density(double density) noexcept { density_ = density; }

    /// Begins to seek a change from a state of the path at a time, ns, to a pace, of at least a duration, s, of others that grow
    /// by a factor, and of less than another, whose acceleration, jerk and snap are within bounds. Above the pace 1, or with a
    /// payload above that before, the rest of the path up to an end must meet limits at that pace.
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

    /// Begins to check whether the path up to an end meets limits less a margin at a pace, which then is found. Payloads that
    /// are to come wait for stops, whose margin is negative; the first state of a motion that begins widens limits.
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

    /// Goes on by a number of setpoints, and those that belong to the last one; returns whether the search is over.
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

    /// Whether there is a change, and the shortest one so far.
    bool found() const noexcept { return found_; }
    const PaceChange &best() const noexcept { return best_; }

  private:
    enum class Stage { places, shapes, parts, over };

    // --- Candidates ---------------------------------------------------------------------

    /// Has the next candidate be checked, if there is one.
    void propose() noexcept
    {
        // Steps of wait, rise, hold and fall, and of the edge.
        constexpr double DIRECTIONS[][5] = {
            {0, -1, 0, -1, 0},  {-1, 0, 0, 0, 0},     {0, -1, 0, 0, 0},    {0, 0, -1, 0, 0},    {0, 0, 0, -1, 0},
            {0, -1, 1, -1, 0},  {0, -1, .75, 0, 0},   {0, 0, .75, -1, 0},  {0, .75, -1, 0, 0},  {0, 0, -1, .75, 0},
            {0, -1, 0, .75, 0}, {0, .75, 0, -1, 0},   {0, -1, 0, -1, -2},  {0, -1, 0, -1, 2},   {0, -.5, -.5, -.5, -2},
            {-1, .75, 0, 0, 0}, {.75, -1, 0, -1, 0}};
        // Shares of rise, hold and fall.
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
        // Of the size of rounding, an edge would have no instant.
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
            // What rises at the start may peak soon.
            for (double k = i > 0 ? 1 : 0.125; k < 1; k *= 2)
                instants_[count_++] = {i, k / count};
            for (int k = 1; k <= count && length > 0; ++k)
                instants_[count_++] = {i, static_cast<double>(k) / count};
        }
        return true;
    }

    /// Takes the verdict on the candidate, and proposes the next one.
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

    /// Whether acceleration, jerk and snap of the candidate are within bounds, or of the size from which it begins.
    bool is_bounded() const noexcept
    {
        for (std::size_t i = 0; i < PaceChange::SECTIONS; ++i) {
            // A trapezoid has its extremes at ends and in the middle; what fades has them anywhere.
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

    /// Checks the candidate: its bounds; then an instant, at first its start, whose excess widens limits, unless it is that of
    /// the one before, then those where limits were exceeded last, then all of them. Limits are met less a margin that begins
    /// with it, at instants, at peaks of parabolas through three, and beside reversals of motors.
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

    /// A section of the change, and a share of it.
    struct Instant {
        std::size_t section = 0;
        double share = 1;
    };

    template <class Path>
    bool meets_at(const Path &path, const Instant &at) noexcept
    {
        return meets(path, sections_[at.section] + at.share * (sections_[at.section + 1] - sections_[at.section]), true);
    }

    /// Whether limits less a margin are met at a time, s, and between it and the last one: if need be, halfway, too.
    template <class Path>
    bool meets(const Path &path, double t, bool halves) noexcept
    {
        const PathState s = tried_change_.at(t);
        // Not back, nor too fast, where an acceleration at the start fades slowly.
        if (s[1] < -1e-9 || s[1] > std::max(FASTEST_PACE, from_[1]) + 1e-9)
            return false;
        // The margin begins with the change, as an arm may be at a limit before.
        const double share = std::min((t - sections_[0]) / (sections_[1] - sections_[0]), 1.0);
        const double margin = PACE_MARGIN * share * share;
        const double e = excess(path(s), t, false, margin);
        const MotorVector<Robot> velocity = commander_.motor_velocity();
        if (e > LIMIT_TOLERANCE)
            return false;
        if (halves && known_ > 0 && is_close(e, velocity) && !meets(path, 0.5 * (before_[1][0] + t), false))
            return false;
        // Times and excesses of the last two instants, between which a parabola has its peak.
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
                // Beyond the two instants, too: a motor that reverses shortly before one has not the whole step there.
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

    /// Whether limits may be exceeded between the last instant and one of an excess and of motor velocities: near them, for
    /// how the excess changes, or where a motor might reverse twice.
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

    /// At a time after the begin, s.
    double excess(const State<Robot::joints> &state, double t, bool widens, double margin) noexcept
    {
        ++checks_;
        --left_;
        commander_.move(state, setpoint_);
        return commander_.excess_at(setpoint_, time_ + std::llround(1e9 * t), limits_, widens, margin, -1);
    }

    // Instants where limits were exceeded last, and the steps of a check before and after those.
    static constexpr int WORST = 4, FIRST = -WORST, START = FIRST - 1;

    Commander<Robot> &commander_;
    Setpoint<Robot> setpoint_;
    Limits<Robot> limits_;
    Stage stage_ = Stage::over;
    // What is sought, and its begin, ns.
    PathState from_{};
    std::int64_t time_ = 0;
    double pace_ = 1, shortest_ = 0, growth_ = 1, less_ = 0, end_ = 0, margin_ = 0, density_ = 0;
    std::array<double, 3> bounds_{};
    bool begins_ = false, steady_ = false, found_ = false, judged_ = false;
    // Setpoints checked so far, and those that are left in a cycle.
    int checks_ = 0, left_ = 0;
    std::size_t place_ = 0;
    PaceChange best_;
    // Shapes: durations tried; parts: the direction, the size of its step, and whether one of this
    // size was an improvement.
    int tried_ = 0;
    std::size_t direction_ = 0;
    double size_ = 0;
    bool improved_ = false;
    // The wait of the start whose excess has widened limits, its time and excess, and motor velocities. The candidate: its
    // sections, the instants that are checked, the next one, and those where limits were exceeded last.
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
