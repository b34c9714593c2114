// A model and the end of the job that made it: both or neither.
#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catalog/store/stores_fixture.h"

namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ModelAndJobTest : public StoresTest {
 protected:
  Job Begin() {
    Job job;
    job.kind = "train";
    job.runner = {"here", 42, 4711, 1};
    job.id = catalog().jobs().Create(job).value();
    return job;
  }
  static EndOfJob Success(Job job) {
    return [job = std::move(job)](const ModelVersion& stored) {
      Job ended = job;
      ended.state = JobState::kSucceeded;
      ended.finished_micros = stored.created_micros;
      ended.rows_trained = 1234;
      ended.answer = "version " + std::to_string(stored.version);
      return ended;
    };
  }
  Result<ModelVersion> Put(const Job& job, bool must_be_new = false) {
    ModelVersion model = Model("m");
    model.job = job.id;
    return catalog().models().PutAndEnd(model, "weights", must_be_new, Success(job));
  }
  void ExpectNoModel() {
    EXPECT_EQ(catalog().models().Find("", "m", std::nullopt).status().code(), Code::kNotFound);
    EXPECT_EQ(Select("SELECT count(*) FROM " + Table("model_chunks"))[0][0], "0");
  }
};

TEST_P(ModelAndJobTest, AreWrittenTogether) {
  JobStore& jobs = catalog().jobs();
  const Job job = Begin();
  ASSERT_TRUE(jobs.KeepRecord(job.id, "statement", "s").ok());
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 1);
  std::optional<int64_t> last;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"entry"}, false, &last).ok());
  const auto stored = Put(job);
  ASSERT_TRUE(stored.ok()) << stored.status().ToString();
  const Job ended = jobs.Find(job.id).value();
  EXPECT_EQ(ended.state, JobState::kSucceeded);
  EXPECT_EQ(ended.rows_trained, 1234);
  EXPECT_EQ(ended.finished_micros, stored->created_micros);
  EXPECT_EQ(jobs.Answer(job.id).value(), "version 1");
  EXPECT_THAT(jobs.Running().value(), IsEmpty());
  EXPECT_THAT(jobs.Records(job.id, "").value(), IsEmpty());
  EXPECT_THAT(jobs.Journal(job.id).value(), IsEmpty());
  EXPECT_EQ(catalog().models().Find("", "m", std::nullopt)->job, job.id);
}

TEST_P(ModelAndJobTest, AModelThatCannotBeStoredEndsNoJob) {
  const Job first = Begin();
  ASSERT_TRUE(Put(first).ok());
  const Job second = Begin();
  const auto refused = Put(second, true);
  EXPECT_EQ(refused.status().code(), Code::kAlreadyExists) << refused.status().ToString();
  EXPECT_EQ(catalog().jobs().Find(second.id)->state, JobState::kRunning);
  EXPECT_THAT(catalog().jobs().Running().value(), SizeIs(1)) << "it keeps its process, too";
  EXPECT_THAT(catalog().models().Versions("", "m").value(), SizeIs(1));
}

TEST_P(ModelAndJobTest, AJobThatHasEndedStoresNoModel) {
  Job job = Begin();
  job.state = JobState::kCancelled;
  ASSERT_TRUE(catalog().jobs().End(job).ok());
  const Status late = Put(job).status();
  EXPECT_TRUE(IsJobOver(late)) << late.ToString();
  EXPECT_THAT(late.message(), HasSubstr("has ended already: it is CANCELLED"));
  ExpectNoModel();
  EXPECT_EQ(catalog().jobs().Answer(job.id).value(), "");
}

TEST_P(ModelAndJobTest, WhoHasLostAJobStoresNoModel) {
  const Job job = Begin();
  const JobRunner next{"here", 43, 5000, 2};
  ASSERT_TRUE(catalog().jobs().TakeOver(job.id, job.runner, next).value());
  const Status late = Put(job).status();
  EXPECT_TRUE(IsJobOver(late)) << late.ToString();
  ExpectNoModel();
  EXPECT_EQ(catalog().jobs().Find(job.id)->state, JobState::kRunning);
  Job taken = job;
  taken.runner = next;
  EXPECT_TRUE(Put(taken).ok());
  EXPECT_EQ(catalog().jobs().Find(job.id)->state, JobState::kSucceeded);
}

TEST_P(ModelAndJobTest, AJobThatIsNotThereStoresNoModel) {
  Job job = Begin();
  job.id += 100;
  EXPECT_EQ(Put(job).status().code(), Code::kNotFound);
  ExpectNoModel();
}

// As after a connection that was lost at COMMIT, or by two masters of a job.
TEST_P(ModelAndJobTest, OfManyTriesOneCounts) {
  const Job job = Begin();
  constexpr int kTries = 6;
  std::atomic<int> stored = 0, over = 0;
  {
    std::vector<std::jthread> tries;
    for (int i = 0; i < kTries; ++i) {
      tries.emplace_back([&] {
        const Status put = Put(job).status();
        stored += put.ok() ? 1 : 0;
        over += IsJobOver(put) ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(stored, 1);
  EXPECT_EQ(over, kTries - 1);
  EXPECT_THAT(catalog().models().Versions("", "m").value(), SizeIs(1));
  EXPECT_EQ(catalog().models().Find("", "m", std::nullopt)->version, 1);
}

// A process takes the job over while its lost one commits.
TEST_P(ModelAndJobTest, EitherItIsTakenOverOrItEnds) {
  for (int i = 0; i < 20; ++i) {
    const Job job = Begin();
    const JobRunner next{"here", 43, 5000, 2};
    bool taken = false;
    Status put;
    {
      const std::jthread successor(
          [&] { taken = catalog().jobs().TakeOver(job.id, job.runner, next).value(); });
      put = Put(job).status();
    }
    EXPECT_NE(taken, put.ok()) << put.ToString();
    EXPECT_EQ(catalog().jobs().Find(job.id)->state,
              taken ? JobState::kRunning : JobState::kSucceeded);
  }
}

ON_BOTH_DATABASES(ModelAndJobTest);

}  // namespace
}  // namespace sluice::catalog
