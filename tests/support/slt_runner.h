#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::catalog {
struct Database;
}

// Runs scripts that a user could have typed against a database and compares what they answer.
// The dialect is described in tests/sql/README.md.
namespace sluice::slt {

// One thing that did not come out as expected.
struct Mismatch {
  std::string place;  // "models.slt:12"
  std::string text;
};

struct Outcome {
  std::vector<Mismatch> mismatches;
  bool skipped = false;   // `require` asked for what is not there
  std::string rewritten;  // the script with the answers that came: UPDATE_GOLDEN writes it
};

// `name` for messages. The script's statements share one session, as of a gateway whose login the
// database's catalog has.
Outcome RunSlt(const std::string& name, std::string_view script, catalog::Database& database);

// Runs a whole .sql script and returns what a reader sees: row sets as "a|b" lines below their
// column names, notices, and the error that ended it. Times and other things that differ from run
// to run, and how a database cuts its tables, are masked.
std::string RunForReader(std::string_view script, catalog::Database& database);

// Equal but for numbers with a fraction, which may differ by `tolerance` of their size: vector
// units of other machines add in another order.
bool SameText(std::string_view expected, std::string_view actual, double tolerance);

std::string ReadFile(const std::string& path);
// Whether UPDATE_GOLDEN=1 asks for new expectations.
bool UpdateGolden();

}  // namespace sluice::slt
