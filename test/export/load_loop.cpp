// SPDX-License-Identifier: Apache-2.0
// Loads the loop of a robot as the controller of every robot does.
//
//     load_loop kernel PATH FINGERPRINT     prints the robot, then efforts and motor motion at the setpoint of stdin
//     load_loop again PATH OTHER     prints OTHER, PATH, OTHER once it is copied to PATH, and PATH as it was
//     load_loop command TIMEOUT ROBOT DESCRIPTION COMMAND...
//     load_loop sizes     exits with 0 if robots with too many joints, motors or tools have no loop
//
// Prints an error as one line, with exit code 1.
#include <cstdio>
#include <iostream>

#include "loop_library.hpp"
#include "test/checks.hpp"

namespace {

void print(const eom::AnyLoop &loop)
{
    std::cout << loop.robot.name << ' ' << loop.robot.fingerprint << ' ' << loop.robot.joint_names.size() << ' '
              << loop.robot.motor_names[0] << ' ' << loop.robot.tool_names[0] << '\n';
}

int cycles(eom::AnyLoop &loop)
{
    const std::vector<double> zero(1, 0.0);
    eom::LoopSettings settings;
    settings.limits = eom::LimitPolicy::ignore;
    if (loop.configure(settings, {zero, zero, zero, zero, zero}, eom::MissingDerivatives::zero, 0, false, false))
        return 2;
    loop.restart(0);
    for (const auto row : {loop.output.setpoint.k, loop.reference.k})
        for (const double number : row)
            std::cout << number << ' ';
    std::cout << std::endl;
    // Stiffness, where it is commanded, is missing.
    const std::size_t n = loop.robot.joint_names.size();
    std::vector<double> setpoint(8 * n, std::nan(""));
    for (std::size_t i = 0; i < 5 * n; ++i)
        std::cin >> setpoint[i];
    const auto cycle = [&](long count) {
        std::vector<double> numbers = setpoint;
        const std::size_t before = eom::test::allocations;
        for (long i = 0; i < count; ++i) {
            std::copy(setpoint.begin(), setpoint.end(), numbers.begin());
            if (!loop.read_references(numbers.data(), 1000 * i))
                return false;
            loop.update(1000 * i, 1e-6);
        }
        return eom::test::allocations == before && loop.state.status == eom::Status::fresh;
    };
    if (!cycle(1))
        return 3;
    std::cout.precision(17);
    for (const auto row : {loop.output.tau, loop.output.taud, loop.output.taudd, loop.output.sent_motor_position,
                           loop.output.sent_motor_velocity, loop.output.sent_motor_effort})
        for (const double number : row)
            std::cout << number << ' ';
    std::cout << std::endl;
    if (!cycle(10000))
        return 4;
    const auto x = loop.draft();
    *x.on_base = true;
    x.f[2] = 9.81;
    loop.send(0);
    loop.refer_to_mailbox();
    loop.update(0, 1e-6);
    return loop.state.refusal == eom::Refusal::moving_base ? 0 : 5;
}

} // namespace

int main(int, char **argv)
{
    try {
        if (std::string(argv[1]) == "kernel") {
            const auto loop = eom::load_loop(argv[2], argv[3]);
            print(*loop);
            return cycles(*loop);
        }
        if (std::string(argv[1]) == "again") {
            print(*eom::load_loop(argv[3], ""));
            const auto first = eom::load_loop(argv[2], "");
            print(*first);
            std::filesystem::copy_file(argv[3], argv[2], std::filesystem::copy_options::overwrite_existing);
            print(*eom::load_loop(argv[2], ""));
            print(*first);
            return cycles(*first);
        }
        if (std::string(argv[1]) == "sizes") {
            eom::RobotTable most;
            most.joints = eom::MOST_JOINTS;
            most.motors = eom::MOST_MOTORS;
            most.tools = eom::MOST_TOOLS;
            eom::RobotTable joints = most, motors = most, tools = most;
            ++joints.joints;
            ++motors.motors;
            ++tools.tools;
            return !eom::make_loop(most) || eom::make_loop(joints) || eom::make_loop(motors) || eom::make_loop(tools);
        }
        std::vector<std::string> command;
        for (char **argument = argv + 5; *argument; ++argument)
            command.push_back(*argument);
        print(*eom::compiled_loop(command, argv[3], argv[4], std::stod(argv[2])));
        return 0;
    } catch (const std::runtime_error &error) {
        std::cout << error.what() << std::endl;
        return 1;
    }
}
