#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/embedded_memory.h"
#include "catalog/embedded_session.h"
#include "server/pgwire/embedded/binary_copy.h"
#include "server/pgwire/embedded/cells.h"
#include "server/pgwire/embedded/copy_format.h"
#include "server/pgwire/embedded/session_settings.h"
#include "server/pgwire/embedded/session_statement.h"
#include "server/pgwire/kept_bytes.h"
#include "server/pgwire/messages.h"

namespace sluice::server::pgwire {

// The server's end of one PostgreSQL connection, from the first ReadyForQuery on, over an embedded
// database: bytes in, bytes out; no socket, clock or thread. It pauses when it has enough output or
// a lock is in the way, and resumes where it paused. Belongs to one thread at a time.
//
// Transactions are PostgreSQL's: an error fails the block, the statements of one Query, or up to a
// Sync, are one transaction; COMMIT of a failed block rolls it back.
class EmbeddedServer {
 public:
  // Hears of each statement; one that cannot be parsed, too.
  class Observer {
   public:
    virtual ~Observer() = default;
    // An error: the statement does not run.
    virtual Status Begins(std::string_view sql) = 0;
    // `rows`: that it has sent; of a portal, by this Execute.
    virtual void Ends(const Status& outcome, std::string_view tag, int64_t rows,
                      const std::vector<WireColumn>& columns) = 0;
  };

  // `observer`, `memory`: may be null.
  EmbeddedServer(std::unique_ptr<catalog::EmbeddedSession> session, SessionSettings settings,
                 std::unique_ptr<Observer> observer = nullptr,
                 std::shared_ptr<catalog::MemoryAccount> memory = nullptr);

  enum class State {
    kIdle,    // everything received is answered
    kMore,    // there is enough output for now
    kLocked,  // another connection holds a lock: Work tries again
    kEnded,   // the client has said goodbye, or sent a malformed message
  };
  void Take(std::string_view bytes) { held_ += bytes; }
  // Appends output.
  State Work(std::string* out);
  // Ends the statement that waits for a lock with this error.
  void StopWaiting(Status why) { gives_up_ = std::move(why); }

  // The next that Work does for a statement is to fail it (57014), after which it pauses.
  void CancelNext() { cancel_next_ = true; }

  // For how long others that wait for the write lock let this session, which is idle, keep it;
  // nullopt: it does not have it.
  std::optional<std::chrono::milliseconds> MayKeepLock() const;
  // The next that Work does is to roll the transaction back and to end the session (25P03).
  void EndSilent() { ends_silent_ = true; }

  // Call before other connections read and write for a statement of ours: the session releases
  // locks that it holds only for reading. 25001: it has written; 0A000: the statement names
  // something that only this session sees.
  Status LetOthersWork(std::string_view statement);

  const SessionSettings& settings() const { return settings_; }
  catalog::EmbeddedSession& session() { return *session_; }

 private:
  // Output after which the client has to take some before more is written.
  static constexpr size_t kEnoughSaid = size_t{256} << 10;
  enum class Block { kNone, kImplicit, kExplicit, kFailed };

  // Where rows come from; releases its locks when destroyed.
  struct Source {
    std::shared_ptr<catalog::EmbeddedStatement> statement;
    bool begun = false;
    bool done = false;
    explicit Source(std::shared_ptr<catalog::EmbeddedStatement> from)
        : statement(std::move(from)) {}
    ~Source() { statement->Reset(); }
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
  };
  struct Prepared {
    std::string sql;                // "": an empty query
    std::vector<uint32_t> types;    // of its parameters
    std::vector<uint32_t> guessed;  // inferred types, if the client gave none and asked for them
    std::shared_ptr<catalog::EmbeddedStatement> statement;
    std::optional<SessionStatement> session;
    bool of_catalog = false;  // it reads the catalog, which may have changed by the next time
    KeptBytes::Charge charge = {};
  };
  struct Portal {
    std::string sql;
    std::shared_ptr<Source> source;
    std::optional<SessionStatement> session;
    std::vector<WireColumn> columns;
    std::vector<uint16_t> formats;
    bool executed = false;
    KeptBytes::Charge charge = {};
  };
  struct Cursor {
    std::shared_ptr<Source> source;
    bool hold = false;
    KeptBytes::Charge charge = {};
  };
  // A running statement that returns rows, or their number.
  struct Running {
    std::shared_ptr<Source> source;
    std::string verb;  // of CommandComplete's tag
    std::vector<WireColumn> columns = {};
    bool described = false;  // simple protocol: the description waits for the first rows
    bool silent = false;     // MOVE
    bool suspends = false;   // suspended at its limit, for a portal
    int64_t limit = -1;
    int64_t rows = 0;
    std::optional<SessionStatement::CopyOptions> copy = {};
    std::vector<std::vector<KeptCell>> first = {};
    size_t first_bytes = 0;
  };
  struct Copying {
    CopyReader reader;
    std::shared_ptr<catalog::EmbeddedStatement> insert;
    std::vector<uint32_t> types;
    int64_t rows = 0;
    std::optional<BinaryCopyReader> binary = {};  // instead of `reader`
  };

  // The loop.
  State WorkOn();
  bool Stopped(const Status& status);
  std::optional<std::pair<char, std::string_view>> NextMessage();
  void Consume(size_t bytes);
  Status Handle(char type, std::string_view body);
  Status HandleCopy(char type, std::string_view body);
  void Fail(const Status& status);
  void Ready();
  // Tells the observer, once for each statement: one that waits for a lock begins again.
  Status Begins(std::string_view sql);
  void Ends(const Status& outcome, std::string_view tag, const Running* running = nullptr);
  char StatusByte() const;

  // Transactions.
  Status BeginBlock(Block kind);
  Status CommitBlock();
  void RollBackBlock();
  void EndPortals();
  Status CheckBlock(const SessionStatement* statement) const;
  Status CheckWrites(const catalog::EmbeddedStatement& statement) const;

  // A script of Query.
  Status BeginScript(std::string_view body);
  Status NextOfScript();
  Status RunOne(std::string_view sql);

  // Of what stays open from one message to the next.
  Status CheckHeld();
  void Forget(const std::shared_ptr<Source>& source);

  // Rows.
  Status RunOn();
  Status Emit();
  void DescribeFirst();
  void AppendRow(const std::vector<KeptCell>& row);
  Status AppendCurrentRow();
  Result<catalog::EmbeddedCell> CellToCopy(size_t column);
  size_t BeginRow(size_t cells);
  void EndRow(size_t begin);
  void Complete();

  // Statements of the session.
  Status RunSession(const SessionStatement& statement, std::string_view sql,
                    const std::vector<uint16_t>& formats);
  Status RunTransaction(const SessionStatement& statement);
  Status RunCursor(const SessionStatement& statement, std::string_view sql,
                   const std::vector<uint16_t>& formats);
  Status RunPrepared(const SessionStatement& statement, std::string_view sql,
                     const std::vector<uint16_t>& formats);
  Status Show(const SessionStatement& statement, const std::vector<uint16_t>& formats);
  Status CopyOut(const SessionStatement& statement, std::string_view sql);
  Status CopyIn(const SessionStatement& statement);
  Status InsertCopied(const CopyRow& row);
  Status InsertCopied(const BinaryCopyReader::Fields& fields);
  Status CheckCopied(size_t fields) const;
  Status InsertBound();
  void Done(std::string_view tag);
  void Warn(std::string_view sqlstate, std::string_view message);
  Status Begin(Running running, const std::vector<uint16_t>& formats);

  // The extended protocol.
  Status Parse(std::string_view body);
  Status Bind(std::string_view body);
  Status Describe(std::string_view body);
  Status Execute(std::string_view body);
  Status Close(std::string_view body);
  Status Sync();
  Status EnterImplicit(std::string_view sql);
  Result<std::vector<WireColumn>> ColumnsOf(const SessionStatement& statement,
                                            const std::vector<uint16_t>& formats);
  bool NextIsSync() const;

  const std::unique_ptr<catalog::EmbeddedSession> session_;
  SessionSettings settings_;
  const std::unique_ptr<Observer> observer_;
  const std::shared_ptr<catalog::MemoryAccount> memory_;  // of the user, all sessions together
  bool observed_ = false;                                 // the statement that runs
  std::string parsing_;                                   // by Parse
  std::string held_;
  size_t at_ = 0;  // offset in held_
  std::string* out_ = nullptr;
  catalog::CellCopies copies_;  // in out_
  bool ended_ = false;
  std::optional<Status> gives_up_;
  bool cancel_next_ = false;
  bool ends_silent_ = false;

  Block block_ = Block::kNone;
  bool read_only_ = false;  // of the block
  bool skips_ = false;      // everything up to Sync
  bool in_script_ = false;
  std::string script_;  // text that places in errors refer to
  std::vector<Span> statements_;
  size_t next_ = 0;
  int64_t place_ = 0;  // place of the running statement

  std::optional<Running> running_;
  std::optional<Copying> copying_;
  KeptBytes kept_bytes_;  // by the following
  std::map<std::string, std::shared_ptr<Prepared>, std::less<>> prepared_;
  std::map<std::string, Portal, std::less<>> portals_;
  std::map<std::string, Cursor, std::less<>> cursors_;
};

}  // namespace sluice::server::pgwire
