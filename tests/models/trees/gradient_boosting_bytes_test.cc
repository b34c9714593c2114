#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "models/checksum_internal.h"
#include "tests/models/trees/boosting.h"

// Forged saved models, with correct checksums: they are refused, or they can predict.
namespace sluice::models {
namespace {

constexpr size_t kHeader = 12;  // "SLXG" and the checksum

std::string Sealed(std::string_view raw) {
  const uint64_t checksum = ChecksumOf(raw);
  std::string bytes = "SLXG";
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return bytes + std::string(raw);
}

struct Saved {
  ModelSpec spec;
  FeatureBatch rows;
  std::string raw;
};

Saved MakeSaved(const std::string& type, int classes, const std::string& objective = "") {
  Saved saved;
  saved.spec = ClassTrees(type, 3, classes);
  SetInteger(&saved.spec, "max_depth", 3);
  if (!objective.empty()) {
    SetText(&saved.spec, "objective", objective);
  }
  saved.rows = ClassRows(60, 3, classes);
  const auto trees = MakeTrees(saved.spec);
  Batches train({saved.rows});
  const Status trained = Train(trees.get(), &train);
  EXPECT_TRUE(trained.ok()) << trained.ToString();
  saved.raw = trees->Save()->substr(kHeader);
  return saved;
}

std::vector<Saved> SomeModels() {
  return {MakeSaved("xgboost.gbtree", 2), MakeSaved("xgboost.gbtree", 3),
          MakeSaved("xgboost.dart", 2), MakeSaved("xgboost.gblinear", 3),
          MakeSaved("XGBRFClassifier", 3)};
}

// Whether `raw` loads; a model that loads must be able to predict.
Status LoadAndPredict(const Saved& saved, std::string_view raw) {
  const auto trees = MakeTrees(saved.spec);
  RETURN_IF_ERROR(trees->Load(Sealed(raw)));
  std::vector<double> predictions;
  EXPECT_TRUE(trees->Predict(saved.rows, &predictions).ok());
  EXPECT_EQ(predictions.size(), saved.rows.rows * trees->outputs());
  EXPECT_TRUE(trees->FeatureImportance().ok());
  return OkStatus();
}

TEST(BoostedBytesTest, ChangedBytesAreRefusedOrPredict) {
  for (const Saved& saved : SomeModels()) {
    ASSERT_TRUE(LoadAndPredict(saved, saved.raw).ok());
    std::mt19937 random(7);
    size_t refused = 0;
    constexpr size_t kTries = 200;
    for (size_t i = 0; i < kTries; ++i) {
      std::string raw = saved.raw;
      const size_t at = random() % raw.size();
      const char values[] = {'\0', '\x7f', '\xff', static_cast<char>(random())};
      raw[at] = values[random() % 4];
      refused += LoadAndPredict(saved, raw).ok() ? 0 : 1;
    }
    EXPECT_GT(refused, kTries / 4);
  }
}

TEST(BoostedBytesTest, CutAndSplicedBytesAreRefused) {
  for (const Saved& saved : SomeModels()) {
    std::mt19937 random(8);
    for (size_t i = 0; i < 100; ++i) {
      const size_t begin = random() % saved.raw.size();
      const size_t size = 1 + random() % 40;
      const size_t to = random() % saved.raw.size();
      std::string longer = saved.raw;
      longer.insert(to, saved.raw.substr(begin, size));
      EXPECT_FALSE(LoadAndPredict(saved, longer).ok());
      EXPECT_FALSE(LoadAndPredict(saved, saved.raw.substr(0, begin)).ok());
      EXPECT_FALSE(LoadAndPredict(saved, saved.raw + saved.raw.substr(begin, size)).ok());
    }
  }
}

// The big-endian number at `index` of the first array of that name.
void SetElement(std::string* raw, const std::string& name, size_t index, uint32_t value) {
  size_t at = raw->find(name + "[$");
  ASSERT_NE(at, std::string::npos) << name;
  at += name.size() + 13 + index * 4;  // "[$l#L" and eight bytes of length
  for (int shift = 24; shift >= 0; shift -= 8) {
    (*raw)[at++] = static_cast<char>(value >> shift);
  }
}
void Replace(std::string* raw, const std::string& from, const std::string& to) {
  const size_t at = raw->find(from);
  ASSERT_NE(at, std::string::npos) << from;
  ASSERT_EQ(from.size(), to.size());
  raw->replace(at, from.size(), to);
}
std::string Parameter(const std::string& name, const std::string& text) {
  return name + "SL" + std::string(7, '\0') + static_cast<char>(text.size()) + text;
}

TEST(BoostedBytesTest, CategoriesAreHeldAgainstTheirNodes) {
  Saved saved = MakeSaved("xgboost.gbtree", 2);
  for (size_t r = 0; r < saved.rows.rows; ++r) {  // so that the root parts categories
    saved.rows.labels[r] = saved.rows.slots[0].ids[r] % 2 == 0 ? 1 : 0;
  }
  const auto trees = MakeTrees(saved.spec);
  Batches train({saved.rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  saved.raw = trees->Save()->substr(kHeader);
  const auto changed = [&saved](const std::string& name, size_t index, uint32_t value) {
    std::string raw = saved.raw;
    SetElement(&raw, name, index, value);
    return LoadAndPredict(saved, raw).message();
  };
  const std::string fault =
      "the stored model is damaged: tree 0: its categories do not fit its nodes";
  EXPECT_EQ(changed("categories", 0, 1), "") << "another one";
  EXPECT_EQ(changed("categories", 0, 1024), fault);
  EXPECT_EQ(changed("categories", 0, 0xffffffff), fault);
  EXPECT_EQ(changed("categories_nodes", 0, 1), fault);
  EXPECT_EQ(changed("categories_segments", 0, 1), fault);  // the upper half of the number
  EXPECT_EQ(changed("categories_segments", 1, 1), fault);
  EXPECT_EQ(changed("categories_sizes", 0, 1), fault);
  EXPECT_EQ(changed("categories_sizes", 1, 0), fault);
  EXPECT_EQ(changed("categories_sizes", 1, 99), fault);
}

TEST(BoostedBytesTest, EveryIndexIsHeldAgainstThePlan) {
  const Saved saved = MakeSaved("xgboost.gbtree", 3);
  const auto element = [&saved](const std::string& name, size_t index, uint32_t value) {
    std::string raw = saved.raw;
    SetElement(&raw, name, index, value);
    return LoadAndPredict(saved, raw).message();
  };
  const std::string damaged = "the stored model is damaged: ";
  EXPECT_EQ(element("left_children", 0, 1'000'000),
            damaged + "tree 0: node 0 has no child 1000000");
  EXPECT_EQ(element("left_children", 0, 0), damaged + "tree 0: node 0 has no child 0");
  EXPECT_EQ(element("right_children", 0, 1), damaged + "tree 0: node 0 has no child 1");
  EXPECT_EQ(element("right_children", 1, 0), damaged + "tree 0: node 1 has no child 0");
  EXPECT_EQ(element("left_children", 0, 0xfffffffeU), damaged + "tree 0: node 0 has no child -2");
  EXPECT_EQ(element("parents", 1, 77), damaged + "tree 0: node 0 has no child 1");
  EXPECT_EQ(element("split_indices", 0, 3), damaged + "tree 0: node 0 splits column 3 of 3");
  EXPECT_EQ(element("split_conditions", 0, 0x7fc00000U),
            damaged + "tree 0: node 0 splits at no number");
  const auto replaced = [&saved](const std::string& from, const std::string& to) {
    std::string raw = saved.raw;
    Replace(&raw, from, to);
    return LoadAndPredict(saved, raw).message();
  };
  EXPECT_EQ(replaced(Parameter("num_class", "3"), Parameter("num_class", "9")),
            damaged + "it has '9' classes, its plan 3");
  EXPECT_EQ(replaced(Parameter("num_parallel_tree", "1"), Parameter("num_parallel_tree", "0")),
            damaged + "its trees do not make whole rounds");
  EXPECT_EQ(replaced(Parameter("num_trees", "9"), Parameter("num_trees", "8")),
            damaged + "it does not have as many trees as it says");
  EXPECT_EQ(replaced("multi:softprob", "multi:softmaxx"),
            damaged + "its objective is 'multi:softmaxx', that of its plan 'multi:softprob'");
  EXPECT_EQ(replaced(Parameter("num_feature", "3"), Parameter("num_feature", "4")),
            damaged + "a tree has other columns than its plan");
}

// Deeply nested text is refused without recursion.
TEST(BoostedBytesTest, NestedBytes) {
  const Saved saved = MakeSaved("xgboost.gbtree", 2);
  for (const std::string& open :
       {std::string("["), std::string("{"), std::string("[#L\0\0\0\0\0\0\0\1", 11),
        std::string("{L\0\0\0\0\0\0\0\1a", 11)}) {
    std::string raw;
    for (int i = 0; i < 200'000; ++i) {
      raw += open;
    }
    EXPECT_FALSE(LoadAndPredict(saved, raw).ok());
  }
  EXPECT_FALSE(LoadAndPredict(saved, "{\"learner\":{}}").ok());  // libxgboost's other format
}

// The checks accept every kind of model that libxgboost makes for us.
TEST(BoostedBytesTest, EveryObjectiveLoads) {
  for (const char* type : {"xgboost.gbtree", "xgboost.dart", "xgboost.gblinear"}) {
    for (const char* objective : {"binary:logistic", "binary:logitraw", "binary:hinge"}) {
      const Saved saved = MakeSaved(type, 2, objective);
      EXPECT_TRUE(LoadAndPredict(saved, saved.raw).ok()) << type << objective;
    }
    const Saved saved = MakeSaved(type, 2, "multi:softmax");
    EXPECT_TRUE(LoadAndPredict(saved, saved.raw).ok()) << type;
  }
  for (const char* objective :
       {"reg:squarederror", "reg:logistic", "reg:pseudohubererror", "count:poisson", "reg:gamma",
        "reg:tweedie", "rank:pairwise", "survival:cox"}) {
    Saved saved;
    saved.spec = TreeSpec("xgboost.gbtree", 2);
    AddNumber(&saved.spec, "a");
    AddNumber(&saved.spec, "b");
    AddCategory(&saved.spec, "c", 4, 0);
    SetNumberLabel(&saved.spec, 0, 1);
    SetText(&saved.spec, "objective", objective);
    saved.rows = ClassRows(60, 3);
    for (float& label : saved.rows.labels) {
      label = label * 0.5F + 0.25F;
    }
    saved.rows.groups.assign(60, 1);
    const auto trees = MakeTrees(saved.spec);
    Batches train({saved.rows});
    const Status trained = Train(trees.get(), &train);
    ASSERT_TRUE(trained.ok()) << objective << trained.ToString();
    EXPECT_TRUE(LoadAndPredict(saved, trees->Save()->substr(kHeader)).ok()) << objective;
  }
}

}  // namespace
}  // namespace sluice::models
