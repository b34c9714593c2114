#include "planner/result_names.h"

#include <cstdint>

#include "base/letter_case.h"
#include "base/utf8.h"

namespace sluice::planner {
namespace {

std::string Cut(std::string_view name, size_t bytes) {
  return std::string(CutToBytes(name, bytes));
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
