#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "elastic/transport/socket.h"

namespace sluice::elastic {

// Two rings of bytes, one for each direction, in memory that two processes of one machine share:
// what is sent is copied once into a ring and once out of it, without the system. The socket
// between the two stays open: a byte through it wakes an end that sleeps, and its end is theirs.
// Nothing that the other end writes into the memory is trusted. Belongs to one thread.
class SharedRings {
 public:
  // Of each direction: several batches of a small model; larger messages pass in pieces.
  static constexpr size_t kRingBytes = size_t{256} << 10;

  SharedRings() = default;  // none
  SharedRings(SharedRings&& other) noexcept;
  SharedRings& operator=(SharedRings&& other) noexcept;
  ~SharedRings();

  // Makes the memory; the file is sent to the other end. ResourceExhausted: the system has none.
  static Result<SharedRings> Make(Socket* file);
  // The other end's side. InvalidArgument: the file is not one that Make made, or its size may
  // change, which would kill whoever reads it.
  static Result<SharedRings> Adopt(const Socket& file);

  bool open() const { return memory_ != nullptr; }
  // The number of bytes; 0: no room, or none have come: wait until `socket` can be read, then call
  // again; -1: the other end is gone, or has written nonsense.
  ssize_t Send(const Socket& socket, std::span<const std::byte> bytes);
  ssize_t Receive(const Socket& socket, std::span<std::byte> room);

 private:
  struct Ring;
  struct Memory;
  SharedRings(Memory* memory, bool maker);
  static Result<SharedRings> Map(const Socket& file, bool maker);
  bool DrainWakeUps(const Socket& socket);

  Memory* memory_ = nullptr;
  Ring* out_ = nullptr;
  Ring* in_ = nullptr;
  // Of the bytes that have passed: this end's own counts, which the other one only reads.
  uint64_t written_ = 0, read_ = 0;
  bool ended_ = false;  // the other end
};

// Sends the bytes with a copy of the file's descriptor through a Unix socket. False: it was not
// possible.
bool SendWithFile(const Socket& socket, std::span<const char> bytes, const Socket& file);
// Like recv. The first descriptor that comes along is put into `file`; others are closed.
ssize_t ReceiveWithFile(const Socket& socket, std::span<char> room, Socket* file);

}  // namespace sluice::elastic
