// Errors of statements that name a model: message, place, SQLSTATE, hint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/planner/statement_errors.h"

namespace sluice::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ModelErrors = StatementErrors;

TEST_F(ModelErrors, ModelNames) {
  StoreModel("m", "SELECT * FROM t TO TRAIN LinearClassifier LABEL income INTO m");
  EXPECT_THAT(Errors("CREATE MODEL m OPTIONS (model_type='LinearClassifier', label='income') AS "
                     "SELECT * FROM t"),
              ::testing::Contains(HasSubstr("42710 model 'm' exists already @m")));
  EXPECT_THAT(Errors("SELECT * FROM t LABEL income INTO m:2"),
              ElementsAre(HasSubstr("INTO names a model, not the version 2")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier LABEL income USING mm INTO n"),
              ElementsAre(HasSubstr("42704 no model 'mm' @mm [did you mean 'm'?]")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearRegressor LABEL hours USING m INTO n"),
              ElementsAre(HasSubstr("the model to continue from is a LinearClassifier, not a "
                                    "LinearRegressor @LinearRegressor")));
}

TEST_F(ModelErrors, Prediction) {
  StoreModel("m", "SELECT * FROM t TO TRAIN LinearClassifier LABEL income INTO m");
  EXPECT_THAT(
      Errors("SELECT age FROM t TO PREDICT r.income USING m"),
      ElementsAre(HasSubstr("42703 the predict statement doesn't contain columns workclass, "
                            "hours, married @")));
  EXPECT_THAT(Errors("SELECT * FROM t TO PREDICT r.income USING m:7"),
              ElementsAre(HasSubstr("42704 model 'm' has no version 7 @m:7")));
  EXPECT_THAT(Errors("SELECT * FROM t TO PREDICT t.income USING m"),
              ElementsAre("22023 the result table public.t is also read by the SELECT @t.income "
                          "[write the result to another table]"));
  EXPECT_THAT(Errors("SELECT * FROM t TO PREDICT r.income WITH predict.extra_outputs='probabilty' "
                     "USING m"),
              ElementsAre(HasSubstr("this model has no output 'probabilty' @'probabilty' [did you "
                                    "mean 'probability'?]")));
  source_.tables["wrong"] = source_.tables["t"];
  source_.tables["wrong"].schema.columns[0] = ColumnOf("age", DataType::kTimestamp);
  EXPECT_THAT(Errors("SELECT * FROM wrong TO PREDICT r.income USING m"),
              ElementsAre(HasSubstr("42804 column 'age' is timestamp in the predict statement, and "
                                    "the model learnt it as bigint")));
}

TEST_F(ModelErrors, EvaluationAndReport) {
  StoreModel("m", "SELECT * FROM t TO TRAIN LinearClassifier LABEL income INTO m");
  EXPECT_THAT(Errors("SELECT * FROM t TO EVALUATE m LABEL incme INTO r"),
              ElementsAre(HasSubstr("no column 'incme' in the SELECT @incme")));
  EXPECT_THAT(Errors("SELECT age, workclass, hours, married FROM t TO EVALUATE m"),
              ElementsAre(HasSubstr("no column 'income' in the SELECT")));
  EXPECT_THAT(Errors("SELECT * FROM t TO EVALUATE m WITH validation.metrics='MAE' LABEL income "
                     "INTO r"),
              ElementsAre(HasSubstr("metric 'MAE' does not suit this model")));
  EXPECT_THAT(Errors("SELECT * FROM t TO EVALUATE m LABEL income INTO t"),
              ElementsAre(HasSubstr("the result table public.t is also read")));
  EXPECT_THAT(Errors("SELECT * FROM t TO EXPLAIN m"),
              ElementsAre(HasSubstr("0A000 TO EXPLAIN of a LinearClassifier is not built yet")));
  StoreModel("x", "SELECT * FROM t TO TRAIN xgboost.gbtree LABEL income INTO x");
  EXPECT_THAT(Errors("SELECT * FROM t TO EXPLAIN x USING XGBoostExplaner"),
              ElementsAre(HasSubstr("unknown explainer 'XGBoostExplaner' @XGBoostExplaner [did you "
                                    "mean XGBoostExplainer?]")));
  EXPECT_THAT(Errors("SELECT * FROM t TO EXPLAIN x USING TreeExplainer"),
              ElementsAre(HasSubstr("0A000 TreeExplainer, the explanation of each row by its SHAP "
                                    "values, is not built yet @TreeExplainer")));
}

}  // namespace
}  // namespace sluice::planner
