#include "executor/contest/database_patience.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "catalog/sql/sqlstate.h"

namespace sluice::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DatabasePatienceTest : public ::testing::Test {
 protected:
  DatabasePatience Make(double seconds) {
    return DatabasePatience(seconds, stop_.get_token(),
                            [this](const std::string& why) { told_.push_back(why); });
  }

  std::stop_source stop_;
  std::vector<std::string> told_;
};

TEST(IsTheDatabases, KnowsWhatIsNotACandidatesFault) {
  for (const char* state :
       {"08006", "57P01", "57P02", "57P03", "53300", "55P03", "40001", "57014", "58030", "72000"}) {
    EXPECT_TRUE(IsTheDatabases(catalog::DatabaseError(state, "x"))) << state;
  }
  for (const char* state : {"22012", "22023", "53200", "53000", "42703", "XX000"}) {
    EXPECT_FALSE(IsTheDatabases(catalog::DatabaseError(state, "x"))) << state;
  }
  EXPECT_FALSE(IsTheDatabases(OkStatus()));
}

TEST_F(DatabasePatienceTest, RepeatsWhatTheDatabaseInterruptedAndTellsItOnce) {
  DatabasePatience patience = Make(60);
  int times = 0;
  patience.Do(
      [&] { return ++times < 3 ? catalog::DatabaseError("57P01", "terminated") : OkStatus(); });
  EXPECT_EQ(times, 3);
  EXPECT_FALSE(patience.ended());
  EXPECT_THAT(told_, ElementsAre(HasSubstr("terminated")));
}

TEST_F(DatabasePatienceTest, ACandidatesOwnErrorIsNotRepeated) {
  DatabasePatience patience = Make(60);
  int times = 0;
  patience.Do([&] {
    ++times;
    return InvalidArgument("its metric is no number");
  });
  EXPECT_EQ(times, 1);
  EXPECT_FALSE(patience.ended());
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(DatabasePatienceTest, ADatabaseThatStaysAwayEndsEverythingWithItsError) {
  DatabasePatience patience = Make(0);
  const auto fails = [] { return catalog::DatabaseError("08006", "cannot connect"); };
  patience.Do(fails);
  EXPECT_TRUE(patience.ended());
  EXPECT_EQ(patience.error().sqlstate(), "08006");
  EXPECT_THAT(patience.error().ToString(), HasSubstr("cannot connect"));
}

TEST_F(DatabasePatienceTest, ALostSnapshotEndsEverythingAtOnce) {
  DatabasePatience patience = Make(60);
  patience.Do([] { return catalog::DatabaseError("72000", "the snapshot is gone"); });
  EXPECT_EQ(patience.error().sqlstate(), "72000");
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(DatabasePatienceTest, WhatWasStoppedIsNotRepeated) {
  DatabasePatience patience = Make(60);
  int times = 0;
  patience.Do([&] {
    ++times;
    stop_.request_stop();
    return Cancelled("stopped");
  });
  EXPECT_EQ(times, 1);
  EXPECT_FALSE(patience.ended());
}

}  // namespace
}  // namespace sluice::executor
