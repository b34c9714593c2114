#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "catalog/sql/sql_text.h"
#include "models/features/cell_format.h"
#include "tests/catalog/both_databases.h"

// Compares with PostgreSQL the inputs for which cells_fuzz has found faults; the fuzzer itself
// compares with SQLite.
namespace sluice::catalog {
namespace {

class CellCorpusTest : public BothDatabases {
 protected:
  // The single cell that a SELECT returns; nullopt if the database refuses it.
  std::optional<std::string> Ask(const std::string& sql) {
    class Cell final : public RowReceiver {
     public:
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        value = FormatValue(batch.columns[0].ValueAt(0), batch.columns[0].type);
        return OkStatus();
      }
      std::optional<std::string> value;
    } cell;
    const auto done = source().Execute(sql, &cell, {});
    return done.ok() ? cell.value : std::nullopt;
  }
};

TEST_P(CellCorpusTest, NumbersAndTimesMeanWhatPostgresSays) {
  if (!postgres()) {
    GTEST_SKIP();
  }
  size_t cells = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/fuzz/corpus/cells")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string cell((std::istreambuf_iterator<char>(file)), {});
    const std::string quoted = QuoteText(cell, Dialect::kPostgres);
    ++cells;
    const std::optional<double> ours = models::ParseNumber(cell);
    const bool hexadecimal = cell.find_first_of("xX") != std::string::npos;  // a number only in C
    const std::optional<std::string> theirs = Ask("SELECT (" + quoted + "::float8)::text");
    if (theirs && !hexadecimal) {
      ASSERT_TRUE(ours.has_value()) << "PostgreSQL reads a number: " << cell;
      const double number = std::stod(*theirs);
      EXPECT_TRUE(*ours == number || (std::isnan(*ours) && std::isnan(number))) << cell;
    } else if (!theirs && ours && std::isfinite(*ours) && *ours != 0) {
      ADD_FAILURE() << "PostgreSQL reads no number: " << cell;
    }
    const std::optional<int64_t> micros = models::ParseTimestamp(cell);
    const bool year_zero = models::TrimBlanks(cell).starts_with("0000");  // only SQLite's
    if (micros && !year_zero) {
      const auto said = Ask("SELECT (extract(epoch FROM (" + quoted +
                            "::timestamptz)) * 1000000)::numeric(30,0)::text");
      ASSERT_TRUE(said.has_value()) << "PostgreSQL reads no time: " << cell;
      EXPECT_LE(std::abs(std::stoll(*said) - *micros), 1) << cell;  // of seven digits
    }
  }
  EXPECT_GT(cells, 20U);
}

INSTANTIATE_TEST_SUITE_P(Databases, CellCorpusTest, ::testing::Values("sqlite", "postgresql"));

}  // namespace
}  // namespace sluice::catalog
