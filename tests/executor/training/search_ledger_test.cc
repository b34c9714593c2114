#include "executor/training/search_ledger.h"

#include <gtest/gtest.h>

#include "tests/executor/sqlite_test.h"

namespace sluice::executor {
namespace {

class SearchLedgerTest : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    catalog::Job job;
    job.kind = "train";
    job_ = catalog_->jobs().Create(job).value();
  }
  SearchLedger Open(const std::string& rows = "rows") {
    return SearchLedger(catalog_->jobs(), job_, rows);
  }

  int64_t job_ = 0;
};

// The next master decides, and reports, as the one that saw the error would.
TEST_F(SearchLedgerTest, AFailureIsReadAsItWas) {
  Trial trial;
  trial.tried = true;
  trial.status = Status(Code::kFailedPrecondition, "row 7 of \xff")
                     .SqlState("22003")
                     .Detail("of column a")
                     .Hint("leave it out");
  trial.seconds = 1.5;
  ASSERT_TRUE(Open().Keep(3, trial, false).ok());
  const auto found = Open().Find(3).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(found->status.sqlstate(), "22003");
  EXPECT_EQ(found->status.message(), "row 7 of \xff");
  EXPECT_EQ(found->status.diagnostics()[0].detail, "of column a");
  EXPECT_EQ(found->status.diagnostics()[0].hint, "leave it out");
  EXPECT_TRUE(found->tried);
  EXPECT_EQ(found->seconds, 1.5);
  EXPECT_FALSE(Open().Find(4).value().has_value());
  EXPECT_FALSE(Open("other rows").Find(3).value().has_value());
}

TEST_F(SearchLedgerTest, TheBestSoFarHasItsWeights) {
  SearchLedger ledger = Open();
  Trial trial;
  trial.tried = true;
  trial.value = 0.5;
  trial.trained.weights = std::string("first\0", 6);
  ASSERT_TRUE(ledger.Keep(0, trial, true).ok());
  trial.value = 0.75;
  trial.trained.weights = "second";
  ASSERT_TRUE(ledger.Keep(1, trial, true).ok());
  EXPECT_EQ(Open().Weights(1).value(), "second");
  EXPECT_EQ(Open().Find(1).value()->value, 0.75);
  EXPECT_TRUE(Open().Find(1).value()->status.ok());
  EXPECT_FALSE(Open().Weights(0).ok()) << "they are not needed any more";
}

}  // namespace
}  // namespace sluice::executor
