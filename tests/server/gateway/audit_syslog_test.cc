// --audit syslog, with a socket of the test in the place of the machine's /dev/log.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "tests/server/sluice_process.h"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A socket at which the processes of its folder's namespace leave their messages.
class LogSocket {
 public:
  explicit LogSocket(const std::string& path) : socket_(socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address),  // NOLINT: bind's type
                   sizeof(address)),
              0);
  }
  ~LogSocket() { close(socket_); }
  LogSocket(const LogSocket&) = delete;
  LogSocket& operator=(const LogSocket&) = delete;

  // The next one; "": none came within half a minute.
  std::string Next() const {
    pollfd ready{socket_, POLLIN, 0};
    if (poll(&ready, 1, 30'000) != 1) {
      return "";
    }
    std::array<char, 65536> bytes{};
    const ssize_t got = recv(socket_, bytes.data(), bytes.size(), 0);
    return got > 0 ? std::string(bytes.data(), static_cast<size_t>(got)) : "";
  }

 private:
  const int socket_;
};

TEST(AuditSyslog, HasALineOfEachStatementWithFacilityAuthpriv) {
  if (geteuid() != 0 || RunInShell("unshare -m true 2>/dev/null").exit_code != 0) {
    GTEST_SKIP() << "needs root, and the right to make namespaces";
  }
  std::string folder = (fs::temp_directory_path() / "sluice-syslog-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const LogSocket log(folder + "/log");
  {
    BackgroundProcess gateway(fmt::format(
        "exec unshare -m sh -c 'mount --make-rprivate / && mount -t tmpfs none /mnt &&"
        " cp -a /dev/null /dev/zero /dev/random /dev/urandom /mnt && ln -s {0}/log /mnt/log &&"
        " mount --move /mnt /dev && HOME={0} exec {1} serve --grpc 127.0.0.1:0 --source"
        " sqlite:{0}/my.db --audit syslog'",
        folder, SLUICE_BINARY));
    const std::string greeting = gateway.ReadLine();
    ASSERT_THAT(greeting, ::testing::StartsWith("gRPC on "));
    const ShellOutcome asked =
        RunInShell(fmt::format("HOME={} {} sql --gateway {} -c \"SELECT 'a secret' AS x\" 2>&1",
                               folder, SLUICE_BINARY, greeting.substr(greeting.rfind(' ') + 1)));
    EXPECT_EQ(asked.exit_code, 0) << asked.output;
    std::string heard = log.Next();
    std::string all;
    while (!heard.empty() && heard.find("SELECT '...' AS x") == std::string::npos) {
      all += heard + "\n";
      heard = log.Next();
    }
    EXPECT_THAT(heard, HasSubstr("SELECT '...' AS x")) << all;
    constexpr int kInformational = 6, kAuthpriv = 10 << 3;
    EXPECT_THAT(heard, ::testing::StartsWith(fmt::format("<{}>", kAuthpriv | kInformational)));
    EXPECT_THAT(heard, HasSubstr("sluice"));
    EXPECT_EQ((all + heard).find("a secret"), std::string::npos) << all << heard;
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sluice::server
