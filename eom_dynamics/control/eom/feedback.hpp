// SPDX-License-Identifier: Apache-2.0
// Feedback around the feedforward: PD control of motors and links, or impedance.
#ifndef EOM_FEEDBACK_HPP
#define EOM_FEEDBACK_HPP

#include <cmath>
#include <limits>

#include "impedance.hpp"

namespace eom {

/// Feedback with the gains of the loop parameters.
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

    /// Reset to position control.
    void forget() noexcept
    {
        mode_ = Mode::position;
        motor_rates_.fill(NONE);
        link_rates_.fill(NONE);
    }

    Mode mode() const noexcept { return mode_; }
    const Impedance<Robot> &impedance() const noexcept { return impedance_; }

    /// Change the mode at setpoint `near`. Returns false if measurements do not suffice.
    bool change(Mode mode, const Setpoint<Robot> &near, const Measurement<Robot> &measured) noexcept
    {
        if (mode != Mode::position && mode_ == Mode::position && !impedance_.begin(near, measured))
            return false;
        mode_ = mode;
        measured_efforts_ = {};
        return true;
    }

    /// Returns true if motors have feedback gains.
    bool reads_motors() const noexcept { return reads_motors_; }

    /// Set the motor motion of `command` as the reference of the motors.
    void refer(const Command<Robot> &command) noexcept
    {
        motor_position_ = command.motor_position;
        motor_velocity_ = command.motor_velocity;
    }

    /// Compute the motor and joint efforts of `output` with feedback, `time` s after the last cycle. Returns false if the mode
    /// needs measurements and they are not usable.
    bool add(LoopOutput<Robot> &output, const Measurement<Robot> &measured, double time) noexcept
    {
        if (mode_ != Mode::position)
            return comply(output, measured, time);
        follow(output, measured);
        return true;
    }

  private:
    /// Compute impedance efforts. Motors that share a joint also have PD efforts, which hold its stiffness.
    bool comply(LoopOutput<Robot> &output, const Measurement<Robot> &measured, double time) noexcept
    {
        const bool free = mode_ == Mode::gravity_compensation;
        const bool usable = impedance_.update(output.setpoint, free, measured);
        const Command<Robot> &y = impedance_.command();
        for (std::size_t i = 0; i < m; ++i)
            output.motor_effort[i] = y.motor_effort[i];
        for (std::size_t i = 0; i < n; ++i)
            output.joint_effort[i] = y.tau[i];
        // Without a measurement, keep the last damping, so that efforts do not step.
        JointVector<Robot> damping = impedance_.damping();
        add_joints(output, damping);
        if (usable) // otherwise, keep the last efforts
            measured_efforts_ = free ? impedance_.guide(time) : MotorVector<Robot>{};
        for (std::size_t i = 0; usable && measured.motors && i < robot_.motor_count(); ++i)
            if (std::count(robot_.motor_joint.begin(), robot_.motor_joint.end(), robot_.motor_joint[i]) > 1)
                measured_efforts_[i] += motor_pd(i, y.motor_position[i], y.motor_velocity[i], measured);
        for (std::size_t i = 0; i < m; ++i)
            output.motor_effort[i] += measured_efforts_[i];
        return usable;
    }

    void follow(LoopOutput<Robot> &output, const Measurement<Robot> &measured) noexcept
    {
        output.motor_effort = output.command.motor_effort;
        output.joint_effort = output.command.tau;
        if (measured.motors && reads_motors_)
            for (std::size_t i = 0; i < m; ++i) {
                const Scalar feedback = motor_pd(i, motor_position_[i], motor_velocity_[i], measured);
                if (std::isfinite(feedback))
                    output.motor_effort[i] += feedback;
            }
        if (measured.links)
            add_links(output, measured);
    }

    /// Returns the PD effort of errors, or NaN if an error with a gain is not measured. `last` replaces a rejected velocity error.
    static Scalar pd(Scalar kp, Scalar position, Scalar kd, Scalar velocity, Scalar &last) noexcept
    {
        if (std::isfinite(velocity))
            last = velocity;
        return (kp > 0 ? kp * position : 0) + (kd > 0 ? kd * last : 0);
    }

    /// Returns the PD effort of motor `i` for its reference.
    Scalar motor_pd(std::size_t i, Scalar position, Scalar velocity, const Measurement<Robot> &measured) noexcept
    {
        return pd(parameters_.motor_kp[i], position - measured.motor_position[i], parameters_.motor_kd[i],
                  velocity - measured.motor_velocity[i], motor_rates_[i]);
    }

    void add_links(LoopOutput<Robot> &output, const Measurement<Robot> &measured) noexcept
    {
        JointVector<Robot> feedback{};
        for (std::size_t i = 0; i < n; ++i) {
            const Scalar effort = pd(parameters_.link_kp[i], output.setpoint.q[i] - measured.q[i], parameters_.link_kd[i],
                                     output.setpoint.qd[i] - measured.qd[i], link_rates_[i]);
            feedback[i] = std::isfinite(effort) ? effort : 0;
        }
        add_joints(output, feedback);
    }

    /// Add `feedback` to the joint efforts, and to the efforts of the motors that produce it.
    void add_joints(LoopOutput<Robot> &output, const JointVector<Robot> &feedback) noexcept
    {
        for (std::size_t i = 0; i < n; ++i)
            output.joint_effort[i] += feedback[i];
        robot_.add_at_joints(feedback, output.motor_effort);
    }

    static constexpr Scalar NONE = std::numeric_limits<Scalar>::quiet_NaN();

    Robot robot_;
    LoopParameters<Robot> parameters_;
    bool reads_motors_ = false;
    MotorVector<Robot> motor_position_{}, motor_velocity_{};
    // Last measured velocity errors, rad/s or m/s; initially NONE.
    MotorVector<Robot> motor_rates_{};
    JointVector<Robot> link_rates_{};
    Impedance<Robot> impedance_;
    Mode mode_ = Mode::position;
    // Efforts of hand guiding and of motors that hold a stiffness, from the last cycle with usable measurements.
    MotorVector<Robot> measured_efforts_{};
};

} // namespace eom

#endif
