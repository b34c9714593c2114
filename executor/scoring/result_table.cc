#include "executor/scoring/result_table.h"

#include <fmt/core.h>

#include <utility>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

class PlacedWriter final : public catalog::TableWriter {
 public:
  PlacedWriter(std::unique_ptr<catalog::TableWriter> writer, Span place)
      : writer_(std::move(writer)), place_(place) {}
  Status Write(const RowBatch& batch) override { return writer_->Write(batch).MovedTo(place_); }
  Prepared Prepare(RowBatch* batch) const override { return writer_->Prepare(batch); }
  Status Write(Prepared rows) override { return writer_->Write(std::move(rows)).MovedTo(place_); }
  Status Commit(std::stop_token stop) override {
    return writer_->Commit(std::move(stop)).MovedTo(place_);
  }
  std::optional<int64_t> rows_arrived() override { return writer_->rows_arrived(); }

 private:
  const std::unique_ptr<catalog::TableWriter> writer_;
  const Span place_;
};

}  // namespace

Result<std::unique_ptr<catalog::TableWriter>> OpenResultTable(const plan::ResultTable& table,
                                                              const Schema& schema,
                                                              const std::string& kind, int64_t job,
                                                              Context& context, ResultSink& sink) {
  catalog::ResultTable wanted;
  wanted.name = {table.schema(), table.name()};
  wanted.replace = table.replace();
  wanted.append = table.append();
  wanted.kind = kind;
  wanted.job = job;
  const Span place = {table.place_begin(), table.place_end()};
  RETURN_IF_ERROR(context.catalog.MakeTables());
  auto writer = context.source.OpenWriter(wanted, schema);
  if (!writer.ok()) {
    return writer.status().MovedTo(place);
  }
  if (table.action() == static_cast<int32_t>(catalog::ResultAction::kReplace) && !table.replace()) {
    sink.Notice(fmt::format("table {} had other columns and is made anew", ResultTableName(table)));
  }
  return std::unique_ptr<catalog::TableWriter>(new PlacedWriter(std::move(writer).value(), place));
}

std::string ResultTableName(const plan::ResultTable& table) {
  return catalog::TableName{table.schema_written() ? table.schema() : "", table.name()}.Text();
}

}  // namespace sluice::executor
