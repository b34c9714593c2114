// With a real server: verifiers that it made, and log-ins that it accepts.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "server/pgwire/password.h"
#include "server/pgwire/scram.h"
#include "tests/server/pgwire/libpq_session.h"
#include "tests/support/postgres_server.h"

namespace sluice::server::pgwire {
namespace {

constexpr const char* kRightPassword = "right one";  // the same that other tests give to this role

class ScramPostgres : public ::testing::Test {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL server";
    }
    session_ = std::make_unique<LibpqSession>(database_.url());
  }

  // The verifier that the server makes of a password.
  std::string VerifierOf(const std::string& password) {
    const std::string role = fmt::format("scram_{}", getpid());
    std::string quoted;
    for (const char c : password) {
      quoted += c == '\'' ? "''" : std::string(1, c);
    }
    Do(fmt::format("CREATE ROLE {} PASSWORD '{}'", role, quoted));
    const auto answer = session_->Ask(
        fmt::format("SELECT rolpassword FROM pg_authid WHERE rolname = '{}'", role), 0);
    Do("DROP ROLE " + role);
    return answer.rows.at(0).at(0).value_or("");
  }
  void Do(const std::string& sql) {
    EXPECT_EQ(session_->Ask(sql, 0).error, "") << session_->last_error();
  }

  testing::PostgresTestDatabase database_;
  std::unique_ptr<LibpqSession> session_;
};

TEST_F(ScramPostgres, PasswordsArePreparedAsTheServerDoes) {
  for (const char* password :
       {"pencil", "it's \\ $1", "Grüße", "a\u00A0b", "pass\u00ADword", "пароль", "パスワード",
        "סיסמה", "emoji 😀\u00A0", "\u00AD", "“x” – €", "ü\x01\u00A0", "ab\u200Bü"}) {
    const auto verifier = ParseScramVerifier(VerifierOf(password));
    ASSERT_TRUE(verifier.ok()) << verifier.status().ToString();
    ScramClient client(password, std::nullopt, "client");
    ScramServer server(*verifier, std::nullopt, "server");
    const auto first = client.First({std::string(kScramSha256)});
    const auto asked = server.First(first->mechanism, first->message);
    ASSERT_TRUE(asked.ok());
    const auto proof = client.Final(*asked);
    ASSERT_TRUE(proof.ok()) << password << proof.status().ToString();
    const auto last = server.Final(*proof);
    ASSERT_TRUE(last.ok()) << password << last.status().ToString();
    EXPECT_TRUE(client.Verify(*last).ok()) << password;
  }
}

// The bytes of a log-in: just enough of a client for it.
class RawClient {
 public:
  explicit RawClient(const std::string& url) {
    const size_t host = url.find('@') + 1;
    const size_t port = url.find(':', host) + 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(url.substr(port))));
    inet_pton(AF_INET, url.substr(host, port - 1 - host).c_str(), &address.sin_addr);
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    const timeval patience{10, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawClient() { close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void SendStartup(const std::string& role) {
    std::string body = {0, 3, 0, 0};
    for (const std::string& text : {std::string("user"), role, std::string("database"),
                                    std::string("postgres"), std::string()}) {
      body += text + '\0';
    }
    Send(Number(body.size() + 4) + body);
  }
  void SendPassword(const std::string& body) { Send('p' + Number(body.size() + 4) + body); }

  static std::string Number(size_t number) {
    const uint32_t network = htonl(static_cast<uint32_t>(number));
    return {reinterpret_cast<const char*>(&network), sizeof(network)};
  }

  // An authentication request: its number and the rest; for an error, -1 and its SQLSTATE.
  std::pair<int, std::string> Receive() {
    const std::string head = Take(5);
    uint32_t size = 0;
    std::copy_n(head.data() + 1, sizeof(size), reinterpret_cast<char*>(&size));
    std::string body = Take(ntohl(size) - 4);
    if (head[0] != 'R') {
      const size_t code = body.find(std::string("\0C", 2));
      return {-1, head[0] == 'E' && code != std::string::npos ? body.substr(code + 2, 5) : head};
    }
    return {body[3], body.substr(4)};
  }

 private:
  void Send(const std::string& bytes) {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string Take(size_t size) {
    std::string bytes(size, '\0');
    EXPECT_EQ(recv(socket_, bytes.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return bytes;
  }
  int socket_ = -1;
};

// "" if the server says Ok and has proved itself; else its SQLSTATE.
std::string LogIn(const std::string& url, ScramClient& client) {
  RawClient raw(url);
  raw.SendStartup(testing::kPasswordRole);
  auto [number, body] = raw.Receive();
  if (number == 0) {
    return "trusted";
  }
  EXPECT_EQ(number, 10);
  std::vector<std::string> offered;
  for (size_t at = 0; body[at] != '\0'; at += offered.back().size() + 1) {
    offered.emplace_back(body.c_str() + at);
  }
  const auto first = client.First(offered);
  EXPECT_TRUE(first.ok()) << first.status().ToString();
  raw.SendPassword(first->mechanism + '\0' + RawClient::Number(first->message.size()) +
                   first->message);
  std::tie(number, body) = raw.Receive();
  EXPECT_EQ(number, 11);
  const auto proof = client.Final(body);
  EXPECT_TRUE(proof.ok()) << proof.status().ToString();
  raw.SendPassword(*proof);
  std::tie(number, body) = raw.Receive();
  if (number == -1) {
    return body;
  }
  EXPECT_EQ(number, 12);
  const Status verified = client.Verify(body);
  EXPECT_TRUE(verified.ok()) << verified.ToString();
  std::tie(number, body) = raw.Receive();
  return number == 0 ? "" : "no Ok";
}

TEST_F(ScramPostgres, TheServerLetsUsInByPasswordAndByClientKey) {
  Do("DO $$ BEGIN CREATE ROLE needs_password LOGIN; EXCEPTION WHEN duplicate_object THEN NULL;"
     " END $$");
  Do(fmt::format("ALTER ROLE needs_password PASSWORD '{}'", kRightPassword));
  ScramClient right(kRightPassword, std::nullopt, "nonce.of.a.client");
  const std::string outcome = LogIn(database_.url(), right);
  if (outcome == "trusted") {
    GTEST_SKIP() << "this server trusts everybody";
  }
  EXPECT_EQ(outcome, "");
  ScramClient wrong("wrong one", std::nullopt, "nonce");
  EXPECT_EQ(LogIn(database_.url(), wrong), "28P01");

  const auto stored =
      session_->Ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'needs_password'", 0);
  const auto verifier = ParseScramVerifier(stored.rows.at(0).at(0).value_or(""));
  ASSERT_TRUE(verifier.ok()) << verifier.status().ToString();
  // What a gateway knows after a client has proved itself to it.
  ScramClient outside(kRightPassword, std::nullopt, "client");
  ScramServer gateway(*verifier, std::nullopt, "gateway");
  const auto first = outside.First({std::string(kScramSha256)});
  const auto asked = gateway.First(first->mechanism, first->message);
  ASSERT_TRUE(gateway.Final(outside.Final(*asked).value()).ok());
  ScramClient inside(ScramKeys{gateway.client_key(), verifier->server_key}, std::nullopt, "inside");
  EXPECT_EQ(LogIn(database_.url(), inside), "");
}

}  // namespace
}  // namespace sluice::server::pgwire
