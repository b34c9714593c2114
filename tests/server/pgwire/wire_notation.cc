#include "tests/server/pgwire/wire_notation.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "server/pgwire/messages.h"

namespace sluice::server::pgwire {
namespace {

const std::map<std::string, char, std::less<>> kBare = {
    {"Sync", 'S'},          {"Flush", 'H'},          {"Terminate", 'X'},     {"CopyDone", 'c'},
    {"ParseComplete", '1'}, {"BindComplete", '2'},   {"CloseComplete", '3'}, {"NoData", 'n'},
    {"EmptyQuery", 'I'},    {"PortalSuspended", 's'}};

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> fields;
  constexpr std::string_view kBetween = " | ";
  for (;;) {
    const size_t at = text.find(kBetween);
    fields.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return fields;
    }
    text.remove_prefix(at + kBetween.size());
  }
}

std::string Text(std::string_view text) {
  return std::string(text) + '\0';
}

std::string Short(size_t number) {
  return {static_cast<char>(number >> 8U), static_cast<char>(number & 0xffU)};
}

std::string Long(uint32_t number) {
  std::string bytes;
  AppendUint32(bytes, number);
  return bytes;
}

std::string Body(std::string_view kind, const std::vector<std::string>& fields, char* type) {
  const auto field = [&fields](size_t i) { return i < fields.size() ? fields[i] : std::string(); };
  if (kind == "Query") {
    *type = 'Q';
    return Text(field(0));
  }
  if (kind == "Parse") {
    *type = 'P';
    std::string types;
    for (size_t i = 2; i < fields.size(); ++i) {
      types += Long(static_cast<uint32_t>(std::stoul(fields[i])));
    }
    return Text(field(0)) + Text(field(1)) + Short(types.size() / sizeof(uint32_t)) + types;
  }
  if (kind == "Bind") {
    *type = 'B';
    std::string values;
    for (size_t i = 2; i < fields.size(); ++i) {
      values += Long(static_cast<uint32_t>(fields[i].size())) + fields[i];
    }
    const size_t count = std::max<size_t>(fields.size(), 2) - 2;
    return Text(field(0)) + Text(field(1)) + Short(0) + Short(count) + values + Short(0);
  }
  if (kind == "Describe" || kind == "Close") {
    *type = kind == "Describe" ? 'D' : 'C';
    return field(0) + Text(field(1));
  }
  if (kind == "Execute") {
    *type = 'E';
    return Text(field(0)) + Long(static_cast<uint32_t>(std::stoul("0" + field(1))));
  }
  if (kind == "CopyData") {
    *type = 'd';
    return field(0);
  }
  if (kind == "CopyFail") {
    *type = 'f';
    return Text(field(0));
  }
  if (kind == "CopyIn") {
    *type = 'G';
    return std::string(1, '\0') + Short(0);
  }
  if (kind == "CommandComplete") {
    *type = 'C';
    return Text(field(0));
  }
  if (kind == "ReadyForQuery") {
    *type = 'Z';
    return field(0);
  }
  if (kind == "DataRow") {
    *type = 'D';
    std::string values;
    for (const std::string& value : fields) {
      values += Long(static_cast<uint32_t>(value.size())) + value;
    }
    return Short(fields.size()) + values;
  }
  if (kind == "RowDescription") {
    *type = 'T';
    std::string message;
    std::vector<WireColumn> columns;
    for (const std::string& name : fields) {
      columns.push_back({name, {}, 0});
    }
    AppendRowDescription(message, columns);
    return message.substr(kHeaderBytes);
  }
  if (kind == "ParameterStatus") {
    *type = 'S';
    return Text(field(0)) + Text(field(1));
  }
  if (kind == "NotificationResponse") {
    *type = 'A';
    return Long(1) + Text(field(0)) + Text("");
  }
  if (kind == "ErrorResponse" || kind == "NoticeResponse") {
    *type = kind == "ErrorResponse" ? 'E' : 'N';
    return "C" + Text(field(0)) + "M" + Text(field(1)) + '\0';
  }
  ADD_FAILURE() << "no message: " << kind;
  return {};
}

std::string ErrorLine(std::string_view kind, BigEndianReader& reader) {
  std::map<char, std::string> fields;
  for (char code = reader.Take<char>(); code != '\0' && reader.ok(); code = reader.Take<char>()) {
    fields[code] = reader.String();
  }
  return fmt::format("{} {} | {}{}", kind, fields['C'], fields['M'],
                     fields['P'].empty() ? "" : " | @" + fields['P']);
}

std::string Line(char type, std::string_view body, bool to_server) {
  BigEndianReader reader(body);
  const auto text = [&reader] { return std::string(reader.String()); };
  if (to_server) {
    switch (type) {
      case 'Q':
        return "Query " + text();
      case 'P': {
        const std::string name = text();
        return fmt::format("Parse {} | {}", name, text());
      }
      case 'B': {
        const std::string portal = text();
        return fmt::format("Bind {} | {}", portal, text());
      }
      case 'D':
      case 'C': {
        const char kind = reader.Take<char>();
        return fmt::format("{} {} | {}", type == 'D' ? "Describe" : "Close", kind, text());
      }
      case 'E': {
        const std::string portal = text();
        return fmt::format("Execute {} | {}", portal, reader.Take<uint32_t>());
      }
      case 'd':
        return "CopyData " + std::string(body);
      case 'f':
        return "CopyFail " + text();
      default:
        break;
    }
  } else {
    switch (type) {
      case 'C':
        return "CommandComplete " + text();
      case 'Z':
        return "ReadyForQuery " + std::string(body);
      case 'T':
        reader.Take<uint16_t>();
        return "RowDescription " + text();
      case 't':
        return "ParameterDescription";
      case 'D':
        return "DataRow " + std::string(body.substr(6));
      case 'G':
        return "CopyIn";
      case 'H':
        return "CopyOut";
      case 'd':
        return "CopyData " + std::string(body);
      case 'E':
        return ErrorLine("ErrorResponse", reader);
      case 'N':
        return ErrorLine("NoticeResponse", reader);
      case 'A':
        reader.Take<uint32_t>();
        return "NotificationResponse " + text();
      case 'S': {
        const std::string name = text();
        return fmt::format("ParameterStatus {} | {}", name, text());
      }
      default:
        break;
    }
  }
  for (const auto& [name, bare] : kBare) {
    if (bare == type) {
      return name;
    }
  }
  return fmt::format("message {}", type);
}

}  // namespace

std::string MessageOf(std::string_view line) {
  const size_t blank = std::min(line.find(' '), line.size());
  const std::string_view kind = line.substr(0, blank);
  std::string message;
  const auto bare = kBare.find(kind);
  if (bare != kBare.end()) {
    AppendMessage(message, bare->second, {});
    return message;
  }
  char type = 0;
  const std::string body = Body(kind, Split(line.substr(std::min(blank + 1, line.size()))), &type);
  AppendMessage(message, type, body);
  return message;
}

std::vector<std::string> TakeLines(std::string& stream, bool to_server) {
  std::vector<std::string> lines;
  size_t at = 0;
  while (stream.size() - at >= kHeaderBytes) {
    const size_t length = LoadBigEndian<uint32_t>(std::string_view(stream).substr(at + 1));
    if (stream.size() - at < 1 + length) {
      break;
    }
    lines.push_back(Line(stream[at],
                         std::string_view(stream).substr(at + kHeaderBytes, length - kLengthBytes),
                         to_server));
    at += 1 + length;
  }
  stream.erase(0, at);
  return lines;
}

}  // namespace sluice::server::pgwire
