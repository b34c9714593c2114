#include <fmt/core.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "executor/management/show_cluster.h"
#include "k8s/cluster_objects.h"
#include "tests/process/pods_fixture.h"

// `sluice controller` as a process of its own, beside real masters.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;

class PodsWithController : public Pods {
 protected:
  void SetUp() override {
    priority_class_ = "sluice-low";
    Pods::SetUp();
    if (IsSkipped()) {
      return;
    }
    // A master of a tenth, a server of one, and three workers of one leave 0.2.
    StartCluster({SLUICE_BINARY, 1, 4.3});
    Create(k8s::kNodes, "",
           R"({"metadata":{"name":"node-1"},
               "status":{"allocatable":{"cpu":"4300m","memory":"64Gi","pods":"110"}}})");
    constexpr k8s::Resource kClasses{"scheduling.k8s.io", "v1", "priorityclasses"};
    Create(kClasses, "", R"({"metadata":{"name":"sluice-high"},"value":-100})");
    Create(kClasses, "", R"({"metadata":{"name":"sluice-low"},"value":-1000})");
  }
  void Create(const k8s::Resource& resource, const std::string& where, const std::string& json) {
    const auto made = k8s::CreateAll(kubelet_->client(), {{resource, where, json}}, {});
    ASSERT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
  }
  void CreatePod(const std::string& name, const std::string& container, const std::string& cpu) {
    Create(k8s::kPods, kubelet_->namespace_name(),
           fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"app":"{}"}}}},"spec":{{)"
                       R"("containers":[{{"name":"{}","image":"i","args":["controller",)"
                       R"("--namespace","{}","--log-level","info"],)"
                       R"("resources":{{"requests":{{"cpu":"{}"}}}}}}]}}}})",
                       name, name, container, kubelet_->namespace_name(), cpu));
  }
  void StartController(const std::string& name) { CreatePod(name, "sluice", "0"); }
  void StartService(const std::string& name, const std::string& cpu) {
    CreatePod(name, "web", cpu);
  }
  bool HasWorkers(size_t workers) {
    return Eventually([&] { return kubelet_->Running("worker").size() == workers; });
  }
  // The only row of SHOW CLUSTER.
  std::vector<Value> ShowsCluster() {
    RecordingSink sink;
    Context context{*source_, *catalog_, "tester", "SHOW CLUSTER", {}, cluster_.get()};
    const Status shown = ShowCluster(context, sink);
    EXPECT_TRUE(shown.ok()) << shown.ToString();
    return sink.rows.size() == 1 ? sink.rows[0] : std::vector<Value>(11);
  }
  // As EXPLAIN says it.
  std::string StartForecastOf(const std::string& model) {
    const auto statements = parser::Parse(
        TrainText(model, "engine.num_workers=1, engine.max_workers=3, engine.num_ps=1"));
    const auto plan = planner::MakePlan(std::get<parser::TrainStatement>(statements.value().at(0)),
                                        *source_, catalog_->models(), OnPods());
    const auto forecast = cluster_->Forecast(plan.value().train(), {});
    EXPECT_TRUE(forecast.ok()) << forecast.status().ToString();
    return forecast.ok() ? elastic::DescribeStart(*forecast) : "";
  }
  double SecondsUntil(const std::function<bool()>& holds) {
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_TRUE(Eventually(holds));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }
  // Of every epoch that has ended.
  std::vector<std::string> RowsOfEpochs() {
    std::vector<std::string> rows;
    for (const std::string& event : Events(1)) {
      const size_t begin = event.find(": ", event.find("epoch_done"));
      if (event.find("epoch_done") != std::string::npos && begin != std::string::npos) {
        rows.push_back(event.substr(begin + 2, event.find(" rows") - begin - 2));
      }
    }
    return rows;
  }
};

TEST_F(PodsWithController, AServiceShrinksAJobAndLeavesItsRoomToAnother) {
  StartController("controller");
  CreateTrainingJob("nightly", TrainText("m", "train.epoch=100000"));
  PatchTrainingJob("nightly", R"({"spec":{"workers":{"max":3}}})");
  ASSERT_TRUE(HasWorkers(3)) << ::testing::PrintToString(Events(1))
                             << kubelet_->LogOf("controller");
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") >= 1; }));
  const auto before = kubelet_->Started("worker").size();

  StartService("web", "2");
  std::printf("the service runs after %.1f s\n",
              SecondsUntil([&] { return !kubelet_->NodeOf("web").empty(); }));
  EXPECT_TRUE(HasWorkers(1)) << ::testing::PrintToString(Events(1))
                             << kubelet_->LogOf("controller");
  EXPECT_EQ(kubelet_->Started("worker").size(), before) << "none was replaced in vain";
  const int epochs = Count(1, "epoch_done");
  EXPECT_TRUE(Eventually([&] { return Count(1, "epoch_done") > epochs; })) << "it trains on";

  // The first job may have been measured to gain nothing from a second worker on this machine.
  CreateTrainingJob("waiting", TrainText("another", "train.epoch=100000"));
  EXPECT_FALSE(
      Eventually([&] { return kubelet_->Running("worker").size() > 1; }, std::chrono::seconds(5)));
  kubelet_->Delete("web", 1);
  std::printf("its room is used after %.1f s\n",
              SecondsUntil([&] { return kubelet_->Running("worker").size() > 1; }));
  const int more = Count(1, "epoch_done");
  EXPECT_TRUE(Eventually([&] { return Count(1, "epoch_done") > more + 1; }));
  EXPECT_THAT(RowsOfEpochs(), ::testing::Each("14286")) << "15,000 without 714 for validation";
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_skipped, 0);
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
}

// Its TrainingJob is named by a label of its pods, not by its uid.
TEST_F(PodsWithController, AJobThatAStatementBeganSharesTheCluster) {
  StartController("controller");
  RecordingSink sink;
  std::jthread client([&](const std::stop_token& stop) {
    static_cast<void>(Train(
        "m", "train.epoch=100000, engine.num_workers=1, engine.max_workers=3, engine.num_ps=1",
        sink, stop));
  });
  ASSERT_TRUE(HasWorkers(3)) << ::testing::PrintToString(Events(1))
                             << kubelet_->LogOf("controller");
  const std::vector<Value> before = ShowsCluster();
  EXPECT_EQ(before.at(0), Value(std::string("node-1")));
  EXPECT_EQ(before.at(3), Value(0.0)) << "services";
  const auto processes = std::get<int64_t>(before.at(10));
  EXPECT_GE(processes, 3) << "a master of a tenth, a server, and workers as measured";
  EXPECT_NEAR(std::get<double>(before.at(4)), 0.1 + static_cast<double>(processes - 1), 1e-9);
  EXPECT_THAT(StartForecastOf("another"), HasSubstr("of 3 workers at once"));

  StartService("web", "2");
  EXPECT_TRUE(Eventually([&] { return !kubelet_->NodeOf("web").empty(); }))
      << ::testing::PrintToString(Events(1)) << kubelet_->LogOf("controller");
  EXPECT_TRUE(HasWorkers(1)) << kubelet_->LogOf("controller");
  EXPECT_EQ(ShowsCluster().at(3), Value(2.0));
}

// Without a controller the last grant stays; the next controller continues from there.
TEST_F(PodsWithController, AControllerThatIsKilledIsSucceeded) {
  StartController("controller");
  CreateTrainingJob("nightly", TrainText("m", "train.epoch=100000"));
  PatchTrainingJob("nightly", R"({"spec":{"workers":{"max":3}}})");
  ASSERT_TRUE(HasWorkers(3)) << ::testing::PrintToString(Events(1))
                             << kubelet_->LogOf("controller");
  ASSERT_TRUE(kubelet_->Kill("controller"));
  const std::string lost = kubelet_->Running("worker").at(0);
  ASSERT_TRUE(kubelet_->Kill(lost));
  EXPECT_TRUE(Eventually([&] {
    const std::vector<std::string> workers = kubelet_->Running("worker");
    return workers.size() == 3 && std::find(workers.begin(), workers.end(), lost) == workers.end();
  })) << "its master replaces it";
  StartService("web", "2");
  StartController("another");
  EXPECT_TRUE(HasWorkers(1)) << ::testing::PrintToString(Events(1)) << kubelet_->LogOf("another");
  EXPECT_TRUE(Eventually([&] { return !kubelet_->NodeOf("web").empty(); }));
}

}  // namespace
}  // namespace sluice::executor
