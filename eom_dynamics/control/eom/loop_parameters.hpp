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

/// What a command answers. The first three have the numbers of the status of a FeedforwardCommand.
enum class Status {
    fresh = 0,    ///< the reference of this cycle, or of the last ones within the timeout; expired ones are as none
    held = 1,     ///< an earlier one: the reference was refused, setpoints are lost, or a stop has ended
    stopping = 2, ///< brings the arm to rest
    waiting = 3,  ///< no reference has come yet
    lost = 4,     ///< setpoints are lost, the arm rests, and the host should deactivate the loop
};

/// Source of the motion that is commanded.
enum class Leader { none, setpoints, trajectory, target, stop, hands };

/// A setpoint with its time.
template <class Robot>
struct StampedSetpoint {
    std::int64_t stamp = 0; ///< ns; 0 if it has none
    Setpoint<Robot> setpoint;
};

/// Settings of the loop; gains of zero leave feedback out.
template <class Robot>
struct LoopParameters : LoopSettings {
    using Scalar = typename Robot::Scalar;

    /// Gains of a PD around the motor motion, and around the link motion, which acts through the motors.
    MotorVector<Robot> motor_kp{}, motor_kd{};
    JointVector<Robot> link_kp{}, link_kd{};
    /// Of the mode impedance: stiffness of joints, and of tools along x, y, z and about x, y, z of the base; with that of
    /// tools, the joints have theirs where it moves no tool.
    JointVector<Robot> stiffness{};
    std::array<Scalar, 6> tool_stiffness{};
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
    /// What is sent.
    DriveCommand<Robot> sent;
};

/// Whether an arm moves as an output has commanded it a time ago, s, as far as that is measured: positions up to a distance,
/// rad or m, and velocities if these may have changed since, where hardware measures them.
template <class Robot>
bool follows(const LoopOutput<Robot> &output, const Measurement<Robot> &measured, double distance, double time,
             bool with_velocities) noexcept
{
    constexpr double DIFFERENCE = 0.1; // of velocity
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

/// Counts since the last restart. Of setpoints that are not plausible, or not known to be, refused or not; of early ones, whose
/// stamps ran ahead of their arrival, see StampLeads; of cycles of a mode that needs measurements without usable ones;
/// and of trajectories that have begun, and that have reached their end.
#define EOM_COUNTS(X) \
    X(cycles) X(followed) X(refused) X(over_limits) X(timeouts) X(refused_payloads) X(early) X(unmeasured) X(contacts) X(begun) \
    X(finished)
/// Those of setpoints that are not plausible, by check.
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

/// What tells the effort on the link of a joint.
enum class EffortSource : std::uint8_t { torque, springs, motor };

/// What became of a sample; only one that is taken moves the observer.
enum class Sample : std::uint8_t { taken, started, not_finite, stale, inconsistent, too_large, missing };

/// The joint whose external effort was the largest of its threshold in contact, both in N m or N.
struct Touched {
    std::size_t joint;
    double effort, threshold;
};

/// What leads in place of a trajectory, without a path on which it could pause or change its speed.
enum class OffPath { nothing, target, references };

/// Numbers of a loop by type, name and value; times in s, but "latest" and "moved_at" in ns; beyond_limit and too_fast count joints from 1.
#define EOM_STATE(X) \
    X(Status, status, y.status) X(bool, valid, y.valid) X(bool, on_base, y.setpoint.on_base) X(bool, loaded, y.setpoint.loaded) \
    X(bool, playing, loop.playing()) X(bool, waiting, loop.waiting()) X(bool, blending, loop.blending()) \
    X(bool, aiming, loop.aiming()) X(bool, arrived, loop.arrived()) X(OffPath, off_path, loop.off_path()) \
    X(bool, touched, loop.touched()) X(bool, blinded, loop.blinded()) X(bool, early_waits, loop.early()) \
    X(bool, paused, loop.paused) X(double, speed_scaling, loop.speed_scaling) X(double, slowed_to, loop.governor().least()) \
    X(double, way_out, loop.watchdog().way_out().share()) X(double, largest_way_out, loop.watchdog().way_out().largest()) \
    X(std::int64_t, latest, loop.clock()) X(std::int64_t, moved_at, loop.moved_at()) X(double, lost_time, loop.lost_time()) \
    X(Mode, mode, commander.mode()) X(bool, payload_stays, commander.payload_stays()) \
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

/// What happened until a cycle: its numbers, and what texts are of.
struct LoopState {
#define EOM_NUMBER_OF_STATE(Type, name, value) Type name{};
    EOM_STATE(EOM_NUMBER_OF_STATE)
    LoopCounts counts;
    Reason reason, overload; ///< the last one is that of Commander::overload()
    Finding found;
    const char *payload_refusal = nullptr;
};

namespace detail {

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

/// What is wrong with a mode, or null: without stiffness an arm would be limp.
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

/// What is wrong with parameters, whose ranges are those of the node, or null.
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
