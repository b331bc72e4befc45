// SPDX-License-Identifier: Apache-2.0
// Payloads at the tools of a robot, which change while it moves, without a step of the efforts.
#ifndef EOM_PAYLOAD_HPP
#define EOM_PAYLOAD_HPP

#include <algorithm>
#include <cstdint>

#include "setpoint.hpp"

namespace eom {

/// A rigid body at a tool, in the tool's frame; zero mass for none.
struct Body {
    double mass = 0;                         ///< kg
    std::array<double, 3> center_of_mass{};  ///< m
    std::array<double, 6> inertia{};         ///< about the centre of mass, xx xy xz yy yz zz, kg m^2
};

/// What all tools carry from the next setpoint on, and the time in which efforts pass to it, s.
template <class Robot>
struct Payload {
    std::array<Body, Robot::tools> at_tool{};
    double blend_time = 0.5;
    /// Tools whose payload stays as it is.
    std::array<bool, Robot::tools> stays{};
};

/// Bound of numbers in robot descriptions.
constexpr double LARGEST_IN_DESCRIPTIONS = 1e12;

/// What is wrong with a body, or null: whether a mass distribution has its mass and inertia.
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
    // The second moment is positive semidefinite: its principal minors are not negative but for rounding, and for the
    // 1 % by which published inertias break the triangle inequality.
    const double e = 0.01 * std::fabs(trace) + 1e-15;
    const double xx = trace / 2 - I[0] + e, yy = trace / 2 - I[3] + e, zz = trace / 2 - I[5] + e;
    const double xy = -I[1], xz = -I[2], yz = -I[4];
    const bool possible = xx >= 0 && yy >= 0 && zz >= 0 && xx * yy - xy * xy >= 0 && xx * zz - xz * xz >= 0 &&
                          yy * zz - yz * yz >= 0 &&
                          xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz) >= 0;
    return possible ? nullptr : "no rigid body has the inertia of a payload";
}

/// The payloads along a stream of setpoints.
///
/// With a weight from 1 to 0 that is twice continuously differentiable, the parameters pass from those before, which may
/// still change, to the next. Time is that of the stamps of setpoints that are sent, or of the cycles of the loop in its own
/// motions, and where setpoints have none; it never goes back. Each setpoint lets at most LONGEST_RESPONSE_STEP pass, so that
/// a gap makes no step, and in each change time is at most as much ahead of the cycles.
template <class Robot>
class PayloadBlend {
  public:
    using Scalar = typename Robot::Scalar;
    /// Changes that may be under way at a time.
    static constexpr std::size_t MOST_CHANGES = 8;
    static constexpr double LONGEST_BLEND = 60;

    using Parameters = std::array<double, 10 * Robot::tools>;

    /// Takes a payload from the next setpoint on; returns why not, or null.
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

    /// The same with the parameters of bodies, as in a setpoint.
    const char *change(const Parameters &target, double blend_time) noexcept
    {
        if (!(blend_time >= 0 && blend_time <= LONGEST_BLEND))
            return "blend_time must be 0 to 60 s";
        const bool replaces = waits();
        if (count_ == MOST_CHANGES && !replaces)
            return "too many changes of the payload are under way";
        // One that has not begun gives way to another that begins with it.
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
    /// Whether a change waits for a setpoint, and whether there is a payload or a change.
    bool waits() const noexcept { return count_ > 0 && changes_[count_ - 1].waits; }
    bool loads() const noexcept { return present_ || count_ > 0; }

    /// Has changes that have not begun wait, while a motion goes on whose limits were checked without them.
    void hold(bool held) noexcept
    {
        held_ = held;
        stays_ = stays_ && !held;
    }
    bool held() const noexcept { return held_; }

    /// Has the payload stay as it is now, or as before its changes, where limits do not allow these, until the end of a motion,
    /// or a reference, with which it begins anew; returns whether it would have changed.
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

    /// Has a setpoint carry the payloads at its stamp, 0 for none, and at a time of the cycles, both ns.
    void at(std::int64_t stamp, std::int64_t now, Setpoint<Robot> &x) const noexcept
    {
        x.loaded = loads();
        if (x.loaded)
            load(elapsed_at(stamp, now), begins(), x);
    }

    /// Has a setpoint carry the payloads that are predicted now for a time of the cycles, both ns, as far as changes have begun.
    void predict(std::int64_t time, std::int64_t now, Setpoint<Robot> &x) const noexcept
    {
        x.loaded = loads();
        if (x.loaded)
            load(elapsed_at(0, now) + std::max<std::int64_t>(time - now, 0), false, x);
    }

    /// Whether the last change takes no time.
    bool steps() const noexcept { return count_ > 0 && changes_[count_ - 1].duration == 0; }

    /// Has a setpoint carry the most that is to come by a time from now on, s, ever if that is negative, or halfway, changing as fast
    /// as the last change does, in a cycle at least; returns whether it may then.
    bool expect(double time, bool halfway, Setpoint<Robot> &x) const noexcept
    {
        if (count_ == 0)
            return false;
        const Change &change = changes_[count_ - 1];
        const double T = seconds(change.duration), rate = halfway ? STEEPEST / std::max(T, CYCLE) : 0;
        const double u = change.waits && time >= 0 && time < T ? time / T : 1, v = 1 - u;
        const double part = halfway ? 0.5 : 1 - v * v * v * (1 + 3 * u + 6 * u * u);
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

    /// Goes on to where the setpoint of that stamp and time has been sent.
    void keep(std::int64_t stamp, std::int64_t now) noexcept
    {
        if (count_ > 0)
            advance(stamp, now);
    }

    /// Has time pass by the cycles until the next setpoint.
    void go_by_clock() noexcept { stamp_ = 0; }

  private:
    // Largest rate of the weight, of 1/duration.
    static constexpr double STEEPEST = 1.875;
    // Time in which efforts change at once, s.
    static constexpr double CYCLE = 1e-3;
    // A stamp that is further back, ns, is of a clock that was set back.
    static constexpr std::int64_t CLOCK_JUMP = 1'000'000'000;

    struct Change {
        bool waits = false;
        // Of the blend and of the clock at its first setpoint, ns.
        std::int64_t start = 0, begun = 0, duration = 0;
        Parameters target{};
    };

    // Not in line, so that cycles without payloads do not pay for them.
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

    /// Whether those that wait begin with the next setpoint.
    bool begins() const noexcept { return !held_ && !stays_; }

    static bool carried(const Parameters &P) noexcept
    {
        return std::any_of(P.begin(), P.end(), [](double x) { return x != 0; });
    }

    /// Parameters and their rates at a time of the blend, ns, at which those that wait begin, or do not.
    Parameters weigh(std::int64_t elapsed, bool begins, Parameters &Pd, Parameters &Pdd) const noexcept
    {
        Parameters P = settled_;
        Pd = Pdd = {};
        for (std::size_t c = 0; c < count_ && (begins || !changes_[c].waits); ++c) {
            const Change &change = changes_[c];
            const std::int64_t since = change.waits ? 0 : elapsed - change.start;
            // Changes before one that has ended have no weight any more.
            if (since >= change.duration) {
                P = change.target;
                Pd = Pdd = {};
                continue;
            }
            const double T = seconds(change.duration);
            const double u = seconds(since) / T, v = 1 - u;
            const double w = v * v * v * (1 + 3 * u + 6 * u * u), wd = -30 * u * u * v * v / T;
            const double wdd = -60 * u * v * (v - u) / (T * T);
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
        // One that others have overtaken does not count twice; one that is further back is of a clock that was set back.
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

    /// Time of the blend, ns, at a setpoint that may be sent.
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
    // Time of the blend; stamp, 0 for none, and clock of the last setpoint that was sent, ns.
    std::int64_t elapsed_ = 0, stamp_ = 0, clock_ = 0;
    bool present_ = false, held_ = false, stays_ = false;
};

} // namespace eom

#endif
