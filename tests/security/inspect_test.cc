#include <gmock/gmock.h>

#include "tests/security/doors.h"

// USAGE of a model is PREDICT and EVALUATE. How it was made tells of rows that the grantee may not
// read: the vocabularies in its plan, and the literals of its statement.
namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Inspect : public Doors {
 protected:
  void SetUp() override {
    Doors::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    ASSERT_EQ(
        Direct("CREATE TABLE notes AS SELECT i % 45 AS x, i % 2 AS y, 'secret' || i % 3 AS word"
               " FROM generate_series(1, 90) AS i; GRANT ALL ON notes TO doors_ann;"
               " CREATE TABLE open AS SELECT i AS x, i % 2 AS y, 'known' || i % 3 AS word"
               " FROM generate_series(1, 40) AS i; GRANT ALL ON open TO doors_bob;"
               " CREATE TABLE far AS SELECT i + 1000 AS x, 'secret1' AS word"
               " FROM generate_series(1, 40) AS i; GRANT ALL ON far TO doors_bob")
            .exit_code,
        0);
    ASSERT_THAT(As(kAnn,
                   "SELECT x, word, y FROM notes WHERE word <> 'secretly' TO TRAIN LinearClassifier"
                   " LABEL y INTO hers;\n"),
                HasSubstr("LinearClassifier"));
  }

  // Each shows, or hands over, how the model was made.
  static constexpr const char* kInspections[] = {
      "SHOW TRAIN hers;\n", "DESCRIBE MODEL hers;\n",
      "SELECT x, word, y FROM open TO EXPLAIN hers;\n",
      "SELECT x, word FROM open TO EVALUATE hers WITH validation.report='drift';\n",
      "SELECT x, word, y FROM open TO TRAIN LinearClassifier LABEL y USING hers INTO his;\n"};
  static constexpr const char* kPlan =
      "SELECT statement, encode(plan, 'escape') FROM sluice.model_versions;\n"
      "SELECT m.*, v.* FROM sluice.models AS m LEFT JOIN sluice.model_versions AS v ON m.name ="
      " v.name;\n";
};

TEST_P(Inspect, UsageIsToPredictAndToEvaluate) {
  ASSERT_THAT(As(kAnn, "GRANT USAGE ON MODEL hers TO doors_bob;\n"), Not(HasSubstr("ERROR")));
  for (const char* const statement : kInspections) {
    EXPECT_THAT(As(kBob, statement), AllOf(HasSubstr("42501"), Not(HasSubstr("secret"))))
        << statement;
  }
  EXPECT_THAT(As(kBob, kPlan), Not(HasSubstr("secret")));
  EXPECT_THAT(As(kBob, "GRANT INSPECT ON MODEL hers TO doors_bob;\n"), HasSubstr("42501"));
  if (GetParam() == Door::kShell) {  // which would read the plan as the user
    EXPECT_THAT(As(kBob, "SELECT x, word FROM open TO PREDICT y USING hers;\n"),
                HasSubstr("permission denied for the plan and statement of model hers"));
    return;
  }
  EXPECT_THAT(As(kBob, "SHOW MODELS;\n"), AllOf(HasSubstr("hers"), Not(HasSubstr("secret"))));
  EXPECT_THAT(As(kBob, "SHOW MODEL hers;\n"), AllOf(HasSubstr("hers"), Not(HasSubstr("secret"))));
  for (const char* const statement :
       {"SELECT x, word FROM open TO PREDICT y USING hers;\n",
        "SELECT x, word FROM open TO PREDICT seen.y USING hers;\n",
        "SELECT x, word FROM far TO PREDICT y USING hers;\n",
        "SELECT x, word, y FROM open TO EVALUATE hers;\n",
        "EXPLAIN SELECT x, word FROM open TO PREDICT y USING hers;\n"}) {
    EXPECT_THAT(As(kBob, statement), AllOf(Not(HasSubstr("ERROR")), Not(HasSubstr("secret0")),
                                           Not(HasSubstr("unlike the training's"))))
        << statement;
  }
}

TEST_P(Inspect, IsARightOfItsOwn) {
  const auto sees = [&] { return As(kBob, "DESCRIBE MODEL hers;\n"); };
  ASSERT_THAT(As(kAnn, "GRANT INSPECT ON MODEL hers TO doors_bob;\n"), Not(HasSubstr("ERROR")));
  for (const char* const statement : kInspections) {
    EXPECT_THAT(As(kBob, statement), Not(HasSubstr("42501"))) << statement;
  }
  EXPECT_THAT(As(kBob, kPlan), HasSubstr("secret"));
  EXPECT_THAT(As(kBob, "SELECT x, word FROM far TO PREDICT y USING hers;\n"),
              HasSubstr("x is unlike the training's: 100 % outside of 0 to 44"));
  EXPECT_THAT(As(kBob, "DROP MODEL hers;\n"), HasSubstr("must be owner of model hers"));
  ASSERT_THAT(As(kAnn, "REVOKE INSPECT ON MODEL hers FROM doors_bob;\n"), Not(HasSubstr("ERROR")));
  EXPECT_THAT(sees(), HasSubstr("there is no model 'hers'"));
  As(kAnn, "GRANT USAGE, INSPECT ON MODEL hers TO PUBLIC;\n");
  EXPECT_THAT(sees(), HasSubstr("secret"));
  As(kAnn, "REVOKE INSPECT ON MODEL hers FROM PUBLIC;\n");
  EXPECT_THAT(sees(), HasSubstr("permission denied for the plan and statement of model hers"));
  As(kAnn,
     "GRANT ALL ON MODEL hers TO PUBLIC;\nALTER MODEL hers RENAME TO hers2;\n"
     "ALTER MODEL hers2 RENAME TO hers;\n");
  EXPECT_THAT(sees(), HasSubstr("secret"));
  As(kAnn, "REVOKE ALL PRIVILEGES ON MODEL hers FROM PUBLIC;\n");
  EXPECT_THAT(sees(), HasSubstr("there is no model 'hers'"));
}

TEST_P(Inspect, ExportsNeedIt) {
  if (GetParam() == Door::kShell) {
    GTEST_SKIP() << "the shell's user reads the catalog";
  }
  gateway_.reset();
  Start("--auth password --export-root " + home_ + "/exports");
  As(kAnn, "GRANT USAGE ON MODEL hers TO doors_bob;\n");
  EXPECT_THAT(As(kBob, "EXPORT MODEL hers TO 'his.sluice';\n"), HasSubstr("42501"));
  As(kAnn, "GRANT INSPECT ON MODEL hers TO doors_bob;\n");
  EXPECT_THAT(As(kBob, "EXPORT MODEL hers TO 'his.sluice';\n"), Not(HasSubstr("ERROR")));
}

INSTANTIATE_TEST_SUITE_P(At, Inspect, ::testing::Values(Door::kPostgres, Door::kGrpc, Door::kShell),
                         NameOf);

}  // namespace
}  // namespace sluice
