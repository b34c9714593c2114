#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "catalog/sql/sql_text.h"
#include "server/pgwire/embedded/embedded_link_internal.h"
#include "server/pgwire/ready_sockets_internal.h"
#include "server/statements/statement_record.h"

namespace sluice::server::pgwire {
namespace {

// Clients choose their queries by PostgreSQL's version; SQLite's would mean nothing to them.
constexpr std::string_view kVersionNumber = "15.0 (Sluice, SQLite)";
constexpr std::string_view kVersion = "PostgreSQL 15.0 (Sluice, SQLite) on a file, 64-bit";
// Limit for bytes that one side has written and the other has not taken; above it the writer waits.
constexpr size_t kMostUntaken = size_t{1} << 20;
// As for the catalog's connections (sqlite_connection.cc).
constexpr std::chrono::seconds kLockPatience(10);
constexpr std::chrono::milliseconds kFirstLook(1);
constexpr std::chrono::milliseconds kLook(20);
constexpr int kFirstLooks = 10;

Status LockedForTooLong() {
  return Status(Code::kUnavailable, "database is locked")
      .SqlState("55P03")
      .Hint(
          "another connection, or an open transaction of another session, holds the write lock: "
          "COMMIT or ROLLBACK it");
}

// Puts a session's statements on record.
class AuditedStatements final : public EmbeddedServer::Observer {
 public:
  AuditedStatements(Audit& audit, AuditedClient client)
      : audit_(audit), client_(std::move(client)) {}

  Status Begins(std::string_view sql) override {
    since_ = clock_.Now();
    ASSIGN_OR_RETURN(statement_, audit_.Begins(client_, sql, catalog::Dialect::kSqlite));
    return OkStatus();
  }
  void Ends(const Status& outcome, std::string_view tag, int64_t rows,
            const std::vector<WireColumn>& columns) override {
    StatementUse use;
    use.tag = tag;
    use.rows_sent = rows;
    for (const WireColumn& column : columns) {
      use.columns.push_back(RecordedColumn(column.name, catalog::Dialect::kSqlite));
    }
    audit_.Ends(statement_, client_, "", outcome, SecondsBetween(since_, clock_.Now()), use);
  }

 private:
  Audit& audit_;
  const AuditedClient client_;
  const SteadyClock clock_;
  TimePoint since_{0};
  int64_t statement_ = 0;
};

std::vector<std::string> OwnSettings(const SessionSettings& settings) {
  constexpr std::string_view kOwn = "sluice.";
  std::vector<std::string> own;
  for (const auto& [name, value] : settings.all()) {
    if (name.starts_with(kOwn)) {
      const bool bare =
          !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
      own.push_back(
          fmt::format("SET {} = {}", name,
                      bare ? value : catalog::QuoteText(value, catalog::Dialect::kSqlite)));
    }
  }
  return own;
}

}  // namespace

// The server belongs to the thread that works on it, or to the I/O thread if none does. Everything
// else belongs to the I/O thread.
struct EmbeddedLink::Engine : std::enable_shared_from_this<EmbeddedLink::Engine> {
  Engine(EmbeddedDatabase& home, std::string of_user, std::unique_ptr<EmbeddedServer> embedded)
      : database(home),
        user(std::move(of_user)),
        server(std::move(embedded)),
        pause(home.context()) {}

  using Work = std::function<void(EmbeddedServer&)>;
  // What to do with work when it gets a thread.
  enum class Instead { kWork, kCancel, kNothing };

  // Starts a thread on the pending work, unless one is at it already.
  void Go() {
    if (working || closed) {
      return;
    }
    if (!tasks.empty() && in.empty() && state == EmbeddedServer::State::kIdle) {
      Work task = std::move(tasks.front());
      tasks.erase(tasks.begin());
      return Start(std::move(task), false);
    }
    const bool more = state == EmbeddedServer::State::kMore || retry;
    if (state == EmbeddedServer::State::kEnded || (in.empty() && !more) ||
        (state == EmbeddedServer::State::kLocked && !retry) || out.size() - taken > kMostUntaken) {
      return;
    }
    retry = false;
    Start([bytes = std::exchange(in, {})](EmbeddedServer& at_work) { at_work.Take(bytes); }, true);
    if (sent_then) {
      ReadySockets::Post(database.context(),
                         [then = std::exchange(sent_then, nullptr)] { then(true); });
    }
  }

  void Start(Work task, bool works) {
    working = true;
    NotSilent();
    instead = Instead::kWork;
    server->session().ForgetInterrupt();
    ticket = database.Run(
        user,
        [self = shared_from_this(), task = std::move(task), works]() -> std::function<void()> {
          std::string said;
          EmbeddedServer::State after = EmbeddedServer::State::kIdle;
          if (self->instead == Instead::kNothing) {
            return [self] { self->Worked({}, EmbeddedServer::State::kEnded); };
          }
          const Status done = Guarded("serving an embedded session", [&] {
            if (works && self->instead == Instead::kCancel) {
              self->server->CancelNext();
            }
            task(*self->server);
            if (works) {
              after = self->server->Work(&said);
            }
            return OkStatus();
          });
          if (!done.ok()) {
            AppendError(said, done, {}, 0, "FATAL");
            after = EmbeddedServer::State::kEnded;
          }
          return [self, said = std::move(said), after]() mutable {
            self->Worked(std::move(said), after);
          };
        });
  }

  // Interrupts the work that runs; of what waits for a thread, only `then` is done.
  void Interrupt(Instead then) {
    if (!working) {
      return;
    }
    if (database.Hurry(user, ticket)) {
      instead = then;
    } else {
      server->session().Interrupt();
    }
  }

  // Called while no thread works on the server: from here on the client's silence counts.
  void SeeSilence() {
    const bool waits = state == EmbeddedServer::State::kLocked;
    const auto most =
        waits || state == EmbeddedServer::State::kEnded ? std::nullopt : server->MayKeepLock();
    if (most.has_value()) {
      database.silent_writer = {this, std::chrono::steady_clock::now() + *most, [this] {
                                  Start([](EmbeddedServer& at_work) { at_work.EndSilent(); }, true);
                                }};
    }
  }
  void NotSilent() {
    if (database.silent_writer.has_value() && database.silent_writer->session == this) {
      database.silent_writer.reset();
    }
  }

  void Worked(std::string said, EmbeddedServer::State after) {
    working = false;
    if (closed) {
      return;
    }
    if (taken == out.size()) {
      out = std::move(said);
      taken = 0;
    } else {
      out += said;
    }
    const bool was_locked = state == EmbeddedServer::State::kLocked;
    state = after;
    if (state == EmbeddedServer::State::kLocked) {
      WaitForLock(was_locked);
    }
    if (read_then && (taken < out.size() || state == EmbeddedServer::State::kEnded)) {
      std::exchange(read_then, nullptr)(true);
    }
    Go();
    if (!working && !closed) {
      SeeSilence();
    }
  }

  void WaitForLock(bool again) {
    const auto now = std::chrono::steady_clock::now();
    if (!again) {
      looks = 0;
      patience = now + kLockPatience;
    }
    if (cancelled || now >= patience) {
      server->StopWaiting(std::exchange(cancelled, false)
                              ? Cancelled("canceling statement due to user request")
                              : LockedForTooLong());
      retry = true;
      return;
    }
    if (database.silent_writer.has_value() && now >= database.silent_writer->until) {
      const auto end = std::move(database.silent_writer->end);
      end();
    }
    pause.expires_after(++looks <= kFirstLooks ? kFirstLook : kLook);
    pause.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && !self->closed) {
        self->retry = true;
        self->Go();
      }
    });
  }

  EmbeddedDatabase& database;
  const std::string user;
  const std::unique_ptr<EmbeddedServer> server;
  FairTurns::Ticket ticket = 0;
  boost::asio::steady_timer pause;
  std::chrono::steady_clock::time_point patience;  // limit for waiting for a lock
  int looks = 0;
  EmbeddedServer::State state = EmbeddedServer::State::kIdle;
  bool working = false;
  Instead instead = Instead::kWork;  // not written while a thread has the work
  bool retry = false;
  bool cancelled = false;
  bool closed = false;
  std::string in;
  std::string out;
  size_t taken = 0;  // bytes of out that were taken
  std::vector<Work> tasks;
  std::function<void(bool ok)> read_then;
  std::function<void(bool ok)> sent_then;
};

void EmbeddedLink::Open(EmbeddedDatabase& database, const StartupMessage& startup,
                        const AuditedClient& client, Opened then) {
  database.Run(
      EmbeddedDatabase::kShort,
      [&database, startup, client, memory = database.MemoryOf(std::string(startup.Find("user"))),
       then = std::move(then)]() -> std::function<void()> {
        const catalog::ChargesMemory charges(memory.get());
        catalog::EmbeddedSession::Options options;
        options.user = startup.Find("user");
        options.database = startup.Find("database");
        options.database = options.database.empty() ? options.user : options.database;
        options.other_users = database.Users();
        std::erase(options.other_users, options.user);
        options.version = kVersion;
        options.version_number = kVersionNumber;
        Result<std::unique_ptr<catalog::EmbeddedSession>> session =
            catalog::OpenEmbeddedSession(database.url(), options, database.catalogs());
        if (!session.ok()) {
          return [then, status = session.status()] { then(status); };
        }
        SessionSettings settings(std::string(kVersionNumber), options.user, startup.parameters);
        auto parameters = settings.Reported();
        auto engine = std::make_shared<Engine>(
            database, options.user,
            std::make_unique<EmbeddedServer>(
                *std::move(session), std::move(settings),
                std::make_unique<AuditedStatements>(database.audit(), client), memory));
        return [then, engine = std::move(engine), parameters = std::move(parameters)] {
          then(std::unique_ptr<EmbeddedLink>(new EmbeddedLink(engine, parameters)));
        };
      });
}

EmbeddedLink::EmbeddedLink(std::shared_ptr<Engine> engine,
                           std::vector<std::pair<std::string, std::string>> parameters)
    : engine_(std::move(engine)), parameters_(std::move(parameters)) {}

EmbeddedLink::~EmbeddedLink() {
  EmbeddedLink::Close();
}

ssize_t EmbeddedLink::Read(char* bytes, size_t size) {
  Engine& engine = *engine_;
  const size_t part = std::min(size, engine.out.size() - engine.taken);
  if (part == 0) {
    return engine.state == EmbeddedServer::State::kEnded && !engine.working ? -1 : 0;
  }
  std::copy_n(engine.out.data() + engine.taken, part, bytes);
  engine.taken += part;
  if (engine.taken == engine.out.size()) {
    engine.out.clear();
    engine.taken = 0;
  }
  engine.Go();
  return static_cast<ssize_t>(part);
}

bool EmbeddedLink::drained() const {
  return engine_->taken == engine_->out.size();
}

bool EmbeddedLink::Write(std::string_view bytes) {
  engine_->in += bytes;
  engine_->Go();
  return !engine_->closed;
}

size_t EmbeddedLink::unsent() const {
  return engine_->in.size() > kMostUntaken ? engine_->in.size() : 0;
}

void EmbeddedLink::WaitReadable(std::function<void(bool ok)> then) {
  if (!drained() || engine_->state == EmbeddedServer::State::kEnded) {
    ReadySockets::Post(engine_->database.context(), [then = std::move(then)] { then(true); });
    return;
  }
  engine_->read_then = std::move(then);
}

void EmbeddedLink::WaitSent(std::function<void(bool ok)> then) {
  engine_->sent_then = std::move(then);
  engine_->Go();
}

void EmbeddedLink::Close() {
  Engine& engine = *engine_;
  if (std::exchange(engine.closed, true)) {
    return;
  }
  engine.NotSilent();
  engine.pause.cancel();
  engine.read_then = nullptr;
  engine.sent_then = nullptr;
  engine.tasks.clear();
  engine.Interrupt(Engine::Instead::kNothing);
}

void EmbeddedLink::Cancel() {
  if (engine_->state == EmbeddedServer::State::kLocked) {
    engine_->cancelled = true;
  } else {
    engine_->Interrupt(Engine::Instead::kCancel);
  }
}

void EmbeddedLink::LetOthersWork(std::string statement, Let then) {
  engine_->tasks.push_back([statement = std::move(statement), then = std::move(then),
                            &context = engine_->database.context()](EmbeddedServer& server) {
    const Status status = server.LetOthersWork(statement);
    ReadySockets::Post(context, [then, status, settings = OwnSettings(server.settings())] {
      then(status, settings);
    });
  });
  engine_->Go();
}

}  // namespace sluice::server::pgwire
