// SPDX-License-Identifier: Apache-2.0
// Online trajectory of a joint: targets that may change in each cycle in, motion with continuous snap within limits out.
//
// A time-optimal follower moves to the target under limits of velocity, acceleration and jerk. Two exact moving averages
// of whole cycles, T1 = 2 J / S and `smoothing`, make its motion C4; they preserve hull, velocity, acceleration and jerk.
#ifndef EOM_JOINT_TRAJECTORY_HPP
#define EOM_JOINT_TRAJECTORY_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "moving_averages.hpp"
#include "viability.hpp"

namespace eom {

/// Limits of a joint, length of the second average, s, and cycle period, s.
struct MotionLimits {
    double lower, upper, velocity, acceleration, jerk, snap, smoothing, period;
};

/// Online trajectory of one joint.
class JointTrajectory {
  public:
    /// q ... qdddd
    using State = MovingAverages::State;

    /// Maximum number of cycles of all averages together.
    static constexpr double MOST_CYCLES = 100000;
    /// Maximum time of a target acceleration, s.
    static constexpr double HORIZON = 0.05;

    /// Set limits, and start at rest at zero; returns an error, or null. Allocates.
    const char *configure(const MotionLimits &limits)
    {
        for (const double x : {limits.velocity, limits.acceleration, limits.jerk, limits.snap, limits.period})
            if (!(x > 0 && std::isfinite(x)))
                return "limits of velocity to snap, and the period, must be finite and > 0";
        if (!(limits.lower < limits.upper) || !(limits.smoothing >= 0))
            return "the lower limit must be less than the upper one, and the smoothing >= 0";
        const double h = limits.period;
        const auto whole = [](double cycles) { return std::max(1.0, std::ceil(cycles - 1e-9)); }; // tolerance for rounding
        const double n1 = whole(2 * limits.jerk / limits.snap / h), n2 = whole(limits.smoothing / h);
        if (!(n1 + n2 <= MOST_CYCLES))
            return "the limit of snap is too small, or the smoothing too long, for the period";
        limits_ = limits;
        widen();
        brake_ = next_brake_ = bounds();
        averages_.configure(h, n1, n2);
        rest(0);
        return nullptr;
    }

    double period() const noexcept { return limits_.period; }
    double limit() const noexcept { return limits_.velocity; } // of velocity
    /// Returns the delay of the averages, half their length, s.
    double delay() const noexcept { return averages_.delay(); }
    /// Returns the length of the shorter average, s; below, the maximum jerk and snap after both averages.
    double shorter() const noexcept { return averages_.shorter(); }
    double largest_jerk() const noexcept { return limits_.jerk; }
    double largest_snap() const noexcept { return 2 * limits_.jerk / averages_.longer(); }
    /// Returns the rise time of the acceleration, s.
    double ramp() const noexcept { return limits_.acceleration / limits_.jerk; }
    const State &state() const noexcept { return averages_.state(); }
    /// Returns the state within the last cycle, at time `back` (at most 0, s) from its end. Snap is assumed linear; values are
    /// clamped to limits that hold at both ends of the cycle.
    State state(double back) const noexcept
    {
        const auto [q, qd, qdd, qddd, qdddd] = averages_.state();
        const double f = averages_.fifth();
        const auto velocity = [&](double t) { return qd + t * (qdd + t / 2 * (qddd + t / 3 * (qdddd + t / 4 * f))); };
        const auto acceleration = [&](double t) { return qdd + t * (qddd + t / 2 * (qdddd + t / 3 * f)); };
        const auto held = [this](double x, double limit, double most) { // beyond the limit, it returns, or is urgent
            return most <= limit && hardest() <= 1 ? std::clamp(x, -limit, limit) : x;
        };
        const auto of_ends = [h = limits_.period](const auto &of) { return std::max(std::fabs(of(0)), (1 - 1e-6) * std::fabs(of(-h))); };
        return {q + back * (qd + back / 2 * (qdd + back / 3 * (qddd + back / 4 * (qdddd + back / 5 * f)))),
                held(velocity(back), limits_.velocity, of_ends(velocity)), held(acceleration(back), limits_.acceleration, of_ends(acceleration)),
                held(qddd + back * (qdddd + back / 2 * f), limits_.jerk, std::fabs(qddd)), qdddd + back * f};
    }
    /// Returns the present target.
    double target() const noexcept { return asked_.p; }
    double rest_of(double position) const noexcept { return inside(position); } // of a target
    /// Returns true if the target moves.
    bool moves_on() const noexcept { return target_.v != 0 || target_.a != 0; }
    /// Returns true if the joint is at rest at its target.
    bool arrived() const noexcept { return averages_.rests() && !moves_on() && now_.v == 0 && now_.p == target_.p; }

    /// Restart at rest at a position, which becomes the target.
    void rest(double q) noexcept
    {
        now_ = target_ = asked_ = {q};
        plan_.join(now_, now_, 0);
        stops_ = slowed_ = hurries_ = false;
        averages_.settle(now_);
    }

    /// Continue from a state, and stop unless a target is set. The past is a jerk of +-j with averages that match jerk and snap, for
    /// the smallest j. Position and velocity are continuous; acceleration is kept entirely, or like jerk and snap as far as a motion
    /// within limits allows. Returns the relative excess of the given values or of the motion over limits.
    double take_over(const State &from, bool whole = false) noexcept
    {
        if (from == State{from[0]}) {
            rest(from[0]);
            return 0;
        }
        const double short_ = averages_.shorter(), long_ = averages_.longer(), variance_ = averages_.variance();
        const double A = limits_.acceleration, J = limits_.jerk, square = short_ * long_, span = short_ + long_;
        State x = from;
        if (!whole)
            x[2] = std::clamp(x[2], -A, A);
        x[3] = std::clamp(x[3], -J, J);
        const double most = std::min(2 * J / long_, 2 * std::sqrt(J * (J - std::fabs(x[3])) / square));
        x[4] = std::clamp(x[4], -most, most);
        auto [j, ago] = averages_.reversal(x[3], x[4]);
        const bool rises = x[4] != 0 ? x[4] > 0 : x[3] > 0;
        if ((x[3] > 0) == rises)
            ago = span - ago;
        const Moment first{0, 0, 0, rises ? -j : j};
        plan_.join(first, first.after(span - ago).with(-first.j), span - ago);
        fill(span, {});
        // The difference is a parabola; its average lags by the delay, and bends by the variance of the kernel.
        const double D = delay(), c = x[2] - state()[2], b = x[1] - state()[1] + c * D;
        fill(span, {x[0] - state()[0] + b * D - c / 2 * (D * D + variance_), b, c, 0});
        now_ = averages_.past(0);
        stop();
        double excess = std::max({0.0, std::fabs(from[2]) / A - 1, std::fabs(from[3]) / J - 1,
                                  (std::fabs(from[4]) - most) * long_ / (2 * J)});
        for (std::size_t i = 0; i <= averages_.window(); ++i) {
            const Moment &past = averages_.past(i);
            const double fastest = i > 0 ? past.v : past.v + past.a * std::fabs(past.a) / (2 * J);
            excess = std::max({excess, std::fabs(fastest) / limits_.velocity - 1, std::fabs(past.a) / A - 1});
        }
        return excess;
    }

    /// Set a target, clamped to the limits, with velocity and a limited time of acceleration. Averages do not lag behind it.
    void aim(double position, double velocity, double acceleration = 0) noexcept
    {
        const double D = delay(), v = std::clamp(velocity, -limits_.velocity, limits_.velocity);
        const double a = std::fabs(v + acceleration * (D + HORIZON)) < limits_.velocity ? acceleration : 0;
        const Moment led{inside(position) + D * v + (D * D - averages_.variance()) / 2 * a, v + D * a, a};
        chase({inside(position), v, a}, {inside(led.p), led.v, led.a}, HORIZON);
    }
    /// Set a target that is updated in every cycle; its state is one averaging delay ahead.
    void follow(const Moment &ahead) noexcept
    {
        const double p = ahead.p - averages_.variance() / 2 * ahead.a;
        const bool stays = p == inside(p);
        chase({inside(ahead.p)}, stays ? Moment{p, ahead.v, ahead.a} : Moment{inside(p)}, limits_.period);
    }

    /// Stop within a duration, s, or as soon as limits allow. A joint that would leave its range decelerates up to `haste` times as
    /// hard.
    void stop(double duration = 0, double haste = 1) noexcept
    {
        widen();
        haste_ = haste;
        slowed_ = false;
        stops_ = true;
        stop_part_ = 1;
        rise_ = std::max({std::min(duration / 8, LONGEST_RISE), duration / 32, limits_.period});
        const double most = std::max(duration - 2 * delay(), std::min(duration, shorter()));
        const auto lasts = [&](double part, double time) {
            plan_.brake(now_, bounds(part, now_));
            return plan_.end() >= time;
        };
        while (lasts(stop_part_, std::max(LONGEST_STOP, most)) && stop_part_ < HARDEST)
            stop_part_ *= 2; // for impossibly large numbers
        const bool waits = !lasts(1, most);
        for (double step = LEAST_PART; waits && step < 1 - 1e-4; step = std::sqrt(step)) // bisection of the logarithm
            stop_part_ *= lasts(stop_part_ * step, most) ? 1 : step;
        brake();
    }
    /// Returns rest positions of follower and command for a stop that starts now, and their reversal positions.
    std::array<double, 2> brake_positions() const noexcept { return eom::brake_positions(now_, bounds()); }

    /// Returns the largest velocity of the state and of the plan; averages do not exceed it.
    double fastest() const noexcept
    {
        double most = std::fabs(state()[1]);
        for (std::size_t i = 0; i < plan_.size(); ++i) {
            const Moment x = plan_.at(plan_.time_of(i));
            const double turn = x.a * x.j < 0 ? -x.a / x.j : 0; // of the acceleration
            const bool turns = i + 1 < plan_.size() && plan_.time_of(i) + turn < plan_.time_of(i + 1);
            most = std::max({most, std::fabs(x.v), turns ? std::fabs(x.after(turn).v) : 0});
        }
        return most;
    }

    /// Returns the jerk fraction for an acceleration fraction: larger if limits leave more room for jerk and snap, smaller (slower
    /// clock) if they leave less.
    void spare(double room) noexcept { room_ = room; }
    double jerk_part(double part) const noexcept
    {
        const double root = std::sqrt(part);
        return part * std::clamp(room_, root, 1 / root);
    }

    /// Returns the remaining time of the motion to the target, s.
    double left() const noexcept { return std::max(plan_.end() - time_, 0.0) + 2 * delay(); }

    /// Prepare a cycle: move the target, and return to the plan after a slowed cycle.
    void prepare() noexcept
    {
        widen();
        if (slowed_ && stops_)
            brake();
        else if (slowed_)
            pursue();
        slowed_ = false;
        move_target();
        if (!stops_ && !moves_on())
            range_.narrow(target_.p, now_, bounds(1, now_));
        is_late_ = is_late_ && leaves(now_, brake_);
    }
    bool stops_late() const noexcept { return is_late_; } // beyond the target
    /// Allow the stop after this cycle to pass the target.
    void allow_overshoot() noexcept
    {
        widen();
        is_late_ = true;
    }

    /// Returns the viability check of setpoints.
    Viability viability() const noexcept { return {limits_.acceleration, limits_.jerk, delay(), averages_.variance()}; }

    /// Returns true if a prepared cycle changes nothing.
    bool rests() const noexcept { return averages_.rests() && now_.v == 0 && !moves_on() && time_ >= plan_.end(); }

    /// Propose the next cycle as planned, or slowed down to the acceleration fraction `part` in (0, 1]; 0: as part of the stop that
    /// was possible after the last cycle. The stop after it has the acceleration fraction `gentle`, or more if it would end beyond
    /// position limits.
    void propose(double part, double gentle) noexcept
    {
        const double h = limits_.period;
        slowed_ = part < 1 && !hurries_;
        if (!slowed_)
            part = 1;
        else if (part > 0 && !stops_)
            part = range_.least_part(part, now_, [this](double x) { return bounds(x, now_); });
        if (part == 0)
            trial_.brake(now_, brake_);
        else if (slowed_ && stops_)
            trial_.brake(now_, bounds(part * stop_part_, now_));
        else if (slowed_)
            trial_.reach(now_, slower(part), relative(slower(part), bounds(part, now_), 0));
        const Moment next = slowed_ ? trial_.at(h) : plan_.at(time_ + h);
        part_ = part;
        if (part > 0 && !escape(next, gentle) && slowed_ && !leaves(now_, bounds(hardest(), now_)))
            propose(1, gentle); // too late for a smaller fraction
        else if (part == 0)
            escape_.brake(next, next_brake_ = brake_);
    }
    /// Propose a cycle of a stop that starts with it, with the acceleration fraction `gentle`, or more as above.
    void brake(double gentle) noexcept
    {
        if (hurries_)
            return propose(1, gentle);
        slowed_ = true;
        part_ = 0;
        escape(now_, gentle);
        trial_.brake(now_, next_brake_);
        escape_.brake(trial_.at(limits_.period), next_brake_);
    }
    /// Replace the stop after the proposed cycle.
    void escape(double gentle) noexcept
    {
        if (part_ > 0 && gentle_ < gentle)
            escape(escape_.at(0), gentle);
    }
    /// Returns the fraction of the jerk limit in the stop after the proposed cycle.
    double brake_jerk() const noexcept { return jerk_part(gentle_); }
    /// Length, s, of plan or brake after the proposed cycle; calls f with the times of largest snap of each piece.
    enum class Way { plan, brake };
    double length(Way way) const noexcept { return of(way).end() - begin_of(way); }
    template <class F>
    void visit(Way way, F &&f) const noexcept
    {
        for (std::size_t i = 0; i < of(way).size(); ++i)
            if (const double t = of(way).time_of(i) - begin_of(way); t > 0) {
                f(t + shorter());
                if (averages_.longer() > shorter())
                    f(t + averages_.longer());
            }
    }

    /// Run a cycle; returns the state at its end.
    void step() noexcept
    {
        const double h = limits_.period;
        if (rests())
            return;
        if (slowed_) {
            plan_ = trial_;
            time_ = 0;
        }
        brake_ = next_brake_;
        now_ = averages_.step(plan_, time_, time_ >= plan_.end() && target_.a == 0);
        time_ += h;
        if (averages_.rests() && now_.v == 0)
            averages_.settle(now_);
    }

    /// Compute position and velocity from the window, so that rounding errors do not accumulate.
    void anchor() noexcept { averages_.anchor(); }

    /// Predict the state after `k` cycles, by the plan, or by the stop after the proposed cycle.
    State predicted(long k, Way way) const noexcept
    {
        return averages_.predicted(k, [this, way](long cycles) { return moment(cycles, way); });
    }

  private:
    // Smallest and largest acceleration fraction in a stop; longest stop, s; largest distance of a returning joint from its range,
    // rad or m.
    static constexpr double LEAST_PART = 1e-3, HARDEST = 1e9, LONGEST_STOP = 10, FARTHEST = 0.2, LONGEST_RISE = 0.01;
    // Largest fractions of limits for targets, so that the motion can reach them.
    static constexpr double FASTEST = 0.999, STRONGEST = 0.9;

    /// Allow stops to end within the whole range.
    void widen() noexcept { range_ = {limits_.lower, limits_.upper}; }
    double inside(double p) const noexcept { return std::clamp(p, limits_.lower, limits_.upper); }

    Bounds bounds() const noexcept
    {
        const double V = limits_.velocity, A = limits_.acceleration;
        return {-V, V, -A, A, limits_.jerk};
    }
    /// Returns bounds with fractions of acceleration and jerk that cause neither an excess of velocity nor a reversal.
    Bounds bounds(double part, const Moment &from) const noexcept
    {
        const double V = limits_.velocity, A = part * limits_.acceleration, speed = std::fabs(from.v);
        const double room = std::max(from.v * from.a > 0 ? V - speed : speed, 0.0);
        double least = from.a != 0 ? from.a * from.a / (2 * room) : 0;
        if (stops_) // an initial acceleration ends within rise_
            least = std::max(least, std::fabs(from.a) / rise_);
        // A slower stop is the same motion on a slower clock: jerk scales with the square.
        const double jerk = (stops_ ? part * part : jerk_part(part)) * limits_.jerk;
        return {-V, V, -A, A, part > 1 ? jerk : std::min(std::max(jerk, least), limits_.jerk)};
    }
    /// Returns bounds in the frame of a target that moves for `horizon` s.
    Bounds relative(const Moment &frame, Bounds most, double horizon) const noexcept
    {
        const auto [low, high] = std::minmax({frame.v, frame.v + horizon * frame.a});
        most.fastest = std::min(most.fastest - high, 2 * limits_.velocity);
        most.slowest = std::max(most.slowest - low, -2 * limits_.velocity);
        most.most -= frame.a;
        most.least -= frame.a;
        return most;
    }
    /// Returns a target that can be followed with a fraction of the acceleration.
    Moment slower(double part) const noexcept
    {
        return std::fabs(target_.a) <= STRONGEST * part * limits_.acceleration ? target_ : Moment{target_.p, target_.v};
    }
    /// Returns true if the stop ends within limits.
    bool escape(const Moment &from, double gentle) noexcept
    {
        next_brake_ = bounds(gentle_ = gentle, from);
        bool leaves = this->leaves(from, next_brake_);
        while (gentle_ < hardest() && leaves) {
            // The slowed part of the plan ends at the target, or before it.
            const double harder = std::min(2 * gentle_, hardest());
            next_brake_ = bounds(gentle_ = gentle_ < part_ && part_ < harder ? part_ : harder, from);
            leaves = this->leaves(from, next_brake_);
        }
        escape_.brake(from, next_brake_);
        return !leaves;
    }

    /// Returns the largest fraction of acceleration and jerk.
    double hardest() const noexcept { return stops_ ? haste_ : 1; }
    /// Plan a stop with its acceleration fraction, or more if it would end beyond limits.
    void brake() noexcept
    {
        Bounds most = bounds(stop_part_, now_);
        while (stop_part_ < haste_ && leaves(now_, most))
            most = bounds(stop_part_ = std::min(2 * stop_part_, haste_), now_);
        time_ = 0;
        target_ = asked_ = {plan_.brake(now_, most)};
        hurries_ = stop_part_ == haste_ && state()[0] == inside(state()[0]) && leaves(now_, most);
        const double over = target_.p - inside(target_.p), most_behind = limits_.acceleration * averages_.variance();
        if (hurries_ && std::fabs(over) < FARTHEST) {
            target_ = asked_ = {inside(target_.p) - std::clamp(over, -most_behind, most_behind)}; // the average lags behind
            plan_.reach(now_, target_, most);
        }
    }

    /// Set a target that moves for `horizon` s, without leaving limits.
    void chase(const Moment &asked, const Moment &target, double horizon) noexcept
    {
        const double V = FASTEST * limits_.velocity;
        asked_ = asked;
        target_ = target;
        horizon_ = horizon;
        is_late_ = true;
        stops_ = slowed_ = hurries_ = false;
        const double last = target_.v + horizon * target_.a, A = STRONGEST * limits_.acceleration;
        if (!(std::max(std::fabs(target_.v), std::fabs(last)) < V && std::fabs(target_.a) <= A))
            target_.a = 0;
        target_.v = std::clamp(target_.v, -V, V);
        pursue();
    }

    void pursue() noexcept
    {
        plan_.reach(now_, target_, relative(target_, bounds(), horizon_));
        time_ = 0;
    }

    /// Move the target. It stops at a limit, or before its motion could no longer stop within limits.
    void move_target() noexcept
    {
        if (!moves_on())
            return;
        const double h = limits_.period;
        if (target_.a != 0) {
            const Moment x = plan_.at(time_ + h);
            const double over = std::fabs(x.v + x.a * std::fabs(x.a) / (2 * limits_.jerk)) - limits_.velocity;
            if (time_ + h > horizon_ || over > 0 || leaves(x)) {
                target_.a = asked_.a = 0;
                target_.v = std::clamp(target_.v, -FASTEST * limits_.velocity, FASTEST * limits_.velocity);
                pursue();
            }
        }
        const Moment next = target_.after(h), x = plan_.at(time_ + h);
        const bool beyond = next.p != inside(next.p);
        if (beyond || leaves(x)) {
            target_ = asked_ = {inside(beyond ? next.p : Rest(x, bounds()).position)};
            pursue();
        } else {
            target_ = next;
            asked_ = asked_.after(h);
        }
    }

    /// Returns true if a stop of the follower ends or reverses beyond limits.
    bool leaves(const Moment &x) const noexcept { return leaves(x, bounds()); }
    bool leaves(const Moment &x, const Bounds &brake) const noexcept { return range_.excludes(x, brake); }
    /// Fill the window from the plan up to time `until`, with a parabola `more` added.
    void fill(double until, const Moment &more) noexcept
    {
        time_ = 0;
        averages_.fill(plan_, until, more);
    }

    const FollowerPlan &of(Way way) const noexcept { return way == Way::brake ? escape_ : slowed_ ? trial_ : plan_; }
    /// Returns the start time; a stop starts after the next cycle.
    double begin_of(Way way) const noexcept { return way == Way::brake ? -limits_.period : slowed_ ? 0 : time_; }
    /// Returns the follower state `cycles` later, or earlier.
    Moment moment(long cycles, Way way) const noexcept
    {
        return cycles > 0 ? of(way).at(begin_of(way) + limits_.period * static_cast<double>(cycles))
                          : averages_.past(static_cast<std::size_t>(-cycles));
    }

    MotionLimits limits_{};
    MovingAverages averages_;
    // Room for jerk and snap, relative to their present size.
    double room_ = 1;
    FollowerPlan plan_;
    // Slowed proposal, and the stop after it; their acceleration fractions; bounds of this stop and of the last stop.
    FollowerPlan trial_, escape_;
    double part_ = 1, gentle_ = 1, stop_part_ = 1, haste_ = 1;
    Bounds next_brake_{}, brake_{};
    // Flags: the last or proposed cycle is slowed; the plan is a stop; slowing is not allowed, or would leave the range.
    bool slowed_ = false, stops_ = false, hurries_ = false;
    BrakeRange range_{};
    bool is_late_ = false; // the stop after the last cycle passes the target, because it is new or may be passed
    // Time since the start of the plan; time of target acceleration; minimum time to end an initial acceleration in a stop, s.
    double time_ = 0, horizon_ = 0, rise_ = 0;
    // Follower; its target, ahead by the delay; target without delay.
    Moment now_, target_, asked_;
};

} // namespace eom

#endif
