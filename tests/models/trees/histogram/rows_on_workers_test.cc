#include "models/trees/histogram/rows_on_workers_internal.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/trees/histogram/shard_sums.h"
#include "models/trees/histogram/tree_pass.pb.h"
#include "tests/models/trees/boosting.h"

namespace sluice::models::histogram {
namespace {

// Workers of one process. Before each pass some are lost, and shards go to others.
class Workers {
 public:
  Workers(const ModelSpec& spec, std::vector<FeatureBatch> shards, size_t count, uint32_t seed)
      : spec_(spec), shards_(std::move(shards)), random_(seed), workers_(count) {}

  // Held out: the rows of each shard.
  void HoldOut(std::vector<FeatureBatch> rows) { held_out_ = std::move(rows); }

  PassSearch Run() {
    return {.run = [this](const Pass& pass) { return Answer(pass); }};
  }
  int passes() const { return passes_; }

 private:
  Result<std::vector<std::string>> Answer(const Pass& pass) {
    ++passes_;
    std::vector<std::string> answers;
    std::vector<std::vector<int64_t>> dealt(workers_.size());
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      // Mostly the worker that had it, at times another one.
      const size_t worker = random_() % 7 == 0 ? random_() : shard;
      dealt[worker % workers_.size()].push_back(static_cast<int64_t>(shard));
    }
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w] == nullptr || random_() % 11 == 0) {  // lost: another one begins
        ASSIGN_OR_RETURN(workers_[w], MakeShardSums(spec_));
      }
      if (dealt[w].empty()) {
        continue;
      }
      ASSIGN_OR_RETURN(const bool follows, workers_[w]->Begin(pass.step));
      if (!follows) {
        ASSIGN_OR_RETURN(const bool whole, workers_[w]->Begin(pass.whole()));
        EXPECT_TRUE(whole);
      }
      for (const int64_t shard : dealt[w]) {
        const bool needs = workers_[w]->NeedsRows(shard);
        const auto i = static_cast<size_t>(shard);
        const FeatureBatch* held_out = held_out_.empty() ? &nothing_ : &held_out_[i];
        RETURN_IF_ERROR(
            workers_[w]->Add(shard, needs ? &shards_[i] : nullptr, needs ? held_out : nullptr));
        if (random_() % 3 == 0) {
          answers.push_back(workers_[w]->Take());
        }
      }
      answers.push_back(workers_[w]->Take());
    }
    return answers;
  }

  const ModelSpec spec_;
  const std::vector<FeatureBatch> shards_;
  std::vector<FeatureBatch> held_out_;
  const FeatureBatch nothing_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<PassSums>> workers_;
  int passes_ = 0;
};

std::vector<FeatureBatch> Cut(const FeatureBatch& rows, size_t shards) {
  std::vector<FeatureBatch> cut;
  for (size_t i = 0; i < shards; ++i) {
    cut.push_back(rows.Slice(rows.rows * i / shards, rows.rows * (i + 1) / shards));
  }
  return cut;
}

struct Trained {
  std::string bytes;
  std::vector<GradientBoosting::Round> rounds;
};

Trained Here(const ModelSpec& spec, const FeatureBatch& rows, const FeatureBatch& held_out) {
  Trained trained;
  const auto trees = MakeTrees(spec);
  Batches train({rows}), other({held_out});
  const Status status = trees->Train(
      train.Source(), held_out.rows > 0 ? other.Source() : GradientBoosting::BatchSource{},
      [&](const auto& round) { trained.rounds.push_back(round); }, {});
  EXPECT_TRUE(status.ok()) << status.ToString();
  trained.bytes = status.ok() ? trees->Save().value() : "";
  return trained;
}

Trained OnWorkers(const ModelSpec& spec, Workers* workers, bool holds_out) {
  Trained trained;
  const auto trees = MakeTrees(spec);
  const Status status =
      trees->TrainByPasses(workers->Run(), {}, holds_out,
                           [&](const auto& round) { trained.rounds.push_back(round); }, {}, {});
  EXPECT_TRUE(status.ok()) << status.ToString();
  trained.bytes = status.ok() ? trees->Save().value() : "other";
  return trained;
}

TEST(RowsOnWorkersTest, OneModelOnAnyNumberOfWorkersThatAreLost) {
  const FeatureBatch rows = ClassRows(9'000, 1, 3);
  for (const char* type : {"xgboost.gbtree", "XGBRFClassifier"}) {
    ModelSpec spec = ClassTrees(type, 6, 3);
    SetNumber(&spec, "subsample", 0.7);
    SetNumber(&spec, "colsample_bynode", 0.6);
    const std::string here = Here(spec, rows, {}).bytes;
    for (const size_t count : {1, 2, 5}) {
      Workers workers(spec, Cut(rows, 9), count, static_cast<uint32_t>(count));
      EXPECT_EQ(OnWorkers(spec, &workers, false).bytes, here) << type << count;
    }
  }
}

TEST(RowsOnWorkersTest, OfEveryObjectiveAndPolicy) {
  FeatureBatch rows = ClassRows(4'000, 2, 6);
  for (float& label : rows.labels) {
    label = label / 8 + 0.125F;
  }
  for (const char* objective : {"reg:squarederror", "reg:logistic", "count:poisson", "reg:gamma",
                                "reg:tweedie", "reg:pseudohubererror"}) {
    ModelSpec spec = TreeSpec("xgboost.gbtree", 5);
    AddNumber(&spec, "a");
    AddNumber(&spec, "b");
    AddCategory(&spec, "c", 4, 0);
    SetNumberLabel(&spec, 0, 1);
    SetText(&spec, "objective", objective);
    SetText(&spec, "grow_policy", "lossguide");
    SetInteger(&spec, "max_leaves", 9);
    const Trained here = Here(spec, rows, {});
    Workers workers(spec, Cut(rows, 4), 3, 7);
    const Trained there = OnWorkers(spec, &workers, false);
    EXPECT_EQ(there.bytes, here.bytes) << objective;
    ASSERT_EQ(there.rounds.size(), here.rounds.size());
    EXPECT_EQ(there.rounds.back().metrics.front().first, here.rounds.back().metrics.front().first);
    EXPECT_NEAR(there.rounds.back().metrics.front().second,
                here.rounds.back().metrics.front().second, 1e-4)
        << objective;
  }
}

TEST(RowsOnWorkersTest, StopsWithTheSameRoundByRowsHeldOut) {
  FeatureBatch rows = ClassRows(3'000, 4, 2);
  const FeatureBatch judges = ClassRows(900, 5, 2);
  for (size_t r = 0; r < rows.rows; r += 3) {
    rows.labels[r] = 1 - rows.labels[r];  // what is learnt of these is wrong
  }
  ModelSpec spec = ClassTrees("xgboost.gbtree", 60, 2);
  SetInteger(&spec, "train.early_stopping_rounds", 3);
  const Trained here = Here(spec, rows, judges);
  ASSERT_LT(here.rounds.size(), 60U);
  Workers workers(spec, Cut(rows, 5), 2, 3);
  workers.HoldOut(Cut(judges, 5));
  const Trained there = OnWorkers(spec, &workers, true);
  EXPECT_EQ(there.bytes, here.bytes);
  ASSERT_EQ(there.rounds.size(), here.rounds.size());
  EXPECT_EQ(there.rounds.back().metrics.back(), here.rounds.back().metrics.back());
}

TEST(RowsOnWorkersTest, GoesOnAfterAnyRound) {
  const FeatureBatch rows = ClassRows(2'000, 4, 3);
  ModelSpec spec = ClassTrees("xgboost.gbtree", 7, 3);
  SetInteger(&spec, "train.early_stopping_rounds", 5);
  const std::vector<FeatureBatch> judges = Cut(ClassRows(300, 5, 3), 3);
  std::vector<std::string> remembered;
  Workers first(spec, Cut(rows, 3), 2, 1);
  first.HoldOut(judges);
  PassSearch search = first.Run();
  search.memory.remember = [&](std::string what) { remembered.push_back(std::move(what)); };
  const auto trees = MakeTrees(spec);
  ASSERT_TRUE(trees->TrainByPasses(search, {}, true, {}, {}, {}).ok());
  ASSERT_EQ(remembered.size(), 8U);
  for (const size_t kept : {1, 4, 8}) {
    Workers others(spec, Cut(rows, 3), 2, 2);
    others.HoldOut(judges);
    search = others.Run();
    search.memory.remembered.assign(remembered.begin(),
                                    remembered.begin() + static_cast<std::ptrdiff_t>(kept));
    size_t further = 0;
    search.memory.remember = [&](const std::string&) { ++further; };
    const auto again = MakeTrees(spec);
    const Status status = again->TrainByPasses(search, {}, true, {}, {}, {});
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(again->Save().value(), trees->Save().value()) << kept;
    EXPECT_EQ(further, 8 - kept);
  }
}

TEST(RowsOnWorkersTest, RefusesDamagedTreesAndCuts) {
  const FeatureBatch rows = ClassRows(500, 4, 2);
  ModelSpec spec = ClassTrees("xgboost.gbtree", 2, 2);
  std::vector<std::string> steps, wholes;
  Workers workers(spec, Cut(rows, 1), 1, 1);
  const PassRun run = workers.Run().run;
  const PassRun heard = [&](const Pass& pass) {
    steps.push_back(pass.step);
    wholes.push_back(pass.whole());
    return run(pass);
  };
  ASSERT_TRUE(MakeTrees(spec)->TrainByPasses({.run = heard}, {}, false, {}, {}, {}).ok());
  TreePass pass;
  ASSERT_TRUE(pass.ParseFromString(wholes.back()));
  ASSERT_GT(pass.trees_size(), 0);
  const auto refused = [&](const std::function<void(TreePass*)>& damage) {
    TreePass damaged = pass;
    damage(&damaged);
    return !MakeShardSums(spec).value()->Begin(damaged.SerializeAsString()).ok();
  };
  EXPECT_FALSE(refused([](TreePass*) {}));
  EXPECT_TRUE(refused([](TreePass* one) { one->set_cuts(one->cuts().substr(1)); }));
  EXPECT_TRUE(refused([](TreePass* one) { one->set_cuts("cuts"); }));
  const auto split = [](TreePass* one) { return one->mutable_trees(0)->mutable_splits(0); };
  EXPECT_TRUE(refused([&](TreePass* one) { split(one)->set_node(1'000); }));
  EXPECT_TRUE(refused([&](TreePass* one) { split(one)->set_node(-1); }));
  EXPECT_TRUE(refused([&](TreePass* one) { split(one)->set_left(5); }));
  EXPECT_TRUE(refused([&](TreePass* one) { split(one)->set_column(77); }));
  EXPECT_TRUE(refused([&](TreePass* one) { split(one)->add_right_bins(100'000); }));
  EXPECT_TRUE(refused([](TreePass* one) { one->mutable_trees(0)->add_values(1); }));
}

TEST(RowsOnWorkersTest, NoRowsAndLabelsThatCannotBeLearntAreToldAsInProcess) {
  ModelSpec spec = ClassTrees("xgboost.gbtree", 2, 2);
  const auto trees = MakeTrees(spec);
  Workers none(spec, std::vector<FeatureBatch>(2), 1, 1);
  EXPECT_EQ(trees->TrainByPasses(none.Run(), {}, false, {}, {}, {}).message(),
            "no rows to train on: the select is empty");
  FeatureBatch rows = ClassRows(10, 1, 2);
  rows.labels[3] = -1;
  SetText(&spec, "objective", "count:poisson");
  Workers negative(spec, Cut(rows, 2), 1, 1);
  EXPECT_FALSE(MakeTrees(spec)->TrainByPasses(negative.Run(), {}, false, {}, {}, {}).ok());
}

}  // namespace
}  // namespace sluice::models::histogram
