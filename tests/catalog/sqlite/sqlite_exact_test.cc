#include <gmock/gmock.h>

#include "tests/catalog/copy_rows.h"

// In SQLite every cell has its own type: each is shown and copied as it is stored.
namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class SqliteExactTest : public CopyTest {
 protected:
  // One column for each kind of declaration, with every kind of cell in each.
  void MakeEveryCell() {
    Run("CREATE TABLE e (id INTEGER PRIMARY KEY, untyped, i INTEGER, r REAL, t TEXT, n "
        "NUMERIC(10,2),"
        " b BLOB, d DATE, ts TIMESTAMP, flag BOOLEAN, v VARCHAR(8), odd \"my type, with 'quotes'\","
        " trap \"INTEGER NOT NULL\", dp DOUBLE PRECISION)");
    int id = 0;
    for (const std::string cell : {"NULL",
                                   "12",
                                   "'12'",
                                   "'12.50'",
                                   "2.5",
                                   "'2.5'",
                                   "1e15",
                                   "0.30000000000000004",
                                   "-0.0",
                                   "1e400",
                                   "-1e400",
                                   "9223372036854775807",
                                   "-9223372036854775808",
                                   "9007199254740993",
                                   "'12345678901234567891.12'",
                                   "x'00ff'",
                                   "x''",
                                   "''",
                                   "'2024-02-29'",
                                   "'infinity'",
                                   "2460000.5",
                                   "'a' || char(0) || 'b'",
                                   "CAST(x'ff41' AS TEXT)",
                                   "'NaN'",
                                   "1e308 * 10 - 1e308 * 10",
                                   "0",
                                   "1",
                                   "2",
                                   "'t'",
                                   "'ünï'",
                                   "3.0",
                                   "'3.0'",
                                   "5e-324"}) {
      Run("INSERT INTO e VALUES (" + std::to_string(++id) + ", " + cell + ", " + cell + ", " +
          cell + ", " + cell + ", " + cell + ", " + cell + ", " + cell + ", " + cell + ", " + cell +
          ", " + cell + ", " + cell + ", " + cell + ", " + cell + ")");
    }
  }
  // Cells of `copy` that are stored differently from those in e.
  Texts Differences(const std::string& copy) {
    Texts differences;
    for (const auto& column : Select("SELECT name FROM pragma_table_info('e')")) {
      const std::string& c = column[0];
      const Texts found = Select("SELECT e.id, '" + c + "', typeof(e." + c + "), quote(e." + c +
                                 "), typeof(f." + c + "), quote(f." + c + ") FROM e LEFT JOIN " +
                                 copy + " f USING (id) WHERE typeof(e." + c + ") <> typeof(f." + c +
                                 ") OR quote(e." + c + ") IS NOT quote(f." + c +
                                 ")"
                                 " OR e." +
                                 c + " IS NOT f." + c);
      differences.insert(differences.end(), found.begin(), found.end());
    }
    return differences;
  }
};

TEST_P(SqliteExactTest, EveryCellIsCopied) {
  MakeEveryCell();
  for (const std::string select : {"SELECT * FROM e", "SELECT e.* FROM e JOIN e AS f USING (id)",
                                   "SELECT id, untyped, i + 0 AS i, r, t || '' AS t, n, b, d, ts, "
                                   "flag, v, odd, trap, dp FROM e"
                                   " WHERE typeof(i) = 'integer' AND typeof(t) = 'text'"}) {
    CopyInto(select, "copy");
    if (select.find("WHERE") == std::string::npos) {
      EXPECT_THAT(Differences("copy"), IsEmpty()) << select;
      EXPECT_EQ(Select("SELECT name, type FROM pragma_table_info('e')"),
                Select("SELECT name, type FROM pragma_table_info('copy')"));
    } else {
      EXPECT_EQ(
          Select("SELECT count(*) FROM e JOIN copy c ON e.id = c.id AND e.i IS c.i AND e.t IS c.t"
                 " AND typeof(e.t) = typeof(c.t)"),
          Select("SELECT count(*) FROM copy"));
    }
    Run("DROP TABLE copy");
  }
}

TEST_P(SqliteExactTest, AnyOfAStrictTableStaysAny) {
  Run("CREATE TABLE s (id INTEGER PRIMARY KEY, a ANY, t TEXT) STRICT");
  Run("INSERT INTO s VALUES (1, '12', '12'), (2, 12, 'x'), (3, x'00', ''), (4, 2.0, '2.0')");
  CopyInto("SELECT * FROM s", "copy");
  EXPECT_THAT(Select("SELECT typeof(a), quote(a), quote(t) FROM copy ORDER BY id"),
              ElementsAre(ElementsAre("text", "'12'", "'12'"), ElementsAre("integer", "12", "'x'"),
                          ElementsAre("blob", "X'00'", "''"), ElementsAre("real", "2.0", "'2.0'")));
}

TEST_P(SqliteExactTest, EveryCellIsShownAsItIsStored) {
  Run("CREATE TABLE m (x, d DATE, flag BOOLEAN, i INTEGER)");
  Run("INSERT INTO m VALUES (2.5, '2024-02-29', 1, 'abc'), ('2.50', 5, 2, 9223372036854775807),"
      " (x'00ff', NULL, 0, 2.5), (9007199254740993, 'infinity', 't', 1)");
  const Texts cells = {{"2.5", "2024-02-29", "t", "abc"},
                       {"2.50", "5", "2", "9223372036854775807"},
                       {"\\x00ff", "NULL", "f", "2.5"},
                       {"9007199254740993", "infinity", "t", "1"}};
  EXPECT_EQ(Show("SELECT * FROM m").cells, cells);
  EXPECT_EQ(ReadCopied("SELECT * FROM m", CopiedColumns::Purpose::kShow).cells, cells);
}

// The first rows say nothing about later ones.
TEST_P(SqliteExactTest, ALateCellOfAnotherKindIsNoError) {
  Run("CREATE TABLE m (i INTEGER)");
  Run("INSERT INTO m WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
      " SELECT i FROM n");
  Run("INSERT INTO m VALUES ('late'), (2.5)");
  const Shown shown = Show("SELECT i FROM m");
  ASSERT_EQ(shown.cells.size(), 3002U);
  EXPECT_EQ(shown.schema.columns[0].type, DataType::kInt64);
  EXPECT_EQ(shown.cells[3000][0], "late");
  EXPECT_EQ(shown.cells[3001][0], "2.5");
}

TEST_P(SqliteExactTest, Utf16DatabasesAreReadAsText) {
  Run("PRAGMA encoding = 'UTF-16le'");
  Run("CREATE TABLE u (id INTEGER PRIMARY KEY, t TEXT)");
  Run("INSERT INTO u VALUES (1, 'grün'), (2, ''), (3, 'x')");
  ASSERT_EQ(Select("PRAGMA encoding")[0][0], "UTF-16le");
  EXPECT_THAT(Select("SELECT t FROM u ORDER BY id"),
              ElementsAre(ElementsAre("grün"), ElementsAre(""), ElementsAre("x")));
  const auto dataset = source().OpenDataset("SELECT t FROM u", {});
  ASSERT_TRUE(dataset.ok());
  const auto rows = ReadAll(source(), (*dataset)->spec());
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_THAT(*rows, UnorderedElementsAre(ElementsAre("grün"), ElementsAre(""), ElementsAre("x")));
}

INSTANTIATE_TEST_SUITE_P(Databases, SqliteExactTest, ::testing::Values("sqlite"), DatabaseName);

}  // namespace
}  // namespace sluice::catalog
