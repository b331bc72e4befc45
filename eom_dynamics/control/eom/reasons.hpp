// SPDX-License-Identifier: Apache-2.0
// Reasons of refused references, and their messages for all hosts.
#ifndef EOM_REASONS_HPP
#define EOM_REASONS_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "robot_table.hpp"

namespace eom {

/// Refusals with their messages: for a known quantity of a joint or motor, and without it ("": same message). Braces contain
/// members of a Reason, the name of its joint or motor, and the unit.
#define EOM_REFUSALS(X) \
    X(none, "", "") \
    X(not_finite, "numbers too large: {quantity} of {kind} '{name}' would be {value}", \
      "the motors cannot realise it: numbers are too large, a spring would be slack, or a stiffness is out of range") \
    X(over_limits, "exceeds limits: {limits}", "it exceeds limits with the payload: make it slower, or take a lighter one") \
    X(transition, "exceeds limits on the way from the commanded state: {limits}; start closer to it, or leave more time until the " \
      "first knot", "") \
    X(too_old, "its stamp is further than {limit} s from the clock", "") \
    X(busy, "a trajectory is being played; an empty one stops it", "") \
    X(starts_away, "{name} starts {value} {unit} from its commanded position at that time, or where it is measured before any " \
      "command or after a pause, must be at most {limit} (parameter start_tolerance): start there", "") \
    X(ended, "it has ended: check its time stamp", "") \
    X(far_from_hold, "{name} is {value} {unit} from where it is held at a target, or after a loss of setpoints or a stop, more than {limit} " \
      "(parameter start_tolerance): begin there, or send a target", \
      "the arm is being stopped: setpoints are followed again once it rests") \
    X(inactive, "setpoints were lost, and on_setpoint_loss is deactivate: deactivate and activate again", "") \
    X(under_way, "its first waypoint was due {time} s ago, and {name} has moved {value} {unit} since, must be at most {limit} " \
      "(parameter start_tolerance), while no position is commanded: start it now (stamp 0, times from 0) or later", "") \
    X(too_far_ahead, "it starts more than @longest_start_delay@ s from now: check its time stamp and first time, and the clock", "") \
    X(far_beyond_limits, "position of {name} is {value} rad, its range {from} to {limit} rad, more than a turn beyond its limit: angles are " \
      "in rad, not in degrees; set limits to ignore to accept it", "") \
    X(led, "the controller in front writes references: send motions to it, or deactivate it first", "") \
    X(suspect_stamp, "in doubt: {finding}", "") \
    X(jump, "in doubt: {finding}", "") \
    X(moving_base, "base is not empty, and there is no code for it: set moving_base: true in the robot file, and generate code " \
      "again; the complete rotor model has no moving base; use the reduced rotor model", "") \
    X(free_fall, "base[0].specific_force is zero, as if the base fell freely: set it to what an accelerometer measures, at rest " \
      "and upright 9.81 m/s^2 along z; if the base falls, set it to 1e-9", "") \
    X(unlimited, "the robot has no limits of velocity and acceleration for the motion to targets: set target_limits", "") \
    X(from_nothing, "no position is commanded yet that the motion to a target could continue from: measure links or motors, or " \
      "send a setpoint", "") \
    X(in_contact, "contact at {name}: @until_rest@", "the arm is in contact: @until_rest@") \
    X(led_by_hand, "hands lead the arm: set the parameter mode to position or impedance", "") \
    X(older, "its stamp is before the last stamp", "") \
    X(paused, "the arm is paused: @resume@", "") \
    X(motor_step, "{step} would step by {value} within {time} s, at most {limit} (SI units): begin from what is commanded, with " \
      "its stiffness, wrench and base, or deactivate and activate again", "") \
    X(overload, "{load}: the arm cannot rest at the target", "the arm cannot rest at the target") \
    X(early, "its stamp runs ahead of its arrival, by over 20 ms more than others did: it waits for the next cycle", "") \
    X(cannot_stop, "exceeds limits: {limits}", "a joint could not stop before a limit of its position: slow down before it") \
    X(elsewhere, "the arm is further than @elsewhere@ rad or m, and start_tolerance, from its command: have its drives follow, or " \
      "deactivate and activate again to begin where it is", "") \
    X(no_room, "a joint would leave its range, or be too fast, before it comes to rest: wait until the arm rests", "") \
    X(aiming, "the arm moves to a target", "") \
    X(stopping, "the arm is being stopped after a refused command: wait until it rests", "") \
    X(beyond_range, "{name}: target {value} {unit}, limit {limit} {unit}; send a target within the range", "") \
    X(path_beyond_range, "{name}: position {value} {unit} at {time} s, limit {limit} {unit}; plan within the range", "")

/// Reason of the last refusal; an early reference is not refused, but waits.
#define EOM_FIRST(name, ...) name,
enum class Refusal { EOM_REFUSALS(EOM_FIRST) };

/// Quantities of joints, motors, motor shafts before the gear, and of all motors of a joint, with their units.
#define EOM_QUANTITIES(X) \
    X(none, joint, "", 0) X(position, joint, "rad", 0) X(velocity, joint, "rad", 1) X(acceleration, joint, "rad", 2) \
    X(jerk, joint, "rad", 3) X(snap, joint, "rad", 4) X(effort, joint, "N m", 0) X(effort_rate, joint, "N m", 1) \
    X(effort_acceleration, joint, "N m", 2) X(motor_position, motor, "rad", 0) X(motor_velocity, motor, "rad", 1) \
    X(motor_acceleration, motor, "rad", 2) X(motor_effort, motor, "N m", 0) X(motors_effort, joint, "N m", 0) \
    X(speed, shaft, "rad", 1) X(torque, shaft, "N m", 0) X(current, shaft, "A", 0) X(voltage, shaft, "V", 0) \
    X(stopping_position, joint, "rad", 0) X(drive_position, motor, "", 0) X(drive_velocity, motor, "", 0) \
    X(drive_effort, motor, "", 0) X(sent_effort, joint, "N m", 0) X(sent_effort_rate, joint, "N m", 1)
enum class Quantity { EOM_QUANTITIES(EOM_FIRST) };

/// Quantity of a joint or motor beyond its limit, with the refusal that it caused, if any. SI units.
struct Reason {
    constexpr Reason(Refusal why = Refusal::none, Quantity of = Quantity::none, std::size_t at = 0, double is = 0, double most = 0,
                     double in = 0) noexcept
        : refusal(why), quantity(of), place(at), value(is), limit(most), time(in)
    {
    }

    Refusal refusal;
    Quantity quantity;
    std::size_t place; ///< index of the joint or motor
    double value, limit;
    double time; ///< time of a motor step, or elapsed time, s
    /// Distance from the middle of the range, relative to half the range; number of further violated limits.
    double ratio = 0;
    std::size_t more = 0;
    /// Lower end of a range; or for a stop that ends beyond a limit, its start, velocity and deceleration.
    double from = 0, rate = 0, braking = 0;
    /// True if a first setpoint is so fast that it may be in degrees.
    bool degrees = false;
};

/// Ratio of velocity to its limit above which it may be in degrees.
constexpr double IN_DEGREES = 5;

/// Marks functions that run only after a refusal, to keep them out of the hot path.
#define EOM_SELDOM [[gnu::noinline, gnu::cold]]

/// Stream checks of setpoints.
enum class Check {
    none,
    stamps,
    jumps,
    consistency,
    without_stamp, ///< jumps are not checked
    away,          ///< farther than start_tolerance from the arm, after an unknown time
};

/// Finding of a stream check.
struct Finding {
    Check check = Check::none;
    bool positions = false; ///< true if the setpoint contains positions only
    /// Field (0 position to 4 snap) and joint that jumps, or differs from the rate of the field before.
    std::size_t field = 0, joint = 0;
    /// Number of inconsistent joints.
    std::size_t joints = 0;
    /// Backward step of a stamp, or time since the stamp before a jump, s.
    double time = 0;
    /// Size of a jump and its limit.
    double step = 0, allowed = 0;
    /// Relative difference of a field from the rate of the field before; constant factor between them, 0 without one.
    double difference = 0, factor = 0;
};

/// Fault of a measured joint or motor.
enum class Fault : std::uint8_t { none, not_finite, jump, contradicted, too_fast };

/// Worst fault of a sample, and its joint or motor.
struct MeasurementFault {
    Fault fault = Fault::none;
    bool of_motor = false;
    std::size_t place = 0;
    double value = 0, limit = 0; ///< jump: positions; otherwise velocity of the sensor, and its limit or the rate of the positions
};

/// Messages of a robot's reasons.
class Sentences {
  public:
    explicit Sentences(const RobotTable &robot) noexcept : robot_(robot) {}

    /// Returns the message of a refused reference. `limits`: violated limits of the command; by default only the worst is known.
    std::string of(const Reason &x, const Finding &finding = {}, Span<const Reason> limits = {}) const
    {
        const auto &[known, unknown] = TEXTS[static_cast<std::size_t>(x.refusal)];
        std::string text, from = x.quantity == Quantity::none && *unknown ? unknown : known;
        for (std::size_t at = 0; at < from.size();) {
            const std::size_t open = std::min(from.find('{', at), from.size()), close = from.find('}', open);
            text += from.substr(at, open - at);
            if (open == from.size())
                break;
            const std::string field = from.substr(open + 1, close - open - 1);
            text += field == "finding" ? of(finding) : field == "limits" ? exceeded(x, limits) : field_of(x, field);
            at = close + 1;
        }
        return text + (x.degrees ? "; was that in degrees? Angles are in rad" : "");
    }

    /// Returns joint or motor, quantity, unit and remark of a violated limit.
    std::array<std::string, 4> parts(const Reason &x) const
    {
        const std::string unit = unit_of(x.quantity, x.place);
        const auto braking = [&] {
            return ", from " + number(x.from) + " " + unit + " at " + number(x.rate) + " " + unit_of(Quantity::velocity, x.place) +
                   " with " + number(x.braking, 3) + " " + unit_of(Quantity::acceleration, x.place) + ": slow down before the limit";
        };
        return {name_of(x), quantity_of(x), unit, x.quantity == Quantity::stopping_position ? braking() : ""};
    }

    /// Returns the limit that a payload or target would exceed; "" if there is none.
    std::string load(const Reason &x) const
    {
        return x.value != 0 ? place(x) + " would be " + number(x.value) + ", beyond its limit " + number(x.limit) + " (SI units)" : "";
    }

    /// Returns the limit, by its number in the governor, that scales accelerations of the motion to a target by `share`.
    std::string slowed(double share, std::size_t limit, std::size_t place) const
    {
        constexpr Quantity GOVERNED[] = {Quantity::effort,       Quantity::effort_rate, Quantity::motor_velocity,
                                         Quantity::motor_effort, Quantity::voltage,     Quantity::motors_effort};
        return share == 1 ? "" : "to " + std::to_string(std::lround(100 * share)) + " % of accelerations by the limit of " + this->place({Refusal::none, GOVERNED[limit], place});
    }

    /// Returns the quantity with its joint or motor.
    std::string place(const Reason &x) const
    {
        std::string text = quantity_of(x);
        std::replace(text.begin(), text.end(), '_', ' ');
        return (robot_quantity(x.quantity).whose == Whose::shaft ? "motor " : "") + text + " of " + (x.quantity == Quantity::motors_effort ? robot_.facts.joint_names[x.place] : name_of(x));
    }

    /// Returns the message of a measurement fault; "" without a fault.
    std::string of(const MeasurementFault &x) const
    {
        const bool jumps = x.fault == Fault::jump;
        const Quantity position = x.of_motor ? Quantity::motor_position : Quantity::position;
        const Quantity velocity = x.of_motor ? Quantity::motor_velocity : Quantity::velocity;
        const std::string unit = " " + unit_of(jumps ? position : velocity, x.place);
        const std::string name = (x.of_motor ? "motor " : "joint ") + name_of({Refusal::none, velocity, x.place}) + ": ";
        const std::string value = number(x.value) + unit, limit = number(x.limit) + unit;
        return x.fault == Fault::too_fast       ? name + "measured velocity " + value + ", limit " + limit + "; check the units of its sensor"
               : x.fault == Fault::contradicted ? name + "measured velocity " + value + ", but positions change by " + limit +
                                                      "; check its sensor and stamps"
               : jumps                          ? name + "measured position jumps by " + value + ", limit " + limit + "; check its sensor"
               : x.fault == Fault::not_finite   ? name + "measured position is not finite; check its sensor"
                                                : "";
    }

    /// Returns the message of a finding; "" without a finding.
    std::string of(const Finding &x) const
    {
        const auto field = [&](std::size_t k) { return std::string(QUANTITIES[1 + k].name); };
        const std::string name = x.check == Check::none ? "" : robot_.facts.joint_names[x.joint];
        switch (x.check) {
        case Check::stamps:
            return x.time > 0 ? "stamp goes back by " + number(x.time, 3) + " s: several publishers, or setpoints out of order"
                              : "stamp repeated: the setpoint before has the same";
        case Check::jumps:
            return field(x.field) + " of " + name + " jumps by " + number(x.step, 3) + " within " + number(x.time, 3) +
                   " s, limits allow " + number(x.allowed, 3) +
                   ": start from the commanded state, or deactivate and activate again" +
                   (x.positions ? "; @positions_alone@" : "");
        case Check::consistency:
            return field(x.field) + " of " + name + (x.joints > 1 ? " (and " + std::to_string(x.joints - 1) + " more)" : "") +
                   (x.factor != 0 ? " is " + number(x.factor) + " times the rate of " + field(x.field - 1)
                                  : " is not the rate of " + field(x.field - 1) + ": it differs by " +
                                        std::to_string(std::lround(100 * x.difference)) + " %");
        case Check::without_stamp:
            return "@unstamped@";
        case Check::away:
            return name + " is " + number(x.step, 3) + " " + unit_of(Quantity::position, x.joint) + " from where the arm is, more than " +
                   number(x.allowed) + " (parameter start_tolerance): begin there; amid a stream, write the time of the motion to "
                   "header.stamp, which tells a jump from motion";
        default:
            return "";
        }
    }

  private:
    enum class Whose { joint, motor, shaft };
    struct QuantityRow {
        const char *name;
        Whose whose;
        const char *unit;
        int order;
    };
#define EOM_QUANTITY_ROW(name, whose, unit, order) {#name, Whose::whose, unit, order},
    static constexpr QuantityRow QUANTITIES[] = {EOM_QUANTITIES(EOM_QUANTITY_ROW)};
#define EOM_TEXTS(name, known, unknown) {known, unknown},
    static constexpr struct {
        const char *known, *unknown;
    } TEXTS[] = {EOM_REFUSALS(EOM_TEXTS)};

    static const QuantityRow &robot_quantity(Quantity x) noexcept { return QUANTITIES[static_cast<std::size_t>(x)]; }

    static std::string number(double x, int digits = 4)
    {
        char text[32];
        std::snprintf(text, sizeof text, "%.*g", digits, x);
        return std::isnan(x) ? "nan" : text;
    }

    static std::string quantity_of(const Reason &x)
    {
        return x.quantity == Quantity::motors_effort       ? "motor_effort"
               : x.quantity == Quantity::stopping_position ? "stopping position"
                                                           : robot_quantity(x.quantity).name;
    }

    /// Returns the name of the joint or motor, or the names of all motors of a joint.
    std::string name_of(const Reason &x) const
    {
        const auto &motors = robot_.facts.motor_names;
        if (robot_quantity(x.quantity).whose != Whose::joint)
            return motors[x.place];
        std::string names;
        for (std::size_t i = 0; i < motors.size() && x.quantity == Quantity::motors_effort; ++i)
            if (robot_.facts.motor_joint[i] == x.place)
                names += (names.empty() ? "" : "+") + std::string(motors[i]);
        return x.quantity == Quantity::motors_effort ? names : robot_.facts.joint_names[x.place];
    }

    /// Returns the unit of a quantity; length units for prismatic joints.
    std::string unit_of(Quantity of, std::size_t place) const
    {
        const QuantityRow &row = robot_quantity(of);
        const std::size_t joint = row.whose == Whose::motor ? robot_.facts.motor_joint[place] : place;
        const bool slides = row.whose != Whose::shaft && std::isinf(robot_.turn[joint]);
        const std::string unit = !slides ? row.unit : *row.unit == 'r' ? "m" : *row.unit == 'N' ? "N" : row.unit;
        constexpr const char *RATES[] = {"", "/s", "/s\xc2\xb2", "/s\xc2\xb3", "/s\xe2\x81\xb4"};
        return unit + RATES[row.order];
    }

    std::string field_of(const Reason &x, const std::string &field) const
    {
        if (field == "load")
            return load(x);
        if (field == "step")
            return x.quantity == Quantity::motor_position ? "motor " + name_of(x) : place(x);
        if (field == "kind")
            return robot_quantity(x.quantity).whose == Whose::joint ? "joint" : "motor";
        return field == "name"       ? name_of(x)
               : field == "quantity" ? quantity_of(x)
               : field == "unit"     ? unit_of(x.quantity, x.place)
               : field == "value"    ? number(x.value)
               : field == "limit"    ? number(x.limit)
               : field == "from"     ? number(x.from)
                                     : number(x.time, 3);
    }

    /// Returns the first violated limits, and the number of further violations.
    std::string exceeded(const Reason &worst, Span<const Reason> limits) const
    {
        constexpr std::size_t SHOWN = 5;
        std::string text;
        const Span<const Reason> found = limits.size() > 0 ? limits : Span<const Reason>(&worst, 1);
        for (std::size_t i = 0; i < std::min(found.size(), SHOWN); ++i) {
            const auto &[name, quantity, unit, remark] = parts(found[i]);
            text += (i > 0 ? "; " : "") + name + ": " + quantity + " " + number(found[i].value) + " " + unit + ", limit " +
                    number(found[i].limit) + " " + unit + remark;
        }
        const std::size_t more = limits.size() > 0 ? limits.size() - std::min(limits.size(), SHOWN) : worst.more;
        return text + (more > 0 ? "; and " + std::to_string(more) + " more" : "");
    }

    const RobotTable &robot_;
};

} // namespace eom

#endif
