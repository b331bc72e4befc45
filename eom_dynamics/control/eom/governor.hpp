// SPDX-License-Identifier: Apache-2.0
// Governor of online motion: it slows down before efforts, their rates, or motors exceed their limits.
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

/// Chooses each cycle of an online motion: as planned, where the arm can brake after it with all commands within limits; else
/// slower, with a factor of acceleration and jerk for the joint whose limit is exceeded, or for all.
///
/// A brake is predicted with what the averages know already: each joint has the gentlest one that ends within its limits of
/// position. Factors are those with which a motion is within limits until it rests, and grow as soon as it would be with more;
/// while targets follow each other, and where it cannot be, those that leave a brake. What motion adds to a command at rest beyond
/// limits fits where it takes less than half of what is left.
template <class Robot>
class Governor {
  public:
    /// Share of limits that predicted commands have; where springs are damped; and where friction slides, whose transients are not
    /// predicted.
    static constexpr double MOST = 0.99, MOST_FILTERED = 0.98, MOST_SETTLED = 0.97;
    /// Shares below which commands are looked at by fours and twos, in turn, of snaps above which begins of parts are looked at, and
    /// more instants of a stop, and of commands above which there are instants between.
    static constexpr double CALM = 0.5, BUSY = 0.75, SNAPS = 0.1, SOFT = 50, CLOSE = 0.9;
    /// Least factor, and what a factor is cut by, and grows by, at once; cycles until it may grow again.
    static constexpr double LEAST = 0.05, CUT = 0.9, GROWTH = 1.25;
    static constexpr int MOST_CUTS = 24, PAUSE = 8;
    /// Commands that are predicted in a period of the motion, on average over a cycle, after which it brakes until the next one.
    static constexpr std::size_t MOST_CHECKS = 128;
    /// Time constant of growth while targets follow each other, at most that far apart, over which what is told is averaged, too, s.
    static constexpr double RECOVERS = 0.02, APART = 0.1;
    /// Parts of acceleration and jerk with which brakes are tried, the gentlest first; the last has jerks that count.
    static constexpr std::array<double, 3> BRAKES{0.05, 0.25, 1};
    /// Instants within the window of the averages, at least and at most, and from its end to that of a motion, in turns.
    static constexpr std::size_t NEAR = 8, NEAR_MOST = 16, FAR = 8, TURNS = 4;
    /// Instants within that window where commands are close to limits, at most.
    static constexpr double MOST_DENSE = 128;
    /// Instants of a stop, also with soft springs; how often the place of the largest share is refined, at most or for a stop; and what
    /// a share relative to the start may be.
    static constexpr double DENSE = 28, DENSE_SOFT = 80;
    static constexpr int MOST_REFINED = 20, REFINED = 3;
    static constexpr double NO_WORSE = 1.02;
    /// Motions that last longer, of numbers that no arm can have, are not within limits, s.
    static constexpr double LONGEST = 1e4;
    /// Time after which a motion that hardly goes on comes to rest, s.
    static constexpr double STUCK = 0.5;

    explicit Governor(const Robot &robot) noexcept : robot_(robot), limits_(robot)
    {
        factors_.fill(1);
        most_ = robot.slides() ? MOST_SETTLED : robot.filters() ? MOST_FILTERED : MOST;
        const auto finite = [](Scalar x) { return std::isfinite(x); };
        for (const Row &row : rows())
            limited_ = limited_ || std::any_of(row.high, row.high + row.count, finite);
    }

    /// Begins without a brake that is known to be possible.
    void restart() noexcept
    {
        known_ = calm_ = false;
        hot_ = {};
        shares_.fill({});
        factors_.fill(1);
        part_ = least_ = 1;
    }

    /// A cycle of so many periods begins.
    void begin_cycle(std::size_t periods) noexcept { checks_left_ = MOST_CHECKS * periods; }

    /// Takes note of a target, which is the same as before, or a new one.
    void aim(bool is_new) noexcept
    {
        stuck_ = 0;
        if (is_new)
            follows_ = std::exchange(since_, 0) < APART;
        if (part_ > 1 - LEAST)
            part_ = least_ = 1;
    }

    /// Least part since a target at full acceleration; and the limit, a row of LimitShares, of the joint or motor, that has scaled
    /// accelerations last.
    double least() const noexcept { return least_; }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t place() const noexcept { return place_; }

    /// Chooses the next cycle of a motion that is prepared, with wrench, stiffness, payload and base of the present setpoint, and
    /// with what tools are to carry.
    void choose(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        const double h = motion.joint(0).period();
        since_ += h;
        for (double &time : hot_)
            time -= h;
        for (BrakeShare &brake : shares_)
            brake = {0, brake.now > 0 ? brake.now : 1};
        const bool goes = motion.stops() && calm_ && !commander.blending(); // as planned
        if (goes || commander.parameters.limits == LimitPolicy::ignore || !limited_ || motion.rests()) {
            known_ = false;
            factors_.fill(1);
            return;
        }
        known_ ? look(motion, commander) : weigh(motion, commander);
        double planned = std::numeric_limits<double>::infinity();
        if (motion.stops() && !known_) { // one that fits as planned needs no other brake
            motion.propose(1);
            planned = densely(motion, commander);
        }
        if (planned <= 1)
            return;
        const double part = fitting(motion, commander, planned);
        part_ += (std::max(part, LEAST) - part_) * std::min(1.0, h / APART);
        least_ = std::min(least_, part_);
        stuck_ = part_ < 2 * LEAST && !motion.stops() ? stuck_ + h : 0;
        if (stuck_ > STUCK) { // the target leads to where the arm cannot rest
            stuck_ = 0;
            motion.stop();
            motion.propose(0);
        }
    }

    /// Tells the joints of a motion that begins how much room limits have for the largest jerks and snaps.
    void weigh(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        look(motion, commander);
        State<Robot::joints> state{};
        for (std::size_t i = 0; i < motion.size(); ++i) {
            state[0][i] = motion.joint(i).state()[0];
            state[3][i] = motion.joint(i).largest_jerk();
            state[4][i] = motion.joint(i).largest_snap();
        }
        take(state, setpoint_);
        limits_.compute(setpoint_, moving_);
        setpoint_.qddd = setpoint_.qdddd = {};
        limits_.compute(setpoint_, resting_);
        snaps_ = 0;
        for (const Row &row : rows())
            for (std::size_t i = 0; i < row.count; ++i)
                snaps_ = std::fmax(snaps_, std::fabs(row.moving[i] - row.resting[i]) / row.high[i]);
        for (std::size_t i = 0; i < motion.size(); ++i)
            motion.joint(i).spare(1 / snaps_);
    }

    /// Largest share of a limit of efforts and motors in commands of a stop as planned, or else of the brake that takes its place;
    /// infinite where motors cannot realise it.
    double share_of_stop(OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        look(motion, commander);
        double most = densely(motion, commander);
        if (most > 1 && limited_ && commander.parameters.limits != LimitPolicy::ignore)
            most = std::max(1.0, brake(motion, commander, most)); // it slows down as late as it can
        known_ = false;
        calm_ = most <= CLOSE && !commander.company.fades();
        return most_ * most;
    }

  private:
    using Scalar = typename Robot::Scalar;
    using Shares = LimitShares<Robot>;
    using Row = typename Shares::Row;
    using Way = JointTrajectory::Way;

    typename Shares::Rows rows() const noexcept { return limits_.rows(moving_, resting_); }

    /// Proposes a cycle that fits with the largest factors, and returns the least of these; 0 for a brake.
    double fitting(OnlineTrajectory &motion, const Commander<Robot> &commander, double planned) noexcept
    {
        const bool follows = (follows_ && since_ < APART) || motion.follows();
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
        double safe = 0; // with the brake that fits
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
        // The brake that was possible after the cycle before, if there is one.
        if (known_)
            motion.propose(0);
        else
            brake(motion, commander, planned);
        return 0;
    }

    /// Proposes a cycle of the brake with the least share of limits, which it returns, or the hardest one of those no worse than now;
    /// or of a stop as planned, whose share is known, where that is less.
    double brake(OnlineTrajectory &motion, const Commander<Robot> &commander, double planned) noexcept
    {
        double least = planned, best = 1;
        bool found = false;
        motion.brake(best);
        const double first = share(motion, commander, 1, Way::brake), start = first > 1 ? NO_WORSE * first : 0;
        for (const double gentle : BRAKES) {
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

    /// Cuts the factor of the joint whose limit was exceeded last, or of all; returns whether there was one to cut.
    bool cut(const OnlineTrajectory &motion) noexcept
    {
        const std::size_t joint = limit_ >= 2 && limit_ < 5 ? robot_.motor_joint[place_] : place_;
        const bool all = motion.together() || factors_[joint] <= LEAST;
        bool less = false;
        for (std::size_t i = 0; i < motion.size(); ++i)
            if ((all || i == joint) && factors_[i] > LEAST) {
                factors_[i] = std::max(CUT * factors_[i], LEAST);
                less = true;
            }
        return less;
    }

    /// Whether the cycle with these factors leaves one of some brakes within limits.
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

    /// Largest share of a limit in commands that do not fit, or 1, on a way that is looked at until there is more than enough: at
    /// instants over the window of the averages, until its end, and about the largest one.
    double largest(const OnlineTrajectory &motion, const Commander<Robot> &commander, Way way, double enough, double gentle = 1) noexcept
    {
        const double h = motion.joint(0).period(), window = motion.window() + h, length = motion.length(way);
        if (!(length < LONGEST))
            return std::numeric_limits<double>::infinity();
        const bool brake = way == Way::brake;
        const auto which = static_cast<std::size_t>(std::find(BRAKES.begin(), BRAKES.end(), gentle) - BRAKES.begin());
        const double before = std::max(shares_[which].before, shares_[which].now);
        const std::size_t stride = !brake || !known_ || before >= BUSY ? 1 : before >= CALM ? 2 : TURNS;
        // As dense as snaps need that change within the shorter average.
        const std::size_t near = std::clamp(static_cast<std::size_t>(2 * window / motion.shorter()), NEAR, NEAR_MOST);
        const auto count = static_cast<double>(near);
        double most = 0, latest = 0, where = 0, apart = 0, last = 0, change = 0;
        const auto on = [&](double time, double spacing) {
            const double share = this->share(motion, commander, std::max(std::lround(time / h), 1L), way);
            change = std::max(change, std::fabs(share - std::exchange(last, share)));
            most = std::max(most, share);
            if (share > latest && time > window) {
                latest = share;
                where = time;
                apart = spacing;
            }
            return most <= enough;
        };
        begin(commander);
        turn_ = (turn_ + 1) % TURNS;
        bool goes_on = on(h, h);
        for (std::size_t k = 0; k < near + FAR && goes_on; ++k) {
            if (most < BUSY && k % stride != turn_ % stride)
                continue;
            // Denser at the begin of the brake, where jerks change.
            const double share = (static_cast<double>(k + 1) - count - static_cast<double>(turn_) / TURNS) / FAR;
            goes_on = k < near ? on(window * static_cast<double>(k + 1) / count, window / count)
                               : on(window + length * share * share * share, length * share * share * 3 / FAR);
        }
        double &hot = hot_[which];
        if (brake && hot > window) { // towards the largest share
            const double step = std::max(2 * h, (hot - window) / 8);
            goes_on = goes_on && on(hot, step) && (latest <= BUSY || (on(hot - step, step) && on(hot + step, step)));
        }
        for (std::size_t i = 0; i < motion.size() && (!brake || motion.joint(0).jerk_part(gentle) * snaps_ >= SNAPS); ++i)
            motion.joint(i).visit(way, [&](double time) { goes_on = goes_on && on(time, motion.shorter()); });
        if (brake)
            shares_[which].now = most, hot = latest > CALM ? where : 0;
        if (!goes_on || most + change / 2 <= CLOSE)
            return most;
        begin(commander);
        const double step = std::max(h, window / MOST_DENSE); // the snap changes within some cycles
        for (double time = step; goes_on && time <= window + h / 2; time += step)
            goes_on = on(time, step);
        for (int k = 0; k < MOST_REFINED && goes_on && (apart /= 2) >= h; ++k) {
            const double middle = where;
            for (const double time : {middle - apart, middle + apart})
                goes_on = goes_on && on(time, apart);
        }
        return most;
    }

    /// The same of a stop as planned, at instants that are denser at its begin, and about the largest share.
    double densely(const OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        const double h = motion.joint(0).period(), length = std::max(motion.left(), h);
        double most = 0, where = 0, apart = 0;
        const auto on = [&](double time, double spacing) {
            const double share = this->share(motion, commander, std::max(std::lround(time / h), 1L), Way::plan);
            if (share > most)
                most = share, where = time, apart = spacing;
        };
        if (!(motion.left() < LONGEST))
            return std::numeric_limits<double>::infinity();
        begin(commander);
        const double count = motion.joint(0).jerk_part(1) * snaps_ < SOFT ? DENSE : DENSE_SOFT;
        for (double k = 1; k <= count; ++k)
            on(length * (k / count) * (k / count), 2 * length * k / (count * count));
        for (int k = 0; k < REFINED && (apart /= 2) >= h; ++k) {
            begin(commander);
            const double middle = where;
            on(middle - apart, apart);
            on(middle + apart, apart);
        }
        return most;
    }

    /// Notes where the motion is, and what accompanies it.
    void look(const OnlineTrajectory &motion, const Commander<Robot> &commander) noexcept
    {
        for (std::size_t i = 0; i < motion.size(); ++i)
            now_[i] = static_cast<Scalar>(motion.joint(i).state()[0]);
        beyond_ = -1;
        prepare(commander);
    }

    /// Takes wrench, stiffness, payload and base of the present setpoint.
    void prepare(const Commander<Robot> &commander) noexcept
    {
        setpoint_ = commander.output.setpoint;
        setpoint_.Pd = setpoint_.Pdd = {};
        setpoint_.deflection.fill(Robot::settled);
        setpoint_.friction_state = Robot::settled_friction;
    }

    /// Largest share of a limit in the command after so many cycles on a way, at most 1 where there is room for it.
    double share(const OnlineTrajectory &motion, const Commander<Robot> &commander, long cycles, Way way) noexcept
    {
        checks_left_ -= checks_left_ > 0;
        State<Robot::joints> state{};
        for (std::size_t i = 0; i < motion.size(); ++i) {
            const JointTrajectory::State at = motion.joint(i).predicted(cycles, way);
            for (std::size_t n = 0; n < state.size(); ++n)
                state[n][i] = at[n];
        }
        if (setpoint_.loaded)
            prepare(commander);
        const double time = static_cast<double>(cycles) * motion.joint(0).period(), now = share(state, time);
        return commander.blending() && commander.foresee(setpoint_) ? std::max(now, share(state, time)) : now;
    }

    /// Begins with the deflections of damped springs at present.
    void begin(const Commander<Robot> &commander) noexcept
    {
        if (!robot_.filters())
            return;
        since_begin_ = 0;
        before_ = commander.output.command;
        deflection_ = commander.output.setpoint.deflection;
    }

    /// The same of a state, at a time from now, s. Deflections of damped springs follow from the state before, and are those
    /// without transient where that is later.
    double share(const State<Robot::joints> &state, double time) noexcept
    {
        take(state, setpoint_);
        setpoint_.deflection.fill(Robot::settled);
        if (robot_.filters() && time > since_begin_) {
            robot_.inverse_dynamics(setpoint_, moving_.command);
            const std::array<Scalar, 1> step{static_cast<Scalar>(time - since_begin_)};
            robot_.filtered(deflection_, before_, moving_.command, step, setpoint_.deflection);
            deflection_ = setpoint_.deflection;
            before_ = moving_.command;
            since_begin_ = time;
        }
        limits_.compute(setpoint_, moving_);
        if (!finite(moving_.command)) // springs are slack, or numbers too large
            return std::numeric_limits<double>::infinity();
        const double most = Shares::largest(rows()) / most_;
        if (!(most > 1))
            return most;
        setpoint_.qd = setpoint_.qdd = setpoint_.qddd = setpoint_.qdddd = {};
        setpoint_.deflection.fill(Robot::settled);
        limits_.compute(setpoint_, resting_);
        return has_room() ? 1 : most;
    }

    /// Whether what motion adds to a command at rest is within limits, or takes less than half of what is left at rest, and rest is
    /// not further beyond limits than at present; else the limit and place are kept.
    bool has_room() noexcept
    {
        double least = 1;
        const auto rows = this->rows();
        for (std::size_t k = 0; k < rows.size(); ++k)
            for (std::size_t i = 0; i < rows[k].count; ++i) {
                const double x = rows[k].moving[i], rest = rows[k].resting[i], limit = (x > 0 ? rows[k].high : rows[k].low)[i];
                const double most = std::max(most_, (rest / limit + 1) / 2);
                if (!(x / limit > most))
                    continue;
                const double share = rest / limit > 1 && rest / limit > beyond() ? 0 : (most * limit - rest) / (x - rest);
                if (share < least) {
                    least = share;
                    place_ = i;
                    limit_ = k;
                }
            }
        return least == 1;
    }

    /// Largest share of a limit that rest takes at present.
    double beyond() noexcept
    {
        if (beyond_ < 0) {
            typename Shares::Outcome rest;
            setpoint_.q = now_;
            limits_.compute(setpoint_, rest);
            beyond_ = Shares::largest(limits_.rows(rest, rest));
        }
        return beyond_;
    }

    const Robot &robot_;
    const Shares limits_;
    bool limited_ = false;
    double most_ = MOST;
    // When the largest shares of limits were over brakes, s from now.
    std::array<double, BRAKES.size()> hot_{};
    // Largest share of a limit of snaps.
    double snaps_ = 0;
    /// Largest share of limits over a brake in this cycle, 0 where it was not looked at, and in the one before, then 1.
    struct BrakeShare {
        double now = 0, before = 1;
    };
    std::array<BrakeShare, BRAKES.size()> shares_;
    // Whether a brake is known to be possible, and whether a stop as planned is well within limits; what is looked at next.
    bool known_ = false, calm_ = false;
    double gentle_ = 1; // brake looked at last
    std::size_t turn_ = 0;
    // Of the command predicted before: its time from now, s, efforts and deflections of damped springs.
    double since_begin_ = 0;
    Command<Robot> before_;
    JointVector<Robot> deflection_{};
    // Positions at present, and the largest share of a limit at rest there, < 0 where it is unknown.
    JointVector<Robot> now_{};
    double beyond_ = -1;
    // Factors of the joints, and cycles without growth; whether targets follow each other, and the time since the last, s.
    std::array<double, Robot::joints> factors_{};
    int paused_ = 0;
    std::size_t checks_left_ = 0; // in this cycle
    bool follows_ = false;
    double since_ = 1;
    // The least factor, averaged, and the least of these; place and limit that it is for.
    double part_ = 1, least_ = 1, stuck_ = 0;
    std::size_t place_ = 0, limit_ = 0;
    Setpoint<Robot> setpoint_;
    typename Shares::Outcome moving_, resting_;
};

} // namespace eom

#endif
