#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "catalog/postgres/postgres_types_internal.h"

// PostgreSQL's protocol 3 on the socket of an idle libpq connection: libpq connects and
// authenticates, and this reads bulk rows without its copies. reference: PostgreSQL documentation,
// "Frontend/Backend Protocol", "Message Formats".
namespace sluice::catalog {

// Receives whole messages into one buffer. Not thread-safe.
class WireReader {
 public:
  static constexpr size_t kHeader = 5;  // bytes before a body: type and length

  explicit WireReader(int socket);
  // `look` is called repeatedly while no data arrive.
  void OnWait(std::function<void()> look) { look_ = std::move(look); }

  struct Message {
    char type = 0;
    char* body = nullptr;
    size_t size = 0;
  };
  // The next message. Its body, and those of earlier messages since the last Forget, stay in place
  // relative to base(): if the buffer has to grow, they move together with it.
  Status Read(Message* message);
  // Everything read so far may be overwritten.
  void Forget();
  const char* base() const { return buffer_.get(); }
  // In which nothing had arrived yet, or was received.
  double waited_seconds() const { return waited_seconds_; }

 private:
  Status Receive();  // at least one more byte
  Status Await();
  void MakeRoom(size_t bytes);

  int socket_;
  std::function<void()> look_;
  bool spins_;  // polls for a moment before it sleeps
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;  // first byte not yet handed out
  size_t end_ = 0;    // first byte not yet received
  double waited_seconds_ = 0;
};

// Parse; for each run (the texts of the statement's parameters) Bind with one result format per
// column and Execute; Sync.
std::string QueryMessages(std::string_view sql, const std::vector<CellFormat>& formats,
                          const std::vector<std::vector<std::string>>& runs);
Status SendAll(int socket, std::string_view bytes);
// The Status for an ErrorResponse.
Status ErrorFromWire(const WireReader::Message& message, std::string_view sql);
// The line for a NoticeResponse.
std::string NoticeFromWire(const WireReader::Message& message);

// What a server sends: the only row of a text-format result; an ErrorResponse; ReadyForQuery.
std::string RowMessage(const PGresult* result);
std::string ErrorMessage(const Status& error);
std::string ReadyMessage();

}  // namespace sluice::catalog
