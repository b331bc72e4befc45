// SPDX-License-Identifier: Apache-2.0
// Time in which motors may make the step to the next setpoint of a stream.
#ifndef EOM_STEP_TIME_HPP
#define EOM_STEP_TIME_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

#include "limits.hpp"

namespace eom {

/// Time in which motors may make the step to the next setpoint: that since the last command, or between their stamps, with jitter
/// and what earlier steps have left of theirs, so that all steps of a stream together take no more time than passes.
///
/// All times are in ns. Invariants: 0 <= unchanged, silent and lag <= longest gap, and 0 <= spare <= most spare. A step that is
/// judged changes spare and lag only once it is kept.
class StepTime {
  public:
    /// The longest time without a setpoint within a stream.
    void limit(std::int64_t longest_gap) noexcept { longest_gap_ = longest_gap; }

    /// A cycle after a time.
    void pass(std::int64_t time) noexcept
    {
        passed_ = std::min(time, longest_gap_);
        unchanged_ = std::min(unchanged_ + time, longest_gap_);
        silent_ = std::min(silent_ + time, longest_gap_);
    }

    /// Whether the last command is older than the last cycle: motors stand there.
    bool stands() const noexcept { return unchanged_ > passed_; }

    /// Another step is to be judged: that of a motion of the loop.
    void judge() noexcept { used_ = next_lag_ = 0; }

    /// Another step is to be judged: to a setpoint of a stream that goes on or begins, a time after the last one by their stamps, if
    /// both have one. What waits in a gap of a stream has its time.
    void judge(bool goes_on, std::optional<std::int64_t> between) noexcept
    {
        used_ = 0;
        between_ = std::max<std::int64_t>(between.value_or(0), 0); // after one that was ahead of the stream, none is late
        next_lag_ = between ? std::clamp<std::int64_t>(lag_ + unchanged_ - between_, 0, longest_gap_) : 0;
        most_spare_ = goes_on ? std::max({MOST_SPARE, most_spare_ - silent_, silent_, next_lag_}) : MOST_SPARE;
        spare_ = std::min(spare_, most_spare_);
        silent_ = 0;
    }

    /// Time in which the step to the setpoint must be possible.
    std::int64_t left() const noexcept { return std::min(unchanged_ + spare_, STAMP_JITTER + std::max(unchanged_, between_)); }

    /// Time that motors take for the step.
    void use(std::int64_t time) noexcept { used_ = time; }

    /// The step that was judged is commanded.
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
    // Of the last cycle; since the last command that was new; and since the last setpoint, also a refused one.
    std::int64_t passed_ = 0, unchanged_ = 0, silent_ = 0;
    // What steps before have left of the time that has passed, and the most.
    std::int64_t spare_ = MOST_SPARE, most_spare_ = MOST_SPARE;
    // Time by which the stream has come later than by its stamps.
    std::int64_t lag_ = 0;
    // Of the step that is judged: time between stamps, time that motors take, and the lag with it.
    std::int64_t between_ = 0, used_ = 0, next_lag_ = 0;
};

} // namespace eom

#endif
