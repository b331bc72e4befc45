// SPDX-License-Identifier: Apache-2.0
// The way of an arm to rest when setpoints are lost.
#ifndef EOM_STOP_HPP
#define EOM_STOP_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "company.hpp"
#include "limits.hpp"
#include "loop_parameters.hpp"
#include "path_time.hpp"
#include "setpoint.hpp"
#include "spline.hpp"

namespace eom {

template <class Robot>
class TrajectoryPlayer;
template <class Robot>
class TargetMotion;

/// The motion of a setpoint as a state.
template <class Robot>
State<Robot::joints> state_of(const Setpoint<Robot> &x) noexcept
{
    return {x.q, x.qd, x.qdd, x.qddd, x.qdddd};
}

/// Takes the motion of a state into a setpoint.
template <class Robot>
void take(const State<Robot::joints> &state, Setpoint<Robot> &x) noexcept
{
    x.q = state[0];
    x.qd = state[1];
    x.qdd = state[2];
    x.qddd = state[3];
    x.qdddd = state[4];
}

/// Leaves out jerk and snap of a state where they would move a joint further in a stop of T s than velocity and acceleration do:
/// they are noise of differences.
template <std::size_t n>
void quiet(State<n> &x, double T) noexcept
{
    for (std::size_t i = 0; i < n; ++i)
        if (T * T * (std::fabs(x[3][i]) / 84 + T * std::fabs(x[4][i]) / 1680) >
            std::fabs(x[1][i]) / 2 + T * 3 * std::fabs(x[2][i]) / 28)
            x[3][i] = x[4][i] = 0;
}

/// A motion to rest, with the wrench, the stiffness and the motion of the base of its start.
template <class Robot>
class Stop {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    /// From a setpoint of a stamp, ns, in T s: the polynomial of least degree, eight, with four derivatives at both ends, of
    /// each joint, from setpoints see quiet(). A joint that would leave its range comes to rest sooner: as late as
    /// possible, but not much faster than it can brake, or at once in place of the shortest stops.
    void begin(const Robot &robot, const Setpoint<Robot> &setpoint, std::int64_t stamp, double T, double wanted) noexcept
    {
        start(setpoint, stamp, T);
        double longest = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const double low = robot.lower.q[i], high = robot.upper.q[i], q = static_cast<double>(setpoint.q[i]);
            const bool inside = q >= low && q <= high;
            const double v = std::fabs(setpoint.qd[i]);
            const double least = v > 0 ? @stop_haste@ * v / Limits<Robot>::braking(robot, setpoint, i, wanted) : 0;
            double t = T;
            bool fits;
            while (!(fits = place(i, t, std::min(low, q), std::max(high, q))) && inside && t > least && t > SHORTEST_STOP)
                t *= @stop_shrinkage@;
            if (inside && t <= SHORTEST_STOP && (t < T || !fits))
                place(i, t = 0, low, high);
            if (setpoint.qd[i] != 0 || setpoint.qdd[i] != 0 || setpoint.qddd[i] != 0 || setpoint.qdddd[i] != 0)
                longest = std::max(longest, t);
        }
        if (longest > 0)
            duration_ = longest;
    }

    /// Begins the stop of the wanted duration, or of longer ones, which accelerate less, then of shorter ones, which need
    /// less of the ranges: the first within the limits that the start meets, or else the one that exceeds them least.
    /// Returns its excess over limits.
    template <class Commander>
    double choose(Commander &commander, const Setpoint<Robot> &from) noexcept
    {
        const double wanted = commander.parameters.stop_duration;
        noisy_ = commander.leader() == Leader::setpoints;
        double best = wanted, least = std::numeric_limits<double>::infinity();
        for (int i = 0; i <= LONGER_STOPS + SHORTER_STOPS && least > LIMIT_TOLERANCE; ++i) {
            const double T = wanted * std::pow(@stop_growth@, i <= LONGER_STOPS ? i : LONGER_STOPS - i);
            begin(commander.robot, from, commander.stamp(), T, wanted);
            const double excess = commander.excess_of(
                [this](double share, Setpoint<Robot> &x) {
                    seek(end() * share);
                    x = setpoint();
                },
                commander.latest, end(), STOP_SAMPLES, least);
            if (excess < least) {
                least = excess;
                best = T;
            }
        }
        begin(commander.robot, from, commander.stamp(), best, wanted);
        return least;
    }

    /// Begins a stop on the path of a player from a time on, ns, with a setpoint there; returns whether there is a path. The
    /// motion goes on until seek_on() has found the shortest one.
    bool choose(TrajectoryPlayer<Robot> &player, const Setpoint<Robot> &from, std::int64_t now) noexcept
    {
        if (!player.begin_stop(time_))
            return false;
        rest(from, now);
        path_ = &player;
        begin_ = now;
        duration_ = std::numeric_limits<double>::infinity();
        return true;
    }

    /// Goes on to seek in a cycle of a period, s, or begins to, with 0; returns whether limits may still allow a stop.
    bool seek_on(double period) noexcept
    {
        constexpr std::int64_t UNKNOWN = std::numeric_limits<std::int64_t>::max();
        std::int64_t end = UNKNOWN;
        const bool allowed = !path_ || path_->seek_stop(time_, begin_ + ns_, period, end);
        if (end != UNKNOWN)
            duration_ = seconds(std::max<std::int64_t>(end - begin_, 0)); // in a pause, at once
        return allowed;
    }

    /// Begins the stop of a motion to targets, within its limits, from a time on, ns, with a setpoint there.
    void choose(TargetMotion<Robot> &motion, const Setpoint<Robot> &from, std::int64_t now) noexcept
    {
        motion.brake(now);
        rest(from, now);
        motion_ = &motion;
        duration_ = motion.left();
    }

    /// Whether the stop stays on a path, or is that of a motion to targets; in both, time goes on from the last command.
    bool on_path() const noexcept { return path_ != nullptr; }
    bool brakes() const noexcept { return motion_ != nullptr; }
    PathState path_state() const noexcept { return time_.at(begin_ + ns_); }

    /// At rest at once.
    void rest(const Setpoint<Robot> &setpoint, std::int64_t stamp) noexcept
    {
        start(setpoint, stamp, 0);
        for (std::size_t i = 0; i < n; ++i)
            place(i, 0, 0, 0);
    }

    /// At rest from now on.
    void stay(const Setpoint<Robot> &setpoint) noexcept
    {
        const std::int64_t ns = ns_;
        rest(setpoint, stamp_);
        ns_ = ns;
        s_ = seconds(ns_);
    }

    /// Goes on by a time, ns: in ns, so that the sum does not depend on the steps.
    void advance(std::int64_t step) noexcept
    {
        ns_ += step;
        s_ = seconds(ns_);
        if (motion_)
            motion_->advance(step);
    }
    void seek(double seconds) noexcept { s_ = seconds; }

    /// Time since its start, and at its end, s.
    double time() const noexcept { return s_; }
    double end() const noexcept { return duration_; }
    bool rests() const noexcept { return motion_ ? motion_->rests() : s_ >= end(); }

    /// Stamp of now, ns: dampers go on from the last setpoint, as the motion does. 0 if that had none.
    std::int64_t stamp() const noexcept { return stamp_ ? stamp_ + ns_ : 0; }

    /// The state some time later, s.
    State<n> state_after(double later) const noexcept
    {
        if (path_)
            return path_->follow(time_, begin_ + ns_, later);
        State<n> state;
        for (std::size_t i = 0; i < n; ++i) {
            State<1> x;
            pieces_[i].evaluate(s_ + later, x);
            for (std::size_t k = 0; k < x.size(); ++k)
                state[k][i] = x[k][0];
        }
        return state;
    }

    Setpoint<Robot> setpoint() noexcept
    {
        if (motion_)
            return motion_->setpoint();
        Setpoint<Robot> x = from_;
        take(state_after(0), x);
        if (!path_)
            accompany(x);
        return x;
    }

    /// Has a setpoint have what accompanies the stop some time later, s.
    void accompany(Setpoint<Robot> &x, double later = 0) const noexcept
    {
        company_.accompany(x, s_ + later, std::max(end(), 0.0));
    }

    /// Fade efforts in a time T, s, by the factor w = 1 - 10 u^3 + 15 u^4 - 6 u^5, which starts and ends with two
    /// derivatives zero; returns w and its time derivative.
    std::array<Scalar, 2> fade(Command<Robot> &y, double T) const noexcept
    {
        const double u = std::min(s_ / T, 1.0), v = 1 - u;
        const auto w = static_cast<Scalar>(std::min(v * v * v * (1 + u * (3 + 6 * u)), 1.0));
        const auto wd = static_cast<Scalar>(-30 * u * u * v * v / T);
        const auto wdd = static_cast<Scalar>(-60 * u * v * (1 - 2 * u) / (T * T));
        for (std::size_t i = 0; i < n; ++i) {
            y.taudd[i] = w * y.taudd[i] + 2 * wd * y.taud[i] + wdd * y.tau[i];
            y.taud[i] = w * y.taud[i] + wd * y.tau[i];
            y.tau[i] *= w;
        }
        if (!finite(y.taud, y.taudd)) // of numbers near the largest ones
            y.taud = y.taudd = {};
        for (Scalar &effort : y.motor_effort)
            effort *= w;
        return {w, wd};
    }

  private:
    /// Stops that are tried after that of the wanted duration, each longer than the one before, and then each shorter.
    static constexpr int LONGER_STOPS = @longer_stops@, SHORTER_STOPS = @shorter_stops@;
    static constexpr std::size_t STOP_SAMPLES = @stop_samples@, PLACES = @stop_places@;
    static constexpr double SHORTEST_STOP = @shortest_stop@;

    void start(const Setpoint<Robot> &from, std::int64_t stamp, double duration) noexcept
    {
        from_ = from;
        company_.begin(from);
        stamp_ = stamp;
        duration_ = duration;
        path_ = nullptr;
        motion_ = nullptr;
        s_ = 0;
        ns_ = 0;
    }

    /// Brings a joint to rest in a time, s, 0 for at once; returns whether it stays within a range.
    bool place(std::size_t i, double T, double lower, double upper) noexcept
    {
        const State<n> whole = state_of(from_);
        State<1> from, to{};
        for (std::size_t k = 0; k < from.size(); ++k)
            from[k][0] = whole[k][i];
        if (T == 0) {
            pieces_[i] = Piece<1>(-1, 0, from, from);
            return true;
        }
        if (noisy_)
            quiet(from, T);
        // How far each derivative takes it: monotonically.
        const std::array<double, 4> way{T / 2 * from[1][0], 3 * T * T / 28 * from[2][0], T * T * T / 84 * from[3][0],
                                  T * T * T * T / 1680 * from[4][0]};
        to[0][0] = from[0][0] + (way[0] + way[1] + way[2] + way[3]);
        pieces_[i] = Piece<1>(0, T, from, to);
        double low = from[0][0], high = low;
        for (const double part : way)
            (part < 0 ? low : high) += part;
        for (std::size_t k = 0; k <= PLACES && (low < lower || high > upper); ++k) {
            State<1> x;
            pieces_[i].evaluate(T * static_cast<double>(k) / PLACES, x);
            const double q = x[0][0], turn = q + T / (2 * PLACES) * x[1][0]; // where it may turn before the next one
            if (std::max(q, turn) > upper || std::min(q, turn) < lower)
                return false;
        }
        return true;
    }

    std::array<Piece<1>, n> pieces_;
    // Of a stop of a motion to targets, or on a path: its motion or player, its time, its begin, ns, and its duration, s.
    TargetMotion<Robot> *motion_ = nullptr;
    TrajectoryPlayer<Robot> *path_ = nullptr;
    PathTime time_;
    std::int64_t begin_ = 0;
    double duration_ = 0;
    Setpoint<Robot> from_;
    // Whether that is one of a stream, whose jerk and snap may be noise.
    bool noisy_ = false;
    Company<Robot> company_;
    // Of the setpoint, and time since the start, ns.
    std::int64_t stamp_ = 0, ns_ = 0;
    double s_ = 0;
};

} // namespace eom

#endif
