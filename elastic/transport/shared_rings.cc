#include "elastic/transport/shared_rings_internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::elastic {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr size_t kCacheLine = 64;

}  // namespace

// The counts never go back, and wrap around only after 2^64 bytes.
struct SharedRings::Ring {
  alignas(kCacheLine) std::atomic<uint64_t> written;
  std::atomic<uint32_t> writer_sleeps;  // until bytes have been read
  alignas(kCacheLine) std::atomic<uint64_t> read;
  std::atomic<uint32_t> reader_sleeps;  // until bytes have been written
  alignas(kCacheLine) std::array<std::byte, kRingBytes> bytes;
};

struct SharedRings::Memory {
  std::array<Ring, 2> rings;  // the maker writes into the first one
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

namespace {

// An end says that it sleeps before its last look at the counts, and the other one looks for that
// after it has changed them; all in one order (sequentially consistent), so one of the two notices.
// A byte through the socket wakes the end that sleeps. Without room in the socket there are bytes
// in it, which wake, too.
void Wake(std::atomic<uint32_t>& sleeps, const Socket& socket) {
  if (sleeps.load() != 0 && sleeps.exchange(0) != 0) {
    const char byte = 0;
    static_cast<void>(send(socket.descriptor(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
}

// A message with room for one descriptor beside its bytes.
struct FileMessage {
  explicit FileMessage(std::span<char> bytes) : piece{bytes.data(), bytes.size()} {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;

  iovec piece;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

}  // namespace

SharedRings::SharedRings(Memory* memory, bool maker)
    : memory_(memory), out_(&memory->rings[maker ? 0 : 1]), in_(&memory->rings[maker ? 1 : 0]) {}

SharedRings::SharedRings(SharedRings&& other) noexcept {
  *this = std::move(other);
}

SharedRings& SharedRings::operator=(SharedRings&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(out_, other.out_);
  std::swap(in_, other.in_);
  std::swap(written_, other.written_);
  std::swap(read_, other.read_);
  std::swap(ended_, other.ended_);
  return *this;
}

SharedRings::~SharedRings() {
  if (memory_ != nullptr) {
    munmap(memory_, sizeof(Memory));
  }
}

Result<SharedRings> SharedRings::Map(const Socket& file, bool maker) {
  void* const memory =
      mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (memory == MAP_FAILED) {
    return ResourceExhausted("there is no memory to share with another process");
  }
  return SharedRings(static_cast<Memory*>(memory), maker);
}

Result<SharedRings> SharedRings::Make(Socket* file) {
  Socket made(memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.open() || ftruncate(made.descriptor(), sizeof(Memory)) != 0 ||
      fcntl(made.descriptor(), F_ADD_SEALS, kSeals) != 0) {
    return ResourceExhausted("there is no memory to share with another process");
  }
  ASSIGN_OR_RETURN(SharedRings rings, Map(made, true));
  *file = std::move(made);
  return rings;
}

Result<SharedRings> SharedRings::Adopt(const Socket& file) {
  struct stat about {};
  const int seals = fcntl(file.descriptor(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(file.descriptor(), &about) != 0 ||
      about.st_size != static_cast<off_t>(sizeof(Memory))) {
    return InvalidArgument("not the memory that processes of a job share");
  }
  return Map(file, false);
}

// False: the other end is gone.
bool SharedRings::DrainWakeUps(const Socket& socket) {
  std::array<char, 64> bytes{};
  while (!ended_) {
    const ssize_t got = recv(socket.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    ended_ = got == 0 || (got < 0 && errno != EAGAIN);
    if (got < static_cast<ssize_t>(bytes.size())) {
      break;
    }
  }
  return !ended_;
}

ssize_t SharedRings::Send(const Socket& socket, std::span<const std::byte> bytes) {
  const auto room = [this] { return kRingBytes - (written_ - out_->read.load()); };
  size_t left = room();
  if (left == 0) {
    if (!DrainWakeUps(socket)) {
      return -1;
    }
    out_->writer_sleeps.store(1);
    left = room();
  }
  if (left > kRingBytes) {  // the other end claims to have read what was never written
    return -1;
  }
  const size_t count = std::min(left, bytes.size());
  const size_t place = written_ % kRingBytes;
  const size_t straight = std::min(count, kRingBytes - place);
  std::memcpy(out_->bytes.data() + place, bytes.data(), straight);
  std::memcpy(out_->bytes.data(), bytes.data() + straight, count - straight);
  if (count > 0) {
    written_ += count;
    out_->written.store(written_);
    Wake(out_->reader_sleeps, socket);
  }
  return static_cast<ssize_t>(count);
}

ssize_t SharedRings::Receive(const Socket& socket, std::span<std::byte> room) {
  const auto held = [this] { return in_->written.load() - read_; };
  size_t there = held();
  if (there == 0) {
    const bool lives = DrainWakeUps(socket);
    in_->reader_sleeps.store(1);
    there = held();  // an end that is gone may have sent something before
    if (there == 0 && !lives) {
      return -1;
    }
  }
  if (there > kRingBytes) {
    return -1;
  }
  const size_t count = std::min(there, room.size());
  const size_t place = read_ % kRingBytes;
  const size_t straight = std::min(count, kRingBytes - place);
  std::memcpy(room.data(), in_->bytes.data() + place, straight);
  std::memcpy(room.data() + straight, in_->bytes.data(), count - straight);
  if (count > 0) {
    read_ += count;
    in_->read.store(read_);
    Wake(in_->writer_sleeps, socket);
  }
  return static_cast<ssize_t>(count);
}

bool SendWithFile(const Socket& socket, std::span<const char> bytes, const Socket& file) {
  FileMessage message({const_cast<char*>(bytes.data()), bytes.size()});
  cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int descriptor = file.descriptor();
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(descriptor));
  return sendmsg(socket.descriptor(), &message.header, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

ssize_t ReceiveWithFile(const Socket& socket, std::span<char> room, Socket* file) {
  FileMessage message(room);
  const ssize_t got = recvmsg(socket.descriptor(), &message.header, MSG_CMSG_CLOEXEC);
  if (got < 0) {
    return got;
  }
  const cmsghdr* const header = CMSG_FIRSTHDR(&message.header);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    // The room for one descriptor is rounded up, so two may come; the system closes any others.
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + at - CMSG_LEN(0), sizeof(descriptor));
      Socket sent(descriptor);
      if (!file->open()) {
        *file = std::move(sent);
      }
    }
  }
  return got;
}

}  // namespace sluice::elastic
