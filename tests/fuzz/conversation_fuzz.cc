#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "server/pgwire/conversation.h"
#include "tests/fuzz/target.h"

// Messages of a client, a back end and a borrower at the PostgreSQL door, in any order: each event
// is a letter, a length and that many bytes. There are never two statements of ours at once,
// nothing is sent after the end, and no memory grows with data that is merely passed on.
namespace sluice::server::pgwire {
namespace {

class Peers final : public Conversation::Host {
 public:
  void ToClient(std::string_view /*bytes*/) override {}
  void ToServer(std::string_view /*bytes*/) override {}
  void ToBorrower(std::string_view /*bytes*/) override {}
  void CancelServer() override {}
  void Run(const OwnStatement& statement, bool /*transaction*/) override {
    Begin(&running_);
    suspended_ = false;
    limited_ = statement.max_rows > 0;
    if (statement.text.size() > kMaxMessageBytes) {
      Broken("a statement is longer than what was sent");
    }
  }
  void Describe(const OwnStatement& /*statement*/, bool /*transaction*/) override {
    Begin(&describing_);
  }
  void Resume(uint32_t max_rows) override {
    if (!suspended_) {
      Broken("a statement goes on that was not suspended");
    }
    suspended_ = false;
    limited_ = max_rows > 0;
    running_ = true;
  }
  void GiveUp() override { running_ = suspended_ = false; }
  void FindRoute(std::string sql, std::set<std::string, std::less<>> /*prepared*/) override {
    routed_ = std::move(sql);
  }
  Status MayKeep(size_t /*bytes*/) override { return OkStatus(); }
  Status CheckSetting(std::string_view set) override {
    return set.size() % 2 == 0 ? OkStatus() : InvalidArgument("odd");
  }
  void Close() override { closed_ = true; }

  // Performs one event; skips those that are impossible now.
  void Tell(Conversation& conversation, char kind, std::string_view bytes) {
    if (routed_.has_value()) {
      std::string sql = *std::exchange(routed_, std::nullopt);
      conversation.Routed(sql, RouteScript(sql));
    }
    switch (kind) {
      case 'c':
        conversation.FromClient(bytes);
        break;
      case 's':
        conversation.FromServer(bytes);
        break;
      case 'C':
      case 'S':
        if (!bytes.empty()) {
          std::string message;
          AppendMessage(message, bytes.front(), bytes.substr(1));
          kind == 'C' ? conversation.FromClient(message) : conversation.FromServer(message);
        }
        break;
      case 'b':
        conversation.FromBorrower(bytes);
        break;
      case 'l':
        if (running_ || describing_) {
          conversation.Lend();
        }
        break;
      case 't':
        conversation.TakeBack();
        break;
      case 'r':
        if (running_) {
          std::string rows;
          AppendRowDescription(rows, {{std::string(bytes), {}, 0}});
          conversation.Says(rows);
        }
        break;
      case 'd':
        if (running_) {
          std::string row;
          std::string body("\0\1", 2);
          AppendUint32(body, static_cast<uint32_t>(bytes.size()));
          AppendMessage(row, 'D', body + std::string(bytes));
          conversation.Says(row);
        }
        break;
      case 'e':
        if (std::exchange(running_, false) || std::exchange(suspended_, false)) {
          conversation.Ended(bytes.empty() ? OkStatus() : InvalidArgument(std::string(bytes)));
        }
        break;
      case 'p':
        if (limited_ && std::exchange(running_, false)) {
          suspended_ = true;
          conversation.Suspended();
        }
        break;
      case 'D':
        if (std::exchange(describing_, false)) {
          conversation.Described(bytes.empty()
                                     ? Result<std::vector<WireColumn>>(InvalidArgument("no"))
                                     : std::vector<WireColumn>{{std::string(bytes), {}, 0}});
        }
        break;
      default:
        break;
    }
  }
  bool closed() const { return closed_; }

 private:
  void Begin(bool* what) {
    if (running_ || describing_) {
      Broken("two statements of ours at once");
    }
    *what = true;
  }

  bool running_ = false;
  bool describing_ = false;
  bool suspended_ = false;
  bool limited_ = false;  // what runs has a row limit
  bool closed_ = false;
  std::optional<std::string> routed_;  // whose route is asked for
};

}  // namespace
}  // namespace sluice::server::pgwire

FUZZ_TARGET(conversation) {
  using sluice::server::pgwire::Conversation;
  using sluice::server::pgwire::Peers;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  Peers peers;
  Conversation conversation(peers, {{"client_encoding", "UTF8"}});
  while (input.size() >= 2 && !peers.closed()) {
    const char kind = input[0];
    const size_t length = std::min<size_t>(static_cast<unsigned char>(input[1]), input.size() - 2);
    peers.Tell(conversation, kind, input.substr(2, length));
    input.remove_prefix(2 + length);
    if (conversation.held_bytes() > 2 * size) {
      sluice::Broken("more is held than was sent");
    }
  }
  return 0;
}
