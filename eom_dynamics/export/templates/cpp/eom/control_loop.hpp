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

/// What to do when setpoints are lost, as the parameter on_setpoint_loss of the node.
enum class LossPolicy {
    none,       ///< continue with the last command
    hold,       ///< bring the arm to rest and hold it
    ramp,       ///< the same while efforts fade to zero
    deactivate, ///< stop controlling
};

/// What a command answers. The first four have the numbers of the status of a FeedforwardCommand.
enum class Status {
    fresh = 0,    ///< the reference of this cycle, or of the last ones within the timeout; expired ones are as none
    held = 1,     ///< an earlier one: the reference was refused, setpoints are lost, or a stop or a ramp has ended
    stopping = 2, ///< brings the arm to rest
    ramping = 3,  ///< brings the arm to rest while efforts fade
    waiting = 4,  ///< no reference has come yet
    lost = 5,     ///< setpoints are lost, and the controller should be deactivated
};

/// Why the last reference was refused.
enum class Refusal {
    none,
    not_finite,
    over_limits,
    too_old,
    busy,
    starts_away,
    ended,
    far_from_hold,
    released,
    under_way,     ///< has left its first knot, while no position is commanded
    too_far_ahead, ///< starts later than max_start_delay
};

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
    /// Time without a valid reference after which setpoints are lost, s; 0 for never.
    double setpoint_timeout = 0;
    LossPolicy on_setpoint_loss = LossPolicy::none;
    /// Durations of a stop and of a ramp, s.
    double stop_duration = 0.3, ramp_duration = 1;
    /// After LossPolicy::hold, largest distance of a reference from the commanded position, rad or m.
    double resume_distance = 0.1;
    /// Largest age of a setpoint by its stamp, s; 0 for any. An older one is counted as refused, and otherwise as none.
    double setpoint_lifespan = 0;
    /// Largest time until the start of a trajectory, s: one that starts later has a wrong stamp, or the clock is wrong.
    double max_start_delay = 60;
    /// Time from a command to the middle of the time at which it acts, s: half the period for which drives hold it, and
    /// their delay. Feedforward is for the motion so much later, exact for trajectories, by the Taylor polynomial for
    /// setpoints; feedback is not.
    double command_lead = 0;
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
    /// Longest step of time after a loss, ns: a stall or a jump of the clock makes no step of the command.
    static constexpr std::int64_t LONGEST_STEP = 20'000'000;
    /// Longest time from one cycle to the next, ns, that a trajectory takes for time and not for a jump of the clock.
    static constexpr std::int64_t LONGEST_GAP = 100'000'000;

    Mailbox<StampedSetpoint<Robot>> setpoints;
    Mailbox<StampedSpline<Robot>> trajectories;

    /// Takes parameters, in the ranges of the node's; returns what is wrong with them, or null. Not while the loop runs.
    const char *configure(const LoopParameters<Robot> &parameters) noexcept
    {
        if (parameters.linearize && !Linearization<Robot>::available)
            return "feedback linearization needs springs without dampers, and the exported functions of the plant";
        if (!among(parameters.limits, LimitPolicy::clip))
            return "limits must be ignore, warn, refuse or clip";
        if (!among(parameters.on_setpoint_loss, LossPolicy::deactivate))
            return "on_setpoint_loss must be none, hold, ramp or deactivate";
        if (!within(parameters.setpoint_timeout, 0, LONGEST_TIMEOUT))
            return "setpoint_timeout must be 0 to 3600 s";
        if (!within(parameters.setpoint_lifespan, 0, LONGEST_TIMEOUT))
            return "setpoint_lifespan must be 0 to 3600 s";
        if (!within(parameters.stop_duration, 0.01, 60))
            return "stop_duration must be 0.01 to 60 s";
        if (!within(parameters.ramp_duration, 0.01, 600))
            return "ramp_duration must be 0.01 to 600 s";
        if (!within(parameters.resume_distance, 0, 1e9))
            return "resume_distance must be 0 to 1e9 rad or m";
        if (!within(parameters.max_start_delay, 0, 1e9))
            return "max_start_delay must be 0 to 1e9 s";
        if (!within(parameters.command_lead, 0, LONGEST_LEAD))
            return "command_lead must be 0 to 0.1 s";
        if (parameters.on_setpoint_loss != LossPolicy::none && !(parameters.setpoint_timeout > 0))
            return "on_setpoint_loss needs a setpoint_timeout > 0, unless it is none";
        if (!gains(parameters.motor_kp) || !gains(parameters.motor_kd))
            return "motor_kp and motor_kd must be finite, and not negative";
        if (!gains(parameters.link_kp) || !gains(parameters.link_kd))
            return "link_kp and link_kd must be finite, and not negative";
        if (!gains(parameters.stiffness_gains))
            return "stiffness_gains must be finite, and not negative";
        if (!within(static_cast<double>(parameters.natural_frequency), LOWEST_FREQUENCY, HIGHEST_FREQUENCY))
            return "natural_frequency must be 0.001 to 10000 rad/s";
        parameters_ = parameters;
        reads_motors_ = positive(parameters.motor_kp) || positive(parameters.motor_kd);
        timeout_ = std::llround(parameters.setpoint_timeout * 1e9);
        // A cycle adds at most half of it.
        if (parameters.setpoint_timeout > 0)
            timeout_ = std::max<std::int64_t>(timeout_, 2);
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
        present_filter_.forget();
        playing_ = stopping_ = false;
        age_ = 0;
        received_ = lost_ = fed_ = started_ = false;
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
    ///
    /// Before the first setpoint, and without a measured position at restart(), a trajectory has no commanded position
    /// to continue from: it is played as it is, and there is no command until it starts.
    const LoopOutput<Robot> &update(std::int64_t now, double period, const Measurement<Robot> &measured) noexcept
    {
        ++counts_.cycles;
        const std::int64_t step = started_ ? std::max<std::int64_t>(now - latest_, 0) : 0;
        if (playing_ && started_)
            bridge(now);
        latest_ = now;
        started_ = true;
        // After a stall, the references that wait are taken before the timeout is over.
        age_ += std::min(step, timeout_ / 2);
        if (stopping_)
            stop_s_ += seconds(std::min(step, LONGEST_STEP));
        take_trajectory(now, period);
        if (playing_)
            play(now);
        else if (received_)
            follow(now);
        else
            wait();
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
    static constexpr double LONGEST_TIMEOUT = 3600, LONGEST_LEAD = 0.1;
    // Of the linearized joints, rad/s: the fourth power is a gain, in single precision, too.
    static constexpr double LOWEST_FREQUENCY = 1e-3, HIGHEST_FREQUENCY = 1e4;

    /// Whether a number is within a range; NaN is not.
    static bool within(double value, double lower, double upper) noexcept { return value >= lower && value <= upper; }

    /// Whether an entry of an enumeration is one of those up to the last one.
    template <class Entry>
    static bool among(Entry entry, Entry last) noexcept
    {
        return static_cast<int>(entry) >= 0 && static_cast<int>(entry) <= static_cast<int>(last);
    }

    /// Whether all gains are finite, and none is negative.
    template <std::size_t size>
    static bool gains(const std::array<Scalar, size> &values) noexcept
    {
        return finite(values) && std::all_of(values.begin(), values.end(), [](Scalar gain) { return gain >= 0; });
    }

    template <std::size_t size>
    static bool positive(const std::array<Scalar, size> &values) noexcept
    {
        return std::any_of(values.begin(), values.end(), [](Scalar gain) { return gain > 0; });
    }

    static double seconds(std::int64_t nanoseconds) noexcept { return static_cast<double>(nanoseconds) * 1e-9; }

    // --- References ---------------------------------------------------------------------

    void follow(std::int64_t now) noexcept
    {
        const double age = seconds(now - reference_.stamp);
        if (parameters_.setpoint_lifespan > 0 && reference_.stamp != 0 && age > parameters_.setpoint_lifespan) {
            refuse(Refusal::too_old);
        } else if (lost_ && !resumes(reference_.setpoint.q)) {
            refuse(released() ? Refusal::released : Refusal::far_from_hold);
        } else if (accept(reference_.setpoint, reference_.stamp)) {
            age_ = 0;
            fed_ = true;
            stopping_ = lost_ = false;
            return;
        } else {
            output_.status = Status::held;
        }
        // References that are refused do not keep the timeout away.
        wait();
    }

    /// After a jump of the clock a trajectory goes on from where it was, later by the jump: the rest would be a step.
    void bridge(std::int64_t now) noexcept
    {
        const double start = trajectories.taken().spline.start(), before = seconds(latest_ - origin_);
        const bool back = now < latest_ && before >= start;
        const bool ahead = now - latest_ > LONGEST_GAP && seconds(now - origin_) > start;
        if (back || ahead)
            origin_ = now - std::llround(std::max(before, start) * 1e9);
    }

    void play(std::int64_t now) noexcept
    {
        if (received_)
            refuse(Refusal::busy);
        age_ = 0;
        const double t = seconds(now - origin_);
        if (!output_.valid && t < trajectories.taken().spline.start())
            return;
        State<n> state;
        evaluate(t, state);
        Setpoint<Robot> x;
        take(state, x);
        Setpoint<Robot> ahead;
        evaluate(std::min(t + parameters_.command_lead, std::max(t, trajectory_end_)), state);
        take(state, ahead);
        const bool accepted = accept(x, now, true, &ahead);
        give(x, state);
        if (!accepted) {
            output_.status = Status::held;
            begin_stop();
            return;
        }
        fed_ = true;
        if (t >= trajectory_end_) {
            // At rest, which needs no more references.
            playing_ = false;
            stopping_ = true;
            stop_ = Piece<n>(-1, 0, state, state);
            stop_s_ = 0;
            stop_stamp_ = now;
            stop_from_ = x;
        }
    }

    /// Without a reference: the last command, until setpoints are lost and what the policy says then.
    void wait() noexcept
    {
        const bool late = timeout_ > 0 && age_ >= timeout_;
        if (late && fed_ && !stopping_ && !lost_) {
            ++counts_.timeouts;
            lost_ = true;
            if (stops())
                begin_stop();
        }
        if (stopping_)
            come_to_rest();
        else if (lost_)
            output_.status = parameters_.on_setpoint_loss == LossPolicy::deactivate ? Status::lost : Status::held;
    }

    bool stops() const noexcept
    {
        return parameters_.on_setpoint_loss == LossPolicy::hold || parameters_.on_setpoint_loss == LossPolicy::ramp;
    }

    /// Whether nobody knows where the arm is, once setpoints are lost: no reference is followed before a restart.
    bool released() const noexcept
    {
        return parameters_.on_setpoint_loss == LossPolicy::ramp ||
               parameters_.on_setpoint_loss == LossPolicy::deactivate;
    }

    /// Whether a reference is followed after a loss.
    bool resumes(const JointVector<Robot> &q) const noexcept
    {
        if (released())
            return false;
        if (parameters_.on_setpoint_loss == LossPolicy::hold)
            for (std::size_t i = 0; i < n; ++i)
                if (std::fabs(static_cast<double>(q[i] - output_.setpoint.q[i])) > parameters_.resume_distance)
                    return false;
        return true;
    }

    /// From the last setpoint to rest: the polynomial of least degree, eight, with four derivatives at both ends.
    void begin_stop() noexcept
    {
        playing_ = false;
        // Nothing has been commanded that could be stopped.
        if (!output_.valid)
            return;
        const double T = parameters_.stop_duration;
        State<n> from, to{};
        give(output_.setpoint, from);
        for (std::size_t i = 0; i < n; ++i)
            to[0][i] = from[0][i] +
                       T * (from[1][i] / 2 + T * (3 * from[2][i] / 28 + T * (from[3][i] / 84 + T * from[4][i] / 1680)));
        stop_ = Piece<n>(0, T, from, to);
        stop_s_ = 0;
        stop_stamp_ = stamp_;
        stop_from_ = output_.setpoint;
        stopping_ = true;
    }

    /// The command of a stop, and of a ramp along it. Limits do not refuse it: a part of a stop would be a step.
    void come_to_rest() noexcept
    {
        State<n> state;
        stop_.evaluate(stop_s_, state);
        Setpoint<Robot> x = stop_from_;
        take(state, x);
        settle(x.W, x.Wd, x.Wdd);
        settle(x.k, x.kd, x.kdd);
        // Dampers go on from the last setpoint, as the motion does.
        if (!accept(x, stop_stamp_ ? stop_stamp_ + std::llround(stop_s_ * 1e9) : 0, false)) {
            output_.status = Status::held;
            return;
        }
        const bool ramps = lost_ && parameters_.on_setpoint_loss == LossPolicy::ramp;
        const double end = ramps ? std::max(stop_.end(), parameters_.ramp_duration) : stop_.end();
        if (ramps)
            fade();
        if (stop_s_ >= end)
            output_.status = Status::held;
        else
            output_.status = ramps ? Status::ramping : Status::stopping;
    }

    /// A quantity with two derivatives at the start of the stop, changed to what it is now: degree four, C2.
    template <class Values>
    void settle(Values &x, Values &xd, Values &xdd) const noexcept
    {
        const double T = std::max(stop_.end(), 0.0), u = T > 0 ? std::min(stop_s_ / T, 1.0) : 1;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double v = static_cast<double>(xd[i]), a = static_cast<double>(xdd[i]);
            const double of_rate = u * (1 - u * u * (1 - u / 2)), of_second = u * u * (0.5 - u * (2.0 / 3 - u / 4));
            x[i] += static_cast<Scalar>(T * (v * of_rate + T * a * of_second));
            xd[i] = static_cast<Scalar>(v * (1 - u * u * (3 - 2 * u)) + T * a * u * (1 - u) * (1 - u));
            xdd[i] = u < 1 ? static_cast<Scalar>(-6 * v * u * (1 - u) / T + a * (1 - u) * (1 - 3 * u)) : 0;
        }
    }

    /// Efforts times w = 1 - 10 u^3 + 15 u^4 - 6 u^5, which starts and ends with two derivatives zero.
    void fade() noexcept
    {
        const double T = parameters_.ramp_duration, u = std::min(stop_s_ / T, 1.0), v = 1 - u;
        const auto w = static_cast<Scalar>(v * v * v * (1 + u * (3 + 6 * u)));
        const auto wd = static_cast<Scalar>(-30 * u * u * v * v / T);
        const auto wdd = static_cast<Scalar>(-60 * u * v * (1 - 2 * u) / (T * T));
        Command<Robot> &y = output_.command;
        for (std::size_t i = 0; i < n; ++i) {
            y.taudd[i] = w * y.taudd[i] + 2 * wd * y.taud[i] + wdd * y.tau[i];
            y.taud[i] = w * y.taud[i] + wd * y.tau[i];
            y.tau[i] *= w;
        }
        for (Scalar &effort : y.motor_effort)
            effort *= w;
        feedback_share_ = w;
    }

    // --- Trajectories -------------------------------------------------------------------

    /// Takes a trajectory that has arrived over from what is commanded now.
    void take_trajectory(std::int64_t now, double period) noexcept
    {
        if (!trajectories.waiting())
            return;
        // What is commanded now, before the spline that is played is exchanged.
        const bool known = output_.valid, moving = known && (playing_ || stopping_);
        State<n> present;
        give(output_.setpoint, present);
        if (playing_)
            evaluate(seconds(now - origin_), present);
        else if (stopping_)
            stop_.evaluate(stop_s_, present);
        else
            for (std::size_t k = 1; k < 5; ++k)
                present[k] = {};
        trajectories.take();
        const StampedSpline<Robot> &next = trajectories.taken();
        if (next.stop) {
            if (moving && !lost_)
                take(present, output_.setpoint);
            if ((moving && !lost_) || !known)
                begin_stop();
            return;
        }
        const std::int64_t origin = next.stamp != 0 ? next.stamp : now;
        const double t = seconds(now - origin), start = next.spline.start();
        const Refusal refusal = objection(next.spline, t, present);
        if (refusal != Refusal::none) {
            // The spline that was played is gone: come to rest.
            refuse(refusal);
            if (playing_) {
                if (known)
                    take(present, output_.setpoint);
                begin_stop();
            }
            return;
        }
        const double meets = !known ? t : t + period < start ? start : next.spline.knot_after(t);
        State<n> there;
        next.spline.evaluate(meets, there);
        transition_ = meets > t ? Piece<n>(t, meets, present, there) : Piece<n>(t - 1, t, there, there);
        origin_ = origin;
        trajectory_end_ = next.spline.end();
        playing_ = true;
        stopping_ = lost_ = false;
    }

    Refusal objection(const Spline<n> &spline, double t, const State<n> &present) const noexcept
    {
        // Allow for rounding of the time.
        if (spline.start() - t > parameters_.max_start_delay + 1e-9)
            return Refusal::too_far_ahead;
        if (t > spline.end())
            return Refusal::ended;
        if (lost_ && released())
            return Refusal::released;
        State<n> first;
        spline.evaluate(std::max(t, spline.start()), first);
        State<n> from = present;
        // Without a command, the arm is wherever it is: at the first knot, if the planner knows.
        if (!output_.valid)
            spline.evaluate(spline.start(), from);
        for (std::size_t i = 0; i < n; ++i)
            if (!(std::fabs(first[0][i] - from[0][i]) <= START_TOLERANCE))
                return output_.valid ? Refusal::starts_away : Refusal::under_way;
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
    ///
    /// The command is for the motion at the lead, which may be given.
    bool accept(const Setpoint<Robot> &x, std::int64_t stamp, bool refusable = true,
                const Setpoint<Robot> *ahead = nullptr) noexcept
    {
        if (!finite(x.q, x.qd, x.qdd, x.qddd, x.qdddd, x.W, x.Wd, x.Wdd)) {
            refuse(Refusal::not_finite);
            return false;
        }
        const bool leads = parameters_.command_lead > 0;
        if (leads && reads_motors_) {
            candidate_ = x;
            compute(present_filter_, stamp);
            present_ = result_;
            present_deflection_ = candidate_.deflection;
        }
        candidate_ = ahead ? *ahead : x;
        if (leads && !ahead)
            advance(candidate_, static_cast<Scalar>(parameters_.command_lead));
        compute(filter_, stamp);
        if (!finite(result_)) {
            refuse(Refusal::not_finite);
            return false;
        }
        if (parameters_.limits != LimitPolicy::ignore && !Limits<Robot>::meets(x, result_)) {
            ++counts_.over_limits;
            if (refusable && parameters_.limits == LimitPolicy::refuse) {
                refuse(Refusal::over_limits);
                return false;
            }
        }
        if constexpr (Robot::damped) {
            filter_.keep(stamp, result_, candidate_.deflection);
            if (leads && reads_motors_)
                present_filter_.keep(stamp, present_, present_deflection_);
        }
        find_deflections();
        motor_position_ = leads && reads_motors_ ? present_.motor_position : result_.motor_position;
        motor_velocity_ = leads && reads_motors_ ? present_.motor_velocity : result_.motor_velocity;
        if (parameters_.limits == LimitPolicy::clip) {
            Limits<Robot>::clip_efforts(result_.tau);
            Limits<Robot>::clip_motors(result_.motor_velocity, result_.motor_effort);
        }
        const JointVector<Robot> deflection = candidate_.deflection;
        output_.setpoint = x;
        output_.setpoint.deflection = deflection;
        output_.command = result_;
        stamp_ = stamp;
        output_.status = Status::fresh;
        output_.valid = true;
        feedback_share_ = 1;
        ++counts_.followed;
        return true;
    }

    /// The feedforward of the candidate, with the state of damped springs.
    void compute(DeflectionFilter<Robot> &filter, std::int64_t stamp) noexcept
    {
        if constexpr (Robot::damped) {
            Robot::inverse_dynamics(candidate_, result_);
            filter.at(stamp, result_, candidate_.deflection);
        }
        Robot::feedforward(candidate_, result_);
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
            if (parameters_.linearize && measured.links && measured.motors) {
                candidate_ = linearization_.setpoint(output_.setpoint, measured, static_cast<Scalar>(period));
                Robot::feedforward(candidate_, result_);
                // Where a measurement is not finite, the feedforward remains.
                if (finite(result_)) {
                    for (std::size_t i = 0; i < m; ++i)
                        output_.motor_effort[i] = feedback_share_ * result_.motor_effort[i];
                    for (std::size_t i = 0; i < n; ++i)
                        output_.joint_effort[i] = feedback_share_ * result_.tau[i];
                }
            }
        }
        if (measured.motors)
            for (std::size_t i = 0; i < m; ++i) {
                const Scalar feedback =
                    parameters_.motor_kp[i] * (motor_position_[i] - measured.motor_position[i]) +
                    parameters_.motor_kd[i] * (motor_velocity_[i] - measured.motor_velocity[i]);
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
    // Of the setpoint itself, where the command is for a later motion: the reference of feedback.
    Command<Robot> present_;
    DeflectionFilter<Robot> present_filter_;
    JointVector<Robot> present_deflection_{};
    MotorVector<Robot> motor_position_{}, motor_velocity_{};
    bool reads_motors_ = false;
    Linearization<Robot> linearization_;
    bool received_ = false, lost_ = false, fed_ = false, started_ = false;
    // Time since the last valid reference, the timeout, and the time of the last cycle, ns.
    std::int64_t age_ = 0, timeout_ = 0, latest_ = 0;

    // Splines have times in s from their origin, ns, since a float cannot resolve the time of day.
    bool playing_ = false, stopping_ = false;
    Piece<n> transition_, stop_;
    std::int64_t origin_ = 0;
    double trajectory_end_ = 0;
    // Time since the start of a stop, s, and the setpoint at its start.
    double stop_s_ = 0;
    Setpoint<Robot> stop_from_;
    // Stamps of the last setpoint and of that one, ns.
    std::int64_t stamp_ = 0, stop_stamp_ = 0;
    // Factor of feedback in a ramp.
    Scalar feedback_share_ = 1;
};

} // namespace eom

#endif
