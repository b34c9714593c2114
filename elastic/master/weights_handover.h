#pragma once

#include <utility>

#include "models/model.h"

namespace sluice::elastic {

// The end of a job, before which no worker exits: its weights may be in its workers' memory only
// (an all-reduce job's; one of them delivers them), and a later master that is to store them may
// find the job's snapshot with them only. Pure; not thread-safe.
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
