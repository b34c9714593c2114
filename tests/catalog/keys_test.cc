#include <gmock/gmock.h>

#include "tests/catalog/both_databases.h"

namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;

class KeysTest : public BothDatabases {
 protected:
  std::vector<ColumnKey> Keys(std::string_view select) {
    const auto schema = source().Describe(select);
    EXPECT_TRUE(schema.ok()) << schema.status().ToString();
    const auto keys = source().DescribeKeys(select, *schema);
    EXPECT_TRUE(keys.ok()) << keys.status().ToString();
    return keys.ok() ? *keys : std::vector<ColumnKey>();
  }
};

TEST_P(KeysTest, ColumnsThatAreUniqueByThemselves) {
  Run("CREATE TABLE \"it's\" (id INTEGER PRIMARY KEY, code TEXT UNIQUE, a INTEGER, b INTEGER, "
      "UNIQUE (a, b))");
  Run("CREATE TABLE pairs (x INTEGER, y INTEGER, PRIMARY KEY (x, y))");
  Run("CREATE UNIQUE INDEX few ON pairs (x) WHERE y > 5");
  const auto none = ColumnKey::kNone;
  EXPECT_THAT(Keys("SELECT * FROM \"it's\""),
              ElementsAre(ColumnKey::kPrimary, ColumnKey::kUnique, none, none));
  EXPECT_THAT(Keys("SELECT code AS id, id + 1 AS code, i.id AS other FROM \"it's\" i"),
              ElementsAre(ColumnKey::kUnique, none, ColumnKey::kPrimary));
  EXPECT_THAT(Keys("SELECT x, y FROM pairs"), ElementsAre(none, none));
  EXPECT_THAT(Keys("SELECT 1 AS one"), ElementsAre(none));
}

INSTANTIATE_TEST_SUITE_P(Databases, KeysTest, ::testing::Values("sqlite", "postgresql"));

}  // namespace
}  // namespace sluice::catalog
