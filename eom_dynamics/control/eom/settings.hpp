// SPDX-License-Identifier: Apache-2.0
// Robot-independent settings of a control loop: meaning, defaults, names and ranges, from settings.py.
#ifndef EOM_SETTINGS_HPP
#define EOM_SETTINGS_HPP

#include <array>
#include <string_view>

namespace eom {

/// Choices of settings, in the order of settings.py.
/// - EffortOnDeactivate::gravity: efforts at the measured position, or else at the commanded position.
/// - ContactReaction: references are refused until contact has ended at rest, or until resume(). `retract` is a motion to a target,
///   or a stop without motion limits.
/// - CheckPolicy: a valid but implausible setpoint is not checked, counted, or refused.
@enumerations@

/// Robot-independent settings, described in the parameter table of the node. Defaults have the safety level "strict".
struct LoopSettings {
@members@
};

/// Named setting: a number in a range, or the index of a choice. Set as a parameter of hosts, or by the safety level.
struct Setting {
    const char *name;
    bool is_parameter;
    double (*get)(const LoopSettings &settings) noexcept;
    void (*set)(LoopSettings &settings, double value) noexcept;
    double lower, upper;
    const char *objection;
    std::array<std::string_view, 5> choices{};
};

#define EOM_SETTING(name, is_parameter) \
    #name, is_parameter, [](const LoopSettings &x) noexcept { return static_cast<double>(x.name); }, \
        [](LoopSettings &x, double value) noexcept { x.name = static_cast<decltype(x.name)>(value); }
#define EOM_NUMBER(name, is_parameter, lower, upper, range) {EOM_SETTING(name, is_parameter), lower, upper, #name " must be " range}
#define EOM_CHOICE(name, is_parameter, last, ...) {EOM_SETTING(name, is_parameter), 0, last, #name " is not one of its choices", {__VA_ARGS__}}

/// All settings, with the ranges of the node's parameters.
constexpr Setting SETTINGS[] = {
@settings@
};

/// Value of a setting, or index of its choice, at a safety level.
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
