#include <gmock/gmock.h>

#include "tests/security/doors.h"

// Models and jobs belong to the role that a session acts as, like tables, whatever role logged in:
// a pool of connections logs in as one role, and says SET ROLE for each of its users.
namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTrain = "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO ";

class ActingRole : public Doors {
 protected:
  void SetUp() override {
    Doors::SetUp();
    if (IsSkipped()) {
      return;
    }
    ASSERT_NO_FATAL_FAILURE(MakeRole("doors_tenant"));
    ASSERT_NO_FATAL_FAILURE(MakeRole("doors_pool"));
    ASSERT_EQ(Direct("GRANT doors_ann, doors_bob, doors_tenant TO doors_pool").exit_code, 0);
    const std::string trained = As(kAnn, std::string(kTrain) + "hers;\n");
    ASSERT_THAT(trained, HasSubstr("hers"));
  }
  std::string OwnerOf(const std::string& model) const {
    return Direct("SELECT owner FROM sluice.models WHERE name = '" + model + "'").output;
  }
};

TEST_P(ActingRole, DecidesWhatIsSeenAndDropped) {
  const std::string as_bob = "SET ROLE doors_bob;\n";
  for (const char* const statement :
       {"DROP MODEL hers;\n", "DESCRIBE MODEL hers;\n", "SHOW TRAIN hers;\n",
        "ALTER MODEL hers RENAME TO his;\n", "GRANT USAGE ON MODEL hers TO PUBLIC;\n",
        "SELECT x FROM points TO PREDICT y USING hers;\n",
        "SELECT x, y FROM points TO EVALUATE hers;\n",
        "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y USING hers INTO his;\n"}) {
    EXPECT_THAT(As("doors_pool", as_bob + statement), HasSubstr("there is no model 'hers'"))
        << statement;
    EXPECT_THAT(As("doors_pool", "SET SESSION ROLE doors_bob;\n" + std::string(statement)),
                HasSubstr("there is no model 'hers'"))
        << statement;
  }
  EXPECT_THAT(As("doors_pool", as_bob + "SHOW MODELS;\n"), Not(HasSubstr("hers")));
  EXPECT_THAT(As("doors_pool", as_bob + kTrain + "hers;\n"), HasSubstr("must be owner of model"));
  EXPECT_THAT(As("doors_pool", as_bob + "RESET ROLE;\nSHOW MODELS;\n"), HasSubstr("hers"));
  EXPECT_THAT(As("doors_pool", "SET ROLE doors_ann;\nSHOW MODELS;\n"), HasSubstr("hers"));
  const std::string locally = "BEGIN;\nSET LOCAL ROLE doors_bob;\n";
  EXPECT_THAT(
      As("doors_pool", locally + "SHOW MODELS;\nROLLBACK;\nDROP MODEL IF EXISTS nothing;\n"),
      AllOf(HasSubstr("ROLLBACK"), Not(HasSubstr("hers"))));
  EXPECT_THAT(As("doors_pool", locally + "COMMIT;\nSHOW MODELS;\n"), HasSubstr("hers"));
  EXPECT_EQ(OwnerOf("hers"), "doors_ann\n");
}

TEST_P(ActingRole, OwnsWhatIsTrained) {
  EXPECT_THAT(As("doors_pool", std::string("SET ROLE doors_tenant;\n") + kTrain + "theirs;\n"),
              HasSubstr("theirs"));
  EXPECT_EQ(OwnerOf("theirs"), "doors_tenant\n");
  EXPECT_EQ(Direct("SELECT owner, owner_name FROM sluice.jobs WHERE model = 'theirs'").output,
            "doors_tenant|doors_tenant\n");
  // A job in a process of its own.
  EXPECT_THAT(As("doors_pool", std::string("SET ROLE doors_tenant;\nSET sluice.async = on;\n") +
                                   kTrain + "later;\n"),
              HasSubstr("WAIT JOB"));
  EXPECT_TRUE(Becomes("SELECT owner FROM sluice.models WHERE name = 'later'", "doors_tenant"));
}

TEST_P(ActingRole, DecidesWhichJobsAreSeenAndCancelled) {
  const std::string as_bob = "SET ROLE doors_bob;\n";
  const std::string job = Direct("SELECT min(id) FROM sluice.jobs").output;
  const std::string number = job.substr(0, job.find('\n'));
  EXPECT_THAT(As("doors_pool", as_bob + "SHOW JOBS;\n"), Not(HasSubstr("hers")));
  EXPECT_THAT(As("doors_pool", "SHOW JOBS;\n"), HasSubstr("hers"));
  for (const char* const verb : {"SHOW JOB ", "CANCEL JOB ", "WAIT JOB ", "DROP JOB "}) {
    EXPECT_THAT(As("doors_pool", as_bob + verb + number + ";\n"), HasSubstr("no job")) << verb;
  }
}

TEST_P(ActingRole, IsTheOneThatARoleBeginsWith) {
  ASSERT_EQ(Direct("ALTER ROLE doors_pool SET role = doors_bob").exit_code, 0);
  EXPECT_THAT(As("doors_pool", "DROP MODEL hers;\n"), HasSubstr("there is no model 'hers'"));
  EXPECT_THAT(As("doors_pool", "SHOW MODELS;\n"), Not(HasSubstr("hers")));
  EXPECT_THAT(As("doors_pool", std::string(kTrain) + "his;\n"), HasSubstr("his"));
  EXPECT_EQ(OwnerOf("his"), "doors_bob\n");
  // Back to the login's own, also where rows are read.
  ASSERT_EQ(
      Direct("CREATE TABLE hers AS SELECT 1.0 * i AS x, i % 2 AS y FROM generate_series(1, 50)"
             " AS i; ALTER TABLE hers OWNER TO doors_pool")
          .exit_code,
      0);
  EXPECT_THAT(As("doors_pool",
                 "SET ROLE NONE;\nSELECT x, y FROM hers TO TRAIN LinearClassifier"
                 " LABEL y INTO pooled;\n"),
              HasSubstr("pooled"));
  EXPECT_EQ(OwnerOf("pooled"), "doors_pool\n");
}

TEST_P(ActingRole, IsTheOneOfSessionAuthorization) {
  const std::string to_bob = "SET SESSION AUTHORIZATION doors_bob;\n";
  EXPECT_THAT(As(kRoot, to_bob + "DROP MODEL hers;\n"), HasSubstr("there is no model 'hers'"));
  EXPECT_THAT(As(kRoot, to_bob + kTrain + "his;\n"), HasSubstr("his"));
  EXPECT_EQ(OwnerOf("his"), "doors_bob\n");
  EXPECT_THAT(As(kRoot, to_bob + "RESET SESSION AUTHORIZATION;\nDROP MODEL hers;\n"),
              HasSubstr("DROP MODEL"));
}

INSTANTIATE_TEST_SUITE_P(At, ActingRole,
                         ::testing::Values(Door::kPostgres, Door::kGrpc, Door::kShell), NameOf);

}  // namespace
}  // namespace sluice
