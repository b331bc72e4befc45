// SPDX-License-Identifier: Apache-2.0
// Robot table: names, parameters and kernels of a robot that is compiled separately from the loop.
#ifndef EOM_ROBOT_TABLE_HPP
#define EOM_ROBOT_TABLE_HPP

#include <array>
#include <cstddef>
#include <cstdint>

namespace eom {

/// Digest of this table, which must be equal in a robot library and its user.
constexpr std::uint32_t ROBOT_ABI = @robot_abi@;

/// Maximum numbers of joints, motors and tools of a robot.
constexpr std::size_t MOST_JOINTS = @most_joints@, MOST_MOTORS = @most_motors@, MOST_TOOLS = @most_tools@;

/// Placeholder for the steady-state deflection of a damped spring, or for the friction state of the present velocity.
constexpr double SETTLED = @settled@;

/// View of numbers that another object owns.
template <class T>
class Span {
  public:
    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class Container>
    constexpr Span(Container &entries) noexcept : data_(entries.data()), size_(entries.size())
    {
    }

    constexpr T *data() const noexcept { return data_; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }
    constexpr std::size_t size() const noexcept { return size_; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/// Names of a robot, and the joint of each motor. `drive_side` is a text: the gear sides of drive positions.
struct RobotFacts {
    const char *name = "", *fingerprint = "", *drive_side = "";
    Span<const char *const> joint_names, motor_names, tool_names;
    Span<const std::size_t> motor_joint;
    Span<const bool> rigid;
    bool commanded_stiffness = false;
};

/// Input and output vectors of kernels, named as their arguments in C: see vectors.py.
#define EOM_VECTORS(X) @vectors@
#define EOM_LISTED(name) name,
enum class Vector : std::uint8_t { EOM_VECTORS(EOM_LISTED) count };

/// Maximum number of inputs, and of outputs, of a kernel.
constexpr std::size_t MOST_VECTORS = 24;

/// Function of the robot's code, with its vectors in the order of arguments; null if the robot does not have it.
struct Kernel {
    void (*call)(const double *const *inputs, double *const *outputs) = nullptr;
    Span<const Vector> inputs, outputs;
    /// Kernel to call next, with the results of this kernel.
    const Kernel *next = nullptr;
};

/// Functions that loop and plant call; variants `_with_payload` include payloads.
#define EOM_FUNCTIONS(X) \
    X(inverse_dynamics) X(inverse_dynamics_with_payload) X(feedforward) X(feedforward_with_payload) X(drive) \
    X(filtered) X(presliding) X(drive_command) X(drive_command_with_payload) X(drive_state) \
    X(inverse_dynamics_on_base) X(inverse_dynamics_on_base_with_payload) X(feedforward_on_base) \
    X(feedforward_on_base_with_payload) X(motors) X(tool_kinematics) X(momentum_balance) \
    X(momentum_balance_with_payload) X(spring_loads) X(motor_loads) X(deflections) X(plant)
struct Kernels {
#define EOM_ONE_KERNEL(name) Kernel name{};
    EOM_FUNCTIONS(EOM_ONE_KERNEL)
};

/// Call a kernel and its successors. `read` and `written` are the addresses of all vectors as inputs and outputs.
inline void run(const Kernel &kernel, const double *const *read, double *const *written) noexcept
{
    const double *inputs[MOST_VECTORS];
    double *outputs[MOST_VECTORS];
    for (const Kernel *next = &kernel; next; next = next->next) {
        for (std::size_t i = 0; i < next->inputs.size(); ++i)
            inputs[i] = read[static_cast<std::size_t>(next->inputs[i])];
        for (std::size_t i = 0; i < next->outputs.size(); ++i)
            outputs[i] = written[static_cast<std::size_t>(next->outputs[i])];
        next->call(inputs, outputs);
    }
}

/// Limits at one end of the ranges, for N joints or M motors.
#define EOM_LIMITED(X) \
    X(N, q) X(N, qd) X(N, qdd) X(N, qddd) X(N, tau) X(N, taud) X(M, motor_velocity) X(M, motor_effort) X(N, motor_sum)
struct TableEnds {
#define EOM_END(size, name) Span<const double> name;
    EOM_LIMITED(EOM_END)
};

#define EOM_NUMBERS(name) Span<const double> name;
#define EOM_OF_TABLE(X) X(nominal_stiffness) X(largest_effort) X(stops) X(turn) X(speed_limit) X(torque_limit) X(current_limit) X(voltage_limit) X(joint_sides) X(load_weights) \
    X(to_springs) X(motor_inertia) X(jump_rate) X(motor_speed)
/// Names, parameters and kernels of a robot.
struct RobotTable {
    RobotFacts facts;
    std::size_t joints = 0, motors = 0, tools = 0;
    EOM_OF_TABLE(EOM_NUMBERS)
    TableEnds lower, upper;
    bool transmission = false;
    /// Command lead, and mean delay of the motor positions in the feedback of drives, s.
    double command_lead = 0, drive_feedback_delay = 0;
    /// Lower, upper, velocity, acceleration and jerk limits of each joint, infinite if absent; largest |M_ij| of the mass matrix.
    Span<const double> motion, inertia;
    /// Defaults for targets, s: maximum rise time of the acceleration, and smoothing.
    double ramp = 0, smoothing = 0;
    Kernels kernels;
};

} // namespace eom

#endif
