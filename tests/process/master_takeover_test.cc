#include <gmock/gmock.h>

#include <atomic>
#include <csignal>
#include <random>

#include "catalog/model_store.h"
#include "tests/process/cluster_job.h"

// A job's master is killed, and another goes on (K20, defects M1 and W11 of the engines before).
namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class MasterTakeover : public ClusterJobs {
 protected:
  // Kills the masters of a job, one after the other.
  class Killer {
   public:
    // `wait`: seconds that the next one may live.
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
    return source_->models().Find("", model, std::nullopt)->weights_sha256;
  }
  int64_t Trained(int64_t job) const { return source_->jobs().Find(job)->rows_trained; }
  void ExpectUndisturbed(int64_t job) const {
    for (const char* kind : {"worker_lost", "server_lost", "degraded"}) {
      EXPECT_EQ(Count(job, kind), 0) << kind << ": " << ::testing::PrintToString(Events(job));
    }
  }
};

constexpr int kEpochs = 40;

struct Mode {
  const char* name;
  const char* attributes;
  bool same_bits;
};

class InEveryMode : public MasterTakeover, public ::testing::WithParamInterface<Mode> {};

TEST_P(InEveryMode, K20_KilledMastersAreSucceededAndNobodyElseIsTouched) {
  LocalCluster cluster(Machine(8));
  const std::string attributes =
      "train.epoch=" + std::to_string(kEpochs) + ", " + GetParam().attributes;
  RecordingSink sink;
  std::mt19937 random(20);
  Status status;
  int killed = 0;
  {
    Killer killer(cluster, 4, [&] {
      return std::uniform_real_distribution<double>(0.1, 0.9)(random);
    });
    status = Run(TrainText("m", attributes), cluster, *source_, sink);
    killed = killer.killed();
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(killed, 2);
  EXPECT_EQ(Count(1, "master_lost"), killed);
  EXPECT_GE(Count(1, "master_took_over"), 1);
  ExpectUndisturbed(1);
  EXPECT_EQ(Trained(1), kRows * kEpochs);
  EXPECT_EQ(source_->models().Versions("", "m")->size(), 1U);
  EXPECT_TRUE(source_->jobs().Journal(1)->empty());
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
        Mode{"Asynchronous", "engine.num_workers=2, engine.num_ps=2", false},
        Mode{"BoundedStaleness", "engine.num_workers=2, engine.num_ps=2, engine.staleness=2",
             false},
        Mode{"Synchronous", "engine.num_workers=2, engine.num_ps=2, engine.sync=true", true},
        Mode{"AllReduce", "engine.num_workers=2, engine.strategy='allreduce'", true}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace sluice::executor
