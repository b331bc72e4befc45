// SPDX-License-Identifier: Apache-2.0
// Mailbox between two threads, one that writes and one that reads, of which neither ever waits.
#ifndef EOM_MAILBOX_HPP
#define EOM_MAILBOX_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace eom {

/// The latest value that one thread has written, for one other thread: a triple buffer.
///
/// Each thread has a slot of its own, and the third changes hands by one atomic exchange. So the reader never
/// allocates, and never frees what the writer has allocated; the writer uses its memory again. The reader may have more
/// slots, for messages that it keeps.
template <class T, std::size_t kept = 0>
class Mailbox {
  public:
    Mailbox() noexcept
    {
        for (std::size_t k = 0; k <= kept; ++k)
            read_[k] = static_cast<unsigned>(2 + k);
    }
    /// With memory for messages of the size of this one.
    explicit Mailbox(const T &message) : Mailbox() { slots_.fill(message); }

    /// The writer's slot. It has the content of some earlier message: write all of it.
    T &draft() noexcept { return slots_[written_]; }

    /// Hands the writer's slot over.
    void send() noexcept { written_ = middle_.exchange(written_ | NEW, std::memory_order_acq_rel) & INDEX; }

    /// Takes the latest message, if there is one that was not taken yet; returns whether there was.
    bool take() noexcept
    {
        if (!(middle_.load(std::memory_order_relaxed) & NEW))
            return false;
        read_[0] = middle_.exchange(read_[0], std::memory_order_acq_rel) & INDEX;
        return true;
    }

    /// Whether a message waits.
    bool waiting() const noexcept { return (middle_.load(std::memory_order_relaxed) & NEW) != 0; }

    /// The message taken last, for the reader, or one that it keeps.
    const T &taken(std::size_t k = 0) const noexcept { return slots_[read_[k]]; }
    T &taken(std::size_t k = 0) noexcept { return slots_[read_[k]]; }

    /// Exchanges two slots of the reader, of which 0 is that of the message taken last.
    void exchange(std::size_t a, std::size_t b) noexcept { std::swap(read_[a], read_[b]); }

  private:
    static constexpr unsigned INDEX = 7, NEW = 8;
    static_assert(kept <= 5, "slots have three bits");
    static_assert(std::atomic<unsigned>::is_always_lock_free, "atomic integers must not lock");

    std::array<T, 3 + kept> slots_{};
    std::atomic<unsigned> middle_{1};
    unsigned written_ = 0;
    std::array<unsigned, 1 + kept> read_;
};

} // namespace eom

#endif
