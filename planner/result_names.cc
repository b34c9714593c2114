#include "planner/result_names.h"

#include <cstdint>

#include "base/letter_case.h"

namespace sluice::planner {
namespace {

// Between two characters of UTF-8.
std::string Cut(std::string_view name, size_t bytes) {
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(name[at]) & 0xC0) == 0x80; };
  while (bytes < name.size() && bytes > 0 && continues(bytes)) {
    --bytes;
  }
  return std::string(name.substr(0, bytes));
}

}  // namespace

void ResultNames::Add(std::string_view name) {
  names_.insert(LowerAscii(name));
}

bool ResultNames::Has(std::string_view name) const {
  return names_.contains(LowerAscii(name));
}

std::string ResultNames::AddLike(std::string_view wanted) {
  std::string name = Cut(wanted, most_bytes_);
  for (int number = 2; Has(name); ++number) {
    const std::string ending = "_" + std::to_string(number);
    name = Cut(wanted, most_bytes_ - ending.size()) + ending;
  }
  Add(name);
  return name;
}

}  // namespace sluice::planner
