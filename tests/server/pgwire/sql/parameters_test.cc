#include "server/pgwire/sql/parameters.h"

#include <gtest/gtest.h>

#include <string>

#include "parser/printer.h"
#include "server/pgwire/sql/column_types.h"

namespace sluice::server::pgwire {
namespace {

std::string Literal(uint32_t type, std::string_view text) {
  const auto literal = ParameterLiteral({type, false, text});
  return literal.ok() ? *literal : literal.status().sqlstate();
}

std::string Binary(uint32_t type, std::string_view bytes) {
  const auto literal = ParameterLiteral({type, true, bytes});
  return literal.ok() ? *literal : literal.status().sqlstate();
}

std::string Attribute(uint32_t type, std::string_view text) {
  const auto value = ParameterAttribute({type, false, text}, Span{3, 5});
  if (!value.ok()) {
    EXPECT_EQ(value.status().diagnostics()[0].span, (Span{3, 5}));
    return value.status().sqlstate();
  }
  EXPECT_EQ(value->span, (Span{3, 5}));
  return parser::Print(*value);
}

TEST(Parameters, StandInASelectAsOneExpression) {
  EXPECT_EQ(Literal(kInt4Oid, "5"), "('5'::pg_catalog.int4)");
  EXPECT_EQ(Literal(kTextOid, "it's"), "('it''s'::pg_catalog.text)");
  EXPECT_EQ(Literal(kTextOid, "\\'; --"), "(E'\\\\''; --'::pg_catalog.text)");
  EXPECT_EQ(Literal(kCharOid, "x"), "('x'::pg_catalog.\"char\")");
  EXPECT_EQ(Literal(1007, "{1,2}"), "('{1,2}'::pg_catalog.int4[])");
  EXPECT_EQ(Literal(kUnspecifiedOid, "5"), "('5')");
  EXPECT_EQ(ParameterLiteral({kInt4Oid, false, std::nullopt}).value(), "(NULL::pg_catalog.int4)");
  EXPECT_EQ(ParameterLiteral({kUnspecifiedOid, true, std::nullopt}).value(), "(NULL)");
  EXPECT_EQ(Literal(kTextOid, std::string_view("a\0b", 3)), "22021");
  EXPECT_EQ(Literal(kTextOid, "\xFF"), "22021");
  EXPECT_EQ(Literal(kTextOid, "'\xC0\xA7"), "22021");
}

TEST(Parameters, BytesThatAreNoneOfTheTypeAreRefused) {
  EXPECT_EQ(Binary(kInt4Oid, std::string_view("\0\0\0\5", 4)), "('5'::pg_catalog.int4)");
  for (const uint32_t type :
       {uint32_t{kBoolOid}, uint32_t{kInt2Oid}, uint32_t{kInt4Oid}, uint32_t{kInt8Oid},
        uint32_t{kFloat4Oid}, uint32_t{kFloat8Oid}, uint32_t{kDateOid}, uint32_t{kTimestampOid},
        uint32_t{kNumericOid}, uint32_t{kUuidOid}, uint32_t{kJsonbOid}, uint32_t{1007}}) {
    EXPECT_EQ(Binary(type, ""), "22P03") << type;
    EXPECT_NE(Binary(type, std::string(33, '\7')).substr(0, 2), "('") << type;
  }
  EXPECT_EQ(Binary(kTextOid, std::string_view("a\0b", 3)), "22021");
  EXPECT_EQ(Binary(142, "<x/>"), "0A000");
  EXPECT_EQ(Binary(kIntervalOid, std::string(16, '\0')),
            "('+0 mons +0 days +00:00:00'::pg_catalog.interval)");
  EXPECT_EQ(Binary(kTimeOid, std::string(8, '\x10')), "22008");
  EXPECT_EQ(Binary(kTimetzOid, std::string(8, '\0') + "\x10\x10\x10\x10"), "22008");
  EXPECT_EQ(Binary(kDateOid, std::string_view("\x80\0\0\1", 4)), "22008");
  EXPECT_EQ(Binary(kTimestampOid, std::string_view("\x80\0\0\0\0\0\0\1", 8)), "22008");
  // No memory is allocated for 2^31 elements.
  EXPECT_EQ(
      Binary(1007, std::string_view("\0\0\0\1\0\0\0\0\0\0\0\x17\x7F\xFF\xFF\xFF\0\0\0\1", 20)),
      "22P03");
  EXPECT_EQ(Binary(1007, std::string_view("\0\0\0\7\0\0\0\0\0\0\0\x17", 12)), "22P03");
  EXPECT_EQ(Binary(1007, std::string_view("\0\0\0\0\0\0\0\0\0\0\0\x19", 12)), "22P03");
  EXPECT_EQ(Binary(1007, std::string_view("\0\0\0\0\0\0\0\0\0\0\0\x17", 12)),
            "('{}'::pg_catalog.int4[])");
}

TEST(Parameters, AreValuesOfAttributes) {
  EXPECT_EQ(Attribute(kInt4Oid, "5"), "5");
  EXPECT_EQ(Attribute(kInt8Oid, " +5 "), "5");
  EXPECT_EQ(Attribute(kInt4Oid, "five"), "22P02");
  EXPECT_EQ(Attribute(kInt8Oid, "9223372036854775808"), "22P02");
  EXPECT_EQ(Attribute(kFloat8Oid, "0.5"), "0.5");
  EXPECT_EQ(Attribute(kFloat8Oid, "half"), "22P02");
  EXPECT_EQ(Attribute(kNumericOid, "10"), "10");
  EXPECT_EQ(Attribute(kNumericOid, "0.10"), "0.1");
  EXPECT_EQ(Attribute(kBoolOid, "t"), "true");
  EXPECT_EQ(Attribute(kBoolOid, "OFF"), "false");
  EXPECT_EQ(Attribute(kBoolOid, "o"), "22P02");
  EXPECT_EQ(Attribute(kBoolOid, ""), "22P02");
  EXPECT_EQ(Attribute(kTextOid, "10"), "'10'");
  EXPECT_EQ(Attribute(kVarcharOid, "Adam"), "'Adam'");
  // node-postgres, psycopg: numbers come as texts without a type.
  EXPECT_EQ(Attribute(kUnspecifiedOid, "10"), "10");
  EXPECT_EQ(Attribute(kUnspecifiedOid, "1e-3"), "0.001");
  EXPECT_EQ(Attribute(kUnspecifiedOid, "Adam"), "'Adam'");
  EXPECT_EQ(Attribute(kUnspecifiedOid, "infinity"), "'infinity'");
  EXPECT_EQ(Attribute(kUnspecifiedOid, ""), "''");
  EXPECT_EQ(Attribute(1007, "{64,32}"), "[64, 32]");
  EXPECT_EQ(Attribute(1009, "{a,\"b c\",NULL}"), "['a', 'b c', null]");
  EXPECT_EQ(Attribute(1007, "{}"), "[]");
  EXPECT_EQ(Attribute(1007, "{{1},{2}}"), "0A000");
  EXPECT_EQ(Attribute(1007, "{1,x}"), "22P02");
  const auto null = ParameterAttribute({kInt4Oid, true, std::nullopt}, Span{3, 5});
  EXPECT_EQ(parser::Print(*null), "null");
  const auto binary = ParameterAttribute(
      {1007, true,
       std::string_view(
           "\0\0\0\1\0\0\0\0\0\0\0\x17\0\0\0\2\0\0\0\1\0\0\0\4\0\0\0\x40\0\0\0\4\0\0\0\x20", 36)},
      {3, 5});
  ASSERT_TRUE(binary.ok()) << binary.status().ToString();
  EXPECT_EQ(parser::Print(*binary), "[64, 32]");
}

TEST(Parameters, ArraysThatAreNoneAreTold) {
  for (const char* wrong : {"",
                            "{",
                            "}",
                            "{1",
                            "{1,}",
                            "{,1}",
                            "{1}}",
                            "{1}x",
                            "{{1},{2,3}}",
                            "{{1},2}",
                            "{1,{2}}",
                            "{{}}",
                            "[1:2]={1}",
                            "[1:2={1,2}",
                            "[1:2]{1,2}",
                            "{\"a}",
                            "{a\"b\"}",
                            "{a\\",
                            "1,2",
                            "{{{{{{{1}}}}}}}",
                            "[2:1]={}",
                            "[-2147483648:2147483647]={1}"}) {
    EXPECT_EQ(Attribute(1007, wrong), "22P02") << wrong;
  }
}

}  // namespace
}  // namespace sluice::server::pgwire
