// SPDX-License-Identifier: Apache-2.0
// One cycle of a controller around the feedforward: references in, commands of joints and motors out.
#ifndef EOM_CONTROL_LOOP_HPP
#define EOM_CONTROL_LOOP_HPP

#include <algorithm>
#include <cstdint>

#include "deflection_filter.hpp"
#include "limits.hpp"
#include "linearization.hpp"
#include "mailbox.hpp"
#include "spline.hpp"

namespace eom {

/// What to do when references stop, as the parameter setpoint_timeout_policy.
enum class TimeoutPolicy {
    none,       ///< continue with the last command
    hold,       ///< come to rest along a polynomial, then hold the position
    ramp,       ///< take the efforts to zero
    deactivate, ///< stop controlling
};

/// Where the commands come from.
enum class Status {
    waiting,  ///< no reference has come yet
    fresh,    ///< the reference of this cycle, or of the last ones within the timeout
    held,     ///< the last command that was valid: the reference was refused
    stopping, ///< a motion to rest, or at rest after it
    ramping,  ///< efforts on their way to zero, or zero
    lost,     ///< references have stopped, and the controller should be deactivated
};

/// Why the last reference was refused.
enum class Refusal { none, not_finite, over_limits, too_old, busy, starts_away, ended };

/// A setpoint with its time.
template <class Robot>
struct StampedSetpoint {
    std::int64_t stamp = 0; ///< ns; 0 if it has none
    Setpoint<Robot> setpoint;
};

/// A trajectory with the time of its t = 0.
template <class Robot>
struct StampedSpline {
    std::int64_t stamp = 0; ///< ns; 0 for its arrival
    bool stop = false;      ///< come to rest instead
    Spline<Robot::joints> spline;
};

/// Settings of the loop; gains of zero leave feedback out.
template <class Robot>
struct LoopParameters {
    using Scalar = typename Robot::Scalar;

    LimitPolicy limits = LimitPolicy::warn;
    /// s; 0 for none.
    double setpoint_timeout = 0;
    TimeoutPolicy timeout_policy = TimeoutPolicy::none;
    /// Durations of a stop and of a ramp, s.
    double stop_time = 0.5, ramp_time = 0.5;
    /// Largest age of a setpoint by its stamp, s; 0 for any.
    double setpoint_lifespan = 0;
    /// Gains of a PD around the motor motion, and around the link motion, which acts through the motors.
    MotorVector<Robot> motor_kp{}, motor_kd{};
    JointVector<Robot> link_kp{}, link_kd{};
    /// Whether motor efforts are those of feedback linearization, and its poles, rad/s.
    bool linearize = false;
    Scalar natural_frequency = 20;
    std::array<Scalar, 2> stiffness_gains{};
};

/// Result of a cycle.
template <class Robot>
struct LoopOutput {
    /// The setpoint that is followed, and its feedforward within the limits that are clipped.
    Setpoint<Robot> setpoint;
    Command<Robot> command;
    /// With feedback.
    MotorVector<Robot> motor_effort{};
    JointVector<Robot> joint_effort{};
    /// Of the springs at the motors.
    MotorVector<Robot> deflection{};
    Status status = Status::waiting;
    /// Whether there is a command.
    bool valid = false;
};

/// Counts since the last restart.
struct LoopCounts {
    std::uint64_t cycles = 0, followed = 0, refused = 0, over_limits = 0, timeouts = 0;
};

/// The loop. update() neither allocates nor locks nor throws, and takes a bounded time.
///
/// One other thread may send setpoints and trajectories by the mailboxes. All times are those of one clock, in ns.
template <class Robot>
class ControlLoop {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;

    /// Largest distance of the start of a trajectory from the commanded position, rad or m.
    static constexpr double START_TOLERANCE = 0.01;

    Mailbox<StampedSetpoint<Robot>> setpoints;
    Mailbox<StampedSpline<Robot>> trajectories;

    /// Takes parameters; returns what is wrong with them, or null. Not while the loop runs.
    const char *configure(const LoopParameters<Robot> &parameters) noexcept
    {
        if (parameters.linearize && !Linearization<Robot>::available)
            return "feedback linearization needs springs without dampers, and the exported functions of the plant";
        if (!(parameters.setpoint_timeout >= 0) || !(parameters.setpoint_lifespan >= 0))
            return "times must not be negative";
        if (!(parameters.stop_time > 0) || !(parameters.ramp_time > 0))
            return "stop_time and ramp_time must be positive";
        if (parameters.timeout_policy != TimeoutPolicy::none && !(parameters.setpoint_timeout > 0))
            return "a timeout policy needs a setpoint_timeout > 0";
        if (!finite(parameters.motor_kp, parameters.motor_kd, parameters.link_kp, parameters.link_kd))
            return "gains must be finite";
        parameters_ = parameters;
        linearization_.place_poles(parameters.natural_frequency);
        linearization_.stiffness_gains = parameters.stiffness_gains;
        return nullptr;
    }

    /// Forgets all references, and holds the measured position where there is one.
    void restart(const Measurement<Robot> &measured) noexcept
    {
        setpoints.take();
        trajectories.take();
        output_ = {};
        counts_ = {};
        refusal_ = Refusal::none;
        filter_.forget();
        playing_ = stopping_ = false;
        last_reference_ = 0;
        received_ = lost_ = false;
        if (measured.links || measured.motors) {
            Setpoint<Robot> x;
            x.q = resting_position(measured);
            accept(x, 0);
            output_.status = Status::waiting;
        }
        linearization_.restart(output_.setpoint);
    }

    /// Takes the reference of the next cycle, in the thread of update().
    void refer(const Setpoint<Robot> &reference, std::int64_t stamp) noexcept
    {
        reference_.setpoint = reference;
        reference_.stamp = stamp;
        received_ = true;
    }

    /// Takes the latest setpoint of the mailbox as the reference, if there is a new one; returns whether there was.
    bool refer_to_mailbox() noexcept
    {
        if (!setpoints.take())
            return false;
        refer(setpoints.taken().setpoint, setpoints.taken().stamp);
        return true;
    }

    /// The reference taken last.
    const Setpoint<Robot> &reference() const noexcept { return reference_.setpoint; }

    /// A cycle at a time, ns, of a period, s.
    const LoopOutput<Robot> &update(std::int64_t now, double period, const Measurement<Robot> &measured) noexcept
    {
        ++counts_.cycles;
        take_trajectory(now, period);
        if (playing_)
            play(now);
        else if (received_)
            follow(now);
        else
            wait(now);
        received_ = false;
        if (output_.valid)
            add_feedback(period, measured);
        return output_;
    }

    const LoopOutput<Robot> &output() const noexcept { return output_; }
    const LoopCounts &counts() const noexcept { return counts_; }
    Refusal refusal() const noexcept { return refusal_; }
    bool playing() const noexcept { return playing_; }

  private:
    static double seconds(std::int64_t nanoseconds) noexcept { return static_cast<double>(nanoseconds) * 1e-9; }

    // --- References ---------------------------------------------------------------------

    void follow(std::int64_t now) noexcept
    {
        const double age = seconds(now - reference_.stamp);
        if (parameters_.setpoint_lifespan > 0 && reference_.stamp != 0 && age > parameters_.setpoint_lifespan) {
            refuse(Refusal::too_old);
            wait(now);
            return;
        }
        if (accept(reference_.setpoint, reference_.stamp)) {
            last_reference_ = now;
            stopping_ = lost_ = false;
            return;
        }
        // References that are refused do not keep the timeout away.
        output_.status = Status::held;
        wait(now);
    }

    void play(std::int64_t now) noexcept
    {
        if (received_)
            refuse(Refusal::busy);
        last_reference_ = now;
        const double t = seconds(now - origin_);
        State<n> state;
        evaluate(t, state);
        Setpoint<Robot> x;
        take(state, x);
        if (!accept(x, now)) {
            output_.status = Status::held;
            begin_stop(now);
        } else if (t >= trajectory_end_) {
            // At rest, which needs no more references.
            playing_ = false;
            stopping_ = true;
            stop_ = Piece<n>(t - 1, t, state, state);
            stop_origin_ = origin_;
        }
    }

    /// Without a reference: the last command, until the timeout and what the policy says then.
    void wait(std::int64_t now) noexcept
    {
        if (stopping_) {
            State<n> state;
            stop_.evaluate(seconds(now - stop_origin_), state);
            Setpoint<Robot> x = output_.setpoint;
            take(state, x);
            output_.status = accept(x, now) ? Status::stopping : Status::held;
            return;
        }
        if (lost_) {
            if (parameters_.timeout_policy == TimeoutPolicy::ramp)
                ramp(now);
            return;
        }
        const bool timed = parameters_.timeout_policy != TimeoutPolicy::none && output_.status != Status::waiting;
        if (!timed || seconds(now - last_reference_) <= parameters_.setpoint_timeout)
            return;
        ++counts_.timeouts;
        switch (parameters_.timeout_policy) {
        case TimeoutPolicy::hold:
            begin_stop(now);
            wait(now);
            break;
        case TimeoutPolicy::ramp:
            lost_ = true;
            ramp_start_ = now;
            before_ramp_ = output_.command;
            ramp(now);
            break;
        case TimeoutPolicy::deactivate:
        case TimeoutPolicy::none:
            lost_ = true;
            output_.status = Status::lost;
            break;
        }
    }

    /// From the last setpoint to rest, C4.
    void begin_stop(std::int64_t now) noexcept
    {
        const double T = parameters_.stop_time;
        State<n> from, to{};
        give(output_.setpoint, from);
        for (std::size_t i = 0; i < n; ++i)
            to[0][i] = from[0][i] + 0.5 * T * from[1][i];
        stop_ = Piece<n>(0, T, from, to);
        stop_origin_ = now;
        stopping_ = true;
        playing_ = false;
    }

    /// Efforts times 1 - s, s = u^3 (10 - 15 u + 6 u^2), which starts and ends with two derivatives zero.
    void ramp(std::int64_t now) noexcept
    {
        const double T = parameters_.ramp_time, u = std::clamp(seconds(now - ramp_start_) / T, 0.0, 1.0);
        const auto share = static_cast<Scalar>(1 - u * u * u * (10 + u * (6 * u - 15)));
        const auto first = static_cast<Scalar>(-30 * u * u * (1 - u) * (1 - u) / T);
        const auto second = static_cast<Scalar>(-60 * u * (1 - u) * (1 - 2 * u) / (T * T));
        for (std::size_t i = 0; i < n; ++i) {
            output_.command.tau[i] = share * before_ramp_.tau[i];
            output_.command.taud[i] = first * before_ramp_.tau[i];
            output_.command.taudd[i] = second * before_ramp_.tau[i];
        }
        for (std::size_t i = 0; i < m; ++i) {
            output_.command.motor_effort[i] = share * before_ramp_.motor_effort[i];
            output_.command.motor_velocity[i] = output_.command.motor_acceleration[i] = 0;
        }
        output_.setpoint.qd = output_.setpoint.qdd = output_.setpoint.qddd = output_.setpoint.qdddd = {};
        feedback_share_ = share;
        output_.status = Status::ramping;
    }

    // --- Trajectories -------------------------------------------------------------------

    /// Takes a trajectory that has arrived over from what is commanded now.
    void take_trajectory(std::int64_t now, double period) noexcept
    {
        if (!trajectories.waiting())
            return;
        // What is commanded now, before the spline that is played is exchanged.
        const bool moving = playing_ || stopping_;
        State<n> present;
        give(output_.setpoint, present);
        if (playing_)
            evaluate(seconds(now - origin_), present);
        else if (stopping_)
            stop_.evaluate(seconds(now - stop_origin_), present);
        else
            for (std::size_t k = 1; k < 5; ++k)
                present[k] = {};
        trajectories.take();
        const StampedSpline<Robot> &next = trajectories.taken();
        if (next.stop) {
            if (moving) {
                take(present, output_.setpoint);
                begin_stop(now);
            }
            return;
        }
        const std::int64_t origin = next.stamp != 0 ? next.stamp : now;
        const double t = seconds(now - origin), start = next.spline.start();
        const Refusal refusal = objection(next.spline, t, present, moving);
        if (refusal != Refusal::none) {
            // The spline that was played is gone: come to rest.
            refuse(refusal);
            if (playing_) {
                take(present, output_.setpoint);
                begin_stop(now);
            }
            return;
        }
        const double meets = t + period < start ? start : next.spline.knot_after(t);
        State<n> there;
        next.spline.evaluate(meets, there);
        transition_ = meets > t ? Piece<n>(t, meets, present, there) : Piece<n>(t - 1, t, there, there);
        origin_ = origin;
        trajectory_end_ = next.spline.end();
        playing_ = true;
        stopping_ = lost_ = false;
    }

    Refusal objection(const Spline<n> &spline, double t, const State<n> &present, bool moving) const noexcept
    {
        if (t > spline.end())
            return Refusal::ended;
        State<n> first;
        spline.evaluate(std::max(t, spline.start()), first);
        // Without a command, the arm is wherever it is.
        if (!output_.valid && !moving)
            return Refusal::none;
        for (std::size_t i = 0; i < n; ++i)
            if (!(std::fabs(first[0][i] - present[0][i]) <= START_TOLERANCE))
                return Refusal::starts_away;
        return Refusal::none;
    }

    void evaluate(double t, State<n> &state) const noexcept
    {
        if (t < transition_.end())
            transition_.evaluate(t, state);
        else
            trajectories.taken().spline.evaluate(t, state);
    }

    static void give(const Setpoint<Robot> &x, State<n> &state) noexcept
    {
        const JointVector<Robot> *const rows[] = {&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd};
        for (std::size_t k = 0; k < 5; ++k)
            for (std::size_t i = 0; i < n; ++i)
                state[k][i] = static_cast<double>((*rows[k])[i]);
    }

    static void take(const State<n> &state, Setpoint<Robot> &x) noexcept
    {
        JointVector<Robot> *const rows[] = {&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd};
        for (std::size_t k = 0; k < 5; ++k)
            for (std::size_t i = 0; i < n; ++i)
                (*rows[k])[i] = static_cast<Scalar>(state[k][i]);
    }

    // --- Commands -----------------------------------------------------------------------

    void refuse(Refusal why) noexcept
    {
        ++counts_.refused;
        refusal_ = why;
    }

    /// Makes a setpoint and its command the present ones, unless it is refused; returns whether it was not.
    bool accept(const Setpoint<Robot> &x, std::int64_t stamp) noexcept
    {
        candidate_ = x;
        if (!finite(x.q, x.qd, x.qdd, x.qddd, x.qdddd, x.W, x.Wd, x.Wdd)) {
            refuse(Refusal::not_finite);
            return false;
        }
        if constexpr (Robot::damped) {
            Robot::inverse_dynamics(candidate_, result_);
            filter_.at(stamp, result_, candidate_.deflection);
        }
        Robot::feedforward(candidate_, result_);
        if (!finite(result_)) {
            refuse(Refusal::not_finite);
            return false;
        }
        if (parameters_.limits != LimitPolicy::ignore && !Limits<Robot>::meets(candidate_, result_)) {
            ++counts_.over_limits;
            if (parameters_.limits == LimitPolicy::refuse) {
                refuse(Refusal::over_limits);
                return false;
            }
        }
        if constexpr (Robot::damped)
            filter_.keep(stamp, result_, candidate_.deflection);
        find_deflections();
        if (parameters_.limits == LimitPolicy::clip) {
            Limits<Robot>::clip_efforts(result_.tau);
            Limits<Robot>::clip_motors(result_.motor_velocity, result_.motor_effort);
        }
        output_.setpoint = candidate_;
        output_.command = result_;
        output_.status = Status::fresh;
        output_.valid = true;
        feedback_share_ = 1;
        ++counts_.followed;
        return true;
    }

    /// Motor positions at the joint sides of the springs, less those of the links.
    void find_deflections() noexcept
    {
        for (std::size_t i = 0; i < m; ++i) {
            Scalar side = result_.motor_position[i];
            if constexpr (Robot::transmission) {
                side = 0;
                for (std::size_t j = 0; j < m; ++j)
                    side += Robot::joint_sides[i * m + j] * result_.motor_position[j];
            }
            output_.deflection[i] = side - candidate_.q[Robot::motor_joint[i]];
        }
    }

    // --- Feedback -----------------------------------------------------------------------

    void add_feedback(double period, const Measurement<Robot> &measured) noexcept
    {
        output_.motor_effort = output_.command.motor_effort;
        output_.joint_effort = output_.command.tau;
        if constexpr (Linearization<Robot>::available) {
            if (parameters_.linearize && measured.links && measured.motors && output_.status != Status::ramping) {
                candidate_ = linearization_.setpoint(output_.setpoint, measured, static_cast<Scalar>(period));
                Robot::feedforward(candidate_, result_);
                // Where a measurement is not finite, the feedforward remains.
                if (finite(result_)) {
                    output_.motor_effort = result_.motor_effort;
                    output_.joint_effort = result_.tau;
                }
            }
        }
        if (measured.motors)
            for (std::size_t i = 0; i < m; ++i) {
                const Scalar feedback =
                    parameters_.motor_kp[i] * (output_.command.motor_position[i] - measured.motor_position[i]) +
                    parameters_.motor_kd[i] * (output_.command.motor_velocity[i] - measured.motor_velocity[i]);
                if (std::isfinite(feedback))
                    output_.motor_effort[i] += feedback_share_ * feedback;
            }
        if (measured.links)
            add_link_feedback(measured);
        if (parameters_.limits == LimitPolicy::clip) {
            Limits<Robot>::clip_efforts(output_.joint_effort);
            Limits<Robot>::clip_motors(output_.command.motor_velocity, output_.motor_effort);
        }
    }

    void add_link_feedback(const Measurement<Robot> &measured) noexcept
    {
        JointVector<Robot> feedback{};
        for (std::size_t i = 0; i < n; ++i) {
            const Scalar effort = parameters_.link_kp[i] * (output_.setpoint.q[i] - measured.q[i]) +
                                  parameters_.link_kd[i] * (output_.setpoint.qd[i] - measured.qd[i]);
            feedback[i] = std::isfinite(effort) ? feedback_share_ * effort : 0;
            output_.joint_effort[i] += feedback[i];
        }
        // Two motors of a joint share its effort.
        std::array<Scalar, n> motors{};
        for (const std::size_t joint : Robot::motor_joint)
            motors[joint] += 1;
        for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = 0; j < m; ++j) {
                const std::size_t joint = Robot::motor_joint[j];
                output_.motor_effort[i] += Robot::load_weights[i * m + j] * feedback[joint] / motors[joint];
            }
    }

    /// The position of the links; without their sensors, that at which gravity deflects the springs to the motors.
    JointVector<Robot> resting_position(const Measurement<Robot> &measured) noexcept
    {
        if (measured.links)
            return measured.q;
        Setpoint<Robot> x;
        // A fixed point: springs are much stiffer than gravity. Of two motors of a joint, the last one counts.
        for (int iteration = 0; iteration < 50; ++iteration) {
            if constexpr (Robot::damped) {
                Robot::inverse_dynamics(x, result_);
                filter_.at(0, result_, x.deflection);
            }
            Robot::feedforward(x, result_);
            JointVector<Robot> step{};
            for (std::size_t i = 0; i < m; ++i) {
                Scalar difference = 0;
                for (std::size_t j = 0; j < m; ++j)
                    difference +=
                        Robot::joint_sides[i * m + j] * (measured.motor_position[j] - result_.motor_position[j]);
                step[Robot::motor_joint[i]] = difference;
            }
            for (std::size_t i = 0; i < n; ++i)
                x.q[i] += step[i];
        }
        return x.q;
    }

    LoopParameters<Robot> parameters_;
    LoopOutput<Robot> output_;
    LoopCounts counts_;
    Refusal refusal_ = Refusal::none;

    StampedSetpoint<Robot> reference_;
    Setpoint<Robot> candidate_;
    Command<Robot> result_;
    DeflectionFilter<Robot> filter_;
    Linearization<Robot> linearization_;
    bool received_ = false, lost_ = false;
    std::int64_t last_reference_ = 0;

    // Splines have times in s from their origin, ns, since a float cannot resolve the time of day.
    bool playing_ = false, stopping_ = false;
    Piece<n> transition_, stop_;
    std::int64_t origin_ = 0, stop_origin_ = 0;
    double trajectory_end_ = 0;

    std::int64_t ramp_start_ = 0;
    Command<Robot> before_ramp_;
    Scalar feedback_share_ = 1;
};

} // namespace eom

#endif
