#pragma once

#include <libpq-fe.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plain_models.h"

// How plain_loop.cc reads a table: rows of PostgreSQL's protocol, directly from the socket.
namespace sluice::plain {

[[noreturn]] inline void Fail(const char* what) {
  std::fprintf(stderr, "plain_loop: %s\n", what);
  std::exit(1);
}

struct Column {
  bool number = false;
  float mean = 0, scale = 1;
};
struct Table {
  std::string url, name;
  std::vector<Column> columns = {};
  size_t label = 0;
  std::string positive = {};
  int64_t pages = 0;
};

inline void Parse(const Table& table, const char* at,
                  Row* row) {  // a DataRow's body, all fields as text
  row->bucket.clear();
  row->value.clear();
  const auto number16 = [&at] { return at += 2, (uint8_t(at[-2]) << 8) | uint8_t(at[-1]); };
  const int fields = number16();
  for (int i = 0; i < fields; ++i) {
    const int32_t size = static_cast<int32_t>((uint32_t(number16()) << 16) | uint32_t(number16()));
    const std::string_view text(at, size < 0 ? 0 : static_cast<size_t>(size));
    at += text.size();
    const Column& column = table.columns[static_cast<size_t>(i)];
    uint32_t bucket = 0;
    float value = size < 0 ? 0 : 1;
    if (static_cast<size_t>(i) == table.label) {
      row->label = text == table.positive ? 1 : 0;
      continue;
    }
    if (column.number) {
      double number = 0;
      std::from_chars(text.data(), text.data() + text.size(), number);
      value *= (static_cast<float>(number) - column.mean) * column.scale;
    } else {
      uint32_t hash = 2166136261U;
      for (const char c : text) {
        hash = (hash ^ uint8_t(c)) * 16777619U;
      }
      bucket = (hash ^ (hash >> 15)) % static_cast<uint32_t>(kBuckets);
    }
    row->bucket.push_back(static_cast<uint32_t>(static_cast<size_t>(i) * kBuckets) + bucket);
    row->value.push_back(value);
  }
}

// Calls `take` with the body of each DataRow in the query's answer, read directly from the socket.
template <typename Take>
void Read(PGconn* connection, const std::string& sql, const Take& take) {
  if (PQsendQuery(connection, sql.c_str()) == 0 || PQflush(connection) != 0) {
    Fail(PQerrorMessage(connection));
  }
  std::vector<char> buffer(1 << 18);
  size_t have = 0;
  for (;;) {
    const ssize_t got =
        recv(PQsocket(connection), &buffer[have], buffer.size() - have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      continue;  // busy-wait: a sleeping client costs the server wake-ups
    }
    if (got <= 0) {
      Fail("the connection was lost");
    }
    have += static_cast<size_t>(got);
    size_t at = 0;
    while (have - at >= 5) {
      uint32_t size = 0;
      std::memcpy(&size, &buffer[at + 1], 4);
      size = __builtin_bswap32(size);
      if (have - at < size + 1) {
        break;
      }
      if (buffer[at] == 'D') {
        take(&buffer[at + 5]);
      } else if (buffer[at] == 'E') {
        Fail(&buffer[at + 5]);
      } else if (buffer[at] == 'Z') {
        return;
      }
      at += size + 1;
    }
    std::memmove(buffer.data(), &buffer[at], have - at);
    have -= at;
  }
}

}  // namespace sluice::plain
