#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <type_traits>
#include <variant>

#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/fuzz/target.h"
#include "tests/planner/fake_source.h"
#include "tests/support/allocation_meter.h"
#include "tests/support/extended_of.h"

// The script of a request, parsed and planned over a small database: any script is refused with a
// message or becomes a plan, using memory in proportion to its size.
namespace sluice::planner {
namespace {

// Memory of the registry of model types, the tables' statistics and their copies.
constexpr size_t kFreeBytes = size_t{32} << 20;
constexpr size_t kBytesPerByte = 256;

// The fake supports only SELECTs of one table, with its columns' names.
bool IsReadable(std::string_view select, const FakeSource& source) {
  for (const char* known : {"SELECT * FROM census", "SELECT age, income FROM census",
                            "SELECT * FROM empty", "SELECT * FROM census LIMIT 7"}) {
    if (select == known) {
      return true;
    }
  }
  return source.tables.empty();
}

std::string_view SelectOf(const parser::ExtendedStatement& statement) {
  return std::visit(
      [](const auto& any) -> std::string_view {
        if constexpr (requires { any.select.text; }) {
          return any.select.text;
        } else {
          return {};
        }
      },
      statement);
}

void Plan(const parser::Statement& statement, FakeSource& source) {
  const auto extended = ExtendedOf(statement);
  if (!extended || !IsReadable(SelectOf(*extended), source)) {
    return;
  }
  Options options;
  options.memory_bytes = int64_t{1} << 32;
  const Result<plan::Plan> plan = MakePlan(*extended, source, source.models(), options);
  if (!plan.ok() && plan.status().code() == Code::kInternal) {
    std::fprintf(stderr, "%s\n", plan.status().ToString().c_str());
    std::abort();
  }
}

void Run(std::string_view script, FakeSource& source) {
  const AllocationMeter meter;
  const auto statements = parser::Parse(script);
  if (statements.ok()) {
    constexpr size_t kMaxPlanned = 8;
    for (size_t i = 0; i < std::min(statements->size(), kMaxPlanned); ++i) {
      Plan((*statements)[i], source);
    }
  }
  if (meter.Peak() > kFreeBytes + script.size() * kBytesPerByte) {
    std::fprintf(stderr, "%zu bytes for a script of %zu\n", meter.Peak(), script.size());
    std::abort();
  }
}

}  // namespace
}  // namespace sluice::planner

FUZZ_TARGET(run_request) {
  static sluice::planner::FakeSource source = [] {
    sluice::planner::FakeSource made;
    made.tables["census"] = sluice::planner::SmallCensus(200);
    made.tables["empty"] = sluice::planner::SmallCensus(0);
    return made;
  }();
  sluice::planner::Run({reinterpret_cast<const char*>(data), size}, source);
  return 0;
}
