#include "catalog/spool/spool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::catalog {
namespace {

namespace fs = std::filesystem;

class SpoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-spool-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Rows `first` to `first + rows`: a number, a double, a text; every third is NULL.
  static void Fill(int64_t first, size_t rows, RowBatch* batch) {
    static std::vector<std::string> texts;
    texts.clear();
    batch->Reset(kSchema, rows);
    for (size_t row = 0; row < rows; ++row) {
      const int64_t number = first + static_cast<int64_t>(row);
      texts.push_back(std::string(static_cast<size_t>(number % 5), 'x') + std::to_string(number));
      for (RowBatch::Column& column : batch->columns) {
        column.null[row] = number % 3 == 0 ? 1 : 0;
      }
      batch->columns[0].int64s[row] = number;
      batch->columns[1].doubles[row] = static_cast<double>(number) / 8;
    }
    for (size_t row = 0; row < rows; ++row) {
      batch->columns[2].texts[row] = texts[row];
    }
    batch->rows = rows;
  }
  // "1 0.125 x1|..." of the columns listed.
  static std::string Read(SpoolFile& file, int64_t begin, int64_t end,
                          const std::vector<size_t>& columns, size_t at_a_time) {
    const auto stream = file.Read(begin, end, columns);
    std::string said;
    RowBatch batch;
    do {
      EXPECT_TRUE(stream->Next(at_a_time, &batch).ok());
      EXPECT_LE(batch.rows, at_a_time);
      for (size_t row = 0; row < batch.rows; ++row) {
        for (const RowBatch::Column& column : batch.columns) {
          said += column.null[row] != 0              ? "NULL "
                  : column.type == DataType::kInt64  ? std::to_string(column.int64s[row]) + " "
                  : column.type == DataType::kDouble ? std::to_string(column.doubles[row]) + " "
                                                     : std::string(column.texts[row]) + " ";
        }
        said += "|";
      }
    } while (batch.rows > 0);
    return said;
  }

  inline static const Schema kSchema{{{"n", DataType::kInt64, "bigint"},
                                      {"x", DataType::kDouble, "double precision"},
                                      {"t", DataType::kText, "text"}}};
  std::string folder_;
};

TEST_F(SpoolTest, RowsComeBackInAnyOrderAndSize) {
  const auto spool = Spool::Create(kSchema, folder_).value();
  RowBatch batch;
  for (int64_t block = 0; block < 4; ++block) {
    Fill(block * 10, 10, &batch);
    ASSERT_TRUE(spool->Append(batch).ok());
  }
  ASSERT_TRUE(spool->Finish().ok());
  EXPECT_EQ(spool->rows(), 40);
  EXPECT_THAT(spool->block_rows(), ::testing::ElementsAre(10, 10, 10, 10));
  const auto file = SpoolFile::Open(spool->path(), kSchema).value();
  const std::string all = Read(*file, 0, 4, {0, 1, 2}, 1'000);
  EXPECT_THAT(all, ::testing::StartsWith("NULL NULL NULL |1 0.125000 x1 |2 0.250000 xx2 |NULL "));
  EXPECT_THAT(all, ::testing::HasSubstr("|38 4.750000 xxx38 |"));
  EXPECT_EQ(Read(*file, 0, 4, {0, 1, 2}, 3), all);
  EXPECT_EQ(Read(*file, 0, 2, {0, 1, 2}, 7) + Read(*file, 2, 4, {0, 1, 2}, 1), all);
  EXPECT_EQ(Read(*file, 1, 2, {2, 0}, 2).substr(0, 8), "10 10 |x");
  EXPECT_EQ(Read(*file, 2, 2, {0}, 10), "");
}

TEST_F(SpoolTest, NobodyElseCanReadIt) {
  const auto spool = Spool::Create(kSchema, folder_).value();
  struct stat about = {};
  ASSERT_EQ(stat(spool->path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
}

TEST_F(SpoolTest, ItGoesWithItsOwnerAndLeftoversGoWithTheNext) {
  const std::string left = folder_ + "/sluice_spool_left";
  std::ofstream(left) << "of a process that was killed";
  const std::string others = folder_ + "/something_else";
  std::ofstream(others) << "not ours";
  auto first = Spool::Create(kSchema, folder_).value();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(others));
  const auto second = Spool::Create(kSchema, folder_).value();
  EXPECT_TRUE(fs::exists(first->path())) << "it is in use";
  const std::string path = first->path();
  first.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(SpoolTest, AFileThatWasCutIsNoSpool) {
  const auto spool = Spool::Create(kSchema, folder_).value();
  RowBatch batch;
  Fill(0, 10, &batch);
  ASSERT_TRUE(spool->Append(batch).ok());
  EXPECT_FALSE(SpoolFile::Open(spool->path(), kSchema).ok()) << "not finished";
  ASSERT_TRUE(spool->Finish().ok());
  EXPECT_TRUE(SpoolFile::Open(spool->path(), kSchema).ok());
  fs::resize_file(spool->path(), fs::file_size(spool->path()) - 1);
  EXPECT_EQ(SpoolFile::Open(spool->path(), kSchema).status().sqlstate(), "58030");
  EXPECT_FALSE(SpoolFile::Open(folder_ + "/nothing", kSchema).ok());
}

TEST_F(SpoolTest, ADiskThatTakesNothingIsTold) {
  EXPECT_EQ(Spool::Create(kSchema, folder_ + "/nowhere").status().sqlstate(), "58030");
}

}  // namespace
}  // namespace sluice::catalog
