// Two masters of a job on pods, of which the journal can have only one.
#include "executor/pods/master_journal.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "catalog/job_store.h"
#include "executor/pods/master_exit.h"
#include "executor/pods/master_lease.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "k8s/api_verbs.h"
#include "k8s/pod_labels.h"
#include "tests/executor/sqlite_test.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::executor {
namespace {

class MasterJournalTest : public SqliteTest {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    SqliteTest::SetUp();
    catalog::Job job;
    job.kind = "train";
    job_ = catalog_->jobs().Create(job).value();
    config_.set_job(job_);
    config_.set_uid("abcdef");
    config_.set_namespace_name(server_.namespace_name());
    MakePod(1);
    lease_ = std::make_unique<MasterLease>(server_.client(), config_, 1, [] {});
    journal_ =
        std::make_unique<MasterJournal>(catalog_->jobs(), job_, *lease_, exit_, std::stop_token());
  }
  void MakePod(int64_t number) {
    const std::string labels =
        fmt::format(R"({{"{}":"abcdef","{}":"master","{}":"{}"}})", k8s::kJobLabel, k8s::kRoleLabel,
                    k8s::kIncarnationLabel, number);
    const std::string name = MasterPodName(PodJobName(job_, "abcdef"), number);
    const auto made = k8s::CreateAll(
        server_.client(), {{k8s::kPods, server_.namespace_name(), k8s::PodJson(name, labels)}}, {});
    ASSERT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
  }

  k8s::TestedApiServer server_{false};
  int64_t job_ = 0;
  PodJobConfig config_;
  MasterExit exit_;
  std::unique_ptr<MasterLease> lease_;
  std::unique_ptr<MasterJournal> journal_;
};

TEST_F(MasterJournalTest, TheOnlyMasterWrites) {
  const auto term = journal_->BeginTerm();
  ASSERT_TRUE(term.ok()) << term.status().ToString();
  EXPECT_TRUE(journal_->Append(*term, {"entry"}, false).ok());
  EXPECT_EQ(journal_->ReadAll().value(), std::vector<std::string>{"entry"});
}

TEST_F(MasterJournalTest, AMasterThatWasFollowedBeforeItsTermBeganLeaves) {
  MakePod(2);
  EXPECT_EXIT(static_cast<void>(journal_->BeginTerm()),
              ::testing::ExitedWithCode(MasterExit::kEvicted), "there is a later master");
}

TEST_F(MasterJournalTest, TheNewestMasterLeavesAJournalThatRefusesIt) {
  const elastic::JournalTerm term = journal_->BeginTerm().value();
  ASSERT_TRUE(catalog_->jobs().BeginTerm(job_).ok());
  EXPECT_EXIT(static_cast<void>(journal_->Append(term, {"entry"}, false)),
              ::testing::ExitedWithCode(MasterExit::kEvicted), "the next master");
}

TEST_F(MasterJournalTest, AFollowedMasterLeavesAJournalThatRefusesIt) {
  const elastic::JournalTerm term = journal_->BeginTerm().value();
  MakePod(2);
  ASSERT_TRUE(catalog_->jobs().BeginTerm(job_).ok());
  EXPECT_EXIT(static_cast<void>(journal_->Append(term, {"entry"}, false)),
              ::testing::ExitedWithCode(MasterExit::kEvicted), "there is a later master");
}

}  // namespace
}  // namespace sluice::executor
