#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/parser_law.h"

namespace sluice::parser {
namespace {

std::vector<std::string> Corpus() {
  const std::filesystem::path folder =
      std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/fuzz/corpus/parser";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // mutants must not depend on the folder's order
  std::vector<std::string> scripts;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    scripts.push_back(content.str());
  }
  return scripts;
}

constexpr std::array kPieces = {
    "'",        "\"",      "`",        ";",        "--",     "/*",       "*/",
    "(",        ")",       "[",        "]",        "$$",     "$a$",      "\\",
    "\n",       " ",       ".",        ",",        ":",      "=",        "-",
    "+",        "*",       "%",        "1e999",    "007",    ".5",       "TO",
    "TRAIN",    "PREDICT", "WITH",     "LABEL",    "COLUMN", "USING",    "INTO",
    "FOR",      "EXPLAIN", "EVALUATE", "RUN",      "CMD",    "MAXIMIZE", "NOT",
    "AND",      "OR",      "SELECT",   "FROM",     "AS",     "CREATE",   "MODEL",
    "OPTIONS",  "TRIGGER", "BEGIN",    "END",      "ATOMIC", "CASE",     "SHOW",
    "SET",      "sluice.", "true",     "null",     "E'",     "é",        "\xEF\xBB\xBF",
    "\xC2\xA0", "“",       "\xFF",     "IF EXISTS"};

// A mutant of `seed`, or of two of them.
std::string Mutate(std::string script, const std::vector<std::string>& seeds,
                   std::mt19937_64& random) {
  const auto below = [&random](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  for (size_t step = 1 + below(4); step > 0; --step) {
    const size_t at = below(script.size() + 1);
    switch (below(5)) {
      case 0:
        script.erase(at, 1 + below(8));
        break;
      case 1:
        script.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 2:
        script.insert(at, " " + std::string(kPieces[below(kPieces.size())]) + " ");
        break;
      case 3:
        script.insert(at, script.substr(below(script.size()), below(20)));
        break;
      default: {
        const std::string& other = seeds[below(seeds.size())];
        script = script.substr(0, at) + other.substr(below(other.size() + 1));
      }
    }
  }
  return script;
}

TEST(CorpusTest, LawsHoldForEverySeed) {
  const std::vector<std::string> seeds = Corpus();
  EXPECT_GE(seeds.size(), 40U);
  for (const std::string& seed : seeds) {
    EXPECT_EQ(BrokenLaw(seed), std::nullopt) << seed;
  }
}

TEST(CorpusTest, LawsHoldForMutants) {
  constexpr int kMutants = 5000;
  const std::vector<std::string> seeds = Corpus();
  std::mt19937_64 random(20261121);  // fixed, so that failures are reproducible
  int accepted = 0;
  for (int i = 0; i < kMutants && !HasFailure(); ++i) {
    const std::string mutant = Mutate(seeds[random() % seeds.size()], seeds, random);
    EXPECT_EQ(BrokenLaw(mutant), std::nullopt) << mutant;
    accepted += Parse(mutant).ok() ? 1 : 0;
  }
  // Neither all refused nor all accepted: both sides of the laws are tested.
  EXPECT_GT(accepted, kMutants / 10);
  EXPECT_LT(accepted, kMutants);
}

}  // namespace
}  // namespace sluice::parser
