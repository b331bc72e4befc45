// SPDX-License-Identifier: Apache-2.0
// Check of measured motion: no jumps of position, and velocities within limits that agree with the positions.
#ifndef EOM_MEASUREMENT_CHECK_HPP
#define EOM_MEASUREMENT_CHECK_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "reasons.hpp"
#include "setpoint.hpp"

namespace eom {

/// Check of the measured motion of one side, links or motors, sample by sample. Real-time safe.
///
/// A velocity is rejected if
/// - it exceeds MAX_SPEED times its limit. Arms in hand guiding, and motors on soft springs, are faster than commanded;
/// - it steps by more than MAX_STEP of its limit, and positions have moved by less than MIN_SHARE of this step since the last valid
///   sample. Noise is smaller. After an impact, the next position shows the step, so that at most one sample is lost, or as many as
///   the encoder resolution needs;
/// - its integral deviates from positions by more than MAX_LATENESS at the limit. Samples may be repeated or late by this time.
/// Without a limit, the last two use constants.
template <class Scalar, std::size_t n>
class MotionCheck {
  public:
    /// Ratios; MAX_FINITE_SPEED and MAX_UNLIMITED_STEP in rad/s or m/s; MAX_JUMP and RESOLUTION in rad or m; times in s.
    static constexpr double MAX_SPEED = 2, MAX_FINITE_SPEED = 1e4, MAX_JUMP = 0.1;
    static constexpr double MAX_STEP = 0.25, MAX_UNLIMITED_STEP = 1, MIN_SHARE = 0.2, JITTER = 0.5;
    static constexpr double MAX_LATENESS = 0.01, RESOLUTION = 2e-3, MEMORY = 0.1;
    static constexpr double MAX_GAP = seconds(LONGEST_GAP), REANCHOR_TIME = 2 * MAX_GAP;

    /// Clear all samples.
    void restart() noexcept { is_known_.fill(false), is_seen_.fill(false); }

    /// Check the position and velocity of entry `i`, `step` s after the sample before, with its `limit` of velocity. Writes `value`
    /// and `bound` of a fault. A step is `uncertain` if a stall or a jump of the clock may have changed its length.
    Fault update(std::size_t i, double x, double v, double limit, double step, bool uncertain, double &value, double &bound) noexcept
    {
        age_[i] += step;
        if (!std::isfinite(x))
            return Fault::not_finite;
        const bool seen = is_seen_[i], repeats = seen && x == seen_x_[i] && v == seen_v_[i] && v != 0;
        const double last_x = seen_x_[i], last_v = seen_v_[i];
        is_seen_[i] = true, seen_x_[i] = x, seen_v_[i] = v;
        if (seen && std::fabs(x - last_x) > MAX_JUMP && !(is_known_[i] && std::fabs(x - x_[i]) <= MAX_JUMP)) {
            value = std::fabs(x - last_x), bound = MAX_JUMP;
            return Fault::jump;
        }
        value = v, bound = std::min(MAX_SPEED * limit, MAX_FINITE_SPEED);
        if (std::isnan(v)) {
            is_known_[i] = false;
            return Fault::none;
        }
        if (!(std::fabs(v) <= bound))
            return Fault::too_fast;
        if (is_known_[i] && age_[i] > REANCHOR_TIME && seen && !repeats && std::isfinite(last_v)) // restart after a long rejection
            x_[i] = last_x, v_[i] = last_v, age_[i] = step, drift_[i] = 0;
        double drift = 0;
        if (is_known_[i] && age_[i] > 0 && contradicts(i, x, v, limit, uncertain, drift)) {
            bound = (x - x_[i]) / age_[i];
            return Fault::contradicted;
        }
        if (is_known_[i] && (repeats || age_[i] == 0))
            return Fault::none;
        is_known_[i] = true, x_[i] = x, v_[i] = v, age_[i] = 0, drift_[i] = drift;
        return Fault::none;
    }

  private:
    bool contradicts(std::size_t i, double x, double v, double limit, bool uncertain, double &drift) const noexcept
    {
        const double T = age_[i], change = v - v_[i], moved = x - x_[i];
        const double ahead = std::copysign(1.0, change) * (moved - v_[i] * T); // travel beyond the last velocity times T
        if (std::fabs(change) > std::min(MAX_STEP * limit, MAX_UNLIMITED_STEP) &&
            ahead < (MIN_SHARE * std::fabs(change) - JITTER * std::fabs(v_[i])) * T)
            return true;
        drift = drift_[i];
        if (moved == 0 && change == 0) // repeated sample, or constant error at rest
            return std::fabs(v) * std::min(T, MEMORY) > std::min(RESOLUTION + MAX_LATENESS * limit, MAX_JUMP);
        if (uncertain)
            return false;
        drift = drift / (1 + T / MEMORY) + moved - 0.5 * T * (v_[i] + v);
        return std::fabs(drift) > std::min(RESOLUTION + MAX_LATENESS * limit, MAX_JUMP);
    }

    // Last valid sample, its age, s, and position less integrated velocity.
    std::array<double, n> x_{}, v_{}, age_{}, drift_{};
    std::array<bool, n> is_known_{}, is_seen_{};
    // Last sample, including invalid samples.
    std::array<double, n> seen_x_{}, seen_v_{};
};

/// Check of the measured motion of links and motors. Invalid positions and velocities become NaN, as if they were not measured.
template <class Robot>
class MeasurementCheck {
  public:
    explicit MeasurementCheck(const Robot &robot) noexcept : robot_(robot) {}

    /// Check `measured` at `now`, ns, in SI units. Returns checked(), unchanged if the arguments repeat.
    const Measurement<Robot> &update(std::int64_t now, const Measurement<Robot> &measured) noexcept
    {
        if (now != NEVER && now == at_ && is_last(measured))
            return checked_;
        at_ = now;
        last_ = checked_ = measured;
        checked_.jumps = false;
        found_ = {};
        if (measured.motors)
            check(motors_, now, true, robot_.motor_count(), robot_.motor_speed, checked_.motor_position, checked_.motor_velocity);
        if (measured.links)
            check(links_, now, false, robot_.joint_count(), robot_.jump_rate, checked_.q, checked_.qd);
        return checked_;
    }

    /// Worst fault of the last sample.
    const MeasurementFault &fault() const noexcept { return found_; }

    /// Last sample, with NaN for each fault.
    const Measurement<Robot> &checked() const noexcept { return checked_; }

  private:
    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::max();
    /// Ratio to the last step above which the length of a step is uncertain.
    static constexpr double LONGEST_STEPS = 3;

    bool is_last(const Measurement<Robot> &x) const noexcept
    {
        const auto same = [](const auto &a, const auto &b) { return std::memcmp(a.data(), b.data(), sizeof a) == 0; };
        return x.links == last_.links && x.motors == last_.motors && same(x.q, last_.q) && same(x.qd, last_.qd) &&
               same(x.motor_position, last_.motor_position) && same(x.motor_velocity, last_.motor_velocity);
    }

    /// Check of one side, with the time of its last sample, ns, and its last step, s.
    template <std::size_t count>
    struct Side {
        MotionCheck<double, count> motion;
        std::int64_t at = NEVER;
        double step = 0;
    };

    template <class Checked, class Limits, class Vector>
    void check(Checked &side, std::int64_t now, bool of_motor, std::size_t count, const Limits &limits, Vector &x, Vector &v) noexcept
    {
        const bool follows = side.at != NEVER && now != NEVER && now >= side.at && now - side.at <= LONGEST_GAP;
        if (!follows)
            side.motion.restart();
        const double step = follows ? seconds(now - side.at) : 0;
        const bool uncertain = step > LONGEST_STEPS * side.step || step > seconds(LONGEST_RESPONSE_STEP);
        side.step = step > 0 ? step : side.step;
        side.at = now;
        constexpr auto NONE = std::numeric_limits<typename Robot::Scalar>::quiet_NaN();
        for (std::size_t i = 0; i < count; ++i) {
            double value = 0, bound = 0;
            const Fault fault = side.motion.update(i, x[i], v[i], limits[i], step, uncertain, value, bound);
            if (fault == Fault::none)
                continue;
            (fault <= Fault::jump ? x[i] : v[i]) = NONE;
            checked_.jumps = checked_.jumps || fault == Fault::jump;
            if (fault > found_.fault)
                found_ = {fault, of_motor, i, value, bound};
        }
    }

    const Robot robot_;
    Side<Robot::joints> links_;
    Side<Robot::motors> motors_;
    std::int64_t at_ = NEVER; // time of the last call, ns
    Measurement<Robot> last_, checked_;
    MeasurementFault found_;
};

} // namespace eom

#endif
