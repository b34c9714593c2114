#include "catalog/postgres/postgres_copy_internal.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/postgres/postgres_types_internal.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/timestamp_text.h"

namespace sluice::catalog {
namespace {

// What stands for a byte after a backslash in COPY's text format; 0: the byte itself.
char EscapeOf(char c) {
  switch (c) {
    case '\\':
      return '\\';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

// Whether one of eight bytes is a backslash or a control character; perhaps also if the byte before
// it is one. reference: Sean Eron Anderson, "Bit Twiddling Hacks", "Determine if a word has a byte
// less than n".
bool MayNeedEscape(uint64_t bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighBits = 0x80 * kOnes;
  const uint64_t slash = bytes ^ (kOnes * '\\');
  return ((((slash - kOnes) & ~slash) | ((bytes - kOnes * ' ') & ~bytes)) & kHighBits) != 0;
}

template <typename Word>
Word Load(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Copies a short or long text without calls for short ones, which nearly all cells are. False: some
// of it may need an escape.
inline bool CopyPlain(std::string_view text, char* to) {
  constexpr size_t kWord = sizeof(uint64_t);
  constexpr size_t kHalf = sizeof(uint32_t);
  const size_t size = text.size();
  const char* const from = text.data();
  bool escape = false;
  if (size >= kWord) {
    std::memcpy(to, from, size);
    for (size_t at = 0; at + kWord < size; at += kWord) {
      escape |= MayNeedEscape(Load<uint64_t>(from + at));
    }
    return !(escape | MayNeedEscape(Load<uint64_t>(from + size - kWord)));
  }
  if (size >= kHalf) {
    const auto first = Load<uint32_t>(from);
    const auto last = Load<uint32_t>(from + size - kHalf);
    std::memcpy(to, &first, kHalf);
    std::memcpy(to + size - kHalf, &last, kHalf);
    return !MayNeedEscape(uint64_t{first} | uint64_t{last} << 32U);
  }
  for (size_t i = 0; i < size; ++i) {
    to[i] = from[i];
    escape |= EscapeOf(from[i]) != 0;
  }
  return !escape;
}

// Rows in COPY's text format; measured to be faster for the server than the binary one, and it fits
// every type.
class CopyLines {
 public:
  explicit CopyLines(size_t bytes) : text_(bytes, '\0') {}

  // As it is: no byte needs an escape.
  void Put(std::string_view plain) {
    MakeRoom(plain.size());
    std::memcpy(text_.data() + size_, plain.data(), plain.size());
    size_ += plain.size();
  }
  void Put(char c) {
    MakeRoom(1);
    text_[size_++] = c;
  }
  void PutText(std::string_view text) {
    MakeRoom(2 * text.size());
    char* to = text_.data() + size_;
    if (CopyPlain(text, to)) [[likely]] {
      size_ += text.size();
      return;
    }
    for (const char c : text) {
      const char escape = EscapeOf(c);
      if (escape != 0) {
        *to++ = '\\';
      }
      *to++ = escape != 0 ? escape : c;
    }
    size_ = static_cast<size_t>(to - text_.data());
  }
  void PutHex(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    Put("\\\\x");
    for (const char c : bytes) {
      Put(kDigits[static_cast<unsigned char>(c) >> 4U]);
      Put(kDigits[static_cast<unsigned char>(c) & 0xFU]);
    }
  }
  std::string Take() {
    text_.resize(size_);
    return std::move(text_);
  }

 private:
  void MakeRoom(size_t bytes) {
    if (text_.size() - size_ < bytes) [[unlikely]] {
      text_.resize(std::max(text_.size() * 2, size_ + bytes));
    }
  }

  std::string text_;
  size_t size_ = 0;  // what is written of it
};

void PutCell(const RowBatch::Column& column, size_t row, CopyLines* lines) {
  if (column.null[row] != 0) {
    lines->Put("\\N");
    return;
  }
  switch (column.TypeAt(row)) {
    case DataType::kBool:
      lines->Put(column.int64s[row] != 0 ? 't' : 'f');
      break;
    case DataType::kInt64: {
      const fmt::format_int digits(column.int64s[row]);
      lines->Put({digits.data(), digits.size()});
      break;
    }
    case DataType::kDouble:
      lines->Put(FormatDouble(column.doubles[row]));
      break;
    case DataType::kTimestamp: {
      // The session's TimeZone is the user's; a timestamp without time zone ignores the suffix.
      const std::string literal = TimestampLiteral(column.int64s[row]);
      lines->Put(literal);
      if (literal.back() != 'y' && literal.back() != 'C') {  // not infinity, nor before Christ
        lines->Put("+00");
      }
      break;
    }
    case DataType::kText:
      lines->PutText(column.texts[row]);
      break;
    case DataType::kBytes:
      lines->PutHex(column.texts[row]);
      break;
  }
}

}  // namespace

std::string CopyText(const RowBatch& batch) {
  constexpr size_t kUsualCell = 10;
  CopyLines lines(batch.rows * batch.columns.size() * kUsualCell);
  for (size_t row = 0; row < batch.rows; ++row) {
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      if (i > 0) {
        lines.Put('\t');
      }
      PutCell(batch.columns[i], row, &lines);
    }
    lines.Put('\n');
  }
  return lines.Take();
}

Status CopyIn::Send(std::string_view text) {
  PGconn* handle = connection_.handle();
  RETURN_IF_ERROR(connection_.CheckStop());
  if (!std::exchange(open_, true)) {
    sent_ = 0;
    const bool asked = PQsendQuery(handle, copy_.c_str()) != 0;
    const PostgresResult begun = asked ? connection_.Await() : nullptr;
    if (PQresultStatus(begun.get()) != PGRES_COPY_IN) {
      Status refused = connection_.ErrorOf(begun.get(), "");
      connection_.Drain().ok();  // only the error itself is of interest
      open_ = false;
      return refused;
    }
  }
  // libpq blocks while the server accepts no more data: for a trigger, or for a lock.
  const std::stop_callback cancel(connection_.stop(), [this] { connection_.Cancel(); });
  constexpr size_t kPiece = size_t{1} << 20;  // libpq buffers what it could not send yet
  for (size_t at = 0; at < text.size(); at += kPiece) {
    const std::string_view piece = text.substr(at, kPiece);
    if (PQputCopyData(handle, piece.data(), static_cast<int>(piece.size())) != 1) {
      open_ = false;
      return connection_.ConnectionLost();
    }
  }
  sent_ += text.size();
  return sent_ < most_bytes_ ? OkStatus() : Finish();
}

Status CopyIn::Finish(std::string* context) {
  if (!std::exchange(open_, false)) {
    return OkStatus();
  }
  PGconn* handle = connection_.handle();
  const std::stop_callback cancel(connection_.stop(), [this] { connection_.Cancel(); });
  if (PQputCopyEnd(handle, nullptr) != 1) {
    return connection_.ConnectionLost();
  }
  Status outcome;
  while (const PostgresResult result = connection_.Await()) {
    if (outcome.ok() && PQresultStatus(result.get()) != PGRES_COMMAND_OK) {
      outcome = connection_.ErrorOf(result.get(), "");
      const char* const place = PQresultErrorField(result.get(), PG_DIAG_CONTEXT);
      if (context != nullptr && place != nullptr) {
        *context = place;
      }
    }
    if (PQstatus(handle) != CONNECTION_OK) {
      break;
    }
  }
  return outcome;
}

void CopyIn::GiveUp() {
  if (std::exchange(open_, false)) {
    connection_.Drain().ok();  // the server's report of the same
  }
}

Status CopyRows(PostgresConnection& connection, const std::string& copy, std::string_view text,
                std::string* context) {
  CopyIn rows(connection, copy, SIZE_MAX);
  RETURN_IF_ERROR(rows.Send(text));
  return rows.Finish(context);
}

}  // namespace sluice::catalog
