// SPDX-License-Identifier: Apache-2.0
// Robots from libraries that `eom_dynamics codegen --language loop` compiles. Not for the cycle.
#ifndef EOM_LOOP_LIBRARY_HPP
#define EOM_LOOP_LIBRARY_HPP

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <eom/loop.h>

namespace eom {

namespace detail {

/// Code of a library file in its present state; for a known path, dlopen() would return the earlier code.
///
/// The code runs in a copy in memory, so that the file may be overwritten. Throws std::runtime_error with the reason.
inline std::shared_ptr<void> load_copy(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error(std::strerror(errno));
    const std::string content(std::istreambuf_iterator<char>(file), {});
    // Code of a truncated file would end the process with SIGBUS.
    ElfW(Ehdr) header;
    if (content.size() < sizeof header || content.compare(0, SELFMAG, ELFMAG) != 0)
        throw std::runtime_error("is not a library");
    std::memcpy(&header, content.data(), sizeof header);
    if (content.size() < header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize)
        throw std::runtime_error("is truncated");

    // Open while the code is loaded: this number identifies the code.
    const std::shared_ptr<const int> memory(new int(memfd_create("eom_robot", MFD_CLOEXEC)), [](const int *number) {
        close(*number);
        delete number;
    });
    for (std::size_t written = 0; written < content.size();) {
        const ssize_t more = ::write(*memory, content.data() + written, content.size() - written);
        if (more < 0)
            throw std::runtime_error(std::strerror(errno));
        written += static_cast<std::size_t>(more);
    }
    // Other libraries may have a robot of the same name.
    void *const library = dlopen(("/proc/self/fd/" + std::to_string(*memory)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        throw std::runtime_error(dlerror());
    return {library, [memory](void *handle) { dlclose(handle); }};
}

} // namespace detail

/// Robot of a library; the library stays loaded while the robot exists.
///
/// Throws std::runtime_error unless the library is complete, of this ABI and, unless empty, of this fingerprint.
inline std::shared_ptr<const RobotTable> load_table(const std::string &path, const std::string &fingerprint)
{
    const auto refused = [&path](const std::string &why) {
        return std::runtime_error(path + ": " + why +
                                  "; write it again: eom_dynamics codegen ROBOT --language loop -o FILE.so");
    };
    std::shared_ptr<void> library;
    try {
        library = detail::load_copy(path);
    } catch (const std::runtime_error &error) {
        throw refused(error.what());
    }
    const auto abi = reinterpret_cast<std::uint32_t (*)()>(dlsym(library.get(), "eom_robot_abi"));
    const auto table = reinterpret_cast<const RobotTable *(*)()>(dlsym(library.get(), "eom_robot_table"));
    if (!abi || !table)
        throw refused("has no robot");
    if (abi() != ROBOT_ABI)
        throw refused("is of another version than this controller");
    const RobotFacts &robot = table()->facts;
    if (!fingerprint.empty() && fingerprint != robot.fingerprint)
        throw refused("is of the robot " + std::string(robot.name) + " with fingerprint " + robot.fingerprint +
                      ", not " + fingerprint);
    return {library, table()};
}

namespace detail {

inline std::string last_line(const std::filesystem::path &path)
{
    std::ifstream file(path);
    std::string line, last;
    while (std::getline(file, line))
        if (!line.empty())
            last = line;
    return last;
}

/// Temporary folder, removed with its contents.
struct Scratch {
    Scratch()
    {
        std::string name = (std::filesystem::temp_directory_path() / "eom_dynamics-XXXXXX").string();
        if (!mkdtemp(name.data()))
            throw std::runtime_error(name + ": " + std::strerror(errno));
        path = name;
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    ~Scratch()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }

    std::filesystem::path path;
};

} // namespace detail

/// Last line printed by a command; after a timeout, s, the command is interrupted, with its children.
///
/// Throws std::runtime_error with the last line of its errors if it fails.
inline std::string last_line_of(const std::vector<std::string> &command, double timeout)
{
    const detail::Scratch scratch;
    const std::string output = scratch.path / "output", errors = scratch.path / "errors", limit = std::to_string(timeout);
    // Python ends its compilers on an interrupt.
    std::vector<const char *> arguments = {"timeout", "--signal=INT", "--kill-after=2", limit.c_str()};
    for (const std::string &argument : command)
        arguments.push_back(argument.c_str());
    arguments.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT, 0600);
    posix_spawn_file_actions_addopen(&files, 2, errors.c_str(), O_WRONLY | O_CREAT, 0600);
    pid_t process = 0;
    int status = 0;
    const int failed = posix_spawnp(&process, arguments[0], &files, nullptr, const_cast<char **>(arguments.data()), environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed || waitpid(process, &status, 0) != process)
        throw std::runtime_error(command[0] + ": " + std::strerror(failed ? failed : errno));
    constexpr int TIMED_OUT = 124, KILLED = 128 + SIGKILL;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : KILLED;
    if (code == TIMED_OUT || code == KILLED)
        throw std::runtime_error(command[0] + ": did not finish within its timeout");
    if (code != 0) {
        const std::string reason = detail::last_line(errors);
        throw std::runtime_error(reason.empty() ? command[0] + ": failed" : reason);
    }
    return detail::last_line(output);
}

/// Robot of a library that a command compiles or takes from its cache.
///
/// The command gets the robot, a name or a file, or if it is empty a file with the description, and prints the path of
/// the library. Throws std::runtime_error with a remedy.
inline std::shared_ptr<const RobotTable> compiled_table(std::vector<std::string> command, const std::string &robot,
                                                        const std::string &description, double timeout)
{
    const detail::Scratch scratch;
    command.push_back(robot);
    if (robot.empty()) {
        if (description.empty())
            throw std::runtime_error("there is no robot: set kernel, robot_file, or robot_description of the manager");
        command.back() = scratch.path / "robot.urdf";
        std::ofstream(command.back()) << description;
    }
    std::string path;
    try {
        path = last_line_of(command, timeout);
    } catch (const std::runtime_error &error) {
        throw std::runtime_error(std::string(error.what()) +
                                 "; or set kernel to a library from another computer: "
                                 "eom_dynamics codegen ROBOT --language loop -o FILE.so");
    }
    return load_table(path, "");
}

/// Source of a robot's code: parameters of the controller and of the simulated robot.
struct RobotSource {
    std::string kernel, fingerprint, robot_file;
    std::vector<std::string> command = {"eom_dynamics", "codegen", "--language", "loop"};
    double compile_timeout = 120;
};

/// Robot of a library, or without a library of compiled code; throws std::runtime_error with a remedy.
inline std::shared_ptr<const RobotTable> loaded_robot(const RobotSource &from, const std::string &description)
{
    if (std::strcmp(eom_loop_digest(), EOM_LOOP_DIGEST) != 0)
        throw std::runtime_error("libeom_loop.so is of another version of eom_dynamics than this was compiled with: build it again");
    return from.kernel.empty() ? compiled_table(from.command, from.robot_file, description, from.compile_timeout)
                               : load_table(from.kernel, from.fingerprint);
}

} // namespace eom

#endif
