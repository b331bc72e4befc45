// SPDX-License-Identifier: Apache-2.0
// Limits of the motion to targets: overrides, limits of the robot, or defaults.
#ifndef EOM_MOTION_LIMITS_HPP
#define EOM_MOTION_LIMITS_HPP

#include <stdexcept>
#include <string>

#include "limits.hpp"
#include "online_trajectory.hpp"
#include "robot_table.hpp"

namespace eom {

/// Velocity, acceleration, jerk and snap: one value for all joints or for each joint; empty or 0 for the limits of the robot.
using GivenLimits = std::array<std::vector<double>, 4>;

/// Returns the limits of each joint for cycles of `period` s. Throws std::runtime_error if a limit is missing.
///
/// By default, acceleration A of a joint with velocity V rises within A/V, or the ramp of the robot if that is shorter. Jerk rises
/// within half the first average; the second average is from the robot. Jerk is scaled so that all joints respect effort rates.
inline std::vector<MotionLimits> motion_limits(const RobotTable &robot, const GivenLimits &given, double period)
{
    constexpr const char *NAMES[] = {"velocity", "acceleration", "jerk", "snap"};
    constexpr double SMOOTHING = @smoothing@;
    std::vector<MotionLimits> limits;
    for (std::size_t i = 0; i < robot.joints; ++i) {
        const double *own = robot.motion.data() + 5 * i;
        std::array<double, 4> x{own[2], own[3], own[4], std::numeric_limits<double>::infinity()};
        for (std::size_t k = 0; k < x.size(); ++k) {
            const auto &numbers = given[k];
            if (numbers.size() > 1 && numbers.size() != robot.joints)
                throw std::runtime_error(NAMES[k] + std::string(" must have one entry, or one for each joint"));
            const double number = numbers.empty() ? 0 : numbers[numbers.size() > 1 ? i : 0];
            if (number != 0)
                x[k] = number;
            if (k < 2 && !std::isfinite(x[k]))
                throw std::runtime_error(std::string(robot.facts.joint_names[i]) + " has no limit of " + NAMES[k]);
        }
        auto &[V, A, J, S] = x;
        if (!std::isfinite(J))
            J = A * std::max(1 / robot.ramp, A / V);
        limits.push_back({own[0], own[1], V, A, J, S, robot.smoothing, period});
    }
    double share = 1;
    for (std::size_t i = 0; i < robot.joints; ++i) {
        double rate = 0;
        for (std::size_t j = 0; j < robot.joints; ++j)
            rate += robot.inertia[i * robot.joints + j] * limits[j].jerk;
        share = std::min(share, robot.upper.taud[i] / (1 + LIMIT_TOLERANCE) / rate);
    }
    for (MotionLimits &x : limits) {
        x.jerk *= share;
        if (!std::isfinite(x.snap))
            x.snap = 2 * x.jerk / SMOOTHING;
    }
    return limits;
}

} // namespace eom

#endif
