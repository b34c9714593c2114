#pragma once

#include <utility>

#include "models/model.h"

namespace sluice::elastic {

// The end of an all-reduce job, whose weights are in its workers' memory only: one of them delivers
// these, and none may exit before they are stored. Pure; not thread-safe.
class WeightsHandover {
 public:
  void Deliver(models::NetworkWeights weights) { weights_ = std::move(weights); }
  models::NetworkWeights Take() { return std::move(weights_); }
  void Dismiss() { dismissed_ = true; }  // the weights are stored
  bool dismissed() const { return dismissed_; }

 private:
  models::NetworkWeights weights_;
  bool dismissed_ = false;
};

}  // namespace sluice::elastic
