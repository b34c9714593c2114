#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/collective/all_reduce.h"
#include "tests/fuzz/target.h"

// Bytes from the other member of an all-reduce world: the hello of its two connections, then its
// part of a step. The first byte says whether the input begins with the hellos (1), or after them.
namespace sluice::elastic {
namespace {

constexpr char kToken[] = "0123456789abcdef";
const std::vector<uint32_t> kDimensions = {1, 3};

struct Hello {
  uint64_t magic = 0x536C7569636531ULL;
  int64_t world = 7;
  uint32_t rank = 1;
  uint32_t heartbeat = 0;
  char token[48] = {};
};

void Send(const Socket& socket, std::string_view bytes) {
  // Few enough bytes to stay in the connection's buffer until they are read.
  [[maybe_unused]] const ssize_t sent =
      send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void RegroupStranger(std::string_view input) {
  const int how = input.empty() ? 0 : input.front();
  input.remove_prefix(input.empty() ? 0 : 1);
  const Listener listener = Listener::Open(Listener::Kind::kUnix, "127.0.0.1").value();
  Socket step = ConnectTo(listener.address()).value();
  Socket heartbeat = ConnectTo(listener.address()).value();
  Hello hello;
  std::memcpy(hello.token, kToken, sizeof(kToken));
  std::string_view first(reinterpret_cast<const char*>(&hello), sizeof(hello));
  if ((how & 1) != 0) {
    first = input.substr(0, sizeof(hello));
    input.remove_prefix(first.size());
  }
  Send(step, first);
  hello.heartbeat = 1;
  Send(heartbeat, {reinterpret_cast<const char*>(&hello), sizeof(hello)});
  Send(step, input);
  shutdown(step.descriptor(), SHUT_WR);
  Mesh::Options options;
  options.world = WorldId(7);
  options.addresses = {listener.address(), "unix:nobody"};
  options.key = kToken;
  options.open_seconds = (how & 1) != 0 ? 0.02 : 5;
  const Result<std::unique_ptr<Mesh>> mesh = Mesh::Open(options, listener, {});
  if (!mesh.ok()) {
    return;
  }
  AllReduce all_reduce(**mesh, 100, kDimensions);
  AllReduce::Sums sums;
  sums.Start(4);
  std::vector<LaneNote> notes(2);
  notes[0].gradient = 1;
  notes[0].weight = 1;
  notes[1].lane = 1;
  FlatGradient gradient;
  gradient.dense.assign(100, 1.0F);
  gradient.tables.resize(kDimensions.size());
  const auto merge = [](FlatGradient* left, const FlatGradient& right) {
    Merge(left, right, kDimensions);
  };
  sums.Add(0, gradient, merge);
  sums.Add(1, std::nullopt, merge);
  StepSum sum;
  static_cast<void>(all_reduce.Run(1, 4, &sums.nodes(), notes, false, &sum));
}

}  // namespace
}  // namespace sluice::elastic

FUZZ_TARGET(world) {
  sluice::elastic::RegroupStranger({reinterpret_cast<const char*>(data), size});
  return 0;
}
