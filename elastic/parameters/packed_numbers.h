#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::elastic {

// Numbers as bytes of a message, in the machine's own order: every process is the same binary.
template <typename Number>
std::string Pack(const std::vector<Number>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()),
                     numbers.size() * sizeof(Number));
}
// Copies, since the bytes of a message are not aligned. Fails if they are not whole numbers.
template <typename Number>
Status Unpack(const std::string& bytes, std::vector<Number>* numbers) {
  if (bytes.size() % sizeof(Number) != 0) {
    return InvalidArgument("a message with half a number in it");
  }
  numbers->resize(bytes.size() / sizeof(Number));
  if (!bytes.empty()) {
    std::memcpy(numbers->data(), bytes.data(), bytes.size());
  }
  return Status();
}

}  // namespace sluice::elastic
