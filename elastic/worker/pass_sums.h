#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::elastic {

// Sums of another shard on top of those before it; `all` is empty before the first.
void AddUp(const std::vector<double>& own, std::vector<double>* all);

// A shard's sums on their way to its master (TaskReport::sums): both are of one build.
std::string SumsToBytes(const std::vector<double>& sums);
// InvalidArgument: no such thing.
Result<std::vector<double>> SumsFromBytes(const std::string& bytes);

}  // namespace sluice::elastic
