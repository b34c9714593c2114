#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::server::pgwire {

// The code points of a text; nullopt: not valid UTF-8.
std::optional<std::vector<uint32_t>> DecodeUtf8(std::string_view text);

// Whether a text that SQLite holds can be sent as one: UTF-8 without NUL.
bool IsShowable(std::string_view text);
// As PostgreSQL prints a bytea, which stands for a text that is not showable.
std::string HexText(std::string_view bytes);

}  // namespace sluice::server::pgwire
