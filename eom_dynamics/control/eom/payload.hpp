// SPDX-License-Identifier: Apache-2.0
// Payloads of the tools, which change during motion without effort steps.
#ifndef EOM_PAYLOAD_HPP
#define EOM_PAYLOAD_HPP

#include <algorithm>
#include <cstdint>

#include "fade.hpp"

namespace eom {

/// Rigid body in the tool frame; zero mass for no payload.
struct Body {
    double mass = 0;                         ///< kg
    std::array<double, 3> center_of_mass{};  ///< m
    std::array<double, 6> inertia{};         ///< about the center of mass, xx xy xz yy yz zz, kg m^2
};

/// Payload of all tools, effective from the next setpoint, and the minimum duration of its change, s.
template <class Robot>
struct Payload {
    std::array<Body, Robot::tools> at_tool{};
    double blend_time = 0.5;
    /// Tools with unchanged payload.
    std::array<bool, Robot::tools> stays{};
};

/// Largest absolute value in robot descriptions.
constexpr double LARGEST_IN_DESCRIPTIONS = 1e12;

/// Returns an error text if no mass distribution has this mass and inertia, or null.
inline const char *objection(const Body &body) noexcept
{
    const auto &I = body.inertia;
    const auto &c = body.center_of_mass;
    if (!finite(c) || !finite(I) || !std::isfinite(body.mass))
        return "mass, center_of_mass and inertia of a payload must be finite";
    const auto large = [](double x) { return std::fabs(x) > LARGEST_IN_DESCRIPTIONS; };
    if (large(body.mass) || std::any_of(c.begin(), c.end(), large) || std::any_of(I.begin(), I.end(), large))
        return "mass, center_of_mass and inertia of a payload must be at most 1e12";
    if (body.mass < 0)
        return "mass of a payload must not be negative";
    const double trace = I[0] + I[3] + I[5];
    if (body.mass == 0)
        return std::any_of(I.begin(), I.end(), [](double x) { return x != 0; })
                   ? "a payload with inertia must have mass"
                   : nullptr;
    // The second moment is positive semidefinite: its principal minors are not negative. The tolerance covers rounding, and
    // published inertias that violate the triangle inequality by up to 1 %.
    const double e = 0.01 * std::fabs(trace) + 1e-15;
    const double xx = trace / 2 - I[0] + e, yy = trace / 2 - I[3] + e, zz = trace / 2 - I[5] + e;
    const double xy = -I[1], xz = -I[2], yz = -I[4];
    const bool possible = xx >= 0 && yy >= 0 && zz >= 0 && xx * yy - xy * xy >= 0 && xx * zz - xz * xz >= 0 &&
                          yy * zz - yz * yz >= 0 &&
                          xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz) >= 0;
    return possible ? nullptr : "no rigid body has the inertia of a payload";
}

/// Changes the payload along a stream of setpoints by a Fade, one change at a time.
///
/// A newer change waits for the end of the present one; the latest one counts. Time follows the stamps of sent setpoints; in motions
/// of the loop, and without stamps, it follows the cycles. It advances at most LONGEST_RESPONSE_STEP per setpoint, so that gaps cause
/// no step, and is at most LONGEST_RESPONSE_STEP ahead of the cycles.
template <class Robot>
class PayloadFade {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr double LONGEST_BLEND = 60;

    using Parameters = std::array<double, 10 * Robot::tools>;

    /// Set the payload, effective from the next setpoint. Returns the error text, or null.
    const char *change(const Payload<Robot> &payload) noexcept
    {
        Parameters target = final();
        for (std::size_t k = 0; k < Robot::tools; ++k) {
            if (payload.stays[k])
                continue;
            if (const char *reason = objection(payload.at_tool[k]))
                return reason;
            write(payload.at_tool[k], target.data() + 10 * k);
        }
        return change(target, payload.blend_time);
    }

    /// Set the body parameters, as in a setpoint, with the minimum duration of the fade, s.
    const char *change(const Parameters &target, double blend_time) noexcept
    {
        if (!(blend_time >= 0 && blend_time <= LONGEST_BLEND))
            return "blend_time must be 0 to 60 s";
        next_ = target;
        duration_ = waits_ ? std::max(duration_, blend_time) : blend_time;
        waits_ = true;
        return nullptr;
    }

    /// Complete all changes, because no command is sent that could step.
    void complete() noexcept
    {
        target_ = final();
        waits_ = false;
        fade_.end(), later_.end();
    }

    /// Returns true if a change is active or pending.
    bool is_changing() const noexcept { return waits_ || is_fading(); }
    bool is_fading() const noexcept { return fade_.is_active(); }
    bool waits() const noexcept { return waits_; }
    /// Returns true if there is a payload or a change.
    bool loads() const noexcept { return is_changing() || carried(target_); }

    /// Advance to a setpoint with `stamp` (0: no stamp) at the loop time `now`, ns, until commit().
    void advance(std::int64_t stamp, std::int64_t now) noexcept
    {
        later_ = fade_;
        if (!is_fading())
            return;
        const std::int64_t passed = stamp != 0 && stamp_ != 0 ? stamp - stamp_ : now - clock_;
        const std::int64_t most = now - begun_ + LONGEST_RESPONSE_STEP - elapsed_;
        step_ = std::clamp<std::int64_t>(std::min(passed, most), 0, LONGEST_RESPONSE_STEP);
        later_.advance(step_);
    }

    /// Advance more slowly: see Fade::share(). `before` and `after` are commands without and with the present change.
    void slow_down(const Robot &robot, const Command<Robot> &before, const Command<Robot> &after) noexcept
    {
        later_ = fade_;
        const auto share = [&](const auto &first, const auto &last, const auto &limits, const auto &first_rate, const auto &last_rate) {
            auto rates = first_rate;
            for (std::size_t i = 0; i < rates.size(); ++i)
                rates[i] = std::max(std::fabs(first_rate[i]), std::fabs(last_rate[i]));
            return fade_.share(step_, difference(first, last), limits, rates);
        };
        later_.advance(step_, std::min(share(before.tau, after.tau, robot.upper.taud, before.taud, after.taud),
                                       share(before.motor_position, after.motor_position, robot.motor_speed, before.motor_velocity,
                                             after.motor_velocity)));
    }

    /// Set the payload of x after advance().
    void apply(Setpoint<Robot> &x) const noexcept { set(x, later_); }
    /// Set the payload of x to its present value, without rates.
    void apply_present(Setpoint<Robot> &x) const noexcept
    {
        set(x, fade_);
        x.Pd = x.Pdd = {};
    }
    /// Set the payload of x to its value before or after the present change, or after all changes.
    void apply_before(Setpoint<Robot> &x) const noexcept { set(x, before_); }
    void apply_after(Setpoint<Robot> &x) const noexcept { set(x, target_); }
    void apply_final(Setpoint<Robot> &x) const noexcept { set(x, final()); }

    /// Commit the setpoint sent with `stamp` at `now`, ns.
    void commit(std::int64_t stamp, std::int64_t now) noexcept
    {
        fade_ = later_;
        elapsed_ += step_;
        step_ = 0;
        // An overtaken setpoint must not count twice, but the clock may have been set back.
        if (stamp == 0 || stamp > stamp_ || stamp < stamp_ - CLOCK_JUMP)
            stamp_ = stamp;
        clock_ = now;
    }

    /// Returns true if the pending change can start: the present one has ended.
    bool can_begin() const noexcept { return waits_ && !is_fading(); }
    /// Start the pending change with the committed setpoint.
    void begin() noexcept
    {
        before_ = target_;
        target_ = next_;
        waits_ = false;
        begun_ = clock_;
        elapsed_ = 0;
        fade_.begin(duration_);
        later_ = fade_;
    }
    /// Set a duration that is long enough for rates. `before` and `after` are commands without and with the change.
    void begin_fade(const Robot &robot, const Command<Robot> &before, const Command<Robot> &after) noexcept
    {
        const MotorVector<Robot> way = difference(before.motor_position, after.motor_position);
        double least = duration_;
        for (std::size_t i = 0; i < robot.motor_count(); ++i) { // half of the efforts accelerate the rotors
            const double limit = std::min(robot.upper.motor_effort[i], robot.upper.motor_sum[robot.motor_joint[i]]);
            least = std::max(least, std::sqrt(2 * Fade::MOST_BENT * robot.motor_inertia[i] * std::fabs(way[i]) / limit));
        }
        fade_.begin(least, difference(before.tau, after.tau), robot.upper.taud, way, robot.motor_speed);
        later_ = fade_;
    }

    /// Advance by the clock until the next setpoint.
    void follow_clock() noexcept { stamp_ = 0; }

  private:
    // Stamps that go back further, ns, come from a clock that was set back.
    static constexpr std::int64_t CLOCK_JUMP = 1'000'000'000;

    const Parameters &final() const noexcept { return waits_ ? next_ : target_; }

    static bool carried(const Parameters &P) noexcept
    {
        return std::any_of(P.begin(), P.end(), [](double x) { return x != 0; });
    }

    void set(Setpoint<Robot> &x, const Parameters &P) const noexcept
    {
        x.loaded = loads();
        if (x.loaded)
            load(x, P);
    }
    void set(Setpoint<Robot> &x, const Fade &fade) const noexcept
    {
        x.loaded = loads();
        if (x.loaded)
            load(x, fade);
    }

    // Not inlined, so that cycles without payloads do not pay for it.
    [[gnu::noinline]] void load(Setpoint<Robot> &x, const Parameters &P) const noexcept
    {
        for (std::size_t i = 0; i < P.size(); ++i)
            x.P[i] = static_cast<Scalar>(P[i]);
        x.Pd = x.Pdd = {};
    }
    [[gnu::noinline]] void load(Setpoint<Robot> &x, const Fade &fade) const noexcept
    {
        load(x, target_);
        if (!fade.is_active())
            return;
        const double w = fade.weight(), wd = fade.rate(), wdd = fade.second();
        for (std::size_t i = 0; i < target_.size(); ++i) {
            const double away = before_[i] - target_[i];
            x.P[i] = static_cast<Scalar>(target_[i] + w * away);
            x.Pd[i] = static_cast<Scalar>(wd * away);
            x.Pdd[i] = static_cast<Scalar>(wdd * away);
        }
    }

    static void write(const Body &body, double *P) noexcept
    {
        const double m = body.mass, x = body.center_of_mass[0], y = body.center_of_mass[1], z = body.center_of_mass[2];
        const auto &I = body.inertia;
        const double values[] = {m,
                                 m * x,
                                 m * y,
                                 m * z,
                                 I[0] + m * (y * y + z * z),
                                 I[1] - m * x * y,
                                 I[2] - m * x * z,
                                 I[3] + m * (x * x + z * z),
                                 I[4] - m * y * z,
                                 I[5] + m * (x * x + y * y)};
        std::copy(std::begin(values), std::end(values), P);
    }

    // Payload before and after the present change, and of the pending change with its minimum duration, s.
    Parameters before_{}, target_{}, next_{};
    double duration_ = 0;
    bool waits_ = false;
    // Fade at the last command, and after advance().
    Fade fade_, later_;
    // Times, ns: start of the change, elapsed time, advance; stamp (0: no stamp) and loop time of the last sent setpoint.
    std::int64_t begun_ = 0, elapsed_ = 0, step_ = 0, stamp_ = 0, clock_ = 0;
};

} // namespace eom

#endif
