#include "planner/checkpoints.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "fake_source.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"

namespace sluice::planner {
namespace {

class CheckpointsOfAPlan : public ::testing::Test {
 protected:
  CheckpointsOfAPlan() { source_.tables["t"] = SmallCensus(400); }
  Result<plan::Plan> Train(const std::string& model, const std::string& attributes,
                           const std::string& folder = "/c") {
    ASSIGN_OR_RETURN(const auto parsed, parser::Parse("SELECT * FROM t TO TRAIN " + model +
                                                      " WITH engine.checkpoint_dir='" + folder +
                                                      "'" + attributes + " LABEL income INTO m"));
    return MakePlan(std::get<parser::TrainStatement>(parsed.at(0)), source_, source_.models(),
                    options_);
  }
  plan::Checkpoints Of(const std::string& attributes) {
    const Result<plan::Plan> plan = Train("LinearClassifier", attributes);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->train().checkpoints() : plan::Checkpoints();
  }
  FakeSource source_;
  Options options_;
};

// A resumed job may have other processes and checkpoints, but not another training.
TEST_F(CheckpointsOfAPlan, P11_TheSameTrainingMayHaveOtherProcesses) {
  const std::string statement = Of("").statement();
  EXPECT_FALSE(statement.empty());
  for (const char* other : {", engine.num_workers=3", ", engine.max_workers=2, engine.num_ps=2",
                            ", engine.priority=3", ", train.save_checkpoints_steps=7"}) {
    EXPECT_EQ(Of(other).statement(), statement) << other;
  }
  for (const char* other : {", train.batch_size=7", ", engine.seed=5", ", train.epoch=3"}) {
    EXPECT_NE(Of(other).statement(), statement) << other;
  }
}

TEST_F(CheckpointsOfAPlan, P13_SayHowOftenAndHowMany) {
  const plan::Checkpoints some =
      Of(", train.save_checkpoints_steps=7, engine.keep_checkpoint_max=3");
  EXPECT_EQ(some.directory(), "/c");
  EXPECT_EQ(some.every_steps(), 7);
  EXPECT_EQ(some.keep(), 3U);
  EXPECT_EQ(Of(", engine.keep_checkpoint_max=0").keep(), 0U);
}

// The error points at a folder that cannot be used.
TEST_F(CheckpointsOfAPlan, P13_SayWhereTheFolderIsNamed) {
  const plan::Checkpoints checkpoints = Of("");
  const std::string text =
      "SELECT * FROM t TO TRAIN LinearClassifier WITH engine.checkpoint_dir='/c'";
  ASSERT_LT(checkpoints.place_begin(), text.size());
  EXPECT_EQ(text.substr(checkpoints.place_begin()), "'/c'");
  EXPECT_EQ(checkpoints.place_end(), text.size());
}

// Users of a gateway may not write to all folders that the gateway can write to.
TEST_F(CheckpointsOfAPlan, LieInTheFolderThatTheGatewayHasForThem) {
  const std::filesystem::path root =
      std::filesystem::canonical(std::filesystem::temp_directory_path()) / "sluice-no-such-folder";
  options_.checkpoint_root = root.string();
  for (const std::string& folder :
       std::vector<std::string>{"m", "./x/../m", (root / "m").string()}) {
    const Result<plan::Plan> plan = Train("LinearClassifier", "", folder);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_EQ(plan->train().checkpoints().directory(), (root / "m").string());
  }
  for (const char* folder : {".", "..", "../sluice-no-such-folder-either", "/c", "m/../../m"}) {
    const Status status = Train("LinearClassifier", "", folder).status();
    EXPECT_EQ(status.code(), Code::kPermissionDenied) << folder << ": " << status.ToString();
    EXPECT_NE(status.message().find("where checkpoints are kept"), std::string::npos);
    ASSERT_FALSE(status.diagnostics().empty());
    EXPECT_EQ(status.diagnostics()[0].span.begin, std::string_view("SELECT * FROM t TO TRAIN "
                                                                   "LinearClassifier WITH "
                                                                   "engine.checkpoint_dir=")
                                                      .size());
  }
  options_.checkpoint_root = "";
  EXPECT_EQ(Train("LinearClassifier", "").status().message(), "this gateway keeps no checkpoints");
}

TEST_F(CheckpointsOfAPlan, TreesCountRounds) {
  const Result<plan::Plan> plan = Train("xgboost.gbtree", "");
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->train().checkpoints().every_steps(), 10);
  EXPECT_EQ(plan->train().folds(), 0U);
}

TEST_F(CheckpointsOfAPlan, E9_WhatLibxgboostTrainsKeepsNone) {
  for (const char* attributes : {"xgboost.dart", "xgboost.gblinear"}) {
    const Status status = Train(attributes, "").status();
    EXPECT_NE(status.ToString().find("keep no checkpoints"), std::string::npos)
        << status.ToString();
  }
  EXPECT_FALSE(Train("xgboost.gbtree", ", tree_method='exact'").ok());
  const Status wrong = Train("xgboost.gbtree", ", no_such_attribute=1").status();
  EXPECT_EQ(wrong.ToString().find("keep no checkpoints"), std::string::npos) << wrong.ToString();
}

}  // namespace
}  // namespace sluice::planner
