#include "planner/derive.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fake_source.h"
#include "models/features/feature_transform.h"
#include "models/model.pb.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"

namespace sluice::planner {
namespace {

using models::Categorizer;
using models::Feature;

class Derive : public ::testing::Test {
 protected:
  // Plans a training over one feature column `x` and a label of two classes.
  void AddTable(DataType type, const std::vector<Value>& cells) {
    FakeTable table;
    table.schema.columns = {ColumnOf("x", type), ColumnOf("y", DataType::kInt64)};
    for (size_t i = 0; i < cells.size(); ++i) {
      table.rows.push_back({cells[i], Value(static_cast<int64_t>(i % 2))});
    }
    source_.tables["t"] = table;
  }

  plan::TrainPlan Train(const std::string& clauses,
                        const std::string& type = "DNNClassifier WITH model.hidden_units=[4]") {
    auto parsed =
        parser::Parse("SELECT * FROM t TO TRAIN " + type + " " + clauses + " LABEL y INTO m");
    EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
    auto plan = MakePlan(std::get<parser::TrainStatement>(parsed->at(0)), source_, source_.models(),
                         Options());
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    if (!plan.ok()) {
      return plan::TrainPlan();
    }
    // The models accept what the planner makes.
    const bool trees = type.rfind("xgboost", 0) == 0;
    const auto transform = models::FeatureTransform::Make(
        plan->train().model().features(), trees ? models::FeatureTransform::Target::kTrees
                                                : models::FeatureTransform::Target::kNetwork);
    EXPECT_TRUE(transform.ok()) << transform.status().ToString();
    return plan->train();
  }

  Feature First(const std::string& clauses = "",
                const std::string& type = "DNNClassifier WITH model.hidden_units=[4]") {
    const plan::TrainPlan plan = Train(clauses, type);
    return plan.model().features().features_size() > 0 ? plan.model().features().features(0)
                                                       : Feature();
  }

  FakeSource source_;
};

std::vector<Value> Texts(std::initializer_list<const char*> cells) {
  std::vector<Value> values;
  for (const char* cell : cells) {
    values.push_back(cell == nullptr ? Value() : Value(std::string(cell)));
  }
  return values;
}

TEST_F(Derive, NumbersAreStandardised) {
  AddTable(DataType::kInt64, {Value(int64_t{1}), Value(int64_t{3})});
  const Feature feature = First();
  EXPECT_EQ(feature.kind(), Feature::NUMERIC);
  EXPECT_DOUBLE_EQ(feature.offset(), 2);
  EXPECT_DOUBLE_EQ(feature.scale(), 1);
  EXPECT_FALSE(feature.null_indicator());
}

TEST_F(Derive, NullsGetAnIndicatorAndTreesTheNumberItself) {
  AddTable(DataType::kDouble, {Value(1.0), Value(), Value(9.0)});
  EXPECT_TRUE(First().null_indicator());
  const Feature raw = First("", "xgboost.gbtree");
  EXPECT_FALSE(raw.null_indicator());
  EXPECT_EQ(raw.offset(), 0);
  EXPECT_EQ(raw.scale(), 1);
}

TEST_F(Derive, ConstantAndNonFiniteNumbersDoNotDivideByZero) {
  AddTable(DataType::kDouble, {Value(5.0), Value(5.0)});
  EXPECT_EQ(First().scale(), 1);
  AddTable(DataType::kDouble, {Value(1.0), Value(std::nan("")), Value(3.0)});
  EXPECT_DOUBLE_EQ(First().offset(), 2);
}

TEST_F(Derive, FewWordsAreAVocabularyByFrequency) {
  AddTable(DataType::kText, Texts({"b", "a", "b", "c", nullptr}));
  const Feature feature = First();
  ASSERT_EQ(feature.categorizer().kind(), Categorizer::VOCABULARY);
  EXPECT_EQ(feature.categorizer().vocabulary(0), "b");
  EXPECT_EQ(feature.categorizer().oov_bucket(), 3);
  EXPECT_EQ(feature.categorizer().null_bucket(), 4);
  EXPECT_EQ(feature.categorizer().buckets(), 5U);
  EXPECT_EQ(feature.representation(), Feature::EMBEDDING);
  EXPECT_EQ(First("", "LinearClassifier").representation(), Feature::INDICATOR);
}

TEST_F(Derive, ManyWordsAreHashed) {
  std::vector<Value> cells;
  for (int i = 0; i < 3000; ++i) {
    cells.push_back("word" + std::to_string(i / 2));
  }
  AddTable(DataType::kText, cells);
  const Feature feature = First();
  EXPECT_EQ(feature.categorizer().kind(), Categorizer::HASH);
  EXPECT_EQ(feature.categorizer().null_bucket(), 4096);  // 1,500 words, twice, a power of two
  EXPECT_EQ(feature.dimension(), 16U);
}

TEST_F(Derive, NumbersAmongWordsForNoneAreNumbers) {
  AddTable(DataType::kText, Texts({"1", "N/A", "3", "unknown"}));
  EXPECT_EQ(First().kind(), Feature::NUMERIC);
  EXPECT_DOUBLE_EQ(First().offset(), 2);
  EXPECT_TRUE(First().null_indicator());
  AddTable(DataType::kText, Texts({"yes", "no", "unknown"}));
  EXPECT_EQ(First().categorizer().vocabulary_size(), 3);
  AddTable(DataType::kText, Texts({"1,2", "3,4", "N/A"}));
  EXPECT_EQ(First().kind(), Feature::CATEGORY);
  EXPECT_EQ(First().categorizer().kind(), Categorizer::VOCABULARY);
}

TEST_F(Derive, TimesOfDayAreTimes) {
  AddTable(DataType::kText, Texts({"9:05", "23:30", "12:00:30", "07:45"}));
  EXPECT_EQ(First().name(), "x");
  EXPECT_EQ(First().time_part(), "days");
  EXPECT_EQ(Train("").model().features().features(1).name(), "x_hour");
  EXPECT_EQ(Train("").model().features().features_size(), 2);  // less than most of a day
  AddTable(DataType::kText, Texts({"9:05", "23:30", "77:00"}));
  EXPECT_EQ(First().kind(), Feature::CATEGORY);
}

TEST_F(Derive, PaddedDigitsAreCodes) {
  AddTable(DataType::kText, Texts({"01003", "01004", "01003", "90210", "01004", "90210"}));
  EXPECT_EQ(First().categorizer().vocabulary_size(), 3);
  EXPECT_EQ(First("", "xgboost.gbtree").kind(), Feature::NUMERIC);
}

TEST_F(Derive, ListsOfAFewNamesAreTheirNames) {
  std::vector<Value> cells;
  for (int i = 0; i < 64; ++i) {
    std::string cell;
    for (const auto& [bit, name] : {std::pair{1, "price"}, std::pair{2, "very good"},
                                    std::pair{4, "app"}, std::pair{8, "late"}}) {
      cell += (i & bit) != 0 ? (cell.empty() ? "" : "; ") + std::string(name) : "";
    }
    cells.emplace_back(cell);
  }
  AddTable(DataType::kText, cells);
  const Feature feature = First("", "LinearClassifier");
  EXPECT_EQ(feature.categorizer().kind(), Categorizer::VOCABULARY);
  EXPECT_EQ(feature.categorizer().vocabulary_size(), 4);
  EXPECT_EQ(feature.format().delimiter(), ";");
  EXPECT_EQ(feature.representation(), Feature::INDICATOR);
  // Of lists in brackets, words are read, without the brackets.
  for (Value& cell : cells) {
    cell = "[" + std::get<std::string>(cell) + "]";
  }
  AddTable(DataType::kText, cells);
  EXPECT_EQ(First("", "LinearClassifier").format().kind(), models::TensorFormat::TEXT);
  // Pairs whose parts go with one partner each are names themselves.
  cells.clear();
  for (int i = 0; i < 64; ++i) {
    cells.emplace_back("city" + std::to_string(i % 16) + ", country" + std::to_string(i % 16 / 3));
  }
  AddTable(DataType::kText, cells);
  EXPECT_EQ(First("", "LinearClassifier").format().kind(), models::TensorFormat::NONE);
}

TEST_F(Derive, TextThatIsNumbersIsANumberAndBlanksAreMissing) {
  AddTable(DataType::kText, Texts({"1", " 3 ", ""}));
  const Feature feature = First();
  EXPECT_EQ(feature.kind(), Feature::NUMERIC);
  EXPECT_DOUBLE_EQ(feature.offset(), 2);
  EXPECT_TRUE(feature.null_indicator());
}

TEST_F(Derive, CellsThatHoldTensors) {
  AddTable(DataType::kText, Texts({"1,2,3", "4,5,6"}));
  EXPECT_EQ(First().width(), 3U);
  EXPECT_DOUBLE_EQ(First().offset(), 3.5);
  AddTable(DataType::kText, Texts({"1:0.5 7:2", "3:1 2:2"}));
  EXPECT_EQ(First().kind(), Feature::TENSOR);
  EXPECT_EQ(First().width(), 8U);
  AddTable(DataType::kText, Texts({"1:0.5 70000:2", "3:1 2:2"}));
  EXPECT_EQ(First().kind(), Feature::CATEGORY);
  EXPECT_TRUE(First().weighted());
  AddTable(DataType::kText, Texts({"1,2,3", "7"}));
  EXPECT_EQ(First().categorizer().kind(), Categorizer::IDENTITY);
  EXPECT_EQ(First().categorizer().oov_bucket(), 8);
  EXPECT_EQ(First().categorizer().null_bucket(), -1);
}

TEST_F(Derive, TimesBecomeANumberAndTheirChangingParts) {
  using Names = std::vector<std::string>;
  const auto names = [this](int64_t days) {
    constexpr int64_t kDay = 86'400'000'000;
    std::vector<Value> cells;  // all at midnight
    for (int64_t day = 0; day < days; ++day) {
      cells.emplace_back(day * kDay);
    }
    AddTable(DataType::kTimestamp, cells);
    const plan::TrainPlan plan = Train("");
    Names found;
    for (const Feature& feature : plan.model().features().features()) {
      found.push_back(feature.name());
    }
    return found;
  };
  EXPECT_EQ(names(7), (Names{"x", "x_weekday"}));
  EXPECT_EQ(names(364), (Names{"x", "x_weekday", "x_month", "x_year_sin", "x_year_cos"}));
  // Of a part of a cycle nothing can be learnt about the rest.
  EXPECT_EQ(names(3), (Names{"x"}));
  EXPECT_EQ(names(90), (Names{"x", "x_weekday"}));
}

TEST_F(Derive, ATrendIsContinuedForAsLongAsItWasSeen) {
  constexpr int64_t kDay = 86'400'000'000;
  AddTable(DataType::kTimestamp, {Value(10 * kDay), Value(20 * kDay), Value(30 * kDay)});
  EXPECT_DOUBLE_EQ(First().lowest(), -10);
  EXPECT_DOUBLE_EQ(First().highest(), 50);
  EXPECT_DOUBLE_EQ(First("", "xgboost.gbtree").highest(), 0);  // beyond the last split all is equal
}

TEST_F(Derive, RequestedBuckets) {
  std::vector<Value> cells;
  for (int64_t i = 0; i < 100; ++i) {
    cells.push_back(Value(i));
  }
  AddTable(DataType::kInt64, cells);
  const Feature quantiles = First("COLUMN QUANTILE(x, 4)");
  ASSERT_EQ(quantiles.categorizer().boundaries_size(), 3);
  EXPECT_EQ(quantiles.categorizer().boundaries(0), 25);
  EXPECT_EQ(quantiles.categorizer().null_bucket(), 4);
  const Feature two = First("COLUMN BUCKET(x, 40)");
  ASSERT_EQ(two.categorizer().boundaries_size(), 1);
  EXPECT_EQ(two.categorizer().boundaries(0), 40);
  const Feature given = First("COLUMN INDICATOR(BUCKET(x, [10.5, 20]))");
  EXPECT_EQ(given.categorizer().boundaries(0), 10.5);
  EXPECT_EQ(given.representation(), Feature::INDICATOR);
}

TEST_F(Derive, RequestedScales) {
  AddTable(DataType::kDouble, {Value(0.0), Value(10.0)});
  const Feature normal = First("COLUMN NORMALIZE(x)");
  EXPECT_DOUBLE_EQ(normal.offset(), 0);
  EXPECT_DOUBLE_EQ(normal.scale(), 0.1);
  EXPECT_TRUE(First("COLUMN LOG(x)").logarithm());
}

// Quantiles of powers of an exponential distribution, whose own skewness is 2.
TEST_F(Derive, AModerateTailGetsBothScalesAndAHeavyOneItsLogarithm) {
  const auto scales = [this](double power) {
    std::vector<Value> cells;
    for (int i = 0; i < 1'000; ++i) {
      cells.emplace_back(100 * std::pow(-std::log(1 - (i + 0.5) / 1'000), power));
    }
    AddTable(DataType::kDouble, cells);
    std::string names;
    const plan::TrainPlan plan = Train("");
    for (const Feature& feature : plan.model().features().features()) {
      names += feature.logarithm() ? "log " : "plain ";
    }
    return names;
  };
  EXPECT_EQ(scales(0.5), "plain ");
  EXPECT_EQ(scales(1.3), "log plain ");
  EXPECT_EQ(scales(2), "log ");
}

TEST_F(Derive, OneTargetRefinesSeveralRestrict) {
  source_.tables["t"] = SmallCensus(400);
  source_.tables["t"].schema.columns[4].name = "y";
  EXPECT_EQ(Train("COLUMN age").model().features().features_size(), 4);
  const plan::TrainPlan two =
      Train("COLUMN age FOR linear_feature_columns COLUMN hours, age FOR dnn_feature_columns",
            "DNNLinearCombinedClassifier WITH model.dnn_hidden_units=[4]");
  const auto& features = two.model().features();
  ASSERT_EQ(features.features_size(), 3);
  EXPECT_EQ(features.features(0).part(), Feature::WIDE);
  EXPECT_EQ(features.features(1).part(), Feature::DEEP);
  EXPECT_EQ(features.features(1).name(), "age_2");
  EXPECT_EQ(features.inputs_size(), 2);  // age is read once
}

TEST_F(Derive, PatternsMeanEveryMatchingColumnButTheLabel) {
  source_.tables["t"] = SmallCensus(400);
  source_.tables["t"].schema.columns[4].name = "y";
  const plan::TrainPlan plan = Train("COLUMN CATEGORY_HASH('.*', 50)");
  EXPECT_EQ(plan.model().features().features_size(), 4);
  for (const Feature& feature : plan.model().features().features()) {
    EXPECT_EQ(feature.categorizer().null_bucket(), 50);
  }
}

TEST_F(Derive, CrossesHaveHashedMembers) {
  source_.tables["t"] = SmallCensus(400);
  source_.tables["t"].schema.columns[4].name = "y";
  const plan::TrainPlan plan = Train("COLUMN CROSS([workclass, BUCKET(age, [30, 50])], 64)");
  const Feature& cross = plan.model().features().features(4);
  EXPECT_EQ(cross.name(), "workclass_x_age");
  ASSERT_EQ(cross.categorizer().members_size(), 2);
  EXPECT_EQ(cross.categorizer().members(1).kind(), Categorizer::BUCKET);
}

TEST_F(Derive, ClassesStandInOrder) {
  FakeTable table;
  table.schema.columns = {ColumnOf("x", DataType::kDouble), ColumnOf("y", DataType::kText)};
  for (const char* label : {"10", "9", "10", "100"}) {
    table.rows.push_back({Value(1.0), Value(std::string(label))});
  }
  source_.tables["t"] = table;
  const auto classes = Train("").model().features().label().classes();
  EXPECT_EQ((std::vector<std::string>(classes.begin(), classes.end())),
            (std::vector<std::string>{"9", "10", "100"}));
}

TEST_F(Derive, NumberLabelsAreScaledForNetworksAndSquaredErrorsOfTrees) {
  FakeTable table;
  table.schema.columns = {ColumnOf("x", DataType::kDouble), ColumnOf("y", DataType::kDouble)};
  for (double label : {10.0, 30.0, 50.5}) {
    table.rows.push_back({Value(label), Value(label)});
  }
  source_.tables["t"] = table;
  EXPECT_GT(Train("", "LinearRegressor").model().features().label().scale(), 10);
  EXPECT_GT(Train("", "xgboost.gbtree").model().features().label().scale(), 10);
  EXPECT_GT(Train("", "xgboost.gbtree WITH objective='reg:squarederror', eval_metric='mae'")
                .model()
                .features()
                .label()
                .scale(),
            10);
  for (const std::string attribute : {"objective='reg:pseudohubererror'",
                                      "objective='reg:absoluteerror'", "eval_metric='mphe'"}) {
    const models::LabelPlan centred =
        Train("", "xgboost.gbtree WITH " + attribute).model().features().label();
    EXPECT_NEAR(centred.mean(), 90.5 / 3, 1e-9) << attribute;
    EXPECT_EQ(centred.scale(), 1) << attribute;
  }
  for (const std::string attribute : {"objective='count:poisson'", "eval_metric='rmsle'",
                                      "objective='reg:pseudohubererror', eval_metric='mape'"}) {
    const models::LabelPlan raw =
        Train("", "xgboost.gbtree WITH " + attribute).model().features().label();
    EXPECT_EQ(raw.kind(), models::LabelPlan::NUMBER);
    EXPECT_EQ(raw.mean(), 0) << attribute;
    EXPECT_EQ(raw.scale(), 1) << attribute;
  }
}

// Their squares are no doubles.
TEST_F(Derive, LabelsOfAnyMagnitudeAreScaled) {
  for (const double unit : {1e300, 1e-300}) {
    FakeTable table;
    table.schema.columns = {ColumnOf("x", DataType::kDouble), ColumnOf("y", DataType::kDouble)};
    for (const double number : {1.0, 3.0, 5.0, 2.0}) {
      table.rows.push_back({Value(number), Value(number * unit)});
    }
    source_.tables["t"] = table;
    const models::FeaturePlan plan = Train("", "LinearRegressor").model().features();
    EXPECT_NEAR(plan.label().mean() / unit, 2.75, 1e-9);
    EXPECT_NEAR(plan.label().scale() / unit, 2, 1e-9);
  }
}

}  // namespace
}  // namespace sluice::planner
