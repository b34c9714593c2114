#include <gmock/gmock.h>

#include <csignal>

#include "tests/process/cluster_job.h"

namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Searches whose trainings run on workers and servers, one after the other.
class SearchJobs : public ClusterJobs {
 protected:
  // Synchronous, so that equal settings give equal weights.
  static constexpr char kEngine[] =
      "train.epoch=2, split.fraction=0.1, engine.sync=true, engine.num_workers=2";

  static std::string SearchText(const std::string& attributes) {
    return "SELECT a, b, y FROM points TO TRAIN DNNClassifier WITH " + attributes + ", " + kEngine +
           " LABEL y INTO m";
  }
  // Diverges where the learning rate is large.
  static std::string RegressionText(const std::string& attributes) {
    return "SELECT a, b FROM points TO TRAIN DNNRegressor WITH model.optimizer=SGD, " + attributes +
           ", " + kEngine + " LABEL b INTO m";
  }
  catalog::ModelVersion Model() const { return catalog_->models().Find("", "m", {}).value(); }
  plan::TrainPlan PlanOf(const catalog::ModelVersion& version) const {
    plan::TrainPlan plan;
    EXPECT_TRUE(plan.ParseFromString(version.plan));
    return plan;
  }
  // The name of the stored model's candidate.
  static std::string Kept(const plan::TrainPlan& plan) {
    for (const plan::Candidate& candidate : plan.contest().candidates()) {
      if (candidate.outcome() == "kept") {
        return candidate.name();
      }
    }
    return "none";
  }
  void ExpectNothingLeft(int64_t job) const {
    EXPECT_EQ(ChildrenOf(getpid()), 0);
    EXPECT_THAT(catalog_->jobs().Records(job, "").value(), ::testing::IsEmpty());
    EXPECT_THAT(catalog_->jobs().Journal(job).value(), ::testing::IsEmpty());
  }
};

TEST_F(SearchJobs, TheBestIsKeptAsItWasTrained) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const Status status =
      Run(SearchText("tune.model.hidden_units=[[1], [16]], tune.trials=3, tune.search=random"),
          cluster, *source_, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const catalog::ModelVersion best = Model();
  const plan::TrainPlan plan = PlanOf(best);
  ASSERT_EQ(plan.contest().candidates_size(), 3);
  for (const plan::Candidate& candidate : plan.contest().candidates()) {
    EXPECT_TRUE(candidate.has_value()) << candidate.name();
  }
  EXPECT_NE(Kept(plan), "model.hidden_units=[1]");
  EXPECT_EQ(Count(1, "candidate"), 3);
  EXPECT_EQ(best.version, 1);  // the others were never stored
  EXPECT_EQ(catalog_->jobs().Count().value(), 1);
  ExpectNothingLeft(1);

  const std::string widths = Kept(plan) == "as it is" ? "model.hidden_units=[128, 64]" : Kept(plan);
  RecordingSink again;
  const Status alone = Run(SearchText(widths), cluster, *source_, again);
  ASSERT_TRUE(alone.ok()) << alone.ToString();
  EXPECT_EQ(Model().weights_sha256, best.weights_sha256) << widths;
}

TEST_F(SearchJobs, LostWorkersAndMastersChangeNothing) {
  LocalCluster cluster(Machine(8));
  const std::string text =
      SearchText("tune.model.hidden_units=[[2], [16], [16, 4]], tune.trials=4, tune.search=random");
  RecordingSink undisturbed;
  const Status first = Run(text, cluster, *source_, undisturbed);
  ASSERT_TRUE(first.ok()) << first.ToString();
  const catalog::ModelVersion model = Model();

  RecordingSink sink;
  bool worker = false, master = false;
  sink.on_progress = [&] {
    const int over = Count(2, "candidate");
    if (!worker && over == 0 && sink.progress.back().rows_done > 0) {
      const Result<int> pid = cluster.ProcessId("job2-trial0-worker-1");
      worker = pid.ok() && kill(*pid, SIGKILL) == 0;
    }
    if (worker && !master && over >= 1) {
      const Result<int> pid = cluster.ProcessId("job2-master");
      master = pid.ok() && kill(*pid, SIGKILL) == 0;
    }
  };
  const Status second = Run(text, cluster, *source_, sink);
  ASSERT_TRUE(second.ok()) << second.ToString();
  EXPECT_TRUE(worker);
  EXPECT_TRUE(master);
  EXPECT_GE(Count(2, "worker_lost"), 1);
  EXPECT_EQ(Count(2, "master_lost"), 1);
  EXPECT_EQ(Model().weights_sha256, model.weights_sha256);
  EXPECT_EQ(Kept(PlanOf(Model())), Kept(PlanOf(model)));
  EXPECT_EQ(Count(2, "candidate"), 4);  // no training that was over is repeated
  ExpectNothingLeft(2);
}

TEST_F(SearchJobs, AStoppedSearchKeepsTheBestSoFar) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  std::stop_source stop;
  sink.on_progress = [&] {
    if (Count(1, "candidate") >= 1) {
      stop.request_stop();
    }
  };
  const Status status =
      Run(SearchText("tune.model.dropout=[0, 0.5], tune.trials=40, tune.search=random"), cluster,
          *source_, sink, stop.get_token());
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Count(1, "search_stopped"), 1);
  const plan::TrainPlan plan = PlanOf(Model());
  EXPECT_NE(Kept(plan), "none");
  EXPECT_EQ(plan.contest().candidates(39).outcome(), "not tried");
  ExpectNothingLeft(1);
}

TEST_F(SearchJobs, OneStoppedBeforeItsFirstModelKeepsNone) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  std::stop_source stop;
  sink.on_progress = [&] { stop.request_stop(); };
  const Status status =
      Run("SELECT a, b, y FROM points TO TRAIN DNNClassifier WITH tune.model.dropout=[0, 0.5], "
          "train.epoch=2000, split.fraction=0.1, engine.num_workers=2 LABEL y INTO m",
          cluster, *source_, sink, stop.get_token());
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_FALSE(catalog_->models().Find("", "m", {}).ok());
  ExpectNothingLeft(1);
}

TEST_F(SearchJobs, ACandidateThatFailsDoesNotFailTheRest) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const Status status =
      Run(RegressionText("tune.optimizer.learning_rate=[0.001, 1000, 0.002], tune.trials=4, "
                         "tune.search=random"),
          cluster, *source_, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const plan::TrainPlan plan = PlanOf(Model());
  int failed = 0;
  for (const plan::Candidate& candidate : plan.contest().candidates()) {
    failed += candidate.has_value() ? 0 : 1;
  }
  EXPECT_EQ(failed, 1);
  EXPECT_NE(Kept(plan), "none");
  ExpectNothingLeft(1);
}

TEST_F(SearchJobs, CandidatesThatAllFailLeaveNothing) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const Status status =
      Run(RegressionText("optimizer.learning_rate=1000, tune.model.hidden_units=[[4], [8]], "
                         "tune.trials=2"),
          cluster, *source_, sink);
  EXPECT_THAT(status.ToString(), HasSubstr("none of the 2 candidates could be trained"));
  EXPECT_FALSE(catalog_->models().Find("", "m", {}).ok());
  ExpectNothingLeft(1);
}

TEST_F(SearchJobs, TheShortFormTriesWhatTrainsOnSeveralProcesses) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const Status status =
      Run("SELECT a, b, y FROM points LABEL y WITH auto.seconds=5, engine.num_workers=2 INTO m",
          cluster, *source_, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const plan::TrainPlan plan = PlanOf(Model());
  ASSERT_GE(plan.contest().candidates_size(), 2);
  EXPECT_EQ(plan.contest().candidates(0).name(), "LinearClassifier");
  EXPECT_TRUE(plan.contest().candidates(0).has_value());
  EXPECT_EQ(plan.contest().candidates(1).name(), "xgboost.gbtree");
  EXPECT_EQ(plan.strategy().workers(), 2);
  EXPECT_NE(Kept(plan), "none");
  ExpectNothingLeft(1);
}

TEST_F(SearchJobs, SuccessiveHalvingTrainsTheBestFurther) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const Status status = Run(
      "SELECT a, b, y FROM points TO TRAIN DNNClassifier WITH tune.model.dropout=[0, 0.8], "
      "tune.trials=4, model.hidden_units=[8], train.epoch=9, split.fraction=0.1, engine.sync=true, "
      "engine.num_workers=2 LABEL y INTO m",
      cluster, *source_, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  // Four for an epoch, two for three, one for nine.
  EXPECT_EQ(Count(1, "candidate"), 7);
  EXPECT_THAT(Events(1), Contains(HasSubstr("11 % of the way")));
  ExpectNothingLeft(1);
}

}  // namespace
}  // namespace sluice::executor
