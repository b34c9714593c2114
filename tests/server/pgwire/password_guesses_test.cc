#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "server/pgwire/backend_login.h"
#include "tests/server/pgwire/door_fixture.h"
#include "tests/server/pgwire/raw_client.h"

// Passwords are guessed by the thousand: what is answered does not say which roles there are, the
// right password gets in from elsewhere, and the gateway does not grow.
namespace sluice {
namespace {

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

  // SQLSTATE and message of the door's refusal, without the role's name; "in": there is none.
  std::string LogIn(const std::string& from, const std::string& role,
                    const std::string& password) const {
    const RawClient client(port_, from.c_str());
    server::pgwire::BackendSecret secret;
    secret.password = password;
    server::pgwire::BackendLogin login(
        {server::pgwire::kProtocol3, {{"user", role}, {"database", "postgres"}}}, secret, true,
        "nonce" + from);
    client.Send(login.Begin());
    using State = server::pgwire::BackendLogin::State;
    while (login.state() == State::kUnderWay) {
      const std::string said = client.ReadSome();
      if (said.empty()) {
        return "closed without a word";
      }
      const Result<std::string> answer = login.FromServer(said);
      if (!answer.ok()) {
        return answer.status().ToString();
      }
      client.Send(login.state() == State::kProving ? login.Prove().value() : *answer);
    }
    if (login.state() == State::kReady) {
      return "in";
    }
    const Status refusal = server::pgwire::ReadError(
        std::string_view(login.refusal()).substr(server::pgwire::kHeaderBytes));
    std::string message = fmt::format("{} {}", refusal.sqlstate(), refusal.message());
    const size_t name = message.find(role);
    return name == std::string::npos ? message : message.replace(name, role.size(), "ROLE");
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

INSTANTIATE_TEST_SUITE_P(All, PasswordGuesses, ::testing::Values("password", "scram"),
                         [](const auto& login) { return std::string(login.param); });

}  // namespace
}  // namespace sluice
