#include <endian.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "base/big_endian.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_messages_internal.h"
#include "catalog/postgres/postgres_wire_internal.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

// Holds a batch of ordinary rows; grows for others.
constexpr size_t kFirstCapacity = size_t{512} << 10;
// If less room is free, the buffer is moved or grown before it is filled again.
constexpr size_t kMinRoom = size_t{64} << 10;
// PostgreSQL's buffers, and so its messages, are limited to 1 GiB.
constexpr uint32_t kLongestMessage = uint32_t{1} << 30;
// A reader that sleeps at once makes the server wake it for every 8 KiB, which costs the server
// 15-25 % (measured on a quiet machine); so it polls for about as long as the server needs for that
// much, and yields to other threads meanwhile.
constexpr std::chrono::microseconds kSpin{200};

// If other work waits for the processors, polling takes them from the server instead: 0.80 of the
// rate of a bare COPY loop with polling, 0.95 without (measured with a load of 6 on 2 processors).
bool ProcessorsAreFree() {
  double load = 0;
  return getloadavg(&load, 1) == 1 &&
         load < static_cast<double>(std::thread::hardware_concurrency());
}

Status Lost(std::string_view what) {
  return DatabaseError("08006", fmt::format("the connection to PostgreSQL was lost: {}", what));
}

void PutMessage(std::string* out, char type, std::string_view body) {
  *out += type;
  AppendBigEndian(static_cast<uint32_t>(body.size() + sizeof(uint32_t)),
                  out);  // the length includes itself
  *out += body;
}

// The fields of an ErrorResponse or a NoticeResponse.
struct ReportFields {
  std::string severity;
  std::string sqlstate;
  std::string text;
  std::string detail;
  std::string hint;
  int64_t position = 0;
};

ReportFields FieldsOf(const WireReader::Message& message) {
  ReportFields fields;
  std::string_view body(message.body, message.size);
  while (!body.empty() && body.front() != '\0') {
    const char field = body.front();
    body.remove_prefix(1);
    const std::string_view value = body.substr(0, body.find('\0'));
    body.remove_prefix(std::min(value.size() + 1, body.size()));
    switch (field) {
      case 'S':
        fields.severity = value;
        break;
      case 'C':
        fields.sqlstate = value;
        break;
      case 'M':
        fields.text = value;
        break;
      case 'D':
        fields.detail = value;
        break;
      case 'H':
        fields.hint = value;
        break;
      case 'P':
        std::from_chars(value.data(), value.data() + value.size(), fields.position);
        break;
      default:
        break;
    }
  }
  return fields;
}

}  // namespace

WireReader::WireReader(int socket) : socket_(socket), spins_(ProcessorsAreFree()) {}

Status WireReader::Read(Message* message) {
  while (true) {
    const size_t available = end_ - begin_;
    if (available >= kHeader) {
      uint32_t length = 0;
      std::memcpy(&length, buffer_.get() + begin_ + 1, sizeof(length));
      length = be32toh(length);
      if (length < sizeof(length) || length > kLongestMessage) [[unlikely]] {
        return Lost("a message with a wrong length");
      }
      const size_t whole = size_t{1} + length;
      if (available >= whole) {
        message->type = buffer_[begin_];
        message->body = buffer_.get() + begin_ + kHeader;
        message->size = length - sizeof(length);
        begin_ += whole;
        return OkStatus();
      }
      // Room for the announced size is made as the data arrive.
      MakeRoom(std::min(whole - available, std::max(available, kFirstCapacity)));
    }
    RETURN_IF_ERROR(Receive());
  }
}

void WireReader::Forget() {
  if (begin_ == end_) {
    begin_ = 0;
    end_ = 0;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
}

void WireReader::MakeRoom(size_t bytes) {
  if (capacity_ - end_ >= bytes) {
    return;
  }
  const size_t capacity = std::max({kFirstCapacity, capacity_ * 2, end_ + bytes});
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (end_ > 0) {
    std::memcpy(larger.get(), buffer_.get(), end_);
  }
  buffer_ = std::move(larger);
  capacity_ = capacity;
}

Status WireReader::Receive() {
  const auto begin = std::chrono::steady_clock::now();
  Status status = Await();
  waited_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return status;
}

Status WireReader::Await() {
  MakeRoom(kMinRoom);
  std::chrono::steady_clock::time_point give_up{};
  while (true) {
    const ssize_t received = recv(socket_, buffer_.get() + end_, capacity_ - end_, MSG_DONTWAIT);
    if (received > 0) {
      end_ += static_cast<size_t>(received);
      return OkStatus();
    }
    if (received == 0) {
      return Lost("the server closed it");
    }
    if (errno == EINTR) {
      continue;
    }
    if (errno != EAGAIN) {
      return Lost(std::strerror(errno));
    }
    const auto now = std::chrono::steady_clock::now();
    if (give_up == std::chrono::steady_clock::time_point{}) {
      give_up = spins_ ? now + kSpin : now;
    }
    if (now < give_up) {
      sched_yield();
    } else {
      // No deadline: a statement may take any time. Keep-alives end a dead connection.
      pollfd waiting = {socket_, POLLIN, 0};
      poll(&waiting, 1, look_ ? kStopPollMillis : -1);
      if (look_) {
        look_();
      }
    }
  }
}

std::string QueryMessages(std::string_view sql, const std::vector<CellFormat>& formats,
                          const std::vector<std::vector<std::string>>& runs) {
  std::string parse(1, '\0');  // the unnamed statement
  parse += sql;
  parse += '\0';
  AppendBigEndian<uint16_t>(0, &parse);  // no parameter types
  std::string execute(1, '\0');
  AppendBigEndian<uint32_t>(0, &execute);  // all rows
  std::string messages;
  PutMessage(&messages, 'P', parse);
  for (const std::vector<std::string>& parameters : runs) {
    std::string bind(2, '\0');            // the unnamed portal and statement
    AppendBigEndian<uint16_t>(0, &bind);  // all parameters are text
    AppendBigEndian(static_cast<uint16_t>(parameters.size()), &bind);
    for (const std::string& parameter : parameters) {
      AppendBigEndian(static_cast<uint32_t>(parameter.size()), &bind);
      bind += parameter;
    }
    AppendBigEndian(static_cast<uint16_t>(formats.size()), &bind);
    for (const CellFormat format : formats) {
      AppendBigEndian<uint16_t>(IsBinary(format) ? 1 : 0, &bind);
    }
    PutMessage(&messages, 'B', bind);
    PutMessage(&messages, 'E', execute);
  }
  PutMessage(&messages, 'S', "");
  return messages;
}

Status SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      pollfd waiting = {socket, POLLOUT, 0};
      poll(&waiting, 1, -1);
    } else if (errno != EINTR) {
      return Lost(std::strerror(errno));
    }
  }
  return OkStatus();
}

Status ErrorFromWire(const WireReader::Message& message, std::string_view sql) {
  const ReportFields fields = FieldsOf(message);
  return PostgresError(fields.sqlstate, fields.text, fields.detail, fields.hint, fields.position,
                       sql, 0);
}

std::string NoticeFromWire(const WireReader::Message& message) {
  const ReportFields fields = FieldsOf(message);
  return PostgresNotice(fields.severity, fields.text, fields.detail, fields.hint);
}

std::string RowMessage(const PGresult* result) {
  std::string body;
  AppendBigEndian(static_cast<uint16_t>(PQnfields(result)), &body);
  for (int i = 0; i < PQnfields(result); ++i) {
    if (PQgetisnull(result, 0, i) != 0) {
      AppendBigEndian(std::numeric_limits<uint32_t>::max(), &body);  // -1
      continue;
    }
    const auto size = static_cast<size_t>(PQgetlength(result, 0, i));
    AppendBigEndian(static_cast<uint32_t>(size), &body);
    body.append(PQgetvalue(result, 0, i), size);
  }
  std::string message;
  PutMessage(&message, 'D', body);
  return message;
}

std::string ErrorMessage(const Status& error) {
  const Diagnostic& first = error.diagnostics().front();
  std::string body;
  for (const auto& [field, text] : {std::pair<char, std::string_view>('S', "ERROR"),
                                    {'C', first.sqlstate},
                                    {'M', first.message},
                                    {'D', first.detail},
                                    {'H', first.hint}}) {
    if (!text.empty()) {
      body += field;
      body += text;
      body += '\0';
    }
  }
  body += '\0';
  std::string message;
  PutMessage(&message, 'E', body);
  return message;
}

std::string ReadyMessage() {
  std::string message;
  PutMessage(&message, 'Z', "T");
  return message;
}

}  // namespace sluice::catalog
