#include "tests/models/imports/onnx_builder.h"
#include "tests/process/cluster_job.h"

namespace sluice::executor {
namespace {

// A hidden layer of two numbers, with batch normalisation and dropout, as an ONNX file.
std::string Net() {
  models::OnnxBuilder b;
  b.Input("a", {1});
  b.Input("b", {1});
  b.Floats("hidden/w", {2, 4}, 0.15F);
  for (const char* name : {"scale", "shift", "mean", "variance"}) {
    b.Floats(name, {4}, 0.25F);
  }
  b.Floats("rate", {}, 0.1F);
  b.Floats("out/w", {4, 1}, -0.2F);
  models::OnnxBuilder::Set(&b.Node("Concat", {"a", "b"}, "x"), "axis", 1);
  b.Node("MatMul", {"x", "hidden/w"}, "h");
  b.Node("BatchNormalization", {"h", "scale", "shift", "mean", "variance"}, "n");
  b.Node("Relu", {"n"}, "r");
  b.Node("Dropout", {"r", "rate"}, "d");
  b.Node("MatMul", {"d", "out/w"}, "y");
  b.Output("y");
  return b.Bytes();
}

class UserType : public ClusterJobs {
 protected:
  void SetUp() override {
    ClusterJobs::SetUp();
    catalog::ModelVersion type;
    type.name = "net";
    type.type = "onnx";
    const auto stored = catalog_->model_types().Put(type, Net(), true);
    ASSERT_TRUE(stored.ok()) << stored.status().ToString();
  }

  // The digest of the weights.
  std::string Train(const std::string& engine, LocalCluster& cluster) {
    const std::string sql =
        "SELECT a, b, y FROM points TO TRAIN net WITH train.epoch=2, split.fraction=0.1, "
        "model.loss='logistic', " +
        engine + " LABEL y INTO m";
    const auto statements = parser::Parse(sql).value();
    planner::Options options;
    options.model_types = &catalog_->model_types();
    const auto plan = planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)),
                                        *source_, catalog_->models(), options);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    if (!plan.ok()) {
      return "";
    }
    RecordingSink sink;
    Context context{*source_, *catalog_, "tester", sql, {}, &cluster};
    const Status status = Execute(*plan, context, sink);
    EXPECT_TRUE(status.ok()) << engine << ": " << status.ToString();
    return status.ok() ? catalog_->models().Find("", "m", {}).value().weights_sha256 : "";
  }
};

TEST_F(UserType, G4_AnOnnxFileIsOneModelWhereverItTrains) {
  LocalCluster cluster(Machine(8));
  const std::string here = Train("engine.sync=true", cluster);
  for (const char* engine : {"engine.sync=true, engine.num_workers=2, engine.num_ps=2",
                             "engine.strategy='allreduce', engine.num_workers=3"}) {
    EXPECT_EQ(Train(engine, cluster), here) << engine;
  }
}

}  // namespace
}  // namespace sluice::executor
