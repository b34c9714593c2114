#pragma once

#include <functional>
#include <string_view>

#include "server/shell/completion.h"

namespace sluice::server {

// As CompleteText, for text that is no command of the shell.
Completion CompleteStatement(std::string_view text,
                             const std::function<const CompletionNames&()>& names);

bool StartsInAnyCase(std::string_view text, std::string_view start);

}  // namespace sluice::server
