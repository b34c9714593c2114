#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "models/trees/histogram/learner.h"
#include "models/trees/histogram/objective.h"
#include "models/trees/histogram/settings.h"
#include "models/trees/histogram/threads.h"
#include "models/trees/histogram/training_rows.h"

namespace sluice::models::histogram {

// Rows in this process, read from a training's sources: once, or twice if they may not be kept.
class RowsHere final : public TrainingRows {
 public:
  // All must live as long.
  RowsHere(const Training& training, const Settings& settings, const Objective& objective,
           Threads* threads)
      : training_(training),
        settings_(settings),
        objective_(objective),
        threads_(*threads),
        pieces_(*training.train, *training.layout, *training.parameters, training.stop) {}

  Result<std::vector<ValueCounts>> Count() override;
  size_t rows() const override { return counted_; }
  Status Bin(const CutPoints* cuts) override;
  void Describe(ForestStart* start) const override;
  Status GoOn(const ForestStart& start, const CutPoints* cuts) override;
  RowShare* held_out() override { return held_out_.get(); }
  GradientRange MeasureLabels() override { return rows_->MeasureLabels(); }
  GradientSum SumLabels(const GradientScale& scale) override { return rows_->SumLabels(scale); }
  void StartFrom(float margin) override { rows_->StartFrom(margin); }
  Result<std::vector<GradientRange>> MeasureRange() override { return rows_->MeasureRange(); }
  void BeginRound(std::span<const GradientRange> ranges) override;
  Result<GradientSum> BeginTree(size_t output, uint64_t name) override;
  Result<std::vector<Histogram>> Sum(std::span<const int32_t> nodes) override;
  void Split(std::span<const RowShare::NodeSplit> splits) override { rows_->Split(splits); }
  void EndTree(const Tree& tree) override { rows_->EndTree(tree); }
  void AddTree(const GrownTree& tree) override;
  Result<RoundMetrics> Metrics(const std::vector<std::string>& names) override;
  // rows x outputs: the margins of now.
  std::vector<float> margins() const { return {rows_->margins().begin(), rows_->margins().end()}; }

 private:
  const Training& training_;
  const Settings& settings_;
  const Objective& objective_;
  Threads& threads_;
  RowPieces pieces_;
  size_t counted_ = 0;
  const CutPoints* cuts_ = nullptr;
  std::unique_ptr<RowShare> rows_, held_out_;
};

}  // namespace sluice::models::histogram
