// SPDX-License-Identifier: Apache-2.0
// Whether an arm is where it is commanded to be, by what is measured of it.
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

/// Times of commands and of measurements, ns, and what these say.
template <class Robot>
class Whereabouts {
  public:
    /// Where the arm is: as commanded; elsewhere, while it is commanded; or moved, while nothing was commanded.
    enum class Place { commanded, elsewhere, moved };

    /// Nothing has been sent.
    void restart() noexcept
    {
        sent_at_ = moved_at_ = LONG_AGO;
        strays_ = NEVER;
    }

    /// A call at a time of the clock; whether the arm is elsewhere in it.
    void ask(std::int64_t now) noexcept
    {
        follow_clock(now);
        asked_at_ = now;
    }
    bool strays() const noexcept { return strays_ == asked_at_; }

    /// A cycle after a time, with what is measured.
    void pass(std::int64_t step, const Measurement<Robot> &measured) noexcept
    {
        steady_ = jumps(measured) ? 0 : std::min(steady_ + step, LONGEST_GAP);
    }
    /// The end of a cycle at a time, with what was measured.
    void see(std::int64_t now, const Measurement<Robot> &measured) noexcept
    {
        if (measured.links || measured.motors)
            seen_ = measured, seen_at_ = now;
    }
    /// A sample contradicts the ones before, and was left out: what is measured is that before it.
    void doubt() noexcept { steady_ = 0; }
    /// Whether no sample has jumped for a while, so that what is measured counts.
    bool steady() const noexcept { return steady_ >= LONGEST_GAP; }

    /// Notes that a position is sent at a time.
    void send(std::int64_t now, const JointVector<Robot> &q) noexcept
    {
        if (moved_at_ == LONG_AGO || apart(q, stays_, AT_REST)) {
            moved_at_ = now;
            stays_ = q;
        }
        sent_at_ = now;
    }
    /// Time at which the position commanded last has changed.
    std::int64_t moved_at() const noexcept { return moved_at_; }

    /// Move times that are after the present time `now`, ns, with a clock that has gone back.
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

    /// Where the arm is at a time, further than a distance from its command or not, by what is measured, also as of motors that
    /// pass to another mode; while the loop moves it, and where all ends, or not. See ControlLoop::locate().
    ///
    ///     commands are sent?   and                                              an arm further away
    ///     no, for LONGEST_GAP  the loop moves it                                is as commanded: it is on its way
    ///     no                   samples jump, unless all ends                    is elsewhere, and strays
    ///     no                   samples are steady                               was moved
    ///     yes                  its position has changed within LONGEST_GAP      is as commanded: it follows
    ///     yes                  all ends, and the loop does not move it          was moved, and strays
    ///     yes                  else                                             is elsewhere, and strays
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

    /// Whether an arm at rest is away from its command: by its motors, which a push leaves there, or else by its links.
    static bool is_elsewhere(const LoopOutput<Robot> &output, const Measurement<Robot> &measured, double farthest) noexcept
    {
        const auto &x = output.setpoint;
        const auto &y = output.command;
        return measured.motors
                   ? finite(measured.motor_position) && is_away(measured.motor_position, y.motor_position, y.motor_velocity, farthest)
                   : measured.links && finite(measured.q) && is_away(measured.q, x.q, x.qd, farthest);
    }

    /// Whether a position is further than a distance from a commanded one, and from where drives go on to with the commanded velocity:
    /// they pass the position by up to its way in twice their damping ratio, divided by their natural frequency, at most LONGEST_GAP.
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

    /// Whether what is measured is away from where it was in the last cycle: a wrong sample, or an arm that was moved.
    bool jumps(const Measurement<Robot> &measured) const noexcept
    {
        const double jump = MotionCheck<double, 1>::MAX_JUMP;
        return measured.jumps || (measured.motors && seen_.motors && apart(measured.motor_position, seen_.motor_position, jump)) ||
               (measured.links && seen_.links && apart(measured.q, seen_.q, jump));
    }

    // Of the last command, of the first one at its position, of the last cycle that the arm did not follow, and of the last call.
    std::int64_t sent_at_ = LONG_AGO, moved_at_ = LONG_AGO, strays_ = NEVER, asked_at_ = 0;
    JointVector<Robot> stays_{};
    // What was measured last, when, and for how long without a jump.
    Measurement<Robot> seen_;
    std::int64_t seen_at_ = LONG_AGO, steady_ = LONGEST_GAP;
};

} // namespace eom

#endif
