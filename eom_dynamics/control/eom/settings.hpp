// SPDX-License-Identifier: Apache-2.0
// Settings of a control loop that are the same for every robot: their meaning, defaults, names and ranges, of settings.py.
#ifndef EOM_SETTINGS_HPP
#define EOM_SETTINGS_HPP

#include <array>
#include <string_view>

namespace eom {

/// Choices of settings, in the order of settings.py. Efforts of gravity hold the measured position, or else the commanded one.
/// A setpoint that is valid, but not plausible, is not checked, counted, or refused. After a reaction to contact, references are
/// refused until the arm rests and contact has ended, or until resume(); it retracts as to a target, or stops without limits.
@enumerations@

/// Settings of the loop that are the same for every robot, as the table of the node describes them; by default those of the
/// level of safety "strict".
struct LoopSettings {
@members@
};

/// A setting by its name: a number in a range, or one of choices by its number. It is a parameter of hosts, or set by the level of
/// safety.
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
#define EOM_CHOICE(name, is_parameter, last, ...) {EOM_SETTING(name, is_parameter), 0, last, #name " is none of its choices", {__VA_ARGS__}}

/// All of them, in the ranges of the node's parameters.
constexpr Setting SETTINGS[] = {
@settings@
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
