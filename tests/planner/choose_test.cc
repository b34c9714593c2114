#include "planner/choose.h"

#include <gtest/gtest.h>

#include <string>

#include "catalog/data_source.h"
#include "fake_source.h"
#include "models/model.pb.h"
#include "parser/parser.h"
#include "planner/grouped_number.h"
#include "planner/metric_list.h"
#include "planner/plan.pb.h"

namespace sluice::planner {
namespace {

class Choose : public ::testing::Test {
 protected:
  Choose() { source_.tables["t"] = SmallCensus(400); }

  plan::TrainPlan Train(const std::string& clauses, int64_t claimed_rows = 0) {
    source_.tables["t"].claimed_rows = claimed_rows;
    auto parsed = parser::Parse("SELECT * FROM t " + clauses);
    EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
    Options options;
    options.local_cpus = 2;
    auto plan = MakePlan(std::get<parser::TrainStatement>(parsed->at(0)), source_, source_.models(),
                         options);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->train() : plan::TrainPlan();
  }

  FakeSource source_;
};

TEST_F(Choose, ShortFormTakesTreesNetworksForHugeTables) {
  const plan::TrainPlan trees = Train("LABEL income INTO m");
  EXPECT_EQ(trees.model().type(), "xgboost.gbtree");
  EXPECT_NE(trees.chosen_because().find("2 classes of income"), std::string::npos);
  EXPECT_EQ(trees.early_stopping().patience(), 10U);  // as for a trial, on folds
  EXPECT_EQ(Train("LABEL income WITH auto.seconds=0 INTO m").folds(), 5U);
  EXPECT_EQ(Train("LABEL income INTO m", 20'000).early_stopping().patience(), 10U);
  EXPECT_EQ(Train("LABEL income INTO m", 100'000'000).model().type(),
            "DNNLinearCombinedClassifier");
  EXPECT_EQ(Train("LABEL hours INTO m").model().features().label().kind(),
            models::LabelPlan::NUMBER);
}

TEST_F(Choose, ShortFormFollowsAttributesThatOnlyNetworksHave) {
  EXPECT_EQ(Train("LABEL income WITH model.hidden_units=[8] INTO m").model().type(),
            "DNNClassifier");
  EXPECT_EQ(Train("LABEL income COLUMN EMBEDDING(workclass, 4) INTO m").model().type(),
            "DNNClassifier");
}

TEST_F(Choose, SplitsByTheTablesSize) {
  const std::string train = "TO TRAIN LinearClassifier LABEL income INTO m";
  EXPECT_EQ(Train(train, 150).split().kind(), plan::Split::NONE);
  EXPECT_EQ(Train(train, 5'000).split().fraction(), 0.1);
  EXPECT_EQ(Train(train, 32'561).split().fraction(), 0.05);
  EXPECT_EQ(Train(train, 10'000'000).split().fraction(), 0.002);  // 20,000 rows
  EXPECT_EQ(
      Train("TO TRAIN LinearClassifier WITH split.kind=none LABEL income INTO m").split().kind(),
      plan::Split::NONE);
  EXPECT_EQ(Train("TO TRAIN LinearClassifier WITH split.kind=time, split.column=age, "
                  "split.fraction=0.25 LABEL income INTO m")
                .split()
                .threshold(),
            50);  // ages are distributed evenly from 20 to 59
}

TEST_F(Choose, SmallTablesAreGoneOverMoreOften) {
  const auto schedule = [](int64_t rows) {
    return ChooseSchedule(models::ModelFamily::kDeep, rows, true, false);
  };
  EXPECT_EQ(schedule(110).epochs, 116U);
  EXPECT_EQ(schedule(110).batch_size, 32U);
  EXPECT_EQ(schedule(400).epochs, 32U);
  EXPECT_EQ(schedule(2'000).epochs, 200U);
  EXPECT_EQ(schedule(32'561).epochs, 19U);
  EXPECT_EQ(schedule(32'561).batch_size, 256U);
  EXPECT_EQ(schedule(1'000'000).epochs, 1U);
  EXPECT_EQ(schedule(0).epochs, 200U);
}

TEST_F(Choose, NetworksStopWhereValidationRowsSay) {
  const std::string head = "TO TRAIN DNNClassifier WITH model.hidden_units=[4]";
  const std::string tail = " LABEL income INTO m";
  EXPECT_GT(Train(head + tail, 2'000).early_stopping().patience(), 0U);
  EXPECT_EQ(Train(head + ", train.epoch=7" + tail, 2'000).early_stopping().patience(), 0U);
  EXPECT_EQ(Train(head + tail, 400).early_stopping().patience(), 0U);
  const plan::TrainPlan census = Train(head + tail, 32'561);
  EXPECT_EQ(census.early_stopping().patience(), 9U);
  EXPECT_EQ(census.early_stopping().plateau(), 3U);
  EXPECT_EQ(census.epochs(), 200U);
  EXPECT_EQ(census.split().fraction(), 0.1);
  const plan::TrainPlan patient = Train(head + ", train.early_stopping_rounds=30" + tail, 32'561);
  EXPECT_EQ(patient.early_stopping().patience(), 30U);
  EXPECT_EQ(patient.early_stopping().plateau(), 3U);
  EXPECT_FALSE(patient.early_stopping().chosen());
  EXPECT_EQ(Train(head + ", train.early_stopping_rounds=0" + tail, 32'561).epochs(), 19U);
  const plan::TrainPlan huge = Train(head + tail, 20'000'000);
  EXPECT_EQ(huge.epochs(), 1U);
  EXPECT_EQ(huge.early_stopping().patience(), 0U);
  EXPECT_EQ(Train(head + tail, 1'000'000).strategy().kind(), plan::Strategy::LOCAL);
  const plan::TrainPlan all = Train(head + ", split.kind='none'" + tail, 2'000);
  EXPECT_EQ(all.early_stopping().patience(), 0U);
  EXPECT_EQ(all.notes_size(), 0);
}

TEST_F(Choose, LinearModelsGoToTheirOptimum) {
  const auto optimum = [this](const std::string& attributes, int64_t rows = 32'561) {
    return Train("TO TRAIN LinearClassifier " + attributes + " LABEL income INTO m", rows)
        .optimum();
  };
  EXPECT_TRUE(optimum(""));
  EXPECT_TRUE(optimum("", 400));
  EXPECT_TRUE(optimum("WITH split.kind='none', engine.seed=3"));
  EXPECT_FALSE(optimum("", 100'000'000)) << "its rows would be read for each of many passes";
  for (const char* given :
       {"train.epoch=10", "train.max_steps=10", "train.batch_size=10",
        "train.early_stopping_rounds=3", "model.optimizer='Adam'", "optimizer.learning_rate=0.1",
        "engine.sync=true", "engine.num_workers=2, engine.num_ps=1",
        "engine.num_workers=2, engine.staleness=2", "engine.strategy='allreduce'",
        "model.loss='Hinge'"}) {
    EXPECT_FALSE(optimum(std::string("WITH ") + given)) << given;
  }
  const plan::TrainPlan fleet =
      Train("TO TRAIN LinearClassifier WITH engine.num_workers=2 LABEL income INTO m");
  EXPECT_TRUE(fleet.optimum());
  EXPECT_EQ(fleet.strategy().parameter_servers(), 0U);
  EXPECT_EQ(fleet.strategy().workers(), 2U);
  const plan::TrainPlan told =
      Train("TO TRAIN LinearClassifier WITH train.epoch=10 LABEL income INTO m", 400);
  EXPECT_EQ(told.batch_size(), 32U);
  EXPECT_EQ(told.epochs(), 10U);
}

TEST_F(Choose, TreesOfWhichNothingIsSaidStopByThemselves) {
  const auto attribute = [](const plan::TrainPlan& plan, const std::string& name) {
    for (const models::Attribute& one : plan.model().attributes()) {
      if (one.name() == name) {
        return one.value_case() == models::Attribute::kInteger ? static_cast<double>(one.integer())
                                                               : one.number();
      }
    }
    return -1.0;
  };
  const plan::TrainPlan open = Train("TO TRAIN xgboost.gbtree LABEL income INTO m", 100'000);
  EXPECT_EQ(attribute(open, "train.num_boost_round"), 100);
  EXPECT_EQ(attribute(open, "eta"), 0.1);
  EXPECT_EQ(open.early_stopping().patience(), 10U);
  EXPECT_EQ(attribute(open, "train.nthread"), -1);
  const plan::TrainPlan given =
      Train("TO TRAIN xgboost.gbtree WITH train.num_boost_round=7 LABEL income INTO m", 2'000);
  EXPECT_EQ(attribute(given, "train.num_boost_round"), 7);
  EXPECT_EQ(attribute(given, "eta"), 0.3);
  EXPECT_EQ(given.early_stopping().patience(), 0U);
  EXPECT_EQ(attribute(given, "train.nthread"), 1) << "few cells";
}

TEST_F(Choose, FleetsWhereTheyAreAskedForOrNeeded) {
  const std::string head = "TO TRAIN DNNClassifier WITH model.hidden_units=[4]";
  const std::string tail = " LABEL income INTO m";
  EXPECT_EQ(Train(head + tail).strategy().kind(), plan::Strategy::LOCAL);
  EXPECT_EQ(Train(head + tail, 2'000'000'000).strategy().kind(), plan::Strategy::PARAMETER_SERVER);
  const plan::Strategy asked = Train(head + ", engine.num_workers=4" + tail).strategy();
  EXPECT_EQ(asked.kind(), plan::Strategy::PARAMETER_SERVER);
  EXPECT_EQ(asked.mode(), plan::Strategy::ASYNCHRONOUS);
  EXPECT_EQ(asked.workers(), 4U);
  EXPECT_EQ(asked.parameter_servers(), 1U);
  EXPECT_EQ(asked.max_parameter_servers(), 0U);
  const plan::Strategy growing =
      Train(head + ", engine.num_workers=4, engine.num_ps=2, engine.max_ps=4" + tail).strategy();
  EXPECT_EQ(growing.parameter_servers(), 2U);
  EXPECT_EQ(growing.max_parameter_servers(), 4U);
  EXPECT_EQ(Train(head + ", engine.max_ps=3" + tail).strategy().replicas(), 1U);
  const plan::Strategy synchronous =
      Train(head + ", engine.sync=true, engine.min_workers=2, engine.max_workers=5" + tail)
          .strategy();
  EXPECT_EQ(synchronous.mode(), plan::Strategy::SYNCHRONOUS);
  EXPECT_EQ(synchronous.workers(), 2U);  // as many as there are processors
  const plan::Strategy bounded =
      Train(head + ", engine.num_workers=4, engine.staleness=3, engine.transport='bf16'" + tail)
          .strategy();
  EXPECT_EQ(bounded.mode(), plan::Strategy::BOUNDED_STALENESS);
  EXPECT_EQ(bounded.staleness(), 3U);
  EXPECT_EQ(bounded.transport(), plan::Strategy::BFLOAT16);
  EXPECT_EQ(asked.transport(), plan::Strategy::FLOAT32);
  const plan::Strategy all_reduce =
      Train(head + ", engine.strategy=allreduce, engine.num_workers=3" + tail).strategy();
  EXPECT_EQ(all_reduce.kind(), plan::Strategy::ALL_REDUCE);
  EXPECT_EQ(all_reduce.mode(), plan::Strategy::SYNCHRONOUS);
  EXPECT_EQ(all_reduce.parameter_servers(), 0U);
  EXPECT_EQ(Train(head + ", engine.strategy=local" + tail, 2'000'000'000).strategy().kind(),
            plan::Strategy::LOCAL);
}

// Otherwise the server would come as a surprise.
TEST_F(Choose, NoServersAreThoseOfAllReduce) {
  const std::string train = "TO TRAIN DNNClassifier WITH engine.num_workers=4, engine.num_ps=";
  const plan::TrainPlan none = Train(train + "0 LABEL income INTO m");
  EXPECT_EQ(none.strategy().parameter_servers(), 1U);
  ASSERT_EQ(none.notes_size(), 1);
  EXPECT_NE(none.notes(0).find("engine.strategy='allreduce' trains without any"), std::string::npos)
      << none.notes(0);
  EXPECT_EQ(Train(train + "1 LABEL income INTO m").notes_size(), 0);
  EXPECT_EQ(Train(train + "0, engine.strategy='allreduce' LABEL income INTO m").notes_size(), 0);
}

TEST_F(Choose, TreesTakeWorkersWithoutServersWhereTheyAreAskedForOrTheTableIsLarge) {
  const auto train = [this](const std::string& attributes, int64_t rows) {
    return Train("TO TRAIN xgboost.gbtree WITH " + attributes + " LABEL income INTO m", rows);
  };
  EXPECT_EQ(train("max_depth=4", 1'000'000).strategy().kind(), plan::Strategy::LOCAL);
  const plan::TrainPlan asked = train("train.num_workers=8, engine.num_ps=2", 700);
  EXPECT_EQ(asked.strategy().kind(), plan::Strategy::PARAMETER_SERVER);
  EXPECT_EQ(asked.strategy().workers(), 8U);
  EXPECT_EQ(asked.strategy().parameter_servers(), 0U);
  ASSERT_EQ(asked.without_effect_size(), 1);
  EXPECT_TRUE(asked.without_effect(0).starts_with("engine.num_ps: no effect"));
  const plan::TrainPlan large = train("max_depth=4", 5'000'000);
  EXPECT_EQ(large.strategy().kind(), plan::Strategy::PARAMETER_SERVER);
  // Which rows judge is the same on one process.
  EXPECT_EQ(large.rows_per_shard(), train("engine.strategy='local'", 5'000'000).rows_per_shard());
}

TEST_F(Choose, TreesOfLibxgboostTrainInOneProcess) {
  const plan::TrainPlan plan =
      Train("TO TRAIN xgboost.dart WITH train.num_workers=8 LABEL income INTO m");
  EXPECT_EQ(plan.strategy().kind(), plan::Strategy::LOCAL);
  EXPECT_EQ(plan.strategy().workers(), 1U);
  EXPECT_EQ(plan.notes_size(), 1);
}

// The parts of a synchronous model do not depend on the number of workers.
TEST_F(Choose, OneStatementHasOneCutAndOneNumberOfMicroBatches) {
  const std::string head = "TO TRAIN DNNClassifier WITH model.hidden_units=[4], ";
  const std::string tail = " LABEL income INTO m";
  for (const int64_t rows : {700, 32'560, 3'000'000}) {
    const plan::TrainPlan one = Train(head + "engine.sync=true" + tail, rows);
    EXPECT_EQ(one.strategy().kind(), plan::Strategy::LOCAL);
    EXPECT_EQ(one.strategy().mode(), plan::Strategy::SYNCHRONOUS);
    EXPECT_EQ(one.strategy().micro_batches(), 8U);
    for (const char* engine :
         {"engine.sync=true, engine.strategy=local",
          "engine.sync=true, engine.num_ps=1, engine.num_workers=1",
          "engine.sync=true, engine.num_workers=2", "engine.sync=true, engine.num_workers=7",
          "engine.sync=true, engine.min_workers=3, engine.max_workers=16, engine.num_ps=3",
          "engine.strategy=allreduce, engine.num_workers=1",
          "engine.strategy=allreduce, engine.num_workers=5"}) {
      const plan::TrainPlan other = Train(head + engine + tail, rows);
      EXPECT_EQ(other.strategy().mode(), plan::Strategy::SYNCHRONOUS) << engine;
      EXPECT_EQ(other.strategy().micro_batches(), 8U) << engine;
      EXPECT_EQ(other.rows_per_shard(), one.rows_per_shard()) << engine;
      EXPECT_EQ(other.batch_size(), one.batch_size()) << engine;
    }
  }
}

TEST_F(Choose, MicroBatchesAreASynchronousStepsOwn) {
  const std::string head = "TO TRAIN DNNClassifier WITH model.hidden_units=[4], ";
  const std::string tail = " LABEL income INTO m";
  const plan::TrainPlan asked =
      Train(head + "engine.sync=true, engine.micro_batches=16, engine.num_workers=16" + tail);
  EXPECT_EQ(asked.strategy().micro_batches(), 16U);
  EXPECT_EQ(asked.notes_size(), 0);
  const plan::TrainPlan crowded = Train(head + "engine.sync=true, engine.num_workers=12" + tail);
  ASSERT_EQ(crowded.notes_size(), 1);
  EXPECT_EQ(crowded.notes(0),
            "12 workers share 8 micro-batches a step, so 4 of them stand by; "
            "engine.micro_batches=16 would give each one (and another model)");
  const plan::TrainPlan single =
      Train(head + "engine.sync=true, engine.micro_batches=1, engine.num_workers=2" + tail);
  EXPECT_EQ(single.strategy().mode(), plan::Strategy::SYNCHRONOUS);
  const plan::TrainPlan tiny = Train(head + "engine.sync=true, train.batch_size=3" + tail);
  EXPECT_EQ(tiny.strategy().micro_batches(), 2U);
}

TEST_F(Choose, ShardsAreWholeBatches) {
  plan::Strategy fleet;
  fleet.set_kind(plan::Strategy::PARAMETER_SERVER);
  EXPECT_EQ(ChooseRowsPerShard(1'000'000, 256, fleet) % 256, 0);
  EXPECT_LE(ChooseRowsPerShard(1'000'000, 256, fleet), 30'000);
  EXPECT_EQ(ChooseRowsPerShard(100, 256, fleet), 256);
  EXPECT_EQ(ChooseRowsPerShard(6'400, 100, fleet), 400);
  plan::Strategy local;
  EXPECT_EQ(ChooseRowsPerShard(1'000'000, 256, local), ChooseRowsPerShard(1'000'000, 256, fleet));
  EXPECT_EQ(ChooseRowsPerShard(32'560, 256, local), 9'984);
  // Eight shards for one step: a batch of all rows stays a single one.
  local.set_mode(plan::Strategy::SYNCHRONOUS);
  local.set_micro_batches(8);
  EXPECT_EQ(ChooseRowsPerShard(700, 700, local), 88);
}

TEST_F(Choose, AShardHasAsManyBatchesAsTheStatementSays) {
  const std::string head = "TO TRAIN DNNClassifier WITH model.hidden_units=[4], ",
                    tail = " LABEL income INTO m";
  EXPECT_EQ(
      Train(head + "engine.num_workers=2, train.batch_size=100, engine.batches_per_shard=8" + tail)
          .rows_per_shard(),
      800);
  // As ElasticDL spells it. A synchronous step takes an eighth of a batch from each shard.
  EXPECT_EQ(Train(head +
                  "engine.sync=true, train.batch_size=100, "
                  "engine.num_minibatches_per_task=8" +
                  tail)
                .rows_per_shard(),
            8 * 13);
  EXPECT_EQ(
      Train(head + "engine.batches_per_shard=2, train.batch_size=100" + tail).rows_per_shard(),
      200);
  const std::string trees = "TO TRAIN xgboost.gbtree WITH objective='binary:logistic'";
  EXPECT_EQ(Train(trees + ", engine.batches_per_shard=1" + tail).rows_per_shard(),
            Train(trees + tail).rows_per_shard());
  source_.tables["t"].claimed_rows = 2'000'000;
  const auto parsed =
      parser::Parse("SELECT * FROM t " + head +
                    "engine.num_workers=2, train.batch_size=1, engine.batches_per_shard=1" + tail);
  const auto many = MakePlan(std::get<parser::TrainStatement>(parsed->at(0)), source_,
                             source_.models(), Options());
  EXPECT_NE(many.status().ToString().find("shards of 1 rows would be 2,000,000 of them; at most "
                                          "1,000,000 are possible"),
            std::string::npos)
      << many.status().ToString();
}

TEST_F(Choose, ATableThatFitsIsOneShardWhereOneProcessTrains) {
  EXPECT_EQ(RowsOfWholeTable(16'000, 16, 256), 20'224);  // whole batches, and a quarter to spare
  EXPECT_EQ(RowsOfWholeTable(60'000, 16, 256), 0);
  EXPECT_EQ(RowsOfWholeTable(16'000, 500, 256), 0);
  EXPECT_EQ(RowsOfWholeTable(0, 0, 256), 0);
}

TEST_F(Choose, Sizes) {
  EXPECT_EQ(*ReadBytes("512MB", Span()), 512LL << 20);
  EXPECT_EQ(*ReadBytes("1.5 Gi", Span()), 3LL << 29);
  EXPECT_FALSE(ReadBytes("-1GB", Span()).ok());
  EXPECT_FALSE(ReadBytes("2XB", Span()).ok());
  EXPECT_EQ(GroupDigits(1234567), "1,234,567");
  EXPECT_EQ(GroupDigits(-999), "-999");
  EXPECT_EQ(FormatBytes(1536), "1.5 KB");
}

TEST_F(Choose, MetricLists) {
  models::ModelSpec model;
  EXPECT_EQ(*ReadMetrics("mean_absolute_error, MAE", model, Span()),
            (std::vector<std::string>{"mean_absolute_error", "mae"}));
  model.mutable_features()->mutable_label()->set_kind(models::LabelPlan::CLASS);
  EXPECT_EQ(*ReadMetrics(" AUC , accuracy_score,AUC", model, Span()),
            (std::vector<std::string>{"auc", "accuracy_score"}));
}

}  // namespace
}  // namespace sluice::planner
