// Compares the user's documentation with the binary. UPDATE_GOLDEN=1 writes docs/attributes.md:
// review the diff.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/value.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "executor/management/model_types.h"
#include "models/registry/registry.h"
#include "parser/parser.h"
#include "planner/column_function.h"
#include "server/statements/settings.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {
namespace {

const std::filesystem::path kRoot = SLUICE_SOURCE_DIR;

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '|' ? "\\|" : std::string(1, c);
  }
  return escaped;
}

std::string RowOf(const std::vector<Value>& cells) {
  std::string row = "|";
  for (const Value& cell : cells) {
    row += " " + Escaped(FormatValue(cell, DataType::kText)) + " |";
  }
  return row;
}

// "trees" for all types of a family, else the names of the types.
std::string NamesOf(const std::vector<std::string>& types,
                    const std::map<std::string, std::vector<std::string>>& families) {
  std::vector<std::string> left = types;
  std::string text;
  for (const auto& [family, members] : families) {
    const bool all = std::all_of(members.begin(), members.end(), [&](const std::string& name) {
      return std::find(left.begin(), left.end(), name) != left.end();
    });
    if (all) {
      text += (text.empty() ? "" : ", ") + family;
      std::erase_if(left, [&](const std::string& name) {
        return std::find(members.begin(), members.end(), name) != members.end();
      });
    }
  }
  for (const std::string& name : left) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return types.size() == models::ModelTypes().size() ? "all" : text;
}

// The answers of SHOW MODEL TYPES and DESCRIBE MODEL TYPE as a page.
std::string AttributesPage() {
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "docs_test.db";
  std::filesystem::remove(file);
  const auto source = catalog::OpenDataSource("sqlite:" + file.string()).value();
  const auto catalog = catalog::OpenCatalog("sqlite:" + file.string()).value();
  executor::Context context{*source, *catalog, "tester", "SHOW MODEL TYPES", {}, nullptr};
  RecordingSink types;
  EXPECT_TRUE(executor::ShowModelTypes(context, types).ok());
  std::string page =
      "# Model types and attributes\n\nMade from what SHOW MODEL TYPES and DESCRIBE MODEL TYPE "
      "answer; a test holds it against them.\n\n| type | family | task | also known as | |\n"
      "|---|---|---|---|---|\n";
  std::map<std::string, std::vector<std::string>> families;
  // Each attribute once, in the order of the first type that has it.
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> owners;
  for (std::vector<Value> row : types.rows) {
    row.resize(5);  // language and owner belong to user-defined types
    page += RowOf(row) + "\n";
    const std::string name = std::get<std::string>(row[0]);
    families[std::get<std::string>(row[1])].push_back(name);
    RecordingSink attributes;
    EXPECT_TRUE(executor::DescribeModelType(name, {}, context, attributes).ok());
    for (const std::vector<Value>& attribute : attributes.rows) {
      const std::string line = RowOf(attribute);
      if (owners[line].empty()) {
        order.push_back(line);
      }
      owners[line].push_back(name);
    }
  }
  page += "\n| attribute | type | default | allowed | | of |\n|---|---|---|---|---|---|\n";
  for (const std::string& line : order) {
    page += line + " " + NamesOf(owners[line], families) + " |\n";
  }
  for (const std::string_view kind : {"auto", "tune", "predict", "evaluate", "explain"}) {
    page += fmt::format("\nOf {}:\n\n| attribute | type | |\n|---|---|---|\n",
                        kind == "auto"       ? "a training that names no model type"
                        : kind == "tune"     ? "a training that searches for its attributes"
                        : kind == "predict"  ? "TO PREDICT"
                        : kind == "evaluate" ? "TO EVALUATE"
                                             : "TO EXPLAIN");
    for (const models::AttributeSpec& attribute : models::StatementAttributes(kind)) {
      page += RowOf({attribute.name, std::string(models::AttributeTypeName(attribute.type)),
                     attribute.doc}) +
              "\n";
    }
  }
  return page;
}

TEST(Docs, TheAttributesAreTheRegistrys) {
  const std::filesystem::path path = kRoot / "docs/attributes.md";
  const std::string page = AttributesPage();
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << page;
  }
  EXPECT_EQ(ReadText(path), page) << "UPDATE_GOLDEN=1 writes it";
}

TEST(Docs, EveryColumnFunctionIsExplained) {
  const std::string text = ReadText(kRoot / "docs/sql.md");
  for (const planner::ColumnFunction& function : planner::ColumnFunctions()) {
    EXPECT_NE(text.find("| `" + Escaped(std::string(function.usage)) + "` |"), std::string::npos)
        << function.usage;
  }
}

TEST(Docs, EverySettingIsExplained) {
  const std::string text = ReadText(kRoot / "docs/sql.md");
  size_t rows = 0;
  for (size_t at = text.find("| `sluice."); at != std::string::npos;
       at = text.find("| `sluice.", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, Settings().size()) << "a setting that there is not";
  for (const SettingSpec& setting : Settings()) {
    const std::string row =
        fmt::format("| `{}` | {} | {} |", setting.name, AllowedValues(setting), setting.doc);
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

TEST(Docs, EveryStatementOfTheDocumentationParses) {
  int blocks = 0;
  for (const char* file :
       {"README.md", "docs/sql.md", "docs/models.md", "docs/engine.md", "docs/operations.md"}) {
    const std::string text = ReadText(kRoot / file);
    const std::string begin = "```sql\n", end = "\n```";
    for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
      at += begin.size();
      const std::string script = text.substr(at, text.find(end, at) - at);
      const auto parsed = parser::Parse(script);
      EXPECT_TRUE(parsed.ok()) << file << "\n" << RenderWithCaret(parsed.status(), script);
      ++blocks;
    }
  }
  EXPECT_GT(blocks, 6) << "the test looked at nothing";
}

}  // namespace
}  // namespace sluice::server
