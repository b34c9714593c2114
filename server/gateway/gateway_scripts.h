#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "catalog/source_url.h"
#include "executor/cluster.h"
#include "executor/executor.h"
#include "server/config/config.h"
#include "server/gateway/housekeeper_internal.h"
#include "server/gateway/lost_jobs_internal.h"
#include "server/statements/session.h"
#include "server/statements/source_pool.h"
#include "server/statements/statement.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::elastic {
class MetricsText;
}

namespace sluice::server {

// The scripts that a gateway runs: admits them, gives each a session, and cancels it when its
// client goes away or the gateway ends. All doors run through it. Thread-safe.
class GatewayScripts {
 public:
  GatewayScripts(std::unique_ptr<SourcePool> sources, std::unique_ptr<executor::Cluster> cluster,
                 const Config& config);
  ~GatewayScripts();

  SourcePool& sources() const { return *sources_; }
  // The source's URL, without secrets and the operator's files.
  std::string served_url() const { return catalog::WithoutPasswordFile(sources_->url()); }
  // Whether clients' data is encrypted on its way, even from other machines.
  bool encrypted() const { return encrypted_; }
  // Before anybody is let in without a login: an error if there are users by now.
  Status Admits() const { return sources_->auth() == Auth::kTrust ? still_trusted_() : OkStatus(); }

  struct Script {
    const std::string& text;
    Login login;
    std::string user;  // that its jobs show where no login is required; "": the gateway's own
    const std::vector<std::string>* settings = nullptr;  // SET statements to run beforehand
    // The client's own session of the database; null: it has none.
    const catalog::SessionLink* database_session = nullptr;
    bool in_transaction = false;  // that session is inside a transaction block
    std::function<void(const SessionSettings&)> on_settings = {};
    // The client has an open transaction, which this script does not take part in.
    bool beside_transaction = false;
    std::string address = {};  // the client's, for the record; "": the login's
    std::string door = "grpc";
  };
  struct Client {
    // Whether the client has disconnected (rather than cancelled). Called repeatedly, from other
    // threads, while the script runs.
    std::function<bool()> is_gone;
    // The same for a door that notices at once.
    std::stop_token stop = {};
    // Called with the script's outcome before its place is given to another script.
    std::function<void(const Status& status)> ended;
  };
  // The columns of a script with one statement, see DescribeScript.
  Result<Schema> Describe(const Script& script, const Client& client);
  // An exception in the script becomes its error.
  Status Run(const Script& script, const Client& client, executor::ResultSink& sink,
             const StatementObserver& observer);

  // A call that stands for a statement, on record as such: `work` runs with the user's catalog.
  Status Call(const Login& login, std::string_view statement, int64_t job,
              const std::function<Status(catalog::Catalog& catalog)>& work);

  // A user has logged in: jobs that waited for this login continue. Never waits; `login` is kept
  // only until they do.
  void LoggedIn(const Login& login) { lost_jobs_->LoggedIn(login); }

  // A client that takes longer than this for one message is cut off.
  double write_seconds() const { return write_seconds_; }

  // Adds what Prometheus reads about the scripts.
  void AddMetrics(elastic::MetricsText& text) EXCLUDES(mutex_);

  // Of so many places for scripts, how many one role may take: fewer, so that none keeps the others
  // out.
  static int64_t PlacesOfRole(int64_t places) { return places - places / 4; }

  // The number of scripts that may wait; each occupies a thread of its door.
  static constexpr size_t kMaxWaiting = 64;

  // Stops the running scripts; waiting and later ones are refused.
  void Shutdown();
  // Until those have ended and told their clients so, but not for longer than `most`.
  void AwaitEnds(std::chrono::steady_clock::duration most) EXCLUDES(mutex_);

 private:
  struct Running {
    const Client* client = nullptr;
    std::string role;  // that logged in; "": where no login is required
    std::stop_source stop;
  };
  struct Waiting {
    const Client* client = nullptr;
    std::string role;
  };
  // Given back on every way out.
  class Place {
   public:
    Place(GatewayScripts& scripts, std::list<Running>::iterator at) : scripts_(&scripts), at_(at) {}
    Place(Place&& other) noexcept
        : scripts_(std::exchange(other.scripts_, nullptr)), at_(other.at_) {}
    Place& operator=(Place&&) = delete;
    ~Place();
    std::stop_token stop() const { return at_->stop.get_token(); }
    void RequestStop() const { at_->stop.request_stop(); }

   private:
    GatewayScripts* scripts_;
    std::list<Running>::iterator at_;
  };

  // Admits the script. If there is no place for it, a script of plain SQL waits its turn, and any
  // other is refused.
  Result<Place> Admit(const Script& script, const Client& client) EXCLUDES(mutex_);
  // Whether a script of the role may start beside those that run and those that wait before it.
  bool HasRoom(const std::string& role) REQUIRES(mutex_);
  bool RoleHasRoom(const std::string& role) REQUIRES(mutex_);
  bool IsTurnOf(const Client& client) REQUIRES(mutex_);
  Status AwaitTurn(const Script& script, const Client& client) EXCLUDES(mutex_);
  Status NoRoom(const std::string& role) REQUIRES(mutex_);
  // Admits the script, gives it a session, and does `work` in that.
  using Work = std::function<Status(Session& session, SourcePool::Lease& source)>;
  Status InSession(const Script& script, const Client& client, const Work& work);
  Status InSessionAdmitted(const Script& script, const Client& client, const std::stop_token& stop,
                           const Work& work);
  // The role that has logged in; "": no login is required.
  std::string RoleOf(const Script& script) const;
  // The role that the script's use counts for; "": it has no limits.
  std::string CountedRole(const Script& script, const SourcePool::Lease& source) const;
  // A session of its own, unless the client has one at its door.
  Result<RoleUse::Session> BeginSession(const Script& script, const SourcePool::Lease& source);
  // As the record names the script's client.
  AuditedClient ClientOf(const Script& script) const;
  bool IsShutDown() EXCLUDES(mutex_);
  void WatchClients(const std::stop_token& end);
  void CancelForGoneClients();

  const std::unique_ptr<SourcePool> sources_;
  const std::string user_;
  const bool encrypted_;
  const std::function<Status()> still_trusted_;
  const std::string checkpoint_root_;
  const std::string export_root_;
  const planner::PodsAllowed pods_allowed_;
  const std::string python_;  // the program; "": models in Python are not compiled
  const std::string room_;    // "": none
  const std::shared_ptr<executor::ScorerCache> scorers_ = executor::MakeScorerCache();
  const std::unique_ptr<executor::Cluster> cluster_;
  const size_t max_scripts_;
  const size_t max_scripts_of_role_;
  const double write_seconds_;
  Mutex mutex_;
  std::condition_variable_any script_began_;
  std::list<Running> running_ GUARDED_BY(mutex_);
  std::list<Waiting> waiting_ GUARDED_BY(mutex_);  // in order of arrival
  std::condition_variable_any script_left_;
  bool shut_down_ GUARDED_BY(mutex_) = false;
  std::jthread watcher_;                 // ends before the members that it uses are destroyed
  std::unique_ptr<LostJobs> lost_jobs_;  // the same
  std::optional<Housekeeper> housekeeper_;
};

}  // namespace sluice::server
