#include "catalog/sqlite/sqlite_bounded_functions_internal.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace sluice::catalog {
namespace {

struct Close {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};
using Connection = std::unique_ptr<sqlite3, Close>;

Connection Open() {
  sqlite3* connection = nullptr;
  EXPECT_EQ(sqlite3_open(":memory:", &connection), SQLITE_OK);
  return Connection(connection);
}

// The value's type and bytes, or the error.
std::string Answer(sqlite3* connection, const std::string& expression) {
  sqlite3_stmt* statement = nullptr;
  const std::string sql =
      fmt::format("SELECT typeof(x) || ' ' || quote(x) FROM (SELECT {} AS x)", expression);
  if (sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK ||
      sqlite3_step(statement) != SQLITE_ROW) {
    const std::string error = sqlite3_errmsg(connection);
    sqlite3_finalize(statement);
    return error;
  }
  const unsigned char* text = sqlite3_column_text(statement, 0);
  std::string answer = text == nullptr ? "" : reinterpret_cast<const char*>(text);
  sqlite3_finalize(statement);
  return answer;
}

// A text, blob, number or NULL of a few characters, so that parts are found often.
std::string AnyValue(std::mt19937& random) {
  const std::vector<std::string> pieces = {
      "a", "b", "ab", " ", "é", "€", "aa", "%", "\xF0\x9F\x98\x80"};
  const auto below = [&random](size_t end) { return random() % end; };
  switch (below(8)) {
    case 0:
      return "NULL";
    case 1:
      return std::to_string(below(30));
    case 2: {
      std::string hex;
      for (size_t i = below(5); i > 0; --i) {
        hex += std::vector<std::string>{"61", "62", "00", "c3", "a9", "20"}[below(6)];
      }
      return fmt::format("x'{}'", hex);
    }
    default: {
      std::string text;
      for (size_t i = below(7); i > 0; --i) {
        text += pieces[below(pieces.size())];
      }
      return fmt::format("'{}'", text);
    }
  }
}

TEST(SqliteBoundedFunctions, AnswerAsSqlitesOwn) {
  const Connection own = Open();
  const Connection bounded = Open();
  BoundFunctions(bounded.get());
  std::mt19937 random(1);
  for (int i = 0; i < 5'000; ++i) {
    const std::string a = AnyValue(random), b = AnyValue(random), c = AnyValue(random);
    for (const std::string& asked :
         {fmt::format("instr({}, {})", a, b), fmt::format("replace({}, {}, {})", a, b, c),
          fmt::format("trim({})", a), fmt::format("trim({}, {})", a, b),
          fmt::format("ltrim({}, {})", a, b), fmt::format("rtrim({}, {})", a, b)}) {
      ASSERT_EQ(Answer(bounded.get(), asked), Answer(own.get(), asked)) << asked;
    }
  }
  for (const char* asked :
       {"json_patch('{\"a\":1,\"b\":2}', '{\"b\":null,\"c\":[1]}')", "json_patch('{', '{}')",
        "json_patch(NULL, '{}')", "json_array(json_patch('{}', '{\"a\":\"x\"}'))",
        "json_patch('[1]', '2')", "json_patch(NULL, NULL)", "printf()", "printf(NULL)",
        "printf('%d|%5.2f|%-6s|%%|%05d', 1, 2.5, 'é', 42)",
        "printf('%*.*f|%s', 9, 2, 3.14159, 'x')",
        "format('%,d %Q %w %c', 1234567, 'it''s', 'a', 'xyz')", "printf('%', 1)",
        "printf('%.5c', 'x')", "printf('%!.3s|%ld|%lld', 'éèà', 5, 6)", "printf('%d')",
        "format('%s %s', 1)"}) {
    EXPECT_EQ(Answer(bounded.get(), asked), Answer(own.get(), asked)) << asked;
  }
}

// SQLite's own take days, in a call that nothing ends.
TEST(SqliteBoundedFunctions, LongTextsTakeLinearTime) {
  const Connection bounded = Open();
  BoundFunctions(bounded.get());
  sqlite3* const at = bounded.get();
  EXPECT_EQ(Answer(at, "instr(zeroblob(20000000), zeroblob(10000000) || x'01')"), "integer 0");
  const std::string text = "replace(hex(zeroblob(10000000)), '0', 'a')";
  const std::string part = "replace(hex(zeroblob(5000000)), '0', 'a') || 'b'";
  EXPECT_EQ(Answer(at, fmt::format("instr({}, {})", text, part)), "integer 0");
  EXPECT_EQ(Answer(at, fmt::format("length(replace({}, {}, 'c'))", text, part)),
            "integer 20000000");
  EXPECT_EQ(Answer(at, fmt::format("length(trim({}, replace(hex(zeroblob(5000000)), '0', 'b') || "
                                   "'a'))",
                                   text)),
            "integer 0");
  EXPECT_EQ(Answer(at,
                   "json_patch(json_object('a', hex(zeroblob(100000))), json_object('b', "
                   "hex(zeroblob(100000))))"),
            "json_patch is given texts that would take it too long: give it shorter ones");
  for (const char* asked : {"printf('%.300000000c', 'x')", "format('%*d', -300000000, 1)",
                            "printf('%d%%%n%.*f', 7, 99999999, 1.5)",
                            "printf(replace(hex(zeroblob(50)), '0', '%200000d'))"}) {
    EXPECT_EQ(Answer(at, asked),
              "printf is given widths or precisions of more than 10000000 in all")
        << asked;
  }
  EXPECT_EQ(Answer(at, "length(printf('%.9000000c', 'x'))"), "integer 9000000");
  EXPECT_EQ(Answer(at, "'a' LIKE replace(hex(zeroblob(600)), '0', 'a')"),
            "LIKE or GLOB pattern too complex");
}

TEST(SqliteBoundedFunctions, TheLongestAnswerIsTheConnectionsLimit) {
  const Connection bounded = Open();
  BoundFunctions(bounded.get());
  sqlite3_limit(bounded.get(), SQLITE_LIMIT_LENGTH, 1000);
  EXPECT_EQ(Answer(bounded.get(), "length(replace('aaaaaaaaaa', 'a', hex(zeroblob(50))))"),
            "integer 1000");
  EXPECT_EQ(Answer(bounded.get(), "length(replace('aaaaaaaaaaa', 'a', hex(zeroblob(50))))"),
            "string or blob too big");
}

}  // namespace
}  // namespace sluice::catalog
