#include "executor/contest/contest_record.h"

#include <gtest/gtest.h>

#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

TEST(ContestRecord, AReasonThatAllCandidatesShareKeepsItsCodeAndItsHint) {
  plan::Contest contest;
  std::vector<Trial> trials(3);
  for (Trial& trial : trials) {
    contest.add_candidates()->set_name("xgboost.gbtree");
    trial.tried = true;
    trial.status = FailedPrecondition("a library is missing").SqlState("58P01").Hint("install it");
  }
  const Status shared = NoCandidateWon(contest, trials);
  EXPECT_EQ(shared.sqlstate(), "58P01");
  EXPECT_EQ(shared.message(), "none of the 3 candidates could be trained: a library is missing");
  EXPECT_EQ(shared.diagnostics().front().hint, "install it");
  trials[1].status = InvalidArgument("it diverged");
  const Status several = NoCandidateWon(contest, trials);
  EXPECT_EQ(several.sqlstate(), "22023");
  EXPECT_EQ(several.message(), "none of the 3 candidates could be trained");
}

}  // namespace
}  // namespace sluice::executor
