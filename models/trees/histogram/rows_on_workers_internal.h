#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/pass_training.h"
#include "models/trees/histogram/learner.h"
#include "models/trees/histogram/objective.h"
#include "models/trees/histogram/threads.h"
#include "models/trees/histogram/training_rows.h"
#include "models/trees/histogram/tree_pass.pb.h"

namespace sluice::models::histogram {

// Rows on many workers: each question is a pass, whose answers are merged here.
class RowsOnWorkers final : public TrainingRows {
 public:
  // All must live as long.
  RowsOnWorkers(const Training& training, const Objective& objective, Threads* threads,
                const PassRun& run);
  ~RowsOnWorkers() override;

  Result<std::vector<ValueCounts>> Count() override;
  size_t rows() const override { return rows_; }
  Status Bin(const CutPoints* cuts) override;
  void Describe(ForestStart* start) const override;
  Status GoOn(const ForestStart& start, const CutPoints* cuts) override;
  RowShare* held_out() override { return held_out_.get(); }
  GradientRange MeasureLabels() override { return labels_; }
  GradientSum SumLabels(const GradientScale&) override { return label_sum_; }
  void StartFrom(float margin) override;
  Result<std::vector<GradientRange>> MeasureRange() override;
  void BeginRound(std::span<const GradientRange> ranges) override;
  Result<GradientSum> BeginTree(size_t output, uint64_t name) override;
  Result<std::vector<Histogram>> Sum(std::span<const int32_t> nodes) override;
  void Split(std::span<const RowShare::NodeSplit> splits) override;
  void EndTree(const Tree& tree) override;
  void AddTree(const GrownTree& tree) override;
  // Those that are means over rows.
  Result<RoundMetrics> Metrics(const std::vector<std::string>& names) override;

 private:
  class History;

  // Asks `question` of all shards; leaves its own fields out of later passes.
  Result<std::vector<std::string>> Ask(TreePass question);
  Status HoldOut(const std::vector<LabelAnswer>& answers);
  Status ReadHeldOut();

  const Training& training_;
  const Objective& objective_;
  Threads& threads_;
  const PassRun& run_;
  const CutPoints* cuts_ = nullptr;

  std::vector<uint64_t> first_rows_;  // by shard: the name of its first row
  size_t rows_ = 0;
  GradientRange labels_;
  GradientSum label_sum_;
  float most_weight_ = 0;
  std::unique_ptr<RowShare> held_out_;

  const std::shared_ptr<History> history_;
  size_t trees_ = 0;       // complete
  size_t trees_told_ = 0;  // of them, those that workers which follow have
  TreePass step_;          // what has changed since the last pass
  std::optional<GrownTree> open_;
  std::optional<Histogram> root_;  // of the tree that has begun
};

}  // namespace sluice::models::histogram
