// SPDX-License-Identifier: Apache-2.0
// Plays serialised setpoints to the controller in a controller manager, and writes what arrives at the hardware.
//
//     play_setpoints DESCRIPTION PARAMETERS SETPOINTS COMMANDS
//
// SETPOINTS has the size of each message, and its bytes. A row of COMMANDS has the status and τ, τ̇, τ̈, the state
// interfaces of the controller, then the commands that the mock hardware repeats as its state, and then τ, τ̇, τ̈ and motor
// motion and effort of the C function for the setpoint that the controller follows.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <sstream>

#include <controller_manager/controller_manager.hpp>
#include <eom_feedforward_controller/feedforward_controller.hpp>
#include <hardware_interface/resource_manager.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp/serialization.hpp>

#include "robot.hpp"

using eom_feedforward_controller::FeedforwardController;
using eom_dynamics::msg::JointTrajectorySetpoint;

namespace {

constexpr char NAME[] = "feedforward_controller";

std::string text_of(const char *file)
{
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

std::vector<JointTrajectorySetpoint> setpoints_of(const char *file)
{
    std::ifstream in(file, std::ios::binary);
    const rclcpp::Serialization<JointTrajectorySetpoint> serialization;
    std::vector<JointTrajectorySetpoint> messages;
    for (std::int64_t size; in.read(reinterpret_cast<char *>(&size), sizeof size);) {
        rclcpp::SerializedMessage bytes(static_cast<std::size_t>(size));
        auto &buffer = bytes.get_rcl_serialized_message();
        in.read(reinterpret_cast<char *>(buffer.buffer), size);
        buffer.buffer_length = static_cast<std::size_t>(size);
        serialization.deserialize_message(&bytes, &messages.emplace_back());
    }
    return messages;
}

} // namespace

int main(int argc, char **argv)
{
    rclcpp::init(argc, argv);
    const auto executor = std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
    hardware_interface::ResourceManagerParams hardware;
    hardware.robot_description = text_of(argv[1]);
    hardware.clock = std::make_shared<rclcpp::Clock>(RCL_ROS_TIME);
    hardware.executor = executor;
    hardware.activate_all = true;
    hardware.update_rate = 1000;
    auto owned = std::make_unique<hardware_interface::ResourceManager>(hardware, true);
    auto &resources = *owned;

    auto options = controller_manager::get_cm_node_options();
    options.arguments({"--ros-args", "--params-file", argv[2]});
    const auto manager = std::make_shared<controller_manager::ControllerManager>(std::move(owned), executor,
                                                                                 "controller_manager", "", options);
    manager->set_parameter({std::string(NAME) + ".params_file", std::vector<std::string>{argv[2]}});
    const auto controller = std::dynamic_pointer_cast<FeedforwardController>(manager->load_controller(NAME));
    if (!controller || manager->configure_controller(NAME) != controller_interface::return_type::OK)
        return 2;

    const rclcpp::Duration period(0, 1'000'000);
    const auto cycle = [&] {
        const rclcpp::Time now = manager->now();
        const bool good = manager->update(now, period) == controller_interface::return_type::OK;
        manager->write(now, period);
        manager->read(now, period);
        return good;
    };
    // Switching waits for cycles.
    auto switched = std::async(std::launch::async, [&] {
        return manager->switch_controller({NAME}, {}, controller_manager_msgs::srv::SwitchController::Request::STRICT);
    });
    while (switched.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
        cycle();
    if (switched.get() != controller_interface::return_type::OK)
        return 3;

    const auto joints = controller->get_node()->get_parameter("joints").as_string_array();
    const auto motors = controller->get_node()->get_parameter("motors").as_string_array();
    std::vector<hardware_interface::LoanedStateInterface> states;
    const auto claim = [&](const std::vector<std::string> &parts, const std::string &interface, const char *prefix = "") {
        for (const std::string &part : parts)
            states.push_back(resources.claim_state_interface(prefix + part + "/" + interface));
    };
    claim({NAME}, "status");
    for (const char *interface : {"effort", "effort_rate", "effort_acceleration"})
        claim(joints, interface, "feedforward_controller/");
    claim(joints, "effort");
    for (const char *interface : {"position", "velocity", "motor_effort"})
        claim(motors, interface);

    std::FILE *out = std::fopen(argv[4], "wb");
    eom::Setpoint<Robot> x;
    eom::Command<Robot> y;
    for (const JointTrajectorySetpoint &message : setpoints_of(argv[3])) {
        if (!controller->receive(message) || !cycle())
            return 4;
        std::vector<double> row;
        for (const auto &state : states)
            row.push_back(state.get_optional().value());
        const auto copy = [&](const char *name, auto &to) {
            std::copy_n(controller->vector("setpoint", name), to.size(), to.begin());
        };
        copy("q", x.q), copy("qd", x.qd), copy("qdd", x.qdd), copy("qddd", x.qddd), copy("qdddd", x.qdddd);
        copy("W", x.W), copy("Wd", x.Wd), copy("Wdd", x.Wdd);
        copy("k", x.k), copy("kd", x.kd), copy("kdd", x.kdd), copy("deflection", x.deflection);
        robot().feedforward(x, y);
        for (const auto *values : {&y.tau, &y.taud, &y.taudd})
            row.insert(row.end(), values->begin(), values->end());
        for (const auto *values : {&y.motor_position, &y.motor_velocity, &y.motor_effort})
            row.insert(row.end(), values->begin(), values->end());
        std::fwrite(row.data(), sizeof(double), row.size(), out);
    }
    std::fclose(out);
    executor->cancel();
    rclcpp::shutdown();
    return 0;
}
