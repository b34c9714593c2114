// Who may create tables where rows are staged: roles that use Sluice, not everybody.
#include "tests/security/doors.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class Stage : public Doors {
 protected:
  // Its rows are others each time they are read, so that they have to be staged.
  static constexpr const char* kUnsteady =
      "SELECT x, y, random() AS r FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y"
      " INTO {};\n";
  static std::string TrainInto(const std::string& model) {
    return fmt::format(fmt::runtime(kUnsteady), model);
  }
  std::string RightsOfPublic() const {
    return Direct(
               "SELECT count(*) FROM pg_namespace, aclexplode(nspacl) AS a WHERE nspname ="
               " 'sluice_stage' AND a.grantee = 0 AND a.privilege_type = 'CREATE'")
        .output;
  }
  static constexpr const char* kFunction =
      "CREATE FUNCTION sluice_stage.f() RETURNS int LANGUAGE sql AS 'SELECT 1';\n";
};

INSTANTIATE_TEST_SUITE_P(At, Stage, ::testing::Values(Door::kPostgres, Door::kGrpc), NameOf);

TEST_P(Stage, IsForThoseWhoUseIt) {
  EXPECT_THAT(As(kBob, TrainInto("his")), HasSubstr("LinearClassifier"));
  EXPECT_EQ(RightsOfPublic(), "0\n");
  EXPECT_THAT(As(kAnn, kFunction), HasSubstr("permission denied for schema sluice_stage"));
  EXPECT_THAT(As(kAnn, "SHOW MODELS;\n" + std::string(kFunction)),
              HasSubstr("permission denied for schema sluice_stage"));
  EXPECT_THAT(As(kAnn, TrainInto("hers")), HasSubstr("LinearClassifier"));
  EXPECT_EQ(RightsOfPublic(), "0\n");
}

TEST_P(Stage, IsTakenFromEverybody) {
  EXPECT_THAT(As(kBob, TrainInto("his")), HasSubstr("LinearClassifier"));
  ASSERT_EQ(Direct("GRANT USAGE, CREATE ON SCHEMA sluice_stage TO PUBLIC;"
                   " REVOKE ALL ON SCHEMA sluice_stage FROM doors_bob")
                .exit_code,
            0);
  Start("--auth password");
  EXPECT_THAT(As(kAnn, "SHOW MODELS;\n" + std::string(kFunction)),
              HasSubstr("permission denied for schema sluice_stage"));
  EXPECT_EQ(RightsOfPublic(), "0\n");
  EXPECT_THAT(As(kBob, TrainInto("his")), HasSubstr("LinearClassifier"));
}

TEST_P(Stage, IsForTheRoleThatASessionActsAs) {
  if (GetParam() != Door::kPostgres) {
    GTEST_SKIP() << "a call over gRPC has no such session";
  }
  ASSERT_EQ(Direct("GRANT doors_ann TO doors_bob").exit_code, 0);
  EXPECT_THAT(As(kBob, "SET ROLE doors_ann;\n" + TrainInto("hers")), HasSubstr("LinearClassifier"));
}

}  // namespace
}  // namespace sluice
