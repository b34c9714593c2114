#include "server/load/load_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/table_loader.h"
#include "executor/executor.h"
#include "parser/parser.h"
#include "server/load/column_guess.h"
#include "server/load/csv_reader.h"
#include "server/load/load_file_internal.h"
#include "server/load/load_target.h"

namespace sluice::server {
namespace {

constexpr size_t kBatchRows = 10'000;
constexpr size_t kBatchCells = 400'000;  // fewer rows if the table is wide
constexpr size_t kMaxShown = 12;         // columns that a notice names
constexpr double kSecondsBetweenProgress = 0.2;

class TableLoad {
 public:
  TableLoad(const LoadOptions& options, LoadTarget& target, const std::stop_token& stop,
            executor::ResultSink& sink)
      : options_(options), target_(target), stop_(stop), sink_(sink) {}

  Status Run() {
    RETURN_IF_ERROR(file_.Open(stop_));
    RETURN_IF_ERROR(FindTable());
    RETURN_IF_ERROR(file_.ReadHeader([this](std::string_view name) { return target_.Fold(name); }));
    RETURN_IF_ERROR(options_.append ? MatchColumns() : GuessColumns());
    ASSIGN_OR_RETURN(loader_, target_.Open(table_, columns_, !options_.append));
    RETURN_IF_ERROR(WriteRows());
    RETURN_IF_ERROR(loader_->Commit().Because(options_.file));
    loader_.reset();
    ReportColumns();
    sink_.Done(fmt::format("LOAD {}", rows_));
    return OkStatus();
  }

 private:
  Status FindTable() {
    ASSIGN_OR_RETURN(const parser::Name name, parser::ParseName(options_.table));
    if (name.parts.empty() || name.parts.size() > 2) {
      return SyntaxError(fmt::format("'{}' names no table", options_.table))
          .Hint("a table is named [schema.]table");
    }
    const auto part = [&](size_t i) {
      return name.IsQuoted(i) ? name.parts[i] : target_.Fold(name.parts[i]);
    };
    table_.name = part(name.parts.size() - 1);
    table_.schema = name.parts.size() > 1 ? part(0) : "";
    ASSIGN_OR_RETURN(const std::optional<catalog::TableName> found, target_.Find(table_));
    if (found && !options_.append) {
      return Status(Code::kAlreadyExists, fmt::format("table {} exists", found->Text()))
          .SqlState("42P07")
          .Hint("--append adds the rows to it; or name another table, or DROP this one");
    }
    if (!found && options_.append) {
      return TableNotFound(fmt::format("there is no table {}", table_.Text()))
          .Hint("without --append it is made");
    }
    table_ = found.value_or(table_);
    return OkStatus();
  }

  // The next row; no fields at the end.
  Result<const std::vector<CsvField>*> NextRow() {
    ASSIGN_OR_RETURN(const std::vector<CsvField>* row, file_.NextRow());
    if (++looked_at_ % 1'000 == 0) {
      if (stop_.stop_requested()) {
        return Cancelled("cancelled: nothing was loaded");
      }
      ReportProgress();
    }
    return row;
  }

  // Returns to the first row.
  Status Rewind() {
    looked_at_ = 0;
    begin_time_ = clock_.Now();
    return file_.Rewind();
  }

  Status GuessColumns() {
    const std::vector<std::string>& names = file_.names();
    std::vector<ColumnGuess> guesses(names.size());
    RETURN_IF_ERROR(Rewind());
    for (;;) {
      ASSIGN_OR_RETURN(const std::vector<CsvField>* row, NextRow());
      if (row->empty()) {
        break;
      }
      for (size_t i = 0; i < row->size(); ++i) {
        if (!file_.IsNull((*row)[i])) {
          guesses[i].See((*row)[i].text);
        }
      }
    }
    rows_expected_ = looked_at_ - 1;
    for (size_t i = 0; i < names.size(); ++i) {
      const GuessedType type = guesses[i].type();
      columns_.columns.push_back(DeclareColumn(names[i], type));
      if (type != GuessedType::kText && guesses[i].marks() > 0) {
        marks_.push_back(fmt::format("{} of {}", guesses[i].marks(), names[i]));
      }
    }
    cells_ = columns_;
    for (ColumnInfo& cell : cells_.columns) {
      cell.type = cell.type == DataType::kTimestamp ? DataType::kText : cell.type;
    }
    return Rewind();
  }

  Status MatchColumns() {
    ASSIGN_OR_RETURN(const Schema table, target_.Columns(table_));
    const bool by_place = !options_.has_header && file_.names().size() == table.columns.size();
    std::string unknown;
    for (const std::string& name : by_place ? table.Names() : file_.names()) {
      const std::optional<size_t> found = table.Find(name);
      if (!found) {
        unknown += (unknown.empty() ? "" : ", ") + name;
        continue;
      }
      columns_.columns.push_back(table.columns[*found]);
    }
    if (!unknown.empty()) {
      std::string listed;
      for (size_t i = 0; i < std::min(table.columns.size(), kMaxShown); ++i) {
        listed += (listed.empty() ? "" : ", ") + table.columns[i].name;
      }
      return ColumnNotFound(fmt::format("{}: table {} has no column {}", options_.file,
                                        table_.Text(), unknown))
          .Hint(fmt::format("its columns are {}{}", listed,
                            table.columns.size() > kMaxShown ? ", ..." : ""));
    }
    cells_ = columns_;
    const bool reads_texts = target_.ReadsTexts();
    for (ColumnInfo& cell : cells_.columns) {
      const bool number = cell.type == DataType::kInt64 || cell.type == DataType::kDouble ||
                          cell.type == DataType::kBool;
      cell.type = reads_texts || !number ? DataType::kText : cell.type;
    }
    return options_.has_header ? OkStatus() : Rewind();
  }

  Status WriteRows() {
    const size_t capacity = std::clamp(kBatchCells / file_.names().size(), size_t{100}, kBatchRows);
    arena_.reserve(catalog::kBatchBytes);
    batch_.Reset(cells_, capacity);
    for (;;) {
      ASSIGN_OR_RETURN(const std::vector<CsvField>* row, NextRow());
      if (row->empty()) {
        return Flush();
      }
      size_t bytes = 0;
      for (const CsvField& field : *row) {
        bytes += field.text.size();
      }
      if (batch_.rows == capacity || arena_.size() + bytes > arena_.capacity()) {
        RETURN_IF_ERROR(Flush());
        arena_.reserve(bytes);
      }
      for (size_t i = 0; i < row->size(); ++i) {
        RETURN_IF_ERROR(AddCell((*row)[i], i));
      }
      lines_.push_back(file_.line());
      ++batch_.rows;
    }
  }

  Status AddCell(const CsvField& field, size_t i) {
    RowBatch::Column& column = batch_.columns[i];
    const size_t row = batch_.rows;
    const bool text = columns_.columns[i].type == DataType::kText;
    column.null[row] = file_.IsNull(field) || (!text && IsMissingMark(field.text)) ? 1 : 0;
    if (column.null[row] != 0) {
      if (column.type == DataType::kText) {
        column.texts[row] = {};
      }
      return OkStatus();
    }
    switch (column.type) {
      case DataType::kInt64:
        if (const auto number = ReadInteger(field.text)) {
          column.int64s[row] = *number;
          return OkStatus();
        }
        return WrongCell(field, i, "whole number");
      case DataType::kDouble:
        if (const auto number = ReadNumber(field.text)) {
          column.doubles[row] = *number;
          return OkStatus();
        }
        return WrongCell(field, i, "number");
      case DataType::kBool:
        if (const auto flag = ReadFlag(field.text)) {
          column.int64s[row] = *flag ? 1 : 0;
          return OkStatus();
        }
        if (field.text == "0" || field.text == "1" || field.text == "t" || field.text == "f") {
          column.int64s[row] = field.text == "1" || field.text == "t" ? 1 : 0;
          return OkStatus();
        }
        return WrongCell(field, i, "boolean");
      default:
        break;
    }
    const size_t begin = arena_.size();
    arena_ += field.text;  // within its capacity, which WriteRows has checked
    column.texts[row] = std::string_view(arena_).substr(begin);
    return OkStatus();
  }

  Status WrongCell(const CsvField& field, size_t i, std::string_view wanted) const {
    constexpr size_t kShownBytes = 40;
    const ColumnInfo& column = columns_.columns[i];
    return file_
        .ErrorAt(field, fmt::format("'{}{}' is no {}, and column {} is {}",
                                    field.text.substr(0, kShownBytes),
                                    field.text.size() > kShownBytes ? "..." : "", wanted,
                                    column.name, column.database_type))
        .SqlState("22P02");
  }

  Status Flush() {
    catalog::RefusedRow refused;
    Status written = loader_->Write(batch_, &refused);
    if (!written.ok()) {
      const std::string line = refused.row && *refused.row < lines_.size()
                                   ? fmt::format(":{}", lines_[*refused.row])
                                   : "";
      const std::string column =
          refused.column.empty() ? "" : fmt::format(" (column {})", refused.column);
      return std::move(written).Because(fmt::format("{}{}{}", options_.file, line, column));
    }
    rows_ += static_cast<int64_t>(batch_.rows);
    batch_.rows = 0;
    arena_.clear();
    lines_.clear();
    return OkStatus();
  }

  void ReportProgress() {
    const TimePoint now = clock_.Now();
    if (SecondsBetween(told_, now) < kSecondsBetweenProgress) {
      return;
    }
    told_ = now;
    elastic::Progress progress;
    progress.rows_done = looked_at_;
    const double seconds = std::max(SecondsBetween(begin_time_, now), 1e-6);
    const double share = file_.ShareRead();
    progress.rows_total = rows_expected_ > 0 ? rows_expected_
                          : share > 0
                              ? static_cast<int64_t>(static_cast<double>(looked_at_) / share)
                              : 0;
    progress.rows_per_second = static_cast<double>(looked_at_) / seconds;
    progress.seconds_left =
        static_cast<double>(progress.rows_total - looked_at_) / progress.rows_per_second;
    sink_.Progress(progress);
  }

  void ReportColumns() {
    for (const std::string& notice : target_.TakeNotices()) {
      sink_.Notice(notice);
    }
    if (const int64_t bytes = file_.bytes_replaced(); bytes > 0) {
      sink_.Notice(fmt::format("{} bytes that are no UTF-8 were loaded as ?", bytes));
    }
    if (options_.append) {
      return;
    }
    std::string listed;
    for (size_t i = 0; i < std::min(columns_.columns.size(), kMaxShown); ++i) {
      const ColumnInfo& column = columns_.columns[i];
      listed += fmt::format("{}{} {}", i == 0 ? "" : ", ", column.name, column.database_type);
    }
    sink_.Notice(
        fmt::format("table {}: {}{}", table_.Text(), listed,
                    columns_.columns.size() > kMaxShown
                        ? fmt::format(" and {} more columns", columns_.columns.size() - kMaxShown)
                        : ""));
    if (!marks_.empty()) {
      std::string cells;
      for (size_t i = 0; i < std::min(marks_.size(), kMaxShown); ++i) {
        cells += (i == 0 ? "" : ", ") + marks_[i];
      }
      sink_.Notice(fmt::format("cells that say NA, NULL or the like are NULL: {}{}", cells,
                               marks_.size() > kMaxShown ? ", ..." : ""));
    }
  }

  const LoadOptions& options_;
  LoadTarget& target_;
  const std::stop_token stop_;
  executor::ResultSink& sink_;
  const SteadyClock clock_;
  TimePoint begin_time_ = clock_.Now();
  TimePoint told_ = begin_time_;

  LoadFile file_{options_};
  catalog::TableName table_;
  Schema columns_;  // as they are declared
  Schema cells_;    // as they are written
  std::vector<std::string> marks_;

  std::unique_ptr<catalog::TableLoader> loader_;
  RowBatch batch_;
  std::string arena_;           // bytes of the batch's texts
  std::vector<int64_t> lines_;  // of the batch's rows
  int64_t looked_at_ = 0;
  int64_t rows_expected_ = 0;
  int64_t rows_ = 0;
};

// A database on connections of our own.
class SourceTarget final : public LoadTarget {
 public:
  explicit SourceTarget(catalog::DataSource& source) : source_(source) {}
  std::string Fold(std::string_view name) const override { return source_.Fold(name); }
  bool ReadsTexts() const override { return source_.dialect() == "postgresql"; }
  Result<std::optional<catalog::TableName>> Find(const catalog::TableName& table) override {
    return source_.ResolveTable(table);
  }
  Result<Schema> Columns(const catalog::TableName& table) override {
    return source_.Describe("SELECT * FROM " + table.Quoted());
  }
  Result<std::unique_ptr<catalog::TableLoader>> Open(const catalog::TableName& table,
                                                     const Schema& columns, bool make) override {
    return source_.OpenLoader(table, columns, make);
  }
  std::vector<std::string> TakeNotices() override { return source_.TakeNotices(); }

 private:
  catalog::DataSource& source_;
};

Status Outcome(const Status& loaded, const std::stop_token& stop) {
  return stop.stop_requested() && !loaded.ok() ? Cancelled("cancelled: nothing was loaded")
                                               : loaded;
}

}  // namespace

Status LoadTable(const LoadOptions& options, catalog::DataSource& source,
                 const std::stop_token& stop, executor::ResultSink& sink) {
  RETURN_IF_ERROR(source.CheckNoTransaction());
  RETURN_IF_ERROR(source.BeginStatement("", stop));
  SourceTarget target(source);
  const Status loaded = TableLoad(options, target, stop, sink).Run();
  source.EndStatement();
  return Outcome(loaded, stop);
}

Status LoadTableByScript(const LoadOptions& options, LoadTarget& target,
                         const std::stop_token& stop, executor::ResultSink& sink) {
  return Outcome(TableLoad(options, target, stop, sink).Run(), stop);
}

}  // namespace sluice::server
