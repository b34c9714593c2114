#include <gmock/gmock.h>

#include "tests/process/cluster_job.h"
#include "tests/process/limited_group.h"

namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class WorkerMemory : public ClusterJobs {};

TEST_F(WorkerMemory, AJobWhoseWorkersTheKernelKillsEndsWithNumbers) {
  const LimitedGroup group("62914560");
  if (!group.made()) {
    GTEST_SKIP() << "no control groups that this process may make";
  }
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  Status status;
  {
    const std::jthread mover([&](const std::stop_token& stop) {
      for (int worker = 1; !stop.stop_requested();) {
        const Result<int> pid = cluster.ProcessId("job1-worker-" + std::to_string(worker));
        if (pid.ok()) {
          std::ofstream(group.processes()) << *pid;
          ++worker;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    status = Run(
        "SELECT a, b, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[2500, 2500], "
        "train.epoch=1, engine.sync=true, engine.num_ps=2, engine.num_workers=2 LABEL y INTO m",
        cluster, *Open(), sink);
  }
  EXPECT_EQ(status.sqlstate(), "53200") << status.ToString();
  EXPECT_THAT(status.ToString(), HasSubstr("limited to 60 MiB"));
  EXPECT_THAT(status.ToString(), HasSubstr("a worker of this training takes about "));
  EXPECT_THAT(sink.notices, Contains(HasSubstr("killed by the kernel")));
  EXPECT_EQ(Count(1, "killed_for_memory"), 1) << ::testing::PrintToString(Events(1));
}

}  // namespace
}  // namespace sluice::executor
