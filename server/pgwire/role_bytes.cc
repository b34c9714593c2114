#include "server/pgwire/role_bytes.h"

#include <fmt/core.h>

namespace sluice::server::pgwire {

Status RoleBytes::Charge::Set(size_t bytes) {
  constexpr size_t kSmall = size_t{64} << 10;  // as much as one read: not worth a count
  bytes = bytes <= kSmall ? 0 : bytes;
  if (bytes == bytes_) {
    return OkStatus();
  }
  Drop();
  if (bytes == 0) {
    return OkStatus();
  }
  const auto known = all_.of_role_.find(role_);
  const size_t of_role = bytes + (known == all_.of_role_.end() ? 0 : known->second);
  if (all_.total_ + bytes > all_.most_ || of_role > all_.most_ - all_.total_ - bytes) {
    return ResourceExhausted(
               fmt::format("{} bytes are to be held for this session; for all sessions together {} "
                           "may be, and for a role no more than is left for the others",
                           bytes, all_.most_))
        .SqlState("53200")
        .Hint(
            "smaller messages, predictions into a table, fewer at a time, or a larger "
            "--memory-limit");
  }
  all_.of_role_[role_] = of_role;
  all_.total_ += bytes;
  bytes_ = bytes;
  return OkStatus();
}

void RoleBytes::Charge::Lower(size_t bytes) {
  if (bytes < bytes_) {
    [[maybe_unused]] const Status fewer = Set(bytes);  // fits
  }
}

void RoleBytes::Charge::Drop() {
  if (bytes_ == 0) {
    return;
  }
  all_.total_ -= bytes_;
  const auto known = all_.of_role_.find(role_);
  known->second -= bytes_;
  if (known->second == 0) {
    all_.of_role_.erase(known);
  }
  bytes_ = 0;
}

}  // namespace sluice::server::pgwire
