#include "elastic/collective/mesh.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/same_secret.h"

namespace sluice::elastic {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// How often stop requests and the heartbeat are checked while no data move.
constexpr int kPollMilliseconds = 50;
// How long a stranger that connects and sends nothing can delay the others.
constexpr auto kHelloWait = std::chrono::milliseconds(200);
constexpr size_t kPieces = 64;  // of memory passed to the system at once
constexpr uint64_t kMagic = 0x536C7569636531ULL;

// The first bytes on a connection: its sender and its purpose.
struct Hello {
  uint64_t magic = kMagic;
  int64_t world = 0;
  uint32_t rank = 0;
  uint32_t heartbeat = 0;
  char token[48] = {};
};

int MillisecondsUntil(SteadyTime until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, kPollMilliseconds));
}

bool Wait(int descriptor, short what, SteadyTime until) {
  do {
    pollfd entry{descriptor, what, 0};
    if (poll(&entry, 1, MillisecondsUntil(until)) > 0) {
      return true;
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

bool SendHello(Connection& connection, const Hello& hello, SteadyTime until) {
  // The connection may still be in progress; the few bytes fit into any buffer.
  const iovec piece{const_cast<Hello*>(&hello), sizeof(hello)};
  while (Wait(connection.descriptor(), POLLOUT, until)) {
    const ptrdiff_t sent = connection.Send({&piece, 1});
    if (sent != 0) {
      return sent == static_cast<ptrdiff_t>(sizeof(hello));
    }
  }
  return false;
}

bool ReadHello(Connection& connection, Hello* hello, SteadyTime until) {
  const std::span<std::byte> room = std::as_writable_bytes(std::span(hello, 1));
  size_t got = 0;
  while (got < sizeof(*hello) &&
         (connection.holds_more() || Wait(connection.descriptor(), POLLIN, until))) {
    const ptrdiff_t more = connection.Receive(room.subspan(got));
    if (more < 0) {
      return false;
    }
    got += static_cast<size_t>(more);
  }
  return got == sizeof(*hello) && hello->magic == kMagic;
}

}  // namespace

// One peer's part of an exchange.
class Mesh::Flow {
 public:
  Flow(Peer& peer, Mesh::Traffic* traffic) : peer_(&peer), traffic_(traffic) {}
  Status Begin() {
    RETURN_IF_ERROR(NextTarget());
    return Send();
  }
  bool sending() const { return piece_ < traffic_->out.size(); }
  bool receiving() const { return receiving_; }
  int descriptor() const { return peer_->connection.descriptor(); }
  // Data that have already arrived need no waiting.
  bool has_more() const { return receiving_ && (held() > 0 || peer_->connection.holds_more()); }

  // Both continue until the system has no room or no data for the moment.
  Status Send() {
    while (sending()) {
      iovec pieces[kPieces];
      size_t count = 0;
      for (size_t i = piece_; i < traffic_->out.size() && count < kPieces; ++i) {
        const std::span<const std::byte> piece =
            traffic_->out[i].subspan(i == piece_ ? offset_ : 0);
        pieces[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
      }
      const ptrdiff_t sent = peer_->connection.Send({pieces, count});
      if (sent <= 0) {
        return sent == 0 ? Status() : Lost();
      }
      Sent(static_cast<size_t>(sent));
    }
    return Status();
  }
  Status Receive() {
    while (receiving_) {
      if (held() == 0) {
        const ptrdiff_t got = target_.size() < kTogether ? Refill() : Straight();
        if (got <= 0) {
          return got == 0 ? Status() : Lost();
        }
      }
      const size_t count = std::min(held(), target_.size());
      std::copy_n(peer_->buffer.data() + peer_->taken, count, target_.data());
      peer_->taken += count;
      target_ = target_.subspan(count);
      if (target_.empty()) {
        RETURN_IF_ERROR(NextTarget());
      }
    }
    return Status();
  }

 private:
  // A message is many small pieces: those that have arrived are received at once.
  static constexpr size_t kTogether = size_t{64} << 10;
  size_t held() const { return peer_->received - peer_->taken; }
  ptrdiff_t Refill() {
    peer_->buffer.resize(kTogether);
    const ptrdiff_t got = peer_->connection.Receive(peer_->buffer);
    peer_->taken = 0;
    peer_->received = static_cast<size_t>(std::max<ptrdiff_t>(got, 0));
    return got;
  }
  ptrdiff_t Straight() {
    const ptrdiff_t got = peer_->connection.Receive(target_);
    target_ = target_.subspan(static_cast<size_t>(std::max<ptrdiff_t>(got, 0)));
    return got;
  }
  static Status Lost() { return Unavailable("a worker of this world is gone"); }
  Status NextTarget() {
    ASSIGN_OR_RETURN(target_, traffic_->next());
    receiving_ = !target_.empty();
    return Status();
  }
  void Sent(size_t bytes) {
    while (sending()) {
      const size_t left = traffic_->out[piece_].size() - offset_;
      if (bytes < left) {
        offset_ += bytes;
        return;
      }
      bytes -= left;
      ++piece_;
      offset_ = 0;
    }
  }

  Peer* peer_;
  Mesh::Traffic* traffic_;
  size_t piece_ = 0;
  size_t offset_ = 0;
  std::span<std::byte> target_;
  bool receiving_ = false;
};

Result<std::unique_ptr<Mesh>> Mesh::Open(const Options& options, const Listener& listener,
                                         std::stop_token stop) {
  std::unique_ptr<Mesh> mesh(new Mesh(options, std::move(stop)));
  ASSIGN_OR_RETURN(mesh->encryption_, Encryption::Make(options.key));
  mesh->peers_.resize(mesh->size());
  std::vector<Connection> heartbeats(mesh->size());
  RETURN_IF_ERROR(mesh->Connect(&heartbeats));
  RETURN_IF_ERROR(mesh->AcceptYounger(listener, &heartbeats));
  mesh->heartbeat_ = std::make_unique<Heartbeat>(std::move(heartbeats), options.silence_seconds);
  return mesh;
}

Status Mesh::Connect(std::vector<Connection>* heartbeats) {
  const SteadyTime until =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<SteadyTime::duration>(
                                             std::chrono::duration<double>(options_.open_seconds));
  Hello hello;
  hello.world = options_.world.value();
  hello.rank = options_.rank.value();
  options_.key.token.copy(hello.token, sizeof(hello.token));
  for (size_t peer = 0; peer < options_.rank.index(); ++peer) {
    for (Connection* channel : {&peers_[peer].connection, &(*heartbeats)[peer]}) {
      Result<Socket> socket = ConnectTo(options_.addresses[peer]);
      if (!socket.ok()) {  // the next regroup may know a better address
        return Unavailable(socket.status().message());
      }
      Result<Connection> connection =
          Connection::Open(*std::move(socket), encryption_.get(), false, until);
      hello.heartbeat = channel == &(*heartbeats)[peer] ? 1 : 0;
      const bool connected = connection.ok();
      if (connected) {
        *channel = *std::move(connection);
      }
      if (!connected || !SendHello(*channel, hello, until)) {
        return Unavailable(fmt::format("worker {} of world {} cannot be reached at {}", peer,
                                       options_.world, options_.addresses[peer]));
      }
    }
  }
  return Status();
}

Status Mesh::AcceptYounger(const Listener& listener, std::vector<Connection>* heartbeats) {
  const SteadyTime until =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<SteadyTime::duration>(
                                             std::chrono::duration<double>(options_.open_seconds));
  size_t missing = 2 * (size() - 1 - options_.rank.index());
  Hello expected;
  options_.key.token.copy(expected.token, sizeof(expected.token));
  while (missing > 0) {
    RETURN_IF_ERROR(Interrupted());
    const bool came = Wait(listener.descriptor(), POLLIN,
                           std::min(until, std::chrono::steady_clock::now() + kHelloWait));
    if (std::chrono::steady_clock::now() >= until) {  // accepts others that connect meanwhile
      return Unavailable(fmt::format("world {} did not come together in {} seconds", options_.world,
                                     options_.open_seconds));
    }
    Socket socket = came ? listener.Accept() : Socket();
    if (!socket.open()) {
      continue;
    }
    const SteadyTime heard = std::chrono::steady_clock::now() + kHelloWait;
    Result<Connection> connection =
        Connection::Open(std::move(socket), encryption_.get(), true, heard);
    Hello hello;
    if (!connection.ok() || !ReadHello(*connection, &hello, heard) ||
        !SameSecret({hello.token, sizeof(hello.token)}, {expected.token, sizeof(expected.token)})) {
      continue;
    }
    const WorldId world(hello.world);
    if (world > options_.world) {
      return Unavailable(fmt::format("world {} is over: there is world {}", options_.world, world));
    }
    // From an older world: left over from an attempt that failed.
    if (world < options_.world || Rank(hello.rank) <= options_.rank || hello.rank >= size() ||
        hello.heartbeat > 1) {
      continue;
    }
    Connection& place =
        hello.heartbeat != 0 ? (*heartbeats)[hello.rank] : peers_[hello.rank].connection;
    missing -= place.open() ? 0 : 1;
    place = *std::move(connection);
  }
  return Status();
}

Status Mesh::Interrupted() const {
  if (stop_.stop_requested()) {
    return Cancelled("the training was stopped");
  }
  const std::optional<Rank> quiet = silent();
  return !quiet.has_value() ? Status()
                            : Unavailable(fmt::format("worker {} of world {} says nothing", *quiet,
                                                      options_.world));
}

Status Mesh::Exchange(std::vector<Traffic>* traffic, const std::function<void()>& meanwhile) {
  std::vector<Flow> flows;
  for (size_t peer = 0; peer < size(); ++peer) {
    if (peer != rank().index()) {
      flows.emplace_back(peers_[peer], &(*traffic)[peer]);
      RETURN_IF_ERROR(flows.back().Begin());
    }
  }
  if (meanwhile) {
    meanwhile();
  }
  std::vector<pollfd> entries;
  for (;;) {
    entries.clear();
    bool pending = false, waits = true;
    for (const Flow& flow : flows) {
      const int events = (flow.sending() ? POLLOUT : 0) | (flow.receiving() ? POLLIN : 0);
      pending = pending || events != 0;
      waits = waits && !flow.has_more();
      // A peer that is done is not watched: it may close its connection.
      entries.push_back({events != 0 ? flow.descriptor() : -1, static_cast<short>(events), 0});
    }
    if (!pending) {
      return Status();
    }
    if (poll(entries.data(), entries.size(), waits ? kPollMilliseconds : 0) < 0 && errno != EINTR) {
      return Internal(fmt::format("poll: {}", std::strerror(errno)));
    }
    RETURN_IF_ERROR(Interrupted());
    for (size_t i = 0; i < flows.size(); ++i) {
      const int ready = entries[i].revents;
      if (flows[i].has_more() ||
          (flows[i].receiving() && (ready & (POLLIN | POLLHUP | POLLERR)) != 0)) {
        RETURN_IF_ERROR(flows[i].Receive());
      }
      if (flows[i].sending() && (ready & (POLLOUT | POLLHUP | POLLERR)) != 0) {
        RETURN_IF_ERROR(flows[i].Send());
      }
    }
  }
}

}  // namespace sluice::elastic
