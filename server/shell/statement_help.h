#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::server {

// How our statements are written: of one ("TRAIN", "alter model"), or with "" a line for each.
// NotFound names the nearest.
Result<std::string> StatementHelp(std::string_view topic);
std::vector<std::string> StatementHelpTopics();

}  // namespace sluice::server
