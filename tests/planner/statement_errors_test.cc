// Errors that the planner detects in a statement: message, place, SQLSTATE, hint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/planner/statement_errors.h"

namespace sluice::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(StatementErrors, UnknownLabelNamesTheNearestColumn) {
  EXPECT_THAT(Errors("SELECT * FROM t LABEL incom INTO m"),
              ElementsAre("42703 no column 'incom' in the SELECT @incom [did you mean 'income'?]"));
}

TEST_F(StatementErrors, TheDatabasesOwnErrorPointsIntoTheScript) {
  EXPECT_THAT(Errors("  SELECT * FROM nosuch TO TRAIN xgboost.gbtree LABEL c INTO m"),
              ElementsAre("42P01 relation \"nosuch\" does not exist @nosuch"));
}

TEST_F(StatementErrors, UnknownModelType) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClasifier LABEL income INTO m"),
              ElementsAre("42704 unknown model type 'LinearClasifier' @LinearClasifier [did you "
                          "mean 'LinearClassifier'?]"));
}

TEST_F(StatementErrors, TheRestIsHeldAgainstTheTypeThatWasProbablyMeant) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN DNNClasifier WITH train.epochs=3 COLUMN nosuch "
                     "LABEL income INTO m"),
              ElementsAre(HasSubstr("unknown model type 'DNNClasifier'"),
                          HasSubstr("unsupported attribute train.epochs"),
                          HasSubstr("no column 'nosuch'")));
}

TEST_F(StatementErrors, AllOfThemAtOnce) {
  EXPECT_THAT(
      Errors("SELECT * FROM t TO TRAIN DNNClassifier WITH hidden_units=[1], train.epoch=0, "
             "train.batch_size='a' COLUMN EMBEDDING(wrkclass, 8), BUCKET(age, [2, 1]) LABEL incom "
             "INTO m"),
      ElementsAre(
          HasSubstr("no column 'incom'"),
          HasSubstr("22023 unsupported attribute hidden_units @hidden_units [did you mean "
                    "'model.hidden_units'?]"),
          HasSubstr("22023 attribute train.epoch must be from 1 to 100000, not 0 @0"),
          HasSubstr("22023 attribute train.batch_size must be an integer, not text 'a' @'a'"),
          HasSubstr("BUCKET(age, [2, 1]): the boundaries must be in strictly ascending order @1"),
          HasSubstr("42703 no column 'wrkclass' in the SELECT @wrkclass [did you mean "
                    "'workclass'?]")));
}

TEST_F(StatementErrors, AttributesTwice) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN xgboost.gbtree WITH n_estimators=5, "
                     "train.num_boost_round=6 LABEL income INTO m"),
              ElementsAre(HasSubstr("attribute train.num_boost_round is given twice")));
}

TEST_F(StatementErrors, ClosedSetsNameTheNearest) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[4], "
                     "model.optimizer=Adamm LABEL income INTO m"),
              ElementsAre(HasSubstr("[did you mean 'Adam'?]")));
}

TEST_F(StatementErrors, OptimizersTakeTheirOwnArguments) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[4], "
                     "model.optimizer=Adam, optimizer.rho=0.5 LABEL income INTO m"),
              ElementsAre(HasSubstr("22023 optimizer Adam has no argument rho @0.5 [it has "
                                    "learning_rate")));
}

TEST_F(StatementErrors, ListsAndTheirElements) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=64 LABEL "
                     "income INTO m"),
              ElementsAre(HasSubstr("attribute model.hidden_units must be a list of integers, not "
                                    "the number 64 @64 [write a list: model.hidden_units = ")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[64, 0.5] "
                     "LABEL income INTO m"),
              ElementsAre(HasSubstr("0.5 is not an integer")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[64, 0] "
                     "LABEL income INTO m"),
              ElementsAre(HasSubstr("must be from 1 to 65536, not 0")));
}

TEST_F(StatementErrors, EmptyTable) {
  EXPECT_THAT(Errors("SELECT * FROM empty TO TRAIN LinearClassifier LABEL income INTO m"),
              ElementsAre("22023 the SELECT returns no rows @SELECT * FROM empty"));
}

TEST_F(StatementErrors, DuplicateColumns) {
  EXPECT_THAT(Errors("SELECT * FROM twins LABEL c INTO m"),
              ElementsAre(HasSubstr("42701 the SELECT has two columns named 'A'")));
}

TEST_F(StatementErrors, LabelsWithNothingToLearn) {
  EXPECT_THAT(Errors("SELECT x, same FROM odd TO TRAIN LinearClassifier LABEL same INTO m"),
              ElementsAre(HasSubstr("label 'same' is 'one' in every row")));
  EXPECT_THAT(Errors("SELECT x, nothing FROM odd TO TRAIN LinearClassifier LABEL nothing INTO m"),
              ElementsAre(HasSubstr("label 'nothing' is NULL in every row @nothing")));
  EXPECT_THAT(Errors("SELECT x FROM odd TO TRAIN LinearClassifier LABEL x INTO m"),
              ElementsAre(HasSubstr("leaves no column that could be a feature")));
}

TEST_F(StatementErrors, LabelsOfTheWrongKind) {
  EXPECT_THAT(Errors("SELECT x, name FROM odd TO TRAIN LinearRegressor LABEL name INTO m"),
              ElementsAre(HasSubstr("label 'name' is text ('n0'), and LinearRegressor learns a "
                                    "number @name [text is learnt by a classifier")));
  EXPECT_THAT(Errors("SELECT x, price FROM odd TO TRAIN LinearClassifier LABEL price INTO m"),
              ElementsAre(HasSubstr("label 'price' has more than 1000 different values, too many "
                                    "classes for LinearClassifier @price [numbers are learnt by")));
  EXPECT_THAT(Errors("SELECT * FROM odd TO TRAIN LinearClassifier LABEL photo INTO m"),
              ElementsAre(HasSubstr("label 'photo' is bytes, which is neither a class nor")));
}

TEST_F(StatementErrors, BytesAreNoFeature) {
  EXPECT_THAT(Errors("SELECT photo, x, many FROM odd TO TRAIN LinearRegressor COLUMN photo "
                     "LABEL many INTO m"),
              ElementsAre(HasSubstr("column 'photo' is bytes, which cannot be a feature")));
}

TEST_F(StatementErrors, MoreClassesThanAnnounced) {
  EXPECT_THAT(Errors("SELECT * FROM full TO TRAIN DNNClassifier WITH model.hidden_units=[4], "
                     "model.n_classes=2 LABEL workclass INTO m"),
              ElementsAre(HasSubstr("label 'workclass' has 4 classes, more than "
                                    "model.n_classes=2 @2")));
  EXPECT_THAT(Errors("SELECT * FROM full TO TRAIN xgboost.gbtree WITH objective='binary:logistic' "
                     "LABEL workclass INTO m"),
              ElementsAre(HasSubstr("objective binary:logistic is for two classes, and label "
                                    "'workclass' has 4 @'binary:logistic' [write "
                                    "objective='multi:softprob']")));
}

TEST_F(StatementErrors, LabelsThatAreSometimesNull) {
  EXPECT_THAT(Errors("SELECT * FROM t LABEL workclass INTO m"),
              ElementsAre("22023 label 'workclass' is NULL in 40 of 400 rows @workclass [leave "
                          "such rows out: SELECT * FROM (...) AS s WHERE workclass IS NOT NULL]"));
}

TEST_F(StatementErrors, TheLabelIsNoFeature) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier COLUMN INDICATOR(income) LABEL "
                     "income INTO m"),
              ElementsAre("22023 column 'income' is the label; it cannot be a feature too "
                          "@income"));
}

TEST_F(StatementErrors, NoLabel) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier INTO m"),
              ElementsAre(HasSubstr("the statement has no LABEL clause")));
}

TEST_F(StatementErrors, ColumnFunctions) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier COLUMN EMBEDING(age, 8) LABEL "
                     "income INTO m"),
              ElementsAre(HasSubstr("42883 EMBEDING(age, 8): no column function EMBEDING @EMBEDING"
                                    "(age, 8) [did you mean EMBEDDING?]")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier COLUMN LOG(workclass) LABEL "
                     "income INTO m"),
              ElementsAre(HasSubstr("LOG(workclass): column 'workclass' is text, not a number")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier COLUMN EMBEDDING(hours, 4) LABEL "
                     "income INTO m"),
              ElementsAre(HasSubstr("column 'hours' is a double, which has no categories @hours "
                                    "[cut it into some: QUANTILE(hours, 10)]")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier COLUMN INDICATOR(\"zz.*\") LABEL "
                     "income INTO m"),
              ElementsAre(HasSubstr("'zz.*' in COLUMN does not match any selected column")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier COLUMN INDICATOR(\"[*\") LABEL "
                     "income INTO m"),
              ElementsAre(HasSubstr("'[*' in COLUMN is not a regular expression")));
}

TEST_F(StatementErrors, TargetsOfColumnClauses) {
  EXPECT_THAT(
      Errors("SELECT * FROM t TO TRAIN DNNLinearCombinedClassifier WITH "
             "model.dnn_hidden_units=[4] COLUMN age FOR linear_feature_column LABEL income INTO m"),
      ElementsAre(HasSubstr("COLUMN ... FOR linear_feature_column: DNNLinearCombinedClassifier has "
                            "no such target @linear_feature_column [did you mean "
                            "linear_feature_columns?]")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN xgboost.gbtree COLUMN EMBEDDING(workclass, 8) LABEL "
                     "income INTO m"),
              ElementsAre(HasSubstr("EMBEDDING is not supported in XGBoost models")));
}

TEST_F(StatementErrors, E10_FlagsOfFleetsThatExcludeEachOther) {
  const std::string head = "SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[4], ";
  const std::string tail = " LABEL income INTO m";
  EXPECT_THAT(Errors(head + "engine.min_workers=4, engine.max_workers=2" + tail),
              ElementsAre(HasSubstr("engine.max_workers is 2, less than engine.min_workers, 4")));
  EXPECT_THAT(Errors(head + "engine.num_workers=0" + tail),
              ElementsAre(HasSubstr("engine.num_workers must be from 1 to 1024, not 0 @0")));
  EXPECT_THAT(Errors(head + "engine.strategy=allreduce, engine.num_ps=2" + tail),
              ElementsAre(HasSubstr("allreduce' and engine.num_ps exclude each other")));
  EXPECT_THAT(Errors(head + "engine.strategy=allreduce, engine.sync=false" + tail),
              ElementsAre(HasSubstr("allreduce' and engine.sync=false exclude each other")));
  EXPECT_THAT(Errors(head + "engine.memory='lots', engine.num_workers=2" + tail),
              ElementsAre(HasSubstr("attribute engine.memory must be a size, not 'lots'")));
  EXPECT_THAT(Errors(head + "engine.sync=true, engine.staleness=3, engine.num_workers=2" + tail),
              ElementsAre(HasSubstr("exclude each other")));
  EXPECT_THAT(
      Errors(head + "engine.strategy=allreduce, engine.transport='bf16'" + tail),
      ElementsAre(HasSubstr("engine.strategy='allreduce' and engine.transport='bf16' exclude "
                            "each other")));
  EXPECT_THAT(
      Errors(head + "engine.sync=true, engine.on_poison='skip', engine.num_workers=2" + tail),
      ElementsAre(HasSubstr("exclude each other")));
}

TEST_F(StatementErrors, Splits) {
  const std::string head = "SELECT * FROM t TO TRAIN LinearClassifier WITH ";
  const std::string tail = " LABEL income INTO m";
  EXPECT_THAT(Errors(head + "split.kind=time" + tail),
              ElementsAre(HasSubstr("split.kind='time' needs the attribute split.column @time")));
  EXPECT_THAT(Errors(head + "split.kind=hash, split.column=agee" + tail),
              ElementsAre(HasSubstr("42703 no column 'agee' in the SELECT @agee")));
  EXPECT_THAT(
      Errors(head + "validation.select='SELECT * FROM gone'" + tail),
      ElementsAre(HasSubstr("42P01 validation.select: relation \"gone\" does not exist @'SEL"
                            "ECT * FROM gone'")));
  EXPECT_THAT(Errors(head + "validation.select='SELECT age, income FROM t'" + tail),
              ElementsAre(HasSubstr("validation.select doesn't contain columns workclass, hours, "
                                    "married @")));
  EXPECT_THAT(Errors(head + "validation.metrics='AUC,rmse'" + tail),
              ElementsAre(HasSubstr("metric 'rmse' does not suit this model")));
  EXPECT_THAT(
      Errors(head + "validation.metrics='Acuracy'" + tail),
      ElementsAre(HasSubstr("unknown metric 'Acuracy' @'Acuracy' [did you mean 'accuracy'?")));
}

TEST_F(StatementErrors, WeightsAndGroups) {
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier WITH model.weight_column=workclass "
                     "LABEL income INTO m"),
              ElementsAre(HasSubstr("column 'workclass' is text; the weight must be a number")));
  EXPECT_THAT(Errors("SELECT * FROM t TO TRAIN LinearClassifier WITH model.weight_column=income "
                     "LABEL income INTO m"),
              ElementsAre(HasSubstr("column 'income' is the label; it cannot be the weight too")));
}

TEST_F(StatementErrors, NotBuiltYet) {
  EXPECT_THAT(Errors("SELECT * FROM t TO RUN a/b CMD 'x'"),
              ElementsAre(HasSubstr("0A000 TO RUN is not built yet")));
}

TEST_F(StatementErrors, FilesOfModels) {
  EXPECT_TRUE(Plan("EXPORT MODEL m TO 'm.JSON'").ok());
  EXPECT_THAT(Errors("EXPORT MODEL m TO 'm.onnx'"),
              ElementsAre(::testing::AllOf(
                  HasSubstr("22023 the end of 'm.onnx' says no format of models @'m.onnx'"),
                  HasSubstr("'model.sluice' is a whole model"))));
  EXPECT_THAT(Errors("EXPORT MODEL m TO '.json'"), ElementsAre(HasSubstr("says no format")));
  EXPECT_THAT(
      Errors("IMPORT MODEL FROM 'm.json'"),
      ElementsAre(HasSubstr("22023 'm.json' is no file that EXPORT MODEL makes to be imported "
                            "@'m.json'")));
  EXPECT_THAT(Errors("IMPORT MODEL FROM 'm.sluice' INTO n:2"),
              ElementsAre(HasSubstr("22023 INTO names no version @n:2")));
}

TEST_F(StatementErrors, StatisticsThatFail) {
  source_.statistics_error = Unavailable("the database is gone");
  EXPECT_THAT(Errors("SELECT * FROM t LABEL income INTO m"),
              ElementsAre(HasSubstr("08006 the database is gone")));
}

TEST_F(StatementErrors, ThousandsOfMistakesStayFastAndShort) {
  FakeTable wide;
  for (int i = 0; i < 10'000; ++i) {
    wide.schema.columns.push_back(ColumnOf("column_" + std::to_string(i), DataType::kInt64));
  }
  for (int64_t row = 0; row < 3; ++row) {
    wide.rows.emplace_back(10'000, Value(row % 2));
  }
  source_.tables["wide"] = wide;
  EXPECT_TRUE(Plan("SELECT * FROM wide LABEL column_0 INTO m").ok());
  std::string columns = "wrong_0";
  for (int i = 1; i < 10'000; ++i) {
    columns += ", wrong_" + std::to_string(i);
  }
  const auto errors = Errors("SELECT * FROM wide TO TRAIN LinearClassifier COLUMN " + columns +
                             " LABEL column_0 INTO m");
  EXPECT_LE(errors.size(), 53U);
  EXPECT_THAT(errors, ::testing::Contains(HasSubstr("there may be more errors")));
}

}  // namespace
}  // namespace sluice::planner
