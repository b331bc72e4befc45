// SPDX-License-Identifier: Apache-2.0
// Stand-in for hardware_interface: interfaces of a component are numbers by their names.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace rclcpp {

struct Time {};
struct Logger {};
struct Duration {
    double seconds() const { return value; }
    double value;
};

} // namespace rclcpp

namespace rclcpp_lifecycle {

struct State {};

} // namespace rclcpp_lifecycle

namespace hardware_interface {

enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };

struct ComponentInfo {
    std::string name;
};

struct HardwareInfo {
    std::unordered_map<std::string, std::string> hardware_parameters;
    std::vector<ComponentInfo> joints;
    std::string original_xml;
};

struct HardwareComponentInterfaceParams {
    HardwareInfo hardware_info;
};

class SystemInterface {
  public:
    virtual ~SystemInterface() = default;
    virtual CallbackReturn on_init(const HardwareComponentInterfaceParams &params)
    {
        info_ = params.hardware_info;
        return CallbackReturn::SUCCESS;
    }
    virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) = 0;
    virtual return_type perform_command_mode_switch(const std::vector<std::string> &, const std::vector<std::string> &) = 0;
    virtual return_type read(const rclcpp::Time &, const rclcpp::Duration &) = 0;
    virtual return_type write(const rclcpp::Time &, const rclcpp::Duration &) = 0;

    rclcpp::Logger get_logger() const { return {}; }
    void set_state(const std::string &name, double value) { states.at(name) = value; }
    void set_command(const std::string &name, double value) { commands.at(name) = value; }
    template <class T>
    T get_command(const std::string &name) const
    {
        return commands.at(name);
    }

    std::map<std::string, double> states, commands;

  protected:
    HardwareInfo info_;
};

} // namespace hardware_interface
