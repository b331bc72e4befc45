// SPDX-License-Identifier: Apache-2.0
// Checks that print one line each, and traps for allocations and system calls (locks, logs, files), which a real-time loop
// must avoid. Include it in one source file only: it replaces the allocation functions.
#ifndef EOM_TEST_CHECKS_HPP
#define EOM_TEST_CHECKS_HPP

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <optional>

#if defined(__linux__)
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EOM_SANITIZED 1
#else
#define EOM_SANITIZED 0
#endif

namespace eom {
namespace test {

/// Number of allocations of this thread.
inline thread_local volatile std::size_t allocations = 0;

/// Run `function` in a child process that any system call kills. Returns its result, false if the child was killed, or
/// no value if system calls cannot be trapped.
template <class Function>
std::optional<bool> without_system_calls(Function function)
{
#if defined(__linux__) && !EOM_SANITIZED
    const pid_t child = fork();
    if (child == 0) {
        // Strict mode allows exit, read and write only; nothing here reads or writes.
        const bool strict = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
        const int code = !strict ? 2 : function() ? 0 : 1;
        syscall(SYS_exit, code);
    }
    int status = 0;
    const bool ended = child > 0 && waitpid(child, &status, 0) == child;
    if (ended && !(WIFEXITED(status) && WEXITSTATUS(status) == 2))
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
#else
    (void)function;
#endif
    return std::nullopt;
}

inline int failures = 0;

inline void expect(bool passed, const char *what)
{
    std::printf("%-4s %s\n", passed ? "ok" : "BAD", what);
    failures += !passed;
}

/// Largest difference relative to 1 + the largest entry; infinite if a result is not finite.
template <class Computed, class Expected>
double difference(const Computed &computed, const Expected &expected)
{
    double largest = 0, error = 0;
    for (const double value : expected)
        largest = std::fmax(largest, std::fabs(value));
    for (std::size_t i = 0; i < computed.size(); ++i) {
        const double one = std::fabs(static_cast<double>(computed[i]) - expected[i]) / (1 + largest);
        error = one <= error ? error : std::isfinite(one) ? one : std::numeric_limits<double>::infinity();
    }
    return error;
}

template <class Scalar, std::size_t size>
void take(std::array<Scalar, size> &values, const double (&row)[size])
{
    for (std::size_t i = 0; i < size; ++i)
        values[i] = static_cast<Scalar>(row[i]);
}

/// Runs cycles, a function of their number that returns whether it is content, once to count allocations, and a few in
/// a child process.
template <class Cycles>
void no_allocation_and_no_system_call(Cycles cycles, long count, long few)
{
    const std::size_t before = allocations;
    const bool good = cycles(count);
    expect(good && allocations == before, "no allocation");
    const std::optional<bool> passed = without_system_calls([=] { return cycles(few); });
    if (passed)
        expect(*passed, "no call of the system");
    else
        std::printf("none system calls cannot be trapped here\n");
}

} // namespace test
} // namespace eom

#if defined(__GLIBC__) && !EOM_SANITIZED
// Replacements of the C library's functions, which operator new also calls.
extern "C" {
void *__libc_malloc(std::size_t);
void *__libc_calloc(std::size_t, std::size_t);
void *__libc_realloc(void *, std::size_t);
void *__libc_memalign(std::size_t, std::size_t);

#define EOM_COUNTED(function, parameters, arguments) \
    void *function parameters \
    { \
        eom::test::allocations = eom::test::allocations + 1; \
        return __libc_##function arguments; \
    }
EOM_COUNTED(malloc, (std::size_t size), (size))
EOM_COUNTED(calloc, (std::size_t count, std::size_t size), (count, size))
EOM_COUNTED(realloc, (void *old, std::size_t size), (old, size))

void *aligned_alloc(std::size_t alignment, std::size_t size)
{
    eom::test::allocations = eom::test::allocations + 1;
    return __libc_memalign(alignment, size);
}
}
#endif

#endif
