#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "k8s/quantity/quantity.h"
#include "tests/fuzz/target.h"

// Law: what is read is written in a form that reads as the same value and is stable.
FUZZ_TARGET(quantity) {
  using sluice::k8s::ParseQuantity;
  using sluice::k8s::Quantity;
  const auto read = ParseQuantity({reinterpret_cast<const char*>(data), size});
  if (!read.ok()) {
    return 0;
  }
  const std::string text = read->ToString();
  const auto again = ParseQuantity(text);
  if (!again.ok() || !(*again == *read) || again->ToString() != text || read->nanos() < 0 ||
      read->nanos() >= 1'000'000'000) {
    std::fprintf(stderr, "%s\n", text.c_str());
    std::abort();
  }
  return 0;
}
