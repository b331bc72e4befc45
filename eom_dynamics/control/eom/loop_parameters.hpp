// SPDX-License-Identifier: Apache-2.0
// Parameters, references and results of a control loop.
#ifndef EOM_LOOP_PARAMETERS_HPP
#define EOM_LOOP_PARAMETERS_HPP

#include <algorithm>
#include <cstdint>

#include "limits.hpp"
#include "state_machine.hpp"
#include "settings.hpp"
#include "spline.hpp"

namespace eom {

/// Status of a command. The first three values equal the status constants of FeedforwardCommand.
enum class Status {
    fresh = 0,    ///< reference of this cycle, or of the last cycles within the timeout; expired references do not count
    held = 1,     ///< earlier command: the reference was refused, setpoints are lost, or a stop has ended
    stopping = 2, ///< the arm is stopping
    waiting = 3,  ///< no reference was received
    lost = 4,     ///< setpoints are lost, the arm rests, and the host should deactivate the loop
};

/// Source of the commanded motion.
enum class Leader { none, setpoints, trajectory, target, stop, hands };

/// A setpoint with its time.
template <class Robot>
struct StampedSetpoint {
    std::int64_t stamp = 0; ///< ns; 0 without a stamp
    Setpoint<Robot> setpoint;
};

/// Settings of the loop; feedback with zero gains is off.
template <class Robot>
struct LoopParameters : LoopSettings {
    using Scalar = typename Robot::Scalar;

    /// PD gains for the motor motion, and for the link motion, which acts through the motors.
    MotorVector<Robot> motor_kp{}, motor_kd{};
    JointVector<Robot> link_kp{}, link_kd{};
    /// Impedance mode: joint stiffness, and tool stiffness along and about x, y, z of the base frame. With tool stiffness, joint
    /// stiffness acts only in the null space of the tools.
    JointVector<Robot> stiffness{};
    std::array<Scalar, 6> tool_stiffness{};
};

/// Result of a cycle.
template <class Robot>
struct LoopOutput {
    /// Present setpoint, and its feedforward with clipped limits.
    Setpoint<Robot> setpoint;
    Command<Robot> command;
    /// Efforts with feedback.
    MotorVector<Robot> motor_effort{};
    JointVector<Robot> joint_effort{};
    /// Spring deflection at each motor, rad or m.
    MotorVector<Robot> deflection{};
    Status status = Status::waiting;
    /// True if there is a command.
    bool valid = false;
    /// Command in drive units.
    DriveCommand<Robot> sent;
};

/// Returns true if the measured motion agrees with the command of `output` from `time` s ago: positions within `distance` rad or m,
/// and velocities if `with_velocities` and the hardware measures them.
template <class Robot>
bool follows(const LoopOutput<Robot> &output, const Measurement<Robot> &measured, double distance, double time,
             bool with_velocities) noexcept
{
    constexpr double DIFFERENCE = 0.1; // largest velocity difference
    const auto near = [time](const auto &values, const auto &commanded, const auto &rates, double allowed) {
        for (std::size_t i = 0; i < values.size(); ++i)
            if (!(std::fabs(static_cast<double>(values[i] - commanded[i])) <=
                  allowed + time * std::fabs(static_cast<double>(rates[i]))))
                return false;
        return true;
    };
    const auto alike = [&](const auto &values, const auto &commanded, const auto &rates) {
        return !with_velocities || !finite(values) || near(values, commanded, rates, DIFFERENCE);
    };
    const Setpoint<Robot> &x = output.setpoint;
    const Command<Robot> &y = output.command;
    return (!measured.links || (near(measured.q, x.q, x.qd, distance) && alike(measured.qd, x.qd, x.qdd))) &&
           (!measured.motors || (near(measured.motor_position, y.motor_position, y.motor_velocity, distance) &&
                                 alike(measured.motor_velocity, y.motor_velocity, y.motor_acceleration)));
}

/// Counts since the last restart. Setpoints that fail stream checks count even if they are accepted. `early`: stamps ahead of their
/// arrival, see StampLeads. `unmeasured`: cycles of a mode without the measurements that it needs. `begun`, `finished`: trajectories.
#define EOM_COUNTS(X) \
    X(cycles) X(followed) X(refused) X(over_limits) X(timeouts) X(refused_payloads) X(early) X(unmeasured) X(contacts) X(begun) \
    X(finished)
/// Counts of setpoints by failed stream check.
#define EOM_SUSPICIONS(X) \
    X(suspect_stamps, "stamps") X(jumps, "jumps") X(inconsistent, "consistency") X(without_stamp, "without stamp")
struct LoopCounts {
#define EOM_COUNT(name) std::uint64_t name = 0;
#define EOM_SUSPICION(name, check) EOM_COUNT(name)
#define EOM_ADD(name, check) +name
    EOM_COUNTS(EOM_COUNT)
    EOM_SUSPICIONS(EOM_SUSPICION)
    std::uint64_t suspect() const noexcept { return 0 EOM_SUSPICIONS(EOM_ADD); }
};

/// Sensor that determines the effort on a link.
enum class EffortSource : std::uint8_t { torque, springs, motor };

/// Result of a sensor sample. Only an accepted sample updates the observer.
enum class Sample : std::uint8_t { taken, started, not_finite, stale, inconsistent, too_large, missing };

/// Joint with the largest ratio of external effort to threshold in contact; both in N m or N.
struct Touched {
    std::size_t joint;
    double effort, threshold;
};

/// Motion source that cannot pause or change its speed, because it has no path.
enum class OffPath { nothing, target, references };

/// Members of the loop state: type, name and value. Times in s, except "latest" and "moved_at" in ns; beyond_limit and too_fast are
/// joint numbers from 1.
#define EOM_STATE(X) \
    X(Status, status, y.status) X(bool, valid, y.valid) X(bool, on_base, y.setpoint.on_base) X(bool, loaded, y.setpoint.loaded) \
    X(bool, playing, loop.playing()) X(bool, waiting, loop.waiting()) X(bool, blending, loop.blending()) \
    X(bool, aiming, loop.aiming()) X(bool, arrived, loop.arrived()) X(OffPath, off_path, loop.off_path()) \
    X(bool, touched, loop.touched()) X(bool, blinded, loop.blinded()) X(bool, early_waits, loop.early()) \
    X(bool, paused, loop.paused) X(double, speed_scaling, loop.speed_scaling) X(double, slowed_to, loop.governor().least()) \
    X(std::int64_t, latest, loop.clock()) X(std::int64_t, moved_at, loop.moved_at()) X(double, lost_time, loop.lost_time()) \
    X(Mode, mode, commander.mode()) \
    X(bool, final_efforts, commander.final_efforts()) X(std::size_t, beyond_limit, commander.led_beyond()) \
    X(std::size_t, too_fast, commander.guided_too_fast()) X(double, guided_speed, commander.impedance().guided_speed()) \
    X(double, guided_limit, commander.guided_limit()) \
    X(double, softened, commander.impedance().softened()) X(bool, moves, !rests(y.setpoint)) \
    X(Phase, phase, loop.state_machine().phase()) X(Cause, cause, loop.state_machine().cause()) X(bool, lost, loop.state_machine().lost()) \
    X(bool, held, loop.state_machine().held()) X(bool, stopping, loop.state_machine().braked()) X(bool, fed, !loop.state_machine().is(Phase::idle)) \
    X(double, age, progress.age) X(double, stop_end, progress.stop_end) X(double, excess, progress.excess) \
    X(bool, on_path, progress.on_path) X(bool, ended_at_rest, progress.ended_at_rest) X(double, path_time, path[0]) \
    X(double, pace, path[1]) X(bool, pace_limited, loop.player().limited()) \
    X(double, allowed_pace, loop.player().allowed(loop.speed_scaling)) X(bool, settled, contact.settled()) \
    X(bool, contact, contact.found()) X(std::size_t, contact_joint, contact.touched().joint) \
    X(double, contact_effort, contact.touched().effort) X(double, contact_threshold, contact.touched().threshold) \
    X(double, settling, observer.settling()) X(bool, efforts, observer.sensed().efforts) X(Check, finding, found.check) \
    X(std::size_t, finding_field, found.field) X(std::size_t, finding_joint, found.joint) \
    X(std::size_t, finding_joints, found.joints) X(double, finding_time, found.time) X(double, finding_step, found.step) \
    X(double, finding_allowed, found.allowed) X(double, finding_difference, found.difference) X(double, finding_factor, found.factor)

/// State of the loop after a cycle, with the data of its messages.
struct LoopState {
#define EOM_NUMBER_OF_STATE(Type, name, value) Type name{};
    EOM_STATE(EOM_NUMBER_OF_STATE)
    LoopCounts counts;
    Reason reason, overload; ///< overload: from Commander::overload()
    Finding found;
    const char *payload_refusal = nullptr;
};

namespace detail {

/// Returns true if any gain is positive.
template <class Scalar, std::size_t size>
bool positive(const std::array<Scalar, size> &values) noexcept
{
    return std::any_of(values.begin(), values.end(), [](Scalar gain) { return gain > 0; });
}

/// Returns true if all gains are finite and not negative.
template <class Scalar, std::size_t size>
bool gains(const std::array<Scalar, size> &values) noexcept
{
    return finite(values) && std::all_of(values.begin(), values.end(), [](Scalar gain) { return gain >= 0; });
}

} // namespace detail

/// Returns the error of a mode, or null. Without stiffness, the arm would be limp in impedance mode.
template <class Robot>
const char *mode_objection(Mode mode, const LoopParameters<Robot> &parameters, const Robot &robot) noexcept
{
    const bool stiff = detail::positive(parameters.stiffness) ||
                       (robot.tool_count() > 0 && detail::positive(parameters.tool_stiffness));
    return mode != Mode::impedance || stiff
               ? nullptr
               : "mode impedance needs springs: deactivate, set stiffness, such as [300.0], or tool_stiffness of a robot with "
                 "tools, activate, and set mode again";
}

/// Returns the error of parameters, or null. Ranges are those of the node.
template <class Robot>
const char *objection(const LoopParameters<Robot> &parameters, const Robot &robot) noexcept
{
    using namespace detail;
    for (const Setting &setting : SETTINGS) {
        const double value = setting.get(parameters);
        if (!(value >= setting.lower && value <= setting.upper))
            return setting.objection;
    }
    if (!gains(parameters.motor_kp) || !gains(parameters.motor_kd))
        return "motor_kp and motor_kd must be finite, and not negative";
    if (!gains(parameters.link_kp) || !gains(parameters.link_kd))
        return "link_kp and link_kd must be finite, and not negative";
    if (!gains(parameters.stiffness) || !gains(parameters.tool_stiffness))
        return "stiffness and tool_stiffness must be finite, and not negative";
    if (positive(parameters.tool_stiffness) && robot.tool_count() > 0 && !robot.finds_tools())
        return "tool_stiffness needs code of tool_kinematics: generate it again";
    return mode_objection(parameters.mode, parameters, robot);
}

} // namespace eom

#endif
