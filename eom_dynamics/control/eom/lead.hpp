// SPDX-License-Identifier: Apache-2.0
// What the loop does, and what becomes of it: one table of states and events. docs/reference/states.md is made from it.
#ifndef EOM_LEAD_HPP
#define EOM_LEAD_HPP

#include <array>
#include <cstddef>
#include <cstdint>

#include "reasons.hpp"

namespace eom {

/// States of the loop, beside the control mode: position, impedance, or gravity compensation, in which hands lead.
#define EOM_PHASES(X) \
    X(idle, "nothing has been commanded since the start, or hands lead: the arm stays where it is") \
    X(following, "setpoints lead; between them, the last command stays") \
    X(playing, "a trajectory leads, at a pace, which is 0 in a pause") \
    X(aiming, "a target leads, also once the arm rests there") \
    X(stopping, "the arm comes to rest, while efforts fade in a ramp") \
    X(holding, "the arm rests at the end of a trajectory or a stop") \
    X(released, "setpoints are lost, and efforts have faded, or the host is to deactivate the loop")
enum class Phase { EOM_PHASES(EOM_FIRST) };

/// Why a state began, and from where setpoints lead again.
#define EOM_CAUSES(X) \
    X(done, anywhere, "the motion has ended as planned") \
    X(broken_off, near, "a command of the motion was refused, or the mode has changed") \
    X(asked, near_at_rest, "a stop was requested, or contact needs one") \
    X(lost, near, "setpoints are lost, on_setpoint_loss is hold") \
    X(ignored, anywhere, "setpoints are lost, on_setpoint_loss is none") \
    X(fades, never, "setpoints are lost, on_setpoint_loss is ramp") \
    X(inactive, never, "setpoints are lost, on_setpoint_loss is deactivate")
enum class Cause { EOM_CAUSES(EOM_FIRST) };

/// Where a setpoint must be to lead again: within resume_distance of the command, once a stop has ended, or nowhere.
enum class Resumption { anywhere, near, near_at_rest, never };

/// What may happen.
#define EOM_EVENTS(X) \
    X(setpoint, "a setpoint that passes all checks") \
    X(target, "a target, or a chunk of targets") \
    X(trajectory, "a trajectory, at its start") \
    X(retract, "contact begins, on_contact is retract: the motion back is one to a target") \
    X(end, "the motion has come to its end") \
    X(fade, "a ramp has come to its end") \
    X(pause, "a pause begins: the pace becomes 0") \
    X(resume, "a pause ends: the pace becomes speed_scaling") \
    X(stop, "a stop is requested") \
    X(empty, "an empty trajectory: what is played or aimed at ends") \
    X(loss, "setpoints are lost, on_setpoint_loss is none") \
    X(loss_hold, "the same, hold") \
    X(loss_ramp, "the same, ramp") \
    X(loss_deactivate, "the same, deactivate") \
    X(contact, "contact begins, on_contact is stop or deactivate, or hold where no trajectory could pause") \
    X(hands, "the mode becomes gravity compensation") \
    X(mode, "the mode changes where hands have led, or springs have given way: the arm is held") \
    X(payload, "the payload changes: efforts pass to it") \
    X(break_off, "a command of the motion is refused, or the clock goes back") \
    X(halt, "the host ends the motion with its last command") \
    X(restart, "the loop begins anew, also where a motion ends of which nothing has been commanded") \
    X(restart_soon, "the same, less than 0.1 s after a command that the arm follows") \
    X(located, "the arm was moved while nothing was commanded: it is held where it is measured") \
    X(motion, "the loop begins, and the arm is measured in motion")
enum class Event { EOM_EVENTS(EOM_FIRST) };

#define EOM_ONE(...) +1
constexpr std::size_t PHASES = EOM_PHASES(EOM_ONE), EVENTS = EOM_EVENTS(EOM_ONE);

/// What conditions of a cell are about, by the loop; the cause tells the rest.
struct Facts {
    bool commanded = false; ///< whether there is a command
    bool near = false;      ///< whether the reference is within resume_distance of the command
    bool arrived = false;   ///< whether the arm rests at its target
    bool paused = false, touched = false, led = false, by_hand = false, strays = false;
};

/// Under which condition a cell applies; otherwise the event is refused, or ignored.
enum class Condition { never, always, commanded, resumes, arrived, unfading, unasked, unlost };

/// What becomes of an event in a state: the next state and its cause, or why it is refused.
struct Cell {
    Condition when;
    Phase next;
    Cause cause;
    Refusal otherwise;
};

/// Kinds of cells: condition, next state, its cause, refusal otherwise, and text of the page.
#define EOM_CELLS(X) \
    X(none, never, idle, done, none, "-") \
    X(stay, never, idle, done, none, "stays") \
    X(busy, never, idle, done, busy, "refused: a trajectory leads") \
    X(gone, never, idle, done, released, "refused until a restart") \
    X(follow, always, following, done, far_from_hold, "**following**") \
    X(again, resumes, following, done, far_from_hold, "**following**, from where the cause allows; else refused") \
    X(after, arrived, following, done, aiming, "**following**, once the arm rests at the target, from near it; else refused") \
    X(aim, always, aiming, done, none, "**aiming**") \
    X(take, unfading, aiming, done, released, "**aiming**; refused in a ramp") \
    X(begin, unfading, playing, done, released, "**playing**; refused in a ramp") \
    X(back, unasked, aiming, done, released, "**aiming**; if a stop was requested, it goes on") \
    X(play, always, playing, done, none, "**playing**") \
    X(finish, always, holding, done, none, "**holding**, done") \
    X(rest, always, holding, done, none, "**holding**, the cause stays") \
    X(faded, always, released, fades, none, "**released**") \
    X(brake, commanded, stopping, asked, none, "**stopping**, asked") \
    X(ask, unfading, stopping, asked, none, "**stopping**, asked; a ramp goes on") \
    X(hold, always, holding, asked, none, "**holding**, asked") \
    X(ignore, unlost, following, ignored, none, "**following**, ignored: the last command stays") \
    X(lose, unlost, stopping, lost, none, "**stopping**, lost") \
    X(ramp, unlost, stopping, fades, none, "**stopping**, fades") \
    X(release, unlost, released, inactive, none, "**released**: the host stops the arm, and deactivates the loop") \
    X(settle, always, stopping, broken_off, none, "**stopping**, broken off") \
    X(let, always, following, done, none, "**following**: the last command stays until setpoints are lost") \
    X(forget, always, idle, done, none, "**idle**") \
    X(slow, always, stopping, done, none, "**stopping**, done") \
    X(keep, always, holding, done, none, "**holding**, done")

namespace cells {
#define EOM_CELL(name, when, next, cause, otherwise, text) \
    constexpr Cell name{Condition::when, Phase::next, Cause::cause, Refusal::otherwise};
EOM_CELLS(EOM_CELL)
} // namespace cells

/// The cell of each event, in the states idle, following, playing, aiming, stopping, holding, released.
#define EOM_TABLE(X) \
    X(setpoint, follow, follow, busy, after, again, again, gone) \
    X(target, aim, aim, aim, aim, take, aim, gone) \
    X(trajectory, play, play, play, play, begin, play, gone) \
    X(retract, aim, aim, aim, aim, back, back, gone) \
    X(end, none, none, finish, none, rest, none, none) \
    X(fade, none, none, none, none, faded, none, none) \
    X(pause, stay, stay, stay, stay, stay, stay, stay) \
    X(resume, stay, stay, stay, stay, stay, stay, stay) \
    X(stop, brake, brake, brake, brake, ask, hold, ask) \
    X(empty, stay, stay, brake, brake, stay, stay, stay) \
    X(loss, stay, ignore, stay, stay, stay, stay, none) \
    X(loss_hold, stay, lose, stay, lose, stay, stay, none) \
    X(loss_ramp, stay, ramp, stay, ramp, stay, stay, stay) \
    X(loss_deactivate, stay, release, stay, release, stay, stay, stay) \
    X(contact, brake, brake, brake, brake, ask, hold, ask) \
    X(hands, forget, forget, forget, forget, forget, forget, forget) \
    X(mode, settle, settle, settle, settle, settle, settle, settle) \
    X(payload, stay, stay, stay, stay, stay, stay, stay) \
    X(break_off, none, none, settle, settle, none, none, none) \
    X(halt, stay, stay, let, let, stay, stay, stay) \
    X(restart, forget, forget, forget, forget, forget, forget, forget) \
    X(restart_soon, slow, slow, slow, slow, slow, keep, none) \
    X(located, forget, let, none, forget, none, let, none) \
    X(motion, slow, none, none, none, none, none, none)

constexpr Cell TABLE[EVENTS][PHASES] = {
#define EOM_ROW(event, idle, following, playing, aiming, stopping, holding, released) \
    {cells::idle, cells::following, cells::playing, cells::aiming, cells::stopping, cells::holding, cells::released},
    EOM_TABLE(EOM_ROW)};

/// What refuses an event in any state, in this order, before its cell does.
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

/// The state of the loop, with its cause.
class Lead {
  public:
    Phase phase() const noexcept { return phase_; }
    Cause cause() const noexcept { return cause_; }
    bool is(Phase phase) const noexcept { return phase_ == phase; }

    /// Whether a stop commands the arm, which moves, or rests at its end.
    bool braked() const noexcept { return is(Phase::stopping) || is(Phase::holding) || (is(Phase::released) && fades()); }
    /// Whether efforts fade, or have faded; whether setpoints are lost; whether the arm is held
    /// without that; and whether it cannot be led before a restart.
    bool fades() const noexcept { return cause_ == Cause::fades; }
    bool lost() const noexcept { return cause_ >= Cause::lost; }
    bool held() const noexcept { return cause_ == Cause::broken_off || cause_ == Cause::asked; }
    bool gone() const noexcept { return resumption() == Resumption::never; }

    /// From where setpoints lead again.
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

    /// Why an event is refused, or Refusal::none.
    Refusal refusal(Event event, const Facts &facts) noexcept
    {
        for (const Bar &bar : BARS)
            if (bar.event == event && facts.*bar.fact)
                return bar.refusal;
        const Cell &cell = cell_of(event);
        if (holds(cell.when, facts))
            return Refusal::none;
        ++visits_[index(event)][index(phase_)];
        const bool gone = this->gone() && cell.when == Condition::resumes;
        return gone                                        ? Refusal::released
               : event == Event::setpoint && facts.arrived ? Refusal::far_from_hold
                                                           : cell.otherwise;
    }

    /// Whether an event has an effect.
    bool admits(Event event, const Facts &facts = {}) const noexcept { return holds(cell_of(event).when, facts); }

    /// An event: the next state by its cell, if its condition is met; returns whether it is.
    bool on(Event event, const Facts &facts = {}) noexcept
    {
        const Cell &cell = cell_of(event);
        ++visits_[index(event)][index(phase_)];
        if (!holds(cell.when, facts))
            return false;
        if (event != Event::end || phase_ != Phase::stopping)
            cause_ = cell.cause;
        phase_ = cell.next;
        return true;
    }

    /// How often an event has come in a state.
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
        case Condition::unfading: return !fades();
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
