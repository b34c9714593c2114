#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// RFC 4648, section 4.
std::string EncodeBase64(std::string_view bytes);
// White space anywhere is passed over; padding may be left out. nullopt: it is no base64.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace sluice
