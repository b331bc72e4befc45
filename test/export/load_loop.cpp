// SPDX-License-Identifier: Apache-2.0
// Loads the robot of a library as the controller of every robot does, and prints it; an error as one line, with exit code 1.
//
//     load_loop kernel PATH FINGERPRINT
//     load_loop again PATH OTHER     prints OTHER, PATH, OTHER once it is copied to PATH, and PATH as it was
//     load_loop command TIMEOUT ROBOT DESCRIPTION COMMAND...
#include <iostream>

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
