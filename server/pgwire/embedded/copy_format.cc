#include "server/pgwire/embedded/copy_format.h"

#include <fmt/core.h>

#include <utility>

namespace sluice::server::pgwire {
namespace {

std::string CsvField(const std::string& value, const SessionStatement::CopyOptions& options) {
  const bool quotes = value == options.null || value == "\\." ||
                      value.find_first_of(std::string("\r\n") + options.delimiter +
                                          options.quote) != std::string::npos;
  if (!quotes) {
    return value;
  }
  std::string field(1, options.quote);
  for (const char c : value) {
    if (c == options.quote || c == options.escape) {
      field += options.escape;
    }
    field += c;
  }
  return field + options.quote;
}

std::string TextField(const std::string& value, char delimiter) {
  std::string field;
  for (const char c : value) {
    switch (c) {
      case '\\':
        field += "\\\\";
        break;
      case '\n':
        field += "\\n";
        break;
      case '\r':
        field += "\\r";
        break;
      case '\t':
        field += "\\t";
        break;
      default:
        field += c == delimiter ? "\\" : "";
        field += c;
    }
  }
  return field;
}

Status BadCopy(std::string_view what) {
  return Status(Code::kInvalidArgument, std::string(what)).SqlState("22P04");
}

}  // namespace

std::string CopyLine(const CopyRow& row, const SessionStatement::CopyOptions& options) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    if (i > 0) {
      line += options.delimiter;
    }
    if (!row[i].has_value()) {
      line += options.null;
    } else {
      line += options.csv ? CsvField(*row[i], options) : TextField(*row[i], options.delimiter);
    }
  }
  return line + "\n";
}

Status CopyReader::Add(std::string_view bytes, const Take& take) {
  if (held_.size() > kMostOfRow) {
    return BadCopy(fmt::format("line {} is longer than {} bytes", line_ + 1, kMostOfRow))
        .SqlState("54000");
  }
  held_ += bytes;
  size_t begin = 0;
  for (size_t at = seen_; at < held_.size(); ++at) {
    const char c = held_[at];
    if (options_.csv && c == options_.quote) {
      // A doubled quote closes and reopens; any other escape character hides the next byte.
      quoted_ = !quoted_;
    } else if (options_.csv && quoted_ && c == options_.escape && at + 1 < held_.size()) {
      ++at;
    } else if (c == '\n' && !quoted_) {
      RETURN_IF_ERROR(TakeLine(std::string_view(held_).substr(begin, at - begin), take));
      begin = at + 1;
    }
  }
  held_.erase(0, begin);
  seen_ = held_.size();
  return OkStatus();
}

Status CopyReader::End(const Take& take) {
  if (quoted_) {
    return BadCopy("unterminated CSV quoted field");
  }
  const std::string rest = std::exchange(held_, {});
  return rest.empty() ? OkStatus() : TakeLine(rest, take);
}

Status CopyReader::TakeLine(std::string_view line, const Take& take) {
  ++line_;
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  if (ended_ || line == "\\.") {
    ended_ = true;
    return OkStatus();
  }
  if (options_.header && line_ == 1) {
    return OkStatus();
  }
  CopyRow row;
  if (options_.csv) {
    RETURN_IF_ERROR(ReadCsv(line, &row));
  } else {
    ReadText(line, &row);
  }
  return take(row);
}

Status CopyReader::ReadCsv(std::string_view line, CopyRow* row) const {
  for (size_t at = 0;;) {
    std::string value;
    bool quoted = false;
    while (at < line.size() && line[at] != options_.delimiter) {
      if (line[at] != options_.quote) {
        value += line[at++];
        continue;
      }
      quoted = true;
      for (++at; at < line.size(); ++at) {
        const bool escapes = line[at] == options_.escape && at + 1 < line.size() &&
                             (line[at + 1] == options_.quote || line[at + 1] == options_.escape);
        if (escapes) {
          value += line[++at];
        } else if (line[at] == options_.quote) {
          break;
        } else {
          value += line[at];
        }
      }
      if (at == line.size()) {
        return BadCopy("unterminated CSV quoted field");
      }
      ++at;
    }
    if (!quoted && value == options_.null) {
      row->push_back(std::nullopt);
    } else {
      row->push_back(std::move(value));
    }
    if (at == line.size()) {
      return OkStatus();
    }
    ++at;
  }
}

void CopyReader::ReadText(std::string_view line, CopyRow* row) const {
  for (size_t at = 0;;) {
    const size_t begin = at;
    std::string value;
    for (; at < line.size() && line[at] != options_.delimiter; ++at) {
      if (line[at] != '\\' || at + 1 == line.size()) {
        value += line[at];
        continue;
      }
      const char c = line[++at];
      value += c == 'n'   ? '\n'
               : c == 'r' ? '\r'
               : c == 't' ? '\t'
               : c == 'b' ? '\b'
               : c == 'f' ? '\f'
               : c == 'v' ? '\v'
                          : c;
    }
    if (line.substr(begin, at - begin) == options_.null) {
      row->push_back(std::nullopt);
    } else {
      row->push_back(std::move(value));
    }
    if (at == line.size()) {
      return;
    }
    ++at;
  }
}

}  // namespace sluice::server::pgwire
