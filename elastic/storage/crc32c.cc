#include "elastic/storage/crc32c.h"

#include <array>
#include <cstring>

namespace sluice::elastic {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0);
    }
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t ByTable(std::string_view bytes, uint32_t crc) {
  for (char byte : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t ByInstruction(std::string_view bytes, uint32_t crc) {
  uint64_t wide = crc;
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    wide = __builtin_ia32_crc32di(wide, word);
    bytes.remove_prefix(sizeof(word));
  }
  return ByTable(bytes, static_cast<uint32_t>(wide));
}
#endif

}  // namespace

uint32_t Crc32c(std::string_view bytes, uint32_t crc) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) {
    return ~ByInstruction(bytes, ~crc);
  }
#endif
  return ~ByTable(bytes, ~crc);
}

}  // namespace sluice::elastic
