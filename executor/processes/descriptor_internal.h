#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::executor {

// An open file descriptor, closed on destruction.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Close() { *this = Descriptor(); }
  // Moves it above the low numbers that a child's descriptors get, so that no dup2 among them
  // overwrites another.
  void MoveUp();

 private:
  int fd_ = -1;
};

// Both ends are closed in children unless passed to them; the reading end does not block.
struct Pipe {
  Descriptor read, write;
};
Result<Pipe> MakePipe();

// An in-memory file with this content, positioned at its start. Unlike a pipe it takes any size at
// once.
Result<Descriptor> MakeMemory(const char* name, std::string_view bytes);

// ResourceExhausted with the system's message for errno.
Status SystemError(std::string_view what);

}  // namespace sluice::executor
