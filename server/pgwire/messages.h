#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/big_endian.h"
#include "base/row_batch.h"
#include "base/status.h"
#include "server/pgwire/client_encoding.h"
#include "server/pgwire/sql/column_types.h"

// PostgreSQL's messages (protocol 3.0) as values: a client's messages are read from their bodies,
// answers are appended to a string as bytes. Pure; thread-safe.
// Source: PostgreSQL 15 documentation, chapter 55 "Frontend/Backend Protocol".
namespace sluice::server::pgwire {

// The first four bytes of a message without a type, which a connection begins with.
inline constexpr uint32_t kProtocol3 = 196608;  // 3.0
inline constexpr uint32_t kCancelCode = 80877102;
inline constexpr uint32_t kTlsCode = 80877103;
inline constexpr uint32_t kGssCode = 80877104;

// Type and length; the length counts itself.
inline constexpr size_t kHeaderBytes = 5;
inline constexpr size_t kLengthBytes = 4;
// PostgreSQL's own limit for a message.
inline constexpr size_t kMaxMessageBytes = 0x3fffffff;

void AppendUint32(std::string& out, uint32_t number);
void PutUint32(std::string& out, size_t at, uint32_t number);  // overwrites four existing bytes

struct StartupMessage {
  uint32_t code = 0;
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string_view Find(std::string_view name) const;  // "" when not given
};
// `body`: what follows the length.
Result<StartupMessage> ReadStartup(std::string_view body);
void AppendStartup(std::string& out, const StartupMessage& startup);
// Makes of a newer protocol the one that all servers speak, and takes out options that come with
// it. What the client has to be told of that, before anything else; "": nothing.
std::string NegotiateStartup(StartupMessage& startup);
void AppendCancelRequest(std::string& out, uint32_t process, uint32_t key);

struct ParseMessage {
  std::string_view name;
  std::string_view sql;
  std::vector<uint32_t> types;  // OIDs; 0: not given
};
struct BindMessage {
  std::string_view portal;
  std::string_view statement;
  std::vector<uint16_t> formats;  // of the values: none (all text), one for all, or one for each
  std::vector<std::optional<std::string_view>> values;
  std::vector<uint16_t> result_formats;
};
// Describe and Close.
struct TargetMessage {
  char kind = 'S';  // S: a statement, P: a portal
  std::string_view name;
};
struct ExecuteMessage {
  std::string_view portal;
  uint32_t max_rows = 0;  // 0: all
};
// `body`: what follows the header, complete. Views point into it. 08P01: malformed.
Result<std::string_view> ReadQuery(std::string_view body);
Result<ParseMessage> ReadParse(std::string_view body);
Result<BindMessage> ReadBind(std::string_view body);
Result<TargetMessage> ReadTarget(std::string_view body);
Result<ExecuteMessage> ReadExecute(std::string_view body);
Result<std::string_view> ReadPassword(std::string_view body);
struct SaslInitialMessage {
  std::string_view mechanism;
  std::string_view message;
};
Result<SaslInitialMessage> ReadSaslInitial(std::string_view body);

struct WireColumn {
  std::string name;
  ColumnType type;
  uint16_t format = 0;  // 0: text, 1: binary
};

// A message of a type with a complete body.
void AppendMessage(std::string& out, char type, std::string_view body);
void AppendQuery(std::string& out, std::string_view sql);
void AppendParse(std::string& out, const ParseMessage& parse);
void AppendBind(std::string& out, const BindMessage& bind);
void AppendExecute(std::string& out, const ExecuteMessage& execute);
void AppendRowDescription(std::string& out, const std::vector<WireColumn>& columns);
// One row of `batch`, each cell in its column's format; errors as for AppendCell, after which `out`
// is not a valid message.
// `encoding`: of the texts; nullopt: UTF-8. 22P05: the encoding lacks a character.
Status AppendDataRow(std::string& out, const RowBatch& batch, size_t row,
                     const std::vector<WireColumn>& columns,
                     const std::optional<ClientEncoding>& encoding = std::nullopt);
// The kinds of AuthenticationRequest.
enum class Authentication : uint32_t {
  kOk = 0,
  kPassword = 3,
  kMd5 = 5,
  kScram = 10,
  kScramContinue = 11,
  kScramFinal = 12,
};
// `rest`: mechanisms, or a mechanism's own message.
void AppendAuthentication(std::string& out, Authentication kind, std::string_view rest = "");
void AppendParameterDescription(std::string& out, const std::vector<uint32_t>& types);
void AppendCommandComplete(std::string& out, std::string_view tag);
void AppendReady(std::string& out, char status);  // I, T or E
// Begins a COPY of so many columns: 'G' from the client, 'H' to it.
void AppendCopyBegins(std::string& out, char type, size_t columns, bool binary);
void AppendParameterStatus(std::string& out, std::string_view name, std::string_view value);
void AppendKeyData(std::string& out, uint32_t process, uint32_t key);

// One diagnostic as a client shows it; the status's other diagnostics become its detail. `text`:
// what the client sent, for the position, which is counted in characters; spans count from its byte
// `offset`.
// `severity`: ERROR, FATAL.
void AppendError(std::string& out, const Status& status, std::string_view text, int64_t offset = 0,
                 std::string_view severity = "ERROR");
void AppendNotice(std::string& out, std::string_view severity, std::string_view sqlstate,
                  std::string_view message, std::string_view hint = "");
// SQLSTATE, message and so on of an ErrorResponse or a NoticeResponse.
Status ReadError(std::string_view body);
// Whether the server closes the connection after it.
bool IsFatal(std::string_view error_body);

}  // namespace sluice::server::pgwire
