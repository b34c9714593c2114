#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/work_queue.h"
#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/channel_internal.h"
#include "server/pgwire/client_line.h"
#include "server/pgwire/clients_before_login.h"
#include "server/pgwire/conversation.h"
#include "server/pgwire/desk_internal.h"
#include "server/pgwire/door.h"
#include "server/pgwire/embedded/embedded_link_internal.h"
#include "server/pgwire/login_work.h"
#include "server/pgwire/role_bytes.h"
#include "server/pgwire/scram.h"
#include "server/pgwire/statement_service.h"
#include "server/pgwire/ticket_desk.h"
#include "server/pgwire/tls_context_internal.h"
#include "server/pgwire/upstream.h"
#include "server/pgwire/verifiers.h"
#include "server/statements/audit.h"
#include "server/statements/login_throttle.h"
#include "server/statements/role_use.h"

namespace sluice::server::pgwire {

class WireSession;
class Borrower;

// Of a client for its login, and of the server for its answer to the password.
inline constexpr std::chrono::seconds kLoginPatience(10);

// State shared by all sessions of a door. Belongs to the I/O thread.
struct SessionHouse {
  boost::asio::io_context& context;
  StatementService& service;
  LoginThrottle& throttle;
  RoleUse& roles;
  Audit& audit;
  const Upstream upstream;
  const ClientLogin client_login;
  Verifiers* verifiers = nullptr;  // kScram only
  ServerCertificate& certificate;
  SSL_CTX* client_tls = nullptr;  // for connections to the server behind it
  std::vector<char> buffer;       // what is read is processed before the next read
  WorkQueue& routes;              // finds those of long texts
  LoginWork& login_work;
  std::function<Status()> admits;  // Door::Options
  ClientsBeforeLogin before_login = ClientsBeforeLogin();
  RoleBytes role_bytes;
  // By the process number that the client knows for its back end.
  std::map<uint32_t, WireSession*> sessions = {};
  // By the secret of the statement that may borrow the session's back end.
  std::map<std::string, WireSession*> loans = {};  // by Sha256Of(token)
  catalog::SessionLink link = {};                  // where statements borrow it; without the secret
  TicketDesk* tickets = nullptr;                   // kScram with a server only
  EmbeddedDatabase* embedded = nullptr;            // instead of a server
};

// Gives a visitor whose token is a session's the session's back end; cancels what runs on one.
void LendTo(SessionHouse& house, Visitor visitor);
void CancelLoan(SessionHouse& house, uint32_t process, uint32_t key);

// One client of the door, from its first byte to its last. Belongs to the I/O thread, and lives as
// long as something waits for it.
class WireSession final : public Conversation::Host,
                          public std::enable_shared_from_this<WireSession> {
 public:
  // `local`: the client is on this machine. `address`: the client's, without the port.
  WireSession(SessionHouse& house, int descriptor, bool local, std::string address);
  ~WireSession() override;

  void Start();
  // A client that knows the key wants to cancel the running statement. `then` is called when it can
  // no longer hit a later one, possibly before this returns.
  void Cancel(std::function<void()> then);
  bool HasKey(uint32_t key) const { return key == key_; }
  // Ends the session with the server's error for a shutdown.
  void Shutdown();

  // A statement of this session wants to use its back end.
  std::string Greeting() const;
  void Lend(std::shared_ptr<Borrower> borrower);
  void FromBorrower(std::string_view bytes);
  void BorrowerGone(const Borrower* borrower);
  void BorrowerHasRoom();
  // The back end is sent nothing more until it has taken, or may be sent, what waits for it.
  bool writing_server() const { return writing_server_ || !after_cancel_.empty(); }

  // Conversation::Host
  void ToClient(std::string_view bytes) override;
  void ToServer(std::string_view bytes) override;
  void ToBorrower(std::string_view bytes) override;
  void CancelServer() override;
  void Run(const OwnStatement& statement, bool transaction) override;
  void Describe(const OwnStatement& statement, bool transaction) override;
  void Resume(uint32_t max_rows) override;
  void GiveUp() override;
  void FindRoute(std::string sql, std::set<std::string, std::less<>> prepared) override;
  Status CheckSetting(std::string_view set) override;
  Status MayKeep(size_t bytes) override;
  void Close() override;

 private:
  enum class State {
    kStartup,
    kPassword,
    kVerifier,  // is being read
    kScramFirst,
    kScramFinal,
    kTurn,  // waits for it, because of other logins
    kConnecting,
    kTalking,
    kClosed,
  };

  // The client's side.
  void WaitForClient();
  void ReadClient();
  void ShakeHands();
  void WatchClient();
  void TakeFromClient(std::string_view bytes);
  void TakeLogin();
  bool TakeStartup();
  std::optional<std::string> TakeAnswer();
  bool AskForPassword();
  bool TakePassword();
  void AskForVerifier();
  void AskForScram(const Result<ScramVerifier>& verifier);
  bool TakeScram();
  Result<std::string> TakeScramFirst(std::string_view body);
  void CountFailure(const Status& why);
  // An error: the session must not begin, or `outcome` itself.
  Status RecordLogin(const Status& outcome, int64_t backend = 0) const;
  AuditedClient AsAudited() const;
  void Refuse(const Status& status);
  void RefuseInWords(const std::string& error);
  // Counts the session, and records its login. An error: it must not begin.
  Status Admitted(bool limited, int64_t backend);
  void AwaitTurn();
  // The server's.
  void Connect();
  void Connected(BackendConnection::Outcome outcome);
  struct FirstWords {
    uint32_t process = 0;
    std::string messages;  // the back end's parameters, for the client
    std::map<std::string, std::string> parameters;
  };
  void Ready(FirstWords greeting);
  void OpenEmbedded();
  void CancelBack(std::function<void()> then);
  void SendAfterCancel();
  // Prepares the session for a statement of ours; calls `then`, possibly before it returns.
  using OwnMayRun = std::function<void(const Status& status, StatementRequest request)>;
  void BeforeOwn(StatementRequest request, OwnMayRun then);
  void WaitForServer();
  void ReadServer();
  void ServerGone();
  void LetServerGo();

  void SetDeadline(std::chrono::seconds from_now);
  void SentToClient(bool ok);
  StatementRequest RequestOf(const OwnStatement& statement, bool transaction);
  void EndLoan();
  void LowerKept();

  SessionHouse& house_;
  const bool local_;
  State state_ = State::kStartup;
  uint64_t before_login_ = 0;  // ClientsBeforeLogin
  LoginThrottle::Attempt attempt_;
  uint64_t in_queue_ = 0;            // of the throttle
  bool password_under_way_ = false;  // the server has it, and has not answered
  Channel client_;
  std::unique_ptr<ByteLink> server_;
  EmbeddedLink* embedded_ = nullptr;  // server_, if it is embedded
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer watch_;
  std::string held_;  // from the client, before it has logged in
  StartupMessage startup_;
  SessionLogin login_;
  std::optional<std::string> end_point_;  // of the certificate that this client has seen
  std::unique_ptr<ScramServer> scram_;
  std::string server_key_;  // of the verifier
  std::optional<RoleUse::Session> counted_;
  // Since it has logged in.
  std::optional<RoleBytes::Charge> unfinished_;
  std::optional<RoleBytes::Charge> kept_;
  BackendSecret secret_;  // until it has logged in
  std::shared_ptr<BackendConnection> backend_;
  std::unique_ptr<Conversation> conversation_;
  uint32_t process_ = 0;  // the back end's
  uint32_t backend_key_ = 0;
  uint32_t key_ = 0;  // what the client knows instead
  bool reading_client_ = false;
  bool reading_server_ = false;
  bool writing_client_ = false;
  bool writing_server_ = false;
  int cancels_ = 0;           // requests to the server that it has not acted on yet
  std::string after_cancel_;  // for the back end, held back so that no such request hits it
  // The statement that runs.
  std::shared_ptr<ClientLine> line_;
  std::stop_source stop_;
  std::stop_source gone_;
  std::string token_;
  std::shared_ptr<Borrower> borrower_;
  size_t to_take_ = 0;  // bytes of it that have not been sent to the client yet
};

}  // namespace sluice::server::pgwire
