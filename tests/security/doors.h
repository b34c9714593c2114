#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "tests/server/pgwire/door_fixture.h"

namespace sluice {

// Where clients come in.
enum class Door : int { kPostgres, kGrpc, kShell };

// A gateway process over a new PostgreSQL database, with two roles and a superuser, and the same
// scripts at each door.
class Doors : public DoorTest, public ::testing::WithParamInterface<Door> {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    Direct(fmt::format("CREATE ROLE {} LOGIN", testing::kPasswordRole));  // it may exist
    ASSERT_NO_FATAL_FAILURE(MakeRole(kAnn));
    ASSERT_NO_FATAL_FAILURE(MakeRole(kBob));
    ASSERT_NO_FATAL_FAILURE(MakeRole(kRoot, "SUPERUSER"));
    Start("--auth password");
    if (As(kAnn, "SELECT 'let in' AS answer;\n").find("let in") == std::string::npos) {
      GTEST_SKIP() << "the server's pg_hba.conf does not ask members of " << testing::kPasswordRole;
    }
    if (GetParam() == Door::kShell) {  // whose login reads and writes the catalog itself
      As(kRoot,
         "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO makes_the_tables;\n"
         "DROP MODEL makes_the_tables;\n");
      ASSERT_EQ(
          Direct(fmt::format("GRANT USAGE, CREATE ON SCHEMA sluice TO PUBLIC; GRANT SELECT, INSERT,"
                             " UPDATE, DELETE ON ALL TABLES IN SCHEMA sluice TO PUBLIC;"
                             " GRANT USAGE, CREATE ON SCHEMA sluice_stage TO {}, {}",
                             kAnn, kBob))
              .exit_code,
          0);
    }
  }
  void TearDown() override {
    gateway_.reset();
    for (const std::string& role : roles_) {
      DropRole(role);
    }
    DoorTest::TearDown();
  }

  // A role that logs in with a password, and may read the points. Dropped at the end.
  void MakeRole(const std::string& role, const std::string& options = "") {
    ASSERT_EQ(
        Direct(fmt::format("CREATE ROLE {0} LOGIN PASSWORD 'secret' IN ROLE {1} {2};"
                           " GRANT ALL ON points TO {0}; GRANT CREATE ON SCHEMA public TO {0}",
                           role, testing::kPasswordRole, options))
            .exit_code,
        0);
    roles_.insert(roles_.begin(), role);
  }

  // The rows and errors of a script, as that role.
  std::string As(const std::string& role, const std::string& script) const {
    if (GetParam() == Door::kPostgres) {
      return Psql(script, "-At", role).output;
    }
    const size_t host = database_.url().find('@');
    const std::string where =
        GetParam() == Door::kGrpc
            ? fmt::format("--gateway {}@127.0.0.1:{}", role, grpc_port_)
            : fmt::format("--source 'postgresql://{}{}'", role, database_.url().substr(host));
    const std::string file = home_ + "/script.sql";
    FILE* const out = fopen(file.c_str(), "w");
    fputs(script.c_str(), out);
    fclose(out);
    return RunInShell(fmt::format("HOME={} PGPASSWORD=secret {} sql {} --format csv < {} 2>&1",
                                  home_, SLUICE_BINARY, where, file))
        .output;
  }

  static constexpr const char* kAnn = "doors_ann";
  static constexpr const char* kBob = "doors_bob";
  static constexpr const char* kRoot = "doors_root";
  std::vector<std::string> roles_;  // the newest first
};

inline std::string NameOf(const ::testing::TestParamInfo<Door>& door) {
  return door.param == Door::kPostgres ? "PostgreSQL"
         : door.param == Door::kGrpc   ? "Grpc"
                                       : "Shell";
}

}  // namespace sluice
