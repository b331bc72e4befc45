// SPDX-License-Identifier: Apache-2.0
// Feedback around the feedforward: PD of motors and links, or impedance.
#ifndef EOM_FEEDBACK_HPP
#define EOM_FEEDBACK_HPP

#include "impedance.hpp"

namespace eom {

/// Feedback with the gains of the parameters of a loop.
template <class Robot>
class Feedback {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;

    explicit Feedback(const Robot &robot) noexcept : robot_(robot), impedance_(robot) {}

    void configure(const LoopParameters<Robot> &parameters) noexcept
    {
        parameters_ = parameters;
        reads_motors_ = detail::positive(parameters.motor_kp) || detail::positive(parameters.motor_kd);
        impedance_.configure(parameters);
    }

    /// Forgets the efforts, and leads by references.
    void forget() noexcept
    {
        mode_ = Mode::position;
        sent_ = false;
        motor_less_ = {};
        joint_less_ = {};
    }

    Mode mode() const noexcept { return mode_; }
    const Impedance<Robot> &impedance() const noexcept { return impedance_; }

    /// Changes the mode, near a setpoint; returns whether what is measured suffices. Efforts begin as they were.
    bool change(Mode mode, const Setpoint<Robot> &near, const Measurement<Robot> &measured) noexcept
    {
        if (mode != Mode::position && mode_ == Mode::position && !impedance_.begin(near, measured))
            return false;
        mode_ = mode;
        changes_ = true;
        return true;
    }

    /// Whether there is feedback of the motor motion.
    bool reads_motors() const noexcept { return reads_motors_; }

    /// Takes the motor motion of a command as the reference of the motors.
    void refer(const Command<Robot> &command) noexcept
    {
        motor_position_ = command.motor_position;
        motor_velocity_ = command.motor_velocity;
    }

    /// Efforts of motors and joints with feedback, times a share, for the setpoint and command of an output, a time, s, after
    /// the last change of the mode; returns whether what is measured was usable where it must be.
    bool add(LoopOutput<Robot> &output, Scalar share, double since, const Measurement<Robot> &measured) noexcept
    {
        bool usable = true;
        if (mode_ == Mode::position)
            follow(output, share, measured);
        else
            usable = comply(output, share, measured);
        blend(output, since);
        if (parameters_.limits == LimitPolicy::clip || mode_ != Mode::position) {
            // Motors give up what joints do.
            JointVector<Robot> clipped = output.joint_effort, less;
            Limits<Robot>::clip_efforts(robot_, clipped);
            for (std::size_t i = 0; i < n; ++i)
                less[i] = clipped[i] - output.joint_effort[i];
            add_joints(output, less);
            output.joint_effort = clipped;
            Limits<Robot>::clip_motors(robot_, output.command.motor_velocity, output.motor_effort);
        }
        return usable;
    }

  private:
    /// Time in which efforts pass from one mode to the next, s.
    static constexpr double BLEND = 0.3;

    /// Efforts of the impedance, and of the motors of one joint that hold its stiffness.
    bool comply(LoopOutput<Robot> &output, Scalar share, const Measurement<Robot> &measured) noexcept
    {
        const bool free = mode_ == Mode::gravity_compensation;
        const bool usable = impedance_.update(output.setpoint, free, measured);
        const Command<Robot> &y = impedance_.command();
        for (std::size_t i = 0; i < m; ++i)
            output.motor_effort[i] = share * y.motor_effort[i];
        for (std::size_t i = 0; i < n; ++i)
            output.joint_effort[i] = share * y.tau[i];
        if (!usable)
            return false;
        JointVector<Robot> damping = impedance_.damping();
        for (Scalar &effort : damping)
            effort *= share;
        add_joints(output, damping);
        const MotorVector<Robot> friction = free ? impedance_.friction() : MotorVector<Robot>{};
        for (std::size_t i = 0; i < m; ++i)
            output.motor_effort[i] += share * friction[i];
        for (std::size_t i = 0; measured.motors && i < robot_.motor_count(); ++i)
            if (std::count(robot_.motor_joint.begin(), robot_.motor_joint.end(), robot_.motor_joint[i]) > 1)
                output.motor_effort[i] +=
                    share * (parameters_.motor_kp[i] * (y.motor_position[i] - measured.motor_position[i]) +
                             parameters_.motor_kd[i] * (y.motor_velocity[i] - measured.motor_velocity[i]));
        return true;
    }

    /// Has efforts begin as they were before a change of the mode.
    void blend(LoopOutput<Robot> &output, double since) noexcept
    {
        if (since < BLEND) {
            const double s = since / BLEND;
            const auto left = static_cast<Scalar>((1 - s) * (1 - s) * (1 - s) * (1 + 3 * s + 6 * s * s));
            const auto pass = [&](auto &values, const auto &last, auto &less) {
                for (std::size_t i = 0; i < values.size(); ++i) {
                    if (changes_)
                        less[i] = sent_ ? last[i] - values[i] : 0;
                    values[i] += left * less[i];
                }
            };
            pass(output.motor_effort, motor_effort_, motor_less_);
            pass(output.joint_effort, joint_effort_, joint_less_);
        }
        changes_ = false;
        motor_effort_ = output.motor_effort;
        joint_effort_ = output.joint_effort;
        sent_ = true;
    }

    void follow(LoopOutput<Robot> &output, Scalar share, const Measurement<Robot> &measured) noexcept
    {
        output.motor_effort = output.command.motor_effort;
        output.joint_effort = output.command.tau;
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
    }

    void add_links(LoopOutput<Robot> &output, Scalar share, const Measurement<Robot> &measured) noexcept
    {
        JointVector<Robot> feedback{};
        for (std::size_t i = 0; i < n; ++i) {
            const Scalar effort = parameters_.link_kp[i] * (output.setpoint.q[i] - measured.q[i]) +
                                  parameters_.link_kd[i] * (output.setpoint.qd[i] - measured.qd[i]);
            feedback[i] = std::isfinite(effort) ? share * effort : 0;
        }
        add_joints(output, feedback);
    }

    /// Adds efforts on the joints, by their motors.
    void add_joints(LoopOutput<Robot> &output, const JointVector<Robot> &feedback) noexcept
    {
        for (std::size_t i = 0; i < n; ++i)
            output.joint_effort[i] += feedback[i];
        robot_.add_at_joints(feedback, output.motor_effort);
    }

    Robot robot_;
    LoopParameters<Robot> parameters_;
    bool reads_motors_ = false;
    MotorVector<Robot> motor_position_{}, motor_velocity_{};
    Impedance<Robot> impedance_;
    Mode mode_ = Mode::position;
    // Whether the mode has changed since the last cycle; whether there are last efforts, and by which they were larger then.
    bool changes_ = false, sent_ = false;
    MotorVector<Robot> motor_effort_{}, motor_less_{};
    JointVector<Robot> joint_effort_{}, joint_less_{};
};

} // namespace eom

#endif
