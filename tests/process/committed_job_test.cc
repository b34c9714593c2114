#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/outliving_job.h"
#include "tests/support/postgres_server.h"

// A model and the end of its job appear together, whoever is killed while that happens.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class CommittedJobs : public OutlivingJobs {
 protected:
  static constexpr char kHere[] = "split.kind='none', engine.strategy='local', train.epoch=40";

  bool Exists(const std::string& model) const {
    return catalog_->models().Find("", model, {}).ok();
  }
  // Kills the process as soon as the model's row can be seen.
  void KillOnceStored(const std::string& model, pid_t process) const {
    ASSERT_GT(process, 0);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!Exists(model) && std::chrono::steady_clock::now() < until) {
    }
    kill(process, SIGKILL);
    ASSERT_TRUE(Exists(model));
  }
  void ExpectEnded(int64_t job, const std::string& model) const {
    const ShellOutcome waited = Ask("WAIT JOB " + std::to_string(job));
    EXPECT_EQ(waited.exit_code, 0) << waited.output;
    EXPECT_THAT(waited.output, HasSubstr("\n" + model + ",1," + std::to_string(job) + ",DNN"));
    EXPECT_EQ(StateOf(job), catalog::JobState::kSucceeded);
    EXPECT_THAT(catalog_->models().Versions("", model).value(), SizeIs(1));
  }
  std::string ShaOf(const std::string& model) const {
    return catalog_->models().Find("", model, {})->weights_sha256;
  }
};

// Over PostgreSQL, too.
class CommittedByBoth : public CommittedJobs, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    CommittedJobs::SetUp();
    if (!GetParam()) {
      return;
    }
    database_ = std::make_unique<testing::PostgresTestDatabase>();
    if (database_->url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UsePostgres(database_->url());
  }
  void TearDown() override {
    CommittedJobs::TearDown();
    database_.reset();
  }

  std::unique_ptr<testing::PostgresTestDatabase> database_;
};

TEST_P(CommittedByBoth, OfAGatewayThatIsKilledAtTheCommit) {
  for (int64_t job = 1; job <= 5; ++job) {
    const std::string model = "m" + std::to_string(job);
    StartGateway();
    BackgroundProcess client("exec " + Client(TrainText(model, kHere)));
    KillOnceStored(model, gateway_->pid());
    EXPECT_EQ(StateOf(job), catalog::JobState::kSucceeded);
    StartGateway();
    ExpectEnded(job, model);
  }
}

TEST_P(CommittedByBoth, OfAProcessOfItsOwnThatIsKilledAtTheCommit) {
  StartGateway();
  for (int64_t job = 1; job <= 4; ++job) {
    const std::string model = "m" + std::to_string(job);
    // Long enough that its process is found while it runs.
    const std::string how = job % 2 == 0
                                ? "split.kind='none', engine.strategy='local', train.epoch=400"
                                : "split.kind='none', train.epoch=2, " + Fleet();
    ASSERT_EQ(Ask("SET sluice.async = on; " + TrainText(model, how)).exit_code, 0);
    KillOnceStored(model, ProcessOf(job));
    EXPECT_EQ(StateOf(job), catalog::JobState::kSucceeded);
    ExpectEnded(job, model);
    EXPECT_EQ(Count(job, "taken_over"), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, CommittedByBoth, ::testing::Bool(), [](const auto& postgres) {
  return std::string(postgres.param ? "PostgreSQL" : "SQLite");
});

// The next master finds that the job has ended, and its client gets the answer.
TEST_F(CommittedJobs, OfAMasterThatIsKilledAtTheCommit) {
  LocalCluster cluster(Machine(8));
  const std::string search = "tune.model.dropout=[0, 0.5], tune.trials=2, tune.search=random, ";
  for (int64_t job = 1; job <= 4; ++job) {
    const std::string model = "m" + std::to_string(job);
    RecordingSink sink;
    Status status;
    {
      const std::jthread killer([&](const std::stop_token& over) {
        while (!Exists(model) && !over.stop_requested()) {
        }
        const Result<int> pid = cluster.ProcessId("job" + std::to_string(job) + "-master");
        if (pid.ok()) {  // otherwise it was faster
          kill(*pid, SIGKILL);
        }
      });
      status = Run(TrainText(model, (job % 2 == 0 ? search : "") +
                                        "train.epoch=2, split.fraction=0.1, " + Fleet()),
                   cluster, *source_, sink);
    }
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(sink.tag, "TRAIN");
    EXPECT_EQ(sink.Number("version"), 1);
    EXPECT_EQ(StateOf(job), catalog::JobState::kSucceeded);
    EXPECT_THAT(catalog_->models().Versions("", model).value(), SizeIs(1));
    EXPECT_EQ(Count(job, "chosen"), job % 2 == 0 ? 1 : 0);
  }
}

class KilledSearches : public CommittedJobs, public ::testing::WithParamInterface<std::string> {};

// It is continued by another process, which decides and counts as if nothing had happened.
TEST_P(KilledSearches, AreFinishedOnceByTheirSuccessor) {
  const auto search = [](const std::string& model) {
    return TrainText(model,
                     "tune.optimizer.learning_rate=[0.001, 0.1], tune.trials=4, tune.seconds=1000, "
                     "engine.sync=true, engine.seed=5, split.fraction=0.1, " +
                         Fleet() + ", " + GetParam());
  };
  StartGateway();
  ASSERT_EQ(Ask(search("whole")).exit_code, 0);
  const int64_t trained = catalog_->jobs().Find(1)->rows_trained;
  const int candidates = Count(1, "candidate");
  ASSERT_GE(candidates, 4);
  int64_t job = 1;
  for (const int over : {0, 1, candidates - 1}) {  // trainings that are over when it is killed
    ++job;
    ASSERT_EQ(Ask("SET sluice.async = on; " + search("m")).exit_code, 0);
    ASSERT_TRUE(Eventually(
        [&] { return Count(job, "candidate") >= over && Count(job, "epoch_done") > 0; }));
    Signal(ProcessOf(job), SIGKILL);
    ExpectEnded(job, "m");
    EXPECT_EQ(ShaOf("m"), ShaOf("whole"));
    EXPECT_EQ(catalog_->jobs().Find(job)->rows_trained, trained);
    EXPECT_EQ(Count(job, "taken_over"), 1);
    EXPECT_EQ(Count(job, "search_stopped"), 0);
    EXPECT_EQ(Count(job, "chosen"), 1);
    ASSERT_EQ(Ask("DROP MODEL m").exit_code, 0);
    EXPECT_TRUE(Eventually([&] { return ProcessOf(job) == 0; }));
  }
  EXPECT_FALSE(Exists("m"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, KilledSearches,
                         ::testing::Values("tune.search=random, train.epoch=2",
                                           "tune.search=halving, train.epoch=3"),
                         [](const auto& kind) {
                           return std::string(kind.index == 0 ? "Random" : "Halving");
                         });

}  // namespace
}  // namespace sluice::executor
