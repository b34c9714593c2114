#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "catalog/postgres/postgres_database_internal.h"
#include "tests/fuzz/target.h"

// A server that answers a streamed SELECT with arbitrary bytes and disconnects: the stream ends
// with rows, or an error. libpq connects to it over a socket as to any other server.
namespace sluice::catalog {
namespace {

[[noreturn]] void Give(const char* what) {
  std::perror(what);
  std::abort();
}

class HostileServer {
 public:
  HostileServer() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-fuzz-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      Give("mkdtemp");
    }
    folder_ = pattern;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ + "/.s.PGSQL.5432";
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(listener_, 16) != 0) {
      Give("listen");
    }
    thread_ = std::thread([this] { Serve(); });
  }
  ~HostileServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    std::filesystem::remove_all(folder_);
  }
  HostileServer(const HostileServer&) = delete;
  HostileServer& operator=(const HostileServer&) = delete;

  std::string url() const {
    return "postgresql:///fuzz?user=fuzz&sslmode=disable&gssencmode=disable&host=" + folder_;
  }
  void set_answer(std::string_view answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    answer_ = answer;
  }

 private:
  void Serve() {
    while (true) {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) {
        return;
      }
      Talk(client);
      close(client);
    }
  }
  // A cancel request is shorter than any start-up message.
  void Talk(int client) {
    char buffer[4096];
    constexpr ssize_t kCancelRequest = 16;
    if (recv(client, buffer, sizeof(buffer), 0) <= kCancelRequest) {
      return;
    }
    constexpr char kWelcome[] = "R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
    send(client, kWelcome, sizeof(kWelcome) - 1, MSG_NOSIGNAL);
    if (recv(client, buffer, sizeof(buffer), 0) <= 0) {
      return;  // the query
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
  }

  std::string folder_;
  int listener_ = -1;
  std::mutex mutex_;
  std::string answer_;
  std::thread thread_;
};

Schema EveryType() {
  return {{{"a", DataType::kBool, "boolean"},
           {"b", DataType::kInt64, "bigint"},
           {"c", DataType::kDouble, "double precision"},
           {"d", DataType::kDouble, "numeric"},
           {"e", DataType::kTimestamp, "timestamp without time zone"},
           {"f", DataType::kTimestamp, "date"},
           {"g", DataType::kText, "text"},
           {"h", DataType::kBytes, "bytea"}}};
}

void Stream(const HostileServer& server, Schema schema) {
  const auto connection = PostgresConnection::Connect({server.url(), ""});
  if (!connection.ok()) {
    std::fprintf(stderr, "%s\n", connection.status().ToString().c_str());
    std::abort();
  }
  const auto stream = OpenPostgresStream(**connection, "SELECT * FROM t", {std::move(schema)});
  if (!stream.ok()) {
    return;
  }
  RowBatch batch;
  size_t bytes = 0;
  while (true) {
    constexpr size_t kRows = 7;
    const Status status = (*stream)->Next(kRows, &batch);
    if (!status.ok() || batch.rows == 0) {
      break;
    }
    for (const RowBatch::Column& column : batch.columns) {
      for (size_t row = 0; row < batch.rows; ++row) {
        bytes += FormatValue(column.ValueAt(row), column.type).size();
      }
    }
  }
  if (bytes > size_t{1} << 30) {
    std::abort();  // so that the cells are read
  }
}

}  // namespace
}  // namespace sluice::catalog

FUZZ_TARGET(postgres_stream) {
  using sluice::catalog::HostileServer;
  static HostileServer server;
  constexpr size_t kLongest = 1 << 16;  // what fits into the socket's buffer
  if (size > kLongest || size == 0) {
    return 0;
  }
  server.set_answer({reinterpret_cast<const char*>(data) + 1, size - 1});
  sluice::Schema schema = sluice::catalog::EveryType();
  // The first byte determines the columns.
  for (int i = 7; i >= 0; --i) {
    if ((data[0] >> static_cast<unsigned>(i) & 1U) == 0) {
      schema.columns.erase(schema.columns.begin() + i);
    }
  }
  sluice::catalog::Stream(server, std::move(schema));
  return 0;
}
