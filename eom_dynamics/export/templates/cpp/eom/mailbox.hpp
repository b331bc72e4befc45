// SPDX-License-Identifier: Apache-2.0
// Mailbox between two threads, one that writes and one that reads, of which neither ever waits.
#ifndef EOM_MAILBOX_HPP
#define EOM_MAILBOX_HPP

#include <array>
#include <atomic>

namespace eom {

/// The latest value that one thread has written, for one other thread: a triple buffer.
///
/// Each thread has a slot of its own, and the third changes hands by one atomic exchange. So the reader never
/// allocates, and never frees what the writer has allocated; the writer uses its memory again.
template <class T>
class Mailbox {
  public:
    Mailbox() = default;
    /// With memory for messages of the size of this one.
    explicit Mailbox(const T &message) : slots_{message, message, message} {}

    /// The writer's slot. It has the content of some earlier message: write all of it.
    T &draft() noexcept { return slots_[written_]; }

    /// Hands the writer's slot over.
    void send() noexcept { written_ = middle_.exchange(written_ | NEW, std::memory_order_acq_rel) & INDEX; }

    /// Takes the latest message, if there is one that was not taken yet; returns whether there was.
    bool take() noexcept
    {
        if (!(middle_.load(std::memory_order_relaxed) & NEW))
            return false;
        read_ = middle_.exchange(read_, std::memory_order_acq_rel) & INDEX;
        return true;
    }

    /// Whether a message waits.
    bool waiting() const noexcept { return (middle_.load(std::memory_order_relaxed) & NEW) != 0; }

    /// The message taken last, for the reader.
    const T &taken() const noexcept { return slots_[read_]; }

  private:
    static constexpr unsigned INDEX = 3, NEW = 4;
    static_assert(std::atomic<unsigned>::is_always_lock_free, "atomic integers must not lock");

    std::array<T, 3> slots_{};
    std::atomic<unsigned> middle_{1};
    unsigned written_ = 0, read_ = 2;
};

} // namespace eom

#endif
