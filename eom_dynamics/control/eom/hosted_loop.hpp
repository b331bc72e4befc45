// SPDX-License-Identifier: Apache-2.0
// Control loop with its memory, for robots of the size EOM_JOINTS, EOM_MOTORS and EOM_TOOLS, or of any size.
#ifndef EOM_HOSTED_LOOP_HPP
#define EOM_HOSTED_LOOP_HPP

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "control_loop.hpp"
#include "external_effort.hpp"
#include "filled_table.hpp"
#include "loaded_robot.hpp"
#include "measurement_check.hpp"

struct eom_loop {
    explicit eom_loop(std::size_t place) : size(place) {}
    virtual ~eom_loop() = default;

    /// Index in Sizes.
    const std::size_t size;
};

namespace eom {

template <std::size_t N, std::size_t M, std::size_t T>
struct Hosted final : eom_loop {
    using Robot = LoadedRobot<N, M, T>;

    Hosted(const RobotTable &of, std::size_t place)
        : eom_loop(place), table(of), numbers(of), robot(of, numbers), loop(robot), given(robot.rest()), posted(given)
    {
    }

    static bool holds(const RobotTable &table) { return table.joints <= N && table.motors <= M && table.tools <= T; }

    /// Returns the measurement in SI units: the vectors set before the cycle, or else a recent sample.
    const Measurement<Robot> &in_si(std::int64_t now)
    {
        if (now < sampled_at - LONGEST_GAP) // the clock was set back
            sampled_at = UNSAMPLED;
        if (!measured.links && !measured.motors && std::abs(now - sampled_at) <= LONGEST_GAP)
            return observer.sensed();
        if (!measured.motors || !robot.converts())
            return check.update(now, measured);
        present = measured;
        read_drives(present, robot);
        return check.update(now, present);
    }

    /// Start from the measurement at `now`, ns. Returns the reason for no command, or null.
    const char *restart(std::int64_t now)
    {
        const bool direct = measured.links || measured.motors;
        const auto &x = in_si(now);
        MeasurementFault fault = direct ? check.fault() : MeasurementFault{};
        const bool known = x.links ? finite(x.q) : !x.motors || finite(x.motor_position);
        if (direct) // replaces earlier samples
            sampled_at = UNSAMPLED;
        const bool usable = known && fault.fault <= Fault::not_finite;
        const char *reason = loop.restart(usable ? x : Measurement<Robot>{}, now);
        if (usable)
            fault = loop.start_fault();
        if (fault.fault <= Fault::not_finite)
            return reason;
        text = Sentences(table).of(fault);
        return text.c_str();
    }

    /// Process a sensor sample of `time`, ns, in drive units.
    Sample sense(std::int64_t time, int sensors)
    {
        if (std::abs(time - sampled_at) > LONGEST_GAP) {
            observer.restart();
            origin = time;
        } else if (time <= sampled_at) {
            return Sample::stale;
        }
        auto &x = sensed;
        read(x, sensors);
        x.k = loop.output().setpoint.k;
        x.P = loop.output().setpoint.P;
        x.loaded = loop.output().setpoint.loaded;
        x.time = 1e-9 * static_cast<double>(time - origin);
        if (x.motors)
            read_drives(x, robot);
        const Sample found = observe(time, contact.on());
        if (found == Sample::inconsistent)
            loop.doubt();
        if (found > Sample::started)
            return found;
        sampled_at = time;
        if (contact.on() && contact.update(found, observer))
            loop.react();
        else if (!contact.found())
            loop.leave_contact();
        return found;
    }

    /// Check the sample of `time`, ns, and update the observer with it.
    Sample observe(std::int64_t time, bool efforts = true)
    {
        sample_check.update(time, sensed);
        const MeasurementFault &fault = sample_check.fault();
        refused_joint = fault.of_motor ? table.facts.motor_joint[fault.place] : fault.place;
        if (fault.fault > Fault::not_finite)
            return Sample::inconsistent;
        const Sample found = observer.update(sensed, efforts);
        refused_joint = observer.refused_joint();
        return found;
    }

    static void read(Sensed<Robot> &x, int sensors)
    {
        x.links = sensors & 1, x.motors = sensors & 2, x.torque = sensors & 4, x.efforts = sensors & 8;
    }

    int update(std::int64_t now, double period, bool hosted)
    {
        const auto before = loop.counts();
        loop.update(now, period, in_si(now), hosted);
        const LoopCounts &after = loop.counts();
        const bool found = after.suspect() - after.without_stamp > before.suspect() - before.without_stamp;
        return after.refused > before.refused ? static_cast<int>(loop.reason().refusal)
               : loop.early()                 ? static_cast<int>(Refusal::early)
                                              : -((after.over_limits > before.over_limits) + 2 * found);
    }

    /// Memory of a vector: eom_loop_vector().
    double *vector(const char *whose, const char *name)
    {
        // Includes vectors that callers only read; their memory belongs to the loop.
        const auto &commander = loop.commander();
        const auto &y = commander.output;
        const std::size_t vector = vector_of(name);
        const auto is = [whose](const char *group) { return std::strcmp(whose, group) == 0; };
        typename Robot::Places places(nullptr);
        if (is("given"))
            places.take(given);
        else if (is("posted"))
            places.take(posted);
        else if (is("setpoint"))
            places.take(y.setpoint);
        else if (is("command"))
            places.take(y.command), places.reads(Vector::deflection, y.deflection);
        else if (is("exceeded"))
            places.take(commander.exceeded()), places.take(commander.exceeding());
        else if (is("sent"))
            places.take(y.sent);
        else if (is("released"))
            places.take(commander.final_sent()), places.take(commander.final_command());
        else if (is("measured"))
            places.take(measured);
        else if (is("sensed"))
            places.take(sensed);
        else if (is("observed"))
            places.take(observer.sensed());
        else if (is("external"))
            places.reads(Vector::tau, observer.links.value, Vector::motor_effort, observer.motors.value);
        else
            return nullptr;
        return vector < static_cast<std::size_t>(Vector::count)
                   ? const_cast<double *>(places.in(static_cast<Vector>(vector)))
                   : nullptr;
    }

    /// Set a setting or gains: eom_loop_set().
    const char *set(const char *name, const double *values, std::size_t count)
    {
        const std::size_t n = robot.joint_count(), m = robot.motor_count();
        const struct {
            const char *name;
            Span<double> entries;
        } gains[] = {{"motor_kp", {parameters.motor_kp.data(), m}},
                     {"motor_kd", {parameters.motor_kd.data(), m}},
                     {"link_kp", {parameters.link_kp.data(), n}},
                     {"link_kd", {parameters.link_kd.data(), n}},
                     {"stiffness", {parameters.stiffness.data(), n}},
                     {"tool_stiffness", parameters.tool_stiffness}};
        if (const auto *found = named(gains, name)) {
            if (count != 1 && count != found->entries.size())
                return "gains must have one entry, or one for each motor or joint";
            for (std::size_t i = 0; i < found->entries.size(); ++i)
                found->entries[i] = values[count == 1 ? 0 : i];
            return nullptr;
        }
        const Setting *found = named(SETTINGS, name);
        if (!found)
            return UNKNOWN;
        found->set(parameters, *values);
        return nullptr;
    }

    /// Set parameters of the observer: eom_observer_set().
    const char *set_observer(const char *name, const double *values, std::size_t count)
    {
        if (!robot.observes())
            return "there is no code of an observer, for the rotor_model reduced: generate it again";
        observer.restart();
        contact.restart();
        const struct {
            const char *name;
            Span<double> entries;
        } spans[] = {{"bandwidth", observer.links.bandwidth}, {"order", observer.links.order}};
        const struct {
            const char *name;
            std::vector<double> *numbers;
        } rows[] = {{"speeds", &contact.speeds}, {"errors", &contact.errors}, {"noise", &contact.noise}};
        if (const auto *found = named(spans, name))
            std::copy(values, values + count, found->entries.begin());
        else if (const auto *row = named(rows, name))
            row->numbers->assign(values, values + count);
        else if (std::strcmp(name, "source") == 0)
            for (std::size_t i = 0; i < count; ++i)
                observer.source[i] = static_cast<EffortSource>(values[i]);
        else if (std::strcmp(name, "restart") != 0)
            return UNKNOWN;
        return nullptr;
    }

    /// Post a target or a chunk: eom_loop_post_target().
    const char *post_target(std::int64_t begin, const double *times, std::size_t knots, const double *positions,
                            const double *velocities, const double *accelerations)
    {
        auto &targets = loop.targets;
        Target &next = targets.draft(), &last = target;
        const char *reason = next.assign(begin, times, knots, positions, velocities, accelerations,
                                         robot.joint_count());
        if (reason)
            return reason;
        // Keep pending targets of other joints.
        for (std::size_t i = 0; i < last.velocities.size() && targets.waiting() && knots == 0; ++i)
            if (std::isnan(next.positions[i]) && last.times.empty())
                next.take(i, last);
        last = next;
        targets.send();
        return reason;
    }

    /// Post the payload of a tool: eom_loop_post_payload().
    const char *post_payload(std::size_t tool, const double *body, double blend_time)
    {
        Body next;
        next.mass = body[0];
        std::copy(body + 1, body + 4, next.center_of_mass.begin());
        std::copy(body + 4, body + 10, next.inertia.begin());
        const char *reason = objection(next);
        if (!reason) {
            if (!loop.payloads.waiting())
                payload.stays.fill(true);
            payload.stays[tool] = false;
            payload.at_tool[tool] = next;
            payload.blend_time = blend_time;
            loop.payloads.draft() = payload;
            loop.payloads.send();
        }
        return reason;
    }

    /// Reason for the last refusal of a reference.
    Reason reason() const noexcept
    {
        Reason why = loop.reason();
        if (why.refusal == Refusal::in_contact)
            why = {Refusal::in_contact, Quantity::effort, contact.touched().joint};
        return why;
    }

    /// Limit violations of the last command beyond limits, worst first.
    std::vector<Reason> violations() const
    {
        std::vector<Reason> found;
        loop.commander().violations([&](const Reason &x) { found.push_back(x); });
        std::stable_sort(found.begin(), found.end(), [](const Reason &x, const Reason &y) { return x.ratio > y.ratio; });
        return found;
    }

    /// Returns a message: eom_loop_text().
    const char *say(const char *what)
    {
        const Sentences sentences(table);
        const std::vector<Reason> limits = violations();
        const auto &governor = loop.governor();
        const auto is = [what](const char *name) { return std::strcmp(what, name) == 0; };
        text = is("refusal")    ? sentences.of(reason(), loop.finding(), limits)
               : is("finding")  ? sentences.of(loop.finding())
               : is("overload") ? sentences.load(loop.commander().overload())
               : is("measurement") ? sentences.of(check.fault())
               : is("sample")      ? sentences.of(sample_check.fault())
               : is("slowed")   ? sentences.slowed(governor.least(), governor.limit(), governor.place())
                                : UNKNOWN;
        return text.c_str();
    }

    /// Write the state: eom_loop_state().
    void tell(LoopState &x) const noexcept
    {
        const auto progress = loop.watchdog().progress();
        const PathState path = loop.watchdog().path_state();
        const Finding &found = loop.finding();
        const auto &commander = loop.commander();
        const auto &y = loop.output();
#define EOM_TAKE(Type, name, value) x.name = static_cast<Type>(value);
        EOM_STATE(EOM_TAKE)
        x.counts = loop.counts();
        x.reason = reason(), x.overload = commander.overload(), x.found = found;
        x.payload_refusal = loop.payload_refusal();
    }

    const RobotTable &table;
    const typename Robot::Numbers numbers;
    const Robot robot;
    ControlLoop<Robot> loop;
    LoopParameters<Robot> parameters, in_effect;
    Measurement<Robot> measured, present;
    Setpoint<Robot> given, posted;
    typename PayloadFade<Robot>::Parameters carried{}; ///< by eom_loop_carry()
    Payload<Robot> payload;                             ///< by eom_loop_post_payload()
    /// Checks of measurements before each cycle, and of samples.
    MeasurementCheck<Robot> check{robot}, sample_check{robot};
    ExternalEffort<Robot> observer{robot};
    std::size_t refused_joint = 0;
    ContactWatch<Robot> contact;
    Sensed<Robot> sensed;
    /// Time of the last accepted sample, and of the first sample without a gap before it, ns.
    static constexpr std::int64_t UNSAMPLED = std::numeric_limits<std::int64_t>::min() / 2;
    std::int64_t sampled_at = UNSAMPLED, origin = 0;
    Target target;
    std::string text; ///< last message
};

#ifdef EOM_JOINTS
using Sizes = std::tuple<Hosted<EOM_JOINTS, EOM_MOTORS, EOM_TOOLS>>;
#else
// Smaller sizes have shorter cycles.
using Sizes = std::tuple<Hosted<4, 4, 1>, Hosted<8, 8, 1>, Hosted<16, 16, 2>, Hosted<32, 32, 4>,
                         Hosted<MOST_JOINTS, MOST_MOTORS, MOST_TOOLS>>;
#endif

template <std::size_t place = 0>
eom_loop *make(const RobotTable &table)
{
    if constexpr (place == std::tuple_size_v<Sizes>)
        return nullptr;
    else if (std::tuple_element_t<place, Sizes>::holds(table))
        return new std::tuple_element_t<place, Sizes>(table, place);
    else
        return make<place + 1>(table);
}

/// Call `function` with the loop cast to its type.
template <std::size_t place = 0, class Loop, class Function>
auto on(Loop *loop, const Function &function)
{
    using OfSize = std::tuple_element_t<place, Sizes>;
    if constexpr (place + 1 < std::tuple_size_v<Sizes>)
        if (loop->size != place)
            return on<place + 1>(loop, function);
    return function(static_cast<std::conditional_t<std::is_const_v<Loop>, const OfSize &, OfSize &>>(*loop));
}

} // namespace eom

#endif
