#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "server/pgwire/client_encoding.h"
#include "server/pgwire/column_types.h"

// PostgreSQL's messages (protocol 3.0) as values: what a client sends is read from the body of its
// message, what it is answered is appended to a string as bytes. Pure; thread-safe.
// Source: PostgreSQL 15 documentation, chapter 55 "Frontend/Backend Protocol".
namespace sluice::server::pgwire {

// The first four bytes of a message without a type, the first of a connection.
inline constexpr uint32_t kProtocol3 = 196608;  // 3.0
inline constexpr uint32_t kCancelCode = 80877102;
inline constexpr uint32_t kTlsCode = 80877103;
inline constexpr uint32_t kGssCode = 80877104;

// Type and length, which counts itself.
inline constexpr size_t kHeaderBytes = 5;
inline constexpr size_t kLengthBytes = 4;
// The server's own limit of a message.
inline constexpr size_t kMaxMessageBytes = 0x3fffffff;

// Of the first four bytes, which are there. Here, as each row that is passed on is asked for its
// length.
inline uint32_t ReadUint32(std::string_view bytes) {
  const auto byte = [bytes](size_t i) { return uint32_t{static_cast<unsigned char>(bytes[i])}; };
  return byte(0) << 24U | byte(1) << 16U | byte(2) << 8U | byte(3);
}
void AppendUint32(std::string& out, uint32_t number);
void PutUint32(std::string& out, size_t at, uint32_t number);  // over four bytes that are there

// Reads a body front to back; everything after the first thing that is not there fails.
class BodyReader {
 public:
  explicit BodyReader(std::string_view body) : rest_(body) {}
  char Byte();
  uint16_t Uint16();
  uint32_t Uint32();
  std::string_view String();  // up to the next NUL
  std::string_view Bytes(size_t count);
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

struct StartupMessage {
  uint32_t code = 0;
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string_view Find(std::string_view name) const;  // "" when not given
};
// `body`: behind the length.
Result<StartupMessage> ReadStartup(std::string_view body);
void AppendStartup(std::string& out, const StartupMessage& startup);
// Makes of a newer protocol the one that all servers speak, and takes out options that come with
// it. What the client has to be told of that, before anything else; "": nothing.
std::string NegotiateStartup(StartupMessage& startup);
void AppendCancelRequest(std::string& out, uint32_t process, uint32_t key);

struct ParseMessage {
  std::string_view name;
  std::string_view sql;
  std::vector<uint32_t> types;  // OIDs; 0: not said
};
struct BindMessage {
  std::string_view portal;
  std::string_view statement;
  std::vector<uint16_t> formats;  // of the values: none (text), one for all, or one for each
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
// `body`: behind the header, whole. Views point into it. 08P01 where it is not what it should be.
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

// A message of a type and a ready body.
void AppendMessage(std::string& out, char type, std::string_view body);
void AppendQuery(std::string& out, std::string_view sql);
void AppendParse(std::string& out, const ParseMessage& parse);
void AppendBind(std::string& out, const BindMessage& bind);
void AppendExecute(std::string& out, const ExecuteMessage& execute);
void AppendRowDescription(std::string& out, const std::vector<WireColumn>& columns);
// One row of `batch`, each cell in its column's format; errors as AppendCell's, and `out` is no
// message then.
// `encoding`: of the texts in them; nullopt: UTF-8. 22P05: a character that it does not have.
Status AppendDataRow(std::string& out, const RowBatch& batch, size_t row,
                     const std::vector<WireColumn>& columns,
                     const std::optional<ClientEncoding>& encoding = std::nullopt);
// What AuthenticationRequest asks for.
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
// A COPY of so many columns begins: 'G' from the client, 'H' to it.
void AppendCopyBegins(std::string& out, char type, size_t columns, bool binary);
void AppendParameterStatus(std::string& out, std::string_view name, std::string_view value);
void AppendKeyData(std::string& out, uint32_t process, uint32_t key);

// One diagnostic as a client shows it. The rest of the status's diagnostics stand in its detail.
// `text`: what the client sent, for the position, which counts characters; the spans count from
// its byte `offset`.
// `severity`: ERROR, FATAL.
void AppendError(std::string& out, const Status& status, std::string_view text, int64_t offset = 0,
                 std::string_view severity = "ERROR");
void AppendNotice(std::string& out, std::string_view severity, std::string_view sqlstate,
                  std::string_view message, std::string_view hint = "");
// SQLSTATE, message and the like of an ErrorResponse or a NoticeResponse.
Status ReadError(std::string_view body);
// Whether the server ends the connection with it.
bool IsFatal(std::string_view error_body);

}  // namespace sluice::server::pgwire
