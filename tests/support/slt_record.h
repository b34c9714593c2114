#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// The records of a script of slt_runner.h.
namespace sluice::slt {

// One record of a script: directive, statement, expected lines.
struct Record {
  size_t line = 0;  // 1-based, of the directive
  std::vector<std::string> words;
  std::string directive;
  std::string only;  // dialect of an `onlyif` before it
  std::string statement;
  bool has_separator = false;
  std::vector<std::string> expected;
  size_t first_expected = 0;  // index of its first line in the file
  size_t end = 0;             // index after its last line
};

std::vector<std::string> SplitLines(std::string_view text);

// Directives, each followed by a statement that ends at an empty line or at "----"; then the
// expected lines up to an empty line.
std::vector<Record> SplitRecords(const std::vector<std::string>& lines);

// Whether a directive that begins with this word has a statement.
bool TakesStatement(const std::string& word);
// Whether it has the word, as in `query rowsort approx 1e-3`.
bool HasWord(const Record& record, std::string_view word);
// 0: none.
double ToleranceOf(const Record& record);

}  // namespace sluice::slt
