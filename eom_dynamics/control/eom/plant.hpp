// SPDX-License-Identifier: Apache-2.0
// Simulated arm: links and motors coupled by springs, integrated in time.
#ifndef EOM_PLANT_HPP
#define EOM_PLANT_HPP

#include "setpoint.hpp"

namespace eom {

/// Motion of links and motors.
template <class Robot>
struct PlantState {
    JointVector<Robot> q{}, qd{};
    MotorVector<Robot> theta{}, thetad{};
    /// Stiffness where it is commanded at a joint with one motor.
    JointVector<Robot> k = Robot::nominal_stiffness;
    /// Of presliding friction.
    MotorVector<Robot> friction_state{};
};

/// The plant under motor efforts, by the classical Runge-Kutta method.
///
/// Stiff springs limit the step: at most about the inverse of their highest natural frequency, rad/s.
template <class Robot>
class Plant {
  public:
    using Scalar = typename Robot::Scalar;
    using State = PlantState<Robot>;

    State state;

    /// Puts the arm at rest, and writes the motor efforts that hold it there.
    void rest_at(const JointVector<Robot> &q, MotorVector<Robot> &effort) noexcept
    {
        Setpoint<Robot> x;
        Command<Robot> y;
        x.q = q;
        x.deflection.fill(Robot::settled);
        Robot::feedforward(x, y);
        state = {};
        state.q = q;
        state.theta = y.motor_position;
        effort = y.motor_effort;
    }

    /// Advances by a time in equal steps of at most a length, s.
    void advance(const MotorVector<Robot> &effort, double time, double longest_step) noexcept
    {
        const double count = std::ceil(time / longest_step);
        for (double i = 0; i < count; ++i)
            step(effort, static_cast<Scalar>(time / count));
    }

    /// The same under efforts that are sent to the drives, to which those add the robot's own ones in each step.
    void advance_drives(const MotorVector<Robot> &sent, double time, double longest_step) noexcept
    {
        const double count = std::ceil(time / longest_step);
        for (double i = 0; i < count; ++i)
            step(effort_of(sent), static_cast<Scalar>(time / count));
    }

    /// Motor efforts of drives that are sent efforts in their units: with those that the robot adds in this state.
    MotorVector<Robot> effort_of(const MotorVector<Robot> &sent) const noexcept
    {
        MotorVector<Robot> position, velocity, effort = sent;
        if constexpr (Robot::has_drives)
            Robot::drive_state(state.q, state.qd, {}, reported({}).velocity, sent, {1, 0}, position, velocity, effort);
        return effort;
    }

    /// What drives report in this state, and the efforts that they must be sent for these of the motors; with a share of
    /// zero whole efforts, as they report them.
    DriveCommand<Robot> reported(const MotorVector<Robot> &effort, [[maybe_unused]] Scalar share = 1) const noexcept
    {
        DriveCommand<Robot> sent;
        sent.position = state.theta;
        sent.velocity = state.thetad;
        sent.effort = effort;
        if constexpr (Robot::has_drives) {
            Setpoint<Robot> x;
            Command<Robot> y;
            x.q = state.q;
            x.qd = state.qd;
            y.motor_position = state.theta;
            y.motor_velocity = state.thetad;
            // What is sent is older than the command; drives report what they measure.
            for (std::size_t i = 0; i < Robot::motors; ++i)
                y.motor_position[i] += Robot::drive_feedback_delay * state.thetad[i];
            Robot::drive_command(x, y, effort, {}, {share, 0}, sent);
        }
        return sent;
    }

    /// Whether the motion is finite.
    bool finite() const noexcept { return eom::finite(state.q, state.qd, state.theta, state.thetad); }

  private:
    struct Rate {
        JointVector<Robot> qd{}, qdd{};
        MotorVector<Robot> thetad{}, thetadd{};
    };

    static Rate rate(const State &x, const MotorVector<Robot> &effort) noexcept
    {
        Rate y;
        Robot::plant(x, effort, y.qdd, y.thetadd);
        y.qd = x.qd;
        y.thetad = x.thetad;
        return y;
    }

    static void add(State &x, const Rate &y, Scalar h) noexcept
    {
        for (std::size_t i = 0; i < Robot::joints; ++i) {
            x.q[i] += h * y.qd[i];
            x.qd[i] += h * y.qdd[i];
        }
        for (std::size_t i = 0; i < Robot::motors; ++i) {
            x.theta[i] += h * y.thetad[i];
            x.thetad[i] += h * y.thetadd[i];
        }
    }

    /// States of presliding friction after a motion of the motors without reversal.
    static void slide([[maybe_unused]] State &x, [[maybe_unused]] const MotorVector<Robot> &from,
                      [[maybe_unused]] const MotorVector<Robot> &to) noexcept
    {
        if constexpr (Robot::has_presliding) {
            Command<Robot> before, after;
            before.motor_position = from;
            after.motor_position = to;
            Robot::presliding(MotorVector<Robot>(x.friction_state), before, after, {1}, x.friction_state);
        }
    }

    /// A step, in which presliding friction is that of its middle.
    void step(const MotorVector<Robot> &effort, Scalar h) noexcept
    {
        State start = state, half = state;
        add(half, {state.qd, {}, state.thetad, {}}, h / 2);
        slide(start, state.theta, half.theta);
        const MotorVector<Robot> before = state.theta;
        const Rate first = rate(start, effort);
        State at = start;
        add(at, first, h / 2);
        const Rate second = rate(at, effort);
        at = start;
        add(at, second, h / 2);
        const Rate third = rate(at, effort);
        at = start;
        add(at, third, h);
        const Rate fourth = rate(at, effort);
        add(state, first, h / 6);
        add(state, second, h / 3);
        add(state, third, h / 3);
        add(state, fourth, h / 6);
        slide(state, before, state.theta);
    }
};

} // namespace eom

#endif
