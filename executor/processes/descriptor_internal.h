#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::executor {

// An open file descriptor, closed at the end.
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
  // Out of the low numbers, which a child gets its own descriptors under: no dup2 between them may
  // overwrite another.
  void MoveUp();

 private:
  int fd_ = -1;
};

// Both ends are closed in children unless handed to them; the reading end does not block.
struct Pipe {
  Descriptor read, write;
};
Result<Pipe> MakePipe();

// Memory as a file, positioned at its start. Unlike a pipe it takes any size at once.
Result<Descriptor> MakeMemory(const char* name, std::string_view bytes);

// ResourceExhausted with what the system says about errno.
Status SystemError(std::string_view what);

}  // namespace sluice::executor
