// SPDX-License-Identifier: Apache-2.0
// Online trajectory of a joint: from targets that may change in each cycle to motion with continuous snap, within limits.
//
// A follower of piecewise constant acceleration goes to the target in least time; three moving averages of whole cycles
// make its motion C4. Averages keep hull, velocity and acceleration. Jerk is (a[k] - a[k - n1]) / T1, averaged, and the
// follower keeps that difference within the acceleration limit, since T1 = A/J: as long as a[k - n1] accelerates, it coasts
// rather than brakes. The snap is at most 2 J / T2. A sine whose period is the length of an average does not pass.
#ifndef EOM_JOINT_MOTION_HPP
#define EOM_JOINT_MOTION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include "follower_plan.hpp"

namespace eom {

/// Limits of a joint, the shortest third average, s, and the period of cycles, s.
struct MotionLimits {
    double lower, upper, velocity, acceleration, jerk, snap, smoothing, period;
};

/// Online trajectory of one joint.
class JointMotion {
  public:
    /// q ... qdddd
    using State = std::array<double, 5>;

    /// Most cycles of all averages together.
    static constexpr double MOST_CYCLES = 100000;

    /// Takes limits, and rests at zero; returns what is wrong with them, or null. Allocates.
    const char *configure(const MotionLimits &limits)
    {
        for (const double x : {limits.velocity, limits.acceleration, limits.jerk, limits.snap, limits.period})
            if (!(x > 0 && std::isfinite(x)))
                return "limits of velocity to snap, and the period, must be finite and > 0";
        if (!(limits.lower < limits.upper) || !(limits.smoothing >= 0))
            return "the lower limit must be less than the upper one, and the smoothing >= 0";
        const double h = limits.period, A = limits.acceleration;
        const auto whole = [](double cycles) { return std::max(1.0, std::ceil(cycles - 1e-9)); }; // allows for rounding
        const double n1 = whole(A / (limits.jerk * h)), n2 = whole(2 * A / (n1 * h * limits.snap * h));
        const double n3 = whole(limits.smoothing / h);
        if (!(n1 + n2 + n3 <= MOST_CYCLES))
            return "limits of jerk and snap are too small for the period";
        limits_ = limits;
        lengths_ = {static_cast<std::size_t>(n1), static_cast<std::size_t>(n2), static_cast<std::size_t>(n3)};
        window_ = lengths_[0] + lengths_[1] + lengths_[2];
        per_fifth_ = 1 / (n1 * n2 * n3 * h * h * h);
        delay_ = h * static_cast<double>(window_) / 2;
        history_.assign(2 * (window_ + 1), 0);
        speeds_ = history_;
        respond();
        scale(1);
        rest(0);
        return nullptr;
    }

    double period() const noexcept { return limits_.period; }
    /// Delay of the averages, half their length, s.
    double delay() const noexcept { return delay_; }
    const State &state() const noexcept { return state_; }
    /// The state within the last cycle, by a time back from its end, s, at most 0.
    State state(double back) const noexcept
    {
        State x = state_;
        move(x, fifth_, back);
        return x;
    }
    double target() const noexcept { return target_ - delay_ * rate_; }
    /// Where it rests at a target.
    double rest_of(double position) const noexcept { return std::clamp(position, limits_.lower, limits_.upper); }
    /// Whether the target moves on.
    bool moves_on() const noexcept { return rate_ != 0; }
    /// Whether it rests at its target.
    bool arrived() const noexcept { return quiet_ > window_ && x_ == target_ && v_ == 0; }

    /// Scales accelerations of the follower from now on, in (0, 1], and velocities by the root, as a slower motion does.
    void scale(double factor) noexcept
    {
        pace_ *= std::sqrt(factor * limits_.acceleration / acceleration_);
        acceleration_ = factor * limits_.acceleration;
        velocity_ = std::sqrt(factor) * limits_.velocity;
    }

    /// Rests at a position, which becomes the target.
    void rest(double q) noexcept
    {
        std::fill(history_.begin(), history_.end(), 0.0);
        std::fill(speeds_.begin(), speeds_.end(), 0.0);
        coasts_ = {};
        quiet_ = window_ + 1;
        free_ = coast() - 2;
        x_ = target_ = q;
        v_ = rate_ = 0;
        pace_ = limits_.velocity;
        state_ = {q};
    }

    /// Continues from any state, as if accelerations before had led there, within limits where there are such ones, and
    /// comes to rest until there is a target. Returns the largest relative excess of these over limits: so much the motion
    /// may exceed them until the averages have forgotten it. Takes as long as some hundred cycles.
    double take_over(const State &from) noexcept
    {
        const double h = limits_.period;
        double *a = history_.data();
        head_ = 0;
        for (std::size_t i = 0; i < window_; ++i) {
            const double t = delay_ - h * (static_cast<double>(i) + 0.5);
            a[i] = from[2] + t * (from[3] + t / 2 * from[4]);
        }
        meet(from, a);
        double excess = excess_of(a);
        for (int tries = 1; tries < MOST_PROJECTIONS && excess > 1e-12; ++tries) {
            clip(a);
            meet(from, a);
            excess = excess_of(a);
        }
        a[window_] = a[window_ - 1];
        std::copy(a, a + window_ + 1, a + window_ + 1);
        for (const int side : {0, 1})
            for (std::size_t level = 0; level < LEVELS.size(); ++level) {
                const auto strong = [&](double x) { return (side ? x : -x) > LEVELS[level] * acceleration_; };
                const auto last = std::find_if(a, a + lengths_[0], strong) - a;
                coasts_[side][level] = std::max(0.0, static_cast<double>(lengths_[0]) - 1 - static_cast<double>(last));
            }
        quiet_ = 0;
        free_ = from == State{from[0]} ? coast() - 2 : 0;
        State sums = summed();
        v_ = from[1] - sums[1];
        double speed = v_;
        for (std::size_t i = 0; i <= window_; ++i) {
            speeds_[i] = speeds_[i + window_ + 1] = speed;
            speed -= h * a[i];
        }
        x_ = from[0] + delay_ * v_ - sums[0];
        state_ = from;
        stop();
        return std::max(excess, std::fabs(v_) / limits_.velocity - 1);
    }

    /// Takes a target, clamped to the limits, which moves on at its velocity.
    void aim(double position, double velocity) noexcept { aim(position, velocity, delay_); }

    /// Takes a target of a later time, s.
    void aim(double position, double velocity, double later) noexcept
    {
        rate_ = std::clamp(velocity, -limits_.velocity, limits_.velocity);
        const double inside = std::clamp(position, limits_.lower, limits_.upper);
        // Ahead, so that averages do not lag behind.
        target_ = std::clamp(inside + later * rate_, limits_.lower, limits_.upper);
        pace_ = 2 * limits_.velocity;
    }

    /// Takes the position as the target where it comes to rest without haste.
    void stop() noexcept { aim(nearest_rest(), 0); }

    /// Where it comes to rest without haste, also beyond limits.
    double nearest_rest() const noexcept
    {
        const double coast = limits_.period * coasts_[v_ > 0][0];
        return x_ + v_ * (coast + std::fabs(v_) / (2 * acceleration_));
    }

    /// Time from now to the end of the motion to the target, s.
    double left() const noexcept { return plan().end() + 2 * delay_; }

    /// Goes to the target slower, to arrive after a time, s.
    void pace(double time) noexcept
    {
        // The time is almost linear in the inverse of the largest velocity: regula falsi, as by Illinois.
        const auto late = [this, time](double inverse) {
            pace_ = 1 / inverse;
            return left() - time;
        };
        double fast = 1 / velocity_, slow = fast, early = late(fast), over = early;
        for (int i = 0; i < MOST_HALVINGS && over < 0; ++i)
            over = late(slow *= 4);
        if (early >= 0 || over < 0)
            late(fast);
        for (int i = 0; i < MOST_HALVINGS && early < 0 && over > 0; ++i) {
            const double inverse = fast - early * (slow - fast) / (over - early), x = late(inverse);
            if (std::fabs(x) < limits_.period / 8)
                return;
            (x < 0 ? fast : slow) = inverse;
            (x < 0 ? early : over) = x;
            (x < 0 ? over : early) /= 2;
        }
    }

    /// A cycle: the state at its end.
    void step() noexcept
    {
        const double h = limits_.period, A = limits_.acceleration, V = limits_.velocity;
        const double before = lag(lengths_[0] - 1), tiny = 2e-15 * (1 + std::fabs(target_));
        double a = 0;
        if (std::fabs(target_ - x_) <= tiny && std::fabs(v_ - rate_) * h <= tiny) {
            x_ = target_;
            v_ = rate_;
        } else {
            const double side = target_ > x_ ? 1 : -1;
            a = wanted(target_ - x_, v_ - rate_, acceleration_, sharp(side * (target_ - x_), side * (v_ - rate_)) > 0);
        }
        a = std::clamp(a, (rate_ - pace_ - v_) / h, (rate_ + pace_ - v_) / h);
        a = std::clamp(a, (-velocity_ - v_) / h, (velocity_ - v_) / h);
        // Accelerations from before a slower motion are halved, not cut off.
        const double change = std::max(acceleration_, std::fabs(before) / 2);
        a = std::clamp(std::clamp(a, -acceleration_, acceleration_), before - change, before + change);
        if (rate_ != 0 || acceleration_ < A) {
            // Able to stop within limits, which the target, or a slower motion, would leave.
            if (std::isfinite(limits_.upper))
                a = std::min(a, wanted(limits_.upper - x_, v_, strength(limits_.upper - x_, v_)));
            if (std::isfinite(limits_.lower))
                a = std::max(a, wanted(limits_.lower - x_, v_, strength(x_ - limits_.lower, -v_)));
        }
        // Those that are halved would lead beyond the limit of velocity.
        a = std::clamp(a, (-V - v_) / h, (V - v_) / h);
        a = std::clamp(a, std::clamp(before - A, -A, A), std::clamp(before + A, -A, A));
        append(a);
        x_ += h * (v_ + h * a / 2);
        v_ += h * a;
        speeds_[head_] = speeds_[head_ + window_ + 1] = v_;
        const double next = target_ + h * rate_;
        target_ = std::clamp(next, limits_.lower, limits_.upper);
        if (target_ != next)
            rate_ = 0;
        if (quiet_ > window_) // exactly at rest, or at constant velocity
            return anchor();
        const auto [n1, n2, n3] = lengths_;
        fifth_ = per_fifth_ * (lag(0) - lag(n1) - lag(n2) - lag(n3) + lag(n1 + n2) + lag(n1 + n3) + lag(n2 + n3) - lag(window_));
        move(state_, fifth_, h);
    }

    /// Computes the state from the accelerations of the window, so that rounding does not add up.
    void anchor() noexcept
    {
        if (quiet_ > window_) {
            state_ = {x_ - delay_ * v_, v_};
            fifth_ = 0;
            return;
        }
        state_ = summed();
        state_[0] += x_ - delay_ * v_;
        state_[1] += v_;
    }

    /// Predicts the state after a time, s, if the target moves on as now: differences over the first two averages of what
    /// the follower has done and is about to do, of which the third average lies within the hull.
    State predicted(double later) const noexcept
    {
        const FollowerPlan ahead = plan();
        const double h = limits_.period, t = later - delay_;
        const double T1 = h * static_cast<double>(lengths_[0]), T2 = h * static_cast<double>(lengths_[1]);
        std::array<double, 3> corners[2][2];
        for (const int i : {0, 1})
            for (const int j : {0, 1})
                corners[i][j] = moment(ahead, t + (i - 0.5) * T1 + (j - 0.5) * T2);
        const auto over = [&corners](std::size_t k, int sign) {
            return corners[1][1][k] - corners[0][1][k] + sign * (corners[1][0][k] - corners[0][0][k]);
        };
        const auto [q, qd, now] = moment(ahead, t);
        const double a = over(1, 1) / (2 * T1), jerk = over(1, -1) / (T1 * T2), snap = over(2, -1) / (T1 * T2);
        return {t < 0 ? state_[0] + (x_ - state_[0]) * (1 + t / delay_) : q, qd, a, jerk, snap};
    }

  private:
    static constexpr int MOST_PROJECTIONS = 200, MOST_HALVINGS = 8;
    /// Shares of the acceleration limit after which braking has to wait; none, half, and one of no effect.
    static constexpr std::array<double, 3> LEVELS{0, 0.5, 0.05};
    static constexpr std::size_t HALF = 1, FEW = 2;

    FollowerPlan plan() const noexcept
    {
        const double A = acceleration_;
        FollowerPlan found;
        found.x = x_;
        found.v = v_;
        double side = target_ > x_ ? 1 : -1, e = std::fabs(target_ - x_), u = side * (v_ - rate_);
        if (const double most = sharp(e, u); most > 0) {
            found.add((most - u) / A, side * A);
            found.add(most / A, -side * A);
            return found;
        }
        // Time until the first average has room for full acceleration in a direction, and what it has until then.
        const auto room = [this](double direction) -> std::pair<double, double> {
            const double cycles = coasts_[direction < 0][FEW], time = limits_.period * cycles;
            if (cycles == 0)
                return {0, 0};
            const double change = speeds_[head_ + lengths_[0] - static_cast<std::size_t>(cycles)] - speeds_[head_ + lengths_[0]];
            const double against = std::max(0.0, -direction * change / time);
            return {time, std::max(acceleration_ - against, 0.0)};
        };
        auto [time, a] = room(-side);
        time = std::min(time, u / std::max(a, 1e-9));
        const double w = u - a * time;
        if (u > 0 && time * (u + w) / 2 + w * w / (2 * A) > e * (1 + 1e-6)) {
            // Past the target, and back.
            found.add(time, -side * a);
            found.add(w / A, -side * A);
            e = time * (u + w) / 2 + w * w / (2 * A) - e;
            side = -side;
            u = 0;
        } else if (peak(e, u) > u) {
            std::tie(time, a) = room(side);
            const double to = std::min({peak(e, u), pace_, velocity_}) - u;
            time = std::min({time, u > 0 ? e / u : time, std::max(to, 0.0) / std::max(a, 1e-9)});
            found.add(time, side * a);
            e -= time * (u + time * a / 2);
            u += time * a;
        }
        const double most = std::min({peak(e, u), pace_, velocity_});
        if (most > u) {
            found.add((most - u) / A, side * A);
            found.add((e - (2 * most * most - u * u) / (2 * A)) / std::max(most, 1e-12), 0);
            found.add(most / A, -side * A);
        } else if (u > 0) {
            // Slows down where a pace is less.
            const double slow = std::min({u, pace_, velocity_}), wait = slow < u ? room(-side).first : 0;
            found.add(wait, 0);
            found.add((u - slow) / A, -side * A);
            found.add((e - u * (wait + u / (2 * A))) / std::max(slow, 1e-12), 0);
            found.add(slow / A, -side * A);
        }
        return found;
    }

    /// Largest velocity on the way over a distance, from another one, s.
    double peak(double e, double u) const noexcept
    {
        const double A = acceleration_, T1 = coast() * limits_.period;
        return A / 2 * (std::sqrt(T1 * T1 + 4 * std::max(0.0, e + u * u / (2 * A)) / A) - T1);
    }

    /// The same of a motion that brakes at once, where that ends before its first acceleration leaves the first average; or 0.
    double sharp(double e, double u) const noexcept
    {
        const double A = limits_.acceleration, h = limits_.period, most = std::sqrt(A * e + u * u / 2);
        // Within limits even where it becomes slower on its way, and then has to coast.
        const double room = std::min(limits_.upper - target_, target_ - limits_.lower) - most * coast() * h;
        const bool fits = u >= 0 && rate_ == 0 && acceleration_ == A && pace_ > velocity_ && most <= velocity_;
        return fits && room >= 0 && 2 * most - u <= A * h * free_ ? most : 0;
    }

    /// Position, velocity and acceleration of the follower, past or planned.
    std::array<double, 3> moment(const FollowerPlan &ahead, double t) const noexcept
    {
        if (t >= 0)
            return ahead.at(t);
        const double cycles = -t / limits_.period;
        const auto k = std::min(static_cast<std::size_t>(cycles), window_ - 1);
        return {x_, speeds_[head_ + k] - (-t - static_cast<double>(k) * limits_.period) * lag(k), lag(k)};
    }

    double lag(std::size_t cycles) const noexcept { return history_[head_ + cycles]; }
    double coast() const noexcept { return static_cast<double>(lengths_[0]); }

    /// Acceleration of the next cycle towards a point at a distance e, at a relative velocity u, by A at most.
    double wanted(double e, double u, double A, bool at_once = false) const noexcept
    {
        const double h = limits_.period;
        const double y = 2 * e / h - u, size = std::fabs(y) / h;
        // After which it coasts so many cycles, and brakes evenly in the fewest whole ones within a limit: exactly there.
        const auto acceleration = [&](double brake, double cycles) {
            const double g = 0.5 + cycles, N = std::ceil(std::sqrt(g * g + size / brake) - g - 1e-9);
            return size / (2 * g + std::max(N, 1.0)) - (y < 0 ? -u : u) / h;
        };
        const auto &coasts = coasts_[y > 0];
        const double a = std::max({acceleration(A, at_once ? 0 : coast()), std::min(acceleration(A / 2, coasts[HALF]), A / 2),
                                   std::min(acceleration(A, coasts[0]), 0.0)});
        return y < 0 ? -a : a;
    }

    /// Acceleration that brakes evenly within a distance, or what a slower motion has, if it is more.
    double strength(double e, double u) const noexcept
    {
        const double left = std::max(e - u * limits_.period * coasts_[v_ > 0][0], 1e-12);
        return u > 0 ? std::clamp(u * u / (2 * left), acceleration_, limits_.acceleration) : limits_.acceleration;
    }

    /// Adds the acceleration of a cycle to the window.
    void append(double a) noexcept
    {
        head_ = (head_ > 0 ? head_ : window_ + 1) - 1;
        history_[head_] = history_[head_ + window_ + 1] = a;
        quiet_ = a == 0 ? std::min(quiet_ + 1, window_ + 1) : 0;
        free_ = quiet_ >= lengths_[0] ? coast() - 2 : free_ - 1;
        for (const int side : {0, 1})
            for (std::size_t level = 0; level < LEVELS.size(); ++level) {
                double &left = coasts_[side][level];
                const bool strong = (side ? a : -a) > LEVELS[level] * acceleration_;
                left = strong ? coast() - 1 : std::max(left - 1, 0.0);
            }
    }

    /// Moves a state on by a time with a constant fifth derivative.
    template <class Scalar>
    static void move(std::array<Scalar, 5> &state, Scalar fifth, Scalar h) noexcept
    {
        auto &[q, qd, qdd, qddd, qdddd] = state;
        q += h * (qd + h / 2 * (qdd + h / 3 * (qddd + h / 4 * (qdddd + h / 5 * fifth))));
        qd += h * (qdd + h / 2 * (qddd + h / 3 * (qdddd + h / 4 * fifth)));
        qdd += h * (qddd + h / 2 * (qdddd + h / 3 * fifth));
        qddd += h * (qdddd + h / 2 * fifth);
        qdddd += h * fifth;
    }

    /// What each acceleration of the window contributes to the state, beside position and velocity of the follower.
    void respond()
    {
        const auto [n1, n2, n3] = lengths_;
        responses_.assign(window_, {});
        const long double h = limits_.period;
        std::array<long double, 5> state{};
        for (std::size_t i = 0; i < window_; ++i) {
            int sum = i == 0;
            for (const std::size_t edge : {n1, n2, n3})
                sum -= i == edge;
            for (const std::size_t edge : {n1 + n2, n1 + n3, n2 + n3})
                sum += i == edge;
            move(state, sum * static_cast<long double>(per_fifth_), h);
            std::copy(state.begin(), state.end(), responses_[i].begin());
            const long double x = h * h * (static_cast<long double>(i) + 0.5L) - h * static_cast<long double>(delay_);
            responses_[i][0] = static_cast<double>(state[0] - x);
            responses_[i][1] = static_cast<double>(state[1] - h);
        }
        gram_ = {};
        for (const State &x : responses_)
            for (std::size_t r = 0; r < 3; ++r)
                for (std::size_t c = 0; c < 3; ++c)
                    gram_[r][c] += x[2 + r] * x[2 + c];
    }

    State summed() const noexcept
    {
        State sums{};
        for (std::size_t i = 0; i < window_; ++i)
            for (std::size_t k = 0; k < 5; ++k)
                sums[k] += responses_[i][k] * history_[head_ + i];
        return sums;
    }

    /// The least change of accelerations after which acceleration to snap are those of a state.
    void meet(const State &from, double *a) const noexcept
    {
        // In doubles of very different sizes: rows are scaled, and the residual is met twice.
        for (int pass = 0; pass < 2; ++pass) {
            const State sums = summed();
            double scale[3], m[3][4];
            for (std::size_t r = 0; r < 3; ++r)
                scale[r] = 1 / std::sqrt(gram_[r][r]);
            for (std::size_t r = 0; r < 3; ++r) {
                for (std::size_t c = 0; c < 3; ++c)
                    m[r][c] = gram_[r][c] * scale[r] * scale[c];
                m[r][3] = (from[2 + r] - sums[2 + r]) * scale[r];
            }
            for (std::size_t r = 0; r < 3; ++r)
                for (std::size_t other = 0; other < 3; ++other)
                    if (const double factor = m[other][r] / m[r][r]; other != r)
                        for (std::size_t c = r; c < 4; ++c)
                            m[other][c] -= factor * m[r][c];
            for (std::size_t i = 0; i < window_; ++i)
                for (std::size_t r = 0; r < 3; ++r)
                    a[i] += responses_[i][2 + r] * scale[r] * m[r][3] / m[r][r];
        }
    }

    /// Clips accelerations, and their differences over the first average.
    void clip(double *a) const noexcept
    {
        const double A = limits_.acceleration;
        for (std::size_t i = 0; i < window_; ++i)
            a[i] = std::clamp(a[i], -A, A);
        for (std::size_t i = lengths_[0]; i < window_; ++i) {
            double &later = a[i - lengths_[0]];
            const double difference = later - a[i], over = difference - std::clamp(difference, -A, A);
            later -= over / 2;
            a[i] += over / 2;
        }
    }

    double excess_of(const double *a) const noexcept
    {
        double most = 0;
        for (std::size_t i = 0; i < window_; ++i) {
            most = std::max(most, std::fabs(a[i]));
            if (i >= lengths_[0])
                most = std::max(most, std::fabs(a[i - lengths_[0]] - a[i]));
        }
        return std::max(0.0, most / limits_.acceleration - 1);
    }

    MotionLimits limits_{};
    // Cycles of each average, and of all.
    std::array<std::size_t, 3> lengths_{1, 1, 1};
    std::size_t window_ = 0;
    double per_fifth_ = 0, delay_ = 0;
    // Limits of the follower, scaled.
    double acceleration_ = 0, velocity_ = 0;
    // Accelerations, and velocities after these, the latest ones first, at the head, and once more after the window.
    std::vector<double> history_, speeds_;
    std::size_t head_ = 0;
    // Cycles since the last acceleration.
    std::size_t quiet_ = 0;
    // Cycles until no positive [1], or negative [0], accelerations of more than a level are in the first average.
    std::array<std::array<double, LEVELS.size()>, 2> coasts_{};
    // Those until accelerations since a rest leave the first average, less two.
    double free_ = 0;
    std::vector<State> responses_;
    std::array<std::array<double, 3>, 3> gram_{};
    // Follower and target: positions, velocities, and the largest relative velocity.
    double x_ = 0, v_ = 0, target_ = 0, rate_ = 0, pace_ = 0;
    State state_{};
    double fifth_ = 0; ///< derivative, in the last cycle
};

} // namespace eom

#endif
