// SPDX-License-Identifier: Apache-2.0
// The way of an arm to rest when setpoints are lost.
#ifndef EOM_STOP_HPP
#define EOM_STOP_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

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
void give(const Setpoint<Robot> &x, State<Robot::joints> &state) noexcept
{
    const JointVector<Robot> *const rows[] = {&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd};
    for (std::size_t k = 0; k < 5; ++k)
        for (std::size_t i = 0; i < Robot::joints; ++i)
            state[k][i] = static_cast<double>((*rows[k])[i]);
}

/// Takes the motion of a state into a setpoint.
template <class Robot>
void take(const State<Robot::joints> &state, Setpoint<Robot> &x) noexcept
{
    JointVector<Robot> *const rows[] = {&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd};
    for (std::size_t k = 0; k < 5; ++k)
        for (std::size_t i = 0; i < Robot::joints; ++i)
            (*rows[k])[i] = static_cast<typename Robot::Scalar>(state[k][i]);
}

/// A motion to rest, with the wrench, the stiffness and the motion of the base of its start.
template <class Robot>
class Stop {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints;

    /// From a setpoint of a stamp, ns, in T s: the polynomial of least degree, eight, with four derivatives at both
    /// ends. Where jerk and snap would move a joint further than velocity and acceleration do, they are noise of
    /// differences, and the motion starts without them.
    void begin(const Setpoint<Robot> &setpoint, std::int64_t stamp, double T) noexcept
    {
        State<n> from, to{};
        give(setpoint, from);
        for (std::size_t i = 0; i < n; ++i) {
            const double jerk = std::fabs(from[3][i]), snap = std::fabs(from[4][i]);
            if (T * T * (jerk / 84 + T * snap / 1680) >
                std::fabs(from[1][i]) / 2 + T * 3 * std::fabs(from[2][i]) / 28)
                from[3][i] = from[4][i] = 0;
            to[0][i] = from[0][i] +
                       T * (from[1][i] / 2 + T * (3 * from[2][i] / 28 + T * (from[3][i] / 84 + T * from[4][i] / 1680)));
        }
        start(Piece<n>(0, T, from, to), setpoint, stamp);
    }

    /// Begins the stop of the wanted duration, or of longer ones, which accelerate less, then of shorter ones, which need
    /// less of the ranges: the first within the limits that the start meets, or else the one that exceeds them least.
    /// Returns its excess over limits.
    template <class Commander>
    double choose(Commander &commander, const Setpoint<Robot> &from) noexcept
    {
        const double wanted = commander.parameters.stop_duration;
        double best = wanted, least = std::numeric_limits<double>::infinity();
        for (int i = 0; i <= LONGER_STOPS + SHORTER_STOPS && least > LIMIT_TOLERANCE; ++i) {
            const double T = wanted * std::pow(@stop_growth@, i <= LONGER_STOPS ? i : LONGER_STOPS - i);
            begin(from, commander.stamp(), T);
            const double excess = commander.excess_of(
                [this](double share, Setpoint<Robot> &x) {
                    seek(end() * share);
                    x = setpoint();
                },
                commander.latest, T, STOP_SAMPLES, least);
            if (excess < least) {
                least = excess;
                best = T;
            }
        }
        begin(from, commander.stamp(), best);
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
        State<n> state;
        give(setpoint, state);
        start(Piece<n>(-1, 0, state, state), setpoint, stamp);
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
    double end() const noexcept { return path_ || motion_ ? duration_ : piece_.end(); }
    bool rests() const noexcept { return motion_ ? motion_->rests() : s_ >= end(); }

    /// Stamp of now, ns: dampers go on from the last setpoint, as the motion does. 0 if that had none.
    std::int64_t stamp() const noexcept { return stamp_ ? stamp_ + ns_ : 0; }

    /// The state some time later, s.
    void evaluate(State<n> &state, double later = 0) const noexcept
    {
        if (path_)
            path_->follow(time_, begin_ + ns_, later, state);
        else
            piece_.evaluate(s_ + later, state);
    }

    Setpoint<Robot> setpoint() noexcept
    {
        if (motion_)
            return motion_->setpoint();
        State<n> state;
        evaluate(state);
        Setpoint<Robot> x = from_;
        take(state, x);
        if (path_) // where all else rests
            return x;
        settle(x.W, x.Wd, x.Wdd);
        settle(x.k, x.kd, x.kdd);
        if (x.on_base) {
            settle(x.base.w, x.base.wd, x.base.wdd, x.base.wddd);
            settle(x.base.f, x.base.fd, x.base.fdd);
        }
        return x;
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
    static constexpr std::size_t STOP_SAMPLES = @stop_samples@;

    void start(const Piece<n> &piece, const Setpoint<Robot> &from, std::int64_t stamp) noexcept
    {
        piece_ = piece;
        from_ = from;
        stamp_ = stamp;
        path_ = nullptr;
        motion_ = nullptr;
        s_ = 0;
        ns_ = 0;
    }

    /// A quantity with two derivatives at the start of the stop, changed to what it is now: degree four, C2.
    template <class Values>
    void settle(Values &x, Values &xd, Values &xdd) const noexcept
    {
        const double T = std::max(end(), 0.0), u = T > 0 ? std::min(s_ / T, 1.0) : 1;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double v = static_cast<double>(xd[i]), a = static_cast<double>(xdd[i]);
            const double of_rate = u * (1 - u * u * (1 - u / 2)), of_second = u * u * (0.5 - u * (2.0 / 3 - u / 4));
            x[i] += static_cast<Scalar>(T * (v * of_rate + T * a * of_second));
            xd[i] = static_cast<Scalar>(v * (1 - u * u * (3 - 2 * u)) + T * a * u * (1 - u) * (1 - u));
            xdd[i] = u < 1 ? static_cast<Scalar>(-6 * v * u * (1 - u) / T + a * (1 - u) * (1 - 3 * u)) : 0;
        }
    }

    /// The same of one with three derivatives: degree six, C3.
    template <class Values>
    void settle(Values &x, Values &xd, Values &xdd, Values &xddd) const noexcept
    {
        const double T = std::max(end(), 0.0), u = T > 0 ? std::min(s_ / T, 1.0) : 1, r = 1 - u;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double v = static_cast<double>(xd[i]), a = T * static_cast<double>(xdd[i]);
            const double j = T * T / 2 * static_cast<double>(xddd[i]);
            const double of_rate = u * (1 - u * u * u * (2.5 - u * (3 - u)));
            const double of_second = u * u * (0.5 - u * u * (1.5 - u * (1.6 - u / 2)));
            const double of_third = u * u * u * (1.0 / 3 - u * (0.75 - u * (0.6 - u / 6)));
            x[i] += static_cast<Scalar>(T * (v * of_rate + a * of_second + j * of_third));
            xd[i] = static_cast<Scalar>(r * r * r * (v * (1 + u * (3 + 6 * u)) + u * (a * (1 + 3 * u) + u * j)));
            xdd[i] = xddd[i] = 0;
            if (u < 1) {
                xdd[i] = static_cast<Scalar>(
                    r * r / T * (-30 * v * u * u + a * (1 + u * (2 - 15 * u)) + j * u * (2 - 5 * u)));
                xddd[i] = static_cast<Scalar>(
                    r / (T * T) *
                    (-60 * v * u * (1 - 2 * u) - 12 * a * u * (3 - 5 * u) + 2 * j * (1 - u * (8 - 10 * u))));
            }
        }
    }

    Piece<n> piece_;
    // Of a stop of a motion to targets, or on a path: its motion or player, its time, its begin, ns, and its duration, s.
    TargetMotion<Robot> *motion_ = nullptr;
    TrajectoryPlayer<Robot> *path_ = nullptr;
    PathTime time_;
    std::int64_t begin_ = 0;
    double duration_ = 0;
    Setpoint<Robot> from_;
    // Of the setpoint, and time since the start, ns.
    std::int64_t stamp_ = 0, ns_ = 0;
    double s_ = 0;
};

} // namespace eom

#endif
