// SPDX-License-Identifier: Apache-2.0
// Robot table that owns its memory and is filled by names.
#ifndef EOM_FILLED_TABLE_HPP
#define EOM_FILLED_TABLE_HPP

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "robot_table.hpp"

namespace eom {

/// Error text of set() and add().
inline constexpr const char *UNKNOWN = "there is no such name";

#define EOM_QUOTED(name) #name,
inline constexpr const char *VECTOR_NAMES[] = {EOM_VECTORS(EOM_QUOTED)};

/// Returns the index of the vector `name`, or Vector::count if it is unknown.
inline std::size_t vector_of(const char *name)
{
    std::size_t i = 0;
    while (i < static_cast<std::size_t>(Vector::count) && std::strcmp(VECTOR_NAMES[i], name) != 0)
        ++i;
    return i;
}

/// Returns the entry with this name, or null.
template <class Entry, std::size_t size>
const Entry *named(const Entry (&entries)[size], const char *name)
{
    const auto found =
        std::find_if(entries, entries + size, [name](const Entry &entry) { return std::strcmp(entry.name, name) == 0; });
    return found == entries + size ? nullptr : found;
}

struct NamedKernel {
    const char *name;
    Kernel Kernels::*kernel;
};
#define EOM_NAMED_KERNEL(name) {#name, &Kernels::name},
inline constexpr NamedKernel KERNELS[] = {EOM_FUNCTIONS(EOM_NAMED_KERNEL)};

/// Robot table with its memory; implements eom_robot_set() and eom_robot_add().
struct FilledTable : RobotTable {
    /// Set the names of joints, or of motors.
    void call(bool of_joints, const char *const *names, std::size_t count)
    {
        auto &places = called.emplace_back();
        for (const std::string &text : texts.emplace_back(names, names + count))
            places.push_back(text.c_str());
        (of_joints ? facts.joint_names : facts.motor_names) = places;
    }

    const char *set(const char *name, const double *entries, std::size_t count)
    {
        if (std::strcmp(name, "motor_joint") == 0) {
            motor_joint_numbers.assign(entries, entries + count);
            facts.motor_joint = motor_joint_numbers;
            return nullptr;
        }
        if (std::strcmp(name, "commanded_stiffness") == 0 || std::strcmp(name, "transmission") == 0) {
            (*name == 't' ? transmission : facts.commanded_stiffness) = *entries != 0;
            return nullptr;
        }
        if (std::strcmp(name, "command_lead") == 0) {
            command_lead = *entries;
            return nullptr;
        }
        const struct {
            const char *name;
            Span<const double> *span;
        } spans[] = {
#define EOM_SPAN(name) {#name, &name},
            EOM_OF_TABLE(EOM_SPAN)
#define EOM_ENDS(size, name) {"lower." #name, &lower.name}, {"upper." #name, &upper.name},
            EOM_LIMITED(EOM_ENDS)};
        const auto *found = named(spans, name);
        if (!found)
            return UNKNOWN;
        *found->span = numbers.emplace_back(entries, entries + count);
        return nullptr;
    }

    const char *add(const char *function, void (*kernel)(const double *const *, double *const *), const char *const *inputs,
                    std::size_t input_count, const char *const *outputs, std::size_t output_count)
    {
        const NamedKernel *found = named(KERNELS, function);
        if (!found)
            return UNKNOWN;
        if (input_count > MOST_VECTORS || output_count > MOST_VECTORS)
            return "a kernel has too many vectors";
        const auto listed = [&](const char *const *names, std::size_t count) {
            auto &places = vectors.emplace_back();
            for (std::size_t i = 0; i < count; ++i)
                places.push_back(static_cast<Vector>(vector_of(names[i])));
            return Span<const Vector>(places);
        };
        const Kernel added{kernel, listed(inputs, input_count), listed(outputs, output_count)};
        for (const auto &places : {added.inputs, added.outputs})
            if (std::find(places.begin(), places.end(), Vector::count) != places.end())
                return UNKNOWN;
        Kernel *last = &(kernels.*found->kernel);
        if (!last->call) {
            *last = added;
            return nullptr;
        }
        while (last->next)
            last = const_cast<Kernel *>(last->next);
        last->next = &further.emplace_back(added);
        return nullptr;
    }

  private:
    std::deque<std::vector<double>> numbers;
    std::deque<std::vector<Vector>> vectors;
    std::deque<Kernel> further;
    std::vector<std::size_t> motor_joint_numbers;
    std::deque<std::vector<std::string>> texts;
    std::deque<std::vector<const char *>> called;
};

} // namespace eom

#endif
