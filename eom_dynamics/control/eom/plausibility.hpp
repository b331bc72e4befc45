// SPDX-License-Identifier: Apache-2.0
// Stream checks of setpoints: stamps, jumps, and consistency of fields.
#ifndef EOM_PLAUSIBILITY_HPP
#define EOM_PLAUSIBILITY_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "joint_trajectory.hpp"
#include "loop_parameters.hpp"

namespace eom {

/// Check that stamps increase from setpoint to setpoint.
///
/// After a stamp that goes back, later stamps may also advance from there, so that a restarted clock counts once.
class StampCheck {
  public:
    void answered(std::int64_t stamp) noexcept
    {
        answered_ = stamp;
        back_ = 0;
    }

    /// Returns true if `stamp`, ns, repeats or goes back; 0: no stamp.
    bool finds(std::int64_t stamp, Finding &found) noexcept
    {
        if (answered_ == 0 || stamp == 0 || stamp > answered_)
            return false;
        const std::int64_t back = back_;
        back_ = stamp;
        if (back != 0 && stamp > back)
            return false;
        found = {};
        found.check = Check::stamps;
        found.time = seconds(answered_ - stamp);
        return true;
    }

  private:
    std::int64_t answered_ = 0, back_ = 0;
};

/// Track how far stamps are ahead of their arrival.
///
/// A stamp is early if its lead exceeds both zero and the largest regular lead of the last second by more than
/// LONGEST_RESPONSE_STEP. A setpoint that follows late arrivals is therefore not early. Several early stamps in a row with similar
/// leads are regular: the sender's clock is ahead, and the earlier setpoints were late.
class StampLeads {
  public:
    StampLeads() noexcept { greatest_.fill(UNKNOWN); }

    /// Returns true if `lead`, ns, is early at loop time `time`, ns. `arrives` is false for a queued setpoint.
    bool is_early(std::int64_t lead, std::int64_t time, bool arrives) noexcept
    {
        const std::int64_t part = time / PART - (time % PART < 0);
        for (last_ = part < last_ ? part - COUNT : std::max(last_, part - COUNT); last_ < part;)
            of_part(++last_) = UNKNOWN;
        const std::int64_t greatest = *std::max_element(greatest_.begin(), greatest_.end());
        std::int64_t &present = of_part(part);
        const std::int64_t ahead = std::max<std::int64_t>(greatest, 0);
        if (greatest == UNKNOWN || lead - ahead <= LONGEST_RESPONSE_STEP) {
            present = std::max(present, lead);
            early_ = 0;
            return false;
        }
        if (!arrives)
            return true;
        const bool alike = early_ > 0 && std::abs(lead - leads_) <= LONGEST_RESPONSE_STEP;
        leads_ = alike ? std::min(leads_, lead) : lead;
        early_ = alike ? early_ + 1 : 1;
        if (early_ < IN_A_ROW)
            return true;
        early_ = 0;
        greatest_.fill(UNKNOWN);
        present = lead;
        return false;
    }

  private:
    static constexpr int IN_A_ROW = 3;
    static constexpr std::int64_t PART = 100'000'000, COUNT = 11, UNKNOWN = std::numeric_limits<std::int64_t>::min();

    /// Greatest lead of a part of a second; parts before time 0 have negative numbers.
    std::int64_t &of_part(std::int64_t part) noexcept
    {
        return greatest_[static_cast<std::size_t>((part % COUNT + COUNT) % COUNT)];
    }

    // Largest regular lead in each part of the last second, ns, and the number of the last part.
    std::array<std::int64_t, COUNT> greatest_;
    std::int64_t last_ = 0;
    // Number of early setpoints in a row with similar leads, and the smallest of these leads, ns.
    int early_ = 0;
    std::int64_t leads_ = 0;
};

/// Compare the changes D of each field with the integrals S of the next field by the trapezoidal rule, over windows of setpoints.
///
/// A joint is inconsistent if sum (D - S)^2 > CONSISTENCY_TOLERANCE^2 max(sum D^2, sum S^2). The sums are updated with each
/// setpoint, so that no cycle sums a whole window.
template <std::size_t n>
class ConsistencyCheck {
  public:
    /// Start a new window with the next setpoint.
    void restart() noexcept
    {
        stamp_ = 0;
        doubt_ = {};
    }

    /// Returns the finding of the last window, which a setpoint with `stamp`, ns, may complete.
    const Finding &judge(std::int64_t stamp, const State<n> &x, std::size_t joints) noexcept
    {
        if (!completes(stamp))
            return doubt_;
        verdict_ = verdict(seconds(stamp - stamp_), x, joints);
        return verdict_;
    }

    /// Add the setpoint of the last judge(). A new window starts if stamps jump or do not advance.
    void add(std::int64_t stamp, const State<n> &x) noexcept
    {
        const bool complete = completes(stamp);
        if (complete)
            doubt_ = verdict_;
        if (complete || !follows(stamp)) {
            steps_ = 0;
            sums_ = {};
            scale_ = 1;
        } else {
            ++steps_;
        }
        const double scale = scale_with(x), dt = seconds(stamp - stamp_);
        for (std::size_t k = 0; k < sums_.size(); ++k) {
            if (steps_ > 0)
                sums_[k] = sums_with(k, dt, x, scale);
            for (std::size_t i = 0; steps_ == 0 && i < n; ++i)
                sums_[k].largest[i] = std::fabs(x[k][i]);
        }
        scale_ = scale;
        last_ = x;
        stamp_ = stamp;
    }

  private:
    // Numbers above the first value are scaled by the second, so that squares do not overflow.
    static constexpr double HUGE_NUMBER = 0x1p500, SMALL_SCALE = 0x1p-600;
    static constexpr double CONSISTENCY_TOLERANCE = @consistency_tolerance@;
    static constexpr int CONSISTENCY_WINDOW = @consistency_window@;

    /// Sums of one field, by joint.
    struct Sums {
        std::array<double, n> change{}, integral{}, difference{}, largest{};
    };

    bool follows(std::int64_t stamp) const noexcept
    {
        return stamp_ != 0 && stamp > stamp_ && stamp - stamp_ <= LONGEST_GAP;
    }

    bool completes(std::int64_t stamp) const noexcept { return steps_ + 1 >= CONSISTENCY_WINDOW && follows(stamp); }

    double scale_with(const State<n> &x) const noexcept
    {
        return bounded(HUGE_NUMBER, x[0], x[1], x[2], x[3], x[4]) ? scale_ : SMALL_SCALE;
    }

    /// Sums of field k with one more step.
    Sums sums_with(std::size_t k, double dt, const State<n> &x, double scale) const noexcept
    {
        Sums sums = sums_[k];
        const double rescaled = scale / scale_ * (scale / scale_);
        for (std::size_t i = 0; i < n; ++i) {
            const double change = scale * x[k][i] - scale * last_[k][i];
            const double integral = 0.5 * dt * (scale * x[k + 1][i] + scale * last_[k + 1][i]);
            const double difference = change - integral;
            sums.change[i] = rescaled * sums.change[i] + change * change;
            sums.integral[i] = rescaled * sums.integral[i] + integral * integral;
            sums.difference[i] = rescaled * sums.difference[i] + difference * difference;
            sums.largest[i] = std::max(sums.largest[i], std::fabs(x[k][i]));
        }
        return sums;
    }

    /// Returns the worst joint of the lowest inconsistent derivative, because it causes errors in the next derivatives.
    Finding verdict(double dt, const State<n> &x, std::size_t joints) const noexcept
    {
        const double allowed = CONSISTENCY_TOLERANCE * CONSISTENCY_TOLERANCE, scale = scale_with(x);
        Finding found;
        std::array<bool, n> wrong{};
        double worst = 0;
        for (std::size_t k = 0; k < sums_.size(); ++k) {
            const Sums sums = sums_with(k, dt, x, scale);
            for (std::size_t i = 0; i < joints; ++i) {
                const double changes = sums.change[i], integrals = sums.integral[i], differences = sums.difference[i];
                const double size = std::max(changes, integrals);
                // Smaller changes than the resolution of single precision: the field is at rest.
                const double rest = @field_at_rest@ * scale * std::max(1.0, sums.largest[i]);
                if (!(differences > allowed * size && size > CONSISTENCY_WINDOW * rest * rest))
                    continue;
                if (!wrong[i])
                    ++found.joints;
                wrong[i] = true;
                const double miss = differences / size;
                if (found.check == Check::none || (found.field == k + 1 && miss > worst)) {
                    worst = miss;
                    // Least-squares factor from sum D S.
                    const double product = 0.5 * (changes + integrals - differences);
                    const double factor = changes > 0 ? product / changes : 0, fitted = factor * product;
                    const bool fits = integrals - fitted <= allowed * std::max(integrals, fitted);
                    found.check = Check::consistency;
                    found.field = k + 1;
                    found.joint = i;
                    found.difference = std::sqrt(miss);
                    found.factor = fits ? factor : 0;
                }
            }
        }
        return found;
    }

    std::int64_t stamp_ = 0;
    int steps_ = 0;
    double scale_ = 1;
    State<n> last_{};
    // Sums for velocity, acceleration, jerk and snap.
    std::array<Sums, 4> sums_{};
    Finding doubt_, verdict_;
};

/// All stream checks, by the settings of a loop.
template <class Robot>
class PlausibilityChecks {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    explicit PlausibilityChecks(const Robot &robot) noexcept : robot_(robot), rates_(robot.jump_rate) {}

    void configure(const LoopSettings &settings) noexcept { settings_ = settings; }

    /// Use velocity limits of targets for joints without limits of their own or of their motors.
    void limit(const std::vector<MotionLimits> &limits) noexcept
    {
        for (std::size_t i = 0; i < robot_.joint_count() && i < limits.size(); ++i)
            rates_[i] = std::isfinite(robot_.jump_rate[i]) ? robot_.jump_rate[i] : static_cast<Scalar>(limits[i].velocity);
    }

    /// Clear all setpoints at the start of a new stream.
    void restart() noexcept
    {
        stamps_ = {};
        consistency_.restart();
        answered_ = jumped_ = 0;
        begun_ = rests_ = false;
    }

    /// Check a finite setpoint with `stamp`, ns (0: no stamp), count findings, and return the reason of a refusal.
    ///
    /// `since` is the time since the last setpoint, ns, for stamps that go back. `is_near`: the position is within start_tolerance.
    Refusal judge(std::int64_t stamp, std::int64_t since, const Setpoint<Robot> &x, bool is_near, LoopCounts &counts,
                  Finding &found) noexcept
    {
        const State<n> state = state_of(x);
        const auto refuses = [](std::uint64_t &count, CheckPolicy policy) {
            ++count;
            return policy == CheckPolicy::refuse;
        };
        if (checks(settings_.stamp_check) && stamps_.finds(stamp, found) &&
            refuses(counts.suspect_stamps, settings_.stamp_check))
            return Refusal::suspect_stamp;
        if (stamp == 0 && checks(settings_.jump_check)) {
            ++counts.without_stamp;
            found = {Check::without_stamp};
        }
        if (checks(settings_.jump_check) && begun_) {
            const bool beyond = jumps(stamp, since, state, is_near, found);
            if (beyond)
                found.positions = std::all_of(x.qd.begin(), x.qd.end(), [](Scalar rate) { return rate == 0; });
            if (beyond && !is_shifted(stamp, state)) {
                jumped_ = stamp;
                away_ = state;
                jump_ = found;
            }
            if ((beyond || follows_jump(stamp, state, found)) && refuses(counts.jumps, settings_.jump_check))
                return Refusal::jump;
        }
        if (stamp == 0)
            return Refusal::none;
        if (const Finding &verdict = consistency_.judge(stamp, state, robot_.joint_count()); verdict.check != Check::none) {
            found = verdict;
            ++counts.inconsistent;
        }
        return Refusal::none;
    }

    /// Record an accepted setpoint, which later setpoints are compared with.
    void answered(std::int64_t stamp, const Setpoint<Robot> &x) noexcept
    {
        answered_ = stamp;
        jumped_ = 0;
        before_ = state_of(x);
        begun_ = true;
        rests_ = false;
        if (stamp == 0)
            return;
        stamps_.answered(stamp);
        consistency_.add(stamp, before_);
    }

    /// Record a command without a setpoint; the next setpoint must not jump from it.
    void moved(const Setpoint<Robot> &x) noexcept
    {
        jumped_ = 0;
        before_ = state_of(x);
        begun_ = rests_ = true;
    }

  private:
    static bool checks(CheckPolicy policy) noexcept { return policy != CheckPolicy::ignore; }

    /// Returns true if the step from the last state exceeds the limits of velocity, acceleration or jerk, or if the position
    /// differs from its prediction by more than the acceleration limit allows.
    ///
    /// The time since the last state counts up to LONGEST_GAP: drives hold the last command, so a step after a pause remains a step.
    /// After a pause, the prediction may use any time up to LONGEST_GAP. An arm at rest starts a new stream. For a held arm, and if
    /// the time is unknown (no stamps, or after a motion without setpoints), positions are checked against start_tolerance.
    bool jumps(std::int64_t stamp, std::int64_t since, const State<n> &x, bool is_near, Finding &found) const noexcept
    {
        const bool known = stamp != 0 && answered_ != 0;
        const double longest = is_near || rests_ ? @resuming@ : static_cast<double>(LONGEST_GAP) / 1e9;
        const double dt = known ? seconds(stamp > answered_ ? stamp - answered_ : since) : longest;
        const double time = std::min(dt, longest) + @stamp_jitter@;
        const JointVector<Robot> *const limits[] = {&rates_, &robot_.upper.qdd, &robot_.upper.qddd};
        const bool leads = known && stamp > answered_ && stamp - answered_ <= LONGEST_GAP;
        double worst = 0;
        std::array<double, n> step, most;
        const auto compare = [&](std::size_t k) {
            if (detail::within(step, std::array<double, n>{}, most))
                return;
            for (std::size_t i = 0; i < robot_.joint_count(); ++i) {
                if (!(step[i] > most[i] && step[i] / most[i] > worst))
                    continue;
                worst = step[i] / most[i];
                found = {};
                found.check = known || k > 0 ? Check::jumps : Check::away;
                found.field = k;
                found.joint = i;
                found.time = dt;
                found.step = step[i];
                found.allowed = most[i];
            }
        };
        for (std::size_t k = is_near || !known ? 1 : 0; k < std::size(limits); ++k) {
            for (std::size_t i = 0; i < n; ++i) {
                step[i] = std::fabs(x[k][i] - before_[k][i]);
                most[i] = (*limits[k])[i] * time;
            }
            compare(k);
        }
        if (is_near)
            return worst > 0;
        const double led = leads ? dt : 0, uncertain = leads ? @stamp_jitter@ : time;
        for (std::size_t i = 0; i < n; ++i) {
            const double rate = before_[1][i];
            step[i] = std::fabs(x[0][i] - before_[0][i] - rate * led);
            most[i] = robot_.upper.qdd[i] * time * time / 2 + std::fabs(rate) * uncertain;
        }
        if (!known)
            most.fill(settings_.start_tolerance);
        compare(0);
        return worst > 0;
    }

    /// Returns true if a stamp error of up to LONGEST_GAP explains the jump, so that the publisher was only delayed. The same time
    /// must explain all joints, except for changes within acceleration limits.
    bool is_shifted(std::int64_t stamp, const State<n> &x) const noexcept
    {
        const auto rate = [&](std::size_t i) { return (before_[1][i] + x[1][i]) / 2; };
        const double dt = seconds(stamp - answered_);
        double change = 0, square = 0;
        for (std::size_t i = 0; i < robot_.joint_count(); ++i) {
            change += rate(i) * (x[0][i] - before_[0][i]);
            square += rate(i) * rate(i);
        }
        const double time = square > 0 ? change / square : dt, most = std::fabs(dt) + std::fabs(time - dt);
        bool explains = std::fabs(time - dt) <= seconds(LONGEST_GAP);
        for (std::size_t i = 0; i < robot_.joint_count(); ++i)
            explains = explains && std::fabs(x[0][i] - before_[0][i] - rate(i) * time) <= robot_.upper.qdd[i] * most * most / 2;
        return explains;
    }

    /// Returns true if the setpoint continues a refused jump rather than the last accepted setpoint. Otherwise a jump would be
    /// accepted as soon as enough time has passed.
    bool follows_jump(std::int64_t stamp, const State<n> &x, Finding &found) const noexcept
    {
        if (rests_ || answered_ == 0 || jumped_ == 0 || stamp <= jumped_ ||
            !(distance(stamp - jumped_, away_, x) < distance(stamp - answered_, before_, x)))
            return false;
        found = jump_;
        return true;
    }

    /// Returns the largest distance, rad or m, between x and the prediction from state `from` after `time`, ns.
    double distance(std::int64_t time, const State<n> &from, const State<n> &x) const noexcept
    {
        double most = 0;
        for (std::size_t i = 0; i < robot_.joint_count(); ++i)
            most = std::max(most, std::fabs(x[0][i] - from[0][i] - from[1][i] * seconds(time)));
        return most;
    }

    Robot robot_;
    // Velocity limits for the jump check.
    JointVector<Robot> rates_;
    LoopSettings settings_;
    StampCheck stamps_;
    ConsistencyCheck<n> consistency_;
    // Stamp of the last accepted setpoint, ns; 0 without a stamp.
    std::int64_t answered_ = 0;
    // Flags: a last state is known; it is of no setpoint, and the arm is at rest or stopping.
    bool begun_ = false, rests_ = false;
    // Last commanded or measured state.
    State<n> before_{};
    // Last setpoint that jumped since then: stamp, ns, 0 without one; state; finding.
    std::int64_t jumped_ = 0;
    State<n> away_{};
    Finding jump_;
};

} // namespace eom

#endif
