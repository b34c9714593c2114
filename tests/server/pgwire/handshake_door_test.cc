#include <fmt/core.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
