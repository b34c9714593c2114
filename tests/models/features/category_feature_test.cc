#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/features/feature_plans.h"

namespace sluice::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(VocabularyTest, TextsKnownUnseenAndNull) {
  FeaturePlan plan = PlanOf({"city"});
  Categorizer* categorizer = Category(&plan, Categorizer::VOCABULARY, 6)->mutable_categorizer();
  for (const char* text : {"a", "a city whose name is longer than sixteen bytes", "ab", ""}) {
    categorizer->add_vocabulary(text);
  }
  categorizer->set_oov_bucket(4);
  categorizer->set_null_bucket(5);
  const IdSlot slot =
      ApplySlot(plan, Batch({Texts({"ab", "a", "b", std::nullopt, "",
                                    "a city whose name is longer than sixteen bytes",
                                    "a city whose name is longer than sixteen bytez"})}));
  EXPECT_THAT(slot.ids, ElementsAre(2, 0, 4, 5, 3, 1, 4));
  EXPECT_THAT(slot.ends, IsEmpty());
  EXPECT_THAT(slot.weights, IsEmpty());
}

TEST(VocabularyTest, InAnyCase) {
  FeaturePlan plan = PlanOf({"plan"});
  Categorizer* categorizer = Category(&plan, Categorizer::VOCABULARY, 4)->mutable_categorizer();
  categorizer->add_vocabulary("basic");
  categorizer->add_vocabulary("a name that is longer than sixteen bytes");
  categorizer->set_oov_bucket(2);
  categorizer->set_null_bucket(3);
  const RowBatch batch = Batch({Texts({"Basic", " BASIC ", "basic", "Basics", std::nullopt,
                                       "A Name That Is Longer Than Sixteen Bytes"})});
  EXPECT_THAT(ApplySlot(plan, batch).ids, ElementsAre(2, 2, 0, 2, 3, 2));
  categorizer->set_any_case(true);
  EXPECT_THAT(ApplySlot(plan, batch).ids, ElementsAre(0, 0, 0, 2, 3, 1));
}

TEST(VocabularyTest, ManyTextsOfEveryLengthAreFound) {
  FeaturePlan plan = PlanOf({"t"});
  Categorizer* categorizer = Category(&plan, Categorizer::VOCABULARY, 2001)->mutable_categorizer();
  std::vector<std::string> texts;
  for (int i = 0; i < 2000; ++i) {
    texts.push_back(std::string(static_cast<size_t>(i % 40), 'x') + std::to_string(i));
    categorizer->add_vocabulary(texts.back());
  }
  categorizer->set_oov_bucket(2000);
  RowBatch::Column column;
  column.type = DataType::kText;
  std::vector<std::string> absent;
  for (const std::string& text : texts) {
    absent.push_back(text + "y");
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    column.texts.push_back(texts[i]);
    column.texts.push_back(absent[i]);
    column.null.insert(column.null.end(), {0, 0});
  }
  const IdSlot slot = ApplySlot(plan, Batch({column}));
  for (size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(slot.ids[2 * i], i);
    ASSERT_EQ(slot.ids[2 * i + 1], 2000U);
  }
}

TEST(VocabularyTest, NumbersAreFoundUnderTheirText) {
  FeaturePlan plan = PlanOf({"n"});
  Categorizer* categorizer = Category(&plan, Categorizer::VOCABULARY, 8)->mutable_categorizer();
  for (const char* text : {"39", "-5", "2.5", "1000000000000", "t", "1970-01-01 00:00:01"}) {
    categorizer->add_vocabulary(text);
  }
  categorizer->set_oov_bucket(6);
  categorizer->set_null_bucket(7);
  EXPECT_THAT(ApplySlot(plan, Batch({Integers({39, -5, 40, 1'000'000'000'000, std::nullopt})})).ids,
              ElementsAre(0, 1, 6, 3, 7));
  EXPECT_THAT(ApplySlot(plan, Batch({Doubles({39, 2.5, 2.4, kNaN, 1e12})})).ids,
              ElementsAre(0, 2, 6, 7, 3));
  EXPECT_THAT(ApplySlot(plan, Batch({Texts({"39", "2.5"})})).ids, ElementsAre(0, 2));
  EXPECT_THAT(ApplySlot(plan, Batch({Integers({1, 0}, DataType::kBool)})).ids, ElementsAre(4, 6));
  EXPECT_THAT(ApplySlot(plan, Batch({Integers({1'000'000}, DataType::kTimestamp)})).ids,
              ElementsAre(5));
}

TEST(VocabularyTest, WithoutBucketsAbsentRowsHaveNoId) {
  FeaturePlan plan = PlanOf({"c"});
  Category(&plan, Categorizer::VOCABULARY, 2)->mutable_categorizer()->add_vocabulary("a");
  const IdSlot slot = ApplySlot(plan, Batch({Texts({"b", "a", std::nullopt, "a"})}));
  EXPECT_THAT(slot.ids, ElementsAre(0, 0));
  EXPECT_THAT(slot.ends, ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(slot.Begin(1), 0U);
  EXPECT_EQ(slot.End(1), 1U);
}

TEST(CategorizerTest, IdentityKeepsItsRange) {
  FeaturePlan plan = PlanOf({"id"});
  Categorizer* categorizer = Category(&plan, Categorizer::IDENTITY, 6)->mutable_categorizer();
  categorizer->set_oov_bucket(4);
  categorizer->set_null_bucket(5);
  EXPECT_THAT(ApplySlot(plan, Batch({Integers({0, 3, 4, 5, -1, std::nullopt})})).ids,
              ElementsAre(0, 3, 4, 4, 4, 5));
  EXPECT_THAT(ApplySlot(plan, Batch({Doubles({2, 2.5, -1, kNaN})})).ids, ElementsAre(2, 4, 4, 5));
  EXPECT_THAT(ApplySlot(plan, Batch({Texts({"2", "x", "99"})})).ids, ElementsAre(2, 4, 4));
}

TEST(CategorizerTest, HashDoesNotDependOnTheColumnsType) {
  FeaturePlan plan = PlanOf({"h"});
  Categorizer* categorizer = Category(&plan, Categorizer::HASH, 1001)->mutable_categorizer();
  categorizer->set_null_bucket(1000);
  const IdSlot texts = ApplySlot(plan, Batch({Texts({"39", "-2", "0.25", std::nullopt})}));
  EXPECT_EQ(texts.ids[0], ApplySlot(plan, Batch({Integers({39})})).ids[0]);
  EXPECT_THAT(ApplySlot(plan, Batch({Doubles({39, -2, 0.25, kNaN})})).ids, texts.ids);
  EXPECT_EQ(texts.ids[3], 1000U);
  EXPECT_EQ(texts.ids[0], HashText("39") % 1000);
}

TEST(CategorizerTest, HashesAreTheSameEverywhere) {
  // Models store no hash table, so these values may never change.
  EXPECT_EQ(HashText(""), HashText(std::string_view()));
  EXPECT_NE(HashText("ab"), HashText("ba"));
  EXPECT_NE(HashInteger(0), 0U);
  EXPECT_EQ(HashInteger(1), 0x910a2dec89025cc1U);
}

TEST(CategorizerTest, BucketIsSearchsortedRight) {
  FeaturePlan plan = PlanOf({"b"});
  Categorizer* categorizer = Category(&plan, Categorizer::BUCKET, 6)->mutable_categorizer();
  for (const double boundary : {-1.0, 2.0, 3.0, 4.0}) {
    categorizer->add_boundaries(boundary);
  }
  categorizer->set_null_bucket(5);
  EXPECT_THAT(
      ApplySlot(plan, Batch({Doubles({-2, -1, -0.5, 2, 2.5, 3, 3.5, 4, 5, kNaN, std::nullopt})}))
          .ids,
      ElementsAre(0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5));
  EXPECT_THAT(ApplySlot(plan, Batch({Texts({"2.5", ""})})).ids, ElementsAre(2, 5));
  EXPECT_FALSE(ApplyStatus(plan, Batch({Texts({"x"})})).ok());
}

TEST(CategorizerTest, TimeParts) {
  // Tuesday 2014-04-01 13:45:00.
  constexpr int64_t kMicros = 1'396'359'900'000'000;
  const auto part = [](const std::string& name, uint32_t buckets, RowBatch::Column column) {
    FeaturePlan plan = PlanOf({"at"});
    Categorizer* categorizer =
        Category(&plan, Categorizer::TIME_PART, buckets + 1)->mutable_categorizer();
    categorizer->set_time_part(name);
    categorizer->set_null_bucket(buckets);
    return ApplySlot(plan, Batch({std::move(column)})).ids;
  };
  const RowBatch::Column times = Integers({kMicros, std::nullopt, -1}, DataType::kTimestamp);
  EXPECT_THAT(part("hour", 24, times), ElementsAre(13, 24, 23));
  EXPECT_THAT(part("minute", 60, times), ElementsAre(45, 60, 59));
  EXPECT_THAT(part("weekday", 7, times), ElementsAre(1, 7, 2));
  EXPECT_THAT(part("day", 31, times), ElementsAre(0, 31, 30));
  EXPECT_THAT(part("month", 12, times), ElementsAre(3, 12, 11));
  EXPECT_THAT(part("quarter", 4, times), ElementsAre(1, 4, 3));
  EXPECT_THAT(part("hour", 24, Texts({"2014-04-01 13:45:00", ""})), ElementsAre(13, 24));
}

TEST(SparseTest, SeveralIdsOfARow) {
  FeaturePlan plan = PlanOf({"words"});
  Feature* feature = Category(&plan, Categorizer::IDENTITY, 10);
  feature->mutable_format()->set_kind(TensorFormat::CSV);
  feature->mutable_format()->set_delimiter(",");
  feature->mutable_format()->set_sparse(true);
  const IdSlot slot = ApplySlot(plan, Batch({Texts({"1,5,7", "", std::nullopt, "3, 99"})}));
  EXPECT_THAT(slot.ids, ElementsAre(1, 5, 7, 3));
  EXPECT_THAT(slot.ends, ElementsAre(3, 3, 3, 4));
  EXPECT_THAT(slot.weights, IsEmpty());
  EXPECT_THAT(ApplyStatus(plan, Batch({Texts({"1,x"})})).message(), HasSubstr("found 'x'"));
  EXPECT_FALSE(ApplyStatus(plan, Batch({Texts({"1,,2"})})).ok());
}

TEST(SparseTest, KeyValueWeights) {
  FeaturePlan plan = PlanOf({"feature"});
  Feature* feature = Category(&plan, Categorizer::HASH, 10);
  feature->mutable_format()->set_kind(TensorFormat::KEY_VALUE);
  feature->mutable_format()->set_delimiter("|");
  feature->mutable_format()->set_key_value_delimiter("::");
  feature->set_weighted(true);
  feature->mutable_categorizer()->set_null_bucket(9);
  const IdSlot slot = ApplySlot(plan, Batch({Texts({"k::1.5|b::-3", std::nullopt, "k"})}));
  EXPECT_THAT(slot.ends, ElementsAre(2, 3, 4));
  EXPECT_THAT(slot.weights, ElementsAre(1.5F, -3, 1, 1));
  EXPECT_EQ(slot.ids[0], HashText("k") % 9);
  EXPECT_EQ(slot.ids[0], slot.ids[3]);
  EXPECT_EQ(slot.ids[2], 9U);
  EXPECT_THAT(ApplyStatus(plan, Batch({Texts({"k::heavy"})})).message(), HasSubstr("heavy"));
}

FeaturePlan CrossPlan() {
  FeaturePlan plan = PlanOf({"a", "b"});
  Feature* feature = Category(&plan, Categorizer::CROSS, 101);
  feature->add_inputs(1);
  feature->mutable_categorizer()->set_null_bucket(100);
  for (int i = 0; i < 2; ++i) {
    Categorizer* member = feature->mutable_categorizer()->add_members();
    member->set_kind(Categorizer::HASH);
    member->set_buckets(1'000'000);
    member->set_null_bucket(-1);
    member->set_oov_bucket(-1);
  }
  return plan;
}

TEST(CrossTest, PairsDecide) {
  const IdSlot slot = ApplySlot(
      CrossPlan(), Batch({Texts({"x", "x", "y", "x", std::nullopt}), Integers({1, 2, 1, 1, 1})}));
  ASSERT_EQ(slot.End(4), 5U);
  EXPECT_EQ(slot.ids[0], slot.ids[3]);
  EXPECT_NE(slot.ids[0], slot.ids[1]);
  EXPECT_NE(slot.ids[0], slot.ids[2]);
  EXPECT_EQ(slot.ids[4], 100U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_LT(slot.ids[i], 100U);
  }
}

TEST(CrossTest, ListsGiveEveryCombination) {
  FeaturePlan plan = CrossPlan();
  TensorFormat* format = plan.mutable_features(0)->mutable_format();
  format->set_kind(TensorFormat::CSV);
  format->set_delimiter(",");
  const IdSlot slot = ApplySlot(plan, Batch({Texts({"1,2", "1"}), Integers({7, 7})}));
  EXPECT_THAT(slot.ends, ElementsAre(2, 3));
  EXPECT_EQ(slot.ids[0], slot.ids[2]);
  // Alone or in a list, the same pair has the same id.
  EXPECT_EQ(slot.ids[0], ApplySlot(CrossPlan(), Batch({Texts({"1"}), Integers({7})})).ids[0]);
  std::string longest = "1";
  for (int i = 0; i < 5000; ++i) {
    longest += ",1";
  }
  EXPECT_THAT(ApplyStatus(plan, Batch({Texts({longest}), Integers({7})})).message(),
              HasSubstr("more than 4096 ids"));
}

}  // namespace
}  // namespace sluice::models
