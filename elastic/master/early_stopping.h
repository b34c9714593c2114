#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/queue/keep_order.h"

namespace sluice::elastic {

// Which epoch's weights a job keeps, and when it stops because nothing improves any more. It judges
// by a metric of the evaluation or, if there is none, by the training loss. Pure; not thread-safe.
class EarlyStopping {
 public:
  using Metrics = std::vector<std::pair<std::string, double>>;
  struct Best {
    double value = std::numeric_limits<double>::quiet_NaN();
    Epoch epoch = kNoEpoch;
    Metrics metrics;
    int64_t step = -1;       // all-reduce: the weights after this many steps
    std::string digest;      // of the kept weights; empty: not reported yet
    uint32_t rate_cuts = 0;  // with which it was trained
  };

  // `patience`: epochs without improvement before the job stops; 0: off. `plateau`: epochs before
  // the learning rate is lowered, each time; 0: never. `metric`: must improve, by growing or by
  // shrinking; empty: the training loss.
  EarlyStopping(uint32_t patience, uint32_t plateau, std::string metric, bool higher_is_better)
      : patience_(patience),
        plateau_(plateau),
        metric_(std::move(metric)),
        higher_is_better_(higher_is_better) {}

  // The last evaluation judged these versions of the parameters, by partition.
  void SetJudged(std::vector<int64_t> versions) { judged_ = std::move(versions); }
  const std::vector<int64_t>& judged() const { return judged_; }

  // True: the epoch is the best so far, and its weights are to be kept.
  bool EndEpoch(Epoch epoch, double loss, const Metrics& metrics);
  bool PatienceOver(Epoch epoch) const;
  // The epoch after which the job ends unless something improves before; nullopt: there is none.
  std::optional<Epoch> EarliestEnd() const;
  // How often the learning rate is lowered before an epoch: known once the previous one has ended.
  uint32_t RateCuts(Epoch epoch) const;

  // The order to parameter servers.
  KeepOrder order() const { return {best_.epoch.value(), judged_}; }
  void SetDigest(const std::string& digest) { best_.digest = digest; }
  // The order to the members of an all-reduce job.
  void SetStep(int64_t step) { best_.step = step; }
  // Every member keeps the same weights: the first digest that is reported must be that of all.
  Status CheckKept(int64_t step, const std::string& digest);

  const Best& best() const { return best_; }
  // Continues from another one's state, or from nothing.
  void Restore(Best best, std::vector<int64_t> judged);

 private:
  bool Improves(double value, bool higher_is_better) const;

  const uint32_t patience_;
  const uint32_t plateau_;
  const std::string metric_;
  const bool higher_is_better_;
  Best best_;
  std::vector<int64_t> judged_;
};

}  // namespace sluice::elastic
