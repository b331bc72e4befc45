// SPDX-License-Identifier: Apache-2.0
// Loads the robot of a library as the controller of every robot does, and prints it; an error as one line, with exit code 1.
//
//     load_loop kernel PATH FINGERPRINT
//     load_loop limits PATH LIMIT...  prints limits of the motion to targets, with velocity to snap of all joints
//     load_loop again PATH OTHER     prints OTHER, PATH, OTHER once it is copied to PATH, and PATH as it was
//     load_loop command TIMEOUT ROBOT DESCRIPTION COMMAND...
#include <iostream>

#include <eom/motion_limits.hpp>

#include "loop_library.hpp"

namespace {

void print(const eom::RobotTable &robot)
{
    std::cout << robot.facts.name << ' ' << robot.facts.fingerprint << ' ' << robot.joints << ' '
              << robot.facts.motor_names[0] << ' ' << robot.facts.tool_names[0] << std::endl;
}

void run(const std::string &way, char **given)
{
    if (way == "kernel") {
        print(*eom::load_table(given[0], given[1]));
    } else if (way == "limits") {
        eom::GivenLimits limits;
        for (std::size_t k = 0; k < limits.size() && given[1 + k]; ++k)
            limits[k].push_back(std::stod(given[1 + k]));
        std::cout.precision(17);
        for (const auto &x : eom::motion_limits(*eom::load_table(given[0], ""), limits, 1e-3))
            std::cout << x.lower << ' ' << x.upper << ' ' << x.velocity << ' ' << x.acceleration << ' ' << x.jerk << ' '
                      << x.snap << ' ' << x.smoothing << ' ' << x.period << std::endl;
    } else if (way == "again") {
        print(*eom::load_table(given[1], ""));
        const auto first = eom::load_table(given[0], "");
        print(*first);
        std::filesystem::copy_file(given[1], given[0], std::filesystem::copy_options::overwrite_existing);
        print(*eom::load_table(given[0], ""));
        print(*first);
    } else {
        std::vector<std::string> command;
        for (char **argument = given + 3; *argument; ++argument)
            command.push_back(*argument);
        print(*eom::compiled_table(command, given[1], given[2], std::stod(given[0])));
    }
}

} // namespace

int main(int, char **argv)
{
    try {
        run(argv[1], argv + 2);
    } catch (const std::runtime_error &error) {
        std::cout << error.what() << std::endl;
        return 1;
    }
}
