// SPDX-License-Identifier: Apache-2.0
// State machine of the loop: one table of states and events, the source of docs/reference/states.md.
#ifndef EOM_STATE_MACHINE_HPP
#define EOM_STATE_MACHINE_HPP

#include <array>
#include <cstddef>
#include <cstdint>

#include "reasons.hpp"

namespace eom {

/// States of the loop, independent of the control mode: position, impedance, or gravity compensation (hand guiding).
#define EOM_PHASES(X) \
    X(idle, "no motion has been asked for since the start, or since the arm was located elsewhere: the arm, if measured, is held; or it is guided by hand") \
    X(following, "setpoints are answered; between them, the last command stays in effect") \
    X(playing, "a trajectory is played at a pace, which is 0 in a pause") \
    X(aiming, "the arm moves to a target, or rests there") \
    X(stopping, "the arm comes to rest") \
    X(holding, "the arm rests at the end of a trajectory or a stop")
enum class Phase { EOM_PHASES(EOM_FIRST) };

/// Causes of a state, each with the positions for accepting setpoints again; stream checks follow (plausibility.hpp). If jumps are
/// refused, setpoints to a held arm are near in any case. Causes from `lost` on mean lost setpoints.
#define EOM_CAUSES(X) \
    X(done, anywhere, "the motion has ended as planned") \
    X(failed, near, "a command of the motion was refused, or the clock has gone back: the stop continues until the arm rests") \
    X(broken_off, near, "the control mode has changed") \
    X(asked, near_at_rest, "a stop was requested, or contact needs one") \
    X(lost, near, "setpoints are lost, on_setpoint_loss is hold") \
    X(ignored, anywhere, "setpoints are lost, on_setpoint_loss is none") \
    X(inactive, never, "setpoints are lost, on_setpoint_loss is deactivate")
enum class Cause { EOM_CAUSES(EOM_FIRST) stays /**< of a cell: the cause before the event */ };

/// Positions at which setpoints are accepted again: anywhere; near the command, each joint within start_tolerance; near it after
/// the stop; or nowhere.
enum class Resumption { anywhere, near, near_at_rest, never };

#define EOM_EVENTS(X) \
    X(setpoint, "a setpoint that passes all checks") \
    X(target, "a target, or a chunk of targets") \
    X(trajectory, "a trajectory, at its start") \
    X(retract, "contact begins, on_contact is retract: a motion to a target leads back to the command of 0.2 s before") \
    X(end, "the motion has come to its end") \
    X(pause, "a pause is requested: the pace becomes 0") \
    X(resume, "a pause ends: the pace becomes speed_scaling") \
    X(stop, "a stop is requested") \
    X(empty, "an empty trajectory: the active trajectory or target ends") \
    X(loss, "setpoints are lost, on_setpoint_loss is none") \
    X(loss_hold, "setpoints are lost, on_setpoint_loss is hold") \
    X(loss_deactivate, "setpoints are lost, on_setpoint_loss is deactivate") \
    X(contact, "contact begins, on_contact is stop or deactivate, or retract without a way back (nothing recorded, no limits of targets, no room, efforts beyond limits there, or a stop was requested)") \
    X(hands, "the control mode becomes gravity compensation") \
    X(mode, "the control mode leaves hand guiding, or impedance after the arm was pushed away: the arm is held") \
    X(payload, "the payload changes: efforts blend to the new payload") \
    X(break_off, "a command of the motion is refused, or the clock goes back") \
    X(halt, "the host ends the motion with its last command") \
    X(restart, "the loop restarts, or a motion ends before its first command") \
    X(restart_soon, "the loop restarts less than 0.1 s after its last cycle, with a command that the arm follows") \
    X(located, "the arm was moved while nothing was commanded: it is held at its measured position") \
    X(motion, "the arm is measured in motion at the start of the loop, or where it is located")
enum class Event { EOM_EVENTS(EOM_FIRST) };

#define EOM_ONE(...) +1
constexpr std::size_t PHASES = EOM_PHASES(EOM_ONE), EVENTS = EOM_EVENTS(EOM_ONE);

/// Inputs of the conditions.
struct Facts {
    bool commanded = false; ///< a command exists
    bool near = false;      ///< the reference is within start_tolerance of the command
    bool arrived = false;   ///< the arm rests at its target
    bool paused = false;    ///< a pause is requested, whether a trajectory is played or not
    bool touched = false;   ///< references are refused after contact
    bool led = false;       ///< a chained controller writes references
    bool by_hand = false;   ///< the mode is hand guiding
    bool strays = false;    ///< the arm deviates from its command
};

/// Condition of a cell; otherwise the event is refused or ignored.
/// - resumes: the cause accepts setpoints from there. arrived: the arm rests at its target, and the setpoint is near.
/// - remaining: no deactivation after a loss. unfailed: and no command was refused. unasked: and no stop was requested.
/// - unlost: a command exists, and setpoints are not lost.
enum class Condition { never, always, commanded, resumes, arrived, remaining, unfailed, unasked, unlost };

/// Effect of an event in a state: the next state and its cause, or the refusal.
struct Cell {
    Condition when;
    Phase next;
    Cause cause;
    Refusal otherwise;
};

/// Kinds of cells: name, condition, next state, its cause, refusal otherwise, and text of the page.
#define EOM_CELLS(X) \
    X(none, never, idle, done, none, "-") \
    X(stay, never, idle, done, none, "stays") \
    X(busy, never, idle, done, busy, "refused: a trajectory is active") \
    X(follow, always, following, done, far_from_hold, "**following**") \
    X(again, resumes, following, done, far_from_hold, "**following**, if the cause allows setpoints from there; else refused") \
    X(after, arrived, following, done, aiming, "**following**, if the arm rests at the target and the setpoint is near; else refused") \
    X(aim, always, aiming, done, none, "**aiming**") \
    X(take, unfailed, aiming, done, stopping, "**aiming**; refused after a refused command, or if the cause is inactive") \
    X(begin, unfailed, playing, done, stopping, "**playing**; refused after a refused command, or if the cause is inactive") \
    X(leave, remaining, aiming, done, inactive, "**aiming**; refused if the cause is inactive") \
    X(depart, remaining, playing, done, inactive, "**playing**; refused if the cause is inactive") \
    X(back, unasked, aiming, done, inactive, "**aiming**; a requested stop continues, as does a stop whose cause is inactive") \
    X(play, always, playing, done, none, "**playing**") \
    X(finish, always, holding, done, none, "**holding**, done") \
    X(rest, always, holding, stays, none, "**holding**, the cause stays") \
    X(brake, commanded, stopping, asked, none, "**stopping**, asked") \
    X(ask, remaining, stopping, asked, none, "**stopping**, asked; the cause inactive stays") \
    X(hold, remaining, holding, asked, none, "**holding**, asked; the cause inactive stays") \
    X(ignore, unlost, following, ignored, none, "**following**, ignored: the last command stays") \
    X(lose, unlost, stopping, lost, none, "**stopping**, lost") \
    X(quit, unlost, stopping, inactive, none, "**stopping**, inactive: the host deactivates the loop once the arm rests") \
    X(fail, always, stopping, failed, none, "**stopping**, failed") \
    X(settle, always, stopping, broken_off, none, "**stopping**, broken off") \
    X(yield, remaining, stopping, broken_off, none, "**stopping**, broken off; the cause inactive stays") \
    X(let, remaining, following, done, none, "**following**: the last command stays until setpoints are lost; the cause inactive stays") \
    X(forget, always, idle, done, none, "**idle**") \
    X(slow, always, stopping, done, none, "**stopping**, done")

namespace cells {
#define EOM_CELL(name, when, next, cause, otherwise, text) \
    constexpr Cell name{Condition::when, Phase::next, Cause::cause, Refusal::otherwise};
EOM_CELLS(EOM_CELL)
} // namespace cells

/// Cell of each event in the states idle, following, playing, aiming, stopping, holding.
#define EOM_TABLE(X) \
    X(setpoint, follow, follow, busy, after, again, again) \
    X(target, aim, aim, aim, aim, take, leave) \
    X(trajectory, play, play, play, play, begin, depart) \
    X(retract, aim, aim, aim, aim, back, back) \
    X(end, none, none, finish, none, rest, none) \
    X(pause, stay, stay, stay, stay, stay, stay) \
    X(resume, stay, stay, stay, stay, stay, stay) \
    X(stop, brake, brake, brake, brake, ask, hold) \
    X(empty, stay, stay, brake, brake, stay, stay) \
    X(loss, stay, ignore, stay, stay, stay, stay) \
    X(loss_hold, stay, lose, stay, lose, stay, stay) \
    X(loss_deactivate, stay, quit, stay, quit, stay, stay) \
    X(contact, brake, brake, brake, brake, ask, hold) \
    X(hands, forget, forget, forget, forget, forget, forget) \
    X(mode, settle, settle, settle, settle, yield, yield) \
    X(payload, stay, stay, stay, stay, stay, stay) \
    X(break_off, none, none, fail, fail, none, none) \
    X(halt, stay, stay, let, let, stay, stay) \
    X(restart, forget, forget, forget, forget, forget, forget) \
    X(restart_soon, slow, slow, slow, slow, slow, finish) \
    X(located, forget, let, none, forget, none, let) \
    X(motion, slow, slow, none, none, none, none)

constexpr Cell TABLE[EVENTS][PHASES] = {
#define EOM_ROW(event, idle, following, playing, aiming, stopping, holding) \
    {cells::idle, cells::following, cells::playing, cells::aiming, cells::stopping, cells::holding},
    EOM_TABLE(EOM_ROW)};

/// Refusal of an event in any state, checked before its cell in the order of EOM_BARS.
struct Bar {
    Event event;
    bool Facts::*fact;
    Refusal refusal;
};
#define EOM_BARS(X) \
    X(target, paused, paused) X(target, touched, in_contact) X(target, led, led) X(target, by_hand, led_by_hand) \
    X(target, strays, elsewhere) X(trajectory, touched, in_contact) X(trajectory, led, led) \
    X(trajectory, by_hand, led_by_hand) X(trajectory, strays, elsewhere) X(setpoint, by_hand, led_by_hand) \
    X(setpoint, touched, in_contact)
#define EOM_BAR(event, fact, refusal) {Event::event, &Facts::fact, Refusal::refusal},
constexpr Bar BARS[] = {EOM_BARS(EOM_BAR)};

/// State of the loop with its cause.
class StateMachine {
  public:
    Phase phase() const noexcept { return phase_; }
    Cause cause() const noexcept { return cause_; }
    bool is(Phase phase) const noexcept { return phase_ == phase; }

    /// Returns true while a stop commands the arm, in motion or at rest.
    bool braked() const noexcept { return is(Phase::stopping) || is(Phase::holding); }
    /// Returns true if setpoints are lost.
    bool lost() const noexcept { return cause_ >= Cause::lost; }
    /// Returns true if the last motion was stopped or aborted, except by a loss.
    bool held() const noexcept { return cause_ == Cause::failed || cause_ == Cause::broken_off || cause_ == Cause::asked; }
    /// Returns true if no setpoint, target or trajectory ends the state.
    bool gone() const noexcept { return resumption() == Resumption::never; }

    Resumption resumption() const noexcept
    {
#define EOM_RESUMPTION(cause, from, text) Resumption::from,
        constexpr Resumption FROM[] = {EOM_CAUSES(EOM_RESUMPTION)};
        return FROM[static_cast<std::size_t>(cause_)];
    }
    bool resumes_near() const noexcept
    {
        return resumption() == Resumption::near || resumption() == Resumption::near_at_rest;
    }

    /// Returns the refusal of the event, or `none`.
    Refusal refusal(Event event, const Facts &facts) noexcept
    {
        for (const Bar &bar : BARS)
            if (bar.event == event && facts.*bar.fact)
                return bar.refusal;
        const Cell &cell = cell_of(event);
        if (holds(cell.when, facts))
            return Refusal::none;
        ++visits_[index(event)][index(phase_)];
        const bool gone = this->gone() && (cell.when == Condition::resumes || cell.when == Condition::unfailed);
        return gone                                        ? Refusal::inactive
               : event == Event::setpoint && facts.arrived ? Refusal::far_from_hold // at rest at a target, but too far from it
                                                           : cell.otherwise;
    }

    /// Returns true if the event has an effect.
    bool admits(Event event, const Facts &facts = {}) const noexcept { return holds(cell_of(event).when, facts); }

    /// Process an event. Returns true if the condition of its cell is met; the state is then the next state of the cell.
    bool on(Event event, const Facts &facts = {}) noexcept
    {
        const Cell &cell = cell_of(event);
        ++visits_[index(event)][index(phase_)];
        if (!holds(cell.when, facts))
            return false;
        if (cell.cause != Cause::stays)
            cause_ = cell.cause;
        phase_ = cell.next;
        return true;
    }

    /// Number of occurrences of an event in a state.
    std::uint32_t visits(std::size_t event, std::size_t phase) const noexcept { return visits_[event][phase]; }

  private:
    template <class Enumeration>
    static constexpr std::size_t index(Enumeration x) noexcept
    {
        return static_cast<std::size_t>(x);
    }
    const Cell &cell_of(Event event) const noexcept { return TABLE[index(event)][index(phase_)]; }

    bool holds(Condition when, const Facts &facts) const noexcept
    {
        switch (when) {
        case Condition::never: return false;
        case Condition::commanded: return facts.commanded;
        case Condition::resumes:
            return resumption() == Resumption::anywhere ||
                   (facts.near && (resumption() == Resumption::near ||
                                   (resumption() == Resumption::near_at_rest && phase_ != Phase::stopping)));
        case Condition::arrived: return facts.arrived && facts.near;
        case Condition::remaining: return !gone();
        case Condition::unfailed: return !gone() && cause_ != Cause::failed;
        case Condition::unasked: return !gone() && cause_ != Cause::asked;
        case Condition::unlost: return facts.commanded && !lost();
        default: return true;
        }
    }

    Phase phase_ = Phase::idle;
    Cause cause_ = Cause::done;
    std::array<std::array<std::uint32_t, PHASES>, EVENTS> visits_{};
};

} // namespace eom

#endif
