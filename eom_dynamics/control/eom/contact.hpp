// SPDX-License-Identifier: Apache-2.0
// Contact detection by external efforts beyond thresholds, and a history of commanded positions to retract along.
#ifndef EOM_CONTACT_HPP
#define EOM_CONTACT_HPP

#include <algorithm>
#include <cmath>
#include <vector>

#include "external_effort.hpp"

namespace eom {

/// Contact detector for the external efforts of an observer.
template <class Robot>
class ContactWatch {
  public:
    /// Contact ends below this fraction of the threshold.
    static constexpr double ENDED = 0.7;

    /// Thresholds of each joint: errors over ascending speeds, joint by joint, and noise, added as root sum of squares.
    std::vector<double> speeds, errors, noise;

    bool on() const noexcept { return !noise.empty(); }
    bool settled() const noexcept { return settled_; }
    bool found() const noexcept { return found_; }
    const Touched &touched() const noexcept { return touched_; }

    double threshold(std::size_t joint, double speed) const noexcept
    {
        const std::size_t count = speeds.size() / noise.size();
        const double *x = speeds.data() + joint * count, *y = errors.data() + joint * count;
        const auto k = static_cast<std::size_t>(std::upper_bound(x, x + count, speed) - x);
        const double error = k == 0       ? y[0]
                             : k == count ? y[count - 1]
                                          : y[k - 1] + (y[k] - y[k - 1]) * (speed - x[k - 1]) / (x[k] - x[k - 1]);
        return std::sqrt(error * error + noise[joint] * noise[joint]);
    }

    void restart() noexcept { found_ = settled_ = false; }

    /// Process a sample of the observer. Returns true if contact starts. Contact lasts while samples are missing or the observer
    /// settles.
    bool update(Sample sample, const ExternalEffort<Robot> &observer) noexcept
    {
        const Sensed<Robot> &x = observer.sensed();
        if (sample == Sample::started)
            settles_ = x.time + observer.settling();
        settled_ = x.time >= settles_;
        if (!settled_)
            return false;
        double most = 0;
        Touched largest{};
        for (std::size_t i = 0; i < noise.size(); ++i) {
            const double effort = observer.links.value[i], limit = threshold(i, std::fabs(x.qd[i]));
            if (std::fabs(effort) > most * limit) {
                most = std::fabs(effort) / limit;
                largest = {i, effort, limit};
            }
        }
        const bool before = found_;
        found_ = most > (before ? ENDED : 1);
        if (found_)
            touched_ = largest;
        return found_ && !before;
    }

  private:
    Touched touched_{};
    double settles_ = 0; ///< settling end, s, on the clock of samples
    bool found_ = false, settled_ = false;
};

/// History of commanded positions of the last 0.2 s.
template <class Robot>
class Past {
  public:
    static constexpr std::int64_t STEP = 10'000'000; ///< between positions, ns
    static constexpr std::size_t COUNT = 20;         ///< number of positions

    void restart() noexcept { count_ = 0; }

    void record(std::int64_t now, const JointVector<Robot> &q) noexcept
    {
        if (count_ > 0 && std::abs(now - last_) < STEP)
            return;
        last_ = now;
        q_[count_++ % COUNT] = q;
    }

    /// Oldest position, or null.
    const JointVector<Robot> *oldest() const noexcept
    {
        return count_ == 0 ? nullptr : &q_[count_ < COUNT ? 0 : count_ % COUNT];
    }

  private:
    std::array<JointVector<Robot>, COUNT> q_;
    std::size_t count_ = 0;
    std::int64_t last_ = 0;
};

} // namespace eom

#endif
