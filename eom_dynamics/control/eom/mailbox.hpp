// SPDX-License-Identifier: Apache-2.0
// Wait-free mailbox from one writer thread to one reader thread.
#ifndef EOM_MAILBOX_HPP
#define EOM_MAILBOX_HPP

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace eom {

/// Triple buffer that passes the latest value from one thread to another. Each thread owns a slot, and one atomic exchange hands
/// over the third. The reader never allocates or frees memory of the writer, and the writer reuses its memory. The reader may own
/// `kept` more slots, for messages that it keeps.
template <class T, std::size_t kept = 0>
class Mailbox {
  public:
    Mailbox() noexcept
    {
        for (std::size_t k = 0; k <= kept; ++k)
            read_[k] = static_cast<unsigned>(2 + k);
    }
    /// Initialize all slots with `message`, for its memory.
    explicit Mailbox(const T &message) : Mailbox() { slots_.fill(message); }

    /// Slot of the writer, with the content of an earlier message: overwrite all of it.
    T &draft() noexcept { return slots_[written_]; }

    /// Publish the draft.
    void send() noexcept { written_ = middle_.exchange(written_ | NEW, std::memory_order_acq_rel) & INDEX; }

    /// Receive the latest message. Returns false if there is no new message.
    bool take() noexcept
    {
        if (!(middle_.load(std::memory_order_relaxed) & NEW))
            return false;
        read_[0] = middle_.exchange(read_[0], std::memory_order_acq_rel) & INDEX;
        return true;
    }

    /// Returns true if there is a new message.
    bool waiting() const noexcept { return (middle_.load(std::memory_order_relaxed) & NEW) != 0; }

    /// Last received message, or a kept message.
    const T &taken(std::size_t k = 0) const noexcept { return slots_[read_[k]]; }
    T &taken(std::size_t k = 0) noexcept { return slots_[read_[k]]; }

    /// Swap two slots of the reader; slot 0 has the last received message.
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
