// SPDX-License-Identifier: Apache-2.0
// Feedback around the feedforward: PD of motors and links, or feedback linearization.
#ifndef EOM_FEEDBACK_HPP
#define EOM_FEEDBACK_HPP

#include "loop_parameters.hpp"

namespace eom {

/// Feedback with the gains of the parameters of a loop.
template <class Robot>
class Feedback {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;

    explicit Feedback(const Robot &robot = Robot()) noexcept : robot_(robot), linearization_(robot) {}

    void configure(const LoopParameters<Robot> &parameters) noexcept
    {
        parameters_ = parameters;
        reads_motors_ = detail::positive(parameters.motor_kp) || detail::positive(parameters.motor_kd);
        linearization_.place_poles(static_cast<Scalar>(parameters.natural_frequency));
        linearization_.stiffness_gains = parameters.stiffness_gains;
    }

    void restart(const Setpoint<Robot> &setpoint) noexcept { linearization_.restart(setpoint); }

    /// Whether there is feedback of the motor motion.
    bool reads_motors() const noexcept { return reads_motors_; }

    /// Takes the motor motion of a command as the reference of the motors.
    void refer(const Command<Robot> &command) noexcept
    {
        motor_position_ = command.motor_position;
        motor_velocity_ = command.motor_velocity;
    }

    /// Efforts of motors and joints with feedback, times a share, for the setpoint and command of an output.
    void add(LoopOutput<Robot> &output, Scalar share, double period, const Measurement<Robot> &measured) noexcept
    {
        output.motor_effort = output.command.motor_effort;
        output.joint_effort = output.command.tau;
        if constexpr (Linearization<Robot>::available) {
            if (parameters_.linearize && measured.links && measured.motors) {
                candidate_ = linearization_.setpoint(output.setpoint, measured, static_cast<Scalar>(period));
                robot_.feedforward(candidate_, result_);
                // Where a measurement is not finite, the feedforward remains.
                if (finite(result_)) {
                    for (std::size_t i = 0; i < m; ++i)
                        output.motor_effort[i] = share * result_.motor_effort[i];
                    for (std::size_t i = 0; i < n; ++i)
                        output.joint_effort[i] = share * result_.tau[i];
                }
            }
        }
        if (measured.motors)
            for (std::size_t i = 0; i < m; ++i) {
                const Scalar feedback =
                    parameters_.motor_kp[i] * (motor_position_[i] - measured.motor_position[i]) +
                    parameters_.motor_kd[i] * (motor_velocity_[i] - measured.motor_velocity[i]);
                if (std::isfinite(feedback))
                    output.motor_effort[i] += share * feedback;
            }
        if (measured.links)
            add_links(output, share, measured);
        if (parameters_.limits == LimitPolicy::clip) {
            Limits<Robot>::clip_efforts(robot_, output.joint_effort);
            Limits<Robot>::clip_motors(robot_, output.command.motor_velocity, output.motor_effort);
        }
    }

  private:
    void add_links(LoopOutput<Robot> &output, Scalar share, const Measurement<Robot> &measured) noexcept
    {
        JointVector<Robot> feedback{};
        for (std::size_t i = 0; i < n; ++i) {
            const Scalar effort = parameters_.link_kp[i] * (output.setpoint.q[i] - measured.q[i]) +
                                  parameters_.link_kd[i] * (output.setpoint.qd[i] - measured.qd[i]);
            feedback[i] = std::isfinite(effort) ? share * effort : 0;
            output.joint_effort[i] += feedback[i];
        }
        // Two motors of a joint share its effort.
        std::array<Scalar, n> motors{};
        const std::size_t count = robot_.motor_count();
        for (std::size_t i = 0; i < count; ++i)
            motors[robot_.motor_joint[i]] += 1;
        for (std::size_t j = 0; j < count; ++j) {
            const std::size_t joint = robot_.motor_joint[j];
            const Scalar part = feedback[joint] / motors[joint];
            if (!robot_.couples())
                output.motor_effort[j] += part;
            else
                for (std::size_t i = 0; i < count; ++i)
                    output.motor_effort[i] += robot_.load_weights[i * count + j] * part;
        }
    }

    Robot robot_;
    LoopParameters<Robot> parameters_;
    bool reads_motors_ = false;
    MotorVector<Robot> motor_position_{}, motor_velocity_{};
    Linearization<Robot> linearization_;
    Setpoint<Robot> candidate_;
    Command<Robot> result_;
};

} // namespace eom

#endif
