#include "executor/pods/database_reach.h"

#include <gtest/gtest.h>

namespace sluice::executor {
namespace {

TEST(DatabaseReach, AHostThatPodsKnowIsReachable) {
  for (const char* url : {"postgresql://db.example:5432/sales", "postgres://me@10.0.0.7/sales",
                          "postgresql://me:secret@[fd00::7]:5432/sales"}) {
    EXPECT_TRUE(CheckReachableFromPods(url).ok()) << url;
  }
}

TEST(DatabaseReach, AFileIsNot) {
  const Status status = CheckReachableFromPods("sqlite:/data/sales.db");
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_NE(status.message().find("SQLite file"), std::string::npos);
}

TEST(DatabaseReach, ThisMachineIsAnotherOneInAPod) {
  for (const char* url : {"postgresql:///sales", "postgresql://localhost/sales",
                          "postgresql://me@127.0.0.1:5432/sales", "postgres://me@[::1]:5432/sales",
                          "postgresql://me@%2Frun%2Fpostgresql/sales"}) {
    const Status status = CheckReachableFromPods(url);
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << url;
    EXPECT_FALSE(status.diagnostics().front().hint.empty()) << url;
  }
}

}  // namespace
}  // namespace sluice::executor
