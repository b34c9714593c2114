#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "models/metrics/metric.h"
#include "tests/models/trees/boosting.h"

namespace sluice::models {
namespace {

// UCI Adult, as published.
struct Census {
  FeatureBatch train, test;
  std::vector<uint32_t> cardinalities;
};

std::vector<std::vector<std::string>> ReadRows(const std::filesystem::path& file) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells;
    std::istringstream cell_stream(line);
    for (std::string cell; std::getline(cell_stream, cell, ',');) {
      cells.push_back(cell.substr(std::min(cell.size(), cell.find_first_not_of(' '))));
    }
    if (cells.size() == 15) {
      rows.push_back(std::move(cells));
    }
  }
  return rows;
}

constexpr size_t kNumbers[] = {0, 2, 4, 10, 11, 12};
constexpr size_t kTexts[] = {1, 3, 5, 6, 7, 8, 9, 13};

// Ids by descending frequency, as in the planner's vocabularies.
std::map<std::string, uint32_t> Vocabulary(const std::vector<std::vector<std::string>>& rows,
                                           size_t column) {
  std::map<std::string, size_t> counts;
  for (const auto& row : rows) {
    ++counts[row[column]];
  }
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [text, count] : counts) {
    order.emplace_back(count, text);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::map<std::string, uint32_t> ids;
  for (const auto& entry : order) {
    ids.emplace(entry.second, static_cast<uint32_t>(ids.size()));
  }
  return ids;
}

TEST(CensusTest, AHundredRoundsReachTheKnownAuc) {
  const std::filesystem::path data =
      std::filesystem::path(SLUICE_SOURCE_DIR) / ".." / "shared" / "data" / "census";
  if (!std::filesystem::exists(data / "adult.data")) {
    GTEST_SKIP() << "the census table is not here: " << data;
  }
  const auto train_rows = ReadRows(data / "adult.data");
  const auto test_rows = ReadRows(data / "adult.test");
  ASSERT_EQ(train_rows.size(), 32560u);
  ASSERT_EQ(test_rows.size(), 16281u);
  ModelSpec spec = TreeSpec("xgboost.gbtree", 100);
  SetNumber(&spec, "eta", 0.1);
  SetInteger(&spec, "max_depth", 6);
  for (const size_t column : kNumbers) {
    AddNumber(&spec, "n" + std::to_string(column));
  }
  FeatureBatch batches[2];
  std::vector<std::map<std::string, uint32_t>> vocabularies;
  for (const size_t column : kTexts) {
    vocabularies.push_back(Vocabulary(train_rows, column));
    const auto size = static_cast<uint32_t>(vocabularies.back().size());
    AddCategory(&spec, "t" + std::to_string(column), size + 1, 0);
  }
  SetClasses(&spec, 2);
  for (FeatureBatch& batch : batches) {
    const auto& rows = &batch == &batches[0] ? train_rows : test_rows;
    batch.rows = rows.size();
    batch.dense_width = std::size(kNumbers);
    batch.slots.resize(std::size(kTexts));
    for (const auto& row : rows) {
      for (const size_t column : kNumbers) {
        batch.dense.push_back(std::stof(row[column]));
      }
      for (size_t s = 0; s < std::size(kTexts); ++s) {
        const auto found = vocabularies[s].find(row[kTexts[s]]);
        batch.slots[s].ids.push_back(found == vocabularies[s].end()
                                         ? static_cast<uint32_t>(vocabularies[s].size())
                                         : found->second);
      }
      batch.labels.push_back(row[14].starts_with(">50K") ? 1 : 0);
    }
  }
  const auto trees = MakeTrees(spec);
  Batches train({batches[0]});
  const Status status = Train(trees.get(), &train);
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::vector<double> predictions;
  ASSERT_TRUE(trees->Predict(batches[1], &predictions).ok());
  Metrics metrics(Task::kBinary, 1);
  metrics.Add(predictions, batches[1].OwnLabels(), {});
  const std::vector<std::pair<std::string, double>> values = metrics.Values();
  const auto auc = std::find_if(values.begin(), values.end(),
                                [](const auto& metric) { return metric.first == "auc"; });
  ASSERT_NE(auc, values.end());
  EXPECT_GE(auc->second, 0.926);
  RecordProperty("auc", std::to_string(auc->second));
}

}  // namespace
}  // namespace sluice::models
