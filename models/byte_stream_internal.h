#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::models {

// Writes numbers as bytes: integers as varints, doubles as in memory (little-endian).
class ByteWriter {
 public:
  void Whole(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(static_cast<unsigned char>(value | 0x80)));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  void Double(double value) {
    char raw[sizeof(value)];
    std::memcpy(raw, &value, sizeof(value));
    bytes_.append(raw, sizeof(value));
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads them back. After the first read past the end every read returns 0 and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  uint64_t Whole() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) {
        break;
      }
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    return Fail();
  }
  double Double() {
    double value = 0;
    if (rest_.size() < sizeof(value)) {
      return static_cast<double>(Fail());
    }
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }
  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }

 private:
  uint64_t Fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace sluice::models
