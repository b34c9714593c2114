#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/pgwire/backend_login.h"
#include "server/statements/login_throttle.h"
#include "tests/server/pgwire/door_fixture.h"
#include "tests/server/pgwire/raw_client.h"

// Passwords are guessed by the thousand: what is answered does not say which roles there are, the
// right password gets in from elsewhere, and the gateway does not grow.
namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Its parameter: the gateway's --auth.
class PasswordGuesses : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr const char* kRole = "some_body";
  static constexpr const char* kNoRole = "nobody_xx";  // as long as the other

  static void SetUpTestSuite() {
    server_ = testing::PostgresServer::StartOwn("host all all 127.0.0.1/32 scram-sha-256");
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (server_ == nullptr) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    std::filesystem::create_directories(home_);
    RunInShell(
        fmt::format("psql -Xq '{}postgres' -c 'DROP ROLE IF EXISTS {}' -c \"CREATE ROLE {}"
                    " LOGIN PASSWORD 'right'\" 2>&1",
                    server_->url_prefix(), kRole, kRole));
    gateway_ = std::make_unique<BackgroundProcess>(fmt::format(
        "HOME={} exec {} serve --source {}postgres --grpc 127.0.0.1:0 --pg 127.0.0.1:0 --auth {}",
        home_, SLUICE_BINARY, server_->url_prefix(), GetParam()));
    gateway_->ReadLine();
    const std::string line = gateway_->ReadLine();
    port_ = std::to_string(std::stoi(line.substr(line.find(':') + 1)));
  }
  void TearDown() override {
    gateway_.reset();
    std::filesystem::remove_all(home_);
  }

  // One login, whose last word, from which the door sees whether it knows the password, may be held
  // back.
  class Login {
   public:
    Login(const std::string& port, const std::string& from, const std::string& role,
          const std::string& password)
        : role_(role),
          client_(port, from.c_str()),
          login_({server::pgwire::kProtocol3, {{"user", role}, {"database", "postgres"}}},
                 {.password = password, .keys = std::nullopt}, true, "nonce" + from) {}

    // False: it was refused before that.
    bool UntilLastWord() {
      client_.Send(login_.Begin());
      while (Hear()) {
        if (login_.state() == State::kProving || GetParam() == std::string("password")) {
          return true;
        }
        client_.Send(answer_);
      }
      return false;
    }
    void SayLastWord() {
      client_.Send(login_.state() == State::kProving ? login_.Prove().value() : answer_);
    }
    // SQLSTATE and message of the door's refusal, without the role's name; "in": there is none.
    std::string Outcome() {
      while (Hear()) {
        client_.Send(answer_);
      }
      if (!failed_.empty()) {
        return failed_;
      }
      if (login_.state() == State::kReady) {
        return "in";
      }
      const Status refusal = server::pgwire::ReadError(
          std::string_view(login_.refusal()).substr(server::pgwire::kHeaderBytes));
      std::string message = fmt::format("{} {}", refusal.sqlstate(), refusal.message());
      const size_t name = message.find(role_);
      return name == std::string::npos ? message : message.replace(name, role_.size(), "ROLE");
    }

   private:
    using State = server::pgwire::BackendLogin::State;
    // False: it has ended.
    bool Hear() {
      if (!failed_.empty() || login_.state() == State::kReady ||
          login_.state() == State::kRefused) {
        return false;
      }
      const std::string said = client_.ReadSome();
      Result<std::string> answer = login_.FromServer(said);
      failed_ = said.empty()  ? "closed without a word"
                : answer.ok() ? ""
                              : answer.status().ToString();
      answer_ = answer.ok() ? *answer : "";
      return failed_.empty() && login_.state() != State::kReady &&
             login_.state() != State::kRefused;
    }

    const std::string role_;
    const RawClient client_;
    server::pgwire::BackendLogin login_;
    std::string answer_;
    std::string failed_;
  };

  std::string LogIn(const std::string& from, const std::string& role,
                    const std::string& password) const {
    Login login(port_, from, role, password);
    if (login.UntilLastWord()) {
      login.SayLastWord();
    }
    return login.Outcome();
  }
  // How many of so many that all have come to their last word have each outcome.
  std::map<std::string, int> LogInAtOnce(int count, const std::string& from,
                                         const std::string& password) const {
    std::vector<std::unique_ptr<Login>> logins;
    for (int i = 0; i < count; ++i) {
      logins.push_back(std::make_unique<Login>(port_, from, kRole, password));
      EXPECT_TRUE(logins.back()->UntilLastWord()) << logins.back()->Outcome();
    }
    for (const auto& login : logins) {
      login->SayLastWord();
    }
    std::map<std::string, int> outcomes;
    for (const auto& login : logins) {
      ++outcomes[login->Outcome()];
    }
    return outcomes;
  }
  // Each failure makes the next one wait twice as long, so that is soon.
  std::string GuessUntilRefused(const std::string& from, const std::string& role) const {
    std::string heard;
    for (int i = 0; i < 20 && !heard.starts_with("28000"); ++i) {
      heard = LogIn(from, role, "guess");
    }
    return heard;
  }
  size_t Resident() const {
    std::ifstream status(fmt::format("/proc/{}/statm", gateway_->pid()));
    size_t pages = 0;
    status >> pages >> pages;
    return pages * 4096;
  }
  // The n-th address of this machine.
  static std::string Address(int n) { return fmt::format("127.1.{}.{}", n / 250, n % 250 + 1); }

  static inline std::unique_ptr<testing::PostgresServer> server_;
  const std::string home_ =
      (std::filesystem::temp_directory_path() / fmt::format("sluice_guesses_{}", getpid()))
          .string();
  std::unique_ptr<BackgroundProcess> gateway_;
  std::string port_;
};

TEST_P(PasswordGuesses, DoNotSayWhichRolesThereAre) {
  const std::string wrong = "28P01 password authentication failed for user \"ROLE\"";
  for (const char* role : {kRole, kNoRole}) {
    const std::string from = role == kRole ? "127.2.0.1" : "127.2.0.2";
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(LogIn(from, role, fmt::format("guess{}", i)), wrong) << role;
    }
    EXPECT_EQ(GuessUntilRefused(from, role), "28000 too many failed logins") << role;
  }
}

TEST_P(PasswordGuesses, ByTheThousandLockNobodyOut) {
  EXPECT_EQ(LogIn("127.2.1.1", kRole, "right"), "in");
  constexpr int kAddresses = 150;
  const auto guess = [&] {
    int checked = 0;
    for (int n = 0; n < kAddresses; ++n) {  // a few of each address are checked, the others refused
      for (int i = 0; i < 4; ++i) {
        const char* const role = i % 2 == 0 ? kRole : kNoRole;
        checked += LogIn(Address(n), role, fmt::format("guess{}", i)).starts_with("28P01") ? 1 : 0;
      }
    }
    return checked;
  };
  EXPECT_GE(guess(), kAddresses);
  const size_t before = Resident();
  guess();
  guess();
  EXPECT_LT(Resident(), before + (size_t{8} << 20));
  EXPECT_EQ(LogIn("127.2.1.1", kRole, "right"), "in");
  EXPECT_EQ(LogIn("127.2.1.2", kRole, "right"), "in");
}

TEST_P(PasswordGuesses, BegunAtOnceAreNotAllChecked) {
  const int free = server::LoginThrottle::kFreeFailures;
  const std::map<std::string, int> outcomes = LogInAtOnce(40, "127.2.2.1", "guess");
  EXPECT_THAT(outcomes,
              ElementsAre(Pair("28000 too many failed logins", 40 - free),
                          Pair("28P01 password authentication failed for user \"ROLE\"", free)));
}

TEST_P(PasswordGuesses, SessionsThatAPoolOpensAtOnceAllGetIn) {
  EXPECT_THAT(LogInAtOnce(40, "127.2.3.1", "right"), ElementsAre(Pair("in", 40)));
}

INSTANTIATE_TEST_SUITE_P(All, PasswordGuesses, ::testing::Values("password", "scram"),
                         [](const auto& login) { return std::string(login.param); });

}  // namespace
}  // namespace sluice
