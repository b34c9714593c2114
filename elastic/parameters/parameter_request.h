#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "elastic/parameters/parameter_rules.h"

namespace sluice::elastic {

// Data of several partitions are in ascending order of the partitions: chunks as each partition has
// them, rows grouped by partition.
struct PushRequest {
  MapVersion map_version = kNoMapVersion;
  std::span<const uint32_t> partitions;
  std::span<const int64_t> versions;  // by partition: from which the gradient was computed
  BatchIdentity batch;
  double weight = 0;  // sum of the batch's row weights
  bool end = false;   // synchronous: the lane has no such batch; there is no gradient
  std::vector<std::span<const float>> dense;  // by chunk
  std::vector<RowSpan> tables;
};

// The purpose of a pull.
enum class Purpose : uint8_t {
  kStep,        // to train the batch; synchronous: the values of its step, which must be open
  kLatest,      // to train, with the current values: the code that adds the gradients knows the
                // step
  kEvaluation,  // the current values; rows never trained are zeros, as in a prediction
};

struct PullRequest {
  MapVersion map_version = kNoMapVersion;
  std::span<const uint32_t> partitions;
  BatchIdentity batch;  // synchronous: the step that the values are for
  Purpose purpose = Purpose::kStep;
  std::vector<std::span<const int64_t>> tables;
  // By partition: the version of the dense values that the caller has; it gets them only if they
  // have changed. Empty: it has none.
  std::span<const int64_t> known;
  bool Knows(size_t i, int64_t version) const { return !known.empty() && known[i] == version; }
};

// Destination of pulled values. Empty `dense`: not wanted.
struct PullTarget {
  std::span<int64_t> versions;  // by partition
  std::vector<float*> dense;    // by chunk
  std::vector<float*> tables;
};

// Where each partition's part of a request begins: of partition i of the request, the chunks
// [dense[i], dense[i + 1]), and of table t the rows [rows[t][i], rows[t][i + 1]).
struct RequestCuts {
  std::vector<size_t> dense;
  std::vector<std::vector<size_t>> rows;
};
// InvalidArgument: an unknown row, a row in the wrong partition, another shape, a gradient that is
// not finite. `trusted`: its numbers have already been checked.
Result<RequestCuts> CutPush(const ParameterRules& rules, const PushRequest& request, bool trusted);
Result<RequestCuts> CutPull(const ParameterRules& rules, const PullRequest& request);

}  // namespace sluice::elastic
