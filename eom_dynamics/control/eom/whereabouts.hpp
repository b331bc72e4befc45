// SPDX-License-Identifier: Apache-2.0
// Tracking monitor: compares the measured arm with its commands.
#ifndef EOM_WHEREABOUTS_HPP
#define EOM_WHEREABOUTS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "impedance.hpp"
#include "loop_parameters.hpp"
#include "measurement_check.hpp"

namespace eom {

/// Detects an arm that does not follow its commands, or was moved. Times are in ns.
template <class Robot>
class Whereabouts {
  public:
    /// Result: as commanded; elsewhere while commanded; or moved while not commanded.
    enum class Place { commanded, elsewhere, moved };

    /// Reset to the state before the first command.
    void restart() noexcept
    {
        sent_at_ = moved_at_ = LONG_AGO;
        strays_ = NEVER;
    }

    /// Start a call at clock time `now`.
    void ask(std::int64_t now) noexcept
    {
        follow_clock(now);
        asked_at_ = now;
    }
    /// Returns true if the arm has lost tracking in this call.
    bool strays() const noexcept { return strays_ == asked_at_; }

    /// Update with the measurement of a cycle, `step` after the last cycle.
    void pass(std::int64_t step, const Measurement<Robot> &measured) noexcept
    {
        steady_ = jumps(measured) ? 0 : std::min(steady_ + step, LONGEST_GAP);
    }
    /// Commit the measurement at the end of a cycle.
    void see(std::int64_t now, const Measurement<Robot> &measured) noexcept
    {
        if (measured.links || measured.motors)
            seen_ = measured, seen_at_ = now;
    }
    /// Report a rejected sample, which contradicts earlier samples; `measured` is then older.
    void doubt() noexcept { steady_ = 0; }
    /// Returns true if no sample has jumped for LONGEST_GAP.
    bool steady() const noexcept { return steady_ >= LONGEST_GAP; }

    /// Record the position sent at `now`.
    void send(std::int64_t now, const JointVector<Robot> &q) noexcept
    {
        if (moved_at_ == LONG_AGO || apart(q, stays_, AT_REST)) {
            moved_at_ = now;
            stays_ = q;
        }
        sent_at_ = now;
    }
    /// Time of the last change of the commanded position.
    std::int64_t moved_at() const noexcept { return moved_at_; }

    /// Shift times after `now`, ns, when the clock has gone back.
    void follow_clock(std::int64_t now) noexcept
    {
        if (now < sent_at_) {
            moved_at_ -= sent_at_ - now;
            sent_at_ = now;
        }
        seen_at_ = std::min(seen_at_, now);
        if (strays_ > now)
            strays_ = NEVER;
    }

    /// Compare the arm with its command at `now`; `unshifted` excludes the position offsets of a mode change. `moves`: the loop
    /// moves the arm; `ends`: the loop is released. See ControlLoop::locate().
    ///
    ///     commands                 condition                                    an arm further away than `farthest`
    ///     none for LONGEST_GAP     `moves`                                      is as commanded, on its way
    ///     none for LONGEST_GAP     samples jump, and not `ends`                 is elsewhere, tracking lost
    ///     none for LONGEST_GAP     otherwise                                    was moved
    ///     sent                     position changed within LONGEST_GAP          is as commanded, following
    ///     sent                     `ends`, and not `moves`                      was moved, tracking lost
    ///     sent                     otherwise                                    is elsewhere, tracking lost
    Place look(std::int64_t now, const LoopOutput<Robot> &output, const Measurement<Robot> &measured,
               const Measurement<Robot> &unshifted, double farthest, bool moves, bool ends) noexcept
    {
        const bool idle = now - sent_at_ > LONGEST_GAP, rested = sent_at_ - moved_at_ > LONGEST_GAP;
        if (!(idle ? !moves : rested) || !(measured.jumps || is_elsewhere(output, unshifted, farthest)))
            return Place::commanded;
        const bool doubtful = idle && !ends && now - seen_at_ < LONGEST_GAP && (!steady() || jumps(measured));
        if (!idle || doubtful)
            strays_ = now;
        const bool moved = !measured.jumps && (idle ? !doubtful : ends && !moves);
        return moved ? Place::moved : Place::elsewhere;
    }

  private:
    static constexpr std::int64_t NEVER = std::numeric_limits<std::int64_t>::max(), LONG_AGO = -(NEVER / 2);

    /// Returns true if an arm at rest is away from its command: by its motors, which a push does not move, or else by its links.
    static bool is_elsewhere(const LoopOutput<Robot> &output, const Measurement<Robot> &measured, double farthest) noexcept
    {
        const auto &x = output.setpoint;
        const auto &y = output.command;
        return measured.motors
                   ? finite(measured.motor_position) && is_away(measured.motor_position, y.motor_position, y.motor_velocity, farthest)
                   : measured.links && finite(measured.q) && is_away(measured.q, x.q, x.qd, farthest);
    }

    /// Returns true if the position is more than `farthest` outside the range from the command to its extrapolation by LONGEST_GAP.
    /// Drives may pass the command by its velocity times 2 damping ratio / natural frequency.
    template <class Vector>
    static bool is_away(const Vector &measured, const Vector &commanded, const Vector &velocity, double farthest) noexcept
    {
        for (std::size_t i = 0; i < measured.size(); ++i) {
            const double way = static_cast<double>(velocity[i]) * seconds(LONGEST_GAP) / 2;
            if (std::fabs(measured[i] - commanded[i] - way) > farthest + std::fabs(way))
                return true;
        }
        return false;
    }

    /// Returns true if the measurement has jumped since the last cycle: a wrong sample, or an arm that was moved.
    bool jumps(const Measurement<Robot> &measured) const noexcept
    {
        const double jump = MotionCheck<double, 1>::MAX_JUMP;
        return measured.jumps || (measured.motors && seen_.motors && apart(measured.motor_position, seen_.motor_position, jump)) ||
               (measured.links && seen_.links && apart(measured.q, seen_.q, jump));
    }

    // Times: last command; first command at its position; last cycle without tracking; last call.
    std::int64_t sent_at_ = LONG_AGO, moved_at_ = LONG_AGO, strays_ = NEVER, asked_at_ = 0;
    JointVector<Robot> stays_{};
    // Last measurement, its time, and the time without a jump.
    Measurement<Robot> seen_;
    std::int64_t seen_at_ = LONG_AGO, steady_ = LONGEST_GAP;
};

} // namespace eom

#endif
