#include "server/pgwire/conversation.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "tests/server/pgwire/wire_notation.h"

// Conversations from conversations/*.txt. Each line is a message that is sent, or one that has to
// be received:
//   C: message       the client sends
//   S: message       the back end sends
//   =C: message      the client receives this next
//   =S: message      the back end receives this next
//   B: / =B:         the same of a statement that has borrowed the back end
//   =run text, =run-in-transaction text, =describe text, =give-up, =cancel, =close
//                    the host is asked for this next
//   !says message, !ended, !ended SQLSTATE | text, !suspended, !described column,
//   !described-nothing, !lend, !take-back, !routed
//                    the statement does so
// An unexpected message fails the test, too.
namespace sluice::server::pgwire {
namespace {

class Stage final : public Conversation::Host {
 public:
  void ToClient(std::string_view bytes) override { client_ += bytes; }
  void ToServer(std::string_view bytes) override { server_ += bytes; }
  void ToBorrower(std::string_view bytes) override { borrower_ += bytes; }
  void CancelServer() override { asked_.push_back("cancel"); }
  void Run(const OwnStatement& statement, bool transaction) override {
    asked_.push_back((transaction ? "run-in-transaction " : "run ") + statement.text);
  }
  void Describe(const OwnStatement& statement, bool /*transaction*/) override {
    asked_.push_back("describe " + statement.text);
  }
  void Resume(uint32_t max_rows) override { asked_.push_back(fmt::format("resume {}", max_rows)); }
  void GiveUp() override { asked_.push_back("give-up"); }
  void FindRoute(std::string sql, std::set<std::string, std::less<>> prepared) override {
    asked_.push_back(
        fmt::format("route {} bytes, prepared: {}", sql.size(), fmt::join(prepared, " ")));
    routed_ = std::move(sql);
  }
  Status MayKeep(size_t /*bytes*/) override { return OkStatus(); }
  Status CheckSetting(std::string_view set) override {
    return set.find("wrong") == std::string_view::npos
               ? OkStatus()
               : InvalidArgument("no setting of that name").At({4, 5});
  }
  void Close() override { asked_.push_back("close"); }

  // Plays one line; returns what is wrong, "" if nothing.
  std::string Play(const std::string& line,
                   const std::function<void(const std::string&)>& to_client,
                   const std::function<void(const std::string&)>& to_server) {
    const auto rest = [&line](size_t from) { return line.substr(std::min(from, line.size())); };
    if (line.starts_with("C: ")) {
      to_client(MessageOf(rest(3)));
    } else if (line.starts_with("S: ")) {
      to_server(MessageOf(rest(3)));
    } else if (line.starts_with("B: ")) {
      conversation_.FromBorrower(MessageOf(rest(3)));
    } else if (line.starts_with("=C: ")) {
      return Expect(heard_by_client_, client_, false, rest(4));
    } else if (line.starts_with("=S: ")) {
      return Expect(heard_by_server_, server_, true, rest(4));
    } else if (line.starts_with("=B: ")) {
      return Expect(heard_by_borrower_, borrower_, false, rest(4));
    } else if (line.starts_with("=")) {
      const std::string asked = asked_.empty() ? "nothing" : asked_.front();
      asked_.empty() ? void() : asked_.pop_front();
      return asked == rest(1) ? "" : "the host was asked for: " + asked;
    } else if (line.starts_with("!says ")) {
      conversation_.Says(MessageOf(rest(6)));
    } else if (line == "!ended") {
      conversation_.Ended(OkStatus());
    } else if (line.starts_with("!ended ")) {
      conversation_.Ended(
          Status(Code::kInvalidArgument, rest(15)).SqlState(line.substr(7, 5)).At({7, 8}));
    } else if (line == "!suspended") {
      conversation_.Suspended();
    } else if (line == "!described-nothing") {
      conversation_.Described(std::vector<WireColumn>());
    } else if (line.starts_with("!described ")) {
      conversation_.Described(std::vector<WireColumn>{{rest(11), {}, 0}});
    } else if (line == "!routed") {
      std::optional<Route> route = RouteScript(routed_);
      conversation_.Routed(std::exchange(routed_, ""), std::move(route));
    } else if (line == "!lend") {
      conversation_.Lend();
    } else if (line == "!take-back") {
      conversation_.TakeBack();
    } else {
      return "is not understood";
    }
    return "";
  }

  std::string NobodySpoke() {
    std::string said;
    for (const auto& [who, lines, stream, to_server] :
         {std::tuple("the client", &heard_by_client_, &client_, false),
          std::tuple("the back end", &heard_by_server_, &server_, true),
          std::tuple("the borrower", &heard_by_borrower_, &borrower_, false)}) {
      for (std::string& line : TakeLines(*stream, to_server)) {
        lines->push_back(std::move(line));
      }
      if (!lines->empty() || !stream->empty()) {
        said += fmt::format("{} has heard: {}\n", who,
                            lines->empty() ? "part of a message" : lines->front());
      }
    }
    return asked_.empty() ? said : said + "the host was asked for: " + asked_.front();
  }

  Conversation& conversation() { return conversation_; }

 private:
  static std::string Expect(std::deque<std::string>& heard, std::string& stream, bool to_server,
                            const std::string& expected) {
    for (std::string& line : TakeLines(stream, to_server)) {
      heard.push_back(std::move(line));
    }
    const std::string next = heard.empty() ? "nothing" : heard.front();
    heard.empty() ? void() : heard.pop_front();
    return next == expected ? "" : "heard: " + next;
  }

  std::string client_, server_, borrower_;
  std::deque<std::string> heard_by_client_, heard_by_server_, heard_by_borrower_;
  std::deque<std::string> asked_;
  std::string routed_;  // whose route is asked for
  Conversation conversation_{*this, {{"client_encoding", "UTF8"}}};
};

std::vector<std::filesystem::path> Files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/server/pgwire/conversations")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class ConversationTest : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  // `piece`: number of bytes that arrive at a time.
  void Play(size_t piece) {
    Stage stage;
    const auto in_pieces = [piece](const std::string& bytes, const auto& take) {
      for (size_t at = 0; at < bytes.size(); at += piece) {
        take(std::string_view(bytes).substr(at, piece));
      }
    };
    std::ifstream file(GetParam());
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if (line.empty() || line.front() == '#') {
        continue;
      }
      const std::string wrong = stage.Play(
          line,
          [&](const std::string& bytes) {
            in_pieces(bytes, [&](std::string_view part) { stage.conversation().FromClient(part); });
          },
          [&](const std::string& bytes) {
            in_pieces(bytes, [&](std::string_view part) { stage.conversation().FromServer(part); });
          });
      ASSERT_EQ(wrong, "") << GetParam().filename() << ":" << number << ": " << line;
    }
    EXPECT_EQ(stage.NobodySpoke(), "");
  }
};

TEST_P(ConversationTest, GoesAsWritten) {
  Play(SIZE_MAX / 2);
}

TEST_P(ConversationTest, GoesAsWrittenByteByByte) {
  Play(1);
}

// Others do not wait for a long text of one client: it is read elsewhere, and what follows it
// waits.
TEST(LongStatements, AreReadElsewhere) {
  const std::string text(20'000, 'x');
  const std::string plain = "SELECT '" + text + "'";
  const std::string ours = "SELECT '" + text + "' AS a TO PREDICT USING m";
  Stage stage;
  const auto play = [&stage](const std::string& line) {
    const auto client = [&stage](const std::string& bytes) {
      stage.conversation().FromClient(bytes);
    };
    const auto server = [&stage](const std::string& bytes) {
      stage.conversation().FromServer(bytes);
    };
    EXPECT_EQ(stage.Play(line, client, server), "") << line.substr(0, 100);
  };
  play("C: Query " + plain);
  play(fmt::format("=route {} bytes, prepared: ", plain.size()));
  play("C: Query SELECT 2");
  play("=S: nothing");
  play("!routed");
  play("=S: Query " + plain);
  play("=S: Query SELECT 2");
  for (int i = 0; i < 2; ++i) {
    play("S: ReadyForQuery I");
    play("=C: ReadyForQuery I");
  }
  play("C: Query " + ours);
  play(fmt::format("=route {} bytes, prepared: ", ours.size()));
  play("!routed");
  play("=run " + ours);
  play("=S: Flush");  // keeps an idle server from closing the connection
  play("!ended");
  play("=C: ReadyForQuery I");
  play("C: Parse s | " + plain);
  play(fmt::format("=route {} bytes, prepared: ", plain.size()));
  play("!routed");
  play("=S: Parse s | " + plain);
  EXPECT_EQ(stage.NobodySpoke(), "");
}

INSTANTIATE_TEST_SUITE_P(Files, ConversationTest, ::testing::ValuesIn(Files()),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace sluice::server::pgwire
