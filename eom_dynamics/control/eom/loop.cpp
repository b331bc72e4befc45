// SPDX-License-Identifier: Apache-2.0
// The control loop behind its interface in C.
#include <eom/filled_table.hpp>
#include <eom/hosted_loop.hpp>
#include <eom/loop.h>
#include <eom/plant.hpp>

#include <cstring>
#include <vector>

namespace {

using eom::named;
using eom::on;
using eom::UNKNOWN;

/// Rows of limits of motion.
std::vector<eom::MotionLimits> limits_of(const double *limits, std::size_t joints)
{
    std::vector<eom::MotionLimits> rows(joints);
    std::memcpy(rows.data(), limits, joints * sizeof(eom::MotionLimits));
    return rows;
}

} // namespace

struct eom_motion : eom::OnlineTrajectory {};

struct eom_plant : eom::Plant {
    using Plant::Plant;
};

extern "C" {

const char *eom_loop_digest() { return EOM_LOOP_DIGEST; }

eom_robot *eom_robot_make(size_t joints, size_t motors, size_t tools)
{
    auto *robot = new eom::FilledTable;
    robot->joints = joints;
    robot->motors = motors;
    robot->tools = tools;
    return robot;
}

void eom_robot_free(eom_robot *robot) { delete static_cast<eom::FilledTable *>(robot); }

const char *eom_robot_set(eom_robot *robot, const char *name, const double *numbers, size_t count)
{
    return static_cast<eom::FilledTable *>(robot)->set(name, numbers, count);
}

void eom_robot_call(eom_robot *robot, int joints, const char *const *names, size_t count)
{
    static_cast<eom::FilledTable *>(robot)->call(joints != 0, names, count);
}

const char *eom_robot_add(eom_robot *robot, const char *function, eom_kernel kernel, const char *const *inputs,
                          size_t input_count, const char *const *outputs, size_t output_count)
{
    return static_cast<eom::FilledTable *>(robot)->add(function, kernel, inputs, input_count, outputs, output_count);
}

eom_loop *eom_loop_make(const eom_robot *robot) { return eom::make(*robot); }

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
    return on(loop, [=](auto &of) { return of.set(name, numbers, count); });
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
    return on(loop, [=](auto &of) { return of.vector(whose, name); });
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
        return static_cast<int>(found) + 8 * static_cast<int>(of.refused_joint);
    });
}

const char *eom_loop_restart(eom_loop *loop, int64_t now)
{
    return on(loop, [=](auto &of) { return of.restart(now); });
}

int eom_loop_locate(eom_loop *loop, int64_t now, int ends)
{
    return on(loop, [=](auto &of) {
        return static_cast<int>(of.loop.locate(now, of.in_si(now), ends != 0));
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
        const char *reason = of.loop.carry(of.measured, carried, blend_time);
        if (!reason)
            of.carried = carried;
        return reason;
    });
}

const char *eom_loop_limit(eom_loop *loop, const double *limits, size_t joints)
{
    return on(loop, [=](auto &of) { return of.loop.limit(limits_of(limits, joints)); });
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
        return of.loop.counts().refused > refused ? static_cast<int>(of.loop.reason().refusal) : -1;
    });
}

double eom_loop_stop_utilization(eom_loop *loop)
{
    return on(loop, [](auto &of) { return of.loop.stop_utilization(); });
}

void eom_loop_delay(eom_loop *loop, int64_t time)
{
    on(loop, [=](auto &of) { of.loop.delay(time); });
}

const char *eom_loop_act(eom_loop *loop, const char *action)
{
    return on(loop, [=](auto &of) {
        using Of = std::decay_t<decltype(of)>;
        const struct {
            const char *name;
            void (*act)(Of &of);
        } actions[] = {{"take", [](Of &x) { x.loop.refer_to_mailbox(); }}, // first, for its cycles
                       {"halt", [](Of &x) { x.loop.halt(); }},
                       {"drop", [](Of &x) { x.loop.drop(); }},
                       {"stop", [](Of &x) { x.loop.stop(); }},
                       {"lose", [](Of &x) { x.loop.lose(); }},
                       {"pause", [](Of &x) { x.loop.paused = true; }},
                       {"resume", [](Of &x) { x.loop.resume(); }},
                       {"release", [](Of &x) { x.loop.release(x.in_si(x.loop.clock())); }}};
        const auto *found = named(actions, action);
        if (found)
            found->act(of);
        return found ? nullptr : UNKNOWN;
    });
}

const char *eom_loop_post_speed(eom_loop *loop, double factor)
{
    if (!(factor >= 0 && factor <= eom::MAX_PACE))
        return "speed_scaling must be 0 to 1";
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

double eom_fade_weight(double fraction) { return eom::Fade::weight_at(fraction); }

const char *eom_observer_set(eom_loop *loop, const char *name, const double *numbers, size_t count)
{
    return on(loop, [=](auto &of) { return of.set_observer(name, numbers, count); });
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
            const auto code = of.observe(std::llround(1e9 * times[k]));
            codes[k] = static_cast<int>(code) + 8 * static_cast<int>(of.refused_joint);
            const auto &links = of.observer.links.value;
            const auto &motors = of.observer.motors.value;
            found = std::copy_n(links.begin(), of.robot.joint_count(), found);
            found = std::copy_n(motors.begin(), of.robot.motor_count(), found);
            for (const auto *motion : {&of.observer.sensed().q, &of.observer.sensed().qd})
                found = std::copy_n(motion->begin(), of.robot.joint_count(), found);
        }
    });
}

const char *eom_loop_text(eom_loop *loop, const char *what)
{
    return on(loop, [=](auto &of) { return of.say(what); });
}

static_assert(sizeof(eom_reason) <= 96, "Reason of control/control_loop.py has room for it");

const char *eom_loop_violation(eom_loop *loop, size_t number, eom_reason *reason)
{
    return on(loop, [=](auto &of) -> const char * {
        const auto found = of.violations();
        if (number >= found.size())
            return nullptr;
        *reason = found[number];
        const auto [name, quantity, unit, remark] = eom::Sentences(of.table).parts(*reason);
        of.text = name + '\x1f' + quantity + '\x1f' + unit + '\x1f' + remark;
        return of.text.c_str();
    });
}

size_t eom_loop_visits(const eom_loop *loop, int event, int phase)
{
    return on(loop, [=](const auto &of) -> size_t {
        return of.loop.state_machine().visits(static_cast<std::size_t>(event), static_cast<std::size_t>(phase));
    });
}

size_t eom_state_size() { return sizeof(eom_state); }

void eom_loop_state(const eom_loop *loop, eom_state *state)
{
    on(loop, [=](const auto &of) { of.tell(*state); });
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

const char *eom_loop_post_spline(eom_loop *loop, int64_t origin, const double *knots, size_t count, const double *states)
{
    const std::vector<double> times(knots, knots + count);
    return on(loop, [&](auto &of) {
        std::vector<eom::State<std::decay_t<decltype(of)>::Robot::joints>> at_knots(count);
        const std::size_t n = of.robot.joint_count();
        const double *numbers = states;
        for (std::size_t order = 0; order < 5; ++order)
            for (auto &state : at_knots) {
                std::fill(std::copy(numbers, numbers + n, state[order].begin()), state[order].end(), 0);
                numbers += n;
            }
        auto &draft = of.loop.trajectories.draft();
        draft.origin = origin;
        const char *reason = draft.assign(times, at_knots);
        if (!reason)
            of.loop.trajectories.send();
        return reason;
    });
}

const char *eom_loop_post_target(eom_loop *loop, int64_t origin, const double *times, size_t knots, const double *positions,
                                 const double *velocities, const double *accelerations)
{
    return on(loop, [=](auto &of) { return of.post_target(origin, times, knots, positions, velocities, accelerations); });
}

const char *eom_loop_post_payload(eom_loop *loop, size_t tool, const double *body, double blend_time)
{
    return on(loop, [=](auto &of) { return of.post_payload(tool, body, blend_time); });
}

eom_plant *eom_plant_make(const eom_robot *robot, const double *kp, const double *kd)
{
    if (!robot->kernels.plant.call)
        return nullptr;
    auto *plant = new eom_plant(*robot);
    plant->follow(kp, kd);
    return plant;
}

void eom_plant_free(eom_plant *plant) { delete plant; }

double *eom_plant_vector(eom_plant *plant, const char *whose, const char *name)
{
    eom::DriveMotion &commanded = plant->commanded, &reported = plant->reported;
    const struct {
        const char *whose, *name;
        double *numbers;
    } vectors[] = {{"state", "q", plant->q()},
                   {"state", "qd", plant->qd()},
                   {"state", "theta", plant->theta()},
                   {"state", "thetad", plant->thetad()},
                   {"state", "friction_state", plant->friction_state()},
                   {"commanded", "drive_position", commanded.position.data()},
                   {"commanded", "drive_velocity", commanded.velocity.data()},
                   {"commanded", "drive_effort", commanded.effort.data()},
                   {"reported", "drive_position", reported.position.data()},
                   {"reported", "drive_velocity", reported.velocity.data()},
                   {"reported", "drive_effort", reported.effort.data()}};
    for (const auto &x : vectors)
        if (std::strcmp(x.whose, whose) == 0 && std::strcmp(x.name, name) == 0)
            return x.numbers;
    return nullptr;
}

void eom_plant_rest(eom_plant *plant) { plant->rest(); }

int eom_plant_advance(eom_plant *plant, double time, double longest_step) { return plant->advance(time, longest_step); }

const char *eom_motion_make(eom_motion **motion, const double *limits, size_t joints, double *delays)
{
    *motion = new eom_motion;
    const char *reason = (*motion)->configure(limits_of(limits, joints));
    for (std::size_t i = 0; i < (*motion)->size(); ++i)
        delays[i] = (*motion)->joint(i).delay();
    return reason;
}

void eom_motion_free(eom_motion *motion) { delete motion; }

void eom_motion_begin(eom_motion *motion, const double *states, double *excess)
{
    const std::size_t n = motion->size();
    motion->leave();
    for (std::size_t i = 0; i < n; ++i)
        if (excess)
            excess[i] = motion->joint(i).take_over(
                {states[i], states[n + i], states[2 * n + i], states[3 * n + i], states[4 * n + i]});
        else
            motion->joint(i).rest(states[i]);
}

const char *eom_motion_aim(eom_motion *motion, const double *times, size_t knots, const double *positions,
                           const double *velocities, const double *accelerations)
{
    eom::Target x;
    if (!positions) {
        motion->stop();
        return nullptr;
    }
    const char *reason = x.assign(0, times, knots, positions, velocities, accelerations, motion->size());
    if (!reason)
        motion->take(x, 0);
    return reason;
}

double eom_motion_step(eom_motion *motion, size_t cycles, double *states)
{
    const std::size_t n = motion->size();
    for (; cycles > 0; --cycles, states += 5 * n) {
        motion->prepare();
        motion->step();
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < 5; ++k)
                states[k * n + i] = motion->joint(i).state()[k];
    }
    return motion->time();
}

int eom_motion_arrived(const eom_motion *motion) { return motion->arrived(); }
}
