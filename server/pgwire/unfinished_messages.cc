#include "server/pgwire/unfinished_messages.h"

#include <fmt/core.h>

namespace sluice::server::pgwire {

Status UnfinishedMessages::Charge::Set(size_t bytes) {
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
               fmt::format("a message of {} bytes, while the unfinished messages of all sessions "
                           "may take {}, and those of one role no more than is left for others",
                           bytes, all_.most_))
        .SqlState("53200")
        .Hint("smaller messages, fewer at a time, or a gateway with a larger --memory-limit");
  }
  all_.of_role_[role_] = of_role;
  all_.total_ += bytes;
  bytes_ = bytes;
  return OkStatus();
}

void UnfinishedMessages::Charge::Drop() {
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
