#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::server {

// The syntax of one of our statements ("TRAIN", "alter model"), or with "" one line for each.
// NotFound names the nearest.
Result<std::string> StatementHelp(std::string_view topic);
std::vector<std::string> StatementHelpTopics();

}  // namespace sluice::server
