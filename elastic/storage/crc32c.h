#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::elastic {

// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, as in RFC 3720 appendix B.4); by the
// processor's own instruction where it has one.
uint32_t Crc32c(std::string_view bytes, uint32_t crc = 0);

}  // namespace sluice::elastic
