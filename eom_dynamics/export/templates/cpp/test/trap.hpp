// SPDX-License-Identifier: Apache-2.0
// Traps for what a real-time loop must not do: allocate memory, and call the system, as locks, logs and files would.
// For one source file of a program, since it replaces the functions that allocate.
#ifndef EOM_TEST_TRAP_HPP
#define EOM_TEST_TRAP_HPP

#include <cstddef>
#include <cstdlib>
#include <new>

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

/// Result of a run in which every call of the system kills the process.
enum class Trap { passed, failed, killed, unavailable };

/// Runs a function, which returns whether it is content, in a child process that may call no system function.
template <class Function>
Trap without_system_calls(Function function)
{
#if defined(__linux__) && !EOM_SANITIZED
    const pid_t child = fork();
    if (child < 0)
        return Trap::unavailable;
    if (child == 0) {
        // Of all calls, strict mode leaves exit, and read and write, which nothing here uses.
        const bool strict = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0;
        const int code = !strict ? 2 : function() ? 0 : 1;
        syscall(SYS_exit, code);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        return Trap::unavailable;
    if (WIFSIGNALED(status))
        return Trap::killed;
    return WEXITSTATUS(status) == 0 ? Trap::passed : WEXITSTATUS(status) == 2 ? Trap::unavailable : Trap::failed;
#else
    (void)function;
    return Trap::unavailable;
#endif
}

} // namespace test
} // namespace eom

#if defined(__GLIBC__) && !EOM_SANITIZED
// Replace the C library's, which operator new calls too.
extern "C" {
void *__libc_malloc(std::size_t);
void *__libc_calloc(std::size_t, std::size_t);
void *__libc_realloc(void *, std::size_t);
void *__libc_memalign(std::size_t, std::size_t);

void *malloc(std::size_t size)
{
    eom::test::allocations = eom::test::allocations + 1;
    return __libc_malloc(size);
}

void *calloc(std::size_t count, std::size_t size)
{
    eom::test::allocations = eom::test::allocations + 1;
    return __libc_calloc(count, size);
}

void *realloc(void *old, std::size_t size)
{
    eom::test::allocations = eom::test::allocations + 1;
    return __libc_realloc(old, size);
}

void *aligned_alloc(std::size_t alignment, std::size_t size)
{
    eom::test::allocations = eom::test::allocations + 1;
    return __libc_memalign(alignment, size);
}
}
#endif

#endif
