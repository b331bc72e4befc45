// SPDX-License-Identifier: Apache-2.0
// External efforts of an arm by its generalized momentum, on both sides of its springs.
#ifndef EOM_EXTERNAL_EFFORT_HPP
#define EOM_EXTERNAL_EFFORT_HPP

#include <algorithm>

#include "loop_parameters.hpp"

namespace eom {

/// Sensor sample of an arm, SI units, on the link side of the gears.
template <class Robot>
struct Sensed : Measurement<Robot> {
    double time = 0; ///< s
    JointVector<Robot> k{};
    std::array<double, 10 * Robot::tools> P{};
    bool loaded = false; ///< true if the tools carry P
};

/// Filters the mean of a signal over steps of any length: order 1, w/(s + w), or order 2, (2 w s + w^2)/(s + w)^2, which follows a
/// ramp without lag.
template <std::size_t size>
class ResidualFilter {
  public:
    std::array<double, size> bandwidth{}, order{}; ///< rad/s; 1 or 2
    std::array<double, size> value{}, rate{};      ///< filtered signal; its rate for order 2

    void restart() noexcept
    {
        value = rate = {};
        step_ = -1;
    }

    /// Update the filter; exact if the signal is constant over the step.
    void update(double step, const std::array<double, size> &signal, std::size_t count) noexcept
    {
        // Stamps of even samples have rounding errors.
        const bool changes = !(std::fabs(step - step_) <= 1e-9 * step_);
        for (std::size_t i = 0; i < count; ++i) {
            const double x = bandwidth[i] * step;
            if (changes)
                decay_[i] = i > 0 && bandwidth[i] == bandwidth[i - 1] ? decay_[i - 1] : std::exp(-x);
            const double error = signal[i] - value[i];
            if (order[i] < 2) {
                value[i] = signal[i] - decay_[i] * error;
                continue;
            }
            value[i] = signal[i] - decay_[i] * ((1 - x) * error - step * rate[i]);
            rate[i] = decay_[i] * (bandwidth[i] * x * error + (1 + x) * rate[i]);
        }
        if (changes)
            step_ = step;
    }

  private:
    double step_ = -1;
    std::array<double, size> decay_{};
};

/// Observer of external efforts by the generalized momentum.
///
/// p = M qd has the rate tau - beta + tau_ext. The mean of tau_ext over a step is the change of p over the duration of the step,
/// minus the mean of tau - beta; the result is filtered. For each motor, B thetad with the rate tau_m - load - friction gives the
/// effort that the model does not explain: friction, current, or load sensor errors. A. De Luca and R. Mattone, "Sensorless robot
/// collision detection and hybrid force/motion control", IEEE Int. Conf. Robotics and Automation (2005); S. Haddadin, A. De Luca,
/// A. Albu-Schaeffer, "Robot collisions: a survey on detection, isolation, and identification", IEEE Trans. Robotics 33 (2017).
template <class Robot>
class ExternalEffort {
  public:
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;
    /// Largest plausible sensor value, as a multiple of the largest effort of a joint.
    static constexpr double LARGEST = 2;

    ResidualFilter<n> links;
    ResidualFilter<m> motors;
    std::array<EffortSource, n> source{};

    explicit ExternalEffort(const Robot &robot) noexcept : robot_(robot) {}

    /// Discard all samples.
    void restart() noexcept { running_ = false; }

    /// Last accepted sample, with the estimated links.
    const Sensed<Robot> &sensed() const noexcept { return last_.sensed; }

    /// Joint that caused the last refusal of a sample.
    std::size_t refused_joint() const noexcept { return joint_; }

    /// Time after a start until an earlier step has an effect below 1 %, s.
    double settling() const noexcept
    {
        double longest = 0;
        for (std::size_t i = 0; i < robot_.joint_count(); ++i)
            longest = std::fmax(longest, (links.order[i] < 2 ? 5 : 6.64) / links.bandwidth[i]);
        return longest;
    }

    /// Returns true if sample x has the measurements that all effort sources need.
    bool complete(const Sensed<Robot> &x) const noexcept
    {
        for (std::size_t i = 0; i < robot_.joint_count(); ++i)
            if (!(source[i] == EffortSource::torque    ? x.links && x.torque
                  : source[i] == EffortSource::springs ? x.links && x.motors
                                                       : x.motors && x.efforts))
                return false;
        return true;
    }

    /// Process a sample, or only its motion if `efforts` is false.
    Sample update(const Sensed<Robot> &sensed, bool efforts = true) noexcept
    {
        Sample found = efforts && !complete(sensed) ? Sample::missing : judge(sensed);
        if (found <= Sample::started && efforts)
            found = observe(sensed, found);
        if (found > Sample::started)
            return found;
        if (!efforts)
            last_.sensed = sensed;
        running_ = true;
        return found;
    }

  private:
    /// Bandwidth of spring efforts estimated from motors, as a multiple of the observer bandwidth.
    static constexpr double LOAD_BANDWIDTH = 10;

    /// Momenta of links and motors, and the efforts that change them; beta of the links.
    struct Balance {
        Sensed<Robot> sensed;
        JointVector<Robot> effort{}, p{}, beta{}, net{};
        MotorVector<Robot> spin{}, driving{}, load{}, load_rate{};
    };

    Sample observe(const Sensed<Robot> &sensed, Sample found) noexcept
    {
        const double step = sensed.time - last_.sensed.time;
        const bool starts = found == Sample::started;
        Balance now;
        now.sensed = sensed;
        if (starts)
            restart_at(sensed);
        for (std::size_t j = 0; j < m; ++j)
            now.load[j] = last_.load[j] + (starts ? 0 : step) * last_.load_rate[j];
        now.load_rate = last_.load_rate;
        find_links(now);
        find_efforts(now);
        for (joint_ = 0; joint_ < robot_.joint_count(); ++joint_)
            if (std::fabs(now.effort[joint_]) > LARGEST * robot_.largest_effort[joint_])
                return Sample::too_large;
        find_momentum(now);
        if (!starts) {
            // Apply the present payload to the last momentum, so that its change causes no step.
            if (sensed.loaded != last_.sensed.loaded || sensed.P != last_.sensed.P) {
                last_.sensed.loaded = sensed.loaded;
                last_.sensed.P = sensed.P;
                find_momentum(last_);
            }
            links.update(step, external(last_.p, now.p, last_.net, now.net, step), robot_.joint_count());
            if (sensed.motors && sensed.efforts)
                motors.update(step, external(last_.spin, now.spin, last_.driving, now.driving, step), robot_.motor_count());
            find_loads(now);
        }
        last_ = now;
        return found;
    }

    /// Mean external effort over a step, from momenta p and known efforts u.
    template <class Vector>
    static Vector external(const Vector &p0, const Vector &p1, const Vector &u0, const Vector &u1, double step) noexcept
    {
        Vector mean;
        for (std::size_t i = 0; i < mean.size(); ++i)
            mean[i] = (p1[i] - p0[i]) / step - 0.5 * (u0[i] + u1[i]);
        return mean;
    }

    /// Returns the result of checking a sample.
    Sample judge(const Sensed<Robot> &sensed) const noexcept
    {
        if (!(finite(sensed.q, sensed.qd, sensed.tau, sensed.k) && finite(sensed.P) && std::isfinite(sensed.time) &&
              finite(sensed.motor_position, sensed.motor_velocity, sensed.motor_effort)))
            return Sample::not_finite;
        const double step = sensed.time - last_.sensed.time;
        if (running_ && !(step > 0))
            return Sample::stale;
        if (!running_ || step > LONGEST_GAP * 1e-9)
            return Sample::started;
        return Sample::taken;
    }

    bool by_motor(std::size_t motor) const noexcept { return source[robot_.motor_joint[motor]] == EffortSource::motor; }

    /// Start at a sample; spring efforts estimated from motors start with their values at rest.
    void restart_at(const Sensed<Robot> &sensed) noexcept
    {
        links.restart();
        motors.restart();
        last_ = Balance{};
        const std::size_t count = robot_.motor_count();
        for (std::size_t j = 0; j < count; ++j) {
            const std::size_t joint = robot_.motor_joint[j];
            motors.bandwidth[j] = (by_motor(j) ? LOAD_BANDWIDTH : 1) * links.bandwidth[joint];
            motors.order[j] = by_motor(j) ? 2 : links.order[joint];
        }
        for (int pass = 0; pass < 5; ++pass) {
            last_.sensed = sensed;
            find_links(last_);
            last_.sensed.qd = {};
            find_momentum(last_);
            for (std::size_t j = 0; j < count; ++j)
                last_.load[j] = by_motor(j) ? last_.beta[robot_.motor_joint[j]] / motors_of(robot_.motor_joint[j]) : 0;
        }
        for (std::size_t j = 0; j < count; ++j)
            for (std::size_t k = 0; k < count; ++k)
                motors.value[j] -= robot_.load_weights[j * count + k] * last_.load[k];
    }

    /// Estimate spring efforts from the motor residuals, which exclude the load.
    void find_loads(Balance &now) const noexcept
    {
        const std::size_t count = robot_.motor_count();
        for (std::size_t j = 0; j < count; ++j) {
            if (!by_motor(j))
                continue;
            now.load[j] = now.load_rate[j] = 0;
            for (std::size_t k = 0; k < count; ++k) {
                now.load[j] -= robot_.to_springs[j * count + k] * motors.value[k];
                now.load_rate[j] -= robot_.to_springs[j * count + k] * motors.rate[k];
            }
        }
    }

    double motors_of(std::size_t joint) const noexcept
    {
        return static_cast<double>(std::count(robot_.motor_joint.begin(), robot_.motor_joint.end(), joint));
    }

    /// Estimate links without measurements: motors minus spring deflections.
    void find_links(Balance &now) const noexcept
    {
        Sensed<Robot> &x = now.sensed;
        if (x.links)
            return;
        JointVector<Robot> tau{}, taud{};
        const std::size_t count = robot_.motor_count();
        for (std::size_t j = 0; j < count; ++j) {
            tau[robot_.motor_joint[j]] += now.load[j];
            taud[robot_.motor_joint[j]] += now.load_rate[j];
        }
        MotorVector<Robot> delta{}, deltad{};
        robot_.deflections(tau, taud, x.k, delta, deltad);
        x.q = x.qd = {};
        for (std::size_t j = 0; j < count; ++j) {
            const std::size_t joint = robot_.motor_joint[j];
            x.q[joint] = -delta[j];
            x.qd[joint] = -deltad[j];
            for (std::size_t i = 0; i < count; ++i) {
                x.q[joint] += robot_.joint_sides[j * count + i] * x.motor_position[i];
                x.qd[joint] += robot_.joint_sides[j * count + i] * x.motor_velocity[i];
            }
        }
    }

    /// Compute link efforts by their sources, and the efforts that drive the rotors.
    void find_efforts(Balance &now) const noexcept
    {
        const Sensed<Robot> &x = now.sensed;
        const std::size_t count = robot_.motor_count();
        const MotorVector<Robot> by_motors = now.load;
        if (x.links && x.motors)
            robot_.spring_loads(x, now.effort, now.load);
        for (std::size_t j = 0; j < count; ++j)
            if (const std::size_t i = robot_.motor_joint[j]; by_motor(j))
                now.load[j] = by_motors[j];
            else if (source[i] == EffortSource::torque && motors_of(i) == 1)
                now.load[j] = x.tau[i];
        for (std::size_t i = 0; i < n; ++i)
            if (source[i] != EffortSource::springs)
                now.effort[i] = source[i] == EffortSource::torque ? x.tau[i] : 0;
        if (!x.motors || !x.efforts)
            return;
        MotorVector<Robot> needed{};
        robot_.motor_loads(now.load, x.motor_velocity, needed);
        for (std::size_t j = 0; j < count; ++j) {
            now.spin[j] = robot_.motor_inertia[j] * x.motor_velocity[j];
            now.driving[j] = x.motor_effort[j] - needed[j];
            for (std::size_t k = 0; k < count; ++k)
                if (by_motor(k))
                    now.driving[j] += robot_.load_weights[j * count + k] * now.load[k];
        }
        for (std::size_t j = 0; j < count; ++j)
            for (std::size_t k = 0; by_motor(j) && k < count; ++k)
                now.effort[robot_.motor_joint[j]] += robot_.to_springs[j * count + k] * now.driving[k];
    }

    /// Compute momenta; with efforts from motors, links include their rotors.
    void find_momentum(Balance &x) const noexcept
    {
        robot_.momentum_balance(x.sensed, x.p, x.beta);
        const std::size_t count = robot_.motor_count();
        for (std::size_t j = 0; j < count; ++j)
            for (std::size_t k = 0; by_motor(j) && k < count; ++k)
                x.p[robot_.motor_joint[j]] += robot_.to_springs[j * count + k] * x.spin[k];
        for (std::size_t i = 0; i < n; ++i)
            x.net[i] = x.effort[i] - x.beta[i];
    }

    const Robot robot_;
    Balance last_;
    bool running_ = false;
    std::size_t joint_ = 0;
};

} // namespace eom

#endif
