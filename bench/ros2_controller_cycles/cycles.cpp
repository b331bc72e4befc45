// SPDX-License-Identifier: Apache-2.0
// Cycles of the controller by pluginlib on the simulated arm, and of one with an observer of external efforts.
//
//     cycles KERNEL COUNT RATE    prints sorted quantiles of the time of update(), s, of each
//
// Both get the same references and measurements in each cycle, in turns of changing order; the arm gets the efforts of
// the first. Cycles begin at times of a clock, as in a controller manager, so that caches have cooled; the first in
// turn is timed, since it warms up the code of another one.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <controller_interface/chainable_controller_interface.hpp>
#include <eom/plant.hpp>
#include <pluginlib/class_loader.hpp>
#include <rclcpp/rclcpp.hpp>

#include "loop_library.hpp"

namespace {

using Controller = controller_interface::ChainableControllerInterface;
using Clock = std::chrono::steady_clock;

/// A controller with the interfaces that it asks for.
struct Driven {
    std::shared_ptr<Controller> controller;
    std::vector<hardware_interface::CommandInterface::SharedPtr> commands, references;
    std::vector<hardware_interface::StateInterface::SharedPtr> states;
    std::vector<double> times;

    Driven(std::shared_ptr<Controller> made, const std::string &name, unsigned rate, const std::string &kernel)
        : controller(std::move(made))
    {
        controller_interface::ControllerInterfaceParams params;
        params.controller_name = name;
        params.update_rate = params.controller_manager_update_rate = rate;
        params.node_options = controller->define_custom_node_options();
        auto &given = params.node_options.parameter_overrides();
        given = {{"limits", "warn"},
                 {"measurements", std::vector<std::string>{"links", "motors"}},
                 {"state_interfaces.motor_position", "motor_position"},
                 {"state_interfaces.motor_velocity", "motor_velocity"},
                 {"motor_kp", std::vector<double>{100.0}},
                 {"motor_kd", std::vector<double>{2.0}},
                 {"link_kp", std::vector<double>{1.0}}};
        given.emplace_back("kernel", kernel);
        if (name == "observing") {
            given.emplace_back("external_effort.sensors", "springs");
            given.emplace_back("external_effort.thresholds", std::vector<double>{1e3});
        }
        if (controller->init(params) != controller_interface::return_type::OK ||
            controller->configure().label() != "inactive")
            std::exit(2);
        references = controller->export_reference_interfaces();
        controller->export_state_interfaces();
        controller->set_chained_mode(true);
        std::vector<hardware_interface::LoanedCommandInterface> lent_commands;
        for (const std::string &each : controller->command_interface_configuration().names) {
            commands.push_back(made_interface<hardware_interface::CommandInterface>(each));
            lent_commands.emplace_back(commands.back(), nullptr);
        }
        std::vector<hardware_interface::LoanedStateInterface> lent_states;
        for (const std::string &each : controller->state_interface_configuration().names) {
            states.push_back(made_interface<hardware_interface::StateInterface>(each));
            (void)states.back()->set_value(0.0);
            lent_states.emplace_back(states.back(), nullptr);
        }
        controller->assign_interfaces(std::move(lent_commands), std::move(lent_states));
        if (controller->get_node()->activate().label() != "active")
            std::exit(3);
    }

    template <class Interface>
    static std::shared_ptr<Interface> made_interface(const std::string &name)
    {
        const std::size_t slash = name.rfind('/');
        return std::make_shared<Interface>(name.substr(0, slash), name.substr(slash + 1));
    }

    /// References of the joints, and positions and velocities of links and motors.
    void write(const std::vector<double> &motion, eom::Plant &plant, std::size_t joints, std::size_t motors)
    {
        for (std::size_t k = 0; k < motion.size(); ++k)
            (void)references[k]->set_value(motion[k]);
        auto at = states.begin();
        const auto each = [&at](const double *values, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                (void)(*at++)->set_value(values[i]);
        };
        each(plant.q(), joints);
        each(plant.theta(), motors);
        each(plant.qd(), joints);
        each(plant.thetad(), motors);
    }

    void update(const rclcpp::Time &now, const rclcpp::Duration &period, bool timed)
    {
        const auto start = Clock::now();
        const auto result = controller->update(now, period);
        if (timed)
            times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        if (result != controller_interface::return_type::OK)
            std::exit(4);
    }
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4)
        return 1;
    const long cycles = std::atol(argv[2]);
    const unsigned rate = static_cast<unsigned>(std::atol(argv[3]));
    rclcpp::init(0, nullptr);
    pluginlib::ClassLoader<Controller> loader("controller_interface",
                                              "controller_interface::ChainableControllerInterface");
    const auto made = [&loader](const std::string &type) { return std::shared_ptr<Controller>(loader.createUniqueInstance(type)); };
    std::vector<std::unique_ptr<Driven>> all;
    for (const std::string name : {"controller", "observing"})
        all.push_back(std::make_unique<Driven>(made("eom_feedforward_controller/FeedforwardController"), name, rate, argv[1]));
    std::array<std::size_t, 2> turns = {0, 1};

    const auto robot = eom::load_table(argv[1], "");
    const std::size_t n = robot->joints, m = robot->motors;
    eom::Plant plant(*robot);
    plant.rest();
    const double step = 1.0 / rate;
    const rclcpp::Duration period = rclcpp::Duration::from_seconds(step);
    rclcpp::Time now(1'700'000'000, 0, RCL_ROS_TIME);
    const auto start = Clock::now();
    double difference = 0;
    for (long k = 0; k < cycles; ++k) {
        const double t = static_cast<double>(k) * step, w = 2;
        // a (1 - cos w t)^3 begins with four derivatives zero, but for rounding.
        std::vector<double> motion(5 * n);
        for (std::size_t i = 0; i < n; ++i) {
            const double a = 0.02, s1 = std::sin(w * t), c1 = std::cos(w * t), s2 = std::sin(2 * w * t),
                         c2 = std::cos(2 * w * t), s3 = std::sin(3 * w * t), c3 = std::cos(3 * w * t);
            motion[i] = a * (2.5 - 3.75 * c1 + 1.5 * c2 - 0.25 * c3);
            motion[n + i] = a * w * (3.75 * s1 - 3 * s2 + 0.75 * s3);
            motion[2 * n + i] = a * w * w * (3.75 * c1 - 6 * c2 + 2.25 * c3);
            motion[3 * n + i] = a * w * w * w * (-3.75 * s1 + 12 * s2 - 6.75 * s3);
            motion[4 * n + i] = a * w * w * w * w * (-3.75 * c1 + 24 * c2 - 20.25 * c3);
        }
        for (const auto &driven : all)
            driven->write(motion, plant, n, m);
        std::this_thread::sleep_until(start + std::chrono::duration<double>(t));
        now += period;
        std::next_permutation(turns.begin(), turns.end());
        for (const std::size_t turn : turns)
            all[turn]->update(now, period, turn == turns[0]);
        for (std::size_t i = 0; i < m; ++i) {
            const double effort = plant.commanded.effort[i] = all[0]->commands[i]->get_optional().value();
            difference = std::max(difference, std::fabs(effort - all[1]->commands[i]->get_optional().value()));
        }
        if (!plant.advance(step, 1e-4))
            return 5;
    }
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i)
        largest = std::max(largest, std::fabs(plant.q()[i]));
    std::printf("difference %.17g %.17g\n", difference, largest);
    for (const auto &driven : all) {
        std::sort(driven->times.begin(), driven->times.end());
        std::printf("%s", driven->controller->get_node()->get_name());
        for (const double share : {0.5, 0.99, 0.999, 1.0})
            std::printf(" %.9g", driven->times[static_cast<std::size_t>(share * static_cast<double>(driven->times.size() - 1))]);
        std::printf("\n");
    }
    std::fflush(stdout);
    std::_Exit(0); // without the teardown of a middleware that nothing used
}
