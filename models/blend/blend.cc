#include "models/blend/blend.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr int kMaxAdditions = 40;
// Members with a smaller weight cost more time than they are worth.
constexpr double kMinWeight = 0.04;
// In standard errors of the mean over the runs. The gain is measured on rows that the weights were
// not fitted on, so it is unbiased; this small margin is for the cost of the further models.
constexpr double kStandardErrors = 0.5;
constexpr double kStandardErrorsOfForecasts = 2;
constexpr double kMinProbability = 1e-6;
// For numbers, gains and losses beyond this quantile at either end are clipped: a single outlier
// may hold a tenth of all squared errors and would decide.
constexpr double kWinsorizedShare = 0.005;

// Keeps only what the loss of a prediction needs: for classes, the probability of the true one.
class Losses {
 public:
  explicit Losses(const BlendRows& rows) : classes_(rows.task != Task::kRegression) {
    const size_t width = rows.task == Task::kRegression ? rows.outputs : 1;
    count_ = rows.labels.size() / (rows.task == Task::kRegression ? rows.outputs : 1);
    width_ = width;
    labels_ = rows.labels;
    weights_ = rows.weights;
    runs_ = rows.runs;
    for (const std::span<const double> predictions : rows.predictions) {
      std::vector<double>& own = said_.emplace_back(count_ * width);
      for (size_t r = 0; r < count_; ++r) {
        if (!classes_) {
          std::copy_n(predictions.data() + r * width, width, own.data() + r * width);
        } else if (rows.outputs == 1) {
          own[r] = rows.labels[r] > 0.5 ? predictions[r] : 1 - predictions[r];
        } else {
          own[r] = predictions[r * rows.outputs + static_cast<size_t>(rows.labels[r])];
        }
      }
    }
  }

  bool classes() const { return classes_; }
  size_t rows() const { return count_; }
  size_t width() const { return width_; }
  size_t models() const { return said_.size(); }
  const std::vector<double>& said(size_t model) const { return said_[model]; }
  size_t RunOf(size_t row) const { return runs_.empty() ? row : runs_[row]; }
  // The loss of a row with the outputs `said`.
  double At(size_t row, const double* said) const {
    const double weight = weights_.empty() ? 1 : static_cast<double>(weights_[row]);
    if (classes_) {
      return -weight * std::log(std::max(*said, kMinProbability));
    }
    double sum = 0;
    for (size_t o = 0; o < width_; ++o) {
      const double off = said[o] - labels_[row * width_ + o];
      sum += off * off;
    }
    return weight * sum;
  }

 private:
  bool classes_;
  size_t count_ = 0;
  size_t width_ = 1;
  std::span<const double> labels_;
  std::span<const float> weights_;
  std::span<const uint32_t> runs_;
  std::vector<std::vector<double>> said_;
};

enum class Rows { kAll, kEven, kOdd };

bool Takes(Rows which, size_t run) {
  return which == Rows::kAll || (run % 2 == 0) == (which == Rows::kEven);
}

std::vector<double> FindWeights(const Losses& losses, size_t best, Rows which) {
  const size_t width = losses.width();
  std::vector<double> sum = losses.said(best);
  std::vector<int> times(losses.models());
  times[best] = 1;
  int count = 1;
  std::vector<double> mean(width);
  const auto loss_with = [&](const std::vector<double>* more) {
    const double share = 1.0 / (count + (more == nullptr ? 0 : 1));
    double loss = 0;
    for (size_t r = 0; r < losses.rows(); ++r) {
      if (!Takes(which, losses.RunOf(r))) {
        continue;
      }
      for (size_t o = 0; o < width; ++o) {
        const size_t i = r * width + o;
        mean[o] = (sum[i] + (more == nullptr ? 0 : (*more)[i])) * share;
      }
      loss += losses.At(r, mean.data());
    }
    return loss;
  };
  std::vector<int> best_times = times;
  int best_count = count;
  double least = loss_with(nullptr);
  while (count < kMaxAdditions) {
    size_t added = 0;
    double added_loss = std::numeric_limits<double>::infinity();
    for (size_t m = 0; m < losses.models(); ++m) {
      const double loss = loss_with(&losses.said(m));
      if (loss < added_loss) {
        added = m;
        added_loss = loss;
      }
    }
    if (!std::isfinite(added_loss)) {
      break;
    }
    const std::vector<double>& more = losses.said(added);
    std::transform(sum.begin(), sum.end(), more.begin(), sum.begin(), std::plus<>());
    ++times[added];
    ++count;
    if (added_loss < least) {
      least = added_loss;
      best_times = times;
      best_count = count;
    }
  }
  std::vector<double> weights;
  double total = 0;
  for (const int one : best_times) {
    const double weight = static_cast<double>(one) / best_count;
    weights.push_back(weight < kMinWeight ? 0 : weight);
    total += weights.back();
  }
  for (double& weight : weights) {
    weight /= total;
  }
  return weights;
}

std::vector<double> Winsorize(std::vector<double> gains) {
  const auto trimmed = static_cast<size_t>(kWinsorizedShare * static_cast<double>(gains.size()));
  if (trimmed == 0) {
    return gains;
  }
  std::vector<double> sorted = gains;
  std::sort(sorted.begin(), sorted.end());
  const double least = sorted[trimmed];
  const double most = sorted[sorted.size() - 1 - trimmed];
  for (double& gain : gains) {
    gain = std::clamp(gain, least, most);
  }
  return gains;
}

std::vector<double> SumByRun(const std::vector<double>& gains, const Losses& losses) {
  std::vector<double> sums;
  for (size_t r = 0; r < gains.size(); ++r) {
    if (r == 0 || losses.RunOf(r) != losses.RunOf(r - 1)) {
      sums.push_back(0);
    }
    sums.back() += gains[r];
  }
  return sums;
}

// Whether their mean is above zero by so many standard errors.
bool IsAboveZero(const std::vector<double>& gains, double standard_errors) {
  const auto n = static_cast<double>(gains.size());
  if (n < 2) {
    return false;
  }
  const double sum = std::accumulate(gains.begin(), gains.end(), 0.0);
  const double squares = std::inner_product(gains.begin(), gains.end(), gains.begin(), 0.0);
  const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1));
  return sum / n > standard_errors * std::sqrt(variance / n) && sum > 0;
}

// Whether the best model's loss is larger than the blend's, run by run, with weights fitted on the
// other half of the runs.
bool IsBetter(const Losses& losses, size_t best, double standard_errors) {
  const std::vector<double> weights[] = {FindWeights(losses, best, Rows::kEven),
                                         FindWeights(losses, best, Rows::kOdd)};
  const size_t width = losses.width();
  std::vector<double> mean(width);
  std::vector<double> gains(losses.rows());
  for (size_t r = 0; r < losses.rows(); ++r) {
    const std::vector<double>& of_others = weights[losses.RunOf(r) % 2 == 0 ? 1 : 0];
    for (size_t o = 0; o < width; ++o) {
      double value = 0;
      for (size_t m = 0; m < losses.models(); ++m) {
        value += of_others[m] * losses.said(m)[r * width + o];
      }
      mean[o] = value;
    }
    gains[r] = losses.At(r, losses.said(best).data() + r * width) - losses.At(r, mean.data());
  }
  if (!losses.classes()) {
    gains = Winsorize(std::move(gains));
  }
  return IsAboveZero(SumByRun(gains, losses), standard_errors);
}

// Identifies a member's input in the blend's list.
using InputKey = std::tuple<std::string, int32_t, std::string>;

InputKey KeyOf(const InputColumn& input) {
  return {input.name(), input.type(), input.time_format()};
}

void ReadInputsOf(const ModelSpec& blend, ModelSpec* member) {
  std::map<InputKey, uint32_t> places;
  for (int i = 0; i < blend.features().inputs_size(); ++i) {
    places.emplace(KeyOf(blend.features().inputs(i)), static_cast<uint32_t>(i));
  }
  FeaturePlan* features = member->mutable_features();
  for (Feature& feature : *features->mutable_features()) {
    for (uint32_t& input : *feature.mutable_inputs()) {
      input = places.at(KeyOf(features->inputs(static_cast<int>(input))));
    }
  }
  *features->mutable_inputs() = blend.features().inputs();
}

}  // namespace

Blend FitBlend(const BlendRows& rows, size_t best) {
  const Losses losses(rows);
  Blend blend;
  blend.weights = FindWeights(losses, best, Rows::kAll);
  blend.better =
      blend.weights[best] < 1 &&
      IsBetter(losses, best, rows.forecast ? kStandardErrorsOfForecasts : kStandardErrors);
  return blend;
}

std::vector<double> BlendPredictions(const BlendRows& rows, const std::vector<double>& weights) {
  std::vector<double> sum(rows.predictions.front().size());
  for (size_t m = 0; m < weights.size(); ++m) {
    if (weights[m] == 0) {
      continue;
    }
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] += weights[m] * rows.predictions[m][i];
    }
  }
  return sum;
}

ModelSpec JoinModels(const std::vector<std::pair<const ModelSpec*, double>>& members) {
  ModelSpec blend;
  blend.set_type(kBlendType);
  const ModelSpec& heaviest = *members.front().first;
  blend.set_seed(heaviest.seed());
  *blend.mutable_features() = heaviest.features();
  std::map<InputKey, bool> known;
  for (const InputColumn& input : heaviest.features().inputs()) {
    known[KeyOf(input)] = true;
  }
  for (const auto& [member, weight] : members) {
    for (const InputColumn& input : member->features().inputs()) {
      if (!known[KeyOf(input)]) {
        known[KeyOf(input)] = true;
        *blend.mutable_features()->add_inputs() = input;
      }
    }
  }
  for (const auto& [member, weight] : members) {
    BlendMember* joined = blend.add_members();
    *joined->mutable_model() = *member;
    joined->mutable_model()->clear_calibration();  // the blend has its own, if any
    joined->set_weight(weight);
    ReadInputsOf(blend, joined->mutable_model());
  }
  return blend;
}

namespace {

// The stored form: "SLBL", then each member's size in 8 bytes, little-endian, and its bytes.
constexpr std::string_view kBlendMagic = "SLBL";

}  // namespace

std::string PackBlend(const std::vector<std::string>& members) {
  std::string bytes(kBlendMagic);
  for (const std::string& member : members) {
    const uint64_t size = member.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += member;
  }
  return bytes;
}

Result<std::vector<std::string_view>> UnpackBlend(std::string_view bytes, size_t count) {
  std::vector<std::string_view> members;
  bool whole = bytes.starts_with(kBlendMagic);
  bytes.remove_prefix(whole ? kBlendMagic.size() : 0);
  while (whole && !bytes.empty()) {
    uint64_t size = 0;
    whole = bytes.size() >= sizeof(size);
    if (!whole) {
      break;
    }
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes.remove_prefix(sizeof(size));
    whole = size <= bytes.size() && members.size() < count;
    if (whole) {
      members.push_back(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
  }
  if (!whole || members.size() != count) {
    return InvalidArgument(fmt::format("the stored weights are not those of {} models", count))
        .Hint("train the model again, or roll back to an older version");
  }
  return members;
}

}  // namespace sluice::models
