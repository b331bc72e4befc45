// SPDX-License-Identifier: Apache-2.0
// References that a chained controller writes in each cycle. Jerk and snap may be missing, or everything except positions.
#ifndef EOM_REFERENCES_HPP
#define EOM_REFERENCES_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "loop.h"

namespace eom {

/// Sets references of a loop from the numbers of a chained controller.
///
/// The numbers are rows of all joints: position to snap, then stiffness with two derivatives if it is commanded. NaN is a missing
/// value. Missing stiffness is nominal with zero derivatives.
class References {
  public:
    References(eom_loop &loop, std::size_t joints, bool commanded_stiffness)
        : missing(joints * (commanded_stiffness ? 8 : 5)), loop_(loop), joints_(joints), last_(2 * joints), next_(last_)
    {
        for (const char *name : {"q", "qd", "qdd", "qddd", "qdddd", "k", "kd", "kdd"})
            rows_.push_back(eom_loop_vector(&loop, "given", name));
    }

    /// Replacement of missing derivatives. `zero`: zero jerk and snap. `fit`: finite differences since the last reference for jerk
    /// and snap. `target`: position to acceleration are a target, and the motion to it determines the other derivatives.
    enum class Missing { zero, fit, target } derivatives = Missing::zero;
    /// Lead of the numbers, s; the reference is extrapolated back by its Taylor polynomial.
    double lead = 0;
    /// Missing values of the last read().
    std::vector<char> missing;

    void restart() noexcept { count_ = 0; }

    /// Number of required rows: position, velocity and acceleration, or only position.
    std::size_t required() const noexcept { return derivatives == Missing::target ? 1 : 3; }

    /// Read and clear the values at `now`, ns, and set the reference of the loop. Returns false if required values are missing; a
    /// target needs only one joint. Call keep() if the loop accepts the reference.
    bool read(double *values, std::int64_t now) noexcept
    {
        eom_loop_rest(&loop_, false);
        for (std::size_t k = 0; k < missing.size(); ++k) {
            missing[k] = std::isnan(values[k]);
            if (!missing[k])
                rows_[k / joints_][k % joints_] = values[k];
            values[k] = std::numeric_limits<double>::quiet_NaN();
        }
        const auto is_missing = [](char x) { return x != 0; };
        const auto *begin = missing.data(), *end = begin + required() * joints_;
        if (derivatives == Missing::target) {
            std::fill(missing.begin() + static_cast<std::ptrdiff_t>(joints_), missing.end(), char{});
            if (std::all_of(begin, end, is_missing))
                return false;
            for (std::size_t i = 0; i < joints_; ++i)
                if (missing[i])
                    rows_[0][i] = std::numeric_limits<double>::quiet_NaN();
            eom_loop_pursue(&loop_);
            return true;
        }
        if (std::any_of(begin, end, is_missing))
            return false;
        const std::int64_t gap = now - time_;
        next_count_ = gap > 0 && gap <= LONGEST_GAP ? std::min(count_ + 1, 3) : 1;
        next_time_ = now;
        for (std::size_t i = 0; i < joints_; ++i) {
            double &acceleration = rows_[2][i], &jerk = rows_[3][i], &snap = rows_[4][i];
            const double time = seconds(gap);
            // Each difference needs one more reference in a row.
            int count = derivatives == Missing::fit ? next_count_ : 0;
            if (missing[3 * joints_ + i] && count-- > 1)
                jerk = (acceleration - last_[2 * i]) / time;
            if (missing[4 * joints_ + i] && count > 1)
                snap = (jerk - last_[2 * i + 1]) / time;
            next_[2 * i] = acceleration;
            next_[2 * i + 1] = jerk;
        }
        eom_loop_follow(&loop_, now, lead);
        return true;
    }

    /// Accept the last reference: finite differences of later references start from it.
    void keep() noexcept
    {
        last_ = next_;
        count_ = next_count_;
        time_ = next_time_;
    }

  private:
    eom_loop &loop_;
    const std::size_t joints_;
    std::vector<double *> rows_;
    // Accelerations and jerks of the last accepted reference, and of the last reference.
    std::vector<double> last_, next_;
    // Number of references in a row, up to three, and time, ns: accepted, and last.
    int count_ = 0, next_count_ = 0;
    std::int64_t time_ = 0, next_time_ = 0;
};

} // namespace eom

#endif
