// SPDX-License-Identifier: Apache-2.0
// Auxiliary inputs (tool wrench, stiffness, base motion) of motions without their own: stops, trajectories, targets.
#ifndef EOM_COMPANY_HPP
#define EOM_COMPANY_HPP

#include <algorithm>

#include "fade.hpp"

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
        const double u = T_ > 0 ? std::min(time / T_, 1.0) : 1;
        settle(u, x.W, x.Wd, x.Wdd);
        settle(u, x.k, x.kd, x.kdd);
        if (x.on_base) {
            settle(u, x.base.w, x.base.wd, x.base.wdd, &x.base.wddd);
            settle(u, x.base.f, x.base.fd, x.base.fdd);
        }
    }

  private:
    /// Advance x and its rates from the start of the fade to the fraction u of its duration: the rate, extrapolated by its own
    /// derivatives, times the weight of the fade.
    template <class Values>
    void settle(double u, Values &x, Values &xd, Values &xdd, Values *xddd = nullptr) const noexcept
    {
        const double T = T_, t = T * u, weight = Fade::weight_at(u);
        const double slope = T > 0 ? Fade::slope_at(u) / T : 0, bend = T > 0 ? Fade::bend_at(u) / (T * T) : 0;
        const auto [whole, first, second] = Fade::integrals(u);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double v = xd[i], a = xdd[i], j = xddd ? static_cast<double>((*xddd)[i]) : 0;
            const double rate = v + t * (a + t * j / 2), change = a + t * j;
            x[i] += static_cast<Scalar>(T * (v * whole + T * (a * first + T * j * second / 2)));
            xd[i] = static_cast<Scalar>(weight * rate);
            xdd[i] = static_cast<Scalar>(weight * change + slope * rate);
            if (xddd)
                (*xddd)[i] = static_cast<Scalar>(weight * j + 2 * slope * change + bend * rate);
        }
    }

    Setpoint<Robot> from_;
    double T_ = 0; // fade time of the rates, s
    bool fades_ = false;
};

} // namespace eom

#endif
