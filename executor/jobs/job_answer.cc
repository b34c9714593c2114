#include "executor/jobs/job_answer.h"

#include <utility>
#include <variant>
#include <vector>

#include "catalog/column_description.h"
#include "elastic/transport/status_codec_internal.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.pb.h"
#include "executor/result_rows.h"

namespace sluice::executor {
namespace {

void PutColumns(const Schema& schema, JobAnswerProto* answer) {
  for (const ColumnInfo& column : schema.columns) {
    catalog::PutColumn(column, answer->add_columns());
  }
}

void PutCell(const Value& value, JobAnswerProto::Cell* cell) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    cell->set_flag(*flag);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    cell->set_integer(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    cell->set_number(*number);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    cell->set_text(*text);
  }
}

Value ValueOf(const JobAnswerProto::Cell& cell) {
  switch (cell.value_case()) {
    case JobAnswerProto::Cell::kFlag:
      return cell.flag();
    case JobAnswerProto::Cell::kInteger:
      return int64_t{cell.integer()};
    case JobAnswerProto::Cell::kNumber:
      return cell.number();
    case JobAnswerProto::Cell::kText:
      return cell.text();
    case JobAnswerProto::Cell::VALUE_NOT_SET:
      break;
  }
  return std::monostate{};
}

Schema ColumnsOf(const JobAnswerProto& answer) {
  Schema schema;
  for (const catalog::ColumnDescription& column : answer.columns()) {
    schema.columns.push_back(catalog::ColumnOf(column));
  }
  return schema;
}

}  // namespace

std::string AnswerBytes(const ResultRows& rows, std::string_view tag) {
  JobAnswerProto answer;
  answer.set_tag(std::string(tag));
  PutColumns(rows.schema(), &answer);
  for (const std::vector<Value>& row : rows.rows()) {
    JobAnswerProto::Row* put = answer.add_rows();
    for (const Value& value : row) {
      PutCell(value, put->add_cells());
    }
  }
  return answer.SerializeAsString();
}

std::string AnswerBytes(const Schema& columns) {
  JobAnswerProto answer;
  PutColumns(columns, &answer);
  return answer.SerializeAsString();
}

std::string AnswerBytes(const Status& failed) {
  JobAnswerProto answer;
  elastic::ToProto(failed, answer.mutable_failed());
  return answer.SerializeAsString();
}

Status SendAnswer(const std::string& bytes, ResultSink& sink) {
  JobAnswerProto answer;
  if (!answer.ParseFromString(bytes)) {
    return Internal("the answer that was kept with the job is damaged");
  }
  if (answer.failed().diagnostics_size() > 0) {
    return elastic::FromProto(answer.failed());
  }
  if (answer.columns_size() > 0) {
    ResultRows rows(ColumnsOf(answer));
    for (const JobAnswerProto::Row& kept : answer.rows()) {
      if (kept.cells_size() != answer.columns_size()) {
        return Internal("the answer that was kept with the job is damaged");
      }
      std::vector<Value> row;
      for (const JobAnswerProto::Cell& cell : kept.cells()) {
        row.push_back(ValueOf(cell));
      }
      rows.Add(std::move(row));
    }
    RETURN_IF_ERROR(rows.SendTo(sink));
  }
  sink.Done(answer.tag());
  return OkStatus();
}

Schema ColumnsOfAnswer(const std::string& bytes) {
  JobAnswerProto answer;
  return answer.ParseFromString(bytes) ? ColumnsOf(answer) : Schema();
}

Status ErrorOfAnswer(const std::string& bytes) {
  JobAnswerProto answer;
  return answer.ParseFromString(bytes) && answer.failed().diagnostics_size() > 0
             ? elastic::FromProto(answer.failed())
             : OkStatus();
}

std::string WithNotices(std::string bytes, const std::map<int64_t, std::string>& notices) {
  JobAnswerProto further;
  for (const auto& [micros, text] : notices) {
    JobAnswerProto::Notice* const notice = further.add_notices();
    notice->set_micros(micros);
    notice->set_text(text);
  }
  return std::move(bytes) + further.SerializeAsString();  // protobuf merges concatenated messages
}

std::map<int64_t, std::string> NoticesOfAnswer(const std::string& bytes) {
  JobAnswerProto answer;
  std::map<int64_t, std::string> notices;
  if (answer.ParseFromString(bytes)) {
    for (const JobAnswerProto::Notice& notice : answer.notices()) {
      notices[notice.micros()] = notice.text();
    }
  }
  return notices;
}

}  // namespace sluice::executor
