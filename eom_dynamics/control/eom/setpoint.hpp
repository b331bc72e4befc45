// SPDX-License-Identifier: Apache-2.0
// Setpoint of the links, command of the motors, and measurements of both, as plain arrays.
#ifndef EOM_SETPOINT_HPP
#define EOM_SETPOINT_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "spline.hpp"

namespace eom {

/// Longest time between two setpoints of one stream, ns; more is a pause or a jump of the clock.
constexpr std::int64_t LONGEST_GAP = @longest_gap@;

/// Time after its end during which a chunk of targets is accepted, ns.
constexpr std::int64_t LATEST_CHUNK = @latest_chunk@;

/// Longest time until the start of a trajectory, s; longer times are due to a wrong stamp or clock.
constexpr double LONGEST_START_DELAY = @longest_start_delay@;

/// Longest time step of a stop and of a payload change, ns, so that a stall, a gap of the stream or a jump of the clock does not
/// cause a step of the command.
constexpr std::int64_t LONGEST_RESPONSE_STEP = @longest_response_step@;

constexpr double seconds(std::int64_t nanoseconds) noexcept { return static_cast<double>(nanoseconds) * 1e-9; }

/// Alignment, bytes, of vectors that each cycle copies; copies across two cache lines are slower.
constexpr std::size_t CACHE_LINE = 64;

/// Vectors of vectors.py by owner, with their types and initial values.
#define EOM_SETPOINT(X) @setpoint@
#define EOM_PAYLOAD(X) @payload@
#define EOM_BASE(X) @base@
#define EOM_COMMAND(X) @command@
#define EOM_SENT(X) @sent@
#define EOM_MEMBER(Type, name, initial) Type<Robot> name = initial;

/// Vectors of a robot's joints, motors, tool wrenches and payloads.
template <class Robot>
using JointVector = std::array<typename Robot::Scalar, Robot::joints>;
template <class Robot>
using MotorVector = std::array<typename Robot::Scalar, Robot::motors>;
template <class Robot>
using WrenchVector = std::array<typename Robot::Scalar, 6 * Robot::tools>;
template <class Robot>
using PayloadVector = std::array<typename Robot::Scalar, 10 * Robot::tools>;

/// Base motion in the base frame: angular velocity, rad/s, with three time derivatives, and specific force (accelerometer at the
/// origin), m/s^2, with two.
template <class Scalar>
struct BaseMotion {
#define EOM_AXES(Type, name, initial) std::array<Scalar, 3> name{};
    EOM_BASE(EOM_AXES)
};

/// Optional base motion. Assignment skips an absent one, so that setpoints on a fixed base do not pay for the copy.
template <class Scalar>
struct OptionalBase {
    OptionalBase() noexcept = default;
    OptionalBase(const OptionalBase &) noexcept = default;
    OptionalBase &operator=(const OptionalBase &other) noexcept
    {
        on_base = other.on_base;
        if (on_base)
            base = other.base;
        return *this;
    }

    /// Valid if on_base, for robots with code for a moving base; otherwise the base is at rest.
    BaseMotion<Scalar> base;
    bool on_base = false;
};

/// Link motion with four time derivatives, tool wrenches, and commanded stiffness. SI units.
///
/// W is the wrench that the robot exerts at each tool, in the tool frame: moment x y z, force x y z. Commanded stiffness k is read
/// only at joints with variable stiffness; deflections and friction states only with damped springs and presliding friction, see
/// DeflectionFilter. Payloads P are read only if `loaded`, see PayloadFade: mass, first moment x y z, inertia about the origin of
/// the tool frame xx xy xz yy yz zz.
template <class Robot>
struct Setpoint : OptionalBase<typename Robot::Scalar> {
    alignas(CACHE_LINE) EOM_SETPOINT(EOM_MEMBER)
    EOM_PAYLOAD(EOM_MEMBER)
    bool loaded = false;
};

/// Rates up to this value are rounding of a message.
constexpr double AT_REST = 1e-6;

/// Returns true if all rates of the setpoint are zero, except for rounding.
template <class Robot>
bool rests(const Setpoint<Robot> &x) noexcept
{
    const auto still = [](const auto &...rates) {
        return (std::all_of(rates.begin(), rates.end(), [](auto rate) { return std::fabs(rate) <= AT_REST; }) && ...);
    };
    return still(x.qd, x.qdd, x.qddd, x.qdddd, x.Wd, x.Wdd, x.kd, x.kdd) &&
           (!x.on_base || still(x.base.wd, x.base.wdd, x.base.wddd, x.base.fd, x.base.fdd));
}

/// Joint efforts with two time derivatives, and motor motion and efforts on the link side of the gears.
template <class Robot>
struct Command {
    alignas(CACHE_LINE) EOM_COMMAND(EOM_MEMBER)
};

/// Drive command: motor references in drive units and joint efforts, without the efforts that the robot adds itself.
template <class Robot>
struct DriveCommand {
    EOM_SENT(EOM_MEMBER)
};

/// Measured motion and efforts of links and motors, on the link side of the gears.
template <class Robot>
struct Measurement {
    JointVector<Robot> q{}, qd{}, tau{};
    MotorVector<Robot> motor_position{}, motor_velocity{}, motor_effort{};
    /// Available measurements: motion of links and motors, efforts of joints and motors.
    bool links = false, motors = false, torque = false, efforts = false;
    /// True if a position has jumped, see MeasurementCheck.
    bool jumps = false;
};

/// Convert measured motors from drive units to SI units.
template <class Robot>
void read_drives(Measurement<Robot> &measured, const Robot &robot) noexcept
{
    if (!robot.converts())
        return;
    const Measurement<Robot> given = measured;
    robot.drive_state({}, {}, given.motor_position, given.motor_velocity, given.motor_effort, {}, measured.motor_position,
                      measured.motor_velocity, measured.motor_effort);
}

/// Returns true if all entries of the vectors are at most `most` in size, and no entry is NaN.
template <class Scalar, std::size_t n, class... Same>
bool bounded(Scalar most, const std::array<Scalar, n> &first, const Same &...others) noexcept
{
    static_assert((std::is_same_v<Same, std::array<Scalar, n>> && ...));
    const auto exceeds = [most](Scalar value) { return static_cast<long>(!(std::fabs(value) <= most)); };
    long found = 0; // branchless, so that it vectorizes
    for (std::size_t i = 0; i < n; ++i)
        found |= (exceeds(first[i]) | ... | exceeds(others[i]));
    return found == 0;
}

/// Returns true if all entries of the vectors are finite.
template <class Scalar, std::size_t n, class... Same>
bool finite(const std::array<Scalar, n> &first, const Same &...others) noexcept
{
    return bounded(std::numeric_limits<Scalar>::max(), first, others...);
}

/// Returns true if any entries differ by more than `distance`.
template <class Scalar, std::size_t n>
bool apart(const std::array<Scalar, n> &a, const std::array<Scalar, n> &b, double distance) noexcept
{
    long found = 0; // branchless, so that it vectorizes
    for (std::size_t i = 0; i < n; ++i)
        found |= static_cast<long>(std::fabs(a[i] - b[i]) > distance);
    return found != 0;
}

template <class Scalar, std::size_t n>
std::array<Scalar, n> difference(std::array<Scalar, n> a, const std::array<Scalar, n> &b) noexcept
{
    for (std::size_t i = 0; i < n; ++i)
        a[i] -= b[i];
    return a;
}

/// Returns true if a command is finite. It is not after an overflow, or for a stiffness out of range.
template <class Robot>
bool finite(const Command<Robot> &y) noexcept
{
#define EOM_FINITE(Type, name, initial) static_cast<long>(finite(y.name)) &
    return (EOM_COMMAND(EOM_FINITE) 1) != 0; // branchless
}

/// Advance a vector and its time derivatives by `lead` s with their Taylor polynomial.
template <class Scalar, std::size_t n, std::size_t count>
void advance(const std::array<std::array<Scalar, n> *, count> &rows, Scalar lead) noexcept
{
    for (std::size_t k = 0; k + 1 < count; ++k) {
        std::array<Scalar, n> values = *rows[count - 1];
        for (std::size_t j = count - 1; j-- > k;) {
            const Scalar factor = lead * (1 / static_cast<Scalar>(j - k + 1));
            for (std::size_t i = 0; i < n; ++i)
                values[i] = (*rows[j])[i] + factor * values[i];
        }
        *rows[k] = values;
    }
}

/// Advance motion, wrenches, commanded stiffness and base of a setpoint by `lead` s with all their derivatives. Payloads are
/// unchanged.
template <class Robot>
void advance(Setpoint<Robot> &x, typename Robot::Scalar lead) noexcept
{
    using Joints = JointVector<Robot>;
    using Wrenches = WrenchVector<Robot>;
    advance(std::array<Joints *, 5>{&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd}, lead);
    advance(std::array<Wrenches *, 3>{&x.W, &x.Wd, &x.Wdd}, lead);
    advance(std::array<Joints *, 3>{&x.k, &x.kd, &x.kdd}, lead);
    if (x.on_base) {
        using Axes = std::array<typename Robot::Scalar, 3>;
        advance(std::array<Axes *, 4>{&x.base.w, &x.base.wd, &x.base.wdd, &x.base.wddd}, lead);
        advance(std::array<Axes *, 3>{&x.base.f, &x.base.fd, &x.base.fdd}, lead);
    }
}

/// Returns the mean motor value of each joint, at the joint sides of its springs.
template <class Robot>
JointVector<Robot> sides_of(const Robot &robot, const MotorVector<Robot> &values) noexcept
{
    JointVector<Robot> mean{}, count{};
    const std::size_t motors = robot.motor_count();
    for (std::size_t j = 0; j < motors; ++j) {
        for (std::size_t i = 0; i < motors; ++i)
            mean[robot.motor_joint[j]] += robot.joint_sides[j * motors + i] * values[i];
        count[robot.motor_joint[j]] += 1;
    }
    for (std::size_t i = 0; i < robot.joint_count(); ++i)
        mean[i] /= count[i];
    return mean;
}

/// Returns the motion of a setpoint as a state.
template <class Robot>
State<Robot::joints> state_of(const Setpoint<Robot> &x) noexcept
{
    return {x.q, x.qd, x.qdd, x.qddd, x.qdddd};
}

/// Set the motion of a setpoint from a state.
template <class Robot>
void take(const State<Robot::joints> &state, Setpoint<Robot> &x) noexcept
{
    x.q = state[0];
    x.qd = state[1];
    x.qdd = state[2];
    x.qddd = state[3];
    x.qdddd = state[4];
}

/// Clear jerk and snap of joints whose motion in a stop of T s depends more on them than on velocity and acceleration: they are
/// then noise of finite differences.
template <std::size_t n>
void quiet(State<n> &x, double T) noexcept
{
    for (std::size_t i = 0; i < n; ++i)
        if (T * T * (std::fabs(x[3][i]) / 84 + T * std::fabs(x[4][i]) / 1680) >
            std::fabs(x[1][i]) / 2 + T * 3 * std::fabs(x[2][i]) / 28)
            x[3][i] = x[4][i] = 0;
}

} // namespace eom

#endif
