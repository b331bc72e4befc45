// SPDX-License-Identifier: Apache-2.0
// Noise filter for dense target streams: the mean over the longest window that is consistent with the newest targets.
#ifndef EOM_TARGET_FILTER_HPP
#define EOM_TARGET_FILTER_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace eom {

/// Filters targets of a joint without velocities. Targets without noise are unchanged.
class TargetFilter {
  public:
    void reset() noexcept { count_ = window_ = waited_ = 0; }

    /// Process a target at `time`, s. Returns the filtered target.
    double take(double time, double target) noexcept
    {
        if (count_ == 0 || target != targets_[head_])
            changed_ = time;
        head_ = (head_ > 0 ? head_ : MOST) - 1;
        times_[head_] = times_[head_ + MOST] = time;
        targets_[head_] = targets_[head_ + MOST] = target;
        count_ = std::min(count_ + 1, MOST);
        const double *const times = times_.data() + head_, *const targets = targets_.data() + head_;
        while (times[count_ - 1] < time - LONGEST)
            --count_;
        const double sigma = count_ < LEAST || time - changed_ >= STAYS ? 0 : noise();
        if (sigma == 0) {
            window_ = 1;
            return held_ = target;
        }
        std::size_t few = 1;
        while (few < count_ && times[few] > time - NEWEST)
            ++few;
        window_ = std::max(std::min(window_ + 1, count_), few);
        double sum = 0, newest = 0;
        for (std::size_t i = 0; i < window_; ++i) {
            sum += targets[i];
            if (i + 1 == few)
                newest = sum / static_cast<double>(few);
        }
        const auto mean = [&] { return sum / static_cast<double>(window_); };
        while (window_ > few && std::fabs(mean() - newest) > SURE * sigma / std::sqrt(static_cast<double>(few)))
            sum -= targets[--window_];
        const double band = window_ > 2 * few ? sigma / std::sqrt(static_cast<double>(window_)) : 0;
        return held_ = std::clamp(held_, mean() - band, mean() + band);
    }

    /// Returns true if the newest target has been constant for a while at `time`, s, but the filter output differs.
    bool waits(double time) const noexcept { return filters() && time - changed_ >= STAYS; }
    bool filters() const noexcept { return count_ > 0 && held_ != targets_[head_]; } ///< the output differs from the newest target
    /// Set the output to the newest target.
    double pass() noexcept { return held_ = targets_[head_]; }

  private:
    /// Window size, minimum size for a noise estimate, differences per estimate, and targets between estimates.
    static constexpr std::size_t MOST = 320, LEAST = 16, DIFFERENCES = 64, EVERY = 8;
    /// Longest window, s; newest targets, s; time until a target counts as constant, s; number of deviations that indicate motion.
    static constexpr double LONGEST = 0.3, NEWEST = 0.006, STAYS = 0.1, SURE = 3.4;

    /// Standard deviation from the median of third differences, which vanish for motion; updated every EVERY targets.
    double noise() noexcept
    {
        if (waited_ > 0) {
            --waited_;
            return sigma_;
        }
        waited_ = EVERY;
        std::array<double, DIFFERENCES> size;
        const std::size_t n = std::min(DIFFERENCES, count_ - 3);
        const double *const x = targets_.data() + head_;
        for (std::size_t i = 0; i < n; ++i)
            size[i] = std::fabs(x[i] - 3 * x[i + 1] + 3 * x[i + 2] - x[i + 3]);
        const auto middle = size.begin() + static_cast<std::ptrdiff_t>(n / 2);
        std::nth_element(size.begin(), middle, size.begin() + static_cast<std::ptrdiff_t>(n));
        return sigma_ = *middle / (0.6745 * std::sqrt(20.0));
    }

    // Newest entry first, at the head; stored twice.
    std::array<double, 2 * MOST> times_{}, targets_{};
    std::size_t head_ = 0, count_ = 0, window_ = 0, waited_ = 0;
    double held_ = 0, changed_ = 0, sigma_ = 0;
};

} // namespace eom

#endif
