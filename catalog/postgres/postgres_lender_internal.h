#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "catalog/data_source.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_local_socket_internal.h"
#include "catalog/postgres/postgres_shard_select_internal.h"

// A session that waits to change a table (ALTER TABLE, DROP TABLE) waits for the dataset that reads
// it, and whoever wants to read the table from then on waits behind that session: also the
// dataset's own further readers, for which the dataset waits in turn. The session that holds the
// snapshot already has the tables' locks; it reads for them.
namespace sluice::catalog {

class LentRead;

// The session inside the transaction that exported a dataset's snapshot.
struct SnapshotHolder {
  explicit SnapshotHolder(PostgresPool::Lease lease) : connection(std::move(lease)) {}
  Mutex mutex;
  PostgresPool::Lease connection GUARDED_BY(mutex);
};

// Lends the holder to readers of any process of this user on this machine, one shard at a time.
class PostgresLender {
 public:
  // A new name for DatasetSpec.lender.
  static std::string NewName();
  // Listens under spec.lender() until destroyed. Both must outlive it.
  static Result<std::unique_ptr<PostgresLender>> Start(SnapshotHolder& holder,
                                                       const DatasetSpec& spec);
  ~PostgresLender();
  PostgresLender(const PostgresLender&) = delete;
  PostgresLender& operator=(const PostgresLender&) = delete;

 private:
  class Answer;
  struct Reader {
    LocalSocket socket;
    std::atomic<bool> over = false;
    std::jthread thread;  // last: uses the others
  };

  PostgresLender(SnapshotHolder& holder, const DatasetSpec& spec, LocalSocket listener,
                 bool only_text);
  void Accept(const std::stop_token& stop);
  // The whole life of a reader's connection.
  void Serve(Reader& reader, const std::stop_token& stop);
  Status Lend(const LentRead& wanted, Answer& answer);
  Status Forward(const ShardRange& shard, const ShardSelect& select, Answer& answer)
      REQUIRES(holder_.mutex);
  Status ForwardText(const ShardRange& shard, const ShardSelect& select, Answer& answer)
      REQUIRES(holder_.mutex);

  SnapshotHolder& holder_;
  const DatasetSpec& spec_;
  const Schema schema_;
  const LocalSocket listener_;
  const bool only_text_;       // the holder's connection has TLS
  std::list<Reader> readers_;  // of the accepting thread
  std::jthread accepting_;     // last: uses the others
};

// The rows of a shard, read by the dataset's lender. `connection`: of the reader, for its stop and
// its notices; it must outlive the stream. Unavailable: nobody lends here.
Result<std::unique_ptr<RowStream>> OpenLentStream(PostgresConnection& connection,
                                                  const DatasetSpec& spec, const ShardRange& shard,
                                                  const std::vector<size_t>& columns,
                                                  const CopiedColumns& copied,
                                                  StreamColumns stream);
// Whether somebody lends here.
bool IsLent(const DatasetSpec& spec);

}  // namespace sluice::catalog
