// In which databases of its server a gateway keeps models and jobs, and so connections.
#include "tests/security/doors.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Databases : public Doors {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Doors::SetUp());
    if (!IsSkipped()) {
      ASSERT_EQ(Direct("CREATE DATABASE " + other_ + " TEMPLATE template0").exit_code, 0);
    }
  }
  void TearDown() override {
    if (!IsSkipped()) {
      gateway_.reset();
      EXPECT_EQ(Direct(fmt::format("DROP DATABASE {} WITH (FORCE)", other_)).exit_code, 0);
    }
    Doors::TearDown();
  }
  std::string In(const std::string& database, const std::string& script) const {
    return RunInShell(
               fmt::format("PGPASSWORD=secret psql -XAt -v VERBOSITY=verbose 'host=127.0.0.1 "
                           "port={} user={} dbname={}' 2>&1 <<'END'\n{}\nEND",
                           port_, kBob, database, script))
        .output;
  }
  std::string GatewaysSessionsIn(const std::string& database) const {
    return Direct(
               fmt::format("SELECT count(*) FROM pg_stat_activity WHERE datname = '{}'", database))
        .output;
  }
  static constexpr const char* kTraining =
      "SELECT i AS x, i % 2 AS y FROM generate_series(1, 100) i TO TRAIN LinearClassifier WITH"
      " train.epoch=1 LABEL y INTO m;";
  const std::string other_ = fmt::format("sluice_other_{}", getpid());
};

// A call over gRPC is in the source's own database.
INSTANTIATE_TEST_SUITE_P(At, Databases, ::testing::Values(Door::kPostgres), NameOf);

TEST_P(Databases, AreAllThatAreNoTemplatesUnlessNamed) {
  EXPECT_THAT(In(other_, kTraining), HasSubstr("LinearClassifier"));
  EXPECT_THAT(In("template1", "SHOW MODELS;\nSELECT 'plain';"),
              AllOf(HasSubstr("is a template for others"), HasSubstr("plain")));
  // Which needs template1 without any session.
  const ShellOutcome made = Direct("CREATE DATABASE " + other_ + "_too");
  EXPECT_EQ(made.exit_code, 0) << made.output;
  Direct("DROP DATABASE " + other_ + "_too");
}

TEST_P(Databases, AreThoseThatTheOperatorHasNamed) {
  Start("--auth password --databases elsewhere");
  EXPECT_THAT(
      In(other_, std::string("SHOW MODELS;\nSHOW JOBS;\nSELECT 'plain';\n") + kTraining),
      AllOf(HasSubstr("42501"),
            HasSubstr("keeps no models and jobs in database \"" + other_ + "\""),
            HasSubstr("--databases"), HasSubstr("plain"), Not(HasSubstr("LinearClassifier"))));
  EXPECT_EQ(GatewaysSessionsIn(other_), "0\n");
  EXPECT_THAT(In(Name(), kTraining), HasSubstr("LinearClassifier"));
  EXPECT_THAT(As(kBob, "SHOW MODELS;\n"), HasSubstr("LinearClassifier"));
  Start("--auth password --databases elsewhere," + other_);
  EXPECT_THAT(In(other_, kTraining), HasSubstr("LinearClassifier"));
}

TEST_P(Databases, OfASqliteFileAreOne) {
  EXPECT_THAT(RunInShell(fmt::format("{} serve --source sqlite:{}/x.db --grpc 127.0.0.1:0"
                                     " --databases a 2>&1",
                                     SLUICE_BINARY, home_))
                  .output,
              HasSubstr("a SQLite file is one database"));
}

}  // namespace
}  // namespace sluice
