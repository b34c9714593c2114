#include "tests/process/cluster_job.h"

#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {
namespace {

using ::testing::HasSubstr;

TEST_F(ClusterJobs, JobsShareOneClusterAndLeaveNothing) {
  LocalCluster cluster(Machine(8));
  Status first = Internal("not run");
  std::thread other([&] {
    const auto source = Open();
    RecordingSink sink;
    first = Run(TrainText("m1", "train.epoch=2, engine.num_workers=2, engine.num_ps=1"), cluster,
                *source, sink);
  });
  RecordingSink sink;
  const Status second = Run(TrainText("m2", "train.epoch=2, engine.num_workers=2, engine.num_ps=2"),
                            cluster, *source_, sink);
  other.join();
  EXPECT_TRUE(first.ok()) << first.ToString();
  EXPECT_TRUE(second.ok()) << second.ToString();
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// When the master resumes, it has heard from no process for longer than any of its time limits.
TEST_F(ClusterJobs, S21_AMasterThatSleptGivesNobodyUp) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  std::jthread alarm;
  sink.on_progress = [&] {
    if (!alarm.joinable() && sink.progress.back().workers == 2) {
      const int master = cluster.ProcessId("job1-master").value();
      kill(master, SIGSTOP);
      alarm = std::jthread([master] {
        std::this_thread::sleep_for(std::chrono::seconds(7));
        kill(master, SIGCONT);
      });
    }
  };
  const Status status = Run(
      TrainText("m", "train.epoch=15, engine.num_workers=2, engine.num_ps=2, engine.replicas=1"),
      cluster, *source_, sink);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(alarm.joinable());
  EXPECT_EQ(Count(1, "worker_lost"), 0);
  EXPECT_EQ(Count(1, "server_lost"), 0);
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

TEST_F(ClusterJobs, MastersThatKeepDyingAreNotStartedForEver) {
  const std::filesystem::path program = folder_ / "dies.sh";
  std::ofstream(program) << "#!/bin/sh\necho 'no luck' >&2\nexit 1\n";
  chmod(program.c_str(), S_IRWXU);
  LocalCluster::Options machine = Machine(8);
  machine.binary = program.string();
  LocalCluster cluster(machine);
  RecordingSink sink;
  const Status status = Run(TrainText("m", "engine.num_workers=2"), cluster, *source_, sink);
  EXPECT_THAT(status.ToString(), HasSubstr("6 masters were lost one after the other"));
  EXPECT_THAT(status.ToString(), HasSubstr("no luck"));
  EXPECT_EQ(Count(1, "master_lost"), 6);
}

// Requested in SQL: the same digest of the weights with servers, with workers alone, and with one
// of those killed.
TEST_F(ClusterJobs, G4_AllReduceInSqlHasTheBitsOfServers) {
  LocalCluster cluster(Machine(8));
  const auto digest = [&](const std::string& engine, bool disturbed) {
    RecordingSink sink;
    bool killed = !disturbed;
    sink.on_progress = [&] {
      // Not before a world has trained: losing a member before the first world forms would be
      // quick.
      if (!killed && sink.progress.back().rows_done > 0) {
        const Result<int> pid = cluster.ProcessId("job3-worker-1");
        killed = pid.ok() && kill(*pid, SIGKILL) == 0;
      }
    };
    const Status status = Run(TrainText("m", "train.epoch=4, " + engine), cluster, *source_, sink);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(killed);
    return catalog_->models().Find("", "m", {}).value().weights_sha256;
  };
  const std::string servers =
      digest("engine.num_workers=3, engine.num_ps=2, engine.sync=true", false);
  EXPECT_EQ(digest("engine.num_workers=3, engine.strategy='allreduce'", false), servers);
  EXPECT_EQ(digest("engine.num_workers=3, engine.strategy='allreduce'", true), servers);
  EXPECT_GE(Count(2, "world_formed"), 1);
  EXPECT_GE(Count(3, "worker_lost"), 1);
  EXPECT_GE(Count(3, "world_formed"), 2);
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// One statement gives one model, wherever it runs, on however many workers, with or without
// servers.
TEST_F(ClusterJobs, G4_OneStatementIsOneModel) {
  LocalCluster cluster(Machine(8));
  struct Trained {
    std::string weights;
    std::vector<std::pair<std::string, double>> metrics;
  };
  const auto train = [&](const std::string& engine) {
    RecordingSink sink;
    const Status status = Run(TrainText("m", "train.epoch=2, split.fraction=0.1, " + engine),
                              cluster, *source_, sink);
    EXPECT_TRUE(status.ok()) << engine << ": " << status.ToString();
    const catalog::ModelVersion model = catalog_->models().Find("", "m", {}).value();
    return Trained{model.weights_sha256, model.metrics};
  };
  const Trained here = train("engine.sync=true");
  for (const char* engine : {"engine.sync=true, engine.num_workers=1, engine.num_ps=1",
                             "engine.sync=true, engine.num_workers=2",
                             "engine.sync=true, engine.num_workers=3, engine.num_ps=2",
                             "engine.sync=true, engine.num_workers=8",
                             "engine.strategy='allreduce', engine.num_workers=1",
                             "engine.strategy='allreduce', engine.num_workers=4"}) {
    const Trained there = train(engine);
    EXPECT_EQ(there.weights, here.weights) << engine;
    EXPECT_EQ(there.metrics, here.metrics) << engine;
  }
  EXPECT_THAT(here.metrics, ::testing::Contains(::testing::Key("train_loss")));
}

// Nothing is said of how a linear model is trained: it meets its optimum here and on workers.
TEST_F(ClusterJobs, ALinearModelsOptimumIsOneModelWhereverItIsFound) {
  LocalCluster cluster(Machine(8));
  for (const std::string type : {"LinearClassifier", "LinearRegressor"}) {
    std::optional<catalog::ModelVersion> here;
    for (const std::string engine :
         {"engine.strategy='local'", "engine.num_workers=1", "engine.num_workers=4"}) {
      RecordingSink sink;
      const Status status =
          Run("SELECT a, b, y FROM points TO TRAIN " + type + " WITH " + engine + " LABEL y INTO m",
              cluster, *source_, sink);
      ASSERT_TRUE(status.ok()) << engine << ": " << status.ToString();
      const catalog::ModelVersion model = catalog_->models().Find("", "m", {}).value();
      EXPECT_EQ(model.weights_sha256, here.value_or(model).weights_sha256) << engine;
      EXPECT_EQ(model.metrics, here.value_or(model).metrics) << engine;
      here = here.value_or(model);
    }
  }
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// Also with more rows than are counted for the cut: a single process reads the table itself, and
// several read a copy of it.
TEST_F(ClusterJobs, G4_ALargeTableHasOneCut) {
  for (const char* sql :
       {"PRAGMA journal_mode=WAL",
        "CREATE TABLE many AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
        "i < 260000) SELECT i, (i * 7919 % 1000) / 500.0 - 1 AS a, (i % 997) / 500.0 AS b, "
        "(i * 7919 % 1000) > 500 AS y FROM n",
        "DELETE FROM many WHERE i % 7 = 3 AND i > 100000", "CREATE INDEX of_b ON many(b)"}) {
    const Status made = source_->Execute(sql, nullptr, {}).status();
    ASSERT_TRUE(made.ok()) << sql << made.ToString();
  }
  LocalCluster cluster(Machine(8));
  std::vector<std::string> weights;
  for (const char* engine : {"engine.sync=true", "engine.sync=true, engine.num_workers=2"}) {
    RecordingSink sink;
    const Status status =
        Run(std::string("SELECT a, b, y FROM many WHERE b < 1.9 TO TRAIN LinearClassifier WITH "
                        "train.epoch=1, split.fraction=0.1, ") +
                engine + " LABEL y INTO m",
            cluster, *source_, sink);
    EXPECT_TRUE(status.ok()) << engine << ": " << status.ToString();
    weights.push_back(catalog_->models().Find("", "m", {}).value().weights_sha256);
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_F(ClusterJobs, ACancelledJobEndsItsProcesses) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  std::stop_source stop;
  sink.on_progress = [&] { stop.request_stop(); };
  const Status status = Run(TrainText("m", "train.epoch=2000, engine.num_workers=2"), cluster,
                            *source_, sink, stop.get_token());
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

TEST_F(ClusterJobs, WhenTheGatewayDiesEverythingDies) {
  std::string binary = SLUICE_BINARY, source = "--source=" + Url(),
              sql = "--command=" + TrainText("m", "train.epoch=2000, engine.num_workers=2");
  std::string command = "sql";
  char* arguments[] = {binary.data(), command.data(), source.data(), sql.data(), nullptr};
  pid_t gateway = 0;
  ASSERT_EQ(posix_spawn(&gateway, binary.c_str(), nullptr, nullptr, arguments, environ), 0);
  std::vector<int> processes;
  EXPECT_TRUE(Eventually([&] {
    processes.clear();
    for (const auto& [parent, pid] : Children()) {
      if (parent == gateway) {
        processes.push_back(pid);
      }
    }
    return processes.size() >= 4;  // master, server, workers: all belong to the gateway
  }));
  kill(gateway, SIGKILL);
  waitpid(gateway, nullptr, 0);
  // Well before they would give up for lack of an answer.
  EXPECT_TRUE(Eventually(
      [&] {
        for (const auto& [parent, pid] : Children()) {
          if (std::find(processes.begin(), processes.end(), pid) != processes.end()) {
            return false;
          }
        }
        return true;
      },
      std::chrono::seconds(10)));
}

// The smallest memory that the planner accepts: default thread stacks alone would exceed it.
TEST_F(ClusterJobs, ProcessesWorkWithinTheLeastMemory) {
  for (const char* strategy : {"engine.num_ps=1", "engine.strategy='allreduce'"}) {
    LocalCluster cluster(Machine(8));
    RecordingSink sink;
    const std::string attributes = std::string("train.epoch=2, engine.num_workers=2, ") + strategy;
    const auto statements = parser::Parse(TrainText("least", attributes)).value();
    const plan::TrainPlan plan =
        planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)), *source_,
                          catalog_->models(), {})
            .value()
            .train();
    const int64_t least = std::max(plan.estimated_memory_bytes() - plan.estimated_kept_bytes(),
                                   plan.estimated_server_memory_bytes());
    const std::string memory = ", engine.memory='" + std::to_string((least >> 20) + 1) + "MB'";
    const Status status = Run(TrainText("least", attributes + memory), cluster, *source_, sink);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(Count(catalog_->jobs().List()->front().id, "memory_raised"), 0);
  }
}

// The gateway's limit also applies to a job that does not set its memory.
TEST_F(ClusterJobs, AJobThatNamesNoMemoryNeedsRoomForItsEstimate) {
  LocalCluster::Options machine = Machine(8);
  machine.slots.memory_bytes = int64_t{40} << 20;
  LocalCluster cluster(machine);
  RecordingSink sink;
  const Status status =
      Run(TrainText("none", "engine.num_workers=8, engine.num_ps=1"), cluster, *source_, sink);
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
  EXPECT_NE(status.message().find("more than the 40 MiB that this gateway has"), std::string::npos);
}

}  // namespace
}  // namespace sluice::executor
