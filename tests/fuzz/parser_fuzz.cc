#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tests/fuzz/target.h"
#include "tests/support/parser_law.h"

// Any text: refused with a place, or accepted and printed back as the same statement.
FUZZ_TARGET(parser) {
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  const std::optional<std::string> broken = sluice::parser::BrokenLaw(script);
  if (broken) {
    std::fprintf(stderr, "%s\n", broken->c_str());
    std::abort();
  }
  return 0;
}
