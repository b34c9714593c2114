#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "tests/catalog/both_databases.h"

#define EXPECT_OK(status)                                    \
  do {                                                       \
    const Status expected_ok = status;                       \
    EXPECT_TRUE(expected_ok.ok()) << expected_ok.ToString(); \
  } while (false)

namespace sluice::catalog {

// Tables that a statement writes, and what is said of those that it may not.
class ResultTableTest : public BothDatabases {
 protected:
  bool WritesResults() const override { return true; }

  static Schema TwoColumns() {
    return {{{"id", DataType::kInt64, ""}, {"y", DataType::kText, ""}}};
  }

  static RowBatch Rows(int64_t first, int64_t count, const Schema& schema = TwoColumns()) {
    RowBatch batch;
    batch.Reset(schema, static_cast<size_t>(count));
    batch.rows = static_cast<size_t>(count);
    for (size_t row = 0; row < batch.rows; ++row) {
      for (RowBatch::Column& column : batch.columns) {
        column.null[row] = 0;
        if (column.type == DataType::kText) {
          column.texts[row] = "new";
        } else if (column.type == DataType::kDouble) {
          column.doubles[row] = 0.5;
        } else {
          column.int64s[row] = first + static_cast<int64_t>(row);
        }
      }
    }
    return batch;
  }

  static ResultTable Named(TableName name) {
    ResultTable table;
    table.name = std::move(name);
    table.kind = "predict";
    table.job = 7;
    return table;
  }
  static ResultTable Replacing(TableName name) {
    ResultTable table = Named(std::move(name));
    table.replace = true;
    return table;
  }
  static ResultTable Appending(TableName name) {
    ResultTable table = Named(std::move(name));
    table.append = true;
    return table;
  }

  static Status WriteTo(DataSource& to, const ResultTable& table, int64_t rows,
                        const Schema& schema = TwoColumns()) {
    ASSIGN_OR_RETURN(const auto writer, to.OpenWriter(table, schema));
    RETURN_IF_ERROR(writer->Write(Rows(1, rows, schema)));
    return writer->Commit({});
  }
  Status Write(const ResultTable& table, int64_t rows, const Schema& schema = TwoColumns()) {
    return WriteTo(source(), table, rows, schema);
  }
  std::string Count(const std::string& table) {
    return Select("SELECT count(*) FROM " + table)[0][0];
  }

  // The refusal by planning and by writing, which must be the same; "" for OK.
  std::string Refusal(const ResultTable& table, const Schema& schema = TwoColumns()) {
    const auto plan = source().PlanResultTable(table, &schema);
    const auto writer = source().OpenWriter(table, schema);
    EXPECT_EQ(plan.status().ToString(), writer.status().ToString());
    return plan.status().ToString();
  }
  ResultAction Planned(const ResultTable& table, const Schema& schema = TwoColumns()) {
    const auto plan = source().PlanResultTable(table, &schema);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->action : ResultAction::kMake;
  }
};

}  // namespace sluice::catalog
