// Keepers of the masters of jobs on pods, over a fake API server.
#include "executor/pods/job_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "executor/pods/job_objects.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "k8s/api_verbs.h"
#include "k8s/lease.h"
#include "k8s/pod_spec.h"
#include "tests/k8s/tested_api_server.h"
#include "tests/support/eventually.h"

namespace sluice::executor {
namespace {

class JobKeeperTest : public ::testing::Test {
 protected:
  std::unique_ptr<JobKeeper> Start(const std::string& holder) {
    k8s::PodShape shape;
    shape.namespace_name = server_.namespace_name();
    auto keeper = JobKeeper::Start(
        server_.client(), std::move(shape), holder,
        [this, holder](const JobKeeper::Job& job, const Status& why) {
          const MutexLock lock(mutex_);
          given_up_ += holder + " gives up " + job.name + ": " + why.message() + "\n";
        },
        [this](const JobKeeper::Job& job, const KeptJob::Trouble& now) {
          const MutexLock lock(mutex_);
          troubles_.push_back(job.name + " " + now.reason);
        },
        {});
    EXPECT_TRUE(keeper.ok()) << keeper.status().ToString();
    (*keeper)->Begin();
    return *std::move(keeper);
  }
  static JobKeeper::Job JobOf(const std::string& uid, int64_t number) {
    JobKeeper::Job job{uid, PodJobName(number, uid), "", "", "sluice", number};
    job.secret = job.name + "-master";
    return job;
  }
  JobKeeper::Job MakeService(const std::string& uid, int64_t number) {
    JobKeeper::Job job = JobOf(uid, number);
    const auto made = k8s::CreateAll(server_.client(),
                                     {{k8s::kServices, server_.namespace_name(),
                                       JobServiceJson(job, server_.namespace_name(), 0)}},
                                     {});
    EXPECT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
    job.service_uid = made.at(0).object.uid;
    return job;
  }
  void MakeSecret(const JobKeeper::Job& job) {
    PodJobConfig config;
    config.set_job(job.number);
    config.set_uid(job.uid);
    k8s::PodShape shape;
    shape.namespace_name = server_.namespace_name();
    shape.owner = {"v1", "Service", job.name, job.service_uid};
    elastic::ProcessSpec spec;
    spec.role = elastic::Role::kMaster;
    spec.name = job.secret;
    spec.config = config.SerializeAsString();
    const auto json = k8s::BuildSecret(shape, {job.uid, spec.role, elastic::kNoIncarnation, {}},
                                       spec, job.secret);
    ASSERT_TRUE(json.ok()) << json.status().ToString();
    const auto made =
        k8s::CreateAll(server_.client(), {{k8s::kSecrets, server_.namespace_name(), *json}}, {});
    ASSERT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
  }
  bool HasSecret(const JobKeeper::Job& job) {
    return k8s::GetObject(server_.client(), k8s::kSecrets, server_.namespace_name(), job.secret, {})
        .ok();
  }
  // Read for its first master, and by each keeper, since it was there before the Service.
  void DeleteWhenKnown(const JobKeeper::Job& job, int reads = 2) {
    Until([&] { return server_.fake().Asked("get", "secrets") >= reads; });
    server_.Do(k8s::Verb::kDelete, k8s::kSecrets, job.secret, "", "");
    EXPECT_FALSE(HasSecret(job));
  }
  // "job7-abc-master-1 " of each pod that there is.
  std::string Pods() {
    std::string names;
    for (const k8s::Object& pod :
         k8s::ListObjects(server_.client(), {k8s::kPods, server_.namespace_name(), ""}, {})
             .objects) {
      names += pod.name + " ";
    }
    return names;
  }
  k8s::Creation PodNamed(const std::string& name) const {
    return {k8s::kPods, server_.namespace_name(),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                R"("},"spec":{"containers":[{"name":"sluice","image":"sluice"}]}})"};
  }
  // Another job, until its first worker is there: by then the keeper has looked at the others, too.
  void BeginAnother(JobKeeper& keeper, int64_t number) {
    const std::string worker = "worker" + std::to_string(number);
    const JobKeeper::Job job = MakeService("later" + std::to_string(number), number);
    MakeSecret(job);
    FirstPods pods;
    pods.workers = {PodNamed(worker)};
    keeper.Keep(job, pods);
    const std::string master = MasterPodName(job.name, 1);
    Until([&] { return Pods().find(master) != std::string::npos; });
    server_.Bind(master, "node-1");
    Until([&] { return Pods().find(worker) != std::string::npos; });
  }
  // The masters, and the first pods, of that job.
  std::string PodsOf(int64_t number) {
    std::istringstream all(Pods());
    std::string names;
    for (std::string name; all >> name;) {
      const bool ours = name.starts_with("job" + std::to_string(number) + "-") ||
                        name.ends_with("r" + std::to_string(number));
      names += ours ? name + " " : "";
    }
    return names;
  }
  void EndPod(const std::string& name, int code) {
    server_.SetStatus(name, R"({"phase":"Failed","containerStatuses":[{"name":"sluice",)"
                            R"("state":{"terminated":{"exitCode":)" +
                                std::to_string(code) + R"(,"reason":"Error"}}}]})");
  }
  std::string GivenUp() {
    const MutexLock lock(mutex_);
    return given_up_;
  }
  std::vector<std::string> Troubles() {
    const MutexLock lock(mutex_);
    return troubles_;
  }
  // The clock goes on meanwhile: a keeper that met a job without its Secret tries again later.
  void Until(const std::function<bool()>& done) {
    EXPECT_TRUE(Eventually([&] {
      server_.clock().Advance(std::chrono::milliseconds(2));
      return done();
    }));
  }

  k8s::TestedApiServer server_{false};
  Mutex mutex_;
  std::string given_up_ GUARDED_BY(mutex_);
  std::vector<std::string> troubles_ GUARDED_BY(mutex_);  // "job7-abc QuotaExceeded"
};

// Each once.
TEST_F(JobKeeperTest, WhatKeepsAMasterFromRunningIsTold) {
  server_.Do(k8s::Verb::kCreate, {"", "v1", "resourcequotas"}, "", "",
             R"({"metadata":{"name":"q"},"status":{"hard":{"pods":"0"}}})");
  auto keeper = Start("first");
  const JobKeeper::Job job = MakeService("abc", 7);
  MakeSecret(job);
  keeper->Keep(job);
  Until([&] { return !Troubles().empty(); });
  server_.Do(k8s::Verb::kDelete, {"", "v1", "resourcequotas"}, "q", "", "");
  const std::string master = MasterPodName(job.name, 1);
  Until([&] { return Pods() == master + " "; });
  server_.SetStatus(master, R"({"phase":"Pending","conditions":[{"type":"PodScheduled",)"
                            R"("status":"False","reason":"Unschedulable","message":"0/2"}]})");
  Until([&] { return Troubles().size() > 1; });
  EXPECT_EQ(Troubles(),
            (std::vector<std::string>{job.name + " QuotaExceeded", job.name + " MasterWaits"}));
}

// Otherwise they could take the room that it needs.
TEST_F(JobKeeperTest, AJobsFirstPodsAreCreatedWhenItsMasterHasANode) {
  auto first = Start("first");
  Until([&] { return first->leads(); });
  auto second = Start("second");
  const JobKeeper::Job job = MakeService("abcdef", 7);
  MakeSecret(job);
  FirstPods pods;
  pods.servers = {PodNamed("server7")};
  pods.workers = {PodNamed("worker7")};
  second->Keep(job, pods);  // begun where the keeper does not lead
  const std::string master = MasterPodName(job.name, 1);
  Until([&] { return Pods() == master + " "; });
  BeginAnother(*second, 8);
  EXPECT_EQ(PodsOf(7), master + " ");
  server_.Bind(master, "node-1");
  Until([&] { return PodsOf(7) == master + " server7 worker7 "; });
  // Once.
  ASSERT_TRUE(k8s::DeleteAll(server_.client(),
                             {{k8s::kPods, server_.namespace_name(), "worker7", "", 1}}, {})
                  .at(0)
                  .ok());
  BeginAnother(*second, 9);
  EXPECT_EQ(PodsOf(7), master + " server7 ");
}

TEST_F(JobKeeperTest, AServerThatIsRefusedLeavesTheWorkersToTheMaster) {
  auto keeper = Start("keeper");
  const JobKeeper::Job job = MakeService("abcdef", 7);
  MakeSecret(job);
  FirstPods pods;
  pods.servers = {PodNamed("server7")};
  pods.servers[0].json = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"server7"}})";
  pods.workers = {PodNamed("worker7")};
  keeper->Keep(job, pods);
  const std::string master = MasterPodName(job.name, 1);
  Until([&] { return Pods() == master + " "; });
  server_.Bind(master, "node-1");
  BeginAnother(*keeper, 8);
  EXPECT_EQ(PodsOf(7), master + " ");
  EXPECT_EQ(GivenUp(), "");
}

TEST_F(JobKeeperTest, OneOfTwoActsAndTheOtherTakesOverWhatItFinds) {
  auto first = Start("first");
  Until([&] { return first->leads(); });
  auto second = Start("second");
  // Begun by the gateway whose keeper does not act: the other one makes its master.
  const JobKeeper::Job job = MakeService("abcdef", 7);
  MakeSecret(job);
  second->Keep(job);
  const std::string master_1 = MasterPodName(job.name, 1), master_2 = MasterPodName(job.name, 2);
  Until([&] { return Pods() == master_1 + " "; });
  EXPECT_FALSE(second->leads());
  first.reset();  // hands its lease back
  Until([&] { return second->leads(); });
  // The master that runs is kept, and followed when it is lost.
  EndPod(master_1, 137);
  Until([&] { return Pods() == master_1 + " " + master_2 + " "; });
  EXPECT_EQ(GivenUp(), "");
}

TEST_F(JobKeeperTest, AKeeperThatIsSilentIsFollowedAfterEightSeconds) {
  k8s::LeaseClaim silent(server_.client(), {server_.namespace_name(), JobKeeper::kKeeperLease,
                                            "silent", JobKeeper::kSilenceSeconds});
  ASSERT_TRUE(silent.Round({})->ours);
  const JobKeeper::Job job = MakeService("abcdef", 7);
  MakeSecret(job);
  const auto keeper = Start("next");
  Until([&] { return server_.fake().Asked("get", "leases") >= 3; });
  EXPECT_FALSE(keeper->leads());
  server_.clock().Advance(std::chrono::seconds(JobKeeper::kSilenceSeconds));
  Until([&] { return Pods() == MasterPodName(job.name, 1) + " "; });
  EXPECT_TRUE(keeper->leads());
}

TEST_F(JobKeeperTest, AJobOfWhichAnotherKeeperHasMadeAnEndIsForgotten) {
  auto first = Start("first");
  Until([&] { return first->leads(); });
  const auto second = Start("second");
  const JobKeeper::Job job = MakeService("abcdef", 7);
  MakeSecret(job);
  first->Keep(job);
  second->Keep(job);
  Until([&] { return !Pods().empty(); });
  EndPod(MasterPodName(job.name, 1), 0);
  Until([&] { return first->jobs() == 0 && second->jobs() == 0; });
  EXPECT_EQ(GivenUp(), "");
}

TEST_F(JobKeeperTest, WhatOnlyOneGatewayKnowsEndsAJobThatAnotherKeeps) {
  const auto first = Start("first");
  Until([&] { return first->leads(); });
  const auto second = Start("second");
  const JobKeeper::Job job = MakeService("abcdef", 7);
  MakeSecret(job);
  Until([&] { return first->Keeps(job.uid) && second->Keeps(job.uid) && !Pods().empty(); });
  first->Suspend(job.uid, true, false);
  EndPod(MasterPodName(job.name, 1), kSuspendedExit);
  first->Suspend(job.uid, true, true);
  Until([&] { return Pods().empty(); });
  second->Forget(job.uid, Cancelled("CANCEL JOB while it was suspended"));
  Until([&] { return first->jobs() == 0 && second->jobs() == 0; });
  EXPECT_TRUE(GivenUp().starts_with("second gives up " + job.name +
                                    ": CANCEL JOB while it was suspended\n"))
      << GivenUp();
}

TEST_F(JobKeeperTest, AMasterWaitsForItsJobsSecret) {
  const auto keeper = Start("only");
  Until([&] { return keeper->leads(); });
  const JobKeeper::Job job = MakeService("abcdef", 7);
  Until([&] { return server_.fake().Asked("get", "secrets") >= 1; });
  MakeSecret(job);
  // It asks again after a fifth of a second of the clock.
  Until([&] {
    server_.clock().Advance(std::chrono::milliseconds(200));
    return !Pods().empty();
  });
  EXPECT_EQ(GivenUp(), "");
}

TEST_F(JobKeeperTest, AJobWhoseSecretNeverComesIsGivenUp) {
  const auto keeper = Start("only");
  Until([&] { return keeper->leads(); });
  const JobKeeper::Job job = MakeService("abcdef", 7);
  // Each time that it has looked: a busy machine may let it look seldom.
  int looked = 0;
  Until([&] {
    if (const int looks = server_.fake().Asked("get", "secrets"); looks > looked) {
      looked = looks;
      server_.clock().Advance(std::chrono::seconds(1));
    }
    return !GivenUp().empty();
  });
  EXPECT_EQ(GivenUp(), "only gives up " + job.name + ": its objects in Kubernetes were deleted\n");
  EXPECT_EQ(Pods(), "");
}

TEST_F(JobKeeperTest, ASecretThatWasDeletedIsMadeAgainForTheNextMaster) {
  const auto first = Start("first");
  Until([&] { return first->leads(); });
  MakeSecret(JobOf("abcdef", 7));
  const JobKeeper::Job job = MakeService("abcdef", 7);
  first->Keep(job);
  const std::string name = MasterPodName(job.name, 1);
  Until([&] { return Pods() == name + " "; });
  DeleteWhenKnown(job);
  EndPod(name, 1);
  Until([&] { return Pods().find(MasterPodName(job.name, 2)) != std::string::npos; });
  EXPECT_TRUE(HasSecret(job));
  EXPECT_EQ(GivenUp(), "");
}

// Its kubelet tries to mount it until it is there.
TEST_F(JobKeeperTest, ASecretThatWasDeletedIsMadeAgainForAMasterThatStarts) {
  const auto keeper = Start("only");
  Until([&] { return keeper->leads(); });
  MakeSecret(JobOf("abcdef", 7));
  const JobKeeper::Job job = MakeService("abcdef", 7);
  keeper->Keep(job);
  const std::string name = MasterPodName(job.name, 1);
  Until([&] { return Pods() == name + " "; });
  DeleteWhenKnown(job);
  server_.Bind(name, "node-1");
  Until([&] {
    server_.clock().Advance(std::chrono::milliseconds(100));
    return HasSecret(job);
  });
  EXPECT_EQ(Pods(), name + " ");
}

TEST_F(JobKeeperTest, WhoTakesOverKnowsTheSecrets) {
  auto first = Start("first");
  Until([&] { return first->leads(); });
  const auto second = Start("second");
  MakeSecret(JobOf("abcdef", 7));
  const JobKeeper::Job job = MakeService("abcdef", 7);
  first->Keep(job);
  const std::string name = MasterPodName(job.name, 1);
  Until([&] { return Pods() == name + " "; });
  DeleteWhenKnown(job, 3);
  first.reset();
  Until([&] { return second->leads(); });
  EndPod(name, 1);
  Until([&] { return Pods().find(MasterPodName(job.name, 2)) != std::string::npos; });
}

}  // namespace
}  // namespace sluice::executor
