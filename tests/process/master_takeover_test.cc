#include <gmock/gmock.h>

#include <atomic>
#include <csignal>
#include <random>

#include "catalog/model_store.h"
#include "tests/process/cluster_job.h"

// A job's master is killed, and another one continues (K20, defects M1 and W11 of the earlier
// engines).
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;

class MasterTakeover : public ClusterJobs {
 protected:
  // Kills the masters of a job one after another.
  class Killer {
   public:
    // `wait`: seconds before the next one is killed.
    Killer(LocalCluster& cluster, int kills, std::function<double()> wait)
        : thread_([this, &cluster, kills, wait = std::move(wait)](const std::stop_token& stop) {
            int last = 0;
            while (killed_ < kills && !stop.stop_requested()) {
              const Result<int> pid = cluster.ProcessId("job1-master");
              if (!pid.ok() || *pid == last) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                continue;
              }
              last = *pid;
              std::this_thread::sleep_for(std::chrono::duration<double>(wait()));
              if (!stop.stop_requested() && kill(last, SIGKILL) == 0) {
                ++killed_;
              }
            }
          }) {}
    int killed() const { return killed_; }

   private:
    std::atomic<int> killed_ = 0;
    std::jthread thread_;
  };

  std::string Sha(const std::string& model) const {
    return catalog_->models().Find("", model, std::nullopt)->weights_sha256;
  }
  int64_t Trained(int64_t job) const { return catalog_->jobs().Find(job)->rows_trained; }
  void ExpectUndisturbed(int64_t job) const {
    for (const char* kind : {"worker_lost", "server_lost", "degraded"}) {
      EXPECT_EQ(Count(job, kind), 0) << kind << ": " << ::testing::PrintToString(Events(job));
    }
  }
};

// A hash of each row picks the other rows for validation.
constexpr int64_t kTrainingRows = 57'034;

struct Mode {
  const char* name;
  int epochs;
  const char* attributes;
  bool same_bits;
};

class InEveryMode : public MasterTakeover, public ::testing::WithParamInterface<Mode> {};

TEST_P(InEveryMode, K20_KilledMastersAreSucceededAndNobodyElseIsTouched) {
  LocalCluster cluster(Machine(8));
  const std::string attributes =
      "train.epoch=" + std::to_string(GetParam().epochs) + ", " + GetParam().attributes;
  RecordingSink sink;
  std::mt19937 random(20);
  Status status;
  int killed = 0;
  {
    Killer killer(cluster, 4, [&] {
      // Before the first entry of the journal there is nothing to take over.
      EXPECT_TRUE(Eventually([&] {
        const auto journal = catalog_->jobs().Journal(1);
        const auto job = catalog_->jobs().Find(1);
        return (journal.ok() && !journal->empty()) || (job.ok() && catalog::HasEnded(job->state));
      }));
      return std::uniform_real_distribution<double>(0.1, 0.6)(random);
    });
    status = Run(TrainText("m", attributes), cluster, *source_, sink);
    killed = killer.killed();
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(killed, 2);
  // The last one may be killed when it has answered already.
  EXPECT_LE(Count(1, "master_lost"), killed);
  EXPECT_GE(Count(1, "master_lost"), killed - 1);
  EXPECT_GE(Count(1, "master_took_over"), 1);
  ExpectUndisturbed(1);
  EXPECT_EQ(Trained(1), kTrainingRows * GetParam().epochs);
  EXPECT_EQ(catalog_->models().Versions("", "m")->size(), 1U);
  EXPECT_TRUE(catalog_->jobs().Journal(1)->empty());
  EXPECT_EQ(ChildrenOf(getpid()), 0);
  if (GetParam().same_bits) {
    RecordingSink quiet;
    ASSERT_TRUE(Run(TrainText("u", attributes), cluster, *source_, quiet).ok());
    EXPECT_EQ(Sha("m"), Sha("u"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    MasterTakeover, InEveryMode,
    ::testing::Values(
        Mode{"Asynchronous", 30, "engine.num_workers=2, engine.num_ps=2", false},
        Mode{"BoundedStaleness", 15, "engine.num_workers=2, engine.num_ps=2, engine.staleness=2",
             false},
        Mode{"Synchronous", 30,
             "train.batch_size=512, engine.num_workers=2, engine.num_ps=2, engine.sync=true", true},
        Mode{"AllReduce", 80, "engine.num_workers=2, engine.strategy='allreduce'", true}),
    [](const auto& of) { return of.param.name; });

// At whatever moment the master dies: one version of the model, one answer.
TEST_F(MasterTakeover, E7_TheModelIsCommittedOnceWhenMastersDieInTheLastMoments) {
  for (int round = 0; round < 10; ++round) {
    const int64_t job = round + 1;
    const bool all_reduce = round % 2 == 1;
    LocalCluster cluster(Machine(8));
    RecordingSink sink;
    Status status;
    {
      std::jthread killer([&](const std::stop_token& stop) {
        while (!stop.stop_requested() && Count(job, "evaluation_done") < 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(round * 2));
        const Result<int> master = cluster.ProcessId("job" + std::to_string(job) + "-master");
        if (master.ok()) {
          kill(*master, SIGKILL);
        }
      });
      status =
          Run(TrainText("m", std::string("train.epoch=1, engine.num_workers=2, ") +
                                 (all_reduce ? "engine.strategy='allreduce'" : "engine.num_ps=1")),
              cluster, *source_, sink);
    }
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(Trained(job), kTrainingRows) << ::testing::PrintToString(Events(job));
    EXPECT_EQ(catalog_->models().Versions("", "m")->size(), static_cast<size_t>(job));
    EXPECT_TRUE(catalog_->jobs().Journal(job)->empty());
    EXPECT_EQ(sink.rows.size(), 1U);
  }
}

// A server dies, and then the master that was about to move its partitions to others.
TEST_F(MasterTakeover, K20_AFailoverThatAMasterLeftHalfwayEndsWell) {
  const std::string attributes =
      "train.epoch=5, train.batch_size=512, engine.num_workers=2, engine.num_ps=2, "
      "engine.replicas=1, engine.sync=true";
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  Status status;
  int rounds = 0;
  {
    std::jthread killer([&](const std::stop_token& stop) {
      for (const char* server : {"job1-ps-0", "job1-ps-1", "job1-ps-2"}) {
        // The second one only when the first one's parameters have two copies again.
        const auto ready = [&] {
          return Count(1, "epoch_done") > rounds && Count(1, "partitions_moved") >= rounds;
        };
        if (!Eventually([&] { return stop.stop_requested() || ready(); }) ||
            stop.stop_requested()) {
          return;
        }
        const Result<int> parameters = cluster.ProcessId(server);
        const Result<int> master = cluster.ProcessId("job1-master");
        if (parameters.ok() && master.ok() && rounds < 2) {
          kill(*parameters, SIGKILL);
          std::this_thread::sleep_for(std::chrono::milliseconds(5 * rounds));
          kill(*master, SIGKILL);
          ++rounds;
        }
      }
    });
    status = Run(TrainText("m", attributes), cluster, *source_, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(rounds, 2);
  EXPECT_EQ(Count(1, "worker_lost"), 0);
  EXPECT_EQ(Trained(1), 5 * kTrainingRows);
  RecordingSink quiet;
  ASSERT_TRUE(Run(TrainText("u", attributes), cluster, *source_, quiet).ok());
  EXPECT_EQ(Sha("m"), Sha("u"));
}

// The master dies right after an epoch was evaluated, and in every other round a server with it:
// the model has the best epoch's weights, and no epoch is trained again.
TEST_F(MasterTakeover, E6_TheWeightsThatWereJudgedBestOutliveTheirMaster) {
  const std::string attributes =
      "train.epoch=6, train.batch_size=1000, train.early_stopping_rounds=1, "
      "optimizer.learning_rate=0.3, "
      "engine.num_workers=4, engine.num_ps=3, engine.replicas=1, engine.sync=true, "
      "engine.micro_batches=4";
  {
    LocalCluster cluster(Machine(8));
    RecordingSink quiet;
    ASSERT_TRUE(Run(TrainText("u", attributes), cluster, *source_, quiet).ok());
  }
  const int judgements = Count(1, "evaluation_done");
  ASSERT_GE(judgements, 2) << "the best epoch is not the last";
  for (int round = 0; round < 4; ++round) {
    const int64_t job = round + 2;
    const std::string name = "job" + std::to_string(job);
    LocalCluster cluster(Machine(8));
    RecordingSink sink;
    Status status;
    std::atomic<bool> killed = false;
    {
      std::jthread killer([&](const std::stop_token& stop) {
        const auto judged = [&] { return Count(job, "evaluation_done") >= judgements - 1; };
        if (!Eventually([&] { return stop.stop_requested() || judged(); }) ||
            stop.stop_requested()) {
          return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20 * round));
        const Result<int> master = cluster.ProcessId(name + "-master");
        const Result<int> server = cluster.ProcessId(name + "-ps-1");
        killed = master.ok() && kill(*master, SIGKILL) == 0;
        if (round % 2 == 1 && server.ok()) {
          kill(*server, SIGKILL);
        }
      });
      status = Run(TrainText("m", attributes), cluster, *source_, sink);
    }
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(killed);
    EXPECT_EQ(Trained(job), Trained(1)) << "no epoch is trained again";
    EXPECT_EQ(Sha("m"), Sha("u")) << round << ": " << ::testing::PrintToString(Events(job));
  }
}

TEST_F(MasterTakeover, CancelWorksAfterwards) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  Status status;
  {
    std::jthread user([&](const std::stop_token& stop) {
      Killer killer(cluster, 1, [] { return 0.5; });
      EXPECT_TRUE(
          Eventually([&] { return stop.stop_requested() || Count(1, "master_started") > 0; }));
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
    });
    status = Run(TrainText("m", "train.epoch=2000, engine.num_workers=2, engine.num_ps=1"), cluster,
                 *source_, sink);
  }
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kCancelled);
  EXPECT_TRUE(catalog_->jobs().Journal(1)->empty());
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

TEST_F(MasterTakeover, MastersThatDieWithoutProgressEndTheJob) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  Status status;
  int killed = 0;
  {
    Killer killer(cluster, 1000, [] { return 0.002; });
    status = Run(TrainText("m", "train.epoch=2000, engine.num_workers=2, engine.num_ps=1"), cluster,
                 *source_, sink);
    killed = killer.killed();
  }
  EXPECT_THAT(status.ToString(), HasSubstr("masters were lost one after the other"));
  EXPECT_EQ(killed, 6);
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kFailed);
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

}  // namespace
}  // namespace sluice::executor
