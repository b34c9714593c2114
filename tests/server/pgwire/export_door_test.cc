#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/server/pgwire/door_fixture.h"
#include "tests/server/pgwire/sqlite_door_fixture.h"

// EXPORT MODEL and IMPORT MODEL of psql, over either database.
namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTrain =
    "SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=2 LABEL y INTO "
    "m;\n";
constexpr const char* kExport = "EXPORT MODEL m TO 'm.sluice';\n";
constexpr const char* kImport = "IMPORT MODEL FROM 'm.sluice' INTO n;\n";

TEST_F(SqliteDoorTest, FilesOfModelsAreInTheGatewaysFolder) {
  Start();
  EXPECT_THAT(Psql(std::string(kTrain) + kExport).output,
              HasSubstr("42501: this gateway has no folder for files of models"));
  gateway_.reset();
  Start("--pg 127.0.0.1:0 --export-root " + home_ + "/exports");
  const std::string answer = Psql(std::string(kExport) + kImport, "-At").output;
  EXPECT_THAT(answer, HasSubstr("m|1|xgboost.gbtree|m.sluice|"));
  EXPECT_THAT(answer, HasSubstr("n|1|"));
  struct stat found = {};
  ASSERT_EQ(stat((home_ + "/exports/m.sluice").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  EXPECT_THAT(Psql("EXPORT MODEL m TO '/tmp/m.sluice';\n").output, HasSubstr("42501: "));
}

TEST_F(DoorTest, FilesOfModelsAreInTheGatewaysFolder) {
  Start("--auth trust --export-root " + home_ + "/exports");
  const std::string answer =
      Psql(std::string(kTrain) + kExport + "BEGIN;\n" + kImport + "ROLLBACK;\n", "-At").output;
  EXPECT_THAT(answer, HasSubstr("m|1|xgboost.gbtree|m.sluice|"));
  EXPECT_THAT(answer,
              HasSubstr("IMPORT MODEL takes effect at once, and ROLLBACK does not undo it"));
  EXPECT_THAT(answer, HasSubstr("n|1|"));
  EXPECT_EQ(Direct("SELECT count(*) FROM sluice.models").output, "2\n");
  EXPECT_THAT(Psql("IMPORT MODEL FROM '../m.sluice';\n").output, HasSubstr("42501: "));
}

}  // namespace
}  // namespace sluice
