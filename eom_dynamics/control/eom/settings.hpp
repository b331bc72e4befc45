// SPDX-License-Identifier: Apache-2.0
// Settings of a control loop that are the same for every robot: their meaning, defaults, names and ranges.
#ifndef EOM_SETTINGS_HPP
#define EOM_SETTINGS_HPP

#include <array>
#include <string_view>

#include "limits.hpp"

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

/// What contact does, as the parameter on_contact of the node. After it, references are refused until the arm rests and
/// contact has ended, or until resume().
enum class ContactReaction {
    ignore,     ///< nothing
    hold,       ///< pause a motion that is played, on its path; others stop
    stop,       ///< bring the arm to rest, on the path of a motion that is played
    retract,    ///< go back to where the arm was commanded 0.2 s before, as to a target; without limits of that, stop
    deactivate, ///< stop, then stop controlling
};

/// Who leads the arm: references; references to which it is on springs; or hands, while it carries its weight.
enum class Mode { position, impedance, gravity_compensation };

/// Settings of the loop that are the same for every robot; by default those of the level of safety "strict".
struct LoopSettings {
    LimitPolicy limits = LimitPolicy::@limits@;
    /// Time without a valid reference after which setpoints are lost, s; 0 for never.
    double setpoint_timeout = @setpoint_timeout@;
    LossPolicy on_setpoint_loss = LossPolicy::@on_setpoint_loss@;
    /// Durations of a stop and of a ramp, s.
    double stop_duration = @stop_duration@, ramp_duration = @ramp_duration@;
    EffortOnDeactivate effort_on_deactivate = EffortOnDeactivate::zero;
    /// After LossPolicy::hold, largest distance of a reference from the commanded position, rad or m.
    double resume_distance = @resume_distance@;
    /// Largest age of a setpoint by its stamp, s; 0 for any. An older one is counted as refused, and otherwise as none.
    double setpoint_lifespan = @setpoint_lifespan@;
    /// Largest distance of the start of a trajectory from the commanded position, rad or m; for a moving joint, its velocity
    /// times START_LATENCY more.
    double start_tolerance = @start_tolerance@;
    ContactReaction on_contact = ContactReaction::@on_contact@;
    /// Mean age of a command when it acts, s. Feedforward is for the motion so much later, exact for trajectories, by the
    /// Taylor polynomial for setpoints; feedback is not.
    double command_lead = 0;
    /// Plausibility checks; setpoints with a field that is not the rate of the one before are always counted.
    CheckPolicy stamp_check = CheckPolicy::@stamp_check@, jump_check = CheckPolicy::@jump_check@;
    /// Mode until another one is posted, and damping of impedance and gravity compensation.
    Mode mode = Mode::position;
    double damping_ratio = 0.7;
};

/// A setting by its name: a number in a range, or one of choices by its number.
struct Setting {
    const char *name;
    double (*get)(const LoopSettings &settings) noexcept;
    void (*set)(LoopSettings &settings, double value) noexcept;
    double lower, upper;
    const char *objection;
    std::array<std::string_view, 5> choices{};
};

#define EOM_SETTING(name) \
    #name, [](const LoopSettings &x) noexcept { return static_cast<double>(x.name); }, \
        [](LoopSettings &x, double value) noexcept { x.name = static_cast<decltype(x.name)>(value); }
#define EOM_NUMBER(name, lower, upper, range) {EOM_SETTING(name), lower, upper, #name " must be " range}
#define EOM_CHOICE(name, last, ...) {EOM_SETTING(name), 0, last, #name " is none of its choices", {__VA_ARGS__}}

/// All of them, in the ranges of the node's parameters.
constexpr Setting SETTINGS[] = {
    EOM_CHOICE(limits, 3, "ignore", "warn", "refuse", "clip"),
    EOM_NUMBER(setpoint_timeout, 0, 3600, "0 to 3600 s"),
    EOM_CHOICE(on_setpoint_loss, 3, "none", "hold", "ramp", "deactivate"),
    EOM_NUMBER(stop_duration, 0.01, 60, "0.01 to 60 s"),
    EOM_NUMBER(ramp_duration, 0.01, 600, "0.01 to 600 s"),
    EOM_CHOICE(effort_on_deactivate, 2, "zero", "gravity", "keep"),
    EOM_NUMBER(resume_distance, 0, 1e9, "0 to 1e9 rad or m"),
    EOM_NUMBER(setpoint_lifespan, 0, 3600, "0 to 3600 s"),
    EOM_NUMBER(start_tolerance, 1e-6, 1000, "1e-6 to 1000 rad or m"),
    EOM_CHOICE(on_contact, 4, "ignore", "hold", "stop", "retract", "deactivate"),
    EOM_NUMBER(command_lead, 0, 0.1, "0 to 0.1 s"),
    EOM_CHOICE(stamp_check, 2, "ignore", "warn", "refuse"),
    EOM_CHOICE(jump_check, 2, "ignore", "warn", "refuse"),
    EOM_CHOICE(mode, 2, "position", "impedance", "gravity_compensation"),
    EOM_NUMBER(damping_ratio, 0, 10, "0 to 10"),
};

/// A setting at a level of safety, an enumerator by its number.
struct SafetySetting {
    std::string_view level, name;
    double value;
};
constexpr SafetySetting SAFETY[] = {@safety@};

#undef EOM_SETTING
#undef EOM_NUMBER
#undef EOM_CHOICE

} // namespace eom

#endif
