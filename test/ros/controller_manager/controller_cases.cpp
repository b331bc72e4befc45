// SPDX-License-Identifier: Apache-2.0
// The controller through its interfaces.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <eom_feedforward_controller/feedforward_controller.hpp>
#include <eom_dynamics/msg/feedforward_command.hpp>
#include <rclcpp/rclcpp.hpp>

#include "checks.hpp"
#include "robot.hpp"

namespace {

using eom_feedforward_controller::FeedforwardController;
using controller_interface::return_type;
using eom_dynamics::msg::JointTrajectorySetpoint;

constexpr std::size_t STATES = 20;

std::vector<double> filled(double value) { return std::vector<double>(Robot::joints, value); }

std::vector<std::string> joint_names() { return {table().facts.joint_names.begin(), table().facts.joint_names.end()}; }

std::vector<double> of_joints(const double *entries) { return {entries, entries + Robot::joints}; }

/// Set all knots to rest at zero.
void rest_at_zero(eom_dynamics::msg::SplineTrajectory &motion)
{
    for (auto *rows : {&motion.position, &motion.velocity, &motion.acceleration, &motion.jerk, &motion.snap})
        rows->resize(motion.knots.size() * Robot::joints);
}

class ControllerTest : public testing::Test {
  protected:
    static void SetUpTestSuite() { rclcpp::init(0, nullptr); }
    static void TearDownTestSuite() { rclcpp::shutdown(); }

    static return_type init(FeedforwardController &controller, std::vector<rclcpp::Parameter> parameters)
    {
        const bool compiles = std::any_of(parameters.begin(), parameters.end(),
                                          [](const auto &parameter) { return parameter.get_name() == "robot_file"; });
        if (!compiles)
            parameters.emplace_back("kernel", EOM_KERNEL);
        const auto is_safety = [](const auto &parameter) { return parameter.get_name() == "safety"; };
        if (std::none_of(parameters.begin(), parameters.end(), is_safety))
            parameters.emplace_back("safety", "permissive");
        controller_interface::ControllerInterfaceParams params;
        params.controller_name = "feedforward_controller";
        params.update_rate = params.controller_manager_update_rate = 1000;
        params.node_options = controller.define_custom_node_options();
        params.node_options.parameter_overrides() = parameters;
        return controller.init(params);
    }

    void start(bool chained, std::vector<rclcpp::Parameter> parameters = {})
    {
        parameters.emplace_back("commands",
                                std::vector<std::string>{"motor_effort", "motor_position", "motor_velocity"});
        ASSERT_EQ(init(controller_, parameters), return_type::OK);
        ASSERT_EQ(controller_.configure().label(), "inactive");
        references_ = controller_.export_reference_interfaces();
        states_ = controller_.export_state_interfaces();
        ASSERT_TRUE(controller_.set_chained_mode(chained));
        std::vector<hardware_interface::LoanedCommandInterface> loaned;
        for (const std::string &name : controller_.command_interface_configuration().names) {
            const std::size_t slash = name.rfind('/');
            commands_.push_back(std::make_shared<hardware_interface::CommandInterface>(name.substr(0, slash),
                                                                                       name.substr(slash + 1)));
            loaned.emplace_back(commands_.back(), nullptr);
        }
        std::vector<hardware_interface::LoanedStateInterface> measured;
        for (const std::string &name : controller_.state_interface_configuration().names) {
            const std::size_t slash = name.rfind('/');
            measured_.push_back(std::make_shared<hardware_interface::StateInterface>(
                name.substr(0, slash), name.substr(slash + 1), "double", "0.0"));
            measured.emplace_back(measured_.back());
        }
        controller_.assign_interfaces(std::move(loaned), std::move(measured));
        ASSERT_EQ(controller_.get_node()->activate().label(), "active");
    }

    return_type cycle()
    {
        now_ += rclcpp::Duration(0, 1'000'000);
        return controller_.update(now_, rclcpp::Duration(0, 1'000'000));
    }

    /// The state interface `status`.
    double status() const { return states_.back()->get_optional().value(); }

    double command(std::size_t index) const { return commands_[index]->get_optional().value(); }

    /// A setpoint with all that a message can have, near q = 0.
    static eom::Setpoint<Robot> setpoint_of(std::size_t state)
    {
        eom::Setpoint<Robot> x = robot().rest();
        double phase = static_cast<double>(state);
        for (auto *row : {&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd})
            for (double &value : *row)
                value = 0.1 * std::sin(phase += 0.7);
        for (auto *row : {&x.W, &x.Wd, &x.Wdd})
            for (double &value : *row)
                value = std::sin(phase += 0.7);
        for (std::size_t i = 0; i < Robot::joints && table().facts.commanded_stiffness; ++i) {
            x.k[i] *= 1 + 0.01 * std::sin(phase += 0.7);
            x.kd[i] = 0.01 * x.k[i];
            x.kdd[i] = 0.01 * x.k[i];
        }
        return x;
    }

    /// Its message, in reversed order of the joints.
    static JointTrajectorySetpoint message_of(std::size_t state)
    {
        const eom::Setpoint<Robot> x = setpoint_of(state);
        const auto reversed = [](const auto &row) { return std::vector<double>(row.rbegin(), row.rend()); };
        JointTrajectorySetpoint message;
        message.joint_names = joint_names();
        std::reverse(message.joint_names.begin(), message.joint_names.end());
        message.position = reversed(x.q);
        message.velocity = reversed(x.qd);
        message.acceleration = reversed(x.qdd);
        message.jerk = reversed(x.qddd);
        message.snap = reversed(x.qdddd);
        if (table().facts.commanded_stiffness) {
            message.stiffness = reversed(x.k);
            message.stiffness_rate = reversed(x.kd);
            message.stiffness_acceleration = reversed(x.kdd);
        }
        for (std::size_t tool = 0; tool < Robot::tools; ++tool) {
            message.wrench.push_back(wrench(x.W.data() + 6 * tool));
            message.wrench_rate.push_back(wrench(x.Wd.data() + 6 * tool));
            message.wrench_acceleration.push_back(wrench(x.Wdd.data() + 6 * tool));
        }
        return message;
    }

    static geometry_msgs::msg::Wrench wrench(const double *values)
    {
        geometry_msgs::msg::Wrench wrench;
        wrench.torque.x = values[0];
        wrench.torque.y = values[1];
        wrench.torque.z = values[2];
        wrench.force.x = values[3];
        wrench.force.y = values[4];
        wrench.force.z = values[5];
        return wrench;
    }

    /// Compare with the function for a setpoint, for the loop's states of dampers and presliding friction.
    void expect_bits(const eom::Setpoint<Robot> &x) const
    {
        eom::Setpoint<Robot> present = x;
        std::copy_n(controller_.vector("setpoint", "deflection"), Robot::joints, present.deflection.begin());
        std::copy_n(controller_.vector("setpoint", "friction_state"), Robot::motors, present.friction_state.begin());
        eom::Command<Robot> y;
        robot().feedforward(present, y);
        eom::DriveCommand<Robot> sent{y.motor_position, y.motor_velocity, y.motor_effort, y.tau, y.taud};
        if (robot().converts())
            robot().drive_command(present, y, y.motor_effort, y.tau, {1, 0}, sent);
        const auto exported = [this](std::size_t index) { return states_[index]->get_optional().value(); };
        for (std::size_t i = 0; i < Robot::joints; ++i) {
            EXPECT_EQ(exported(i), y.tau[i]);
            EXPECT_EQ(exported(Robot::joints + i), y.taud[i]);
            EXPECT_EQ(exported(2 * Robot::joints + i), y.taudd[i]);
        }
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            EXPECT_EQ(command(i), sent.drive_effort[i]);
            EXPECT_EQ(command(Robot::motors + i), sent.drive_position[i]);
            EXPECT_EQ(command(2 * Robot::motors + i), sent.drive_velocity[i]);
        }
    }

    FeedforwardController controller_;
    std::vector<hardware_interface::CommandInterface::SharedPtr> commands_, references_;
    std::vector<hardware_interface::StateInterface::ConstSharedPtr> states_;
    std::vector<hardware_interface::StateInterface::SharedPtr> measured_;
    rclcpp::Time now_{1'700'000'000, 0, RCL_ROS_TIME};
};

TEST_F(ControllerTest, BitsOfTheFunctionByMessages)
{
    start(false, {{"limits", "ignore"}});
    for (std::size_t state = 0; state < STATES; ++state) {
        ASSERT_TRUE(controller_.receive(message_of(state)));
        ASSERT_EQ(cycle(), return_type::OK);
        expect_bits(setpoint_of(state));
    }
}

TEST_F(ControllerTest, NoAllocationInACycle)
{
    start(true, {{"limits", "warn"}});
    cycle();
    const std::size_t before = eom::test::allocations;
    for (int i = 0; i < 100000; ++i) {
        for (auto &reference : references_)
            (void)reference->set_value(1e-6 * i);
        cycle();
    }
    EXPECT_EQ(eom::test::allocations, before);
}

TEST_F(ControllerTest, BitsOfTheFunctionByReferences)
{
    start(true, {{"limits", "ignore"}});
    for (std::size_t state = 0; state < STATES; ++state) {
        eom::Setpoint<Robot> x = setpoint_of(state);
        x.W = x.Wd = x.Wdd = {}; // references have none
        std::vector<eom::JointVector<Robot> *> rows = {&x.q, &x.qd, &x.qdd, &x.qddd, &x.qdddd};
        if (table().facts.commanded_stiffness)
            rows.insert(rows.end(), {&x.k, &x.kd, &x.kdd});
        for (std::size_t row = 0; row < rows.size(); ++row)
            for (std::size_t i = 0; i < Robot::joints; ++i)
                ASSERT_TRUE(references_[row * Robot::joints + i]->set_value((*rows[row])[i]));
        ASSERT_EQ(cycle(), return_type::OK);
        ASSERT_EQ(controller_.state().status, eom::Status::fresh);
        expect_bits(x);
    }
}

TEST_F(ControllerTest, StatusAsInMessages)
{
    using eom_dynamics::msg::FeedforwardCommand;
    EXPECT_EQ(static_cast<int>(eom::Status::fresh), FeedforwardCommand::STATUS_FRESH);
    EXPECT_EQ(static_cast<int>(eom::Status::held), FeedforwardCommand::STATUS_HELD);
    EXPECT_EQ(static_cast<int>(eom::Status::stopping), FeedforwardCommand::STATUS_STOPPING);
    start(false, {{"limits", "ignore"}, {"setpoint_timeout", 0.01}, {"on_setpoint_loss", "hold"},
                  {"stop_duration", 0.01}});
    cycle();
    EXPECT_EQ(status(), 4);
    ASSERT_TRUE(controller_.receive(message_of(0)));
    std::vector<double> seen;
    for (int i = 0; i < 400; ++i) { // within limits, stops may last longer
        ASSERT_EQ(cycle(), return_type::OK);
        if (seen.empty() || seen.back() != status())
            seen.push_back(status());
    }
    EXPECT_EQ(seen, (std::vector<double>{FeedforwardCommand::STATUS_FRESH, FeedforwardCommand::STATUS_STOPPING,
                                         FeedforwardCommand::STATUS_HELD}));
}

/// Targets by both topics, and of a controller in front that writes positions, take over from a trajectory, and are reached.
class TargetTest : public ControllerTest, public testing::WithParamInterface<const char *> {};

TEST_P(TargetTest, IsReached)
{
    const std::string way = GetParam();
    start(way == "in front", {{"limits", "ignore"},
                              {"missing_derivatives", "target"},
                              {"setpoint_timeout", 0.01},
                              {"on_setpoint_loss", "hold"},
                              {"target_limits.velocity", std::vector<double>{1.0}},
                              {"target_limits.acceleration", std::vector<double>{5.0}}});
    eom_dynamics::msg::SplineTrajectory rest;
    rest.knots = {0.0, 1.0};
    rest_at_zero(rest);
    ASSERT_TRUE(controller_.receive(rest));
    ASSERT_EQ(cycle(), return_type::OK);
    ASSERT_TRUE(controller_.state().playing);
    const std::vector<double> target = filled(0.02);
    sensor_msgs::msg::JointState one;
    trajectory_msgs::msg::JointTrajectory chunk;
    chunk.points.resize(2);
    chunk.points[0].positions = filled(0.01);
    chunk.points[1].positions = target;
    chunk.points[1].time_from_start.nanosec = 200'000'000;
    for (std::size_t i = 0; i < Robot::joints && way != "target_trajectory"; ++i) {
        one.name = {table().facts.joint_names[i]};
        one.position = {target[i]};
        if (way == "in front")
            ASSERT_TRUE(references_[i]->set_value(target[i]));
        else
            ASSERT_TRUE(controller_.receive(one));
    }
    if (way == "target_trajectory")
        ASSERT_TRUE(controller_.receive(chunk));
    ASSERT_EQ(cycle(), return_type::OK);
    EXPECT_TRUE(controller_.state().aiming);
    if (way == "in front") {
        one.position = {-0.5};
        EXPECT_TRUE(controller_.receive(one));
        for (std::size_t i = 0; i < Robot::joints; ++i)
            ASSERT_TRUE(references_[i]->set_value(target[i]));
        cycle();
        EXPECT_EQ(controller_.state().reason.refusal, eom::Refusal::led);
    }
    for (int i = 0; i < 2000; ++i)
        ASSERT_EQ(cycle(), return_type::OK);
    EXPECT_TRUE(controller_.state().arrived);
    EXPECT_EQ(status(), 0);
    EXPECT_EQ(of_joints(controller_.vector("setpoint", "q")), target);
    for (const int stamp : {2, 1}) {
        one.header.stamp.sec = stamp;
        EXPECT_TRUE(way != "target" || controller_.receive(one));
        cycle();
    }
    EXPECT_EQ(way == "target", controller_.state().reason.refusal == eom::Refusal::older);
}

INSTANTIATE_TEST_SUITE_P(Ways, TargetTest, testing::Values("target", "target_trajectory", "in front"));

TEST_F(ControllerTest, TargetsThatCannotBeUsed)
{
    start(false, {{"target_limits.velocity", std::vector<double>{1.0}},
                  {"target_limits.acceleration", std::vector<double>{5.0}}});
    const auto message_of_target = [] {
        sensor_msgs::msg::JointState message;
        message.name = {table().facts.joint_names[0]};
        message.position = {0.1};
        return message;
    };
    auto message = message_of_target();
    EXPECT_TRUE(controller_.receive(message));
    cycle();
    EXPECT_EQ(controller_.state().reason.refusal, eom::Refusal::from_nothing);
    EXPECT_FALSE(controller_.receive(sensor_msgs::msg::JointState()));
    message.name.clear();
    message.position = filled(0.1);
    EXPECT_TRUE(controller_.receive(message));
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        message = message_of_target();
        message.position = {value};
        EXPECT_FALSE(controller_.receive(message));
        message = message_of_target();
        message.velocity = {value};
        EXPECT_FALSE(controller_.receive(message));
    }
    message = message_of_target();
    message.name = {"elsewhere"};
    EXPECT_FALSE(controller_.receive(message));
    message.name = {table().facts.joint_names[0], table().facts.joint_names[0]};
    message.position = {0.1, 0.1};
    EXPECT_FALSE(controller_.receive(message));
    trajectory_msgs::msg::JointTrajectory chunk;
    EXPECT_FALSE(controller_.receive(chunk));
    chunk.points.resize(2);
    chunk.points[0].positions = chunk.points[1].positions = filled(0.1);
    EXPECT_FALSE(controller_.receive(chunk)); // times do not increase
    chunk.points[1].time_from_start.sec = 1;
    EXPECT_TRUE(controller_.receive(chunk));
    chunk.points[1].positions.pop_back();
    EXPECT_FALSE(controller_.receive(chunk));
}

TEST_F(ControllerTest, ReferencesThatStop)
{
    start(true, {{"limits", "ignore"}, {"setpoint_timeout", 0.01}, {"on_setpoint_loss", "deactivate"}});
    for (auto &reference : references_)
        ASSERT_TRUE(reference->set_value(0.0));
    for (std::size_t i = 0; i < Robot::joints && table().facts.commanded_stiffness; ++i)
        ASSERT_TRUE(references_[5 * Robot::joints + i]->set_value(table().nominal_stiffness[i]));
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(cycle(), return_type::OK);
    EXPECT_EQ(status(), 0);
    for (int i = 0; i < 3; ++i)
        cycle();
    EXPECT_EQ(cycle(), return_type::ERROR);
    EXPECT_EQ(controller_.state().status, eom::Status::lost);
    EXPECT_EQ(status(), 5);
}

TEST_F(ControllerTest, ReferencesThatAreNotFinite)
{
    start(true, {{"limits", "ignore"}, {"deactivate_on_invalid_references", true}});
    const auto write = [this](double value) {
        for (std::size_t k = 0; k < 3 * Robot::joints; ++k)
            EXPECT_TRUE(references_[k]->set_value(value));
        return cycle();
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    // The preceding controller may be inactive.
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(write(nan), return_type::OK);
    for (const double value : {nan, std::numeric_limits<double>::infinity()}) {
        EXPECT_EQ(write(0), return_type::OK);
        for (int i = 0; i < 5; ++i)
            EXPECT_EQ(write(value), return_type::OK);
        EXPECT_EQ(write(value), return_type::ERROR);
    }
}

TEST_F(ControllerTest, SetpointsInDoubt)
{
    start(false, {{"limits", "ignore"}, {"safety", "strict"}});
    JointTrajectorySetpoint message = message_of(0);
    message.header.stamp.sec = 1;
    for (const double expected : {0, 1}) {
        ASSERT_TRUE(controller_.receive(message));
        ASSERT_EQ(cycle(), return_type::OK);
        EXPECT_EQ(status(), expected);
    }
    EXPECT_EQ(controller_.state().finding, eom::Check::stamps);
}

TEST_F(ControllerTest, MessagesThatCannotBeUsed)
{
    start(false);
    JointTrajectorySetpoint message = message_of(1);
    message.joint_names[0] = "elsewhere";
    EXPECT_FALSE(controller_.receive(message));
    message = message_of(1);
    message.joint_names[0] = message.joint_names.back() + "?";
    EXPECT_FALSE(controller_.receive(message));
    message = message_of(1);
    message.snap.pop_back();
    EXPECT_FALSE(controller_.receive(message));
    message = message_of(1);
    message.wrench.emplace_back();
    EXPECT_FALSE(controller_.receive(message));
    message = message_of(1);
    message.base.resize(1);
    EXPECT_TRUE(controller_.receive(message));
    EXPECT_EQ(cycle(), return_type::OK);
    EXPECT_EQ(controller_.state().reason.refusal, eom::Refusal::moving_base);
    eom_dynamics::msg::SplineTrajectory spline;
    spline.knots = {0.0, 1.0};
    EXPECT_FALSE(controller_.receive(spline));
    rest_at_zero(spline);
    EXPECT_TRUE(controller_.receive(spline));
    EXPECT_EQ(cycle(), return_type::OK);
    EXPECT_TRUE(controller_.state().playing);
}

/// Interfaces after deactivation of a controller that has followed a setpoint.
class DeactivatedTest : public ControllerTest {
  protected:
    void deactivate(const std::string &efforts, bool again = false)
    {
        start(false, {{"limits", "ignore"}, {"effort_on_deactivate", efforts}});
        ASSERT_TRUE(controller_.receive(message_of(0)));
        ASSERT_EQ(cycle(), return_type::OK);
        for (std::size_t i = 0; i < commands_.size(); ++i)
            before_.push_back(command(i));
        controller_.get_node()->deactivate();
        if (again)
            controller_.get_node()->shutdown();
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            EXPECT_EQ(command(Robot::motors + i), before_[Robot::motors + i]);
            EXPECT_EQ(command(2 * Robot::motors + i), 0);
        }
    }

    std::vector<double> before_;
};

TEST_F(DeactivatedTest, Zero)
{
    deactivate("zero", true);
    for (std::size_t i = 0; i < Robot::motors; ++i)
        EXPECT_EQ(command(i), 0);
}

TEST_F(DeactivatedTest, Keep)
{
    deactivate("keep");
    for (std::size_t i = 0; i < Robot::motors; ++i)
        EXPECT_EQ(command(i), before_[i]);
}

TEST_F(ControllerTest, ReferencesWithoutJerkAndSnap)
{
    start(true, {{"limits", "ignore"}});
    const auto write = [this](double value, std::size_t rows) {
        for (std::size_t k = 0; k < rows * Robot::joints; ++k)
            ASSERT_TRUE(references_[k]->set_value(value));
        ASSERT_EQ(cycle(), return_type::OK);
    };
    write(0.1, 3);
    EXPECT_EQ(status(), 0);
    const auto followed = [this](const char *name) { return of_joints(controller_.vector("setpoint", name)); };
    EXPECT_EQ(followed("qdd"), filled(0.1));
    EXPECT_EQ(followed("qddd"), filled(0));
    EXPECT_EQ(followed("k"), of_joints(table().nominal_stiffness.data()));
    write(0.2, 2);
    EXPECT_EQ(followed("q"), filled(0.1));
}

TEST_F(ControllerTest, ParametersAreReadOnlyWhileActive)
{
    start(false);
    const auto set = [this](const rclcpp::Parameter &parameter) {
        return controller_.get_node()->set_parameter(parameter).successful;
    };
    EXPECT_FALSE(set({"limits", "warn"}));
    controller_.get_node()->deactivate();
    EXPECT_FALSE(set({"limits", "nonsense"}));
    EXPECT_FALSE(set({"stop_duration", 61.0}));
    EXPECT_FALSE(set({"commands", std::vector<std::string>{"joint_effort"}}));
    const std::vector<double> many(Robot::joints + 1, 10.0);
    EXPECT_FALSE(set({"stiffness", many}));
    EXPECT_FALSE(set({"stiffness", "10.0"}));
    const auto both = controller_.get_node()->set_parameters_atomically({{"stiffness", many}, {"link_kp", many}});
    EXPECT_NE(both.reason.find("joint; link_kp: gains must have"), std::string::npos) << both.reason;
    EXPECT_TRUE(set({"stiffness", filled(10.0)}));
    EXPECT_TRUE(set({"on_setpoint_loss", "hold"}));
    EXPECT_NE(controller_.get_node()->activate().label(), "active"); // it needs a setpoint_timeout
    EXPECT_TRUE(set({"setpoint_timeout", 0.1}));
    EXPECT_EQ(controller_.get_node()->activate().label(), "active");
}

TEST_F(ControllerTest, ParametersThatCannotBe)
{
    const std::vector<rclcpp::Parameter> wrong = {
        {"joints", std::vector<std::string>{"one", "two", "three"}},
        {"commands", std::vector<std::string>{"motor_torque"}},
        {"measurements", std::vector<std::string>{"tools"}},
        {"limits", "some"},
        {"missing_derivatives", "one"},
        {"effort_on_deactivate", "none"},
        {"on_setpoint_loss", "hold"},
        {"stop_duration", 0.0},
        {"stop_duration", std::numeric_limits<double>::infinity()},
        {"start_tolerance", 0.0},
        {"link_kd", std::vector<double>{-1.0}},
        {"on_contact", "stop"},
        {"external_effort.sensors", "torque"}, // without links
        {"motor_kp", std::vector<double>{}},
    };
    for (const rclcpp::Parameter &parameter : wrong) {
        if (parameter.get_name() == "joints" && Robot::joints == 3)
            continue;
        FeedforwardController controller;
        EXPECT_TRUE(init(controller, {parameter}) != return_type::OK || controller.configure().label() != "inactive")
            << parameter.get_name();
    }
}

TEST_F(ControllerTest, LevelsOfSafety)
{
    const rclcpp::Parameter levels[] = {{"safety", "strict"}, {"safety", "permissive"}, {"safety", "off"}, {"safety", false}};
    const char *const limits[] = {"refuse", "warn", "ignore", "ignore"}, *const losses[] = {"hold", "none", "none", "none"};
    for (std::size_t k = 0; k < std::size(levels); ++k) {
        FeedforwardController controller;
        ASSERT_EQ(init(controller, {levels[k], {"start_tolerance", 0.3}}), return_type::OK);
        const auto node = controller.get_node();
        EXPECT_EQ(node->get_parameter("limits").as_string(), limits[k]);
        EXPECT_EQ(node->get_parameter("on_setpoint_loss").as_string(), losses[k]);
        EXPECT_EQ(node->get_parameter("start_tolerance").as_double(), 0.3);
        ASSERT_EQ(controller.configure().label(), "inactive");
    }
    for (const char *level : {"lax", ""}) {
        FeedforwardController controller;
        EXPECT_NE(init(controller, {{"safety", level}}), return_type::OK);
    }
}

TEST_F(ControllerTest, StateAndDiagnostics)
{
    start(true, {{"limits", "ignore"}, {"warning_period", 0.01}});
    const auto listener = std::make_shared<rclcpp::Node>("listener");
    control_msgs::msg::JointTrajectoryControllerState state;
    diagnostic_msgs::msg::DiagnosticArray diagnostics;
    const auto states = listener->create_subscription<decltype(state)>(
        "feedforward_controller/controller_state", 1, [&state](const decltype(state) &message) { state = message; });
    const auto reports = listener->create_subscription<decltype(diagnostics)>(
        "/diagnostics", 1, [&diagnostics](const decltype(diagnostics) &message) { diagnostics = message; });
    rclcpp::executors::SingleThreadedExecutor executor;
    executor.add_node(controller_.get_node()->get_node_base_interface());
    executor.add_node(listener);
    for (int i = 0; i < 1000 && (state.joint_names.empty() || diagnostics.status.empty()); ++i) {
        for (std::size_t k = 0; k < 5 * Robot::joints; ++k)
            ASSERT_TRUE(references_[k]->set_value(k < Robot::joints ? 0.1 : 0.0));
        for (int j = 0; j < 100; ++j)
            ASSERT_EQ(cycle(), return_type::OK);
        executor.spin_some(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(state.reference.positions, filled(0.1));
    EXPECT_EQ(state.output.effort, of_joints(controller_.vector("sent", "sent_effort")));
    ASSERT_EQ(diagnostics.status.size(), 1U);
    EXPECT_EQ(diagnostics.status[0].name, "feedforward_controller: feedforward");
    EXPECT_EQ(diagnostics.status[0].level, diagnostic_msgs::msg::DiagnosticStatus::OK);
    EXPECT_EQ(diagnostics.status[0].values[0].key, "drive side");
    EXPECT_EQ(diagnostics.status[0].values[0].value, "joint");
    EXPECT_EQ(controller_.state().off_path, eom::OffPath::references);
}

/// Torque beyond gravity at rest, and the speed scaling of the hardware.
TEST_F(ControllerTest, FeelsAPushAndTheSpeedOfTheHardware)
{
    constexpr std::size_t n = Robot::joints, last = n - 1;
    start(false, {{"limits", "ignore"},
                  {"measurements", std::vector<std::string>{"links"}},
                  {"on_contact", "stop"},
                  {"external_effort.sensors", "torque"},
                  {"external_effort.thresholds", std::vector<double>{2.0}},
                  {"speed_scaling.state_interface", "speed_scaling/factor"}});
    ASSERT_EQ(measured_.size(), 3 * n + 1);
    const auto sense = [&](double push) {
        for (std::size_t i = 0; i < n; ++i)
            ASSERT_TRUE(measured_[2 * n + i]->set_value(controller_.vector("command", "tau")[i] - (i == last ? push : 0)));
    };
    const auto run = [this](int cycles) {
        for (int i = 0; i < cycles; ++i)
            ASSERT_EQ(cycle(), return_type::OK);
    };
    const auto felt = [&] { return states_[3 * n + Robot::motors + last]->get_optional().value(); };
    eom_dynamics::msg::SplineTrajectory rest;
    rest.knots = {0.0, 0.4};
    rest_at_zero(rest);
    sense(0);
    ASSERT_TRUE(controller_.receive(rest));
    ASSERT_TRUE(measured_.back()->set_value(0.5));
    run(40);
    EXPECT_TRUE(std::isnan(felt())); // until the observer has settled
    run(560);
    EXPECT_NEAR(felt(), 0, 1e-9);
    EXPECT_TRUE(controller_.state().playing && controller_.state().speed_scaling == 0.5);
    EXPECT_EQ(controller_.state().off_path, eom::OffPath::nothing);
    ASSERT_TRUE(measured_.back()->set_value(1.0));
    run(300);
    EXPECT_FALSE(controller_.state().playing);

    ASSERT_TRUE(controller_.receive(rest));
    run(20);
    sense(3);
    run(50);
    EXPECT_NEAR(felt(), 3, 3 * std::exp(-4.9)); // 50 cycles at 100 rad/s, the first with half a step
    EXPECT_TRUE(controller_.state().contact && !controller_.state().playing);
    EXPECT_EQ(controller_.state().contact_joint, last);
    ASSERT_TRUE(controller_.receive(rest));
    run(5);
    EXPECT_EQ(controller_.state().reason.refusal, eom::Refusal::in_contact);
    ASSERT_TRUE(measured_[2 * n]->set_value(std::nan("")));
    run(1);
    EXPECT_TRUE(std::isnan(felt()));
    sense(0);
    run(500); // the stop takes 300 of them
    EXPECT_FALSE(controller_.state().contact || controller_.state().touched);
}

/// Without motor measurements, efforts are feedforward only, with a report.
TEST_F(ControllerTest, AModeEndsWithoutMeasurements)
{
    start(false, {{"limits", "ignore"},
                  {"measurements", std::vector<std::string>{"motors"}},
                  {"mode", "gravity_compensation"}});
    for (int i = 0; i < 10; ++i)
        ASSERT_EQ(cycle(), return_type::OK);
    EXPECT_EQ(controller_.state().mode, eom::Mode::gravity_compensation);
    for (const auto &state : measured_)
        ASSERT_TRUE(state->set_value(std::nan("")));
    for (int i = 0; i < 200; ++i)
        ASSERT_EQ(cycle(), return_type::OK);
    EXPECT_TRUE(controller_.state().mode == eom::Mode::position && controller_.state().blinded);
}

#ifdef EOM_LARGER_KERNEL
TEST_F(ControllerTest, ReportsOfAnotherRobot)
{
    const std::string robot = testing::TempDir() + "robot";
    std::ofstream(robot) << EOM_KERNEL;
    start(true, {{"limits", "ignore"},
                 {"warning_period", 0.01},
                 {"robot_file", robot},
                 {"command", std::vector<std::string>{"cat"}},
                 {"motors", std::vector<std::string>(table().facts.motor_names.begin(), table().facts.motor_names.end())}});
    // Without references; their report is queued.
    for (int i = 0; i < 50; ++i)
        ASSERT_EQ(cycle(), return_type::OK);
    controller_.get_node()->deactivate();
    controller_.get_node()->cleanup();
    std::ofstream(robot) << EOM_LARGER_KERNEL;
    ASSERT_EQ(controller_.configure().label(), "unconfigured");
    rclcpp::executors::SingleThreadedExecutor executor;
    executor.add_node(controller_.get_node()->get_node_base_interface());
    for (int i = 0; i < 10; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        executor.spin_some();
    }
}
#endif

TEST_F(ControllerTest, NamesOfInterfaces)
{
    using Names = std::vector<std::string>;
    // An overlay that takes positions and efforts of the joints, and two encoders at each joint.
    const Names joints = joint_names();
    if (Robot::motors == Robot::joints) {
        FeedforwardController overlay;
        ASSERT_EQ(init(overlay, {{"motors", joints},
                                 {"commands", Names{"motor_position", "joint_effort"}},
                                 {"command_interfaces.joint_effort", "torque"},
                                 {"measurements", Names{"links", "motors"}},
                                 {"state_interfaces.motor_position", "motor_position"},
                                 {"state_interfaces.motor_velocity", "motor_velocity"}}),
                  return_type::OK);
        ASSERT_EQ(overlay.configure().label(), "inactive");
        const Names commands = overlay.command_interface_configuration().names;
        const Names states = overlay.state_interface_configuration().names;
        EXPECT_EQ(commands.front(), joints.front() + "/position");
        EXPECT_EQ(commands.back(), joints.back() + "/torque");
        EXPECT_EQ(states.size(), 4 * Robot::joints);
        EXPECT_EQ(states[Robot::joints], joints.front() + "/motor_position");

        FeedforwardController once;
        ASSERT_EQ(init(once, {{"motors", joints}, {"measurements", Names{"links", "motors"}}}), return_type::OK);
        const auto &rigid_ones = table().facts.rigid;
        const bool rigid = std::find(rigid_ones.begin(), rigid_ones.end(), false) == rigid_ones.end();
        ASSERT_EQ(once.configure().label(), rigid ? "inactive" : "unconfigured");
        if (rigid) {
            EXPECT_EQ(once.state_interface_configuration().names.size(), 2 * Robot::joints);
        }
    }
    FeedforwardController twice;
    ASSERT_EQ(init(twice, {{"commands", Names{"motor_effort", "motor_position"}},
                           {"command_interfaces.motor_position", "effort"}}),
              return_type::OK);
    EXPECT_EQ(twice.configure().label(), "unconfigured");
    if (Robot::joints > 1) {
        FeedforwardController reversed;
        ASSERT_EQ(init(reversed, {{"joints", Names(joints.rbegin(), joints.rend())}}), return_type::OK);
        EXPECT_EQ(reversed.configure().label(), "unconfigured");
    }
}

} // namespace
