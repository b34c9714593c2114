#include "tests/support/slt_record.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace sluice::slt {
namespace {

std::vector<std::string> SplitWords(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

}  // namespace

std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool TakesStatement(const std::string& word) {
  return word == "statement" || word == "query" || word == "metric" || word == "notice";
}

std::vector<Record> SplitRecords(const std::vector<std::string>& lines) {
  std::vector<Record> records;
  std::string only;
  for (size_t i = 0; i < lines.size();) {
    if (lines[i].empty() || lines[i][0] == '#') {
      ++i;
      continue;
    }
    Record record;
    record.line = i + 1;
    record.directive = lines[i];
    record.words = SplitWords(lines[i]);
    ++i;
    if (record.words[0] == "onlyif") {
      only = record.words.size() > 1 ? record.words[1] : "";
      continue;
    }
    record.only = std::exchange(only, "");
    if (TakesStatement(record.words[0])) {
      bool quoted = false;  // between $$ and $$, where empty lines are part of the statement
      for (; i < lines.size() && (quoted || (!lines[i].empty() && lines[i] != "----")); ++i) {
        record.statement += lines[i] + "\n";
        for (size_t at = 0; (at = lines[i].find("$$", at)) != std::string::npos; at += 2) {
          quoted = !quoted;
        }
      }
      if (i < lines.size() && lines[i] == "----") {
        record.has_separator = true;
        record.first_expected = ++i;
        for (; i < lines.size() && !lines[i].empty(); ++i) {
          record.expected.push_back(lines[i]);
        }
      }
    }
    record.end = i;
    records.push_back(std::move(record));
  }
  return records;
}

bool HasWord(const Record& record, std::string_view word) {
  return std::find(record.words.begin(), record.words.end(), word) != record.words.end();
}

double ToleranceOf(const Record& record) {
  const auto word = std::find(record.words.begin(), record.words.end(), "approx");
  return word == record.words.end() || word + 1 == record.words.end() ? 0 : std::stod(*(word + 1));
}

}  // namespace sluice::slt
