// SPDX-License-Identifier: Apache-2.0
// Parameters, references and results of a control loop.
#ifndef EOM_LOOP_PARAMETERS_HPP
#define EOM_LOOP_PARAMETERS_HPP

#include <algorithm>
#include <cstdint>

#include "limits.hpp"
#include "linearization.hpp"
#include "spline.hpp"

namespace eom {

/// What to do when setpoints are lost, as the parameter on_setpoint_loss of the node.
enum class LossPolicy {
    none,       ///< continue with the last command
    hold,       ///< bring the arm to rest and hold it
    ramp,       ///< the same while efforts fade to zero
    deactivate, ///< stop controlling
};

/// Efforts that remain when the loop is switched off, as the parameter effort_on_deactivate of the node.
enum class EffortOnDeactivate {
    zero,    ///< none
    gravity, ///< those that hold the measured position, or else the commanded one
    keep,    ///< those of the last command
};

/// What to do with a setpoint that is valid, but not plausible after those before it: no check; count it; refuse it.
enum class CheckPolicy { ignore, warn, refuse };

/// What a jump forward of the clock does to a trajectory, as the parameter on_clock_jump of the node: a jump is as far as
/// the loop can tell, which has no other clock. A jump back by more than LARGEST_CORRECTION always ends it.
enum class JumpPolicy {
    stop, ///< end it, and bring the arm to rest
    hold, ///< delay the rest of it
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
    under_way,         ///< has left its first knot, while no position is commanded
    too_far_ahead,     ///< starts later than max_start_delay
    far_beyond_limits, ///< an angle more than a turn beyond its limit: in degrees
    led,               ///< a trajectory, while a controller in front writes references
    suspect_stamp,     ///< its stamp repeats or goes back
    jump,              ///< further from the last command than limits of velocity, acceleration and jerk allow
    inconsistent,      ///< in the last window, a field is not the rate of the one before
    moving_base,       ///< there is no code for a moving base, or feedback linearization, which is for one at rest
    free_fall,         ///< the specific force of the base is exactly zero, as if it were not set
};

/// Checks that find a setpoint not plausible.
enum class Check {
    none,
    stamps,
    jumps,
    consistency,
    without_stamp, ///< so that jumps and consistency are not known
};

/// What a check has found.
struct Finding {
    Check check = Check::none;
    /// Field, 0 for position to 4 for snap, of the joint that jumps, or is not the rate of the field before.
    std::size_t field = 0, joint = 0;
    /// Number of joints that are inconsistent.
    std::size_t joints = 0;
    /// By which a stamp goes back, or that has passed since the stamp before a jump, s.
    double time = 0;
    /// Of a jump, its size and the largest one that is allowed.
    double step = 0, allowed = 0;
    /// Of a field, relative difference from the rate of the field before, and the multiple of that which it is; 0 for none.
    double difference = 0, factor = 0;
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

/// Settings of the loop that are the same for every robot.
struct LoopSettings {
    LimitPolicy limits = LimitPolicy::warn;
    /// Time without a valid reference after which setpoints are lost, s; 0 for never.
    double setpoint_timeout = @timeout@;
    LossPolicy on_setpoint_loss = LossPolicy::@policy@;
    /// Durations of a stop and of a ramp, s.
    double stop_duration = @stop_duration@, ramp_duration = @ramp_duration@;
    EffortOnDeactivate effort_on_deactivate = EffortOnDeactivate::zero;
    /// After LossPolicy::hold, largest distance of a reference from the commanded position, rad or m.
    double resume_distance = @resume_distance@;
    /// Largest age of a setpoint by its stamp, s; 0 for any. An older one is counted as refused, and otherwise as none.
    double setpoint_lifespan = 0;
    /// Largest time until the start of a trajectory, s: one that starts later has a wrong stamp, or the clock is wrong.
    double max_start_delay = 60;
    /// Largest distance of the start of a trajectory from the commanded position, rad or m, and the time by which it may be
    /// late besides, s: for a moving joint, its velocity times that is allowed.
    double start_tolerance = @start_tolerance@, start_latency = @start_latency@;
    JumpPolicy on_clock_jump = JumpPolicy::stop;
    /// Mean age of a command when it acts, s. Feedforward is for the motion so much later, exact for trajectories, by the
    /// Taylor polynomial for setpoints; feedback is not. By default that of the robot.
    double command_lead = 0;
    /// Plausibility checks; those of consistency with the largest relative difference, the number of setpoints over which
    /// fields are compared, and the highest derivative.
    CheckPolicy stamp_check = CheckPolicy::@stamp_check@, jump_check = CheckPolicy::@jump_check@;
    CheckPolicy consistency_check = CheckPolicy::@consistency_check@;
    double consistency_tolerance = @consistency_tolerance@;
    int consistency_window = @consistency_window@, consistency_order = @consistency_order@;
    /// Whether motor efforts are those of feedback linearization, and its poles, rad/s.
    bool linearize = false;
    double natural_frequency = 20;
};

/// Settings of the loop; gains of zero leave feedback out.
template <class Robot>
struct LoopParameters : LoopSettings {
    using Scalar = typename Robot::Scalar;

    LoopParameters() noexcept { command_lead = static_cast<double>(Robot::default_lead()); }

    /// Gains of a PD around the motor motion, and around the link motion, which acts through the motors.
    MotorVector<Robot> motor_kp{}, motor_kd{};
    JointVector<Robot> link_kp{}, link_kd{};
    /// Of feedback linearization, on errors of stiffness and of its rate.
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
    /// What is sent where that differs from the command, in units or by efforts that the robot adds itself.
    DriveCommand<Robot> sent;

    /// Has what is sent be the command, with feedback.
    void copy_to_sent() noexcept
    {
        sent.position = command.motor_position;
        sent.velocity = command.motor_velocity;
        sent.effort = motor_effort;
        sent.joint_effort = joint_effort;
    }

    /// What is sent, for all robots.
    const MotorVector<Robot> &sent_motor_position() const noexcept
    {
        return Robot::has_drives ? sent.position : command.motor_position;
    }
    const MotorVector<Robot> &sent_motor_velocity() const noexcept
    {
        return Robot::has_drives ? sent.velocity : command.motor_velocity;
    }
    const MotorVector<Robot> &sent_motor_effort() const noexcept { return Robot::has_drives ? sent.effort : motor_effort; }
    const JointVector<Robot> &sent_joint_effort() const noexcept
    {
        return Robot::has_drives ? sent.joint_effort : joint_effort;
    }
};

/// Counts since the last restart.
struct LoopCounts {
    std::uint64_t cycles = 0, followed = 0, refused = 0, over_limits = 0, timeouts = 0, refused_payloads = 0;
    /// Setpoints that are not plausible, or not known to be, refused or not.
    std::uint64_t suspect_stamps = 0, jumps = 0, inconsistent = 0, without_stamp = 0;
    std::uint64_t suspect() const noexcept { return suspect_stamps + jumps + inconsistent + without_stamp; }
};

namespace detail {

constexpr double LONGEST_TIMEOUT = 3600, LONGEST_LEAD = 0.1;
// Of the linearized joints, rad/s: the fourth power is a gain, in single precision, too.
constexpr double LOWEST_FREQUENCY = 1e-3, HIGHEST_FREQUENCY = 1e4;

/// Whether a number is within a range; NaN is not.
inline bool within(double value, double lower, double upper) noexcept { return value >= lower && value <= upper; }

/// Whether an entry of an enumeration is one of those up to the last one.
template <class Entry>
bool among(Entry entry, Entry last) noexcept
{
    return static_cast<int>(entry) >= 0 && static_cast<int>(entry) <= static_cast<int>(last);
}

/// Whether any gain is not zero.
template <class Scalar, std::size_t size>
bool positive(const std::array<Scalar, size> &values) noexcept
{
    return std::any_of(values.begin(), values.end(), [](Scalar gain) { return gain > 0; });
}

/// Whether all gains are finite, and none is negative.
template <class Scalar, std::size_t size>
bool gains(const std::array<Scalar, size> &values) noexcept
{
    return finite(values) && std::all_of(values.begin(), values.end(), [](Scalar gain) { return gain >= 0; });
}

} // namespace detail

/// What is wrong with parameters, whose ranges are those of the node, or null.
template <class Robot>
const char *objection(const LoopParameters<Robot> &parameters, const Robot &robot) noexcept
{
    using namespace detail;
    if (parameters.linearize && !robot.linearizes())
        return "feedback linearization needs springs without dampers, and the exported functions of the plant";
    if (!among(parameters.limits, LimitPolicy::clip))
        return "limits must be ignore, warn, refuse or clip";
    if (!among(parameters.on_setpoint_loss, LossPolicy::deactivate))
        return "on_setpoint_loss must be none, hold, ramp or deactivate";
    if (!among(parameters.effort_on_deactivate, EffortOnDeactivate::keep))
        return "effort_on_deactivate must be zero, gravity or keep";
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
    if (!within(parameters.start_tolerance, 1e-6, 1000))
        return "start_tolerance must be 1e-6 to 1000 rad or m";
    if (!within(parameters.start_latency, 0, 10))
        return "start_latency must be 0 to 10 s";
    if (!among(parameters.on_clock_jump, JumpPolicy::hold))
        return "on_clock_jump must be stop or hold";
    if (!within(parameters.command_lead, 0, LONGEST_LEAD))
        return "command_lead must be 0 to 0.1 s";
    if (!among(parameters.stamp_check, CheckPolicy::refuse) || !among(parameters.jump_check, CheckPolicy::refuse) ||
        !among(parameters.consistency_check, CheckPolicy::refuse))
        return "stamp_check, jump_check and consistency_check must be ignore, warn or refuse";
    if (!within(parameters.consistency_tolerance, 1e-6, 1))
        return "consistency_tolerance must be 1e-6 to 1";
    if (!within(parameters.consistency_window, 5, 1000))
        return "consistency_window must be 5 to 1000";
    if (!within(parameters.consistency_order, 1, 4))
        return "consistency_order must be 1 to 4";
    if (parameters.on_setpoint_loss != LossPolicy::none && !(parameters.setpoint_timeout > 0))
        return "on_setpoint_loss needs a setpoint_timeout > 0, unless it is none";
    if (!gains(parameters.motor_kp) || !gains(parameters.motor_kd))
        return "motor_kp and motor_kd must be finite, and not negative";
    if (!gains(parameters.link_kp) || !gains(parameters.link_kd))
        return "link_kp and link_kd must be finite, and not negative";
    if (!gains(parameters.stiffness_gains))
        return "stiffness_gains must be finite, and not negative";
    if (!within(parameters.natural_frequency, LOWEST_FREQUENCY, HIGHEST_FREQUENCY))
        return "natural_frequency must be 0.001 to 10000 rad/s";
    return nullptr;
}

} // namespace eom

#endif
