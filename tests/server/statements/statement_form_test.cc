#include "server/statements/statement_form.h"

#include <gtest/gtest.h>

#include "parser/parser.h"

namespace sluice::server {
namespace {

parser::TrainStatement ParseTrain(const Result<std::string>& text) {
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  const auto statements = parser::Parse(text.ok() ? *text : "");
  EXPECT_TRUE(statements.ok()) << statements.status().ToString() << *text;
  const auto* train = statements.ok() && statements->size() == 1
                          ? std::get_if<parser::TrainStatement>(&statements->front())
                          : nullptr;
  EXPECT_NE(train, nullptr) << *text;
  return train == nullptr ? parser::TrainStatement() : *train;
}

TEST(StatementForm, FlagsOfElasticDlBecomeATrainStatement) {
  TrainForm form;
  form.model_def = "DNNClassifier";
  form.model_params = "hidden_units=[64, 32]; optimizer.learning_rate = 0.01;";
  form.training_data = "census_train";
  form.validation_data = "SELECT * FROM census_test";
  form.label = "income";
  form.output = "census_dnn";
  form.num_epochs = 5;
  form.minibatch_size = 256;
  form.num_workers = 2;
  const parser::TrainStatement train = ParseTrain(TrainStatementText(form));
  EXPECT_EQ(train.select.text, "SELECT * FROM \"census_train\"");
  ASSERT_TRUE(train.model_type);
  EXPECT_EQ(train.model_type->text, "DNNClassifier");
  ASSERT_TRUE(train.label);
  EXPECT_EQ(train.label->text, "income");
  EXPECT_EQ(train.into.name, "census_dnn");
  std::vector<std::string> names;
  for (const parser::Attribute& attribute : train.attributes) {
    names.push_back(attribute.name.text);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"model.hidden_units", "optimizer.learning_rate",
                                             "train.epoch", "train.batch_size",
                                             "engine.num_workers", "validation.select"}));
  EXPECT_EQ(std::get<std::string>(train.attributes.back().value.value),
            "SELECT * FROM census_test");
  EXPECT_EQ(std::get<int64_t>(train.attributes[2].value.value), 5);
}

TEST(StatementForm, NamesCannotBreakOutOfTheStatement) {
  TrainForm form;
  form.training_data = "t\";DROP/**/TABLE/**/x;--";
  form.label = "y\"z";
  form.output = "m";
  const parser::TrainStatement train = ParseTrain(TrainStatementText(form));
  EXPECT_EQ(train.select.text, "SELECT * FROM \"t\"\";DROP/**/TABLE/**/x;--\"");
  ASSERT_TRUE(train.label);
  EXPECT_EQ(train.label->text, "y\"z");
}

TEST(StatementForm, ResultTablesAreNamedAsInAStatement) {
  PredictForm form;
  form.prediction_data = "t";
  form.model = "m";
  const auto target = [&form](const std::string& output) {
    form.output = output;
    const auto text = PredictStatementText(form);
    EXPECT_TRUE(text.ok()) << text.status().ToString();
    const auto statements = parser::Parse(*text);
    EXPECT_TRUE(statements.ok()) << *text;
    return *std::get<parser::PredictStatement>(statements->front()).target;
  };
  EXPECT_EQ(target("Out.y").parts, (std::vector<std::string>{"Out", "y"}));
  EXPECT_FALSE(target("Out.y").IsQuoted(0));
  EXPECT_EQ(target("\"Out Table\".y").parts, (std::vector<std::string>{"Out Table", "y"}));
  EXPECT_TRUE(target("\"Out Table\".y").IsQuoted(0));
  EXPECT_FALSE(target("\"Out Table\".y").IsQuoted(1));
  EXPECT_EQ(target("\"a.b\".\"c\"\"d\"").parts, (std::vector<std::string>{"a.b", "c\"d"}));
  form.output = "Out Table.y";
  EXPECT_FALSE(PredictStatementText(form).ok());
  EvaluateForm evaluate;
  evaluate.validation_data = "t";
  evaluate.model = "m";
  evaluate.output = "\"M\"";
  evaluate.output_table.replace = true;
  EXPECT_EQ(EvaluateStatementText(evaluate).value(),
            "SELECT * FROM \"t\" TO EVALUATE m WITH result.replace = true INTO \"M\"");
  form.output = "p.y";
  form.output_table.append = true;
  EXPECT_EQ(PredictStatementText(form).value(),
            "SELECT * FROM \"t\" TO PREDICT p.y WITH result.append = true USING m");
}

TEST(StatementForm, WhatIsMissingOrUnreadableIsTold) {
  TrainForm form;
  EXPECT_EQ(TrainStatementText(form).status().message(),
            "--training_data is missing: a table or a SELECT");
  form.training_data = "t";
  form.label = "y";
  form.output = "m; DROP TABLE t";
  EXPECT_FALSE(TrainStatementText(form).ok());
  form.output = "m";
  form.model_params = "hidden_units";
  EXPECT_EQ(TrainStatementText(form).status().message(),
            "--model_params: cannot read 'hidden_units'");
}

TEST(StatementForm, PredictAndEvaluate) {
  const auto predict = PredictStatementText({"m:2", "t", "scored.y"});
  ASSERT_TRUE(predict.ok()) << predict.status().ToString();
  const auto predicted = parser::Parse(*predict);
  ASSERT_TRUE(predicted.ok()) << *predict;
  const auto& statement = std::get<parser::PredictStatement>(predicted->front());
  EXPECT_EQ(statement.model.version, 2);
  EXPECT_EQ(statement.target->parts, (std::vector<std::string>{"scored", "y"}));
  const auto evaluate = EvaluateStatementText({"m", "SELECT * FROM t", "y", "metrics"});
  ASSERT_TRUE(evaluate.ok()) << evaluate.status().ToString();
  const auto evaluated = parser::Parse(*evaluate);
  ASSERT_TRUE(evaluated.ok()) << *evaluate;
  EXPECT_EQ(std::get<parser::EvaluateStatement>(evaluated->front()).into->text, "metrics");
}

}  // namespace
}  // namespace sluice::server
