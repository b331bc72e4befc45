// SPDX-License-Identifier: Apache-2.0
// Deflections of springs with dampers along a stream of setpoints.
#ifndef EOM_DEFLECTION_FILTER_HPP
#define EOM_DEFLECTION_FILTER_HPP

#include <cstdint>

#include "setpoint.hpp"

namespace eom {

namespace detail {

/// phi_0(-z) ... phi_6(-z), z >= 0: M. Hochbruck and A. Ostermann, "Exponential integrators", Acta Numerica 19 (2010).
inline std::array<double, 7> phi_functions(double z) noexcept
{
    constexpr double factorial[7] = {1, 1, 2, 6, 24, 120, 720};
    std::array<double, 7> phi{};
    if (z <= 4) {
        // The highest by a sum of positive terms, the lower ones by downward recursion, which is stable.
        double term = 1, total = 1.0 / 6;
        for (int j = 1; j < 40; ++j) {
            term *= z / j;
            total += term / (j + 6);
        }
        phi[6] = std::exp(-z) * total / factorial[5];
        for (std::size_t k = 6; k-- > 0;)
            phi[k] = 1 / factorial[k] - z * phi[k + 1];
        return phi;
    }
    phi[0] = std::exp(-z);
    for (std::size_t k = 0; k < 6; ++k)
        phi[k + 1] = (1 / factorial[k] - phi[k]) / z;
    return phi;
}

} // namespace detail

/// Filters D deltad + K delta = tau from effort to deflection, driven by the stamps of setpoints.
///
/// A step goes from the last answered setpoint to the next, with the effort between them a quintic in time. Without a
/// stamp, and where the stamp goes back or more than 0.1 s ahead, the deflection is that without transient.
template <class Robot>
class DeflectionFilter {
  public:
    /// Longest time between two setpoints of a stream, ns.
    static constexpr std::int64_t LONGEST_STEP = 100'000'000;

    /// Starts again without transient.
    void forget() noexcept { stamp_ = 0; }

    /// Writes the deflections at a stamp, ns, under efforts with two time derivatives.
    void at(std::int64_t stamp, const Command<Robot> &efforts, JointVector<Robot> &deflection) const noexcept
    {
        const std::int64_t step = stamp - stamp_;
        const bool continues = stamp != 0 && stamp_ != 0 && step >= 0 && step <= LONGEST_STEP;
        for (std::size_t i = 0; i < Robot::joints; ++i) {
            if (!(Robot::damping[i] > 0))
                deflection[i] = 0;
            else if (!continues)
                deflection[i] = settled(i, efforts);
            else
                deflection[i] = step == 0 ? deflection_[i] : advanced(i, efforts, static_cast<double>(step) * 1e-9);
        }
    }

    /// Starts the next step here, where the setpoint of that stamp has been answered.
    void keep(std::int64_t stamp, const Command<Robot> &efforts, const JointVector<Robot> &deflection) noexcept
    {
        stamp_ = stamp;
        efforts_ = efforts;
        deflection_ = deflection;
    }

  private:
    using Scalar = typename Robot::Scalar;

    Scalar settled(std::size_t i, const Command<Robot> &y) const noexcept
    {
        const double T = Robot::damping[i] / Robot::damped_stiffness[i];
        return static_cast<Scalar>((y.tau[i] - T * (y.taud[i] - T * y.taudd[i])) / Robot::damped_stiffness[i]);
    }

    Scalar advanced(std::size_t i, const Command<Robot> &y, double dt) const noexcept
    {
        const double K = Robot::damped_stiffness[i], D = Robot::damping[i];
        const std::array<double, 7> phi = detail::phi_functions(dt * K / D);
        const double p0 = efforts_.tau[i], p1 = dt * efforts_.taud[i], p2 = dt * dt * efforts_.taudd[i];
        // Differences at the end from the parabola of the start.
        const double a = y.tau[i] - p0 - p1 - 0.5 * p2, b = dt * y.taud[i] - p1 - p2, c = dt * dt * y.taudd[i] - p2;
        const double terms[6] = {p0,
                                 p1,
                                 p2,
                                 60 * a - 24 * b + 3 * c,
                                 -360 * a + 168 * b - 24 * c,
                                 720 * a - 360 * b + 60 * c};
        double sum = 0;
        for (std::size_t k = 0; k < 6; ++k)
            sum += phi[k + 1] * terms[k];
        return static_cast<Scalar>(phi[0] * deflection_[i] + dt / D * sum);
    }

    std::int64_t stamp_ = 0;
    Command<Robot> efforts_;
    JointVector<Robot> deflection_{};
};

} // namespace eom

#endif
