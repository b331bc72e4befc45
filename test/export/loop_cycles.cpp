// SPDX-License-Identifier: Apache-2.0
// Cycles of the loop in C++, of a robot with places for EOM_JOINTS, EOM_MOTORS and EOM_TOOLS alone.
//
//     loop_cycles ROBOT.so COUNT    prints a line of each check; COUNT is the number of cycles of the last one
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include <eom/control_loop.hpp>
#include <eom/loaded_robot.hpp>
#include <eom/plant.hpp>

#include "checks.hpp"
#include "loop_library.hpp"

namespace {

using eom::Status;
using eom::test::difference;
using eom::test::expect;
using eom::test::failures;
using Robot = eom::LoadedRobot<EOM_JOINTS, EOM_MOTORS, EOM_TOOLS>;

constexpr std::size_t n = Robot::joints, m = Robot::motors;
constexpr std::int64_t MILLISECOND = 1'000'000;
constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

std::shared_ptr<const eom::RobotTable> table;

const Robot &robot()
{
    static const Robot::Numbers numbers(*table);
    static const Robot loaded(*table, numbers);
    return loaded;
}

struct Loop : eom::ControlLoop<Robot> {
    explicit Loop(const Robot &of = robot()) : ControlLoop(of) {}
};

/// Robot with a command lead `lead`, s.
struct RobotAhead {
    explicit RobotAhead(double lead) : copy(*table), numbers(copy), robot(copy, numbers) { copy.command_lead = lead; }

    eom::RobotTable copy;
    Robot::Numbers numbers;
    Robot robot;
};

/// Command for an isolated setpoint: damped springs without transient, friction from velocities.
void command_for(eom::Setpoint<Robot> &x, eom::Command<Robot> &y)
{
    if (robot().filters()) {
        robot().inverse_dynamics(x, y);
        eom::DeflectionFilter<Robot>(robot()).at(0, y, x.deflection);
    }
    robot().feedforward(x, y);
}

eom::Measurement<Robot> at_rest()
{
    eom::Measurement<Robot> measured;
    eom::Setpoint<Robot> x = robot().rest();
    eom::Command<Robot> y;
    command_for(x, y);
    measured.motor_position = y.motor_position;
    measured.links = measured.motors = true;
    return measured;
}

/// Smooth reference near 0 at the time `t`, s.
eom::Setpoint<Robot> wave(double t)
{
    eom::Setpoint<Robot> x = robot().rest();
    const double w = 2;
    for (std::size_t i = 0; i < n; ++i) {
        const double size = 0.05 * (1 + static_cast<double>(i % 3));
        x.q[i] = size * (1 - std::cos(w * t));
        x.qd[i] = size * w * std::sin(w * t);
        x.qdd[i] = size * w * w * std::cos(w * t);
        x.qddd[i] = -size * w * w * w * std::sin(w * t);
        x.qdddd[i] = -size * w * w * w * w * std::cos(w * t);
    }
    return x;
}

Loop &tested()
{
    static Loop loop;
    return loop;
}

/// Targets of zero in all places of the mailbox.
void prepare_targets()
{
    tested().limit(std::vector<eom::MotionLimits>(n, {-1, 1, 2, 10, 200, 1e4, 0.01, 1e-3}));
    for (int k = 0; k < 3; ++k) {
        tested().targets.draft().assign(0, nullptr, 0, std::array<double, n>{}.data(), nullptr, nullptr, n);
        tested().targets.send();
        tested().aim(0);
    }
}

/// All that a cycle can do: trajectories, targets, setpoints, refusals, timeouts, feedback.
bool cycles(long count)
{
    Loop &loop = tested();
    eom::LoopParameters<Robot> parameters;
    parameters.limits = eom::LimitPolicy::refuse;
    parameters.setpoint_timeout = 0.02;
    parameters.on_setpoint_loss = eom::LossPolicy::hold;
    parameters.motor_kp.fill(10);
    parameters.link_kp.fill(10);
    parameters.stamp_check = parameters.jump_check = eom::CheckPolicy::warn;
    loop.configure(parameters);
    loop.restart(at_rest());
    const eom::Measurement<Robot> measured = at_rest();
    bool good = true;
    for (std::int64_t i = 0; i < count; ++i) {
        if (i % 1000 == 0) {
            loop.trajectories.send();
        } else if (i % 5000 == 700) {
            loop.targets.send();
        } else if (i % 1000 < 500) {
            eom::Setpoint<Robot> x = wave(static_cast<double>(i) * 1e-3);
            if (i % 100 == 99)
                x.q[0] = nan;
            loop.refer(x, i * MILLISECOND);
        }
        good = eom::finite(loop.update(i * MILLISECOND, 1e-3, measured).motor_effort) && good;
    }
    return good;
}

/// Motion of all joints from 0, at rest at both ends; it begins at `start`, s.
eom::Spline<n> swing(double start = 0, double size = 0.2)
{
    eom::State<n> rest{}, turned{};
    turned[0].fill(size);
    eom::Spline<n> spline;
    spline.assign({start, start + 1, start + 2}, {rest, turned, rest});
    return spline;
}

void send(Loop &loop, const eom::Spline<n> &spline, std::int64_t stamp, bool stop = false)
{
    loop.trajectories.draft() = stop ? eom::Spline<n>() : spline;
    loop.trajectories.draft().origin = stamp;
    loop.trajectories.send();
}

/// Cycles of a millisecond, from one to before another.
void run(Loop &loop, std::int64_t from, std::int64_t to, const eom::Measurement<Robot> &measured = {},
         std::int64_t start = 0)
{
    for (std::int64_t i = from; i < to; ++i)
        loop.update(start + i * MILLISECOND, 1e-3, measured);
}

eom::LoopParameters<Robot> unlimited()
{
    eom::LoopParameters<Robot> parameters;
    parameters.limits = eom::LimitPolicy::ignore;
    parameters.jump_check = eom::CheckPolicy::ignore;
    return parameters;
}

/// A reference at a cycle of a millisecond, and the cycle.
void follow(Loop &loop, const eom::Setpoint<Robot> &reference, std::int64_t cycle)
{
    loop.refer(reference, 0);
    loop.update(cycle * MILLISECOND, 1e-3, {});
}

void payload()
{
    Loop loop;
    loop.configure(unlimited());
    loop.restart({});
    loop.payloads.draft().at_tool[0].mass = 0.1;
    loop.payloads.draft().blend_time = 0;
    loop.payloads.send();
    follow(loop, wave(0.3), 0);
    const eom::LoopOutput<Robot> &y = loop.output();
    eom::Setpoint<Robot> x = wave(0.3);
    eom::Command<Robot> direct;
    x.P = y.setpoint.P;
    x.loaded = y.setpoint.loaded;
    command_for(x, direct);
    expect(loop.payload_refusal() || (x.P[0] == 0.1 && y.motor_effort == direct.motor_effort), "a payload is carried");
}

void not_finite_is_seen()
{
    eom::Setpoint<Robot> x = robot().rest();
    eom::Command<Robot> y;
    robot().feedforward(x, y);
    expect(eom::finite(y), "finite at rest");
    x.qdd[0] = inf;
    robot().feedforward(x, y);
    expect(!eom::finite(y), "an infinite acceleration is seen");
}

void splines_that_cannot_be()
{
    const std::vector<eom::State<n>> states(3);
    eom::Spline<n> spline;
    std::vector<eom::State<n>> resting = states;
    for (eom::State<n> &state : resting)
        state[0].fill(0.1);
    expect(spline.assign({0, 0.3, 1.1}, resting) == nullptr && !spline.empty(), "states at knots are accepted");
    std::vector<eom::State<n>> unknown = states;
    unknown[1][4][n - 1] = nan;
    bool refused = spline.assign({0, 1, 2}, unknown) != nullptr;
    for (const std::vector<double> &times : std::vector<std::vector<double>>{
             {0, 2, 1}, {0, 1, 1}, {0, 1, 1 + 1e-6}, {0, nan, 2}, {0, 1, inf}, {0, 1}, {0, 1, 2, 3}, {}})
        refused = spline.assign(times, states) != nullptr && refused;
    eom::State<n> state;
    spline.evaluate(0.5, state);
    refused = refused && state[0][0] == 0.1 && state[1][0] == 0;
    expect(refused && spline.assign({0, 1, 2}, states) == nullptr, "states at knots are refused if they are no motion");
    expect(spline.assign({}, {}) == nullptr && spline.empty(), "without knots it is a request to stop");
}

/// Largest distance of the links of the simulated arm from a motion that is streamed to it for a quarter of a second,
/// without feedback, rad or m; infinite if the springs are too stiff for `step`, s.
double tracking_error(std::int64_t rate, double step)
{
    Loop loop;
    loop.configure(unlimited());
    eom::Plant plant(*table);
    plant.rest();
    eom::Setpoint<Robot> x = wave(0);
    eom::Command<Robot> y;
    command_for(x, y);
    std::copy(x.q.begin(), x.q.end(), plant.q());
    std::copy(x.qd.begin(), x.qd.end(), plant.qd());
    std::copy(y.motor_position.begin(), y.motor_position.end(), plant.theta());
    std::copy(y.motor_velocity.begin(), y.motor_velocity.end(), plant.thetad());
    if (robot().slides()) {
        eom::MotorVector<Robot> states{};
        eom::DeflectionFilter<Robot>(robot()).slide(0, y, states);
        std::copy(states.begin(), states.end(), plant.friction_state());
    }
    double error = 0;
    loop.restart({});
    for (std::int64_t i = 0; i < rate / 4; ++i) {
        // The effort holds for a cycle: the effort for its middle is best.
        x = wave((static_cast<double>(i) + 0.5) / static_cast<double>(rate));
        const std::int64_t now = (1 + i) * 1'000'000'000 / rate;
        loop.refer(x, now);
        const eom::LoopOutput<Robot> &output = loop.update(now, 1 / static_cast<double>(rate), {});
        std::copy(output.sent.drive_effort.begin(), output.sent.drive_effort.end(), plant.commanded.effort.begin());
        if (!plant.advance(1 / static_cast<double>(rate), step))
            return inf;
        x = wave((static_cast<double>(i) + 1) / static_cast<double>(rate));
        for (std::size_t j = 0; j < n; ++j)
            error = std::fmax(error, std::fabs(plant.q()[j] - x.q[j]));
    }
    return error;
}

void simulated_arm()
{
    double slow = 1, fast = 1;
    bool passed = false;
    for (const double step : {2.5e-4, 2.5e-5, 2.5e-6, 5e-7}) {
        slow = tracking_error(1000, step);
        fast = tracking_error(4000, step);
        passed = slow < 1e-3 && fast < 0.3 * slow + 1e-9;
        if (passed)
            break;
    }
    std::printf("%-4s the links of the simulated arm are off by %.1e at 1 kHz, %.1e at 4 kHz\n", passed ? "ok" : "BAD",
                slow, fast);
    failures += !passed;
}

void mailbox()
{
    eom::Mailbox<int> own;
    bool kept = !own.take();
    for (int i = 1; i <= 3; ++i) {
        own.draft() = i;
        own.send();
        kept = kept && own.waiting() && (i == 3 || own.take());
    }
    kept = kept && own.taken() == 2 && own.take() && own.taken() == 3 && !own.take();
    for (int i = 4; i <= 9; ++i) {
        own.draft() = i;
        own.send();
        kept = kept && own.taken() == 3;
    }
    expect(kept && own.take() && own.taken() == 9, "the last message stays until the next message is read");

    eom::Mailbox<std::array<long, 64>> box;
    constexpr long COUNT = 100000;
    std::thread writer([&box] {
        for (long i = 1; i <= COUNT; ++i) {
            box.draft().fill(i);
            box.send();
        }
    });
    bool whole = true, later = true;
    for (long last = 0; last < COUNT;) {
        if (!box.take())
            continue;
        const std::array<long, 64> &message = box.taken();
        for (const long value : message)
            whole = whole && value == message[0];
        later = later && message[0] > last;
        last = message[0];
    }
    writer.join();
    expect(whole && later, "messages between threads are whole and in order");
}

void references()
{
    Loop loop;
    loop.configure(unlimited());
    loop.restart({});
    expect(!loop.update(0, 1e-3, {}).valid && loop.output().status == Status::waiting, "no command without references");
    loop.restart(at_rest());
    const eom::LoopOutput<Robot> &y = loop.update(0, 1e-3, at_rest());
    expect(y.valid && y.status == Status::waiting && y.setpoint.q == at_rest().q, "holds the position until they come");
    eom::Measurement<Robot> motors = at_rest();
    motors.links = false;
    expect(!loop.restart(motors) &&
               difference(loop.update(0, 1e-3, motors).command.motor_position, motors.motor_position) < 1e-7,
           "link positions from motor positions");
    eom::Measurement<Robot> lost = motors;
    lost.motor_position[0] = inf;
    const char *reason = loop.restart(lost);
    expect(reason && std::strstr(reason, "no equilibrium at the measured position"), "or a reason if no equilibrium exists");
    loop.restart(at_rest());

    eom::Command<Robot> direct;
    eom::Setpoint<Robot> x = wave(0.3);
    command_for(x, direct);
    loop.refer(wave(0.3), 0);
    loop.update(MILLISECOND, 1e-3, motors);
    expect(y.status == Status::fresh && y.command.motor_effort == direct.motor_effort && y.motor_effort == direct.motor_effort,
           "the bits of the feedforward");
    for (std::size_t i = 0; i < m; ++i)
        if (std::fabs(y.deflection[i]) > 1 + std::fabs(y.command.motor_position[i]))
            expect(false, "deflections");
    x.q[0] = nan;
    loop.refer(x, 0);
    loop.update(2 * MILLISECOND, 1e-3, motors);
    expect(y.status == Status::held && y.motor_effort == direct.motor_effort && loop.counts().refused == 1 &&
               loop.refusal() == eom::Refusal::not_finite,
           "a reference that is not finite is refused, and the last command held");
    x = wave(0.3);
    x.on_base = true;
    loop.refer(x, 0);
    loop.update(2 * MILLISECOND, 1e-3, motors);
    expect(y.status == Status::held && loop.counts().refused == 2 &&
               loop.refusal() == (robot().base_moves() ? eom::Refusal::free_fall : eom::Refusal::moving_base),
           "so is one on a base that falls, or without code for a moving base");
    if (robot().base_moves()) {
        x.base.f = {1, 2, 3};
        eom::Command<Robot> links, on_base;
        robot().inverse_dynamics(x, links);
        robot().feedforward(x, on_base);
        robot().feedforward(wave(0.3), direct);
        expect(links.tau == on_base.tau && difference(on_base.tau, direct.tau) > 0.01, "a base is felt");
    }

    loop.setpoints.draft().setpoint = wave(0.4);
    loop.setpoints.draft().stamp = 0;
    loop.setpoints.send();
    expect(loop.refer_to_mailbox() && !loop.refer_to_mailbox() && loop.reference().q == wave(0.4).q, "mailbox of setpoints");

    eom::LoopParameters<Robot> old = unlimited();
    old.setpoint_lifespan = 0.01;
    loop.configure(old);
    loop.refer(wave(0.4), 18 * MILLISECOND);
    loop.update(19 * MILLISECOND, 1e-3, motors);
    loop.refer(wave(0.5), MILLISECOND);
    loop.update(20 * MILLISECOND, 1e-3, motors);
    expect(loop.counts().refused == 3 && y.status == Status::fresh && y.setpoint.q == wave(0.4).q &&
               loop.refusal() == eom::Refusal::too_old,
           "an old reference is refused, and as none");
}

void restarts()
{
    Loop loop;
    loop.configure(unlimited());
    const eom::LoopOutput<Robot> &y = loop.output();
    const auto follow_wave = [](Loop &of) {
        for (std::int64_t i = 0; i <= 500; ++i)
            follow(of, wave(1e-3 * static_cast<double>(i)), i);
    };
    const auto move = [&] { follow_wave(loop); };
    loop.restart({});
    move();
    loop.restart({}, 500 * MILLISECOND + 1);
    run(loop, 501, 502);
    expect(y.status == Status::stopping && difference(y.setpoint.q, wave(0.501).q) < 1e-12,
           "a restart between two cycles goes on without a step");
    run(loop, 502, 1000);
    expect(y.status == Status::held && y.setpoint.qd == eom::JointVector<Robot>{}, "and comes to rest");
    loop.restart({}, 999 * MILLISECOND + eom::LONGEST_GAP);
    expect(!y.valid, "a later one forgets the command");
    move();
    eom::Measurement<Robot> elsewhere = at_rest();
    for (auto &q : elsewhere.q)
        q += 1;
    loop.restart(elsewhere, 500 * MILLISECOND + 1);
    expect(y.status == Status::waiting && y.setpoint.q == elsewhere.q, "one of an arm that is elsewhere holds that");

    // Motor positions are the commands of one lead ago.
    const RobotAhead early(0.1);
    Loop ahead(early.robot);
    ahead.configure(unlimited());
    ahead.restart({});
    follow_wave(ahead);
    eom::Measurement<Robot> behind;
    eom::Setpoint<Robot> x = wave(0.5);
    eom::Command<Robot> command;
    command_for(x, command);
    behind.motor_position = command.motor_position;
    behind.motor_velocity = command.motor_velocity;
    behind.motors = true;
    ahead.restart(behind, 500 * MILLISECOND + 1);
    run(ahead, 501, 502);
    const auto &z = ahead.output();
    expect(z.status == Status::stopping && difference(z.setpoint.qdd, wave(0.501).qdd) < 0.01,
           "one of motors behind a command with a lead goes on");

    // An arm that moved without a command, or was stopped.
    eom::Measurement<Robot> other;
    other.links = true;
    other.q = wave(0.5).q;
    for (const double rate : {1.0, -0.3, 0.02}) {
        for (const std::int64_t pause : {5, 1000}) {
            loop.restart({});
            move();
            other.qd = wave(0.5).qd;
            for (double &value : other.qd)
                value = rate;
            const std::int64_t now = (500 + pause) * MILLISECOND;
            const char *reason = loop.restart(other, now);
            bool smooth = !reason && y.valid && y.status == Status::stopping && (pause < 10 || y.setpoint.qd == other.qd);
            eom::JointVector<Robot> last = y.setpoint.qd;
            for (std::int64_t i = 1; i <= 600; ++i) {
                loop.update(now + i * MILLISECOND, 1e-3, {});
                smooth = smooth && difference(y.setpoint.qd, last) < 0.01;
                last = y.setpoint.qd;
            }
            expect(smooth && y.status == Status::held && difference(last, std::array<double, n>{}) < 1e-12 &&
                       std::fabs(y.setpoint.q[0] - other.q[0] - 0.15 * rate) < (pause < 10 ? 0.1 : 1e-4),
                   "an arm that moves comes to rest from its measured motion");
        }
    }
}

/// Motor efforts that are sent for a command.
eom::MotorVector<Robot> sent_effort(const eom::Setpoint<Robot> &x, const eom::Command<Robot> &y)
{
    eom::DriveCommand<Robot> sent;
    sent.drive_effort = y.motor_effort;
    if (robot().converts())
        robot().drive_command(x, y, y.motor_effort, y.tau, {1, 0}, sent);
    return sent.drive_effort;
}

/// Last command of a loop that is switched off in motion; an immediate restart continues from it.
void switched_off()
{
    using Efforts = eom::EffortOnDeactivate;
    for (const Efforts efforts : {Efforts::zero, Efforts::gravity, Efforts::keep}) {
        eom::LoopParameters<Robot> parameters = unlimited();
        parameters.motor_kp.fill(10);
        parameters.effort_on_deactivate = efforts;
        Loop loop;
        loop.configure(parameters);
        const eom::LoopOutput<Robot> &y = loop.output();
        eom::Measurement<Robot> measured = at_rest();
        expect(loop.release(measured).drive_velocity == eom::MotorVector<Robot>{}, "a loop without a command can be switched off");
        loop.restart(measured);
        loop.refer(wave(0.3), 0);
        loop.update(0, 1e-3, measured);
        const auto last = y.sent.drive_position;
        const auto effort = y.sent.drive_effort;
        eom::Setpoint<Robot> there = robot().rest();
        eom::Command<Robot> gravity;
        there.q = measured.q = wave(0.35).q;
        command_for(there, gravity);
        const eom::DriveCommand<Robot> sent = loop.release(measured);
        const auto expected = efforts == Efforts::keep      ? effort
                              : efforts == Efforts::gravity ? sent_effort(there, gravity)
                                                            : eom::MotorVector<Robot>{};
        expect(sent.drive_effort == expected && sent.drive_position == last && sent.drive_velocity == eom::MotorVector<Robot>{},
               "switched off, positions and the efforts of effort_on_deactivate remain");
        measured.q = wave(0.3).q;
        measured.motor_position = y.command.motor_position;
        loop.restart(measured, 1);
        expect(y.sent.drive_position == last && y.sent.drive_effort == effort, "and all of them once it is on again");
    }
}

/// A motion from a position that is not 0, at rest at both ends.
eom::Spline<n> remote(double start = 0)
{
    eom::State<n> from{}, to{};
    from[0].fill(0.5);
    to[0].fill(0.7);
    eom::Spline<n> spline;
    spline.assign({start, start + 1}, {from, to});
    return spline;
}

/// Return true if a trajectory is played exactly, without a command before its start.
bool plays(Loop &loop, const eom::Measurement<Robot> &measured, double start, std::int64_t delay)
{
    const std::int64_t now = 1'700'000'000'000'000'000;
    send(loop, remote(start), delay ? now + delay * MILLISECOND : 0);
    const auto first = static_cast<std::int64_t>(std::lround(start * 1e3)) + delay;
    bool same = true;
    for (std::int64_t i = 0; i <= first + 1000; ++i) {
        const eom::LoopOutput<Robot> &y = loop.update(now + i * MILLISECOND, 1e-3, measured);
        if (i < first) {
            same = same && !y.valid && y.status == Status::waiting && y.setpoint.q == eom::JointVector<Robot>{};
            continue;
        }
        eom::State<n> state;
        remote(start).evaluate(static_cast<double>(i - delay) * 1e-3, state);
        same = same && y.valid && y.status == Status::fresh && difference(y.setpoint.q, state[0]) < 1e-12 &&
               difference(y.setpoint.qd, state[1]) < 1e-12 && difference(y.setpoint.qdddd, state[4]) < 1e-11;
    }
    return same && loop.counts().refused == 0;
}

void trajectories_from_an_unknown_position()
{
    Loop never_started;
    never_started.configure(unlimited());
    expect(plays(never_started, {}, 0, 0), "without a restart, a trajectory is played unchanged");
    eom::LoopParameters<Robot> parameters = unlimited();
    parameters.setpoint_timeout = 0.02;
    parameters.on_setpoint_loss = eom::LossPolicy::hold;
    Loop loop;
    loop.configure(parameters);
    loop.restart({});
    expect(plays(loop, {}, 0.3, 100), "nothing is commanded before its stamp and its first knot");

    eom::Measurement<Robot> failed = at_rest();
    failed.q.fill(nan);
    const eom::LoopOutput<Robot> &y = loop.output();
    loop.restart(failed);
    send(loop, remote(), 0);
    loop.update(0, 1e-3, failed);
    expect(y.status == Status::fresh && difference(y.setpoint.q, std::array<double, n>{}) >= 0.5,
           "or if the measured position is not finite");

    // A trajectory that has not started sends no command when it ends.
    loop.restart({});
    send(loop, remote(), 100 * MILLISECOND);
    loop.update(MILLISECOND, 1e-3, {});
    send(loop, remote(), 0, true);
    run(loop, 2, 300);
    expect(!loop.playing() && !y.valid && loop.counts().timeouts == 0, "a stop before the start commands nothing");
    loop.restart({});
    send(loop, remote(), 100 * MILLISECOND);
    loop.update(MILLISECOND, 1e-3, {});
    send(loop, remote(), -2000 * MILLISECOND);
    run(loop, 2, 300);
    expect(loop.playing() && loop.refusal() == eom::Refusal::ended && loop.counts().refused == 1,
           "a trajectory continues if its successor is refused");
    loop.restart({});
    send(loop, remote(), 50 * MILLISECOND);
    loop.update(MILLISECOND, 1e-3, {});
    send(loop, swing(0, 0.1), 60 * MILLISECOND);
    run(loop, 2, 561);
    eom::State<n> state;
    swing(0, 0.1).evaluate(0.5, state);
    expect(loop.counts().refused == 0 && difference(y.setpoint.q, state[0]) < 1e-12, "and another trajectory may replace it");
    // Its first setpoint is refused.
    eom::State<n> large{};
    large[0].fill(0.5);
    large[1].fill(1e300);
    eom::Spline<n> wild;
    wild.assign({0, 1}, {large, large});
    loop.restart({});
    send(loop, wild, 0);
    run(loop, 0, 300);
    expect(!loop.playing() && !y.valid && loop.refusal() == eom::Refusal::not_finite, "a refused one commands nothing");
    follow(loop, wave(0.3), 301);
    expect(y.status == Status::fresh, "then setpoints are followed from anywhere");
    // It has moved on since its stamp.
    loop.restart({});
    send(loop, remote(), 500 * MILLISECOND);
    loop.update(1000 * MILLISECOND, 1e-3, {});
    expect(!loop.playing() && !y.valid && loop.refusal() == eom::Refusal::under_way,
           "a trajectory that has left its first knot is refused");
}

void trajectories_behind_another_controller()
{
    Loop loop;
    loop.configure(unlimited());
    loop.restart(at_rest());
    const auto sent = [&loop](std::int64_t cycle, bool led) {
        if (led)
            loop.refer(robot().rest(), 0, true);
        send(loop, swing(), 0);
        loop.update(cycle * MILLISECOND, 1e-3, at_rest());
        return loop.playing();
    };
    expect(!sent(0, true) && loop.refusal() == eom::Refusal::led && loop.output().status == Status::fresh &&
               loop.counts().refused == 1,
           "a trajectory is refused while a controller in front writes references, which are followed");
    expect(sent(1, false) && loop.counts().refused == 1, "but not if it writes no references");
}

void trajectories_that_start_too_late()
{
    Loop loop;
    loop.configure(unlimited());
    const std::int64_t now = 1'700'000'000'000'000'000;
    const auto starts = [&](const eom::Spline<n> &spline, std::int64_t stamp) {
        loop.restart(at_rest());
        send(loop, spline, stamp);
        loop.update(now, 1e-3, at_rest());
        return (loop.playing() || loop.waiting()) && loop.refusal() == eom::Refusal::none;
    };
    expect(starts(swing(), now + 60'000 * MILLISECOND) && starts(swing(60), 0), "a trajectory may start in a minute");
    expect(!starts(swing(), now + 60'001 * MILLISECOND) && loop.refusal() == eom::Refusal::too_far_ahead &&
               !starts(swing(60.001), 0) && !starts(swing(31), now + 30'000 * MILLISECOND) &&
               starts(swing(-3600), now + 3'600'000 * MILLISECOND),
           "a trajectory that starts later is refused");
}

void feedback()
{
    eom::LoopParameters<Robot> parameters = unlimited();
    parameters.motor_kp.fill(100);
    parameters.motor_kd.fill(10);
    Loop loop;
    loop.configure(parameters);
    eom::Measurement<Robot> measured = at_rest();
    loop.restart(measured);
    loop.refer(wave(0.3), 0);
    const eom::LoopOutput<Robot> &y = loop.update(0, 1e-3, measured);
    double error = 0;
    for (std::size_t i = 0; i < m; ++i) {
        const double wanted = y.command.motor_effort[i] +
                              100 * (y.command.motor_position[i] - measured.motor_position[i]) +
                              10 * y.command.motor_velocity[i];
        error = std::fmax(error, std::fabs(y.motor_effort[i] - wanted) / (1 + std::fabs(wanted)));
    }
    expect(error < 1e-13, "PD around the motion of the motors");
    measured.motor_position[0] = nan;
    loop.update(MILLISECOND, 1e-3, measured);
    expect(y.motor_effort[0] == y.command.motor_effort[0], "a sensor that fails leaves the feedforward");

    parameters = unlimited();
    parameters.link_kp.fill(50);
    loop.configure(parameters);
    measured = at_rest();
    loop.update(2 * MILLISECOND, 1e-3, measured);
    error = 0;
    for (std::size_t i = 0; i < n; ++i)
        error = std::fmax(error, std::fabs(y.joint_effort[i] - y.command.tau[i] - 50 * (y.setpoint.q[i] - measured.q[i])));
    expect(error < 1e-10, "PD around the motion of the links");
    // Virtual work: motor and joint feedback do the same work, at any motor velocities.
    double of_motors = 0, of_joints = 0;
    for (std::size_t i = 0; i < m; ++i) {
        const std::size_t joint = robot().motor_joint[i];
        double side = 0, motors = 0;
        for (std::size_t j = 0; j < m; ++j) {
            side += robot().joint_sides[i * m + j] * static_cast<double>(j + 1);
            motors += robot().motor_joint[j] == joint;
        }
        of_motors += (y.motor_effort[i] - y.command.motor_effort[i]) * static_cast<double>(i + 1);
        of_joints += (y.joint_effort[joint] - y.command.tau[joint]) / motors * side;
    }
    expect(std::fabs(of_motors - of_joints) < 1e-9 * (1 + std::fabs(of_joints)), "it acts through the motors");
}

void lead()
{
    constexpr double LEAD = 2.5e-3;
    eom::LoopParameters<Robot> parameters = unlimited();
    parameters.motor_kp.fill(100);
    parameters.motor_kd.fill(10);
    const RobotAhead early(LEAD);
    Loop loop(early.robot);
    loop.configure(parameters);
    eom::Measurement<Robot> measured = at_rest();
    loop.restart(measured);
    const eom::Setpoint<Robot> x = wave(0.3);
    eom::Setpoint<Robot> present = x, ahead = x;
    eom::advance(ahead, LEAD);
    eom::Command<Robot> now, later;
    command_for(present, now);
    command_for(ahead, later);
    measured.motor_position = now.motor_position;
    measured.motor_velocity = now.motor_velocity;
    loop.refer(x, 0);
    const eom::LoopOutput<Robot> &y = loop.update(0, 1e-3, measured);
    expect(difference(y.command.tau, later.tau) == 0 && difference(y.command.motor_effort, later.motor_effort) == 0,
           "feedforward of the motion at the lead");
    expect(y.setpoint.q == x.q && y.motor_effort == y.command.motor_effort, "feedback without the lead");
}

} // namespace

int main(int, char **arguments)
{
    table = eom::load_table(arguments[1], "");
    payload();
    not_finite_is_seen();
    splines_that_cannot_be();
    mailbox();
    references();
    restarts();
    switched_off();
    trajectories_from_an_unknown_position();
    trajectories_behind_another_controller();
    trajectories_that_start_too_late();
    feedback();
    lead();
    if (table->kernels.plant.call)
        simulated_arm();
    prepare_targets();
    cycles(1);
    eom::test::no_allocation_and_no_system_call(cycles, std::atol(arguments[2]), 3000);
    return failures != 0;
}
