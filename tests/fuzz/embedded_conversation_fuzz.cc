#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "server/pgwire/conversation.h"
#include "server/pgwire/embedded/embedded_server.h"
#include "tests/fuzz/target.h"

// Messages of a client at the PostgreSQL door over SQLite, in any order: each event is a letter, a
// length and that many bytes. It receives whole messages, at most one ReadyForQuery for each Query
// and Sync, and nothing after the end.
namespace sluice::server::pgwire {
namespace {

// Ends statements that take too long (57014), as a client would.
class Impatience {
 public:
  explicit Impatience(catalog::EmbeddedSession& session)
      : thread_([this, &session](const std::stop_token& end) {
          std::unique_lock lock(mutex_);
          while (!end.stop_requested()) {
            changed_.wait_for(lock, end, std::chrono::milliseconds(200), [] { return false; });
            session.Interrupt();
          }
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

class EmbeddedDoor final : public Conversation::Host {
 public:
  explicit EmbeddedDoor(std::unique_ptr<EmbeddedServer> server) : server_(std::move(server)) {}

  void ToClient(std::string_view bytes) override {
    said_ += bytes;
    while (said_.size() >= kHeaderBytes) {
      const size_t length = LoadBigEndian<uint32_t>(std::string_view(said_).substr(1));
      if (length < kLengthBytes) {
        Broken("the client hears what is no message");
      }
      if (said_.size() < 1 + length) {
        break;
      }
      readies_ += said_[0] == 'Z' ? 1 : 0;
      said_.erase(0, 1 + length);
    }
  }
  void ToServer(std::string_view bytes) override { server_->Take(bytes); }
  void ToBorrower(std::string_view /*bytes*/) override {}
  void CancelServer() override {}
  void Run(const OwnStatement& /*statement*/, bool /*transaction*/) override { runs_ = true; }
  void Describe(const OwnStatement& /*statement*/, bool /*transaction*/) override {
    describes_ = true;
  }
  void Resume(uint32_t /*max_rows*/) override {}
  void GiveUp() override {}
  void FindRoute(std::string sql, std::set<std::string, std::less<>> /*prepared*/) override {
    routed_ = std::move(sql);
  }
  Status MayKeep(size_t /*bytes*/) override { return OkStatus(); }
  Status CheckSetting(std::string_view /*set*/) override { return OkStatus(); }
  void Close() override { closed_ = true; }

  void Resume(Conversation& conversation) {
    while (!closed_) {
      if (routed_.has_value()) {
        std::string sql = *std::exchange(routed_, std::nullopt);
        conversation.Routed(sql, RouteScript(sql));
        continue;
      }
      if (std::exchange(runs_, false)) {
        conversation.Ended(server_->LetOthersWork("SELECT 1"));
        continue;
      }
      if (std::exchange(describes_, false)) {
        conversation.Described(std::vector<WireColumn>());
        continue;
      }
      std::string heard;
      const EmbeddedServer::State state = server_->Work(&heard);
      if (state == EmbeddedServer::State::kLocked) {
        Broken("a database of one session is locked");
      }
      if (heard.empty() && state != EmbeddedServer::State::kMore) {
        closed_ = closed_ || state == EmbeddedServer::State::kEnded;
        return;
      }
      conversation.FromServer(heard);
    }
  }

  bool closed() const { return closed_; }
  size_t readies() const { return readies_; }
  bool in_message() const { return !said_.empty(); }

 private:
  const std::unique_ptr<EmbeddedServer> server_;
  std::string said_;
  size_t readies_ = 0;
  bool runs_ = false;
  bool describes_ = false;
  bool closed_ = false;
  std::optional<std::string> routed_;  // whose route is asked for
};

}  // namespace
}  // namespace sluice::server::pgwire

FUZZ_TARGET(embedded_conversation) {
  using namespace sluice::server::pgwire;  // NOLINT(google-build-using-namespace)
  std::string_view input(reinterpret_cast<const char*>(data), size);
  auto session = sluice::catalog::OpenEmbeddedSession("sqlite::memory:",
                                                      {"ann", "shop", "PostgreSQL 15.0", "15.0"});
  if (!session.ok()) {
    sluice::Broken("no database");
  }
  SessionSettings settings("15.0", "ann", {});
  std::map<std::string, std::string> parameters;
  for (const auto& [name, value] : settings.Reported()) {
    parameters[name] = value;
  }
  auto server = std::make_unique<EmbeddedServer>(*std::move(session), std::move(settings));
  sluice::catalog::EmbeddedSession& running = server->session();
  EmbeddedDoor door(std::move(server));
  const Impatience impatience(running);
  Conversation conversation(door, parameters, sluice::catalog::Dialect::kSqlite);
  size_t asked = 0;
  while (input.size() >= 2 && !door.closed()) {
    const char kind = input[0];
    const size_t length = std::min<size_t>(static_cast<unsigned char>(input[1]), input.size() - 2);
    const std::string_view bytes = input.substr(2, length);
    input.remove_prefix(2 + length);
    std::string message;
    if (kind == 'q') {
      AppendQuery(message, bytes);
    } else if (kind != 'c' && !bytes.empty()) {  // 'c': bytes as they are
      AppendMessage(message, bytes.front(), bytes.substr(1));
    } else {
      message = bytes;
    }
    // Raw bytes may contain any number of other messages.
    asked += kind == 'c' ? 1 + bytes.size() : 1;
    conversation.FromClient(message);
    door.Resume(conversation);
    if (door.readies() > asked) {
      sluice::Broken("ready more often than was asked");
    }
    if (conversation.held_bytes() > 2 * size) {
      sluice::Broken("more is held than was sent");
    }
  }
  return 0;
}
