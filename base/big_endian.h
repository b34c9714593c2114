#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

// Numbers as networks and file formats write them: the most significant byte first. Inline, because
// some are read and written for each cell.
namespace sluice {

template <std::integral Number>
void AppendBigEndian(Number number, std::string* out) {
  char bytes[sizeof(Number)];
  for (size_t i = 0; i < sizeof(Number); ++i) {
    bytes[i] = static_cast<char>(static_cast<std::make_unsigned_t<Number>>(number) >>
                                 (8U * (sizeof(Number) - 1 - i)));
  }
  out->append(bytes, sizeof(Number));
}

// Of the first bytes, which must exist.
template <std::integral Number>
Number LoadBigEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    number = number << 8U | static_cast<unsigned char>(bytes[i]);
  }
  return static_cast<Number>(number);
}

// Reads from front to back; after the first missing item every read returns 0 or "", and ok() stays
// false.
class BigEndianReader {
 public:
  explicit BigEndianReader(std::string_view bytes) : rest_(bytes) {}

  template <std::integral Number>
  Number Take() {
    const std::string_view bytes = Bytes(sizeof(Number));
    return ok_ ? LoadBigEndian<Number>(bytes) : Number{0};
  }
  std::string_view Bytes(size_t count) {
    ok_ = ok_ && count <= rest_.size();
    const std::string_view bytes = rest_.substr(0, ok_ ? count : 0);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  std::string_view String() {  // up to the next NUL, which is passed over
    const std::string_view text = Bytes(rest_.find('\0'));
    Bytes(1);
    return text;
  }
  size_t left() const { return rest_.size(); }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace sluice
