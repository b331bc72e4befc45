// SPDX-License-Identifier: Apache-2.0
// References that another controller writes in each cycle, of which it may leave jerk and snap out, or all but positions.
#ifndef EOM_REFERENCES_HPP
#define EOM_REFERENCES_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "loop.h"

namespace eom {

/// Refers a loop to numbers, of which NaN is one that was not written.
///
/// The numbers are rows of all joints: position to snap, then stiffness with two derivatives where it is commanded.
/// Stiffness that is missing is the nominal one, and its derivatives are zero.
class References {
  public:
    /// For a loop of so many joints.
    References(eom_loop &loop, std::size_t joints, bool commanded_stiffness)
        : missing(joints * (commanded_stiffness ? 8 : 5)), loop_(loop), joints_(joints), last_(2 * joints), next_(last_)
    {
        for (const char *name : {"q", "qd", "qdd", "qddd", "qdddd", "k", "kd", "kdd"})
            rows_.push_back(eom_loop_vector(&loop, "given", name));
    }

    /// What becomes of derivatives that are missing: jerk and snap are zero, or the slope of the derivative before since the
    /// last reference; or position to acceleration are a target, whose other derivatives are those of the motion to it.
    enum class Missing { zero, fit, target } derivatives = Missing::zero;
    /// Time by which the numbers are ahead, s: the reference is for so much earlier, by the Taylor polynomial.
    double lead = 0;
    /// Which numbers were missing in the last call of read().
    std::vector<char> missing;

    /// Forgets what has been read.
    void restart() noexcept { count_ = 0; }

    /// Rows that are required: position, velocity and acceleration, or position.
    std::size_t required() const noexcept { return derivatives == Missing::target ? 1 : 3; }

    /// Reads and clears the numbers of a time, ns; returns whether those are there that are required, of any joint for a
    /// target, so that the loop follows them. Call keep() if it does not refuse them.
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
            // One reference in a row less for each slope.
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

    /// Has the slopes of later references begin at the last one.
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
    // Accelerations and jerks of the last reference that was kept, and of the last one.
    std::vector<double> last_, next_;
    // References in a row, at most three, and their time, ns, of the one that was kept and of the last one.
    int count_ = 0, next_count_ = 0;
    std::int64_t time_ = 0, next_time_ = 0;
};

} // namespace eom

#endif
