// SPDX-License-Identifier: Apache-2.0
// Feedback linearization of an elastic-joint arm from measured motors and links.
#ifndef EOM_LINEARIZATION_HPP
#define EOM_LINEARIZATION_HPP

#include "setpoint.hpp"

namespace eom {

/// Measured motion of links and motors, on the link side of the gears.
template <class Robot>
struct Measurement {
    JointVector<Robot> q{}, qd{};
    MotorVector<Robot> motor_position{}, motor_velocity{};
    /// Which of them are measured.
    bool links = false, motors = false;
};

/// Efforts of the springs on the links and, where it is commanded, stiffness, with their rates.
template <class Robot>
struct SpringEfforts {
    JointVector<Robot> tau{}, taud{}, k{}, kd{};
};

/// Makes every joint a chain of four integrators: eom_dynamics.elastic.linearizing_effort.
///
/// The error e = q_ref - q obeys e'''' + g3 e''' + g2 e'' + g1 e' + g0 e = 0 where the model is exact: M. W. Spong,
/// "Modeling and control of elastic joint robots", J. Dyn. Sys. Meas. Control 109 (1987); with integrators before the
/// motors of rigid joints, A. De Luca and P. Lucibello, "A general algorithm for dynamic feedback linearization of
/// robots with elastic joints", IEEE Int. Conf. Robotics and Automation (1998). Damped springs have no such feedback.
template <class Robot>
class Linearization {
  public:
    using Scalar = typename Robot::Scalar;

    /// Whether the robot has it.
    static constexpr bool available = Robot::has_plant && !Robot::damped;

    /// Gains of the errors of q, qd, qdd, qddd, joint by joint; and of k and kd at joints with two motors.
    std::array<JointVector<Robot>, 4> gains{};
    std::array<Scalar, 2> stiffness_gains{};

    /// All poles at -w, rad/s.
    void place_poles(Scalar w) noexcept
    {
        for (std::size_t i = 0; i < Robot::joints; ++i) {
            gains[0][i] = w * w * w * w;
            gains[1][i] = 4 * w * w * w;
            gains[2][i] = 6 * w * w;
            gains[3][i] = 4 * w;
        }
    }

    /// Starts the integrators of rigid joints at a motion.
    void restart(const Setpoint<Robot> &reference) noexcept
    {
        qdd_ = reference.qdd;
        qddd_ = reference.qddd;
    }

    /// The setpoint, in the measured state, whose feedforward is the motor effort; period in s, for the integrators.
    Setpoint<Robot> setpoint(const Setpoint<Robot> &reference, const Measurement<Robot> &measured,
                             Scalar period) noexcept
    {
        Setpoint<Robot> x = reference;
        if constexpr (available) {
            const SpringEfforts<Robot> springs = state(reference, measured, x);
            for (std::size_t i = 0; i < Robot::joints; ++i) {
                // Two motors move the joint: its stiffness follows as well.
                if (paired(i)) {
                    x.kdd[i] += stiffness_gains[0] * (reference.k[i] - springs.k[i]) +
                                stiffness_gains[1] * (reference.kd[i] - springs.kd[i]);
                    x.k[i] = springs.k[i];
                    x.kd[i] = springs.kd[i];
                }
                x.qdddd[i] += gains[0][i] * (reference.q[i] - x.q[i]) + gains[1][i] * (reference.qd[i] - x.qd[i]) +
                              gains[2][i] * (reference.qdd[i] - x.qdd[i]) +
                              gains[3][i] * (reference.qddd[i] - x.qddd[i]);
            }
            for (std::size_t i = 0; i < Robot::joints; ++i) {
                qdd_[i] += period * (qddd_[i] + period / 2 * x.qdddd[i]);
                qddd_[i] += period * x.qdddd[i];
            }
            // A measurement that is not finite must not stay in the integrators.
            if (!finite(x.qdddd, qdd_, qddd_))
                restart(reference);
        }
        return x;
    }

  private:
    static constexpr bool paired(std::size_t joint) noexcept
    {
        std::size_t motors = 0;
        for (const std::size_t own : Robot::motor_joint)
            motors += own == joint;
        return motors > 1;
    }

    /// Writes q, qd, qdd, qddd of the measured state: qdd = M^-1 (tau - C qd - ...), and its derivative.
    SpringEfforts<Robot> state(const Setpoint<Robot> &reference, const Measurement<Robot> &measured,
                               Setpoint<Robot> &x) const noexcept
    {
        struct Inputs {
            const JointVector<Robot> &q, &qd;
            const MotorVector<Robot> &theta, &thetad;
            const JointVector<Robot> &k, &kd;
        };
        SpringEfforts<Robot> springs;
        const Inputs inputs = {measured.q,          measured.qd,        measured.motor_position, measured.motor_velocity,
                               reference.k, reference.kd};
        Robot::spring_efforts(inputs, springs);
        x.q = measured.q;
        x.qd = measured.qd;
        x.qdddd = {};
        // Efforts are affine in qdd, and their rates in qddd, both with the slope M. At rigid joints both are known.
        for (std::size_t i = 0; i < Robot::joints; ++i) {
            x.qdd[i] = Robot::rigid[i] ? qdd_[i] : 0;
            x.qddd[i] = Robot::rigid[i] ? qddd_[i] : 0;
        }
        std::array<Scalar, Robot::joints * Robot::joints> M;
        Robot::mass_matrix(x, M);
        factorize(M);
        Command<Robot> y;
        Robot::inverse_dynamics(x, y);
        solve(M, springs.tau, y.tau, x.qdd);
        Robot::inverse_dynamics(x, y);
        solve(M, springs.taud, y.taud, x.qddd);
        x.qdddd = reference.qdddd;
        return springs;
    }

    /// Cholesky's factor of M without rows and columns of rigid joints, in place.
    static void factorize(std::array<Scalar, Robot::joints * Robot::joints> &M) noexcept
    {
        constexpr std::size_t n = Robot::joints;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j <= i; ++j)
                if (Robot::rigid[i] || Robot::rigid[j])
                    M[i * n + j] = i == j ? 1 : 0;
            for (std::size_t j = 0; j < i; ++j) {
                for (std::size_t k = 0; k < j; ++k)
                    M[i * n + j] -= M[i * n + k] * M[j * n + k];
                M[i * n + j] /= M[j * n + j];
                M[i * n + i] -= M[i * n + j] * M[i * n + j];
            }
            M[i * n + i] = std::sqrt(M[i * n + i]);
        }
    }

    /// Writes the solution of M x = wanted - given to the entries of x at elastic joints.
    static void solve(const std::array<Scalar, Robot::joints * Robot::joints> &L, const JointVector<Robot> &wanted,
                      const JointVector<Robot> &given, JointVector<Robot> &x) noexcept
    {
        constexpr std::size_t n = Robot::joints;
        JointVector<Robot> b;
        for (std::size_t i = 0; i < n; ++i) {
            b[i] = Robot::rigid[i] ? 0 : wanted[i] - given[i];
            for (std::size_t j = 0; j < i; ++j)
                b[i] -= L[i * n + j] * b[j];
            b[i] /= L[i * n + i];
        }
        for (std::size_t i = n; i-- > 0;) {
            for (std::size_t j = i + 1; j < n; ++j)
                b[i] -= L[j * n + i] * b[j];
            b[i] /= L[i * n + i];
        }
        for (std::size_t i = 0; i < n; ++i)
            if (!Robot::rigid[i])
                x[i] = b[i];
    }

    JointVector<Robot> qdd_{}, qddd_{};
};

} // namespace eom

#endif
