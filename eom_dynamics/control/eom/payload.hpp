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

/// Payload of all tools, effective from the next setpoint, and its blend time, s.
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

/// Blends payloads along a stream of setpoints.
///
/// The weight from 1 to 0 is twice continuously differentiable. Time follows the stamps of sent setpoints; in motions of the loop,
/// and without stamps, it follows the cycles. It never goes back and advances at most LONGEST_RESPONSE_STEP per setpoint, so that
/// gaps cause no step. A change is at most LONGEST_RESPONSE_STEP ahead of the cycles.
template <class Robot>
class PayloadBlend {
  public:
    using Scalar = typename Robot::Scalar;
    /// Maximum number of concurrent changes.
    static constexpr std::size_t MOST_CHANGES = 8;
    static constexpr double LONGEST_BLEND = 60;

    using Parameters = std::array<double, 10 * Robot::tools>;

    /// Set the payload, effective from the next setpoint. Returns the error text, or null.
    const char *change(const Payload<Robot> &payload) noexcept
    {
        Parameters target = count_ > 0 ? changes_[count_ - 1].target : settled_;
        for (std::size_t k = 0; k < Robot::tools; ++k) {
            if (payload.stays[k])
                continue;
            if (const char *reason = objection(payload.at_tool[k]))
                return reason;
            write(payload.at_tool[k], target.data() + 10 * k);
        }
        return change(target, payload.blend_time);
    }

    /// Set the body parameters, as in a setpoint, blended in `blend_time` s.
    const char *change(const Parameters &target, double blend_time) noexcept
    {
        if (!(blend_time >= 0 && blend_time <= LONGEST_BLEND))
            return "blend_time must be 0 to 60 s";
        const bool replaces = waits();
        if (count_ == MOST_CHANGES && !replaces)
            return "too many changes of the payload are under way";
        // A pending change is replaced.
        Change &next = changes_[replaces ? count_ - 1 : count_++];
        const std::int64_t duration = std::llround(blend_time * 1e9);
        next.duration = replaces ? std::max(duration, next.duration) : duration;
        next.waits = true;
        stays_ = false;
        next.target = target;
        present_ = carried(target);
        return nullptr;
    }

    bool blending() const noexcept { return count_ > 0; }
    /// Returns true if a change is pending.
    bool waits() const noexcept { return count_ > 0 && changes_[count_ - 1].waits; }
    /// Returns true if there is a payload or a change.
    bool loads() const noexcept { return present_ || count_ > 0; }

    /// Postpone pending changes during a motion with limits that were checked without them.
    void hold(bool held) noexcept
    {
        held_ = held;
        stays_ = stays_ && !held;
    }
    bool held() const noexcept { return held_; }

    /// Freeze the payload at its present value, or with `as_before` at its value before the changes, because limits do not allow
    /// them. The change restarts at the end of the motion or with the next reference. Returns false if there was nothing to freeze.
    bool stay(bool as_before = false) noexcept
    {
        if (count_ == 0 || (changes_[0].waits && !begins()))
            return false;
        Parameters Pd, Pdd;
        if (!as_before)
            settled_ = weigh(elapsed_, false, Pd, Pdd);
        changes_[0] = changes_[count_ - 1];
        changes_[0].waits = stays_ = true;
        count_ = 1;
        return true;
    }
    void resume() noexcept { stays_ = false; }

    /// Set the payload of x for its `stamp` (0: no stamp) and the loop time `now`, ns.
    void at(std::int64_t stamp, std::int64_t now, Setpoint<Robot> &x) const noexcept
    {
        x.loaded = loads();
        if (x.loaded)
            load(elapsed_at(stamp, now), begins(), x);
    }

    /// Set the payload of x predicted at `now` for loop time `time`, ns, without pending changes.
    void predict(std::int64_t time, std::int64_t now, Setpoint<Robot> &x) const noexcept
    {
        x.loaded = loads();
        if (x.loaded)
            load(elapsed_at(0, now) + std::max<std::int64_t>(time - now, 0), false, x);
    }

    /// Returns true if the last change has no duration.
    bool steps() const noexcept { return count_ > 0 && changes_[count_ - 1].duration == 0; }

    /// Set the payload of x to the largest change possible within `time` s from now (negative: ever), or with `halfway` to the
    /// middle of the last change at its fastest rate. Returns false if this cannot occur then.
    bool expect(double time, bool halfway, Setpoint<Robot> &x) const noexcept
    {
        if (count_ == 0)
            return false;
        const Change &change = changes_[count_ - 1];
        const double T = seconds(change.duration), rate = halfway ? Fade::STEEPEST / std::max(T, CYCLE) : 0;
        const double u = change.waits && time >= 0 && time < T ? time / T : 1;
        const double part = halfway ? 0.5 : 1 - Fade::weight_at(u);
        Parameters Pd, Pdd;
        const Parameters P = change.waits ? weigh(elapsed_, false, Pd, Pdd) : settled_;
        x.loaded = true;
        x.Pdd = {};
        for (std::size_t i = 0; i < P.size(); ++i) {
            const double away = change.target[i] - P[i];
            x.P[i] = static_cast<Scalar>(P[i] + part * away);
            x.Pd[i] = static_cast<Scalar>(rate * away);
        }
        return !halfway || time < 0 || (time <= T && T > 0);
    }

    /// Commit the setpoint sent with `stamp` at `now`, ns.
    void keep(std::int64_t stamp, std::int64_t now) noexcept
    {
        if (count_ > 0)
            advance(stamp, now);
    }

    /// Advance by the clock until the next setpoint.
    void go_by_clock() noexcept { stamp_ = 0; }

  private:
    // Shortest duration of a change in effort-rate checks, s.
    static constexpr double CYCLE = 1e-3;
    // Stamps that go back further, ns, come from a clock that was set back.
    static constexpr std::int64_t CLOCK_JUMP = 1'000'000'000;

    struct Change {
        bool waits = false;
        // Blend time and loop time of the first setpoint, and duration, ns.
        std::int64_t start = 0, begun = 0, duration = 0;
        Parameters target{};
    };

    // Not inlined, so that cycles without payloads do not pay for it.
    [[gnu::noinline]] void load(std::int64_t elapsed, bool begins, Setpoint<Robot> &x) const noexcept
    {
        Parameters Pd, Pdd;
        const Parameters P = weigh(elapsed, begins, Pd, Pdd);
        x.loaded = present_ || carried(P);
        for (std::size_t i = 0; i < P.size(); ++i) {
            x.P[i] = static_cast<Scalar>(P[i]);
            x.Pd[i] = static_cast<Scalar>(Pd[i]);
            x.Pdd[i] = static_cast<Scalar>(Pdd[i]);
        }
    }

    /// Returns true if pending changes start with the next setpoint.
    bool begins() const noexcept { return !held_ && !stays_; }

    static bool carried(const Parameters &P) noexcept
    {
        return std::any_of(P.begin(), P.end(), [](double x) { return x != 0; });
    }

    /// Parameters and their rates at blend time `elapsed`, ns; with `begins`, pending changes start there.
    Parameters weigh(std::int64_t elapsed, bool begins, Parameters &Pd, Parameters &Pdd) const noexcept
    {
        Parameters P = settled_;
        Pd = Pdd = {};
        for (std::size_t c = 0; c < count_ && (begins || !changes_[c].waits); ++c) {
            const Change &change = changes_[c];
            const std::int64_t since = change.waits ? 0 : elapsed - change.start;
            // A completed change overrides earlier changes.
            if (since >= change.duration) {
                P = change.target;
                Pd = Pdd = {};
                continue;
            }
            const double T = seconds(change.duration);
            const double u = seconds(since) / T;
            const double w = Fade::weight_at(u), wd = Fade::slope_at(u) / T, wdd = Fade::bend_at(u) / (T * T);
            for (std::size_t i = 0; i < P.size(); ++i) {
                const double away = P[i] - change.target[i];
                Pdd[i] = w * Pdd[i] + 2 * wd * Pd[i] + wdd * away;
                Pd[i] = w * Pd[i] + wd * away;
                P[i] = change.target[i] + w * away;
            }
        }
        return P;
    }

    [[gnu::noinline]] void advance(std::int64_t stamp, std::int64_t now) noexcept
    {
        elapsed_ = elapsed_at(stamp, now);
        // An overtaken setpoint must not count twice, but the clock may have been set back.
        if (stamp == 0 || stamp > stamp_ || stamp < stamp_ - CLOCK_JUMP)
            stamp_ = stamp;
        clock_ = now;
        std::size_t ended = 0;
        for (std::size_t c = 0; c < count_ && (begins() || !changes_[c].waits); ++c) {
            Change &change = changes_[c];
            if (change.waits) {
                change.start = elapsed_;
                change.begun = now;
                change.waits = false;
            }
            if (elapsed_ - change.start >= change.duration)
                ended = c + 1;
        }
        if (ended == 0)
            return;
        settled_ = changes_[ended - 1].target;
        std::move(changes_.begin() + static_cast<std::ptrdiff_t>(ended), changes_.begin() + count_, changes_.begin());
        count_ -= ended;
        if (count_ == 0)
            elapsed_ = stamp_ = 0;
    }

    /// Blend time, ns, at a setpoint that may be sent.
    std::int64_t elapsed_at(std::int64_t stamp, std::int64_t now) const noexcept
    {
        if (count_ == 0 || changes_[0].waits)
            return elapsed_;
        const bool stamped = stamp != 0 && stamp_ != 0;
        const std::int64_t passed = stamped ? stamp - stamp_ : now - clock_;
        std::int64_t elapsed = elapsed_ + std::clamp<std::int64_t>(passed, 0, LONGEST_RESPONSE_STEP);
        for (std::size_t c = 0; c < count_ && !changes_[c].waits; ++c) {
            const std::int64_t clock = std::max<std::int64_t>(now - changes_[c].begun, 0);
            elapsed = std::min(elapsed, changes_[c].start + clock + LONGEST_RESPONSE_STEP);
        }
        return std::max(elapsed, elapsed_);
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

    std::array<Change, MOST_CHANGES> changes_{};
    std::size_t count_ = 0;
    Parameters settled_{};
    // Blend time; stamp (0: no stamp) and loop time of the last sent setpoint, ns.
    std::int64_t elapsed_ = 0, stamp_ = 0, clock_ = 0;
    bool present_ = false, held_ = false, stays_ = false;
};

} // namespace eom

#endif
