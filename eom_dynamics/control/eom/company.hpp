// SPDX-License-Identifier: Apache-2.0
// Auxiliary inputs (tool wrench, stiffness, base motion) of motions without their own: stops, trajectories, targets.
#ifndef EOM_COMPANY_HPP
#define EOM_COMPANY_HPP

#include <algorithm>

#include "setpoint.hpp"

namespace eom {

/// Wrench, stiffness and base motion, continued from a setpoint with their rates; the rates fade to zero within a given time.
template <class Robot>
class Company {
  public:
    using Scalar = typename Robot::Scalar;

    /// Start from setpoint `from`; rates fade within `time` s.
    void begin(const Setpoint<Robot> &from, double time) noexcept
    {
        T_ = time;
        const auto none = [](const auto &...values) {
            return (std::all_of(values.begin(), values.end(), [](Scalar x) { return x == 0; }) && ...);
        };
        from_ = from;
        fades_ = !none(from.Wd, from.Wdd, from.kd, from.kdd) ||
                 (from.on_base && !none(from.base.wd, from.base.wdd, from.base.wddd, from.base.fd, from.base.fdd));
    }

    /// Returns true if the inputs change.
    bool fades() const noexcept { return fades_; }

    /// Set the auxiliary inputs of x to their values `time` s after the start.
    void accompany(Setpoint<Robot> &x, double time) const noexcept
    {
        x.W = from_.W, x.Wd = from_.Wd, x.Wdd = from_.Wdd;
        x.k = from_.k, x.kd = from_.kd, x.kdd = from_.kdd;
        static_cast<OptionalBase<Scalar> &>(x) = from_;
        if (!fades_)
            return;
        const double T = T_, u = T > 0 ? std::min(time / T, 1.0) : 1;
        settle(u, T, x.W, x.Wd, x.Wdd);
        settle(u, T, x.k, x.kd, x.kdd);
        if (x.on_base) {
            settle(u, T, x.base.w, x.base.wd, x.base.wdd, x.base.wddd);
            settle(u, T, x.base.f, x.base.fd, x.base.fdd);
        }
    }

  private:
    /// Advance x, xd and xdd from the start of the fade to the fraction u of its duration T: polynomial of degree four, C2.
    template <class Values>
    static void settle(double u, double T, Values &x, Values &xd, Values &xdd) noexcept
    {
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double v = static_cast<double>(xd[i]), a = static_cast<double>(xdd[i]);
            const double of_rate = u * (1 - u * u * (1 - u / 2)), of_second = u * u * (0.5 - u * (2.0 / 3 - u / 4));
            x[i] += static_cast<Scalar>(T * (v * of_rate + T * a * of_second));
            xd[i] = static_cast<Scalar>(v * (1 - u * u * (3 - 2 * u)) + T * a * u * (1 - u) * (1 - u));
            xdd[i] = u < 1 ? static_cast<Scalar>(-6 * v * u * (1 - u) / T + a * (1 - u) * (1 - 3 * u)) : 0;
        }
    }

    /// Also with a third derivative: degree six, C3.
    template <class Values>
    static void settle(double u, double T, Values &x, Values &xd, Values &xdd, Values &xddd) noexcept
    {
        const double r = 1 - u;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double v = static_cast<double>(xd[i]), a = T * static_cast<double>(xdd[i]);
            const double j = T * T / 2 * static_cast<double>(xddd[i]);
            const double of_rate = u * (1 - u * u * u * (2.5 - u * (3 - u)));
            const double of_second = u * u * (0.5 - u * u * (1.5 - u * (1.6 - u / 2)));
            const double of_third = u * u * u * (1.0 / 3 - u * (0.75 - u * (0.6 - u / 6)));
            x[i] += static_cast<Scalar>(T * (v * of_rate + a * of_second + j * of_third));
            xd[i] = static_cast<Scalar>(r * r * r * (v * (1 + u * (3 + 6 * u)) + u * (a * (1 + 3 * u) + u * j)));
            xdd[i] = xddd[i] = 0;
            if (u < 1) {
                xdd[i] = static_cast<Scalar>(
                    r * r / T * (-30 * v * u * u + a * (1 + u * (2 - 15 * u)) + j * u * (2 - 5 * u)));
                xddd[i] = static_cast<Scalar>(
                    r / (T * T) *
                    (-60 * v * u * (1 - 2 * u) - 12 * a * u * (3 - 5 * u) + 2 * j * (1 - u * (8 - 10 * u))));
            }
        }
    }

    Setpoint<Robot> from_;
    double T_ = 0; // fade time of the rates, s
    bool fades_ = false;
};

} // namespace eom

#endif
