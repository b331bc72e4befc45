// SPDX-License-Identifier: Apache-2.0
// Time available to motors for the step to the next setpoint of a stream.
#ifndef EOM_STEP_TIME_HPP
#define EOM_STEP_TIME_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

#include "limits.hpp"

namespace eom {

/// Tracks the time available for motor steps: the time since the last command or between stamps, plus jitter and unused time of
/// earlier steps. All steps of a stream together use no more time than elapses. All times are in ns. Invariants: 0 <= unchanged,
/// silent and lag <= longest gap, and 0 <= spare <= most spare. Only keep() commits spare and lag of a checked step.
class StepTime {
  public:
    /// Set the longest gap within a stream.
    void limit(std::int64_t longest_gap) noexcept { longest_gap_ = longest_gap; }

    /// Advance by one cycle.
    void pass(std::int64_t time) noexcept
    {
        passed_ = std::min(time, longest_gap_);
        unchanged_ = std::min(unchanged_ + time, longest_gap_);
        silent_ = std::min(silent_ + time, longest_gap_);
    }

    /// Returns true if the last command is older than the last cycle, so that the motors hold it.
    bool stands() const noexcept { return unchanged_ > passed_; }

    /// Check a step of a motion of the loop.
    void judge() noexcept { used_ = next_lag_ = 0; }

    /// Check a step to a setpoint of a stream that continues (`goes_on`) or starts, `between` after the last setpoint by their
    /// stamps. Setpoints that waited in a gap may use its time.
    void judge(bool goes_on, std::optional<std::int64_t> between) noexcept
    {
        used_ = 0;
        between_ = std::max<std::int64_t>(between.value_or(0), 0); // a setpoint after an early setpoint is not late
        next_lag_ = between ? std::clamp<std::int64_t>(lag_ + unchanged_ - between_, 0, longest_gap_) : 0;
        most_spare_ = goes_on ? std::max({MOST_SPARE, most_spare_ - silent_, silent_, next_lag_}) : MOST_SPARE;
        spare_ = std::min(spare_, most_spare_);
        silent_ = 0;
    }

    /// Available time for the step.
    std::int64_t left() const noexcept { return std::min(unchanged_ + spare_, STAMP_JITTER + std::max(unchanged_, between_)); }

    /// Set the time that the motors need for the step.
    void use(std::int64_t time) noexcept { used_ = time; }

    /// Commit the checked step.
    void keep() noexcept
    {
        spare_ = std::clamp<std::int64_t>(unchanged_ + spare_ - used_, 0, most_spare_);
        lag_ = next_lag_;
        unchanged_ = 0;
    }

  private:
    static constexpr std::int64_t STAMP_JITTER = std::int64_t(1e9 * @stamp_jitter@),
                                  MOST_SPARE = LONGEST_RESPONSE_STEP + STAMP_JITTER;

    std::int64_t longest_gap_ = LONGEST_GAP;
    // Time of the last cycle; since the last new command; since the last setpoint, accepted or refused.
    std::int64_t passed_ = 0, unchanged_ = 0, silent_ = 0;
    // Unused time of earlier steps, and its maximum.
    std::int64_t spare_ = MOST_SPARE, most_spare_ = MOST_SPARE;
    // Delay of the stream relative to its stamps.
    std::int64_t lag_ = 0;
    // Checked step: time between stamps, time that motors need, and resulting lag.
    std::int64_t between_ = 0, used_ = 0, next_lag_ = 0;
};

} // namespace eom

#endif
