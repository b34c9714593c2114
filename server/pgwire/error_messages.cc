#include <fmt/core.h>

#include <algorithm>

#include "server/pgwire/message_bytes_internal.h"
#include "server/pgwire/messages.h"

namespace sluice::server::pgwire {
namespace {

// 1-based, in characters.
size_t PositionOf(std::string_view text, int64_t offset) {
  const std::string_view before = text.substr(0, static_cast<size_t>(offset));
  return 1 + static_cast<size_t>(std::count_if(before.begin(), before.end(), [](char byte) {
           return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
         }));
}

}  // namespace

void AppendError(std::string& out, const Status& status, std::string_view text, int64_t offset,
                 std::string_view severity) {
  const std::vector<Diagnostic>& diagnostics = status.diagnostics();
  const Diagnostic& first = diagnostics.front();
  std::string detail = first.detail;
  for (size_t i = 1; i < diagnostics.size(); ++i) {
    const Diagnostic& more = diagnostics[i];
    std::string place;
    if (more.span.valid()) {
      const LineColumn at = FindLineColumn(text, offset + more.span.begin);
      place = fmt::format(" (line {}, column {})", at.line, at.column);
    }
    detail += fmt::format("{}{}{}{}{}", detail.empty() ? "" : "\n", more.message, place,
                          more.hint.empty() ? "" : ": ", more.hint);
  }
  const OpenMessage message(out, 'E');
  const auto field = [&out](char code, std::string_view value) {
    if (!value.empty()) {
      out.push_back(code);
      AppendString(out, value);
    }
  };
  field('S', severity);
  field('V', severity);
  field('C', first.sqlstate);
  field('M', first.message);
  field('D', detail);
  field('H', first.hint);
  if (first.span.valid() && offset + first.span.begin <= static_cast<int64_t>(text.size())) {
    field('P', std::to_string(PositionOf(text, offset + first.span.begin)));
  }
  out.push_back('\0');
}

void AppendNotice(std::string& out, std::string_view severity, std::string_view sqlstate,
                  std::string_view text, std::string_view hint) {
  const OpenMessage message(out, 'N');
  const auto field = [&out](char code, std::string_view value) {
    if (!value.empty()) {
      out.push_back(code);
      AppendString(out, value);
    }
  };
  field('S', severity);
  field('V', severity);
  field('C', sqlstate);
  field('M', text);
  field('H', hint);
  out.push_back('\0');
}

Status ReadError(std::string_view body) {
  BigEndianReader reader(body);
  std::string sqlstate = "XX000";
  std::string message;
  std::string detail;
  std::string hint;
  while (reader.ok()) {
    const char code = reader.Take<char>();
    if (code == '\0') {
      break;
    }
    const std::string value(reader.String());
    if (code == 'C') {
      sqlstate = value;
    } else if (code == 'M') {
      message = value;
    } else if (code == 'D') {
      detail = value;
    } else if (code == 'H') {
      hint = value;
    }
  }
  return Status(Code::kUnknown, message).SqlState(sqlstate).Detail(detail).Hint(hint);
}

bool IsFatal(std::string_view error_body) {
  BigEndianReader reader(error_body);
  while (reader.ok()) {
    const char code = reader.Take<char>();
    if (code == '\0') {
      break;
    }
    const std::string_view value = reader.String();
    if (code == 'V') {  // not translated, as S is
      return value == "FATAL" || value == "PANIC";
    }
  }
  return false;
}

}  // namespace sluice::server::pgwire
