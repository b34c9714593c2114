#include "executor/pods/controller_metrics.h"

#include <gmock/gmock.h>

namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ControllerMetrics : public ::testing::Test {
 protected:
  void SetUp() override {
    snapshot_.state.nodes = {{"a", {4, 0, 0}}, {"b", {2, 0, 0}}};
    AddJob("one", {});
    AddJob("two", k8s::Grant{3, {}, {}});
  }
  void AddJob(const std::string& name, std::optional<k8s::Grant> grant) {
    snapshot_.jobs.push_back({"team", name, std::move(grant), 1});
    snapshot_.state.jobs.emplace_back();
    decision_.targets.push_back({2, {}, {}});
    AddProcess(static_cast<int>(snapshot_.jobs.size()) - 1, 1);
  }
  void AddProcess(int job, double cpu) {
    elastic::ClusterProcess process;
    process.node = 0;
    process.job = job;
    process.request.cpu = cpu;
    snapshot_.state.processes.push_back(process);
  }
  void Decide(int at, const std::map<size_t, k8s::Grant>& changed = {}) {
    figures_.OnDecision(snapshot_, decision_, changed, std::chrono::seconds(at), 0.002);
  }
  std::string Page() const {
    elastic::MetricsText text;
    AddFigures(figures_, text);
    return text.text();
  }

  k8s::ClusterView::Snapshot snapshot_;
  elastic::ScalingDecision decision_;
  k8s::ControllerFigures figures_;
};

TEST_F(ControllerMetrics, SayWhatTheClusterHasAndWhoUsesIt) {
  AddProcess(elastic::ClusterProcess::kNone, 0.5);
  Decide(1, {{0, k8s::Grant{4, {}, {}}}});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("\nsluice_controller_processors 6\n"));
  EXPECT_THAT(page, HasSubstr("\nsluice_controller_processors_used{by=\"services\"} 0.5\n"));
  EXPECT_THAT(page, HasSubstr("\nsluice_controller_processors_used{by=\"jobs\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("granted_workers{namespace=\"team\",job=\"one\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("granted_workers{namespace=\"team\",job=\"two\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("running_workers{namespace=\"team\",job=\"two\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("decision_seconds_bucket{le=\"0.001\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("decision_seconds_bucket{le=\"0.003\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("decision_seconds_count 1\n"));
}

TEST_F(ControllerMetrics, AJobThatHasEndedDisappears) {
  Decide(1);
  EXPECT_THAT(Page(), HasSubstr("job=\"one\""));
  snapshot_.jobs.erase(snapshot_.jobs.begin());
  snapshot_.state.jobs.pop_back();
  snapshot_.state.processes.clear();
  Decide(2);
  EXPECT_THAT(Page(), Not(HasSubstr("job=\"one\"")));
  EXPECT_THAT(Page(), HasSubstr("job=\"two\""));
  figures_.Forget();
  EXPECT_THAT(Page(), Not(HasSubstr("job=")));
}

TEST_F(ControllerMetrics, PendingSecondsCountEachServiceOnce) {
  snapshot_.waiting_services = {"web-1", "web-2"};
  Decide(1);
  EXPECT_THAT(Page(), HasSubstr("waiting_pods 2\n"));
  EXPECT_THAT(Page(), HasSubstr("pending_seconds_count 0\n"));
  snapshot_.waiting_services = {"web-2"};
  Decide(3);
  snapshot_.waiting_services = {};
  Decide(21);
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("waiting_pods 0\n"));
  EXPECT_THAT(page, HasSubstr("pending_seconds_bucket{le=\"3\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("pending_seconds_bucket{le=\"30\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("pending_seconds_sum 22\n"));
}

}  // namespace
}  // namespace sluice::executor
