#include "models/metrics/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "models/byte_stream_internal.h"
#include "models/features/label_quantiles.h"
#include "models/features/label_scale.h"
#include "models/metrics/metric_state_internal.h"
#include "models/model.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr uint64_t kFormat = 3;  // first number of the serialised bytes; changes with the layout
// Limit for a count in the header, before the bytes are checked.
constexpr uint64_t kMaxOutputs = 1U << 20;

size_t StandardMetrics(Task task) {
  switch (task) {
    case Task::kBinary:
      return 8;
    case Task::kMulticlass:
      return 6;
    case Task::kRegression:
      return 5;
    case Task::kRanking:
    case Task::kQuantiles:
      return 1;
  }
  return 0;
}

void WriteClasses(const ClassSums& sums, ByteWriter* out) {
  for (const ClassSums::Class& one : sums.classes) {
    out->Double(one.hits);
    out->Double(one.predicted);
    out->Double(one.actual);
  }
  out->Double(sums.loss);
  out->Double(sums.score);
  out->Double(sums.brier);
  for (const ScoreHistogram& curve : sums.curves) {
    curve.Serialize(out);
  }
}

bool ReadClasses(ByteReader* in, ClassSums* sums) {
  for (ClassSums::Class& one : sums->classes) {
    one.hits = in->Double();
    one.predicted = in->Double();
    one.actual = in->Double();
  }
  sums->loss = in->Double();
  sums->score = in->Double();
  sums->brier = in->Double();
  for (ScoreHistogram& curve : sums->curves) {
    if (!curve.Deserialize(in)) {
      return false;
    }
  }
  return in->ok();
}

constexpr double NumberSums::*kNumberFields[] = {
    &NumberSums::unit,           &NumberSums::weight, &NumberSums::absolute,
    &NumberSums::squared,        &NumberSums::error,  &NumberSums::percent,
    &NumberSums::percent_weight, &NumberSums::mean,   &NumberSums::deviation};

void WriteRanking(const RankingSums& sums, ByteWriter* out) {
  out->Double(sums.ndcg);
  out->Double(sums.queries);
  out->Whole(sums.open ? 1 : 0);
  out->Whole(static_cast<uint64_t>(sums.group));
  out->Whole(sums.rows.size());
  for (const auto& [score, label] : sums.rows) {
    out->Double(score);
    out->Double(label);
  }
}

bool ReadRanking(ByteReader* in, RankingSums* sums) {
  sums->ndcg = in->Double();
  sums->queries = in->Double();
  sums->open = in->Whole() == 1;
  sums->group = static_cast<int64_t>(in->Whole());
  const uint64_t rows = in->Whole();
  if (rows > in->left() / (2 * sizeof(double))) {
    return false;
  }
  for (uint64_t i = 0; i < rows; ++i) {
    const double score = in->Double();
    const double label = in->Double();
    sums->rows.emplace_back(score, label);
  }
  return in->ok();
}

void WriteQuantiles(const std::vector<QuantileSums>& quantiles, ByteWriter* out) {
  out->Whole(quantiles.size());
  for (const QuantileSums& sums : quantiles) {
    out->Double(sums.quantile);
    out->Double(sums.loss);
    out->Double(sums.covered);
  }
}

bool ReadQuantiles(size_t outputs, ByteReader* in, std::vector<QuantileSums>* quantiles) {
  const uint64_t count = in->Whole();
  if (!in->ok() || (count != 0 && count != outputs)) {
    return false;
  }
  for (uint64_t i = 0; i < count && in->ok(); ++i) {
    QuantileSums& sums = quantiles->emplace_back();
    sums.quantile = in->Double();
    sums.loss = in->Double();
    sums.covered = in->Double();
  }
  return in->ok();
}

void WriteOwnLoss(const std::optional<OwnLossSums>& sums, ByteWriter* out) {
  out->Whole(sums ? 1 : 0);
  if (sums) {
    out->Double(sums->loss);
    out->Double(sums->weight);
  }
}

void ReadOwnLoss(ByteReader* in, std::optional<OwnLossSums>* sums) {
  if (in->Whole() != 1) {
    return;
  }
  sums->emplace();
  (*sums)->loss = in->Double();
  (*sums)->weight = in->Double();
}

void MergeQuantiles(const std::vector<QuantileSums>& from, std::vector<QuantileSums>* to) {
  if (to->empty()) {
    *to = from;
    return;
  }
  for (size_t i = 0; i < from.size(); ++i) {
    (*to)[i].loss += from[i].loss;
    (*to)[i].covered += from[i].covered;
  }
}

void MergeClasses(const ClassSums& from, ClassSums* to) {
  for (size_t i = 0; i < to->classes.size(); ++i) {
    to->classes[i].hits += from.classes[i].hits;
    to->classes[i].predicted += from.classes[i].predicted;
    to->classes[i].actual += from.classes[i].actual;
  }
  to->loss += from.loss;
  to->score += from.score;
  to->brier += from.brier;
  for (size_t i = 0; i < to->curves.size(); ++i) {
    to->curves[i].Merge(from.curves[i]);
  }
}

void MergeNumbers(const NumberSums& from, NumberSums* to) {
  const double weight = to->weight + from.weight;
  if (from.weight == 0) {
    return;
  }
  if (to->weight == 0) {
    *to = from;
    return;
  }
  // Chan's formula: means and squared deviations of two parts.
  const double distance = from.mean - to->mean;
  to->deviation += from.deviation + distance * distance * to->weight * from.weight / weight;
  to->mean += distance * from.weight / weight;
  to->weight = weight;
  to->absolute += from.absolute;
  to->squared += from.squared;
  to->error += from.error;
  to->percent += from.percent;
  to->percent_weight += from.percent_weight;
}

void MergeRanking(RankingSums from, RankingSums* to) {
  // Shards are cut between queries, so an open query does not continue in the other part.
  CloseQuery(&from);
  CloseQuery(to);
  to->ndcg += from.ndcg;
  to->queries += from.queries;
}

// 1 unless the label's numbers are beyond what can be squared.
double UnitOf(const LabelScale& label) {
  constexpr int kSquared = 400;  // a power of two whose square is far from the end of doubles
  const double size = std::max(std::fabs(label.mean), std::fabs(label.scale));
  const bool straight = label.curve == LabelCurve::kStraight;
  const int exponent = straight && size > 0 ? std::ilogb(size) : 0;
  return std::abs(exponent) <= kSquared ? 1 : std::ldexp(1.0, exponent);
}

}  // namespace

Metrics::Metrics(Task task, size_t outputs) : state_(std::make_unique<State>(task, outputs)) {}
Metrics::Metrics(const ModelSpec& model, size_t outputs) : Metrics(TaskOf(model), outputs) {
  if (state_->task == Task::kQuantiles) {
    for (const double quantile : LabelQuantiles(model)) {
      state_->quantiles.push_back({quantile, 0, 0});
    }
  }
  if (HasOwnLoss(model)) {
    state_->own_loss.emplace();
  }
  if (state_->task == Task::kRegression) {
    const Result<std::vector<LabelScale>> scales = LabelScales(model.features().label());
    for (size_t i = 0; scales.ok() && i < std::min(scales->size(), outputs); ++i) {
      state_->numbers[i].unit = UnitOf((*scales)[i]);
    }
  }
}
Metrics::Metrics(std::unique_ptr<State> state) : state_(std::move(state)) {}
Metrics::~Metrics() = default;
Metrics::Metrics(Metrics&&) noexcept = default;
Metrics& Metrics::operator=(Metrics&&) noexcept = default;

void Metrics::Add(std::span<const double> predictions, std::span<const double> labels,
                  std::span<const float> weights, std::span<const int64_t> groups) {
  const size_t rows = predictions.size() / state_->outputs;
  const bool vectors = labels.size() == predictions.size();
  SLUICE_CHECK(predictions.size() % state_->outputs == 0 && (vectors || labels.size() == rows) &&
                   (weights.empty() || weights.size() == rows) &&
                   (groups.empty() || groups.size() == rows),
               "predictions, labels, weights and groups of different rows");
  state_->rows += static_cast<double>(rows);
  switch (state_->task) {
    case Task::kBinary:
      state_->AddBinary(predictions, labels.first(rows), weights);
      break;
    case Task::kMulticlass:
      state_->AddClasses(predictions, labels.first(rows), weights);
      break;
    case Task::kRegression:
      state_->AddNumbers(predictions, labels, weights);
      break;
    case Task::kQuantiles:
      state_->AddQuantiles(predictions, labels.first(rows), weights);
      break;
    case Task::kRanking:
      state_->AddRanking(predictions, labels.first(rows), groups);
      break;
  }
}

void Metrics::AddOwnLoss(double loss, double weight) {
  if (!state_->own_loss) {
    state_->own_loss.emplace();
  }
  state_->own_loss->loss += loss;
  state_->own_loss->weight += weight;
}

std::string Metrics::CostThresholdName(std::string_view cost) {
  return std::string(kCostThreshold) + std::string(cost);
}

void Metrics::DecideFrom(double threshold) {
  state_->threshold = threshold;
}

void Metrics::Merge(const Metrics& other) {
  const State& from = *other.state_;
  SLUICE_CHECK(from.task == state_->task && from.outputs == state_->outputs,
               "metrics of different models");
  state_->rows += from.rows;
  state_->weight += from.weight;
  MergeClasses(from.classes, &state_->classes);
  for (size_t i = 0; i < state_->numbers.size(); ++i) {
    MergeNumbers(from.numbers[i], &state_->numbers[i]);
  }
  if (state_->task == Task::kRanking) {
    MergeRanking(from.ranking, &state_->ranking);
  }
  MergeQuantiles(from.quantiles, &state_->quantiles);
  if (from.own_loss) {
    AddOwnLoss(from.own_loss->loss, from.own_loss->weight);
  }
}

std::string Metrics::Serialize() const {
  ByteWriter out;
  out.Whole(kFormat);
  out.Whole(static_cast<uint64_t>(state_->task));
  out.Whole(state_->outputs);
  out.Double(state_->rows);
  out.Double(state_->weight);
  WriteClasses(state_->classes, &out);
  for (const NumberSums& sums : state_->numbers) {
    for (const auto field : kNumberFields) {
      out.Double(sums.*field);
    }
  }
  WriteRanking(state_->ranking, &out);
  if (state_->task == Task::kQuantiles) {
    WriteQuantiles(state_->quantiles, &out);
  }
  WriteOwnLoss(state_->own_loss, &out);
  return out.Take();
}

Result<Metrics> Metrics::Deserialize(std::string_view bytes) {
  ByteReader in(bytes);
  const uint64_t format = in.Whole();
  const uint64_t task = in.Whole();
  const uint64_t outputs = in.Whole();
  if (!in.ok() || format != kFormat || task > static_cast<uint64_t>(Task::kQuantiles) ||
      outputs == 0 || outputs > kMaxOutputs || outputs > in.left() / sizeof(double)) {
    return InvalidArgument("the bytes are not metrics of this version");
  }
  auto state = std::make_unique<State>(static_cast<Task>(task), outputs);
  state->rows = in.Double();
  state->weight = in.Double();
  bool good = ReadClasses(&in, &state->classes);
  for (NumberSums& sums : state->numbers) {
    for (const auto field : kNumberFields) {
      sums.*field = in.Double();
    }
  }
  good = good && ReadRanking(&in, &state->ranking) &&
         (state->task != Task::kQuantiles || ReadQuantiles(state->outputs, &in, &state->quantiles));
  ReadOwnLoss(&in, &state->own_loss);
  if (!good || !in.ok() || in.left() > 0) {
    return InvalidArgument("the bytes of metrics are cut short or damaged");
  }
  return Metrics(std::move(state));
}

std::vector<std::pair<std::string, double>> Metrics::Values() const {
  return Values({});
}

std::vector<std::pair<std::string, double>> Metrics::Values(
    const std::vector<std::string>& further) const {
  ScoreCurves curves(state_->classes);
  std::vector<std::pair<std::string, double>> values;
  const std::vector<std::string> names = Names(state_->task);
  for (size_t i = 0; i < StandardMetrics(state_->task); ++i) {
    values.emplace_back(names[i], state_->Value(names[i], &curves));
  }
  for (const QuantileSums& sums : state_->quantiles) {
    const std::string name = std::string(kCoverage) + QuantileName(sums.quantile);
    values.emplace_back(name, state_->Value(name, &curves));
  }
  if (state_->own_loss) {
    values.emplace_back(kOwnLoss, state_->Value(kOwnLoss, &curves));
  }
  for (const std::string& name : further) {
    const bool told = std::any_of(values.begin(), values.end(),
                                  [&name](const auto& value) { return value.first == name; });
    if (!told) {
      values.emplace_back(name, state_->Value(name, &curves));
    }
  }
  return values;
}

double Metrics::Value(std::string_view canonical_name) const {
  ScoreCurves curves(state_->classes);
  return state_->Value(canonical_name, &curves);
}

double Metrics::State::Value(std::string_view canonical_name, ScoreCurves* curves) const {
  if (canonical_name == kOwnLoss) {
    return own_loss && own_loss->weight > 0 ? own_loss->loss / own_loss->weight : kNotANumber;
  }
  switch (task) {
    case Task::kBinary:
    case Task::kMulticlass:
      return ClassValue(canonical_name, curves);
    case Task::kRegression:
      return NumberValue(canonical_name);
    case Task::kQuantiles:
      return QuantileValue(canonical_name);
    case Task::kRanking: {
      RankingSums sums = ranking;
      CloseQuery(&sums);
      return canonical_name == "ndcg" && sums.queries > 0 ? sums.ndcg / sums.queries : kNotANumber;
    }
  }
  return kNotANumber;
}

std::vector<std::string> Metrics::Names(const ModelSpec& model) {
  std::vector<std::string> names = Names(TaskOf(model));
  for (const double quantile : LabelQuantiles(model)) {
    names.push_back(std::string(kCoverage) + QuantileName(quantile));
  }
  if (HasOwnLoss(model)) {
    names.emplace_back(kOwnLoss);
  }
  return names;
}

std::vector<std::string> Metrics::StandardNames(const ModelSpec& model) {
  std::vector<std::string> names;
  for (auto& [name, value] : Metrics(model, 1).Values()) {
    names.push_back(std::move(name));
  }
  return names;
}

double Metrics::rows() const {
  return state_->rows;
}

}  // namespace sluice::models
