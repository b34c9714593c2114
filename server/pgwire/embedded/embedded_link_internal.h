#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "server/pgwire/byte_link_internal.h"
#include "server/pgwire/embedded/embedded_server.h"
#include "server/pgwire/embedded/fair_turns.h"
#include "server/pgwire/messages.h"
#include "server/statements/audit.h"

namespace sluice::server::pgwire {

// The embedded database behind a door, and the threads that its statements run on: an idle session
// has none, nor has one that waits for its client or for a lock. Belongs to the I/O thread.
class EmbeddedDatabase {
 public:
  // `password_file`: "" where nobody is asked for a password.
  // `audit` outlives it.
  EmbeddedDatabase(boost::asio::io_context& context, std::string url, std::string password_file,
                   Audit& audit);
  // Waits for running statements; ending their sessions interrupts them.
  ~EmbeddedDatabase();

  boost::asio::io_context& context() { return context_; }
  // Whose turns logins have, and what ends at once: they wait for no statement.
  static constexpr const char* kShort = "";
  // `work` runs on a thread, as soon as this user gets one; what it returns then runs on the I/O
  // thread.
  using Work = std::function<std::function<void()>()>;
  FairTurns::Ticket Run(const std::string& user, Work work);
  // Soon, but not at once, it waits behind nobody's statements: for what takes a moment. False: it
  // does not wait.
  bool Hurry(const std::string& user, FairTurns::Ticket ticket);
  const std::string& url() const { return url_; }
  Audit& audit() const { return audit_; }
  // Who may log in; nobody where the file cannot be read any more.
  std::vector<std::string> Users() const;
  const std::shared_ptr<catalog::SharedCatalogs>& catalogs() const { return catalogs_; }
  // Number of the next session, by which its client identifies it.
  uint32_t NextProcess() { return ++last_process_; }

  // Of all sessions of a user.
  std::shared_ptr<catalog::MemoryAccount> MemoryOf(const std::string& user);

  // A session that holds the write lock while its client is silent: `until` then it may, if others
  // wait for the lock. At most one session holds it.
  struct SilentWriter {
    const void* session;
    std::chrono::steady_clock::time_point until;
    std::function<void()> end;
  };
  std::optional<SilentWriter> silent_writer;

 private:
  void RunNext();

  boost::asio::io_context& context_;
  const std::string url_;
  const std::string password_file_;
  Audit& audit_;
  const std::shared_ptr<catalog::SharedCatalogs> catalogs_ = catalog::MakeSharedCatalogs();
  std::map<std::string, std::weak_ptr<catalog::MemoryAccount>> memory_;
  FairTurns turns_;
  boost::asio::thread_pool threads_;
  uint32_t last_process_ = 0;
};

// A server in this process (EmbeddedServer) as a connection. Belongs to the I/O thread.
class EmbeddedLink final : public ByteLink {
 public:
  // Calls `then` once, with a link that is ready for a first statement, or with the error.
  using Opened = std::function<void(Result<std::unique_ptr<EmbeddedLink>>)>;
  // `client`: whose statements are recorded.
  static void Open(EmbeddedDatabase& database, const StartupMessage& startup,
                   const AuditedClient& client, Opened then);
  ~EmbeddedLink() override;

  // The parameters that it reports at the start.
  const std::vector<std::pair<std::string, std::string>>& parameters() const { return parameters_; }

  ssize_t Read(char* bytes, size_t size) override;
  bool drained() const override;
  bool Write(std::string_view bytes) override;
  size_t unsent() const override;
  void WaitReadable(std::function<void(bool ok)> then) override;
  void WaitSent(std::function<void(bool ok)> then) override;
  void EndWriting() override { Close(); }
  void Close() override;

  // Cancels whatever runs (57014).
  void Cancel();
  // Call before a statement of ours reads and writes through connections of its own
  // (LetOthersWork). `then` also receives the session's SET values of Sluice's settings, as
  // statements.
  using Let = std::function<void(const Status& status, std::vector<std::string> settings)>;
  void LetOthersWork(std::string statement, Let then);

 private:
  struct Engine;
  EmbeddedLink(std::shared_ptr<Engine> engine,
               std::vector<std::pair<std::string, std::string>> parameters);

  const std::shared_ptr<Engine> engine_;
  const std::vector<std::pair<std::string, std::string>> parameters_;
};

}  // namespace sluice::server::pgwire
