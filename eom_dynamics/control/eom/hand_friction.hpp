// SPDX-License-Identifier: Apache-2.0
// Friction compensation in hand guiding, which fades without a hand.
#ifndef EOM_HAND_FRICTION_HPP
#define EOM_HAND_FRICTION_HPP

#include <algorithm>

namespace eom {

/// Power observer for the fraction of friction that hand guiding compensates. Real-time safe; the caller owns the state.
///
/// Hand power minus true friction power is the rate of kinetic energy minus loop power, including compensation. Without a hand, its
/// ratio to the modeled friction power is constant for any model error, also while compensation fades or motion reverses. A guiding
/// hand replaces the faded compensation: the ratio rises, and compensation is restored. Otherwise compensation is zero after
/// FADE_TIME, and damping of FADED_RATE stops the arm. All powers have the same filter. B. Hannaford, J.-H. Ryu, "Time-domain
/// passivity control of haptic interfaces", IEEE Trans. Robotics and Automation 18 (2002).
class HandFriction {
  public:
    /// Maximum fraction; times of fading and restoring, s.
    static constexpr double MAX_SHARE = 0.8, FADE_TIME = 0.8, RESTORE_TIME = 0.1;
    /// Time constants, s: rates and powers, to exclude spring oscillations; observer.
    static constexpr double SMOOTHING_TIME = 0.05, OBSERVER_TIME = 0.2;
    /// Rise of the ratio that indicates a hand, above the effect of a different friction shape; time at rest until full
    /// compensation, s.
    static constexpr double MIN_RISE = 0.3, REST_TIME = 0.3;
    /// Velocity at rest, rad/s or m/s; damping over inertia without a hand, and to stop the arm, 1/s.
    static constexpr double SLOW = 0.02, FADED_RATE = 5, STOP_RATE = 10;

    /// Returns the compensated fraction of friction at a joint with velocity `rate`.
    double share(double rate) const noexcept { return MAX_SHARE * left_ * rate * rate / (rate * rate + SLOW * SLOW); }

    /// Returns the minimum damping over inertia, 1/s.
    double damping() const noexcept { return FADED_RATE * std::max(1 - 2 * left_, 0.0); }

    /// Update after `time` s with the kinetic energy of smoothed rates, J, and the powers of loop and modeled friction, W; `rests`
    /// if all joints rest.
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

    /// Returns true if the arm has been at rest for REST_TIME.
    bool rests() const noexcept { return rest_ > REST_TIME; }

    /// Weight of a new sample `time` s after the previous sample.
    static constexpr double smoothing_weight(double time) noexcept { return time / (SMOOTHING_TIME + time); }

  private:
    double smooth_power_ = 0, smooth_friction_ = 0, energy_ = 0, power_ = 0, friction_ = 0, rest_ = 0;
    // Remaining part of MAX_SHARE; lowest ratio since the last sign of a hand; a hand is restoring compensation.
    double left_ = 1, least_ = -1;
    bool restores_ = false;
};

} // namespace eom

#endif
