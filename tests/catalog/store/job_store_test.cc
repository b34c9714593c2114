#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "tests/catalog/store/stores_fixture.h"

namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using JobStoreTest = StoresTest;

TEST_P(JobStoreTest, AJournalBelongsToTheNewestMasterAndGoesWithTheJob) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.id = jobs.Create(job).value();
  EXPECT_THAT(jobs.Journal(job.id).value(), IsEmpty());
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 1);
  const std::string bytes("a\0b\xff", 4);
  std::optional<int64_t> first, second;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"first", bytes}, false, &first).ok());
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 2);
  const Status late = jobs.AppendJournal(job.id, 1, {"too late"}, false, &first);
  EXPECT_EQ(late.code(), Code::kAborted);
  EXPECT_TRUE(IsTermOver(late)) << late.ToString();
  ASSERT_TRUE(jobs.AppendJournal(job.id, 2, {"third"}, false, &second).ok());
  EXPECT_EQ(jobs.Journal(job.id).value(), (std::vector<std::string>{"first", bytes, "third"}));
  ASSERT_EQ(jobs.BeginTerm(job.id + 1).value(), 1) << "each job has its own";
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(jobs.End(job).ok());
  EXPECT_THAT(jobs.Journal(job.id).value(), IsEmpty());
}

TEST_P(JobStoreTest, RecordsOfAJobGoWithItsEnd) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.id = jobs.Create(job).value();
  EXPECT_THAT(jobs.Records(job.id, "").value(), IsEmpty());
  const std::string bytes("a\0b\xff", 4);
  ASSERT_TRUE(jobs.KeepRecord(job.id, "plan", "old").ok());
  ASSERT_TRUE(jobs.KeepRecord(job.id, "plan", bytes).ok());
  ASSERT_TRUE(jobs.KeepRecord(job.id, "snapshot/1", "one").ok());
  ASSERT_TRUE(jobs.KeepRecord(job.id + 1, "plan", "another's").ok());
  using Records = std::map<std::string, std::string>;
  EXPECT_EQ(jobs.Records(job.id, "").value(), (Records{{"plan", bytes}, {"snapshot/1", "one"}}));
  EXPECT_EQ(jobs.Records(job.id, "snapshot/").value(), (Records{{"snapshot/1", "one"}}));
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(jobs.End(job).ok());
  EXPECT_THAT(jobs.Records(job.id, "").value(), IsEmpty());
}

TEST_P(JobStoreTest, ALongStatementIsAbridged) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.statement = std::string(kMaxStatementBytes, 'x');
  EXPECT_EQ(jobs.Find(jobs.Create(job).value())->statement, job.statement);
  job.statement.insert(kMaxStatementBytes - 1, "é");
  EXPECT_EQ(jobs.Find(jobs.Create(job).value())->statement,
            std::string(kMaxStatementBytes - 1, 'x') + " ... (65538 bytes)");
}

// The connection was lost at COMMIT: the outcome is unknown, so the master writes it again.
TEST_P(JobStoreTest, AnAppendThatIsRepeatedIsThereOnce) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.id = jobs.Create(job).value();
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 1);
  std::optional<int64_t> last;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"first"}, false, &last).ok());
  const std::optional<int64_t> known = last;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"second", "third"}, false, &last).ok());
  last = known;  // as if the answer never came
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"second", "third"}, false, &last).ok());
  EXPECT_EQ(jobs.Journal(job.id).value(), (std::vector<std::string>{"first", "second", "third"}));
  const std::optional<int64_t> before = last;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"all"}, true, &last).ok());
  last = before;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"all"}, true, &last).ok());
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"more"}, false, &last).ok());
  EXPECT_EQ(jobs.Journal(job.id).value(), (std::vector<std::string>{"all", "more"}));
}

TEST_P(JobStoreTest, AJobIsDroppedWithAllThatIsStoredOfItOnceItHasEnded) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.answer = "answer";
  job.runner = {"here", 1, 1, 1};
  job.request = "a-uid";
  job.id = jobs.Create(job).value();
  job.request = "another";
  const int64_t other = jobs.Create(job).value();
  for (const int64_t id : {job.id, other}) {
    ASSERT_TRUE(jobs.AddEvents(id, {{1, "epoch_done", ""}}).ok());
    ASSERT_TRUE(jobs.AddMetrics(id, {{1, 1, "loss", 1}}).ok());
    ASSERT_EQ(jobs.BeginTerm(id).value(), 1);
  }
  const Status running = jobs.Drop(job.id);
  EXPECT_EQ(running.sqlstate(), "55006") << running.ToString();
  EXPECT_THAT(running.ToString(), HasSubstr("CANCEL JOB"));
  job.state = JobState::kFailed;
  ASSERT_TRUE(jobs.End(job).ok());
  ASSERT_TRUE(jobs.Drop(job.id).ok());
  EXPECT_EQ(jobs.Find(job.id).status().code(), Code::kNotFound);
  EXPECT_EQ(jobs.Drop(job.id).code(), Code::kNotFound);
  for (const std::string table : {"job_events", "job_metrics", "job_terms", "job_journal",
                                  "job_runners", "job_answers", "job_records", "job_requests"}) {
    EXPECT_THAT(
        Select("SELECT job_id FROM " + Table(table) + " WHERE job_id <> " + std::to_string(other)),
        IsEmpty())
        << table;
  }
  EXPECT_EQ(jobs.Answer(other).value(), "answer");
  EXPECT_THAT(jobs.Events(other).value(), SizeIs(1));
}

TEST_P(JobStoreTest, ThereIsOneJobForWhatItIsMadeFor) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.request = "a-uid";
  EXPECT_EQ(jobs.Requested("a-uid").value(), std::nullopt);
  const int64_t first = jobs.Create(job).value();
  EXPECT_EQ(jobs.Create(job).status().code(), Code::kAlreadyExists);
  EXPECT_THAT(jobs.List().value(), SizeIs(1));
  EXPECT_EQ(jobs.Requested("a-uid").value(), first);
  EXPECT_EQ(jobs.Requested("another").value(), std::nullopt);
  job.id = first;
  job.state = JobState::kFailed;
  ASSERT_TRUE(jobs.End(job).ok());
  job.state = JobState::kRunning;
  EXPECT_EQ(jobs.Create(job).status().code(), Code::kAlreadyExists) << "it has ended";
  ASSERT_TRUE(jobs.GiveUpRequest(first).ok());
  EXPECT_GT(jobs.Create(job).value(), first);
}

TEST_P(JobStoreTest, OfManyThatMakeTheSameJobAtOnceOneDoes) {
  Job job;
  job.kind = "train";
  job.request = "a-uid";
  ASSERT_TRUE(catalog().jobs().Create({}).ok());  // with it the tables
  std::atomic<int> made = 0, refused = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const auto created = catalog().jobs().Create(job);
        made += created.ok() ? 1 : 0;
        refused += created.status().code() == Code::kAlreadyExists ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(refused, 7);
}

TEST_P(JobStoreTest, OldJobsGoInBatchesAndThoseOfModelsStay) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  std::vector<int64_t> ids;
  for (int64_t finished : {10, 20, 30, 40, 0}) {
    job.state = JobState::kRunning;
    job.id = jobs.Create(job).value();
    ids.push_back(job.id);
    if (finished != 0) {
      job.state = JobState::kSucceeded;
      job.finished_micros = finished;
      ASSERT_TRUE(jobs.End(job).ok());
    }
  }
  ModelVersion model = Model("m");
  model.job = ids[1];
  ASSERT_TRUE(catalog().models().Put(model, "w", true).ok());
  EXPECT_EQ(jobs.DropEnded(40, 1).value(), 1);
  EXPECT_EQ(jobs.DropEnded(40, 10).value(), 1);
  EXPECT_EQ(jobs.DropEnded(40, 10).value(), 0);
  std::vector<int64_t> left;
  for (const Job& one : jobs.List().value()) {
    left.push_back(one.id);
  }
  EXPECT_EQ(left, (std::vector<int64_t>{ids[4], ids[3], ids[1]}));
}

TEST_P(JobStoreTest, JobsAreRows) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.statement = "SELECT 1";
  job.model = "m";
  job.user = "somebody";
  job.started_micros = 1'700'000'000'000'000;
  const auto id = jobs.Create(job);
  ASSERT_TRUE(id.ok()) << id.status().ToString();
  job.id = *id;
  const auto second = jobs.Create(job);
  ASSERT_TRUE(second.ok());
  EXPECT_GT(*second, *id);

  EXPECT_FALSE(jobs.CancelRequested(*id).value());
  ASSERT_TRUE(jobs.RequestCancel(*id).ok());
  EXPECT_TRUE(jobs.CancelRequested(*id).value());
  EXPECT_FALSE(jobs.CancelRequested(*second).value());

  job.state = JobState::kCancelled;
  job.rows_trained = 17;
  job.error = "cancelled";
  job.finished_micros = 1'700'000'001'000'000;
  ASSERT_TRUE(jobs.End(job).ok());
  const auto found = jobs.Find(*id);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->state, JobState::kCancelled);
  EXPECT_EQ(found->rows_trained, 17);
  EXPECT_EQ(found->finished_micros, 1'700'000'001'000'000);
  EXPECT_TRUE(jobs.CancelRequested(*id).value());  // an update does not undo the request
  EXPECT_EQ(jobs.RequestCancel(*id).code(), Code::kFailedPrecondition);

  const auto list = jobs.List().value();
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0].id, *second);
  EXPECT_THAT(jobs.List(1).value(), SizeIs(1));
  EXPECT_EQ(jobs.Count().value(), 2);

  ASSERT_TRUE(jobs.WriteRows(*second, 30, 20).ok());
  EXPECT_EQ(jobs.Find(*second)->rows_read, 30);
  EXPECT_EQ(jobs.Find(*second)->rows_trained, 20);
  ASSERT_TRUE(jobs.WriteRows(*id, 1, 1).ok());  // it has ended
  EXPECT_EQ(jobs.Find(*id)->rows_trained, 17);
  EXPECT_THAT(Select("SELECT started FROM " + Table("jobs"))[0][0],
              HasSubstr("2023-11-14 22:13:20"));

  job.id = 999;
  EXPECT_EQ(jobs.End(job).code(), Code::kNotFound);
}

TEST_P(JobStoreTest, ASuspendedJobHasNotEnded) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.runner = {"pods/a/b", 1, 0, 5};
  const int64_t id = *jobs.Create(job);
  ASSERT_TRUE(jobs.KeepRecord(id, "statement", "s").ok());
  ASSERT_TRUE(jobs.SetSuspended(id, true).ok());
  EXPECT_EQ(jobs.Find(id)->state, JobState::kSuspended);
  EXPECT_EQ(jobs.Running()->size(), 1U);
  EXPECT_EQ(jobs.Records(id, "")->size(), 1U);
  EXPECT_TRUE(jobs.RequestCancel(id).ok());
  ASSERT_TRUE(jobs.SetSuspended(id, false).ok());
  EXPECT_EQ(jobs.Find(id)->state, JobState::kRunning);
  ASSERT_TRUE(jobs.SetSuspended(id, true).ok());
  ASSERT_TRUE(jobs.Abandon(id, 10, JobState::kCancelled, "away", "").ok());
  EXPECT_EQ(jobs.Find(id)->state, JobState::kCancelled);
  EXPECT_EQ(jobs.SetSuspended(id, false).code(), Code::kAborted);
}

TEST_P(JobStoreTest, ARunningJobHasARunnerAndCanBeAbandoned) {
  JobStore& jobs = catalog().jobs();
  EXPECT_THAT(jobs.Running().value(), IsEmpty());
  Job job;
  job.kind = "train";
  job.statement = "SELECT 1";
  job.runner = {"here", 42, 4711, 1'700'000'000'000'000};
  const int64_t id = jobs.Create(job).value();
  const int64_t other = jobs.Create(job).value();
  const JobRunner runner{"here", 42, 4711, 1'700'000'009'000'000};
  ASSERT_TRUE(jobs.Seen(id, runner).value());
  const std::vector<Job> running = jobs.Running().value();
  ASSERT_THAT(running, SizeIs(2));
  const Job& one = running[0].id == id ? running[0] : running[1];
  EXPECT_EQ(one.statement, "SELECT 1");
  EXPECT_EQ(one.runner.place, "here");
  EXPECT_EQ(one.runner.pid, 42);
  EXPECT_EQ(one.runner.started, 4711);
  EXPECT_EQ(one.runner.seen_micros, 1'700'000'009'000'000);

  ASSERT_TRUE(jobs.Abandon(id, 1'700'000'010'000'000, JobState::kFailed, "lost", "why").ok());
  EXPECT_EQ(jobs.Find(id)->state, JobState::kFailed);
  EXPECT_EQ(jobs.Find(id)->error, "lost");
  job.id = other;
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(jobs.End(job).ok());
  ASSERT_TRUE(jobs.Abandon(other, 1'700'000'010'000'000, JobState::kCancelled, "lost", "").ok());
  EXPECT_EQ(jobs.Find(other)->state, JobState::kSucceeded) << "it has ended meanwhile";
  EXPECT_EQ(jobs.Answer(id).value(), "why");
  EXPECT_EQ(jobs.Answer(other).value(), "") << "none was kept";
  EXPECT_THAT(jobs.Running().value(), IsEmpty());
}

TEST_P(JobStoreTest, OneOfThoseWhoTakeAJobOverGetsIt) {
  JobStore& jobs = catalog().jobs();
  const JobRunner lost{"here", 42, 4711, 1};
  const JobRunner next{"here", 43, 5000, 2};
  const JobRunner other{"there", 43, 5000, 2};
  Job job;
  job.kind = "train";
  job.runner = lost;
  job.id = jobs.Create(job).value();
  EXPECT_TRUE(jobs.Seen(job.id, lost).value());
  EXPECT_TRUE(jobs.TakeOver(job.id, lost, next).value());
  EXPECT_FALSE(jobs.TakeOver(job.id, lost, other).value()) << "it is not the lost one's any more";
  EXPECT_EQ(jobs.Running().value().at(0).runner.pid, 43);
  EXPECT_FALSE(jobs.Seen(job.id, lost).value());
  EXPECT_TRUE(jobs.Seen(job.id, next).value());
  JobRunner whoever;
  whoever.seen_micros = 3;
  EXPECT_TRUE(jobs.Seen(job.id, whoever).value());
  EXPECT_EQ(jobs.Running().value().at(0).runner.seen_micros, 3);
  job.state = JobState::kFailed;
  const Status late = jobs.End(job);
  EXPECT_TRUE(IsJobOver(late)) << late.ToString();
  EXPECT_THAT(late.message(), HasSubstr("another process continues job"));
  EXPECT_EQ(jobs.Find(job.id)->state, JobState::kRunning);
  job.state = JobState::kSucceeded;
  job.runner = next;
  ASSERT_TRUE(jobs.End(job).ok());
  EXPECT_FALSE(jobs.TakeOver(job.id, next, other).value()) << "it has ended";
  EXPECT_TRUE(jobs.Seen(job.id, next).value()) << "nobody else runs it";
}

TEST_P(JobStoreTest, WhatAJobAnswersIsKeptWithIt) {
  JobStore& jobs = catalog().jobs();
  EXPECT_EQ(jobs.Answer(1).value(), "") << "there are no tables yet";
  Job job;
  job.answer = std::string("columns\0", 8);
  job.id = jobs.Create(job).value();
  EXPECT_EQ(jobs.Answer(job.id).value(), job.answer);
  Job other = job;
  other.id = jobs.Create(other).value();
  job.state = other.state = JobState::kSucceeded;
  job.answer = "";
  ASSERT_TRUE(jobs.End(job).ok());
  EXPECT_EQ(jobs.Answer(job.id).value(), std::string("columns\0", 8)) << "as it was";
  other.answer = std::string("rows\0\xff", 6);
  ASSERT_TRUE(jobs.End(other).ok());
  EXPECT_EQ(jobs.Answer(other.id).value(), other.answer);
}

TEST_P(JobStoreTest, AJobEndsOnce) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.runner = {"here", 42, 4711, 1};
  job.id = jobs.Create(job).value();
  job.state = JobState::kSucceeded;
  job.rows_trained = 5;
  job.finished_micros = 10;
  job.answer = "rows";
  ASSERT_TRUE(jobs.End(job).ok());
  Job again = job;
  again.state = JobState::kFailed;
  again.rows_trained = 0;
  again.error = "lost";
  again.answer = "why";
  const Status late = jobs.End(again);
  EXPECT_TRUE(IsJobOver(late)) << late.ToString();
  EXPECT_THAT(late.message(), HasSubstr("has ended already: it is SUCCEEDED"));
  const Job found = jobs.Find(job.id).value();
  EXPECT_EQ(found.state, JobState::kSucceeded);
  EXPECT_EQ(found.rows_trained, 5);
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(jobs.Answer(job.id).value(), "rows");
}

// Its threads may still write when its end is in the catalog.
TEST_P(JobStoreTest, NothingIsKeptForTheSuccessorOfAnEndedJob) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.id = jobs.Create(job).value();
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 1);
  std::optional<int64_t> last;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"first"}, false, &last).ok());
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(jobs.End(job).ok());
  EXPECT_TRUE(jobs.AppendJournal(job.id, 1, {"second"}, false, &last).ok());
  EXPECT_TRUE(jobs.KeepRecord(job.id, "progress", "all").ok());
  EXPECT_THAT(jobs.Journal(job.id).value(), IsEmpty());
  EXPECT_THAT(jobs.Records(job.id, "").value(), IsEmpty());
}

TEST_P(JobStoreTest, EventsAndMetricsKeepTheirOrder) {
  JobStore& jobs = catalog().jobs();
  std::vector<JobEvent> events;
  std::vector<JobMetric> metrics;
  for (int i = 0; i < 450; ++i) {
    events.push_back({1000 - i, "kind", std::to_string(i)});
    metrics.push_back({i, i * 10, "loss", i == 7 ? std::nan("") : i / 2.0});
  }
  ASSERT_TRUE(jobs.AddEvents(5, events).ok());
  ASSERT_TRUE(jobs.AddEvents(6, {{1, "other", "job"}}).ok());
  ASSERT_TRUE(jobs.AddMetrics(5, metrics).ok());
  const auto read_events = jobs.Events(5).value();
  ASSERT_THAT(read_events, SizeIs(450));
  EXPECT_EQ(read_events[449].detail, "449");
  EXPECT_EQ(read_events[449].micros, 551);
  const auto read_metrics = jobs.Metrics(5).value();
  ASSERT_THAT(read_metrics, SizeIs(450));
  EXPECT_EQ(read_metrics[3].step, 30);
  EXPECT_EQ(read_metrics[3].value, 1.5);
  EXPECT_TRUE(std::isnan(read_metrics[7].value));
}

TEST_P(JobStoreTest, FullSeriesLoseEverySecondPoint) {
  JobStore& jobs = catalog().jobs();
  std::vector<JobMetric> metrics;
  for (int i = 0; i < 10; ++i) {
    metrics.push_back({i, i, "loss", i * 1.0});
    if (i < 9) {
      metrics.push_back({i, i, "rows", i * 1.0});
    }
  }
  ASSERT_TRUE(jobs.AddMetrics(5, metrics).ok());
  ASSERT_TRUE(jobs.AddMetrics(6, metrics).ok());
  ASSERT_TRUE(jobs.ThinMetrics(5, 10).ok());
  const auto steps = [&jobs](int64_t job, const std::string& name) {
    std::vector<int64_t> steps_of;
    const std::vector<JobMetric> all = jobs.Metrics(job).value();
    for (const JobMetric& metric : all) {
      if (metric.name == name) {
        steps_of.push_back(metric.step);
      }
    }
    return steps_of;
  };
  EXPECT_THAT(steps(5, "loss"),
              ::testing::ElementsAre(0, 2, 4, 6, 8, 9));  // the first and the last stay
  EXPECT_THAT(steps(5, "rows"), SizeIs(9));               // not full
  EXPECT_THAT(steps(6, "loss"), SizeIs(10));              // another job's
}

ON_BOTH_DATABASES(JobStoreTest);

}  // namespace
}  // namespace sluice::catalog
