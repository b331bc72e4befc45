// SPDX-License-Identifier: Apache-2.0
// The control loop behind its interface in C, for robots of one size, EOM_JOINTS, EOM_MOTORS and EOM_TOOLS, or of any.
#include <eom/control_loop.hpp>
#include <eom/external_effort.hpp>
#include <eom/loaded_robot.hpp>
#include <eom/loop.h>

#include <cstring>
#include <deque>
#include <tuple>
#include <vector>

namespace {

using eom::Vector;

constexpr const char *UNKNOWN = "there is no such name";

#define EOM_QUOTED(name) #name,
constexpr const char *VECTOR_NAMES[] = {EOM_VECTORS(EOM_QUOTED)};

/// Number of a vector; the count of all for another name.
std::size_t vector_of(const char *name)
{
    std::size_t i = 0;
    while (i < static_cast<std::size_t>(Vector::count) && std::strcmp(VECTOR_NAMES[i], name) != 0)
        ++i;
    return i;
}

/// Entry of a list by its name, or null.
template <class Entry, std::size_t size>
const Entry *named(const Entry (&entries)[size], const char *name)
{
    const auto found =
        std::find_if(entries, entries + size, [name](const Entry &entry) { return std::strcmp(entry.name, name) == 0; });
    return found == entries + size ? nullptr : found;
}

struct NamedKernel {
    const char *name;
    eom::Kernel eom::Kernels::*kernel;
};
#define EOM_NAMED_KERNEL(name) {#name, &eom::Kernels::name},
constexpr NamedKernel KERNELS[] = {EOM_FUNCTIONS(EOM_NAMED_KERNEL)};

/// A robot that is set from outside, with the memory of its table.
struct FilledTable : eom::RobotTable {
    std::deque<std::vector<double>> numbers;
    std::deque<std::vector<Vector>> vectors;
    std::deque<eom::Kernel> further;
    std::vector<std::size_t> motor_joint_numbers;
};

} // namespace

struct eom_loop {
    explicit eom_loop(std::size_t place) : size(place) {}
    virtual ~eom_loop() = default;

    /// Place among Sizes.
    const std::size_t size;
};

namespace {

template <std::size_t N, std::size_t M, std::size_t T>
struct Hosted final : eom_loop {
    using Robot = eom::LoadedRobot<N, M, T>;

    Hosted(const eom::RobotTable &table, std::size_t place)
        : eom_loop(place), numbers(table), robot(table, numbers), loop(robot), given(robot.rest()), posted(given)
    {
    }

    static bool holds(const eom::RobotTable &table) { return table.joints <= N && table.motors <= M && table.tools <= T; }

    /// What is measured, in SI units: before each cycle, or by the last sample while that is recent.
    const eom::Measurement<Robot> &in_si(std::int64_t now)
    {
        present = measured;
        if (!measured.links && !measured.motors && sampled_at >= now - eom::LONGEST_GAP)
            present = observer.sensed();
        else if (measured.motors)
            read_drives(present, robot);
        return present;
    }

    /// Takes a sample of a time, ns, in the units of the drives.
    eom::Sample sense(std::int64_t time, int sensors)
    {
        if (std::abs(time - sampled_at) > eom::LONGEST_GAP) {
            observer.restart();
            origin = time;
        }
        auto &x = sensed;
        read(x, sensors);
        x.k = loop.output().setpoint.k;
        x.P = loop.output().setpoint.P;
        x.loaded = loop.output().setpoint.loaded;
        x.time = 1e-9 * static_cast<double>(time - origin);
        if (x.motors)
            read_drives(x, robot);
        const eom::Sample found = observer.update(x, contact.on());
        if (found > eom::Sample::started)
            return found;
        sampled_at = time;
        if (contact.on() && contact.update(found, observer))
            loop.react();
        else if (!contact.found())
            loop.leave_contact();
        return found;
    }

    static void read(eom::Sensed<Robot> &x, int sensors)
    {
        x.links = sensors & 1, x.motors = sensors & 2, x.torque = sensors & 4, x.efforts = sensors & 8;
    }

    int update(std::int64_t now, double period, bool hosted)
    {
        const auto before = loop.counts();
        loop.update(now, period, in_si(now), hosted);
        const eom::LoopCounts &after = loop.counts();
        const bool found = after.suspect() - after.without_stamp > before.suspect() - before.without_stamp;
        return after.refused > before.refused ? static_cast<int>(loop.refusal())
                                              : -((after.over_limits > before.over_limits) + 2 * found);
    }

    const typename Robot::Numbers numbers;
    const Robot robot;
    eom::ControlLoop<Robot> loop;
    eom::LoopParameters<Robot> parameters, in_effect;
    eom::Measurement<Robot> measured, present;
    eom::Setpoint<Robot> given, posted;
    /// What the tools carry, by eom_loop_carry() and by eom_loop_post_payload().
    typename eom::PayloadBlend<Robot>::Parameters carried{};
    eom::Payload<Robot> payload;
    eom::ExternalEffort<Robot> observer{robot};
    eom::ContactWatch<Robot> contact;
    eom::Sensed<Robot> sensed;
    /// Time of the last sample that was taken, and of the first in a row, ns.
    static constexpr std::int64_t UNSAMPLED = std::numeric_limits<std::int64_t>::min() / 2;
    std::int64_t sampled_at = UNSAMPLED, origin = 0;
    /// The target that was posted last.
    eom::Target target;
};

#ifdef EOM_JOINTS
using Sizes = std::tuple<Hosted<EOM_JOINTS, EOM_MOTORS, EOM_TOOLS>>;
#else
// The fewer places, the shorter the cycle.
using Sizes = std::tuple<Hosted<8, 8, 1>, Hosted<16, 16, 2>, Hosted<32, 32, 4>,
                         Hosted<eom::MOST_JOINTS, eom::MOST_MOTORS, eom::MOST_TOOLS>>;
#endif

template <std::size_t place = 0>
eom_loop *make(const eom::RobotTable &table)
{
    if constexpr (place == std::tuple_size_v<Sizes>)
        return nullptr;
    else if (std::tuple_element_t<place, Sizes>::holds(table))
        return new std::tuple_element_t<place, Sizes>(table, place);
    else
        return make<place + 1>(table);
}

/// Calls a function with a loop as what it is.
template <std::size_t place = 0, class Loop, class Function>
auto on(Loop *loop, const Function &function)
{
    using OfSize = std::tuple_element_t<place, Sizes>;
    if constexpr (place + 1 < std::tuple_size_v<Sizes>)
        if (loop->size != place)
            return on<place + 1>(loop, function);
    return function(static_cast<std::conditional_t<std::is_const_v<Loop>, const OfSize &, OfSize &>>(*loop));
}

/// Rows of limits of motion.
std::vector<eom::MotionLimits> limits_of(const double *limits, std::size_t joints)
{
    std::vector<eom::MotionLimits> rows(joints);
    std::memcpy(rows.data(), limits, joints * sizeof(eom::MotionLimits));
    return rows;
}

} // namespace

struct eom_motion {
    eom::OnlineTrajectory joints;
};

extern "C" {

eom_robot *eom_robot_make(size_t joints, size_t motors, size_t tools)
{
    auto *robot = new FilledTable;
    robot->joints = joints;
    robot->motors = motors;
    robot->tools = tools;
    return robot;
}

void eom_robot_free(eom_robot *robot) { delete static_cast<FilledTable *>(robot); }

const char *eom_robot_set(eom_robot *robot, const char *name, const double *numbers, size_t count)
{
    auto &table = static_cast<FilledTable &>(*robot);
    if (std::strcmp(name, "motor_joint") == 0) {
        table.motor_joint_numbers.assign(numbers, numbers + count);
        table.facts.motor_joint = table.motor_joint_numbers;
        return nullptr;
    }
    if (std::strcmp(name, "commanded_stiffness") == 0 || std::strcmp(name, "transmission") == 0) {
        (*name == 't' ? table.transmission : table.facts.commanded_stiffness) = *numbers != 0;
        return nullptr;
    }
    const struct {
        const char *name;
        eom::Span<const double> *span;
    } spans[] = {
#define EOM_SPAN(name) {#name, &table.name},
        EOM_OF_TABLE(EOM_SPAN)
#define EOM_ENDS(name) {"lower." #name, &table.lower.name}, {"upper." #name, &table.upper.name},
        EOM_LIMITED(EOM_ENDS)};
    const auto *found = named(spans, name);
    if (!found)
        return UNKNOWN;
    *found->span = table.numbers.emplace_back(numbers, numbers + count);
    return nullptr;
}

const char *eom_robot_add(eom_robot *robot, const char *function, eom_kernel kernel, const char *const *inputs,
                          size_t input_count, const char *const *outputs, size_t output_count)
{
    auto &table = static_cast<FilledTable &>(*robot);
    const NamedKernel *found = named(KERNELS, function);
    if (!found)
        return UNKNOWN;
    if (input_count > eom::MOST_VECTORS || output_count > eom::MOST_VECTORS)
        return "a kernel has too many vectors";
    const auto listed = [&](const char *const *names, std::size_t count) {
        auto &vectors = table.vectors.emplace_back();
        for (std::size_t i = 0; i < count; ++i)
            vectors.push_back(static_cast<Vector>(vector_of(names[i])));
        return eom::Span<const Vector>(vectors);
    };
    const eom::Kernel added{kernel, listed(inputs, input_count), listed(outputs, output_count)};
    for (const auto &vectors : {added.inputs, added.outputs})
        if (std::find(vectors.begin(), vectors.end(), Vector::count) != vectors.end())
            return UNKNOWN;
    eom::Kernel *last = &(table.kernels.*found->kernel);
    if (!last->call) {
        *last = added;
        return nullptr;
    }
    while (last->next)
        last = const_cast<eom::Kernel *>(last->next);
    last->next = &table.further.emplace_back(added);
    return nullptr;
}

eom_loop *eom_loop_make(const eom_robot *robot) { return make(*robot); }

void eom_loop_free(eom_loop *loop) { delete loop; }

size_t eom_loop_size(const eom_loop *loop)
{
    return on(loop, [](const auto &of) { return sizeof of; });
}

size_t eom_setpoint_size(const eom_loop *loop)
{
    return on(loop, [](const auto &of) { return sizeof of.given; });
}

const char *eom_loop_set(eom_loop *loop, const char *name, const double *numbers, size_t count)
{
    return on(loop, [=](auto &of) -> const char * {
        auto &parameters = of.parameters;
        const std::size_t n = of.robot.joint_count(), m = of.robot.motor_count();
        const struct {
            const char *name;
            eom::Span<double> entries;
        } gains[] = {{"motor_kp", {parameters.motor_kp.data(), m}},
                     {"motor_kd", {parameters.motor_kd.data(), m}},
                     {"link_kp", {parameters.link_kp.data(), n}},
                     {"link_kd", {parameters.link_kd.data(), n}},
                     {"stiffness_gains", parameters.stiffness_gains},
                     {"stiffness", {parameters.stiffness.data(), n}},
                     {"tool_stiffness", parameters.tool_stiffness}};
        if (const auto *found = named(gains, name)) {
            if (count != 1 && count != found->entries.size())
                return "gains must have one entry, or one for each motor or joint";
            for (std::size_t i = 0; i < found->entries.size(); ++i)
                found->entries[i] = numbers[count == 1 ? 0 : i];
            return nullptr;
        }
        const eom::Setting *found = named(eom::SETTINGS, name);
        if (!found)
            return UNKNOWN;
        found->set(parameters, *numbers);
        return nullptr;
    });
}

const char *eom_loop_configure(eom_loop *loop)
{
    return on(loop, [](auto &of) {
        const char *reason = of.loop.configure(of.parameters);
        (reason ? of.parameters : of.in_effect) = reason ? of.in_effect : of.parameters;
        return reason;
    });
}

double *eom_loop_vector(eom_loop *loop, const char *whose, const char *name)
{
    return on(loop, [=](auto &of) -> double * {
        // Vectors that others only read, too: their memory is the loop's.
        const auto &commander = of.loop.commander();
        const auto &y = commander.output;
        const auto &plan = of.loop.player().planned();
        const std::size_t vector = vector_of(name);
        const auto is = [whose](const char *group) { return std::strcmp(whose, group) == 0; };
        for (const auto &[group, state] : {std::pair{"from", &plan.from}, {"to", &plan.to}, {"later", &plan.later}})
            if (is(group)) // position to snap are the first vectors
                return vector < state->size() ? const_cast<double *>((*state)[vector].data()) : nullptr;
        typename std::decay_t<decltype(of)>::Robot::Places places{};
        if (is("given"))
            places.take(of.given);
        else if (is("posted"))
            places.take(of.posted);
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
            places.take(of.measured);
        else if (is("sensed"))
            places.take(of.sensed);
        else if (is("observed"))
            places.take(of.observer.sensed());
        else if (is("external"))
            places.reads(Vector::tau, of.observer.links.value, Vector::motor_effort, of.observer.motors.value);
        else
            return nullptr;
        return vector < static_cast<std::size_t>(Vector::count)
                   ? const_cast<double *>(places.in(static_cast<Vector>(vector)))
                   : nullptr;
    });
}

void eom_loop_measure(eom_loop *loop, int links, int motors)
{
    on(loop, [=](auto &of) {
        of.measured.links = links != 0;
        of.measured.motors = motors != 0;
    });
}

int eom_loop_sense(eom_loop *loop, int64_t time, int sensors)
{
    return on(loop, [=](auto &of) {
        const auto found = of.sense(time, sensors);
        return static_cast<int>(found) + 8 * static_cast<int>(of.observer.refused_joint());
    });
}

const char *eom_loop_restart(eom_loop *loop, int64_t now)
{
    return on(loop, [=](auto &of) {
        const auto &x = of.in_si(now);
        const bool known = x.links ? eom::finite(x.q) : !x.motors || eom::finite(x.motor_position);
        return of.loop.restart(known ? x : std::decay_t<decltype(x)>{}, now);
    });
}

void *eom_loop_rest(eom_loop *loop, int on_base)
{
    return on(loop, [=](auto &of) -> void * {
        of.given = of.robot.rest();
        of.given.on_base = on_base != 0;
        return &of.given;
    });
}

void eom_loop_refer(eom_loop *loop, int64_t stamp)
{
    on(loop, [=](auto &of) { of.loop.refer(of.given, stamp); });
}

void eom_loop_follow(eom_loop *loop, int64_t stamp, double ahead)
{
    on(loop, [=](auto &of) {
        advance(of.given, -ahead);
        of.loop.refer(of.given, stamp, true);
    });
}

void eom_loop_pursue(eom_loop *loop)
{
    on(loop, [](auto &of) { of.loop.pursue(of.given); });
}

const char *eom_loop_carry(eom_loop *loop, size_t tool, const double *parameters, double blend_time)
{
    return on(loop, [=](auto &of) {
        auto carried = of.carried;
        std::copy(parameters, parameters + 10, carried.begin() + static_cast<std::ptrdiff_t>(10 * tool));
        const char *reason = of.loop.carry(carried, blend_time);
        if (!reason)
            of.carried = carried;
        return reason;
    });
}

const char *eom_loop_send(eom_loop *loop, int64_t origin, const double *knots, size_t count, const double *states)
{
    const std::vector<double> times(knots, knots + count);
    return on(loop, [&](auto &of) {
        auto &draft = of.loop.trajectories.draft();
        draft.stamp = origin;
        draft.stop = false;
        std::vector<eom::State<std::decay_t<decltype(of)>::Robot::joints>> at_knots(count);
        const std::size_t n = of.robot.joint_count();
        const double *numbers = states;
        for (auto &state : at_knots)
            for (auto &row : state) {
                std::fill(std::copy(numbers, numbers + n, row.begin()), row.end(), 0);
                numbers += n;
            }
        const char *reason = draft.spline.assign(times, at_knots);
        if (!reason)
            of.loop.trajectories.send();
        return reason;
    });
}

const char *eom_loop_limit(eom_loop *loop, const double *limits, size_t joints, int synchronised)
{
    return on(loop, [=](auto &of) { return of.loop.limit(limits_of(limits, joints), synchronised != 0); });
}

int eom_loop_aim(eom_loop *loop, int64_t now)
{
    return on(loop, [=](auto &of) { return static_cast<int>(of.loop.aim(now)); });
}

int eom_loop_plan(eom_loop *loop, int64_t now, double period)
{
    return on(loop, [=](auto &of) {
        const auto refused = of.loop.counts().refused;
        if (of.loop.plan(now, period))
            return 0;
        return of.loop.counts().refused > refused ? static_cast<int>(of.loop.refusal()) : -1;
    });
}

const char *eom_loop_act(eom_loop *loop, const char *action)
{
    return on(loop, [=](auto &of) {
        using Of = std::decay_t<decltype(of)>;
        const struct {
            const char *name;
            void (*act)(Of &of);
        } actions[] = {{"take", [](Of &x) { x.loop.refer_to_mailbox(); }}, // first, for its cycles
                       {"play", [](Of &x) { x.loop.play(); }},
                       {"drop", [](Of &x) { x.loop.drop(); }},
                       {"halt", [](Of &x) { x.loop.halt(); }},
                       {"stop", [](Of &x) { x.loop.stop(); }},
                       {"lose", [](Of &x) { x.loop.lose(); }},
                       {"pause", [](Of &x) { x.loop.paused = true; }},
                       {"resume", [](Of &x) { x.loop.resume(); }},
                       {"release", [](Of &x) { x.loop.release(x.in_si(x.loop.commander().latest)); }}};
        const auto *found = named(actions, action);
        if (found)
            found->act(of);
        return found ? nullptr : UNKNOWN;
    });
}

const char *eom_loop_post_speed(eom_loop *loop, double factor)
{
    if (!(factor >= 0 && factor <= eom::FASTEST_PACE))
        return "speed scaling must be 0 to 1.5";
    on(loop, [=](auto &of) { of.loop.speed_scaling = factor; });
    return nullptr;
}

const char *eom_loop_post_mode(eom_loop *loop, int mode)
{
    return on(loop, [=](auto &of) {
        const auto wanted = static_cast<eom::Mode>(mode);
        const char *reason = eom::mode_objection(wanted, of.loop.commander().parameters, of.robot);
        if (!reason)
            of.loop.mode = wanted;
        return reason;
    });
}

int eom_loop_update(eom_loop *loop, int64_t now, double period)
{
    return on(loop, [=](auto &of) { return of.update(now, period, true); });
}

int eom_loop_run(eom_loop *loop, int64_t now, double period)
{
    return on(loop, [=](auto &of) { return of.update(now, period, false); });
}

size_t eom_loop_answer(eom_loop *loop, size_t count, const int64_t *stamps, const int64_t *times, const eom_vector *read,
                       size_t read_count, const double *given, const eom_vector *written, size_t written_count,
                       double *results, int *codes)
{
    for (std::size_t k = 0; k < count; ++k) {
        for (std::size_t i = 0; i < read_count; given += read[i++].count)
            std::copy(given, given + read[i].count, read[i].numbers);
        eom_loop_refer(loop, stamps[k]);
        codes[k] = eom_loop_update(loop, times[k], 0);
        for (std::size_t i = 0; i < written_count; ++i)
            results = std::copy(written[i].numbers, written[i].numbers + written[i].count, results);
        if (codes[k] > 0)
            return k + 1;
    }
    return count;
}

const char *eom_observer_set(eom_loop *loop, const char *name, const double *numbers, size_t count)
{
    return on(loop, [=](auto &of) -> const char * {
        auto &observer = of.observer;
        observer.restart();
        of.contact.restart();
        const struct {
            const char *name;
            eom::Span<double> entries;
        } spans[] = {{"bandwidth", observer.links.bandwidth}, {"order", observer.links.order}};
        auto &contact = of.contact;
        const struct {
            const char *name;
            std::vector<double> *numbers;
        } rows[] = {{"speeds", &contact.speeds}, {"errors", &contact.errors}, {"noise", &contact.noise}};
        if (const auto *found = named(spans, name))
            std::copy(numbers, numbers + count, found->entries.begin());
        else if (const auto *row = named(rows, name))
            row->numbers->assign(numbers, numbers + count);
        else if (std::strcmp(name, "source") == 0)
            for (std::size_t i = 0; i < count; ++i)
                observer.source[i] = static_cast<eom::EffortSource>(numbers[i]);
        else if (std::strcmp(name, "longest_gap") == 0)
            observer.longest_gap = *numbers;
        else if (std::strcmp(name, "restart") != 0)
            return UNKNOWN;
        return nullptr;
    });
}

void eom_observer_update(eom_loop *loop, size_t count, const double *times, int sensors, const eom_vector *read,
                         size_t read_count, const double *given, double *results, int *codes)
{
    on(loop, [=](auto &of) {
        const double *row = given;
        double *found = results;
        auto &x = of.sensed;
        x = {};
        x.k = of.robot.rest().k;
        of.read(x, sensors);
        x.loaded = sensors & 16;
        for (std::size_t k = 0; k < count; ++k) {
            for (std::size_t i = 0; i < read_count; row += read[i++].count)
                std::copy(row, row + read[i].count, read[i].numbers);
            x.time = times[k];
            const auto code = of.observer.update(x);
            codes[k] = static_cast<int>(code) + 8 * static_cast<int>(of.observer.refused_joint());
            const auto &links = of.observer.links.value;
            const auto &motors = of.observer.motors.value;
            found = std::copy_n(links.begin(), of.robot.joint_count(), found);
            found = std::copy_n(motors.begin(), of.robot.motor_count(), found);
            for (const auto *motion : {&of.observer.sensed().q, &of.observer.sensed().qd})
                found = std::copy_n(motion->begin(), of.robot.joint_count(), found);
        }
    });
}

double eom_loop_number(const eom_loop *loop, const char *name)
{
    return on(loop, [=](const auto &of) {
        const eom::LoopCounts &counts = of.loop.counts();
        const auto &plan = of.loop.player().planned();
        const auto progress = of.loop.watchdog().progress();
        const eom::PathState path = of.loop.watchdog().path_state();
        const eom::Finding &finding = of.loop.finding();
        const auto &y = of.loop.output();
#define EOM_NUMBERED(name, value) {name, static_cast<double>(value)}
#define EOM_OF(object, name) {#name, static_cast<double>(object.name)}
#define EOM_OF_PLAN(name) {"plan_" #name, static_cast<double>(plan.name)}
#define EOM_OF_FINDING(name) {"finding_" #name, static_cast<double>(finding.name)}
        const struct {
            const char *name;
            double value;
        } numbers[] = {
            EOM_OF(y, status), EOM_OF(y, valid), EOM_OF(y.setpoint, on_base),
            EOM_NUMBERED("given_on_base", of.given.on_base),
            EOM_NUMBERED("playing", of.loop.playing()), EOM_NUMBERED("waiting", of.loop.waiting()),
            EOM_NUMBERED("blending", of.loop.blending()), EOM_NUMBERED("aiming", of.loop.aiming()),
            EOM_NUMBERED("arrived", of.loop.arrived()), EOM_NUMBERED("slowed_to", of.loop.governor().least()),
            EOM_NUMBERED("slowed_limit", of.loop.governor().limit()),
            EOM_NUMBERED("slowed_place", of.loop.governor().place()),
            EOM_NUMBERED("final_efforts", of.loop.commander().final_efforts()),
            EOM_OF(progress, lost), EOM_OF(progress, held), EOM_OF(progress, stopping), EOM_OF(progress, fed),
            EOM_OF(progress, age), EOM_OF(progress, stop_end), EOM_OF(progress, excess), EOM_OF(progress, on_path),
            EOM_OF(of.loop, paused), EOM_OF(of.loop, speed_scaling), EOM_NUMBERED("pace_limited", of.loop.player().limited()),
            EOM_NUMBERED("path_time", path[0]), EOM_NUMBERED("pace", path[1]),
            EOM_OF_PLAN(waits), EOM_OF_PLAN(begin), EOM_OF_PLAN(start), EOM_OF_PLAN(end),
            EOM_OF(counts, cycles), EOM_OF(counts, followed), EOM_OF(counts, refused), EOM_OF(counts, over_limits),
            EOM_OF(counts, timeouts), EOM_OF(counts, refused_payloads), EOM_OF(counts, suspect_stamps),
            EOM_OF(counts, jumps), EOM_OF(counts, inconsistent), EOM_OF(counts, without_stamp), EOM_OF(counts, contacts),
            EOM_NUMBERED("touched", of.loop.touched()), EOM_NUMBERED("contact", of.contact.found()),
            EOM_NUMBERED("settled", of.contact.settled()), EOM_NUMBERED("settling", of.observer.settling()),
            EOM_NUMBERED("efforts", of.observer.sensed().efforts),
            EOM_NUMBERED("contact_joint", of.contact.touched().joint),
            EOM_NUMBERED("contact_effort", of.contact.touched().effort),
            EOM_NUMBERED("contact_threshold", of.contact.touched().threshold),
            EOM_OF(counts, unmeasured), EOM_NUMBERED("mode", of.loop.commander().mode()),
            EOM_NUMBERED("blinded", of.loop.blinded()),
            EOM_NUMBERED("beyond_limit", of.loop.commander().led_beyond()),
            EOM_NUMBERED("softened", of.loop.commander().impedance().softened()),
            EOM_NUMBERED("finding", finding.check), EOM_OF_FINDING(field), EOM_OF_FINDING(joint), EOM_OF_FINDING(joints),
            EOM_OF_FINDING(time), EOM_OF_FINDING(step), EOM_OF_FINDING(allowed), EOM_OF_FINDING(difference),
            EOM_OF_FINDING(factor),
        };
        const auto *found = named(numbers, name);
        return found ? found->value : std::nan("");
    });
}

void eom_loop_post_rest(eom_loop *loop, int on_base)
{
    on(loop, [=](auto &of) {
        of.posted = of.robot.rest();
        of.posted.on_base = on_base != 0;
    });
}

void eom_loop_post(eom_loop *loop, int64_t stamp)
{
    on(loop, [=](auto &of) {
        of.loop.setpoints.draft() = {stamp, of.posted};
        of.loop.setpoints.send();
    });
}

const char *eom_loop_post_spline(eom_loop *loop, int64_t origin, const double *knots, size_t knot_count, size_t degree,
                                 const double *coefficients, size_t coefficient_count, const size_t *joints,
                                 size_t joint_count)
{
    using Numbers = eom::Span<const double>;
    return on(loop, [=](auto &of) {
        auto &draft = of.loop.trajectories.draft();
        draft.stamp = origin;
        draft.stop = knot_count == 0;
        const char *reason = draft.stop ? nullptr
                                        : draft.spline.assign(Numbers(knots, knot_count), degree,
                                                              Numbers(coefficients, coefficient_count),
                                                              eom::Span<const std::size_t>(joints, joint_count));
        if (!reason)
            of.loop.trajectories.send();
        return reason;
    });
}

const char *eom_loop_post_target(eom_loop *loop, int64_t origin, const double *times, size_t knots, const double *positions,
                                 const double *velocities)
{
    return on(loop, [=](auto &of) {
        auto &targets = of.loop.targets;
        eom::Target &next = targets.draft(), &last = of.target;
        const char *reason = next.assign(origin, times, knots, positions, velocities, of.robot.joint_count());
        if (reason)
            return reason;
        // Targets of other joints that wait count, too.
        for (std::size_t i = 0; i < last.velocities.size() && targets.waiting() && knots == 0; ++i)
            if (std::isnan(next.positions[i]) && last.times.empty()) {
                next.positions[i] = last.positions[i];
                next.velocities[i] = last.velocities[i];
            }
        last = next;
        targets.send();
        return reason;
    });
}

const char *eom_loop_post_payload(eom_loop *loop, size_t tool, const double *body, double blend_time)
{
    return on(loop, [=](auto &of) {
        eom::Body given;
        given.mass = body[0];
        std::copy(body + 1, body + 4, given.center_of_mass.begin());
        std::copy(body + 4, body + 10, given.inertia.begin());
        const char *reason = objection(given);
        if (!reason) {
            of.payload.at_tool[tool] = given;
            of.payload.blend_time = blend_time;
            of.loop.payloads.draft() = of.payload;
            of.loop.payloads.send();
        }
        return reason;
    });
}

const char *eom_motion_make(eom_motion **motion, const double *limits, size_t joints, int synchronised, double *delays)
{
    auto &made = (*motion = new eom_motion)->joints;
    const char *reason = made.configure(limits_of(limits, joints), synchronised != 0);
    for (std::size_t i = 0; i < made.size(); ++i)
        delays[i] = made.joint(i).delay();
    return reason;
}

void eom_motion_free(eom_motion *motion) { delete motion; }

void eom_motion_begin(eom_motion *motion, const double *states, double *excess)
{
    auto &joints = motion->joints;
    const std::size_t n = joints.size();
    joints.leave();
    for (std::size_t i = 0; i < n; ++i)
        if (excess)
            excess[i] = joints.joint(i).take_over(
                {states[i], states[n + i], states[2 * n + i], states[3 * n + i], states[4 * n + i]});
        else
            joints.joint(i).rest(states[i]);
}

const char *eom_motion_aim(eom_motion *motion, const double *times, size_t knots, const double *positions,
                           const double *velocities)
{
    eom::Target x;
    const char *reason =
        positions ? x.assign(0, times, knots, positions, velocities, motion->joints.size()) : nullptr;
    if (!positions)
        motion->joints.stop();
    else if (!reason)
        motion->joints.take(x, 0);
    return reason;
}

double eom_motion_step(eom_motion *motion, size_t cycles, double *states)
{
    const std::size_t n = motion->joints.size();
    for (; cycles > 0; --cycles, states += 5 * n) {
        motion->joints.step();
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < 5; ++k)
                states[k * n + i] = motion->joints.joint(i).state()[k];
    }
    return motion->joints.time();
}

int eom_motion_arrived(const eom_motion *motion) { return motion->joints.arrived(); }
}

eom::LoopState eom::state_of(const eom_loop &loop) noexcept
{
    return on(&loop, [](const auto &of) -> LoopState {
        const auto &x = of.loop;
        return {x.output().status, x.output().valid, x.playing(),           x.waiting(),
                x.aiming(),        x.arrived(),      x.counts(),          x.refusal(),
                x.payload_refusal(), x.finding(), x.commander().mode(),
                x.commander().led_beyond(), x.blinded(), of.contact.settled(), of.contact.found(), x.touched(), of.contact.touched()};
    });
}
