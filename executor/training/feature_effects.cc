#include "executor/training/feature_effects.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/worker/feature_reader.h"
#include "executor/scoring/scorer.h"
#include "models/metrics/metric.h"
#include "models/registry/registry.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr size_t kMaxRows = 2000;
constexpr size_t kMinRows = 100;
constexpr int64_t kMaxRowsRead = 10'000;
constexpr size_t kSampleRowsAtATime = 2048;
constexpr int64_t kMaxWeightBytes = int64_t{64} << 20;
// Limits of the cost: products of a weight and a value; and a share of the trained rows, each of
// which costs three times as much as a prediction.
constexpr double kMaxProducts = 5e9;
constexpr double kShareOfTraining = 0.15;
// A category with fewer rows in the sample is ignored.
constexpr size_t kMinOfCategory = 5;

size_t RowsToUse(const plan::TrainPlan& plan, int64_t rows_trained) {
  const double features = std::max(1, plan.model().features().features_size());
  const double parameters = static_cast<double>(std::max<int64_t>(plan.parameter_count(), 1));
  const double most = std::min({static_cast<double>(kMaxRows),
                                kShareOfTraining * static_cast<double>(rows_trained) / features,
                                kMaxProducts / (features * parameters)});
  return std::max(kMinRows, static_cast<size_t>(most));
}

struct Sample {
  models::FeatureBatch rows;
  bool validation = false;
};

// Rows that were not trained on, if there are enough of them.
Result<Sample> ReadSample(const plan::TrainPlan& plan, catalog::DataSource& source,
                          const catalog::DatasetSpec& dataset,
                          const models::FeatureTransform& transform, bool all_validation,
                          size_t wanted, std::stop_token stop) {
  elastic::FeatureReader::Options options;
  options.lock_wait = std::chrono::milliseconds(1000);
  if (!all_validation) {
    ASSIGN_OR_RETURN(options.split, elastic::SplitRule::Make(plan.split()));
  }
  const bool splits = options.split.splits();
  ASSIGN_OR_RETURN(const auto reader,
                   elastic::FeatureReader::Make(source, dataset, transform, options));
  models::FeatureBatch trained, held_out;
  int shard = 0;
  while (reader->rows_read() < kMaxRowsRead && held_out.rows < wanted &&
         (splits || trained.rows < wanted)) {
    if (stop.stop_requested()) {
      return Cancelled("the training was cancelled");
    }
    if (!reader->open()) {
      if (shard == dataset.shards_size()) {
        break;
      }
      RETURN_IF_ERROR(reader->Open(elastic::ShardId(shard++)));
    }
    ASSIGN_OR_RETURN(const bool more, reader->Next(kSampleRowsAtATime));
    if (!more) {
      continue;
    }
    if (splits) {
      reader->AppendValidation(&held_out);
    }
    if (trained.rows < wanted) {
      reader->AppendTraining(&trained);
    }
  }
  Sample sample;
  sample.validation = all_validation || held_out.rows >= kMinRows;
  models::FeatureBatch& rows = all_validation || !sample.validation ? trained : held_out;
  sample.rows = rows.Slice(0, std::min(rows.rows, wanted));
  return sample;
}

// Evaluates a model with changed values of a feature.
class Trials {
 public:
  Trials(Scorer& scorer, const models::ModelSpec& model, models::FeatureBatch rows)
      : scorer_(scorer),
        model_(model),
        classes_(model.features().label().kind() == models::LabelPlan::CLASS),
        rows_(std::move(rows)) {
    std::vector<uint32_t> order(rows_.rows);
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937_64 random(model.seed());
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random() % i]);
    }
    for (const uint32_t row : order) {
      shuffled_.Append(rows_.Slice(row, row + 1));
    }
  }

  const models::FeatureBatch& rows() const { return rows_; }
  size_t outputs() const { return scorer_.outputs(); }

  // Log odds for two classes, log probabilities for several, else numbers.
  Result<std::vector<double>> Outputs() {
    RETURN_IF_ERROR(scorer_.Score(rows_, &scores_));
    std::vector<double> outputs = scores_;
    if (!classes_) {
      return outputs;
    }
    const size_t width = scorer_.outputs();
    for (double& one : outputs) {
      const double p = std::clamp(one, 1e-7, 1 - 1e-7);
      one = width == 1 ? std::log(p / (1 - p)) : std::log(p);
    }
    for (size_t begin = 0; width > 1 && begin < outputs.size(); begin += width) {
      const double mean =
          std::accumulate(outputs.begin() + static_cast<int64_t>(begin),
                          outputs.begin() + static_cast<int64_t>(begin + width), 0.0) /
          static_cast<double>(width);
      for (size_t i = begin; i < begin + width; ++i) {
        outputs[i] -= mean;
      }
    }
    return outputs;
  }

  Result<double> Loss() {
    RETURN_IF_ERROR(scorer_.Score(rows_, &scores_));
    models::Metrics metrics(model_, scorer_.outputs());
    metrics.Add(scores_, rows_.OwnLabels(), rows_.weights, rows_.groups);
    return metrics.Value(models::TaskOf(model_) == models::Task::kQuantiles ? "pinball_loss"
                         : classes_                                         ? "log_loss"
                                                                            : "mse");
  }

  // Exchanges the feature's values with those of other rows; the second call restores them.
  void Swap(size_t feature) {
    for (const models::DenseColumn& column : scorer_.transform().dense_columns()) {
      for (size_t row = 0; column.feature == feature && row < rows_.rows; ++row) {
        const size_t begin = row * rows_.dense_width + column.offset;
        std::swap_ranges(rows_.dense.begin() + static_cast<int64_t>(begin),
                         rows_.dense.begin() + static_cast<int64_t>(begin + column.width),
                         shuffled_.dense.begin() + static_cast<int64_t>(begin));
      }
    }
    const auto& slots = scorer_.transform().slots();
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].feature == feature) {
        std::swap(rows_.slots[i], shuffled_.slots[i]);
      }
    }
  }

  // How much one standard deviation of a number changes the output; nullopt: it is not a single
  // number, or is constant.
  Result<std::optional<double>> Slope(size_t feature) {
    const models::DenseColumn* found = nullptr;
    for (const models::DenseColumn& column : scorer_.transform().dense_columns()) {
      found = column.feature == feature ? &column : found;
    }
    if (found == nullptr ||
        model_.features().features(static_cast<int>(feature)).kind() != models::Feature::NUMERIC) {
      return std::optional<double>();
    }
    double sum = 0, squares = 0;
    ForEachCell(*found, [&](float& cell) {
      sum += static_cast<double>(cell);
      squares += static_cast<double>(cell) * static_cast<double>(cell);
    });
    const auto count = static_cast<double>(rows_.rows);
    const auto deviation =
        static_cast<float>(std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count))));
    if (!(deviation > 0)) {
      return std::optional<double>();
    }
    ASSIGN_OR_RETURN(const std::vector<double> before, Outputs());
    const std::vector<float> kept = rows_.dense;
    ForEachCell(*found, [&](float& cell) { cell += deviation; });
    const Result<std::vector<double>> after = Outputs();
    rows_.dense = kept;
    RETURN_IF_ERROR(after.status());
    double difference = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      difference += (*after)[i] - before[i];
    }
    return std::optional(difference / count);
  }

  // Finds the values of a vocabulary that raise and lower the output most.
  Status FindExtremes(size_t feature, plan::FeatureEffect* effect) {
    const models::Feature& spec = model_.features().features(static_cast<int>(feature));
    const auto& slots = scorer_.transform().slots();
    const auto slot = std::find_if(slots.begin(), slots.end(),
                                   [&](const auto& one) { return one.feature == feature; });
    if (slot == slots.end() || spec.categorizer().kind() != models::Categorizer::VOCABULARY) {
      return OkStatus();
    }
    models::IdSlot& ids = rows_.slots[static_cast<size_t>(slot - slots.begin())];
    if (!ids.ends.empty()) {
      return OkStatus();
    }
    std::vector<size_t> seen(slot->buckets);
    for (const uint32_t id : ids.ids) {
      ++seen[id];
    }
    // In a linear model, the effect of a value does not depend on the row: try each value in the
    // first row.
    models::FeatureBatch all = std::exchange(rows_, rows_.Slice(0, 1));
    models::IdSlot& one = rows_.slots[static_cast<size_t>(slot - slots.begin())];
    double highest = 0, lowest = 0;
    Status scored;
    for (uint32_t id = 0; id < slot->buckets && scored.ok(); ++id) {
      if (seen[id] < kMinOfCategory ||
          static_cast<int>(id) >= spec.categorizer().vocabulary_size()) {
        continue;
      }
      one.ids.assign(1, id);
      const Result<std::vector<double>> output = Outputs();
      scored = output.status();
      if (!scored.ok()) {
        break;
      }
      const double value = output->front();
      const std::string& name = spec.categorizer().vocabulary(static_cast<int>(id));
      if (effect->most().empty() || value > highest) {
        highest = value;
        effect->set_most(name);
      }
      if (effect->least().empty() || value < lowest) {
        lowest = value;
        effect->set_least(name);
      }
    }
    rows_ = std::move(all);
    return scored;
  }

 private:
  template <typename Visit>
  void ForEachCell(const models::DenseColumn& column, const Visit& visit) {
    for (size_t row = 0; row < rows_.rows; ++row) {
      visit(rows_.dense[row * rows_.dense_width + column.offset]);
    }
  }

  Scorer& scorer_;
  const models::ModelSpec& model_;
  const bool classes_;
  models::FeatureBatch rows_;
  models::FeatureBatch shuffled_;
  std::vector<double> scores_;
};

// How far the feature's values spread the output: the standard deviation of their effects.
Result<double> Spread(Trials& trials, size_t feature, const std::vector<double>& before) {
  trials.Swap(feature);
  const Result<std::vector<double>> after = trials.Outputs();
  trials.Swap(feature);
  RETURN_IF_ERROR(after.status());
  double squares = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const double moved = (*after)[i] - before[i];
    squares += moved * moved;
  }
  return std::sqrt(squares / 2 / static_cast<double>(std::max<size_t>(before.size(), 1)));
}

Result<double> LossWithout(Trials& trials, size_t feature) {
  trials.Swap(feature);
  Result<double> loss = trials.Loss();
  trials.Swap(feature);
  return loss;
}

}  // namespace

Result<plan::FeatureEffects> FindFeatureEffects(const plan::TrainPlan& plan,
                                                catalog::DataSource& source,
                                                const catalog::DatasetSpec& dataset,
                                                const catalog::DatasetSpec* validation,
                                                std::string_view weights, int64_t rows_trained,
                                                std::stop_token stop) {
  plan::FeatureEffects effects;
  models::ModelSpec model = plan.model();
  model.clear_calibration();
  const models::ModelType* type = models::FindModelType(model.type());
  const catalog::DatasetSpec& from = validation != nullptr ? *validation : dataset;
  const bool network =
      type == nullptr ? model.has_graph() : type->family != models::ModelFamily::kTrees;
  if (!network || from.shards_size() == 0 ||
      static_cast<int64_t>(weights.size()) > kMaxWeightBytes) {
    return effects;
  }
  ASSIGN_OR_RETURN(const auto scorer, Scorer::Make(model, weights));
  ASSIGN_OR_RETURN(Sample sample,
                   ReadSample(plan, source, from, scorer->transform(), validation != nullptr,
                              RowsToUse(plan, rows_trained), stop));
  if (sample.rows.rows < 2) {
    return effects;
  }
  effects.set_rows(static_cast<int64_t>(sample.rows.rows));
  effects.set_validation(sample.validation);
  effects.set_linear(type != nullptr && type->family == models::ModelFamily::kLinear);
  Trials trials(*scorer, model, std::move(sample.rows));
  std::vector<double> outputs;
  double loss = 0;
  if (effects.linear()) {
    ASSIGN_OR_RETURN(outputs, trials.Outputs());
  } else {
    ASSIGN_OR_RETURN(loss, trials.Loss());
  }
  double sum = 0;
  for (int i = 0; i < model.features().features_size(); ++i) {
    if (stop.stop_requested()) {
      return Cancelled("the training was cancelled");
    }
    const auto feature = static_cast<size_t>(i);
    plan::FeatureEffect* effect = effects.add_features();
    effect->set_feature(model.features().features(i).name());
    if (!effects.linear()) {
      ASSIGN_OR_RETURN(const double without, LossWithout(trials, feature));
      effect->set_share(std::max(0.0, without - loss));
    } else {
      ASSIGN_OR_RETURN(const double spread, Spread(trials, feature, outputs));
      effect->set_share(spread);
      if (trials.outputs() == 1) {
        ASSIGN_OR_RETURN(const std::optional<double> slope, trials.Slope(feature));
        if (slope) {
          effect->set_slope(*slope);
        }
        RETURN_IF_ERROR(trials.FindExtremes(feature, effect));
      }
    }
    sum += effect->share();
  }
  for (plan::FeatureEffect& effect : *effects.mutable_features()) {
    effect.set_share(sum > 0 ? effect.share() / sum : 0);
  }
  return std::isfinite(sum) ? effects : plan::FeatureEffects();
}

}  // namespace sluice::executor
