#include "elastic/master/early_stopping.h"

#include <fmt/core.h>

#include <cmath>

namespace sluice::elastic {

bool EarlyStopping::Improves(double value, bool higher_is_better) const {
  if (std::isnan(value)) {
    return false;
  }
  return std::isnan(best_.value) || (higher_is_better ? value > best_.value : value < best_.value);
}

bool EarlyStopping::EndEpoch(Epoch epoch, double loss, const Metrics& metrics) {
  if (patience_ == 0) {
    return false;
  }
  double value = loss;
  bool higher_is_better = false;
  for (const auto& [name, metric] : metrics) {
    if (name == metric_) {
      value = metric;
      higher_is_better = higher_is_better_;
    }
  }
  const bool improves = Improves(value, higher_is_better);
  if (!improves && best_.epoch != kNoEpoch) {
    return false;
  }
  best_.value = improves ? value : best_.value;
  best_.rate_cuts = RateCuts(epoch);
  best_.epoch = epoch;
  best_.metrics = metrics;
  best_.digest.clear();
  return true;
}

bool EarlyStopping::PatienceOver(Epoch epoch) const {
  return patience_ > 0 && epoch - best_.epoch >= patience_;
}

std::optional<Epoch> EarlyStopping::EarliestEnd() const {
  if (patience_ == 0 || best_.epoch == kNoEpoch) {
    return std::nullopt;
  }
  return Epoch(best_.epoch.value() + patience_);
}

uint32_t EarlyStopping::RateCuts(Epoch epoch) const {
  if (plateau_ == 0 || best_.epoch == kNoEpoch) {
    return 0;
  }
  return best_.rate_cuts + (epoch.value() - best_.epoch.value() - 1) / plateau_;
}

Status EarlyStopping::CheckKept(int64_t step, const std::string& digest) {
  if (digest.empty() || step != best_.step) {
    return Status();
  }
  if (best_.digest.empty()) {
    best_.digest = digest;
  }
  if (digest != best_.digest) {
    return Internal(fmt::format("two workers keep different weights of step {}", step))
        .Detail(fmt::format("SHA-256 {} and {}", best_.digest, digest));
  }
  return Status();
}

void EarlyStopping::Restore(Best best, std::vector<int64_t> judged) {
  best_ = std::move(best);
  judged_ = std::move(judged);
}

}  // namespace sluice::elastic
