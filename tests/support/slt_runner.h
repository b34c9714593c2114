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

// Runs scripts that a user could have typed on a database, and compares the answers.
// tests/sql/README.md describes the format.
namespace sluice::slt {

// An unexpected result.
struct Mismatch {
  std::string place;  // "models.slt:12"
  std::string text;
};

struct Outcome {
  std::vector<Mismatch> mismatches;
  bool skipped = false;   // `require` asked for something that is missing
  std::string rewritten;  // the script with the actual answers: UPDATE_GOLDEN writes it
};

// `name` for messages. The script's statements share one session, as in a gateway whose login owns
// the database's catalog.
Outcome RunSlt(const std::string& name, std::string_view script, catalog::Database& database);

// Runs a whole .sql script and returns what a reader sees: row sets as "a|b" lines below their
// column names, notices, and the error that ended it. Times and other values that differ from run
// to run, and how a database cuts its tables, are masked.
std::string RunForReader(std::string_view script, catalog::Database& database);

// Equal except for numbers with a fraction, which may differ by `tolerance` of their size: other
// machines' vector units add in another order.
bool SameText(std::string_view expected, std::string_view actual, double tolerance);

std::string ReadFile(const std::string& path);
// Whether UPDATE_GOLDEN=1 asks for new expectations.
bool UpdateGolden();

}  // namespace sluice::slt
