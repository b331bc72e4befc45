// SPDX-License-Identifier: Apache-2.0
// Random messages from one thread to a loop with cycles in another thread, for sanitizers.
//
//     loop_messages ROBOT.so COUNT SEED      prints the count of cycles, and of each answer by its number
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include <eom/loop.h>
#include <eom/motion_limits.hpp>

#include "loop_library.hpp"

namespace {

constexpr std::int64_t START = 1'700'000'000'000'000'000, MILLISECOND = 1'000'000;

std::atomic<std::int64_t> present{START};
std::atomic<std::size_t> sent{0}, run{0}; // messages and cycles; neither is far ahead

/// Valid and invalid messages.
class Sender {
  public:
    Sender(eom_loop &loop, const eom::RobotTable &robot, unsigned seed) : loop_(loop), robot_(robot), random_(seed) {}

    void send()
    {
        const std::size_t n = robot_.joints;
        const std::int64_t now = present.load(), stamp = below(4) == 0 ? 0 : now + whole(-50, 50) * MILLISECOND;
        switch (below(9)) {
        default: {
            eom_loop_post_rest(&loop_, below(8) == 0);
            for (const char *name : {"q", "qd", "qdd", "qddd", "qdddd", "W", "k", "f"})
                if (below(3) > 0)
                    *eom_loop_vector(&loop_, "posted", name) = number();
            return eom_loop_post(&loop_, stamp);
        }
        case 0: {
            const std::size_t knots = below(6);
            const auto times = increasing(knots);
            auto states = numbers(5 * knots * n);
            if (below(2)) { // at rest
                std::fill(states.begin(), states.end(), 0);
                std::fill_n(states.begin(), knots * n, 0.05);
            }
            eom_loop_post_spline(&loop_, stamp, times.data(), knots, states.data());
            return;
        }
        case 1:
        case 2: {
            const std::size_t knots = below(3) ? 0 : 1 + below(20);
            const auto times = increasing(knots), positions = numbers(std::max<std::size_t>(knots, 1) * n);
            const auto velocities = numbers(n);
            eom_loop_post_target(&loop_, stamp, times.data(), knots, positions.data(),
                                 below(2) ? velocities.data() : nullptr, below(2) ? velocities.data() : nullptr);
            return;
        }
        case 3: {
            const auto body = numbers(10);
            eom_loop_post_payload(&loop_, below(robot_.tools), body.data(), number());
            return;
        }
        case 4:
            eom_loop_post_speed(&loop_, 0.25 * static_cast<double>(below(8)) + number());
            eom_loop_act(&loop_, below(3) ? "resume" : "pause");
            return;
        }
    }

  private:
    std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }
    std::int64_t whole(std::int64_t low, std::int64_t high)
    {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
    }
    double number()
    {
        constexpr double inf = std::numeric_limits<double>::infinity();
        const double odd[] = {std::nan(""), inf, -inf, 1e300, 1e18, -1e-320, 0.0, 7.0};
        return below(40) == 0 ? odd[below(8)] : std::uniform_real_distribution<double>(-0.3, 0.3)(random_);
    }
    std::vector<double> numbers(std::size_t count)
    {
        std::vector<double> values(count);
        const bool sane = below(3) > 0;
        for (double &x : values)
            x = sane ? std::uniform_real_distribution<double>(-0.3, 0.3)(random_) : number();
        return values;
    }
    std::vector<double> increasing(std::size_t count)
    {
        std::vector<double> times(count);
        double t = 0.1 * number();
        for (double &x : times)
            x = t += std::fabs(number());
        return times;
    }

    eom_loop &loop_;
    const eom::RobotTable &robot_;
    std::mt19937_64 random_;
};

void configure(eom_loop &loop, std::size_t way)
{
    const auto set = [&](const char *name, double x) { eom_loop_set(&loop, name, &x, 1); };
    set("limits", static_cast<double>(way % 3));
    set("on_setpoint_loss", static_cast<double>(way / 4 % 3));
    set("setpoint_timeout", 0.02);
    set("stop_duration", 0.05);
    for (const char *name : {"stamp_check", "jump_check"})
        set(name, static_cast<double>(way / 2 % 3));
    set("motor_kp", 1);
    set("link_kd", 1);
    if (const char *reason = eom_loop_configure(&loop))
        std::printf("%s\n", reason);
    eom_loop_measure(&loop, 1, 1);
    eom_loop_restart(&loop, INT64_MAX);
}

} // namespace

int main(int, char **arguments)
{
    const auto robot = eom::load_table(arguments[1], "");
    const std::size_t count = std::stoul(arguments[2]);
    eom_loop *loop = eom_loop_make(robot.get());
    const auto limits = eom::motion_limits(*robot, {{{2.0}, {20.0}, {2000.0}, {4e5}}}, 1e-3);
    eom_loop_limit(loop, reinterpret_cast<const double *>(limits.data()), limits.size());
    std::mt19937_64 random(std::stoul(arguments[3]));
    configure(*loop, 0);
    std::thread sender([&] {
        Sender messages(*loop, *robot, static_cast<unsigned>(std::stoul(arguments[3])));
        for (std::size_t k = 0; k < count; ++k) {
            messages.send();
            sent = k + 1;
            while (sent > run + 3)
                std::this_thread::yield();
        }
    });
    std::int64_t now = START;
    std::vector<std::size_t> answers(40);
    std::size_t cycles = 0;
    for (; cycles < count; run = ++cycles) {
        while (sent + 3 < cycles && sent < count)
            std::this_thread::yield();
        if (cycles % 3000 == 2999)
            configure(*loop, random() % 24);
        now += random() % 500 == 0 ? static_cast<std::int64_t>(random() % 400) * MILLISECOND - 100 * MILLISECOND : MILLISECOND;
        present = now;
        if (random() % 20 == 0) { // a controller in front
            eom_loop_rest(loop, 0);
            *eom_loop_vector(loop, "given", "q") = random() % 10 ? 0.1 : std::nan("");
            random() % 2 ? eom_loop_pursue(loop) : eom_loop_follow(loop, now, 1e-3);
        } else {
            eom_loop_act(loop, "take");
        }
        if (random() % 100 == 0)
            eom_loop_act(loop, random() % 2 ? "stop" : "lose");
        const int code = eom_loop_run(loop, now, 1e-3);
        ++answers[static_cast<std::size_t>(code + 3)];
        eom_loop_act(loop, "release");
        eom_state state;
        eom_loop_state(loop, &state);
        const std::string said = eom::Sentences(*robot).of(state.reason, state.found);
        if (code > 0 && (said.size() < 10 || said.find_first_of("{}") != std::string::npos || said != eom_loop_text(loop, "refusal"))) {
            // a loop names the first exceeded limits, and its state the worst limit
            if (said.compare(0, 16, "exceeds limits: ") != 0 || said.find(" limit ") == std::string::npos) {
                std::printf("refusal %d in cycle %zu: %s\n", code, cycles, said.c_str());
                return 1;
            }
        }
        if (state.valid)
            for (const char *name : {"drive_effort", "drive_position"})
                if (!std::isfinite(*eom_loop_vector(loop, "sent", name))) {
                    std::printf("%s is not finite after cycle %zu\n", name, cycles);
                    return 1;
                }
    }
    sender.join();
    eom_loop_free(loop);
    std::printf("%zu cycles;", cycles);
    for (std::size_t k = 0; k < answers.size(); ++k)
        if (answers[k])
            std::printf(" %d: %zu", static_cast<int>(k) - 3, answers[k]);
    std::printf("\n");
    return 0;
}
