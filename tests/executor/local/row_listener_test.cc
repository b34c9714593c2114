#include "executor/local/row_listener.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "catalog/job_store.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_record.h"
#include "tests/executor/sqlite_test.h"

namespace sluice::executor {
namespace {

using RowListening = SqliteTest;

// A job sends a notice and ends before its listener reads the row again.
TEST_F(RowListening, TheLastWordsComeBeforeTheEnd) {
  catalog::Job job;
  job.kind = "train";
  job.id = catalog_->jobs().Create(job).value();
  const auto listener = ListenToRow(catalog_->jobs(), job.id);
  auto record = JobRecord::Adopt(*catalog_, job, {});
  record->KeepProgress();
  record->Notify("one");
  record->Announce("checkpoint_failed", "two");
  EXPECT_FALSE(record->Finish(FailedPrecondition("no more")).ok());
  std::vector<std::string> heard;
  for (bool ended = false; !ended;) {
    const JobListener::News news =
        listener->Next({}, std::chrono::steady_clock::now() + std::chrono::seconds(20));
    ASSERT_FALSE(std::holds_alternative<JobListener::Nothing>(news));
    ASSERT_FALSE(std::holds_alternative<JobListener::Gone>(news));
    if (const auto* text = std::get_if<std::string>(&news)) {
      heard.push_back(*text);
    }
    if (const auto* end = std::get_if<JobListener::Ended>(&news)) {
      EXPECT_EQ(ErrorOfAnswer(end->answer).message(), "no more");
      ended = true;
    }
  }
  EXPECT_EQ(heard, (std::vector<std::string>{"one", "two"}));
}

}  // namespace
}  // namespace sluice::executor
