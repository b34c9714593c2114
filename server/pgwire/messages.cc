#include "server/pgwire/messages.h"

#include <fmt/core.h>

#include <algorithm>
#include "server/pgwire/message_bytes_internal.h"
#include "server/pgwire/values.h"

namespace sluice::server::pgwire {
namespace {

constexpr size_t kMaxStartupParameters = 1000;  // 10 KiB hold fewer

Status BrokenMessage(std::string_view which) {
  return InvalidArgument(fmt::format("invalid message format: {}", which)).SqlState("08P01");
}

std::vector<uint16_t> ReadFormats(BigEndianReader& reader) {
  const uint16_t count = reader.Take<uint16_t>();
  std::vector<uint16_t> formats;
  for (uint16_t i = 0; i < count && reader.ok(); ++i) {
    formats.push_back(reader.Take<uint16_t>());
  }
  return formats;
}

}  // namespace

void AppendUint32(std::string& out, uint32_t number) {
  out.append(sizeof(number), '\0');
  PutUint32(out, out.size() - sizeof(number), number);
}

void PutUint32(std::string& out, size_t at, uint32_t number) {
  constexpr uint32_t kByte = 0xff;
  char* const bytes = out.data() + at;
  bytes[0] = static_cast<char>(number >> 24U);
  bytes[1] = static_cast<char>(number >> 16U & kByte);
  bytes[2] = static_cast<char>(number >> 8U & kByte);
  bytes[3] = static_cast<char>(number & kByte);
}

std::string_view StartupMessage::Find(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) {
      return value;
    }
  }
  return {};
}

Result<StartupMessage> ReadStartup(std::string_view body) {
  BigEndianReader reader(body);
  StartupMessage startup;
  startup.code = reader.Take<uint32_t>();
  if (startup.code == kCancelCode || startup.code == kTlsCode || startup.code == kGssCode) {
    return startup;
  }
  while (reader.ok() && startup.parameters.size() < kMaxStartupParameters) {
    const std::string_view name = reader.String();
    if (name.empty()) {
      break;
    }
    // The server goes by the last one: who has proved to be the first would be the second there.
    const bool again =
        std::any_of(startup.parameters.begin(), startup.parameters.end(),
                    [name](const auto& parameter) { return parameter.first == name; });
    if (again && (name == "user" || name == "database")) {
      return Status(Code::kInvalidArgument, fmt::format("the startup packet names {} twice", name))
          .SqlState("08P01");
    }
    startup.parameters.emplace_back(name, reader.String());
  }
  if (!reader.at_end()) {
    return BrokenMessage("startup packet");
  }
  return startup;
}

void AppendStartup(std::string& out, const StartupMessage& startup) {
  std::string body;
  AppendUint32(body, startup.code);
  for (const auto& [name, value] : startup.parameters) {
    AppendString(body, name);
    AppendString(body, value);
  }
  body.push_back('\0');
  AppendUint32(out, static_cast<uint32_t>(body.size() + kLengthBytes));
  out += body;
}

void AppendCancelRequest(std::string& out, uint32_t process, uint32_t key) {
  constexpr uint32_t kBytes = 16;
  AppendUint32(out, kBytes);
  AppendUint32(out, kCancelCode);
  AppendUint32(out, process);
  AppendUint32(out, key);
}

Result<std::string_view> ReadQuery(std::string_view body) {
  BigEndianReader reader(body);
  const std::string_view sql = reader.String();
  if (!reader.at_end()) {
    return BrokenMessage("Query");
  }
  return sql;
}

Result<ParseMessage> ReadParse(std::string_view body) {
  BigEndianReader reader(body);
  ParseMessage parse;
  parse.name = reader.String();
  parse.sql = reader.String();
  const uint16_t count = reader.Take<uint16_t>();
  for (uint16_t i = 0; i < count && reader.ok(); ++i) {
    parse.types.push_back(reader.Take<uint32_t>());
  }
  if (!reader.at_end()) {
    return BrokenMessage("Parse");
  }
  return parse;
}

Result<BindMessage> ReadBind(std::string_view body) {
  BigEndianReader reader(body);
  BindMessage bind;
  bind.portal = reader.String();
  bind.statement = reader.String();
  bind.formats = ReadFormats(reader);
  const uint16_t count = reader.Take<uint16_t>();
  for (uint16_t i = 0; i < count && reader.ok(); ++i) {
    const auto length = static_cast<int32_t>(reader.Take<uint32_t>());
    if (length == -1) {
      bind.values.emplace_back(std::nullopt);
    } else if (length < 0) {
      return BrokenMessage("Bind");
    } else {
      bind.values.emplace_back(reader.Bytes(static_cast<size_t>(length)));
    }
  }
  bind.result_formats = ReadFormats(reader);
  if (!reader.at_end()) {
    return BrokenMessage("Bind");
  }
  if (bind.formats.size() > 1 && bind.formats.size() != bind.values.size()) {
    return InvalidArgument(fmt::format("bind message has {} parameter formats but {} parameters",
                                       bind.formats.size(), bind.values.size()))
        .SqlState("08P01");
  }
  return bind;
}

Result<TargetMessage> ReadTarget(std::string_view body) {
  BigEndianReader reader(body);
  TargetMessage target;
  target.kind = reader.Take<char>();
  target.name = reader.String();
  if (!reader.at_end() || (target.kind != 'S' && target.kind != 'P')) {
    return BrokenMessage("Describe or Close");
  }
  return target;
}

Result<ExecuteMessage> ReadExecute(std::string_view body) {
  BigEndianReader reader(body);
  ExecuteMessage execute;
  execute.portal = reader.String();
  execute.max_rows = reader.Take<uint32_t>();
  if (!reader.at_end()) {
    return BrokenMessage("Execute");
  }
  return execute;
}

Result<std::string_view> ReadPassword(std::string_view body) {
  BigEndianReader reader(body);
  const std::string_view password = reader.String();
  if (!reader.at_end()) {
    return BrokenMessage("Password");
  }
  return password;
}

Result<SaslInitialMessage> ReadSaslInitial(std::string_view body) {
  BigEndianReader reader(body);
  SaslInitialMessage initial;
  initial.mechanism = reader.String();
  initial.message = reader.Bytes(reader.Take<uint32_t>());
  if (!reader.at_end()) {
    return BrokenMessage("SASLInitialResponse");
  }
  return initial;
}

void AppendMessage(std::string& out, char type, std::string_view body) {
  const OpenMessage message(out, type);
  out += body;
}

void AppendQuery(std::string& out, std::string_view sql) {
  const OpenMessage message(out, 'Q');
  AppendString(out, sql);
}

void AppendParse(std::string& out, const ParseMessage& parse) {
  const OpenMessage message(out, 'P');
  AppendString(out, parse.name);
  AppendString(out, parse.sql);
  AppendUint16(out, static_cast<uint16_t>(parse.types.size()));
  for (const uint32_t type : parse.types) {
    AppendUint32(out, type);
  }
}

void AppendBind(std::string& out, const BindMessage& bind) {
  const OpenMessage message(out, 'B');
  const auto formats = [&out](const std::vector<uint16_t>& list) {
    AppendUint16(out, static_cast<uint16_t>(list.size()));
    for (const uint16_t format : list) {
      AppendUint16(out, format);
    }
  };
  AppendString(out, bind.portal);
  AppendString(out, bind.statement);
  formats(bind.formats);
  AppendUint16(out, static_cast<uint16_t>(bind.values.size()));
  for (const std::optional<std::string_view>& value : bind.values) {
    AppendUint32(out, value.has_value() ? static_cast<uint32_t>(value->size()) : ~uint32_t{0});
    out += value.value_or(std::string_view());
  }
  formats(bind.result_formats);
}

void AppendExecute(std::string& out, const ExecuteMessage& execute) {
  const OpenMessage message(out, 'E');
  AppendString(out, execute.portal);
  AppendUint32(out, execute.max_rows);
}

void AppendRowDescription(std::string& out, const std::vector<WireColumn>& columns) {
  const OpenMessage message(out, 'T');
  AppendUint16(out, static_cast<uint16_t>(columns.size()));
  for (const WireColumn& column : columns) {
    AppendString(out, column.name);
    AppendUint32(out, 0);  // of no table
    AppendUint16(out, 0);
    AppendUint32(out, column.type.oid);
    AppendUint16(out, static_cast<uint16_t>(column.type.bytes));
    AppendUint32(out, static_cast<uint32_t>(column.type.modifier));
    AppendUint16(out, column.format);
  }
}

Status AppendDataRow(std::string& out, const RowBatch& batch, size_t row,
                     const std::vector<WireColumn>& columns,
                     const std::optional<ClientEncoding>& encoding) {
  const OpenMessage message(out, 'D');
  AppendUint16(out, static_cast<uint16_t>(columns.size()));
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t begin = out.size();
    RETURN_IF_ERROR(
        AppendCell(batch.columns[i], row, columns[i].type, columns[i].format == 1, &out));
    if (encoding.has_value() && batch.columns[i].null[row] == 0 &&
        (columns[i].format == 0 || IsText(columns[i].type.oid))) {
      ASSIGN_OR_RETURN(const std::string text,
                       encoding->FromUtf8(std::string_view(out).substr(begin + kLengthBytes)));
      out.resize(begin);
      AppendUint32(out, static_cast<uint32_t>(text.size()));
      out += text;
    }
  }
  return OkStatus();
}

void AppendAuthentication(std::string& out, Authentication kind, std::string_view rest) {
  OpenMessage message(out, 'R');
  AppendUint32(out, static_cast<uint32_t>(kind));
  out += rest;
}

void AppendParameterDescription(std::string& out, const std::vector<uint32_t>& types) {
  const OpenMessage message(out, 't');
  AppendUint16(out, static_cast<uint16_t>(types.size()));
  for (const uint32_t type : types) {
    AppendUint32(out, type);
  }
}

void AppendCommandComplete(std::string& out, std::string_view tag) {
  const OpenMessage message(out, 'C');
  AppendString(out, tag);
}

void AppendCopyBegins(std::string& out, char type, size_t columns, bool binary) {
  const char format = binary ? '\1' : '\0';
  std::string body(1, format);
  AppendUint16(body, static_cast<uint16_t>(columns));
  for (size_t i = 0; i < columns; ++i) {
    body += '\0';
    body += format;
  }
  AppendMessage(out, type, body);
}

void AppendReady(std::string& out, char status) {
  const OpenMessage message(out, 'Z');
  out.push_back(status);
}

void AppendParameterStatus(std::string& out, std::string_view name, std::string_view value) {
  const OpenMessage message(out, 'S');
  AppendString(out, name);
  AppendString(out, value);
}

std::string NegotiateStartup(StartupMessage& startup) {
  std::vector<std::string> options;
  auto parameter = startup.parameters.begin();
  while (parameter != startup.parameters.end()) {
    if (parameter->first.starts_with("_pq_.")) {
      options.push_back(parameter->first);
      parameter = startup.parameters.erase(parameter);
    } else {
      ++parameter;
    }
  }
  std::string told;
  if (startup.code != kProtocol3 || !options.empty()) {
    const OpenMessage message(told, 'v');
    AppendUint32(told, kProtocol3);
    AppendUint32(told, static_cast<uint32_t>(options.size()));
    for (const std::string& option : options) {
      AppendString(told, option);
    }
  }
  startup.code = kProtocol3;
  return told;
}

void AppendKeyData(std::string& out, uint32_t process, uint32_t key) {
  const OpenMessage message(out, 'K');
  AppendUint32(out, process);
  AppendUint32(out, key);
}

}  // namespace sluice::server::pgwire
