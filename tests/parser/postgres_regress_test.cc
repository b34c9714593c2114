#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "parser/postgres_scanner.h"
#include "parser/splitter.h"
#include "tests/support/postgres_regress.h"

// PostgreSQL's own regression tests: whatever PostgreSQL's parser accepts is the database's.
namespace sluice::parser {
namespace {

// Without psql's commands and the data of COPY, each of which leaves an empty line.
std::string ReadScript(const std::filesystem::path& path) {
  const std::regex copies(R"(^\s*copy\b.*\bfrom\s+stdin\b.*;\s*$)", std::regex::icase);
  std::ifstream file(path, std::ios::binary);
  std::string script;
  bool data = false;
  for (std::string line; std::getline(file, line);) {
    const bool command = line.starts_with('\\');
    if (!data && !command) {
      script += line;
    }
    script += '\n';
    data = data ? line != "\\." : std::regex_match(line, copies);
  }
  return script;
}

TEST(PostgresRegress, WhatPostgresParsesIsPlain) {
  const std::string folder = testing::PostgresRegressFolder();
  if (folder.empty()) {
    GTEST_SKIP() << "no source of libpg-query";
  }
  size_t statements = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string script = ReadScript(entry.path());
    const std::optional<std::vector<Span>> cuts = SplitByPostgres(script);
    if (!cuts) {
      continue;  // a test of what the scanner refuses
    }
    for (const Span& cut : *cuts) {
      const std::string text =
          script.substr(static_cast<size_t>(cut.begin), static_cast<size_t>(cut.end - cut.begin));
      if (!PostgresParses(text)) {
        continue;
      }
      ++statements;
      const SplitScript split = Split(text);
      EXPECT_TRUE(split.error.ok()) << RenderWithCaret(split.error, text);
      EXPECT_EQ(split.pieces.size(), 1U) << text;
      EXPECT_TRUE(std::all_of(split.pieces.begin(), split.pieces.end(), [](const Piece& piece) {
        return piece.kind == Piece::Kind::kPlain;
      })) << text;
    }
  }
  EXPECT_GT(statements, 10'000U);
}

}  // namespace
}  // namespace sluice::parser
