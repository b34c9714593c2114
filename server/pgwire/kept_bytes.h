#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace sluice::server::pgwire {

// Counts what a session's client lets us keep by names: prepared statements, portals and cursors of
// one session. Belongs to one thread, and outlives its charges.
class KeptBytes {
 public:
  static constexpr size_t kMost = size_t{64} << 20;

  // Gives the bytes back when it is destroyed.
  class Charge {
   public:
    Charge() = default;
    Charge(size_t& total, size_t bytes) : total_(&total), bytes_(bytes) { total += bytes; }
    Charge(Charge&& other) noexcept
        : total_(std::exchange(other.total_, nullptr)), bytes_(other.bytes_) {}
    Charge& operator=(Charge&& other) noexcept {
      std::swap(total_, other.total_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Charge() {
      if (total_ != nullptr) {
        *total_ -= bytes_;
      }
    }

   private:
    size_t* total_ = nullptr;
    size_t bytes_ = 0;
  };

  // 53400: there is no room for it. `name` "": the one without a name, which the next one replaces,
  // is not counted.
  Result<Charge> Keep(std::string_view name, size_t bytes) {
    constexpr size_t kOfEach = 1'024;  // what each takes beside its texts
    if (name.empty()) {
      return Charge();
    }
    bytes += name.size();
    if (bytes + kOfEach > kMost - total_) {
      return ResourceExhausted(
                 "the session's prepared statements and portals take 64 MiB, the most")
          .SqlState("53400")
          .Hint("DEALLOCATE, or Close, what is not used any more");
    }
    return Charge(total_, bytes + kOfEach);
  }

 private:
  size_t total_ = 0;
};

}  // namespace sluice::server::pgwire
