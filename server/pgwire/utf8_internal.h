#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::server::pgwire {

// The code points of a text; nullopt: not valid UTF-8.
std::optional<std::vector<uint32_t>> DecodeUtf8(std::string_view text);

}  // namespace sluice::server::pgwire
