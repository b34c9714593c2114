#include "parser/parser.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "parser/printer.h"
#include "tests/support/ast_dump.h"

namespace sluice::parser {
namespace {

Statement One(const std::string& script) {
  Result<std::vector<Statement>> statements = Parse(script);
  if (!statements.ok() || statements.value().size() != 1) {
    ADD_FAILURE() << script << "\n" << statements.status().ToString();
    return PlainStatement();
  }
  return statements.value().front();
}

const AttributeValue& Value(const Statement& statement) {
  return std::get<TrainStatement>(statement).attributes.front().value;
}

std::string ValueOf(const std::string& text) {
  return AstDump::ValueText(Value(One("SELECT 1 TO TRAIN x WITH a=" + text + " INTO m")));
}

Diagnostic ErrorOf(const std::string& script) {
  const Result<std::vector<Statement>> statements = Parse(script);
  if (statements.ok()) {
    ADD_FAILURE() << "accepted: " << script;
    return {};
  }
  return statements.status().diagnostics().front();
}

TEST(ParserTest, EmptyScriptsHaveNoStatements) {
  for (const char* script : {"", " \n", ";;", "-- only a comment", "/* ; */ ;", "\xEF\xBB\xBF"}) {
    const Result<std::vector<Statement>> statements = Parse(script);
    ASSERT_TRUE(statements.ok()) << script;
    EXPECT_TRUE(statements.value().empty()) << script;
  }
}

TEST(ParserTest, PlainTextIsUntouched) {
  const std::string text = "/*+ hint */ SELECT  'a' -- it's\n, \"b\"\t/* don't */";
  const auto plain = std::get<PlainStatement>(One("  " + text + " \n ;"));
  EXPECT_EQ(plain.text, text);
  EXPECT_EQ(plain.span, (Span{2, 2 + static_cast<int64_t>(text.size())}));
}

TEST(ParserTest, SelectEndsBeforeTrailingComments) {
  const auto train =
      std::get<TrainStatement>(One("-- first\nSELECT 1 /* a */, 2 -- it's\n TO TRAIN x INTO m"));
  EXPECT_EQ(train.select.text, "SELECT 1 /* a */, 2");
  EXPECT_EQ(train.select.span.begin, 9);
}

TEST(ParserTest, ModelNames) {
  const auto model = [](const std::string& text) {
    return std::get<EvaluateStatement>(One("SELECT 1 TO EVALUATE " + text)).model;
  };
  EXPECT_EQ(model("m").name, "m");
  EXPECT_EQ(model("s.m:12").schema, "s");
  EXPECT_EQ(model("s.m:12").name, "m");
  EXPECT_EQ(model("s.m:12").version, 12);
  EXPECT_EQ(model("m:v0.1").name, "m:v0.1");
  EXPECT_EQ(model("m:v0.1").version, std::nullopt);
  EXPECT_EQ(model("host:50055/my_model:v0.1").name, "host:50055/my_model:v0.1");
  EXPECT_EQ(model("\"a.b\"").name, "a.b");
  EXPECT_EQ(model("\"a.b\"").schema, "");
  EXPECT_EQ(model("\"a\"\"b\".\"c\":4").schema, "a\"b");
  EXPECT_EQ(model("\"a\".c:4").version, 4);
  EXPECT_EQ(model("`a`.`c`").schema, "a");
  EXPECT_EQ(ErrorOf("SELECT 1 TO EVALUATE m:99999999999999999999").span, (Span{21, 43}));
}

// Print quotes a name so that it reads back unchanged.
TEST(ParserTest, ModelNamesPrintAndComeBack) {
  const std::vector<ModelName> names = {
      {"", "m", std::nullopt, {}},     {"s", "m", 3, {}},
      {"", "m:3", std::nullopt, {}},   {"", "a.b", std::nullopt, {}},
      {"", "a/b:3", std::nullopt, {}}, {"s", "a/b", 1, {}},
      {"", "label", std::nullopt, {}}, {"a b", "c\"d\\", 9, {}},
      {"", "1x", std::nullopt, {}},    {"", "x\ny", std::nullopt, {}}};
  for (const ModelName& name : names) {
    const auto back = std::get<EvaluateStatement>(One("SELECT 1 TO EVALUATE " + Print(name))).model;
    EXPECT_EQ(back.schema, name.schema) << Print(name);
    EXPECT_EQ(back.name, name.name) << Print(name);
    EXPECT_EQ(back.version, name.version) << Print(name);
  }
}

TEST(ParserTest, AttributeValues) {
  EXPECT_EQ(ValueOf("007"), "7");
  EXPECT_EQ(ValueOf("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(ValueOf("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(ValueOf("+.5"), "double(0.5)");
  EXPECT_EQ(ValueOf("1."), "double(1)");
  EXPECT_EQ(ValueOf("1e-7"), "double(1e-07)");
  EXPECT_EQ(ValueOf("TRUE"), "true");
  EXPECT_EQ(ValueOf("False"), "false");
  EXPECT_EQ(ValueOf("nUlL"), "null");
  EXPECT_EQ(ValueOf("nan"), "Word(nan)");
  EXPECT_EQ(ValueOf("[1,0.5,'x',[],[true]]"), "[1, double(0.5), \"x\", [], [true]]");
  EXPECT_EQ(ValueOf("'it''s'"), "\"it's\"");
  EXPECT_EQ(ValueOf(R"('\d\\\n\'')"), R"("\\d\\\n'")");
  EXPECT_EQ(ValueOf("\"a\"\"b'c\""), "\"a\\\"b'c\"");
}

TEST(ParserTest, Arithmetic) {
  EXPECT_EQ(ValueOf("1+2*3"), "7");
  EXPECT_EQ(ValueOf("(1+2)*3"), "9");
  EXPECT_EQ(ValueOf("7/2"), "double(3.5)");
  EXPECT_EQ(ValueOf("8/2"), "4");
  EXPECT_EQ(ValueOf("7%4"), "3");
  EXPECT_EQ(ValueOf("-9223372036854775808 % -1"), "0");
  EXPECT_EQ(ValueOf("10-5"), "5");
  EXPECT_EQ(ValueOf("- -1"), "1");
  for (const char* bad : {"9223372036854775807+1", "-9223372036854775808/0", "1%0", "1e308*10",
                          "-(-9223372036854775808)"}) {
    EXPECT_EQ(ErrorOf(std::string("SELECT 1 TO TRAIN x WITH a=") + bad + " INTO m").sqlstate,
              "22003")
        << bad;
  }
}

TEST(ParserTest, ErrorsHavePlaceStateAndHint) {
  const Diagnostic error = ErrorOf("SELECT 1;\nSELECT * FROM t TO TRAIN x LABLE y INTO m");
  EXPECT_EQ(error.sqlstate, "42601");
  EXPECT_EQ(error.span, (Span{37, 42}));
  EXPECT_EQ(error.hint, "did you mean LABEL?");
}

TEST(ParserTest, LongTokensAreCutInMessages) {
  const std::string word(100000, 'x');
  EXPECT_LT(ErrorOf("SELECT 1 TO TRAIN x WITH a=1 " + word).message.size(), 200U);
  EXPECT_LT(
      ErrorOf("SELECT 1 TO TRAIN x WITH a=" + std::string(100000, '9') + " INTO m").message.size(),
      200U);
  EXPECT_LT(ErrorOf("SELECT 1 TO TRAIN x INTO m \"" + word + "\"").message.size(), 200U);
}

TEST(ParserTest, TextMustBeUtf8WithoutNul) {
  const Diagnostic nul = ErrorOf(std::string("SELECT 1\0;", 10));
  EXPECT_EQ(nul.sqlstate, "22021");
  EXPECT_EQ(nul.span, (Span{8, 9}));
  for (const char* bad : {"\xFF", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80",
                          "\xE2\x82", "\x80"}) {
    EXPECT_EQ(ErrorOf(std::string("SELECT '") + bad + "'").span, (Span{8, 9})) << bad;
  }
  EXPECT_TRUE(Parse("SELECT 'é中😀'").ok());
}

TEST(ParserTest, TooLongScriptIsRefused) {
  EXPECT_EQ(Parse(std::string(kMaxScriptBytes + 1, ' ')).status().sqlstate(), "54000");
}

TEST(ParserTest, DepthIsLimited) {
  const auto nested = [](size_t depth) {
    return "SELECT 1 TO TRAIN x WITH a=" + std::string(depth, '[') + std::string(depth, ']') +
           " INTO m";
  };
  EXPECT_TRUE(Parse(nested(kMaxDepth)).ok());
  EXPECT_EQ(ErrorOf(nested(kMaxDepth + 1)).sqlstate, "54001");
  for (const std::string open : {"(", "-", "F(", "["}) {
    std::string deep = "SELECT 1 TO MAXIMIZE ";
    for (int i = 0; i < 100000; ++i) {
      deep += open + " ";
    }
    EXPECT_EQ(ErrorOf(deep).sqlstate, "54001");
  }
  std::string chain = "SELECT 1 TO MAXIMIZE 1";
  for (int i = 0; i < 100000; ++i) {
    chain += "+1";
  }
  EXPECT_EQ(ErrorOf(chain + " WITH a=1 INTO m").sqlstate, "54001");
}

constexpr size_t kBytes = 1U << 20U;

// Quadratic work on any of these would take minutes; the suite's time limit would end it.
TEST(ParserTest, LargeScriptsAreRead) {
  const auto repeat = [](const std::string& head, const std::string& piece, size_t bytes = kBytes) {
    std::string text = head;
    while (text.size() < bytes) {
      text += piece;
    }
    return text;
  };
  EXPECT_TRUE(Parse(repeat("INSERT INTO t VALUES (1", "),(1") + ")").ok());
  EXPECT_TRUE(Parse(repeat("SELECT '", "x", 10 * kBytes) + "' LABEL y INTO m").ok());
  EXPECT_EQ(Parse(repeat("", "SELECT 1;")).value().size(), (kBytes + 8) / 9);
  EXPECT_EQ(ErrorOf(repeat("SELECT 1 TO TRAIN x WITH a=[1", ",1") + "] INTO m").sqlstate, "54000");
  EXPECT_TRUE(Parse(repeat("SELECT 1 TO TRAIN x COLUMN c", ",c") + " INTO m").ok());
  EXPECT_TRUE(Parse(repeat("SELECT 1", " [ (")).ok());
  EXPECT_TRUE(Parse(repeat("SELECT 1 `", " ` ``")).ok());
  EXPECT_TRUE(Parse(repeat("SELECT 1", " label, 'x'")).ok());
  const std::string trigger = "CREATE TRIGGER x BEGIN; ";
  EXPECT_EQ(Parse(repeat("", trigger)).value().size(), kBytes / trigger.size() + 1);
  EXPECT_FALSE(Parse(repeat("SELECT 1", "/* /* */")).ok());
  EXPECT_FALSE(Parse(repeat("", "SELECT 1 LABEL y INTO m; ") + "'").ok());
  std::string attributes = "SELECT 1 TO TRAIN x WITH a=1";
  for (int i = 0; i < 10000; ++i) {
    attributes += ", a" + std::to_string(i) + "=1";
  }
  EXPECT_TRUE(Parse(attributes + " INTO m").ok());
}

TEST(ParserTest, WhatIsTheDatabasesStaysPlain) {
  for (const char* script : {"SELECT a label FROM t",
                             "SELECT label x INTO y FROM t",
                             "SELECT * FROM label x",
                             "SELECT * FROM t label JOIN u USING (id)",
                             "SELECT * FROM t train LEFT JOIN u ON true",
                             "SELECT * FROM t WHERE label = 1",
                             "SELECT t.label INTO u FROM t",
                             "SELECT label, train FROM t",
                             "SELECT 2 * label x INTO u FROM t",
                             "SELECT INTERVAL '1' DAY TO HOUR",
                             "SELECT * FROM t ORDER BY label DESC",
                             "SELECT (SELECT 1 TO train)",
                             "GRANT a TO train",
                             "ALTER TABLE t RENAME TO predict",
                             "SET x TO run",
                             "ROLLBACK TO train",
                             "SHOW models_path",
                             "EXPLAIN SELECT 1",
                             "SET sluice_x = 1",
                             "CREATE TABLE model (a int)",
                             "WITH a AS (SELECT 1) SELECT * FROM a",
                             "DROP TABLE model"}) {
    EXPECT_TRUE(std::holds_alternative<PlainStatement>(One(script))) << script;
  }
}

// Whatever the words look like, where PostgreSQL's own parser accepts the statement.
TEST(ParserTest, WhatPostgresParsesStaysPlain) {
  for (const char* script :
       {"SELECT l.id FROM log l JOIN rule r ON l.msg SIMILAR TO r.pattern",
        "SELECT id FROM log WHERE msg SIMILAR TO train",
        "SELECT id, msg SIMILAR TO run AS m FROM log",
        "UPDATE log SET id = 2 WHERE msg SIMILAR TO predict",
        "COPY (SELECT l.id FROM log l, rule r WHERE l.msg SIMILAR TO r.pattern) TO STDOUT",
        "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n FROM s) CYCLE n SET c TO true DEFAULT "
        "false USING path SELECT n, c FROM s",
        "SHOW job.id",
        "SHOW cluster.name",
        "SHOW models.x",
        "SELECT DISTINCT ON (id) label lbl INTO TEMP p FROM log ORDER BY id",
        "SELECT DISTINCT ON (id) level lvl INTO p FROM log",
        "SELECT id, tags ? label has INTO p FROM log",
        "SELECT ts AT TIME ZONE label loc INTO p FROM s",
        "SELECT 1 OPERATOR(pg_catalog.+) label total INTO p FROM s",
        "DECLARE level CURSOR WITH HOLD FOR SELECT 1",
        "EXPLAIN (BUFFERS, ANALYZE) SELECT * FROM t WHERE a SIMILAR TO train",
        "SELECT ARRAY[['x'],[']; SELECT 1 TO PREDICT USING m; --']] label",
        "SELECT ARRAY[['a', 'b'], ['[0-9]+', 'num']]",
        "SELECT a[1][ARRAY[2][1]], b FROM t",
        "SELECT 'a' -- no clause\n'b' WHERE x SIMILAR /* nor here */ TO train"}) {
    EXPECT_TRUE(std::holds_alternative<PlainStatement>(One(script))) << script;
  }
}

// PostgreSQL's grammar has these as well, but they are documented as ours.
TEST(ParserTest, SettingsAndListsAreOurs) {
  for (const char* script : {"SHOW MODELS", "SHOW JOBS", "SHOW CLUSTER", "SET sluice.seed = 1",
                             "SET SESSION sluice.async TO on", "SELECT a, b LABEL income INTO m"}) {
    EXPECT_FALSE(std::holds_alternative<PlainStatement>(One(script))) << script;
  }
}

// Nesting and comments that would cost PostgreSQL's parser its stack or quadratic time.
TEST(ParserTest, HostileTextIsAskedAboutInBounds) {
  const auto repeat = [](std::string_view text, size_t times) {
    std::string repeated;
    for (size_t i = 0; i < times; ++i) {
      repeated += text;
    }
    return repeated;
  };
  const size_t deep = 100'000;
  for (const std::string& select :
       {"SELECT " + repeat("(", deep) + "1" + repeat(")", deep), "SELECT 1" + repeat("+1", deep),
        "SELECT " + repeat("NOT ", deep) + "a", "SELECT ARRAY" + repeat("[", deep) + "1",
        "SELECT " + repeat("/*", deep) + repeat("*/", deep) + "1"}) {
    EXPECT_FALSE(Parse(select + " TO TRIAN x").ok());
  }
}

TEST(ParserTest, StatementIsKeptAsWritten) {
  const std::string written = "select * from t -- all\n  with train.epoch=1 label y into m";
  EXPECT_EQ(std::get<TrainStatement>(One(" " + written + " ;")).written, written);
}

TEST(ParserTest, ClausesMayFollowAnyQuery) {
  for (const char* query :
       {"SELECT * FROM t WHERE a = 'x'", "(SELECT 1 UNION SELECT 2)", "VALUES (1, 2)", "TABLE t",
        "WITH a AS (SELECT 1) SELECT * FROM a", "SELECT * FROM t LIMIT 3",
        "SELECT * FROM t AS label", "SELECT * FROM `t`", "SELECT * FROM [t]",
        "SELECT * FROM t WHERE a = $1", "SELECT * FROM t WHERE a = ?",
        "SELECT count(*) FROM t GROUP BY label"}) {
    for (const char* clauses :
         {" LABEL y INTO m", " TRAIN x LABEL y INTO m", " TO TRAIN x INTO m"}) {
      const Statement statement = One(std::string(query) + clauses);
      ASSERT_TRUE(std::holds_alternative<TrainStatement>(statement)) << query << clauses;
      EXPECT_EQ(std::get<TrainStatement>(statement).select.text, query);
    }
  }
}

TEST(ParserTest, ModelsNamesHaveALength) {
  const std::string train = "SELECT * FROM t LABEL y INTO ";
  EXPECT_TRUE(Parse(train + std::string(255, 'm')).ok());
  for (const std::string& name : {std::string(256, 'm'), "s." + std::string(256, 'm'),
                                  std::string(256, 's') + ".m", "zoo/" + std::string(256, 'm')}) {
    const Status status = Parse(train + name).status();
    EXPECT_EQ(status.sqlstate(), "42622") << status.ToString();
    EXPECT_EQ(status.diagnostics().at(0).span.begin, static_cast<int64_t>(train.size()));
  }
}

TEST(ParserTest, ClauseOrderIsFree) {
  const Statement usual = One("SELECT 1 TO TRAIN x LABEL y WITH a=1 COLUMN c USING b INTO m");
  for (const char* other : {"SELECT 1 TO TRAIN x INTO m USING b COLUMN c WITH a=1 LABEL y",
                            "SELECT 1 TRAIN x COLUMN c LABEL y INTO m WITH a=1 USING b"}) {
    EXPECT_TRUE(EqualIgnoringSpans(One(other), usual)) << other;
  }
  const Statement shortest = One("SELECT * FROM t LABEL y WITH a.b=1 COLUMN c, d USING b INTO m");
  for (const char* other : {"SELECT * FROM t WITH a.b=1 LABEL y COLUMN c, d USING b INTO m",
                            "SELECT * FROM t COLUMN c, d WITH a.b=1 USING b LABEL y INTO m",
                            "SELECT * FROM t USING b COLUMN c, d LABEL y INTO m WITH a.b=1",
                            "SELECT * FROM t INTO m WITH a.b=1 LABEL y COLUMN c, d USING b",
                            "SELECT * FROM t INTO m LABEL y WITH a.b=1 COLUMN c, d USING b"}) {
    EXPECT_TRUE(EqualIgnoringSpans(One(other), shortest)) << other;
  }
}

}  // namespace
}  // namespace sluice::parser
