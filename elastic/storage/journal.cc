#include "elastic/storage/journal.h"

#include <cstring>

#include "elastic/storage/crc32c.h"

namespace sluice::elastic {
namespace {

struct Header {
  uint32_t bytes = 0;
  uint32_t crc = 0;  // of the length and the entry
};

uint32_t FrameCrc(uint32_t bytes, std::string_view entry) {
  char length[sizeof(bytes)];
  std::memcpy(length, &bytes, sizeof(bytes));
  return Crc32c(entry, Crc32c({length, sizeof(length)}));
}

}  // namespace

void AppendFrame(std::string_view entry, std::string* stream) {
  Header header;
  header.bytes = static_cast<uint32_t>(entry.size());
  header.crc = FrameCrc(header.bytes, entry);
  stream->append(reinterpret_cast<const char*>(&header), sizeof(header));
  stream->append(entry);
}

std::vector<std::string> ReadFrames(std::string_view stream, size_t* whole) {
  std::vector<std::string> entries;
  *whole = 0;
  while (stream.size() >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, stream.data(), sizeof(header));
    if (stream.size() - sizeof(header) < header.bytes) {
      break;
    }
    const std::string_view entry = stream.substr(sizeof(header), header.bytes);
    if (FrameCrc(header.bytes, entry) != header.crc) {
      break;
    }
    entries.emplace_back(entry);
    stream.remove_prefix(sizeof(header) + header.bytes);
    *whole += sizeof(header) + header.bytes;
  }
  return entries;
}

}  // namespace sluice::elastic
