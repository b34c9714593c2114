// A gateway as docs/sluice.service runs it, as far as that needs no systemd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/server/sluice_process.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// In a mount namespace of its own: nothing of the system can be written but the state directory,
// homes are empty, /tmp is private. Then as nobody, without capabilities and new privileges.
constexpr char kAsTheUnit[] = R"sh(
exec unshare -m sh -c '
  mount --make-rprivate / &&
  mount -t tmpfs none /mnt && mkdir /mnt/state && mount --bind "$0" /mnt/state || exit
  findmnt -rno TARGET | while read -r each; do
    [ "$each" = /mnt/state ] || mount -o remount,bind,ro "$each" 2>/dev/null
  done
  for each in /tmp /home /root; do mount -t tmpfs none "$each" || exit; done
  chmod 1777 /tmp
  cd /
  exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all \
    --inh-caps=-all env -i HOME=/mnt/state TMPDIR=/mnt/state \
    /mnt/state/sluice serve --grpc 127.0.0.1:0 --source sqlite:/mnt/state/my.db
' )sh";

std::string StatusOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(HardenedGateway, TrainsOnProcesses) {
  if (geteuid() != 0 || RunInShell("unshare -m true 2>/dev/null").exit_code != 0) {
    GTEST_SKIP() << "needs root, and the right to make namespaces";
  }
  std::string folder = ::testing::TempDir() + "/sluice-hardened-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  fs::copy_file(SLUICE_BINARY, folder + "/sluice");
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  {
    BackgroundProcess gateway(kAsTheUnit + folder);
    const std::string line = gateway.ReadLine();
    ASSERT_THAT(line, ::testing::StartsWith("gRPC on "));
    const std::string status = StatusOf(gateway.pid());
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
    EXPECT_THAT(status, HasSubstr("CapBnd:\t0000000000000000"));
    std::ofstream(folder + "/job.sql")
        << "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
           "i < 2000) SELECT i % 7 AS a, i % 2 AS y FROM n;\n"
           "SELECT * FROM t TO TRAIN DNNClassifier WITH engine.num_workers=2, engine.num_ps=1, "
           "train.epoch=2 LABEL y INTO m;\n"
           "SELECT * FROM t TO PREDICT p.y USING m;\nSELECT count(*) AS n FROM p;\n";
    const ShellOutcome done = RunInShell(SLUICE_BINARY " sql --format csv --gateway ann@" +
                                         line.substr(8) + " -f " + folder + "/job.sql 2>&1");
    EXPECT_EQ(done.exit_code, 0) << done.output;
    EXPECT_THAT(done.output, HasSubstr("2000"));
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sluice
