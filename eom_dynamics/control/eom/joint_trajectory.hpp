// SPDX-License-Identifier: Apache-2.0
// Online trajectory of a joint: from targets that may change in each cycle to motion with continuous snap, within limits.
//
// A follower goes to the target in the least time under limits of velocity, acceleration and jerk. Two exact moving averages
// of whole cycles, T1 = 2 J / S and `smoothing`, make its motion C4; they keep hull, velocity, acceleration and jerk.
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

/// Limits of a joint, length of the second average, s, and the period of cycles, s.
struct MotionLimits {
    double lower, upper, velocity, acceleration, jerk, snap, smoothing, period;
};

/// Online trajectory of one joint.
class JointTrajectory {
  public:
    /// q ... qdddd
    using State = MovingAverages::State;

    /// Most cycles of all averages together.
    static constexpr double MOST_CYCLES = 100000;
    /// Time for which a target accelerates at most, s.
    static constexpr double HORIZON = 0.05;

    /// Takes limits, and rests at zero; returns what is wrong with them, or null. Allocates.
    const char *configure(const MotionLimits &limits)
    {
        for (const double x : {limits.velocity, limits.acceleration, limits.jerk, limits.snap, limits.period})
            if (!(x > 0 && std::isfinite(x)))
                return "limits of velocity to snap, and the period, must be finite and > 0";
        if (!(limits.lower < limits.upper) || !(limits.smoothing >= 0))
            return "the lower limit must be less than the upper one, and the smoothing >= 0";
        const double h = limits.period;
        const auto whole = [](double cycles) { return std::max(1.0, std::ceil(cycles - 1e-9)); }; // allows for rounding
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
    /// Delay of the averages, half their length, s.
    double delay() const noexcept { return averages_.delay(); }
    /// Length of the shorter one, s, and the largest jerk and snap behind both.
    double shorter() const noexcept { return averages_.shorter(); }
    double largest_jerk() const noexcept { return limits_.jerk; }
    double largest_snap() const noexcept { return 2 * limits_.jerk / averages_.longer(); }
    /// Time in which the acceleration rises, s.
    double ramp() const noexcept { return limits_.acceleration / limits_.jerk; }
    const State &state() const noexcept { return averages_.state(); }
    /// The state within the last cycle, by a time back from its end, s, at most 0. The snap counts as linear there, which is not
    /// to lead beyond limits that both ends of the cycle keep.
    State state(double back) const noexcept
    {
        const auto [q, qd, qdd, qddd, qdddd] = averages_.state();
        const double f = averages_.fifth();
        const auto velocity = [&](double t) { return qd + t * (qdd + t / 2 * (qddd + t / 3 * (qdddd + t / 4 * f))); };
        const auto acceleration = [&](double t) { return qdd + t * (qddd + t / 2 * (qdddd + t / 3 * f)); };
        const auto held = [this](double x, double limit, double most) { // beyond it, it comes back within it, or hurries
            return most <= limit && hardest() <= 1 ? std::clamp(x, -limit, limit) : x;
        };
        const auto of_ends = [h = limits_.period](const auto &of) { return std::max(std::fabs(of(0)), (1 - 1e-6) * std::fabs(of(-h))); };
        return {q + back * (qd + back / 2 * (qdd + back / 3 * (qddd + back / 4 * (qdddd + back / 5 * f)))),
                held(velocity(back), limits_.velocity, of_ends(velocity)), held(acceleration(back), limits_.acceleration, of_ends(acceleration)),
                held(qddd + back * (qdddd + back / 2 * f), limits_.jerk, std::fabs(qddd)), qdddd + back * f};
    }
    /// The target, at present.
    double target() const noexcept { return asked_.p; }
    double rest_of(double position) const noexcept { return inside(position); } // of a target
    /// Whether the target moves on.
    bool moves_on() const noexcept { return target_.v != 0 || target_.a != 0; }
    /// Whether it rests at its target.
    bool arrived() const noexcept { return averages_.rests() && !moves_on() && now_.v == 0 && now_.p == target_.p; }

    /// Rests at a position, which becomes the target.
    void rest(double q) noexcept
    {
        now_ = target_ = asked_ = {q};
        plan_.join(now_, now_, 0);
        stops_ = slowed_ = hurries_ = false;
        averages_.settle(now_);
    }

    /// Continues from a state, as from that past of a jerk of +-j whose averages have this jerk and snap, for the least j, and
    /// comes to rest until there is a target. Position and velocity are kept, acceleration whole or, as jerk and snap, as far as
    /// a motion within limits has them. Returns by how much these are, or the motion may be, beyond limits, relative to them.
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
        // What is missing is a parabola, whose average lags by the delay, and bends by the variance of the kernel.
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

    /// Takes a target, clamped to the limits, which moves on, and accelerates for a while. Averages do not lag behind it.
    void aim(double position, double velocity, double acceleration = 0) noexcept
    {
        const double D = delay(), v = std::clamp(velocity, -limits_.velocity, limits_.velocity);
        const double a = std::fabs(v + acceleration * (D + HORIZON)) < limits_.velocity ? acceleration : 0;
        const Moment led{inside(position) + D * v + (D * D - averages_.variance()) / 2 * a, v + D * a, a};
        chase({inside(position), v, a}, {inside(led.p), led.v, led.a}, HORIZON);
    }
    /// Takes the place, a delay ahead, of a target that is followed in each cycle.
    void follow(const Moment &ahead) noexcept
    {
        const double p = ahead.p - averages_.variance() / 2 * ahead.a;
        const bool stays = p == inside(p);
        chase({inside(ahead.p)}, stays ? Moment{p, ahead.v, ahead.a} : Moment{inside(p)}, limits_.period);
    }

    /// Comes to rest in a duration, s, or as soon as limits allow; up to `haste` times as hard where it would leave its range.
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
            stop_part_ *= 2; // of numbers that no arm can have
        const bool waits = !lasts(1, most);
        for (double step = LEAST_PART; waits && step < 1 - 1e-4; step = std::sqrt(step)) // bisection of the logarithm
            stop_part_ *= lasts(stop_part_ * step, most) ? 1 : step;
        brake();
    }
    /// Where the follower, and what is commanded, rest after a stop that begins now, and where they turn before.
    std::array<double, 2> brake_positions() const noexcept { return eom::brake_positions(now_, bounds()); }

    /// Largest velocity of the state and of the plan, whose averages have none larger.
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

    /// Part of jerk with one of the acceleration: where limits have many times more room for jerk and snap than these take, more of
    /// it; where less, that of a slower clock.
    void spare(double room) noexcept { room_ = room; }
    double jerk_part(double part) const noexcept
    {
        const double root = std::sqrt(part);
        return part * std::clamp(room_, root, 1 / root);
    }

    /// Time from now to the end of the motion to the target, s.
    double left() const noexcept { return std::max(plan_.end() - time_, 0.0) + 2 * delay(); }

    /// Prepares a cycle: moves the target on, and returns to the plan after a cycle that was slower.
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
    /// Brakes of this cycle may pass the target.
    void allow_overshoot() noexcept
    {
        widen();
        is_late_ = true;
    }

    /// By which setpoints are judged.
    Viability viability() const noexcept { return {limits_.acceleration, limits_.jerk, delay(), averages_.variance()}; }

    /// Whether a cycle that is prepared changes nothing.
    bool rests() const noexcept { return averages_.rests() && now_.v == 0 && !moves_on() && time_ >= plan_.end(); }

    /// Proposes the next cycle as planned, or slower: with a part of the acceleration, in (0, 1], or as part of the brake that was
    /// possible after the cycle before, 0; and a brake after it, with a part of the acceleration, or more where it would end beyond
    /// limits of position.
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
            propose(1, gentle); // it is too late for less
        else if (part == 0)
            escape_.brake(next, next_brake_ = brake_);
    }
    /// Proposes a cycle of a brake that begins with it, with a part of the acceleration, or more as above.
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
    /// Another brake after the cycle that is proposed.
    void escape(double gentle) noexcept
    {
        if (part_ > 0 && gentle_ < gentle)
            escape(escape_.at(0), gentle);
    }
    /// Part of the limit of jerk in the brake after the cycle that is proposed.
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

    /// A cycle: the state at its end.
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

    /// Computes position and velocity from the window, so that rounding does not add up.
    void anchor() noexcept { averages_.anchor(); }

    /// Predicts the state after so many cycles, by the plan, or the brake after the cycle that is proposed.
    State predicted(long k, Way way) const noexcept
    {
        return averages_.predicted(k, [this, way](long cycles) { return moment(cycles, way); });
    }

  private:
    /// Least and largest part of acceleration in a stop; longest stop, s; distance beyond a range from which a joint comes back, rad or m.
    static constexpr double LEAST_PART = 1e-3, HARDEST = 1e9, LONGEST_STOP = 10, FARTHEST = 0.2, LONGEST_RISE = 0.01;
    /// Largest shares of limits that targets have, so that there is room to reach them.
    static constexpr double FASTEST = 0.999, STRONGEST = 0.9;

    /// Brakes may end within the whole range.
    void widen() noexcept { range_ = {limits_.lower, limits_.upper}; }
    double inside(double p) const noexcept { return std::clamp(p, limits_.lower, limits_.upper); }

    Bounds bounds() const noexcept
    {
        const double V = limits_.velocity, A = limits_.acceleration;
        return {-V, V, -A, A, limits_.jerk};
    }
    /// With a part of acceleration, and one of jerk, where that leads neither beyond the limit of velocity nor to a turn.
    Bounds bounds(double part, const Moment &from) const noexcept
    {
        const double V = limits_.velocity, A = part * limits_.acceleration, speed = std::fabs(from.v);
        const double room = std::max(from.v * from.a > 0 ? V - speed : speed, 0.0);
        double least = from.a != 0 ? from.a * from.a / (2 * room) : 0;
        if (stops_) // an acceleration at its start ends soon
            least = std::max(least, std::fabs(from.a) / rise_);
        // A slower stop is the same motion on a slower clock: jerk scales with the square.
        const double jerk = (stops_ ? part * part : jerk_part(part)) * limits_.jerk;
        return {-V, V, -A, A, part > 1 ? jerk : std::min(std::max(jerk, least), limits_.jerk)};
    }
    /// In the frame of a target that moves on in a while, s.
    Bounds relative(const Moment &frame, Bounds most, double horizon) const noexcept
    {
        const auto [low, high] = std::minmax({frame.v, frame.v + horizon * frame.a});
        most.fastest = std::min(most.fastest - high, 2 * limits_.velocity);
        most.slowest = std::max(most.slowest - low, -2 * limits_.velocity);
        most.most -= frame.a;
        most.least -= frame.a;
        return most;
    }
    /// A target that follows where only a part of the acceleration is left.
    Moment slower(double part) const noexcept
    {
        return std::fabs(target_.a) <= STRONGEST * part * limits_.acceleration ? target_ : Moment{target_.p, target_.v};
    }
    /// Returns whether the brake ends within limits.
    bool escape(const Moment &from, double gentle) noexcept
    {
        next_brake_ = bounds(gentle_ = gentle, from);
        bool leaves = this->leaves(from, next_brake_);
        while (gentle_ < hardest() && leaves) {
            // The part of the plan ends at the target, or before it.
            const double harder = std::min(2 * gentle_, hardest());
            next_brake_ = bounds(gentle_ = gentle_ < part_ && part_ < harder ? part_ : harder, from);
            leaves = this->leaves(from, next_brake_);
        }
        escape_.brake(from, next_brake_);
        return !leaves;
    }

    /// Largest part of acceleration and jerk.
    double hardest() const noexcept { return stops_ ? haste_ : 1; }
    /// Plans a stop from now on with its part, or more where it would end beyond limits.
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
            target_ = asked_ = {inside(target_.p) - std::clamp(over, -most_behind, most_behind)}; // the average stays behind
            plan_.reach(now_, target_, most);
        }
    }

    /// Sets a target that moves on in a while, s, without leaving limits.
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

    /// Moves the target on. It stops at a limit, or before the motion to it could not stop within limits any more.
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

    /// Whether a stop of a follower ends beyond limits, or turns there.
    bool leaves(const Moment &x) const noexcept { return leaves(x, bounds()); }
    bool leaves(const Moment &x, const Bounds &brake) const noexcept { return range_.excludes(x, brake); }
    /// Fills the window with what the plan has until a time, and a parabola about it.
    void fill(double until, const Moment &more) noexcept
    {
        time_ = 0;
        averages_.fill(plan_, until, more);
    }

    const FollowerPlan &of(Way way) const noexcept { return way == Way::brake ? escape_ : slowed_ ? trial_ : plan_; }
    /// When it begins on its way: a brake after the next cycle.
    double begin_of(Way way) const noexcept { return way == Way::brake ? -limits_.period : slowed_ ? 0 : time_; }
    /// The follower so many cycles later, or earlier.
    Moment moment(long cycles, Way way) const noexcept
    {
        return cycles > 0 ? of(way).at(begin_of(way) + limits_.period * static_cast<double>(cycles))
                          : averages_.past(static_cast<std::size_t>(-cycles));
    }

    MotionLimits limits_{};
    MovingAverages averages_;
    // Largest velocity relative to the target; and room for jerk and snap.
    double room_ = 1;
    FollowerPlan plan_;
    // Proposed cycle, if it is slower, and the brake after it; their parts of acceleration; bounds of that and of the last brake.
    FollowerPlan trial_, escape_;
    double part_ = 1, gentle_ = 1, stop_part_ = 1, haste_ = 1;
    Bounds next_brake_{}, brake_{};
    // Whether the last or proposed cycle is slower; whether the plan is a stop; whether it may not be slower, or would leave the range.
    bool slowed_ = false, stops_ = false, hurries_ = false;
    BrakeRange range_{};
    bool is_late_ = false; // whether the brake after the last cycle passes the target, which is new, or could be passed
    // Since the plan began, for which its target accelerates, and in which an acceleration at the start of a stop ends at least, s.
    double time_ = 0, horizon_ = 0, rise_ = 0;
    // The follower, its target, which is ahead by the delay, and the target without that.
    Moment now_, target_, asked_;
};

} // namespace eom

#endif
