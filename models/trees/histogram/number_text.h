#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Numbers as bytes for another process of the same build on the same kind of machine.
namespace sluice::models::histogram {

template <typename Number>
void WriteNumber(Number number, std::string* bytes) {
  static_assert(std::is_trivially_copyable_v<Number>);
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename Number>
void WriteNumbers(const std::vector<Number>& numbers, std::string* bytes) {
  static_assert(std::is_trivially_copyable_v<Number>);
  WriteNumber(uint64_t{numbers.size()}, bytes);
  bytes->append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
}

// Takes it from the front of `bytes`; false: there are too few.
template <typename Number>
bool ReadNumber(std::string_view* bytes, Number* number) {
  if (bytes->size() < sizeof(Number)) {
    return false;
  }
  std::memcpy(number, bytes->data(), sizeof(Number));
  bytes->remove_prefix(sizeof(Number));
  return true;
}

template <typename Number>
bool AppendNumbers(std::string_view* bytes, std::vector<Number>* numbers) {
  uint64_t count = 0;
  if (!ReadNumber(bytes, &count) || count > bytes->size() / sizeof(Number)) {
    return false;
  }
  const size_t before = numbers->size();
  numbers->resize(before + count);
  if (count > 0) {
    std::memcpy(numbers->data() + before, bytes->data(), count * sizeof(Number));
  }
  bytes->remove_prefix(count * sizeof(Number));
  return true;
}

}  // namespace sluice::models::histogram
