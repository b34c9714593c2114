#include "catalog/data_source.h"

#include <algorithm>

#include "catalog/sql/value_expression.h"
#include "catalog/table_loader.h"

namespace sluice::catalog {

Status DataSource::BeginStatement(std::string_view /*statement*/, std::stop_token /*stop*/) {
  return OkStatus();
}

Result<DataSource::SettingValues> DataSource::BeginStatementIn(
    const SessionLink& /*session*/, std::string_view /*statement*/, bool /*reads_once*/,
    const std::vector<std::string>& /*settings*/, std::stop_token /*stop*/) {
  return Unimplemented("this database has no sessions that could be borrowed");
}

Status RowReceiver::Copied(std::string_view /*text*/) {
  return Unimplemented("COPY TO STDOUT is not supported here").Hint("run the SELECT itself");
}

Result<std::string> RowReceiver::NextToCopy() {
  return Unimplemented("COPY FROM STDIN has no rows to read here")
      .Hint(
          "in a shell without a gateway it is the last statement of its line, and its rows follow; "
          "or COPY FROM a file of the server, or INSERT");
}

Result<DataSource::StatementSession> DataSource::ExportSession() {
  RETURN_IF_ERROR(CheckNoTransaction());
  return StatementSession();
}

Status DataSource::BeginStatementWith(const StatementSession& /*session*/, std::stop_token stop) {
  return BeginStatement("", std::move(stop));
}

Result<std::unique_ptr<TableLoader>> DataSource::OpenLoader(const TableName& /*table*/,
                                                            const Schema& /*columns*/,
                                                            bool /*make*/) {
  return Unimplemented("this database does not accept rows from outside");
}

Result<std::string> DataSource::ActingRole(std::stop_token /*stop*/) {
  return std::string();
}

Result<std::string> DataSource::ActingRoleIn(const SessionLink& /*session*/, std::stop_token stop) {
  return ActingRole(std::move(stop));
}

void DataSource::HearStop(std::stop_token /*stop*/) {}

std::chrono::milliseconds DataSource::statement_timeout() {
  return std::chrono::milliseconds(0);
}

std::vector<std::string> DataSource::TakeNotices() {
  return {};
}

void DataSource::EndStatement() {}

Status DataSource::CheckNoTransaction() {
  return OkStatus();
}

Status DataSource::DescribeCopies(std::string_view /*select*/, Schema* /*schema*/) {
  return OkStatus();
}

Result<std::unique_ptr<Dataset>> DataSource::HoldDataset(const DatasetSpec& /*spec*/) {
  return Status(Code::kUnimplemented, "only PostgreSQL gives a snapshot on").SqlState("0A000");
}

Result<std::vector<ColumnKey>> DataSource::DescribeKeys(std::string_view /*select*/,
                                                        const Schema& schema) {
  return std::vector<ColumnKey>(schema.columns.size(), ColumnKey::kNone);
}

Status DataSource::Read(std::string_view select, RowReceiver* receiver) {
  return Execute(select, receiver, std::stop_token()).status();
}

bool IsIn(const std::vector<std::string>& names, const ColumnInfo& column) {
  return std::find(names.begin(), names.end(), column.name) != names.end();
}

DataType ShownType(const ColumnInfo& column) {
  const bool numeric =
      column.type == DataType::kDouble &&
      (column.database_type.starts_with("numeric") || IsNumberShownAsText(column.database_type));
  return numeric || column.type == DataType::kTimestamp ? DataType::kText : column.type;
}

}  // namespace sluice::catalog
