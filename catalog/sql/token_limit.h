#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace sluice::catalog {

// Most tokens of a statement, or of a script in one message, for an embedded database: while a
// statement is translated each takes up to 140 bytes.
inline constexpr size_t kMostTokens = 2'000'000;

// 54000: it has more of them, by the rules of either dialect. Takes no memory. Thread-safe.
Status CheckTokens(std::string_view sql);

}  // namespace sluice::catalog
