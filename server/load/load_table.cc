#include "server/load/load_table.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
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
#include "server/load/load_target.h"

namespace sluice::server {
namespace {

constexpr size_t kBatchRows = 10'000;
constexpr size_t kBatchCells = 400'000;  // of a wide table, fewer rows
constexpr size_t kMostShown = 12;        // columns that a line for a person names
constexpr double kSecondsBetweenProgress = 0.2;

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) {
      std::fclose(file);
    }
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::string LowerAscii(std::string text) {
  for (char& c : text) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

bool IsPlainName(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && (name.front() < '0' || name.front() > '9') &&
         std::all_of(name.begin(), name.end(), plain);
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Status CannotRead(const std::string& file) {
  return NotFound(fmt::format("cannot read {}: {}", file, std::strerror(errno))).SqlState("58P01");
}

class TableLoad {
 public:
  TableLoad(const LoadOptions& options, LoadTarget& target, const std::stop_token& stop,
            executor::ResultSink& sink)
      : options_(options), target_(target), stop_(stop), sink_(sink) {}

  Status Run() {
    RETURN_IF_ERROR(OpenFile());
    RETURN_IF_ERROR(FindTable());
    RETURN_IF_ERROR(ReadHeader());
    RETURN_IF_ERROR(options_.append ? MatchColumns() : GuessColumns());
    ASSIGN_OR_RETURN(loader_, target_.Open(table_, columns_, !options_.append));
    RETURN_IF_ERROR(WriteRows());
    RETURN_IF_ERROR(loader_->Commit().Because(options_.file));
    loader_.reset();
    TellColumns();
    sink_.Done(fmt::format("LOAD {}", rows_));
    return OkStatus();
  }

 private:
  // Types are told by reading it twice: what comes through a pipe is kept in a file for that.
  Status OpenFile() {
    file_.reset(options_.file == "-" ? stdin : std::fopen(options_.file.c_str(), "rb"));
    if (!file_) {
      return CannotRead(options_.file);
    }
    struct stat info {};
    if (fstat(fileno(file_.get()), &info) != 0 || S_ISDIR(info.st_mode)) {
      errno = S_ISDIR(info.st_mode) ? EISDIR : errno;
      return CannotRead(options_.file);
    }
    bytes_ = info.st_size;
    if (S_ISREG(info.st_mode)) {
      begin_ = std::ftell(file_.get());
      return OkStatus();
    }
    if (options_.append && options_.has_header) {
      return OkStatus();  // read once
    }
    File copy(std::tmpfile());
    std::vector<char> buffer(size_t{1} << 20);
    size_t size = 0;
    while (copy && (size = std::fread(buffer.data(), 1, buffer.size(), file_.get())) > 0) {
      if (stop_.stop_requested()) {
        return Stopped();
      }
      if (std::fwrite(buffer.data(), 1, size, copy.get()) != size) {
        copy.reset();
      }
    }
    if (!copy || std::ferror(file_.get()) != 0) {
      return Unavailable(fmt::format("cannot keep {} in a temporary file: {}", options_.file,
                                     std::strerror(errno)));
    }
    file_ = std::move(copy);
    bytes_ = std::ftell(file_.get());
    begin_ = 0;
    return OkStatus();
  }

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

  void OpenReader(char separator) {
    if (begin_ >= 0) {
      std::fseek(file_.get(), begin_, SEEK_SET);
    }
    reader_ = std::make_unique<CsvReader>(file_.get(), options_.file, separator);
  }

  // The names of the columns; of a file without header its number of columns.
  Status ReadHeader() {
    OpenReader(options_.separator);
    ASSIGN_OR_RETURN(const std::vector<CsvField>* header, reader_->Next());
    if (header->empty()) {
      return reader_->ErrorAt({1, 1}, "the file is empty: it has not even a header");
    }
    std::map<std::string, size_t> known;
    for (size_t i = 0; i < header->size(); ++i) {
      const CsvField& field = (*header)[i];
      std::string name(Trimmed(field.text));
      if (!options_.has_header || name.empty()) {
        name = fmt::format("column_{}", i + 1);
      } else if (IsPlainName(name)) {
        name = target_.Fold(name);  // so that nobody has to write it in quotes
      }
      const auto [twin, fresh] = known.emplace(LowerAscii(name), i);
      if (!fresh) {
        return reader_
            ->ErrorAt(reader_->PlaceOf(field),
                      fmt::format("column '{}' has the name of field {}", name, twin->second + 1))
            .SqlState("42701")
            .Hint("names are equal in any case; --no-header reads the first line as a row");
      }
      names_.push_back(std::move(name));
    }
    if (names_.size() == 1) {
      reader_->KeepEmptyLines();
    }
    header_is_row_ = !options_.has_header;
    return OkStatus();
  }

  bool IsNull(const CsvField& field) const {
    return !field.quoted && (field.text.empty() || field.text == options_.null_text);
  }

  // The next row; no fields at the end.
  Result<const std::vector<CsvField>*> NextRow() {
    ASSIGN_OR_RETURN(const std::vector<CsvField>* row, reader_->Next());
    if (!row->empty() && row->size() != names_.size()) {
      const bool more = row->size() > names_.size();
      const FilePlace place =
          more ? reader_->PlaceOf((*row)[names_.size()]) : FilePlace{reader_->line(), 1};
      return reader_
          ->ErrorAt(place,
                    fmt::format("{} field{} where the {} has {}", row->size(),
                                row->size() == 1 ? "" : "s",
                                options_.has_header ? "header" : "first line", names_.size()))
          .Hint(more ? "a field that holds the separator is written in quotes" : "");
    }
    if (++looked_at_ % 1'000 == 0) {
      if (stop_.stop_requested()) {
        return Stopped();
      }
      TellProgress();
    }
    return row;
  }

  // Back to the first row.
  Status Rewind() {
    OpenReader(reader_->separator());
    if (names_.size() == 1) {
      reader_->KeepEmptyLines();
    }
    looked_at_ = 0;
    begin_time_ = clock_.Now();
    return header_is_row_ ? OkStatus() : reader_->Next().status();
  }

  Status GuessColumns() {
    std::vector<ColumnGuess> guesses(names_.size());
    RETURN_IF_ERROR(Rewind());
    for (;;) {
      ASSIGN_OR_RETURN(const std::vector<CsvField>* row, NextRow());
      if (row->empty()) {
        break;
      }
      for (size_t i = 0; i < row->size(); ++i) {
        if (!IsNull((*row)[i])) {
          guesses[i].See((*row)[i].text);
        }
      }
    }
    rows_expected_ = looked_at_ - 1;
    for (size_t i = 0; i < names_.size(); ++i) {
      const GuessedType type = guesses[i].type();
      columns_.columns.push_back(DeclareColumn(names_[i], type));
      if (type != GuessedType::kText && guesses[i].marks() > 0) {
        marks_.push_back(fmt::format("{} of {}", guesses[i].marks(), names_[i]));
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
    if (!options_.has_header && names_.size() == table.columns.size()) {
      names_ = table.Names();
    }
    std::string unknown;
    for (const std::string& name : names_) {
      const std::optional<size_t> found = table.Find(name);
      if (!found) {
        unknown += (unknown.empty() ? "" : ", ") + name;
        continue;
      }
      columns_.columns.push_back(table.columns[*found]);
    }
    if (!unknown.empty()) {
      std::string listed;
      for (size_t i = 0; i < std::min(table.columns.size(), kMostShown); ++i) {
        listed += (listed.empty() ? "" : ", ") + table.columns[i].name;
      }
      return ColumnNotFound(fmt::format("{}: table {} has no column {}", options_.file,
                                        table_.Text(), unknown))
          .Hint(fmt::format("its columns are {}{}", listed,
                            table.columns.size() > kMostShown ? ", ..." : ""));
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
    const size_t capacity = std::clamp(kBatchCells / names_.size(), size_t{100}, kBatchRows);
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
      lines_.push_back(reader_->line());
      ++batch_.rows;
    }
  }

  Status AddCell(const CsvField& field, size_t i) {
    RowBatch::Column& column = batch_.columns[i];
    const size_t row = batch_.rows;
    const bool text = columns_.columns[i].type == DataType::kText;
    column.null[row] = IsNull(field) || (!text && IsMissingMark(field.text)) ? 1 : 0;
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
    arena_ += field.text;  // never grows: WriteRows has looked
    column.texts[row] = std::string_view(arena_).substr(begin);
    return OkStatus();
  }

  Status WrongCell(const CsvField& field, size_t i, std::string_view wanted) const {
    constexpr size_t kShownBytes = 40;
    const ColumnInfo& column = columns_.columns[i];
    return reader_
        ->ErrorAt(reader_->PlaceOf(field), fmt::format("'{}{}' is no {}, and column {} is {}",
                                                       field.text.substr(0, kShownBytes),
                                                       field.text.size() > kShownBytes ? "..." : "",
                                                       wanted, column.name, column.database_type))
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

  void TellProgress() {
    const TimePoint now = clock_.Now();
    if (SecondsBetween(told_, now) < kSecondsBetweenProgress) {
      return;
    }
    told_ = now;
    elastic::Progress progress;
    progress.rows_done = looked_at_;
    const double seconds = std::max(SecondsBetween(begin_time_, now), 1e-6);
    const double share = static_cast<double>(reader_->bytes_read()) / static_cast<double>(bytes_);
    progress.rows_total = rows_expected_ > 0 ? rows_expected_
                          : bytes_ > 0
                              ? static_cast<int64_t>(static_cast<double>(looked_at_) / share)
                              : 0;
    progress.rows_per_second = static_cast<double>(looked_at_) / seconds;
    progress.seconds_left =
        static_cast<double>(progress.rows_total - looked_at_) / progress.rows_per_second;
    sink_.Progress(progress);
  }

  void TellColumns() {
    for (const std::string& notice : target_.TakeNotices()) {
      sink_.Notice(notice);
    }
    if (options_.append) {
      return;
    }
    std::string listed;
    for (size_t i = 0; i < std::min(columns_.columns.size(), kMostShown); ++i) {
      const ColumnInfo& column = columns_.columns[i];
      listed += fmt::format("{}{} {}", i == 0 ? "" : ", ", column.name, column.database_type);
    }
    sink_.Notice(
        fmt::format("table {}: {}{}", table_.Text(), listed,
                    columns_.columns.size() > kMostShown
                        ? fmt::format(" and {} more columns", columns_.columns.size() - kMostShown)
                        : ""));
    if (!marks_.empty()) {
      std::string cells;
      for (size_t i = 0; i < std::min(marks_.size(), kMostShown); ++i) {
        cells += (i == 0 ? "" : ", ") + marks_[i];
      }
      sink_.Notice(fmt::format("cells that say NA, NULL or the like are NULL: {}{}", cells,
                               marks_.size() > kMostShown ? ", ..." : ""));
    }
  }

  static Status Stopped() { return Cancelled("cancelled: nothing was loaded"); }

  const LoadOptions& options_;
  LoadTarget& target_;
  const std::stop_token stop_;
  executor::ResultSink& sink_;
  const SteadyClock clock_;
  TimePoint begin_time_ = clock_.Now();
  TimePoint told_ = begin_time_;

  File file_;
  int64_t bytes_ = 0;  // 0: not known
  long begin_ = -1;    // where the rows are found again; -1: it is read once
  std::unique_ptr<CsvReader> reader_;
  bool header_is_row_ = false;
  std::vector<std::string> names_;
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
