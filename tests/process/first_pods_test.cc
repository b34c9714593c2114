#include "executor/pods/first_pods.h"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <thread>

#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_process.pb.h"
#include "executor/pods/job_objects.h"
#include "executor/pods/pod_job.pb.h"
#include "planner/plan.pb.h"
#include "tests/process/pods_fixture.h"

// A job's servers and first worker start while its master's image is fetched.
namespace sluice::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FirstPodsOfAJob : public Pods {
 protected:
  // An undisturbed training, as job 1.
  void TrainUndisturbed() {
    RecordingSink quiet;
    ASSERT_TRUE(Train("u", kSynchronous, quiet).ok());
  }
  // Trains in a new cluster, in which a master's image takes so long. `meanwhile` begins when the
  // first pods run.
  void TrainWithFirstPods(std::chrono::seconds image, const std::function<void()>& meanwhile) {
    k8s::LocalKubelet::Options slow{SLUICE_BINARY, 2};
    slow.master_start = image;
    StartCluster(slow);
    RecordingSink sink;
    Status status;
    {
      const std::jthread statement([&] { status = Train("m", kSynchronous, sink); });
      EXPECT_TRUE(FirstPodsRun());
      meanwhile();
    }
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  bool FirstPodsRun() {
    return Eventually([this] {
      return kubelet_->Running("worker").size() == 1 && kubelet_->Running("ps").size() == 2;
    });
  }
  void DeleteFirstPods(int grace_seconds) {
    for (const char* role : {"ps", "worker"}) {
      for (const std::string& pod : kubelet_->Running(role)) {
        kubelet_->Delete(pod, grace_seconds);
      }
    }
  }
  // For four seconds a master cannot begin its term.
  std::jthread HoldTerms() {
    return std::jthread([this] {
      const Status held =
          Open()
              ->Execute(
                  "DO $$ BEGIN LOCK TABLE sluice.job_terms IN ACCESS EXCLUSIVE MODE; "
                  "PERFORM pg_sleep(4); END $$",
                  nullptr, {})
              .status();
      EXPECT_TRUE(held.ok()) << held.ToString();
    });
  }
  // Those of job 1, as its gateway planned them.
  FirstPods PlannedPods() {
    PodJobConfig config;
    JobSecrets secrets;
    EXPECT_TRUE(ReadJobSecret(kubelet_->client(), kubelet_->namespace_name(),
                              OnlyTrainingJob() + "-master", config, secrets, {})
                    .ok());
    JobConfig job;
    EXPECT_TRUE(
        job.ParseFromString(catalog_->jobs().Records(1, kStatementRecord)->at(kStatementRecord)));
    return PlanFirstPods(config, job.plan().train(), secrets.source()).value();
  }
};

TEST_F(FirstPodsOfAJob, TheFirstWorkerStartsWithTheMaster) {
  TrainUndisturbed();
  TrainWithFirstPods(std::chrono::seconds(3),
                     [this] { EXPECT_THAT(kubelet_->Running("master"), IsEmpty()); });
  EXPECT_EQ(kubelet_->Started("master").size(), 1U);
  EXPECT_EQ(kubelet_->Started("worker").size(), 2U);
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U);
  EXPECT_EQ(Count(2, "pod_started"), 1 + 2 + 2) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "worker_lost") + Count(2, "server_lost"), 0)
      << ::testing::PrintToString(Events(2));
  EXPECT_EQ(catalog_->jobs().Find(2)->rows_trained, 12 * kRowsTrained);
  EXPECT_EQ(Sha("m"), Sha("u"));
  ExpectNothingLeft();
}

// The first one is killed before it has begun: nothing is in the journal.
TEST_F(FirstPodsOfAJob, TheNextMasterTakesThemToo) {
  TrainUndisturbed();
  TrainWithFirstPods(std::chrono::seconds(2), [this] {
    kubelet_->Delete(fmt::format("job2-{}-master-1", OnlyTrainingJob().substr(5)), 1);
  });
  EXPECT_THAT(kubelet_->Started("master"), ElementsAre(HasSubstr("-master-2")));
  EXPECT_EQ(kubelet_->Started("worker").size(), 2U);
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U);
  EXPECT_EQ(Sha("m"), Sha("u"));
  ExpectNothingLeft();
}

// The job is granted none before it begins. The worker's pod is still leaving when the job may have
// workers again, so that its name is not free.
TEST_F(FirstPodsOfAJob, AWorkerThatIsNotWantedEndsAndOthersFollow) {
  TrainWithFirstPods(std::chrono::seconds(2), [this] {
    k8s::Grant grant;
    grant.workers = 0;
    GrantTrainingJob(OnlyTrainingJob(), grant);
    // The master reads the grant, and cannot begin yet.
    const std::jthread holder = HoldTerms();
    kubelet_->EndLate(std::chrono::seconds(4));
    EXPECT_TRUE(Eventually([&] { return Count(1, "workers_granted") >= 1; }));
    EXPECT_TRUE(Eventually([&] { return Count(1, "worker_drained") >= 1; }))
        << ::testing::PrintToString(Events(1));
    EXPECT_EQ(Count(1, "epoch_done"), 0);
    grant.workers = 2;
    GrantTrainingJob(OnlyTrainingJob(), grant);
    EXPECT_TRUE(Eventually([&] { return Count(1, "worker_started") >= 2; }));
    kubelet_->EndLate(std::chrono::seconds(0));
  });
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 12 * kRowsTrained);
  ExpectNothingLeft();
}

// From a gateway that was slow: the master had found no pod, and has not launched any yet.
TEST_F(FirstPodsOfAJob, ThoseThatComeLateAreTakenToo) {
  TrainWithFirstPods(std::chrono::seconds(2), [this] {
    const FirstPods again = PlannedPods();
    DeleteFirstPods(1);
    const std::jthread holder = HoldTerms();
    EXPECT_TRUE(Eventually([&] { return Count(1, "master_started") == 1; }));
    CreateFirstPods(kubelet_->client(), again, {});
    EXPECT_TRUE(FirstPodsRun());
  });
  EXPECT_EQ(kubelet_->Started("worker").size(), 1U + 2U);
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U + 2U);
  EXPECT_EQ(Count(1, "worker_started"), 2);
  EXPECT_EQ(Count(1, "worker_lost") + Count(1, "server_lost"), 0)
      << ::testing::PrintToString(Events(1));
  ExpectNothingLeft();
}

// Deleted before the master begins, and still running: nothing is kept on them.
TEST_F(FirstPodsOfAJob, ThoseThatLeaveAreReplacedAtOnce) {
  TrainUndisturbed();
  TrainWithFirstPods(std::chrono::seconds(2), [this] {
    kubelet_->EndLate(std::chrono::seconds(20));
    DeleteFirstPods(2);
    EXPECT_TRUE(Eventually([&] { return Count(2, "epoch_done") >= 1; }));
    kubelet_->EndLate(std::chrono::seconds(0));
  });
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U + 2U);
  EXPECT_EQ(kubelet_->Started("worker").size(), 1U + 2U);
  EXPECT_EQ(Count(2, "rolled_back"), 0);
  EXPECT_EQ(Sha("m"), Sha("u"));
}

}  // namespace
}  // namespace sluice::executor
