#pragma once

#include <string>
#include <string_view>

namespace sluice::server::pgwire {

// Whether a text that SQLite holds can be sent as one: UTF-8 without NUL.
bool IsShowable(std::string_view text);
// As PostgreSQL prints a bytea, which stands for a text that is not showable.
std::string HexText(std::string_view bytes);

}  // namespace sluice::server::pgwire
