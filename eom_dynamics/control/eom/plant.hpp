// SPDX-License-Identifier: Apache-2.0
// Simulated robot: links and motors coupled by springs, integrated in time.
#ifndef EOM_PLANT_HPP
#define EOM_PLANT_HPP

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "robot_table.hpp"

namespace eom {

/// Motors in drive units; NaN in commands for no value.
struct DriveMotion {
    std::vector<double> position, velocity, effort;
};

/// Simulates the links and motors of a robot with the kernel "plant", from efforts sent to its drives and added by the robot.
///
/// A motor with a position command follows it with a PD controller plus the commanded effort. Without a velocity command, the
/// reference velocity is the difference quotient of the positions. A motor without a command keeps its last effort. The integrator
/// is the classical Runge-Kutta method. Stiff springs limit the step to about the inverse of their natural frequency in rad/s.
class Plant {
  public:
    explicit Plant(const RobotTable &robot)
        : robot_(robot), n_(robot.joints), m_(robot.motors), size_(std::max({n_, m_, 6 * robot.tools, std::size_t{2}})),
          memory_(COUNT * size_), friction_state_(m_), half_(m_), sent_(m_), reference_(m_, NONE), kp_(m_), kd_(m_)
    {
        for (std::size_t i = 0; i < COUNT; ++i)
            places_[i] = memory_.data() + i * size_;
        std::copy(robot.nominal_stiffness.begin(), robot.nominal_stiffness.end(), at(Vector::k));
        for (auto *row : {&state_, &start_, &rate_})
            row->resize(2 * (n_ + m_));
        for (auto *motion : {&commanded, &reported})
            motion->position.resize(m_), motion->velocity.resize(m_), motion->effort.resize(m_);
    }
    Plant(const Plant &) = delete;
    Plant &operator=(const Plant &) = delete;

    DriveMotion commanded, reported;

    /// Set the PD gains of each motor, SI units.
    void follow(const double *kp, const double *kd)
    {
        kp_.assign(kp, kp + m_);
        kd_.assign(kd, kd + m_);
    }

    /// State: positions and velocities of links and motors, and presliding friction.
    double *q() noexcept { return state_.data(); }
    double *qd() noexcept { return state_.data() + n_; }
    double *theta() noexcept { return state_.data() + 2 * n_; }
    double *thetad() noexcept { return state_.data() + 2 * n_ + m_; }
    double *friction_state() noexcept { return friction_state_.data(); }

    /// Reset to rest at the present link positions, and command the holding efforts.
    void rest()
    {
        std::fill_n(qd(), n_, 0.0);
        load(state_);
        std::fill_n(at(Vector::deflection), n_, SETTLED);
        std::fill_n(at(Vector::friction_state), m_, SETTLED);
        call(robot_.kernels.feedforward);
        std::copy_n(at(Vector::motor_position), m_, theta());
        std::fill_n(thetad(), m_, 0.0);
        std::fill(friction_state_.begin(), friction_state_.end(), 0.0);
        std::fill(reference_.begin(), reference_.end(), NONE);
        const std::vector<double> effort(at(Vector::motor_effort), at(Vector::motor_effort) + m_);
        sent_ = report(effort.data(), 1).effort;
        commanded.effort = sent_;
        for (auto *row : {&commanded.position, &commanded.velocity})
            std::fill(row->begin(), row->end(), NONE);
        report(effort.data(), 0);
    }

    /// Simulate the commands for `time` s in equal steps of at most `longest_step` s. Returns true if the motion is finite.
    bool advance(double time, double longest_step)
    {
        drive(time);
        const double count = std::ceil(time / longest_step);
        for (double i = 0; i < count; ++i) {
            find_efforts();
            step(time / count);
        }
        find_efforts();
        report(at(Vector::tau_m), 0);
        return std::all_of(state_.begin(), state_.end(), [](double x) { return std::isfinite(x); });
    }

  private:
    static constexpr std::size_t COUNT = static_cast<std::size_t>(Vector::count);
    static constexpr double NONE = std::numeric_limits<double>::quiet_NaN();

    /// Vectors of kernels, each with its own memory.
    double *at(Vector name) noexcept { return places_[static_cast<std::size_t>(name)]; }
    void call(const Kernel &kernel) noexcept { run(kernel, places_, places_); }

    void load(const std::vector<double> &state) noexcept
    {
        const double *entry = state.data();
        for (const auto &[name, count] : {std::pair{Vector::q, n_}, {Vector::qd, n_}, {Vector::theta, m_}, {Vector::thetad, m_}}) {
            std::copy_n(entry, count, at(name));
            entry += count;
        }
    }

    /// Convert motors from drive units to SI units, with the fraction `share` of the efforts that the robot adds.
    void read_drives(const DriveMotion &given, double share) noexcept
    {
        std::copy(given.position.begin(), given.position.end(), at(Vector::drive_position));
        std::copy(given.velocity.begin(), given.velocity.end(), at(Vector::drive_velocity));
        std::copy(given.effort.begin(), given.effort.end(), at(Vector::drive_effort));
        *at(Vector::share) = share;
        if (robot_.kernels.drive_state.call) {
            call(robot_.kernels.drive_state);
        } else {
            std::copy_n(at(Vector::drive_position), m_, at(Vector::motor_position));
            std::copy_n(at(Vector::drive_velocity), m_, at(Vector::motor_velocity));
            std::copy_n(at(Vector::drive_effort), m_, at(Vector::motor_effort));
        }
    }

    /// Returns the drive report of this state with motor efforts `effort`; with `share` 1, the command that results in these
    /// efforts.
    const DriveMotion &report(const double *effort, double share)
    {
        load(state_);
        std::fill_n(at(Vector::tau), n_, 0.0);
        std::copy_n(effort, m_, at(Vector::motor_effort));
        std::copy_n(thetad(), m_, at(Vector::motor_velocity));
        // Commands have a feedback delay; reports are measured now.
        for (std::size_t i = 0; i < m_; ++i)
            at(Vector::motor_position)[i] = theta()[i] + robot_.drive_feedback_delay * thetad()[i];
        *at(Vector::share) = share;
        const bool converts = robot_.kernels.drive_command.call;
        if (converts)
            call(robot_.kernels.drive_command);
        const auto copy = [this](std::vector<double> &row, const double *entries) { row.assign(entries, entries + m_); };
        copy(reported.position, converts ? at(Vector::drive_position) : theta());
        copy(reported.velocity, converts ? at(Vector::drive_velocity) : thetad());
        copy(reported.effort, converts ? at(Vector::drive_effort) : at(Vector::motor_effort));
        return reported;
    }

    /// Compute the efforts to send within `time` s from the commands.
    void drive(double time)
    {
        // References in SI units, like the gains; efforts stay in drive units.
        read_drives({commanded.position, commanded.velocity, std::vector<double>(m_)}, 0);
        const std::vector<double> position(at(Vector::motor_position), at(Vector::motor_position) + m_),
            velocity(at(Vector::motor_velocity), at(Vector::motor_velocity) + m_), zero(m_), one(m_, 1.0);
        const std::vector<double> with = report(one.data(), 1).effort, without = report(zero.data(), 1).effort;
        for (std::size_t i = 0; i < m_; ++i) {
            double effort = commanded.effort[i];
            if (!std::isnan(position[i])) {
                const double slope = (position[i] - reference_[i]) / time;
                const double rate = std::isfinite(velocity[i]) ? velocity[i] : std::isfinite(slope) ? slope : 0;
                effort += (with[i] - without[i]) * (kp_[i] * (position[i] - theta()[i]) + kd_[i] * (rate - thetad()[i]));
            }
            reference_[i] = position[i];
            if (std::isfinite(effort))
                sent_[i] = effort;
        }
    }

    /// Compute motor efforts from the sent efforts and the additions of the robot in this state.
    void find_efforts()
    {
        const std::vector<double> none(m_);
        read_drives({none, report(none.data(), 1).velocity, sent_}, 1);
        std::copy_n(at(Vector::motor_effort), m_, at(Vector::tau_m));
    }

    /// Update presliding friction for a motor motion without reversal.
    void slide(const double *from, const double *to) noexcept
    {
        std::copy(friction_state_.begin(), friction_state_.end(), at(Vector::friction_state));
        if (!robot_.kernels.presliding.call)
            return;
        std::copy_n(from, m_, at(Vector::motor_position_before));
        std::copy_n(to, m_, at(Vector::motor_position));
        std::fill_n(at(Vector::motor_velocity), m_, 0.0);
        *at(Vector::step) = 1;
        call(robot_.kernels.presliding);
        std::copy_n(at(Vector::friction_state_now), m_, at(Vector::friction_state));
    }

    /// Integrate one step h with motor efforts tau_m; presliding friction is evaluated at its middle.
    void step(double h) noexcept
    {
        start_ = state_;
        for (std::size_t i = 0; i < m_; ++i)
            half_[i] = theta()[i] + h / 2 * thetad()[i];
        slide(theta(), half_.data());
        constexpr double AHEAD[] = {0, 0.5, 0.5, 1}, WEIGHT[] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
        std::fill(rate_.begin(), rate_.end(), 0.0);
        for (std::size_t k = 0; k < 4; ++k) {
            for (std::size_t i = 0; i < rate_.size(); ++i)
                rate_[i] = start_[i] + AHEAD[k] * h * rate_[i];
            load(rate_);
            call(robot_.kernels.plant);
            double *entry = rate_.data();
            for (const auto &[name, count] : {std::pair{Vector::qd, n_}, {Vector::link_acceleration, n_}, {Vector::thetad, m_},
                                              {Vector::rotor_acceleration, m_}})
                entry = std::copy_n(at(name), count, entry);
            for (std::size_t i = 0; i < rate_.size(); ++i)
                state_[i] += WEIGHT[k] * h * rate_[i];
        }
        slide(start_.data() + 2 * n_, theta());
        friction_state_.assign(at(Vector::friction_state), at(Vector::friction_state) + m_);
    }

    const RobotTable &robot_;
    const std::size_t n_, m_, size_;
    std::vector<double> memory_;
    double *places_[COUNT];
    // State q, qd, theta, thetad; at the start of a step; and its rate.
    std::vector<double> state_, start_, rate_;
    std::vector<double> friction_state_, half_, sent_;
    // Last commanded motor positions, or NaN.
    std::vector<double> reference_;
    std::vector<double> kp_, kd_;
};

} // namespace eom

#endif
