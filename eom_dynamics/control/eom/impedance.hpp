// SPDX-License-Identifier: Apache-2.0
// Impedance of an arm with elastic joints, by its measured motors.
#ifndef EOM_IMPEDANCE_HPP
#define EOM_IMPEDANCE_HPP

#include <algorithm>
#include <limits>
#include <utility>

#include "equilibrium.hpp"
#include "hand_friction.hpp"
#include "loop_parameters.hpp"
#include "measurement_check.hpp"

namespace eom {

/// Computes efforts that make the links springs around a reference, or only compensate their weight.
///
/// The links are assumed at the equilibrium q(theta) of the measured motors. There, efforts of the reference motion, stiffness
/// efforts K (q_d - q) and tool efforts J' F deflect the springs by theta - q. The motor efforts are a function of theta with a
/// potential; with damping at the motors, the arm is passive. At rest, the links have the requested stiffness for any spring
/// stiffness. If joints are rigid, q is theta. A joint beyond a position limit has a spring and a damper to the limit.
///
/// A. Albu-Schaeffer, C. Ott, G. Hirzinger, "A unified passivity-based control framework for position, torque and impedance control
/// of flexible joint robots", Int. J. Robotics Research 26 (2007); C. Ott et al., "On the passivity-based impedance control of
/// flexible joint robots", IEEE Trans. Robotics 24 (2008).
template <class Robot>
class Impedance {
  public:
    using Scalar = typename Robot::Scalar;
    static constexpr std::size_t n = Robot::joints, m = Robot::motors;
    /// Largest stiffness as a fraction of the spring stiffness; closer to 1, the equilibrium would not be unique.
    static constexpr Scalar LARGEST = static_cast<Scalar>(0.7);
    /// Largest position step from the last valid cycle, rad or m.
    static constexpr Scalar JUMP = static_cast<Scalar>(MotionCheck<double, 1>::MAX_JUMP);
    /// Spring at a position limit: natural frequency of the joint, rad/s; depth of full damping, rad or m; damping ratio.
    static constexpr Scalar LIMIT_FREQUENCY = 30, LIMIT_DEPTH = static_cast<Scalar>(0.02),
                            LIMIT_DAMPING = static_cast<Scalar>(0.7);

    explicit Impedance(const Robot &robot) noexcept : robot_(robot), low_(robot.lower.q), high_(robot.upper.q) {}

    void configure(const LoopParameters<Robot> &parameters) noexcept
    {
        stiffness_ = parameters.stiffness;
        tool_stiffness_ = parameters.tool_stiffness;
        damping_ratio_ = static_cast<Scalar>(parameters.damping_ratio);
        max_speed_ = static_cast<Scalar>(parameters.hand_guiding_speed);
        by_tools_ = robot_.tool_count() > 0 && detail::positive(tool_stiffness_);
        known_ = false;
    }

    /// Start at the equilibrium of the measured motors nearest to setpoint `near`. Returns true if it exists.
    bool begin(const Setpoint<Robot> &near, const Measurement<Robot> &measured) noexcept
    {
        x_ = near;
        x_.qd = x_.qdd = x_.qddd = x_.qdddd = {};
        x_.deflection.fill(Robot::settled);
        x_.friction_state = Robot::settled_friction;
        find_inertia();
        at_ = q_ = near.q;
        low_.fill(-std::numeric_limits<Scalar>::infinity());
        high_.fill(std::numeric_limits<Scalar>::infinity());
        if (!read(measured))
            return false;
        at_ = wanted_;
        hand_ = {};
        smooth_rate_ = {};
        stops_ = false;
        too_fast_ = robot_.joint_count();
        const bool found = find(x_, true, 50) && finite(y_);
        narrow();
        return found;
    }

    /// Compute the command of a cycle; with `free`, without springs to the reference. Returns false and changes nothing if
    /// measurements do not allow it.
    bool update(const Setpoint<Robot> &reference, bool free, const Measurement<Robot> &measured) noexcept
    {
        const JointVector<Robot> before = wanted_, rate = rate_;
        if (!read(measured) || jumps()) {
            wanted_ = before;
            rate_ = rate;
            return false;
        }
        const JointVector<Robot> links = q_;
        const Command<Robot> command = y_;
        for (std::size_t i = 0; i < n; ++i)
            q_[i] += (wanted_[i] - at_[i]) * gain_[i];
        find(reference, free, 4);
        if (!finite(y_) || !finite(q_)) {
            q_ = links;
            y_ = command;
            return false;
        }
        at_ = wanted_;
        narrow();
        return true;
    }

    /// Returns the joint furthest beyond a position limit, more than rounding, or the number of joints.
    std::size_t beyond() const noexcept
    {
        std::size_t worst = robot_.joint_count();
        Scalar most = TOLERANCE;
        for (std::size_t i = 0; i < robot_.joint_count(); ++i) {
            const Scalar away = std::max(q_[i] - robot_.upper.q[i], robot_.lower.q[i] - q_[i]);
            if (away > most) {
                most = away;
                worst = i;
            }
        }
        return worst;
    }

    /// Estimated links.
    const JointVector<Robot> &links() const noexcept { return q_; }
    const JointVector<Robot> &rates() const noexcept { return rate_; } ///< motor velocities at the joints
    const Command<Robot> &command() const noexcept { return y_; }      ///< holds the motors in place

    /// Stiffness scaling, below 1 if the stiffness is limited by LARGEST.
    Scalar softened() const noexcept { return softened_; }

    /// Damping efforts at the joint sides of the springs.
    JointVector<Robot> damping() const noexcept
    {
        JointVector<Robot> effort{};
        for (std::size_t i = 0; i < robot_.joint_count(); ++i)
            for (std::size_t j = 0; j < robot_.joint_count(); ++j)
                effort[i] += D_[i][j] * (x_.qd[j] - rate_[j]);
        return effort;
    }

    /// Returns motor efforts of hand guiding, in addition to the command, after `time` s. They compensate a fraction of friction
    /// and gear losses at the measured rates, see HandFriction, and add damping. If a joint exceeds its speed limit, the arm stops,
    /// and friction compensation ends.
    MotorVector<Robot> guide(double time) noexcept
    {
        const std::size_t joints = robot_.joint_count(), motors = robot_.motor_count();
        limit_speed();
        const JointVector<Robot> base = damping();
        JointVector<Robot> more{};
        double power = 0, friction = 0, energy = 0;
        for (std::size_t i = 0; i < joints; ++i) {
            double most = inertia_[i] * (stops_ ? hand_.STOP_RATE : hand_.damping());
            if (compliance_[i] > 0 && time > 0) // limit for a stable sampled damper at a rotor on a spring
                most = std::min(most, SAMPLED_DAMPING * rotor_[i] / time);
            more[i] = -std::max<Scalar>(static_cast<Scalar>(most) - D_[i][i], 0) * rate_[i];
            power += (base[i] + more[i] + effort_[i]) * rate_[i];
        }
        MotorVector<Robot> effort{};
        robot_.add_at_joints(more, effort);
        Command<Robot> turning = y_, moved;
        std::swap(x_.qd, rate_);
        robot_.motors_of(x_, turning);
        std::swap(x_.qd, rate_);
        for (std::size_t i = 0; i < joints; ++i)
            smooth_rate_[i] += static_cast<Scalar>(hand_.smoothing_weight(time)) * (rate_[i] - smooth_rate_[i]);
        std::swap(x_.qdd, smooth_rate_); // M qd, as accelerating efforts
        robot_.feedforward(x_, effort_, moved);
        std::swap(x_.qdd, smooth_rate_);
        const JointVector<Robot> momentum = robot_.motor_sums(difference(moved.motor_effort, y_.motor_effort));
        for (std::size_t i = 0; i < joints; ++i)
            energy += momentum[i] * smooth_rate_[i] / 2;
        for (std::size_t j = 0; j < motors; ++j) {
            const double rate = turning.motor_velocity[j], rubs = turning.motor_effort[j] - y_.motor_effort[j];
            const double compensated = too_fast_ < joints ? 0 : hand_.share(rate_[robot_.motor_joint[j]]) * rubs;
            power += compensated * rate;
            friction += rubs * rate;
            effort[j] += static_cast<Scalar>(compensated);
        }
        hand_.update(energy, power, friction, bounded(static_cast<Scalar>(hand_.SLOW), rate_), time);
        return effort;
    }

    /// Last joint that was guided too fast in this mode, or the number of joints.
    std::size_t too_fast() const noexcept { return too_fast_; }
    /// Rate of that joint when it was detected.
    Scalar guided_speed() const noexcept { return guided_speed_; }
    Scalar speed_limit(std::size_t joint) const noexcept
    {
        const Scalar limit = robot_.jump_rate[joint];
        return max_speed_ * (std::isfinite(limit) ? limit : UNLIMITED_SPEED);
    }

  private:
    static constexpr Scalar TOLERANCE = sizeof(Scalar) < 8 ? static_cast<Scalar>(1e-5) : static_cast<Scalar>(1e-9);
    using Square = Matrix<Scalar, n>;
    /// Velocity limit in hand guiding for a joint without a limit, rad/s or m/s.
    static constexpr Scalar UNLIMITED_SPEED = 2;
    /// Largest damping times period over rotor inertia.
    static constexpr double SAMPLED_DAMPING = 0.3;

    struct Tools {
        std::array<Scalar, 16 * Robot::tools> pose{};
        std::array<Scalar, 6 * Robot::tools * n> jacobian{};
    };

    /// Start a stop if a joint is too fast, and end it when all joints are at rest.
    void limit_speed() noexcept
    {
        const std::size_t count = robot_.joint_count();
        for (std::size_t i = 0; max_speed_ > 0 && !stops_ && i < count; ++i)
            if (std::fabs(rate_[i]) > speed_limit(i))
                too_fast_ = i, guided_speed_ = rate_[i], stops_ = true;
        stops_ = stops_ && !hand_.rests();
    }

    /// Tighten position limits that start beyond the range as the links return.
    void narrow() noexcept
    {
        for (std::size_t i = 0; i < robot_.joint_count(); ++i) {
            low_[i] = std::min(robot_.lower.q[i], std::max(low_[i], q_[i]));
            high_[i] = std::max(robot_.upper.q[i], std::min(high_[i], q_[i]));
        }
    }

    /// Add the limit spring and damper of each joint beyond a limit, as far as LARGEST and the other springs allow.
    void confine(JointVector<Robot> &effort) noexcept
    {
        const std::size_t count = robot_.joint_count();
        for (std::size_t i = 0; i < count; ++i) {
            const Scalar back = std::max<Scalar>(low_[i] - q_[i], 0) - std::max<Scalar>(q_[i] - high_[i], 0);
            if (back == 0)
                continue;
            Scalar row = 0;
            for (std::size_t j = 0; j < count; ++j)
                row += std::fabs(K_[i][j]);
            Scalar stiffness = inertia_[i] * LIMIT_FREQUENCY * LIMIT_FREQUENCY;
            // Hardening springs count with their initial compliance, so that they and this spring do not stiffen each other.
            const Scalar compliance = std::max(compliance_[i], resting_[i]);
            if (compliance > 0)
                stiffness = std::min(stiffness, std::max<Scalar>(LARGEST / compliance - row, 0));
            effort[i] += stiffness * back;
            K_[i][i] += stiffness;
            D_[i][i] += 2 * LIMIT_DAMPING * std::sqrt(inertia_[i] * stiffness) * std::min<Scalar>(std::fabs(back) / LIMIT_DEPTH, 1);
        }
    }

    /// Read the measurements; for a rigid arm, links can replace motors.
    bool read(const Measurement<Robot> &measured) noexcept
    {
        const bool rigid = std::all_of(compliance_.begin(), compliance_.end(), [](Scalar x) { return x == 0; });
        if (!measured.motors && !(measured.links && rigid))
            return false;
        wanted_ = measured.motors ? sides_of(robot_, measured.motor_position) : measured.q;
        rate_ = measured.motors ? sides_of(robot_, measured.motor_velocity) : measured.qd;
        return finite(wanted_, rate_);
    }

    bool jumps() const noexcept
    {
        for (std::size_t i = 0; i < n; ++i)
            if (std::fabs(wanted_[i] - at_[i]) > JUMP)
                return true;
        return false;
    }

    /// Compute the inertia of each joint with its rotors, other joints at rest, and the spring compliance.
    void find_inertia() noexcept
    {
        Command<Robot> moved;
        robot_.feedforward(x_, JointVector<Robot>{}, y_);
        for (std::size_t i = 0; i < robot_.joint_count(); ++i) {
            x_.qdd[i] = 1;
            robot_.feedforward(x_, JointVector<Robot>{}, moved);
            x_.qdd[i] = 0;
            inertia_[i] = 0;
            for (std::size_t j = 0; j < robot_.motor_count(); ++j)
                inertia_[i] += (moved.motor_effort[j] - y_.motor_effort[j]) * moved.motor_acceleration[j];
            inertia_[i] = std::isfinite(inertia_[i]) ? std::max<Scalar>(inertia_[i], 0) : 0;
        }
        rotor_ = {};
        for (std::size_t j = 0; j < robot_.motor_count(); ++j)
            rotor_[robot_.motor_joint[j]] += robot_.motor_inertia[j];
        find_compliance();
        resting_ = compliance_;
    }

    /// Compute the spring compliance under the commanded efforts: deflection rate per effort rate.
    void find_compliance() noexcept
    {
        Command<Robot> y = y_;
        for (Scalar &rate : y.taud)
            rate += 1;
        robot_.motors_of(x_, y);
        for (std::size_t j = 0; j < m; ++j)
            y.motor_velocity[j] -= y_.motor_velocity[j];
        compliance_ = sides_of(robot_, y.motor_velocity);
        for (Scalar &slope : compliance_)
            slope = slope > 0 && std::isfinite(slope) ? slope : 0;
    }

    /// Solve for the links and the command at the measured motors. Returns true if the iteration converges.
    bool find(const Setpoint<Robot> &reference, bool free, int steps) noexcept
    {
        const std::size_t count = robot_.joint_count();
        x_ = reference;
        // Spring dampers damp the links; they carry no static load.
        x_.deflection.fill(Robot::settled);
        Scalar most = 0;
        for (int step = 0; step < steps; ++step) {
            x_.q = q_;
            JointVector<Robot> effort{};
            K_ = {};
            if (!free)
                attract(reference.q, effort);
            else
                damp();
            confine(effort);
            robot_.feedforward(x_, effort, y_);
            effort_ = effort;
            if (step == 0)
                find_compliance();
            const JointVector<Robot> found = sides_of(robot_, y_.motor_position);
            most = 0;
            for (std::size_t i = 0; i < count; ++i) {
                gain_[i] = 1 / std::max<Scalar>(1 - compliance_[i] * K_[i][i], 1 - LARGEST);
                q_[i] += (wanted_[i] - found[i]) * gain_[i];
                most = std::max(most, std::fabs(wanted_[i] - found[i]));
            }
            if (most <= TOLERANCE)
                return true;
        }
        return most < 1;
    }

    /// Add efforts and stiffness of the springs to the target.
    void attract(const JointVector<Robot> &target, JointVector<Robot> &effort) noexcept
    {
        const std::size_t count = robot_.joint_count();
        if (by_tools_) {
            if (!known_ || target != target_)
                refer(target);
            K_ = null_;
        } else {
            for (std::size_t i = 0; i < count; ++i)
                K_[i][i] = stiffness_[i];
        }
        damp();
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t j = 0; j < count; ++j)
                effort[i] += K_[i][j] * (target[j] - q_[j]);
        if (by_tools_) {
            Tools here;
            robot_.tool_kinematics(q_, here.pose, here.jacobian);
            for (std::size_t tool = 0; tool < robot_.tool_count(); ++tool)
                pull(tool, here, effort);
        }
        softened_ = 1;
        for (std::size_t i = 0; i < count; ++i) {
            Scalar row = 0;
            for (std::size_t j = 0; j < count; ++j)
                row += std::fabs(K_[i][j]);
            softened_ = std::min(softened_, LARGEST / std::max(compliance_[i] * row, LARGEST));
        }
        if (softened_ < 1)
            for (std::size_t i = 0; i < count; ++i) {
                effort[i] *= softened_;
                for (Scalar &entry : K_[i])
                    entry *= softened_;
            }
    }

    /// Set joint damping for the springs, plus a soft spring with natural frequency LEAST, rad/s.
    void damp() noexcept
    {
        constexpr Scalar LEAST = static_cast<Scalar>(0.7);
        D_ = {};
        for (std::size_t i = 0; i < robot_.joint_count(); ++i)
            D_[i][i] = 2 * damping_ratio_ * std::sqrt(inertia_[i] * (K_[i][i] + inertia_[i] * LEAST * LEAST));
    }

    /// Set the tool poses at `target`, and the joint stiffness in the null space of the tools. With tool stiffness A and joint
    /// stiffness N, N (100 A + N)^-1 N equals N if no tool moves, and is below N^2/100 A otherwise.
    void refer(const JointVector<Robot> &target) noexcept
    {
        const std::size_t count = robot_.joint_count();
        robot_.tool_kinematics(target, there_.pose, there_.jacobian);
        K_ = {};
        JointVector<Robot> unused{};
        for (std::size_t tool = 0; tool < robot_.tool_count(); ++tool)
            pull(tool, there_, unused);
        for (JointVector<Robot> &row : K_)
            for (Scalar &entry : row)
                entry *= 100;
        Scalar largest = 0;
        for (std::size_t i = 0; i < count; ++i)
            largest = std::max(largest, K_[i][i] + stiffness_[i]);
        for (std::size_t i = 0; i < n; ++i)
            K_[i][i] += i < count ? stiffness_[i] + static_cast<Scalar>(1e-9) * largest : 1;
        null_ = {};
        for (std::size_t j = 0; j < count && detail::positive(stiffness_); ++j) {
            JointVector<Robot> column{};
            column[j] = stiffness_[j];
            solve(K_, column);
            for (std::size_t i = 0; i < count; ++i)
                null_[i][j] = stiffness_[i] * column[i];
        }
        target_ = target;
        known_ = true;
    }

    /// Add efforts, stiffness and damping of the tool springs along the base axes. The force is k (x_d - x); the moment has the
    /// potential tr(G (1 - R_d R')), a torsion spring for small angles.
    void pull(std::size_t tool, const Tools &here, JointVector<Robot> &effort) noexcept
    {
        const auto &k = tool_stiffness_;
        const std::size_t count = robot_.joint_count(), pose = 16 * tool;
        const auto R = [&](const Tools &of, std::size_t i, std::size_t j) { return of.pose[pose + 4 * i + j]; };
        std::array<Scalar, 6> wrench{}; // moment, force
        Matrix<Scalar, 3> A{};
        const Scalar half = (k[3] + k[4] + k[5]) / 2;
        for (std::size_t i = 0; i < 3; ++i) {
            wrench[3 + i] = k[i] * (R(there_, i, 3) - R(here, i, 3));
            for (std::size_t j = 0; j < 3; ++j)
                for (std::size_t l = 0; l < 3; ++l)
                    A[i][j] += (half - k[3 + i]) * R(there_, i, l) * R(here, j, l);
        }
        for (std::size_t i = 0; i < 3; ++i)
            wrench[i] = A[(i + 2) % 3][(i + 1) % 3] - A[(i + 1) % 3][(i + 2) % 3];
        // Rows of the Jacobian in base directions.
        std::array<JointVector<Robot>, 6> J{};
        for (std::size_t row = 0; row < 6; ++row)
            for (std::size_t l = 0; l < 3; ++l)
                for (std::size_t i = 0; i < count; ++i)
                    J[row][i] += R(here, row % 3, l) * here.jacobian[(6 * tool + row / 3 * 3 + l) * count + i];
        for (std::size_t row = 0; row < 6; ++row) {
            // Damping for the mass that the spring moves, without joint coupling.
            Scalar mobility = 0;
            for (std::size_t i = 0; i < count; ++i)
                mobility += inertia_[i] > 0 ? J[row][i] * J[row][i] / inertia_[i] : 0;
            const Scalar stiffness = k[(row + 3) % 6];
            const Scalar damping = mobility > 0 ? 2 * damping_ratio_ * std::sqrt(stiffness / mobility) : 0;
            for (std::size_t i = 0; i < count; ++i) {
                effort[i] += J[row][i] * wrench[row];
                for (std::size_t j = 0; j < count; ++j) {
                    K_[i][j] += J[row][i] * stiffness * J[row][j];
                    D_[i][j] += J[row][i] * damping * J[row][j];
                }
            }
        }
    }

    const Robot robot_;
    JointVector<Robot> stiffness_{};
    std::array<Scalar, 6> tool_stiffness_{};
    Scalar damping_ratio_ = 0, softened_ = 1;
    bool by_tools_ = false, known_ = false;
    // Measured positions and rates at the joint sides; positions at_ of the solved links q_.
    JointVector<Robot> wanted_{}, rate_{}, at_{}, q_{}, gain_{};
    JointVector<Robot> inertia_{}, compliance_{}, resting_{};
    // Rotor inertia of each joint, and spring efforts in the command.
    JointVector<Robot> rotor_{}, effort_{};
    // Hand guiding: friction, fraction of velocity limits, joint that is too fast and its rate.
    HandFriction hand_;
    JointVector<Robot> smooth_rate_{};
    Scalar max_speed_ = 0, guided_speed_ = 0;
    std::size_t too_fast_ = n;
    bool stops_ = false;
    // Position limits, or the initial links beyond them.
    JointVector<Robot> low_, high_;
    Square K_{}, D_{}, null_{};
    // Target of there_ and null_.
    JointVector<Robot> target_{};
    Tools there_;
    // Reference with these links, and its command.
    Setpoint<Robot> x_;
    Command<Robot> y_;
};

} // namespace eom

#endif
