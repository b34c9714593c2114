#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/server/pgwire/sqlite_door_fixture.h"

namespace sluice {
namespace {

// Clock ticks that the threads of this name have used, or those of all other names.
int64_t TicksOf(int process, const std::string& name, bool others) {
  int64_t ticks = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process))) {
    std::stringstream text;
    text << std::ifstream(thread.path() / "stat").rdbuf();
    const std::string stat = text.str();
    const size_t open = stat.find('('), close = stat.rfind(')');
    if (close == std::string::npos || (stat.substr(open + 1, close - open - 1) == name) == others) {
      continue;
    }
    std::istringstream fields(stat.substr(close + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) {
      fields >> skipped;
    }
    int64_t user = 0, system = 0;
    fields >> user >> system;
    ticks += user + system;
  }
  return ticks;
}

// Anybody may ask for handshakes of TLS, each of which costs as much as hundreds of messages: the
// thread that passes on everybody's messages does none.
TEST_F(SqliteDoorTest, HandshakesAreNoWorkOfTheDoorsOwnThread) {
  ASSERT_EQ(RunInShell(fmt::format("openssl req -x509 -newkey rsa:4096 -nodes -subj /CN=a -days 2 "
                                   "-keyout {0}/key.pem -out {0}/cert.pem 2>&1",
                                   home_))
                .exit_code,
            0);
  Start(fmt::format("--pg 127.0.0.1:0 --tls-cert {0}/cert.pem --tls-key {0}/key.pem", home_));
  const int process = gateway_->pid();
  const int64_t logins = TicksOf(process, "logins", false);
  const int64_t others = TicksOf(process, "logins", true);
  const ShellOutcome shaken = RunInShell(fmt::format(
      "timeout 120 /usr/bin/python3 {}/tests/server/pgwire/clients/many_handshakes.py {} 2>&1",
      SLUICE_SOURCE_DIR, port_));
  ASSERT_EQ(shaken.output, "ok\n");
  EXPECT_GT(TicksOf(process, "logins", false) - logins,
            2 * (TicksOf(process, "logins", true) - others));
  // The message that comes with the last one of a handshake is read, too.
  EXPECT_EQ(
      RunInShell(fmt::format("psql -XAtq '{} sslmode=require' -c 'SELECT 1' 2>&1", Conninfo()))
          .output,
      "1\n");
}

// A client of TLS 1.3 that has not logged in, and never says anything but that its keys change.
class KeyChanger {
 public:
  explicit KeyChanger(int port) : context_(SSL_CTX_new(TLS_client_method())) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    constexpr char kAsksForTls[] = {0, 0, 0, 8, 4, '\xd2', '\x16', '\x2f'};
    char answer = 0;
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, socket_);
    works_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
             send(socket_, kAsksForTls, sizeof(kAsksForTls), MSG_NOSIGNAL) == 8 &&
             recv(socket_, &answer, 1, 0) == 1 && answer == 'S' && SSL_connect(ssl_) == 1;
  }
  ~KeyChanger() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    close(socket_);
  }
  KeyChanger(const KeyChanger&) = delete;
  KeyChanger& operator=(const KeyChanger&) = delete;

  bool works() const { return works_; }
  bool ChangesKeys() {
    return SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl_) == 1;
  }

 private:
  SSL_CTX* const context_;
  SSL* ssl_ = nullptr;
  int socket_ = -1;
  bool works_ = false;
};

TEST_F(SqliteDoorTest, RecordsThatSayNothingEndTheConnection) {
  signal(SIGPIPE, SIG_IGN);
  Start();
  KeyChanger client(std::stoi(port_));
  ASSERT_TRUE(client.works());
  constexpr int kMany = 200'000;  // two seconds' worth
  int changes = 0;
  while (changes < kMany && client.ChangesKeys()) {
    ++changes;
  }
  EXPECT_LT(changes, kMany);
  EXPECT_EQ(
      RunInShell(fmt::format("psql -XAtq '{} sslmode=require' -c 'SELECT 1' 2>&1", Conninfo()))
          .output,
      "1\n");
}

}  // namespace
}  // namespace sluice
