// SPDX-License-Identifier: Apache-2.0
// Compensation of friction in hand guiding, which fades without a hand.
#ifndef EOM_HAND_FRICTION_HPP
#define EOM_HAND_FRICTION_HPP

#include <algorithm>

namespace eom {

/// Share of friction that hand guiding compensates, by an observer of power; the state belongs to the caller. Real-time safe.
///
/// The power of the hand less that of the true friction is the rate of the kinetic energy less the power of the loop, compensation
/// included. Without a hand, its ratio to the power of the file's friction is constant, whatever factor the file is wrong by, also while
/// the share fades or motion turns. A hand that guides the arm replaces what fades: the ratio rises, which restores the share. Without
/// this sign the share is zero after FADE_TIME, and damping of FADED_RATE stops the arm. All powers pass the same filter.
/// B. Hannaford, J.-H. Ryu, "Time-domain passivity control of haptic interfaces", IEEE Trans. Robotics and Automation 18 (2002).
class HandFriction {
  public:
    /// Largest share; time in which it fades, and in which it is restored, s.
    static constexpr double MAX_SHARE = 0.8, FADE_TIME = 0.8, RESTORE_TIME = 0.1;
    /// Time constants of rates and powers, which are without the oscillations of springs, and of the observer, s.
    static constexpr double SMOOTHING_TIME = 0.05, OBSERVER_TIME = 0.2;
    /// Rise of the ratio that is a hand, more than friction of another shape causes; time at rest after which the share is whole, s.
    static constexpr double MIN_RISE = 0.3, REST_TIME = 0.3;
    /// Rate of joints at rest, rad/s or m/s; damping over inertia without a hand, and of an arm that is stopped, 1/s.
    static constexpr double SLOW = 0.02, FADED_RATE = 5, STOP_RATE = 10;

    /// Returns the share of friction that is compensated at a joint with this `rate`.
    double share(double rate) const noexcept { return MAX_SHARE * left_ * rate * rate / (rate * rate + SLOW * SLOW); }

    /// Returns the least damping over inertia, 1/s.
    double damping() const noexcept { return FADED_RATE * std::max(1 - 2 * left_, 0.0); }

    /// Update the share `time` s later: kinetic energy of smooth rates, J; power of the loop, and of the file's friction, W; whether all joints rest.
    void update(double energy, double power, double friction, bool rests, double time) noexcept
    {
        const double weight = time / (OBSERVER_TIME + time), smoothing = smoothing_weight(time);
        smooth_power_ += smoothing * (power - smooth_power_);
        smooth_friction_ += smoothing * (friction - smooth_friction_);
        energy_ += weight * (energy - energy_);
        power_ += weight * (smooth_power_ - power_);
        friction_ += weight * (smooth_friction_ - friction_);
        rest_ = rests ? rest_ + time : 0;
        if (this->rests() || !(friction_ > 0)) {
            left_ = 1, least_ = -1, restores_ = false;
            return;
        }
        if (rests)
            return;
        const double ratio = ((energy - energy_) / OBSERVER_TIME - power_) / friction_;
        restores_ = restores_ || ratio > least_ + MIN_RISE;
        least_ = restores_ ? ratio : std::min(least_, ratio);
        left_ = std::clamp(left_ + (restores_ ? time / RESTORE_TIME : -time / FADE_TIME), 0.0, 1.0);
        restores_ = restores_ && left_ < 1;
    }

    /// Returns whether the arm has been at rest for REST_TIME.
    bool rests() const noexcept { return rest_ > REST_TIME; }

    /// Weight of a new sample `time` s after the one before.
    static constexpr double smoothing_weight(double time) noexcept { return time / (SMOOTHING_TIME + time); }

  private:
    double smooth_power_ = 0, smooth_friction_ = 0, energy_ = 0, power_ = 0, friction_ = 0, rest_ = 0;
    // Part of the share, lowest ratio since the last sign of a hand, and whether one is restoring the share.
    double left_ = 1, least_ = -1;
    bool restores_ = false;
};

} // namespace eom

#endif
