#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "executor/processes/descriptor_internal.h"

namespace sluice::executor {

// One end of a packet connection between two processes of the same user on this machine. Sending
// never blocks. Any thread may send while one receives.
class PacketSocket {
 public:
  PacketSocket() = default;
  explicit PacketSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  // Unavailable: no process listens under the name. PermissionDenied: one of another user does.
  static Result<PacketSocket> Connect(const std::string& name);

  bool open() const { return descriptor_.open(); }
  int descriptor() const { return descriptor_.get(); }
  // False: the other end is closed, or its buffer is full.
  bool Send(std::string_view packet) const;
  // nullopt: nothing has arrived. Unavailable: the other end is closed.
  Result<std::optional<std::string>> Receive() const;
  // Closes the connection for both ends.
  void HangUp() const;

 private:
  Descriptor descriptor_;
};

struct PacketPair {
  PacketSocket ours, theirs;
};
Result<PacketPair> MakePacketPair();

class PacketListener {
 public:
  PacketListener() = default;
  // Listens under a name in the kernel's abstract namespace, until destroyed. AlreadyExists: it is
  // taken.
  static Result<PacketListener> Open(const std::string& name);
  bool open() const { return descriptor_.open(); }
  int descriptor() const { return descriptor_.get(); }
  // Returns a closed socket if no client waits, or if it is another user's.
  PacketSocket Accept() const;

 private:
  Descriptor descriptor_;
};

// Ends a poll in another thread. Thread-safe.
class PollWaker {
 public:
  static Result<PollWaker> Make();
  int descriptor() const { return descriptor_.get(); }
  void Wake() const;
  void Clear() const;

 private:
  Descriptor descriptor_;
};

// Waits until one of them is readable (or closed), or until `until`; nullopt: for ever.
void PollForReading(const std::vector<int>& descriptors,
                    std::optional<std::chrono::steady_clock::time_point> until);

}  // namespace sluice::executor
