#include "server/shell/output.h"

#include <fmt/core.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <optional>

#include "base/utf8.h"
#include "server/config/terminal.h"
#include "server/shell/table_output.h"

namespace sluice::server {
namespace {

// Flushing each line would be a system call per row.
constexpr size_t kFlushBytes = 64 << 10;

class BufferedPrinter : public RowPrinter {
 public:
  explicit BufferedPrinter(Write write) : write_(std::move(write)) {}
  Status Finish() override { return Flush(); }

 protected:
  Status FlushWhenFull() { return text_.size() < kFlushBytes ? OkStatus() : Flush(); }
  Status Flush() {
    std::string text;
    text.swap(text_);
    return text.empty() ? OkStatus() : write_(text);
  }
  std::string text_;

 private:
  Write write_;
};

class CsvPrinter final : public BufferedPrinter {
 public:
  using BufferedPrinter::BufferedPrinter;

  Status Header(const Schema& schema) override {
    for (size_t c = 0; c < schema.columns.size(); ++c) {
      text_ += c == 0 ? "" : ",";
      AppendField(schema.columns[c].name);
    }
    text_ += '\n';
    return OkStatus();
  }

  Status Rows(const RowBatch& batch) override {
    for (size_t r = 0; r < batch.rows; ++r) {
      for (size_t c = 0; c < batch.columns.size(); ++c) {
        text_ += c == 0 ? "" : ",";
        const RowBatch::Column& column = batch.columns[c];
        if (column.null[r] == 0) {
          AppendField(CellText(column, r));
        }
      }
      text_ += '\n';
      RETURN_IF_ERROR(FlushWhenFull());
    }
    return OkStatus();
  }

 private:
  void AppendField(std::string_view field) {
    if (!field.empty() && field.find_first_of(",\"\r\n") == std::string_view::npos) {
      text_ += field;
      return;
    }
    text_ += '"';
    for (const char c : field) {
      text_ += c;
      if (c == '"') {
        text_ += c;
      }
    }
    text_ += '"';
  }
};

// A control character, C1's among them, would drive a terminal: appends JSON's escape for it.
// `length`: of the character at `at`. False: it is none.
bool AppendJsonControl(std::string_view text, size_t at, size_t length, std::string& json) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (length == 1 && (c < 0x20 || c == 0x7F)) {
    json += fmt::format("\\u{:04x}", c);
    return true;
  }
  if (length == 2 && c == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0) {
    json += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[at + 1]));
    return true;
  }
  return false;
}

void AppendJsonText(std::string_view text, std::string& json) {
  json += '"';
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterAt(text, i).bytes;
    if (length == 0) {  // JSON is UTF-8: a stray byte becomes the replacement character
      json += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    const char c = text[i];
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c == '\n') {
      json += "\\n";
    } else if (!AppendJsonControl(text, i, length, json)) {
      json += text.substr(i, length);
    }
    i += length;
  }
  json += '"';
}

bool IsJson(std::string_view text) {
  rapidjson::Reader reader;
  rapidjson::BaseReaderHandler<> nothing;
  rapidjson::MemoryStream stream(text.data(), text.size());
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                              rapidjson::kParseValidateEncodingFlag |
                              rapidjson::kParseNumbersAsStringsFlag;
  return !reader.Parse<kFlags>(stream, nothing).IsError();
}

bool IsJsonNumber(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && (text.front() == '-' || is_digit(text.front())) &&
         is_digit(text.back()) && IsJson(text);
}

// The value without blanks between its parts, so that a row stays one line; nullopt: not JSON.
std::optional<std::string> OnOneLine(const std::string& json) {
  if (!IsJson(json)) {
    return std::nullopt;
  }
  std::string line;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (const size_t length = in_text ? CharacterAt(json, i).bytes : 0;
        length > 0 && AppendJsonControl(json, i, length, line)) {
      i += length - 1;
      continue;
    }
    if (in_text && c == '\\') {
      line += c;
      line += json[++i];
      continue;
    }
    in_text = in_text != (c == '"');
    if (in_text || (c != ' ' && c != '\n' && c != '\r' && c != '\t')) {
      line += c;
    }
  }
  return line;
}

class JsonPrinter final : public BufferedPrinter {
 public:
  using BufferedPrinter::BufferedPrinter;

  Status Header(const Schema& schema) override {
    keys_.clear();
    numbers_.clear();
    json_.clear();
    for (const ColumnInfo& column : schema.columns) {
      std::string key;
      AppendJsonText(column.name, key);
      keys_.push_back(key + ": ");
      numbers_.push_back(HoldsNumbers(column));
      json_.push_back(column.database_type == "json" || column.database_type == "jsonb");
    }
    return OkStatus();
  }

  Status Rows(const RowBatch& batch) override {
    for (size_t r = 0; r < batch.rows; ++r) {
      text_ += '{';
      for (size_t c = 0; c < batch.columns.size(); ++c) {
        text_ += c == 0 ? "" : ", ";
        text_ += keys_[c];
        AppendCell(batch.columns[c], r, numbers_[c], json_[c]);
      }
      text_ += "}\n";
      RETURN_IF_ERROR(FlushWhenFull());
    }
    return OkStatus();
  }

 private:
  // `number`, `json`: the column holds numbers or JSON values, possibly as text.
  void AppendCell(const RowBatch::Column& column, size_t row, bool number, bool json) {
    if (column.null[row] != 0) {
      text_ += "null";
      return;
    }
    const DataType type = column.TypeAt(row);
    if (type == DataType::kBool) {
      text_ += column.int64s[row] != 0 ? "true" : "false";
      return;
    }
    const std::string text = CellText(column, row);
    number = type == DataType::kInt64 || type == DataType::kDouble ||
             (type == DataType::kText && number);
    if (number && IsJsonNumber(text)) {
      text_ += text;
    } else {
      const std::optional<std::string> value = json ? OnOneLine(text) : std::nullopt;
      if (value.has_value()) {
        text_ += *value;
      } else {
        AppendJsonText(text, text_);
      }
    }
  }
  std::vector<std::string> keys_;
  std::vector<bool> numbers_;
  std::vector<bool> json_;  // columns whose cells are JSON values, printed as such
};

}  // namespace

std::optional<OutputFormat> ParseOutputFormat(std::string_view name) {
  if (name == "table") {
    return OutputFormat::kTable;
  }
  if (name == "csv") {
    return OutputFormat::kCsv;
  }
  if (name == "json") {
    return OutputFormat::kJson;
  }
  return std::nullopt;
}

std::unique_ptr<RowPrinter> RowPrinter::Make(OutputFormat format, Write write,
                                             const TableStyle& style) {
  switch (format) {
    case OutputFormat::kCsv:
      return std::make_unique<CsvPrinter>(std::move(write));
    case OutputFormat::kJson:
      return std::make_unique<JsonPrinter>(std::move(write));
    case OutputFormat::kTable:
      break;
  }
  return std::make_unique<TablePrinter>(std::move(write), style);
}

bool HoldsNumbers(const ColumnInfo& column) {
  return column.type == DataType::kInt64 || column.type == DataType::kDouble ||
         (column.type == DataType::kText && column.database_type.starts_with("numeric") &&
          !column.database_type.ends_with("]"));
}

std::string CellText(const RowBatch::Column& column, size_t row) {
  const DataType type = column.TypeAt(row);
  if (type == DataType::kDouble && column.null[row] == 0 && column.HasShownText(row)) {
    return std::string(column.texts[row]);
  }
  if (type == DataType::kBytes && column.null[row] == 0) {
    std::string text = "\\x";
    for (const char byte : column.texts[row]) {
      text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return text;
  }
  return FormatValue(column.ValueAt(row), type);
}

}  // namespace sluice::server
