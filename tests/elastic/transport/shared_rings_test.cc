#include "elastic/transport/shared_rings_internal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace sluice::elastic {
namespace {

constexpr size_t kRingSize = SharedRings::kRingBytes;

// Both ends of a connection, each with its mapping of the memory.
struct RingEnds {
  RingEnds() {
    std::array<int, 2> descriptors{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, descriptors.data()), 0);
    sockets[0] = Socket(descriptors[0]);
    sockets[1] = Socket(descriptors[1]);
    rings[0] = SharedRings::Make(&file).value();
    rings[1] = SharedRings::Adopt(file).value();
  }
  ssize_t Send(int end, std::span<const std::byte> bytes) {
    return rings[static_cast<size_t>(end)].Send(sockets[static_cast<size_t>(end)], bytes);
  }
  ssize_t Receive(int end, std::span<std::byte> room) {
    return rings[static_cast<size_t>(end)].Receive(sockets[static_cast<size_t>(end)], room);
  }
  bool Wait(int end) const {
    return WaitFor(sockets[static_cast<size_t>(end)].descriptor(), POLLIN,
                   std::chrono::steady_clock::now() + std::chrono::seconds(20));
  }

  Socket file;
  std::array<Socket, 2> sockets;
  std::array<SharedRings, 2> rings;
};

std::vector<std::byte> PatternOf(size_t size, size_t from = 0) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((from + i) * 31 % 251);
  }
  return bytes;
}

TEST(SharedRings, ARingIsFullOrEmpty) {
  RingEnds ends;
  std::vector<std::byte> room(2 * kRingSize);
  EXPECT_EQ(ends.Receive(1, room), 0);
  EXPECT_EQ(ends.Send(0, PatternOf(2 * kRingSize)), static_cast<ssize_t>(kRingSize));
  EXPECT_EQ(ends.Send(0, PatternOf(1)), 0);
  EXPECT_EQ(ends.Receive(1, std::span(room).first(1000)), 1000);
  EXPECT_EQ(ends.Send(0, PatternOf(2000, kRingSize)), 1000);  // round the end of the ring
  EXPECT_EQ(ends.Receive(1, std::span(room).subspan(1000)), static_cast<ssize_t>(kRingSize));
  EXPECT_EQ(ends.Receive(1, room), 0);
  room.resize(kRingSize + 1000);
  EXPECT_EQ(room, PatternOf(kRingSize + 1000));
}

TEST(SharedRings, AWakeUpIsSentToWhoSleepsOnly) {
  RingEnds ends;
  const auto pending = [&](int end) {
    char byte = 0;
    return recv(ends.sockets[static_cast<size_t>(end)].descriptor(), &byte, 1, MSG_PEEK) == 1;
  };
  EXPECT_EQ(ends.Send(0, PatternOf(10)), 10);
  EXPECT_FALSE(pending(1));  // has not looked yet
  std::vector<std::byte> room(kRingSize);
  EXPECT_EQ(ends.Receive(1, room), 10);
  EXPECT_EQ(ends.Receive(1, room), 0);  // sleeps now
  EXPECT_EQ(ends.Send(0, PatternOf(10)), 10);
  EXPECT_EQ(ends.Send(0, PatternOf(10)), 10);
  EXPECT_TRUE(pending(1));
  EXPECT_EQ(ends.Receive(1, room), 20);
  EXPECT_EQ(ends.Receive(1, room), 0);
  EXPECT_FALSE(pending(1));  // taken
  // A writer without room is woken by the reader.
  EXPECT_EQ(ends.Send(0, PatternOf(kRingSize)), static_cast<ssize_t>(kRingSize));
  EXPECT_EQ(ends.Send(0, PatternOf(1)), 0);
  EXPECT_FALSE(pending(0));
  EXPECT_EQ(ends.Receive(1, room), static_cast<ssize_t>(kRingSize));
  EXPECT_TRUE(pending(0));
  EXPECT_EQ(ends.Send(0, PatternOf(1)), 1);
}

// A wake-up that was lost would leave both ends waiting for ever.
TEST(SharedRings, BothDirectionsAtOnceLoseNothing) {
  constexpr size_t kBytes = size_t{48} << 20;
  RingEnds ends;
  const auto send = [&](int end) {
    std::mt19937 random(static_cast<unsigned>(end));
    const std::vector<std::byte> all = PatternOf(251 * 4096);
    for (size_t sent = 0; sent < kBytes;) {
      const size_t size = std::min<size_t>(kBytes - sent, 1 + random() % (2 * kRingSize));
      const size_t place = sent % 251;
      const ssize_t count =
          ends.Send(end, std::span(all).subspan(place, std::min(size, all.size() - place)));
      ASSERT_GE(count, 0);
      sent += static_cast<size_t>(count);
      ASSERT_TRUE(count > 0 || ends.Wait(end));
    }
  };
  const auto receive = [&](int end) {
    std::mt19937 random(100 + static_cast<unsigned>(end));
    std::vector<std::byte> room(2 * kRingSize);
    const std::vector<std::byte> expected = PatternOf(2 * kRingSize + 251);
    for (size_t got = 0; got < kBytes;) {
      const std::span<std::byte> part = std::span(room).first(1 + random() % room.size());
      const ssize_t count = ends.Receive(end, part);
      ASSERT_GE(count, 0);
      ASSERT_TRUE(count > 0 || ends.Wait(end));
      ASSERT_EQ(std::memcmp(part.data(), expected.data() + got % 251, static_cast<size_t>(count)),
                0);
      got += static_cast<size_t>(count);
    }
  };
  {  // an end belongs to one thread: first one direction, then the other
    const std::jthread sender([&] { send(0); });
    receive(1);
  }
  const std::jthread sender([&] { send(1); });
  receive(0);
}

TEST(SharedRings, WhatWasSentBeforeTheEndArrives) {
  RingEnds ends;
  EXPECT_EQ(ends.Send(0, PatternOf(100)), 100);
  ends.sockets[0] = Socket();
  ends.rings[0] = SharedRings();
  std::vector<std::byte> room(200);
  EXPECT_EQ(ends.Receive(1, room), 100);
  EXPECT_EQ(ends.Receive(1, room), -1);
  EXPECT_EQ(ends.Receive(1, room), -1);
  EXPECT_EQ(ends.Send(1, PatternOf(2 * kRingSize)), static_cast<ssize_t>(kRingSize));
  EXPECT_EQ(ends.Send(1, PatternOf(1)), -1);
}

// Another process of the same user could write anything into the memory.
TEST(SharedRings, NonsenseInTheMemoryIsNotFollowed) {
  RingEnds ends;
  const off_t size = lseek(ends.file.descriptor(), 0, SEEK_END);
  auto* const memory =
      static_cast<unsigned char*>(mmap(nullptr, static_cast<size_t>(size), PROT_WRITE | PROT_READ,
                                       MAP_SHARED, ends.file.descriptor(), 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 0xFF, static_cast<size_t>(size));
  std::vector<std::byte> room(kRingSize);
  EXPECT_EQ(ends.Receive(1, room), -1);
  EXPECT_EQ(ends.Receive(0, room), -1);
  munmap(memory, static_cast<size_t>(size));
}

TEST(SharedRings, AFileThatCouldShrinkIsRefused) {
  RingEnds ends;
  EXPECT_NE(ftruncate(ends.file.descriptor(), 0), 0);
  const off_t size = lseek(ends.file.descriptor(), 0, SEEK_END);
  const Socket unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.descriptor(), size), 0);
  EXPECT_EQ(SharedRings::Adopt(unsealed).status().code(), Code::kInvalidArgument);
  ASSERT_EQ(fcntl(unsealed.descriptor(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
            0);
  EXPECT_TRUE(SharedRings::Adopt(unsealed).ok());
  const Socket small(memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(small.descriptor(), 4096), 0);
  ASSERT_EQ(fcntl(small.descriptor(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_EQ(SharedRings::Adopt(small).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(SharedRings::Adopt(ends.sockets[0]).status().code(), Code::kInvalidArgument);
}

TEST(SharedRings, DescriptorsThatNobodyAskedForAreClosed) {
  RingEnds ends;
  std::array<char, 1> byte{'x'};
  iovec piece{byte.data(), byte.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const std::array<int, 2> both{ends.file.descriptor(), pipe_ends[1]};
  std::memcpy(CMSG_DATA(header), both.data(), sizeof(both));
  ASSERT_EQ(sendmsg(ends.sockets[0].descriptor(), &message, 0), 1);
  close(pipe_ends[1]);
  Socket file;
  EXPECT_EQ(ReceiveWithFile(ends.sockets[1], byte, &file), 1);
  EXPECT_TRUE(SharedRings::Adopt(file).ok());
  EXPECT_EQ(read(pipe_ends[0], byte.data(), 1), 0);  // nobody has its other end
  close(pipe_ends[0]);
}

}  // namespace
}  // namespace sluice::elastic
