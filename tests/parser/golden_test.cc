#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "parser/parser.h"
#include "parser/printer.h"
#include "tests/support/ast_dump.h"

// tests/parser/golden/*.golden: a script, "--", its trees with spans (or its error as a user sees
// it), "--", the statements printed back, "==". UPDATE_GOLDEN=1 rewrites the files: read the diff.
namespace sluice::parser {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// Splits the lines of `text` into blocks that end with a line `mark`; the marks are dropped.
std::vector<std::string> Blocks(const std::string& text, const std::string& mark) {
  std::vector<std::string> blocks(1);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == mark) {
      blocks.emplace_back();
    } else {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

std::string Answer(const std::string& script) {
  const Result<std::vector<Statement>> statements = Parse(script);
  if (!statements.ok()) {
    return RenderWithCaret(statements.status(), script) + "--\n";
  }
  std::string trees;
  std::string printed;
  for (const Statement& statement : statements.value()) {
    trees += Dump(statement, true);
    printed += Print(statement) + ";\n";
    const Result<std::vector<Statement>> again = Parse(Print(statement));
    EXPECT_TRUE(again.ok() && again.value().size() == 1 &&
                EqualIgnoringSpans(again.value().front(), statement))
        << Print(statement);
  }
  return trees + "--\n" + printed;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, AnswersAsRecorded) {
  const std::filesystem::path path =
      std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/parser/golden" / (GetParam() + ".golden");
  const std::string recorded = ReadFile(path);
  std::string answered;
  for (const std::string& block : Blocks(recorded, "==")) {
    if (block.empty()) {
      continue;
    }
    std::string script = Blocks(block, "--").front();
    script.pop_back();  // the newline before the mark
    answered += script + "\n--\n" + Answer(script) + "==\n";
  }
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << answered;
  }
  EXPECT_EQ(recorded, answered);
}

std::vector<std::string> GoldenFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/parser/golden")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenTest, testing::ValuesIn(GoldenFiles()),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace sluice::parser
