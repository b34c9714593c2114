#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::elastic {

// Adds the sums of another shard; `all` is empty before the first.
void AddUp(const std::vector<double>& own, std::vector<double>* all);

// A shard's sums as sent to the master (TaskReport::sums); both ends are of the same build.
std::string SumsToBytes(const std::vector<double>& sums);
// InvalidArgument: malformed.
Result<std::vector<double>> SumsFromBytes(const std::string& bytes);

}  // namespace sluice::elastic
