#include "catalog/postgres/postgres_lender_internal.h"

#include <endian.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "catalog/column_description.h"
#include "catalog/dataset.pb.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_session_internal.h"
#include "catalog/postgres/postgres_shard_select_internal.h"
#include "catalog/postgres/postgres_wire_internal.h"
#include "catalog/row_ranges_internal.h"

namespace sluice::catalog {
namespace {

// A shard's rows are kept for a reader that is slow to take them, so that it does not hold up the
// others: more than ordinary shards have.
constexpr size_t kMostKept = size_t{64} << 20;
constexpr size_t kSentTogether = size_t{64} << 10;
// A reader that takes nothing for this long is dropped; it begins the shard again.
constexpr int kReaderPatienceMillis = 20'000;
constexpr size_t kLongestRequest = size_t{4} << 20;
// The first byte of an answer: how its rows' cells come.
constexpr char kRows = 'B';
constexpr char kTextRows = 'T';

// Waits until the socket is ready for that, for about `millis`. False: it is not, or `stop`.
bool Await(int socket, short events, int millis, const std::stop_token& stop) {
  for (int waited = 0; waited < millis && !stop.stop_requested(); waited += kStopPollMillis) {
    pollfd waiting = {socket, events, 0};
    if (poll(&waiting, 1, std::min(kStopPollMillis, millis - waited)) > 0) {
      return true;
    }
  }
  return false;
}

// Exactly so many bytes.
bool Receive(int socket, char* to, size_t bytes, const std::stop_token& stop) {
  while (bytes > 0) {
    const ssize_t got = recv(socket, to, bytes, MSG_DONTWAIT);
    if (got > 0) {
      to += got;
      bytes -= static_cast<size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
               !Await(socket, POLLIN, kReaderPatienceMillis, stop)) {
      return false;
    }
  }
  return true;
}

std::string Framed(const LentRead& wanted) {
  const std::string bytes = wanted.SerializeAsString();
  const uint32_t length = htobe32(static_cast<uint32_t>(bytes.size()));
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + bytes;
}

bool ReceiveFramed(int socket, LentRead* wanted, const std::stop_token& stop) {
  uint32_t length = 0;
  if (!Receive(socket, reinterpret_cast<char*>(&length), sizeof(length), stop) ||
      be32toh(length) > kLongestRequest) {
    return false;
  }
  std::string bytes(be32toh(length), '\0');
  return Receive(socket, bytes.data(), bytes.size(), stop) && wanted->ParseFromString(bytes);
}

CopiedColumns CopiedOf(const LentRead& wanted) {
  CopiedColumns copied;
  copied.columns.assign(wanted.copied().begin(), wanted.copied().end());
  copied.purpose =
      wanted.written() ? CopiedColumns::Purpose::kWrite : CopiedColumns::Purpose::kShow;
  copied.binary.assign(wanted.binary().begin(), wanted.binary().end());
  return copied;
}

}  // namespace

// What a reader gets: kept until it takes it, up to kMostKept bytes.
class PostgresLender::Answer {
 public:
  Answer(int socket, std::stop_token stop) : socket_(socket), stop_(std::move(stop)) {}

  // The reader has left, or the lender ends.
  bool gone() const { return gone_ || stop_.stop_requested(); }
  void Put(std::string_view bytes) {
    kept_ += bytes;
    if (kept_.size() >= sends_at_) {
      Send(kMostKept);
      sends_at_ = kept_.size() + kSentTogether;
    }
  }
  // Sends until at most `kept` bytes are left.
  void Send(size_t kept) {
    while (!gone() && sent_ < kept_.size()) {
      const ssize_t sent =
          send(socket_, kept_.data() + sent_, kept_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        sent_ += static_cast<size_t>(sent);
      } else if (errno == EAGAIN && kept_.size() - sent_ <= kept) {
        break;
      } else if (errno != EINTR) {
        gone_ = errno != EAGAIN || !Await(socket_, POLLOUT, kReaderPatienceMillis, stop_);
      }
    }
    if (sent_ == kept_.size() || sent_ > kMostKept) {
      kept_.erase(0, std::exchange(sent_, 0));
    }
  }

 private:
  const int socket_;
  const std::stop_token stop_;
  std::string kept_;
  size_t sent_ = 0;  // of it
  size_t sends_at_ = kSentTogether;
  bool gone_ = false;
};

std::string PostgresLender::NewName() {
  return "sluice-rows-" + RandomSuffix();
}

Result<std::unique_ptr<PostgresLender>> PostgresLender::Start(SnapshotHolder& holder,
                                                              const DatasetSpec& spec) {
  ASSIGN_OR_RETURN(LocalSocket listener, LocalSocket::Listen(spec.lender()));
  const MutexLock lock(holder.mutex);
  return std::unique_ptr<PostgresLender>(
      new PostgresLender(holder, spec, std::move(listener), OnlyText(*holder.connection)));
}

PostgresLender::PostgresLender(SnapshotHolder& holder, const DatasetSpec& spec,
                               LocalSocket listener, bool only_text)
    : holder_(holder),
      spec_(spec),
      schema_(SchemaOf(spec)),
      listener_(std::move(listener)),
      only_text_(only_text),
      accepting_([this](const std::stop_token& stop) {
        // Without it readers wait for their locks; the error is logged.
        static_cast<void>(Guarded("lending a snapshot", [&] { Accept(stop); }));
      }) {}

PostgresLender::~PostgresLender() {
  accepting_.request_stop();
  listener_.HangUp();
}

void PostgresLender::Accept(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd waiting = {listener_.descriptor(), POLLIN, 0};
    poll(&waiting, 1, -1);  // until a reader comes, or it is hung up
    LocalSocket socket = listener_.Accept();
    readers_.remove_if([](const Reader& reader) { return reader.over.load(); });
    if (socket.open()) {
      Reader& reader = readers_.emplace_back();
      reader.socket = std::move(socket);
      reader.thread = std::jthread([this, &reader](const std::stop_token& end) {
        // An exception is logged; the reader finds its connection closed.
        static_cast<void>(Guarded("lending a snapshot", [&] { Serve(reader, end); }));
        reader.socket.HangUp();
        reader.over = true;
      });
    }
  }
  readers_.clear();
}

void PostgresLender::Serve(Reader& reader, const std::stop_token& stop) {
  const int socket = reader.socket.descriptor();
  for (LentRead wanted; ReceiveFramed(socket, &wanted, stop);) {
    Answer answer(socket, stop);
    answer.Put(std::string(1, only_text_ ? kTextRows : kRows));
    answer.Send(0);
    const Status lent = Lend(wanted, answer);
    if (!lent.ok()) {
      answer.Put(ErrorMessage(lent));
    }
    answer.Put(ReadyMessage());
    answer.Send(0);
    if (answer.gone()) {
      return;
    }
  }
}

Status PostgresLender::Lend(const LentRead& wanted, Answer& answer) {
  ASSIGN_OR_RETURN(
      const ShardSelect select,
      MakeShardSelect(spec_, schema_, {wanted.columns().begin(), wanted.columns().end()},
                      CopiedOf(wanted)));
  const MutexLock lock(holder_.mutex);
  PostgresConnection& connection = *holder_.connection;
  // Keeps the transaction, and so the locks and the snapshot, whatever becomes of the statement.
  RETURN_IF_ERROR(connection.Run("SAVEPOINT sluice_lent"));
  Status read = MakeTexts(connection, spec_, TextsOf(connection, select));
  if (read.ok()) {
    read = only_text_ ? ForwardText(wanted.shard(), select, answer)
                      : Forward(wanted.shard(), select, answer);
  }
  const Status back =
      connection.Run("ROLLBACK TO SAVEPOINT sluice_lent; RELEASE SAVEPOINT sluice_lent");
  return read.ok() ? back : read;
}

// The server's own messages.
Status PostgresLender::Forward(const ShardRange& shard, const ShardSelect& select, Answer& answer) {
  PostgresConnection& connection = *holder_.connection;
  const bool cut = spec_.cut() == DatasetSpec::CTID;
  std::vector<std::vector<std::string>> runs;
  for (const auto& [begin, end] : cut ? RangesOf(shard) : RowRanges{{0, 0}}) {
    runs.push_back(cut ? std::vector<std::string>{TidText(begin), TidText(end)}
                       : std::vector<std::string>());
  }
  if (runs.size() > 1) {
    RETURN_IF_ERROR(connection.Run(std::string(kPlanOnce)));
  }
  RETURN_IF_ERROR(SendAll(PQsocket(connection.handle()),
                          QueryMessages(cut ? WithParameters(select.sql) : select.sql,
                                        FormatsOf(select.columns), runs)));
  bool cancelled = false;
  const auto look = [&] {
    if ((answer.gone() || connection.stop().stop_requested()) && !std::exchange(cancelled, true)) {
      connection.Cancel(!connection.stop().stop_requested());
    }
  };
  WireReader reader(PQsocket(connection.handle()));
  reader.OnWait(look);
  Status error;
  for (WireReader::Message message; message.type != 'Z';) {
    reader.Forget();
    RETURN_IF_ERROR(reader.Read(&message));
    if (message.type == 'D') {
      answer.Put({message.body - WireReader::kHeader, message.size + WireReader::kHeader});
      look();
    } else if (message.type == 'E') {
      error = ErrorFromWire(message, select.sql);
    } else if (message.type == 'N') {
      connection.OnNotice(NoticeFromWire(message));
    }
  }
  return error;
}

// TLS: libpq reads the rows, all of them as text.
Status PostgresLender::ForwardText(const ShardRange& shard, const ShardSelect& select,
                                   Answer& answer) {
  PostgresConnection& connection = *holder_.connection;
  RETURN_IF_ERROR(MakeDecodable(connection, select.columns));
  const bool cut = spec_.cut() == DatasetSpec::CTID;
  for (const auto& [begin, end] : cut ? RangesOf(shard) : RowRanges{{0, 0}}) {
    const std::string sql = cut ? WithBounds(select.sql, TidText(begin), TidText(end)) : select.sql;
    if (PQsendQueryParams(connection.handle(), sql.c_str(), 0, nullptr, nullptr, nullptr, nullptr,
                          0) == 0 ||
        PQsetSingleRowMode(connection.handle()) == 0) {
      return connection.ErrorOf(nullptr, sql);
    }
    Status error;
    bool cancelled = false;
    while (const PostgresResult result = connection.Await()) {
      const ExecStatusType status = PQresultStatus(result.get());
      if (status == PGRES_SINGLE_TUPLE) {
        answer.Put(RowMessage(result.get()));
        if (answer.gone() && !std::exchange(cancelled, true)) {
          connection.Cancel(true);
        }
      } else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        error = connection.ErrorOf(result.get(), sql);
      }
    }
    RETURN_IF_ERROR(error);
  }
  return OkStatus();
}

Result<std::unique_ptr<RowStream>> OpenLentStream(PostgresConnection& connection,
                                                  const DatasetSpec& spec, const ShardRange& shard,
                                                  const std::vector<size_t>& columns,
                                                  const CopiedColumns& copied,
                                                  StreamColumns stream) {
  ASSIGN_OR_RETURN(LocalSocket socket, LocalSocket::Connect(spec.lender()));
  LentRead wanted;
  *wanted.mutable_shard() = shard;
  wanted.mutable_columns()->Assign(columns.begin(), columns.end());
  wanted.mutable_copied()->Assign(copied.columns.begin(), copied.columns.end());
  wanted.set_written(copied.purpose == CopiedColumns::Purpose::kWrite);
  wanted.mutable_binary()->Assign(copied.binary.begin(), copied.binary.end());
  RETURN_IF_ERROR(SendAll(socket.descriptor(), Framed(wanted)));
  char kind = 0;
  if (!Receive(socket.descriptor(), &kind, 1, connection.stop())) {
    RETURN_IF_ERROR(connection.CheckStop());
    return Unavailable("the process that holds the snapshot does not answer");
  }
  return OpenForwardedStream(connection, std::move(socket), kind == kTextRows, std::move(stream));
}

bool IsLent(const DatasetSpec& spec) {
  return !spec.lender().empty() && LocalSocket::Connect(spec.lender()).ok();
}

}  // namespace sluice::catalog
