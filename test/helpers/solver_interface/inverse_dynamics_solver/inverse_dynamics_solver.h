// SPDX-License-Identifier: Apache-2.0
// Interface of unisa-acg/inverse-dynamics-solver for tests without ROS and Eigen.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace Eigen {
struct VectorXd {
    explicit VectorXd(long n) : entries(n) {}
    static VectorXd Zero(long n) { return VectorXd(n); }
    long size() const { return static_cast<long>(entries.size()); }
    const double *data() const { return entries.data(); }
    double *data() { return entries.data(); }
    double operator()(int k) const { return entries.at(k); }
    double &operator()(int k) { return entries.at(k); }
    std::vector<double> entries;
};
struct MatrixXd {
    MatrixXd(long rows, long columns) : stride(columns), entries(rows * columns) {}
    double &operator()(int i, int k) { return entries.at(i * stride + k); }
    long stride;
    std::vector<double> entries;
};
} // namespace Eigen

namespace rclcpp {
enum class ParameterType { PARAMETER_NOT_SET, PARAMETER_STRING, PARAMETER_DOUBLE_ARRAY };
struct Parameter {
    ParameterType get_type() const { return type; }
    std::string as_string() const { return string; }
    std::vector<double> as_double_array() const { return numbers; }
    ParameterType type = ParameterType::PARAMETER_NOT_SET;
    std::string string;
    std::vector<double> numbers;
};
namespace node_interfaces {
struct NodeParametersInterface {
    using ConstSharedPtr = std::shared_ptr<const NodeParametersInterface>;
    bool get_parameter(const std::string &name, Parameter &parameter) const
    {
        const auto found = values.find(name);
        if (found != values.end())
            parameter = found->second;
        return found != values.end();
    }
    std::map<std::string, Parameter> values;
};
} // namespace node_interfaces
} // namespace rclcpp

namespace inverse_dynamics_solver {
struct InverseDynamicsSolver {
    virtual ~InverseDynamicsSolver() {}
    virtual void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr node = nullptr,
                            const std::string &name = "", const std::string &robot_description = "") = 0;
    virtual Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd &) const = 0;
    virtual Eigen::VectorXd getCoriolisVector(const Eigen::VectorXd &, const Eigen::VectorXd &) const = 0;
    virtual Eigen::VectorXd getGravityVector(const Eigen::VectorXd &) const = 0;
    virtual Eigen::VectorXd getFrictionVector(const Eigen::VectorXd &) const = 0;
    virtual Eigen::VectorXd getTorques(const Eigen::VectorXd &, const Eigen::VectorXd &, const Eigen::VectorXd &) const = 0;
};
} // namespace inverse_dynamics_solver
