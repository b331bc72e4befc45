// SPDX-License-Identifier: Apache-2.0
// Brake of the joints from any state.
#ifndef EOM_JOINT_BRAKE_HPP
#define EOM_JOINT_BRAKE_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "governed_motion.hpp"

namespace eom {

/// Motion of the joints to rest, by the limits of the table.
template <class Robot>
class JointBrake : public GovernedMotion<Robot> {
  public:
    explicit JointBrake(const Commander<Robot> &commander) : Base(commander)
    {
        const RobotTable &table = commander.robot.table();
        std::vector<MotionLimits> limits(table.joints);
        std::memcpy(limits.data(), table.stops.data(), table.joints * sizeof(MotionLimits));
        Base::configure(limits);
    }

    /// Begins from a setpoint, that of the last command, to come to rest in `stop_duration`, or as limits and ranges allow. Jerk and
    /// snap of a stream may be noise. Returns the largest share of a limit that it takes, infinite where motors cannot realise it.
    double begin(const Setpoint<Robot> &from) noexcept
    {
        const double duration = commander_.parameters.stop_duration;
        State<Base::n> state = state_of(from);
        if (commander_.leader() == Leader::setpoints)
            quiet(state, duration);
        Base::begin(state, commander_.latest, true);
        double share = Base::brake(duration, STOP_HASTE);
        const double cycles = motion_.left() / motion_.joint(0).period();
        for (std::size_t i = 0; i < motion_.size(); ++i) {
            const JointTrajectory &joint = motion_.joint(i);
            const double most = commander_.robot.upper.qdd[i];
            share = std::max(share, joint.fastest() / commander_.robot.upper.qd[i]);
            for (std::size_t k = 0; k <= INSTANTS && std::isfinite(most); ++k) {
                const long at = std::lround(cycles * static_cast<double>(k) / INSTANTS);
                share = std::max(share, std::fabs(joint.predicted(at, JointTrajectory::Way::plan)[2]) / most);
            }
        }
        return share;
    }

  private:
    /// At which accelerations are looked at, evenly over a stop, beside its start.
    static constexpr std::size_t INSTANTS = 32;

    using Base = GovernedMotion<Robot>;
    using Base::commander_;
    using Base::motion_;
};

} // namespace eom

#endif
