#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace sluice::catalog {

// A stream socket between processes of one user on this machine, in the kernel's abstract
// namespace. Owns its descriptor.
class LocalSocket {
 public:
  LocalSocket() = default;
  explicit LocalSocket(int descriptor) : descriptor_(descriptor) {}
  LocalSocket(LocalSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  LocalSocket& operator=(LocalSocket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~LocalSocket();

  static Result<LocalSocket> Listen(const std::string& name);
  // Unavailable: no process listens under the name, or one of another user.
  static Result<LocalSocket> Connect(const std::string& name);
  // Not open: no client waits, or it is another user's.
  LocalSocket Accept() const;

  bool open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  // Ends it for both ends; whoever waits for it goes on.
  void HangUp() const;

 private:
  int descriptor_ = -1;
};

}  // namespace sluice::catalog
