#include <gmock/gmock.h>

#include "tests/catalog/copy_rows.h"

// Rows with large cells come in small batches.
namespace sluice::catalog {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

class BatchBytesTest : public CopyTest {
 protected:
  static constexpr size_t kRows = 40;
  static constexpr size_t kCell = size_t{1} << 20;
  // The most that one batch may hold: a row more than the limit.
  static constexpr size_t kMax = kBatchBytes + kCell;

  std::string LargeRows() const {
    return postgres()
               ? "SELECT i, repeat('x', 1048576) AS t FROM generate_series(1, 40) i"
               : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)"
                 " SELECT i, printf('%.1048576c', 'x') AS t FROM n";
  }
};

TEST_P(BatchBytesTest, OfAPlainStatement) {
  const Shown shown = Show(LargeRows());
  EXPECT_EQ(shown.cells.size(), kRows);
  EXPECT_THAT(shown.most_bytes, AllOf(Ge(kCell), Le(kMax + kRows)));
}

TEST_P(BatchBytesTest, OfARowStream) {
  Run("CREATE TABLE large AS " + LargeRows());
  for (const std::string select : {"SELECT * FROM large", "SELECT i, t FROM large ORDER BY i"}) {
    const auto dataset = source().OpenDataset(select, {});
    ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
    const auto reader = source().OpenReader((*dataset)->spec());
    ASSERT_TRUE(reader.ok());
    size_t rows = 0;
    for (int shard = 0; shard < (*dataset)->spec().shards_size(); ++shard) {
      const auto stream = (*reader)->Read((*dataset)->spec().shards(shard), {0, 1});
      ASSERT_TRUE(stream.ok());
      RowBatch batch;
      do {
        const Status read = (*stream)->Next(1'000, &batch);
        ASSERT_TRUE(read.ok()) << read.ToString();
        Shown shown;
        Add(batch, &shown);
        EXPECT_LE(shown.most_bytes, kMax + kRows);
        rows += batch.rows;
      } while (batch.rows > 0);
    }
    EXPECT_EQ(rows, kRows);
  }
}

TEST_P(BatchBytesTest, OfCopies) {
  Run("CREATE TABLE large AS " + LargeRows());
  const Shown shown = ReadCopied("SELECT * FROM large", CopiedColumns::Purpose::kWrite);
  EXPECT_EQ(shown.cells.size(), kRows);
  EXPECT_LE(shown.most_bytes, kMax + kRows);
}

ON_BOTH_DATABASES(BatchBytesTest);

}  // namespace
}  // namespace sluice::catalog
