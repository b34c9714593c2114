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

// One end of a connection of whole packets between two processes of one user on this machine.
// Sending never blocks. Any thread may send while one receives.
class PacketSocket {
 public:
  PacketSocket() = default;
  explicit PacketSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  // Unavailable: nobody listens under the name, or a process of another user.
  static Result<PacketSocket> Connect(const std::string& name);

  bool open() const { return descriptor_.open(); }
  int descriptor() const { return descriptor_.get(); }
  // False: the other end has gone, or takes no more now.
  bool Send(std::string_view packet) const;
  // nullopt: there is nothing yet. Unavailable: the other end has gone.
  Result<std::optional<std::string>> Receive() const;
  // The other end sees that this one has gone.
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
  // A name in the kernel's abstract namespace, which goes with the listener. AlreadyExists: it is
  // taken.
  static Result<PacketListener> Open(const std::string& name);
  bool open() const { return descriptor_.open(); }
  int descriptor() const { return descriptor_.get(); }
  // Not open when nobody is waiting, or a process of another user.
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

// Waits until one of them can be read (or has gone), or `until` has come; nullopt: for ever.
void PollForReading(const std::vector<int>& descriptors,
                    std::optional<std::chrono::steady_clock::time_point> until);

}  // namespace sluice::executor
