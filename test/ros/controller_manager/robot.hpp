// SPDX-License-Identifier: Apache-2.0
// The robot of a library, with places for EOM_JOINTS, EOM_MOTORS and EOM_TOOLS alone.
#pragma once

#include <eom/loaded_robot.hpp>

#include "loop_library.hpp"

using Robot = eom::LoadedRobot<EOM_JOINTS, EOM_MOTORS, EOM_TOOLS>;

inline const eom::RobotTable &table()
{
    static const auto loaded = eom::load_table(EOM_KERNEL, "");
    return *loaded;
}

inline const Robot &robot()
{
    static const Robot::Numbers numbers(table());
    static const Robot loaded(table(), numbers);
    return loaded;
}
