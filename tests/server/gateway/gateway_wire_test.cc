#include <gtest/gtest.h>

#include "executor/result_rows.h"
#include "server/gateway/gateway_wire_internal.h"
#include "server/shell/output.h"

namespace sluice::server {
namespace {

TEST(GatewayWire, RowsOfEveryTypeComeBackAsTheyWere) {
  executor::ResultRows rows(Schema{{{"b", DataType::kBool, "boolean"},
                                    {"i", DataType::kInt64, "bigint"},
                                    {"d", DataType::kDouble, "double precision"},
                                    {"t", DataType::kText, "text"},
                                    {"w", DataType::kTimestamp, "timestamp"},
                                    {"x", DataType::kBytes, "bytea"}}});
  rows.Add({true, int64_t{-7}, 0.1, std::string("not UTF-8: \xFF"), int64_t{1'700'000'000'000'000},
            std::string("\0\1", 2)});
  rows.Add({Value(), Value(), Value(), Value(), Value(), Value()});
  const RowBatch sent = rows.ToBatch();
  const auto schema = HeaderFromWire(HeaderToWire(rows.schema()));
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(schema->Names(), rows.schema().Names());
  EXPECT_EQ(schema->columns[2].database_type, "double precision");
  int messages = 0;
  const Status status = RowsToWire(sent, [&](const v1::Rows& wire) -> Status {
    ++messages;
    std::string bytes;
    EXPECT_TRUE(wire.SerializeToString(&bytes));
    v1::Rows received;
    EXPECT_TRUE(received.ParseFromString(bytes));
    RowBatch batch;
    RETURN_IF_ERROR(RowsFromWire(received, *schema, &batch));
    EXPECT_EQ(batch.rows, 2U);
    for (size_t c = 0; c < batch.columns.size(); ++c) {
      for (size_t r = 0; r < batch.rows; ++r) {
        EXPECT_EQ(batch.columns[c].ValueAt(r), sent.columns[c].ValueAt(r)) << c << " " << r;
      }
    }
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(messages, 1);
}

TEST(GatewayWire, CellsOfOtherTypesAndTextsOfNumbersComeBackToo) {
  const Schema schema{{{"n", DataType::kInt64, "INTEGER"},
                       {"f", DataType::kDouble, "real"},
                       {"same", DataType::kDouble, "double precision"}}};
  RowBatch sent;
  sent.Reset(schema, 3);
  sent.rows = 3;
  RowBatch::Column& mixed = sent.columns[0];
  mixed.types = {DataType::kInt64, DataType::kText, DataType::kDouble};
  mixed.int64s = {7, -1, -1};
  mixed.doubles = {-1, -1, 2.5};
  mixed.texts = {"stale", "late", ""};
  sent.columns[1].doubles = {1e6, 0.5, 0};
  sent.columns[1].texts = {"1e+06", "0.5", "stale"};
  sent.columns[1].null = {0, 0, 1};
  sent.columns[2].doubles = {0.1, 0.5, 2};
  sent.columns[2].texts = {"0.1", "0.5", "2"};
  const Status status = RowsToWire(sent, [&](const v1::Rows& wire) -> Status {
    EXPECT_EQ(wire.columns(0).types().size(), 3U);
    EXPECT_TRUE(wire.columns(1).types().empty());
    EXPECT_EQ(wire.columns(2).texts_size(), 0) << "what everybody would write is not sent";
    RowBatch batch;
    RETURN_IF_ERROR(RowsFromWire(wire, schema, &batch));
    EXPECT_EQ(CellText(batch.columns[0], 0), "7");
    EXPECT_EQ(CellText(batch.columns[0], 1), "late");
    EXPECT_EQ(CellText(batch.columns[0], 2), "2.5");
    EXPECT_EQ(CellText(batch.columns[1], 0), "1e+06");
    EXPECT_EQ(CellText(batch.columns[1], 1), "0.5");
    EXPECT_EQ(CellText(batch.columns[1], 2), "");
    EXPECT_EQ(batch.columns[1].doubles[0], 1e6);
    EXPECT_EQ(CellText(batch.columns[2], 2), "2");
    // What a hostile gateway could send.
    RowBatch other;
    for (const std::string types : {"\x04", "\x01\x01\x09", "\x01\x01\xFF"}) {
      v1::Rows wrong = wire;
      wrong.mutable_columns(0)->set_types(types);
      EXPECT_FALSE(RowsFromWire(wrong, schema, &other).ok());
    }
    v1::Rows wrong = wire;
    wrong.mutable_columns(0)->clear_texts();
    EXPECT_FALSE(RowsFromWire(wrong, schema, &other).ok());
    wrong = wire;
    wrong.mutable_columns(1)->mutable_texts()->RemoveLast();
    EXPECT_FALSE(RowsFromWire(wrong, schema, &other).ok());
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST(GatewayWire, LongRowsAreCutIntoMessagesBelowEveryLimit) {
  executor::ResultRows rows(Schema{{{"t", DataType::kText, "text"}}});
  for (int i = 0; i < 50; ++i) {
    rows.Add({std::string(100'000, 'x')});
  }
  int64_t count = 0;
  size_t largest = 0;
  const Status status = RowsToWire(rows.ToBatch(), [&](const v1::Rows& wire) {
    count += wire.count();
    largest = std::max(largest, wire.ByteSizeLong());
    return OkStatus();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(count, 50);
  EXPECT_LT(largest, size_t{2} << 20U);
}

TEST(GatewayWire, RowsThatDoNotFitTheirHeaderAreRefused) {
  const Schema schema{{{"n", DataType::kInt64, "bigint"}}};
  RowBatch batch;
  v1::Rows rows;
  rows.set_count(2);
  EXPECT_FALSE(RowsFromWire(rows, schema, &batch).ok()) << "no column";
  rows.add_columns()->add_integers(1);
  EXPECT_FALSE(RowsFromWire(rows, schema, &batch).ok()) << "one value for two rows";
  rows.mutable_columns(0)->add_integers(2);
  EXPECT_TRUE(RowsFromWire(rows, schema, &batch).ok());
  rows.mutable_columns(0)->set_null("\1");
  EXPECT_FALSE(RowsFromWire(rows, schema, &batch).ok()) << "one NULL flag for two rows";
}

TEST(GatewayWire, ErrorsKeepAllThatTheyKnow) {
  Status status = ColumnNotFound("no column 'clss'").At({10, 14}).Hint("did you mean 'class'?");
  status.Add(InvalidArgument("x").Detail("y"));
  const v1::Error wire = ErrorToWire(status, "SELECT a\nLABEL clss");
  EXPECT_EQ(wire.diagnostics(0).line(), 2);
  EXPECT_EQ(wire.diagnostics(0).column(), 2);
  EXPECT_EQ(wire.diagnostics(1).line(), 0);
  const Status back = ErrorFromWire(wire);
  ASSERT_EQ(back.diagnostics().size(), 2U);
  EXPECT_EQ(back.ToString(), status.ToString());
  EXPECT_EQ(back.code(), Code::kNotFound);
  EXPECT_EQ(back.diagnostics()[0].span, (Span{10, 14}));
  EXPECT_FALSE(back.diagnostics()[1].span.valid());
  EXPECT_FALSE(ErrorFromWire(v1::Error()).ok()) << "an error is never taken for success";
}

// An error quotes cells, and truncating may split a character.
TEST(GatewayWire, TextsThatAreNoUtf8CanBeReadAllTheSame) {
  const Status status = InvalidArgument("cell 'caf\xC3'").Detail("\xFF").Hint("\xE2\x82");
  v1::Error error;
  ASSERT_TRUE(error.ParseFromString(ErrorToWire(status, "").SerializeAsString()));
  EXPECT_EQ(error.diagnostics(0).message(), "cell 'caf\xEF\xBF\xBD'");
  EXPECT_EQ(error.diagnostics(0).detail(), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace sluice::server
