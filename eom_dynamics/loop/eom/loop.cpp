// SPDX-License-Identifier: Apache-2.0
// The control loop behind its interface in C, for robots of up to so many joints, motors and tools.
#include <eom/loaded_robot.hpp>
#include <eom/loop.h>
#include <eom/online_trajectory.hpp>

#include <cstring>
#include <deque>
#include <vector>

namespace {

using Robot = eom::LoadedRobot<EOM_JOINTS, EOM_MOTORS, EOM_TOOLS>;
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

} // namespace

struct eom_robot {
    eom::RobotTable table;
    std::deque<std::vector<double>> numbers;
    std::deque<std::vector<Vector>> vectors;
    std::deque<eom::Kernel> further;
    std::vector<std::size_t> motor_joint;
};

struct eom_loop {
    explicit eom_loop(const eom_robot &given) : numbers(given.table), robot(given.table, numbers), loop(robot)
    {
        setpoint = robot.rest();
    }

    const Robot::Numbers numbers;
    const Robot robot;
    eom::ControlLoop<Robot> loop;
    eom::LoopParameters<Robot> parameters, in_effect;
    eom::Measurement<Robot> measured;
    eom::Setpoint<Robot> setpoint;
    eom::PayloadBlend<Robot>::Parameters payload{};
};

struct eom_motion {
    eom::OnlineTrajectory joints;
};

extern "C" {

eom_robot *eom_robot_make(size_t joints, size_t motors, size_t tools)
{
    if (joints > EOM_JOINTS || motors > EOM_MOTORS || tools > EOM_TOOLS)
        return nullptr;
    auto *robot = new eom_robot;
    robot->table.joints = joints;
    robot->table.motors = motors;
    robot->table.tools = tools;
    return robot;
}

void eom_robot_free(eom_robot *robot) { delete robot; }

const char *eom_robot_set(eom_robot *robot, const char *name, const double *numbers, size_t count)
{
    eom::RobotTable &table = robot->table;
    if (std::strcmp(name, "motor_joint") == 0) {
        robot->motor_joint.assign(numbers, numbers + count);
        table.facts.motor_joint = {robot->motor_joint.data(), count};
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
        {"nominal_stiffness", &table.nominal_stiffness},
        {"largest_effort", &table.largest_effort},
        {"turn", &table.turn},
        {"voltage_limit", &table.voltage_limit},
        {"joint_sides", &table.joint_sides},
        {"load_weights", &table.load_weights},
#define EOM_ENDS(name) {"lower." #name, &table.lower.name}, {"upper." #name, &table.upper.name},
        EOM_LIMITED(EOM_ENDS)};
    const auto *found = named(spans, name);
    if (!found)
        return UNKNOWN;
    *found->span = robot->numbers.emplace_back(numbers, numbers + count);
    return nullptr;
}

const char *eom_robot_add(eom_robot *robot, const char *function, eom_kernel kernel, const char *const *inputs,
                          size_t input_count, const char *const *outputs, size_t output_count)
{
    const NamedKernel *found = named(KERNELS, function);
    if (!found)
        return UNKNOWN;
    if (input_count > eom::MOST_VECTORS || output_count > eom::MOST_VECTORS)
        return "a kernel has too many vectors";
    const auto listed = [&](const char *const *names, std::size_t count) {
        auto &vectors = robot->vectors.emplace_back();
        for (std::size_t i = 0; i < count; ++i)
            vectors.push_back(static_cast<Vector>(vector_of(names[i])));
        return eom::Span<const Vector>(vectors);
    };
    const eom::Kernel added{kernel, listed(inputs, input_count), listed(outputs, output_count)};
    for (const auto &vectors : {added.inputs, added.outputs})
        if (std::find(vectors.begin(), vectors.end(), Vector::count) != vectors.end())
            return UNKNOWN;
    eom::Kernel *last = &(robot->table.kernels.*found->kernel);
    if (!last->call) {
        *last = added;
        return nullptr;
    }
    while (last->next)
        last = const_cast<eom::Kernel *>(last->next);
    last->next = &robot->further.emplace_back(added);
    return nullptr;
}

size_t eom_loop_size(void) { return sizeof(eom_loop); }

size_t eom_setpoint_size(void) { return sizeof(eom::Setpoint<Robot>); }

eom_loop *eom_loop_make(const eom_robot *robot) { return new eom_loop(*robot); }

void eom_loop_free(eom_loop *loop) { delete loop; }

const char *eom_loop_set(eom_loop *loop, const char *setting, double value)
{
    const eom::Setting *found = named(eom::SETTINGS, setting);
    if (!found)
        return UNKNOWN;
    found->set(loop->parameters, value);
    return nullptr;
}

const char *eom_loop_configure(eom_loop *loop)
{
    const char *reason = loop->loop.configure(loop->parameters);
    (reason ? loop->parameters : loop->in_effect) = reason ? loop->in_effect : loop->parameters;
    return reason;
}

double *eom_loop_vector(eom_loop *loop, const char *whose, const char *name)
{
    // Vectors that others only read, too: their memory is the loop's.
    const auto &commander = loop->loop.commander();
    const eom::LoopOutput<Robot> &y = commander.output;
    const auto of = [whose](const char *group) { return std::strcmp(whose, group) == 0; };
    const auto of_plan = [name](const eom::State<Robot::joints> &state) {
        const std::size_t k = vector_of(name); // position to snap are the first vectors
        return k < state.size() ? const_cast<double *>(state[k].data()) : nullptr;
    };
    Robot::Places places{};
    if (of("given"))
        places.take(loop->setpoint);
    else if (of("setpoint"))
        places.take(y.setpoint);
    else if (of("command"))
        places.take(y.command);
    else if (of("exceeded"))
        places.take(commander.exceeded());
    else if (of("sent"))
        places.take(y.sent);
    else if (of("released"))
        places.take(commander.final_sent()), places.take(commander.final_command());
    else if (of("from"))
        return of_plan(loop->loop.player().planned().from);
    else if (of("to"))
        return of_plan(loop->loop.player().planned().to);
    else if (of("later"))
        return of_plan(loop->loop.player().planned().later);
    else if (of("measured"))
        places.take(loop->measured);
    else
        return nullptr;
    const std::size_t vector = vector_of(name);
    return vector < static_cast<std::size_t>(Vector::count) ? const_cast<double *>(places.in(static_cast<Vector>(vector)))
                                                            : nullptr;
}

void eom_loop_measure(eom_loop *loop, int links, int motors)
{
    loop->measured.links = links != 0;
    loop->measured.motors = motors != 0;
}

const char *eom_loop_restart(eom_loop *loop, int links, int motors)
{
    eom_loop_measure(loop, links, motors);
    return loop->loop.restart(loop->measured);
}

void *eom_loop_rest(eom_loop *loop, int on_base)
{
    loop->setpoint = loop->robot.rest();
    loop->setpoint.on_base = on_base != 0;
    return &loop->setpoint;
}

void eom_loop_refer(eom_loop *loop, int64_t stamp) { loop->loop.refer(loop->setpoint, stamp); }

const char *eom_loop_carry(eom_loop *loop, size_t tool, const double *parameters, double blend_time)
{
    auto payload = loop->payload;
    std::copy(parameters, parameters + 10, payload.begin() + static_cast<std::ptrdiff_t>(10 * tool));
    const char *reason = loop->loop.carry(payload, blend_time);
    if (!reason)
        loop->payload = payload;
    return reason;
}

const char *eom_loop_send(eom_loop *loop, int64_t origin, const double *knots, size_t count, const double *states)
{
    auto &draft = loop->loop.trajectories.draft();
    draft.stamp = origin;
    draft.stop = false;
    std::vector<eom::State<Robot::joints>> at_knots(count);
    const std::size_t n = loop->robot.joint_count();
    for (auto &state : at_knots)
        for (auto &row : state) {
            std::fill(std::copy(states, states + n, row.begin()), row.end(), 0);
            states += n;
        }
    const char *reason = draft.spline.assign({knots, knots + count}, at_knots);
    if (!reason)
        loop->loop.trajectories.send();
    return reason;
}

int eom_loop_plan(eom_loop *loop, int64_t now, double period)
{
    const auto refused = loop->loop.counts().refused;
    if (loop->loop.plan(now, period))
        return 0;
    return loop->loop.counts().refused > refused ? static_cast<int>(loop->loop.refusal()) : -1;
}

void eom_loop_play(eom_loop *loop) { loop->loop.play(); }

void eom_loop_drop(eom_loop *loop) { loop->loop.drop(); }

void eom_loop_halt(eom_loop *loop) { loop->loop.halt(); }

void eom_loop_stop(eom_loop *loop) { loop->loop.stop(); }

void eom_loop_lose(eom_loop *loop) { loop->loop.lose(); }

int eom_loop_update(eom_loop *loop, int64_t now, double period)
{
    const auto before = loop->loop.counts();
    loop->loop.update(now, period, loop->measured, true);
    const eom::LoopCounts &after = loop->loop.counts();
    const bool found = after.suspect() - after.without_stamp > before.suspect() - before.without_stamp;
    return after.refused > before.refused ? static_cast<int>(loop->loop.refusal())
                                          : -((after.over_limits > before.over_limits) + 2 * found);
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

double eom_loop_number(const eom_loop *loop, const char *name)
{
    const eom::LoopCounts &counts = loop->loop.counts();
    const auto &plan = loop->loop.player().planned();
    const auto progress = loop->loop.watchdog().progress();
    const eom::Finding &finding = loop->loop.finding();
    const eom::LoopOutput<Robot> &y = loop->loop.output();
#define EOM_NUMBERED(name, value) {name, static_cast<double>(value)}
#define EOM_OF(object, name) {#name, static_cast<double>(object.name)}
#define EOM_OF_PLAN(name) {"plan_" #name, static_cast<double>(plan.name)}
#define EOM_OF_FINDING(name) {"finding_" #name, static_cast<double>(finding.name)}
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        EOM_OF(y, status), EOM_OF(y, valid), EOM_OF(y.setpoint, on_base),
        EOM_NUMBERED("given_on_base", loop->setpoint.on_base),
        EOM_NUMBERED("playing", loop->loop.playing()), EOM_NUMBERED("waiting", loop->loop.waiting()),
        EOM_NUMBERED("blending", loop->loop.blending()), EOM_NUMBERED("final_efforts", loop->loop.commander().final_efforts()),
        EOM_OF(progress, lost), EOM_OF(progress, held), EOM_OF(progress, stopping), EOM_OF(progress, fed),
        EOM_OF(progress, age), EOM_OF(progress, stop_end), EOM_OF(progress, excess),
        EOM_OF_PLAN(waits), EOM_OF_PLAN(begin), EOM_OF_PLAN(start), EOM_OF_PLAN(end),
        EOM_OF(counts, cycles), EOM_OF(counts, followed), EOM_OF(counts, refused), EOM_OF(counts, over_limits),
        EOM_OF(counts, timeouts), EOM_OF(counts, refused_payloads), EOM_OF(counts, suspect_stamps),
        EOM_OF(counts, jumps), EOM_OF(counts, inconsistent), EOM_OF(counts, without_stamp),
        EOM_NUMBERED("finding", finding.check), EOM_OF_FINDING(field), EOM_OF_FINDING(joint), EOM_OF_FINDING(joints),
        EOM_OF_FINDING(time), EOM_OF_FINDING(step), EOM_OF_FINDING(allowed), EOM_OF_FINDING(difference),
        EOM_OF_FINDING(factor),
    };
    const auto *found = named(numbers, name);
    return found ? found->value : std::nan("");
}

void eom_loop_release(eom_loop *loop) { loop->loop.release(loop->measured); }

eom_motion *eom_motion_make(void) { return new eom_motion; }

void eom_motion_free(eom_motion *motion) { delete motion; }

const char *eom_motion_configure(eom_motion *motion, const double *limits, size_t joints, int synchronised)
{
    std::vector<eom::MotionLimits> rows(joints);
    std::memcpy(rows.data(), limits, joints * sizeof(eom::MotionLimits));
    return motion->joints.configure(rows, synchronised != 0);
}

void eom_motion_rest(eom_motion *motion, const double *positions)
{
    motion->joints.leave();
    for (std::size_t i = 0; i < motion->joints.size(); ++i)
        motion->joints.joint(i).rest(positions[i]);
}

void eom_motion_take_over(eom_motion *motion, const double *states, double *excess)
{
    const std::size_t n = motion->joints.size();
    motion->joints.leave();
    for (std::size_t i = 0; i < n; ++i)
        excess[i] = motion->joints.joint(i).take_over(
            {states[i], states[n + i], states[2 * n + i], states[3 * n + i], states[4 * n + i]});
}

const char *eom_motion_aim(eom_motion *motion, const double *positions, const double *velocities, int *clamped)
{
    return motion->joints.aim(positions, velocities, clamped) ? nullptr : "targets must be finite";
}

const char *eom_motion_follow(eom_motion *motion, const double *times, const double *positions, size_t knots)
{
    return motion->joints.follow(times, positions, knots);
}

double eom_motion_time(const eom_motion *motion) { return motion->joints.time(); }

void eom_motion_stop(eom_motion *motion)
{
    motion->joints.leave();
    for (std::size_t i = 0; i < motion->joints.size(); ++i)
        motion->joints.joint(i).stop();
}

void eom_motion_step(eom_motion *motion, size_t cycles, double *states)
{
    const std::size_t n = motion->joints.size();
    for (; cycles > 0; --cycles, states += 5 * n) {
        motion->joints.step();
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < 5; ++k)
                states[k * n + i] = motion->joints.joint(i).state()[k];
    }
}

int eom_motion_arrived(const eom_motion *motion)
{
    if (motion->joints.following())
        return 0;
    for (std::size_t i = 0; i < motion->joints.size(); ++i)
        if (!motion->joints.joint(i).arrived())
            return 0;
    return 1;
}

void eom_motion_targets(const eom_motion *motion, double *positions)
{
    for (std::size_t i = 0; i < motion->joints.size(); ++i)
        positions[i] = motion->joints.joint(i).target();
}

void eom_motion_delays(const eom_motion *motion, double *delays)
{
    for (std::size_t i = 0; i < motion->joints.size(); ++i)
        delays[i] = motion->joints.joint(i).delay();
}
}
