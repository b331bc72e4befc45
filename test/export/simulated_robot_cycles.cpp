// SPDX-License-Identifier: Apache-2.0
// The simulated robot of the package for ros2_control, without ROS 2: its interfaces after cycles under commands.
//
//     simulated_robot_cycles COUNT JOINT… -- NAME VALUE… -- COMMAND VALUE…
//
// Joints of the description, parameters of the hardware, and interfaces that are commanded. Prints each state.
#include "simulated_robot.cpp"

int main(int count, char **arguments)
{
    hardware_interface::HardwareComponentInterfaceParams params;
    std::map<std::string, std::vector<std::string>> parts;
    const char *const names[] = {"joints", "parameters", "commands"};
    for (int i = 2, part = 0; i < count; ++i) {
        if (arguments[i] == std::string("--"))
            ++part;
        else
            parts[names[part]].push_back(arguments[i]);
    }
    const auto robot = make_plugin();
    for (const std::string &joint : parts["joints"]) {
        params.hardware_info.joints.push_back({joint});
        for (const char *interface : {"/position", "/velocity", "/effort"})
            robot->states[joint + interface] = robot->commands[joint + interface] = std::nan("");
    }
    for (std::size_t i = 0; i < parts["parameters"].size(); i += 2)
        params.hardware_info.hardware_parameters[parts["parameters"][i]] = parts["parameters"][i + 1];
    using Answer = hardware_interface::CallbackReturn;
    if (robot->on_init(params) != Answer::SUCCESS || robot->on_activate({}) != Answer::SUCCESS)
        return 1;
    std::vector<std::string> started;
    for (std::size_t i = 0; i < parts["commands"].size(); i += 2) {
        started.push_back(parts["commands"][i]);
        robot->commands.at(started.back()) = std::stod(parts["commands"][i + 1]);
    }
    robot->perform_command_mode_switch(started, {});
    for (int i = std::stoi(arguments[1]); i > 0; --i)
        if (robot->write({}, {1e-3}) != hardware_interface::return_type::OK ||
            robot->read({}, {1e-3}) != hardware_interface::return_type::OK)
            return 2;
    for (const auto &[name, value] : robot->states)
        std::printf("%s %.17g\n", name.c_str(), value);
}
