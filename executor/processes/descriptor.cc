#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "executor/processes/descriptor_internal.h"

namespace sluice::executor {

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void Descriptor::MoveUp() {
  constexpr int kAboveChildren = 16;
  if (fd_ >= 0 && fd_ < kAboveChildren) {
    *this = Descriptor(fcntl(fd_, F_DUPFD_CLOEXEC, kAboveChildren));
  }
}

Status SystemError(std::string_view what) {
  return ResourceExhausted(fmt::format("{}: {}", what, std::strerror(errno)));
}

Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return SystemError("a pipe to a process of the fleet");
  }
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  pipe.read.MoveUp();
  pipe.write.MoveUp();
  if (!pipe.read.open() || !pipe.write.open() || fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK) != 0) {
    return SystemError("a pipe to a process of the fleet");
  }
  return pipe;
}

Result<Descriptor> MakeMemory(const char* name, std::string_view bytes) {
  Descriptor memory(memfd_create(name, MFD_CLOEXEC));
  memory.MoveUp();
  if (!memory.open()) {
    return SystemError("memory for the configuration of a process");
  }
  while (!bytes.empty()) {
    const ssize_t put = write(memory.get(), bytes.data(), bytes.size());
    if (put <= 0) {
      return SystemError("memory for the configuration of a process");
    }
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  if (lseek(memory.get(), 0, SEEK_SET) != 0) {
    return SystemError("memory for the configuration of a process");
  }
  return memory;
}

}  // namespace sluice::executor
