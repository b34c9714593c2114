#include "server/shell/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() {
    names_.folds = true;
    names_.tables = {"employee", "events", "Mixed Case"};
    names_.columns = {{"employee", "age"}, {"employee", "income"}, {"employee", "Odd"},
                      {"events", "at"},    {"events", "kind"},     {"Mixed Case", "x"}};
    names_.models = {"earnings", "churn"};
  }
  std::vector<std::string> Offers(const std::string& text) {
    return CompleteText(text, [this]() -> const CompletionNames& { return names_; }).candidates;
  }
  CompletionNames names_;
};

TEST_F(CompletionTest, StatementsAndClausesInTheCaseThatIsTyped) {
  EXPECT_THAT(Offers("SEL"), ElementsAre("SELECT"));
  EXPECT_THAT(Offers("sel"), ElementsAre("select"));
  EXPECT_THAT(Offers("SELECT 1; SHO"), ElementsAre("SHOW"));
  EXPECT_THAT(Offers("SHOW "), Contains("MODELS"));
  EXPECT_THAT(Offers("show cl"), ElementsAre("cluster"));
  EXPECT_THAT(Offers("SELECT * FROM employee LAB"), ElementsAre("LABEL"));
  EXPECT_THAT(Offers("SELECT * FROM employee TO "),
              ElementsAre("EVALUATE", "EXPLAIN", "PREDICT", "TRAIN"));
  EXPECT_THAT(Offers("ALTER MODEL churn re"), ElementsAre("rename to"));
  EXPECT_THAT(Offers("EXPLAIN "), AllOf(Contains("ANALYZE"), Contains("SELECT")));
  EXPECT_THAT(Offers("EXPLAIN ANALYZE S"), Contains("SELECT"));
  EXPECT_THAT(Offers("EXPLAIN ANALYZE SELECT * FROM employee LABEL income INTO e"),
              ElementsAre("earnings"));
}

TEST_F(CompletionTest, AModelInASchemaIsQuotedPartByPart) {
  names_.models = {"lab.churn", "lab.My Model", "My Lab.net"};
  EXPECT_THAT(Offers("DESCRIBE MODEL lab"), ElementsAre("lab.\"My Model\"", "lab.churn"));
  EXPECT_THAT(Offers("DESCRIBE MODEL lab.\"My"), ElementsAre("lab.\"My Model\""));
  EXPECT_THAT(Offers("DESCRIBE MODEL \"My"), ElementsAre("\"My Lab\".net"));
}

TEST_F(CompletionTest, TablesAndColumns) {
  EXPECT_THAT(Offers("SELECT * FROM e"), ElementsAre("employee", "events"));
  EXPECT_THAT(Offers("SELECT * FROM M"), ElementsAre("\"Mixed Case\""));
  EXPECT_THAT(Offers("SELECT * FROM \"Mi"), ElementsAre("\"Mixed Case\""));
  EXPECT_THAT(Offers("SELECT * FROM \"Mixed C"), ElementsAre("\"Mixed Case\""));
  EXPECT_THAT(Offers("INSERT INTO ev"), ElementsAre("events"));
  EXPECT_THAT(Offers("SELECT * FROM employee LABEL "), ElementsAre("\"Odd\"", "age", "income"));
  EXPECT_THAT(Offers("SELECT * FROM employee WHERE a"),
              AllOf(Contains("age"), Not(Contains("at"))));
  EXPECT_THAT(Offers("SELECT events.k"), ElementsAre("events.kind"));
  EXPECT_THAT(Offers("SELECT 'from e"), IsEmpty()) << "inside of a string";
}

TEST_F(CompletionTest, ModelsTypesAndTheirAttributes) {
  EXPECT_THAT(Offers("SELECT * FROM employee LABEL income INTO e"), ElementsAre("earnings"));
  EXPECT_THAT(Offers("SELECT * FROM events TO PREDICT out.y USING c"), ElementsAre("churn"));
  EXPECT_THAT(Offers("DESCRIBE MODEL ch"), ElementsAre("churn"));
  EXPECT_THAT(Offers("DROP MODEL "), ElementsAre("churn", "earnings"));
  EXPECT_THAT(Offers("SELECT * FROM t TO TRAIN xgboost."), Contains("xgboost.gbtree"));
  EXPECT_THAT(Offers("DESCRIBE MODEL TYPE DNNR"), ElementsAre("DNNRegressor"));
  const std::string train = "SELECT * FROM employee TO TRAIN DNNRegressor WITH ";
  EXPECT_THAT(Offers(train + "model.hid"), ElementsAre("model.hidden_units"));
  EXPECT_THAT(Offers(train + "train.epoch=5, optimizer.lea"), Contains("optimizer.learning_rate"));
  EXPECT_THAT(Offers(train + "max_de"), IsEmpty()) << "of trees";
  EXPECT_THAT(Offers("SELECT * FROM t TO TRAIN xgboost.gbtree WITH max_de"), Contains("max_depth"));
  EXPECT_THAT(Offers("SELECT * FROM t TO PREDICT p.y WITH predict.th"),
              ElementsAre("predict.threshold"));
  EXPECT_EQ(CompleteText(train + "model.hid", [this]() -> const CompletionNames& { return names_; })
                .suffix,
            "=");
  EXPECT_THAT(Offers("SELECT * FROM employee COLUMN EMB"), ElementsAre("EMBEDDING("));
  EXPECT_THAT(Offers("SET sluice.pro"), ElementsAre("sluice.progress"));
}

TEST_F(CompletionTest, Commands) {
  EXPECT_THAT(Offers("\\tim"), ElementsAre("\\timing"));
  EXPECT_THAT(Offers("\\timing o"), ElementsAre("off", "on"));
  EXPECT_THAT(Offers("\\d e"), ElementsAre("earnings", "employee", "events"));
  EXPECT_THAT(Offers("\\dm c"), ElementsAre("churn"));
  EXPECT_THAT(Offers("\\h DNNR"), ElementsAre("DNNRegressor"));
  EXPECT_THAT(Offers(".tab"), ElementsAre(".tables"));
  EXPECT_THAT(Offers("\\i /proc/self/sta"), Contains("/proc/self/status"));
  EXPECT_THAT(Offers("\\i /proc/sel"), Contains("/proc/self/"));
  EXPECT_THAT(Offers(".import data.csv em"), ElementsAre("employee"));
  EXPECT_THAT(Offers(".import /proc/self/statu"), ElementsAre("/proc/self/status"));
}

}  // namespace
}  // namespace sluice::server
