// SPDX-License-Identifier: Apache-2.0
// Governor of online motion: slows down before efforts, effort rates or motors exceed their limits.
#ifndef EOM_GOVERNOR_HPP
#define EOM_GOVERNOR_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "commander.hpp"
#include "limit_shares.hpp"
#include "online_trajectory.hpp"

namespace eom {

/// Chooses each cycle of an online motion so that the arm can still stop with all commands within limits. If the planned cycle does
/// not allow this, acceleration and jerk are scaled down for the joint at its limit, or for all joints.
///
/// Each cycle has a backup stop, predicted from the present averages. Its joints use the smallest acceleration fraction that stops
/// them within their position limits. Scaling factors keep the motion within limits until it rests, and grow as soon as larger
/// factors do so. If that is impossible, or while targets follow each other, they keep only the backup stop within limits. The
/// backup stop may pass the target only if the plan is within limits or targets follow each other.
template <class Robot>
class Governor {
  public:
    /// Sampling of a backup stop: every fourth instant below CALM, every second below BUSY, and instants in between above CLOSE.
    static constexpr double CALM = 0.5, BUSY = 0.75, CLOSE = 0.9;
    /// Snap utilizations: above SNAPS, each piece of a backup stop is checked; above SOFT, a planned stop has more instants.
    static constexpr double SNAPS = 0.1, SOFT = 50;
    /// Minimum factor, reduction and growth per step; maximum number of reductions, and cycles between growths.
    static constexpr double LEAST = 0.05, CUT = 0.9, GROWTH = 1.25;
    static constexpr int MOST_CUTS = 24, PAUSE = 8;
    /// Maximum predicted commands per motion period, on average over a cycle; beyond, the motion continues its backup stop.
    static constexpr std::size_t MOST_CHECKS = 128;
    /// Time constant of growth while targets follow each other, and maximum time between these targets, s.
    static constexpr double RECOVERS = 0.02, APART = 0.1;
    /// Acceleration and jerk fractions of backup stops, in the order of checks.
    static constexpr std::array<double, 3> BRAKES{0.05, 0.25, 1};
    /// Minimum and maximum instants within the averaging window, instants after it, and cycles until all instants are checked.
    static constexpr std::size_t NEAR = 8, NEAR_MOST = 16, FAR = 8, TURNS = 4;
    /// Maximum number of instants within the window if commands are close to limits.
    static constexpr double MOST_DENSE = 128;
    /// Instants of a planned stop with stiff and with soft springs, and utilization margin between these instants.
    static constexpr double DENSE = 28, DENSE_SOFT = 56, BETWEEN = 0.02;
    /// Maximum number of bisections around the peak utilization of a motion, and of a planned stop.
    static constexpr int MOST_REFINED = 20, REFINED = 3;
    /// Backup stops up to this multiple of the utilization at their start count as equal if the start is beyond limits.
    static constexpr double NO_WORSE = 1.02;
    /// Maximum duration of a motion, s; a longer motion counts as beyond limits.
    static constexpr double LONGEST = 1e4;
    /// Time near the minimum factor after which the motion stops, s.
    static constexpr double STUCK = 0.5;

    explicit Governor(const Robot &robot) noexcept : robot_(robot), shares_(robot) { factors_.fill(1); }

    LimitShares<Robot> &shares() noexcept { return shares_; }

    /// Reset backup stops, factors and targets.
    void restart() noexcept
    {
        known_ = calm_ = false;
        hot_ = {};
        brakes_.fill({});
        factors_.fill(1);
        part_ = least_ = 1;
        is_new_ = true;
        since_ = APART;
    }

    /// Start a cycle of `periods` motion periods.
    void begin_cycle(std::size_t periods) noexcept { checks_left_ = MOST_CHECKS * periods; }

    /// Process a target. It follows the last target if it `is_new`, arrives within APART, and the arm is not at rest (`rests`).
    void aim(bool is_new, bool rests) noexcept
    {
        stuck_ = 0;
        if (is_new)
            follows_ = std::exchange(since_, 0) < APART && !rests;
        is_new_ = is_new_ || is_new;
        if (part_ > 1 - LEAST)
            part_ = least_ = 1;
    }

    /// Smallest averaged factor since the last target at full acceleration.
    double least() const noexcept { return least_; }
    std::size_t limit() const noexcept { return shares_.limit(); } ///< row of LimitShares of the last exceeded limit
    std::size_t place() const noexcept { return shares_.place(); } ///< joint or motor of limit()

    /// Choose the next cycle of the prepared `motion`. Predictions use the auxiliary inputs and payload of the present setpoint,
    /// and during a payload change also the final payload.
    void choose(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        const double h = motion.joint(0).period();
        since_ += h;
        for (double &time : hot_)
            time -= h;
        for (BrakeShare &brake : brakes_)
            brake = {0, brake.now > 0 ? brake.now : 1};
        const bool goes = motion.stops() && calm_ && !commander.blending(); // planned stop within limits
        if (goes || commander.parameters.limits == LimitPolicy::ignore || !shares_.limited() || motion.rests()) {
            known_ = false;
            factors_.fill(1);
            return;
        }
        known_ ? shares_.look(motion, commander) : weigh(motion, commander);
        double planned = std::numeric_limits<double>::infinity();
        if (motion.stops() && !known_) { // a planned stop within limits needs no backup stop
            motion.propose(1);
            planned = densely(motion, commander);
        }
        if (planned <= 1)
            return;
        const double part = fitting(motion, commander, planned);
        fits_ = fits_ && part == 1;
        part_ += (std::max(part, LEAST) - part_) * std::min(1.0, h / APART);
        least_ = std::min(least_, part_);
        stuck_ = part_ < 2 * LEAST && !motion.stops() ? stuck_ + h : 0;
        if (stuck_ > STUCK) { // the arm cannot rest at positions near the target
            stuck_ = 0;
            motion.stop();
            motion.propose(0);
        }
    }

    /// Set the jerk room of each joint at the start of a motion: the reserve of the limits for the largest jerk and snap.
    void weigh(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        shares_.look(motion, commander);
        snaps_ = shares_.of_snaps(motion);
        for (std::size_t i = 0; i < motion.size(); ++i)
            motion.joint(i).spare(1 / snaps_);
    }

    /// Returns the largest utilization of a limit in the planned stop, or infinity if motors cannot realize it. Beyond limits, the
    /// best backup stop counts instead, unless `as_planned`.
    double share_of_stop(OnlineTrajectory &motion, const Commander<Robot> &commander, bool as_planned = false) noexcept
    {
        shares_.look(motion, commander);
        double most = densely(motion, commander), swiftest = this->swiftest(motion);
        if (most > 1 && !as_planned && shares_.limited() && commander.parameters.limits != LimitPolicy::ignore) {
            most = std::max(1.0, brake(motion, commander, most));
            swift_ = {};
            dense(std::min(LONGEST, motion.left()), DENSE, 0, [&](double time, double spacing) { accelerates(motion, time, spacing); });
            swiftest = std::max(swiftest, this->swiftest(motion));
        }
        known_ = false;
        calm_ = most <= CLOSE && !shares_.fades(commander);
        const double share = std::max(shares_.most() * most, swiftest), between = motion.arrived() ? 0 : BETWEEN;
        return share > 1 + LIMIT_TOLERANCE ? share + between : std::max(share, std::min(share + between, 1.0));
    }

  private:
    using Way = JointTrajectory::Way;

    /// Propose a cycle within limits with the largest factors. Returns the smallest of the factors, or 0 for a backup stop.
    double fitting(OnlineTrajectory &motion, const Commander<Robot> &commander, double planned) noexcept
    {
        const bool follows = (follows_ && since_ < APART) || motion.follows();
        if (!follows && std::exchange(is_new_, false)) {
            motion.propose(1);
            fits_ = largest(motion, commander, Way::plan, 1) <= CLOSE; // reserve for commands between instants
        }
        if (follows || fits_) {
            motion.allow_overshoot(true);
        } else if (known_ && motion.stops_late()) { // the new target is closer than the last target
            if (checks_left_ > 0 && proposed_fits(motion, commander) && fits(motion, commander, Way::plan))
                return least_factor();
            motion.allow_overshoot(false);
        }
        const auto before = factors_;
        const auto try_all = [&](double growth) {
            for (std::size_t i = 0; i < motion.size(); ++i)
                factors_[i] = std::min(1.0, before[i] * growth);
            return proposed_fits(motion, commander) && (follows || fits(motion, commander, Way::plan));
        };
        if (least_factor() < 1 && checks_left_ > 0 && ++paused_ > (follows ? 0 : PAUSE)) {
            paused_ = 0;
            if (follows ? try_all(1 + motion.joint(0).period() / RECOVERS) : try_all(1 / LEAST) || try_all(GROWTH))
                return least_factor();
            factors_ = before;
            paused_ = -PAUSE;
        }
        const bool looks = checks_left_ > 0 || !known_;
        if (looks && proposed_fits(motion, commander))
            return least_factor();
        double safe = 0; // acceleration fraction of the first feasible backup stop
        auto kept = factors_;
        for (int k = 0; looks && k < MOST_CUTS && cut(motion) && checks_left_ > 0; ++k) {
            const bool fit = proposed_fits(motion, commander);
            if (fit && safe == 0)
                kept = factors_, safe = gentle_;
            if (fit && (follows || fits(motion, commander, Way::plan)))
                return least_factor();
        }
        if (safe > 0) {
            factors_ = kept;
            propose(motion);
            motion.escape(safe);
            return least_factor();
        }
        // Continue the backup stop of the last cycle, if known.
        if (known_)
            motion.propose(0);
        else
            brake(motion, commander, planned);
        return 0;
    }

    /// Propose a cycle of the planned stop, with utilization `planned`, or of a backup stop with less utilization. Returns the
    /// smallest utilization. Of equal backup stops, the hardest is proposed.
    double brake(OnlineTrajectory &motion, const Commander<Robot> &commander, double planned) noexcept
    {
        double least = planned, best = 1;
        bool found = false;
        motion.brake(best);
        const double first = share(motion, commander, 1, Way::brake), start = first > 1 ? NO_WORSE * first : 0;
        for (const double gentle : BRAKES) {
            if (motion.stops() && least <= start)
                break; // a stop cannot improve on its start
            motion.brake(gentle);
            const double most = std::max(largest(motion, commander, Way::brake, std::max(least, start), gentle), start);
            if (most < least || (most == least && !motion.stops()))
                least = most, best = gentle, found = true;
        }
        found ? motion.brake(best) : motion.propose(1);
        known_ = found;
        return least;
    }

    double least_factor() const noexcept { return *std::min_element(factors_.begin(), factors_.end()); }

    /// Reduce the factor of the joint at the last exceeded limit, or all factors. Returns false if they are minimal.
    bool cut(const OnlineTrajectory &motion) noexcept
    {
        const std::size_t joint = limit() >= 2 && limit() < 5 ? robot_.motor_joint[place()] : place();
        const bool all = motion.follows_path() || factors_[joint] <= LEAST;
        bool less = false;
        for (std::size_t i = 0; i < motion.size(); ++i)
            if ((all || i == joint) && factors_[i] > LEAST) {
                factors_[i] = std::max(CUT * factors_[i], LEAST);
                less = true;
            }
        return less;
    }

    /// Propose a cycle with the present factors. Returns true if a backup stop after it is within limits.
    bool proposed_fits(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        propose(motion);
        for (const double gentle : BRAKES) {
            motion.escape(gentle_ = gentle);
            if (fits(motion, commander, Way::brake, gentle))
                return known_ = true;
        }
        return false;
    }
    void propose(OnlineTrajectory &motion) const noexcept
    {
        for (std::size_t i = 0; i < motion.size(); ++i)
            motion.joint(i).propose(factors_[i], BRAKES[0]);
    }
    bool fits(const OnlineTrajectory &motion, const Commander<Robot> &commander, Way way, double gentle = 1) noexcept
    {
        return largest(motion, commander, way, 1, gentle) <= 1;
    }

    /// Returns the largest utilization on `way`, or the first above `enough`; at most 1 if all commands fit. `gentle` is the
    /// acceleration fraction of a backup stop. Instants lie within the averaging window, after it, at snap peaks, and around the
    /// peak utilization.
    double largest(const OnlineTrajectory &motion, const Commander<Robot> &commander, Way way, double enough, double gentle = 1) noexcept
    {
        const double h = motion.joint(0).period(), window = motion.window() + h, length = motion.length(way);
        if (!(length < LONGEST))
            return std::numeric_limits<double>::infinity();
        const bool brake = way == Way::brake;
        const auto which = static_cast<std::size_t>(std::find(BRAKES.begin(), BRAKES.end(), gentle) - BRAKES.begin());
        // Last utilization plus its largest change by snap within one cycle.
        const double before = std::max(brakes_[which].before, brakes_[which].now) + snaps_ * h / motion.shorter();
        const std::size_t stride = !brake || !known_ || before >= BUSY ? 1 : before >= CALM ? 2 : TURNS;
        // Two instants per shorter average, because the snap changes within it.
        const std::size_t near = std::clamp(static_cast<std::size_t>(2 * window / motion.shorter()), NEAR, NEAR_MOST);
        const auto count = static_cast<double>(near);
        double most = 0, latest = 0, where = 0, apart = 0, last = 0, change = 0;
        const auto on = [&](double time, double spacing) {
            const double share = this->share(motion, commander, std::max(in_cycles(time, h), 1L), way);
            change = std::max(change, std::fabs(share - std::exchange(last, share)));
            most = std::max(most, share);
            if (share > latest && time > window) {
                latest = share;
                where = time;
                apart = spacing;
            }
            return most <= enough;
        };
        shares_.begin(commander);
        turn_ = (turn_ + 1) % TURNS;
        bool goes_on = on(h, h);
        for (std::size_t k = 0; k < near + FAR && goes_on; ++k) {
            if (most < BUSY && k % stride != turn_ % stride)
                continue;
            // Denser at the start of the stop, because the jerk changes there.
            const double share = (static_cast<double>(k + 1) - count - static_cast<double>(turn_) / TURNS) / FAR;
            goes_on = k < near ? on(window * static_cast<double>(k + 1) / count, window / count)
                               : on(window + length * share * share * share, length * share * share * 3 / FAR);
        }
        double &hot = hot_[which];
        if (brake && hot > window) { // around the last peak
            const double step = std::max(2 * h, (hot - window) / 8);
            goes_on = goes_on && on(hot, step) && (latest <= BUSY || (on(hot - step, step) && on(hot + step, step)));
        }
        for (std::size_t i = 0; i < motion.size(); ++i)
            if (!brake || motion.joint(i).brake_jerk() * snaps_ >= SNAPS)
                motion.joint(i).visit(way, [&](double time) { goes_on = goes_on && on(time, motion.shorter()); });
        if (brake)
            brakes_[which].now = most, hot = latest > CALM ? where : 0;
        if (!goes_on || most + change / 2 <= CLOSE)
            return most;
        shares_.begin(commander);
        const double step = std::max(h, window / MOST_DENSE); // snap changes within a few cycles
        for (double time = step; goes_on && time <= window + h / 2; time += step)
            goes_on = on(time, step);
        for (int k = 0; k < MOST_REFINED && goes_on && (apart /= 2) >= h; ++k) {
            const double middle = where;
            for (const double time : {middle - apart, middle + apart})
                goes_on = goes_on && on(time, apart);
        }
        return most;
    }

    /// Returns the largest utilization in the planned stop. Instants are denser at its start, because the snap of soft springs
    /// changes there, and around the peak.
    double densely(const OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        const double h = motion.joint(0).period(), length = std::max(motion.left(), h), window = motion.window(), few = motion.shorter();
        Peak peak;
        swift_ = {};
        if (!(motion.left() < LONGEST))
            return std::numeric_limits<double>::infinity();
        const auto on = [&](double time, double spacing) {
            peak.take(share(motion, commander, in_cycles(time, h), Way::plan), time, spacing);
            swift_.take(acceleration(motion), time, spacing);
        };
        const bool soft = motion.joint(0).jerk_part(1) * snaps_ >= SOFT;
        const double count = soft ? DENSE_SOFT : DENSE;
        shares_.begin(commander);
        dense(length, count, 0, on);
        if (soft) {
            shares_.begin(commander);
            for (const double time : {few, window - few, window})
                on(time, few);
            for (std::size_t i = 0; i < motion.size(); ++i)
                motion.joint(i).visit(Way::plan, [&](double time) { on(time, few); });
        }
        shares_.begin(commander);
        if (peak.most > BUSY && peak.most <= 1)
            dense(length, count, 0.5, on);
        peak.refine(h, [&](double time, double spacing) {
            shares_.begin(commander);
            on(time, spacing);
        });
        return peak.most;
    }

    /// Returns the largest utilization of acceleration limits in the last prediction.
    double acceleration(const OnlineTrajectory &motion) const noexcept
    {
        double most = 0;
        for (std::size_t i = 0; i < motion.size(); ++i)
            most = std::max(most, std::fabs(shares_.state()[2][i]) / robot_.upper.qdd[i]);
        return most;
    }
    double swiftest(const OnlineTrajectory &motion) noexcept
    {
        swift_.refine(motion.joint(0).period(), [&](double time, double spacing) { accelerates(motion, time, spacing); });
        double most = swift_.most;
        for (std::size_t i = 0; i < motion.size(); ++i)
            most = std::max(most, motion.joint(i).fastest() / robot_.upper.qd[i]);
        return most;
    }
    void accelerates(const OnlineTrajectory &motion, double time, double spacing) noexcept
    {
        shares_.predict(motion, in_cycles(time, motion.joint(0).period()), Way::plan);
        swift_.take(acceleration(motion), time, spacing);
    }

    /// Largest utilization so far, its time, and the spacing of instants there, s.
    struct Peak {
        double most = 0, where = 0, apart = 0;

        void take(double share, double time, double spacing) noexcept
        {
            if (share > most)
                most = share, where = time, apart = spacing;
        }
        template <class F>
        void refine(double least, const F &on) noexcept
        {
            for (int k = 0; k < REFINED && apart > least; ++k) {
                apart = std::max(apart / 2, least);
                const double middle = where, step = apart;
                on(middle - step, step);
                on(middle + step, step);
            }
        }
    };
    /// Call `on` at `count` instants within `length` s, denser at the start; with `first` 0.5, halfway between them.
    template <class F>
    static void dense(double length, double count, double first, const F &on) noexcept
    {
        for (double k = first; k <= count; ++k) {
            const double x = k / count;
            on(length * x * x * (1 + x - x * x), length * x * (2 + 3 * x - 4 * x * x) / count);
        }
    }

    static long in_cycles(double time, double period) noexcept { return std::max(std::lround(time / period), 0L); }

    double share(const OnlineTrajectory &motion, const Commander<Robot> &commander, long cycles, Way way) noexcept
    {
        checks_left_ -= checks_left_ > 0;
        return shares_.of(motion, commander, cycles, way);
    }

    const Robot &robot_;
    LimitShares<Robot> shares_;
    // Times of the peak utilization of backup stops, s from now.
    std::array<double, BRAKES.size()> hot_{};
    // Utilization by the largest jerk and snap.
    double snaps_ = 0;
    /// Utilization of a backup stop in this cycle, 0 if unchecked, and in the last cycle, 1 if unchecked.
    struct BrakeShare {
        double now = 0, before = 1;
    };
    std::array<BrakeShare, BRAKES.size()> brakes_;
    // A feasible backup stop is known; the planned stop is well within limits.
    bool known_ = false, calm_ = false;
    double gentle_ = 1; // acceleration fraction of the last checked stop
    Peak swift_; // peak utilization of acceleration limits
    std::size_t turn_ = 0; // offset of the checked instants
    // Factors of the joints, and cycles without growth.
    std::array<double, Robot::joints> factors_{};
    int paused_ = 0;
    std::size_t checks_left_ = 0; // remaining predictions of this cycle
    // Targets follow each other; the plan to a new target is unchecked; the plan is within limits and not slowed down.
    bool follows_ = false, is_new_ = false, fits_ = false;
    double since_ = 1; // time since the last target, s
    // Averaged smallest factor, minimum of this average, and time near the minimum factor, s.
    double part_ = 1, least_ = 1, stuck_ = 0;
};

} // namespace eom

#endif
